#include "results/fields.h"
#include "results/results.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "bench/record.h"

static const void *at(const void *base, const struct nw_line_field *row)
{
    return (const char *)base + row->offset;
}

static int64_t integer_of(const struct nw_line_field *row, const void *field)
{
    switch (row->type) {
    case NW_FIELD_INT:
        return *(const int *)field;
    case NW_FIELD_U32:
        return *(const uint32_t *)field;
    default:
        return *(const int64_t *)field;
    }
}

static uint64_t natural_of(const struct nw_line_field *row, const void *field)
{
    return row->type == NW_FIELD_SIZE ? *(const size_t *)field : *(const uint64_t *)field;
}

static bool is_natural(const struct nw_line_field *row)
{
    return row->type == NW_FIELD_U64 || row->type == NW_FIELD_SIZE;
}

bool nw_field_is_known(const struct nw_line_field *row, const void *base)
{
    const void *field = at(base, row);

    switch (row->type) {
    case NW_FIELD_TEXT:
        return row->required || *(const char *)field != '\0';
    case NW_FIELD_BOOL:
        return true;
    case NW_FIELD_REAL:
        return isfinite(*(const double *)field) && *(const double *)field >= row->min;
    default:
        return (is_natural(row) ? (double)natural_of(row, field)
                                : (double)integer_of(row, field)) >= row->min;
    }
}

void nw_field_write(struct nw_text *text, const struct nw_line_field *row, const void *base)
{
    const void *field = at(base, row);

    switch (row->type) {
    case NW_FIELD_TEXT:
        nw_text_string(text, field);
        return;
    case NW_FIELD_BOOL:
        nw_text_put(text, *(const bool *)field ? "true" : "false");
        return;
    case NW_FIELD_REAL:
        nw_text_real(text, *(const double *)field);
        return;
    case NW_FIELD_U64:
    case NW_FIELD_SIZE: {
        const uint64_t natural = natural_of(row, field);

        /* JSON readers hold integers in 63 bits; no size or count comes near. */
        nw_text_u64(text, natural > INT64_MAX ? INT64_MAX : natural);
        return;
    }
    default:
        nw_text_i64(text, integer_of(row, field));
    }
}

void nw_fields_write(struct nw_text *text, const struct nw_line_field *rows, size_t count,
                     const void *from)
{
    for (size_t i = 0; i < count; i++)
        if (nw_field_is_known(&rows[i], from)) {
            nw_text_key(text, rows[i].key);
            nw_field_write(text, &rows[i], from);
        }
}

static nw_rc fail_range(const struct nw_line_field *row, const char *what, const json_t *value)
{
    char bound[64] = "";

    if (row->max > 0)
        snprintf(bound, sizeof bound, " to %.15g", row->max);
    if (json_is_integer(value))
        return nw_fail(NW_EUSAGE, "%s: \"%s\" is %lld; expected a number from %.15g%s", what,
                       row->key, (long long)json_integer_value(value), row->min, bound);
    return nw_fail(NW_EUSAGE, "%s: \"%s\" is %.17g; expected a number from %.15g%s", what, row->key,
                   json_number_value(value), row->min, bound);
}

static bool in_range(const struct nw_line_field *row, double value)
{
    return value >= row->min && (row->max <= 0 || value <= row->max);
}

/* Integers of every width, within the row's bounds and the field's own. */
static nw_rc read_integer(const struct nw_line_field *row, const char *what, const json_t *value,
                          void *field)
{
    static const double widest[] = {
        [NW_FIELD_INT] = INT_MAX, [NW_FIELD_U32] = UINT32_MAX, [NW_FIELD_U64] = 9.3e18,
        [NW_FIELD_I64] = 9.3e18,  [NW_FIELD_SIZE] = 9.3e18,
    };
    const json_int_t number = json_integer_value(value);

    if (!json_is_integer(value))
        return nw_fail(NW_EUSAGE, "%s: \"%s\" is not an integer", what, row->key);
    if (!in_range(row, (double)number) || (double)number > widest[row->type])
        return fail_range(row, what, value);
    switch (row->type) {
    case NW_FIELD_INT:
        *(int *)field = (int)number;
        break;
    case NW_FIELD_U32:
        *(uint32_t *)field = (uint32_t)number;
        break;
    case NW_FIELD_U64:
        *(uint64_t *)field = (uint64_t)number;
        break;
    case NW_FIELD_SIZE:
        *(size_t *)field = (size_t)number;
        break;
    default:
        *(int64_t *)field = number;
    }
    return NW_OK;
}

static nw_rc read_one(const json_t *object, const char *what, const struct nw_line_field *row,
                      void *field)
{
    const json_t *value = json_object_get(object, row->key);

    if (value == NULL && row->required)
        return nw_fail(NW_EUSAGE, "%s: \"%s\" is missing", what, row->key);
    if (value == NULL)
        return NW_OK;
    switch (row->type) {
    case NW_FIELD_TEXT:
        return nw_json_get_field(object, what, row->key, row->required, field, row->size);
    case NW_FIELD_BOOL:
        return nw_json_get_bool(object, what, row->key, row->required, field);
    case NW_FIELD_REAL:
        if (!json_is_number(value))
            return nw_fail(NW_EUSAGE, "%s: \"%s\" is not a number", what, row->key);
        if (!in_range(row, json_number_value(value)))
            return fail_range(row, what, value);
        *(double *)field = json_number_value(value);
        return NW_OK;
    default:
        return read_integer(row, what, value, field);
    }
}

nw_rc nw_fields_read(const json_t *object, const char *what, const struct nw_line_field *rows,
                     size_t count, void *to)
{
    if (!json_is_object(object))
        return nw_fail(NW_EUSAGE, "%s: not an object", what);
    for (size_t i = 0; i < count; i++)
        NW_TRY(read_one(object, what, &rows[i], (char *)to + rows[i].offset));
    return NW_OK;
}

void nw_finding_write(struct nw_text *text, const struct nw_finding *finding)
{
    nw_text_key(text, "severity");
    nw_text_string(text, nw_severity_name(finding->severity));
    nw_text_key(text, "code");
    nw_text_string(text, finding->code);
    nw_text_key(text, "where");
    nw_text_string(text, finding->where);
    nw_text_key(text, "text");
    nw_text_string(text, finding->text);
    if (finding->remedy != NULL) {
        nw_text_key(text, "remedy");
        nw_text_string(text, finding->remedy);
    }
    if (finding->effect != NULL) {
        nw_text_key(text, "effect");
        nw_text_string(text, finding->effect);
    }
    if (isfinite(finding->lost_bytes_per_s)) {
        nw_text_key(text, "lost_bytes_per_s");
        nw_text_real(text, finding->lost_bytes_per_s);
    }
    if (isfinite(finding->step_ns)) {
        nw_text_key(text, "step_ns");
        nw_text_real(text, finding->step_ns);
    }
}

void nw_findings_write(struct nw_text *text, const struct nw_findings *list)
{
    nw_text_put(text, "[");
    for (size_t i = 0; i < list->count; i++) {
        nw_text_put(text, i > 0 ? ",{" : "{");
        nw_finding_write(text, &list->items[i]);
        nw_text_put(text, "}");
    }
    nw_text_put(text, "]");
}

nw_rc nw_text_to_json(const struct nw_text *text, json_t **json_out)
{
    json_error_t error;

    NW_TRY(nw_text_check(text));
    json_t *json = json_loadb(text->data, text->length, JSON_REJECT_DUPLICATES, &error);

    if (json == NULL)
        return nw_fail_lib(NW_ELIB, "jansson", 0, "a results line cannot be built: %s", error.text);
    *json_out = json;
    return NW_OK;
}

nw_rc nw_line_kind(const json_t *line, const char *what, const char **kind_out)
{
    int schema = 0;

    if (!json_is_object(line))
        return nw_fail(NW_EUSAGE, "%s: not a JSON object; every line of a results file is one",
                       what);
    NW_TRY(nw_json_get_int(line, what, "schema", true, &schema));
    if (schema != NW_SCHEMA_VERSION)
        return nw_fail(NW_EUSAGE,
                       "%s: \"schema\" is %d; this program reads schema %d: use the version of "
                       "nodeworth that wrote the file, or measure again",
                       what, schema, NW_SCHEMA_VERSION);
    return nw_json_get_text(line, what, "kind", true, kind_out);
}
