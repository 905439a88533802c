#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define GIB (1024.0 * 1024 * 1024)

static struct nw_job job_of(const char *model)
{
    struct nw_job job = {.sequence = 2048,
                         .micro_batch = 1,
                         .global_batch = 512,
                         .precision = &nw_precisions[1],
                         .optimizer = &nw_optimizers[0],
                         .gradient_bytes = 2,
                         .flash = true,
                         .tokens = NAN};

    cr_assert(eq(int, nw_transformer_find(model, &job.net), NW_OK));
    return job;
}

static struct nw_memory memory_of(const struct nw_job *job, const char *strategy, int ranks)
{
    struct nw_memory memory;
    nw_assumed assumed = 0;

    const struct nw_layout layout = {
        .node_count = 1, .rank_count = ranks, .strategy = strategy_named(strategy)};

    nw_memory_of(job, &layout, job->micro_batch, 1, NULL, &memory, &assumed);
    return memory;
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

/* Rajbhandari et al. 2020: 16 bytes per parameter; a 7.0e9 model is 112 GB. */
Test(memory, mixed_precision_adam_takes_16_bytes_per_parameter_before_sharding)
{
    for (size_t i = 0; i < nw_preset_count(); i++) {
        const struct nw_job job = job_of(nw_preset_at(i)->net.name);
        const struct nw_memory memory = memory_of(&job, "ddp", 8);
        const double parameters = (double)nw_preset_at(i)->published_parameters;

        near(states(&memory), 16 * parameters, nw_preset_at(i)->net.name);
        near(16 * 7.0e9, 112e9, "7 B");
    }
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
    const struct nw_memory ddp = memory_of(&job, "ddp", 64);
    const struct nw_memory zero1 = memory_of(&job, "zero1", 64);
    const struct nw_memory zero2 = memory_of(&job, "zero2", 64);
    const struct nw_memory zero3 = memory_of(&job, "zero3", 64);
    const struct nw_memory fsdp = memory_of(&job, "fsdp", 64);

    near(states(&ddp), 16 * p, "ddp");
    near(states(&zero1), (4 + 12 / n) * p, "zero1");
    near(states(&zero2), (2 + 14 / n) * p, "zero2");
    near(states(&zero3), 16 / n * p, "zero3");
    near(states(&fsdp), 16 / n * p, "fsdp");
    /* The paper's own figures for 7.5e9. */
    near(round(7.5 * (4 + 12 / n) * 10) / 10, 31.4, "Pos");
    near(round(7.5 * (2 + 14 / n) * 10) / 10, 16.6, "Pos+g");
    near(round(7.5 * 16 / n * 10) / 10, 1.9, "Pos+g+p");
}

Test(memory, optimizers_and_precisions_have_their_bytes)
{
    static const struct {
        const char *optimizer;
        int precision;
        double bytes;
    } cases[] = {{"adam", 0, 8},     {"adam", 1, 12},     {"adamw", 2, 12},
                 {"adam8bit", 1, 6}, {"adam8bit", 0, 2},  {"sgd", 0, 4},
                 {"sgd", 1, 8},      {"sgd-plain", 0, 0}, {"sgd-plain", 1, 4}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_job job = job_of("gpt2-124m");

        job.precision = &nw_precisions[cases[i].precision];
        for (const struct nw_optimizer *row = nw_optimizers; row->name != NULL; row++)
            if (strcmp(row->name, cases[i].optimizer) == 0)
                job.optimizer = row;
        near(memory_of(&job, "ddp", 2).optimizer_bytes, cases[i].bytes * 124439808.0,
             cases[i].optimizer);
    }
}

/* Korthikanti et al. 2022: sbh(34 + 5as/h) per layer in 16 bit, 2sbh with full recomputation. */
Test(memory, activations_of_a_plain_layer_are_korthikantis)
{
    struct nw_job job = job_of("gpt2-1.5b");
    const double s = 1024, b = 3, h = 1600, a = 25, layers = 48, v = 50257;

    job.sequence = 1024;
    job.micro_batch = 3;
    struct nw_memory memory = memory_of(&job, "ddp", 1);

    near(memory.activations_bytes - memory.logits_bytes, 34 * s * b * h * layers, "flash");
    near(memory.logits_bytes, s * b * v * 10, "logits");
    job.flash = false;
    memory = memory_of(&job, "ddp", 1);
    near(memory.activations_bytes - memory.logits_bytes, s * b * h * (34 + 5 * a * s / h) * layers,
         "materialised");
    job.recompute = true;
    memory = memory_of(&job, "ddp", 1);
    near(memory.activations_bytes - memory.logits_bytes,
         2 * s * b * h * layers + s * b * h * (34 + 5 * a * s / h), "recomputed");
}

Test(memory, more_gpus_never_need_more)
{
    uint64_t seed = 7;

    for (int i = 0; i < 300; i++) {
        const struct nw_job job = random_job(&seed);

        for (size_t s = 0; s < nw_strategy_count; s++) {
            double before = INFINITY;

            for (int ranks = 2; ranks <= 1024; ranks *= 4) {
                const struct nw_memory memory = memory_of(&job, nw_strategies[s].name, ranks);

                cr_assert(le(dbl, memory.total_bytes, before));
                near(memory.total_bytes,
                     states(&memory) + memory.activations_bytes + memory.buffers_bytes +
                         memory.runtime_bytes,
                     "sum");
                before = memory.total_bytes;
            }
        }
    }
}

Test(memory, gated_layers_and_fp32_logits)
{
    struct nw_job job = job_of("llama-3-8b");
    const double tokens = 2048, h = 4096, kv = 1024, f = 14336, v = 128256;
    struct nw_memory memory = memory_of(&job, "fsdp", 8);

    near(memory.activations_bytes - memory.logits_bytes, 32 * 2 * tokens * (6 * h + 2 * kv + 3 * f),
         "gated");
    near(memory.logits_bytes, tokens * v * 10, "logits in 16 bit");
    job.precision = &nw_precisions[0];
    memory = memory_of(&job, "fsdp", 8);
    near(memory.logits_bytes, tokens * v * 8, "logits in fp32");
    near(memory.activations_bytes - memory.logits_bytes, 32 * 4 * tokens * (6 * h + 2 * kv + 3 * f),
         "gated, fp32");
}

Test(memory, buffers_are_those_of_the_frameworks)
{
    const struct nw_job job = job_of("llama-2-7b");
    const double p = 6738415616.0, layer = 202383360, vocabulary = 131072000;

    near(memory_of(&job, "ddp", 1).buffers_bytes, 0, "one GPU has none");
    near(memory_of(&job, "ddp", 8).buffers_bytes, 2 * p, "ddp: a copy of the gradients");
    near(memory_of(&job, "zero1", 8).buffers_bytes, 5e8 * 4, "zero1: two buckets");
    near(memory_of(&job, "zero3", 8).buffers_bytes, 1e9 * 2 + 5e8 * 2, "zero3: live and bucket");
    near(memory_of(&job, "fsdp", 8).buffers_bytes, layer * 6, "fsdp: two layers, one gradient");
    cr_expect(gt(dbl, layer, vocabulary));
}
