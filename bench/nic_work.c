/* Timed by the side that the data go out from (or read): its first request to its last completion,
 * so that no barrier is in it. */
#include "bench/nic_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/words.h"

#define STAGE_WORDS 8192
/* Messages of a stream that count as one call: so much data, that the queues fill to their depth.
 */
#define STREAM_BATCH_BYTES (8u << 20)
#define STREAM_BATCH_LEAST 16
#define STREAM_BATCH_MOST  1024
/* Of a connection that has failed: any time will do, nobody reads it. */
#define LOST_NS 1e6

/* ---- a run over this rank's ends ---------------------------------------------------------------
 */

static unsigned roles_of(const struct nw_nic_end *end, unsigned ways)
{
    const bool forth = (ways & NW_NIC_FORTH) != 0, back = (ways & NW_NIC_BACK) != 0;
    const bool gives = end->side == 0 ? forth : back, takes = end->side == 0 ? back : forth;

    return (gives ? NW_VERBS_GIVES : 0u) | (takes ? NW_VERBS_TAKES : 0u);
}

static struct nw_verbs_run run_of(const struct nw_nic_work *work, const struct nw_nic_end *end,
                                  uint64_t count, bool ping)
{
    const struct nw_nic_task *task = work->task;
    const int depth = nw_verbs_end_link(end->end)->depth; /* a NIC may have less */

    return (struct nw_verbs_run){
        .op = task->op,
        .roles = roles_of(end, task->ways),
        .bytes = task->bytes,
        .count = count,
        .give_at = 0,
        .take_at = work->links->region_bytes,
        .span_bytes = (uint64_t)task->qps * nw_verbs_stride(task->bytes),
        .qps = task->qps,
        .depth = task->depth < depth ? task->depth : depth,
        .ping = ping,
        .now_ns = work->links->bench->comm->now_ns,
    };
}

int nw_nic_group_of(const struct nw_nic_task *task, size_t pair)
{
    return task->group_of_pair != NULL ? task->group_of_pair[pair] : (int)pair;
}

/* Has it failed, or nothing to do? */
static bool is_lost(const struct nw_nic_work *work, size_t i)
{
    return nw_nic_group_of(work->task, work->links->ends[i].pair) < 0 ||
           work->links->is_out[work->links->ends[i].pair] || work->failures[i].rc != NW_OK;
}

/* Who of this rank's ends has the failure of a run over several: those that broke; all, where none
 * did (the run was refused). */
static void lose_run(struct nw_nic_work *work, nw_rc rc)
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

static size_t prepare(struct nw_nic_work *work, uint64_t count, bool ping)
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
static void keep_rates(struct nw_nic_work *work, size_t used)
{
    for (size_t k = 0; k < used; k++) {
        const size_t i = work->end_of[k];

        if (work->results[k].bytes_per_s > 0)
            work->own[i * NW_NIC_OWN_MOST + work->own_count[i]++ % NW_NIC_OWN_MOST] =
                work->results[k].bytes_per_s;
    }
}

/* Collective. `ns_out`: of this rank's ends, 0 where it only looked on. Of several from the first
 * one's start to the last one's end: a NIC that is software may be done before the next one starts.
 */
nw_rc nw_nic_run_once(struct nw_nic_work *work, uint64_t count, bool ping, double *ns_out)
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

static uint64_t words_of(const struct nw_nic_work *work)
{
    return (uint64_t)work->task->qps * nw_verbs_stride(work->task->bytes) / NW_NIC_WORD;
}

/* Of what is left after `done` words, as much as is staged at a time. */
static uint64_t stage_words(const struct nw_nic_work *work, uint64_t done)
{
    const uint64_t left = words_of(work) - done;

    return left < STAGE_WORDS ? left : STAGE_WORDS;
}

static void nic_fill(const struct nw_work *base, uint64_t round)
{
    const struct nw_nic_work *work = (const struct nw_nic_work *)base;
    const struct nw_nic_links *links = work->links;
    uint64_t stage[STAGE_WORDS];

    for (size_t i = 0; i < links->end_count; i++) {
        const struct nw_nic_end *end = &links->ends[i];

        for (uint64_t done = 0; done < words_of(work) && !is_lost(work, i); done += STAGE_WORDS) {
            const uint64_t count = stage_words(work, done);

            for (uint64_t k = 0; k < count; k++)
                stage[k] = nw_word_of(nic_of(links, end->pair, end->side), round, done + k);
            put(links, end->buffer + done * NW_NIC_WORD, stage, count);
            memset(stage, NW_POISON, count * NW_NIC_WORD);
            put(links, end->buffer + links->region_bytes + done * NW_NIC_WORD, stage, count);
        }
    }
    if (links->ask
            .gpu) /* a NIC does not wait for the GPU's stream; what fails shows at the check */
        (void)nw_comm_finish(links->bench->comm, nw_bench_margin_ns(links->bench));
}

static uint64_t check_end(const struct nw_nic_work *work, const struct nw_nic_end *end,
                          uint64_t round, struct nw_wrong *first_out)
{
    const struct nw_nic_links *links = work->links;
    const uint64_t stride = nw_verbs_stride(work->task->bytes) / NW_NIC_WORD;
    const int giver = nic_of(links, end->pair, 1 - end->side);
    uint64_t stage[STAGE_WORDS], wrong = 0;

    for (uint64_t i = 0; i < words_of(work); i++) {
        const uint64_t expected = nw_word_of(giver, round, i);

        if (i % STAGE_WORDS == 0)
            get(links, stage, end->buffer + links->region_bytes + i * NW_NIC_WORD,
                stage_words(work, i));
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
    const struct nw_nic_work *work = (const struct nw_nic_work *)base;
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
    struct nw_nic_work *work = (struct nw_nic_work *)(uintptr_t)base;
    double ns;

    (void)index;
    NW_TRY(nw_nic_run_once(work, (uint64_t)work->task->qps, false, &ns));
    return work->links->bench->comm->ops->barrier(work->links->bench->comm);
}

static nw_rc nic_time(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    struct nw_nic_work *work = (struct nw_nic_work *)(uintptr_t)base;
    const bool ping = work->task->ping;
    nw_rc rc;

    (void)index;
    work->is_timed = !ping;
    rc = nw_nic_run_once(work, (uint64_t)calls * work->batch, ping, ns_out);
    work->is_timed = false;
    NW_TRY(rc);
    *ns_out /= work->batch;
    if (ping && work->task->op != NW_VERBS_READ)
        *ns_out /= 2; /* half a round trip, as perftest has it */
    return NW_OK;
}

/* ---- opening -----------------------------------------------------------------------------------
 */

static uint32_t batch_of(const struct nw_nic_task *task)
{
    const uint64_t count = STREAM_BATCH_BYTES / task->bytes;

    if (task->ping)
        return 1;
    return (uint32_t)(count < STREAM_BATCH_LEAST  ? STREAM_BATCH_LEAST
                      : count > STREAM_BATCH_MOST ? STREAM_BATCH_MOST
                                                  : count);
}

nw_rc nw_nic_work_open(struct nw_nic_work *work, struct nw_nic_links *links,
                       const struct nw_nic_task *task)
{
    const size_t count = links->end_count + 1;

    *work = (struct nw_nic_work){
        .work = {.call = nic_call,
                 .fill = nic_fill,
                 .check = nic_check,
                 .time = nic_time,
                 .result_stays = !task->ping}, /* a write's ping is seen by its last byte */
        .links = links,
        .task = task,
        .batch = batch_of(task),
        .ends = calloc(count, sizeof *work->ends),
        .runs = calloc(count, sizeof *work->runs),
        .results = calloc(count, sizeof *work->results),
        .end_of = calloc(count, sizeof *work->end_of),
        .failures = calloc(count, sizeof *work->failures),
        .own = calloc(count * NW_NIC_OWN_MOST, sizeof *work->own),
        .own_count = calloc(count, sizeof *work->own_count),
    };
    if (work->ends == NULL || work->runs == NULL || work->results == NULL || work->end_of == NULL ||
        work->failures == NULL || work->own == NULL || work->own_count == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu connections", count);
    return NW_OK;
}

void nw_nic_work_close(struct nw_nic_work *work)
{
    free(work->ends);
    free(work->runs);
    free(work->results);
    free(work->end_of);
    free(work->failures);
    free(work->own);
    free(work->own_count);
}
