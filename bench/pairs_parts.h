/* Private to bench/. The case pairs: its state, and what is said in the end. */
#ifndef NW_BENCH_PAIRS_PARTS_H
#define NW_BENCH_PAIRS_PARTS_H

#include "bench/case.h"
#include "bench/pairs_fleet.h"
#include "bench/pairs_plan.h"

struct nw_pairs {
    struct nw_bench *bench;
    struct nw_pairs_plan plan;
    const char *case_name;        /* "pairs", "retest" */
    bool one_way;                 /* not both ways at once */
    int *peer_of_rank;            /* of the current round; -1: idle */
    int *group_of_rank;           /* of the current round */
    struct nw_record *identities; /* one a pair of the current round */
    const struct nw_record **kept;
    int pair_count;             /* of a round */
    struct nw_pair_rate *rates; /* rank 0: of all pairs at the bandwidth size */
    size_t rate_count;
    struct nw_lifeline *lifeline; /* NULL: a rank's death ends the case */
    bool *lost_hosts;
    uint32_t losses_noted; /* of lifeline->lost */
};

/* Of three hosts and more; rank 0. */
nw_rc nw_pairs_judge_hosts(const struct nw_pairs *pairs, struct nw_pairs_fleet *judged_out);
/* Findings; rank 0. */
nw_rc nw_pairs_tell_hosts(struct nw_pairs *pairs);
nw_rc nw_pairs_tell_ranks(struct nw_pairs *pairs);

#endif
