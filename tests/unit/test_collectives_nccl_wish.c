#include <criterion/criterion.h>
#include <string.h>

#include "collectives/comm.h"

Test(nccl_wish, lists_name_features)
{
    static const struct {
        const char *list;
        struct nw_nccl_wish wish;
    } rows[] = {
        {"none", {0}},
        {"graph", {.features = NW_NCCL_GRAPH}},
        {"window,register", {.features = NW_NCCL_REGISTER | NW_NCCL_WINDOW}},
        {"ctas=4", {.features = NW_NCCL_CTAS, .min_ctas = 4, .max_ctas = 4}},
        {"ctas=2-64,graph",
         {.features = NW_NCCL_CTAS | NW_NCCL_GRAPH, .min_ctas = 2, .max_ctas = 64}},
        {"graph,graph", {.features = NW_NCCL_GRAPH}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_nccl_wish wish;

        cr_assert_eq(nw_nccl_wish_parse(rows[i].list, &wish), NW_OK, "%s: %s", rows[i].list,
                     nw_last_error()->text);
        cr_assert_eq(wish.features, rows[i].wish.features, "%s", rows[i].list);
        cr_assert_eq(wish.min_ctas, rows[i].wish.min_ctas, "%s", rows[i].list);
        cr_assert_eq(wish.max_ctas, rows[i].wish.max_ctas, "%s", rows[i].list);
    }
}

Test(nccl_wish, what_is_no_list_is_refused_with_what_is_accepted)
{
    static const char *const lists[] = {
        "",
        "graphs",
        "graph,",
        ",graph",
        "graph,,window",
        "Graph",
        "ctas",
        "ctas=",
        "ctas=0",
        "ctas=65",
        "ctas=8-2",
        "ctas=-8",
        "ctas=2-",
        "ctas=2-4-8",
        "ctas=4x",
        "ctas= 4",
        "graph none",
        "none,graph",
        "ctas=99999999999999999999999999999999",
    };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct nw_nccl_wish wish = {.features = 77};

        cr_assert_eq(nw_nccl_wish_parse(lists[i], &wish), NW_EUSAGE, "%s", lists[i]);
        cr_assert_eq(wish.features, 77, "%s: set", lists[i]);
        cr_assert(strstr(nw_last_error()->text, "accepted") != NULL, "%s: %s", lists[i],
                  nw_last_error()->text);
    }
}
