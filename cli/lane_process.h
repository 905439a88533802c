/* Private to cli/. One lane: a worker on every rank, started, served and watched until all have
 * ended or one is lost. */
#ifndef NW_CLI_LANE_PROCESS_H
#define NW_CLI_LANE_PROCESS_H

#include "cli/worker.h"
#include "collectives/relay.h"

struct nw_lane_process {
    struct nw_comm *comm;
    const struct nw_lane *lane;
    const struct nw_lane_setting *settings; /* what it forces here */
    const struct nw_plan *plan;             /* what it measures */
    int generation;                         /* counts the lanes of the run */
    struct nw_bench_status *status;         /* of this rank; NULL: nobody watches */
    const struct nw_record *done;           /* rank 0 */
    size_t done_count;
    nw_rc (*on_event)(void *user, unsigned kind, const json_t *json); /* enum nw_worker_event */
    void *user;
};

/* Collective. A failure is one of `comm`, or of starting the workers, the same on all ranks; the
 * lane's own end is in *end_out, worded also in nw_last_error(). */
nw_rc nw_lane_process_run(const struct nw_lane_process *how, struct nw_relay_end *end_out);

#endif
