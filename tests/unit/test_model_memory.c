/* Memory of one GPU against formulas that others published. */
#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/memory_parts.h"

static struct nw_job job_of(const char *model)
{
    return preset_job(model, 2048, 1, 512);
}

static struct nw_layout layout_of(const char *framework, const char *strategy, int ranks)
{
    return (struct nw_layout){.node_count = ranks > 8 ? ranks / 8 : 1,
                              .rank_count = ranks,
                              .profile = nw_profile_named(framework),
                              .strategy = nw_strategy_named(strategy)};
}

static struct nw_memory memory_in(const struct nw_job *job, const struct nw_layout *layout)
{
    struct nw_memory memory;
    nw_assumed assumed = 0;

    nw_memory_of(job, layout, job->micro_batch, 1, NULL, &memory, &assumed);
    cr_expect(ne(u64, assumed & NW_ASSUMES(RUNTIME_BYTES), 0));
    return memory;
}

static struct nw_memory memory_of(const struct nw_job *job, const char *strategy, int ranks)
{
    const struct nw_layout layout = layout_of("deepspeed", strategy, ranks);

    return memory_in(job, &layout);
}

/* What the parts read, for the private functions. */
static struct nw_memory_task task_of(const struct nw_job *job, const struct nw_layout *layout)
{
    return nw_memory_task_of(job, layout, job->micro_batch, 1);
}

static void near(double value, double expected, const char *what)
{
    cr_expect(lt(dbl, fabs(value - expected), 1e-9 * fabs(expected) + 1e-9),
              "%s: %.12g instead of %.12g", what, value, expected);
}

static double states(const struct nw_memory *memory)
{
    return memory->weights_bytes + memory->gradients_bytes + memory->optimizer_bytes;
}

/* Rajbhandari et al. 2020: 16 bytes per parameter; a 7.0e9 model is 112 GB. Whether the fp32 copy
 * is the optimizer's (DeepSpeed) or the weights themselves (PyTorch). */
Test(memory, mixed_precision_adam_takes_16_bytes_per_parameter_before_sharding)
{
    for (size_t i = 0; i < nw_preset_count(); i++) {
        const struct nw_job job = job_of(nw_preset_at(i)->net.name);
        const double parameters = (double)nw_transformer_parameter_count(&job.net);
        const struct nw_memory memory = memory_of(&job, "ddp", 8);
        struct nw_layout layout = layout_of("pytorch", "ddp", 8);

        near(states(&memory), 16 * parameters, nw_preset_at(i)->net.name);
        const struct nw_memory_task task = nw_memory_task_of(&job, &layout, 1, 1);
        const struct nw_stage_share stage = nw_memory_stage(&task, 0);
        const struct nw_stage_parameters own = nw_memory_parameters(&task, &stage);
        const struct nw_states torch = nw_memory_states(&task, &own);

        near(torch.weights, 4 * parameters, nw_preset_at(i)->net.name);
        near(torch.weights + torch.gradients + torch.optimizer, 16 * parameters,
             nw_preset_at(i)->net.name);
    }
    near(16 * 7.0e9, 112e9, "7 B");
}

Test(memory, weights_of_70b_in_16_bit_are_two_bytes_each)
{
    struct nw_job job = job_of("llama-2-70b");

    job.precision = &nw_precisions[2];
    near(memory_of(&job, "ddp", 8).weights_bytes, 2 * 68976648192.0, "137.95 GB of 70B nominal");
    near(2 * 70e9, 140e9, "70e9 parameters");
}

/* ZeRO, figure 1, with K = 12: the shares of N = 64 GPUs for 7.5 B parameters are 120, 31.4, 16.6,
 * 1.9 GB; the same formulas on a real shape. */
Test(memory, strategies_cut_their_shares)
{
    const struct nw_job job = job_of("llama-2-7b");
    const double p = 6738415616.0, n = 64;
    const struct {
        const char *strategy;
        double bytes;
    } cases[] = {{"ddp", 16},        {"zero1", 4 + 12 / n}, {"zero2", 2 + 14 / n},
                 {"zero3", 16 / n},  {"fsdp", 16 / n},      {"fsdp-keep", 16 / n},
                 {"hsdp", 16 / 8.0}, {"zeropp", 16 / n}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_layout layout = layout_of("deepspeed", cases[i].strategy, 64);

        if (strcmp(cases[i].strategy, "hsdp") == 0)
            layout.parallel.shard_count = 8;
        const struct nw_memory memory = memory_in(&job, &layout);

        near(states(&memory), cases[i].bytes * p, cases[i].strategy);
    }
    near(round(7.5 * (4 + 12 / n) * 10) / 10, 31.4, "Pos");
    near(round(7.5 * (2 + 14 / n) * 10) / 10, 16.6, "Pos+g");
    near(round(7.5 * 16 / n * 10) / 10, 1.9, "Pos+g+p");
}

/* DeepSpeed's estimate_zero2_model_states_mem_needs: 2P + 18P/N, with the fp32 gradient of the
 * partition that the update makes; with the optimizer on the CPU 2P, with ZeRO-3 2P/N. */
Test(memory, the_update_under_zero2_is_what_deepspeed_estimates)
{
    struct nw_job job = job_of("llama-2-7b");
    const double p = 6738415616.0, n = 8;
    struct nw_layout layout = layout_of("deepspeed", "zero2", 8);
    struct nw_memory_task task = task_of(&job, &layout);
    const struct nw_stage_share stage = nw_memory_stage(&task, 0);
    const struct nw_stage_parameters own = nw_memory_parameters(&task, &stage);
    struct nw_states at = nw_memory_states(&task, &own);

    near(at.weights + at.gradients + at.optimizer + at.update, 2 * p + 18 * p / n, "zero2");
    job.offload.optimizer = NW_OFFLOAD_CPU;
    at = nw_memory_states(&task, &own);
    near(at.weights + at.gradients + at.optimizer + at.update, 2 * p, "zero2, offload");
    near(at.host, 16 * p / n, "host: fp32 weights, moments, gradients");
    layout.strategy = nw_strategy_named("zero3");
    at = nw_memory_states(&task, &own);
    near(at.weights + at.gradients + at.optimizer + at.update, 2 * p / n, "zero3, offload");
    job.offload.parameters = NW_OFFLOAD_CPU;
    at = nw_memory_states(&task, &own);
    near(at.weights + at.gradients + at.optimizer + at.update, 0, "zero3, all on the CPU");
    near(at.host, 18 * p / n, "host: the weights too");
}

Test(memory, optimizers_and_precisions_have_their_bytes)
{
    static const struct {
        const char *optimizer, *precision;
        double master, bytes;
    } cases[] = {
        {"adam", "fp32", NAN, 8},     {"adam", "bf16", NAN, 12},     {"adamw", "fp16", NAN, 12},
        {"adam8bit", "bf16", NAN, 6}, {"adam8bit", "fp32", NAN, 2},  {"sgd", "fp32", NAN, 4},
        {"sgd", "bf16", NAN, 8},      {"sgd-plain", "fp32", NAN, 0}, {"sgd-plain", "bf16", NAN, 4},
        {"adamw", "tf32", NAN, 8},    {"adamw", "fp8", NAN, 12},     {"adamw", "bf16", 0, 4},
        {"adam8bit", "bf16", 0, 2},   {"adamw", "bf16", 4, 12}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_job job = job_of("gpt2-124m");

        job.master_bytes = cases[i].master;
        for (const struct nw_precision *row = nw_precisions; row->name != NULL; row++)
            if (strcmp(row->name, cases[i].precision) == 0)
                job.precision = row;
        for (const struct nw_optimizer *row = nw_optimizers; row->name != NULL; row++)
            if (strcmp(row->name, cases[i].optimizer) == 0)
                job.optimizer = row;
        near(memory_of(&job, "ddp", 2).optimizer_bytes, cases[i].bytes * 124439808.0,
             cases[i].optimizer);
    }
}

/* Korthikanti et al. 2022, table 2, per layer: sbh(34 + 5as/h); tensor parallel
 * sbh(10 + 24/t + 5as/ht); with sequence parallel sbh(34/t + 5as/ht); selective 34sbh/t;
 * full 2sbh. */
Test(memory, activations_of_a_plain_layer_are_korthikantis)
{
    const double s = 2048, b = 3, h = 12288, a = 96;
    const double sbh = s * b * h, core = 5 * a * s / h;
    const struct {
        int tp;
        bool sequence_parallel, flash;
        nw_recompute recompute;
        double stored;
    } cases[] = {
        {1, false, false, NW_RECOMPUTE_NONE, sbh * (34 + core)},
        {1, false, true, NW_RECOMPUTE_NONE, sbh * 34},
        {8, false, false, NW_RECOMPUTE_NONE, sbh * (10 + 24 / 8.0 + core / 8)},
        {8, true, false, NW_RECOMPUTE_NONE, sbh * (34 + core) / 8},
        {8, true, false, NW_RECOMPUTE_SELECTIVE, sbh * 34 / 8},
        {8, false, false, NW_RECOMPUTE_SELECTIVE, sbh * (10 + 24 / 8.0)},
        {8, false, false, NW_RECOMPUTE_FULL, sbh * 2},
        {8, true, false, NW_RECOMPUTE_FULL, sbh * 2 / 8},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_job job = job_of("gpt3-175b");
        struct nw_layout layout = layout_of("megatron-lm", "ddp", 8);

        job.micro_batch = 3;
        job.flash = cases[i].flash;
        job.recompute = cases[i].recompute;
        layout.parallel.tp = cases[i].tp;
        layout.parallel.sequence_parallel = cases[i].sequence_parallel;
        const struct nw_memory_task task = task_of(&job, &layout);

        near(nw_memory_layer(&task, NW_LAYER_PLAIN).stored, cases[i].stored, "stored");
    }
}

/* The same paper, figure 1, analytic: activations of the first pipeline stage, GiB. Interleaving
 * keeps L(1 + (p-1)/pv) layers (section 4.2.3). */
Test(memory, pipelines_keep_what_korthikanti_counts)
{
    const struct {
        const char *model;
        uint64_t layers, hidden, heads, micro_batch;
        int pp, virtual_stages;
        double no_recompute, selective;
    } cases[] = {{"22B", 48, 6144, 64, 4, 1, 1, 59.25, 9.5625},
                 {"175B", 96, 12288, 96, 1, 8, 3, 66.84375, 12.3515625},
                 {"530B", 105, 20480, 128, 1, 35, 3, 114.0234375, 23.076171875},
                 {"1T", 128, 25600, 160, 1, 64, 1, 131.25, 26.5625}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_job job = job_of("gpt3-175b");
        struct nw_layout layout = layout_of("megatron-lm", "ddp", 8 * cases[i].pp);

        job.flash = false;
        job.micro_batch = cases[i].micro_batch;
        job.net.layers = cases[i].layers;
        job.net.hidden = cases[i].hidden;
        job.net.heads = job.net.kv_heads = cases[i].heads;
        job.net.head_size = cases[i].hidden / cases[i].heads;
        job.net.ffn = 4 * cases[i].hidden;
        layout.parallel = (struct nw_parallel){
            .tp = 8, .pp = cases[i].pp, .virtual_stages = cases[i].virtual_stages};
        for (int selective = 0; selective < 2; selective++) {
            job.recompute = selective ? NW_RECOMPUTE_SELECTIVE : NW_RECOMPUTE_NONE;
            layout.parallel.sequence_parallel = selective;
            const struct nw_memory_task task =
                nw_memory_task_of(&job, &layout, job.micro_batch, 1000);
            const struct nw_stage_share stage = nw_memory_stage(&task, 0);
            const double gib = stage.layers[NW_LAYER_PLAIN] * stage.in_flight *
                               nw_memory_layer(&task, NW_LAYER_PLAIN).stored / 1073741824.0;

            near(gib, selective ? cases[i].selective : cases[i].no_recompute, cases[i].model);
        }
    }
}

Test(memory, later_stages_keep_fewer_micro_batches)
{
    const struct nw_job job = job_of("llama-2-70b");
    struct nw_layout layout = layout_of("megatron", "distopt", 64);

    layout.parallel = (struct nw_parallel){.tp = 2, .pp = 8};
    for (uint64_t m = 1; m <= 16; m *= 2) {
        const struct nw_memory_task task = nw_memory_task_of(&job, &layout, 1, m);

        for (int k = 0; k < 8; k++)
            near(nw_memory_stage(&task, k).in_flight, fmin(8 - k, (double)m), "in flight");
    }
}

/* Parameters of all stages and ranks add up to the published count, whatever cuts them. */
Test(memory, stages_hold_the_whole_net)
{
    static const char *const models[] = {"llama-3-8b", "mixtral-8x7b", "deepseek-v2", "gpt3-175b",
                                         "opt-350m"};

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const struct nw_job job = job_of(models[i]);
        struct nw_layout layout = layout_of("megatron", "ddp", 16);
        double sum = 0;

        layout.parallel.pp = 2;
        layout.parallel.ep = 4;
        const struct nw_memory_task task = task_of(&job, &layout);

        for (int k = 0; k < 2; k++) {
            const struct nw_stage_share stage = nw_memory_stage(&task, k);
            const struct nw_stage_parameters own = nw_memory_parameters(&task, &stage);

            sum += own.layers + own.experts * 4 + own.ends;
        }
        const uint64_t width = job.net.embedding_size > 0 ? job.net.embedding_size : job.net.hidden;
        const double twice = job.net.tied ? (double)(job.net.vocab * width) : 0; /* each end */

        near(sum, (double)nw_transformer_parameter_count(&job.net) + twice, models[i]);
    }
}

Test(memory, cutting_more_never_needs_more)
{
    uint64_t seed = 7;

    for (int i = 0; i < 300; i++) {
        struct nw_job job = random_job(&seed);

        job.master_bytes = NAN;
        for (size_t s = 0; s < nw_strategy_count; s++) {
            double before = INFINITY;

            for (int ranks = 2; ranks <= 1024; ranks *= 4) {
                const struct nw_layout layout = layout_of(
                    nw_profiles[(size_t)i % nw_profile_count].name, nw_strategies[s].name, ranks);
                const struct nw_memory memory = memory_in(&job, &layout);

                cr_assert(le(dbl, memory.total_bytes, before * (1 + 1e-12)));
                near(memory.allocated_bytes,
                     states(&memory) + memory.activations_bytes + memory.buffers_bytes, "sum");
                near(memory.total_bytes,
                     memory.allocated_bytes + memory.fragmentation_bytes + memory.runtime_bytes,
                     "total");
                before = memory.total_bytes;
            }
        }
    }
}

/* More of anything that is kept never needs less; a recomputed layer never more. */
Test(memory, grows_with_the_batch_and_shrinks_with_recomputation)
{
    uint64_t seed = 11;

    for (int i = 0; i < 300; i++) {
        struct nw_job job = random_job(&seed);
        struct nw_layout layout = layout_of(nw_profiles[(size_t)i % nw_profile_count].name,
                                            nw_strategies[(size_t)i % 5].name, 8);
        double before = 0;

        job.master_bytes = NAN;
        job.recompute = NW_RECOMPUTE_NONE;
        for (job.micro_batch = 1; job.micro_batch <= 64; job.micro_batch *= 2) {
            const double bytes = memory_in(&job, &layout).total_bytes;
            struct nw_job less = job;

            cr_assert(ge(dbl, bytes, before));
            before = bytes;
            less.recompute = NW_RECOMPUTE_SELECTIVE;
            const double selective = memory_in(&less, &layout).total_bytes;

            less.recompute = NW_RECOMPUTE_FULL;
            cr_assert(le(dbl, selective, bytes * (1 + 1e-12)));
            cr_assert(le(dbl, memory_in(&less, &layout).total_bytes, bytes * (1 + 1e-12)));
            less = job;
            less.chunked_loss = true;
            cr_assert(le(dbl, memory_in(&less, &layout).total_bytes, bytes));
        }
    }
}

Test(memory, gated_layers_count_by_operator)
{
    struct nw_job job = job_of("llama-3-8b");
    const double tokens = 2048, h = 4096, kv = 1024, f = 14336, v = 128256;
    struct nw_layout layout = layout_of("megatron", "distopt", 8);
    struct nw_memory_task task = task_of(&job, &layout);

    /* Fused: norms, their outputs, query, output; key, value; gate, up, product. */
    near(nw_memory_layer(&task, NW_LAYER_PLAIN).whole, 2 * tokens * (6 * h + 2 * kv + 3 * f),
         "megatron");
    near(nw_memory_logits(&task), tokens * v * 8, "logits in 16 bit");
    layout = layout_of("hf", "fsdp", 8);
    task = task_of(&job, &layout);
    /* Unfused: fp32 copies of the norms' inputs, repeated keys and values, the activated gate. */
    near(nw_memory_layer(&task, NW_LAYER_PLAIN).whole,
         tokens * (2 * (4 + 2 + 2) * h + 2 * 4 * h + 2 * 4 * f), "hf");
    job.chunked_loss = true;
    near(nw_memory_logits(&task), tokens * v * 16 / 8, "chunked");
}

/* The base keeps nothing for gradients of weights that it does not train. */
Test(memory, adapters_keep_less_and_quantised_bases_weigh_less)
{
    struct nw_job job = job_of("llama-2-7b");
    const double p = 6738415616.0, matrices = 32 * 202375168.0;
    struct nw_layout layout = layout_of("hf", "none", 1);
    const double full = memory_in(&job, &layout).total_bytes;

    job.lora = (struct nw_lora){.rank = 8, .targets = NW_LORA_Q | NW_LORA_V};
    const double adapters = 32 * 2 * 8 * (4096 + 4096); /* LitGPT and PEFT print 4,194,304 */
    const struct nw_memory lora = memory_in(&job, &layout);

    near(adapters, 4194304, "adapters");
    near(lora.weights_bytes, 2 * p + 4 * adapters, "weights");
    near(lora.optimizer_bytes, 8 * adapters, "optimizer");
    cr_expect(lt(dbl, lora.total_bytes, full / 2));
    job.lora.base_bytes = 0.5 + 1 / 16.0;
    const struct nw_memory qlora = memory_in(&job, &layout);

    near(qlora.weights_bytes, 2 * (p - matrices) + 0.5625 * matrices + 4 * adapters, "nf4");
    cr_expect(lt(dbl, qlora.total_bytes, lora.total_bytes));
}

Test(memory, experts_are_dealt_over_their_ranks)
{
    const struct nw_job job = job_of("mixtral-8x7b");
    struct nw_layout layout = layout_of("megatron", "distopt", 16);
    const struct nw_memory together = memory_in(&job, &layout);

    layout.parallel.ep = 8;
    const struct nw_memory apart = memory_in(&job, &layout);
    const double experts = 32 * 8 * 3 * 4096.0 * 14336;

    near(together.weights_bytes - apart.weights_bytes, 2 * experts * 7 / 8, "weights");
    /* 16 ranks share one copy of an expert, or 2 of them a copy of its eighth. */
    near(together.optimizer_bytes, apart.optimizer_bytes, "optimizer");
}

Test(memory, buffers_are_those_of_the_frameworks)
{
    const struct nw_job job = job_of("llama-2-7b");
    const double p = 6738415616.0, layer = 202383360, ends = 2 * 131072000.0 + 4096;
    const struct {
        const char *framework, *strategy;
        int ranks;
        double bytes;
    } cases[] = {
        {"deepspeed", "ddp", 1, 0},
        {"hf", "ddp", 8, 4 * p + 2 * 32 * 202375168.0}, /* buckets are copies; autocast's copies */
        {"deepspeed", "zero1", 8, 5e8 * 4},
        {"deepspeed", "zero3", 8, 1e9 * 2 + 5e8 * 2},
        {"megatron", "distopt", 8, 0},
        /* two gathered layers, the ends, one layer's gradient before and the sum's type, the ends'
         */
        {"composer", "fsdp", 8, 2 * layer * 2 + ends * 2 + layer * (2 + 2) + ends * 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct nw_layout layout =
            layout_of(cases[i].framework, cases[i].strategy, cases[i].ranks);
        const struct nw_memory_task task = task_of(&job, &layout);
        const struct nw_stage_share stage = nw_memory_stage(&task, 0);
        const struct nw_stage_parameters own = nw_memory_parameters(&task, &stage);

        near(nw_memory_buffers(&task, &own), cases[i].bytes, cases[i].strategy);
    }
}

/* Every framework has its own row: a name that the table lacks would silently be another's. */
Test(memory, every_framework_has_a_policy)
{
    for (size_t i = 0; i < nw_profile_count; i++) {
        const struct nw_memory_policy *policy = nw_memory_policy_of(&nw_profiles[i]);

        cr_expect(eq(str, (char *)policy->name, (char *)nw_profiles[i].name));
        cr_expect(gt(dbl, policy->loss_bytes, 0));
        cr_expect(ne(ptr, (void *)policy->source, NULL));
    }
}

/* LitGPT prints max_memory_allocated of its fine-tunes (tutorials/finetune_lora.md, Llama 2 7B,
 * rank 8 on query and value, 1304 tokens): 21.30 GB with a micro-batch of 1, 29.07 GB with 2; on
 * two GPUs 22.18 GB with FSDP, whose frozen weights stay gathered. */
Test(memory, litgpt_prints_what_is_counted)
{
    static const struct {
        uint64_t micro_batch;
        int ranks;
        double allocated;
    } cases[] = {{1, 1, 21.30e9}, {2, 1, 29.07e9}, {1, 2, 22.18e9}, {4, 2, 23.39e9}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_job job = job_of("llama-2-7b");
        struct nw_layout layout =
            layout_of("litgpt", cases[i].ranks > 1 ? "fsdp" : "none", cases[i].ranks);

        job.sequence = 1304;
        job.micro_batch = cases[i].micro_batch;
        job.master_bytes = 0;
        job.lora = (struct nw_lora){.rank = 8, .targets = NW_LORA_Q | NW_LORA_V};
        job.recompute = cases[i].ranks > 1 ? NW_RECOMPUTE_FULL : NW_RECOMPUTE_NONE;
        const double error = memory_in(&job, &layout).allocated_bytes / cases[i].allocated - 1;

        cr_expect(lt(dbl, fabs(error), 0.06), "micro-batch %d on %d GPUs: %+.1f %%",
                  (int)cases[i].micro_batch, cases[i].ranks, 100 * error);
    }
}

/* Gathered layers of a quantised base have its type, as they came over the wire. */
Test(memory, a_quantised_base_is_gathered_in_its_own_type)
{
    struct nw_job job = job_of("llama-2-7b");
    const double base = 0.5625, matrices = 202375168, rest = 2 * 4096, ends = 262148096;
    const double unit = base * matrices + 2 * rest, all = 32 * unit + 2 * ends;
    const double elements = 32 * (matrices + rest) + ends;

    job.lora = (struct nw_lora){.rank = 8, .targets = NW_LORA_Q | NW_LORA_V, .base_bytes = base};
    const struct {
        const char *framework, *strategy;
        double bytes;
    } cases[] = {
        {"composer", "fsdp", 2 * unit + 2 * ends},
        {"deepspeed", "zero3", 1e9 / elements * all},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct nw_layout layout = layout_of(cases[i].framework, cases[i].strategy, 8);
        const struct nw_memory_task task = task_of(&job, &layout);
        const struct nw_stage_share stage = nw_memory_stage(&task, 0);
        const struct nw_stage_parameters own = nw_memory_parameters(&task, &stage);

        near(nw_memory_buffers(&task, &own), cases[i].bytes, cases[i].strategy);
    }
}

Test(memory, gradients_at_work_are_those_of_all_experts_of_a_token)
{
    const struct nw_job job = job_of("mixtral-8x7b");
    const struct nw_layout layout = layout_of("megatron", "distopt", 16);
    const struct nw_memory_task task = task_of(&job, &layout);

    near(task.saved[NW_LAYER_EXPERTS].working, 2 * task.tokens * (2 * 4096 + 2 * 14336), "2 of 8");
}

Test(memory, encoders_without_an_output_layer_have_no_logits)
{
    struct nw_job job = job_of("bert-large");
    const struct nw_layout layout = layout_of("hf", "none", 1);
    struct nw_memory_task task = task_of(&job, &layout);

    near(nw_memory_logits(&task), task.tokens * 30522 * task.policy->loss_bytes, "pre-training");
    job.net.no_vocabulary_head = true;
    task = task_of(&job, &layout);
    near(nw_memory_logits(&task), 0, "none");
    job.net.classes = 9;
    task = task_of(&job, &layout);
    near(nw_memory_logits(&task), task.tokens * 9 * task.policy->loss_bytes, "nine classes");
}
