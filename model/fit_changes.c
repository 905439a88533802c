/* The changes that make a job smaller: one row each. */
#include <stdio.h>
#include <string.h>

#include "model/fit.h"
#include "model/memory_policy.h"

static bool is(const struct nw_fit_state *state, const char *strategy)
{
    return state->layout.strategy != NULL && strcmp(state->layout.strategy->name, strategy) == 0;
}

static bool trains_all(const struct nw_fit_state *state)
{
    return state->job.lora.rank == 0;
}

static bool sequence_parallel(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (nw_layout_tp(&state->layout) == 1 || state->layout.parallel.sequence_parallel)
        return false;
    state->layout.parallel.sequence_parallel = true;
    return true;
}

static bool chunked_loss(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (state->job.chunked_loss || state->job.net.stated_parameters > 0)
        return false;
    state->job.chunked_loss = true;
    return true;
}

static bool recompute_to(struct nw_fit_state *state, nw_recompute recompute)
{
    if (state->job.recompute == recompute || state->job.recompute == NW_RECOMPUTE_FULL)
        return false;
    state->job.recompute = recompute;
    return true;
}

static bool recompute_selective(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    return recompute_to(state, NW_RECOMPUTE_SELECTIVE);
}

static bool recompute_full(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    return recompute_to(state, NW_RECOMPUTE_FULL);
}

static bool flash(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (state->job.flash || state->job.net.stated_parameters > 0)
        return false;
    state->job.flash = true;
    return true;
}

/* The batch stays: more micro-batches. */
static bool smaller_micro_batch(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (state->job.micro_batch < 2)
        return false;
    state->job.micro_batch /= 2;
    return true;
}

static bool shard_more(struct nw_fit_state *state, const struct nw_platform *platform)
{
    static const struct {
        const char *from, *to;
    } steps[] = {{"ddp", "zero1"},    {"zero1", "zero2"},    {"zero2", "zero3"},
                 {"distopt", "fsdp"}, {"fsdp-keep", "fsdp"}, {"hsdp", "fsdp"}};

    (void)platform;
    if (nw_layout_reduce_count(&state->layout) < 2)
        return false;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (is(state, steps[i].from)) {
            const bool zero3 = strcmp(steps[i].to, "zero3") == 0;
            const struct nw_profile *profile = state->layout.profile;
            const bool deepspeed = profile != NULL && profile->live_elements > 0;

            state->layout.strategy = nw_strategy_named(zero3 && !deepspeed ? "fsdp" : steps[i].to);
            state->layout.parallel.shard_count = 0;
            return true;
        }
    return false;
}

/* FSDP sums whole gradients over micro-batches before it cuts them (no_sync). */
static bool reduce_each(struct nw_fit_state *state, const struct nw_platform *platform)
{
    const struct nw_layout *layout = &state->layout;

    (void)platform;
    if (layout->parallel.reduce_each || layout->profile == NULL || layout->strategy == NULL ||
        !layout->profile->reduces_last || !layout->strategy->reduces_units)
        return false;
    state->layout.parallel.reduce_each = true;
    return true;
}

static bool layout_holds(const struct nw_fit_state *state)
{
    const bool holds = nw_layout_check(&state->layout, &state->job) == NW_OK;

    if (!holds)
        nw_clear_error();
    return holds;
}

static bool double_degree(struct nw_fit_state *state, int *degree, int most)
{
    const int before = *degree > 1 ? *degree : 1;

    if (before * 2 > most || state->job.net.stated_parameters > 0 ||
        nw_memory_policy_of(state->layout.profile)->whole_layers)
        return false;
    *degree = before * 2;
    return layout_holds(state);
}

/* Within a node only: its messages stand in the way of every layer. */
static bool more_tensor_parallel(struct nw_fit_state *state, const struct nw_platform *platform)
{
    const int ranks = state->layout.rank_count / state->layout.node_count;

    (void)platform;
    return double_degree(state, &state->layout.parallel.tp, ranks);
}

static bool more_pipeline(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    return double_degree(state, &state->layout.parallel.pp, state->layout.rank_count);
}

static bool optimizer_8bit(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (strncmp(state->job.optimizer->name, "adam", 4) != 0 ||
        strcmp(state->job.optimizer->name, "adam8bit") == 0)
        return false;
    state->job.optimizer = nw_optimizer_named("adam8bit");
    return true;
}

static bool pure_16_bit(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (nw_job_master_bytes(&state->job) <= 0 || strcmp(state->job.precision->name, "bf16") != 0)
        return false;
    state->job.master_bytes = 0;
    state->job.gradient_bytes = state->job.reduce_bytes = state->job.precision->element_bytes;
    return true;
}

static bool offload_optimizer(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (state->job.offload.optimizer != NW_OFFLOAD_NONE)
        return false;
    state->job.offload.optimizer = NW_OFFLOAD_CPU;
    return true;
}

/* DeepSpeed offers it with ZeRO-3, FSDP with CPUOffload: both cut the weights. */
static bool offload_parameters(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (state->job.offload.parameters != NW_OFFLOAD_NONE || state->layout.strategy == NULL ||
        !state->layout.strategy->weights_sharded)
        return false;
    state->job.offload.parameters = NW_OFFLOAD_CPU;
    state->job.offload.optimizer = NW_OFFLOAD_CPU;
    return true;
}

#define ADAPTER_RANK 16 /* of most published recipes: 8 to 64 */

static bool adapters(struct nw_fit_state *state, const struct nw_platform *platform)
{
    (void)platform;
    if (!trains_all(state) || state->job.net.stated_parameters > 0)
        return false;
    state->job.lora.rank = ADAPTER_RANK;
    state->job.lora.targets = nw_lora_all(&state->job.net);
    return true;
}

static bool quantised_adapters(struct nw_fit_state *state, const struct nw_platform *platform)
{
    if (state->job.net.stated_parameters > 0 || state->job.lora.base_bytes > 0)
        return false;
    adapters(state, platform);
    state->job.lora.base_bytes = NW_NF4_BYTES;
    return true;
}

static bool more_gpus(struct nw_fit_state *state, const struct nw_platform *platform)
{
    struct nw_layout *layout = &state->layout;
    const int per_node = platform->fabric.gpus_per_node;

    if (layout->rank_count > (1 << 17))
        return false;
    if (layout->node_count > 1 || layout->rank_count * 2 > per_node)
        layout->node_count *= 2;
    layout->rank_count *= 2;
    return layout_holds(state);
}

/* ---- words of those with a number --------------------------------------------------------------
 */

static void word_micro_batch(const struct nw_fit_state *state, char *text, size_t size)
{
    const unsigned long long micro_batch = state->job.micro_batch;

    snprintf(text, size, "micro-batch %llu, more of them (--micro-batch %llu)", micro_batch,
             micro_batch);
}

static void word_strategy(const struct nw_fit_state *state, char *text, size_t size)
{
    snprintf(text, size, "%s (--strategy %s)", state->layout.strategy->title,
             state->layout.strategy->name);
}

static void word_tensor_parallel(const struct nw_fit_state *state, char *text, size_t size)
{
    const int tp = nw_layout_tp(&state->layout);

    snprintf(text, size, "layers cut over %d GPUs (--tp %d)", tp, tp);
}

static void word_pipeline(const struct nw_fit_state *state, char *text, size_t size)
{
    const int pp = nw_layout_pp(&state->layout);

    snprintf(text, size, "layers dealt to %d stages (--pp %d)", pp, pp);
}

static void word_gpus(const struct nw_fit_state *state, char *text, size_t size)
{
    const int gpus = state->layout.rank_count, nodes = state->layout.node_count;

    snprintf(text, size, "%d GPUs on %d node%s (--ranks %d --nodes %d)", gpus, nodes,
             nodes == 1 ? "" : "s", gpus, nodes);
}

const struct nw_fit_change nw_fit_changes[] = {
    {.name = "flash-attention",
     .option = "--attention flash",
     .text = "flash attention: no scores in memory",
     .apply = flash},
    {.name = "sequence-parallel",
     .option = "--sequence-parallel yes",
     .text = "norms and their inputs cut over the tensor-parallel ranks",
     .apply = sequence_parallel},
    {.name = "chunked-loss",
     .option = "--loss chunked",
     .text = "output layer and loss in pieces",
     .apply = chunked_loss},
    {.name = "recompute-selective",
     .option = "--recompute selective",
     .text = "part of each layer computed again",
     .apply = recompute_selective},
    {.name = "recompute-full",
     .option = "--recompute full",
     .text = "every layer computed again, only its input kept",
     .apply = recompute_full},
    {.name = "micro-batch",
     .option = "--micro-batch",
     .word = word_micro_batch,
     .apply = smaller_micro_batch,
     .repeats = true},
    {.name = "shard-more",
     .option = "--strategy",
     .word = word_strategy,
     .apply = shard_more,
     .repeats = true},
    {.name = "sync-each-batch",
     .option = "--sync-each-batch yes",
     .text = "gradients cut in every micro-batch",
     .apply = reduce_each},
    {.name = "tensor-parallel",
     .option = "--tp",
     .word = word_tensor_parallel,
     .apply = more_tensor_parallel,
     .repeats = true},
    {.name = "pipeline",
     .option = "--pp",
     .word = word_pipeline,
     .apply = more_pipeline,
     .repeats = true},
    {.name = "optimizer-8bit",
     .option = "--optimizer adam8bit",
     .text = "moments in 8 bit",
     .other_numerics = true,
     .apply = optimizer_8bit},
    {.name = "pure-bf16",
     .option = "--master none --gradients same",
     .text = "no fp32 copy of the weights",
     .other_numerics = true,
     .apply = pure_16_bit},
    {.name = "offload-optimizer",
     .option = "--offload-optimizer cpu",
     .text = "optimizer on the CPU",
     .apply = offload_optimizer},
    {.name = "offload-params",
     .option = "--offload-params cpu --offload-optimizer cpu",
     .text = "weights and optimizer on the CPU",
     .apply = offload_parameters},
    {.name = "lora",
     .option = "--lora-rank 16",
     .text = "adapters only (LoRA), another training",
     .other_training = true,
     .apply = adapters},
    {.name = "qlora",
     .option = "--lora-rank 16 --base nf4",
     .text = "adapters on a 4-bit base (QLoRA), another training",
     .other_training = true,
     .apply = quantised_adapters},
    {.name = "more-gpus",
     .option = "--ranks --nodes",
     .word = word_gpus,
     .more_gpus = true,
     .apply = more_gpus,
     .repeats = true},
};
const size_t nw_fit_change_count = sizeof nw_fit_changes / sizeof nw_fit_changes[0];
