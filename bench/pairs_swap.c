#include "bench/pairs_swap.h"

#include "bench/words.h"

#define WORD_BYTES NW_PAIRS_WORD_BYTES

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

static void swap_fill(const struct nw_work *base, uint64_t round)
{
    const struct nw_pairs_work *work = (const struct nw_pairs_work *)base;

    if (work->peer < 0)
        return;
    nw_words_put(work->comm, work->send, work->word_count, work->comm->rank, round);
    nw_words_poison(work->comm, work->recv, work->word_count);
}

static uint64_t swap_check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    const struct nw_pairs_work *work = (const struct nw_pairs_work *)base;

    return work->peer < 0 ? 0
                          : nw_words_check(work->comm, work->recv, work->word_count, work->peer,
                                           round, first_out);
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
