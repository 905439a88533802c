/* Reading a topology's JSON, strictly: an unknown key is an error, as it may be a misspelt one. */
#include "topo/topo_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/finding_json.h"
#include "base/json.h"
#include "base/units.h"
#include "topo/read.h"

enum {
    WHAT_SIZE = 384, /* "FILE: nodes[12]" */
    /* Bounds against hostile files; the largest machine seen has 200 nodes, 12 deep. */
    MAX_NODES = 16384,
    MAX_DEPTH = 64,
    MAX_LINKS = 65536,
    MAX_FINDINGS = 4096,
};

static nw_rc check_key(const char *key, const char *what, const struct nw_field *fields,
                       size_t count, const char *const *others)
{
    const char *names[64] = {NULL};
    const char *nearest;
    char list[512];
    size_t used = 0;

    for (size_t i = 0; others[i] != NULL; i++)
        names[used++] = others[i];
    for (size_t i = 0; i < count; i++)
        names[used++] = fields[i].key;
    for (size_t i = 0; i < used; i++)
        if (strcmp(names[i], key) == 0)
            return NW_OK;
    nearest = nw_nearest_name(key, names);
    if (nearest != NULL)
        return nw_fail(NW_EUSAGE, "%s: unknown key \"%.60s\"; the nearest is \"%s\"", what, key,
                       nearest);
    return nw_fail(NW_EUSAGE, "%s: unknown key \"%.60s\"; accepted: %s", what, key,
                   nw_join_names(list, sizeof list, names));
}

static nw_rc get_int(const json_t *object, const char *what, const struct nw_field *field, char *at)
{
    int value = field->unknown;

    NW_TRY(nw_json_get_int(object, what, field->key, false, &value));
    if (value != field->unknown && (value < 0 || value > field->max))
        return nw_fail(NW_EUSAGE, "%s: key \"%s\" is %d; expected 0 to %d", what, field->key, value,
                       field->max);
    memcpy(at, &value, sizeof value);
    return NW_OK;
}

static nw_rc get_field(const json_t *object, const char *what, const struct nw_field *field,
                       void *owner)
{
    char *at = (char *)owner + field->offset;
    uint64_t u64 = 0;
    uint32_t u32;
    double rate = 0;

    switch (field->type) {
    case NW_FIELD_TEXT:
        return nw_json_get_field(object, what, field->key, false, at, field->size);
    case NW_FIELD_INT:
        return get_int(object, what, field, at);
    case NW_FIELD_U32:
        NW_TRY(nw_json_get_u64(object, what, field->key, false, &u64));
        if (u64 > (uint64_t)field->max)
            return nw_fail(NW_EUSAGE, "%s: key \"%s\" is %llu; expected 0 to %d", what, field->key,
                           (unsigned long long)u64, field->max);
        u32 = (uint32_t)u64;
        memcpy(at, &u32, sizeof u32);
        return NW_OK;
    case NW_FIELD_U64:
        NW_TRY(nw_json_get_u64(object, what, field->key, false, &u64));
        memcpy(at, &u64, sizeof u64);
        return NW_OK;
    case NW_FIELD_RATE:
        NW_TRY(nw_json_get_real(object, what, field->key, false, &rate));
        if (!isfinite(rate) || rate < 0)
            return nw_fail(NW_EUSAGE, "%s: key \"%s\" is %g; expected a rate of 0 or more", what,
                           field->key, rate);
        memcpy(at, &rate, sizeof rate);
        return NW_OK;
    }
    return NW_OK;
}

static nw_rc get_fields(const json_t *object, const char *what, const struct nw_field *fields,
                        size_t count, const char *const *others, void *owner)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return nw_fail(NW_EUSAGE, "%s: expected an object", what);
    json_object_foreach((json_t *)object, key, value)
        NW_TRY(check_key(key, what, fields, count, others));
    for (size_t i = 0; i < count; i++)
        NW_TRY(get_field(object, what, &fields[i], owner));
    return NW_OK;
}

static nw_rc get_array(const json_t *root, const char *what, const char *key, size_t most,
                       const json_t **array_out)
{
    const json_t *array = json_object_get(root, key);

    if (!json_is_array(array))
        return nw_fail(NW_EUSAGE, "%s: key \"%s\" is %s; expected an array", what, key,
                       array == NULL ? "missing" : "of another type");
    if (json_array_size(array) > most)
        return nw_fail(NW_EUSAGE, "%s: key \"%s\" has %zu entries; expected %zu at most", what, key,
                       json_array_size(array), most);
    *array_out = array;
    return NW_OK;
}

static nw_rc get_words(const json_t *root, const char *what, const char *key, bool gaps,
                       unsigned *bits_out)
{
    const size_t words = gaps ? NW_GAP_WORD_COUNT : NW_SOURCE_WORD_COUNT;
    const json_t *array;
    unsigned bits = 0;

    NW_TRY(get_array(root, what, key, words, &array));
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *word = json_string_value(json_array_get(array, i));
        unsigned bit = 0;

        for (size_t k = 0; k < words && word != NULL; k++)
            if (strcmp(word, gaps ? nw_gap_words[k].key : nw_source_words[k].key) == 0)
                bit = gaps ? nw_gap_words[k].bit : nw_source_words[k].bit;
        if (bit == 0)
            return nw_fail(NW_EUSAGE, "%s: key \"%s\" holds \"%.40s\"; accepted: %s", what, key,
                           word != NULL ? word : "no text",
                           gaps ? "no_io, no_nvlink, restricted" : "hwloc, xml, sysfs");
        bits |= bit;
    }
    *bits_out = bits;
    return NW_OK;
}

/* Index of the text of `key` among `count` names. */
static nw_rc get_choice(const json_t *object, const char *what, const char *key, size_t count,
                        const char *(*name_of)(int index), int *index_out)
{
    const char *names[32] = {NULL}, *text = NULL;
    char list[256];

    NW_TRY(nw_json_get_text(object, what, key, true, &text));
    for (size_t i = 0; i < count; i++) {
        names[i] = name_of((int)i);
        if (strcmp(names[i], text) == 0) {
            *index_out = (int)i;
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "%s: key \"%s\" is \"%.40s\"; accepted: %s", what, key, text,
                   nw_join_names(list, sizeof list, names));
}

static const char *node_kind_name(int index)
{
    return nw_node_kind_key((nw_node_kind)index);
}

static const char *link_kind_name(int index)
{
    return nw_link_kind_key((nw_link_kind)index);
}

static nw_rc get_node(const json_t *object, const char *what, struct nw_topo_node *node, int index)
{
    static const char *const others[] = {"kind", NULL};
    int kind = 0;

    NW_TRY(get_fields(object, what, nw_node_fields, NW_NODE_FIELD_COUNT, others, node));
    NW_TRY(get_choice(object, what, "kind", NW_NODE_KIND_COUNT, node_kind_name, &kind));
    node->kind = (nw_node_kind)kind;
    if ((index == 0) != (node->kind == NW_NODE_MACHINE) || (index == 0) != (node->parent == -1) ||
        node->parent >= index)
        return nw_fail(NW_EUSAGE,
                       "%s: kind \"%s\" with parent %d: the first node is the machine and has no "
                       "parent, every other one has a node before it as parent",
                       what, nw_node_kind_key(node->kind), node->parent);
    return NW_OK;
}

static nw_rc get_nodes(const json_t *root, const char *what, struct nw_topo *topo)
{
    const json_t *array;
    char where[WHAT_SIZE];
    size_t count;

    NW_TRY(get_array(root, what, "nodes", MAX_NODES, &array));
    count = json_array_size(array);
    if (count == 0)
        return nw_fail(NW_EUSAGE, "%s: key \"nodes\" is empty; expected the machine at least",
                       what);
    topo->nodes = calloc(count, sizeof *topo->nodes);
    if (topo->nodes == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for %zu nodes", what, count);
    topo->node_count = count;
    for (size_t i = 0; i < count; i++) {
        int depth = 0;

        snprintf(where, sizeof where, "%.256s: nodes[%zu]", what, i);
        NW_TRY(get_node(json_array_get(array, i), where, &topo->nodes[i], (int)i));
        for (int up = topo->nodes[i].parent; up >= 0; up = topo->nodes[up].parent)
            if (++depth > MAX_DEPTH)
                return nw_fail(NW_EUSAGE, "%s: more than %d nodes above it", where, (int)MAX_DEPTH);
    }
    return NW_OK;
}

static nw_rc get_links(const json_t *root, const char *what, struct nw_topo *topo)
{
    static const char *const others[] = {"kind", NULL};
    const json_t *array;
    char where[WHAT_SIZE];
    size_t count;

    NW_TRY(get_array(root, what, "links", MAX_LINKS, &array));
    count = json_array_size(array);
    topo->links = calloc(count + 1, sizeof *topo->links);
    if (topo->links == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for %zu links", what, count);
    topo->link_count = count;
    for (size_t i = 0; i < count; i++) {
        struct nw_topo_link *link = &topo->links[i];
        const json_t *object = json_array_get(array, i);
        int kind = 0;

        snprintf(where, sizeof where, "%.256s: links[%zu]", what, i);
        NW_TRY(get_fields(object, where, nw_link_fields, NW_LINK_FIELD_COUNT, others, link));
        NW_TRY(get_choice(object, where, "kind", NW_LINK_KIND_COUNT, link_kind_name, &kind));
        link->kind = (nw_link_kind)kind;
        if (link->a < 0 || link->b < 0 || (size_t)link->a >= topo->node_count ||
            (size_t)link->b >= topo->node_count || link->a == link->b)
            return nw_fail(NW_EUSAGE, "%s: joins nodes %d and %d; expected two of 0 to %zu", where,
                           link->a, link->b, topo->node_count - 1);
        nw_topo_chain_link(topo, i);
    }
    return NW_OK;
}

static nw_rc get_findings(const json_t *root, const char *what, struct nw_findings *findings)
{
    const json_t *array;

    NW_TRY(get_array(root, what, "findings", MAX_FINDINGS, &array));
    return nw_findings_from_json(array, what, findings);
}

static nw_rc check_counts(const char *what, const struct nw_topo *topo)
{
    const struct {
        const char *key;
        int said, there;
    } counts[] = {
        {"package_count", topo->package_count, nw_topo_count(topo, NW_NODE_PACKAGE)},
        {"numa_count", topo->numa_count, nw_topo_count(topo, NW_NODE_NUMA)},
    };

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].said != counts[i].there)
            return nw_fail(NW_EUSAGE, "%s: key \"%s\" is %d, but %d such nodes are there", what,
                           counts[i].key, counts[i].said, counts[i].there);
    return NW_OK;
}

static nw_rc check_schema(const json_t *root, const char *what)
{
    const char *kind = NULL;
    int schema = 0;

    if (!json_is_object(root))
        return nw_fail(NW_EUSAGE, "%s: expected a JSON object", what);
    NW_TRY(nw_json_get_text(root, what, "kind", true, &kind));
    if (strcmp(kind, "topology") != 0)
        return nw_fail(NW_EUSAGE, "%s: key \"kind\" is \"%.40s\"; expected \"topology\"", what,
                       kind);
    NW_TRY(nw_json_get_int(root, what, "schema", true, &schema));
    if (schema != NW_TOPO_SCHEMA)
        return nw_fail(NW_EUSAGE, "%s: key \"schema\" is %d; this nodeworth reads schema %d", what,
                       schema, (int)NW_TOPO_SCHEMA);
    return NW_OK;
}

static nw_rc fill_topo(const json_t *root, const char *what, struct nw_topo *topo)
{
    /* "matrix" and "ceilings" are printed beside a topology and computed anew. */
    static const char *const others[] = {
        "schema",         "kind", "sources",  "gaps",   "nodes",    "links", "facts",
        "stated_classes", "gids", "findings", "matrix", "ceilings", NULL};

    NW_TRY(check_schema(root, what));
    NW_TRY(get_fields(root, what, nw_topo_fields, NW_TOPO_FIELD_COUNT, others, topo));
    NW_TRY(get_words(root, what, "sources", false, &topo->sources));
    NW_TRY(get_words(root, what, "gaps", true, &topo->gaps));
    NW_TRY(get_nodes(root, what, topo));
    NW_TRY(get_links(root, what, topo));
    NW_TRY(nw_topo_json_get_facts(root, what, topo));
    NW_TRY(get_findings(root, what, &topo->findings));
    NW_TRY(check_counts(what, topo));
    topo->sources |= NW_SOURCE_JSON;
    nw_topo_clean(topo);
    return NW_OK;
}

nw_rc nw_topo_from_json(const json_t *json, const char *what, struct nw_topo **topo_out)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    nw_rc rc;

    if (topo == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for the topology", what);
    rc = fill_topo(json, what, topo);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    *topo_out = topo;
    return NW_OK;
}
