/* What one rank computes and sends in each unit of the net, for one micro-batch. */
#include "model/step_build.h"

#include <math.h>

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* Full checkpointing runs the forward pass, with its messages, once more. */
static double passes_again(const struct nw_build *build)
{
    return build->job->recompute == NW_RECOMPUTE_FULL ? 1 : 0;
}

static void put(struct nw_message list[NW_MESSAGES_MAX], struct nw_message message)
{
    int i = 0;

    while (i < NW_MESSAGES_MAX && list[i].collective != NULL)
        i++;
    if (i < NW_MESSAGES_MAX && message.times > 0 && message.bytes > 0)
        list[i] = message;
}

/* ---- within a layer ------------------------------------------------------------------------ */

/* Shoeybi et al. 2019 (Megatron-LM), section 3: each of the two blocks ends with an all-reduce of
 * its output and begins, backward, with one of its input's gradient. With sequence parallelism each
 * is a gather and a reduce-scatter (Korthikanti et al. 2022, section 4.2.2). */
static void tensor_messages(const struct nw_build *build, double blocks, double again,
                            struct nw_unit *unit)
{
    const struct nw_job *job = build->job;
    const double bytes = build->tokens * (double)job->net.hidden * job->precision->element_bytes;
    struct nw_message message = {.bytes = bytes,
                                 .times = blocks,
                                 .group = NW_GROUP_TP,
                                 .stream = NW_STREAM_TENSOR,
                                 .collective = "all_reduce"};
    struct nw_message second = message;

    if (nw_layout_tp(&build->layout) < 2)
        return;
    if (build->layout.parallel.sequence_parallel) {
        message.collective = "all_gather";
        second.collective = "reduce_scatter";
        put(unit->forward, second);
        second.times = blocks * (1 + again);
        put(unit->backward, second);
    }
    put(unit->forward, message);
    message.times = blocks * (1 + again);
    put(unit->backward, message);
}

/* Tokens to their experts and back, forward and backward (Lepikhin et al. 2020, GShard). */
static void expert_messages(const struct nw_build *build, struct nw_unit *unit)
{
    const struct nw_job *job = build->job;
    const int tp = nw_layout_tp(&build->layout);
    struct nw_message message = {
        .collective = "alltoall",
        .bytes = build->tokens * (double)job->net.experts_per_token * (double)job->net.hidden *
                 job->precision->element_bytes /
                 (build->layout.parallel.sequence_parallel ? tp : 1),
        .times = 2,
        .group = NW_GROUP_EP,
        .stream = NW_STREAM_TENSOR,
    };

    if (nw_layout_ep(&build->layout) < 2)
        return;
    put(unit->forward, message);
    message.times = 2 * (1 + passes_again(build));
    put(unit->backward, message);
}

/* Keys and values go around the ring while attention works on those at hand; backward also their
 * gradients (Liu et al. 2023, Ring Attention). */
static void context_messages(const struct nw_build *build, struct nw_unit *unit)
{
    const struct nw_transformer *net = &build->job->net;
    const int cp = nw_layout_cp(&build->layout);
    const double width =
        net->kv_rank > 0
            ? (double)(net->heads * (net->head_size + net->rope_head_size + net->value_head_size)) /
                  nw_layout_tp(&build->layout)
            : 2 * nw_layout_kv_heads(&build->layout, net) * (double)net->head_size;
    struct nw_message message = {
        .collective = "sendrecv",
        .bytes = build->tokens * width * build->job->precision->element_bytes,
        .times = cp - 1,
        .group = NW_GROUP_CP,
        .stream = NW_STREAM_CONTEXT,
    };

    if (cp < 2)
        return;
    put(unit->forward, message);
    message.times = (cp - 1) * (2 + passes_again(build));
    put(unit->backward, message);
}

/* ---- elements ------------------------------------------------------------------------------ */

/* The tensors of a unit, as large as this rank holds them. */
static void share_tensors(struct nw_unit *unit)
{
    const double share = ratio(unit->trained_elements, (double)unit->tensors.total);

    for (size_t i = 0; i < unit->tensors.count; i++)
        unit->tensors.elements[i] = (uint64_t)((double)unit->tensors.elements[i] * share + 0.5);
}

static void layer_elements(const struct nw_build *build, int kind, struct nw_unit *unit)
{
    const struct nw_job *job = build->job;
    const struct nw_layer_parts parts = nw_transformer_layer_parts(&job->net, kind);
    const double tp = nw_layout_tp(&build->layout), ep = nw_layout_ep(&build->layout);
    const double experts = (double)parts.experts / (tp * ep);

    nw_transformer_layer_kind(&job->net, kind, &unit->tensors);
    unit->gathered_elements =
        (double)(parts.attention + parts.mlp) / tp + (double)(parts.router + parts.norms) + experts;
    unit->expert_elements = ep > 1 ? experts : 0;
    unit->trained_elements = unit->gathered_elements;
    unit->trained_experts = unit->expert_elements;
    if (job->lora.rank > 0) {
        const struct nw_adapter_parts adapter =
            nw_transformer_adapter_parts(&job->net, kind, job->lora.rank, job->lora.targets);

        unit->trained_experts = ep > 1 ? (double)adapter.experts / (tp * ep) : 0;
        unit->trained_elements = (double)adapter.dense / tp + (double)adapter.experts / (tp * ep);
    }
    share_tensors(unit);
}

static void end_elements(const struct nw_build *build, struct nw_unit *unit)
{
    unit->gathered_elements = (double)unit->tensors.total / nw_layout_tp(&build->layout);
    unit->trained_elements = build->job->lora.rank > 0 ? 0 : unit->gathered_elements;
    share_tensors(unit);
}

/* ---- times --------------------------------------------------------------------------------- */

static void take_time(const struct nw_build *build, const struct nw_unit_time *time,
                      struct nw_unit *unit)
{
    /* Attention forward : backward, as model/transformer.c counts; either kind of recomputation
     * does it again (compute.c), though a flash kernel's backward has it in it. */
    const double backward = build->job->flash ? 2.5 : 2;
    const double again = build->job->recompute != NW_RECOMPUTE_NONE ? 1 : 0;

    unit->time = *time;
    unit->forward_ns = time->forward_ns;
    unit->backward_ns = time->backward_ns + time->recompute_ns;
    unit->idle_share = ratio(time->idle_ns, unit->forward_ns + unit->backward_ns);
    unit->attention_forward_ns =
        fmin(time->attention_ns / (1 + backward + again), unit->forward_ns);
    unit->attention_backward_ns =
        fmin(time->attention_ns - unit->attention_forward_ns, unit->backward_ns);
}

static double idle_share(const struct nw_build *build, const struct nw_compute *compute)
{
    const double counts[NW_UNIT_KINDS] = {1, compute->layer_count[NW_LAYER_PLAIN],
                                          compute->layer_count[NW_LAYER_EXPERTS], 1};
    double idle = 0, all = 0;

    for (int kind = 0; kind < NW_UNIT_KINDS; kind++) {
        idle += counts[kind] * build->units[kind].time.idle_ns;
        all += counts[kind] * (build->units[kind].forward_ns + build->units[kind].backward_ns);
    }
    return fmin(ratio(idle, all), 1);
}

void nw_build_units(struct nw_build *build)
{
    struct nw_unit *units = build->units;
    const struct nw_transformer *net = &build->job->net;
    struct nw_compute compute;
    const double blocks = net->parallel ? 1 : 2;
    const uint64_t shared = nw_transformer_shared_embedding(net);

    nw_compute_of(build->job, &build->layout, (uint64_t)build->micro_batch, build->platform,
                  &compute);
    take_time(build, &compute.embedding, &units[NW_UNIT_EMBEDDING]);
    take_time(build, &compute.layer[NW_LAYER_PLAIN], &units[NW_UNIT_PLAIN]);
    take_time(build, &compute.layer[NW_LAYER_EXPERTS], &units[NW_UNIT_EXPERTS]);
    take_time(build, &compute.head, &units[NW_UNIT_HEAD]);
    nw_transformer_embedding(net, &units[NW_UNIT_EMBEDDING].tensors);
    nw_transformer_head(net, &units[NW_UNIT_HEAD].tensors);
    if (shared > 0 && build->stage_count > 1) {
        struct nw_tensors *head = &units[NW_UNIT_HEAD].tensors;

        if (head->count < NW_TENSORS_MAX)
            head->elements[head->count++] = shared;
        head->total += shared;
    }
    end_elements(build, &units[NW_UNIT_EMBEDDING]);
    end_elements(build, &units[NW_UNIT_HEAD]);
    layer_elements(build, NW_LAYER_PLAIN, &units[NW_UNIT_PLAIN]);
    if (net->experts > 0)
        layer_elements(build, NW_LAYER_EXPERTS, &units[NW_UNIT_EXPERTS]);
    build->idle_share = idle_share(build, &compute);
    if (net->stated_parameters > 0)
        return;
    for (int kind = NW_UNIT_PLAIN; kind <= NW_UNIT_EXPERTS; kind++) {
        context_messages(build, &units[kind]);
        tensor_messages(build, blocks, passes_again(build), &units[kind]);
    }
    expert_messages(build, &units[NW_UNIT_EXPERTS]);
    tensor_messages(build, 1, 0, &units[NW_UNIT_HEAD]);
    units[NW_UNIT_EMBEDDING].forward[0] = units[NW_UNIT_HEAD].forward[0];
    /* The vocabulary is cut: the look-up's result is added up, forward; the output layer's input
     * gradient, backward. Scattered by sequence parallelism, its gradient is gathered. */
    if (build->layout.parallel.sequence_parallel && build->job->lora.rank == 0) {
        struct nw_message gradient = units[NW_UNIT_EMBEDDING].forward[0];

        gradient.collective = gradient.collective != NULL ? "all_gather" : NULL;
        units[NW_UNIT_EMBEDDING].backward[0] = gradient;
    }
    units[NW_UNIT_HEAD].forward[0] = (struct nw_message){0};
    if (!build->layout.parallel.sequence_parallel)
        units[NW_UNIT_HEAD].forward[1] = (struct nw_message){0};
}

/* ---- stages -------------------------------------------------------------------------------- */

/* The first layer of a chunk. Where the layers do not go up and embeddings and output layer,
 * counted as one each, make them, they are (Megatron-Core account_for_embedding_in_pipeline_split,
 * BLOOM); else what is left over goes to the first. */
static int first_layer(const struct nw_build *build, int index)
{
    const int chunks = build->stage_count * build->virtual_stages;
    const int layers = (int)build->job->net.layers;
    const int each = layers / chunks, left = layers % chunks;

    if (left == 0 || (layers + 2) % chunks != 0)
        return index * each + (index < left ? index : left);
    const int slot = index * ((layers + 2) / chunks) - 1; /* the embeddings are slot -1 */

    return slot < 0 ? 0 : slot > layers ? layers : slot;
}

struct nw_chunk nw_build_chunk(const struct nw_build *build, int stage, int chunk)
{
    const int chunks = build->stage_count * build->virtual_stages;
    const int index = chunk * build->stage_count + stage;
    const int plain = (int)nw_transformer_layer_count(&build->job->net, NW_LAYER_PLAIN);
    const int first = first_layer(build, index), last = first_layer(build, index + 1);
    const int split = plain < first ? first : plain > last ? last : plain;

    return (struct nw_chunk){.first = {first, split},
                             .count = {split - first, last - split},
                             .embedding = index == 0,
                             .head = index == chunks - 1};
}

int nw_chunk_length(const struct nw_chunk *chunk)
{
    return chunk->count[0] + chunk->count[1] + (chunk->embedding ? 1 : 0) + (chunk->head ? 1 : 0);
}

nw_unit_kind nw_chunk_unit(const struct nw_chunk *chunk, int index)
{
    if (chunk->embedding && index-- == 0)
        return NW_UNIT_EMBEDDING;
    if (index < chunk->count[NW_LAYER_PLAIN])
        return NW_UNIT_PLAIN;
    return index < chunk->count[0] + chunk->count[1] ? NW_UNIT_EXPERTS : NW_UNIT_HEAD;
}
