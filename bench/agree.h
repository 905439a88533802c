/* Public. One rank's failure becomes every rank's failure, in the same words: "rank 3 on node2:
 * …". */
#ifndef NW_BENCH_AGREE_H
#define NW_BENCH_AGREE_H

#include "collectives/comm.h"

/* Collective. NW_OK when every rank passes NW_OK; else the first cause (lowest rank, one that did
 * not only lose a peer) on every rank. `mine` not NW_OK: its sentence is in nw_last_error(). */
nw_rc nw_agree(struct nw_comm *comm, nw_rc mine);

#endif
