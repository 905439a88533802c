#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/clusters.h"

enum { COUNT = 200 };

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sum of twelve uniforms: nearly normal, mean 0, deviation 1. */
static double noise(unsigned *seed)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += rand_r(seed) / (RAND_MAX + 1.0);
    return sum;
}

Test(base_clusters, noise_of_any_width_is_one_cluster)
{
    double values[COUNT];
    struct nw_clusters clusters;

    for (unsigned seed = 1; seed <= 400; seed++) {
        unsigned state = seed;
        const size_t count = 4 + seed % (COUNT - 4);
        const double width = 0.01 * (1 + seed % 25);

        for (size_t i = 0; i < count; i++) /* normal, or uniform */
            values[i] = 10 * (1 + width * (seed % 2 ? noise(&state)
                                                    : 3.4 * rand_r(&state) / RAND_MAX - 1.7));
        for (size_t i = 0; i < count; i++)
            values[i] = values[i] < 0.5 ? 0.5 : values[i];
        qsort(values, count, sizeof *values, compare_doubles);
        cr_expect(!nw_two_clusters(values, count, &clusters) || count < 8,
                  "seed %u: %zu values of width %g", seed, count, width);
    }
}

Test(base_clusters, two_rates_are_told_apart_and_counted)
{
    static const struct {
        size_t low, high;
        double ratio, width;
        bool two;
    } cases[] = {
        {67, 64, 0.6, 0.05, true},   {8, 126, 0.4, 0.02, true}, {2, 2, 0.33, 0.01, true},
        {50, 50, 0.95, 0.01, false}, {1, 40, 0.5, 0.01, false}, /* an outlier, no cluster */
        {50, 50, 0.8, 0.10, false},                             /* they overlap */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t count = cases[i].low + cases[i].high;
        double values[COUNT];
        struct nw_clusters clusters;
        unsigned seed = 7;

        for (size_t k = 0; k < count; k++)
            values[k] =
                20 * (k < cases[i].low ? cases[i].ratio : 1) * (1 + cases[i].width * noise(&seed));
        qsort(values, count, sizeof *values, compare_doubles);
        cr_assert_eq(nw_two_clusters(values, count, &clusters), cases[i].two, "case %zu", i);
        if (!cases[i].two)
            continue;
        cr_expect_eq(clusters.low_count, cases[i].low, "case %zu: %zu low ones", i,
                     clusters.low_count);
        cr_expect_eq(clusters.high_count, cases[i].high);
        cr_expect_float_eq(clusters.low_mean / clusters.high_mean, cases[i].ratio, 0.03);
    }
}

Test(base_clusters, too_few_or_equal_values_are_one_cluster)
{
    static const double values[] = {1, 1, 10}, equal[] = {5, 5, 5, 5, 5};
    struct nw_clusters clusters;

    cr_expect_not(nw_two_clusters(values, 0, &clusters));
    cr_expect_not(nw_two_clusters(values, 3, &clusters));
    cr_expect_not(nw_two_clusters(equal, 5, &clusters));
}
