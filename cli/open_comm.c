#include "cli/open_comm.h"

#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"

/* NCCL's start takes seconds on eight GPUs, and the driver's some more where nothing keeps it
 * awake (persistence mode off). */
#define START_NS  120e9
#define MARGIN_NS 10e9

static nw_rc open_nccl(const struct nw_plan *plan, struct nw_bench_status *status,
                       struct nw_comm *bootstrap, struct nw_comm **comm_out)
{
    const double timeout_ns = plan->timeout_ns > 0 ? plan->timeout_ns : START_NS;

    nw_bench_status_write(status, nw_now_ns() + (uint64_t)(timeout_ns + START_NS + MARGIN_NS),
                          "the start of NCCL");
    const nw_rc rc = nw_comm_open_nccl(bootstrap, timeout_ns, comm_out);

    nw_bench_status_write(status, 0, "");
    return rc;
}

/* The reason into the run's findings; then MPI it is. */
static nw_rc fall_back(struct nw_comm *mpi, struct nw_comm **comm_out)
{
    const struct nw_err reason = *nw_last_error();
    const bool surplus = reason.rc == NW_EUSAGE; /* GPUs are there, and too few */

    NW_TRY(nw_findings_add(&mpi->findings, surplus ? NW_FINDING_WARN : NW_FINDING_INFO, "no-nccl",
                           "", NULL, "measured with MPI on host memory: %s", reason.text));
    nw_clear_error();
    *comm_out = mpi;
    return NW_OK;
}

nw_rc nw_cli_open_comm(const struct nw_plan *plan, struct nw_bench_status *status,
                       struct nw_comm **comm_out)
{
    struct nw_comm *mpi;
    nw_rc rc;

    NW_TRY(nw_mpi_start(NULL, NULL));
    NW_TRY(nw_comm_open_mpi(&mpi));
    if (strcmp(plan->backend, "mpi") == 0) {
        *comm_out = mpi;
        return NW_OK;
    }
    rc = open_nccl(plan, status, mpi, comm_out);
    if (rc == NW_OK || nw_bench_is_broken(rc))
        return rc;
    if (strcmp(plan->backend, "auto") == 0)
        return fall_back(mpi, comm_out);

    const struct nw_err error = *nw_last_error();

    nw_comm_close(mpi);
    return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
}
