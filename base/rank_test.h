/* Public. Two series of positive values held against each other without assuming a distribution:
 * Mann-Whitney's test, and by how much one differs from the other (Hodges-Lehmann, as a ratio).
 *
 * The test is exact, ties included, as long as that is cheap (some eighty values); beyond it is the
 * normal approximation with correction for ties and continuity. Values in the order in which they
 * were measured often hang together (drift, a neighbour's load): a lag-1 correlation of the ranks
 * that is more than chance widens the test and the interval as if there were fewer values
 * ((1 - r) / (1 + r) of them, Bayley & Hammersley 1946).
 *
 *     struct nw_rank_test test;
 *     NW_TRY(nw_rank_test_of(before, 40, after, 40, &test));
 *     if (test.p < 0.05) … test.ratio …
 */
#ifndef NW_BASE_RANK_TEST_H
#define NW_BASE_RANK_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct nw_rank_test {
    double p;                /* two-sided; of "both are from one distribution" */
    double ratio, low, high; /* of b over a; interval of 95 %; NAN: too few values for one */
    double correlation;      /* of values that follow each other; 0: none beyond chance */
    bool exact;
};

/* In the order of measurement, not changed. NW_EUSAGE: a value that is not positive and finite, or
 * a side without any. */
nw_rc nw_rank_test_of(const double *a, size_t a_count, const double *b, size_t b_count,
                      struct nw_rank_test *test_out);

/* Holm's step-down (1979): p[i] becomes the least level of the whole family at which i is rejected;
 * the chance of any false rejection among all stays below that level, whatever hangs together.
 * NAN: not tested, stays. */
nw_rc nw_holm(double *p, size_t count);

/* P(T <= t) of Student's distribution; freedom > 0. */
double nw_student(double t, double freedom);

#endif
