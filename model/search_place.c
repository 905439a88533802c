/* One placement: what goes between data-parallel ranks and stages, what each rank holds. */
#include <math.h>
#include <string.h>

#include "model/search_parts.h"

struct at { /* where messages are sent */
    const struct nw_cut *cut;
    const struct nw_job *job;
    const struct nw_layout *layout;
    struct nw_prices *prices;
    const double *counts;           /* units of the stage that has most elements */
    double elements[NW_UNIT_KINDS]; /* dense ones of each */
    double experts[NW_UNIT_KINDS];
};

static nw_rc cost_ns(const struct at *at, const char *collective, double bytes, nw_group_kind kind,
                     double *ns_out)
{
    return nw_price_ns(at->prices, collective, bytes, nw_layout_group(at->layout, kind), ns_out);
}

static double all_elements(const struct at *at)
{
    double all = 0;

    for (int k = 0; k < NW_UNIT_KINDS; k++)
        all += at->counts[k] * at->elements[k];
    return all;
}

/* The same units in another pipeline: the last stage keeps its own copy of tied embeddings. */
static void take_elements(struct at *at, bool gathered)
{
    const struct nw_unit *units = at->cut->build.units;

    for (int k = 0; k < NW_UNIT_KINDS; k++) {
        at->experts[k] = gathered ? units[k].expert_elements : units[k].trained_experts;
        at->elements[k] =
            (gathered ? units[k].gathered_elements : units[k].trained_elements) - at->experts[k];
    }
    if (nw_layout_pp(at->layout) > 1 && (gathered || at->job->lora.rank == 0))
        at->elements[NW_UNIT_HEAD] +=
            (double)nw_transformer_shared_embedding(&at->job->net) / nw_layout_tp(at->layout);
}

/* `all` elements in equal messages of at most `bucket`, and the rest. */
static nw_rc pieces_ns(const struct at *at, const char *collective, double all, double bytes_each,
                       double bucket, nw_group_kind kind, double *ns_out, double *last_out)
{
    const double whole = bucket < all ? floor(all / bucket) : 0;
    double one = 0, rest = 0;

    if (whole > 0)
        NW_TRY(cost_ns(at, collective, bucket * bytes_each, kind, &one));
    NW_TRY(cost_ns(at, collective, (whole > 0 ? all - whole * bucket : all) * bytes_each, kind,
                   &rest));
    *ns_out = whole * one + rest;
    *last_out = rest > 0 ? rest : one;
    return NW_OK;
}

static nw_rc experts_ns(const struct at *at, const char *collective, double bytes_each,
                        double *ns_out)
{
    for (int k = 0; k < NW_UNIT_KINDS; k++) {
        double one;

        if (!(at->counts[k] * at->experts[k] > 0))
            continue;
        NW_TRY(cost_ns(at, collective, at->experts[k] * bytes_each, NW_GROUP_EXPERT, &one));
        *ns_out += at->counts[k] * one;
    }
    return NW_OK;
}

/* Unit by unit; `first_out`: that of the first, `last_out`: of the last of the forward order. */
static nw_rc units_ns(const struct at *at, const char *collective, double bytes_each, double piece,
                      nw_group_kind kind, double *ns_out, double *first_out, double *last_out)
{
    bool any = false;

    *ns_out = *first_out = *last_out = 0;
    for (int k = 0; k < NW_UNIT_KINDS; k++) {
        double one, rest;

        if (!(at->counts[k] * at->elements[k] > 0))
            continue;
        NW_TRY(pieces_ns(at, collective, at->elements[k], bytes_each, piece, kind, &one, &rest));
        *ns_out += at->counts[k] * one;
        if (!any)
            *first_out = one;
        *last_out = one;
        any = true;
    }
    return experts_ns(at, collective, bytes_each, ns_out);
}

static nw_rc fill_reduction(struct at *at, struct nw_quick_messages *messages)
{
    const struct nw_strategy *strategy = at->layout->strategy;
    const struct nw_profile *profile = at->layout->profile;
    const double wire = strategy->quantised ? 0.5 : nw_job_reduce_bytes(at->job);
    const bool cut = strategy->gradients_sharded || strategy->optimizer_sharded;
    const double shards = nw_layout_shard_count(at->layout);
    const double limit =
        !cut ? profile->ddp_bucket_bytes / wire
        : profile->reduce_bucket_elements > 0
            ? fmax(profile->reduce_bucket_elements, profile->bucket_elements_per_rank * shards)
            : 0;
    const char *collective = strategy->quantised ? "alltoall"
                             : cut               ? "reduce_scatter"
                                                 : "all_reduce";
    const nw_group_kind kind = cut ? NW_GROUP_SHARD : NW_GROUP_DP;
    double unused;

    if (strategy->reduces == NW_REDUCES_NEVER || nw_layout_reduce_count(at->layout) < 2)
        return NW_OK;
    take_elements(at, false);
    if (strategy->reduces_units) {
        NW_TRY(units_ns(at, collective, wire, INFINITY, kind, &messages->reduce_ns,
                        &messages->reduce_tail_ns, &unused));
    } else {
        NW_TRY(pieces_ns(at, collective, all_elements(at), wire, limit > 0 ? limit : INFINITY, kind,
                         &messages->reduce_ns, &messages->reduce_tail_ns));
        NW_TRY(experts_ns(at, collective, wire, &messages->reduce_ns));
    }
    if (!cut || nw_layout_group(at->layout, NW_GROUP_REPLICA).rank_count < 2)
        return NW_OK;
    if (strategy->reduces_units)
        return units_ns(at, strategy->quantised ? "alltoall" : "all_reduce", wire / shards,
                        INFINITY, NW_GROUP_REPLICA, &messages->replica_ns, &unused, &unused);
    return pieces_ns(at, "all_reduce", all_elements(at), wire / shards,
                     limit > 0 ? limit : INFINITY, NW_GROUP_REPLICA, &messages->replica_ns,
                     &unused);
}

/* Weights of one pass from the host: this rank's share of each unit. */
static double weight_copies(const struct at *at, double bytes)
{
    const double rate = at->cut->build.platform->host_to_device_bytes_per_s;
    const double ranks = nw_layout_state_count(at->layout);
    double all = all_elements(at);

    for (int k = 0; k < NW_UNIT_KINDS; k++)
        all += at->counts[k] * at->experts[k];
    return at->job->offload.parameters != NW_OFFLOAD_NONE && rate > 0
               ? all * bytes / ranks / rate * 1e9
               : 0;
}

static nw_rc fill_gathers(struct at *at, struct nw_quick_messages *messages)
{
    const struct nw_strategy *strategy = at->layout->strategy;
    const struct nw_profile *profile = at->layout->profile;
    const double e = at->job->precision->element_bytes, wire = nw_job_base_bytes(at->job);
    const double piece = profile->prefetch_elements > 0 ? profile->prefetch_elements : INFINITY;
    double unused;

    if (strategy->gathers == NW_GATHERS_NEVER || nw_layout_shard_count(at->layout) < 2)
        return NW_OK;
    if (strategy->gathers == NW_GATHERS_UPDATED) {
        const double per_rank = profile->bucket_elements_per_rank *
                                nw_layout_group(at->layout, NW_GROUP_SHARD).rank_count;
        const double bucket = profile->gather_bucket_elements > 0
                                  ? fmax(profile->gather_bucket_elements, per_rank)
                                  : INFINITY;
        double experts = 0, of_experts;

        take_elements(at, false);
        const double dense = all_elements(at);

        for (int k = 0; k < NW_UNIT_KINDS; k++)
            experts += at->counts[k] * at->experts[k];
        NW_TRY(pieces_ns(at, "all_gather", dense, e, bucket, NW_GROUP_SHARD,
                         &messages->forward_gather_ns, &unused));
        NW_TRY(
            pieces_ns(at, "all_gather", experts, e, bucket, NW_GROUP_EXPERT, &of_experts, &unused));
        messages->forward_gather_ns += of_experts;
        return cost_ns(at, "all_gather", fmin(bucket, dense) * e, NW_GROUP_SHARD,
                       &messages->forward_first_ns);
    }
    take_elements(at, true);
    messages->weight_copy_ns = weight_copies(at, wire);
    NW_TRY(units_ns(at, "all_gather", strategy->quantised ? fmin(wire, 1) : wire, piece,
                    strategy->quantised ? NW_GROUP_DP : NW_GROUP_SHARD,
                    &messages->forward_gather_ns, &messages->forward_first_ns, &unused));
    return units_ns(at, "all_gather", wire, piece, NW_GROUP_SHARD, &messages->backward_gather_ns,
                    &unused, &messages->backward_first_ns);
}

nw_rc nw_quick_messages_make(const struct nw_cut *cut, const struct nw_job *job,
                             const struct nw_layout *layout, const struct nw_stage_counts *counts,
                             struct nw_prices *prices, struct nw_quick_messages *messages_out)
{
    const double shared = (double)nw_transformer_shared_embedding(&job->net);
    struct nw_quick_messages messages = {0};
    struct at at = {.cut = cut,
                    .job = job,
                    .layout = layout,
                    .prices = prices,
                    .counts = counts->units[counts->most]};

    NW_TRY(fill_reduction(&at, &messages));
    NW_TRY(fill_gathers(&at, &messages));
    if (shared > 0 && nw_layout_pp(layout) > 1 && job->lora.rank == 0)
        NW_TRY(cost_ns(&at, "all_reduce", shared * nw_job_reduce_bytes(job) / nw_layout_tp(layout),
                       NW_GROUP_PP, &messages.tied_ns));
    *messages_out = messages;
    return NW_OK;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Activations of one sequence to the next stage: a straight line through two sizes; boundaries
 * within a node and between two (step_pipeline.c lays them so). */
static nw_rc fill_hops(const struct nw_cut *cut, const struct nw_job *job, struct nw_prices *prices,
                       struct nw_placement *placement)
{
    const struct nw_layout *layout = &placement->layout;
    const int stride = nw_layout_tp(layout) * nw_layout_reduce_count(layout);
    const int per_node = layout->rank_count / (layout->node_count > 1 ? layout->node_count : 1);
    const double bytes = cut->build.tokens * (double)job->net.hidden *
                         job->precision->element_bytes /
                         (layout->parallel.sequence_parallel ? nw_layout_tp(layout) : 1);
    double line[2][2] = {{0}}; /* near, far: of no sequence, per sequence */
    int far = 0;

    if (placement->pp < 2)
        return NW_OK;
    for (int s = 0; s + 1 < placement->pp; s++)
        far += s * stride / per_node != (s + 1) * stride / per_node;
    for (int i = 0; i < 2; i++) {
        const struct nw_group pair = {2, i + 1, stride < per_node ? stride : per_node, i + 1};
        double one, eight;

        if (i == 0 ? far == placement->pp - 1 : far == 0)
            continue;
        NW_TRY(nw_price_ns(prices, "sendrecv", bytes, pair, &one));
        NW_TRY(nw_price_ns(prices, "sendrecv", 8 * bytes, pair, &eight));
        line[i][1] = (eight - one) / 7;
        line[i][0] = one - line[i][1];
    }
    const double share = (double)far / (placement->pp - 1);

    placement->hop_ns = (1 - share) * line[0][0] + share * line[1][0];
    placement->hop_ns_per_sequence = (1 - share) * line[0][1] + share * line[1][1];
    placement->far_ns = line[far > 0][0];
    placement->far_ns_per_sequence = line[far > 0][1];
    /* A stage that has a node of its own has two boundaries between nodes. */
    const int other = far > 0 && (stride >= per_node || far == placement->pp - 1);

    placement->pair_ns = placement->far_ns + line[other][0];
    placement->pair_ns_per_sequence = placement->far_ns_per_sequence + line[other][1];
    return NW_OK;
}

double nw_search_loss(const struct nw_build *build, nw_overlap mode)
{
    if (mode == NW_OVERLAP_SERIAL)
        return 0;
    if (isfinite(build->scenario->overlap_loss))
        return build->scenario->overlap_loss;
    return nw_assumption(build->platform, mode == NW_OVERLAP_FUSED ? NW_CONSTANT_FUSED_LOSS
                                                                   : NW_CONSTANT_OVERLAP_LOSS);
}

nw_rc nw_placement_make(const struct nw_cut *cut, const struct nw_job *job,
                        const struct nw_layout *layout, struct nw_prices *prices,
                        struct nw_placement *placement_out)
{
    const struct nw_platform *platform = cut->build.platform;
    const struct nw_update update = nw_update_of(job, layout, platform);
    const struct nw_strategy *strategy = layout->strategy;
    const struct nw_profile *profile = layout->profile;
    const int pp = nw_layout_pp(layout);
    struct nw_placement placement = {
        .layout = *layout,
        .pp = pp,
        .virtual_stages = 1,
        .gather_loss = nw_search_loss(&cut->build, profile->weights),
        .reduce_loss = nw_search_loss(&cut->build, profile->gradients),
        .hop_loss = nw_search_loss(&cut->build, NW_OVERLAP_STREAM),
        .gathers_serial = profile->weights == NW_OVERLAP_SERIAL,
        .reduces_serial = profile->gradients == NW_OVERLAP_SERIAL,
        .gathers_updated = strategy->gathers == NW_GATHERS_UPDATED,
        .gathers_twice = strategy->gathers == NW_GATHERS_UNITS && pp == 1,
        .reduces_each = strategy->reduces == NW_REDUCES_EACH && pp == 1 &&
                        (!profile->reduces_last || layout->parallel.reduce_each),
        .jitter = 1 + nw_assumption(platform, NW_CONSTANT_JITTER) * log2(layout->node_count),
    };

    NW_TRY(fill_hops(cut, job, prices, &placement));
    placement.update_ns = job->offload.optimizer == NW_OFFLOAD_NONE ? update.gpu_ns : update.cpu_ns;
    placement.update_ns = isfinite(placement.update_ns) ? placement.update_ns : 0;
    placement.down_ns = isfinite(update.down_ns) ? update.down_ns : 0;
    placement.up_ns = isfinite(update.up_ns) ? update.up_ns : 0;
    *placement_out = placement;
    return NW_OK;
}

void nw_placement_take(const struct nw_cut *cut, const struct nw_job *job,
                       const struct nw_stage_counts *counts,
                       const struct nw_quick_messages *messages, struct nw_placement *placement)
{
    struct nw_memory_task task = cut->task;

    placement->layout.parallel.virtual_stages = counts->virtual_stages;
    placement->virtual_stages = counts->virtual_stages;
    placement->counts = counts;
    placement->messages = *messages;
    task.job = job;
    task.layout = &placement->layout;
    task.pp = placement->pp;
    for (int s = 0; s < counts->stage_count; s++) {
        const struct nw_stage_share share = nw_memory_stage(&task, counts->at[s]);
        const struct nw_stage_parameters own = nw_memory_parameters(&task, &share);
        const struct nw_states states = nw_memory_states(&task, &own);

        placement->fixed_bytes[s] = states.weights + states.optimizer;
        placement->gradient_bytes[s] = states.gradients;
    }
}
