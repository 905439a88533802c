/* Latency: one message at a time, answered by one of the other side (write, send), or read. The
 * arrival of a write shows in its last byte, as RC delivers a message's bytes in order to memory
 * that the CPU polls; perftest's ib_write_lat does the same. */
#include <string.h>

#include "base/clock.h"
#include "collectives/verbs_flow.h"
#include "kernels/dev.h"

enum {
    SIGNAL_EVERY = 16,
    MARKS = 255, /* the last byte of message k is k mod 255 + 1; 0: nothing has come */
};

static bool begins(const struct nw_verbs_run *run)
{
    return (run->roles & (run->op == NW_VERBS_READ ? NW_VERBS_TAKES : NW_VERBS_GIVES)) != 0;
}

static uint8_t mark(uint64_t k)
{
    return (uint8_t)(k % MARKS + 1);
}

/* Requests go from the give region and messages come to the take region on both sides. */
static volatile uint8_t *last_byte(const struct nw_verbs_end *end, uint64_t region)
{
    return (volatile uint8_t *)end->buffer + region + end->flow.run.bytes - 1;
}

nw_rc nw_verbs_ping_prepare(struct nw_verbs_end *end)
{
    struct nw_verbs_flow *flow = &end->flow;
    const struct nw_verbs_run *run = &flow->run;

    flow->slots = 1;
    flow->signal_every = flow->depth > SIGNAL_EVERY ? SIGNAL_EVERY : 1;
    flow->queues[0].quota = run->count;
    flow->take_left = 0;
    flow->give_left = run->op != NW_VERBS_READ || begins(run) ? run->count : 0;
    if (run->op == NW_VERBS_WRITE && strcmp(end->link.memory, "host") != 0)
        return nw_fail(NW_ENOTSUP, "the latency of RDMA writes is measured in host memory only; "
                                   "sends do for a GPU's");
    if (run->op == NW_VERBS_WRITE)
        *last_byte(end, run->take_at) = 0;
    if (run->op == NW_VERBS_SEND)
        NW_TRY(nw_verbs_supply(end, 0, end->receive_depth));
    end->prepared = true;
    return NW_OK;
}

/* Sends the next message. */
static nw_rc post_next(struct nw_verbs_end *end)
{
    struct nw_verbs_flow *flow = &end->flow;
    struct nw_verbs_queue *queue = &flow->queues[0];
    const uint32_t covers = (uint32_t)(queue->posted % flow->signal_every) + 1;
    const bool signaled = flow->run.op == NW_VERBS_READ || covers == flow->signal_every ||
                          queue->posted + 1 == queue->quota;

    if (flow->run.op == NW_VERBS_WRITE)
        *last_byte(end, flow->run.give_at) = mark(queue->posted);
    NW_TRY(nw_verbs_post(end, 0, 0, flow->run.op == NW_VERBS_READ ? 1 : signaled ? covers : 0));
    queue->posted++;
    return NW_OK;
}

static void note_sample(struct nw_verbs_flow *flow, uint64_t k)
{
    const uint64_t now = flow->run.now_ns();

    if (flow->run.samples_ns != NULL && begins(&flow->run))
        flow->run.samples_ns[k] =
            (double)(now - flow->posted_ns) / (flow->run.op == NW_VERBS_READ ? 1 : 2);
    flow->last_ns = now;
}

/* Completions; of sends and reads they are the arrivals, too. */
static nw_rc take_completions(struct nw_verbs_end *end, int *count_out)
{
    struct nw_verbs_queue *queue = &end->flow.queues[0];
    struct ibv_wc completions[NW_VERBS_BATCH];
    const int count = ibv_poll_cq(end->cq, NW_VERBS_BATCH, completions);

    if (count < 0)
        return nw_verbs_fail_call(end, 0, "the completion queue cannot be read");
    for (int i = 0; i < count; i++) {
        if (completions[i].status != IBV_WC_SUCCESS)
            return nw_verbs_fail_completion(end, &completions[i]);
        if ((completions[i].wr_id & NW_VERBS_RECEIVE) != 0) {
            queue->arrived++;
            NW_TRY(nw_verbs_supply(end, 0, 1));
        } else {
            queue->done += completions[i].wr_id >> 8;
            if (end->flow.run.op == NW_VERBS_READ)
                queue->arrived++;
        }
    }
    *count_out = count;
    return NW_OK;
}

static bool has_come(struct nw_verbs_end *end)
{
    struct nw_verbs_queue *queue = &end->flow.queues[0];

    if (end->flow.run.op == NW_VERBS_WRITE && queue->arrived < queue->quota &&
        *last_byte(end, end->flow.run.take_at) == mark(queue->arrived))
        queue->arrived++;
    return queue->arrived > end->flow.seen;
}

/* Is it this side's turn? The one that begins is one message ahead. */
static bool may_post(const struct nw_verbs_flow *flow)
{
    const struct nw_verbs_queue *queue = &flow->queues[0];

    return queue->posted < queue->quota && queue->posted - queue->done < flow->depth &&
           (begins(&flow->run) ? queue->posted == flow->seen : queue->posted < flow->seen);
}

nw_rc nw_verbs_ping_step(struct nw_verbs_end *end, bool *done_out)
{
    struct nw_verbs_flow *flow = &end->flow;
    struct nw_verbs_queue *queue = &flow->queues[0];

    for (;;) {
        bool moved = false;
        int count = 0;

        if (may_post(flow)) {
            flow->posted_ns = flow->run.now_ns();
            if (flow->first_ns == 0)
                flow->first_ns = flow->posted_ns;
            NW_TRY(post_next(end));
        }
        if (has_come(end)) {
            note_sample(flow, flow->seen++);
            moved = true;
        } else {
            NW_TRY(take_completions(end, &count));
            moved = count > 0;
        }
        if (moved)
            nw_verbs_wait_moved(end);
        if (flow->seen == queue->quota && queue->done == queue->quota) {
            flow->give_left = 0;
            *done_out = true;
            return NW_OK;
        }
        if (!moved && !may_post(flow))
            return nw_verbs_wait_idle(end, "a message was to be answered");
    }
}
