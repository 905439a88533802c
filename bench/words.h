/* Private to bench/. Data whose every word is known, so that whoever receives it can compare: what
 * goes between two ranks or two NICs. Buffers may lie on the communicator's device. */
#ifndef NW_BENCH_WORDS_H
#define NW_BENCH_WORDS_H

#include "collectives/comm.h"
#include "collectives/oracle.h"

#define NW_WORD_BYTES 8
#define NW_POISON     0xa5 /* what stands where data are awaited */

/* Of whoever gives (a rank, a NIC), in round `round` of a measurement. */
static inline uint64_t nw_word_of(int giver, uint64_t round, uint64_t index)
{
    return (((uint64_t)giver << 48) ^ (round << 32) ^ index) * 0x9e3779b97f4a7c15u;
}

void nw_words_put(struct nw_comm *comm, uint64_t *to, uint64_t count, int giver, uint64_t round);
void nw_words_poison(struct nw_comm *comm, uint64_t *to, uint64_t count);
/* How many of them are wrong; the first of these in *first_out. */
uint64_t nw_words_check(struct nw_comm *comm, const uint64_t *data, uint64_t count, int giver,
                        uint64_t round, struct nw_wrong *first_out);

#endif
