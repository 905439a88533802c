#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank_test.h"

static uint64_t state;

static double uniform(void) /* 0 to 1, open */
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* ---- against every choice there is -------------------------------------------------------------
 */

static double rank_sum(const double *all, size_t count, unsigned chosen)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; (chosen >> i & 1) && k < count; k++)
            sum += all[k] < all[i] ? 1 : all[k] == all[i] ? 0.5 : 0;
    return sum;
}

/* p by trying all ways to deal the values. */
static double p_by_all(const double *all, size_t a_count, size_t count)
{
    const double middle = (double)a_count * (double)count / 2;
    const double seen = fabs(rank_sum(all, count, (1u << a_count) - 1) - middle);
    double as_far = 0, ways = 0;

    for (unsigned chosen = 0; chosen < 1u << count; chosen++) {
        if ((size_t)__builtin_popcount(chosen) != a_count)
            continue;
        ways++;
        as_far += fabs(rank_sum(all, count, chosen) - middle) >= seen - 1e-9;
    }
    return as_far / ways;
}

Test(base_rank_test, small_series_are_exact_ties_included)
{
    state = 1;
    for (int trial = 0; trial < 200; trial++) {
        const size_t count = 2 + (size_t)(uniform() * 10), a_count = 1 + (size_t)(uniform() * 5);
        const bool tied = trial % 2;
        struct nw_rank_test test;
        double all[12];

        if (a_count >= count)
            continue;
        for (size_t i = 0; i < count; i++)
            all[i] = tied ? 1 + floor(uniform() * 4) : 1 + uniform();
        cr_assert_eq(nw_rank_test_of(all, a_count, all + a_count, count - a_count, &test), NW_OK);
        if (test.correlation > 0)
            continue;
        cr_assert(test.exact);
        cr_assert_float_eq(test.p, p_by_all(all, a_count, count), 1e-12, "trial %d: %g, not %g",
                           trial, test.p, p_by_all(all, a_count, count));
    }
}

/* By the definition (every choice of nine, all 81 ratios: Python), Student by GSL 2.7 (
 * gsl_cdf_tdist_P). */
Test(base_rank_test, known_figures)
{
    const double a[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    const double b[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    struct nw_rank_test test;

    cr_assert_eq(nw_rank_test_of(a, 9, b, 9, &test), NW_OK);
    cr_assert_float_eq(test.p, 0.12990538872891813, 1e-9);
    cr_assert_float_eq(test.ratio, 0.6753846153846154, 1e-9);
    cr_assert_float_eq(test.low, 0.4174193548387097, 1e-9);
    cr_assert_float_eq(test.high, 1.265432098765432, 1e-9);
    cr_assert_float_eq(nw_student(2, 5), 0.9490302605850709, 1e-12);
    cr_assert_float_eq(nw_student(-3.5, 12.5), 0.0020675705228806406, 1e-12);
    cr_assert_float_eq(nw_student(-40, 3), 1.7190340394579256e-05, 1e-15);
}

Test(base_rank_test, the_interval_holds_the_true_ratio_in_95_of_100)
{
    int held = 0;

    state = 5;
    for (int trial = 0; trial < 600; trial++) {
        struct nw_rank_test test;
        double a[25], b[31];

        for (int i = 0; i < 25; i++)
            a[i] = exp(0.1 * normal());
        for (int i = 0; i < 31; i++)
            b[i] = 1.2 * exp(0.1 * normal());
        cr_assert_eq(nw_rank_test_of(a, 25, b, 31, &test), NW_OK);
        held += test.low <= 1.2 && 1.2 <= test.high;
        cr_assert(test.low <= test.ratio && test.ratio <= test.high);
    }
    cr_assert(held >= 0.93 * 600, "%d of 600", held);
}

Test(base_rank_test, bad_values_are_refused)
{
    const double good[] = {1, 2}, zero[] = {1, 0}, nan[] = {NAN, 1};
    struct nw_rank_test test;

    cr_assert_eq(nw_rank_test_of(good, 2, zero, 2, &test), NW_EUSAGE);
    cr_assert_eq(nw_rank_test_of(nan, 2, good, 2, &test), NW_EUSAGE);
    cr_assert_eq(nw_rank_test_of(good, 0, good, 2, &test), NW_EUSAGE);
    cr_assert_eq(nw_rank_test_of(good, 1, good, 1, &test), NW_OK);
    cr_assert(isnan(test.low) && test.p == 1);
}

/* ---- false alarms of whole comparisons ---------------------------------------------------------
 */

struct family {
    const char *name;
    double correlation; /* of values that follow each other */
    int steps;          /* > 0: values rounded to so many a unit, as a coarse clock does */
    double tail;        /* share of values ten times as far out */
};

static double next_value(const struct family *family, double *carried)
{
    const double r = family->correlation;
    double value;

    *carried = r * *carried + sqrt(1 - r * r) * normal();
    value = exp(0.03 * *carried * (uniform() < family->tail ? 10 : 1));
    return family->steps > 0 ? ceil(value * family->steps) / family->steps : value;
}

enum { ROWS = 60, SAMPLES = 40, COMPARISONS = 200 };

static int count_alarms(const struct family *family)
{
    int alarms = 0;

    for (int comparison = 0; comparison < COMPARISONS; comparison++) {
        double p[ROWS], least = 1;

        for (int row = 0; row < ROWS; row++) {
            double a[SAMPLES], b[SAMPLES], carried_a = normal(), carried_b = normal();
            struct nw_rank_test test;

            for (int i = 0; i < SAMPLES; i++) {
                a[i] = next_value(family, &carried_a);
                b[i] = next_value(family, &carried_b);
            }
            cr_assert_eq(nw_rank_test_of(a, SAMPLES, b, SAMPLES, &test), NW_OK);
            p[row] = test.p;
        }
        cr_assert_eq(nw_holm(p, ROWS), NW_OK);
        for (int row = 0; row < ROWS; row++)
            least = fmin(least, p[row]);
        alarms += least <= 0.05;
    }
    return alarms;
}

Test(base_rank_test, of_a_hundred_comparisons_of_like_with_like_at_most_five_alarm)
{
    static const struct family families[] = {{"normal", 0, 0, 0},
                                             {"coarse clock", 0, 20, 0},
                                             {"outliers", 0, 0, 0.05},
                                             {"hanging together", 0.4, 0, 0}};

    state = 11;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const int alarms = count_alarms(&families[i]);

        cr_expect(alarms <= COMPARISONS * 5 / 100, "%s: %d of %d", families[i].name, alarms,
                  COMPARISONS);
    }
}

Test(base_rank_test, holm_steps_down)
{
    double p[] = {0.01, NAN, 0.04, 0.03, 0.005};

    cr_assert_eq(nw_holm(p, 5), NW_OK);
    cr_assert_float_eq(p[4], 0.02, 1e-15);
    cr_assert_float_eq(p[0], 0.03, 1e-15);
    cr_assert_float_eq(p[3], 0.06, 1e-15);
    cr_assert_float_eq(p[2], 0.06, 1e-15);
    cr_assert(isnan(p[1]));
}
