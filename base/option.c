#include "base/option.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

static bool is_bounded(const struct nw_option *row)
{
    return row->min != 0 || row->max != 0;
}

static nw_rc check_bounds(const struct nw_option *row, double value, const char *text,
                          const char *source)
{
    if (!is_bounded(row) || (value >= row->min && value <= row->max))
        return NW_OK;
    const double scale = row->type == NW_OPTION_DURATION ? 1e9 : 1;
    const char *unit = row->type == NW_OPTION_DURATION ? "s"
                       : row->type == NW_OPTION_BYTES  ? "bytes"
                       : row->unit != NULL             ? row->unit
                                                       : "";

    return nw_fail(NW_EUSAGE, "%s: \"%.80s\" is out of range; accepted: %.15g to %.15g%s%s", source,
                   text, row->min / scale, row->max / scale, unit[0] != '\0' ? " " : "", unit);
}

static nw_rc set_choice(const struct nw_option *row, const char **field, const char *text,
                        const char *source)
{
    char names[512];

    for (const char *const *choice = row->choices; *choice != NULL; choice++) {
        if (strcasecmp(*choice, text) == 0) {
            *field = *choice;
            return NW_OK;
        }
    }
    const char *nearest = nw_nearest_name(text, row->choices);

    nw_join_names(names, sizeof names, row->choices);
    if (nearest != NULL)
        return nw_fail(NW_EUSAGE, "%s: unknown value \"%.80s\"; did you mean \"%s\"? Accepted: %s",
                       source, text, nearest, names);
    return nw_fail(NW_EUSAGE, "%s: unknown value \"%.80s\"; accepted: %s", source, text, names);
}

static nw_rc add_text(struct nw_option_list *list, const char *text, const char *source)
{
    if (text == NULL || text[0] == '\0')
        return nw_fail(NW_EUSAGE, "%s: nothing given", source);
    if (list->count == NW_OPTION_LIST_MAX)
        return nw_fail(NW_EUSAGE, "%s: given more than %d times", source, NW_OPTION_LIST_MAX);
    list->items[list->count++] = text;
    return NW_OK;
}

/* Numbers come as double except u64 and bytes, which a double cannot hold above 2^53. */
static nw_rc parse_number(const struct nw_option *row, const char *text, double *real_out,
                          uint64_t *whole_out)
{
    int yes = 0;
    nw_rc rc;

    switch (row->type) {
    case NW_OPTION_BOOL:
        rc = nw_parse_bool(text, &yes);
        *real_out = yes;
        return rc;
    case NW_OPTION_INT:
        rc = nw_parse_double(text, is_bounded(row) ? row->min : INT_MIN,
                             is_bounded(row) ? row->max : INT_MAX, real_out);
        if (rc == NW_OK && *real_out != (double)(int)*real_out)
            rc = nw_fail(NW_EUSAGE, "\"%.80s\" is not a whole number", text);
        return rc;
    case NW_OPTION_U64:
        rc = nw_parse_u64(text, is_bounded(row) ? (uint64_t)row->min : 0,
                          row->max > 0 && row->max < 1.8e19 ? (uint64_t)row->max : UINT64_MAX,
                          whole_out);
        break;
    case NW_OPTION_BYTES:
        rc = nw_parse_bytes(text, whole_out);
        break;
    case NW_OPTION_DURATION:
        return nw_parse_duration(text, real_out);
    case NW_OPTION_COUNT:
        return nw_parse_count(text, real_out);
    default:
        return nw_parse_double(text, is_bounded(row) ? row->min : -DBL_MAX,
                               is_bounded(row) ? row->max : DBL_MAX, real_out);
    }
    if (rc == NW_OK)
        *real_out = (double)*whole_out;
    return rc;
}

static nw_rc set_number(const struct nw_option *row, void *field, const char *text,
                        const char *source)
{
    double real = 0;
    uint64_t whole = 0;
    const nw_rc rc = parse_number(row, text, &real, &whole);

    if (rc != NW_OK)
        return nw_fail(NW_EUSAGE, "%s: %s", source, nw_last_error()->text);
    NW_TRY(check_bounds(row, real, text, source));
    switch (row->type) {
    case NW_OPTION_BOOL:
        *(bool *)field = real != 0;
        break;
    case NW_OPTION_INT:
        *(int *)field = (int)real;
        break;
    case NW_OPTION_U64:
    case NW_OPTION_BYTES:
        *(uint64_t *)field = whole;
        break;
    default:
        *(double *)field = real;
    }
    return NW_OK;
}

nw_rc nw_option_set(const struct nw_option *row, void *target, const char *text, const char *source)
{
    void *field = (char *)target + row->offset;

    switch (row->type) {
    case NW_OPTION_FLAG:
        *(bool *)field = true;
        return NW_OK;
    case NW_OPTION_TEXT:
        if (text == NULL)
            return nw_fail(NW_EUSAGE, "%s: nothing given", source);
        *(const char **)field = text;
        return NW_OK;
    case NW_OPTION_LIST:
        return add_text(field, text, source);
    case NW_OPTION_CHOICE:
        return set_choice(row, field, text != NULL ? text : "", source);
    default:
        return set_number(row, field, text, source);
    }
}

static size_t field_size(nw_option_type type)
{
    static const size_t sizes[] = {
        [NW_OPTION_FLAG] = sizeof(bool),
        [NW_OPTION_BOOL] = sizeof(bool),
        [NW_OPTION_INT] = sizeof(int),
        [NW_OPTION_U64] = sizeof(uint64_t),
        [NW_OPTION_BYTES] = sizeof(uint64_t),
        [NW_OPTION_REAL] = sizeof(double),
        [NW_OPTION_DURATION] = sizeof(double),
        [NW_OPTION_COUNT] = sizeof(double),
        [NW_OPTION_TEXT] = sizeof(const char *),
        [NW_OPTION_CHOICE] = sizeof(const char *),
        [NW_OPTION_LIST] = sizeof(struct nw_option_list),
    };

    return sizes[type];
}

nw_rc nw_options_reset(const struct nw_option *rows, size_t count, void *target)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].name == NULL)
            continue;
        memset((char *)target + rows[i].offset, 0, field_size(rows[i].type));
        if (rows[i].fallback == NULL || rows[i].type == NW_OPTION_FLAG)
            continue;
        if (strcmp(rows[i].fallback, NW_OPTION_NOT_GIVEN) == 0)
            *(double *)((char *)target + rows[i].offset) = NAN;
        else
            NW_TRY(nw_option_set(&rows[i], target, rows[i].fallback, rows[i].name));
    }
    return NW_OK;
}

const struct nw_option *nw_option_find(const struct nw_option *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].name != NULL && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* Exact, unlike nw_format_bytes: the largest suffix that leaves a whole number. */
static void exact_bytes(char *text, size_t size, uint64_t bytes)
{
    static const char suffixes[] = "\0KMGT";
    size_t power = 0;

    while (power < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        power++;
    }
    snprintf(text, size, "%llu%.1s", (unsigned long long)bytes, &suffixes[power]);
}

/* The shortest text that reads back as the same double. */
static void exact_real(char *text, size_t size, double value, const char *unit)
{
    char number[40];

    for (int digits = 6; digits <= 17; digits++) {
        double back = 0;

        snprintf(number, sizeof number, "%.*g", digits, value);
        if (nw_parse_double(number, -DBL_MAX, DBL_MAX, &back) == NW_OK && back == value)
            break;
    }
    snprintf(text, size, "%s%s", number, unit);
}

static void join_list(const struct nw_option_list *list, char *text, size_t size)
{
    const char *items[NW_OPTION_LIST_MAX + 1] = {NULL};

    for (size_t i = 0; i < list->count; i++)
        items[i] = list->items[i];
    nw_join_names(text, size, items);
}

const char *nw_option_text(const struct nw_option *row, const void *target, char *text, size_t size)
{
    const void *field = (const char *)target + row->offset;
    const char *borrowed;

    switch (row->type) {
    case NW_OPTION_FLAG:
    case NW_OPTION_BOOL:
        snprintf(text, size, "%s", *(const bool *)field ? "yes" : "no");
        break;
    case NW_OPTION_INT:
        snprintf(text, size, "%d", *(const int *)field);
        break;
    case NW_OPTION_U64:
        snprintf(text, size, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case NW_OPTION_BYTES:
        exact_bytes(text, size, *(const uint64_t *)field);
        break;
    case NW_OPTION_DURATION:
        exact_real(text, size, *(const double *)field, "ns");
        break;
    case NW_OPTION_REAL:
    case NW_OPTION_COUNT:
        exact_real(text, size, *(const double *)field, "");
        break;
    case NW_OPTION_LIST:
        join_list(field, text, size);
        break;
    default:
        borrowed = *(const char *const *)field;
        snprintf(text, size, "%s", borrowed != NULL ? borrowed : "");
    }
    return text;
}

static int row_key(const struct nw_option *rows, size_t index)
{
    return rows[index].key != 0 ? rows[index].key : NW_OPTION_KEY_BASE + (int)index;
}

void nw_option_argp_rows(const struct nw_option *rows, size_t count,
                         struct argp_option *argp_rows_out)
{
    int group = 0;

    for (size_t i = 0; i < count; i++) {
        if (rows[i].name == NULL) /* argp: a heading has no name and no key */
            argp_rows_out[i] = (struct argp_option){.doc = rows[i].help, .group = ++group};
        else
            argp_rows_out[i] = (struct argp_option){
                .name = rows[i].name,
                .key = row_key(rows, i),
                .arg = rows[i].type != NW_OPTION_FLAG
                           ? (rows[i].argument != NULL ? rows[i].argument : "VALUE")
                           : NULL,
                .doc = rows[i].help,
                .group = group,
            };
    }
    argp_rows_out[count] = (struct argp_option){0};
}

error_t nw_option_parse(const struct nw_option *rows, size_t count, void *target, int key,
                        char *argument)
{
    char source[96];

    for (size_t i = 0; i < count; i++) {
        if (rows[i].name == NULL || row_key(rows, i) != key)
            continue;
        if (rows[i].key > 0 && rows[i].key < 128)
            snprintf(source, sizeof source, "option -%c (--%s)", rows[i].key, rows[i].name);
        else
            snprintf(source, sizeof source, "option --%s", rows[i].name);
        return nw_option_set(&rows[i], target, argument, source) == NW_OK ? 0 : EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}
