#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "results/baseline.h"
#include "results/compare_key.h"
#include "results/record_rows.h"

#define MAX_FILE_BYTES (UINT64_C(256) << 20)

#define OF(json_key, field_type, member, least, most)                                              \
    {                                                                                              \
        .key = (json_key), .type = (field_type), .required = true,                                 \
        .offset = offsetof(struct nw_baseline_row, member), .min = (least), .max = (most)          \
    }
/* Behind the identity of a record. Zero would be no time, and no deviation. */
static const struct nw_line_field row_fields[] = {
    OF("node_count", NW_FIELD_INT, node_count, NW_BASELINE_LEAST, 1e6),
    OF("time_ns", NW_FIELD_REAL, time_ns, 1e-9, 1e30),
    OF("spread", NW_FIELD_REAL, spread, 0, 1e6),
    OF("mean_ns", NW_FIELD_REAL, mean_ns, 1e-9, 1e30),
    OF("deviation", NW_FIELD_REAL, deviation, 1e-6, 1e6),
};
#define ROW_FIELDS row_fields, sizeof row_fields / sizeof row_fields[0]
#define IDENTITY   nw_record_identity_rows, nw_record_identity_row_count

/* ---- writing -----------------------------------------------------------------------------------
 */

static void put_text(struct nw_text *text, const char *key, const char *value)
{
    nw_text_key(text, key);
    nw_text_string(text, value);
}

static void put_head(struct nw_text *text, const struct nw_baseline *baseline)
{
    nw_text_put(text, "{");
    nw_text_key(text, "schema");
    nw_text_i64(text, NW_SCHEMA_VERSION);
    put_text(text, "kind", "baseline");
    put_text(text, "tool_version", baseline->context.tool_version);
    put_text(text, "backend", baseline->context.backend);
    put_text(text, "gpu_model", baseline->context.gpu_model);
    nw_text_key(text, "simulated");
    nw_text_put(text, baseline->context.simulated ? "true" : "false");
    nw_text_key(text, "nodes");
    nw_text_put(text, "[");
    for (size_t i = 0; i < baseline->node_count; i++) {
        nw_text_put(text, i > 0 ? ", " : "");
        nw_text_string(text, baseline->nodes[i]);
    }
    nw_text_put(text, "]");
}

/* A row a line: a change is seen in git. */
static void put_rows(struct nw_text *text, const struct nw_baseline *baseline)
{
    nw_text_put(text, ",\n\"rows\": [\n");
    for (size_t i = 0; i < baseline->row_count; i++) {
        nw_text_put(text, "{");
        nw_fields_write(text, IDENTITY, &baseline->rows[i].like);
        nw_fields_write(text, ROW_FIELDS, &baseline->rows[i]);
        nw_text_put(text, i + 1 < baseline->row_count ? "},\n" : "}\n");
    }
    nw_text_put(text, "]}\n");
}

nw_rc nw_baseline_save(const struct nw_baseline *baseline, const char *path)
{
    struct nw_atomic_file *file;
    struct nw_text text = {0};

    put_head(&text, baseline);
    put_rows(&text, baseline);
    nw_rc rc = nw_text_check(&text);

    if (rc == NW_OK)
        rc = nw_atomic_open(path, &file);
    if (rc == NW_OK) {
        fwrite(text.data, 1, text.length, nw_atomic_stream(file)); /* commit looks for errors */
        rc = nw_atomic_commit(file);
    }
    nw_text_free(&text);
    return rc;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static nw_rc read_nodes(const json_t *root, const char *path, struct nw_baseline *baseline)
{
    const json_t *list = json_object_get(root, "nodes");
    const size_t count = json_array_size(list);

    if (!json_is_array(list) || count < NW_BASELINE_LEAST)
        return nw_fail(NW_EUSAGE, "%s: \"nodes\" is not an array of %d names or more", path,
                       NW_BASELINE_LEAST);
    baseline->nodes = calloc(count, sizeof *baseline->nodes);
    if (baseline->nodes == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for %zu nodes", path, count);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name == NULL)
            return nw_fail(NW_EUSAGE, "%s: \"nodes\"[%zu] is not a name", path, i);
        baseline->nodes[i] = strdup(name);
        baseline->node_count = i + 1;
        if (baseline->nodes[i] == NULL)
            return nw_fail(NW_ENOMEM, "%s: no memory for %zu nodes", path, count);
    }
    return NW_OK;
}

static nw_rc read_rows(const json_t *root, const char *path, struct nw_baseline *baseline)
{
    const json_t *list = json_object_get(root, "rows");
    const size_t count = json_array_size(list);

    if (!json_is_array(list) || count == 0)
        return nw_fail(NW_EUSAGE, "%s: \"rows\" is not an array of one row or more", path);
    baseline->rows = calloc(count, sizeof *baseline->rows);
    if (baseline->rows == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for %zu rows", path, count);
    for (size_t i = 0; i < count; i++) {
        struct nw_baseline_row *row = &baseline->rows[i];
        const json_t *json = json_array_get(list, i);
        char what[512];

        snprintf(what, sizeof what, "%.440s: \"rows\"[%zu]", path, i);
        nw_record_init(&row->like);
        NW_TRY(nw_fields_read(json, what, IDENTITY, &row->like));
        NW_TRY(nw_fields_read(json, what, ROW_FIELDS, row));
        row->like.simulated = baseline->context.simulated;
        baseline->row_count = i + 1;
    }
    return NW_OK;
}

static int by_key(const void *a, const void *b, void *context)
{
    const struct nw_compare_entry left = {&((const struct nw_baseline_row *)a)->like, context};
    const struct nw_compare_entry right = {&((const struct nw_baseline_row *)b)->like, context};

    return nw_compare_order(&left, &right, 0);
}

static nw_rc read_root(const json_t *root, const char *path, struct nw_baseline *baseline)
{
    struct nw_context *context = &baseline->context;
    const char *kind = NULL;

    NW_TRY(nw_line_kind(root, path, &kind));
    if (strcmp(kind, "baseline") != 0)
        return nw_fail(NW_EUSAGE,
                       "%s: \"kind\" is \"%s\"; expected a baseline (nodeworth baseline FILES "
                       "--out)",
                       path, kind);
    NW_TRY(nw_json_get_bool(root, path, "simulated", true, &context->simulated));
    NW_TRY(
        nw_json_get_field(root, path, "backend", true, context->backend, sizeof context->backend));
    NW_TRY(nw_json_get_field(root, path, "gpu_model", true, context->gpu_model,
                             sizeof context->gpu_model));
    NW_TRY(nw_json_get_field(root, path, "tool_version", false, context->tool_version,
                             sizeof context->tool_version));
    NW_TRY(read_nodes(root, path, baseline));
    NW_TRY(read_rows(root, path, baseline));
    qsort_r(baseline->rows, baseline->row_count, sizeof *baseline->rows, by_key, context);
    return NW_OK;
}

nw_rc nw_baseline_read_data(const char *data, size_t length, const char *path,
                            struct nw_baseline *baseline_out)
{
    struct nw_baseline baseline = {.row_count = 0};
    json_error_t error;
    json_t *root = json_loadb(data, length, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL)
        return nw_fail(NW_EUSAGE, "%s:%d: not valid JSON: %s", path, error.line, error.text);
    nw_context_init(&baseline.context);
    const nw_rc rc = read_root(root, path, &baseline);

    json_decref(root);
    if (rc == NW_OK)
        *baseline_out = baseline;
    else
        nw_baseline_free(&baseline);
    return rc;
}

nw_rc nw_baseline_read(const char *path, struct nw_baseline *baseline_out)
{
    char *data;
    size_t length;

    NW_TRY(nw_file_read(path, MAX_FILE_BYTES, &data, &length));
    const nw_rc rc = nw_baseline_read_data(data, length, path, baseline_out);

    free(data);
    return rc;
}

/* ---- the report --------------------------------------------------------------------------------
 */

static void put_held(struct nw_text *text, const struct nw_baseline_report *report,
                     const struct nw_held_row *row)
{
    nw_text_put(text, "{");
    put_text(text, "node", report->nodes[row->node]);
    nw_fields_write(text, IDENTITY, &row->of->like);
    nw_text_key(text, "time_ns");
    nw_text_real(text, row->time_ns);
    nw_text_key(text, "baseline_time_ns");
    nw_text_real(text, row->of->time_ns);
    nw_text_key(text, "speed");
    nw_text_real(text, row->speed);
    nw_text_key(text, "p");
    nw_text_real(text, row->p);
    nw_text_key(text, "p_joint");
    nw_text_real(text, row->p_joint);
    nw_text_key(text, "slower");
    nw_text_put(text, row->slower ? "true}" : "false}");
}

nw_rc nw_baseline_report_to_json(const struct nw_baseline_report *report, json_t **json_out)
{
    struct nw_text text = {0};

    nw_text_put(&text, "{");
    nw_text_key(&text, "schema");
    nw_text_i64(&text, NW_SCHEMA_VERSION);
    put_text(&text, "kind", "baseline report");
    nw_text_key(&text, "simulated");
    nw_text_put(&text, report->simulated ? "true" : "false");
    nw_text_key(&text, "threshold");
    nw_text_real(&text, report->threshold);
    nw_text_key(&text, "baseline_nodes");
    nw_text_i64(&text, report->baseline_node_count);
    nw_text_key(&text, "compared");
    nw_text_u64(&text, report->compared_count);
    nw_text_key(&text, "slower");
    nw_text_u64(&text, report->slower_count);
    nw_text_key(&text, "missing");
    nw_text_u64(&text, report->missing_count);
    nw_text_key(&text, "not_in_baseline");
    nw_text_u64(&text, report->unknown_count);
    if (report->unknown_count > 0)
        put_text(&text, "not_in_baseline_because", report->unknown_reason);
    nw_text_put(&text, ",\"rows\":[");
    for (size_t i = 0; i < report->row_count; i++) {
        nw_text_put(&text, i > 0 ? "," : "");
        put_held(&text, report, &report->rows[i]);
    }
    nw_text_put(&text, "]}");
    const nw_rc rc = nw_text_to_json(&text, json_out);

    nw_text_free(&text);
    return rc;
}
