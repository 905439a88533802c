/* A topology as JSON, schema 1. A key is absent where the value is unknown; rates and sizes have
 * their unit in the key. */
#include "topo/topo_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/finding_json.h"
#include "base/io.h"
#include "base/json.h"

#define TEXT(owner, member)                                                                        \
    {                                                                                              \
#member, NW_FIELD_TEXT, offsetof(struct owner, member), sizeof((struct owner *)0)->member, \
            0, 0                                                                                   \
    }
#define INT(owner, member, unknown, max)                                                           \
    {                                                                                              \
#member, NW_FIELD_INT, offsetof(struct owner, member), 0, unknown, max                     \
    }
#define NUMBER(owner, member, type, max)                                                           \
    {                                                                                              \
#member, type, offsetof(struct owner, member), 0, 0, max                                   \
    }

enum { MANY = 1 << 24 };

const struct nw_field nw_topo_fields[NW_TOPO_FIELD_COUNT] = {
    TEXT(nw_topo, host),
    TEXT(nw_topo, source),
    TEXT(nw_topo, os),
    INT(nw_topo, package_count, 0, MANY),
    INT(nw_topo, numa_count, 0, MANY),
    INT(nw_topo, core_count, 0, MANY),
    INT(nw_topo, pu_count, 0, MANY),
    INT(nw_topo, pu_allowed_count, 0, MANY),
    INT(nw_topo, pu_complete_count, 0, MANY),
    NUMBER(nw_topo, memory_bytes, NW_FIELD_U64, 0),
};

const struct nw_field nw_node_fields[NW_NODE_FIELD_COUNT] = {
    TEXT(nw_topo_node, name),
    INT(nw_topo_node, parent, -1, MANY),
    TEXT(nw_topo_node, model),
    TEXT(nw_topo_node, pci),
    NUMBER(nw_topo_node, pci_class, NW_FIELD_U32, 0xffff),
    NUMBER(nw_topo_node, pci_vendor, NW_FIELD_U32, 0xffff),
    NUMBER(nw_topo_node, pci_device, NW_FIELD_U32, 0xffff),
    INT(nw_topo_node, numa, -1, MANY),
    INT(nw_topo_node, core_count, 0, MANY),
    INT(nw_topo_node, pu_count, 0, MANY),
    NUMBER(nw_topo_node, memory_bytes, NW_FIELD_U64, 0),
    NUMBER(nw_topo_node, link_bytes_per_s, NW_FIELD_RATE, 0),
    NUMBER(nw_topo_node, link_max_bytes_per_s, NW_FIELD_RATE, 0),
    INT(nw_topo_node, link_lanes, 0, 32),
    INT(nw_topo_node, link_max_lanes, 0, 32),
    NUMBER(nw_topo_node, rate_bits_per_s, NW_FIELD_RATE, 0),
    INT(nw_topo_node, port_up, -1, 1),
    TEXT(nw_topo_node, fabric),
    TEXT(nw_topo_node, os_names),
};

const struct nw_field nw_link_fields[NW_LINK_FIELD_COUNT] = {
    INT(nw_topo_link, a, -1, MANY),
    INT(nw_topo_link, b, -1, MANY),
    INT(nw_topo_link, lane_count, 0, MANY),
    NUMBER(nw_topo_link, bytes_per_s, NW_FIELD_RATE, 0),
};

/* NW_SOURCE_JSON is not among them: it is how a copy was read. */
const struct nw_bit_word nw_source_words[NW_SOURCE_WORD_COUNT] = {
    {NW_SOURCE_HWLOC, "hwloc"}, {NW_SOURCE_XML, "xml"},       {NW_SOURCE_SYSFS, "sysfs"},
    {NW_SOURCE_NVML, "nvml"},   {NW_SOURCE_NCCL_XML, "nccl"}, {NW_SOURCE_SMI, "nvidia-smi"},
    {NW_SOURCE_RDMA, "rdma"},   {NW_SOURCE_LSPCI, "lspci"},   {NW_SOURCE_LOG, "kernel_log"}};
const struct nw_bit_word nw_gap_words[NW_GAP_WORD_COUNT] = {{NW_TOPO_NO_IO, "no_io"},
                                                            {NW_TOPO_NO_NVLINK, "no_nvlink"},
                                                            {NW_TOPO_RESTRICTED, "restricted"},
                                                            {NW_TOPO_PARTIAL, "partial"}};

static nw_rc set_field(json_t *object, const struct nw_field *field, const void *owner)
{
    const char *at = (const char *)owner + field->offset;
    uint64_t u64;
    uint32_t u32;
    double rate;
    int integer;

    switch (field->type) {
    case NW_FIELD_TEXT:
        return at[0] != '\0' ? nw_json_set_text(object, field->key, at) : NW_OK;
    case NW_FIELD_INT:
        memcpy(&integer, at, sizeof integer);
        return integer != field->unknown ? nw_json_set_int(object, field->key, integer) : NW_OK;
    case NW_FIELD_U32:
        memcpy(&u32, at, sizeof u32);
        return u32 != 0 ? nw_json_set_u64(object, field->key, u32) : NW_OK;
    case NW_FIELD_U64:
        memcpy(&u64, at, sizeof u64);
        return u64 != 0 ? nw_json_set_u64(object, field->key, u64) : NW_OK;
    case NW_FIELD_RATE:
        memcpy(&rate, at, sizeof rate);
        return rate > 0 ? nw_json_set_real(object, field->key, rate) : NW_OK;
    }
    return NW_OK;
}

static nw_rc set_fields(json_t *object, const struct nw_field *fields, size_t count,
                        const void *owner)
{
    for (size_t i = 0; i < count; i++)
        NW_TRY(set_field(object, &fields[i], owner));
    return NW_OK;
}

/* Appends an empty object to `array`, which owns it. */
static nw_rc append_object(json_t *array, json_t **object_out)
{
    json_t *object = json_object();

    if (object == NULL || json_array_append_new(array, object) != 0)
        return nw_fail(NW_ENOMEM, "out of memory for the topology's JSON");
    *object_out = object;
    return NW_OK;
}

/* Sets an empty array; the object owns it. */
static nw_rc add_array(json_t *object, const char *key, json_t **array_out)
{
    json_t *array = json_array();

    NW_TRY(nw_json_set_new(object, key, array));
    *array_out = array;
    return NW_OK;
}

static nw_rc set_words(json_t *object, const char *key, unsigned bits, bool gaps)
{
    json_t *array;

    NW_TRY(add_array(object, key, &array));
    for (size_t i = 0; i < (gaps ? NW_GAP_WORD_COUNT : NW_SOURCE_WORD_COUNT); i++) {
        const struct nw_bit_word *word = gaps ? &nw_gap_words[i] : &nw_source_words[i];

        if ((bits & word->bit) != 0 && json_array_append_new(array, json_string(word->key)) != 0)
            return nw_fail(NW_ENOMEM, "out of memory for the topology's JSON");
    }
    return NW_OK;
}

static nw_rc fill_json(json_t *root, const struct nw_topo *topo)
{
    json_t *array, *object = NULL;

    NW_TRY(nw_json_set_int(root, "schema", NW_TOPO_SCHEMA));
    NW_TRY(nw_json_set_text(root, "kind", "topology"));
    NW_TRY(set_fields(root, nw_topo_fields, NW_TOPO_FIELD_COUNT, topo));
    NW_TRY(set_words(root, "sources", topo->sources, false));
    NW_TRY(set_words(root, "gaps", topo->gaps, true));
    NW_TRY(add_array(root, "nodes", &array));
    for (size_t i = 0; i < topo->node_count; i++) {
        NW_TRY(append_object(array, &object));
        NW_TRY(nw_json_set_text(object, "kind", nw_node_kind_key(topo->nodes[i].kind)));
        NW_TRY(set_fields(object, nw_node_fields, NW_NODE_FIELD_COUNT, &topo->nodes[i]));
    }
    NW_TRY(add_array(root, "links", &array));
    for (size_t i = 0; i < topo->link_count; i++) {
        NW_TRY(append_object(array, &object));
        NW_TRY(nw_json_set_text(object, "kind", nw_link_kind_key(topo->links[i].kind)));
        NW_TRY(set_fields(object, nw_link_fields, NW_LINK_FIELD_COUNT, &topo->links[i]));
    }
    NW_TRY(nw_topo_json_set_facts(root, topo));
    NW_TRY(nw_findings_to_json(&topo->findings, &array));
    return nw_json_set_new(root, "findings", array);
}

nw_rc nw_topo_to_json(const struct nw_topo *topo, json_t **json_out)
{
    json_t *root = json_object();
    nw_rc rc;

    if (root == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the topology's JSON");
    rc = fill_json(root, topo);
    if (rc != NW_OK) {
        json_decref(root);
        return rc;
    }
    *json_out = root;
    return NW_OK;
}

nw_rc nw_topo_save(const struct nw_topo *topo, const char *path)
{
    struct nw_atomic_file *file = NULL;
    json_t *root = NULL;
    nw_rc rc;

    NW_TRY(nw_topo_to_json(topo, &root));
    rc = nw_atomic_open(path, &file);
    if (rc == NW_OK) {
        rc = nw_json_print(nw_atomic_stream(file), root);
        if (rc == NW_OK)
            rc = nw_atomic_commit(file);
        else
            nw_atomic_abandon(file);
    }
    json_decref(root);
    return rc;
}
