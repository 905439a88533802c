/* Private to cli/. The compute rate of ranks without a GPU. */
#ifndef NW_CLI_HOST_RATE_H
#define NW_CLI_HOST_RATE_H

#include "collectives/comm.h"

/* Collective: fp32 matrix products on one core each, all ranks at once, so that what they share
 * shows; the slowest counts. */
nw_rc nw_cli_host_rate(struct nw_comm *comm, double *flop_per_s_out);

#endif
