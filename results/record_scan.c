/* The fast reader of records. It knows the lines that this program writes (and others with the same
 * keys in any order); whatever else stands there is left to jansson, so that there is one set of
 * rules and one wording of errors: results/record_json.c. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/record_rows.h"
#include "results/scan.h"

struct scan {
    struct nw_scan text;
    bool brief;
    struct nw_record *record;
    uint64_t seen[3]; /* keys of: the line (identity, result), time_ns, others */
};

enum { SEEN_LINE, SEEN_TIME, SEEN_OTHER };

/* ---- one value into its field -----------------------------------------------------------------
 */

static bool store_text(const struct nw_line_field *row, const struct nw_scan_span *span,
                       char *field)
{
    if (span->length >= row->size || memchr(span->at, '\0', span->length) != NULL)
        return false;
    memcpy(field, span->at, span->length);
    field[span->length] = '\0';
    return true;
}

static bool store_number(const struct nw_line_field *row, const struct nw_scan_number *number,
                         void *field)
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

static bool take_field(struct scan *scan, const struct nw_line_field *row, void *base)
{
    void *field = (char *)base + row->offset;
    struct nw_scan_number number;
    struct nw_scan_span span;

    if (row->type == NW_FIELD_TEXT)
        return nw_scan_string(&scan->text, &span) && store_text(row, &span, field);
    if (row->type != NW_FIELD_BOOL)
        return nw_scan_json_number(&scan->text, &number) && store_number(row, &number, field);
    *(bool *)field = *scan->text.at == 't';
    return nw_scan_word(&scan->text, *(bool *)field ? "true" : "false");
}

/* ---- keys --------------------------------------------------------------------------------------
 */

/* Looks from row `*next` on, where the key stands in a line of our own, then before it. */
static const struct nw_line_field *find_row(const struct nw_line_field *rows, size_t count,
                                            const struct nw_scan_span *key, size_t *next)
{
    for (size_t i = 0; i < count; i++) {
        const size_t index = (*next + i) % count;

        if (nw_scan_is(key, rows[index].key)) {
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

/* ---- the parts of a line ------------------------------------------------------------------------
 */

static bool is_brief_time(const struct nw_line_field *row)
{
    return row->offset <= offsetof(struct nw_stats, level);
}

static bool take_time(struct scan *scan)
{
    size_t next = 0;
    struct nw_scan_span key;

    if (!nw_scan_take(&scan->text, '{'))
        return false;
    do {
        if (!nw_scan_string(&scan->text, &key) || !nw_scan_take(&scan->text, ':'))
            return false;
        const struct nw_line_field *row =
            find_row(nw_record_time_rows, nw_record_time_row_count, &key, &next);

        if (row == NULL || !mark(scan, SEEN_TIME, (size_t)(row - nw_record_time_rows)))
            return false;
        if (scan->brief && !is_brief_time(row) ? !nw_scan_skip(&scan->text, 0)
                                               : !take_field(scan, row, &scan->record->time_ns))
            return false;
    } while (nw_scan_take(&scan->text, ','));
    return nw_scan_take(&scan->text, '}') && isfinite(scan->record->time_ns.median);
}

/* Behind "time_ns", which says how many there are. */
static bool take_samples(struct scan *scan)
{
    const size_t count = scan->record->time_ns.count;
    struct nw_scan_number number;

    if (count == 0 || count > (size_t)(scan->text.end - scan->text.at) ||
        !nw_scan_take(&scan->text, '['))
        return false;
    scan->record->samples_ns = malloc(count * sizeof *scan->record->samples_ns);
    if (scan->record->samples_ns == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        if ((i > 0 && !nw_scan_take(&scan->text, ',')) ||
            !nw_scan_json_number(&scan->text, &number))
            return false;
        scan->record->samples_ns[i] = number.real;
    }
    return nw_scan_take(&scan->text, ']');
}

/* They are numbers; the record's own figures came from them. */
static bool skip_samples(struct scan *scan)
{
    const char *close = memchr(scan->text.at, ']', (size_t)(scan->text.end - scan->text.at));

    if (close == NULL || *scan->text.at != '[')
        return false;
    scan->text.at = close + 1;
    return true;
}

enum { NAME_SIZE = 16 }; /* of a reason to stop, of an exit status */

static bool take_name(struct scan *scan, char name[NAME_SIZE])
{
    struct nw_scan_span span;

    if (!nw_scan_string(&scan->text, &span) || span.length >= NAME_SIZE)
        return false;
    memcpy(name, span.at, span.length);
    name[span.length] = '\0';
    return true;
}

static bool take_stop(struct scan *scan)
{
    char name[NAME_SIZE];

    return take_name(scan, name) && nw_stop_named(name, &scan->record->stop);
}

static bool take_rc(struct scan *scan)
{
    char name[NAME_SIZE];

    return take_name(scan, name) && nw_rc_named(name, &scan->record->rc);
}

static bool take_schema(struct scan *scan)
{
    struct nw_scan_number number;

    return nw_scan_json_number(&scan->text, &number) && number.is_integer &&
           number.integer == NW_SCHEMA_VERSION;
}

static bool take_kind(struct scan *scan)
{
    struct nw_scan_span span;

    return nw_scan_string(&scan->text, &span) && nw_scan_is(&span, "record");
}

static bool take_warnings(struct scan *scan)
{
    if (scan->brief)
        return nw_scan_skip(&scan->text, 0);
    return nw_scan_take(&scan->text, '[') && nw_scan_take(&scan->text, ']');
}

static bool take_states(struct scan *scan)
{
    return scan->brief && nw_scan_skip(&scan->text, 0);
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
    struct nw_scan_span key;

    if (!nw_scan_string(&scan->text, &key) || !nw_scan_take(&scan->text, ':'))
        return false;
    if (here->next < here->count && nw_scan_is(&key, here->rows[here->next].key))
        return take_row(scan, here, &here->rows[here->next++]);
    for (size_t i = 0; i < OTHER_COUNT; i++)
        if (nw_scan_is(&key, others[i].key))
            return mark(scan, SEEN_OTHER, i) && others[i].take(scan);
    for (size_t i = 0; i < 2; i++) {
        const struct nw_line_field *row =
            find_row(groups[i].rows, groups[i].count, &key, &groups[i].next);

        if (row != NULL)
            return take_row(scan, &groups[i], row);
    }
    return scan->brief && nw_scan_skip(&scan->text, 0); /* a key of a later version */
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

    if (!nw_scan_take(&scan->text, '{'))
        return false;
    do {
        if (!take_key(scan, groups))
            return false;
    } while (nw_scan_take(&scan->text, ','));
    return nw_scan_take(&scan->text, '}') && scan->text.at == scan->text.end &&
           has_required(scan, groups);
}

bool nw_record_scan(const char *line, size_t length, bool brief, struct nw_record *record_out)
{
    struct scan scan = {.text = {line, line + length}, .brief = brief, .record = record_out};

    nw_record_init(record_out);
    if (take_line(&scan))
        return true;
    nw_record_free(record_out);
    return false;
}
