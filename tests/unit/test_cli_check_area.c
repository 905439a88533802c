#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "cli/check_area.h"
#include "topo/preflight.h"

/* Codes that speak of several parts: what they say decides. */
static bool is_general(const char *code)
{
    return strcmp(code, "hosts-differ") == 0 || strcmp(code, "siblings-differ") == 0 ||
           strcmp(code, "sources-disagree") == 0 || strcmp(code, "not-checked") == 0;
}

Test(check_area, every_code_of_the_preflight_belongs_to_a_part)
{
    for (const struct nw_preflight_rule *rule = nw_preflight_rules; rule->codes != NULL; rule++) {
        char codes[1024], *rest = NULL;

        snprintf(codes, sizeof codes, "%s", rule->codes);
        for (char *code = strtok_r(codes, " ", &rest); code != NULL;
             code = strtok_r(NULL, " ", &rest)) {
            const struct nw_finding finding = {.code = code, .where = "node1", .text = "?"};

            cr_expect(is_general(code) || nw_check_area_of(&finding) != NW_CHECK_AREA_COUNT,
                      "\"%s\" belongs to no part of the table", code);
        }
    }
}

Test(check_area, codes_and_words_lead_to_the_right_part)
{
    static const struct {
        const char *code, *text;
        nw_check_area area;
    } rows[] = {
        {"nvlink-down", "", NW_AREA_NVLINK},
        {"xid-nvlink", "", NW_AREA_NVLINK},
        {"xid-memory", "", NW_AREA_GPU},
        {"gpudirect-off", "", NW_AREA_RDMA},
        {"gpu-lost", "", NW_AREA_GPU},
        {"memory-worn", "", NW_AREA_GPU},
        {"memory-limited", "", NW_AREA_CPU},
        {"pcie-slow-under-load", "", NW_AREA_PCIE},
        {"reach-blocked", "", NW_AREA_NETWORK},
        {"binding-far", "", NW_AREA_CPU},
        {"hosts-differ", "NVIDIA driver 570.1; node1 has 580.1", NW_AREA_SOFTWARE},
        {"hosts-differ", "4 RDMA NICs up", NW_AREA_RDMA},
        {"hosts-differ", "255 GiB of RAM, 2 memory modules", NW_AREA_CPU},
        {"host-silent", "no answer", NW_CHECK_AREA_COUNT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_finding finding = {
            .code = (char *)rows[i].code, .where = "node1", .text = (char *)rows[i].text};

        cr_expect_eq(nw_check_area_of(&finding), rows[i].area, "row %zu", i);
    }
}
