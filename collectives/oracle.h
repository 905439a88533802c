/* Public. Input patterns whose results are exact in every element type, and the check of every
 * element.
 *
 * The expected value of an element is a function of (collective, op, type, ranks, root, rank,
 * index, round): no second communication is needed and no second buffer. Values are small integers
 * chosen so that sums, products and all their partial results stay exactly representable for any
 * number of ranks and in any order of combining, so results are compared bit for bit. Averages are
 * compared with the correctly rounded quotient of the exact sum (integers: rounded down).
 *
 *     nw_oracle_fill(&call, comm->rank, comm->rank_count, round);
 *     NW_TRY(comm->ops->call(comm, &call));
 *     wrong = nw_oracle_check(&call, comm->rank, comm->rank_count, round, &first);
 *
 * Found are: a rank missing, or taken twice, or in another's place; data shifted; chunks swapped; a
 * result left over from the previous round; parts never written; a flipped bit. A reduction of
 * fewer elements than ranks can hide a rank that contributes the neutral element there.
 */
#ifndef NW_COLLECTIVES_ORACLE_H
#define NW_COLLECTIVES_ORACLE_H

#include "collectives/comm.h"
#include "kernels/pattern.h"

struct nw_wrong {    /* the first wrong element */
    uint64_t index;  /* in call->recv */
    double expected; /* as numbers; two different NaN or zeros can look the same */
    double found;
    int from_rank; /* whose contribution the element is, where one rank's; -1: a reduction */
};

/* Fill `call->send` (or its in-place location) as rank `rank`, and poison what the call must write.
 * Consecutive rounds differ in every element. */
void nw_oracle_fill(const struct nw_call *call, int rank, int rank_count, uint64_t round);
/* Number of wrong elements of this rank's result (0 on ranks that get none); the first into
 * *first_out when there is one. */
uint64_t nw_oracle_check(const struct nw_call *call, int rank, int rank_count, uint64_t round,
                         struct nw_wrong *first_out);

/* The same for devices that fill and compare by themselves (kernels/pattern.h): what a rank sends,
 * or what it must find, are equal chunks of shape.count elements, one after the other, and each
 * follows from a table. */
struct nw_oracle_table {
    int from_rank; /* of a check: as in nw_wrong */
    unsigned char elements[NW_PATTERN_TABLE * 8] __attribute__((aligned(64)));
};
int nw_oracle_fill_chunks(const struct nw_call *call, int rank, int rank_count);
void nw_oracle_fill_table(const struct nw_call *call, int rank, int rank_count, uint64_t round,
                          int chunk, struct nw_oracle_table *table_out);
int nw_oracle_check_chunks(const struct nw_call *call, int rank, int rank_count);
void nw_oracle_check_table(const struct nw_call *call, int rank, int rank_count, uint64_t round,
                           int chunk, struct nw_oracle_table *table_out);
/* Bytes of call->recv to spoil before the fill; 0: none, else with `value_out`. */
uint64_t nw_oracle_poison(const struct nw_call *call, int rank, unsigned char *value_out);

#endif
