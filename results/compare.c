#include "results/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank_test.h"
#include "results/compare_key.h"

/* ---- entries of a side, sorted -----------------------------------------------------------------
 */

struct entries {
    struct nw_compare_entry *items;
    size_t count;
};

struct sorting {
    uint32_t mask;
};

static int by_key(const void *a, const void *b, void *sorting)
{
    return nw_compare_order(a, b, ((const struct sorting *)sorting)->mask);
}

static nw_rc list_entries(const struct nw_compare_plan *plan, const struct nw_results *results,
                          uint32_t mask, struct entries *entries_out)
{
    const size_t most = nw_results_record_count(results);
    struct entries entries = {.items = calloc(most + 1, sizeof *entries.items)};
    struct sorting sorting = {mask};

    if (entries.items == NULL)
        return nw_fail(NW_ENOMEM, "no memory to compare %zu results", most);
    for (size_t r = 0; r < results->run_count; r++)
        for (size_t i = 0; i < results->runs[r].record_count; i++) {
            const struct nw_run *run = &results->runs[r];
            const struct nw_record *record = &run->records[i];

            if (!nw_select_takes(&plan->select, record, &run->context))
                continue;
            if (nw_compare_usable(record))
                entries.items[entries.count++] = (struct nw_compare_entry){record, &run->context};
        }
    /* glibc's is stable: records of a row stay in their order */
    qsort_r(entries.items, entries.count, sizeof *entries.items, by_key, &sorting);
    *entries_out = entries;
    return NW_OK;
}

/* How many entries from `at` on are of one thing. */
static size_t same_from(const struct entries *entries, size_t at, uint32_t mask)
{
    size_t same = 1;

    while (at + same < entries->count &&
           nw_compare_order(&entries->items[at], &entries->items[at + same], mask) == 0)
        same++;
    return same;
}

/* ---- a row -------------------------------------------------------------------------------------
 */

struct series {
    double *values;
    size_t count;
    double median, rate; /* of the runs' medians */
    double run_least, run_most;
};

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* The raw samples of all records that have some; else each record's one figure. */
static nw_rc take_series(const struct nw_compare_entry *entries, size_t count,
                         struct series *series_out)
{
    struct series series = {.run_least = INFINITY, .run_most = 0, .rate = NAN};
    size_t samples = 0;

    for (size_t i = 0; i < count; i++)
        if (entries[i].record->samples_ns != NULL)
            samples += entries[i].record->time_ns.count;
    series.values = malloc((samples + count) * sizeof *series.values);
    if (series.values == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu samples", samples);
    for (size_t i = 0; i < count; i++) {
        const double time = nw_compare_time(entries[i].record);

        series.values[i] = time;
        series.run_least = fmin(series.run_least, time);
        series.run_most = fmax(series.run_most, time);
        series.rate = isnan(series.rate) ? nw_compare_rate(entries[i].record)
                                         : fmax(series.rate, nw_compare_rate(entries[i].record));
    }
    qsort(series.values, count, sizeof *series.values, by_value);
    series.median = nw_quantile_sorted(series.values, count, 0.5);
    series.count = count;
    if (samples > 0)
        series.count = 0;
    for (size_t i = 0; i < count; i++) { /* in the order of measurement again */
        const struct nw_record *record = entries[i].record;

        if (samples == 0)
            series.values[i] = nw_compare_time(record);
        for (size_t k = 0; record->samples_ns != NULL && k < record->time_ns.count; k++)
            if (record->samples_ns[k] > 0)
                series.values[series.count++] = record->samples_ns[k];
    }
    if (series.count == 0) { /* samples of 0 ns are none */
        series.values[0] = series.median;
        series.count = 1;
    }
    *series_out = series;
    return NW_OK;
}

/* Several runs on each side whose medians overlap differ as much among themselves. */
static bool runs_overlap(const struct nw_compare_row *row, const struct series *a,
                         const struct series *b)
{
    return row->a_runs > 1 && row->b_runs > 1 &&
           !(a->run_most < b->run_least || b->run_most < a->run_least);
}

static nw_rc test_row(struct nw_compare_row *row, const struct series *a, const struct series *b)
{
    struct nw_rank_test test;

    const bool timed = isfinite(row->like->time_ns.median);

    row->a_time_ns = timed ? a->median : NAN; /* else in proportion only */
    row->b_time_ns = timed ? b->median : NAN;
    row->a_rate = a->rate;
    row->b_rate = b->rate;
    row->a_samples = a->count;
    row->b_samples = b->count;
    row->speed = (struct nw_value){a->median / b->median, NAN, NAN};
    row->p = row->p_joint = NAN;
    row->runs_disagree = runs_overlap(row, a, b);
    if (a->count < 2 || b->count < 2)
        return NW_OK;
    NW_TRY(nw_rank_test_of(a->values, a->count, b->values, b->count, &test));
    /* speed is the inverse of the ratio of times */
    row->speed = (struct nw_value){1 / test.ratio, 1 / test.high, 1 / test.low};
    row->p = row->p_joint = test.p;
    return NW_OK;
}

static nw_rc add_row(struct nw_comparison *comparison, size_t side,
                     const struct nw_compare_entry *a, size_t a_count,
                     const struct nw_compare_entry *b, size_t b_count)
{
    struct series of_a, of_b;
    struct nw_compare_row *grown =
        realloc(comparison->rows, (comparison->row_count + 1) * sizeof *comparison->rows);

    if (grown == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a comparison");
    comparison->rows = grown;
    struct nw_compare_row *row = &grown[comparison->row_count];

    *row = (struct nw_compare_row){
        .side = side, .like = a->record, .a_runs = a_count, .b_runs = b_count};
    NW_TRY(take_series(a, a_count, &of_a));
    nw_rc rc = take_series(b, b_count, &of_b);

    if (rc == NW_OK) {
        rc = test_row(row, &of_a, &of_b);
        free(of_b.values);
    }
    free(of_a.values);
    comparison->row_count += rc == NW_OK;
    comparison->simulated = comparison->simulated || a->record->simulated || a->context->simulated;
    return rc;
}

/* ---- what has no partner -----------------------------------------------------------------------
 */

/* The first of `others` with this case, collective and size, or what would come behind it. */
static size_t first_of_size(const struct nw_compare_entry *entry, const struct entries *others)
{
    size_t low = 0, high = others->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (nw_compare_order_size(&others->items[middle], entry) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Why `entry` has none among `others`: the one that is nearest to it. */
static void find_reason(const struct nw_compare_entry *entry, const struct entries *others,
                        uint32_t mask, bool of_first, char *reason, size_t size)
{
    const struct nw_compare_entry *nearest = NULL;
    size_t least = SIZE_MAX;

    for (size_t i = first_of_size(entry, others);
         i < others->count && nw_compare_order_size(entry, &others->items[i]) == 0; i++) {
        const size_t differences = nw_compare_differences(entry, &others->items[i], mask, NULL, 0);

        if (differences < least) {
            least = differences;
            nearest = &others->items[i];
        }
    }
    if (nearest != NULL && of_first)
        nw_compare_differences(entry, nearest, mask, reason, size);
    else if (nearest != NULL)
        nw_compare_differences(nearest, entry, mask, reason, size);
    else
        snprintf(reason, size, "the other side has no result of this case, collective and size");
}

static nw_rc add_refusal(struct nw_comparison *comparison, size_t side, bool of_first,
                         const struct nw_record *record, const char *reason)
{
    for (size_t i = 0; i < comparison->refusal_count; i++) {
        struct nw_compare_refusal *refusal = &comparison->refusals[i];

        if (refusal->side != side || refusal->of_first != of_first ||
            strcmp(refusal->reason, reason) != 0 ||
            strcmp(refusal->like->case_name, record->case_name) != 0 ||
            strcmp(refusal->like->collective, record->collective) != 0)
            continue;
        refusal->count++;
        refusal->min_bytes =
            record->bytes < refusal->min_bytes ? record->bytes : refusal->min_bytes;
        refusal->max_bytes =
            record->bytes > refusal->max_bytes ? record->bytes : refusal->max_bytes;
        return NW_OK;
    }
    struct nw_compare_refusal *grown = realloc(
        comparison->refusals, (comparison->refusal_count + 1) * sizeof *comparison->refusals);

    if (grown == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a comparison");
    comparison->refusals = grown;
    struct nw_compare_refusal *refusal = &grown[comparison->refusal_count++];

    *refusal = (struct nw_compare_refusal){.side = side,
                                           .of_first = of_first,
                                           .like = record,
                                           .count = 1,
                                           .min_bytes = record->bytes,
                                           .max_bytes = record->bytes};
    snprintf(refusal->reason, sizeof refusal->reason, "%s", reason);
    return NW_OK;
}

static nw_rc refuse(struct nw_comparison *comparison, size_t side, bool of_first,
                    const struct nw_compare_entry *entry, const struct entries *others,
                    uint32_t mask)
{
    char reason[256];

    find_reason(entry, others, mask, of_first, reason, sizeof reason);
    return add_refusal(comparison, side, of_first, entry->record, reason);
}

static nw_rc merge(struct nw_comparison *comparison, size_t side, const struct entries *a,
                   const struct entries *b, uint32_t mask)
{
    size_t i = 0, k = 0;

    while (i < a->count || k < b->count) {
        const size_t of_a = i < a->count ? same_from(a, i, mask) : 0;
        const size_t of_b = k < b->count ? same_from(b, k, mask) : 0;
        const int order = of_a == 0   ? 1
                          : of_b == 0 ? -1
                                      : nw_compare_order(&a->items[i], &b->items[k], mask);

        if (order == 0)
            NW_TRY(add_row(comparison, side, &a->items[i], of_a, &b->items[k], of_b));
        else if (order < 0)
            NW_TRY(refuse(comparison, side, true, &a->items[i], b, mask));
        else
            NW_TRY(refuse(comparison, side, false, &b->items[k], a, mask));
        i += order <= 0 ? of_a : 0;
        k += order >= 0 ? of_b : 0;
    }
    return NW_OK;
}

/* ---- verdicts ----------------------------------------------------------------------------------
 */

static nw_compare_verdict verdict_of(const struct nw_compare_row *row, double threshold)
{
    const double least = log1p(threshold), difference = log(row->speed.value);

    if (isnan(row->p))
        return NW_COMPARE_NO_SAMPLES;
    if (row->p_joint <= NW_COMPARE_ALPHA && fabs(difference) >= least && !row->runs_disagree)
        return difference > 0 ? NW_COMPARE_FASTER : NW_COMPARE_SLOWER;
    if (fabs(log(row->speed.low)) <= least && fabs(log(row->speed.high)) <= least)
        return NW_COMPARE_SAME;
    return NW_COMPARE_UNCLEAR;
}

static nw_rc judge(struct nw_comparison *comparison)
{
    double *p = malloc((comparison->row_count + 1) * sizeof *p);

    if (p == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu tests", comparison->row_count);
    for (size_t i = 0; i < comparison->row_count; i++) {
        p[i] = comparison->rows[i].p;
        comparison->tested_count += !isnan(p[i]);
    }
    const nw_rc rc = nw_holm(p, comparison->row_count);

    for (size_t i = 0; rc == NW_OK && i < comparison->row_count; i++) {
        struct nw_compare_row *row = &comparison->rows[i];

        row->p_joint = p[i];
        row->verdict = verdict_of(row, comparison->threshold);
        comparison->verdicts[row->verdict]++;
    }
    free(p);
    return rc;
}

static nw_rc compare_all(const struct nw_compare_plan *plan, uint32_t mask,
                         struct nw_comparison *comparison)
{
    struct entries first;
    nw_rc rc = NW_OK;

    NW_TRY(list_entries(plan, comparison->sides[0].results, mask, &first));
    for (size_t side = 1; side < comparison->side_count && rc == NW_OK; side++) {
        struct entries other;

        rc = list_entries(plan, comparison->sides[side].results, mask, &other);
        if (rc != NW_OK)
            break;
        rc = merge(comparison, side, &first, &other, mask);
        free(other.items);
    }
    free(first.items);
    return rc == NW_OK ? judge(comparison) : rc;
}

nw_rc nw_compare(const struct nw_compare_plan *plan, const struct nw_compare_side *sides,
                 size_t side_count, struct nw_comparison *comparison_out)
{
    struct nw_comparison comparison = {.side_count = side_count, .threshold = plan->threshold};
    uint32_t mask;

    NW_TRY(nw_compare_across(plan->across, &mask));
    comparison.sides = malloc(side_count * sizeof *sides);
    if (comparison.sides == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a comparison");
    memcpy(comparison.sides, sides, side_count * sizeof *sides);
    const nw_rc rc = compare_all(plan, mask, &comparison);

    if (rc == NW_OK)
        *comparison_out = comparison;
    else
        nw_comparison_free(&comparison);
    return rc;
}

void nw_comparison_free(struct nw_comparison *comparison)
{
    free(comparison->sides);
    free(comparison->rows);
    free(comparison->refusals);
    *comparison = (struct nw_comparison){0};
}
