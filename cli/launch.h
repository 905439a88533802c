/* Private to cli/. MPI's start, for bench, run and check. */
#ifndef NW_CLI_LAUNCH_H
#define NW_CLI_LAUNCH_H

#include "bench/status.h"
#include "collectives/comm.h"

#define NW_CLI_STOP_DEADLINE_NS 10000000000ull /* for the ranks to meet at the end of MPI */

/* Starts MPI, opens the communicator of all ranks, looks whether the launch is what was meant
 * (collectives/launch.h). 0, else the exit code: then one process has said why, and MPI has ended.
 * `strict`: another program on a host is refused. */
int nw_cli_open_mpi(struct nw_bench_status *status, bool strict, struct nw_comm **comm_out);

#endif
