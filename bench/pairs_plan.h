/* Private to bench/. Who meets whom in which round of the case pairs.
 *
 * On one host or two every two ranks meet (bench/rounds.h). Of more hosts every two meet as a
 * whole, so that many ranks stay a matter of minutes: first rounds within all hosts at once, then
 * rounds of disjoint pairs of hosts, in which each rank meets the one of its own number on the
 * other host: all NICs of both at the same time. Ranks without such a partner idle. 64 ranks on 16
 * hosts: 3 + 15 rounds instead of 63.
 */
#ifndef NW_BENCH_PAIRS_PLAN_H
#define NW_BENCH_PAIRS_PLAN_H

#include <stdbool.h>

#include "base/err.h"

#define NW_PAIRS_BY_HOST 3 /* hosts, from so many on */

struct nw_pairs_plan { /* owns rank_at, local_of_rank; borrows host_of_rank */
    int rank_count, host_count;
    const int *host_of_rank;
    int *local_of_rank;
    int *rank_at; /* [host * local_most + local]; -1: none */
    int local_most;
    bool by_host;
    int within_count, round_count; /* rounds within hosts; all */
};

nw_rc nw_pairs_plan_open(const int *host_of_rank, int rank_count, int host_count,
                         struct nw_pairs_plan *plan_out);
void nw_pairs_plan_free(struct nw_pairs_plan *plan);
/* Whom `rank` meets; -1: it is idle. */
int nw_pairs_peer(const struct nw_pairs_plan *plan, int rank, int round);
/* The same when only hosts `a` and `b` meet. */
int nw_pairs_peer_of_hosts(const struct nw_pairs_plan *plan, int rank, int a, int b);

#endif
