#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/step_build.h"

static void near(double value, double expected, double tolerance, const char *what)
{
    cr_expect(lt(dbl, fabs(value - expected), tolerance * fabs(expected) + 1e-6),
              "%s: %.12g instead of %.12g", what, value, expected);
}

static struct nw_curves curves_at(double intra, double inter)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_curves curves = {0};

    add_group(run, 8, 1, 5e3, intra);
    add_group(run, 16, 2, 20e3, inter);
    cr_assert(eq(int, nw_curves_add(&curves, &results, 8), NW_OK));
    nw_results_free(&results);
    return curves;
}

static struct nw_step predict(const struct nw_job *job, const struct nw_platform *platform,
                              const struct nw_strategy *strategy, int nodes, int ranks)
{
    const struct nw_layout layout = {
        .node_count = nodes, .rank_count = ranks, .base_rank_count = ranks, .strategy = strategy};
    struct nw_step step;

    cr_assert(eq(int, nw_predict(job, platform, &layout, NULL, &step), NW_OK), "%s",
              nw_last_error()->text);
    return step;
}

static struct nw_job llama(void)
{
    return preset_job("llama-2-7b", 4096, 2, 128);
}

/* Rajbhandari et al. 2020, section 7: 2Ψ, 2Ψ, 3Ψ elements; ZeRO-2 reduces in every micro-batch. The
 * ring sends (n-1)/n of it. PyTorch's own ZeRO-1 broadcasts the updated weights: Ψ more. */
Test(step, communication_volumes_are_those_of_the_papers)
{
    static const struct {
        const char *strategy;
        double once, each; /* Ψ per step, per micro-batch */
    } cases[] = {{"ddp", 2, 0},       {"zero1", 2 + 16.0 / 15, 0},
                 {"zero2", 1, 1},     {"zero3", 0, 3},
                 {"fsdp", 0, 3},      {"none", 0, 0},
                 {"fsdp-keep", 0, 2}, {"distopt", 2, 0}};
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    const struct nw_job job = llama();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct nw_step step =
            predict(&job, &platform, nw_strategy_named(cases[i].strategy), 2, 16);

        cr_expect(eq(u64, step.micro_batch_count, 4));
        near(step.traffic.bytes_sent,
             (cases[i].once + 4 * cases[i].each) * 2 * 6738415616.0 * 15 / 16, 1e-9,
             cases[i].strategy);
    }
    nw_curves_free(&curves);
}

Test(step, computation_is_flops_over_rate_and_recomputation_one_more_forward)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = llama();
    const struct nw_flops flops = nw_transformer_flops(&job.net, 8 * 4096, 4096, true);
    const double forward = 32 * flops.layer_forward;
    const double all =
        forward + 32 * flops.layer_backward + flops.head_forward + flops.head_backward;
    const double plain = predict(&job, &platform, nw_strategy_named("fsdp"), 2, 16).compute_ns;

    near(plain, all / 400e12 * 1e9, 1e-9, "plain");
    job.recompute = true;
    near(predict(&job, &platform, nw_strategy_named("fsdp"), 2, 16).compute_ns,
         (all + forward) / 400e12 * 1e9, 1e-9, "recomputed");
    nw_curves_free(&curves);
}

Test(step, the_update_of_the_share_is_in_the_step)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    struct nw_platform platform = platform_on(&curves, 400, 8);
    const struct nw_job job = llama();

    platform.hbm_bytes_per_s = 3e12;
    const double whole = predict(&job, &platform, nw_strategy_named("ddp"), 1, 8).optimizer_ns;

    cr_expect(gt(dbl, whole, 20 * 6738415616.0 / 3e12 * 1e9));
    near(predict(&job, &platform, nw_strategy_named("zero1"), 1, 8).optimizer_ns, whole / 8, 1e-9,
         "an eighth");
    platform.hbm_bytes_per_s = NAN;
    cr_expect(not(predict(&job, &platform, nw_strategy_named("ddp"), 1, 8).optimizer_known));
    nw_curves_free(&curves);
}

static void check_order(const struct nw_step *step)
{
    const double slack = 1 + 1e-9;

    cr_assert(le(dbl, step->full_overlap_ns, step->step_ns * slack));
    cr_assert(le(dbl, step->step_ns, step->no_overlap_ns * slack));
    cr_assert(le(dbl, step->low_ns, step->step_ns * slack));
    cr_assert(ge(dbl, step->high_ns * slack, step->step_ns));
    cr_assert(ge(dbl, step->hidden_ns, -1e-3));
    cr_assert(ge(dbl, step->exposed_ns, 0));
    cr_assert(ge(dbl, step->step_ns * slack, step->compute_ns));
    cr_assert(lt(dbl, fabs(step->exposed_ns + step->hidden_ns - step->communication_ns),
                 1e-6 * step->communication_ns + 1));
}

/* Random jobs: one rank has no communication; more bandwidth is never slower; an infinitely fast
 * wire leaves the computation. */
Test(step, properties_of_random_jobs)
{
    struct nw_curves slow = curves_at(20e9, 1e9), fast = curves_at(100e9, 30e9);
    struct nw_curves infinite = curves_at(1e24, 1e24);
    uint64_t seed = 11;

    for (size_t i = 0; i < infinite.count; i++)
        for (size_t p = 0; p < infinite.items[i].point_count; p++)
            infinite.items[i].points[p] =
                (struct nw_curve_point){.bytes = infinite.items[i].points[p].bytes,
                                        .time_ns = 1e-6,
                                        .low_ns = 1e-6,
                                        .high_ns = 1e-6};
    for (size_t i = 0; i < infinite.count; i++)
        infinite.items[i].alpha_ns = infinite.items[i].beta_ns_per_byte = 0;
    for (int i = 0; i < 200; i++) {
        const struct nw_job job = random_job(&seed);
        const double tflops = random_between(&seed, 0.05, 1000);
        const struct nw_strategy *strategy = &nw_strategies[i % (int)nw_strategy_count];
        const struct nw_platform on_slow = platform_on(&slow, tflops, 8);
        const struct nw_platform on_fast = platform_on(&fast, tflops, 8);
        const struct nw_platform on_infinite = platform_on(&infinite, tflops, 8);

        for (int nodes = 1; nodes <= 2; nodes++) {
            const struct nw_step a = predict(&job, &on_slow, strategy, nodes, 8 * nodes);
            const struct nw_step b = predict(&job, &on_fast, strategy, nodes, 8 * nodes);
            const struct nw_step c = predict(&job, &on_infinite, strategy, nodes, 8 * nodes);

            check_order(&a);
            check_order(&b);
            cr_assert(le(dbl, b.step_ns, a.step_ns * (1 + 1e-9)), "%s", strategy->name);
            if (!strategy->hybrid) /* its groups are not among the curves */
                near(c.step_ns - c.jitter_ns, c.compute_ns, 1e-6, strategy->name);
            near(a.compute_ns, b.compute_ns, 1e-9, "computation does not know the wire");
        }
        const struct nw_step alone = predict(&job, &on_slow, strategy, 1, 1);

        cr_assert(eq(dbl, alone.communication_ns, 0));
        cr_assert(eq(dbl, alone.traffic.bytes_sent, 0));
        near(alone.step_ns, alone.compute_ns, 1e-12, "alone");
    }
    nw_curves_free(&slow);
    nw_curves_free(&fast);
    nw_curves_free(&infinite);
}

/* Twice the time per byte and per operation is twice the step: nothing hides a unit. */
Test(step, scales_with_the_units)
{
    uint64_t seed = 5;
    struct nw_curves once = curves_at(100e9, 30e9), twice = curves_at(50e9, 15e9);

    for (size_t i = 0; i < twice.count; i++)
        for (size_t p = 0; p < twice.items[i].point_count; p++) {
            struct nw_curve_point *to = &twice.items[i].points[p];

            *to = once.items[i].points[p];
            to->time_ns *= 2, to->low_ns *= 2, to->high_ns *= 2;
            twice.items[i].alpha_ns = 2 * once.items[i].alpha_ns;
            twice.items[i].beta_ns_per_byte = 2 * once.items[i].beta_ns_per_byte;
        }
    for (int i = 0; i < 50; i++) {
        const struct nw_job job = random_job(&seed);
        const struct nw_strategy *strategy = &nw_strategies[i % (int)nw_strategy_count];
        const struct nw_platform a = platform_on(&once, 100, 8), b = platform_on(&twice, 50, 8);

        if (strategy->hybrid)
            continue; /* goes through groups that these curves do not have */
        near(predict(&job, &b, strategy, 2, 16).step_ns,
             2 * predict(&job, &a, strategy, 2, 16).step_ns, 1e-9, strategy->name);
    }
    nw_curves_free(&once);
    nw_curves_free(&twice);
}

Test(step, batch_is_dealt_evenly_or_refused)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = llama();
    const struct nw_layout layout = {.node_count = 2,
                                     .rank_count = 16,
                                     .base_rank_count = 16,
                                     .strategy = nw_strategy_named("fsdp")};
    struct nw_step step;

    job.global_batch = 96; /* 6 per GPU: two at a time, three times */
    job.micro_batch = 4;   /* does not divide 6: 3 does */
    step = predict(&job, &platform, nw_strategy_named("fsdp"), 2, 16);
    cr_expect(eq(u64, step.micro_batch, 3));
    cr_expect(eq(u64, step.micro_batch_count, 2));
    job.global_batch = 100;
    cr_expect(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "a multiple of 16"), NULL));
    nw_curves_free(&curves);
}

/* A bucketed all-reduce behind the backward pass shows only its tail; without room it shows all. */
Test(step, ddp_hides_buckets_behind_the_backward_pass)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_job job = llama();
    const struct nw_platform slow_gpu = platform_on(&curves, 40, 8);
    const struct nw_platform fast_gpu = platform_on(&curves, 1e6, 8);
    const struct nw_step behind = predict(&job, &slow_gpu, nw_strategy_named("ddp"), 2, 16);
    const struct nw_step bare = predict(&job, &fast_gpu, nw_strategy_named("ddp"), 2, 16);

    cr_expect(lt(dbl, behind.exposed_ns, 0.05 * behind.communication_ns));
    cr_expect(gt(dbl, bare.exposed_ns, 0.99 * bare.communication_ns));
    cr_expect(ge(dbl, behind.traffic.calls, 200)); /* tensors of 32 layers above 25 MiB each */
    nw_curves_free(&curves);
}

/* Computation long enough to hide a layer's messages: what shows is the first two gathers (the
 * embeddings compute nothing), the first gather of the backward pass, and the last two scatters. */
Test(step, fsdp_shows_what_one_layer_of_prefetch_cannot_hide)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 10, 8);
    const struct nw_job job = llama();
    const struct nw_step step = predict(&job, &platform, nw_strategy_named("fsdp"), 2, 16);
    const double vocabulary = 2 * 32000.0 * 4096, head = vocabulary + 2 * 4096;
    const double layer = (6738415616.0 * 2 - vocabulary - head) / 32;
    const double bytes[] = {vocabulary, layer, head, layer, vocabulary};
    double shown = 0;

    for (int i = 0; i < 5; i++) {
        struct nw_cost cost;

        cr_assert(
            eq(int,
               nw_fabric_cost(&platform.fabric, i < 3 ? "all_gather" : "reduce_scatter", bytes[i],
                              (struct nw_group){.rank_count = 16, .host_count = 2}, NULL, &cost),
               NW_OK));
        shown += cost.time_ns;
    }
    near(step.exposed_ns, 4 * shown, 1e-9, "four micro-batches");
    near(step.traffic.calls, 4 * 3 * 34, 1e-12, "three messages a unit");
    nw_curves_free(&curves);
}

/* gpt2-124m in 16 bit: 170 MB of layers in buckets of 25 MiB and a whole embedding of 77 MB;
 * llama's matrices are larger than a bucket each: one message a matrix. */
Test(step, ddp_buckets_are_filled_to_their_size)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = llama();
    struct nw_step step = predict(&job, &platform, nw_strategy_named("ddp"), 2, 16);

    cr_expect(eq(dbl, step.traffic.calls, 1 + 32 * 7 + 1));
    /* The embedding, and the norm before it that did not fill a bucket. */
    cr_expect(eq(dbl, step.traffic.message_bytes, 2 * (32000.0 * 4096 + 4096)));
    cr_assert(eq(int, nw_transformer_find("gpt2-124m", &job.net), NW_OK));
    job.sequence = 1024;
    step = predict(&job, &platform, nw_strategy_named("ddp"), 2, 16);
    cr_expect(ge(dbl, step.traffic.calls, 7));
    cr_expect(le(dbl, step.traffic.calls, 9));
    cr_expect(ge(dbl, step.traffic.message_bytes, 2 * (50257.0 * 768)));
    nw_curves_free(&curves);
}

/* What checkpointing keeps goes to the host and comes back once, whatever else is sent: copies that
 * take far longer than everything else are the step. */
Test(step, kept_activations_go_there_and_back_under_every_strategy)
{
    static const char *const names[] = {"ddp", "zero1", "zero2", "zero3", "fsdp", "distopt"};
    struct nw_curves curves = curves_at(300e9, 50e9);
    struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = llama();
    /* Full recomputation keeps a layer's input. */
    const double copies = 4 * 32 * 2 * (2 * 4096 * 4096.0 * 2) / 0.5e9 * 1e9;

    job.recompute = NW_RECOMPUTE_FULL;
    job.offload.activations = NW_OFFLOAD_CPU;
    platform.host_to_device_bytes_per_s = 0.5e9;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct nw_step step = predict(&job, &platform, nw_strategy_named(names[i]), 2, 16);

        cr_expect(ge(dbl, step.step_ns, 0.99 * copies), "%s", names[i]);
        cr_expect(le(dbl, step.offload_ns, copies), "%s", names[i]);
    }
    nw_curves_free(&curves);
}

/* Each layer's copy leaves behind that layer: half as long as a layer's forward pass, nearly all of
 * them hide, under one rank as under fsdp. */
Test(step, copies_of_activations_hide_layer_by_layer)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = llama();
    const double bytes = 2 * 4096 * 4096.0 * 2;
    const struct nw_flops flops = nw_transformer_flops(&job.net, 2 * 4096, 4096, true);

    job.recompute = NW_RECOMPUTE_FULL;
    job.offload.activations = NW_OFFLOAD_CPU;
    job.global_batch = 8;
    platform.host_to_device_bytes_per_s = 2 * bytes / (flops.layer_forward / 400e12);
    const struct nw_step step = predict(&job, &platform, nw_strategy_named("none"), 1, 1);
    const double copies = 4 * 64 * bytes / platform.host_to_device_bytes_per_s * 1e9;

    cr_expect(lt(dbl, step.offload_ns, 0.05 * copies));
    nw_curves_free(&curves);
}

/* ZeRO-1 sends what ddp sends, of experts too: each goes around the ranks that hold the same ones,
 * gathered in front of the next pass (PyTorch) or behind the update (DeepSpeed). */
Test(step, experts_are_gathered_among_the_ranks_that_hold_them)
{
    static const char *const frameworks[] = {"hf", "deepspeed"};
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    const struct nw_job job = preset_job("mixtral-8x7b", 4096, 1, 64);

    for (int i = 0; i < 2; i++) {
        double sent[2];

        for (int k = 0; k < 2; k++) {
            const struct nw_layout layout = {.node_count = 2,
                                             .rank_count = 16,
                                             .strategy =
                                                 nw_strategy_named(k == 0 ? "ddp" : "zero1"),
                                             .profile = nw_profile_named(frameworks[i]),
                                             .parallel = {.ep = 8}};
            struct nw_step step;

            cr_assert(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_OK));
            sent[k] = step.traffic.bytes_sent;
        }
        near(sent[1], sent[0], 1e-9, frameworks[i]);
    }
    nw_curves_free(&curves);
}

static struct nw_build build_of(const struct nw_job *job, const struct nw_layout *layout,
                                const struct nw_platform *platform)
{
    struct nw_build build;

    cr_assert(
        eq(int, nw_build_init(job, platform, layout, 1, 1, &nw_scenario_likely, &build), NW_OK));
    return build;
}

/* The core is done once more with either kind of recomputation; its first time stays as it was. */
Test(step, attention_done_again_is_no_part_of_the_forward_pass)
{
    static const nw_recompute kinds[] = {NW_RECOMPUTE_NONE, NW_RECOMPUTE_SELECTIVE,
                                         NW_RECOMPUTE_FULL};
    struct nw_curves curves = curves_at(300e9, 50e9);
    struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = preset_job("llama-2-7b", 32768, 1, 1);
    const struct nw_layout layout = {
        .node_count = 1, .rank_count = 1, .strategy = nw_strategy_named("none")};
    double forward[3];

    cr_assert(eq(int, nw_gpu_find("A100 SXM4 80GB", &platform.gpu), NW_OK));
    platform.hbm_bytes_per_s = platform.gpu->hbm_bytes_per_s;
    platform.units = NW_UNITS_BF16;
    platform.rate.source = NW_RATE_CATALOGUE;
    nw_assumptions_reset(&platform.assumptions);
    for (int i = 0; i < 3; i++) {
        job.recompute = kinds[i];
        struct nw_build build = build_of(&job, &layout, &platform);

        forward[i] = build.units[NW_UNIT_PLAIN].attention_forward_ns;
        nw_build_free(&build);
    }
    near(forward[1], forward[0], 1e-6, "selective");
    near(forward[2], forward[0], 1e-6, "full");
    nw_curves_free(&curves);
}

/* What the look-up's result is scattered by is gathered in the backward pass; frozen embeddings
 * have none. */
Test(step, sequence_parallel_embeddings_gather_their_gradient)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = llama();
    struct nw_layout layout = {.node_count = 1,
                               .rank_count = 8,
                               .strategy = nw_strategy_named("ddp"),
                               .parallel = {.tp = 8, .sequence_parallel = true}};
    struct nw_build build = build_of(&job, &layout, &platform);
    const struct nw_unit *unit = &build.units[NW_UNIT_EMBEDDING];

    cr_assert(ne(ptr, (void *)unit->backward[0].collective, NULL));
    cr_expect(eq(str, (char *)unit->forward[0].collective, "reduce_scatter"));
    cr_expect(eq(str, (char *)unit->backward[0].collective, "all_gather"));
    cr_expect(eq(dbl, unit->backward[0].bytes, 4096 * 4096.0 * 2));
    nw_build_free(&build);
    layout.parallel.sequence_parallel = false;
    build = build_of(&job, &layout, &platform);
    cr_expect(eq(ptr, (void *)build.units[NW_UNIT_EMBEDDING].backward[0].collective, NULL));
    nw_build_free(&build);
    nw_curves_free(&curves);
}

/* A pipeline of too many passes is told by its slowest stage: its parts are that stage's. */
Test(step, parts_of_a_closed_form_are_of_the_stage_that_it_stands_on)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = preset_job("llama-3-8b", 4096, 1, 4096);
    const struct nw_layout layout = {.node_count = 16,
                                     .rank_count = 128,
                                     .strategy = nw_strategy_named("ddp"),
                                     .parallel = {.pp = 128}};
    struct nw_step step;

    job.net.layers = 128; /* the last one has the output layer too */
    cr_assert(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_OK), "%s",
              nw_last_error()->text);
    cr_expect(eq(int, step.stage, 127));
    near(step.product_ns, step.compute_ns, 1e-9, "a stated rate is all products");
    nw_curves_free(&curves);
}

/* Its weights are gathered too as that stage has them: two more layers lie on the first ones, which
 * have no output layer. */
Test(step, a_closed_form_gathers_the_weights_of_the_stage_that_it_stands_on)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = preset_job("llama-3-8b", 4096, 1, 4096);
    const struct nw_layout layout = {.node_count = 32,
                                     .rank_count = 256,
                                     .strategy = nw_strategy_named("zero1"),
                                     .profile = nw_profile_named("megatron-lm"),
                                     .parallel = {.pp = 128}};
    struct nw_tensors head;
    struct nw_step step;

    job.net.layers = 130;
    nw_transformer_head(&job.net, &head);
    cr_assert(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_OK), "%s",
              nw_last_error()->text);
    cr_expect(eq(int, step.stage, 127));
    near(step.traffic.message_bytes,
         2.0 * (double)(nw_transformer_layer_parts(&job.net, NW_LAYER_PLAIN).total + head.total),
         1e-9, "largest message");
    nw_curves_free(&curves);
}

/* Layers in thousands of passes are told by the closed form, not one by one. */
Test(step, very_long_steps_take_little_memory)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    struct nw_job job = preset_job("llama-3-8b", 4096, 1, 4096);
    const struct nw_layout layout = {.node_count = 8,
                                     .rank_count = 64,
                                     .strategy = nw_strategy_named("ddp"),
                                     .parallel = {.pp = 64}};
    struct nw_graph events = {0};
    struct nw_step step;

    job.net.layers = 4096;
    job.offload.activations = NW_OFFLOAD_CPU;
    job.recompute = NW_RECOMPUTE_FULL;
    cr_assert(eq(int,
                 nw_predict_time(&job, &platform, &layout, &nw_scenario_likely, &events, &step),
                 NW_OK),
              "%s", nw_last_error()->text);
    cr_expect(lt(int, events.count, 100000));
    nw_graph_free(&events);
    nw_curves_free(&curves);
}

/* What hides behind waits and other messages slows no computation; a loss that is stated is of all
 * that hides. */
Test(step, losses_are_of_computation)
{
    struct nw_curves curves = curves_at(0.3e9, 0.1e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    const struct nw_job job = preset_job("llama-3-8b", 16, 1, 32);
    const struct nw_layout layout = {.node_count = 1,
                                     .rank_count = 8,
                                     .strategy = nw_strategy_named("zero1"),
                                     .profile = nw_profile_named("hf"),
                                     .parallel = {.pp = 2}};
    struct nw_scenario none = nw_scenario_likely;
    struct nw_step step;

    cr_assert(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_OK));
    cr_assert(gt(dbl, step.hidden_ns, 2 * step.compute_ns));
    near(step.overlap_loss_ns, nw_constants[NW_CONSTANT_OVERLAP_LOSS].value * step.compute_ns, 1e-9,
         "loss");
    none.overlap_loss = 1;
    cr_assert(eq(int, nw_predict(&job, &platform, &layout, &none, &step), NW_OK));
    near(step.overlap_loss_ns, step.hidden_ns, 1e-9, "stated");
    nw_curves_free(&curves);
}

/* The ring of CP hides on a stream, whatever the framework does with the rest. */
Test(step, losses_are_assumed_of_what_hides)
{
    struct nw_curves curves = curves_at(300e9, 50e9);
    const struct nw_platform platform = platform_on(&curves, 400, 8);
    const struct nw_job job = preset_job("llama-3-8b", 8192, 1, 8);
    struct nw_layout layout = {.node_count = 1,
                               .rank_count = 8,
                               .strategy = nw_strategy_named("ddp"),
                               .profile = nw_profile_named("nemo"),
                               .parallel = {.cp = 2}};
    struct nw_step step;

    cr_assert(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_OK));
    cr_expect(ne(u64, step.assumed & NW_ASSUMES(OVERLAP_LOSS), 0));
    cr_expect(ne(u64, step.assumed & NW_ASSUMES(FUSED_LOSS), 0));
    layout.parallel.cp = 1;
    cr_assert(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_OK));
    cr_expect(eq(u64, step.assumed & NW_ASSUMES(OVERLAP_LOSS), 0));
    nw_curves_free(&curves);
}
