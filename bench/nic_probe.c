/* A few runs without samples, to see what suits. */
#include <math.h>
#include <stdlib.h>

#include "bench/agree.h"
#include "bench/nic_work.h"

#define PROBE_FIRST 64 /* messages, to see how long one takes */
#define PROBE_MOST  1000000

static nw_rc share_rates(struct nw_nic_links *links, const double *mine, double *rates)
{
    NW_TRY(nw_nic_tell_values(links, mine));
    for (size_t pair = 0; pair < links->round->count; pair++)
        rates[pair] = links->is_out[pair] ? NAN : links->values[2 * pair];
    return NW_OK;
}

static nw_rc probe(struct nw_nic_work *work, double ns, double *mine, double *rates)
{
    struct nw_nic_links *links = work->links;
    uint64_t count = PROBE_FIRST;

    for (int turn = 0; turn < 2; turn++) {
        double longest_ns, slowest = 0;

        NW_TRY(nw_nic_run_once(work, count, false, &longest_ns));
        for (size_t i = 0; i < links->end_count; i++)
            mine[i] = longest_ns > 0 ? (double)(count * work->task->bytes) / longest_ns * 1e9 : NAN;
        NW_TRY(nw_nic_agree(links, work->failures));
        NW_TRY(share_rates(links, mine, rates));
        for (size_t pair = 0; pair < links->round->count; pair++)
            if (rates[pair] > 0 && (slowest == 0 || rates[pair] < slowest))
                slowest = rates[pair];
        if (slowest > 0)
            count = (uint64_t)fmin(
                fmax(ns * slowest / 1e9 / (double)work->task->bytes, PROBE_FIRST), PROBE_MOST);
    }
    return NW_OK;
}

nw_rc nw_nic_probe(struct nw_nic_links *links, int qps, int depth, uint64_t bytes, double ns,
                   double *rates)
{
    const struct nw_nic_task task = {
        .op = NW_VERBS_WRITE, .ways = NW_NIC_FORTH, .bytes = bytes, .qps = qps, .depth = depth};
    double *mine = calloc(links->end_count + 1, sizeof *mine);
    struct nw_comm *comm = links->bench->comm;
    const bool was_gentle = comm->gentle;
    struct nw_nic_work work;
    nw_rc rc = nw_nic_work_open(&work, links, &task);

    if (rc == NW_OK && mine == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %zu rates", links->end_count);
    rc = nw_agree(links->bench->comm, rc);
    comm->gentle = true;
    if (rc == NW_OK)
        rc = probe(&work, ns, mine, rates);
    comm->gentle = was_gentle;
    nw_nic_work_close(&work);
    free(mine);
    return rc;
}
