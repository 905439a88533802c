/* The fast reader of records. It knows the lines that this program writes (and others with the same
 * keys in any order); whatever else stands there is left to jansson, so that there is one set of
 * rules and one wording of errors: results/record_json.c. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/record_rows.h"

struct scan {
    const char *at, *end; /* the line; *end is its newline */
    bool brief;
    struct nw_record *record;
    uint64_t seen[3]; /* keys of: the line (identity, result), time_ns, others */
};

struct span { /* of a string, without its quotes */
    const char *at;
    size_t length;
};

enum { SEEN_LINE, SEEN_TIME, SEEN_OTHER };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->end && is_blank(*scan->at))
        scan->at++;
}

/* The character itself, with blanks before and behind. */
static bool take(struct scan *scan, char c)
{
    skip_blanks(scan);
    if (scan->at >= scan->end || *scan->at != c)
        return false;
    scan->at++;
    skip_blanks(scan);
    return true;
}

static bool take_string(struct scan *scan, struct span *span_out)
{
    if (scan->at >= scan->end || *scan->at != '"')
        return false;
    const char *start = ++scan->at;

    while (scan->at < scan->end) {
        const unsigned char c = (unsigned char)*scan->at;

        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            scan->at++;
            continue;
        }
        const size_t length = c < 0x80 ? 1 : nw_utf8_length((const unsigned char *)scan->at);

        if (c == '"') {
            *span_out = (struct span){start, (size_t)(scan->at - start)};
            scan->at++;
            return true;
        }
        if (c < 0x20 || c == '\\' || length == 0)
            return false;
        scan->at += length;
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

struct digits { /* a number before it is one */
    const char *start;
    bool is_integer;
    uint64_t mantissa;
    int exponent; /* of 10, of the last digit */
};

struct number {
    bool is_integer;
    int64_t integer;
    double real;
};

/* Digits from scan->at on: those of a number so far, as one integer of at most 19 digits. */
static size_t take_digits(struct scan *scan, uint64_t *mantissa)
{
    const char *start = scan->at;

    for (; is_digit(*scan->at); scan->at++)
        *mantissa = *mantissa * 10 + (uint64_t)(*scan->at - '0');
    return (size_t)(scan->at - start);
}

/* m × 10^exponent to the last bit, in one operation of x87's 64 bits where it has them: m and the
 * power are exact there, and what is rounded to a double's 53 bits is right unless it lies just
 * between two of them. Else by strtod. */
static double real_of(const char *start, uint64_t mantissa, int exponent)
{
    static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                         1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                         1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                         1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    const int most = sizeof powers / sizeof powers[0] - 1;
    uint64_t bits;

    if (LDBL_MANT_DIG != 64 || exponent < -most || exponent > most)
        return strtod(start, NULL);
    const long double value = exponent < 0 ? (long double)mantissa / powers[-exponent]
                                           : (long double)mantissa * powers[exponent];

    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7FF) == 0x400 ? strtod(start, NULL) : (double)value;
}

/* JSON's grammar, not negative, at most 18 digits. */
static bool take_digits_of(struct scan *scan, struct digits *digits_out)
{
    const char *start = scan->at;
    uint64_t mantissa = 0;
    int exponent = 0, written = 0;
    const size_t whole = take_digits(scan, &mantissa);
    size_t fraction = 0;

    if (whole == 0 || (whole > 1 && *start == '0'))
        return false;
    digits_out->is_integer = *scan->at != '.' && *scan->at != 'e' && *scan->at != 'E';
    if (*scan->at == '.') {
        scan->at++;
        fraction = take_digits(scan, &mantissa);
        if (fraction == 0)
            return false;
    }
    if (whole + fraction > 18)
        return false;
    if (*scan->at == 'e' || *scan->at == 'E') {
        const bool negative = *++scan->at == '-';

        scan->at += negative || *scan->at == '+';
        if (!is_digit(*scan->at))
            return false;
        for (; is_digit(*scan->at) && written < 1000; scan->at++)
            written = written * 10 + (*scan->at - '0');
        if (written > 290) /* near the ends of a double: jansson has a word about overflow */
            return false;
        exponent = negative ? -written : written;
    }
    digits_out->start = start;
    digits_out->mantissa = mantissa;
    digits_out->exponent = exponent - (int)fraction;
    return true;
}

static bool take_number(struct scan *scan, struct number *number_out)
{
    struct digits digits;

    if (!take_digits_of(scan, &digits))
        return false;
    number_out->is_integer = digits.is_integer;
    number_out->integer = (int64_t)digits.mantissa;
    number_out->real = digits.is_integer ? (double)number_out->integer
                                         : real_of(digits.start, digits.mantissa, digits.exponent);
    return true;
}

/* ---- one value into its field -----------------------------------------------------------------
 */

static bool store_text(const struct nw_line_field *row, const struct span *span, char *field)
{
    if (span->length >= row->size || memchr(span->at, '\0', span->length) != NULL)
        return false;
    memcpy(field, span->at, span->length);
    field[span->length] = '\0';
    return true;
}

static bool store_number(const struct nw_line_field *row, const struct number *number, void *field)
{
    const double value = number->real;

    if (value < row->min || (row->max > 0 && value > row->max))
        return false;
    if (row->type != NW_FIELD_REAL && !number->is_integer)
        return false;
    switch (row->type) {
    case NW_FIELD_REAL:
        *(double *)field = value;
        return true;
    case NW_FIELD_INT:
        *(int *)field = (int)number->integer;
        return number->integer <= INT_MAX;
    case NW_FIELD_U32:
        *(uint32_t *)field = (uint32_t)number->integer;
        return number->integer <= UINT32_MAX;
    case NW_FIELD_U64:
        *(uint64_t *)field = (uint64_t)number->integer;
        return true;
    case NW_FIELD_SIZE:
        *(size_t *)field = (size_t)number->integer;
        return true;
    case NW_FIELD_I64:
        *(int64_t *)field = number->integer;
        return true;
    default:
        return false;
    }
}

static bool take_word(struct scan *scan, const char *word)
{
    const size_t length = strlen(word);

    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

static bool take_field(struct scan *scan, const struct nw_line_field *row, void *base)
{
    void *field = (char *)base + row->offset;
    struct number number;
    struct span span;

    if (row->type == NW_FIELD_TEXT)
        return take_string(scan, &span) && store_text(row, &span, field);
    if (row->type != NW_FIELD_BOOL)
        return take_number(scan, &number) && store_number(row, &number, field);
    *(bool *)field = *scan->at == 't';
    return take_word(scan, *(bool *)field ? "true" : "false");
}

/* ---- keys --------------------------------------------------------------------------------------
 */

static bool is_key(const struct span *key, const char *name)
{
    /* the first character decides nearly always; an empty key's is its quote */
    return key->at[0] == name[0] && strncmp(key->at, name, key->length) == 0 &&
           name[key->length] == '\0';
}

/* Looks from row `*next` on, where the key stands in a line of our own, then before it. */
static const struct nw_line_field *find_row(const struct nw_line_field *rows, size_t count,
                                            const struct span *key, size_t *next)
{
    for (size_t i = 0; i < count; i++) {
        const size_t index = (*next + i) % count;

        if (is_key(key, rows[index].key)) {
            *next = index + 1;
            return &rows[index];
        }
    }
    return NULL;
}

/* Each key once; false: it was there. */
static bool mark(struct scan *scan, int where, size_t bit)
{
    const uint64_t mask = UINT64_C(1) << bit;
    const bool first = (scan->seen[where] & mask) == 0;

    scan->seen[where] |= mask;
    return first;
}

/* ---- nested values -----------------------------------------------------------------------------
 */

#define DEPTH_MAX 8

/* A value that is passed over. */
static bool skip_value(struct scan *scan, int depth)
{
    struct digits digits;
    struct span span;

    skip_blanks(scan);
    if (scan->at >= scan->end || depth > DEPTH_MAX)
        return false;
    const char open = *scan->at;

    if (open == '"')
        return take_string(scan, &span);
    if (open != '{' && open != '[')
        return take_word(scan, "true") || take_word(scan, "false") || take_word(scan, "null") ||
               take_digits_of(scan, &digits);
    const char close = open == '{' ? '}' : ']';

    take(scan, open);
    if (take(scan, close))
        return true;
    do {
        if (open == '{' && !(take_string(scan, &span) && take(scan, ':')))
            return false;
        if (!skip_value(scan, depth + 1))
            return false;
    } while (take(scan, ','));
    return take(scan, close);
}

static bool is_brief_time(const struct nw_line_field *row)
{
    return row->offset <= offsetof(struct nw_stats, level);
}

static bool take_time(struct scan *scan)
{
    size_t next = 0;
    struct span key;

    if (!take(scan, '{'))
        return false;
    do {
        if (!take_string(scan, &key) || !take(scan, ':'))
            return false;
        const struct nw_line_field *row =
            find_row(nw_record_time_rows, nw_record_time_row_count, &key, &next);

        if (row == NULL || !mark(scan, SEEN_TIME, (size_t)(row - nw_record_time_rows)))
            return false;
        if (scan->brief && !is_brief_time(row) ? !skip_value(scan, 0)
                                               : !take_field(scan, row, &scan->record->time_ns))
            return false;
    } while (take(scan, ','));
    return take(scan, '}') && isfinite(scan->record->time_ns.median);
}

/* Behind "time_ns", which says how many there are. */
static bool take_samples(struct scan *scan)
{
    const size_t count = scan->record->time_ns.count;
    struct number number;

    if (count == 0 || count > (size_t)(scan->end - scan->at) || !take(scan, '['))
        return false;
    scan->record->samples_ns = malloc(count * sizeof *scan->record->samples_ns);
    if (scan->record->samples_ns == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        if ((i > 0 && !take(scan, ',')) || !take_number(scan, &number))
            return false;
        scan->record->samples_ns[i] = number.real;
    }
    return take(scan, ']');
}

/* They are numbers; the record's own figures came from them. */
static bool skip_samples(struct scan *scan)
{
    const char *close = memchr(scan->at, ']', (size_t)(scan->end - scan->at));

    if (close == NULL || *scan->at != '[')
        return false;
    scan->at = close + 1;
    return true;
}

static bool take_stop(struct scan *scan)
{
    struct span span;
    char name[16];

    if (!take_string(scan, &span) || span.length >= sizeof name)
        return false;
    memcpy(name, span.at, span.length);
    name[span.length] = '\0';
    return nw_stop_named(name, &scan->record->stop);
}

static bool take_rc(struct scan *scan)
{
    struct span span;
    char name[16];

    if (!take_string(scan, &span) || span.length >= sizeof name)
        return false;
    memcpy(name, span.at, span.length);
    name[span.length] = '\0';
    return nw_rc_named(name, &scan->record->rc);
}

static bool take_schema(struct scan *scan)
{
    struct number number;

    return take_number(scan, &number) && number.is_integer && number.integer == NW_SCHEMA_VERSION;
}

static bool take_kind(struct scan *scan)
{
    struct span span;

    return take_string(scan, &span) && is_key(&span, "record");
}

static bool take_warnings(struct scan *scan)
{
    if (scan->brief)
        return skip_value(scan, 0);
    return take(scan, '[') && take(scan, ']');
}

static bool take_states(struct scan *scan)
{
    return scan->brief && skip_value(scan, 0);
}

static bool take_some(struct scan *scan)
{
    return scan->brief ? skip_samples(scan) : take_samples(scan);
}

static const struct {
    const char *key;
    bool (*take)(struct scan *scan);
} others[] = {
    {"schema", take_schema},    {"kind", take_kind},         {"time_ns", take_time},
    {"samples_ns", take_some},  {"stop", take_stop},         {"rc", take_rc},
    {"gpu_state", take_states}, {"warnings", take_warnings},
};
enum { OTHER_COUNT = sizeof others / sizeof others[0], TIME = 2, SAMPLES };

/* The plain fields before and behind "time_ns". */
struct group {
    const struct nw_line_field *rows;
    size_t count, first_bit, next;
};

static bool take_row(struct scan *scan, const struct group *group, const struct nw_line_field *row)
{
    return mark(scan, SEEN_LINE, group->first_bit + (size_t)(row - group->rows)) &&
           take_field(scan, row, scan->record);
}

/* Most keys are the next one of the group that the line is in. */
static bool take_key(struct scan *scan, struct group *groups)
{
    struct group *here = &groups[scan->seen[SEEN_OTHER] >> TIME & 1];
    struct span key;

    if (!take_string(scan, &key) || !take(scan, ':'))
        return false;
    if (here->next < here->count && is_key(&key, here->rows[here->next].key))
        return take_row(scan, here, &here->rows[here->next++]);
    for (size_t i = 0; i < OTHER_COUNT; i++)
        if (is_key(&key, others[i].key))
            return mark(scan, SEEN_OTHER, i) && others[i].take(scan);
    for (size_t i = 0; i < 2; i++) {
        const struct nw_line_field *row =
            find_row(groups[i].rows, groups[i].count, &key, &groups[i].next);

        if (row != NULL)
            return take_row(scan, &groups[i], row);
    }
    return scan->brief && skip_value(scan, 0); /* a key of a later version */
}

static bool has_required(const struct scan *scan, const struct group *groups)
{
    const uint64_t both = 3; /* schema, kind */

    for (size_t g = 0; g < 2; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            if (groups[g].rows[i].required &&
                (scan->seen[SEEN_LINE] & UINT64_C(1) << (groups[g].first_bit + i)) == 0)
                return false;
    if ((scan->seen[SEEN_OTHER] & both) != both)
        return false;
    return (scan->seen[SEEN_OTHER] & 1u << SAMPLES) == 0 ||
           (scan->seen[SEEN_OTHER] & 1u << TIME) != 0;
}

static bool take_line(struct scan *scan)
{
    struct group groups[] = {
        {nw_record_identity_rows, nw_record_identity_row_count, 0, 0},
        {nw_record_result_rows, nw_record_result_row_count, nw_record_identity_row_count, 0},
    };

    if (!take(scan, '{'))
        return false;
    do {
        if (!take_key(scan, groups))
            return false;
    } while (take(scan, ','));
    return take(scan, '}') && scan->at == scan->end && has_required(scan, groups);
}

bool nw_record_scan(const char *line, size_t length, bool brief, struct nw_record *record_out)
{
    struct scan scan = {.at = line, .end = line + length, .brief = brief, .record = record_out};

    nw_record_init(record_out);
    if (take_line(&scan))
        return true;
    nw_record_free(record_out);
    return false;
}
