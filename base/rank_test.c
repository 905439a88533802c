#include "base/rank_test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Additions that an exact test may take. */
#define EXACT_WORK 2e7
/* In standard deviations of a correlation of nothing (1 / sqrt(n)): smaller ones are none; of the
 * others the upper end counts. One that is believed too small makes false alarms (the unit test has
 * series with 0.4). */
#define CORRELATED       0.5
#define CORRELATED_UPPER 1.0
#define CORRELATED_LEAST 12 /* values; of fewer it cannot be told */

struct item {
    double value;
    size_t from; /* index in the joint series: a, then b */
};

static int by_value(const void *a, const void *b)
{
    const struct item *left = a, *right = b;

    return (left->value > right->value) - (left->value < right->value);
}

/* ---- ranks -------------------------------------------------------------------------------------
 */

struct ranked {
    struct item *sorted;
    uint32_t *doubled; /* twice the mid-rank of each value of the joint series */
    double tie_sum;    /* of t³ - t over the ties */
    size_t a_count, b_count;
};

static void rank_all(struct ranked *ranked)
{
    const size_t count = ranked->a_count + ranked->b_count;

    qsort(ranked->sorted, count, sizeof *ranked->sorted, by_value);
    for (size_t i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count; same++)
            if (ranked->sorted[i + same].value != ranked->sorted[i].value)
                break;
        for (size_t k = 0; k < same; k++) /* mid-rank of i + 1 … i + same, doubled */
            ranked->doubled[ranked->sorted[i + k].from] = (uint32_t)(2 * i + same + 1);
        ranked->tie_sum += (double)same * ((double)same * (double)same - 1);
    }
}

static nw_rc make_ranks(const double *a, size_t a_count, const double *b, size_t b_count,
                        struct ranked *ranked)
{
    const size_t count = a_count + b_count;

    *ranked = (struct ranked){.sorted = malloc(count * sizeof *ranked->sorted),
                              .doubled = malloc(count * sizeof *ranked->doubled),
                              .a_count = a_count,
                              .b_count = b_count};
    if (ranked->sorted == NULL || ranked->doubled == NULL)
        return nw_fail(NW_ENOMEM, "no memory to rank %zu values", count);
    for (size_t i = 0; i < count; i++) {
        const double value = i < a_count ? a[i] : b[i - a_count];

        if (!isfinite(value) || value <= 0)
            return nw_fail(NW_EUSAGE, "comparing two series: value %zu is not a positive number",
                           i + 1);
        ranked->sorted[i] = (struct item){value, i};
    }
    rank_all(ranked);
    return NW_OK;
}

/* Lag-1 correlation of ranks within each series, together; 0: what chance makes of it. */
static double correlation_of(const struct ranked *ranked)
{
    const size_t starts[] = {0, ranked->a_count, ranked->a_count + ranked->b_count};
    const double count = (double)starts[2];
    double products = 0, squares = 0;

    if (starts[2] < CORRELATED_LEAST)
        return 0;
    for (int side = 0; side < 2; side++) {
        double mean = 0;

        for (size_t i = starts[side]; i < starts[side + 1]; i++)
            mean += ranked->doubled[i] / (double)(starts[side + 1] - starts[side]);
        for (size_t i = starts[side]; i < starts[side + 1]; i++) {
            squares += (ranked->doubled[i] - mean) * (ranked->doubled[i] - mean);
            if (i > starts[side])
                products += (ranked->doubled[i] - mean) * (ranked->doubled[i - 1] - mean);
        }
    }
    const double correlation = squares > 0 ? products / squares : 0;

    /* the estimate of a short series is low by about (1 + 3 r) / n (Kendall 1954), of each side */
    return correlation > CORRELATED / sqrt(count)
               ? fmin(correlation + 2 * (1 + 3 * correlation) / count +
                          CORRELATED_UPPER / sqrt(count),
                      0.95)
               : 0;
}

/* ---- the null distribution ---------------------------------------------------------------------
 */

struct null {      /* of the doubled rank sum of `chosen` out of all values */
    double *share; /* of each sum */
    size_t most;
};

static double work_of(size_t count, size_t chosen)
{
    return (double)count * (double)chosen * (double)count * (double)(count + 1);
}

/* Every choice of `chosen` values is as likely as any other: how many have which sum, by adding one
 * value after the other. NULL in *share_out: no memory. */
static nw_rc make_null(const uint32_t *doubled, size_t count, size_t chosen, struct null *null_out)
{
    size_t most = 0;
    double total = 1;

    for (size_t i = 0; i < count; i++)
        most += doubled[i];
    double *ways = calloc((chosen + 1) * (most + 1), sizeof *ways);

    if (ways == NULL)
        return nw_fail(NW_ENOMEM, "no memory for an exact test of %zu values", count);
    ways[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1 < chosen ? i + 1 : chosen; k > 0; k--) {
            double *to = ways + k * (most + 1);
            const double *from = ways + (k - 1) * (most + 1);

            for (size_t sum = doubled[i]; sum <= most; sum++)
                to[sum] += from[sum - doubled[i]];
        }
    for (size_t i = 0; i < chosen; i++)
        total *= (double)(count - i) / (double)(i + 1);
    double *share = ways + chosen * (most + 1);

    for (size_t sum = 0; sum <= most; sum++)
        ways[sum] = share[sum] / total; /* the first row is needed no more */
    *null_out = (struct null){.share = ways, .most = most};
    return NW_OK;
}

/* Chance of a sum at least as far from the middle. */
static double p_of_null(const struct null *null, double sum, double middle)
{
    const double distance = fabs(sum - middle) - 1e-9 * middle;
    double p = 0;

    for (size_t i = 0; i <= null->most; i++)
        if (fabs((double)i - middle) >= distance)
            p += null->share[i];
    return fmin(p, 1);
}

/* Standard deviation of the doubled rank sum, ties counted, `spread` times as wide. */
static double deviation_of(const struct ranked *ranked, double spread)
{
    const double n = (double)ranked->a_count, m = (double)ranked->b_count, all = n + m;
    const double ties = all > 1 ? ranked->tie_sum / (all * (all - 1)) : 0;

    return 2 * spread * sqrt(n * m / 12 * (all + 1 - ties));
}

static nw_rc find_p(const struct ranked *ranked, struct nw_rank_test *test)
{
    const size_t count = ranked->a_count + ranked->b_count;
    const bool a_is_less = ranked->a_count <= ranked->b_count;
    const size_t chosen = a_is_less ? ranked->a_count : ranked->b_count;
    const size_t start = a_is_less ? 0 : ranked->a_count;
    const double middle = (double)chosen * (double)(count + 1);
    double sum = 0;

    for (size_t i = start; i < start + chosen; i++)
        sum += ranked->doubled[i];
    test->exact = test->correlation == 0 && work_of(count, chosen) <= EXACT_WORK;
    if (test->exact) {
        struct null null;

        NW_TRY(make_null(ranked->doubled, count, chosen, &null));
        test->p = p_of_null(&null, sum, middle);
        free(null.share);
        return NW_OK;
    }
    const double r = test->correlation;
    const double deviation = deviation_of(ranked, sqrt((1 + r) / (1 - r)));
    const double distance = fmax(fabs(sum - middle) - 1, 0); /* half a rank, doubled */

    test->p = deviation > 0 ? erfc(distance / deviation / M_SQRT2) : 1;
    return NW_OK;
}

/* ---- by how much -------------------------------------------------------------------------------
 */

struct logs { /* sorted */
    double *a, *b;
    size_t a_count, b_count;
};

/* How many differences b - a are at most `x`. */
static double count_below(const struct logs *logs, double x)
{
    double below = 0;
    size_t j = 0;

    for (size_t i = 0; i < logs->a_count; i++) {
        while (j < logs->b_count && logs->b[j] - logs->a[i] <= x)
            j++;
        below += (double)j;
    }
    return below;
}

/* The k-th smallest difference, k from 1: by halving, which needs no list of all. */
static double difference_at(const struct logs *logs, double k)
{
    double low = logs->b[0] - logs->a[logs->a_count - 1] - 1e-12;
    double high = logs->b[logs->b_count - 1] - logs->a[0];

    for (int step = 0; step < 64 && high - low > 1e-13; step++) {
        const double middle = low + (high - low) / 2;

        if (count_below(logs, middle) >= k)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* The largest k for which the k-th smallest to the k-th largest difference hold the true one with
 * 95 %; 0: none. From U's distribution without ties: P(U <= k - 1) <= 2.5 %. */
static nw_rc find_k(const struct ranked *ranked, double correlation, double *k_out)
{
    const size_t count = ranked->a_count + ranked->b_count;
    const size_t chosen = ranked->a_count < ranked->b_count ? ranked->a_count : ranked->b_count;
    const double pairs = (double)ranked->a_count * (double)ranked->b_count;

    if (correlation > 0 || work_of(count, chosen) > EXACT_WORK) {
        struct ranked untied = *ranked;

        untied.tie_sum = 0;
        const double spread = sqrt((1 + correlation) / (1 - correlation));

        *k_out = fmax(floor(pairs / 2 - 1.959964 * deviation_of(&untied, spread) / 2 + 0.5), 0);
        return NW_OK;
    }
    uint32_t *ranks = malloc(count * sizeof *ranks);
    struct null null;

    if (ranks == NULL)
        return nw_fail(NW_ENOMEM, "no memory for an interval of %zu values", count);
    for (size_t i = 0; i < count; i++)
        ranks[i] = (uint32_t)(i + 1);
    const nw_rc rc = make_null(ranks, count, chosen, &null);

    free(ranks);
    NW_TRY(rc);
    const size_t least = chosen * (chosen + 1) / 2; /* rank sum of U = 0 */
    double below = 0, k = 0;

    for (size_t sum = least; sum <= null.most; sum++, k++) {
        below += null.share[sum];
        if (below > 0.025)
            break;
    }
    free(null.share);
    *k_out = k;
    return NW_OK;
}

static int by_double(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double *sorted_logs(const double *values, size_t count)
{
    double *logs = malloc(count * sizeof *logs);

    if (logs == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        logs[i] = log(values[i]);
    qsort(logs, count, sizeof *logs, by_double);
    return logs;
}

static void find_ratio(const struct logs *logs, double k, struct nw_rank_test *test)
{
    const double pairs = (double)logs->a_count * (double)logs->b_count;
    const double low = difference_at(logs, floor((pairs + 1) / 2));
    const double high = difference_at(logs, ceil((pairs + 1) / 2));

    test->ratio = exp((low + high) / 2);
    test->low = test->high = NAN;
    if (k < 1)
        return;
    test->low = exp(difference_at(logs, k));
    test->high = exp(difference_at(logs, pairs + 1 - k));
}

nw_rc nw_rank_test_of(const double *a, size_t a_count, const double *b, size_t b_count,
                      struct nw_rank_test *test_out)
{
    struct nw_rank_test test = {.p = NAN};
    struct logs logs = {.a_count = a_count, .b_count = b_count};
    struct ranked ranked;
    double k = 0;

    if (a_count == 0 || b_count == 0)
        return nw_fail(NW_EUSAGE, "comparing two series: one of them is empty");
    nw_rc rc = make_ranks(a, a_count, b, b_count, &ranked);

    if (rc == NW_OK) {
        test.correlation = correlation_of(&ranked);
        rc = find_p(&ranked, &test);
    }
    if (rc == NW_OK)
        rc = find_k(&ranked, test.correlation, &k);
    if (rc == NW_OK) {
        logs.a = sorted_logs(a, a_count);
        logs.b = sorted_logs(b, b_count);
        if (logs.a == NULL || logs.b == NULL)
            rc = nw_fail(NW_ENOMEM, "no memory to compare two series");
        else
            find_ratio(&logs, k, &test);
    }
    free(logs.a);
    free(logs.b);
    free(ranked.sorted);
    free(ranked.doubled);
    if (rc == NW_OK)
        *test_out = test;
    return rc;
}

/* ---- many tests --------------------------------------------------------------------------------
 */

struct indexed {
    double p;
    size_t index;
};

static int by_p(const void *a, const void *b)
{
    const struct indexed *left = a, *right = b;

    return (left->p > right->p) - (left->p < right->p);
}

nw_rc nw_holm(double *p, size_t count)
{
    struct indexed *order = malloc((count > 0 ? count : 1) * sizeof *order);
    size_t tested = 0;
    double most = 0;

    if (order == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu tests", count);
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i]))
            order[tested++] = (struct indexed){p[i], i};
    qsort(order, tested, sizeof *order, by_p);
    for (size_t i = 0; i < tested; i++) {
        most = fmax(most, order[i].p * (double)(tested - i));
        p[order[i].index] = fmin(most, 1);
    }
    free(order);
    return NW_OK;
}

/* ---- Student's distribution --------------------------------------------------------------------
 */

/* Continued fraction of the incomplete beta function by Lentz's method (Abramowitz & Stegun
 * 26.5.8). */
static double beta_fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);

    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;

    for (int m = 1; m < 1000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

        for (int half = 0; half < 2; half++) {
            const double term = half == 0 ? even : odd;

            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            result *= d * c;
        }
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return result;
}

/* Regularised incomplete beta function. */
static double incomplete_beta(double x, double a, double b)
{
    int sign;

    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    const double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                             a * log(x) + b * log1p(-x));

    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
                                     : 1 - front * beta_fraction(1 - x, b, a) / b;
}

double nw_student(double t, double freedom)
{
    const double tail = incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;

    return t > 0 ? 1 - tail : tail;
}
