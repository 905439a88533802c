/* Public. Run a plan over a communicator: context, then records and findings as they are made.
 *
 * Every rank calls nw_bench_run with an equal plan. The callbacks are called on rank 0 only, in
 * order: one context, then records and findings. What they are given is borrowed for the call. A
 * callback that fails (full disk) ends the run on all ranks with its error.
 *
 *     const struct nw_bench_events events = {.user = &sink, .on_record = write_it, …};
 *     rc = nw_bench_run(&plan, comm, &events);   // NW_EWRONG: some data was wrong
 */
#ifndef NW_BENCH_BENCH_H
#define NW_BENCH_BENCH_H

#include "bench/plan.h"
#include "bench/record.h"
#include "bench/status.h"
#include "collectives/comm.h"

struct nw_bench_progress {
    uint64_t done, total; /* measurements */
    const char *text;     /* "all_reduce 64 MiB out of place" */
    double left_ns;       /* estimate; NAN: too early to say */
};

struct nw_bench_events {
    void *user;
    nw_rc (*on_context)(void *user, const struct nw_context *context);
    /* `kept`: not measured now, it is one of `done`. */
    nw_rc (*on_record)(void *user, const struct nw_record *record, bool kept);
    nw_rc (*on_finding)(void *user, const struct nw_finding *finding);
    void (*on_progress)(void *user, const struct nw_bench_progress *progress); /* may be NULL */
    const struct nw_record *done; /* rank 0: what an interrupted run has measured already */
    size_t done_count;
    struct nw_bench_status *status; /* this rank's; NULL: nobody watches */
    const char *version;            /* of the program */
};

/* NW_OK; NW_EWRONG: the run reached its end and some results were wrong; NW_ENOTSUP: nothing of the
 * plan could be measured here. Any other failure ended the run. The same on all ranks, unless
 * nw_bench_is_broken. */
nw_rc nw_bench_run(const struct nw_plan *plan, struct nw_comm *comm,
                   const struct nw_bench_events *events);
/* Communication failed: the communicator is of no more use and other ranks may hang in it. Only the
 * rank that has the cause can name it (the others have NW_EPEER, or no answer): it must speak, and
 * end the job. */
bool nw_bench_is_broken(nw_rc rc);

/* What of the plan a lane measures, as names with commas between them; false: nothing. `first`:
 * also what is the same in all lanes. `one_collective`: its algorithm exists for one only, so cases
 * that choose collectives themselves are not for it. */
bool nw_bench_cases_of(const struct nw_plan *plan, bool first, bool one_collective, char *names_out,
                       size_t size);

/* The circumstances of a run. Collective; complete on rank 0, elsewhere only what the rank itself
 * knows. */
nw_rc nw_bench_describe(const struct nw_plan *plan, struct nw_comm *comm, const char *version,
                        struct nw_context *context_out);
/* The allow-listed variables of this process; the caller's. */
nw_rc nw_bench_environment(json_t **object_out);

/* The cases by number, for lists of what can be named; NULL past the last. */
const char *nw_bench_case_name(size_t index);
const char *nw_bench_case_title(size_t index);

#endif
