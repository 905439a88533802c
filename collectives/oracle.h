/* Public. Input patterns whose results are exact in every element type, and the check of every
 * element.
 *
 * The expected value of an element is a function of (collective, op, type, ranks, root, rank,
 * index): no second communication is needed and no second buffer. Values are chosen so that sums
 * and products over any number of ranks stay exactly representable, so float results are compared
 * bit for bit.
 */
#ifndef NW_COLLECTIVES_ORACLE_H
#define NW_COLLECTIVES_ORACLE_H

#include "collectives/comm.h"

struct nw_wrong { /* the first wrong element */
    uint64_t index;
    double expected, found;
    int from_rank; /* whose contribution the element is, where one rank's; -1: a reduction */
};

/* Fill `call->send` (or its in-place location) as rank `rank`, and poison the receive buffer.
 * `round` varies the pattern. */
void nw_oracle_fill(const struct nw_call *call, int rank, int rank_count, uint64_t round);
/* Number of wrong elements of this rank's result; the first into *first_out when there is one. */
uint64_t nw_oracle_check(const struct nw_call *call, int rank, int rank_count, uint64_t round,
                         struct nw_wrong *first_out);

#endif
