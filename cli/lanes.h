/* Private to cli/. A plan measured: plainly over MPI, or with NCCL in lanes, each in worker
 * processes that the ranks start and watch.
 *
 * Collective over `comm` (mpi). A lane that breaks costs only its own results: it is a finding
 * ("lane-broken") with rank, host, GPU and phase, its processes and shared memory are cleared away,
 * and the next lane is run.
 *
 *     NW_TRY(nw_cli_measure(&(struct nw_cli_measure){.plan = &plan, .comm = comm, .events =
 * &events, .status = status}, &broke));
 */
#ifndef NW_CLI_LANES_H
#define NW_CLI_LANES_H

#include "bench/bench.h"

struct nw_cli_measure {
    const struct nw_plan *plan; /* backend mpi, nccl or auto */
    struct nw_comm *comm;
    const struct nw_bench_events *events; /* as of nw_bench_run */
    const char *further_case; /* where the plan has it, the only one of lanes behind the first */
};

/* As nw_bench_run. `lane_broke_out`: a lane is missing; exit code 4. */
nw_rc nw_cli_measure(const struct nw_cli_measure *how, bool *lane_broke_out);

#endif
