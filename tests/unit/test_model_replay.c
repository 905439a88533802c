/* In virtual time: the schedule that ranks execute takes as long as the simulation says. */
#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/replay.h"

struct question {
    struct nw_replay_question replay;
    nw_rc rc;
    struct nw_replay_result result; /* rank 0's */
};

static nw_rc body(struct nw_comm *comm, void *argument)
{
    struct question *question = argument;
    const struct nw_replay_how how = {.is_virtual = true, .max_steps = 1};
    struct nw_replay_result result;
    struct nw_replay *replay;

    NW_TRY(nw_replay_open(comm, &question->replay, &replay));
    nw_rc rc = nw_replay_run(replay, &how, &result);

    nw_replay_close(replay);
    NW_TRY(rc);
    if (comm->rank == 0)
        question->result = result;
    else
        nw_replay_result_free(&result);
    return NW_OK;
}

static int pick(uint64_t *state, int count)
{
    return (int)(next_random(state) % (uint64_t)count);
}

static struct nw_job small_job(uint64_t *state)
{
    struct nw_job job = random_job(state);

    job.net.layers = (uint64_t)(2 << pick(state, 3));
    job.net.heads = 8;
    job.net.kv_heads = pick(state, 2) ? 8 : 4;
    job.net.head_size = 64;
    job.net.hidden = 512;
    job.net.ffn = 2048;
    job.net.vocab = 8192;
    job.sequence = 512;
    job.micro_batch = 1;
    job.global_batch = (uint64_t)(8 << pick(state, 2));
    return job;
}

static struct nw_layout random_layout(uint64_t *state)
{
    static const int degrees[] = {1, 1, 1, 2, 2, 4};
    struct nw_layout layout = {.strategy = &nw_strategies[pick(state, (int)nw_strategy_count)],
                               .profile = &nw_profiles[pick(state, (int)nw_profile_count)]};
    const int dp = degrees[pick(state, 6)];

    layout.parallel.tp = degrees[pick(state, 5)];
    layout.parallel.pp = degrees[pick(state, 6)];
    layout.parallel.cp = degrees[pick(state, 4)];
    layout.parallel.virtual_stages = pick(state, 3) == 0 ? 2 : 1;
    layout.parallel.sequence_parallel = pick(state, 2);
    layout.rank_count = layout.base_rank_count =
        layout.parallel.tp * layout.parallel.pp * layout.parallel.cp * dp;
    layout.node_count = layout.rank_count > 1 && pick(state, 2) ? 2 : 1;
    return layout;
}

/* What hides costs nothing here, and no rank is late: the replay has neither. */
static struct nw_platform ideal_platform(uint64_t *state)
{
    struct nw_platform platform = platform_on(NULL, random_between(state, 0.5, 200), 8);

    for (int i = 0; i < NW_CONSTANT_COUNT; i++)
        platform.assumptions.value[i] = nw_constants[i].value;
    platform.assumptions.value[NW_CONSTANT_OVERLAP_LOSS] = 0;
    platform.assumptions.value[NW_CONSTANT_FUSED_LOSS] = 0;
    platform.assumptions.value[NW_CONSTANT_OVERLAP_LOSS_ERROR] = 0;
    platform.assumptions.value[NW_CONSTANT_JITTER] = 0;
    platform.hbm_bytes_per_s = 2e12;
    platform.host_to_device_bytes_per_s = platform.host_memory_bytes_per_s = 20e9;
    platform.fabric.intra_busbw_bytes_per_s = random_between(state, 1e9, 400e9);
    platform.fabric.inter_busbw_bytes_per_s = random_between(state, 0.1e9, 100e9);
    return platform;
}

/* 0: not a plan (degrees that do not divide). */
static int replay_one(uint64_t seed, unsigned *strategies)
{
    uint64_t state = seed;
    const struct nw_job job = small_job(&state);
    const struct nw_platform platform = ideal_platform(&state);
    const struct nw_layout layout = random_layout(&state);
    struct question question = {
        .replay = {.job = &job, .platform = &platform, .layout = &layout, .scale = 1}};
    struct nw_timing timing;
    struct nw_graph graph;
    struct nw_step step;

    if (nw_layout_check(&layout, &job) != NW_OK ||
        nw_predict_events(&job, &platform, &layout, 1, &graph, &timing, &step) != NW_OK)
        return 0;
    nw_graph_free(&graph);
    cr_assert(
        eq(int, nw_comm_run_local(layout.rank_count, layout.node_count, body, &question), NW_OK),
        "seed %llu: %s", (unsigned long long)seed, nw_last_error()->text);
    const struct nw_replay_result *result = &question.result;
    const double difference = result->step_ns.median / step.step_ns - 1;

    cr_expect(lt(dbl, fabs(difference), 1e-3),
              "seed %llu, %s of %s, tp %d pp %d cp %d vs %d, %d ranks: replayed %.6g ms, predicted "
              "%.6g ms",
              (unsigned long long)seed, layout.strategy->name, layout.profile->name,
              layout.parallel.tp, layout.parallel.pp, layout.parallel.cp,
              layout.parallel.virtual_stages, layout.rank_count, result->step_ns.median / 1e6,
              step.step_ns / 1e6);
    /* and it waits for the same things */
    for (int stream = 0; stream < NW_STREAM_COUNT; stream++) {
        const double exposed = result->sums.stream_exposed_ns[stream];
        const double predicted = result->predicted_sums.stream_exposed_ns[stream];

        cr_expect(lt(dbl, fabs(exposed - predicted), 1e-3 * step.step_ns),
                  "seed %llu, stream %d: exposed %g ns, predicted %g ns", (unsigned long long)seed,
                  stream, exposed, predicted);
    }
    *strategies |= 1u << (layout.strategy - nw_strategies);
    nw_replay_result_free(&question.result);
    return 1;
}

Test(replay, takes_in_virtual_time_what_the_simulation_says_for_a_thousand_random_jobs)
{
    unsigned strategies = 0;
    int count = 0;

    for (uint64_t seed = 1; count < 1000; seed++) {
        cr_assert(lt(u64, seed, 20000));
        count += replay_one(seed, &strategies);
    }
    cr_expect(eq(uint, strategies, (1u << nw_strategy_count) - 1), "not every strategy was met");
}
