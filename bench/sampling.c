#include "bench/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* Then a budget holds some 400 samples: more do not narrow the interval by much, but fill the
 * file. */
#define SAMPLES_A_BUDGET   400
#define RECALIBRATIONS_MAX 3
#define CALIBRATION_GROWTH 100 /* at most, from one calibration sample to the next */
#define PROBE_CALLS        4
#define DRIFT_REL          0.05
#define DRIFT_SAMPLES_MIN  12 /* two halves of six: each has a 95 % interval */

struct series {                  /* one group */
    double *times_ns, *skews_ns; /* of one call */
    double rel_half_interval;    /* NAN: fewer than two samples */
};

struct nw_sampling {
    struct nw_sampling_rules rules;
    int rank_count, group_count;
    int *group_of_rank;
    uint32_t *slowest_count; /* of each rank */
    struct series *series;   /* of each group */
    size_t count, capacity;
    double target_ns, elapsed_ns, began_ns;
    uint32_t calls, calls_limit;
    double first_call_ns; /* being probed; 0: no reason to */
    int recalibrations;
    bool calibrating;
    nw_stop stop;
};

static uint32_t limit_calls(const struct nw_sampling_rules *rules)
{
    uint64_t limit = NW_CALLS_MAX;

    if (rules->fixed_calls > 0 && rules->fixed_calls / rules->min_samples < limit)
        limit = rules->fixed_calls / rules->min_samples;
    if (rules->calls_max > 0 && rules->calls_max < limit)
        limit = rules->calls_max;
    return limit > 0 ? (uint32_t)limit : 1;
}

nw_rc nw_sampling_open(const struct nw_sampling_rules *rules, const int *group_of_rank,
                       int rank_count, int group_count, struct nw_sampling **sampling_out)
{
    struct nw_sampling *sampling = calloc(1, sizeof *sampling);

    if (sampling == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a series of samples");
    sampling->rules = *rules;
    if (sampling->rules.min_samples == 0)
        sampling->rules.min_samples = 1;
    sampling->rank_count = rank_count;
    sampling->group_count = group_count;
    sampling->group_of_rank = calloc((size_t)rank_count, sizeof *sampling->group_of_rank);
    sampling->slowest_count = calloc((size_t)rank_count, sizeof *sampling->slowest_count);
    sampling->series = calloc((size_t)group_count, sizeof *sampling->series);
    if (sampling->group_of_rank == NULL || sampling->slowest_count == NULL ||
        sampling->series == NULL) {
        nw_sampling_close(sampling);
        return nw_fail(NW_ENOMEM, "no memory for the samples of %d ranks", rank_count);
    }
    memcpy(sampling->group_of_rank, group_of_rank,
           (size_t)rank_count * sizeof *sampling->group_of_rank);
    sampling->target_ns = fmax(NW_SAMPLE_MIN_NS, rules->budget_ns / SAMPLES_A_BUDGET) *
                          (rules->least_factor > 0 ? rules->least_factor : 1);
    sampling->calls = 1;
    sampling->calls_limit = limit_calls(&sampling->rules);
    sampling->calibrating = true;
    *sampling_out = sampling;
    return NW_OK;
}

void nw_sampling_close(struct nw_sampling *sampling)
{
    if (sampling == NULL)
        return;
    for (int group = 0; sampling->series != NULL && group < sampling->group_count; group++) {
        free(sampling->series[group].times_ns);
        free(sampling->series[group].skews_ns);
    }
    free(sampling->series);
    free(sampling->slowest_count);
    free(sampling->group_of_rank);
    free(sampling);
}

uint32_t nw_sampling_calls(const struct nw_sampling *sampling)
{
    return sampling->calls;
}

bool nw_sampling_calibrates(const struct nw_sampling *sampling)
{
    return sampling->calibrating;
}

static size_t fixed_samples(const struct nw_sampling *sampling)
{
    return (size_t)(sampling->rules.fixed_calls / sampling->calls);
}

static size_t smallest(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nw_sampling_next(const struct nw_sampling *sampling)
{
    size_t batch;
    double left;

    if (sampling->stop != NW_STOP_UNKNOWN)
        return 0;
    if (sampling->calibrating)
        return 1;
    if (sampling->rules.fixed_calls > 0)
        return smallest(fixed_samples(sampling) - sampling->count, NW_BATCH_MAX);
    if (sampling->count < sampling->rules.min_samples)
        return smallest(sampling->rules.min_samples - sampling->count, NW_BATCH_MAX);
    batch = smallest(smallest(sampling->count, NW_BATCH_MAX), NW_SAMPLES_MAX - sampling->count);
    left = (sampling->rules.budget_ns - sampling->elapsed_ns) /
           ((sampling->elapsed_ns - sampling->began_ns) / (double)sampling->count);
    if (left < (double)batch)
        batch = left > 1 ? (size_t)left : 1;
    return batch;
}

struct extremes {
    double slowest_ns, fastest_ns;
    int slowest_rank;
};

/* Slowest and fastest rank of a group in sample `i`. */
static struct extremes extremes_of(const struct nw_sampling *sampling, int group,
                                   const double *times, size_t stride, size_t i)
{
    struct extremes extremes = {.slowest_ns = -1, .fastest_ns = INFINITY, .slowest_rank = -1};

    for (int rank = 0; rank < sampling->rank_count; rank++) {
        const double time_ns = times[(size_t)rank * stride + i];

        if (sampling->group_of_rank[rank] != group)
            continue;
        if (time_ns > extremes.slowest_ns) {
            extremes.slowest_ns = time_ns;
            extremes.slowest_rank = rank;
        }
        if (time_ns < extremes.fastest_ns)
            extremes.fastest_ns = time_ns;
    }
    return extremes;
}

/* The largest divisor of `whole` up to `most`: samples of equal length that add up to it. */
static uint32_t divisor_up_to(uint64_t whole, uint32_t most)
{
    while (most > 1 && whole % most != 0)
        most--;
    return most;
}

static uint32_t raised_calls(const struct nw_sampling *sampling, double sample_ns)
{
    double factor = sample_ns > 0 ? 1.25 * sampling->target_ns / sample_ns : CALIBRATION_GROWTH;
    double calls;

    factor = fmin(fmax(factor, 2), CALIBRATION_GROWTH);
    calls = ceil(sampling->calls * factor);
    return calls < sampling->calls_limit ? (uint32_t)calls : sampling->calls_limit;
}

/* The slowest rank's sample should fit the budget min_samples times; four times over is too much.
 */
static uint32_t lowered_calls(const struct nw_sampling *sampling, double slowest_ns)
{
    const double fitting_ns = sampling->rules.budget_ns / (double)sampling->rules.min_samples;
    const double calls = sampling->calls * fitting_ns / slowest_ns;

    if (slowest_ns <= 4 * fitting_ns)
        return sampling->calls;
    return calls > 1 ? (uint32_t)calls : 1;
}

/* A first call that takes long may be a long call, or one that waited for a rank without a CPU.
 * Four calls, of which the fastest counts, tell: the wait comes once a sample. True: ask. */
static bool wants_probe(const struct nw_sampling *sampling, double fastest_ns, double slowest_ns)
{
    return sampling->calls == 1 && sampling->first_call_ns == 0 &&
           fastest_ns >= sampling->target_ns && slowest_ns <= sampling->rules.budget_ns / 2 &&
           sampling->calls_limit >= PROBE_CALLS;
}

static void end_calibration(struct nw_sampling *sampling, uint32_t calls)
{
    sampling->calls =
        sampling->rules.fixed_calls > 0 ? divisor_up_to(sampling->rules.fixed_calls, calls) : calls;
    sampling->calibrating = false;
    sampling->began_ns = sampling->elapsed_ns;
}

static void calibrate(struct nw_sampling *sampling, const double *times, size_t stride)
{
    double fastest_ns = INFINITY, slowest_ns = 0; /* of the groups */

    for (int group = 0; group < sampling->group_count; group++) {
        const double group_ns = extremes_of(sampling, group, times, stride, 0).slowest_ns;

        fastest_ns = fmin(fastest_ns, group_ns);
        slowest_ns = fmax(slowest_ns, group_ns);
    }
    if (wants_probe(sampling, fastest_ns, slowest_ns)) {
        sampling->first_call_ns = fastest_ns;
        sampling->calls = PROBE_CALLS;
        return;
    }
    if (sampling->calls == PROBE_CALLS && sampling->first_call_ns > 0 &&
        fastest_ns >= sampling->first_call_ns * PROBE_CALLS / 2) {
        end_calibration(sampling, 1);
    } else if (sampling->rules.fixed_calls == 0 &&
               lowered_calls(sampling, slowest_ns) < sampling->calls) {
        sampling->recalibrations = RECALIBRATIONS_MAX;
        end_calibration(sampling, lowered_calls(sampling, slowest_ns));
    } else if (fastest_ns < sampling->target_ns && sampling->calls < sampling->calls_limit) {
        sampling->calls = raised_calls(sampling, fastest_ns);
    } else {
        end_calibration(sampling, sampling->calls);
    }
}

static nw_rc make_room(struct nw_sampling *sampling, size_t wanted)
{
    size_t capacity = sampling->capacity > 0 ? sampling->capacity : 64;

    if (wanted <= sampling->capacity)
        return NW_OK;
    while (capacity < wanted)
        capacity *= 2;
    for (int group = 0; group < sampling->group_count; group++) {
        struct series *series = &sampling->series[group];
        double *times_ns = realloc(series->times_ns, capacity * sizeof *times_ns);
        double *skews_ns;

        if (times_ns != NULL)
            series->times_ns = times_ns;
        skews_ns = realloc(series->skews_ns, capacity * sizeof *skews_ns);
        if (skews_ns != NULL)
            series->skews_ns = skews_ns;
        if (times_ns == NULL || skews_ns == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu samples of %d groups", capacity,
                           sampling->group_count);
    }
    sampling->capacity = capacity;
    return NW_OK;
}

static void append(struct nw_sampling *sampling, size_t batch, const double *times, size_t stride)
{
    for (int group = 0; group < sampling->group_count; group++) {
        struct series *series = &sampling->series[group];

        for (size_t i = 0; i < batch; i++) {
            const struct extremes extremes = extremes_of(sampling, group, times, stride, i);

            series->times_ns[sampling->count + i] = extremes.slowest_ns / sampling->calls;
            series->skews_ns[sampling->count + i] =
                (extremes.slowest_ns - extremes.fastest_ns) / sampling->calls;
            if (extremes.slowest_rank >= 0)
                sampling->slowest_count[extremes.slowest_rank]++;
        }
    }
    sampling->count += batch;
}

/* Was the calibration misled? Then start again with more calls a sample. */
static bool recalibrated(struct nw_sampling *sampling, double fastest_median_ns)
{
    const double sample_ns = fastest_median_ns * sampling->calls;

    if (sampling->rules.fixed_calls > 0 || sampling->recalibrations == RECALIBRATIONS_MAX ||
        sample_ns >= sampling->target_ns / 2 || sampling->calls == sampling->calls_limit)
        return false;
    sampling->calls = raised_calls(sampling, sample_ns);
    sampling->recalibrations++;
    sampling->count = 0;
    sampling->began_ns = sampling->elapsed_ns;
    memset(sampling->slowest_count, 0,
           (size_t)sampling->rank_count * sizeof *sampling->slowest_count);
    return true;
}

static nw_rc judge(struct nw_sampling *sampling)
{
    double fastest_median_ns = INFINITY;
    bool converged = true;

    for (int group = 0; group < sampling->group_count; group++) {
        struct nw_stats stats;

        NW_TRY(nw_stats_of(sampling->series[group].times_ns, sampling->count, &stats));
        sampling->series[group].rel_half_interval = nw_stats_rel_half_interval(&stats);
        fastest_median_ns = fmin(fastest_median_ns, stats.median);
        if (!(sampling->series[group].rel_half_interval <= sampling->rules.stop_rel_ci))
            converged = false;
    }
    if (recalibrated(sampling, fastest_median_ns))
        return NW_OK;
    if (sampling->rules.fixed_calls > 0) {
        if (sampling->count >= fixed_samples(sampling))
            sampling->stop = NW_STOP_FIXED;
    } else if (sampling->count < sampling->rules.min_samples) {
        return NW_OK;
    } else if (converged) {
        sampling->stop = NW_STOP_CONVERGED;
    } else if (sampling->elapsed_ns >= sampling->rules.budget_ns ||
               sampling->count >= NW_SAMPLES_MAX) {
        sampling->stop = NW_STOP_BUDGET;
    }
    return NW_OK;
}

nw_rc nw_sampling_add(struct nw_sampling *sampling, size_t batch, const double *times,
                      size_t stride, double elapsed_ns)
{
    sampling->elapsed_ns = elapsed_ns;
    if (sampling->calibrating) {
        calibrate(sampling, times, stride);
        return NW_OK;
    }
    NW_TRY(make_room(sampling, sampling->count + batch));
    append(sampling, batch, times, stride);
    return judge(sampling);
}

static nw_rc warn_wide(const struct nw_sampling *sampling, int group, struct nw_record *record)
{
    const double rel = sampling->series[group].rel_half_interval;

    if (sampling->stop != NW_STOP_BUDGET || rel <= sampling->rules.stop_rel_ci)
        return NW_OK;
    return nw_findings_add(&record->warnings, NW_FINDING_INFO, "interval-wide", record->collective,
                           "a larger --budget, or a quieter machine",
                           "the interval of the median is +/-%.1f %%, not within %.1f %%, when the "
                           "time budget was spent",
                           100 * rel, 100 * sampling->rules.stop_rel_ci);
}

static nw_rc warn_drift(const struct series *series, size_t count, struct nw_record *record)
{
    const size_t half = count / 2;
    struct nw_stats first, second;
    char before[32], after[32];

    if (count < DRIFT_SAMPLES_MIN)
        return NW_OK;
    NW_TRY(nw_stats_of(series->times_ns, half, &first));
    NW_TRY(nw_stats_of(series->times_ns + half, count - half, &second));
    if ((first.low <= second.high && second.low <= first.high) ||
        fabs(second.median / first.median - 1) < DRIFT_REL)
        return NW_OK;
    return nw_findings_add(&record->warnings, NW_FINDING_WARN, "drift", record->collective,
                           "more --warmup_iters, or look for what else runs on these hosts",
                           "the first half of the samples has a median of %s, the second of %s",
                           nw_format_ns(before, first.median), nw_format_ns(after, second.median));
}

static void report_slowest(const struct nw_sampling *sampling, int group, struct nw_record *record)
{
    for (int rank = 0; rank < sampling->rank_count; rank++) {
        const double share = (double)sampling->slowest_count[rank] / (double)sampling->count;

        if (sampling->group_of_rank[rank] == group &&
            (record->slowest_rank < 0 || share > record->slowest_share)) {
            record->slowest_rank = rank;
            record->slowest_share = share;
        }
    }
}

nw_rc nw_sampling_report(const struct nw_sampling *sampling, int group, struct nw_record *record)
{
    const struct series *series = &sampling->series[group];
    struct nw_stats skew;
    double *samples_ns;

    if (sampling->count == 0)
        return NW_OK;
    NW_TRY(nw_stats_of(series->times_ns, sampling->count, &record->time_ns));
    NW_TRY(nw_stats_of(series->skews_ns, sampling->count, &skew));
    samples_ns = malloc(sampling->count * sizeof *samples_ns);
    if (samples_ns == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu samples", sampling->count);
    memcpy(samples_ns, series->times_ns, sampling->count * sizeof *samples_ns);
    free(record->samples_ns);
    record->samples_ns = samples_ns;
    record->calls_per_sample = sampling->calls;
    record->stop = sampling->stop;
    record->skew_ns = skew.median;
    report_slowest(sampling, group, record);
    NW_TRY(warn_wide(sampling, group, record));
    return warn_drift(series, sampling->count, record);
}
