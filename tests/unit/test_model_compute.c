#include <criterion/criterion.h>

#include "model/operators.h"
#include "model_support.h"

static struct nw_platform catalogue_platform(const char *gpu, const struct nw_precision *precision)
{
    struct nw_platform platform = {.units = precision->units,
                                   .rate = {.source = NW_RATE_CATALOGUE},
                                   .step_time_factor = 1,
                                   .host_to_device_bytes_per_s = 25e9,
                                   .host_memory_bytes_per_s = 25e9,
                                   .nvme_bytes_per_s = 3e9};

    cr_assert_eq(nw_gpu_find(gpu, &platform.gpu), NW_OK, "%s", gpu);
    nw_assumptions_reset(&platform.assumptions);
    platform.hbm_bytes_per_s = platform.gpu->hbm_bytes_per_s;
    return platform;
}

static double micro_batch_ns(const struct nw_compute *compute)
{
    double ns = compute->embedding.forward_ns + compute->embedding.backward_ns +
                compute->head.forward_ns + compute->head.backward_ns;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++)
        if (compute->layer_count[kind] > 0)
            ns += compute->layer_count[kind] *
                  (compute->layer[kind].forward_ns + compute->layer[kind].backward_ns +
                   compute->layer[kind].recompute_ns);
    return ns;
}

static double time_of(const struct nw_job *job, const struct nw_layout *layout,
                      uint64_t micro_batch, const struct nw_platform *platform)
{
    struct nw_compute compute;

    nw_compute_of(job, layout, micro_batch, platform, &compute);
    return micro_batch_ns(&compute);
}

/* The operators are the formulas, for any dense model. */
Test(model_compute, operators_count_the_flops_of_the_formulas)
{
    uint64_t state = 5;

    for (int i = 0; i < 500; i++) {
        const struct nw_job job = random_job(&state);
        const struct nw_layout layout = {.node_count = 1, .rank_count = 1};
        const double tokens = (double)(job.micro_batch * job.sequence);
        const struct nw_flops flops =
            nw_transformer_flops(&job.net, tokens, (double)job.sequence, job.flash);
        struct nw_operators layer, head;

        nw_operators_layer(&job, &layout, job.micro_batch, NW_LAYER_PLAIN, &layer);
        nw_operators_head(&job, &layout, job.micro_batch, false, &head);
        cr_expect_float_eq(nw_operators_forward_flops(&layer) / flops.layer_forward, 1, 1e-12);
        cr_expect_float_eq(nw_operators_backward_flops(&layer) / flops.layer_backward, 1, 1e-12);
        cr_expect_float_eq(nw_operators_forward_flops(&head) / flops.head_forward, 1, 1e-12);
        cr_expect_float_eq(nw_operators_backward_flops(&head) / flops.head_backward, 1, 1e-12);
    }
}

/* TP = t divides every product by t, CP too. */
Test(model_compute, parallel_degrees_divide_the_products)
{
    uint64_t state = 6;

    for (int i = 0; i < 200; i++) {
        struct nw_job job = random_job(&state);
        const int degree = 1 << next_random(&state) % 4;
        const struct nw_layout one = {.node_count = 1, .rank_count = 1};
        struct nw_layout tp = {.node_count = 1, .rank_count = degree, .parallel = {.tp = degree}};
        struct nw_layout cp = {.node_count = 1, .rank_count = degree, .parallel = {.cp = degree}};
        struct nw_operators whole, part;

        job.flash = true;
        job.net.kv_heads = job.net.heads *= 8; /* fewer than the ranks would be copied */
        nw_operators_layer(&job, &one, job.micro_batch, NW_LAYER_PLAIN, &whole);
        for (int k = 0; k < 2; k++) {
            nw_operators_layer(&job, k == 0 ? &tp : &cp, job.micro_batch, NW_LAYER_PLAIN, &part);
            cr_expect_float_eq(nw_operators_forward_flops(&whole) /
                                   (nw_operators_forward_flops(&part) * degree),
                               1, 1e-12);
            cr_expect_float_eq(nw_operators_backward_flops(&whole) /
                                   (nw_operators_backward_flops(&part) * degree),
                               1, 1e-12);
        }
    }
}

/* More of anything that the GPU has never makes it slower. */
Test(model_compute, a_faster_gpu_is_never_slower)
{
    uint64_t state = 7;

    for (int i = 0; i < 300; i++) {
        const struct nw_job job = random_job(&state);
        const struct nw_layout layout = {.node_count = 1, .rank_count = 1};
        struct nw_platform platform = catalogue_platform("RTX 3090 24GB", job.precision);
        struct nw_gpu better = *platform.gpu;
        const double before = time_of(&job, &layout, job.micro_batch, &platform);

        platform.hbm_bytes_per_s *= 1.5;
        const double memory = time_of(&job, &layout, job.micro_batch, &platform);

        cr_expect_leq(memory, before);
        better.matmul_flops *= 1.5;
        better.fp32_flops *= 1.5;
        platform.gpu = &better;
        cr_expect_leq(time_of(&job, &layout, job.micro_batch, &platform), memory);
        platform.assumptions.value[NW_CONSTANT_LAUNCH_NS] /= 2;
        cr_expect_leq(time_of(&job, &layout, job.micro_batch, &platform), memory);
    }
}

/* Half the micro-batch takes at least half the time: small work is never more efficient. Tiles make
 * single shapes jump by a wave; 2 % are left for that. */
Test(model_compute, half_the_micro_batch_takes_at_least_half_the_time)
{
    uint64_t state = 8;

    for (int i = 0; i < 300; i++) {
        const struct nw_job job = random_job(&state);
        const struct nw_layout layout = {.node_count = 1, .rank_count = 1};
        const struct nw_platform platform = catalogue_platform("H100 SXM5 80GB", job.precision);
        const double whole = time_of(&job, &layout, 8, &platform);
        const double half = time_of(&job, &layout, 4, &platform);

        cr_expect(half >= 0.49 * whole, "%g of %g", half, whole);
        cr_expect(half <= whole * (1 + 1e-9), "%g of %g", half, whole);
    }
}

/* The parts are the whole. */
Test(model_compute, parts_add_up)
{
    uint64_t state = 9;

    for (int i = 0; i < 200; i++) {
        const struct nw_job job = random_job(&state);
        const struct nw_layout layout = {
            .node_count = 1, .rank_count = 1, .profile = &nw_profiles[i % 2]};
        const struct nw_platform platform = catalogue_platform("A100 SXM4 40GB", job.precision);
        struct nw_compute compute;

        nw_compute_of(&job, &layout, job.micro_batch, &platform, &compute);
        const struct nw_unit_time *units[] = {&compute.layer[0], &compute.embedding, &compute.head};

        for (int k = 0; k < 3; k++) {
            const struct nw_unit_time *unit = units[k];
            const double whole = unit->forward_ns + unit->backward_ns + unit->recompute_ns;

            cr_expect_float_eq(
                (unit->product_ns + unit->attention_ns + unit->memory_ns + unit->launch_ns + 1) /
                    (whole + 1),
                1, 1e-9);
        }
    }
}

/* A stated rate of the whole step is FLOPs over it and nothing else. */
Test(model_compute, a_stated_rate_is_the_steps_own)
{
    uint64_t state = 10;

    for (int i = 0; i < 100; i++) {
        const struct nw_job job = random_job(&state);
        const struct nw_layout layout = {.node_count = 1, .rank_count = 1};
        struct nw_platform platform = catalogue_platform("A100 SXM4 40GB", job.precision);
        struct nw_compute compute;

        platform.rate = (struct nw_rate){.flops_per_s = 150e12, .source = NW_RATE_STATED};
        nw_compute_of(&job, &layout, job.micro_batch, &platform, &compute);
        cr_expect_float_eq(compute.layer[0].flops / 150e12 * 1e9 /
                               (compute.layer[0].forward_ns + compute.layer[0].backward_ns +
                                compute.layer[0].recompute_ns),
                           1, 1e-9);
    }
}

static struct nw_job job_of(const char *model)
{
    return preset_job(model, 2048, 1, 8);
}

/* Recomputation, adapters and their frozen base against the whole. */
Test(model_compute, what_is_done_again_and_what_is_left_out)
{
    struct nw_job job = job_of("llama-2-7b");
    const struct nw_layout layout = {.node_count = 1, .rank_count = 1};
    const struct nw_platform platform = catalogue_platform("A100 SXM4 80GB", job.precision);
    const double plain = time_of(&job, &layout, 1, &platform);
    double full, lora, qlora;

    job.recompute = NW_RECOMPUTE_FULL;
    full = time_of(&job, &layout, 1, &platform);
    cr_expect(full > 1.25 * plain && full < 1.36 * plain, "%g", full / plain);
    job.recompute = NW_RECOMPUTE_NONE;
    job.lora = (struct nw_lora){.rank = 16, .targets = NW_LORA_Q | NW_LORA_V};
    lora = time_of(&job, &layout, 1, &platform);
    cr_expect(lora > 0.62 * plain && lora < 0.85 * plain, "%g", lora / plain);
    job.lora.base_bytes = 0.52;
    qlora = time_of(&job, &layout, 1, &platform);
    cr_expect(qlora > 1.02 * lora && qlora < 2 * lora, "%g", qlora / lora);
}

/* The update: bytes of the states over memory; a share where the strategy cuts it; on the CPU by
 * its memory and the copies. */
Test(model_compute, update_by_bytes)
{
    struct nw_job job = job_of("llama-2-7b");
    const struct nw_profile fused = {.memory_passes = 1, .time_factor = 1};
    struct nw_layout layout = {
        .node_count = 1, .rank_count = 8, .strategy = nw_strategy_named("ddp"), .profile = &fused};
    const struct nw_platform platform = catalogue_platform("A100 SXM4 80GB", job.precision);
    const double bytes = 28 + 3 * 2, parameters = 6738415616.0;
    const double rate = 2039e9 * platform.assumptions.value[NW_CONSTANT_HBM_SHARE];
    struct nw_update update = nw_update_of(&job, &layout, &platform);

    cr_expect_float_eq(update.gpu_ns / (parameters * bytes / rate * 1e9), 1, 1e-6);
    layout.strategy = nw_strategy_named("zero1");
    cr_expect_float_eq(nw_update_of(&job, &layout, &platform).gpu_ns / update.gpu_ns, 0.125, 1e-6);
    job.offload.optimizer = NW_OFFLOAD_CPU;
    update = nw_update_of(&job, &layout, &platform);
    cr_expect_eq(update.gpu_ns, 0);
    cr_expect_float_eq(update.cpu_ns / (parameters / 8 * 28 / 25e9 * 1e9), 1, 1e-6);
    cr_expect_float_eq(update.down_ns / (parameters / 8 * 2 / 25e9 * 1e9), 1, 1e-6);
    cr_expect_float_eq(update.up_ns / (parameters / 8 * 2 / 25e9 * 1e9), 1, 1e-6);
    job.gradient_bytes = 4; /* fp32 gradients go down, 16-bit weights come up */
    update = nw_update_of(&job, &layout, &platform);
    cr_expect_float_eq(update.down_ns / update.up_ns, 2, 1e-9);
    job.gradient_bytes = 2;
    job.offload.optimizer = NW_OFFLOAD_NVME;
    cr_expect_float_eq(
        nw_update_of(&job, &layout, &platform).cpu_ns / (parameters / 8 * 24 / 3e9 * 1e9), 1, 1e-6);
}

/* ZeRO++ cuts the states over all ranks, whatever it keeps in a node; without an fp32 copy the
 * moments have the type of the weights, in the update as in memory and in a checkpoint. */
Test(model_compute, updates_and_checkpoints_are_of_the_states_that_memory_counts)
{
    struct nw_job job = job_of("llama-2-7b");
    struct nw_layout layout = {
        .node_count = 2, .rank_count = 16, .strategy = nw_strategy_named("zero3")};
    const struct nw_platform platform = catalogue_platform("A100 SXM4 80GB", job.precision);
    const double zero3 = nw_update_of(&job, &layout, &platform).gpu_ns;
    const double parameters = 6738415616.0;

    layout.strategy = nw_strategy_named("zeropp");
    cr_expect_eq(nw_layout_shard_count(&layout), 8);
    cr_expect_eq(nw_layout_state_count(&layout), 16);
    cr_expect_float_eq(nw_update_of(&job, &layout, &platform).gpu_ns / zero3, 1, 1e-9);
    cr_expect_float_eq(nw_checkpoint_bytes(&job) / parameters, 2 + 4 + 8, 1e-9);
    job.master_bytes = 0; /* 2 × 4 of the moments, 2 of the gradient, 2 × 2 of the weights, 3 × 2 */
    cr_expect_float_eq(nw_update_of(&job, &layout, &platform).gpu_ns / zero3, 20.0 / 34, 1e-9);
    cr_expect_float_eq(nw_checkpoint_bytes(&job) / parameters, 2 + 4, 1e-9);
    job.optimizer = nw_optimizer_named("adam8bit");
    cr_expect_float_eq(nw_checkpoint_bytes(&job) / parameters, 2 + 2, 1e-9);
}

/* Fewer key-value heads than tensor-parallel ranks are copied: one on each. */
Test(model_compute, key_value_heads_are_copied_where_there_are_too_few)
{
    struct nw_job job = job_of("llama-3-8b"); /* 32 heads of 128, 8 for keys and values */
    struct nw_layout layout = {.node_count = 2, .rank_count = 16};
    struct nw_operators operators;

    for (int tp = 1; tp <= 16; tp *= 2) {
        layout.parallel.tp = tp;
        nw_operators_layer(&job, &layout, 1, NW_LAYER_PLAIN, &operators);
        cr_expect_eq(operators.linears[0].out, (32.0 / tp + 2 * fmax(8.0 / tp, 1)) * 128, "tp %d",
                     tp);
    }
    struct nw_assumptions assumptions;
    struct nw_memory copied, cut;
    nw_assumed assumed;

    nw_assumptions_reset(&assumptions);
    nw_memory_of(&job, &layout, 1, 1, &assumptions, &copied, &assumed);
    job.net.kv_heads = 16;
    nw_memory_of(&job, &layout, 1, 1, &assumptions, &cut, &assumed);
    cr_expect_eq(copied.activations_bytes, cut.activations_bytes);
}

/* Errors are of one, not of a hundred; a share of nothing would never end. */
Test(model_compute, constants_out_of_range_are_refused)
{
    static const char *const bad[] = {"WIRE_ERROR=97", "LEAST_ERROR=-1", "LINK_SHARE=0",
                                      "HBM_SHARE=85", "JITTER=nan"};
    struct nw_assumptions assumptions;

    nw_assumptions_reset(&assumptions);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_eq(nw_assumptions_set(&assumptions, bad[i]), NW_EUSAGE, "%s", bad[i]);
    nw_clear_error();
    cr_expect_eq(assumptions.stated, 0);
    cr_expect_eq(nw_assumptions_set(&assumptions, "wire_error=1.5"), NW_OK);
    cr_expect_eq(assumptions.value[NW_CONSTANT_WIRE_ERROR], 1.5);
}

/* Twelve at most, each with what it is, where it comes from and how it is measured. */
Test(model_compute, few_constants_each_accounted_for)
{
    cr_expect(NW_CONSTANT_PHYSICAL_COUNT <= 12, "%d", (int)NW_CONSTANT_PHYSICAL_COUNT);
    cr_expect(NW_CONSTANT_COUNT <= 64, "nw_assumed is a set of 64");
    for (int i = 0; i < NW_CONSTANT_COUNT; i++) {
        const struct nw_constant_row *row = &nw_constants[i];
        const bool physical = i < NW_CONSTANT_PHYSICAL_COUNT;

        cr_expect(row->value > 0, "%s", row->key);
        cr_expect(strlen(row->text) > 5 && strlen(row->source) > 5 && row->unit[0] != '\0', "%s",
                  row->key);
        cr_expect_eq(physical, row->measured_by != NULL && row->sensitivity != NULL, "%s",
                     row->key);
    }
}

/* Experts: as many products as the token chooses experts, and no more when they lie on more ranks;
 * a GPU with a tenth of the experts computes as much as with all. */
Test(model_compute, experts_compute_what_their_tokens_choose)
{
    struct nw_job job = job_of("mixtral-8x7b");
    const struct nw_layout one = {.node_count = 1, .rank_count = 1};
    const struct nw_layout eight = {.node_count = 1, .rank_count = 8, .parallel = {.ep = 8}};
    const double tokens = (double)(job.micro_batch * job.sequence);
    const struct nw_flops flops =
        nw_transformer_flops(&job.net, tokens, (double)job.sequence, job.flash);
    struct nw_operators alone, spread;

    nw_operators_layer(&job, &one, 1, NW_LAYER_EXPERTS, &alone);
    nw_operators_layer(&job, &eight, 1, NW_LAYER_EXPERTS, &spread);
    cr_expect_float_eq(nw_operators_forward_flops(&alone) / flops.layer_forward, 1, 1e-9);
    cr_expect_float_eq(nw_operators_forward_flops(&spread) / flops.layer_forward, 1, 1e-9);
}

/* Adapters of experts: of each token's own experts, as many products as there are experts here. */
Test(model_compute, adapters_of_experts_are_computed)
{
    struct nw_job job = job_of("mixtral-8x7b");
    const struct nw_layout layout = {.node_count = 1, .rank_count = 8, .parallel = {.ep = 4}};
    const double routed = 2 * (double)(job.micro_batch * job.sequence), h = 4096, f = 14336;
    struct nw_operators without, with;

    job.lora = (struct nw_lora){.rank = 16, .targets = NW_LORA_Q};
    nw_operators_layer(&job, &layout, 1, NW_LAYER_EXPERTS, &without);
    job.lora.targets |= NW_LORA_GATE | NW_LORA_UP | NW_LORA_DOWN;
    nw_operators_layer(&job, &layout, 1, NW_LAYER_EXPERTS, &with);
    cr_expect_eq(with.linear_count, without.linear_count + 6);
    cr_expect_float_eq((nw_operators_forward_flops(&with) - nw_operators_forward_flops(&without)) /
                           (3 * 2 * routed * 16 * (h + f)),
                       1, 1e-9);
    cr_expect_eq(with.linears[with.linear_count - 1].batch, 2);
}

/* EP deals the experts' adapters with their experts: this rank updates and keeps its own only. */
Test(model_compute, adapters_of_experts_lie_with_their_experts)
{
    struct nw_job job = job_of("mixtral-8x7b");
    struct nw_layout layout = {
        .node_count = 1, .rank_count = 8, .strategy = nw_strategy_named("ddp")};
    const struct nw_platform platform = catalogue_platform("A100 SXM4 80GB", job.precision);
    const double layers = 32 * 16.0, dense = layers * 2 * 4096,
                 experts = layers * 8 * (4096 + 14336);
    struct nw_memory whole, part;
    nw_assumed assumed;

    job.lora = (struct nw_lora){.rank = 16, .targets = NW_LORA_Q | NW_LORA_UP};
    const double one = nw_update_of(&job, &layout, &platform).gpu_ns;

    nw_memory_of(&job, &layout, 1, 1, &platform.assumptions, &whole, &assumed);
    layout.parallel.ep = 8;
    nw_memory_of(&job, &layout, 1, 1, &platform.assumptions, &part, &assumed);
    cr_expect_float_eq(part.optimizer_bytes / whole.optimizer_bytes,
                       (dense + experts / 8) / (dense + experts), 1e-9);
    cr_expect_float_eq(nw_update_of(&job, &layout, &platform).gpu_ns / one,
                       (dense + experts / 8) / (dense + experts), 1e-9);
}

/* Each property of a framework changes what it says and nothing else. */
Test(model_compute, frameworks_stop_early_sum_apart_and_leave_gaps)
{
    struct nw_job job = job_of("llama-2-7b");
    const struct nw_platform platform = catalogue_platform("A100 SXM4 80GB", job.precision);
    struct nw_profile profile = *nw_profile_named("pytorch");
    const struct nw_layout layout = {.node_count = 1, .rank_count = 1, .profile = &profile};
    struct nw_compute compute, other;

    job.recompute = NW_RECOMPUTE_FULL;
    nw_compute_of(&job, &layout, 1, &platform, &compute);
    cr_expect_gt(compute.layer[0].launch_ns, compute.layer[0].idle_ns); /* gaps, GPU-bound */
    cr_expect_eq(compute.layer[0].idle_ns, 0);
    cr_expect_lt(compute.layer[0].recompute_ns, compute.layer[0].forward_ns);

    profile.stops_recompute = false;
    nw_compute_of(&job, &layout, 1, &platform, &other);
    cr_expect_float_eq(other.layer[0].recompute_ns, other.layer[0].forward_ns, 1e-3);
    cr_expect_float_eq(other.layer[0].backward_ns, compute.layer[0].backward_ns, 1e-3);

    /* bf16: 2 + 8 of the copy + 8 of the sum, for 202,375,168 weights of a layer's products. */
    profile.sums_apart = true;
    nw_compute_of(&job, &layout, 1, &platform, &compute);
    cr_expect_float_eq((compute.layer[0].backward_ns - other.layer[0].backward_ns) /
                           (202375168.0 * 18 / (2039e9 * 0.85) * 1e9 * profile.time_factor),
                       1, 0.01);
}
