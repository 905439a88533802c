/* Public. Ranks that can be outlived: over MPI on host memory, what waits for others is left when a
 * rank was lost, and those that remain go on without it.
 *
 * Somebody outside MPI tells of losses by raising a counter (cli/lifeline.h). Ranks keep their
 * numbers; those that were lost are holes: exchange gives zeroes for them, barrier and share leave
 * them out. What was begun with them stays behind with its buffers, which must not be used again.
 *
 *     NW_TRY(nw_comm_guard(comm, &lost_count));
 *     rc = comm->ops->barrier(comm);                        // NW_EPEER: lost_count was raised
 *     NW_TRY(nw_comm_outlive(comm, 1, lost, &where, sizeof where, 10e9));
 */
#ifndef NW_COLLECTIVES_GUARD_H
#define NW_COLLECTIVES_GUARD_H

#include <stdatomic.h>

#include "collectives/comm.h"

/* Not collective, but on all ranks; until nw_comm_unguard. NW_ENOTSUP: another backend. */
nw_rc nw_comm_guard(struct nw_comm *comm, const _Atomic uint32_t *lost_count);
/* As it was before; not after a loss. */
void nw_comm_unguard(struct nw_comm *comm);
/* Has the counter been raised beyond what was dealt with? */
bool nw_comm_has_loss(const struct nw_comm *comm);

/* Collective over those that are left. Rank 0, which must be one of them, says how many losses are
 * dealt with (`seen`), who is left out (`lost`, rank_count entries) and `bytes` of its own; the
 * others are told. NW_ETIMEOUT: nothing was heard of rank 0. */
nw_rc nw_comm_outlive(struct nw_comm *comm, uint32_t seen, bool *lost, void *word, uint64_t bytes,
                      double timeout_ns);

#endif
