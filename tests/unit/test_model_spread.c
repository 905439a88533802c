/* Random jobs spread in every way that is accepted. */
#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/breakdown.h"

static void near(double value, double expected, double tolerance, const char *what)
{
    cr_assert(lt(dbl, fabs(value - expected), tolerance * fabs(expected) + 1e-6),
              "%s: %.12g instead of %.12g", what, value, expected);
}

/* Wires of the given busbw inside a node and between nodes, times `factor`. */
static struct nw_platform wires(double tflops, double factor)
{
    struct nw_platform platform = platform_on(NULL, tflops, 8);

    nw_assumptions_reset(&platform.assumptions);
    platform.hbm_bytes_per_s = 2e12;
    platform.host_to_device_bytes_per_s = 25e9;
    platform.host_memory_bytes_per_s = 20e9;
    platform.step_time_factor = 1;
    platform.fabric.intra_busbw_bytes_per_s = 100e9 * factor;
    platform.fabric.inter_busbw_bytes_per_s = 10e9 * factor;
    return platform;
}

static int one_of(uint64_t *state, int a, int b, int c, int d)
{
    const int values[] = {a, b, c, d};

    return values[next_random(state) % 4];
}

static struct nw_layout random_layout(uint64_t *state)
{
    const int nodes = one_of(state, 1, 2, 4, 8);

    return (struct nw_layout){
        .node_count = nodes,
        .rank_count = 8 * nodes,
        .base_rank_count = 8 * nodes,
        .strategy = &nw_strategies[next_random(state) % nw_strategy_count],
        .profile = &nw_profiles[next_random(state) % nw_profile_count],
        .parallel = {.tp = one_of(state, 1, 1, 2, 4),
                     .pp = one_of(state, 1, 1, 2, 4),
                     .cp = one_of(state, 1, 1, 1, 2),
                     .virtual_stages = one_of(state, 1, 1, 1, 2),
                     .shard_count = one_of(state, 0, 0, 4, 8),
                     .sequence_parallel = next_random(state) % 2},
    };
}

/* The next job and spread that are accepted. */
static bool draw(uint64_t *state, struct nw_job *job, struct nw_layout *layout)
{
    struct nw_step step;
    const struct nw_platform platform = wires(100, 1);

    for (int tries = 0; tries < 1000; tries++) {
        *job = random_job(state);
        *layout = random_layout(state);
        job->recompute = (nw_recompute)(next_random(state) % 3);
        if (next_random(state) % 4 == 0 && layout->strategy->optimizer_sharded)
            job->offload.optimizer = NW_OFFLOAD_CPU;
        if (nw_layout_check(layout, job) == NW_OK &&
            nw_predict(job, &platform, layout, NULL, &step) == NW_OK)
            return true;
        nw_clear_error();
    }
    return false;
}

static struct nw_step predict(const struct nw_job *job, const struct nw_platform *platform,
                              const struct nw_layout *layout)
{
    struct nw_step step;

    cr_assert(eq(int, nw_predict(job, platform, layout, NULL, &step), NW_OK), "%s",
              nw_last_error()->text);
    return step;
}

static void check_parts(const struct nw_step *step)
{
    struct nw_breakdown breakdown;
    double sum = 0, groups = 0;

    nw_breakdown_of(step, &breakdown);
    for (size_t i = 0; i < breakdown.count; i++) {
        sum += breakdown.items[i].ns;
        cr_assert(ne(int, strcmp(breakdown.items[i].key, "other"), 0));
        cr_assert(ne(int, strcmp(breakdown.items[i].key, "communication"), 0));
    }
    near(sum, step->step_ns, 1e-9, "the parts make the step");
    for (int g = 0; g < NW_GROUP_COUNT; g++)
        groups += step->group_exposed_ns[g];
    near(groups, step->exposed_ns, 1e-9, "what is exposed is somebody's");
    near(step->hidden_ns + step->exposed_ns, step->communication_ns, 1e-9, "hidden and exposed");
    cr_assert(le(dbl, step->full_overlap_ns, step->step_ns));
    cr_assert(ge(dbl, step->no_overlap_ns, step->step_ns));
    cr_assert(le(dbl, step->low_ns, step->step_ns));
    cr_assert(ge(dbl, step->high_ns, step->step_ns));
    cr_assert(ge(dbl, step->bubble_ns, 0));
}

Test(spread, more_bandwidth_is_never_slower_and_parts_make_the_step)
{
    uint64_t state = 17;

    for (int i = 0; i < 1500; i++) {
        const double tflops = random_between(&state, 1, 1000);
        const struct nw_platform slow = wires(tflops, 1), fast = wires(tflops, 1.5);
        const struct nw_platform infinite = wires(tflops, 1e12);
        struct nw_layout layout;
        struct nw_job job;

        cr_assert(draw(&state, &job, &layout));
        const struct nw_step a = predict(&job, &slow, &layout), b = predict(&job, &fast, &layout);
        const struct nw_step c = predict(&job, &infinite, &layout);

        check_parts(&a);
        check_parts(&b);
        cr_assert(le(dbl, b.step_ns, a.step_ns * (1 + 1e-9)), "%s tp %d pp %d cp %d",
                  layout.strategy->name, layout.parallel.tp, layout.parallel.pp,
                  layout.parallel.cp);
        cr_assert(le(dbl, c.step_ns, b.step_ns * (1 + 1e-9)));
    }
}

/* Degrees of 1 are none at all; a hybrid of one copy is FSDP. */
Test(spread, what_does_nothing_changes_nothing)
{
    const struct nw_platform platform = wires(100, 1);
    uint64_t state = 23;
    int compared = 0;

    for (int i = 0; i < 500; i++) {
        struct nw_layout layout, same;
        struct nw_job job;

        cr_assert(draw(&state, &job, &layout));
        layout.parallel = (struct nw_parallel){0};
        same = layout;
        same.parallel =
            (struct nw_parallel){.tp = 1, .pp = 1, .cp = 1, .ep = 1, .virtual_stages = 1};
        if (layout.strategy->reduces == NW_REDUCES_NEVER ||
            nw_layout_check(&layout, &job) != NW_OK) {
            nw_clear_error();
            continue;
        }
        struct nw_step a, b;

        if (nw_predict(&job, &platform, &layout, NULL, &a) != NW_OK) {
            nw_clear_error();
            continue;
        }
        b = predict(&job, &platform, &same);
        near(b.step_ns, a.step_ns, 1e-12, "degrees of 1");
        layout.strategy = nw_strategy_named("fsdp");
        same = layout;
        same.strategy = nw_strategy_named("hsdp");
        same.parallel.shard_count = layout.rank_count;
        a = predict(&job, &platform, &layout);
        b = predict(&job, &platform, &same);
        near(b.step_ns, a.step_ns, 1e-12, "one copy");
        near(b.traffic.bytes_sent, a.traffic.bytes_sent, 1e-12, "one copy sends the same");
        compared++;
    }
    cr_expect(gt(int, compared, 100));
}

/* Equal layers and nothing else, messages that take no time: (p - 1) / v of a micro-batch. With
 * many micro-batches most are counted and not put, with very many stages none is. */
Test(spread, the_bubble_is_that_of_the_schedule)
{
    static const struct {
        int p, v;
        uint64_t m;
    } cases[] = {{2, 1, 1},  {4, 1, 4},   {4, 1, 12},    {4, 1, 13},   {4, 1, 1000},
                 {8, 1, 64}, {2, 2, 2},   {4, 2, 8},     {4, 4, 400},  {8, 3, 24},
                 {8, 3, 80}, {16, 4, 16}, {128, 1, 256}, {128, 4, 128}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int p = cases[i].p, v = cases[i].v;
        const double m = (double)cases[i].m;
        struct nw_platform platform = wires(100, 1e18);
        const struct nw_job job = {.net = {.name = "equal",
                                           .layers = (uint64_t)(p * v),
                                           .stated_parameters = (uint64_t)(p * v) * 1000,
                                           .flops_per_sample = 1e15},
                                   .sequence = 1,
                                   .micro_batch = 1,
                                   .global_batch = cases[i].m,
                                   .precision = &nw_precisions[1],
                                   .optimizer = &nw_optimizers[0],
                                   .gradient_bytes = 2,
                                   .tokens = NAN};
        const struct nw_layout layout = {.node_count = p > 8 ? p / 8 : 1,
                                         .rank_count = p,
                                         .base_rank_count = p,
                                         .parallel = {.pp = p, .virtual_stages = v},
                                         .strategy = nw_strategy_named("none")};
        const struct nw_step step = predict(&job, &platform, &layout);

        near(step.bubble_ns / step.compute_ns, (p - 1) / (m * v), 1e-3, "bubble");
    }
}

/* A pipeline of many micro-batches grows by one micro-batch's time with each, put or counted. */
Test(spread, counted_micro_batches_take_as_long_as_put_ones)
{
    const struct nw_platform platform = wires(100, 1);
    struct nw_scenario scenario = nw_scenario_likely;
    uint64_t state = 31;

    scenario.overlap_loss = 0; /* the schedule alone */

    for (int i = 0; i < 60; i++) {
        const int p = 4, v = 1 + i % 2;
        struct nw_job job = random_job(&state);
        const struct nw_layout layout = {.node_count = 1,
                                         .rank_count = p,
                                         .base_rank_count = p,
                                         .parallel = {.pp = p, .virtual_stages = v},
                                         .profile = &nw_profiles[i % (int)nw_profile_count],
                                         .strategy = nw_strategy_named("none")};
        struct nw_step at[3];

        job.net.layers = 16;
        job.micro_batch = 1;
        for (int k = 0; k < 3; k++) {
            job.global_batch = (uint64_t)(p * (2 + k)); /* 8, 12 put; 16 counted */
            cr_assert(eq(int, nw_predict(&job, &platform, &layout, &scenario, &at[k]), NW_OK));
        }
        near(at[2].step_ns - at[1].step_ns, at[1].step_ns - at[0].step_ns, 1e-2, "one round more");
    }
}

/* Experts on ranks of their own: their gradients are one part, each time is told once. */
Test(spread, parts_sum_to_the_step_with_expert_parallel_ranks)
{
    const struct nw_platform platform = wires(400, 1);
    const struct nw_job job = preset_job("mixtral-8x7b", 4096, 1, 64);
    bool expert_gradients = false;

    for (size_t s = 0; s < nw_strategy_count; s++) {
        for (size_t p = 0; p < nw_profile_count; p++) {
            const struct nw_layout layout = {.node_count = 2,
                                             .rank_count = 16,
                                             .base_rank_count = 16,
                                             .strategy = &nw_strategies[s],
                                             .profile = &nw_profiles[p],
                                             .parallel = {.ep = 4, .shard_count = 8}};
            struct nw_breakdown breakdown;
            struct nw_step step;
            double sum = 0;

            if (nw_layout_check(&layout, &job) != NW_OK ||
                nw_predict(&job, &platform, &layout, NULL, &step) != NW_OK) {
                nw_clear_error();
                continue;
            }
            nw_breakdown_of(&step, &breakdown);
            for (size_t i = 0; i < breakdown.count; i++) {
                sum += breakdown.items[i].ns;
                expert_gradients =
                    expert_gradients || strcmp(breakdown.items[i].key, "expert_gradients") == 0;
                for (size_t j = 0; j < i; j++)
                    cr_expect(
                        ne(str, (char *)breakdown.items[i].key, (char *)breakdown.items[j].key));
            }
            near(sum, step.step_ns, 1e-4, nw_strategies[s].name);
        }
    }
    cr_expect(expert_gradients);
}
