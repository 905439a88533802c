/* A rank's operations from the events of its stage, and the communicators of their groups. */
#include <stdlib.h>
#include <string.h>

#include "model/replay_parts.h"

/* Where a rank stands: tp fastest, then the ranks that gradients are summed over, then the stage
 * (model/layout.h). */
struct place {
    int tp, data, stage;
};

static struct place place_of(const struct nw_layout *layout, int rank)
{
    const int tp = nw_layout_tp(layout), reduce = nw_layout_reduce_count(layout);

    return (struct place){rank % tp, rank / tp % reduce, rank / (tp * reduce)};
}

/* Ranks of one colour are one group of this kind. */
static int colour_of(const struct nw_layout *layout, nw_group_kind kind, int rank)
{
    const int tp = nw_layout_tp(layout), cp = nw_layout_cp(layout), ep = nw_layout_ep(layout);
    const int reduce = nw_layout_reduce_count(layout), shard = nw_layout_shard_count(layout);
    const struct place at = place_of(layout, rank);

    switch (kind) {
    case NW_GROUP_TP:
        return rank / tp;
    case NW_GROUP_CP:
        return at.tp + tp * (at.data / cp + reduce / cp * at.stage);
    case NW_GROUP_DP:
        return at.tp + tp * at.stage;
    case NW_GROUP_SHARD:
        return at.tp + tp * (at.data / shard + (reduce + shard - 1) / shard * at.stage);
    case NW_GROUP_REPLICA:
        return at.tp + tp * (at.data % shard + shard * at.stage);
    case NW_GROUP_EP:
        return at.tp + tp * (at.data / ep + (reduce + ep - 1) / ep * at.stage);
    case NW_GROUP_EXPERT:
        return at.tp + tp * (at.data % ep + ep * at.stage);
    case NW_GROUP_PP: /* tied gradients: first and last stage */
        return at.stage == 0 || at.stage == nw_layout_pp(layout) - 1 ? at.tp + tp * at.data : -1;
    case NW_GROUP_WORLD:
    case NW_GROUP_COUNT:
        break;
    }
    return 0;
}

static bool is_send(const struct nw_event *event)
{
    return event->kind == NW_EVENT_COLLECTIVE && event->stream == NW_STREAM_PIPELINE;
}

/* ---- operations ---------------------------------------------------------------------------- */

static nw_op_kind kind_of(const struct nw_event *event)
{
    if (is_send(event))
        return NW_OP_SEND;
    if (event->kind == NW_EVENT_COLLECTIVE)
        return NW_OP_COLLECTIVE;
    return event->kind == NW_EVENT_COPY || event->kind == NW_EVENT_BUBBLE ? NW_OP_WAIT
                                                                          : NW_OP_COMPUTE;
}

/* Events of other stages that this one waits for are its neighbours' messages, which arrive as ops
 * of its own, and tied gradients, which the collective waits for by itself. */
static void fill_waits(const struct nw_event *event, const int32_t *op_of, struct nw_op *op)
{
    int count = 0;

    for (int i = 0; i < NW_EVENT_WAITS; i++) {
        const int32_t wait = event->after[i] > 0 ? op_of[event->after[i] - 1] : -1;

        if (wait >= 0 && op->kind != NW_OP_RECEIVE)
            op->waits[count++] = wait;
    }
    while (count < NW_EVENT_WAITS)
        op->waits[count++] = -1;
}

static bool concerns(const struct nw_replay *replay, const struct nw_event *event)
{
    return event->stage == replay->stage || (is_send(event) && event->to_stage == replay->stage);
}

static void fill_op(const struct nw_replay *replay, int32_t index, const int32_t *op_of,
                    struct nw_op *op)
{
    const struct nw_event *event = &replay->graph.events[index];
    const bool arrives = event->stage != replay->stage;

    *op = (struct nw_op){
        .kind = arrives ? NW_OP_RECEIVE : kind_of(event),
        .lane = !arrives          ? (int)nw_event_stream(event, &replay->timing)
                : event->backward ? NW_LANE_FROM_NEXT
                                  : NW_LANE_FROM_BEFORE,
        .event = index,
        .next = -1,
        .ns = nw_event_ns(event, &replay->timing),
        .times = event->times > 1 ? (uint32_t)(event->times + 0.5) : 1,
    };
    fill_waits(event, op_of, op);
}

nw_rc nw_replay_plan(struct nw_replay *replay)
{
    const struct nw_graph *graph = &replay->graph;
    int32_t *op_of = malloc(((size_t)graph->count + 1) * sizeof *op_of);
    int32_t last[NW_LANE_COUNT], count = 0;

    for (int32_t i = 0; i < graph->count; i++)
        count += concerns(replay, &graph->events[i]);
    replay->ops = calloc((size_t)count + 1, sizeof *replay->ops);
    replay->done = calloc((size_t)count + 1, sizeof *replay->done);
    replay->start_ns = calloc((size_t)count + 1, sizeof *replay->start_ns);
    replay->end_ns = calloc((size_t)count + 1, sizeof *replay->end_ns);
    if (op_of == NULL || replay->ops == NULL || replay->done == NULL || replay->start_ns == NULL ||
        replay->end_ns == NULL) {
        free(op_of);
        return nw_fail(NW_ENOMEM, "no memory for the %d events of a replayed step", count);
    }
    for (int lane = 0; lane < NW_LANE_COUNT; lane++)
        replay->first[lane] = last[lane] = -1;
    for (int32_t i = 0; i < graph->count; i++) {
        struct nw_op *op = &replay->ops[replay->op_count];

        op_of[i] = -1;
        if (!concerns(replay, &graph->events[i]))
            continue;
        fill_op(replay, i, op_of, op);
        op_of[i] = replay->op_count++;
        if (last[op->lane] < 0)
            replay->first[op->lane] = op_of[i];
        else
            replay->ops[last[op->lane]].next = op_of[i];
        last[op->lane] = op_of[i];
    }
    free(op_of);
    return NW_OK;
}

/* ---- communicators ------------------------------------------------------------------------- */

/* A lane of a group has a communicator of its own: two lanes may call at the same time. All ranks
 * have all events, so all make the same ones in the same order. */
static nw_rc connect_groups(struct nw_replay *replay)
{
    bool used[NW_STREAM_COUNT][NW_GROUP_COUNT] = {{false}};
    const struct nw_graph *graph = &replay->graph;

    for (int32_t i = 0; i < graph->count; i++) {
        const struct nw_event *event = &graph->events[i];

        if (event->kind == NW_EVENT_COLLECTIVE && !is_send(event))
            used[nw_event_stream(event, &replay->timing)][event->group] = true;
    }
    for (int stream = 0; stream < NW_STREAM_COUNT; stream++)
        for (int kind = 0; kind < NW_GROUP_COUNT; kind++)
            if (used[stream][kind])
                NW_TRY(replay->comm->ops->split(
                    replay->comm,
                    colour_of(&replay->layout, (nw_group_kind)kind, replay->comm->rank),
                    &replay->comms.groups[stream][kind]));
    return NW_OK;
}

/* Both ends of a boundary between stages, and the same place in either. */
static nw_rc connect_boundary(struct nw_replay *replay, int from, int to, int direction)
{
    const struct place at = place_of(&replay->layout, replay->comm->rank);
    const bool sends = at.stage == from, receives = at.stage == to;
    const int colour = sends || receives ? at.tp + nw_layout_tp(&replay->layout) * at.data : -1;
    struct nw_comm *comm;

    NW_TRY(replay->comm->ops->split(replay->comm, colour, &comm));
    if (sends)
        replay->comms.send[direction] = comm;
    else if (receives)
        replay->comms.receive[direction] = comm;
    return NW_OK;
}

static nw_rc connect_stages(struct nw_replay *replay)
{
    const int stage_count = nw_layout_pp(&replay->layout);
    const struct nw_graph *graph = &replay->graph;
    bool *used = calloc((size_t)stage_count * 2, sizeof *used);
    nw_rc rc = NW_OK;

    if (used == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d pipeline stages", stage_count);
    for (int32_t i = 0; i < graph->count; i++)
        if (is_send(&graph->events[i]))
            used[2 * graph->events[i].stage + graph->events[i].backward] = true;
    for (int i = 0; i < 2 * stage_count && rc == NW_OK; i++) {
        const int from = i / 2, direction = i % 2;

        if (used[i])
            rc = connect_boundary(replay, from,
                                  (from + (direction == 0 ? 1 : stage_count - 1)) % stage_count,
                                  direction);
    }
    free(used);
    return rc;
}

/* The call of a size: rounded as nccl-tests does, but at least the smallest that moves anything. */
static struct nw_call call_of(const struct nw_coll *coll, double bytes, int rank_count, int root)
{
    struct nw_call call = {.coll = coll, .dtype = NW_FLOAT, .op = NW_SUM, .root = root};

    call.shape = nw_coll_shape(coll, (uint64_t)(bytes + 0.5), NW_FLOAT, rank_count);
    if (call.shape.count == 0)
        call.shape = nw_coll_shape(coll, 16 * (uint64_t)rank_count, NW_FLOAT, rank_count);
    return call;
}

/* A pair's communicator numbers its ranks as the world does: the earlier stage is 0. */
static int sender_in_pair(const struct nw_event *event)
{
    return event->stage < event->to_stage ? 0 : 1;
}

static nw_rc connect_op(const struct nw_replay *replay, struct nw_op *op)
{
    const struct nw_event *event = &replay->graph.events[op->event];

    if (op->kind == NW_OP_SEND || op->kind == NW_OP_RECEIVE) {
        op->comm = op->kind == NW_OP_SEND ? replay->comms.send[event->backward]
                                          : replay->comms.receive[event->backward];
        op->call = call_of(nw_coll_find("broadcast"), event->bytes, 2, sender_in_pair(event));
    } else if (op->kind == NW_OP_COLLECTIVE) {
        op->comm = replay->comms.groups[op->lane][event->group];
        if (op->comm != NULL)
            op->call =
                call_of(nw_coll_find(event->collective), event->bytes, op->comm->rank_count, 0);
    } else {
        return NW_OK;
    }
    return op->comm != NULL
               ? NW_OK
               : nw_fail(NW_EUSAGE, "replay: rank %d has no part in the %s of its own stage %d",
                         replay->comm->rank, event->collective, replay->stage);
}

nw_rc nw_replay_connect(struct nw_replay *replay)
{
    NW_TRY(connect_groups(replay));
    NW_TRY(connect_stages(replay));
    for (int32_t i = 0; i < replay->op_count; i++)
        NW_TRY(connect_op(replay, &replay->ops[i]));
    return NW_OK;
}

/* One pair a lane, as large as its largest message. */
nw_rc nw_replay_get_buffers(struct nw_replay *replay)
{
    for (int32_t i = 0; i < replay->op_count; i++) {
        const struct nw_op *op = &replay->ops[i];
        struct nw_lane_buffers *buffers = &replay->buffers[op->lane];

        if (op->comm == NULL)
            continue;
        if (op->call.shape.send_bytes > buffers->send_bytes)
            buffers->send_bytes = op->call.shape.send_bytes;
        if (op->call.shape.recv_bytes > buffers->recv_bytes)
            buffers->recv_bytes = op->call.shape.recv_bytes;
    }
    for (int lane = 0; lane < NW_LANE_COUNT; lane++) {
        struct nw_lane_buffers *buffers = &replay->buffers[lane];

        if (buffers->send_bytes + buffers->recv_bytes == 0)
            continue;
        buffers->send = nw_comm_buffer(replay->comm, buffers->send_bytes);
        buffers->recv = nw_comm_buffer(replay->comm, buffers->recv_bytes);
        if (buffers->send == NULL || buffers->recv == NULL)
            return nw_last_error()->rc;
    }
    return NW_OK;
}

void nw_replay_drop_plan(struct nw_replay *replay)
{
    for (int lane = 0; lane < NW_LANE_COUNT; lane++) {
        struct nw_lane_buffers *buffers = &replay->buffers[lane];

        nw_comm_drop_buffer(replay->comm, buffers->send, buffers->send_bytes);
        nw_comm_drop_buffer(replay->comm, buffers->recv, buffers->recv_bytes);
    }
    for (int stream = 0; stream < NW_STREAM_COUNT; stream++)
        for (int kind = 0; kind < NW_GROUP_COUNT; kind++)
            nw_comm_close(replay->comms.groups[stream][kind]);
    for (int direction = 0; direction < 2; direction++) {
        nw_comm_close(replay->comms.send[direction]);
        nw_comm_close(replay->comms.receive[direction]);
    }
    free(replay->ops);
    free(replay->done);
    free(replay->start_ns);
    free(replay->end_ns);
}
