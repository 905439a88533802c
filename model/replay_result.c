/* What the steps of a replay came to: times, sums, what was wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/agree.h"
#include "model/replay_parts.h"

static int middle_step(const struct nw_replay_steps *steps, double median_ns)
{
    int middle = 0;

    for (int i = 1; i < steps->count; i++)
        if (fabs(steps->step_ns[i] - median_ns) < fabs(steps->step_ns[middle] - median_ns))
            middle = i;
    return middle;
}

/* The graph with this rank's times of the middle step: own events, and what arrived. A message from
 * a neighbour was on its way for as long as it was predicted to be. */
static nw_rc my_times(const struct nw_replay *replay, const struct nw_replay_time *ops,
                      struct nw_graph *mine_out)
{
    struct nw_graph mine = replay->graph;

    mine.events = malloc(((size_t)mine.count + 1) * sizeof *mine.events);
    if (mine.events == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the times of %d events", mine.count);
    memcpy(mine.events, replay->graph.events, (size_t)mine.count * sizeof *mine.events);
    for (int32_t i = 0; i < mine.count; i++)
        mine.events[i].start_ns = mine.events[i].end_ns = -1;
    for (int32_t i = 0; i < replay->op_count; i++) {
        struct nw_event *event = &mine.events[replay->ops[i].event];

        event->start_ns = replay->ops[i].kind == NW_OP_RECEIVE
                              ? fmax(ops[i].end_ns - replay->ops[i].ns, 0)
                              : ops[i].start_ns;
        event->end_ns = ops[i].end_ns;
    }
    *mine_out = mine;
    return NW_OK;
}

static nw_rc gather_sums(const struct nw_replay *replay, const struct nw_graph *mine,
                         struct nw_replay_result *result)
{
    struct nw_comm *comm = replay->comm;
    struct nw_stage_sums sums, *all = calloc((size_t)comm->rank_count, sizeof *all);
    nw_rc rc = nw_agree(
        comm, all != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d ranks", comm->rank_count));

    nw_graph_account(mine, replay->stage, &replay->timing, &sums);
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &sums, sizeof sums, all);
    if (rc == NW_OK)
        result->sums = all[result->slowest_rank];
    free(all);
    return rc;
}

/* Rank after rank, so that only rank 0 holds them all. */
static nw_rc gather_times(const struct nw_replay *replay, const struct nw_graph *mine,
                          struct nw_replay_result *result)
{
    struct nw_comm *comm = replay->comm;
    const size_t count = (size_t)mine->count;
    struct nw_replay_time *times =
        calloc((comm->rank == 0 ? (size_t)comm->rank_count : 1) * count + 1, sizeof *times);
    nw_rc rc =
        nw_agree(comm, times != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the times"));

    for (int rank = 0; rank < comm->rank_count && rc == NW_OK; rank++) {
        struct nw_replay_time *at = comm->rank == 0 ? times + (size_t)rank * count : times;

        for (size_t i = 0; comm->rank == rank && i < count; i++) {
            const bool here = mine->events[i].stage == replay->stage && mine->events[i].end_ns >= 0;

            at[i].start_ns = here ? mine->events[i].start_ns : NAN;
            at[i].end_ns = here ? mine->events[i].end_ns : NAN;
        }
        rc = comm->ops->share(comm, at, count * sizeof *at, rank);
    }
    if (comm->rank == 0 && rc == NW_OK)
        result->times = times;
    else
        free(times);
    return rc;
}

/* The graph as it was predicted, and the sums of the slowest rank's stage in it. */
static nw_rc fill_predicted(const struct nw_replay *replay, struct nw_replay_result *result)
{
    const int stage = result->slowest_rank /
                      (nw_layout_tp(&replay->layout) * nw_layout_reduce_count(&replay->layout));
    struct nw_stage_sums *sums = calloc((size_t)replay->graph.stage_count, sizeof *sums);
    struct nw_graph graph = replay->graph;
    nw_rc rc = NW_OK;

    graph.events = malloc(((size_t)graph.count + 1) * sizeof *graph.events);
    if (graph.events == NULL || sums == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %d events", graph.count);
    if (rc == NW_OK) {
        memcpy(graph.events, replay->graph.events, (size_t)graph.count * sizeof *graph.events);
        rc = nw_graph_time(&graph, &replay->timing, sums);
    }
    if (rc == NW_OK)
        result->predicted_sums = sums[stage];
    free(sums);
    if (rc == NW_OK)
        result->graph = graph;
    else
        free(graph.events);
    return rc;
}

struct tally { /* of one rank */
    uint64_t wrong_elements, checked_calls, buffer_bytes;
    double unit_ns, cpu_share;
};

static nw_rc gather_tallies(const struct nw_replay *replay, const struct nw_replay_steps *steps,
                            struct nw_replay_result *result)
{
    struct nw_comm *comm = replay->comm;
    struct tally mine = {.wrong_elements = replay->wrong_elements,
                         .checked_calls = replay->checked_calls,
                         .unit_ns = replay->unit_ns,
                         .cpu_share = steps->cpu_ns / steps->computed_ns};
    struct tally *all = calloc((size_t)comm->rank_count, sizeof *all);
    nw_rc rc = nw_agree(
        comm, all != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d ranks", comm->rank_count));

    for (int lane = 0; lane < NW_LANE_COUNT; lane++)
        mine.buffer_bytes += replay->buffers[lane].send_bytes + replay->buffers[lane].recv_bytes;
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &mine, sizeof mine, all);
    result->wrong_elements = replay->is_virtual ? -1 : 0;
    for (int rank = 0; rank < comm->rank_count && rc == NW_OK; rank++) {
        if (!replay->is_virtual)
            result->wrong_elements += (int64_t)all[rank].wrong_elements;
        result->checked_calls += all[rank].checked_calls;
        result->unit_ns = fmax(result->unit_ns, all[rank].unit_ns);
        if (!replay->is_virtual) /* of NAN and x: x */
            result->cpu_share = fmin(result->cpu_share, all[rank].cpu_share);
        if (all[rank].buffer_bytes > result->buffer_bytes)
            result->buffer_bytes = all[rank].buffer_bytes;
    }
    free(all);
    return rc;
}

nw_rc nw_replay_fill(struct nw_replay *replay, struct nw_replay_steps *steps,
                     struct nw_replay_result *result)
{
    struct nw_graph mine = {0};
    struct nw_stats skew;

    NW_TRY(nw_stats_of(steps->step_ns, (size_t)steps->count, &result->step_ns));
    NW_TRY(nw_stats_of(steps->skew_ns, (size_t)steps->count, &skew));
    const int middle = middle_step(steps, result->step_ns.median);
    const struct nw_replay_time *ops =
        steps->op_times + (size_t)middle * ((size_t)replay->op_count + 1);

    result->predicted = replay->predicted;
    if (replay->is_virtual) { /* nothing is slowed and nobody is late */
        struct nw_step *step = &result->predicted;

        step->overlap_loss_ns = step->jitter_ns = 0;
        step->step_ns = step->compute_ns + step->bubble_ns + step->exposed_ns + step->optimizer_ns +
                        step->offload_ns;
    }
    result->timing = replay->timing;
    result->rank_count = replay->comm->rank_count;
    result->step_count = steps->count;
    result->enough = replay->is_virtual || nw_replay_is_enough(steps);
    result->skew_ns = skew.median;
    NW_TRY(nw_agree(replay->comm, my_times(replay, ops, &mine)));
    nw_rc rc = NW_OK;
    double end = 0;

    for (int32_t i = 0; i < replay->op_count; i++)
        if (replay->ops[i].kind != NW_OP_SEND && replay->ops[i].kind != NW_OP_RECEIVE)
            end = fmax(end, ops[i].end_ns);
    rc = replay->comm->ops->exchange(replay->comm, &end, sizeof end, steps->ends);
    result->slowest_rank = nw_replay_slowest(replay->comm, steps->ends);
    if (rc == NW_OK)
        rc = nw_agree(replay->comm, fill_predicted(replay, result));
    if (rc == NW_OK)
        rc = gather_sums(replay, &mine, result);
    if (rc == NW_OK)
        rc = gather_times(replay, &mine, result);
    if (rc == NW_OK)
        rc = gather_tallies(replay, steps, result);
    free(mine.events);
    return rc;
}

void nw_replay_result_free(struct nw_replay_result *result)
{
    nw_graph_free(&result->graph);
    free(result->times);
    result->times = NULL;
}
