#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static const struct nw_stats nw_stats_unknown = {
    .count = 0,
    .median = NAN,
    .low = NAN,
    .high = NAN,
    .level = NAN,
    .min = NAN,
    .p25 = NAN,
    .p75 = NAN,
    .p95 = NAN,
    .p99 = NAN,
    .max = NAN,
    .mean = NAN,
    .stddev = NAN,
    .mad = NAN,
};

double nw_quantile_sorted(const double *sorted, size_t count, double q)
{
    const double position = q * (double)(count - 1);
    const size_t below = (size_t)position;
    const double share = position - (double)below;

    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

/* The largest d (1-based) with P(x_(d) <= median <= x_(n+1-d)) = 1 - 2 P(B <= d - 1) >= 0.95,
 * B ~ binomial(n, 1/2); 0: none (n < 6). The sum starts where the terms are below e^-800: 40
 * standard deviations under the mean. */
static size_t median_interval(size_t n, double *level_out)
{
    const double nd = (double)n;
    const double start = floor(nd / 2 - 20 * sqrt(nd));
    const size_t first = start > 0 ? (size_t)start : 0;
    int sign;
    double log_term = lgamma_r(nd + 1, &sign) - lgamma_r((double)first + 1, &sign) -
                      lgamma_r(nd - (double)first + 1, &sign) - nd * M_LN2;
    double below = 0; /* P(B <= k) */
    size_t found = 0;

    for (size_t k = first; 2 * k < n; k++) {
        below += exp(log_term);
        const double level = 1 - 2 * below;

        if (level < 0.95)
            break;
        found = k + 1;
        *level_out = level;
        log_term += log((nd - (double)k) / ((double)k + 1));
    }
    return found;
}

static void set_moments(const double *values, size_t count, struct nw_stats *stats)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i] / (double)count; /* each divided: no overflow of the sum */
    stats->mean = sum;
    if (count < 2)
        return;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - sum) * (values[i] - sum);
    stats->stddev = sqrt(squares / (double)(count - 1));
}

nw_rc nw_stats_of(const double *values, size_t count, struct nw_stats *stats_out)
{
    struct nw_stats stats = nw_stats_unknown;

    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return nw_fail(NW_EUSAGE, "statistics: value %zu of %zu is not a finite number", i + 1,
                           count);
    if (count == 0) {
        *stats_out = stats;
        return NW_OK;
    }
    double *sorted = malloc(count * sizeof *sorted);

    if (sorted == NULL)
        return nw_fail(NW_ENOMEM, "statistics: no memory for %zu values", count);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    stats.count = count;
    stats.min = sorted[0];
    stats.max = sorted[count - 1];
    stats.median = nw_quantile_sorted(sorted, count, 0.5);
    stats.p25 = nw_quantile_sorted(sorted, count, 0.25);
    stats.p75 = nw_quantile_sorted(sorted, count, 0.75);
    stats.p95 = nw_quantile_sorted(sorted, count, 0.95);
    stats.p99 = nw_quantile_sorted(sorted, count, 0.99);
    set_moments(sorted, count, &stats);

    const size_t rank = median_interval(count, &stats.level);

    if (rank > 0) {
        stats.low = sorted[rank - 1];
        stats.high = sorted[count - rank];
    } else {
        stats.low = stats.min;
        stats.high = stats.max;
        stats.level = 1 - exp2(1 - (double)count); /* P(min <= median <= max) */
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = fabs(sorted[i] - stats.median);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    stats.mad = nw_quantile_sorted(sorted, count, 0.5);
    free(sorted);
    *stats_out = stats;
    return NW_OK;
}

struct nw_stats nw_stats_single(double value)
{
    struct nw_stats stats = nw_stats_unknown;

    if (!isfinite(value))
        return stats;
    stats.count = 1;
    stats.median = stats.min = stats.max = value;
    return stats;
}

double nw_stats_rel_half_interval(const struct nw_stats *stats)
{
    if (stats->count < 2 || !(stats->median > 0))
        return NAN;
    return (stats->high - stats->low) / 2 / stats->median;
}

nw_rc nw_fit_line(const double *x, const double *y, size_t count, double *a_out, double *b_out)
{
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;

    for (size_t i = 0; i < count; i++) {
        mean_x += x[i] / (double)count;
        mean_y += y[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    if (count < 2 || !(xx > 0) || !isfinite(xx) || !isfinite(xy))
        return nw_fail(NW_EUSAGE, "fitting a line needs two different finite x; %zu points given",
                       count);
    *b_out = xy / xx;
    *a_out = mean_y - *b_out * mean_x;
    return NW_OK;
}

double nw_modified_z(double value, double median, double mad)
{
    return mad > 0 ? 0.6745 * (value - median) / mad : 0;
}
