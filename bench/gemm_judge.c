#include "bench/gemm_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/nvml_api.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts `values`; NAN of none. */
static double median_of(double *values, size_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double nw_gemm_drift(const double *samples_ns, size_t count)
{
    const size_t quarter = count / 4;
    double median_ns[2];

    if (count < 8)
        return NAN;
    for (int end = 0; end < 2; end++) {
        struct nw_stats stats;

        if (nw_stats_of(samples_ns + (end == 0 ? 0 : count - quarter), quarter, &stats) != NW_OK)
            return NAN;
        median_ns[end] = stats.median;
    }
    return median_ns[1] / median_ns[0] - 1;
}

static bool same_kind(const struct nw_gemm_rate *a, const struct nw_gemm_rate *b)
{
    return a->lane == b->lane && strcmp(a->dtype, b->dtype) == 0 && strcmp(a->model, b->model) == 0;
}

static double usual_of(const struct nw_gemm_rate *rates, size_t count,
                       const struct nw_gemm_rate *rate)
{
    double *values = calloc(count, sizeof *values);
    size_t used = 0;
    double usual = NAN;

    for (size_t i = 0; values != NULL && i < count; i++)
        if (same_kind(&rates[i], rate) && rates[i].flop_per_s > 0)
            values[used++] = rates[i].flop_per_s;
    if (used > 1)
        usual = median_of(values, used);
    free(values);
    return usual;
}

/* The rank's fault, if it has one already. */
static struct nw_gemm_fault *fault_of(struct nw_gemm_fault *faults, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        if (faults[i].rank == rank)
            return &faults[i];
    return NULL;
}

static int by_rank(const void *a, const void *b)
{
    const struct nw_gemm_fault *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* `badness` of a rate: NAN or 0: nothing; the worst of a GPU's rates stands for it. */
static size_t collect(const struct nw_gemm_rate *rates, size_t count,
                      double (*badness)(const struct nw_gemm_rate *rate, double usual),
                      struct nw_gemm_fault *faults_out)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        const double usual = usual_of(rates, count, &rates[i]);
        struct nw_gemm_fault *fault = fault_of(faults_out, used, rates[i].rank);

        if (!(badness(&rates[i], usual) > 0))
            continue;
        if (fault != NULL && badness(fault->rate, fault->usual) >= badness(&rates[i], usual))
            continue;
        if (fault == NULL)
            fault = &faults_out[used++];
        *fault = (struct nw_gemm_fault){.rank = rates[i].rank, .rate = &rates[i], .usual = usual};
    }
    qsort(faults_out, used, sizeof *faults_out, by_rank);
    return used;
}

static double slowness(const struct nw_gemm_rate *rate, double usual)
{
    const double below = 1 - rate->flop_per_s / usual;

    return below > NW_GEMM_SLOW_REL ? below : 0;
}

static double drifting(const struct nw_gemm_rate *rate, double usual)
{
    (void)usual;
    return rate->drift > NW_GEMM_DRIFT_REL ? rate->drift : 0;
}

/* 1 and the share of the clock that is lost. */
static double lost_clock(const struct nw_gemm_rate *rate)
{
    const double lost = 1 - rate->during.sm_clock_hz / rate->during.sm_max_clock_hz;

    return lost > 0 ? 1 + lost : 1;
}

static int64_t bad_bits(const struct nw_gemm_rate *rate)
{
    return rate->during.throttle > 0 ? rate->during.throttle & NW_THROTTLE_BAD : 0;
}

static double throttling(const struct nw_gemm_rate *rate, double usual)
{
    (void)usual;
    return bad_bits(rate) & ~(int64_t)NW_THROTTLE_POWER_CAP ? lost_clock(rate) : 0;
}

static double capping(const struct nw_gemm_rate *rate, double usual)
{
    (void)usual;
    return bad_bits(rate) == NW_THROTTLE_POWER_CAP ? lost_clock(rate) : 0;
}

size_t nw_gemm_slow(const struct nw_gemm_rate *rates, size_t count,
                    struct nw_gemm_fault *faults_out)
{
    return collect(rates, count, slowness, faults_out);
}

size_t nw_gemm_drifting(const struct nw_gemm_rate *rates, size_t count,
                        struct nw_gemm_fault *faults_out)
{
    return collect(rates, count, drifting, faults_out);
}

size_t nw_gemm_throttled(const struct nw_gemm_rate *rates, size_t count,
                         struct nw_gemm_fault *faults_out)
{
    return collect(rates, count, throttling, faults_out);
}

size_t nw_gemm_power_capped(const struct nw_gemm_rate *rates, size_t count,
                            struct nw_gemm_fault *faults_out)
{
    return collect(rates, count, capping, faults_out);
}

double nw_gemm_median(const struct nw_gemm_rate *rates, size_t count, int lane, const char *dtype)
{
    double *values = calloc(count > 0 ? count : 1, sizeof *values);
    size_t used = 0;
    double median;

    for (size_t i = 0; values != NULL && i < count; i++)
        if (rates[i].lane == lane && strcmp(rates[i].dtype, dtype) == 0 && rates[i].flop_per_s > 0)
            values[used++] = rates[i].flop_per_s;
    median = median_of(values, used);
    free(values);
    return median;
}

double nw_hidden_share(double one_ns, double other_ns, double together_ns)
{
    const double hidden = (one_ns + other_ns - together_ns) / fmin(one_ns, other_ns);

    return fmin(fmax(hidden, 0), 1);
}
