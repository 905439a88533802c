#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "results/fields.h"
#include "results/results.h"

#define TEXT(json_key, member, needed)                                                             \
    {                                                                                              \
        .key = (json_key), .type = NW_FIELD_TEXT, .required = (needed),                            \
        .offset = offsetof(struct nw_record, member),                                              \
        .size = sizeof(((struct nw_record *)0)->member)                                            \
    }
#define NUMBER(json_key, field_type, member, least)                                                \
    {                                                                                              \
        .key = (json_key), .type = (field_type), .offset = offsetof(struct nw_record, member),     \
        .min = (least)                                                                             \
    }

/* In the order of the line. `min` is what is written: below it a value is unknown. */
static const struct nw_line_field identity_rows[] = {
    TEXT("case", case_name, true),
    TEXT("collective", collective, true),
    TEXT("lane", lane, true),
    TEXT("features", features, false),
    TEXT("dtype", dtype, true),
    TEXT("op", op, true),
    NUMBER("root", NW_FIELD_INT, root, 0),
    NUMBER("ranks", NW_FIELD_INT, rank_count, 1),
    NUMBER("hosts", NW_FIELD_INT, host_count, 1),
    {.key = "bytes",
     .type = NW_FIELD_U64,
     .required = true,
     .offset = offsetof(struct nw_record, bytes)},
    NUMBER("count", NW_FIELD_U64, count, 0),
    {.key = "in_place",
     .type = NW_FIELD_BOOL,
     .required = true,
     .offset = offsetof(struct nw_record, in_place)},
    NUMBER("peer_a", NW_FIELD_INT, peer_a, 0),
    NUMBER("peer_b", NW_FIELD_INT, peer_b, 0),
    TEXT("host_a", host_a, false),
    TEXT("host_b", host_b, false),
    TEXT("nic_a", nic_a, false),
    TEXT("nic_b", nic_b, false),
    TEXT("memory", memory, false),
    NUMBER("streams", NW_FIELD_INT, stream_count, 1),
    NUMBER("piece_bytes", NW_FIELD_U64, piece_bytes, 1),
    NUMBER("m", NW_FIELD_U64, m, 1),
    NUMBER("n", NW_FIELD_U64, n, 1),
    NUMBER("k", NW_FIELD_U64, k, 1),
};

static const struct nw_line_field result_rows[] = {
    NUMBER("calls_per_sample", NW_FIELD_U32, calls_per_sample, 1),
    NUMBER("skew_ns", NW_FIELD_REAL, skew_ns, 0),
    NUMBER("slowest_rank", NW_FIELD_INT, slowest_rank, 0),
    {.key = "slowest_share",
     .type = NW_FIELD_REAL,
     .offset = offsetof(struct nw_record, slowest_share),
     .max = 1},
    TEXT("slowest_host", slowest_host, false),
    NUMBER("algbw_bytes_per_s", NW_FIELD_REAL, algbw_bytes_per_s, 0),
    NUMBER("busbw_bytes_per_s", NW_FIELD_REAL, busbw_bytes_per_s, 0),
    NUMBER("ceiling_bytes_per_s", NW_FIELD_REAL, ceiling_bytes_per_s, 0),
    NUMBER("expected_ns", NW_FIELD_REAL, expected_ns, 0),
    NUMBER("flop_per_s", NW_FIELD_REAL, flop_per_s, 0),
    NUMBER("alone_ns", NW_FIELD_REAL, alone_ns, 0),
    NUMBER("alone_flop_per_s", NW_FIELD_REAL, alone_flop_per_s, 0),
    {.key = "hidden_share",
     .type = NW_FIELD_REAL,
     .offset = offsetof(struct nw_record, hidden_share),
     .max = 1},
    NUMBER("wire_bytes_per_s", NW_FIELD_REAL, wire_bytes_per_s, 0),
    NUMBER("nic_bytes_per_s", NW_FIELD_REAL, nic_bytes_per_s, 0),
    {.key = "port_share",
     .type = NW_FIELD_REAL,
     .offset = offsetof(struct nw_record, port_share),
     .max = 1},
    NUMBER("ports", NW_FIELD_INT, port_count, 1),
    NUMBER("ports_used", NW_FIELD_INT, used_port_count, 1),
    NUMBER("qps", NW_FIELD_INT, qps, 1),
    NUMBER("depth", NW_FIELD_INT, depth, 1),
    NUMBER("mtu_bytes", NW_FIELD_U32, mtu_bytes, 1),
    NUMBER("messages_per_s", NW_FIELD_REAL, messages_per_s, 0),
    TEXT("gid_a", gid_a, false),
    TEXT("gid_b", gid_b, false),
    TEXT("registered", registered, false),
    NUMBER("wrong_elements", NW_FIELD_I64, wrong_elements, 0),
    {.key = "simulated",
     .type = NW_FIELD_BOOL,
     .required = true,
     .offset = offsetof(struct nw_record, simulated)},
    TEXT("source", source, false),
};

#define STAT(json_key, member)                                                                     \
    {                                                                                              \
        .key = (json_key), .type = NW_FIELD_REAL, .offset = offsetof(struct nw_stats, member)      \
    }
static const struct nw_line_field time_rows[] = {
    {.key = "median",
     .type = NW_FIELD_REAL,
     .required = true,
     .offset = offsetof(struct nw_stats, median)},
    STAT("low", low),
    STAT("high", high),
    {.key = "level", .type = NW_FIELD_REAL, .offset = offsetof(struct nw_stats, level), .max = 1},
    STAT("min", min),
    STAT("p25", p25),
    STAT("p75", p75),
    STAT("p95", p95),
    STAT("p99", p99),
    STAT("max", max),
    STAT("mean", mean),
    STAT("stddev", stddev),
    STAT("mad", mad),
    {.key = "count",
     .type = NW_FIELD_SIZE,
     .offset = offsetof(struct nw_stats, count),
     .min = 1,
     .max = 1e15},
};

#define STATE(json_key, field_type, member)                                                        \
    {                                                                                              \
        .key = (json_key), .type = (field_type), .offset = offsetof(struct nw_gpu_state, member)   \
    }
static const struct nw_line_field state_rows[] = {
    STATE("sm_clock_hz", NW_FIELD_REAL, sm_clock_hz),
    STATE("sm_max_clock_hz", NW_FIELD_REAL, sm_max_clock_hz),
    STATE("power_w", NW_FIELD_REAL, power_w),
    STATE("power_limit_w", NW_FIELD_REAL, power_limit_w),
    STATE("temperature_c", NW_FIELD_REAL, temperature_c),
    STATE("throttle", NW_FIELD_I64, throttle),
};
static const struct {
    const char *key;
    size_t offset;
} states[] = {
    {"before", offsetof(struct nw_record, before)},
    {"during", offsetof(struct nw_record, during)},
    {"after", offsetof(struct nw_record, after)},
};
enum { STATE_COUNT = sizeof states / sizeof states[0] };

static const char *const stop_names[] = {
    [NW_STOP_UNKNOWN] = NULL,
    [NW_STOP_CONVERGED] = "converged",
    [NW_STOP_BUDGET] = "budget",
    [NW_STOP_FIXED] = "fixed",
};
enum { STOP_COUNT = sizeof stop_names / sizeof stop_names[0] };

#define ROWS(rows) rows, sizeof rows / sizeof rows[0]

static void write_time(struct nw_text *text, const struct nw_record *record)
{
    if (!isfinite(record->time_ns.median))
        return;
    nw_text_key(text, "time_ns");
    nw_text_put(text, "{");
    nw_fields_write(text, ROWS(time_rows), &record->time_ns);
    nw_text_put(text, "}");
    if (record->samples_ns == NULL)
        return;
    nw_text_key(text, "samples_ns");
    nw_text_put(text, "[");
    for (size_t i = 0; i < record->time_ns.count; i++) {
        if (i > 0)
            nw_text_put(text, ",");
        nw_text_real(text, record->samples_ns[i]);
    }
    nw_text_put(text, "]");
}

/* "gpu_state": {"before": {…}, "during": {…}, "after": {…}}, of what is known. */
static void write_states(struct nw_text *text, const struct nw_record *record)
{
    bool any = false;

    for (size_t i = 0; i < STATE_COUNT; i++) {
        const struct nw_gpu_state *state = (const void *)((const char *)record + states[i].offset);

        if (!nw_gpu_state_is_known(state))
            continue;
        if (!any) {
            nw_text_key(text, "gpu_state");
            nw_text_put(text, "{");
        }
        any = true;
        nw_text_key(text, states[i].key);
        nw_text_put(text, "{");
        nw_fields_write(text, ROWS(state_rows), state);
        nw_text_put(text, "}");
    }
    if (any)
        nw_text_put(text, "}");
}

void nw_record_write(struct nw_text *text, const struct nw_record *record)
{
    nw_text_put(text, "{");
    nw_text_key(text, "schema");
    nw_text_i64(text, NW_SCHEMA_VERSION);
    nw_text_key(text, "kind");
    nw_text_put(text, "\"record\"");
    nw_fields_write(text, ROWS(identity_rows), record);
    write_time(text, record);
    if ((size_t)record->stop < STOP_COUNT && stop_names[record->stop] != NULL) {
        nw_text_key(text, "stop");
        nw_text_string(text, stop_names[record->stop]);
    }
    nw_text_key(text, "rc");
    nw_text_string(text, nw_rc_name(record->rc));
    nw_fields_write(text, ROWS(result_rows), record);
    write_states(text, record);
    nw_text_key(text, "warnings");
    nw_findings_write(text, &record->warnings);
    nw_text_put(text, "}");
}

nw_rc nw_record_to_json(const struct nw_record *record, json_t **json_out)
{
    struct nw_text text = {0};

    nw_record_write(&text, record);
    const nw_rc rc = nw_text_to_json(&text, json_out);

    nw_text_free(&text);
    return rc;
}

static nw_rc read_stop(const json_t *json, const char *what, nw_stop *stop)
{
    const char *name = NULL;

    NW_TRY(nw_json_get_text(json, what, "stop", false, &name));
    if (name == NULL)
        return NW_OK;
    for (size_t i = 0; i < STOP_COUNT; i++)
        if (stop_names[i] != NULL && strcmp(name, stop_names[i]) == 0) {
            *stop = (nw_stop)i;
            return NW_OK;
        }
    return nw_fail(NW_EUSAGE, "%s: \"stop\" is \"%s\"; accepted: converged, budget, fixed", what,
                   name);
}

static nw_rc read_rc(const json_t *json, const char *what, nw_rc *value)
{
    const char *name = NULL;

    NW_TRY(nw_json_get_text(json, what, "rc", false, &name));
    if (name == NULL)
        return NW_OK;
    for (int i = 0; i < NW_RC_COUNT; i++)
        if (strcmp(name, nw_rc_name((nw_rc)i)) == 0) {
            *value = (nw_rc)i;
            return NW_OK;
        }
    return nw_fail(NW_EUSAGE, "%s: \"rc\" is \"%s\"; accepted: NW_OK, NW_EWRONG, NW_ETIMEOUT …",
                   what, name);
}

static nw_rc read_samples(const json_t *array, const char *what, struct nw_record *record)
{
    const size_t count = json_array_size(array);

    if (!json_is_array(array))
        return nw_fail(NW_EUSAGE, "%s: \"samples_ns\" is not an array", what);
    if (count != record->time_ns.count)
        return nw_fail(NW_EUSAGE, "%s: \"samples_ns\" has %zu values but \"time_ns\" counts %zu",
                       what, count, record->time_ns.count);
    record->samples_ns = calloc(count, sizeof *record->samples_ns);
    if (record->samples_ns == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for %zu samples", what, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, i);

        if (!json_is_number(value) || json_number_value(value) < 0)
            return nw_fail(NW_EUSAGE, "%s: \"samples_ns\"[%zu] is not a number from 0", what, i);
        record->samples_ns[i] = json_number_value(value);
    }
    return NW_OK;
}

static nw_rc read_time(const json_t *json, const char *what, struct nw_record *record)
{
    const json_t *time = json_object_get(json, "time_ns");
    const json_t *samples = json_object_get(json, "samples_ns");
    char where[600];

    if (time == NULL)
        return samples == NULL ? NW_OK
                               : nw_fail(NW_EUSAGE, "%s: \"samples_ns\" without \"time_ns\"", what);
    snprintf(where, sizeof where, "%s: time_ns", what);
    NW_TRY(nw_fields_read(time, where, ROWS(time_rows), &record->time_ns));
    return samples == NULL ? NW_OK : read_samples(samples, what, record);
}

static nw_rc read_states(const json_t *json, const char *what, struct nw_record *record)
{
    const json_t *object = json_object_get(json, "gpu_state");
    char where[600];

    if (object == NULL)
        return NW_OK;
    if (!json_is_object(object))
        return nw_fail(NW_EUSAGE, "%s: \"gpu_state\" is not an object", what);
    for (size_t i = 0; i < STATE_COUNT; i++) {
        const json_t *state = json_object_get(object, states[i].key);

        if (state == NULL)
            continue;
        snprintf(where, sizeof where, "%s: gpu_state.%s", what, states[i].key);
        NW_TRY(nw_fields_read(state, where, ROWS(state_rows), (char *)record + states[i].offset));
    }
    return NW_OK;
}

static nw_rc read_record(const json_t *json, const char *what, struct nw_record *record)
{
    const char *kind = NULL;

    NW_TRY(nw_line_kind(json, what, &kind));
    if (strcmp(kind, "record") != 0)
        return nw_fail(NW_EUSAGE, "%s: \"kind\" is \"%s\"; expected \"record\"", what, kind);
    NW_TRY(nw_fields_read(json, what, ROWS(identity_rows), record));
    NW_TRY(read_time(json, what, record));
    NW_TRY(read_stop(json, what, &record->stop));
    NW_TRY(read_rc(json, what, &record->rc));
    NW_TRY(nw_fields_read(json, what, ROWS(result_rows), record));
    NW_TRY(read_states(json, what, record));
    const json_t *warnings = json_object_get(json, "warnings");

    return warnings == NULL ? NW_OK : nw_findings_from_json(warnings, what, &record->warnings);
}

nw_rc nw_record_from_json(const json_t *json, const char *what, struct nw_record *record_out)
{
    struct nw_record record;

    nw_record_init(&record);
    const nw_rc rc = read_record(json, what, &record);

    if (rc == NW_OK)
        *record_out = record;
    else
        nw_record_free(&record);
    return rc;
}
