/* Public. Where the elements of a test pattern come from: one place for the host and the device.
 *
 * A chunk of data is a sequence of blocks, and every block is a window into one short table, at a
 * start that is hashed from the block's number. So filling is copying and checking is comparing, at
 * the speed of memory, and data that is shifted by any distance still shows. What is in the table
 * (type, reduction, rank, round) is collectives/oracle.c's affair; that its data obey this rule is
 * checked by tests/unit/test_kernels_twins.c.
 *
 *     element i of a chunk = table[nw_pattern_place(i)]
 */
#ifndef NW_KERNELS_PATTERN_H
#define NW_KERNELS_PATTERN_H

#include <stdint.h>

#include "kernels/kernels.h"

#define NW_PATTERN_BLOCK 2048u /* elements; a power of two */
#define NW_PATTERN_TABLE                                                                           \
    (2 * NW_PATTERN_BLOCK) /* a window may start anywhere in the first half                        \
                            */

#ifdef __CUDACC__
#define NW_HOST_DEVICE __host__ __device__
#else
#define NW_HOST_DEVICE
#endif

/* The finaliser of SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014). */
static inline NW_HOST_DEVICE uint64_t nw_pattern_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Of a block's window in the table. */
static inline NW_HOST_DEVICE uint32_t nw_pattern_start(uint64_t block)
{
    return (uint32_t)(nw_pattern_mix(~block) & (NW_PATTERN_BLOCK - 1));
}

static inline NW_HOST_DEVICE uint32_t nw_pattern_place(uint64_t index)
{
    return nw_pattern_start(index / NW_PATTERN_BLOCK) + (uint32_t)(index % NW_PATTERN_BLOCK);
}

#endif
