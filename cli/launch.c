#include "cli/launch.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "collectives/launch.h"

/* `speaks`: of all processes the one that tells. */
static int refuse(nw_rc rc, bool speaks)
{
    return speaks ? nw_cli_fail(rc) : nw_rc_exit_code(rc);
}

int nw_cli_open_mpi(struct nw_bench_status *status, unsigned how, struct nw_comm **comm_out)
{
    struct nw_launch launch;
    struct nw_comm *comm;
    bool first;
    int exit_code;
    nw_rc rc;

    nw_launch_read(&launch);
    first = launch.rank <= 0;
    rc = nw_launch_check_start(&launch);
    if (rc != NW_OK)
        return refuse(rc, first);
    rc = (how & NW_CLI_MPI_THREADS) != 0 ? nw_mpi_start_threads() : nw_mpi_start(NULL, NULL);
    if (rc == NW_OK)
        rc = nw_comm_open_mpi(&comm);
    if (rc != NW_OK)
        return nw_cli_fail(rc);
    rc = nw_launch_check(&launch, comm, nw_version, (how & NW_CLI_MPI_STRICT) != 0);
    if (rc == NW_OK) {
        *comm_out = comm;
        return 0;
    }
    if (rc != NW_EUSAGE) { /* the others may still wait */
        nw_cli_fail(rc);
        nw_mpi_abort(nw_rc_exit_code(rc));
    }
    exit_code = refuse(rc, comm->rank_count > 1 ? comm->rank == 0 : first);
    nw_bench_status_write(status, nw_now_ns() + NW_CLI_STOP_DEADLINE_NS, "the end of MPI");
    nw_comm_close(comm);
    nw_mpi_stop();
    nw_bench_status_write(status, 0, "");
    return exit_code;
}
