/* Public. The host's matrix multiplication in fp32 on one thread, and its measured rate: the
 * compute rate of a machine without a GPU. A rank calls it by itself; when all ranks of a host do
 * so at once, what they take from each other (clock, cache, memory) is in the figure.
 *
 *     NW_TRY(comm->ops->barrier(comm));
 *     NW_TRY(nw_host_gemm_rate(300e6, &flop_per_s));      // this rank's; median and interval
 */
#ifndef NW_KERNELS_HOST_GEMM_H
#define NW_KERNELS_HOST_GEMM_H

#include <stddef.h>

#include "base/stats.h"

/* Ways to multiply on this processor by their vector instructions, the fastest first: "AVX-512",
 * "AVX2", "128-bit vectors". NULL behind the last. */
const char *nw_host_gemm_kernel(size_t index);

/* c = a b, row-major: a is m × k, b is k × n, c is m × n and overlaps neither. `kernel` NULL: the
 * fastest. Sums are rounded in an order that depends on it. NW_ENOMEM: no room for the packed
 * panels (about 1.5 MiB). */
nw_rc nw_host_gemm(const char *kernel, size_t m, size_t n, size_t k, const float *a, const float *b,
                   float *c);

/* Multiply square matrices again and again for `budget_ns`, at least three times. Rates are
 * 2 m n k / time. NW_EWRONG: the product was wrong. */
nw_rc nw_host_gemm_rate(double budget_ns, struct nw_stats *flop_per_s_out);

#endif
