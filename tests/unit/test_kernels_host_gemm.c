#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/host_gemm.h"

static double next_value(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / 1073741824.0 - 1;
}

/* Against the definition in double. Error of a float sum of k products in any order:
 * |c - exact| <= k u / (1 - k u) × sum |a b|, u = 2^-24 (Higham, Accuracy and Stability, 3.5). */
static void expect_product(const char *kernel, size_t m, size_t n, size_t k)
{
    float *a = malloc((m * k + 1) * sizeof *a), *b = malloc((k * n + 1) * sizeof *b);
    float *c = malloc((m * n + 1) * sizeof *c);
    uint64_t state = m * 1000003 + n * 1009 + k;
    cr_assert(a && b && c);
    for (size_t i = 0; i < m * k; i++)
        a[i] = (float)next_value(&state);
    for (size_t i = 0; i < k * n; i++)
        b[i] = (float)next_value(&state);
    memset(c, 0xff, (m * n + 1) * sizeof *c);
    cr_assert_eq(nw_host_gemm(kernel, m, n, k, a, b, c), NW_OK);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0, magnitude = 0;
            for (size_t p = 0; p < k; p++) {
                const double product = (double)a[i * k + p] * (double)b[p * n + j];
                sum += product;
                magnitude += fabs(product);
            }
            const double bound = (double)(k + 1) * FLT_EPSILON / 2 * magnitude;
            if (!(fabs(c[i * n + j] - sum) <= bound * 1.001))
                cr_assert_fail("%s: %zu x %zu x %zu: element %zu, %zu is %g, not %g", kernel, m, n,
                               k, i, j, (double)c[i * n + j], sum);
        }
    }
    cr_expect(isnan(c[m * n]), "wrote behind the end");
    free(a);
    free(b);
    free(c);
}

Test(kernels_host_gemm, products_of_every_awkward_size_are_right)
{
    static const size_t sizes[][3] = {
        {1, 1, 1},      {1, 1, 300},    {6, 16, 8},     {14, 32, 256},  {15, 33, 257},
        {13, 31, 255},  {168, 64, 256}, {169, 65, 512}, {200, 1, 40},   {1, 1100, 3},
        {29, 1025, 17}, {350, 90, 600}, {5, 5, 0},      {64, 64, 1000},
    };
    cr_assert_not_null(nw_host_gemm_kernel(0));
    for (size_t way = 0; nw_host_gemm_kernel(way); way++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            expect_product(nw_host_gemm_kernel(way), sizes[i][0], sizes[i][1], sizes[i][2]);
    }
    float one = 1, product;
    cr_expect_eq(nw_host_gemm("abacus", 1, 1, 1, &one, &one, &product), NW_ENOTSUP);
}

Test(kernels_host_gemm, the_rate_is_measured_and_plausible)
{
    struct nw_stats rate;
    cr_assert_eq(nw_host_gemm_rate(50e6, &rate), NW_OK, "%s", nw_last_error()->text);
    cr_expect_geq(rate.count, 3);
    /* From a slow core in a sanitizer's build to twice what any core does in one cycle: 64 FLOP at
     * 6 GHz. */
    cr_expect(rate.median > 1e7 && rate.median < 800e9, "%g", rate.median);
    cr_expect(rate.low <= rate.median && rate.median <= rate.high);
}
