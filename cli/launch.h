/* Private to cli/. MPI's start, for bench, run, check and replay. */
#ifndef NW_CLI_LAUNCH_H
#define NW_CLI_LAUNCH_H

#include "bench/status.h"
#include "collectives/comm.h"

#define NW_CLI_STOP_DEADLINE_NS 10000000000ull /* for the ranks to meet at the end of MPI */

enum {
    NW_CLI_MPI_STRICT = 1,  /* another program on a host is refused */
    NW_CLI_MPI_THREADS = 2, /* several threads call MPI at once; refused where it cannot */
};

/* Starts MPI, opens the communicator of all ranks, looks whether the launch is what was meant
 * (collectives/launch.h). 0, else the exit code: then one process has said why, and MPI has ended.
 */
int nw_cli_open_mpi(struct nw_bench_status *status, unsigned how, struct nw_comm **comm_out);

#endif
