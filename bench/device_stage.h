/* Private to bench/. A little memory on both sides, for patterns and their check. */
#ifndef NW_BENCH_DEVICE_STAGE_H
#define NW_BENCH_DEVICE_STAGE_H

#include "bench/device_work.h"

#define NW_DEVICE_PIECE (64u << 10) /* looked at on the host at a time */

struct nw_device_stage {
    uint64_t table[NW_PATTERN_TABLE];
    struct nw_verdict verdict;
    uint32_t fold;
    uint64_t piece[NW_DEVICE_PIECE / NW_DEVICE_WORD]; /* pinned only */
};

#endif
