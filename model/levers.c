#include "model/levers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define SMALLEST_CHANGE 0.005
#define MIB             (1024.0 * 1024)

struct trial { /* the question, changed by one row */
    struct nw_job job;
    struct nw_platform platform;
    struct nw_layout layout;
    struct nw_profile profile; /* layout.profile points here */
    struct nw_scenario scenario;
    const struct nw_step *step; /* as it is */
    char *what;
    size_t size;
};

static void name(struct trial *trial, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void name(struct trial *trial, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(trial->what, trial->size, format, arguments);
    va_end(arguments);
}

static bool reduces_in_buckets(const struct trial *trial)
{
    const struct nw_strategy *strategy = trial->layout.strategy;

    return strategy->reduces != NW_REDUCES_NEVER && !strategy->reduces_units &&
           nw_layout_reduce_count(&trial->layout) > 1;
}

/* ---- the changes: false where there is nothing to change --------------------------------------
 */

static bool scale_bucket(struct trial *trial, double factor)
{
    struct nw_profile *profile = &trial->profile;

    if (!reduces_in_buckets(trial))
        return false;
    if (!trial->layout.strategy->optimizer_sharded) {
        name(trial, "gradient bucket %.3g → %.3g MiB", profile->ddp_bucket_bytes / MIB,
             factor * profile->ddp_bucket_bytes / MIB);
        profile->ddp_bucket_bytes *= factor;
        return true;
    }
    name(trial, "reduce bucket %.3g → %.3g million elements", profile->reduce_bucket_elements / 1e6,
         factor * profile->reduce_bucket_elements / 1e6);
    profile->reduce_bucket_elements *= factor;
    profile->gather_bucket_elements *= factor;
    return true;
}

static bool larger_bucket(struct trial *trial)
{
    return scale_bucket(trial, 4);
}

static bool smaller_bucket(struct trial *trial)
{
    return scale_bucket(trial, 0.25);
}

static bool micro_batch_times(struct trial *trial, uint64_t factor)
{
    const uint64_t now = trial->step->micro_batch;

    if (trial->step->micro_batch_count % factor != 0)
        return false;
    trial->job.micro_batch = now * factor;
    name(trial, "micro-batch %llu → %llu", (unsigned long long)now,
         (unsigned long long)(now * factor));
    return true;
}

static bool micro_batch_2(struct trial *trial)
{
    return micro_batch_times(trial, 2);
}

static bool micro_batch_4(struct trial *trial)
{
    return micro_batch_times(trial, 4);
}

static bool micro_batch_half(struct trial *trial)
{
    const uint64_t now = trial->step->micro_batch;

    if (now % 2 != 0)
        return false;
    trial->job.micro_batch = now / 2;
    name(trial, "micro-batch %llu → %llu", (unsigned long long)now, (unsigned long long)(now / 2));
    return true;
}

static bool recompute_less(struct trial *trial)
{
    if (trial->job.recompute == NW_RECOMPUTE_NONE)
        return false;
    name(trial, "no recomputation of activations");
    trial->job.recompute = NW_RECOMPUTE_NONE;
    return true;
}

static bool recompute_selective(struct trial *trial)
{
    if (trial->job.recompute != NW_RECOMPUTE_FULL)
        return false;
    name(trial, "recompute only the attention core");
    trial->job.recompute = NW_RECOMPUTE_SELECTIVE;
    return true;
}

static bool flash_attention(struct trial *trial)
{
    if (trial->job.flash || trial->job.net.stated_parameters > 0)
        return false;
    name(trial, "flash attention");
    return trial->job.flash = true;
}

static bool sequence_parallel(struct trial *trial)
{
    if (nw_layout_tp(&trial->layout) < 2 || trial->layout.parallel.sequence_parallel)
        return false;
    name(trial, "sequence parallel");
    return trial->layout.parallel.sequence_parallel = true;
}

static bool overlap_gradients(struct trial *trial)
{
    if (trial->profile.gradients != NW_OVERLAP_SERIAL ||
        trial->layout.strategy->reduces == NW_REDUCES_NEVER)
        return false;
    name(trial, "gradient reduction behind the backward pass");
    trial->profile.gradients = NW_OVERLAP_STREAM;
    return true;
}

/* DeepSpeed gathers updated weights at the end of the step in any case. */
static bool overlap_weights(struct trial *trial)
{
    const nw_gathers gathers = trial->layout.strategy->gathers;

    if (trial->profile.weights != NW_OVERLAP_SERIAL || gathers == NW_GATHERS_NEVER ||
        (gathers == NW_GATHERS_UPDATED && strstr(trial->profile.name, "deepspeed") != NULL))
        return false;
    name(trial, "weight gathers behind computation");
    trial->profile.weights = NW_OVERLAP_STREAM;
    return true;
}

static bool overlap_tensor(struct trial *trial)
{
    if (trial->profile.tensor != NW_OVERLAP_SERIAL || nw_layout_tp(&trial->layout) < 2)
        return false;
    name(trial, "tensor-parallel messages behind products");
    trial->profile.tensor = NW_OVERLAP_FUSED;
    return true;
}

static bool fused_kernels(struct trial *trial)
{
    struct nw_profile *profile = &trial->profile;
    const bool megatron = strcmp(profile->name, "megatron-lm") == 0;
    const double passes =
        nw_profile_named(megatron ? "megatron" : "pytorch-compile")->memory_passes;

    if (profile->memory_passes <= passes)
        return false;
    name(trial, "fused elementwise kernels");
    profile->memory_passes = passes;
    return true;
}

static bool graphs(struct trial *trial)
{
    if (!(trial->profile.launch_share > 0))
        return false;
    name(trial, "kernels launched as CUDA graphs");
    trial->profile.launch_share = 0;
    return true;
}

static bool keep_weights(struct trial *trial)
{
    if (trial->layout.strategy->gathers != NW_GATHERS_UNITS || trial->layout.strategy->hybrid)
        return false;
    name(trial, "weights kept from forward to backward");
    trial->layout.strategy = nw_strategy_named("fsdp-keep");
    return true;
}

static bool hybrid_shards(struct trial *trial)
{
    const int per_node = trial->layout.rank_count / trial->layout.node_count;
    const int model_ranks = nw_layout_tp(&trial->layout) * nw_layout_pp(&trial->layout);
    const int shards = per_node / model_ranks;

    if (trial->layout.node_count < 2 || !trial->layout.strategy->weights_sharded || shards < 2 ||
        shards >= nw_layout_shard_count(&trial->layout) ||
        nw_layout_reduce_count(&trial->layout) % shards != 0)
        return false;
    trial->layout.strategy = nw_strategy_named("hsdp");
    trial->layout.parallel.shard_count = shards;
    name(trial, "shards within a node, copies across (%d ranks a copy)", shards);
    return true;
}

static bool interleave(struct trial *trial)
{
    const int stages = nw_layout_pp(&trial->layout);
    const int chunks = nw_layout_virtual_stages(&trial->layout);

    if (stages < 2 || trial->job.net.layers % (uint64_t)(stages * chunks * 2) != 0)
        return false;
    trial->layout.parallel.virtual_stages = 2 * chunks;
    name(trial, "pipeline in %d interleaved chunks a stage", 2 * chunks);
    return true;
}

static bool reduce_in_16_bit(struct trial *trial)
{
    if (nw_job_reduce_bytes(&trial->job) <= 2 || nw_layout_reduce_count(&trial->layout) < 2)
        return false;
    name(trial, "gradients reduced in bf16");
    trial->job.reduce_bytes = 2;
    return true;
}

static bool products_in_fp8(struct trial *trial)
{
    const struct nw_gpu *gpu = trial->platform.gpu;

    if (gpu == NULL || !(gpu->fp8_flops > 0) || !trial->job.precision->half ||
        trial->job.precision->units == NW_UNITS_FP8 ||
        trial->platform.rate.source != NW_RATE_CATALOGUE)
        return false;
    trial->job.precision = nw_precision_named("fp8");
    trial->platform.units = NW_UNITS_FP8;
    trial->platform.peak_flops = gpu->fp8_flops;
    name(trial, "matrix products in fp8");
    return true;
}

static bool faster_wire(struct trial *trial)
{
    if (trial->layout.node_count < 2)
        return false;
    name(trial, "twice the bandwidth between nodes");
    trial->scenario.inter_scale *= 2;
    return true;
}

static bool optimizer_on_gpu(struct trial *trial)
{
    if (trial->job.offload.optimizer == NW_OFFLOAD_NONE)
        return false;
    name(trial, "optimizer on the GPU");
    trial->job.offload.optimizer = NW_OFFLOAD_NONE;
    return true;
}

static bool parameters_on_gpu(struct trial *trial)
{
    if (trial->job.offload.parameters == NW_OFFLOAD_NONE)
        return false;
    name(trial, "weights on the GPU");
    trial->job.offload.parameters = NW_OFFLOAD_NONE;
    return true;
}

/* Who names a setting. */
typedef enum { PYTORCH, TORCHTITAN, DEEPSPEED, MEGATRON, NAMES_COUNT } naming;

static const struct {
    const char *framework;
    naming naming;
} namings[] = {
    {"pytorch", PYTORCH},
    {"pytorch-compile", PYTORCH},
    {"hf", PYTORCH},
    {"composer", PYTORCH},
    {"litgpt", PYTORCH},
    {"torchtitan", TORCHTITAN},
    {"torchtitan-compile", TORCHTITAN},
    {"deepspeed", DEEPSPEED},
    {"megatron-deepspeed", DEEPSPEED},
    {"megatron", MEGATRON},
    {"nemo", MEGATRON},
    {"megatron-lm", MEGATRON},
};

/* One row a lever; `family`: of rows that share one, the best is kept. `option`: of this program;
 * else `setting`: of the framework. A framework that has no such setting cannot do it. */
static const struct row {
    const char *family;
    bool (*apply)(struct trial *trial);
    const char *option;
    const char *const *setting; /* by naming */
    bool changes_rounding;
} rows[] = {
#define SETTING(...)                                                                               \
    .setting = (const char *const[NAMES_COUNT])                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define BUCKET                                                                                     \
    SETTING([PYTORCH] = "bucket_cap_mb", [DEEPSPEED] = "reduce_bucket_size",                       \
            [MEGATRON] = "--ddp-bucket-size")
    {"bucket", larger_bucket, BUCKET},
    {"bucket", smaller_bucket, BUCKET},
    {"micro_batch", micro_batch_2, .option = "--micro-batch"},
    {"micro_batch", micro_batch_4, .option = "--micro-batch"},
    {"micro_batch", micro_batch_half, .option = "--micro-batch"},
    {"recompute", recompute_less, .option = "--recompute none"},
    {"recompute", recompute_selective, .option = "--recompute selective"},
    {"attention", flash_attention, .option = "--attention flash"},
    {"sequence_parallel", sequence_parallel, .option = "--sequence-parallel yes"},
    {"overlap_gradients", overlap_gradients,
     SETTING([DEEPSPEED] = "overlap_comm", [MEGATRON] = "--overlap-grad-reduce")},
    {"overlap_weights", overlap_weights,
     SETTING([DEEPSPEED] = "overlap_comm", [MEGATRON] = "--overlap-param-gather")},
    {"overlap_tensor", overlap_tensor,
     SETTING([PYTORCH] = "async TP", [TORCHTITAN] = "enable_async_tensor_parallel",
             [MEGATRON] = "--tp-comm-overlap")},
    {"fused_kernels", fused_kernels,
     SETTING([PYTORCH] = "torch.compile", [TORCHTITAN] = "--compile.enable",
             [DEEPSPEED] = "torch.compile", [MEGATRON] = "--transformer-impl transformer_engine")},
    {"graphs", graphs,
     SETTING([PYTORCH] = "mode=\"reduce-overhead\"", [MEGATRON] = "--cuda-graph-impl")},
    {"keep_weights", keep_weights,
     SETTING([PYTORCH] = "SHARD_GRAD_OP; reshard_after_forward=False",
             [TORCHTITAN] = "fsdp_reshard_after_forward never",
             [DEEPSPEED] = "stage3_max_live_parameters, stage3_max_reuse_distance",
             [MEGATRON] = "--data-parallel-sharding-strategy optim_grads")},
    {"hybrid_shards", hybrid_shards,
     SETTING([PYTORCH] = "HYBRID_SHARD", [TORCHTITAN] = "data_parallel_replicate_degree",
             [DEEPSPEED] = "mics_shard_size",
             [MEGATRON] = "--num-distributed-optimizer-instances")},
    {"virtual_stages", interleave, .option = "--virtual-stages"},
    {"reduce_type", reduce_in_16_bit, .option = "--reduce bf16", .changes_rounding = true},
    {"fp8", products_in_fp8, .option = "--precision fp8", .changes_rounding = true},
    {.family = "wire", .apply = faster_wire},
    {"offload_optimizer", optimizer_on_gpu, .option = "--offload-optimizer none"},
    {"offload_params", parameters_on_gpu, .option = "--offload-params none"},
};

/* NULL: there is none. */
static const char *setting_of(const struct row *row, const char *framework)
{
    for (size_t i = 0; i < sizeof namings / sizeof namings[0]; i++)
        if (strcmp(namings[i].framework, framework) == 0)
            return row->setting[namings[i].naming];
    return NULL;
}

/* ---- the search ---------------------------------------------------------------------------- */

static void keep(struct nw_levers *levers, const struct nw_lever *lever)
{
    for (size_t i = 0; i < levers->count; i++) {
        if (strcmp(levers->items[i].key, lever->key) != 0)
            continue;
        if (lever->step_ns < levers->items[i].step_ns)
            levers->items[i] = *lever;
        return;
    }
    if (levers->count < NW_LEVERS_MAX)
        levers->items[levers->count++] = *lever;
}

static int by_change(const void *left, const void *right)
{
    const struct nw_lever *a = left, *b = right;

    return (a->change > b->change) - (a->change < b->change);
}

static void try_row(const struct row *row, const struct trial *as_is, struct nw_levers *levers)
{
    struct nw_lever lever = {.key = row->family,
                             .how = row->setting != NULL ? setting_of(row, as_is->profile.name)
                                                         : row->option,
                             .changes_rounding = row->changes_rounding};
    struct trial trial = *as_is;
    struct nw_step step;

    trial.what = lever.what;
    trial.size = sizeof lever.what;
    trial.layout.profile = &trial.profile;
    if ((row->setting != NULL && lever.how == NULL) || !row->apply(&trial))
        return;
    if (nw_predict(&trial.job, &trial.platform, &trial.layout, &trial.scenario, &step) != NW_OK) {
        nw_clear_error(); /* this change cannot be made here */
        return;
    }
    lever.step_ns = step.step_ns;
    lever.change = step.step_ns / as_is->step->step_ns - 1;
    lever.memory_bytes = step.memory.total_bytes;
    if (step.fits != 0 && lever.change < -SMALLEST_CHANGE)
        keep(levers, &lever);
}

void nw_levers_of(const struct nw_job *job, const struct nw_platform *platform,
                  const struct nw_layout *layout, const struct nw_scenario *scenario,
                  const struct nw_step *step, struct nw_levers *levers_out)
{
    const struct trial as_is = {.job = *job,
                                .platform = *platform,
                                .layout = *layout,
                                .profile = *nw_layout_profile(layout),
                                .scenario = *scenario,
                                .step = step};

    levers_out->count = 0;
    if (layout->strategy == NULL)
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        try_row(&rows[i], &as_is, levers_out);
    qsort(levers_out->items, levers_out->count, sizeof levers_out->items[0], by_change);
}
