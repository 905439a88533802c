#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

nw_rc nw_json_load(const char *path, uint64_t max_bytes, json_t **root_out)
{
    char *data;
    size_t length;
    json_error_t error;

    NW_TRY(nw_file_read(path, max_bytes, &data, &length));
    json_t *root = json_loadb(data, length, JSON_REJECT_DUPLICATES, &error);

    free(data);
    if (root == NULL && length == 0)
        return nw_fail(NW_EUSAGE, "%s: is empty; JSON is expected", path);
    if (root == NULL)
        return nw_fail(NW_EUSAGE, "%s:%d:%d: not valid JSON: %s", path,
                       error.line > 0 ? error.line : 1, error.column > 0 ? error.column : 1,
                       error.text);
    *root_out = root;
    return NW_OK;
}

nw_rc nw_json_set_new(json_t *object, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(object, key, value) != 0)
        return nw_fail(NW_ENOMEM, "JSON: key \"%s\" could not be set", key);
    return NW_OK;
}

json_t *nw_json_text(const char *text)
{
    json_t *value = json_string(text);
    char *ascii = value == NULL ? strdup(text) : NULL;

    if (ascii == NULL)
        return value;
    for (char *c = ascii; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    value = json_string(ascii);
    free(ascii);
    return value;
}

nw_rc nw_json_set_text(json_t *object, const char *key, const char *text)
{
    return text != NULL ? nw_json_set_new(object, key, nw_json_text(text)) : NW_OK;
}

nw_rc nw_json_set_real(json_t *object, const char *key, double value)
{
    return isfinite(value) ? nw_json_set_new(object, key, json_real(value)) : NW_OK;
}

nw_rc nw_json_set_u64(json_t *object, const char *key, uint64_t value)
{
    if (value > INT64_MAX)
        return nw_fail(NW_EUSAGE, "JSON: %llu of key \"%s\" is larger than JSON integers here hold",
                       (unsigned long long)value, key);
    return nw_json_set_new(object, key, json_integer((json_int_t)value));
}

nw_rc nw_json_set_int(json_t *object, const char *key, int64_t value)
{
    return nw_json_set_new(object, key, json_integer(value));
}

nw_rc nw_json_set_bool(json_t *object, const char *key, bool value)
{
    return nw_json_set_new(object, key, json_boolean(value));
}

/* The value of a key, NULL when it is absent (or null) and not required. */
static nw_rc get(const json_t *object, const char *what, const char *key, bool required,
                 const json_t **value_out)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_null(value))
        value = NULL;
    if (!json_is_object(object))
        return nw_fail(NW_EUSAGE, "%s: a JSON object is expected where \"%s\" is looked for", what,
                       key);
    if (value == NULL && required)
        return nw_fail(NW_EUSAGE, "%s: key \"%s\" is missing", what, key);
    *value_out = value;
    return NW_OK;
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array",     [JSON_STRING] = "a text",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a real number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null",
    };

    return names[json_typeof(value)];
}

static nw_rc wrong_type(const json_t *value, const char *what, const char *key,
                        const char *expected)
{
    return nw_fail(NW_EUSAGE, "%s: key \"%s\" is %s; expected %s", what, key, type_name(value),
                   expected);
}

nw_rc nw_json_get_text(const json_t *object, const char *what, const char *key, bool required,
                       const char **out)
{
    const json_t *value;

    NW_TRY(get(object, what, key, required, &value));
    if (value == NULL)
        return NW_OK;
    if (!json_is_string(value))
        return wrong_type(value, what, key, "a text");
    *out = json_string_value(value);
    return NW_OK;
}

nw_rc nw_json_get_real(const json_t *object, const char *what, const char *key, bool required,
                       double *out)
{
    const json_t *value;

    NW_TRY(get(object, what, key, required, &value));
    if (value == NULL)
        return NW_OK;
    if (!json_is_number(value))
        return wrong_type(value, what, key, "a number");
    *out = json_number_value(value);
    return NW_OK;
}

static nw_rc get_integer(const json_t *object, const char *what, const char *key, bool required,
                         json_int_t min, json_int_t max, bool *there_out, json_int_t *out)
{
    const json_t *value;

    NW_TRY(get(object, what, key, required, &value));
    *there_out = value != NULL;
    if (value == NULL)
        return NW_OK;
    if (!json_is_integer(value))
        return wrong_type(value, what, key, "an integer");
    const json_int_t integer = json_integer_value(value);

    if (integer < min || integer > max)
        return nw_fail(NW_EUSAGE,
                       "%s: key \"%s\" is %" JSON_INTEGER_FORMAT "; expected %" JSON_INTEGER_FORMAT
                       " to %" JSON_INTEGER_FORMAT,
                       what, key, integer, min, max);
    *out = integer;
    return NW_OK;
}

nw_rc nw_json_get_u64(const json_t *object, const char *what, const char *key, bool required,
                      uint64_t *out)
{
    json_int_t value;
    bool there;

    NW_TRY(get_integer(object, what, key, required, 0, INT64_MAX, &there, &value));
    if (there)
        *out = (uint64_t)value;
    return NW_OK;
}

nw_rc nw_json_get_int(const json_t *object, const char *what, const char *key, bool required,
                      int *out)
{
    json_int_t value;
    bool there;

    NW_TRY(get_integer(object, what, key, required, INT_MIN, INT_MAX, &there, &value));
    if (there)
        *out = (int)value;
    return NW_OK;
}

nw_rc nw_json_get_bool(const json_t *object, const char *what, const char *key, bool required,
                       bool *out)
{
    const json_t *value;

    NW_TRY(get(object, what, key, required, &value));
    if (value == NULL)
        return NW_OK;
    if (!json_is_boolean(value))
        return wrong_type(value, what, key, "true or false");
    *out = json_is_true(value);
    return NW_OK;
}

nw_rc nw_json_get_field(const json_t *object, const char *what, const char *key, bool required,
                        char *field, size_t size)
{
    const char *text = NULL;

    NW_TRY(nw_json_get_text(object, what, key, required, &text));
    if (text == NULL || size == 0)
        return NW_OK;
    size_t length = strlen(text);

    if (length >= size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--; /* not within a character */
    }
    memcpy(field, text, length);
    field[length] = '\0';
    return NW_OK;
}

nw_rc nw_json_print(FILE *stream, const json_t *root)
{
    /* 15 digits: every decimal of that length reads back the same, and 0.1 stays 0.1. */
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY;

    errno = 0;
    if (json_dumpf(root, stream, flags) != 0 || fputc('\n', stream) == EOF || fflush(stream) != 0)
        return nw_fail(NW_EIO, "JSON could not be written: %s",
                       errno != 0 ? strerror(errno) : "the output failed");
    return NW_OK;
}
