/* Private to bench/. The case pairs goes on without hosts that are lost in mid-run. */
#ifndef NW_BENCH_PAIRS_SURVIVE_H
#define NW_BENCH_PAIRS_SURVIVE_H

#include "bench/pairs_parts.h"

struct nw_pairs_place { /* where the walk stands; rank 0's counts */
    int phase, unit;
    uint64_t pattern; /* bench->round */
};

/* Collective. From now on a rank's death does not end the case, where that can be: MPI on host
 * memory, of three hosts and more, each rank with a parent that reaches rank 0's. */
nw_rc nw_pairs_guard(struct nw_pairs *pairs);
/* Collective, when the case has ended well. */
void nw_pairs_unguard(struct nw_pairs *pairs);
/* After `why`, a failure. NW_OK: hosts were lost, and are marked in pairs->lost_hosts; the others
 * go on at *place. Else `why` as it was, or this host is among the lost. */
nw_rc nw_pairs_survive(struct nw_pairs *pairs, nw_rc why, struct nw_pairs_place *place);
/* Some hosts were lost: how it ends for the others. */
nw_rc nw_pairs_tell_lost(const struct nw_pairs *pairs);

#endif
