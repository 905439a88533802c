/* Many messages on their way at once. Who gives (or reads) keeps every queue filled up to the
 * depth; who receives sends keeps it supplied. A run goes on by steps, so that one thread can drive
 * several ends. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "collectives/verbs_flow.h"

enum {
    SIGNAL_ALL_FROM_BYTES = 8192, /* smaller messages: one completion for several */
    SIGNAL_EVERY = 32,
};

/* --- a run's terms --- */

static bool posts(const struct nw_verbs_run *run)
{
    return (run->roles & (run->op == NW_VERBS_READ ? NW_VERBS_TAKES : NW_VERBS_GIVES)) != 0;
}

static bool receives(const struct nw_verbs_run *run)
{
    return run->op == NW_VERBS_SEND && (run->roles & NW_VERBS_TAKES) != 0;
}

static nw_rc check_regions(const struct nw_verbs_end *end, const struct nw_verbs_run *run)
{
    const uint64_t reach = nw_verbs_slots(run) * nw_verbs_stride(run->bytes);
    const uint64_t span = reach < run->span_bytes ? reach : run->span_bytes;
    const uint64_t least = end->bytes < end->theirs.bytes ? end->bytes : end->theirs.bytes;
    const uint64_t last = run->give_at > run->take_at ? run->give_at : run->take_at;
    char size[32], have[32];

    if (run->span_bytes >= run->bytes && last <= least && span <= least - last)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "RDMA messages of %s do not fit into the buffers, of which the smaller "
                   "has %s",
                   nw_format_bytes(size, run->bytes), nw_format_bytes(have, least));
}

static nw_rc check_run(const struct nw_verbs_end *end, const struct nw_verbs_run *run)
{
    if (!end->connected)
        return nw_fail(NW_EUSAGE, "%s is not connected", end->name);
    if (end->broken)
        return nw_fail(NW_EPEER, "the connection from %s to %s has failed before", end->link.here,
                       end->link.there);
    if ((unsigned)run->op >= NW_VERBS_OP_COUNT || run->count == 0 || run->bytes == 0 ||
        run->bytes > UINT32_MAX / 2 || run->qps > end->qp_count || run->qps < 0 || run->depth < 0 ||
        run->depth > end->link.depth)
        return nw_fail(
            NW_EUSAGE,
            "an RDMA run needs messages of 1 byte to 2 GiB, at most %d queue pairs and a depth "
            "of at most %d",
            end->qp_count, end->link.depth);
    if (run->ping && (run->roles == (NW_VERBS_GIVES | NW_VERBS_TAKES)))
        return nw_fail(NW_EUSAGE, "of a latency run one side gives and the other takes");
    return check_regions(end, run);
}

static void set_up(struct nw_verbs_end *end, const struct nw_verbs_run *run)
{
    struct nw_verbs_flow *flow = &end->flow;

    memset(flow, 0, sizeof *flow);
    flow->run = *run;
    if (flow->run.now_ns == NULL)
        flow->run.now_ns = nw_now_ns;
    flow->qps = run->ping ? 1 : run->qps > 0 ? run->qps : end->qp_count;
    flow->depth = (uint32_t)(run->depth > 0 ? run->depth : end->link.depth);
    flow->signal_every = run->bytes >= SIGNAL_ALL_FROM_BYTES ? 1 : SIGNAL_EVERY;
    if (flow->signal_every > (flow->depth + 1) / 2)
        flow->signal_every = (flow->depth + 1) / 2;
    flow->stride = nw_verbs_stride(run->bytes);
    flow->slots = nw_verbs_slots(run);
    for (int q = 0; q < flow->qps; q++)
        flow->queues[q].quota =
            run->count / (uint64_t)flow->qps + ((uint64_t)q < run->count % (uint64_t)flow->qps);
    flow->give_left = posts(run) ? run->count : 0;
    flow->take_left = receives(run) ? run->count : 0;
}

/* --- requests --- */

uint64_t nw_verbs_slot(const struct nw_verbs_flow *flow, int q, uint64_t k)
{
    return (k * (uint64_t)flow->qps + (uint64_t)q) % flow->slots * flow->stride;
}

nw_rc nw_verbs_post(struct nw_verbs_end *end, int q, uint64_t k, uint32_t covers)
{
    static const enum ibv_wr_opcode opcodes[] = {[NW_VERBS_WRITE] = IBV_WR_RDMA_WRITE,
                                                 [NW_VERBS_READ] = IBV_WR_RDMA_READ,
                                                 [NW_VERBS_SEND] = IBV_WR_SEND};
    const struct nw_verbs_run *run = &end->flow.run;
    const bool read = run->op == NW_VERBS_READ;
    const uint64_t slot = nw_verbs_slot(&end->flow, q, k);
    struct ibv_sge piece = {.addr = (uint64_t)(uintptr_t)end->buffer +
                                    (read ? run->take_at : run->give_at) + slot,
                            .length = (uint32_t)run->bytes,
                            .lkey = end->mr->lkey};
    struct ibv_send_wr request = {.wr_id = (uint64_t)covers << 8 | (uint64_t)q,
                                  .sg_list = &piece,
                                  .num_sge = 1,
                                  .opcode = opcodes[run->op],
                                  .send_flags = covers > 0 ? IBV_SEND_SIGNALED : 0},
                       *refused;
    int code;

    if (!read && run->bytes <= end->inline_bytes)
        request.send_flags |= IBV_SEND_INLINE;
    if (run->op != NW_VERBS_SEND) {
        request.wr.rdma.remote_addr =
            end->theirs.address + (read ? run->give_at : run->take_at) + slot;
        request.wr.rdma.rkey = end->theirs.rkey;
    }
    code = ibv_post_send(end->qps[q], &request, &refused);
    return code == 0 ? NW_OK : nw_verbs_fail_call(end, code, "a request was refused");
}

/* In chains: one call of the device for many. */
nw_rc nw_verbs_supply(struct nw_verbs_end *end, int q, uint64_t count)
{
    struct nw_verbs_queue *queue = &end->flow.queues[q];
    struct ibv_sge pieces[NW_VERBS_BATCH];
    struct ibv_recv_wr requests[NW_VERBS_BATCH], *refused;

    if (count > queue->quota - queue->expected)
        count = queue->quota - queue->expected;
    while (count > 0) {
        const uint64_t chain = count < NW_VERBS_BATCH ? count : NW_VERBS_BATCH;
        int code;

        for (uint64_t i = 0; i < chain; i++) {
            pieces[i] =
                (struct ibv_sge){.addr = (uint64_t)(uintptr_t)end->buffer + end->flow.run.take_at +
                                         nw_verbs_slot(&end->flow, q, queue->expected++),
                                 .length = (uint32_t)end->flow.run.bytes,
                                 .lkey = end->mr->lkey};
            requests[i] = (struct ibv_recv_wr){.wr_id = NW_VERBS_RECEIVE | (uint64_t)q,
                                               .next = i + 1 < chain ? &requests[i + 1] : NULL,
                                               .sg_list = &pieces[i],
                                               .num_sge = 1};
        }
        code = ibv_post_recv(end->qps[q], requests, &refused);
        if (code != 0)
            return nw_verbs_fail_call(end, code, "receives were refused");
        count -= chain;
    }
    return NW_OK;
}

nw_rc nw_verbs_prepare(struct nw_verbs_end *end, const struct nw_verbs_run *run)
{
    int code;

    NW_TRY(check_run(end, run));
    set_up(end, run);
    if (end->channel != NULL && (code = ibv_req_notify_cq(end->cq, 0)) != 0)
        return nw_verbs_fail_call(end, code, "a completion queue cannot be watched");
    if (run->ping)
        return nw_verbs_ping_prepare(end);
    for (int q = 0; q < end->flow.qps && receives(run); q++)
        NW_TRY(nw_verbs_supply(end, q, end->receive_depth));
    end->prepared = true;
    return NW_OK;
}

/* --- a step --- */

static nw_rc fill_queue(struct nw_verbs_end *end, int q)
{
    struct nw_verbs_flow *flow = &end->flow;
    struct nw_verbs_queue *queue = &flow->queues[q];

    while (queue->posted < queue->quota && queue->posted - queue->done < flow->depth) {
        const uint64_t k = queue->posted;
        const uint32_t covers = (uint32_t)(k % flow->signal_every) + 1;
        const bool last = k + 1 == queue->quota;

        NW_TRY(nw_verbs_post(end, q, k, last || covers == flow->signal_every ? covers : 0));
        queue->posted++;
    }
    return NW_OK;
}

static nw_rc take_completions(struct nw_verbs_end *end, int *count_out)
{
    struct nw_verbs_flow *flow = &end->flow;
    struct ibv_wc completions[NW_VERBS_BATCH];
    const int count = ibv_poll_cq(end->cq, NW_VERBS_BATCH, completions);

    if (count < 0)
        return nw_verbs_fail_call(end, 0, "the completion queue cannot be read");
    for (int i = 0; i < count; i++) {
        const struct ibv_wc *wc = &completions[i];
        struct nw_verbs_queue *queue = &flow->queues[wc->wr_id & 0xff];

        if (wc->status != IBV_WC_SUCCESS)
            return nw_verbs_fail_completion(end, wc);
        if ((wc->wr_id & NW_VERBS_RECEIVE) != 0) {
            queue->arrived++;
            flow->take_left--;
        } else {
            queue->done += wc->wr_id >> 8;
            flow->give_left -= wc->wr_id >> 8;
        }
    }
    *count_out = count;
    return NW_OK;
}

/* As many as have been used. */
static nw_rc supply_all(struct nw_verbs_end *end)
{
    for (int q = 0; q < end->flow.qps; q++) {
        const struct nw_verbs_queue *queue = &end->flow.queues[q];
        const uint64_t waiting = queue->expected - queue->arrived;

        if (queue->expected < queue->quota && waiting < end->receive_depth)
            NW_TRY(nw_verbs_supply(end, q, end->receive_depth - waiting));
    }
    return NW_OK;
}

nw_rc nw_verbs_step(struct nw_verbs_end *end, bool *done_out)
{
    struct nw_verbs_flow *flow = &end->flow;
    int count, all = 0;

    *done_out = flow->give_left == 0 && flow->take_left == 0;
    if (*done_out)
        return NW_OK;
    if (flow->run.ping)
        return nw_verbs_ping_step(end, done_out);
    if (flow->first_ns == 0 && flow->give_left > 0)
        flow->first_ns = flow->run.now_ns();
    for (int q = 0; q < flow->qps && flow->give_left > 0; q++)
        NW_TRY(fill_queue(end, q));
    do {
        NW_TRY(take_completions(end, &count));
        all += count;
    } while (count == NW_VERBS_BATCH);
    if (all == 0)
        return nw_verbs_wait_idle(end, "messages were on their way");
    nw_verbs_wait_moved(end);
    if (flow->first_ns == 0) /* the first message to arrive */
        flow->first_ns = flow->run.now_ns();
    if (flow->take_left > 0)
        NW_TRY(supply_all(end));
    if (flow->give_left == 0 && flow->take_left == 0) {
        flow->last_ns = flow->run.now_ns();
        *done_out = true;
    }
    return NW_OK;
}

/* --- a run --- */

static void word_result(const struct nw_verbs_flow *flow, bool failed,
                        struct nw_verbs_result *result)
{
    const double ns = (double)(flow->last_ns - flow->first_ns);

    *result = (struct nw_verbs_result){.ns = NAN, .bytes_per_s = NAN, .messages_per_s = NAN};
    if (failed || (!posts(&flow->run) && (!receives(&flow->run) || flow->run.ping)))
        return;
    result->ns = ns;
    result->messages = flow->run.count;
    result->bytes = flow->run.count * flow->run.bytes;
    if (ns > 0) {
        result->bytes_per_s = (double)result->bytes / ns * 1e9;
        result->messages_per_s = (double)result->messages / ns * 1e9;
    }
}

static nw_rc check_prepared(struct nw_verbs_end *const *ends, const struct nw_verbs_run *runs,
                            size_t count)
{
    if (count > 1 && ends[0]->channel != NULL)
        return nw_fail(NW_EUSAGE, "several RDMA ends at once are polled: no events");
    for (size_t i = 0; i < count; i++)
        if (!ends[i]->prepared || ends[i]->flow.run.op != runs[i].op ||
            ends[i]->flow.run.count != runs[i].count || ends[i]->flow.run.bytes != runs[i].bytes)
            return nw_fail(NW_EUSAGE, "%s: the run was not prepared", ends[i]->name);
    return NW_OK;
}

/* One step of each end that is neither done nor broken: an end that stopped in the middle would
 * leave requests in its queues and completions unread, for the next run to take as its own. */
static size_t step_all(struct nw_verbs_end *const *ends, size_t count, struct nw_err *first)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++) {
        bool done = false;

        if (ends[i]->broken)
            continue;
        if (nw_verbs_step(ends[i], &done) == NW_OK) {
            left += !done;
            continue;
        }
        if (first->rc == NW_OK)
            *first = *nw_last_error();
        nw_verbs_break(ends[i], nw_verbs_refused_word());
    }
    return left;
}

nw_rc nw_verbs_run_all(struct nw_verbs_end *const *ends, const struct nw_verbs_run *runs,
                       size_t count, struct nw_verbs_result *results_out)
{
    struct nw_err first = {.rc = NW_OK};

    NW_TRY(check_prepared(ends, runs, count));
    for (size_t i = 0; i < count; i++) {
        ends[i]->prepared = false;
        ends[i]->flow.run.samples_ns = runs[i].samples_ns;
        nw_verbs_wait_start(ends[i]);
    }
    while (step_all(ends, count, &first) > 0)
        continue;
    for (size_t i = 0; i < count; i++)
        word_result(&ends[i]->flow, ends[i]->broken, &results_out[i]);
    return first.rc == NW_OK
               ? NW_OK
               : nw_fail_at(first.rc, first.lib, first.lib_code, first.where, "%s", first.text);
}

nw_rc nw_verbs_run(struct nw_verbs_end *end, const struct nw_verbs_run *run,
                   struct nw_verbs_result *result_out)
{
    return nw_verbs_run_all(&end, run, 1, result_out);
}
