/* Public. Summary of a series of measurements: order statistics only, no distribution assumed.
 *
 * Quantiles interpolate linearly between order statistics (Hyndman & Fan type 7). The interval of
 * the median is the distribution-free one from order statistics: P(x_(i) <= median <= x_(j)) from
 * the binomial distribution with p = 1/2 (David & Nagaraja, Order Statistics, 7.1), the narrowest
 * symmetric pair that holds at least 95 %. Below six values no pair reaches 95 %: then `low` and
 * `high` are the extremes and `level` says what they hold (5: 93.75 %).
 */
#ifndef NW_BASE_STATS_H
#define NW_BASE_STATS_H

#include <stddef.h>

#include "base/err.h"

struct nw_stats {
    size_t count;             /* 0: nothing measured, all else NAN */
    double median, low, high; /* interval of the median */
    double level;             /* what the interval holds, 0.95 and more; NAN: unknown (imported) */
    double min, p25, p75, p95, p99, max, mean;
    double stddev; /* NAN below two values */
    double mad;    /* median absolute deviation, unscaled */
};

/* `values` in any order, finite; not changed. NW_ENOMEM, or NW_EUSAGE when a value is not finite.
 */
nw_rc nw_stats_of(const double *values, size_t count, struct nw_stats *stats_out);
/* One published value without its series: median = min = max = value, everything else NAN. */
struct nw_stats nw_stats_single(double value);
/* (high - low) / 2 / median; NAN below two values. */
double nw_stats_rel_half_interval(const struct nw_stats *stats);

double nw_quantile_sorted(const double *sorted, size_t count,
                          double q); /* 0 <= q <= 1, count >= 1 */
/* Least squares y = a + b x; needs two different x. */
nw_rc nw_fit_line(const double *x, const double *y, size_t count, double *a_out, double *b_out);
/* Modified z-score 0.6745 (x - median) / MAD (Iglewicz & Hoaglin 1993); 0 when MAD is 0. */
double nw_modified_z(double value, double median, double mad);

#endif
