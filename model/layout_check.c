/* Degrees of parallelism against the job and each other: what a framework would refuse at its
 * start. */
#include <string.h>

#include "base/units.h"
#include "model/model.h"

typedef unsigned long long number; /* for messages */

static bool divides(int part, uint64_t whole)
{
    return whole % (uint64_t)part == 0;
}

static nw_rc check_ranks(const struct nw_layout *layout)
{
    const int tp = nw_layout_tp(layout), pp = nw_layout_pp(layout), cp = nw_layout_cp(layout);
    const double product = (double)tp * pp * cp;

    if (layout->node_count < 1 || layout->rank_count < layout->node_count ||
        layout->rank_count % layout->node_count != 0)
        return nw_fail(NW_EUSAGE,
                       "%d GPUs on %d nodes; accepted: as many on each node, one or more",
                       layout->rank_count, layout->node_count);
    if (product > layout->rank_count)
        return nw_fail(NW_EUSAGE,
                       "--tp %d x --pp %d x --cp %d needs %.0f GPUs; there are %d; accepted: "
                       "degrees whose product divides the GPUs",
                       tp, pp, cp, product, layout->rank_count);
    if (layout->rank_count % (tp * pp * cp) != 0)
        return nw_fail(NW_EUSAGE,
                       "%d GPUs cannot be dealt to --tp %d x --pp %d x --cp %d evenly; accepted: "
                       "degrees whose product divides the GPUs",
                       layout->rank_count, tp, pp, cp);
    return NW_OK;
}

/* Megatron-LM cuts heads, MLP and experts over the tensor-parallel ranks; key-value heads may be
 * fewer, then they are copied (Transformer Engine, vLLM: a divisor). */
static nw_rc check_tensor(const struct nw_layout *layout, const struct nw_transformer *net)
{
    const int tp = nw_layout_tp(layout);

    if (tp == 1)
        return NW_OK;
    if (net->stated_parameters > 0)
        return nw_fail(NW_EUSAGE,
                       "--tp %d: %s states parameters only, no layers that can be cut; "
                       "accepted: 1",
                       tp, net->name);
    if (!divides(tp, net->heads))
        return nw_fail(NW_EUSAGE,
                       "--tp %d: the %llu attention heads of %s cannot be dealt to so many GPUs; "
                       "accepted: a divisor of %llu",
                       tp, (number)net->heads, net->name, (number)net->heads);
    if (!divides(tp, net->kv_heads) && (uint64_t)tp % net->kv_heads != 0)
        return nw_fail(NW_EUSAGE,
                       "--tp %d: the %llu key-value heads of %s can neither be dealt to so many "
                       "GPUs nor copied evenly; accepted: a divisor or a multiple of %llu",
                       tp, (number)net->kv_heads, net->name, (number)net->kv_heads);
    if (net->ffn > 0 && !divides(tp, net->ffn))
        return nw_fail(NW_EUSAGE,
                       "--tp %d: an MLP of width %llu cannot be cut so; accepted: a divisor of "
                       "%llu",
                       tp, (number)net->ffn, (number)net->ffn);
    return NW_OK;
}

/* Megatron-Core asks for whole chunks when stages are interleaved; it may count the embeddings and
 * the output layer as one layer each (account_for_embedding_in_pipeline_split). */
static nw_rc check_pipeline(const struct nw_layout *layout, const struct nw_transformer *net)
{
    const int pp = nw_layout_pp(layout), v = nw_layout_virtual_stages(layout);
    const double chunks = (double)pp * v;

    if (v > 1 && pp == 1)
        return nw_fail(NW_EUSAGE, "--virtual-stages %d needs --pp 2 or more", v);
    if (pp == 1)
        return NW_OK;
    if ((double)net->layers < chunks && (double)net->layers + 2 != chunks)
        return nw_fail(NW_EUSAGE,
                       "--pp %d x --virtual-stages %d makes %.0f pieces of %llu layers; accepted: "
                       "%llu pieces at most, or one for each layer, the embeddings and the output "
                       "layer",
                       pp, v, chunks, (number)net->layers, (number)net->layers);
    if (v > 1 && net->layers % (uint64_t)(pp * v) > 0 && (net->layers + 2) % (uint64_t)(pp * v) > 0)
        return nw_fail(NW_EUSAGE,
                       "--virtual-stages %d: %llu layers, or %llu with embeddings and output "
                       "layer, cannot be dealt to %d stages x %d evenly; accepted: a count with "
                       "which they can",
                       v, (number)net->layers, (number)net->layers + 2, pp, v);
    return NW_OK;
}

/* Ring attention with causal masks deals two pieces of the sequence to each rank, an early and a
 * late one (Megatron-Core, torchtitan). */
static nw_rc check_context(const struct nw_layout *layout, const struct nw_job *job)
{
    const int cp = nw_layout_cp(layout), pieces = job->net.encoder ? cp : 2 * cp;

    if (cp == 1)
        return NW_OK;
    if (job->net.stated_parameters > 0)
        return nw_fail(NW_EUSAGE,
                       "--cp %d: %s states parameters only, no sequence that can be cut; "
                       "accepted: 1",
                       cp, job->net.name);
    if (!divides(pieces, job->sequence))
        return nw_fail(NW_EUSAGE,
                       "--cp %d: a sequence of %llu tokens cannot be cut into %d pieces; accepted: "
                       "--seq a multiple of %d",
                       cp, (number)job->sequence, pieces, pieces);
    return NW_OK;
}

static nw_rc check_experts(const struct nw_layout *layout, const struct nw_transformer *net)
{
    const int ep = nw_layout_ep(layout), reduce = nw_layout_reduce_count(layout);

    if (ep == 1)
        return NW_OK;
    if (net->experts == 0)
        return nw_fail(NW_EUSAGE, "--ep %d needs a model with experts; %s has none; accepted: 1",
                       ep, net->name);
    if (!divides(ep, net->experts))
        return nw_fail(
            NW_EUSAGE,
            "--ep %d: %llu experts cannot be dealt to so many ranks; accepted: a divisor "
            "of %llu",
            ep, (number)net->experts, (number)net->experts);
    if (reduce % ep != 0)
        return nw_fail(NW_EUSAGE,
                       "--ep %d: experts are dealt over the %d data- and context-parallel ranks; "
                       "accepted: a divisor of %d",
                       ep, reduce, reduce);
    return NW_OK;
}

/* "zero1, fsdp, …": those that cut the optimizer's states, or only those that cut the weights. */
static const char *names_that_cut(bool weights, char *text, size_t size)
{
    const char *names[16] = {NULL};
    size_t count = 0;

    for (size_t i = 0; i < nw_strategy_count && count + 1 < sizeof names / sizeof names[0]; i++)
        if (weights ? nw_strategies[i].weights_sharded : nw_strategies[i].optimizer_sharded)
            names[count++] = nw_strategies[i].name;
    return nw_join_names(text, size, names);
}

static nw_rc check_shard(const struct nw_layout *layout)
{
    char accepted[128];
    const int asked = layout->parallel.shard_count, reduce = nw_layout_reduce_count(layout);
    const struct nw_strategy *strategy = layout->strategy;

    if (asked == 0 || strategy == NULL)
        return NW_OK;
    if (!strategy->optimizer_sharded)
        return nw_fail(NW_EUSAGE,
                       "--shard %d: %s cuts nothing; accepted: a strategy that does (%s)", asked,
                       strategy->name, names_that_cut(false, accepted, sizeof accepted));
    if (asked > reduce || reduce % asked != 0)
        return nw_fail(NW_EUSAGE,
                       "--shard %d does not divide the %d ranks that share gradients; accepted: a "
                       "divisor of %d",
                       asked, reduce, reduce);
    return NW_OK;
}

/* What a framework does not do together. */
static nw_rc check_framework(const struct nw_layout *layout, const struct nw_job *job)
{
    const struct nw_strategy *strategy = layout->strategy;
    const struct nw_profile *profile = layout->profile;
    const int copies = nw_layout_reduce_count(layout), pp = nw_layout_pp(layout);
    const struct nw_offload *offload = &job->offload;
    char accepted[128];

    if (strategy == NULL)
        return NW_OK;
    if (strategy->reduces == NW_REDUCES_NEVER && copies > 1)
        return nw_fail(NW_EUSAGE,
                       "--strategy none keeps one copy of the model, %d GPUs hold %d copies at "
                       "--tp %d x --pp %d x --cp %d; accepted: ddp, or one that cuts (nodeworth "
                       "list strategies)",
                       layout->rank_count, copies, nw_layout_tp(layout), pp, nw_layout_cp(layout));
    if (pp > 1 && strategy->gradients_sharded && profile != NULL &&
        strstr(profile->name, "deepspeed") != NULL)
        return nw_fail(NW_EUSAGE,
                       "--strategy %s with --pp %d: DeepSpeed's pipeline engine takes ZeRO-1 at "
                       "most; accepted: zero1, ddp, or --pp 1",
                       strategy->name, pp);
    if (offload->parameters != NW_OFFLOAD_NONE && layout->rank_count > 1 &&
        !strategy->weights_sharded)
        return nw_fail(NW_EUSAGE,
                       "--offload-params with --strategy %s: whole weights stay on every GPU; "
                       "accepted: none, or a strategy that cuts the weights (%s)",
                       strategy->name, names_that_cut(true, accepted, sizeof accepted));
    if (offload->optimizer != NW_OFFLOAD_NONE && layout->rank_count > 1 &&
        !strategy->optimizer_sharded)
        return nw_fail(NW_EUSAGE,
                       "--offload-optimizer with --strategy %s: every GPU updates all weights; "
                       "accepted: none, or a strategy that cuts the optimizer (%s)",
                       strategy->name, names_that_cut(false, accepted, sizeof accepted));
    return NW_OK;
}

nw_rc nw_layout_check(const struct nw_layout *layout, const struct nw_job *job)
{
    NW_TRY(check_ranks(layout));
    NW_TRY(check_tensor(layout, &job->net));
    NW_TRY(check_pipeline(layout, &job->net));
    NW_TRY(check_context(layout, job));
    NW_TRY(check_experts(layout, &job->net));
    NW_TRY(check_shard(layout));
    return check_framework(layout, job);
}
