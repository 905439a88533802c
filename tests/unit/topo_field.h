/* What the tests of topology readers share: a file of tests/field, a text, every cut of it; facts
 * by the name of their node. */
#ifndef NW_TESTS_TOPO_FIELD_H
#define NW_TESTS_TOPO_FIELD_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "topo/topo.h"

/* What was read survives topo --save. */
static inline void expect_round_trip(const struct nw_topo *topo, const char *what)
{
    struct nw_topo *copy = NULL;
    json_t *json = NULL;

    cr_expect_eq(nw_topo_to_json(topo, &json), NW_OK, "%s", what);
    cr_assert_eq(nw_topo_from_json(json, "copy", &copy), NW_OK, "%s: %s", what,
                 nw_last_error()->text);
    cr_expect_eq(copy->fact_count, topo->fact_count, "%s", what);
    cr_expect_eq(copy->gid_count, topo->gid_count, "%s", what);
    json_decref(json);
    nw_topo_free(copy);
}

/* "ibstat/x.txt" of tests/field. */
static inline char *field_data(const char *name, size_t *length_out)
{
    char path[512], *data = NULL;

    snprintf(path, sizeof path, "%s/tests/field/%s", NW_SOURCE_DIR, name);
    cr_assert_eq(nw_file_read(path, 32 << 20, &data, length_out), NW_OK, "%s",
                 nw_last_error()->text);
    return data;
}

static inline struct nw_topo *field_topo(const char *name)
{
    size_t length;
    char *data = field_data(name, &length);
    struct nw_topo *topo = NULL;

    cr_assert_eq(nw_topo_read_data(data, length, name, &topo), NW_OK, "%s: %s", name,
                 nw_last_error()->text);
    free(data);
    expect_round_trip(topo, name);
    return topo;
}

static inline struct nw_topo *text_topo(const char *text)
{
    struct nw_topo *topo = NULL;

    cr_assert_eq(nw_topo_read_data(text, strlen(text), "text", &topo), NW_OK, "%s",
                 nw_last_error()->text);
    expect_round_trip(topo, text);
    return topo;
}

/* Index of the node of that name; -1: none. */
static inline int node_named(const struct nw_topo *topo, const char *name)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].name, name) == 0)
            return (int)i;
    return -1;
}

static inline const char *text_of(const struct nw_topo *topo, const char *node, nw_fact_id id)
{
    const int index = node_named(topo, node);
    const char *text = index >= 0 ? nw_topo_text(topo, index, id) : NULL;

    return text != NULL ? text : "";
}

static inline double number_of(const struct nw_topo *topo, const char *node, nw_fact_id id)
{
    const int index = node_named(topo, node);

    return index >= 0 ? nw_topo_number(topo, index, id) : NAN;
}

static inline const struct nw_finding *finding_of(const struct nw_topo *topo, const char *code)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, code) == 0)
            return &topo->findings.items[i];
    return NULL;
}

/* Every prefix in steps, in a block of exactly its size: a sanitizer sees a read behind it. Nothing
 * may crash, and a refusal has a text. */
static inline void try_all_cuts(const char *name, size_t step)
{
    size_t length;
    char *data = field_data(name, &length);

    for (size_t cut = 0; cut < length; cut += step) {
        char *part = malloc(cut + 1);
        struct nw_topo *topo = NULL;

        cr_assert_not_null(part);
        memcpy(part, data, cut);
        part[cut] = '\0'; /* as nw_topo_format.recognise is promised */
        if (nw_topo_read_data(part, cut, name, &topo) == NW_OK)
            nw_topo_free(topo);
        else
            cr_expect_neq(nw_last_error()->text[0], '\0', "%s cut at %zu", name, cut);
        free(part);
    }
    free(data);
}

#endif
