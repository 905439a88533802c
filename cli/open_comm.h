/* Private to cli/. The ranks' communicator for --backend mpi, nccl or auto. */
#ifndef NW_CLI_OPEN_COMM_H
#define NW_CLI_OPEN_COMM_H

#include "bench/plan.h"
#include "bench/status.h"
#include "collectives/comm.h"

/* Starts MPI too. auto: NCCL where every rank has a GPU, else MPI with the reason as a finding.
 * Collective; a failure is the same on all ranks unless nw_bench_is_broken: say it, then
 * nw_mpi_stop, since the launcher kills the others when one rank has ended with a failure. */
nw_rc nw_cli_open_comm(const struct nw_plan *plan, struct nw_bench_status *status,
                       struct nw_comm **comm_out);

#endif
