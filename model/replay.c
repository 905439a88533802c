/* A replayed step: rank 0's events to all, steps until the time is known, what they came to. */
#include "model/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/agree.h"
#include "bench/status.h"
#include "collectives/coll.h"
#include "model/replay_parts.h"

/* ---- the events to all ranks --------------------------------------------------------------- */

struct header { /* of the same program on every host */
    int32_t event_count, stage_count;
    struct nw_layout layout;
    struct nw_timing timing;
    struct nw_step predicted;
};

static nw_rc predict(const struct nw_replay_question *question, struct nw_replay *replay,
                     struct header *header_out)
{
    struct header header = {.layout = *question->layout};

    if (question->layout->rank_count != replay->comm->rank_count)
        return nw_fail(NW_EUSAGE,
                       "replay: the plan has %d ranks, here are %d; accepted: --ranks %d, or as "
                       "many of mpirun's",
                       question->layout->rank_count, replay->comm->rank_count,
                       replay->comm->rank_count);
    if (!(question->scale > 0 && question->scale <= 1))
        return nw_fail(NW_EUSAGE, "replay: scale %g; accepted: more than 0, up to 1",
                       question->scale);
    NW_TRY(nw_predict_events(question->job, question->platform, question->layout, question->scale,
                             &replay->graph, &header.timing, &header.predicted));
    header.event_count = replay->graph.count;
    header.stage_count = replay->graph.stage_count;
    /* What a hybrid shards over follows from its strategy, which stays here. */
    header.layout.parallel.shard_count = nw_layout_shard_count(question->layout);
    *header_out = header;
    return NW_OK;
}

static void forget_pointers(struct header *header)
{
    header->layout.strategy = header->predicted.strategy = header->predicted.layout.strategy = NULL;
    header->layout.profile = header->predicted.layout.profile = NULL;
    header->predicted.traffic.collective = NULL;
}

static nw_rc share_events(struct nw_replay *replay, int32_t count)
{
    struct nw_comm *comm = replay->comm;
    struct nw_graph *graph = &replay->graph;
    signed char *names = calloc((size_t)count + 1, 1); /* the pointers are of this process */
    nw_rc rc = NW_OK;

    if (comm->rank != 0)
        graph->events = calloc((size_t)count + 1, sizeof *graph->events);
    if (names == NULL || graph->events == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the %d events of a step", count);
    rc = nw_agree(comm, rc);
    if (rc == NW_OK) {
        graph->count = graph->capacity = count;
        for (int32_t i = 0; comm->rank == 0 && i < count; i++)
            names[i] = graph->events[i].collective != NULL
                           ? (signed char)nw_coll_find(graph->events[i].collective)->id
                           : -1;
        rc = comm->ops->share(comm, names, (uint64_t)count, 0);
    }
    if (rc == NW_OK)
        rc = comm->ops->share(comm, graph->events, (uint64_t)count * sizeof *graph->events, 0);
    for (int32_t i = 0; rc == NW_OK && i < count; i++)
        graph->events[i].collective = names[i] >= 0 ? nw_colls[names[i]].name : NULL;
    free(names);
    return rc;
}

static nw_rc share_plan(struct nw_replay *replay, const struct nw_replay_question *question)
{
    struct nw_comm *comm = replay->comm;
    struct header header = {0};

    NW_TRY(nw_agree(comm, comm->rank == 0 ? predict(question, replay, &header) : NW_OK));
    const struct nw_step predicted = header.predicted;

    forget_pointers(&header);
    NW_TRY(comm->ops->share(comm, &header, sizeof header, 0));
    replay->graph.stage_count = header.stage_count;
    replay->layout = header.layout;
    replay->timing = header.timing;
    replay->predicted = comm->rank == 0 ? predicted : header.predicted;
    replay->stage =
        comm->rank / (nw_layout_tp(&header.layout) * nw_layout_reduce_count(&header.layout));
    return share_events(replay, header.event_count);
}

nw_rc nw_replay_open(struct nw_comm *comm, const struct nw_replay_question *question,
                     struct nw_replay **replay_out)
{
    struct nw_replay *replay = calloc(1, sizeof *replay);
    nw_rc rc = replay != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for a replay");

    NW_TRY(nw_agree(comm, rc));
    replay->comm = comm;
    pthread_mutex_init(&replay->lock, NULL);
    pthread_cond_init(&replay->changed, NULL);
    rc = share_plan(replay, question);
    if (rc == NW_OK)
        rc = nw_agree(comm, nw_replay_plan(replay));
    if (rc == NW_OK)
        rc = nw_agree(comm, nw_replay_connect(replay));
    if (rc != NW_OK) {
        nw_replay_close(replay);
        return rc;
    }
    *replay_out = replay;
    return NW_OK;
}

void nw_replay_close(struct nw_replay *replay)
{
    if (replay == NULL)
        return;
    nw_replay_drop_plan(replay);
    nw_graph_free(&replay->graph);
    pthread_cond_destroy(&replay->changed);
    pthread_mutex_destroy(&replay->lock);
    free(replay);
}

/* ---- the steps ----------------------------------------------------------------------------- */

static void free_steps(struct nw_replay_steps *steps)
{
    free(steps->step_ns);
    free(steps->skew_ns);
    free(steps->op_times);
    free(steps->ends);
}

static nw_rc make_steps(const struct nw_replay *replay, const struct nw_replay_how *how,
                        struct nw_replay_steps *steps_out)
{
    const size_t max = (size_t)how->max_steps, ops = (size_t)replay->op_count + 1;
    struct nw_replay_steps steps = {
        .how = how,
        .step_ns = calloc(max, sizeof *steps.step_ns),
        .skew_ns = calloc(max, sizeof *steps.skew_ns),
        .op_times = calloc(max * ops, sizeof *steps.op_times),
        .ends = calloc((size_t)replay->comm->rank_count, sizeof *steps.ends),
    };

    if (steps.step_ns == NULL || steps.skew_ns == NULL || steps.op_times == NULL ||
        steps.ends == NULL) {
        free_steps(&steps);
        return nw_fail(NW_ENOMEM, "no memory for %zu steps of %zu events", max, ops);
    }
    *steps_out = steps;
    return NW_OK;
}

/* What the simulation counts: not a message that is still on its way to another stage. */
double nw_replay_end_ns(const struct nw_replay *replay, const double *end_ns)
{
    double end = 0;

    for (int32_t i = 0; i < replay->op_count; i++)
        if (replay->ops[i].kind != NW_OP_SEND && replay->ops[i].kind != NW_OP_RECEIVE)
            end = fmax(end, end_ns[i]);
    return end;
}

static void say_where(const struct nw_replay *replay, const struct nw_replay_how *how, int step)
{
    char text[64];

    snprintf(text, sizeof text, replay->verifies ? "replay, verified step" : "replay, step %d",
             step + 1);
    if (how->status != NULL)
        nw_bench_status_write(
            how->status, nw_now_ns() + (uint64_t)(20 * replay->predicted.step_ns + how->margin_ns),
            text);
}

/* One step of all ranks, from a barrier on. */
static nw_rc meet_and_step(struct nw_replay *replay, struct nw_replay_steps *steps, int index)
{
    struct nw_comm *comm = replay->comm;

    say_where(replay, steps->how, index);
    NW_TRY(comm->ops->barrier(comm));
    nw_rc rc = nw_replay_step(replay);
    const double mine = rc == NW_OK ? nw_replay_end_ns(replay, replay->end_ns) : -1;

    NW_TRY(rc); /* the others learn of it by their own deadline, or the communicator */
    return comm->ops->exchange(comm, &mine, sizeof mine, steps->ends);
}

int nw_replay_slowest(const struct nw_comm *comm, const double *ends)
{
    int slowest = 0;

    for (int rank = 1; rank < comm->rank_count; rank++)
        slowest = ends[rank] > ends[slowest] ? rank : slowest;
    return slowest;
}

static void keep(const struct nw_replay *replay, struct nw_replay_steps *steps)
{
    const struct nw_comm *comm = replay->comm;
    const size_t ops = (size_t)replay->op_count + 1;
    double least = INFINITY;

    for (int rank = 0; rank < comm->rank_count; rank++)
        least = fmin(least, steps->ends[rank]);
    steps->step_ns[steps->count] = steps->ends[nw_replay_slowest(comm, steps->ends)];
    steps->skew_ns[steps->count] = steps->step_ns[steps->count] - least;
    for (int32_t i = 0; i < replay->op_count; i++)
        steps->op_times[(size_t)steps->count * ops + (size_t)i] =
            (struct nw_replay_time){replay->start_ns[i], replay->end_ns[i]};
    for (int32_t op = replay->first[NW_STREAM_COMPUTE]; op >= 0; op = replay->ops[op].next)
        if (replay->ops[op].kind == NW_OP_COMPUTE)
            steps->computed_ns += replay->end_ns[op] - replay->start_ns[op];
    steps->cpu_ns += replay->compute_cpu_ns;
    steps->count++;
}

bool nw_replay_is_enough(const struct nw_replay_steps *steps)
{
    struct nw_stats stats;

    return nw_stats_of(steps->step_ns, (size_t)steps->count, &stats) == NW_OK && stats.count >= 6 &&
           nw_stats_rel_half_interval(&stats) <= steps->how->rel_interval;
}

/* Rank 0 decides for all. */
static nw_rc goes_on(const struct nw_replay *replay, const struct nw_replay_steps *steps,
                     bool *goes_on_out)
{
    const struct nw_replay_how *how = steps->how;
    const bool late = (double)(nw_now_ns() - steps->began_ns) > how->budget_ns;
    bool more = !replay->is_virtual && steps->count < how->max_steps &&
                (steps->count < how->min_steps || (!late && !nw_replay_is_enough(steps)));

    NW_TRY(replay->comm->ops->share(replay->comm, &more, sizeof more, 0));
    *goes_on_out = more;
    return NW_OK;
}

static nw_rc run_steps(struct nw_replay *replay, struct nw_replay_steps *steps)
{
    const struct nw_replay_how *how = steps->how;
    bool more = true;

    if (!replay->is_virtual) { /* connects, touches and verifies; nothing of it is timed */
        replay->verifies = true;
        NW_TRY(meet_and_step(replay, steps, 0));
        replay->verifies = false;
        for (int i = 0; i < how->warmup_steps; i++)
            NW_TRY(meet_and_step(replay, steps, i));
    }
    steps->began_ns = nw_now_ns();
    while (more) {
        NW_TRY(meet_and_step(replay, steps, steps->count));
        keep(replay, steps);
        NW_TRY(goes_on(replay, steps, &more));
    }
    return NW_OK;
}

nw_rc nw_replay_run(struct nw_replay *replay, const struct nw_replay_how *how,
                    struct nw_replay_result *result_out)
{
    struct nw_comm *comm = replay->comm;
    struct nw_replay_result result = {.wrong_elements = -1, .cpu_share = NAN};
    struct nw_replay_steps steps = {0};

    replay->is_virtual = how->is_virtual;
    nw_rc rc = how->is_virtual ? NW_OK : nw_replay_get_buffers(replay);

    if (rc == NW_OK)
        rc = make_steps(replay, how, &steps);
    rc = nw_agree(comm, rc);
    if (rc == NW_OK && !how->is_virtual) {
        rc = comm->ops->barrier(comm); /* all at once: they share caches and clocks in a step too */
        replay->unit_ns = nw_replay_unit_ns();
    }
    if (rc == NW_OK)
        rc = run_steps(replay, &steps);
    if (rc == NW_OK)
        rc = nw_replay_fill(replay, &steps, &result);
    free_steps(&steps);
    if (rc != NW_OK) {
        nw_replay_result_free(&result);
        return rc;
    }
    *result_out = result;
    return NW_OK;
}
