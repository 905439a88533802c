#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/agree.h"

/* What ranks tell each other: arrays of doubles. */
enum { PACKET_ELAPSED, PACKET_TIMES, PACKET_MAX = PACKET_TIMES + NW_BATCH_MAX };
enum { CHECK_WRONG, CHECK_INDEX, CHECK_EXPECTED, CHECK_FOUND, CHECK_FROM, CHECK_COUNT };

struct loop {
    const struct nw_measure *how;
    const struct nw_work *work;
    const int *group_of_rank;
    int *everybody; /* group_of_rank where the caller gave none */
    double *mine, *all;
    uint64_t index;         /* of the next call */
    struct nw_measured out; /* growing */
};

static void set_deadline(const struct loop *loop, uint32_t calls)
{
    nw_bench_status_deadline(
        loop->how->status,
        nw_now_ns() + (uint64_t)(loop->how->margin_ns + calls * loop->how->call_deadline_ns));
}

static void enter_phase(const struct loop *loop, const char *phase)
{
    char text[NW_BENCH_STATUS_TEXT];

    if (loop->how->status == NULL)
        return;
    snprintf(text, sizeof text, "%s, %s", loop->how->title, phase);
    nw_bench_status_write(loop->how->status, 0, text);
    set_deadline(loop, 1);
}

/* A call that fails breaks the communicator: the other ranks are in the middle of theirs, so there
 * is no agreeing any more, and this rank leaves with its own words. */
static nw_rc name_failure(const struct loop *loop, nw_rc rc)
{
    const struct nw_comm *comm = loop->how->comm;
    char text[sizeof nw_last_error()->text], who[NW_COMM_RANK_TEXT];

    if (rc == NW_OK || rc == NW_EPEER)
        return rc;
    snprintf(text, sizeof text, "%s", nw_last_error()->text);
    return nw_fail(rc, "%s: %s", nw_comm_rank_text(comm, comm->rank, who), text);
}

static nw_rc call_once(const struct loop *loop, uint64_t index)
{
    return name_failure(loop, loop->work->call(loop->work, index));
}

/* The calls of a sample only begin their work where the backend has its own memory. A work over
 * communicators that were split from this one is done with it too. */
static nw_rc finish(const struct loop *loop, uint32_t calls)
{
    const struct nw_measure *how = loop->how;

    if (how->comm->ops->finish == NULL)
        return NW_OK;
    set_deadline(loop, calls);
    return name_failure(loop,
                        nw_comm_finish(how->comm, how->margin_ns + calls * how->call_deadline_ns));
}

/* Everybody's packet of `count` doubles into loop->all. */
static nw_rc exchange(struct loop *loop, size_t count)
{
    struct nw_comm *comm = loop->how->comm;

    set_deadline(loop, 1);
    return comm->ops->exchange(comm, loop->mine, count * sizeof *loop->mine, loop->all);
}

static void merge_check(struct loop *loop)
{
    for (int rank = 0; rank < loop->how->comm->rank_count; rank++) {
        const double *packet = loop->all + (size_t)rank * CHECK_COUNT;
        const int group = loop->group_of_rank[rank];
        struct nw_group_check *check;

        if (group < 0)
            continue;
        check = &loop->out.checks[group];
        if (check->wrong_elements < 0)
            check->wrong_elements = 0;
        if (packet[CHECK_WRONG] > 0 && check->rank < 0) {
            check->rank = rank;
            check->first = (struct nw_wrong){.index = (uint64_t)packet[CHECK_INDEX],
                                             .expected = packet[CHECK_EXPECTED],
                                             .found = packet[CHECK_FOUND],
                                             .from_rank = (int)packet[CHECK_FROM]};
        }
        check->wrong_elements += (int64_t)packet[CHECK_WRONG];
    }
}

static nw_rc check_once(struct loop *loop, uint64_t round)
{
    struct nw_wrong first = {.from_rank = -1};
    const uint64_t wrong = loop->work->check(loop->work, round, &first);

    NW_TRY(finish(loop, 1));
    loop->mine[CHECK_WRONG] = (double)wrong;
    loop->mine[CHECK_INDEX] = (double)first.index;
    loop->mine[CHECK_EXPECTED] = first.expected;
    loop->mine[CHECK_FOUND] = first.found;
    loop->mine[CHECK_FROM] = first.from_rank;
    NW_TRY(exchange(loop, CHECK_COUNT));
    merge_check(loop);
    return NW_OK;
}

static nw_rc verify(struct loop *loop, uint64_t round)
{
    loop->work->fill(loop->work, round);
    NW_TRY(call_once(loop, 0));
    NW_TRY(finish(loop, 1));
    return check_once(loop, round);
}

/* The first calls: verified, or at least one that is not timed. All are made without a gate, and
 * one is always made: a library may connect, load a kernel or allocate in the first call of a size
 * (or of a piece of it) and wait for the device with that, which a closed gate never lets end. So
 * nothing stands behind a gate that was not called before. */
static nw_rc warm_up(struct loop *loop)
{
    const struct nw_measure *how = loop->how;
    int calls = 0;

    enter_phase(loop, "first call and check");
    for (; calls < how->check_calls; calls++)
        NW_TRY(verify(loop, how->round + (uint64_t)calls));
    if (how->check_calls == 0)
        loop->work->fill(loop->work, how->round);
    for (; calls < 1 || calls < how->warmup_calls; calls++) {
        set_deadline(loop, 1);
        NW_TRY(call_once(loop, loop->index++));
        NW_TRY(finish(loop, 1));
    }
    return NW_OK;
}

static bool all_wrong(const struct loop *loop)
{
    for (int group = 0; group < loop->out.group_count; group++)
        if (loop->out.checks[group].wrong_elements <= 0)
            return false;
    return true;
}

static nw_rc start_sample(struct loop *loop, uint32_t calls)
{
    set_deadline(loop, calls);
    return loop->how->comm->ops->barrier(loop->how->comm);
}

/* By the device's clock. */
static nw_rc take_timed(struct loop *loop, uint32_t calls, double *time_ns_out)
{
    const struct nw_work *work = loop->work;

    set_deadline(loop, calls);
    NW_TRY(name_failure(loop, work->time(work, loop->index, calls, time_ns_out)));
    loop->index += calls;
    return NW_OK;
}

static nw_rc take_sample(struct loop *loop, uint32_t calls, double *time_ns_out)
{
    uint64_t began_ns;

    if (loop->work->time != NULL)
        return take_timed(loop, calls, time_ns_out);
    NW_TRY(start_sample(loop, calls));
    began_ns = nw_comm_now_ns(loop->how->comm);
    for (uint32_t call = 0; call < calls; call++)
        NW_TRY(call_once(loop, loop->index++));
    NW_TRY(finish(loop, calls));
    *time_ns_out = (double)(nw_comm_now_ns(loop->how->comm) - began_ns);
    return NW_OK;
}

/* Each is a barrier, and behind one a rank without a CPU makes its own gate late, no more. */
#define CALIBRATION_TIMED_MAX 4

static nw_rc calibrate_timed(struct loop *loop, uint32_t calls, double *time_ns_out)
{
    double fastest_ns = INFINITY;

    for (uint32_t call = 0; call < calls && call < CALIBRATION_TIMED_MAX; call++) {
        double call_ns;

        NW_TRY(take_timed(loop, 1, &call_ns));
        fastest_ns = fmin(fastest_ns, call_ns);
    }
    *time_ns_out = fastest_ns * calls;
    return NW_OK;
}

/* See nw_sampling_calibrates. */
static nw_rc take_calibration(struct loop *loop, uint32_t calls, double *time_ns_out)
{
    uint64_t fastest_ns = UINT64_MAX;

    if (loop->work->time != NULL)
        return calibrate_timed(loop, calls, time_ns_out);
    NW_TRY(start_sample(loop, calls));
    for (uint32_t call = 0; call < calls; call++) {
        const uint64_t began_ns = nw_comm_now_ns(loop->how->comm);
        uint64_t call_ns;

        NW_TRY(call_once(loop, loop->index++));
        NW_TRY(finish(loop, 1));
        call_ns = nw_comm_now_ns(loop->how->comm) - began_ns;
        fastest_ns = call_ns < fastest_ns ? call_ns : fastest_ns;
    }
    *time_ns_out = (double)fastest_ns * calls;
    return NW_OK;
}

static nw_rc sample(struct loop *loop)
{
    struct nw_sampling *sampling = loop->out.sampling;
    const int rank_count = loop->how->comm->rank_count;
    const uint64_t began = nw_comm_now_ns(loop->how->comm);
    size_t batch;

    enter_phase(loop, "timing");
    while ((batch = nw_sampling_next(sampling)) > 0) {
        const uint32_t calls = nw_sampling_calls(sampling);
        const size_t count = PACKET_TIMES + batch;
        double elapsed_ns = 0;

        for (size_t i = 0; i < batch; i++)
            NW_TRY((nw_sampling_calibrates(sampling) ? take_calibration : take_sample)(
                loop, calls, &loop->mine[PACKET_TIMES + i]));
        loop->mine[PACKET_ELAPSED] = (double)(nw_comm_now_ns(loop->how->comm) - began);
        NW_TRY(exchange(loop, count));
        for (int rank = 0; rank < rank_count; rank++)
            elapsed_ns = fmax(elapsed_ns, loop->all[(size_t)rank * count + PACKET_ELAPSED]);
        NW_TRY(nw_agree(loop->how->comm, nw_sampling_add(sampling, batch, loop->all + PACKET_TIMES,
                                                         count, elapsed_ns)));
    }
    return NW_OK;
}

static nw_rc verify_again(struct loop *loop)
{
    const struct nw_measure *how = loop->how;

    if (how->check_calls == 0)
        return NW_OK;
    enter_phase(loop, "last check");
    if (loop->work->result_stays)
        return check_once(loop, how->round + (uint64_t)how->check_calls - 1);
    return verify(loop, how->round + (uint64_t)how->check_calls);
}

static nw_rc open_loop(struct loop *loop)
{
    const struct nw_measure *how = loop->how;
    const size_t ranks = (size_t)how->comm->rank_count;
    struct nw_sampling_rules rules = how->rules;

    if (loop->work->time != NULL)
        rules.calls_max = loop->work->calls_max;
    loop->group_of_rank = how->group_of_rank;
    if (how->group_of_rank == NULL) {
        loop->everybody = calloc(ranks, sizeof *loop->everybody);
        loop->group_of_rank = loop->everybody;
    }
    loop->mine = calloc(PACKET_MAX, sizeof *loop->mine);
    loop->all = calloc(ranks * PACKET_MAX, sizeof *loop->all);
    loop->out.group_count = how->group_of_rank == NULL ? 1 : how->group_count;
    loop->out.checks = calloc((size_t)loop->out.group_count, sizeof *loop->out.checks);
    if (loop->group_of_rank == NULL || loop->mine == NULL || loop->all == NULL ||
        loop->out.checks == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the samples of %zu ranks", ranks);
    for (int group = 0; group < loop->out.group_count; group++)
        loop->out.checks[group] =
            (struct nw_group_check){.wrong_elements = -1, .rank = -1, .first = {.from_rank = -1}};
    return nw_sampling_open(&rules, loop->group_of_rank, how->comm->rank_count,
                            loop->out.group_count, &loop->out.sampling);
}

static nw_rc run_loop(struct loop *loop)
{
    NW_TRY(warm_up(loop));
    if (all_wrong(loop))
        return NW_OK;
    NW_TRY(sample(loop));
    return verify_again(loop);
}

nw_rc nw_measure(const struct nw_measure *how, const struct nw_work *work,
                 struct nw_measured *measured_out)
{
    struct loop loop = {.how = how, .work = work};
    nw_rc rc = nw_agree(how->comm, open_loop(&loop));

    if (rc == NW_OK)
        rc = run_loop(&loop);
    free(loop.everybody);
    free(loop.mine);
    free(loop.all);
    if (rc != NW_OK) {
        nw_measured_free(&loop.out);
        return rc;
    }
    *measured_out = loop.out;
    return NW_OK;
}

void nw_measured_free(struct nw_measured *measured)
{
    nw_sampling_close(measured->sampling);
    free(measured->checks);
    *measured = (struct nw_measured){0};
}

static nw_rc report_wrong(const struct nw_group_check *check, const struct nw_comm *comm,
                          struct nw_record *record)
{
    char where[NW_COMM_RANK_TEXT], origin[48] = "";

    record->rc = NW_EWRONG;
    nw_comm_rank_text(comm, check->rank, where);
    if (check->first.from_rank >= 0)
        snprintf(origin, sizeof origin, ", from rank %d", check->first.from_rank);
    return nw_findings_add(&record->warnings, NW_FINDING_FAIL, "wrong-data", where,
                           "do not use this path; test memory and links of the hosts named",
                           "%s of %llu bytes: %lld wrong elements; the first is element %llu%s: "
                           "%.17g instead of %.17g",
                           record->collective, (unsigned long long)record->bytes,
                           (long long)check->wrong_elements, (unsigned long long)check->first.index,
                           origin, check->first.found, check->first.expected);
}

nw_rc nw_measured_report(const struct nw_measured *measured, int group, const struct nw_comm *comm,
                         double bus_factor, struct nw_record *record)
{
    const struct nw_group_check *check = &measured->checks[group];

    record->wrong_elements = check->wrong_elements;
    if (check->wrong_elements > 0)
        return report_wrong(check, comm, record);
    NW_TRY(nw_sampling_report(measured->sampling, group, record));
    if (record->slowest_rank >= 0)
        snprintf(record->slowest_host, sizeof record->slowest_host, "%s",
                 comm->host_names[comm->host_of_rank[record->slowest_rank]]);
    if (!(record->time_ns.median > 0))
        return NW_OK;
    record->algbw_bytes_per_s = (double)record->bytes / record->time_ns.median * 1e9;
    record->busbw_bytes_per_s = record->algbw_bytes_per_s * bus_factor;
    return NW_OK;
}
