/* Private to bench/fleet*.c: what judging a fleet works on. */
#ifndef NW_BENCH_FLEET_PARTS_H
#define NW_BENCH_FLEET_PARTS_H

#include "bench/fleet.h"

struct nw_fleet_work {
    const struct nw_fleet *fleet;
    struct nw_fleet_scores *scores;
    double *reach;       /* of each end, in the class at hand; NAN */
    double *values;      /* room for both ends of all edges, and for all ends */
    size_t *first;       /* of each end, and one more */
    size_t *pairs, *bad; /* of each end in the class at hand */
    bool *several;       /* of each end: two partners and more, in the class at hand or in any */
    int *partner;        /* of each end: the first one; -1: none yet */
};

/* Failed, or slow where the class has single suspects. */
bool nw_fleet_is_bad(const struct nw_fleet_work *work, size_t edge);
/* Once all ends and pairs have a state. */
nw_rc nw_fleet_collect_suspects(struct nw_fleet_work *work);

#endif
