/* What a topology must say, as one line of statements, for tables of files:
 *
 *     expect_topology("tests/field/topom/x.txt", "gpus 8; nics 2; pair gpu0 gpu3 NV12; numa gpu0 3;
 * " "fact gpu* nvlink_active_count 12; finding file-cut; says gpu7 is missing");
 *
 *   refused A|B         not read; the error has all the words
 *   gpus N, nics N      counts
 *   pairs NV12:28 SYS:4 how many pairs were stated in each class, all of them
 *   pair A B CLASS      of two nodes; "-": not stated
 *   links N             NVLink bundles
 *   numa A N            -1: unknown
 *   lanes A 8/16        now / at most        link A 7.88/15.8   GB/s one way
 *   memory A N          MiB                  model A TEXT, pci A TEXT, os A TEXT, fabric A TEXT
 *   fact A KEY VALUE    as nw_fact_value_text has it; "-": unknown. "gpu*": all GPUs
 *   finding CODE        there is one;  none CODE: there is none;  findings N: how many
 *   says TEXT           in a finding
 *   gap N               this bit is set
 */
#ifndef NW_TESTS_TOPO_EXPECT_H
#define NW_TESTS_TOPO_EXPECT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/topo.h"

static inline int expect_node(const struct nw_topo *topo, const char *name)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].name, name) == 0)
            return (int)i;
    return -1;
}

static inline const struct nw_topo_stated *expect_stated(const struct nw_topo *topo, int a, int b)
{
    for (size_t i = 0; i < topo->stated_count; i++)
        if ((topo->stated[i].a == a && topo->stated[i].b == b) ||
            (topo->stated[i].a == b && topo->stated[i].b == a))
            return &topo->stated[i];
    return NULL;
}

static inline const char *expect_class(const struct nw_topo_stated *stated, char text[16])
{
    snprintf(text, 16, "%s", stated != NULL ? nw_class_name(stated->class_id) : "-");
    if (stated != NULL && stated->nvlinks > 0)
        snprintf(text, 16, "NV%d", stated->nvlinks);
    return text;
}

/* "NV12:28 SYS:4", sorted as given: takes each away from the count. */
static inline void expect_pairs(const struct nw_topo *topo, char *list, const char *what)
{
    size_t sum = 0;

    for (char *rest = list, *word; (word = strsep(&rest, " ")) != NULL;) {
        char *colon = strchr(word, ':'), text[16];
        int count = 0;

        cr_assert_not_null(colon, "%s: \"%s\"", what, word);
        *colon = '\0';
        for (size_t i = 0; i < topo->stated_count; i++)
            count += strcmp(expect_class(&topo->stated[i], text), word) == 0;
        cr_expect_eq(count, atoi(colon + 1), "%s: %d pairs are %s, not %s", what, count, word,
                     colon + 1);
        sum += (size_t)count;
    }
    cr_expect_eq(sum, topo->stated_count, "%s: %zu pairs stated, %zu expected", what,
                 topo->stated_count, sum);
}

static inline void expect_findings(const struct nw_topo *topo, const char *verb, const char *value,
                                   const char *what)
{
    bool code = false, said = false;

    for (size_t i = 0; i < topo->findings.count; i++) {
        code |= strcmp(topo->findings.items[i].code, value) == 0;
        said |= strstr(topo->findings.items[i].text, value) != NULL;
    }
    if (strcmp(verb, "finding") == 0)
        cr_expect(code, "%s: no finding %s", what, value);
    else if (strcmp(verb, "none") == 0)
        cr_expect_not(code, "%s: finding %s", what, value);
    else
        cr_expect(said, "%s: no finding says \"%s\"", what, value);
    for (size_t i = 0; i < topo->findings.count && !(code || said) && strcmp(verb, "none") != 0;
         i++)
        fprintf(stderr, "  %s: %s\n", topo->findings.items[i].code, topo->findings.items[i].text);
}

static inline void expect_fact(const struct nw_topo *topo, int node, const char *key,
                               const char *value, const char *what)
{
    const int id = nw_fact_find(key);
    const struct nw_fact *fact;
    char text[224] = "-";

    cr_assert_geq(id, 0, "no fact \"%s\"", key);
    fact = nw_topo_fact(topo, node, (nw_fact_id)id);
    if (fact != NULL)
        nw_fact_value_text(fact, text);
    cr_expect_str_eq(text, value, "%s: %s %s is %s, not %s", what, topo->nodes[node].name, key,
                     text, value);
}

static inline void expect_of_node(const struct nw_topo *topo, int node, const char *verb,
                                  const char *value, const char *what)
{
    const struct nw_topo_node *at = &topo->nodes[node];
    char text[160] = "", one[32], two[32];

    if (strcmp(verb, "numa") == 0)
        snprintf(text, sizeof text, "%d", at->numa);
    else if (strcmp(verb, "lanes") == 0)
        snprintf(text, sizeof text, "%d/%d", at->link_lanes, at->link_max_lanes);
    else if (strcmp(verb, "link") == 0)
        snprintf(text, sizeof text, "%s/%s", nw_format_gb_per_s(one, at->link_bytes_per_s),
                 nw_format_gb_per_s(two, at->link_max_bytes_per_s));
    else if (strcmp(verb, "memory") == 0)
        snprintf(text, sizeof text, "%.0f", (double)at->memory_bytes / 1048576);
    else if (strcmp(verb, "model") == 0)
        snprintf(text, sizeof text, "%s", at->model);
    else if (strcmp(verb, "pci") == 0)
        snprintf(text, sizeof text, "%s", at->pci);
    else if (strcmp(verb, "os") == 0)
        snprintf(text, sizeof text, "%s", at->os_names);
    else if (strcmp(verb, "fabric") == 0)
        snprintf(text, sizeof text, "%s", at->fabric);
    else
        cr_assert(false, "%s: unknown statement \"%s\"", what, verb);
    cr_expect_str_eq(text, value, "%s: %s of %s is \"%s\", not \"%s\"", what, verb, at->name, text,
                     value);
}

static inline void expect_statement(const struct nw_topo *topo, char *statement, const char *what)
{
    char *rest = statement, text[16];
    const char *verb = strsep(&rest, " ");

    cr_assert_not_null(rest, "%s: \"%s\"", what, verb);
    if (strcmp(verb, "gpus") == 0)
        cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), atoi(rest), "%s: %d GPUs", what,
                     nw_topo_count(topo, NW_NODE_GPU));
    else if (strcmp(verb, "nics") == 0)
        cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), atoi(rest), "%s: %d NICs", what,
                     nw_topo_count(topo, NW_NODE_NIC));
    else if (strcmp(verb, "pairs") == 0)
        expect_pairs(topo, rest, what);
    else if (strcmp(verb, "links") == 0)
        cr_expect_eq(topo->link_count, (size_t)atoi(rest), "%s: %zu links", what, topo->link_count);
    else if (strcmp(verb, "findings") == 0)
        cr_expect_eq(topo->findings.count, (size_t)atoi(rest), "%s: %zu findings: %s", what,
                     topo->findings.count,
                     topo->findings.count > 0 ? topo->findings.items[0].text : "");
    else if (strcmp(verb, "finding") == 0 || strcmp(verb, "none") == 0 || strcmp(verb, "says") == 0)
        expect_findings(topo, verb, rest, what);
    else if (strcmp(verb, "gap") == 0)
        cr_expect(topo->gaps & (unsigned)atoi(rest), "%s: gaps are %u", what, topo->gaps);
    else if (strcmp(verb, "pair") == 0) {
        const int a = expect_node(topo, strsep(&rest, " "));
        const int b = expect_node(topo, strsep(&rest, " "));

        cr_assert(a >= 0 && b >= 0, "%s: no such nodes", what);
        cr_expect_str_eq(expect_class(expect_stated(topo, a, b), text), rest,
                         "%s: %s to %s is %s, not %s", what, topo->nodes[a].name,
                         topo->nodes[b].name, text, rest);
    } else {
        const char *name = strsep(&rest, " "), *key = NULL;
        const bool all = strcmp(name, "gpu*") == 0;
        int found = 0;

        if (strcmp(verb, "fact") == 0)
            key = strsep(&rest, " ");
        cr_assert_not_null(rest, "%s: %s %s", what, verb, name);
        for (size_t i = 0; i < topo->node_count; i++) {
            if (all ? topo->nodes[i].kind != NW_NODE_GPU : strcmp(topo->nodes[i].name, name) != 0)
                continue;
            found++;
            if (key != NULL)
                expect_fact(topo, (int)i, key, rest, what);
            else
                expect_of_node(topo, (int)i, verb, rest, what);
        }
        cr_expect(found > 0, "%s: no node %s", what, name);
    }
}

static inline void expect_refused(nw_rc rc, const char *words, const char *what)
{
    char copy[300], *rest = copy, *word;

    cr_expect_eq(rc, NW_EUSAGE, "%s was read", what);
    snprintf(copy, sizeof copy, "%s", words);
    while (rc == NW_EUSAGE && (word = strsep(&rest, "|")) != NULL)
        cr_expect_not_null(strstr(nw_last_error()->text, word), "%s: no \"%s\" in: %s", what, word,
                           nw_last_error()->text);
}

static inline void expect_outcome(nw_rc rc, struct nw_topo *topo, const char *statements,
                                  const char *what)
{
    char copy[2000], *rest = copy, *statement;

    if (strncmp(statements, "refused ", 8) == 0) {
        expect_refused(rc, statements + 8, what);
        nw_topo_free(rc == NW_OK ? topo : NULL);
        return;
    }
    cr_assert_eq(rc, NW_OK, "%s: %s", what, nw_last_error()->text);
    cr_assert_lt(strlen(statements), sizeof copy);
    snprintf(copy, sizeof copy, "%s", statements);
    while ((statement = strsep(&rest, ";")) != NULL) {
        statement += strspn(statement, " ");
        expect_statement(topo, statement, what);
    }
    nw_topo_free(topo);
}

static inline void expect_topology(const char *file, const char *statements)
{
    char path[1024];
    struct nw_topo *topo = NULL;
    nw_rc rc;

    snprintf(path, sizeof path, "%s/%s", NW_SOURCE_DIR, file);
    rc = nw_topo_read_file(path, &topo);
    expect_outcome(rc, topo, statements, file);
}

/* The same of a text, in a block of exactly its size. */
static inline void expect_text(const char *text, const char *statements)
{
    const size_t length = strlen(text);
    char *data = malloc(length > 0 ? length : 1), what[64];
    struct nw_topo *topo = NULL;
    nw_rc rc;

    cr_assert_not_null(data);
    memcpy(data, text, length);
    snprintf(what, sizeof what, "%.60s", text);
    what[strcspn(what, "\r\n")] = '\0';
    rc = nw_topo_read_data(data, length, "t.txt", &topo);
    free(data);
    expect_outcome(rc, topo, statements, what);
}

#endif
