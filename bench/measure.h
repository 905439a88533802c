/* Public. One measurement: verify, warm up, sample until it is enough, verify again.
 *
 * The same algorithm runs on every rank. What a decision needs is exchanged first (a batch of
 * samples at a time), so all ranks decide alike and nobody commands. Before each sample stands a
 * barrier; a sample's time is the slowest rank's. The first call, which connects and touches, is a
 * verified one and is never timed; no time is kept when a checked call had a wrong element. Where
 * the work has its own `time`, the first call still comes without it.
 *
 *     struct nw_measured measured;
 *     NW_TRY(nw_measure(&how, &work, &measured));        // collective over how.comm
 *     NW_TRY(nw_measured_report(&measured, 0, comm, bus_factor, &record));
 *     nw_measured_free(&measured);
 */
#ifndef NW_BENCH_MEASURE_H
#define NW_BENCH_MEASURE_H

#include "bench/record.h"
#include "bench/sampling.h"
#include "bench/status.h"
#include "collectives/comm.h"
#include "collectives/oracle.h"

struct nw_work { /* what is timed */
    /* The index-th call; a work that rotates through memory starts with index 0 at the place that
     * fill and check use. */
    nw_rc (*call)(const struct nw_work *work, uint64_t index);
    void (*fill)(const struct nw_work *work, uint64_t round);
    uint64_t (*check)(const struct nw_work *work, uint64_t round, struct nw_wrong *first_out);
    /* NULL: by the host's clock, from a barrier until the calls are done. Else `calls` calls from
     * the index-th on by the device's clock, all done on return: bench/gated.h. It meets the other
     * ranks in a barrier of its own. */
    nw_rc (*time)(const struct nw_work *work, uint64_t index, uint32_t calls, double *ns_out);
    uint32_t calls_max; /* that `time` takes at once, the same on all ranks; 0: any number */
    bool result_stays;  /* repeated calls give the same result in the same place: out of place */
};

struct nw_measure {
    struct nw_comm *comm;     /* of barriers and exchanges: all ranks, also those that idle */
    const int *group_of_rank; /* NULL: one group of all */
    int group_count;
    struct nw_sampling_rules rules;
    int warmup_calls;
    int check_calls; /* 0: nothing is verified */
    uint64_t round;  /* of the pattern; a measurement uses check_calls + 1 of them */
    struct nw_bench_status *status;
    const char *title;       /* for the status: "all_reduce 1 MiB" */
    double call_deadline_ns; /* slowest credible time of one call */
    double margin_ns;        /* added once to each sample and exchange */
};

struct nw_group_check {
    int64_t wrong_elements; /* over the group's ranks; -1: not checked */
    int rank;               /* the lowest with a wrong element; -1 */
    struct nw_wrong first;
};

struct nw_measured {
    struct nw_sampling *sampling;
    struct nw_group_check *checks; /* group_count entries */
    int group_count;
};

/* Wrong data is no failure. When a call fails, on this rank or another, the communicator is broken:
 * NW_EPEER where another rank has the cause. */
nw_rc nw_measure(const struct nw_measure *how, const struct nw_work *work,
                 struct nw_measured *measured_out);
void nw_measured_free(struct nw_measured *measured);

/* The group's times, rates and check into `record`, whose identity is set. Wrong data: rc NW_EWRONG
 * and no time. `bus_factor` NAN: no bus bandwidth. */
nw_rc nw_measured_report(const struct nw_measured *measured, int group, const struct nw_comm *comm,
                         double bus_factor, struct nw_record *record);

#endif
