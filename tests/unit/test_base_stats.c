#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/stats.h"

#ifdef NW_HAVE_GSL
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#endif

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Small, repeatable, without the C library's rand. */
static double next_value(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / 2147483648.0;
}

Test(base_stats, a_series_by_hand)
{
    const double values[] = {5, 1, 4, 2, 3, 9, 7};
    struct nw_stats stats;

    cr_assert_eq(nw_stats_of(values, COUNT(values), &stats), NW_OK);
    cr_expect_eq(stats.count, 7);
    cr_expect_float_eq(stats.median, 4, 0);
    cr_expect_float_eq(stats.min, 1, 0);
    cr_expect_float_eq(stats.max, 9, 0);
    cr_expect_float_eq(stats.p25, 2.5, 1e-12);
    cr_expect_float_eq(stats.p75, 6, 1e-12);
    cr_expect_float_eq(stats.mad, 2, 0);
    cr_expect_float_eq(stats.low, 1, 0);
    cr_expect_float_eq(stats.high, 9, 0);
    cr_expect_float_eq(stats.level, 1 - 2.0 / 128, 1e-12);
    cr_expect_float_eq(nw_stats_rel_half_interval(&stats), 1, 1e-12);
    cr_expect_float_eq(values[0], 5, 0, "the input is not sorted in place");
}

Test(base_stats, few_values_say_less)
{
    static const struct {
        size_t count;
        double level;
    } rows[] = {{1, 0}, {2, 0.5}, {3, 0.75}, {4, 0.875}, {5, 0.9375}, {6, 0.96875}};
    const double values[] = {3, 1, 2, 6, 5, 4};
    struct nw_stats stats;

    for (size_t i = 0; i < COUNT(rows); i++) {
        cr_assert_eq(nw_stats_of(values, rows[i].count, &stats), NW_OK);
        cr_expect_float_eq(stats.level, rows[i].level, 1e-12, "%zu values", rows[i].count);
        cr_expect_float_eq(stats.low, stats.min, 0);
        cr_expect_float_eq(stats.high, stats.max, 0);
        cr_expect_eq(isnan(stats.stddev) != 0, rows[i].count < 2);
    }
    cr_assert_eq(nw_stats_of(values, 0, &stats), NW_OK);
    cr_expect_eq(stats.count, 0);
    cr_expect(isnan(stats.median) && isnan(stats.low) && isnan(stats.level) && isnan(stats.mean));

    stats = nw_stats_single(12);
    cr_expect_eq(stats.count, 1);
    cr_expect_float_eq(stats.median, 12, 0);
    cr_expect(isnan(stats.low) && isnan(stats.level) && isnan(stats.stddev));
    cr_expect(isnan(nw_stats_rel_half_interval(&stats)));
    stats = nw_stats_single(NAN);
    cr_expect_eq(stats.count, 0);
}

Test(base_stats, what_is_not_finite_is_refused)
{
    const double bad[][3] = {{1, NAN, 2}, {INFINITY, 1, 2}, {1, 2, -INFINITY}};
    struct nw_stats stats = {.count = 99};

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect_eq(nw_stats_of(bad[i], 3, &stats), NW_EUSAGE);
    cr_expect_eq(stats.count, 99);
    cr_expect(isnan(nw_stats_of((double[]){1e308, 1e308}, 2, &stats) == NW_OK ? NAN : 0));
    cr_expect_float_eq(stats.mean, 1e308, 1e295, "no overflow of the sum");
}

/* Exact for small n: counts subsets by Pascal's triangle. */
static double coverage(size_t n, size_t d)
{
    double row[64] = {1}, below = 0, total = 0;

    for (size_t k = 1; k <= n; k++)
        for (size_t j = k; j > 0; j--)
            row[j] += row[j - 1];
    for (size_t j = 0; j <= n; j++) {
        total += row[j];
        if (j < d)
            below += row[j];
    }
    return 1 - 2 * below / total;
}

Test(base_stats, the_interval_is_the_narrowest_symmetric_pair_with_95_percent)
{
    double values[60];
    struct nw_stats stats;

    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = (double)(i + 1); /* the value is its rank */
    for (size_t n = 6; n <= COUNT(values); n++) {
        cr_assert_eq(nw_stats_of(values, n, &stats), NW_OK);
        const size_t d = (size_t)stats.low;

        cr_expect_float_eq(stats.high, (double)(n + 1 - d), 0, "n = %zu: symmetric", n);
        cr_expect_float_eq(stats.level, coverage(n, d), 1e-9, "n = %zu: %.9f, not %.9f", n,
                           stats.level, coverage(n, d));
        cr_expect_geq(stats.level, 0.95, "n = %zu", n);
        cr_expect_lt(coverage(n, d + 1), 0.95, "n = %zu: a narrower pair would do", n);
    }
}

Test(base_stats, the_interval_holds_the_true_median_as_often_as_it_says)
{
    uint64_t state = 20261130;
    int held = 0;
    const int trials = 4000;

    for (int trial = 0; trial < trials; trial++) {
        double values[21];
        struct nw_stats stats;

        for (size_t i = 0; i < COUNT(values); i++)
            values[i] = -log(1 - next_value(&state)); /* exponential: median ln 2 */
        cr_assert_eq(nw_stats_of(values, COUNT(values), &stats), NW_OK);
        held += stats.low <= M_LN2 && M_LN2 <= stats.high;
    }
    /* n = 21: level 0.9734; three standard deviations of the count are 0.8 %. */
    cr_expect_float_eq((double)held / trials, 0.9734, 0.008, "held %d of %d", held, trials);
}

Test(base_stats, lines_and_outliers)
{
    const double x[] = {1, 2, 3, 4}, y[] = {5, 7, 9, 11}, same[] = {2, 2, 2, 2};
    double a = 0, b = 0;

    cr_assert_eq(nw_fit_line(x, y, 4, &a, &b), NW_OK);
    cr_expect_float_eq(a, 3, 1e-12);
    cr_expect_float_eq(b, 2, 1e-12);
    cr_expect_eq(nw_fit_line(same, y, 4, &a, &b), NW_EUSAGE);
    cr_expect_eq(nw_fit_line(x, y, 1, &a, &b), NW_EUSAGE);
    cr_expect_eq(nw_fit_line(x, y, 0, &a, &b), NW_EUSAGE);
    cr_expect_float_eq(nw_modified_z(10, 4, 2), 0.6745 * 3, 1e-12);
    cr_expect_float_eq(nw_modified_z(10, 4, 0), 0, 0);
}

#ifdef NW_HAVE_GSL
static void compare_with_gsl(const double *values, size_t n)
{
    struct nw_stats stats;
    double *sorted = malloc(n * sizeof *sorted);

    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    gsl_sort(sorted, 1, n);
    cr_assert_eq(nw_stats_of(values, n, &stats), NW_OK);
    const struct {
        const char *name;
        double ours, theirs;
    } rows[] = {
        {"median", stats.median, gsl_stats_median_from_sorted_data(sorted, 1, n)},
        {"p25", stats.p25, gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.25)},
        {"p75", stats.p75, gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.75)},
        {"p95", stats.p95, gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.95)},
        {"p99", stats.p99, gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.99)},
        {"mean", stats.mean, gsl_stats_mean(values, 1, n)},
        {"stddev", stats.stddev, gsl_stats_sd(values, 1, n)},
        {"mad", stats.mad, gsl_stats_mad0(values, 1, n, sorted)},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        cr_expect_float_eq(rows[i].ours, rows[i].theirs, 1e-12 * fabs(rows[i].theirs),
                           "n = %zu, %s: %.17g, GSL %.17g", n, rows[i].name, rows[i].ours,
                           rows[i].theirs);
    free(sorted);
}

Test(base_stats, gsl_agrees_on_every_figure)
{
    static const size_t sizes[] = {2, 3, 10, 101, 5000};
    uint64_t state = 7;

    for (size_t s = 0; s < COUNT(sizes); s++) {
        double *values = malloc(sizes[s] * sizeof *values);

        for (size_t i = 0; i < sizes[s]; i++)
            values[i] = 1e6 * exp(3 * next_value(&state));
        compare_with_gsl(values, sizes[s]);
        free(values);
    }
}

Test(base_stats, gsl_agrees_on_the_interval_of_long_series)
{
    static const size_t sizes[] = {6, 61, 200, 1001, 65536, 1000000};

    for (size_t s = 0; s < COUNT(sizes); s++) {
        const size_t n = sizes[s];
        double *values = malloc(n * sizeof *values);
        struct nw_stats stats;

        for (size_t i = 0; i < n; i++)
            values[i] = (double)(i + 1);
        cr_assert_eq(nw_stats_of(values, n, &stats), NW_OK);
        const unsigned d = (unsigned)stats.low;

        cr_expect_float_eq(stats.level, 1 - 2 * gsl_cdf_binomial_P(d - 1, 0.5, (unsigned)n), 1e-8,
                           "n = %zu", n);
        cr_expect_lt(1 - 2 * gsl_cdf_binomial_P(d, 0.5, (unsigned)n), 0.95, "n = %zu", n);
        free(values);
    }
}

Test(base_stats, gsl_agrees_on_fitted_lines)
{
    double x[100], y[100], a, b, c0, c1, cov00, cov01, cov11, sumsq;
    uint64_t state = 3;

    for (size_t i = 0; i < 100; i++) {
        x[i] = 1e9 + 1e6 * next_value(&state);
        y[i] = 3e-3 * x[i] + 100 * next_value(&state);
    }
    cr_assert_eq(nw_fit_line(x, y, 100, &a, &b), NW_OK);
    gsl_fit_linear(x, 1, y, 1, 100, &c0, &c1, &cov00, &cov01, &cov11, &sumsq);
    cr_expect_float_eq(b, c1, fabs(c1) * 1e-9);
    cr_expect_float_eq(a, c0, fabs(c0) * 1e-6);
}
#endif
