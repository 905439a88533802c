#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/nccltests.h"

/* Columns of one block may differ from each other by printing, never by more than this. */
#define SLACK 1e-3

/* What nccl-tests' columns look like for each collective. The row of a sendrecv shows the reduction
 * though it has none. In-place alltoall and sendrecv have no right answer: unchecked ("N/A") since
 * 2.11, "error 1" before. */
struct shape {
    const char *name;
    bool chunked; /* size = ranks × count × element */
    bool op, rooted;
    enum { FACTOR_ONE, FACTOR_PART, FACTOR_TWICE } factor; /* 1, (n-1)/n, 2(n-1)/n */
    bool place_unchecked;
};
static const struct shape shapes[] = {
    {"all_reduce", false, true, false, FACTOR_TWICE, false},
    {"sendrecv", false, true, false, FACTOR_ONE, true},
    {"all_gather", true, false, false, FACTOR_PART, false},
    {"alltoall", true, false, false, FACTOR_PART, true},
    {"reduce_scatter", true, true, false, FACTOR_PART, false},
    {"broadcast", false, false, true, FACTOR_ONE, false},
    {"reduce", false, true, true, FACTOR_ONE, false},
    {"gather", true, false, true, FACTOR_PART, false},
    {"scatter", true, false, true, FACTOR_PART, false},
};
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

/* Bus factors that all rows of the run allow. */
struct evidence {
    bool sized, chunked, whole; /* some row has a size; its ranks × count, or its count, make it */
    int chunk_ranks;            /* 0: not one number */
    bool op, rooted;
    bool place_checked, place_refused; /* in place: right by a number; unchecked or wrong by 1 */
    bool old_layout, op_column;
    double factor_low, factor_high;
};

static struct nw_slice slice(const char *text)
{
    return (struct nw_slice){text, strlen(text)};
}

static bool op_given(const struct nw_nt_row *row)
{
    return row->op[0] != '\0' && strcmp(row->op, "none") != 0;
}

/* busbw × time / bytes, with everything that rounding allows. False: nothing to learn. */
static bool factor_bounds(const struct nw_nt_row *row, const struct nw_nt_block *block, double *low,
                          double *high)
{
    const struct nw_printed *time = &block->time_ns, *bus = &block->busbw;

    if (!block->present || row->bytes == 0 || !(time->value > 0) || !(bus->value >= 0))
        return false;
    const double seconds_low = (time->value - time->half_unit) * 1e-9;
    const double seconds_high = (time->value + time->half_unit) * 1e-9;

    *low = (bus->value - bus->half_unit) * seconds_low / (double)row->bytes * (1 - SLACK);
    *high = (bus->value + bus->half_unit) * seconds_high / (double)row->bytes * (1 + SLACK);
    return true;
}

static void weigh_place(const struct nw_nt_row *row, struct evidence *evidence)
{
    const struct nw_nt_block *out = &row->place[0], *in = &row->place[1];

    if (!out->present || !in->present || isnan(out->check.value))
        return;
    if (isnan(in->check.value) || (evidence->old_layout && in->check.value >= 1))
        evidence->place_refused = true;
    else
        evidence->place_checked = true;
}

static void weigh_row(const struct nw_nt_row *row, struct evidence *evidence)
{
    const uint64_t part = row->count * nw_nt_dtype_bytes(slice(row->dtype));

    evidence->op = evidence->op || op_given(row);
    evidence->rooted = evidence->rooted || row->root >= 0;
    if (row->bytes == 0 || part == 0)
        return;
    evidence->sized = true;
    if (row->bytes == part) {
        evidence->whole = true;
    } else if (row->bytes % part == 0 && row->bytes / part <= 100000000) {
        const int ranks = (int)(row->bytes / part);

        evidence->chunk_ranks = !evidence->chunked || evidence->chunk_ranks == ranks ? ranks : 0;
        evidence->chunked = true;
    }
    weigh_place(row, evidence);
    for (int place = 0; place < 2; place++) {
        double low, high;

        if (!factor_bounds(row, &row->place[place], &low, &high))
            continue;
        evidence->factor_low = fmax(evidence->factor_low, low);
        evidence->factor_high = fmin(evidence->factor_high, high);
    }
}

static bool fits_columns(const struct shape *shape, const struct evidence *evidence, int ranks)
{
    if (shape->op != evidence->op || shape->rooted != evidence->rooted)
        return false;
    /* With one rank a chunk is the whole. */
    if (ranks != 1 && evidence->sized && shape->chunked != (evidence->chunked && !evidence->whole))
        return false;
    /* Old layouts have only the columns that the collective needs; alltoall's redop is empty. */
    if (evidence->old_layout && shape->chunked && !shape->op && !shape->rooted &&
        evidence->op_column != shape->place_unchecked)
        return false;
    return shape->place_unchecked ? !evidence->place_checked
                                  : !evidence->place_refused || evidence->place_checked;
}

static bool fits_factor(const struct shape *shape, const struct evidence *evidence, int ranks)
{
    const double least = shape->factor == FACTOR_ONE ? 1 : shape->factor == FACTOR_PART ? 0.5 : 1;
    const double most = shape->factor == FACTOR_TWICE ? 2 : 1;

    if (ranks == 1)
        return true;
    if (ranks > 1) {
        const double exact = shape->factor == FACTOR_ONE ? 1 : most * (ranks - 1) / ranks;

        return evidence->factor_low <= exact && exact <= evidence->factor_high;
    }
    return evidence->factor_low <= most && least <= evidence->factor_high &&
           evidence->factor_low <= evidence->factor_high;
}

/* "nccl_reduce_scatter0.txt": the one collective whose name, without "_" and "-", is in the file's.
 */
static const char *name_in_path(const char *path)
{
    const char *base = strrchr(path, '/');
    char plain[256], name[32];
    const char *found = NULL;
    size_t length = 0, longest = 0;

    for (const char *c = base != NULL ? base + 1 : path; *c != '\0' && length + 1 < sizeof plain;
         c++)
        if (isalnum((unsigned char)*c))
            plain[length++] = (char)tolower((unsigned char)*c);
    plain[length] = '\0';
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        size_t used = 0;

        for (const char *c = shapes[i].name; *c != '\0'; c++)
            if (*c != '_')
                name[used++] = *c;
        name[used] = '\0';
        if (used > longest && strstr(plain, name) != NULL) {
            found = shapes[i].name;
            longest = used;
        }
    }
    return found;
}

static void choose_collective(const struct evidence *evidence, const struct nw_nt_request *request,
                              int ranks, struct nw_nt_reading *reading)
{
    const char *in_path = name_in_path(request->path);
    const char *fits = NULL;
    bool sibling = false, named = false;
    int count = 0;

    if (!evidence->sized)
        return;
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        if (!fits_columns(&shapes[i], evidence, ranks))
            continue;
        named = named || (in_path != NULL && strcmp(in_path, shapes[i].name) == 0);
        sibling =
            sibling || (request->sibling != NULL && strcmp(request->sibling, shapes[i].name) == 0);
        if (fits_factor(&shapes[i], evidence, ranks)) {
            fits = shapes[i].name;
            count++;
        }
    }
    if (count == 1)
        reading->collective_from = "its columns";
    else if (sibling)
        reading->collective_from = "the other runs of this file", fits = request->sibling;
    else if (named)
        reading->collective_from = "the file's name, which its columns allow", fits = in_path;
    else
        return;
    snprintf(reading->collective, sizeof reading->collective, "%s", fits);
}

/* Ranks for which the factor of an all_reduce lies within all rows' bounds: n = 2 / (2 - f). */
static void ranks_from_factor(const struct evidence *evidence, struct nw_nt_reading *reading)
{
    const double low = fmax(evidence->factor_low / (1 - SLACK), 1);
    const double high = evidence->factor_high / (1 + SLACK);

    if (strcmp(reading->collective, "all_reduce") != 0 || low > high || low >= 2)
        return;
    reading->ranks_low = (int)ceil(2 / (2 - low) - 1e-9);
    reading->ranks_high = high < 2 ? (int)fmin(floor(2 / (2 - high) + 1e-9), 1e8) : 0;
    if (reading->ranks_low > reading->ranks_high && reading->ranks_high > 0)
        reading->ranks_low = reading->ranks_high = 0;
    if (reading->ranks_low > 0 && reading->ranks_low == reading->ranks_high) {
        reading->rank_count = reading->ranks_low;
        reading->ranks_from = "busbw / algbw of its rows";
    }
}

static void count_ranks(const struct nw_nt_run *run, const struct evidence *evidence,
                        struct nw_nt_reading *reading)
{
    const bool whole_list = run->rank_lines > 0 && run->ranks_closed;

    if (whole_list && run->group_count > 1)
        reading->rank_count = run->first_group_size;
    else if (whole_list)
        reading->rank_count = run->highest_rank + 1;
    if (whole_list && run->rank_lines == (size_t)run->highest_rank + 1)
        reading->host_count = run->hosts.count;
    if (reading->rank_count == 0 && run->facts.rank_count > 0)
        reading->rank_count = run->facts.rank_count, reading->ranks_from = "NCCL's own messages";
    if (reading->host_count == 0)
        reading->host_count = run->facts.host_count;
    if (reading->rank_count == 0 && evidence->chunked && evidence->chunk_ranks > 1) {
        reading->rank_count = evidence->chunk_ranks;
        reading->ranks_from = "size / (count × element)";
    }
}

/* Rows whose size, time and bandwidths contradict each other, whatever the collective is; and,
 * where collective and ranks are known, rows with another bus factor. */
static bool row_agrees(const struct nw_nt_row *row, const struct nw_nt_reading *reading)
{
    for (int place = 0; place < 2; place++) {
        const struct nw_nt_block *block = &row->place[place];
        double low, high;

        if (!factor_bounds(row, block, &low, &high))
            continue;
        const double algbw = (double)row->bytes / (block->time_ns.value * 1e-9);
        const double allowed = block->algbw.half_unit + SLACK * algbw +
                               algbw * block->time_ns.half_unit / block->time_ns.value;

        if (isfinite(block->algbw.value) && fabs(block->algbw.value - algbw) > allowed * 1.01)
            return false;
        if (reading->coll == NULL || reading->rank_count < 2)
            continue;
        const double exact = reading->coll->bus_factor(reading->rank_count);

        if (exact < low || exact > high)
            return false;
    }
    return true;
}

static void find_contradictions(const struct nw_nt_run *run, struct nw_nt_reading *reading)
{
    double low = 0, high = INFINITY;

    for (size_t i = 0; i < run->row_count; i++) {
        const struct nw_nt_row *row = &run->rows[i];
        bool agrees = row_agrees(row, reading);

        /* Without a known factor all rows must still allow a common one. */
        for (int place = 0; place < 2 && reading->rank_count == 0; place++) {
            double row_low, row_high;

            if (!factor_bounds(row, &row->place[place], &row_low, &row_high))
                continue;
            if (row_low > high || row_high < low) {
                agrees = false;
                continue;
            }
            low = fmax(low, row_low);
            high = fmin(high, row_high);
        }
        if (!agrees && reading->disagree_count++ == 0)
            reading->disagree_line = row->line;
    }
}

void nw_nt_infer(const struct nw_nt_run *run, const struct nw_nt_request *request,
                 struct nw_nt_reading *reading_out)
{
    struct nw_nt_reading reading = {.collective = "unknown"};
    struct evidence evidence = {
        .factor_high = INFINITY,
        .old_layout = run->layout.relative_error,
        .op_column = run->layout.has_op,
    };

    for (size_t i = 0; i < run->row_count; i++)
        weigh_row(&run->rows[i], &evidence);
    count_ranks(run, &evidence, &reading);
    if (run->facts.collective[0] != '\0')
        snprintf(reading.collective, sizeof reading.collective, "%.23s", run->facts.collective);
    else if (request->collective != NULL)
        snprintf(reading.collective, sizeof reading.collective, "%.23s", request->collective);
    else
        choose_collective(&evidence, request, reading.rank_count, &reading);
    if (reading.rank_count == 0)
        ranks_from_factor(&evidence, &reading);
    reading.coll = nw_coll_find(reading.collective);
    find_contradictions(run, &reading);
    *reading_out = reading;
}
