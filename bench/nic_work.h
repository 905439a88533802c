/* Private to bench/nic_*.c. A run over this rank's ends of a round, as work that nw_measure times.
 */
#ifndef NW_BENCH_NIC_WORK_H
#define NW_BENCH_NIC_WORK_H

#include "bench/nic_links_parts.h"

/* Of each end, the latest of its own rates: enough for a median. */
#define NW_NIC_OWN_MOST 512

struct nw_nic_work {
    struct nw_work work; /* first */
    struct nw_nic_links *links;
    const struct nw_nic_task *task;
    uint32_t batch;             /* messages that count as one call */
    struct nw_verbs_end **ends; /* of a run: those that have not failed */
    struct nw_verbs_run *runs;
    struct nw_verbs_result *results;
    bool is_timed;                   /* the run at hand */
    size_t *end_of;                  /* of each run: which of this rank's ends */
    struct nw_nic_failure *failures; /* of each of this rank's ends */
    double *own;                     /* ends x NW_NIC_OWN_MOST: their own rates, bytes/s */
    size_t *own_count; /* of each end; more than NW_NIC_OWN_MOST: the oldest are gone */
};

/* NW_ENOMEM also leaves something that must be closed. */
nw_rc nw_nic_work_open(struct nw_nic_work *work, struct nw_nic_links *links,
                       const struct nw_nic_task *task);
void nw_nic_work_close(struct nw_nic_work *work);
/* Collective. `ns_out`: of this rank's ends, 0 where it only looked on. */
nw_rc nw_nic_run_once(struct nw_nic_work *work, uint64_t count, bool ping, double *ns_out);
/* The group of a pair; -1: it looks on. */
int nw_nic_group_of(const struct nw_nic_task *task, size_t pair);

#endif
