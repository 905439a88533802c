#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "results/fields.h"
#include "results/record_rows.h"
#include "results/results.h"

static const char *const stop_names[] = {
    [NW_STOP_UNKNOWN] = NULL,
    [NW_STOP_CONVERGED] = "converged",
    [NW_STOP_BUDGET] = "budget",
    [NW_STOP_FIXED] = "fixed",
};
enum { STOP_COUNT = sizeof stop_names / sizeof stop_names[0] };

#define ROWS(name) nw_record_##name##_rows, nw_record_##name##_row_count

static void write_time(struct nw_text *text, const struct nw_record *record)
{
    if (!isfinite(record->time_ns.median))
        return;
    nw_text_key(text, "time_ns");
    nw_text_put(text, "{");
    nw_fields_write(text, ROWS(time), &record->time_ns);
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

    for (size_t i = 0; i < NW_RECORD_STATE_COUNT; i++) {
        const struct nw_gpu_state *state =
            (const void *)((const char *)record + nw_record_states[i].offset);

        if (!nw_gpu_state_is_known(state))
            continue;
        if (!any) {
            nw_text_key(text, "gpu_state");
            nw_text_put(text, "{");
        }
        any = true;
        nw_text_key(text, nw_record_states[i].key);
        nw_text_put(text, "{");
        nw_fields_write(text, ROWS(state), state);
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
    nw_fields_write(text, ROWS(identity), record);
    write_time(text, record);
    if (nw_stop_name(record->stop) != NULL) {
        nw_text_key(text, "stop");
        nw_text_string(text, nw_stop_name(record->stop));
    }
    nw_text_key(text, "rc");
    nw_text_string(text, nw_rc_name(record->rc));
    nw_fields_write(text, ROWS(result), record);
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

bool nw_stop_named(const char *name, nw_stop *stop_out)
{
    for (size_t i = 0; i < STOP_COUNT; i++)
        if (stop_names[i] != NULL && strcmp(name, stop_names[i]) == 0) {
            *stop_out = (nw_stop)i;
            return true;
        }
    return false;
}

const char *nw_stop_name(nw_stop stop)
{
    return (size_t)stop < STOP_COUNT ? stop_names[stop] : NULL;
}

bool nw_rc_named(const char *name, nw_rc *rc_out)
{
    for (int i = 0; i < NW_RC_COUNT; i++)
        if (strcmp(name, nw_rc_name((nw_rc)i)) == 0) {
            *rc_out = (nw_rc)i;
            return true;
        }
    return false;
}

static nw_rc read_stop(const json_t *json, const char *what, nw_stop *stop)
{
    const char *name = NULL;

    NW_TRY(nw_json_get_text(json, what, "stop", false, &name));
    if (name == NULL || nw_stop_named(name, stop))
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s: \"stop\" is \"%s\"; accepted: converged, budget, fixed", what,
                   name);
}

static nw_rc read_rc(const json_t *json, const char *what, nw_rc *value)
{
    const char *name = NULL;

    NW_TRY(nw_json_get_text(json, what, "rc", false, &name));
    if (name == NULL || nw_rc_named(name, value))
        return NW_OK;
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
    NW_TRY(nw_fields_read(time, where, ROWS(time), &record->time_ns));
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
    for (size_t i = 0; i < NW_RECORD_STATE_COUNT; i++) {
        const json_t *state = json_object_get(object, nw_record_states[i].key);

        if (state == NULL)
            continue;
        snprintf(where, sizeof where, "%s: gpu_state.%s", what, nw_record_states[i].key);
        NW_TRY(
            nw_fields_read(state, where, ROWS(state), (char *)record + nw_record_states[i].offset));
    }
    return NW_OK;
}

static nw_rc read_record(const json_t *json, const char *what, struct nw_record *record)
{
    const char *kind = NULL;

    NW_TRY(nw_line_kind(json, what, &kind));
    if (strcmp(kind, "record") != 0)
        return nw_fail(NW_EUSAGE, "%s: \"kind\" is \"%s\"; expected \"record\"", what, kind);
    NW_TRY(nw_fields_read(json, what, ROWS(identity), record));
    NW_TRY(read_time(json, what, record));
    NW_TRY(read_stop(json, what, &record->stop));
    NW_TRY(read_rc(json, what, &record->rc));
    NW_TRY(nw_fields_read(json, what, ROWS(result), record));
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
