#include "bench/pairs_swap.h"

#include <string.h>

#define WORD_BYTES NW_PAIRS_WORD_BYTES
#define POISON     0xa5

static uint64_t word_of(int rank, uint64_t round, uint64_t index)
{
    return (((uint64_t)rank << 48) ^ (round << 32) ^ index) * 0x9e3779b97f4a7c15u;
}

/* There, then back: the lower rank begins. */
static nw_rc pass_both(const struct nw_pairs_work *work)
{
    struct nw_comm *comm = work->comm;
    const uint64_t bytes = work->word_count * WORD_BYTES;
    const struct nw_message messages[] = {{work->peer, work->recv, bytes},
                                          {work->peer, work->send, bytes}};
    const bool first = comm->rank < work->peer;

    NW_TRY(comm->ops->pass(comm, first, &messages[first], 1));
    return comm->ops->pass(comm, !first, &messages[!first], 1);
}

static nw_rc swap_call(const struct nw_work *base, uint64_t index)
{
    const struct nw_pairs_work *work = (const struct nw_pairs_work *)base;

    (void)index;
    if (work->peer < 0)
        return NW_OK;
    if (work->one_way)
        return pass_both(work);
    return work->comm->ops->swap(work->comm, work->peer, work->send, work->recv,
                                 work->word_count * WORD_BYTES);
}

static nw_rc swap_queue(void *user, uint64_t index)
{
    return swap_call(user, index);
}

static nw_rc swap_finish(void *user, double timeout_ns)
{
    const struct nw_pairs_work *work = user;

    return nw_comm_finish(work->comm, timeout_ns);
}

static nw_rc swap_time(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    struct nw_pairs_work work = *(const struct nw_pairs_work *)base;
    struct nw_gated gated = nw_bench_gate(work.bench, work.word_count * WORD_BYTES, calls);

    gated.queue = swap_queue;
    gated.finish = swap_finish;
    gated.user = &work;
    gated.graph = work.comm->graphs;
    if (work.peer < 0)
        gated.stream = NULL;
    return nw_gated_time(&gated, index, calls, ns_out);
}

/* Buffers may lie on a device: patterns are made, and results looked at, this much at a time. */
#define STAGE_WORDS 8192

static uint64_t stage_words(const struct nw_pairs_work *work, uint64_t done)
{
    const uint64_t left = work->word_count - done;

    return left < STAGE_WORDS ? left : STAGE_WORDS;
}

static void swap_fill(const struct nw_work *base, uint64_t round)
{
    const struct nw_pairs_work *work = (const struct nw_pairs_work *)base;
    uint64_t stage[STAGE_WORDS];

    for (uint64_t done = 0; work->peer >= 0 && done < work->word_count; done += STAGE_WORDS) {
        const uint64_t count = stage_words(work, done);

        for (uint64_t i = 0; i < count; i++)
            stage[i] = word_of(work->comm->rank, round, done + i);
        nw_comm_put(work->comm, work->send + done, stage, count * WORD_BYTES);
        memset(stage, POISON, count * WORD_BYTES);
        nw_comm_put(work->comm, work->recv + done, stage, count * WORD_BYTES);
    }
}

static uint64_t swap_check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    const struct nw_pairs_work *work = (const struct nw_pairs_work *)base;
    uint64_t stage[STAGE_WORDS];
    uint64_t wrong = 0;

    for (uint64_t i = 0; work->peer >= 0 && i < work->word_count; i++) {
        const uint64_t expected = word_of(work->peer, round, i);

        if (i % STAGE_WORDS == 0)
            nw_comm_get(work->comm, stage, work->recv + i, stage_words(work, i) * WORD_BYTES);
        if (stage[i % STAGE_WORDS] == expected)
            continue;
        if (wrong++ == 0)
            *first_out = (struct nw_wrong){.index = i,
                                           .expected = (double)expected,
                                           .found = (double)stage[i % STAGE_WORDS],
                                           .from_rank = work->peer};
    }
    return wrong;
}

void nw_pairs_work_open(const struct nw_bench *bench, int peer, uint64_t bytes, bool one_way,
                        struct nw_pairs_work *work_out)
{
    *work_out = (struct nw_pairs_work){
        .work = {.call = swap_call,
                 .fill = swap_fill,
                 .check = swap_check,
                 .time = bench->start != NULL ? swap_time : NULL,
                 .calls_max = NW_GATED_CALLS_MAX,
                 .result_stays = true},
        .bench = bench,
        .comm = bench->comm,
        .peer = peer,
        .send = (uint64_t *)(void *)bench->send,
        .recv = (uint64_t *)(void *)bench->recv,
        .word_count = bytes / WORD_BYTES,
        .one_way = one_way,
    };
}
