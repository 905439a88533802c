/* Public. The value of one element of the test patterns: integers so small that every reduction of
 * them is exact in every element type, on the host and on the device alike. C and CUDA compile this
 * header, so fill, check and twin share one definition.
 *
 * An element's value depends on (rank, index, round) only, so that a receiver can compute what any
 * other rank sent, and neighbours, ranks and rounds differ: a shifted, swapped or stale chunk shows.
 */
#ifndef NW_KERNELS_PATTERN_H
#define NW_KERNELS_PATTERN_H

#include <stdint.h>

#include "kernels/kernels.h"

#ifdef __CUDACC__
#define NW_HOST_DEVICE __host__ __device__
#else
#define NW_HOST_DEVICE
#endif

/* Mixing of Murmur3's finaliser (public domain, Austin Appleby): every input bit reaches every
 * output bit. */
static inline NW_HOST_DEVICE uint32_t nw_pattern_mix(uint64_t index, uint32_t rank, uint64_t round)
{
    uint64_t x = index + 0x9e3779b97f4a7c15ull * (rank + 1) + 0xd1b54a32d192ed03ull * round;
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return (uint32_t)(x >> 33);
}

/* The largest integer up to which every integer is exact: NW_DTYPE_MAP's column. */
static inline NW_HOST_DEVICE int64_t nw_pattern_exact(int dtype)
{
    switch (dtype) {
#define X(type, name, bytes, exact)                                                                \
    case type:                                                                                     \
        return exact;
        NW_DTYPE_MAP(X)
#undef X
    default:
        return 0;
    }
}

/* Values are 0 … mask, mask = 2^k - 1, so that rank_count of them sum to no more than is exact.
 * Where even ones do not fit (more than 256 ranks in bfloat16), mask is 1 and only the first
 * `exact` ranks contribute. At most 16 bits: enough to tell elements apart. */
static inline NW_HOST_DEVICE uint32_t nw_pattern_mask(int dtype, int rank_count)
{
    int64_t limit = nw_pattern_exact(dtype) / (rank_count > 0 ? rank_count : 1);
    uint32_t mask = 1;
    while (mask < 0xffff && 2 * (int64_t)mask + 1 <= limit)
        mask = 2 * mask + 1;
    return mask;
}

/* What `rank` contributes at `index`. Factors are 1 or 2, and 2 for at most the first six ranks:
 * the product is at most 64. */
static inline NW_HOST_DEVICE int64_t nw_pattern_value(const struct nw_pattern *p, uint32_t mask,
                                                      int rank, uint64_t index)
{
    uint32_t bits = nw_pattern_mix(index, (uint32_t)rank, p->round);
    if (p->op == NW_PROD)
        return rank < 6 ? 1 + (bits & 1) : 1;
    if (rank >= nw_pattern_exact(p->dtype))
        return 0;
    return bits & mask;
}

/* What a buffer described by *p holds at its element i. */
static inline NW_HOST_DEVICE int64_t nw_pattern_expected(const struct nw_pattern *p, uint32_t mask,
                                                         uint64_t i)
{
    const uint64_t index = p->first + i;
    if (p->rank >= 0)
        return nw_pattern_value(p, mask, p->rank, index);
    int64_t result = nw_pattern_value(p, mask, 0, index);
    for (int rank = 1; rank < p->rank_count; rank++) {
        const int64_t value = nw_pattern_value(p, mask, rank, index);
        if (p->op == NW_PROD)
            result *= value;
        else if (p->op == NW_MIN)
            result = value < result ? value : result;
        else if (p->op == NW_MAX)
            result = value > result ? value : result;
        else
            result += value;
    }
    return result;
}

#endif
