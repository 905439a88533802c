/* Public. Which hosts send to which, and when, in the case tcp. Pure.
 *
 * Few hosts: every host to every other one. Many: round the ring, so that each host sends and
 * receives. Within a round no host takes part twice: what a pair reaches is its own.
 */
#ifndef NW_BENCH_TCP_ROUNDS_H
#define NW_BENCH_TCP_ROUNDS_H

#include <stdbool.h>

#define NW_TCP_ALL_HOSTS 8

int nw_tcp_round_count(int host_count);
/* Whom `host` sends to (*sends_out) or receives from in `round`; -1: it is idle. */
int nw_tcp_round_peer(int host, int round, int host_count, bool *sends_out);

#endif
