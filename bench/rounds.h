/* Public. Every pair of ranks meets once, in rounds of disjoint pairs: the circle method (Kirkman
 * 1847; the schedule of a round-robin tournament). n even: n - 1 rounds of n / 2 pairs. n odd: n
 * rounds of (n - 1) / 2 pairs, one rank idle in each.
 */
#ifndef NW_BENCH_ROUNDS_H
#define NW_BENCH_ROUNDS_H

int nw_round_count(int rank_count); /* 0 for fewer than two ranks */
/* Whom `rank` meets in `round`; -1: it is idle. nw_round_peer(nw_round_peer(r)) == r. */
int nw_round_peer(int rank, int round, int rank_count);

#endif
