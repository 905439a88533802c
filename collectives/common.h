/* Private to collectives/: what every backend needs for its communicator. */
#ifndef NW_COLLECTIVES_COMMON_H
#define NW_COLLECTIVES_COMMON_H

#include "collectives/comm.h"

#define NW_HOST_NAME_SIZE 64

/* Number the hosts by the name of each rank's host (rank_count names) and fill the host fields of
 * `comm`, whose rank and rank_count are set. */
nw_rc nw_comm_set_hosts(struct nw_comm *comm, const char (*name_of_rank)[NW_HOST_NAME_SIZE]);
void nw_comm_drop_hosts(struct nw_comm *comm);

/* The checks that are the same everywhere: root, in-place form. The failure is worded. */
bool nw_call_is_valid(const struct nw_comm *comm, const struct nw_call *call);

#endif
