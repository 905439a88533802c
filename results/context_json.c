#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "results/fields.h"
#include "results/results.h"

#define TEXT(structure, json_key, member, needed)                                                  \
    {                                                                                              \
        .key = (json_key), .type = NW_FIELD_TEXT, .required = (needed),                            \
        .offset = offsetof(structure, member), .size = sizeof(((structure *)0)->member)            \
    }
#define NUMBER(structure, json_key, field_type, member, least)                                     \
    {                                                                                              \
        .key = (json_key), .type = (field_type), .offset = offsetof(structure, member),            \
        .min = (least)                                                                             \
    }

static const struct nw_line_field context_rows[] = {
    TEXT(struct nw_context, "tool", tool, true),
    TEXT(struct nw_context, "tool_version", tool_version, false),
    TEXT(struct nw_context, "started", started, false),
    TEXT(struct nw_context, "backend", backend, false),
    TEXT(struct nw_context, "library", library, false),
    TEXT(struct nw_context, "gpu_model", gpu_model, false),
    TEXT(struct nw_context, "network", network, false),
    TEXT(struct nw_context, "source", source, false),
    NUMBER(struct nw_context, "ranks", NW_FIELD_INT, rank_count, 1),
    NUMBER(struct nw_context, "hosts", NW_FIELD_INT, host_count, 1),
    NUMBER(struct nw_context, "printed_average_busbw_bytes_per_s", NW_FIELD_REAL,
           printed_average_bytes_per_s, 0),
    {.key = "simulated",
     .type = NW_FIELD_BOOL,
     .required = true,
     .offset = offsetof(struct nw_context, simulated)},
};

static const struct nw_line_field host_rows[] = {
    TEXT(struct nw_host, "name", name, true),
    NUMBER(struct nw_host, "ranks", NW_FIELD_INT, rank_count, 1),
    TEXT(struct nw_host, "cpu", cpu, false),
    NUMBER(struct nw_host, "cores", NW_FIELD_INT, core_count, 1),
    NUMBER(struct nw_host, "hardware_threads", NW_FIELD_INT, pu_count, 1),
    NUMBER(struct nw_host, "memory_bytes", NW_FIELD_U64, memory_bytes, 1),
    NUMBER(struct nw_host, "gpus", NW_FIELD_INT, gpu_count, 0),
    TEXT(struct nw_host, "gpu_model", gpu_model, false),
    TEXT(struct nw_host, "kernel", kernel, false),
};

/* Parts that are JSON already. */
static const struct part {
    const char *key;
    size_t offset;
    json_type type;
    const char *type_name;
} parts[] = {
    {"environment", offsetof(struct nw_context, environment), JSON_OBJECT, "an object"},
    {"plan", offsetof(struct nw_context, plan), JSON_OBJECT, "an object"},
    {"topology", offsetof(struct nw_context, topology), JSON_ARRAY, "an array"},
    {"binding", offsetof(struct nw_context, binding), JSON_ARRAY, "an array"},
    {"lanes", offsetof(struct nw_context, lanes), JSON_ARRAY, "an array"},
    {"gpus", offsetof(struct nw_context, gpus), JSON_ARRAY, "an array"},
};
enum { PART_COUNT = sizeof parts / sizeof parts[0] };

#define ROWS(rows) rows, sizeof rows / sizeof rows[0]

static int append(const char *data, size_t length, void *text)
{
    nw_text_raw(text, data, length);
    return 0;
}

static void write_parts(struct nw_text *text, const struct nw_context *context)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        const json_t *part = *(json_t *const *)((const char *)context + parts[i].offset);

        if (part == NULL)
            continue;
        nw_text_key(text, parts[i].key);
        if (json_dump_callback(part, append, text, JSON_COMPACT | JSON_REAL_PRECISION(17)) != 0)
            text->failed = true;
    }
}

void nw_context_write(struct nw_text *text, const struct nw_context *context)
{
    nw_text_put(text, "{");
    nw_text_key(text, "schema");
    nw_text_i64(text, NW_SCHEMA_VERSION);
    nw_text_key(text, "kind");
    nw_text_put(text, "\"context\"");
    nw_fields_write(text, ROWS(context_rows), context);
    if (context->hosts != NULL) {
        nw_text_key(text, "host_list");
        nw_text_put(text, "[");
        for (int i = 0; i < context->host_count; i++) {
            nw_text_put(text, i > 0 ? ",{" : "{");
            nw_fields_write(text, ROWS(host_rows), &context->hosts[i]);
            nw_text_put(text, "}");
        }
        nw_text_put(text, "]");
    }
    write_parts(text, context);
    nw_text_put(text, "}");
}

nw_rc nw_context_to_json(const struct nw_context *context, json_t **json_out)
{
    struct nw_text text = {0};

    nw_context_write(&text, context);
    const nw_rc rc = nw_text_to_json(&text, json_out);

    nw_text_free(&text);
    return rc;
}

static nw_rc read_hosts(const json_t *list, const char *what, struct nw_context *context)
{
    const size_t count = json_array_size(list);
    char where[600];

    if (!json_is_array(list))
        return nw_fail(NW_EUSAGE, "%s: \"host_list\" is not an array", what);
    if (count == 0 || count != (size_t)context->host_count)
        return nw_fail(NW_EUSAGE, "%s: \"host_list\" has %zu entries but \"hosts\" is %d", what,
                       count, context->host_count);
    context->hosts = calloc(count, sizeof *context->hosts);
    if (context->hosts == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for %zu hosts", what, count);
    for (size_t i = 0; i < count; i++) {
        context->hosts[i].gpu_count = -1;
        snprintf(where, sizeof where, "%s: host_list[%zu]", what, i);
        NW_TRY(nw_fields_read(json_array_get(list, i), where, ROWS(host_rows), &context->hosts[i]));
    }
    return NW_OK;
}

static nw_rc read_context(const json_t *json, const char *what, struct nw_context *context)
{
    const char *kind = NULL;

    NW_TRY(nw_line_kind(json, what, &kind));
    if (strcmp(kind, "context") != 0)
        return nw_fail(NW_EUSAGE, "%s: \"kind\" is \"%s\"; expected \"context\"", what, kind);
    NW_TRY(nw_fields_read(json, what, ROWS(context_rows), context));
    const json_t *hosts = json_object_get(json, "host_list");

    if (hosts != NULL)
        NW_TRY(read_hosts(hosts, what, context));
    for (size_t i = 0; i < PART_COUNT; i++) {
        json_t *part = json_object_get(json, parts[i].key);

        if (part == NULL)
            continue;
        if (json_typeof(part) != parts[i].type)
            return nw_fail(NW_EUSAGE, "%s: \"%s\" is not %s", what, parts[i].key,
                           parts[i].type_name);
        *(json_t **)((char *)context + parts[i].offset) = json_incref(part);
    }
    return NW_OK;
}

nw_rc nw_context_from_json(const json_t *json, const char *what, struct nw_context *context_out)
{
    struct nw_context context;

    nw_context_init(&context);
    const nw_rc rc = read_context(json, what, &context);

    if (rc == NW_OK)
        *context_out = context;
    else
        nw_context_free(&context);
    return rc;
}
