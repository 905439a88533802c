/* Timed by the side that the data go out from (or read): its first request to its last completion,
 * so that no barrier is in it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/agree.h"
#include "bench/nic_links_parts.h"

#define POISON      0xa5
#define STAGE_WORDS 8192
/* A sample of nw_sampling is at least 0.2 ms; filling and draining the queues takes some tens of us
 * of each, so streams are given 16 times as long. */
#define STREAM_BATCH 16
/* Of a connection that has failed: any time will do, nobody reads it. */
#define LOST_NS 1e6
/* Of each end, the latest of its own rates: enough for a median. */
#define OWN_MOST 512

struct nic_work {
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
    double *own;                     /* ends x OWN_MOST: their own rates, bytes/s */
    size_t *own_count;               /* of each end; more than OWN_MOST: the oldest are gone */
};

/* ---- a run over this rank's ends ---------------------------------------------------------------
 */

static unsigned roles_of(const struct nw_nic_end *end, unsigned ways)
{
    const bool forth = (ways & NW_NIC_FORTH) != 0, back = (ways & NW_NIC_BACK) != 0;
    const bool gives = end->side == 0 ? forth : back, takes = end->side == 0 ? back : forth;

    return (gives ? NW_VERBS_GIVES : 0u) | (takes ? NW_VERBS_TAKES : 0u);
}

static struct nw_verbs_run run_of(const struct nic_work *work, const struct nw_nic_end *end,
                                  uint64_t count, bool ping)
{
    const struct nw_nic_task *task = work->task;

    return (struct nw_verbs_run){
        .op = task->op,
        .roles = roles_of(end, task->ways),
        .bytes = task->bytes,
        .count = count,
        .give_at = 0,
        .take_at = work->links->region_bytes,
        .span_bytes = (uint64_t)task->qps * nw_verbs_stride(task->bytes),
        .qps = task->qps,
        .depth = task->depth,
        .ping = ping,
        .now_ns = work->links->bench->comm->now_ns,
    };
}

static int group_of(const struct nw_nic_task *task, size_t pair)
{
    return task->group_of_pair != NULL ? task->group_of_pair[pair] : (int)pair;
}

/* Has it failed, or nothing to do? */
static bool is_lost(const struct nic_work *work, size_t i)
{
    return group_of(work->task, work->links->ends[i].pair) < 0 ||
           work->links->is_out[work->links->ends[i].pair] || work->failures[i].rc != NW_OK;
}

/* Who of this rank's ends has the failure of a run over several: those that broke; all, where none
 * did (the run was refused). */
static void lose_run(struct nic_work *work, nw_rc rc)
{
    bool any = false;

    for (size_t i = 0; i < work->links->end_count; i++)
        if (!is_lost(work, i) && nw_verbs_end_is_broken(work->links->ends[i].end)) {
            nw_nic_note(&work->failures[i], rc);
            any = true;
        }
    for (size_t i = 0; i < work->links->end_count && !any; i++)
        if (!is_lost(work, i))
            nw_nic_note(&work->failures[i], rc);
}

static size_t prepare(struct nic_work *work, uint64_t count, bool ping)
{
    size_t used = 0;

    for (size_t i = 0; i < work->links->end_count; i++) {
        const struct nw_nic_end *mine = &work->links->ends[i];
        nw_rc rc;

        if (is_lost(work, i))
            continue;
        work->runs[used] = run_of(work, mine, count, ping);
        work->ends[used] = mine->end;
        work->end_of[used] = i;
        rc = nw_verbs_prepare(mine->end, &work->runs[used]);
        if (rc == NW_OK)
            used++;
        else
            nw_nic_note(&work->failures[i], rc);
    }
    return used;
}

/* Of a run that went well; an end that only looked on has no time. */
static void keep_rates(struct nic_work *work, size_t used)
{
    for (size_t k = 0; k < used; k++) {
        const size_t i = work->end_of[k];

        if (work->results[k].bytes_per_s > 0)
            work->own[i * OWN_MOST + work->own_count[i]++ % OWN_MOST] =
                work->results[k].bytes_per_s;
    }
}

/* Collective. `ns_out`: of this rank's ends, 0 where it only looked on. Of several from the first
 * one's start to the last one's end: a NIC that is software may be done before the next one starts.
 */
static nw_rc run_once(struct nic_work *work, uint64_t count, bool ping, double *ns_out)
{
    struct nw_comm *comm = work->links->bench->comm;
    const size_t used = prepare(work, count, ping);
    double ns = 0;

    NW_TRY(comm->ops->barrier(comm));
    if (used > 0) {
        const uint64_t began_ns = nw_comm_now_ns(comm);
        const nw_rc rc = nw_verbs_run_all(work->ends, work->runs, used, work->results);
        const double all_ns = (double)(nw_comm_now_ns(comm) - began_ns);

        if (rc != NW_OK)
            lose_run(work, rc);
        for (size_t i = 0; i < used && rc == NW_OK; i++)
            if (isfinite(work->results[i].ns))
                ns = used > 1 ? all_ns : work->results[i].ns;
        if (rc != NW_OK)
            ns = LOST_NS * (double)count;
        else if (work->is_timed)
            keep_rates(work, used);
    }
    *ns_out = ns;
    return NW_OK;
}

/* ---- data --------------------------------------------------------------------------------------
 */

/* What a NIC gives. */
static uint64_t word_of(int nic, uint64_t round, uint64_t index)
{
    return (((uint64_t)nic << 48) ^ (round << 32) ^ index) * 0x9e3779b97f4a7c15u;
}

static int nic_of(const struct nw_nic_links *links, size_t pair, int side)
{
    return side == 0 ? links->round->pairs[pair].a : links->round->pairs[pair].b;
}

static void put(const struct nw_nic_links *links, char *to, const uint64_t *from, uint64_t words)
{
    if (links->ask.gpu)
        nw_comm_put(links->bench->comm, to, from, words * NW_NIC_WORD);
    else
        memcpy(to, from, words * NW_NIC_WORD);
}

static void get(const struct nw_nic_links *links, uint64_t *to, const char *from, uint64_t words)
{
    if (links->ask.gpu)
        nw_comm_get(links->bench->comm, to, from, words * NW_NIC_WORD);
    else
        memcpy(to, from, words * NW_NIC_WORD);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t words_of(const struct nic_work *work)
{
    return (uint64_t)work->task->qps * nw_verbs_stride(work->task->bytes) / NW_NIC_WORD;
}

static void nic_fill(const struct nw_work *base, uint64_t round)
{
    const struct nic_work *work = (const struct nic_work *)base;
    const struct nw_nic_links *links = work->links;
    uint64_t stage[STAGE_WORDS];

    for (size_t i = 0; i < links->end_count; i++) {
        const struct nw_nic_end *end = &links->ends[i];

        for (uint64_t done = 0; done < words_of(work) && !is_lost(work, i); done += STAGE_WORDS) {
            const uint64_t count = least(STAGE_WORDS, words_of(work) - done);

            for (uint64_t k = 0; k < count; k++)
                stage[k] = word_of(nic_of(links, end->pair, end->side), round, done + k);
            put(links, end->buffer + done * NW_NIC_WORD, stage, count);
            memset(stage, POISON, count * NW_NIC_WORD);
            put(links, end->buffer + links->region_bytes + done * NW_NIC_WORD, stage, count);
        }
    }
    if (links->ask
            .gpu) /* a NIC does not wait for the GPU's stream; what fails shows at the check */
        (void)nw_comm_finish(links->bench->comm, nw_bench_margin_ns(links->bench));
}

static uint64_t check_end(const struct nic_work *work, const struct nw_nic_end *end, uint64_t round,
                          struct nw_wrong *first_out)
{
    const struct nw_nic_links *links = work->links;
    const uint64_t stride = nw_verbs_stride(work->task->bytes) / NW_NIC_WORD;
    const int giver = nic_of(links, end->pair, 1 - end->side);
    uint64_t stage[STAGE_WORDS], wrong = 0;

    for (uint64_t i = 0; i < words_of(work); i++) {
        const uint64_t expected = word_of(giver, round, i);

        if (i % STAGE_WORDS == 0)
            get(links, stage, end->buffer + links->region_bytes + i * NW_NIC_WORD,
                least(STAGE_WORDS, words_of(work) - i));
        if (i % stride >= work->task->bytes / NW_NIC_WORD || stage[i % STAGE_WORDS] == expected)
            continue;
        if (wrong++ == 0)
            *first_out = (struct nw_wrong){.index = i,
                                           .expected = (double)expected,
                                           .found = (double)stage[i % STAGE_WORDS],
                                           .from_rank = links->nics->items[giver].owner};
    }
    return wrong;
}

static uint64_t nic_check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    const struct nic_work *work = (const struct nic_work *)base;
    uint64_t wrong = 0;

    for (size_t i = 0; i < work->links->end_count; i++) {
        const struct nw_nic_end *end = &work->links->ends[i];
        struct nw_wrong first;
        uint64_t of_end;

        if (is_lost(work, i) || (roles_of(end, work->task->ways) & NW_VERBS_TAKES) == 0)
            continue;
        of_end = check_end(work, end, round, &first);
        if (of_end > 0 && wrong == 0)
            *first_out = first;
        wrong += of_end;
    }
    return wrong;
}

/* Each slot once, so that the whole region is a copy. */
static nw_rc nic_call(const struct nw_work *base, uint64_t index)
{
    struct nic_work *work = (struct nic_work *)(uintptr_t)base;
    double ns;

    (void)index;
    NW_TRY(run_once(work, (uint64_t)work->task->qps, false, &ns));
    return work->links->bench->comm->ops->barrier(work->links->bench->comm);
}

static nw_rc nic_time(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    struct nic_work *work = (struct nic_work *)(uintptr_t)base;
    const bool ping = work->task->ping;
    nw_rc rc;

    (void)index;
    work->is_timed = !ping;
    rc = run_once(work, (uint64_t)calls * work->batch, ping, ns_out);
    work->is_timed = false;
    NW_TRY(rc);
    *ns_out /= work->batch;
    if (ping && work->task->op != NW_VERBS_READ)
        *ns_out /= 2; /* half a round trip, as perftest has it */
    return NW_OK;
}

/* ---- a measurement -----------------------------------------------------------------------------
 */

static nw_rc open_work(struct nic_work *work, struct nw_nic_links *links,
                       const struct nw_nic_task *task)
{
    const size_t count = links->slots;

    *work = (struct nic_work){
        .work = {.call = nic_call,
                 .fill = nic_fill,
                 .check = nic_check,
                 .time = nic_time,
                 .result_stays = !task->ping}, /* a write's ping is seen by its last byte */
        .links = links,
        .task = task,
        .batch = task->ping ? 1 : STREAM_BATCH,
        .ends = calloc(count, sizeof *work->ends),
        .runs = calloc(count, sizeof *work->runs),
        .results = calloc(count, sizeof *work->results),
        .end_of = calloc(count, sizeof *work->end_of),
        .failures = calloc(count, sizeof *work->failures),
        .own = calloc(count * OWN_MOST, sizeof *work->own),
        .own_count = calloc(count, sizeof *work->own_count),
    };
    if (work->ends == NULL || work->runs == NULL || work->results == NULL || work->end_of == NULL ||
        work->failures == NULL || work->own == NULL || work->own_count == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu connections", count);
    return NW_OK;
}

static void close_work(struct nic_work *work)
{
    free(work->ends);
    free(work->runs);
    free(work->results);
    free(work->end_of);
    free(work->failures);
    free(work->own);
    free(work->own_count);
}

static int group_count(const struct nw_nic_links *links, const struct nw_nic_task *task)
{
    return task->group_of_pair != NULL ? task->group_count : (int)links->round->count;
}

/* A group with a pair that has failed is left out: of its ranks' times nothing is made. */
static nw_rc failure_of(const struct nw_nic_links *links, const struct nw_nic_task *task, int group)
{
    for (size_t pair = 0; pair < links->round->count; pair++)
        if (group_of(task, pair) == group && links->is_out[pair])
            return links->failures[pair].rc;
    return NW_OK;
}

/* Of the groups that work, in their order: a number each, and the ranks that are in them. */
static int number_groups(const struct nw_nic_links *links, const struct nw_nic_task *task,
                         int *number_of_group, int *group_of_rank)
{
    const int groups = group_count(links, task);
    int count = 0;

    for (int rank = 0; rank < links->bench->comm->rank_count; rank++)
        group_of_rank[rank] = -1;
    for (int group = 0; group < groups; group++)
        number_of_group[group] = failure_of(links, task, group) != NW_OK ? -1 : count++;
    for (size_t i = 0; i < 2 * links->round->count; i++) {
        const int group = group_of(task, i / 2);

        if (group >= 0 && number_of_group[group] >= 0)
            group_of_rank[links->owner_of[i]] = number_of_group[group];
    }
    return count;
}

static nw_rc report(const struct nic_work *work, const struct nw_measured *measured,
                    const int *number_of_group, struct nw_record *records)
{
    const struct nw_nic_links *links = work->links;
    const struct nw_nic_task *task = work->task;

    for (int group = 0; group < group_count(links, task); group++) {
        struct nw_record *record = &records[group];

        record->rc = failure_of(links, task, group);
        if (record->rc != NW_OK)
            continue;
        NW_TRY(
            nw_measured_report(measured, number_of_group[group], links->bench->comm, NAN, record));
        record->calls_per_sample *= work->batch;
        if (task->ping)
            record->algbw_bytes_per_s = NAN;
    }
    return NW_OK;
}

static int compare_rates(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double own_rate(struct nic_work *work, size_t i)
{
    const size_t count = work->own_count[i] < OWN_MOST ? work->own_count[i] : OWN_MOST;

    qsort(&work->own[i * OWN_MOST], count, sizeof *work->own, compare_rates);
    return count > 0 ? work->own[i * OWN_MOST + count / 2] : NAN;
}

/* Collective: of both sides the slower one, where both give. */
static nw_rc share_own_rates(struct nic_work *work)
{
    struct nw_nic_links *links = work->links;
    char *all;

    /* one an end, where all of them were: entry i is not read again after end i */
    for (size_t i = 0; i < links->end_count; i++)
        work->own[i] = own_rate(work, i);
    NW_TRY(nw_nic_exchange(links, work->own, sizeof *work->own, &all));
    for (size_t pair = 0; pair < links->round->count; pair++) {
        const bool is_in = group_of(work->task, pair) >= 0 && !links->is_out[pair];
        const double a = *(const double *)nw_nic_of(links, all, sizeof *work->own, pair, 0);
        const double b = *(const double *)nw_nic_of(links, all, sizeof *work->own, pair, 1);

        links->own_rates[pair] = is_in ? fmin(a, b) : NAN; /* a NAN gives way to the other */
    }
    free(all);
    return NW_OK;
}

static nw_rc measure(struct nic_work *work, int *number_of_group, int *group_of_rank,
                     struct nw_record *records)
{
    struct nw_nic_links *links = work->links;
    const struct nw_nic_task *task = work->task;
    struct nw_measure how = nw_bench_how(links->bench, task->bytes, task->title);
    struct nw_measured measured = {0};
    const int working = number_groups(links, task, number_of_group, group_of_rank);
    nw_rc rc;

    how.group_of_rank = group_of_rank;
    how.group_count = working;
    how.call_deadline_ns *= work->batch * 2;
    how.margin_ns += 2 * nw_nic_wait_ns(links->bench);
    if (how.rules.fixed_calls > 0)
        how.rules.fixed_calls = (how.rules.fixed_calls + work->batch - 1) / work->batch;
    for (size_t pair = 0; pair < links->round->count; pair++)
        links->own_rates[pair] = NAN;
    if (working > 0) {
        NW_TRY(nw_measure(&how, &work->work, &measured));
        rc = nw_nic_agree(links, work->failures);
        if (rc == NW_OK)
            rc = share_own_rates(work);
        if (rc != NW_OK) {
            nw_measured_free(&measured);
            return rc;
        }
    }
    rc = report(work, &measured, number_of_group, records);
    nw_measured_free(&measured);
    return rc;
}

nw_rc nw_nic_measure(struct nw_nic_links *links, const struct nw_nic_task *task,
                     struct nw_record *records)
{
    int *number_of_group = calloc((size_t)group_count(links, task), sizeof *number_of_group);
    int *group_of_rank = calloc((size_t)links->bench->comm->rank_count, sizeof *group_of_rank);
    struct nw_comm *comm = links->bench->comm;
    const bool was_gentle = comm->gentle;
    struct nic_work work;
    nw_rc rc = open_work(&work, links, task);

    if (rc == NW_OK && (number_of_group == NULL || group_of_rank == NULL))
        rc = nw_fail(NW_ENOMEM, "no memory for the groups of %zu NICs", links->round->count);
    rc = nw_agree(comm, rc);
    /* Who only looks on keeps its CPU from nobody, where MPI's are the barriers (NCCL's
     * communicator has the same). It may leave the barrier 70 us late, so not where that would be
     * in the time: two ways at once, and pings, whose answering side is awaited. */
    comm->gentle = task->ways != (NW_NIC_FORTH | NW_NIC_BACK) && !task->ping;
    if (rc == NW_OK)
        rc = measure(&work, number_of_group, group_of_rank, records);
    comm->gentle = was_gentle;
    close_work(&work);
    free(number_of_group);
    free(group_of_rank);
    return rc;
}

/* ---- a probe -----------------------------------------------------------------------------------
 */

#define PROBE_FIRST 64 /* messages, to see how long one takes */
#define PROBE_MOST  1000000

static nw_rc share_rates(struct nw_nic_links *links, const double *mine, double *rates)
{
    char *all;

    NW_TRY(nw_nic_exchange(links, mine, sizeof *mine, &all));
    for (size_t pair = 0; pair < links->round->count; pair++)
        rates[pair] = links->is_out[pair]
                          ? NAN
                          : *(const double *)nw_nic_of(links, all, sizeof *mine, pair, 0);
    free(all);
    return NW_OK;
}

static nw_rc probe(struct nic_work *work, double ns, double *mine, double *rates)
{
    struct nw_nic_links *links = work->links;
    uint64_t count = PROBE_FIRST;

    for (int turn = 0; turn < 2; turn++) {
        double longest_ns, slowest = 0;

        NW_TRY(run_once(work, count, false, &longest_ns));
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
    double *mine = calloc(links->slots, sizeof *mine);
    struct nw_comm *comm = links->bench->comm;
    const bool was_gentle = comm->gentle;
    struct nic_work work;
    nw_rc rc = open_work(&work, links, &task);

    if (rc == NW_OK && mine == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %zu rates", links->slots);
    rc = nw_agree(links->bench->comm, rc);
    comm->gentle = true;
    if (rc == NW_OK)
        rc = probe(&work, ns, mine, rates);
    comm->gentle = was_gentle;
    close_work(&work);
    free(mine);
    return rc;
}
