/* Public. One rank's failure becomes every rank's failure, in the same words: "rank 3 on node2:
 * …". */
#ifndef NW_BENCH_AGREE_H
#define NW_BENCH_AGREE_H

#include "collectives/comm.h"

/* Collective. NW_OK when every rank passes NW_OK; else the first cause (lowest rank, one that did
 * not only lose a peer) on every rank. `mine` not NW_OK: its sentence is in nw_last_error(). */
nw_rc nw_agree(struct nw_comm *comm, nw_rc mine);

/* For callers that have exchanged the codes already: `codes[rank * stride]` holds rank's nw_rc as a
 * double. Collective when any of them is not NW_OK. `text`: this rank's own sentence, or "". */
nw_rc nw_agree_on(struct nw_comm *comm, const double *codes, size_t stride, const char *text);

#endif
