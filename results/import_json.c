#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/import_kit.h"

/* A tree takes some ten times as much memory as its text. */
#define MAX_JSON_BYTES ((size_t)64 << 20)

/* What a shell or the tool itself printed before is passed over. */
static size_t find_brace(const char *data, size_t length, size_t *line_out)
{
    struct nw_imp imp = nw_imp_open(data, length, "", NULL);

    while (nw_imp_next(&imp)) {
        const struct nw_slice text = nw_imp_trim(imp.text);

        if (text.length > 0 && text.at[0] == '{') {
            *line_out = imp.line;
            return (size_t)(text.at - data);
        }
    }
    return length;
}

nw_rc nw_imp_json(const char *data, size_t length, const char *path, const char *tool,
                  json_t **json_out, size_t *line_out)
{
    size_t line = 1;
    const size_t at = find_brace(data, length, &line);
    json_error_t error;

    if (length > MAX_JSON_BYTES)
        return nw_fail(NW_EUSAGE, "%s: has %zu MiB; JSON of %s is read up to %zu MiB", path,
                       length >> 20, tool, MAX_JSON_BYTES >> 20);
    json_t *json = json_loadb(data + at, length - at,
                              JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL, &error);

    if (json == NULL)
        return nw_fail(NW_EUSAGE, "%s:%zu: is not whole JSON of %s: line %d of it: %s", path, line,
                       tool, error.line, error.text);
    *json_out = json;
    *line_out = line;
    return NW_OK;
}

size_t nw_imp_json_line(const struct nw_imp *imp, const char *key, struct nw_imp_place *place)
{
    char quoted[80];
    const char *end = imp->data + imp->length, *from = imp->data + place->at;

    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *found =
        from < end ? memmem(from, (size_t)(end - from), quoted, strlen(quoted)) : NULL;

    if (found == NULL)
        return 0;
    place->line += place->line == 0;
    for (; (from = memchr(from, '\n', (size_t)(found - from))) != NULL; from++)
        place->line++;
    place->at = (size_t)(found - imp->data) + 1; /* the next call finds the next */
    return place->line;
}

double nw_imp_json_number(const json_t *object, const char *key)
{
    const json_t *value = json_is_object(object) ? json_object_get(object, key) : NULL;
    double number = NAN;

    if (json_is_number(value))
        number = json_number_value(value);
    else if (json_is_string(value) &&
             nw_parse_double(json_string_value(value), 0, 1e300, &number) != NW_OK)
        nw_clear_error();
    return number >= 0 ? number : NAN;
}

const char *nw_imp_json_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

bool nw_imp_json_set(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key)) || nw_imp_json_number(object, key) > 0;
}
