/* What may vary, and between which values. */
#include <math.h>
#include <string.h>

#include "model/request_parts.h"
#include "model/search.h"

#define LARGEST_MICRO_BATCH 64
#define LARGEST_CP          64
#define LEAST_CP_TOKENS     512 /* of one piece of the sequence */
#define LARGEST_VIRTUAL     12

static void add(int *list, int *count, int value)
{
    for (int i = 0; i < *count; i++)
        if (list[i] == value)
            return;
    if (*count < NW_SPACE_MAX)
        list[(*count)++] = value;
}

static void add_nodes(const struct nw_model *model, const struct nw_space_wishes *wishes,
                      struct nw_space *space)
{
    const int largest = wishes->largest_node_count;

    if (largest == 0) {
        for (size_t i = 0; i < model->node_count_count; i++)
            add(space->node_counts, &space->node_count_count, model->node_counts[i]);
        return;
    }
    for (int n = 1; n < largest; n *= 2)
        add(space->node_counts, &space->node_count_count, n);
    add(space->node_counts, &space->node_count_count, largest);
}

/* Divisors, so that ranks of a group stay on a node. */
static void add_tensor(const struct nw_model *model, struct nw_space *space)
{
    const int per_node = model->platform.fabric.gpus_per_node, asked = model->parallel.tp;

    for (int tp = 1; tp <= per_node; tp++)
        if (asked > 0 ? tp == asked : per_node % tp == 0 && model->job.net.stated_parameters == 0)
            add(space->tp, &space->tp_count, tp);
    if (space->tp_count == 0)
        add(space->tp, &space->tp_count, asked > 0 ? asked : 1);
    space->sequence_parallel[space->sequence_count++] = true;
    if (!model->parallel.sequence_parallel)
        space->sequence_parallel[space->sequence_count++] = false;
}

static void add_pipeline(const struct nw_model *model, int most_ranks, struct nw_space *space)
{
    const int asked = model->parallel.pp, layers = (int)model->job.net.layers;
    const bool whole = model->job.net.stated_parameters > 0;

    for (int pp = 1; pp <= layers && pp <= most_ranks; pp++)
        if (asked > 0 ? pp == asked : pp == 1 || (!whole && (layers % pp == 0 || !(pp & (pp - 1)))))
            add(space->pp, &space->pp_count, pp);
    if (space->pp_count == 0)
        add(space->pp, &space->pp_count, asked > 0 ? asked : 1);
    for (int v = 1; v <= LARGEST_VIRTUAL; v++)
        if (model->parallel.virtual_stages > 0 ? v == model->parallel.virtual_stages : true)
            add(space->virtual_stages, &space->virtual_count, v);
    if (space->virtual_count == 0)
        add(space->virtual_stages, &space->virtual_count, model->parallel.virtual_stages);
}

static void add_context_and_experts(const struct nw_model *model, struct nw_space *space)
{
    const struct nw_transformer *net = &model->job.net;
    const int cp_asked = model->parallel.cp, ep_asked = model->parallel.ep;

    for (int cp = 1; cp <= LARGEST_CP; cp *= 2)
        if (cp_asked == 0 &&
            (cp == 1 || (net->stated_parameters == 0 &&
                         model->job.sequence / (2 * (uint64_t)cp) >= LEAST_CP_TOKENS)))
            add(space->cp, &space->cp_count, cp);
    if (space->cp_count == 0)
        add(space->cp, &space->cp_count, cp_asked);
    for (uint64_t ep = 1; ep <= net->experts && ep_asked == 0; ep *= 2)
        if (net->experts % ep == 0)
            add(space->ep, &space->ep_count, (int)ep);
    if (space->ep_count == 0)
        add(space->ep, &space->ep_count, ep_asked > 0 ? ep_asked : 1);
}

static void add_batches(const struct nw_model *model, const struct nw_space_wishes *wishes,
                        struct nw_space *space)
{
    static const nw_recompute all[] = {NW_RECOMPUTE_NONE, NW_RECOMPUTE_SELECTIVE,
                                       NW_RECOMPUTE_FULL};
    static const struct nw_offload where[] = {
        {.optimizer = NW_OFFLOAD_NONE},
        {.optimizer = NW_OFFLOAD_CPU},
        {.optimizer = NW_OFFLOAD_CPU, .parameters = NW_OFFLOAD_CPU},
    };
    const bool can_offload = isfinite(model->platform.host_to_device_bytes_per_s) &&
                             isfinite(model->platform.host_memory_bytes_per_s);

    for (uint64_t b = 1; b <= LARGEST_MICRO_BATCH && !wishes->keep_micro_batch; b++)
        if (model->job.global_batch % b == 0 && space->micro_batch_count < NW_SPACE_MAX)
            space->micro_batches[space->micro_batch_count++] = b;
    if (wishes->keep_micro_batch)
        space->micro_batches[space->micro_batch_count++] = model->job.micro_batch;
    for (int i = 0; i < 3 && !wishes->keep_recompute; i++)
        space->recomputes[space->recompute_count++] = all[i];
    if (wishes->keep_recompute)
        space->recomputes[space->recompute_count++] = model->job.recompute;
    for (int i = 0; i < 3 && !wishes->keep_offload && (i == 0 || can_offload); i++)
        space->offloads[space->offload_count++] =
            (struct nw_offload){.optimizer = where[i].optimizer,
                                .parameters = where[i].parameters,
                                .activations = model->job.offload.activations};
    if (wishes->keep_offload)
        space->offloads[space->offload_count++] = model->job.offload;
}

/* A node's ranks, and doublings of them, share one copy; or all do. */
static void add_shards(const struct nw_model *model, int most_ranks, struct nw_space *space)
{
    add(space->shards, &space->shard_count, model->parallel.shard_count);
    for (int shards = model->platform.fabric.gpus_per_node;
         shards > 1 && shards < most_ranks && model->parallel.shard_count == 0; shards *= 2)
        add(space->shards, &space->shard_count, shards);
}

/* The same strategy, hybrid or not, in the same framework. */
static const struct nw_strategy *twin_of(const struct nw_space *space,
                                         const struct nw_layout *layout)
{
    const struct nw_strategy *own = layout->strategy;

    for (int w = 0; w < space->way_count; w++) {
        const struct nw_strategy *other = space->ways[w].strategy;

        if (space->ways[w].profile == layout->profile && other->hybrid != own->hybrid &&
            other->gathers == own->gathers && other->weights_sharded == own->weights_sharded &&
            other->reduces_units == own->reduces_units && other->quantised == own->quantised)
            return other;
    }
    return NULL;
}

bool nw_space_takes_shards(const struct nw_space *space, const struct nw_layout *layout)
{
    const int reduce = nw_layout_reduce_count(layout), asked = layout->parallel.shard_count;
    const struct nw_strategy *twin = twin_of(space, layout);
    struct nw_layout hybrid = *layout;

    if (space->shard_count == 1 && asked > 0) /* as asked for */
        return true;
    if (asked == 0)
        return !layout->strategy->hybrid || twin == NULL || nw_layout_shard_count(layout) < reduce;
    if (!layout->strategy->optimizer_sharded || layout->strategy->hybrid || asked >= reduce ||
        reduce % asked != 0)
        return false;
    hybrid.strategy = twin;
    hybrid.parallel.shard_count = 0;
    return twin == NULL || nw_layout_shard_count(&hybrid) != asked;
}

static void add_way(struct nw_space *space, const struct nw_strategy *strategy,
                    const struct nw_profile *profile)
{
    if (space->way_count < NW_SPACE_MAX)
        space->ways[space->way_count++] = (struct nw_way){.strategy = strategy, .profile = profile};
}

/* Without a framework each strategy runs in its own, DDP in PyTorch and in Megatron. */
static void add_ways(const struct nw_model *model, const struct nw_space_wishes *wishes,
                     struct nw_space *space)
{
    static const char everywhere[] = " ddp zero1 zero2 zero3 fsdp fsdp-keep hsdp distopt ";

    for (size_t i = 0; model->strategies[i] != NULL && wishes->keep_framework; i++)
        add_way(space, model->strategies[i],
                model->profile != NULL ? model->profile : nw_natural_profile(model->strategies[i]));
    if (wishes->keep_framework)
        return;
    for (size_t i = 0; i < nw_strategy_count; i++) {
        const struct nw_strategy *strategy = &nw_strategies[i];

        if (strstr(everywhere, strategy->name) == NULL)
            continue;
        add_way(space, strategy, nw_natural_profile(strategy));
        if (strcmp(strategy->name, "ddp") == 0)
            add_way(space, strategy, nw_profile_named("megatron"));
    }
}

nw_rc nw_space_make(const struct nw_model *model, const struct nw_space_wishes *wishes,
                    struct nw_space *space_out)
{
    struct nw_space space = {0};
    int most_ranks = 0;

    add_nodes(model, wishes, &space);
    for (int i = 0; i < space.node_count_count; i++) {
        const int ranks = nw_model_layout(model, space.node_counts[i], NULL).rank_count;

        most_ranks = ranks > most_ranks ? ranks : most_ranks;
    }
    if (most_ranks < 1)
        return nw_fail(NW_EUSAGE, "no node count to search; accepted: --nodes or --max-nodes");
    add_tensor(model, &space);
    add_pipeline(model, most_ranks, &space);
    add_context_and_experts(model, &space);
    add_shards(model, most_ranks, &space);
    add_batches(model, wishes, &space);
    add_ways(model, wishes, &space);
    *space_out = space;
    return NW_OK;
}
