#include "bench/bench.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/agree.h"
#include "bench/case.h"

/* The slowest wire that is still credible: 100 Mb/s Ethernet gives 12 MB/s. */
#define SLOWEST_BYTES_PER_S 10e6
#define MARGIN_NS           20e9
/* Doubles of the libraries do with CPUs, which they share with all else here, what GPUs do at once:
 * how long that takes says nothing about the GPUs that are pretended. */
#define MARGIN_SIMULATED_NS 120e9
/* Before anything is measured, a unit is thought to take 20 ms and 10 ns a byte (100 MB/s, a dozen
 * calls of it at 1 GB/s); only the ratio of small to large sizes matters. */
#define WEIGHT_UNIT_NS 20e6
#define WEIGHT_BYTE_NS 10.0
/* With --cold the rotation has at least so much room; more would break the promise that a rank
 * holds at most two largest buffers and 64 MiB. */
#define COLD_BYTES (16u << 20)

static double unit_weight(const struct nw_unit *unit)
{
    const uint64_t bytes =
        unit->send_bytes > unit->recv_bytes ? unit->send_bytes : unit->recv_bytes;

    return WEIGHT_UNIT_NS + WEIGHT_BYTE_NS * (double)bytes;
}

static void keep_failure(struct nw_bench *bench, nw_rc rc)
{
    if (rc == NW_OK || bench->rc != NW_OK)
        return;
    bench->rc = rc;
    snprintf(bench->text, sizeof bench->text, "%s", nw_last_error()->text);
}

static const struct nw_record *find_done(const struct nw_bench *bench,
                                         const struct nw_record *identity)
{
    for (size_t i = 0; i < bench->events->done_count; i++)
        if (nw_record_same_identity(&bench->events->done[i], identity))
            return &bench->events->done[i];
    return NULL;
}

static bool all_done(const struct nw_bench *bench, const struct nw_unit *unit)
{
    for (size_t i = 0; i < unit->identity_count; i++)
        if (find_done(bench, &unit->identities[i]) == NULL)
            return false;
    return true;
}

static void hand_out(struct nw_bench *bench, const struct nw_record *record, bool kept)
{
    bench->record_count++;
    if (bench->events->status != NULL)
        atomic_store(&bench->events->status->records, bench->record_count);
    if (bench->rc == NW_OK && bench->events->on_record != NULL)
        keep_failure(bench, bench->events->on_record(bench->events->user, record, kept));
}

static void keep_unit(struct nw_bench *bench, const struct nw_unit *unit,
                      const struct nw_record **kept_out)
{
    for (size_t i = 0; i < unit->identity_count; i++) {
        const struct nw_record *record = find_done(bench, &unit->identities[i]);

        bench->wrong |= record->rc == NW_EWRONG;
        for (size_t k = 0; k < record->warnings.count; k++)
            bench->failed |= strcmp(record->warnings.items[k].code, "nic-failed") == 0;
        hand_out(bench, record, true);
        if (kept_out != NULL)
            kept_out[i] = record;
    }
}

static void tell_progress(struct nw_bench *bench, const struct nw_unit *unit)
{
    const double elapsed_ns = (double)(nw_now_ns() - bench->began_ns);
    const struct nw_bench_progress progress = {
        .done = bench->done,
        .total = bench->total,
        .text = unit->title,
        .left_ns = bench->done_weight > 0 ? elapsed_ns / bench->done_weight *
                                                (bench->total_weight - bench->done_weight)
                                          : NAN,
    };

    if (bench->comm->rank == 0 && bench->events->on_progress != NULL)
        bench->events->on_progress(bench->events->user, &progress);
}

/* Rank 0 says whether to go on. */
static nw_rc share_decision(struct nw_bench *bench, bool *go)
{
    struct nw_comm *comm = bench->comm;
    int decision[2] = {(int)bench->rc, *go};

    NW_TRY(comm->ops->share(comm, decision, sizeof decision, 0));
    if (decision[0] != NW_OK) {
        NW_TRY(comm->ops->share(comm, bench->text, sizeof bench->text, 0));
        return nw_fail((nw_rc)decision[0], "%s", bench->text);
    }
    *go = decision[1] != 0;
    return NW_OK;
}

nw_rc nw_bench_begin(struct nw_bench *bench, const struct nw_unit *unit, bool *go_out,
                     const struct nw_record **kept_out)
{
    bool go = true;

    *go_out = false;
    if (bench->dry) {
        bench->total++;
        bench->total_weight += unit_weight(unit);
        if (unit->send_bytes > bench->send_bytes)
            bench->send_bytes = unit->send_bytes;
        if (unit->recv_bytes > bench->recv_bytes)
            bench->recv_bytes = unit->recv_bytes;
        return NW_OK;
    }
    tell_progress(bench, unit);
    if (bench->comm->rank == 0 && bench->events->done_count > 0 && all_done(bench, unit)) {
        go = false;
        keep_unit(bench, unit, kept_out);
    }
    NW_TRY(share_decision(bench, &go));
    if (!go) /* nothing to wait for: the estimate is about what is measured */
        bench->total_weight -= unit_weight(unit);
    *go_out = go;
    return NW_OK;
}

void nw_bench_end(struct nw_bench *bench, const struct nw_unit *unit)
{
    bench->done++;
    bench->done_weight += unit_weight(unit);
    if (bench->events->status != NULL)
        atomic_store(&bench->events->status->done, bench->done);
}

static void free_buffers(struct nw_bench *bench)
{
    nw_comm_drop_buffer(bench->comm, bench->send, bench->send_bytes);
    nw_comm_drop_buffer(bench->comm, bench->recv, bench->recv_bytes);
    bench->send = bench->recv = NULL;
    bench->send_bytes = bench->recv_bytes = 0;
#ifndef __SANITIZE_ADDRESS__ /* whose heap is not glibc's */
    malloc_trim(0); /* what an MPI has used for itself, up to half a buffer, stays in the heap */
#endif
}

static nw_rc allocate(struct nw_bench *bench)
{
    if (bench->plan->cold && bench->send_bytes > 0 && bench->send_bytes < COLD_BYTES)
        bench->send_bytes = COLD_BYTES;
    if (bench->plan->cold && bench->recv_bytes > 0 && bench->recv_bytes < COLD_BYTES)
        bench->recv_bytes = COLD_BYTES;
    bench->send = nw_comm_buffer(bench->comm, bench->send_bytes);
    if (bench->send != NULL)
        bench->recv = nw_comm_buffer(bench->comm, bench->recv_bytes);
    return bench->recv != NULL ? NW_OK : nw_last_error()->rc;
}

/* Collective, and the same on all ranks or broken. */
static nw_rc expose_buffers(struct nw_bench *bench)
{
    struct nw_comm *comm = bench->comm;

    if (comm->ops->expose == NULL)
        return NW_OK;
    NW_TRY(comm->ops->expose(comm, bench->send, bench->send_bytes));
    return comm->ops->expose(comm, bench->recv, bench->recv_bytes);
}

nw_rc nw_bench_series(struct nw_bench *bench, nw_rc (*walk)(void *user), void *user)
{
    struct nw_bench counted;
    nw_rc rc;

    if (bench->dry)
        return walk(user);
    free_buffers(bench);
    counted = *bench;
    bench->dry = true;
    rc = walk(user);
    bench->dry = false;
    bench->total = counted.total;
    bench->total_weight = counted.total_weight;
    if (rc == NW_OK)
        rc = allocate(bench);
    NW_TRY(nw_agree(bench->comm, rc));
    NW_TRY(nw_agree(bench->comm, expose_buffers(bench)));
    return walk(user);
}

void nw_bench_record(struct nw_bench *bench, const struct nw_record *record)
{
    bench->wrong |= record->rc == NW_EWRONG;
    if (bench->comm->rank == 0)
        hand_out(bench, record, false);
}

void nw_bench_finding(struct nw_bench *bench, nw_severity severity, const char *code,
                      const char *where, const char *remedy, const char *format, ...)
{
    struct nw_findings list = {0};
    char text[1024];
    va_list arguments;
    nw_rc rc;

    if (bench->dry || bench->comm->rank != 0 || bench->events->on_finding == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    rc = nw_findings_add(&list, severity, code, where, remedy, "%s", text);
    if (rc == NW_OK && bench->rc == NW_OK)
        rc = bench->events->on_finding(bench->events->user, &list.items[0]);
    keep_failure(bench, rc);
    nw_findings_free(&list);
}

/* What of the library's features the case uses: none in a device's own work. "graph" comes first.
 */
static const char *features_of(const struct nw_comm *comm, const char *case_name)
{
    const char *text = comm->features;

    for (size_t i = 0; i < nw_case_count; i++) {
        if (strcmp(nw_cases[i].name, case_name) != 0)
            continue;
        if (nw_cases[i].of_device)
            return "";
        if (nw_cases[i].no_graphs && comm->graphs)
            return text[strcspn(text, ",")] == ',' ? strchr(text, ',') + 1 : "";
    }
    return text;
}

void nw_bench_identity(const struct nw_bench *bench, const char *case_name,
                       struct nw_record *record_out)
{
    nw_record_init(record_out);
    snprintf(record_out->case_name, sizeof record_out->case_name, "%s", case_name);
    snprintf(record_out->lane, sizeof record_out->lane, "%s",
             bench->comm->lane[0] != '\0'                 ? bench->comm->lane
             : strcmp(bench->comm->ops->name, "mpi") == 0 ? "host"
                                                          : bench->comm->ops->name);
    snprintf(record_out->features, sizeof record_out->features, "%s",
             features_of(bench->comm, case_name));
    record_out->rank_count = bench->comm->rank_count;
    record_out->host_count = bench->comm->host_count;
    record_out->simulated = bench->comm->ops->simulated || bench->comm->simulated;
}

static int most_ranks_a_host(const struct nw_comm *comm)
{
    int most = 1;

    for (int host = 0; host < comm->host_count; host++) {
        int ranks = 0;

        for (int rank = 0; rank < comm->rank_count; rank++)
            ranks += comm->host_of_rank[rank] == host;
        most = ranks > most ? ranks : most;
    }
    return most;
}

double nw_bench_margin_ns(const struct nw_bench *bench)
{
    if (bench->plan->timeout_ns > 0)
        return bench->plan->timeout_ns;
    return bench->comm->simulated ? MARGIN_SIMULATED_NS : MARGIN_NS;
}

/* Out and back, all of a host's ranks through one wire. */
static double call_deadline_ns(const struct nw_bench *bench, uint64_t bytes)
{
    return bench->plan->timeout_ns > 0
               ? 0
               : 2.0 * (double)bytes * most_ranks_a_host(bench->comm) / SLOWEST_BYTES_PER_S * 1e9;
}

struct nw_measure nw_bench_how(struct nw_bench *bench, uint64_t bytes, const char *title)
{
    const struct nw_plan *plan = bench->plan;
    const struct nw_measure how = {
        .comm = bench->comm,
        .group_count = 1,
        .rules = {.min_samples = (size_t)plan->min_samples,
                  .stop_rel_ci = plan->stop_rel_ci,
                  .budget_ns = plan->budget_ns,
                  .fixed_calls = plan->iters},
        .warmup_calls = plan->warmup_iters,
        .check_calls = plan->check,
        .round = bench->round,
        .status = bench->events->status,
        .title = title,
        .margin_ns = nw_bench_margin_ns(bench),
        .call_deadline_ns = call_deadline_ns(bench, bytes),
    };

    bench->round += (uint64_t)plan->check + 1;
    return how;
}

struct nw_gated nw_bench_gate(const struct nw_bench *bench, uint64_t bytes, uint32_t calls)
{
    return (struct nw_gated){
        .comm = bench->comm,
        .dev = bench->comm->dev,
        .stream = bench->comm->ops->stream(bench->comm),
        .start = bench->start,
        .end = bench->end,
        .timeout_ns = nw_bench_margin_ns(bench) + calls * call_deadline_ns(bench, bytes),
    };
}

static nw_rc run_cases(struct nw_bench *bench)
{
    for (size_t i = 0; i < nw_case_count; i++)
        if (bench->plan->cases & 1u << i)
            NW_TRY(nw_cases[i].run(bench));
    return NW_OK;
}

static nw_rc check_same_plan(const struct nw_bench *bench)
{
    uint64_t hash = nw_plan_hash(bench->plan), first = hash;

    NW_TRY(bench->comm->ops->share(bench->comm, &first, sizeof first, 0));
    return nw_agree(bench->comm, hash == first
                                     ? NW_OK
                                     : nw_fail(NW_EUSAGE, "other options than on rank 0; start all "
                                                          "ranks with the same ones"));
}

/* What the plan with the sizes as they are comes to: measurements and buffers. */
static nw_rc count_units(struct nw_bench *bench)
{
    nw_rc rc;

    bench->total = bench->send_bytes = bench->recv_bytes = 0;
    bench->total_weight = 0;
    bench->dry = true;
    rc = run_cases(bench);
    bench->dry = false;
    return rc;
}

static nw_rc open_marks(struct nw_bench *bench)
{
    struct nw_comm *comm = bench->comm;

    if (comm->ops->stream == NULL)
        return NW_OK;
    NW_TRY(comm->dev->ops->mark_open(comm->dev, &bench->start));
    return comm->dev->ops->mark_open(comm->dev, &bench->end);
}

static nw_rc prepare(struct nw_bench *bench)
{
    nw_rc rc = nw_plan_sizes(bench->plan, &bench->sizes, &bench->size_count);

    if (rc == NW_OK)
        rc = count_units(bench);
    NW_TRY(nw_agree(bench->comm, rc));
    NW_TRY(nw_bench_fit(bench, count_units));
    if (bench->events->status != NULL)
        atomic_store(&bench->events->status->total, bench->total);
    return nw_agree(bench->comm, open_marks(bench));
}

static void hand_out_findings(struct nw_bench *bench, const struct nw_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct nw_finding *finding = &findings->items[i];

        nw_bench_finding(bench, finding->severity, finding->code, finding->where, finding->remedy,
                         "%s", finding->text);
    }
}

static nw_rc hand_out_context(struct nw_bench *bench)
{
    struct nw_context context;

    nw_context_init(&context);
    nw_bench_status_write(bench->events->status, nw_now_ns() + (uint64_t)MARGIN_NS * 3,
                          "looking at the hosts");
    NW_TRY(nw_bench_describe(bench->plan, bench->comm, bench->events->version, &context));
    if (bench->comm->rank == 0 && bench->events->on_context != NULL)
        keep_failure(bench, bench->events->on_context(bench->events->user, &context));
    nw_context_free(&context);
    hand_out_findings(bench, &bench->comm->findings); /* of opening the communicator */
    hand_out_findings(bench, &bench->notes);
    return NW_OK;
}

/* The end as rank 0 sees it, on every rank. */
static nw_rc verdict(struct nw_bench *bench)
{
    bool go = false;

    if (bench->rc == NW_OK && bench->wrong)
        keep_failure(bench, nw_fail(NW_EWRONG, "wrong data: see the findings"));
    else if (bench->rc == NW_OK && bench->failed)
        keep_failure(bench, nw_fail(NW_EWRONG, "not everything works: see the findings"));
    else if (bench->rc == NW_OK && bench->record_count == 0 && bench->comm->rank == 0)
        keep_failure(bench, nw_fail(NW_ENOTSUP, "nothing of the plan could be measured here"));
    return share_decision(bench, &go);
}

static void close_marks(struct nw_bench *bench)
{
    if (bench->comm->ops->stream == NULL)
        return;
    bench->comm->dev->ops->mark_close(bench->start);
    bench->comm->dev->ops->mark_close(bench->end);
}

nw_rc nw_bench_run(const struct nw_plan *plan, struct nw_comm *comm,
                   const struct nw_bench_events *events)
{
    struct nw_bench bench = {
        .plan = plan, .comm = comm, .events = events, .round = plan->seed * 1000};
    nw_rc rc = check_same_plan(&bench);

    if (rc == NW_OK)
        rc = prepare(&bench);
    if (rc == NW_OK)
        rc = hand_out_context(&bench);
    bench.began_ns = nw_now_ns();
    if (rc == NW_OK)
        rc = run_cases(&bench);
    if (rc == NW_OK)
        rc = verdict(&bench);
    if (nw_bench_is_broken(rc)) /* what it was about is told with the failure */
        nw_bench_status_deadline(events->status, 0);
    else
        nw_bench_status_write(events->status, 0, "");
    if (comm->dev == NULL || !nw_bench_is_broken(rc)) {
        free_buffers(&bench);
        close_marks(&bench);
    } /* else work may still stand on them, and a driver waits for it: they end with the process */
    nw_findings_free(&bench.notes);
    free(bench.sizes);
    return rc;
}

bool nw_bench_is_broken(nw_rc rc)
{
    return rc == NW_ELIB || rc == NW_EPEER || rc == NW_ETIMEOUT;
}
