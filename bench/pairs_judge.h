/* Public. Which pairs of ranks are slower than their like? Pure.
 *
 * Pairs on one host are compared with such, pairs between hosts with such. A pair below 75 % of its
 * class's median and an outlier by the modified z-score is slow; a rank most of whose pairs are
 * slow is itself the suspect, and is named instead of them.
 */
#ifndef NW_BENCH_PAIRS_JUDGE_H
#define NW_BENCH_PAIRS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "bench/fleet.h"

#define NW_SLOW_PAIR_SHARE 0.75
/* Iglewicz & Hoaglin's limit for an outlier. */
#define NW_SLOW_PAIR_Z    3.5
#define NW_SLOW_PAIRS_MAX 8 /* the slowest; more would hide them */

struct nw_pair_rate {
    bool same_host;
    struct nw_fleet_edge edge; /* of ranks; of it only the rate is looked at here */
};

struct nw_slow_pair {
    struct nw_pair_rate rate;
    double median_bytes_per_s; /* of its class */
};

struct nw_slow_pairs {
    int *ranks; /* suspects */
    size_t rank_count;
    struct nw_slow_pair pairs[NW_SLOW_PAIRS_MAX]; /* that no suspect explains; slowest first */
    size_t pair_count;
};

nw_rc nw_pairs_judge(const struct nw_pair_rate *rates, size_t count, int rank_count,
                     struct nw_slow_pairs *slow_out);
void nw_slow_pairs_free(struct nw_slow_pairs *slow);

#endif
