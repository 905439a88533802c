/* Which micro-batch a stage works on when: one forward, one backward (Narayanan et al. 2019,
 * PipeDream-flush; 2021, Megatron-LM, section 2.2: interleaved), bubble (p - 1) / (m v).
 *
 * Micro-batches that are alike are put once and counted: without a pipeline the first, one of the
 * middle and the last; with one, as many as fill it, and one round of the steady state counts for
 * those left out. */
#include "model/step_build.h"

#include <stdlib.h>

/* More than so many passes, or units in them one by one: closed form. */
enum { PASSES_MAX = 60000, UNITS_MAX = 600000 };

/* ---- without a pipeline -------------------------------------------------------------------- */

static void put_alone(struct nw_build *build)
{
    const double m = build->micro_batch_count;
    const struct nw_chunk chunk = nw_build_chunk(build, 0, 0);
    const unsigned both = NW_ROLE_FIRST | NW_ROLE_LAST;
    /* Roles that make a difference; all alike: one pass for all. */
    const bool first = build->strategy->gathers == NW_GATHERS_UPDATED &&
                       build->profile->weights != NW_OVERLAP_SERIAL;
    const bool last = nw_reduces(build, NW_ROLE_LAST) && !nw_reduces(build, 0);

    if (build->unrolled) {
        for (double i = 0; i < m && build->rc == NW_OK && !build->graph.failed; i++) {
            const unsigned role = (i == 0 ? NW_ROLE_FIRST : 0) | (i == m - 1 ? NW_ROLE_LAST : 0);

            nw_put_forward(build, 0, &chunk, role, 1);
            nw_put_backward(build, 0, &chunk, role, 1);
        }
        return;
    }
    if (m < 2 || (!first && !last)) {
        nw_put_forward(build, 0, &chunk, both, m);
        nw_put_backward(build, 0, &chunk, both, m);
        return;
    }
    nw_put_forward(build, 0, &chunk, NW_ROLE_FIRST, 1);
    nw_put_backward(build, 0, &chunk, NW_ROLE_FIRST, 1);
    if (m > 2) {
        nw_put_forward(build, 0, &chunk, 0, m - 2);
        nw_put_backward(build, 0, &chunk, 0, m - 2);
    }
    nw_put_forward(build, 0, &chunk, NW_ROLE_LAST, 1);
    nw_put_backward(build, 0, &chunk, NW_ROLE_LAST, 1);
}

/* ---- with one ------------------------------------------------------------------------------ */

struct pipeline {
    struct nw_build *build;
    int p, v, m;      /* stages, virtual stages, micro-batches that are put */
    double left_out;  /* rounds of the steady state that one stands for: its count less one */
    int32_t *arrived; /* [forward, backward][micro-batch][chunk of p × v]: message from before */
    int *done;        /* passes put, per stage */
};

static int passes(const struct pipeline *pipe)
{
    return pipe->m * pipe->v;
}

/* Forward passes of a stage before its first backward one (Megatron-Core schedules.py). */
static int warm_up(const struct pipeline *pipe, int stage)
{
    const int before =
        pipe->v > 1 ? (pipe->p - stage - 1) * 2 + (pipe->v - 1) * pipe->p : pipe->p - stage - 1;

    return before < passes(pipe) ? before : passes(pipe);
}

struct pass {
    bool backward;
    int micro_batch, chunk; /* chunk: of this stage */
    double count;
};

/* The steady round that stands for others: p × v pairs in the middle. */
static double count_of(const struct pipeline *pipe, int stage, int pair)
{
    const int pairs = passes(pipe) - warm_up(pipe, stage);
    const int round = pipe->v > 1 ? pipe->p * pipe->v : 1;
    const int start = (pairs - round) / 2;

    return pair >= start && pair < start + round ? 1 + pipe->left_out : 1;
}

static struct pass pass_at(const struct pipeline *pipe, int stage, int index)
{
    const int warm = warm_up(pipe, stage), all = passes(pipe);
    const int steady = index - warm, round = pipe->p * pipe->v;
    struct pass pass = {.count = 1};
    int at;

    if (steady < 0) {
        at = index;
    } else if (steady < 2 * (all - warm)) {
        pass.backward = steady % 2 == 1;
        at = pass.backward ? steady / 2 : warm + steady / 2;
        pass.count = count_of(pipe, stage, steady / 2);
    } else {
        pass.backward = true;
        at = index - all;
    }
    if (pipe->v == 1) {
        pass.micro_batch = at;
        return pass;
    }
    pass.chunk = at % round / pipe->p;
    pass.micro_batch = at / round * pipe->p + at % pipe->p;
    if (pass.backward)
        pass.chunk = pipe->v - 1 - pass.chunk;
    return pass;
}

static int32_t *arrival(const struct pipeline *pipe, bool backward, int micro_batch, int chunk)
{
    const int chunks = pipe->p * pipe->v;

    return &pipe->arrived[((backward ? pipe->m : 0) + micro_batch) * chunks + chunk];
}

/* Where this boundary of two stages lies: within a node, or between two, with all ranks of the node
 * that belong to the stage. */
static void lay_boundary(const struct nw_layout *layout, int from, int to,
                         struct nw_message *message)
{
    const int stride = nw_layout_tp(layout) * nw_layout_reduce_count(layout);
    const int nodes = layout->node_count > 1 ? layout->node_count : 1;
    const int per_node = layout->rank_count > nodes ? layout->rank_count / nodes : 1;
    const bool same = from * stride / per_node == to * stride / per_node;

    message->host_count = same ? 1 : 2;
    message->sharing = stride < per_node ? stride : per_node;
}

/* Activations to the next stage, their gradient to the one before; of interleaved stages from the
 * last to the first too. */
static void send_on(const struct pipeline *pipe, int stage, const struct pass *pass)
{
    struct nw_build *build = pipe->build;
    const int index = pass->chunk * pipe->p + stage, next = index + (pass->backward ? -1 : 1);
    struct nw_stage *at = &build->stages[stage];
    struct nw_message message = {
        .collective = "sendrecv",
        .bytes = build->tokens * (double)build->job->net.hidden *
                 build->job->precision->element_bytes /
                 (build->layout.parallel.sequence_parallel ? nw_layout_tp(&build->layout) : 1),
        .times = 1,
        .group = NW_GROUP_PP,
        .stream = NW_STREAM_PIPELINE,
    };

    if (next < 0 || next >= pipe->p * pipe->v)
        return;
    lay_boundary(&build->layout, stage, next % pipe->p, &message);
    const int32_t after = at->wait_count > 0 ? at->waits[at->wait_count - 1] : at->computed;
    const int32_t sent = nw_put_message(build, stage, &message, pass->count, after);

    if (sent > 0) {
        build->graph.events[sent - 1].to_stage = next % pipe->p;
        build->graph.events[sent - 1].backward = pass->backward;
    }
    *arrival(pipe, pass->backward, pass->micro_batch, next) = sent > 0 ? sent : after;
}

static bool may_start(const struct pipeline *pipe, int stage, const struct pass *pass)
{
    const int index = pass->chunk * pipe->p + stage, last = pipe->p * pipe->v - 1;

    return (pass->backward ? index == last : index == 0) ||
           *arrival(pipe, pass->backward, pass->micro_batch, index) > 0;
}

static void put_pass(const struct pipeline *pipe, int stage, const struct pass *pass)
{
    struct nw_build *build = pipe->build;
    const struct nw_chunk chunk = nw_build_chunk(build, stage, pass->chunk);
    const unsigned role = (pass->micro_batch == 0 ? NW_ROLE_FIRST : 0) |
                          (pass->micro_batch == pipe->m - 1 ? NW_ROLE_LAST : 0);

    nw_stage_waits(&build->stages[stage], *arrival(pipe, pass->backward, pass->micro_batch,
                                                   pass->chunk * pipe->p + stage));
    if (pass->backward)
        nw_put_backward(build, stage, &chunk, role, pass->count);
    else
        nw_put_forward(build, stage, &chunk, role, pass->count);
    send_on(pipe, stage, pass);
}

/* Every stage goes on as far as it can; what it waits for has been put by then. */
static void put_all(struct pipeline *pipe)
{
    bool moved = true;

    while (moved && pipe->build->rc == NW_OK) {
        moved = false;
        for (int stage = 0; stage < pipe->p; stage++) {
            while (pipe->done[stage] < 2 * passes(pipe)) {
                const struct pass pass = pass_at(pipe, stage, pipe->done[stage]);

                if (!may_start(pipe, stage, &pass))
                    break;
                put_pass(pipe, stage, &pass);
                pipe->done[stage]++;
                moved = true;
            }
        }
    }
}

/* ---- closed form --------------------------------------------------------------------------- */

/* Too many passes to put each: those of the slowest stage alone, and a bubble of (p - 1) / v of its
 * micro-batches (Narayanan et al. 2021, section 2.2). */
static double put_round(struct nw_build *build, int stage, unsigned role, double count)
{
    const int32_t first = build->graph.count;
    double ns = 0;

    for (int c = 0; c < build->virtual_stages; c++) {
        const struct nw_chunk chunk = nw_build_chunk(build, stage, c);

        nw_put_forward(build, 0, &chunk, role, count);
    }
    for (int c = build->virtual_stages; c-- > 0;) {
        const struct nw_chunk chunk = nw_build_chunk(build, stage, c);

        nw_put_backward(build, 0, &chunk, role, count);
    }
    for (int32_t i = first; i < build->graph.count; i++) {
        const struct nw_event *event = &build->graph.events[i];

        if (event->stream == NW_STREAM_COMPUTE || event->stream == NW_STREAM_TENSOR)
            ns += event->ns;
    }
    return ns;
}

static double stage_ns(const struct nw_build *build, int stage)
{
    double ns = 0;

    for (int c = 0; c < build->virtual_stages; c++) {
        const struct nw_chunk chunk = nw_build_chunk(build, stage, c);

        for (int i = 0; i < nw_chunk_length(&chunk); i++) {
            const struct nw_unit *unit = &build->units[nw_chunk_unit(&chunk, i)];

            ns += unit->forward_ns + unit->backward_ns;
        }
    }
    return ns;
}

static void put_closed_form(struct nw_build *build)
{
    const double m = build->micro_batch_count;
    const int last = build->stage_count - 1;
    const int stage = stage_ns(build, last) > stage_ns(build, 0) ? last : 0;
    const unsigned both = NW_ROLE_FIRST | NW_ROLE_LAST;

    build->graph.stage_count = 1;
    build->first_stage = stage;
    const double round = put_round(build, stage, m > 1 ? NW_ROLE_FIRST : both, 1);

    nw_put_compute(build, 0, NW_EVENT_BUBBLE, 0, 0,
                   round * (build->stage_count - 1) / build->virtual_stages, 1);
    if (m > 2)
        put_round(build, stage, 0, m - 2);
    if (m > 1)
        put_round(build, stage, NW_ROLE_LAST, 1);
}

/* As many micro-batches as fill the pipe, and whole rounds left out: nw_predict refuses interleaved
 * stages that do not take whole ones. */
static int put_count(const struct nw_build *build)
{
    const int enough = (build->virtual_stages > 1 ? 3 : 2) * build->stage_count;

    return build->unrolled || build->micro_batch_count < enough ? (int)build->micro_batch_count
                                                                : enough;
}

void nw_put_micro_batches(struct nw_build *build)
{
    struct pipeline pipe = {
        .build = build, .p = build->stage_count, .v = build->virtual_stages, .m = put_count(build)};

    if (pipe.p == 1) {
        put_alone(build);
        return;
    }
    if (2.0 * pipe.m * pipe.p * pipe.v > PASSES_MAX ||
        2.0 * pipe.m * ((double)build->job->net.layers + 2) > UNITS_MAX) {
        if (build->unrolled)
            build->rc = nw_fail(NW_EUSAGE,
                                "%d micro-batches on %d stages are too many to be put one by one; "
                                "accepted: fewer --layers, --grad-accum or --virtual-stages",
                                pipe.m, pipe.p * pipe.v);
        else
            put_closed_form(build);
        return;
    }
    pipe.left_out = (build->micro_batch_count - pipe.m) / (pipe.v > 1 ? pipe.p : 1);
    pipe.arrived = calloc((size_t)(2 * pipe.m * pipe.p * pipe.v), sizeof *pipe.arrived);
    pipe.done = calloc((size_t)pipe.p, sizeof *pipe.done);
    if (pipe.arrived == NULL || pipe.done == NULL)
        build->rc = nw_fail(NW_ENOMEM, "no memory for a pipeline of %d stages", pipe.p);
    else
        put_all(&pipe);
    free(pipe.arrived);
    free(pipe.done);
}
