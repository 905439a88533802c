/* Private to bench/. Rates between ranks of three hosts and more, judged as pairs of hosts and,
 * where hosts have several ranks, as pairs of ranks: a slow NIC among eight is not seen in the mean
 * of its host. Pure. */
#ifndef NW_BENCH_PAIRS_FLEET_H
#define NW_BENCH_PAIRS_FLEET_H

#include "bench/fleet_tell.h"
#include "bench/pairs_judge.h"

struct nw_pairs_fleet { /* owns its lists */
    struct nw_fleet_edge *host_edges, *rank_edges;
    struct nw_fleet hosts, ranks; /* ranks: none where each host has one */
    struct nw_fleet_scores host_scores, rank_scores;
};

/* Rates within a host are left out. What a suspect host explains is no suspect rank. */
nw_rc nw_pairs_fleet_judge(const struct nw_pair_rate *rates, size_t count, const int *host_of_rank,
                           int rank_count, int host_count, struct nw_pairs_fleet *judged_out);
void nw_pairs_fleet_free(struct nw_pairs_fleet *judged); /* leaves it empty */

struct nw_pairs_again { /* two hosts to be measured again alone */
    int a, b;
};

/* Suspect hosts, then those of suspect ranks, each against a good one; then pairs that no suspect
 * explains. Slowest first, at most `most` hosts and `most` pairs; `list` has room for both. */
nw_rc nw_pairs_fleet_again(const struct nw_pairs_fleet *judged, const int *host_of_rank, int most,
                           struct nw_pairs_again *list, int *count_out, int *left_out);

#endif
