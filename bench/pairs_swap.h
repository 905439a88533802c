/* Private to bench/. What two ranks do with each other in the case pairs: words both ways at once,
 * or there and then back. */
#ifndef NW_BENCH_PAIRS_SWAP_H
#define NW_BENCH_PAIRS_SWAP_H

#include "bench/case.h"

#define NW_PAIRS_WORD_BYTES 8

struct nw_pairs_work {
    struct nw_work work; /* first */
    const struct nw_bench *bench;
    struct nw_comm *comm;
    int peer; /* -1: idle */
    uint64_t *send, *recv;
    uint64_t word_count;
    bool one_way; /* a call: there, then back */
};

/* Over the buffers of `bench`; nothing to close. */
void nw_pairs_work_open(const struct nw_bench *bench, int peer, uint64_t bytes, bool one_way,
                        struct nw_pairs_work *work_out);

#endif
