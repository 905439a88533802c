/* Gradients that are summed over the data-parallel ranks: in buckets behind the backward pass
 * (Li et al. 2020, PyTorch Distributed, section 3.2), or unit by unit (FSDP). */
#include "model/step_build.h"

#include <math.h>

/* DDP accumulates locally (no_sync), ZeRO-1 too; ZeRO-2 and beyond hold no whole gradient and
 * reduce in every micro-batch, where the framework does not keep it for the last one. */
bool nw_reduces(const struct nw_build *build, unsigned role)
{
    const nw_reduces_when when = build->strategy->reduces;

    if (when == NW_REDUCES_NEVER || nw_layout_reduce_count(&build->layout) < 2)
        return false;
    if (when == NW_REDUCES_EACH && build->stage_count == 1 &&
        (!build->profile->reduces_last || build->layout.parallel.reduce_each))
        return true;
    return (role & NW_ROLE_LAST) != 0;
}

/* `elements` summed: where they are cut, each rank's share; between the copies of a hybrid, the
 * share again. ZeRO++ qgZ: 4 bit, all-to-all within the node, then between nodes (Wang et al. 2023,
 * section 3.3). */
static void put_reduction(struct nw_build *build, int stage, double elements, bool experts,
                          double count, int32_t after)
{
    const struct nw_strategy *strategy = build->strategy;
    struct nw_stage *at = &build->stages[stage];
    const double shards = nw_layout_group(&build->layout, NW_GROUP_SHARD).rank_count;
    const double bytes = strategy->quantised ? 0.5 : nw_job_reduce_bytes(build->job);
    const bool cut = strategy->gradients_sharded ||
                     (strategy->optimizer_sharded && !nw_broadcasts_updated(build));
    struct nw_message message = {
        .collective = strategy->quantised ? "alltoall"
                      : cut               ? "reduce_scatter"
                                          : "all_reduce",
        .bytes = elements * bytes,
        .times = 1,
        .group = experts ? NW_GROUP_EXPERT
                 : cut   ? NW_GROUP_SHARD
                         : NW_GROUP_DP,
        .stream =
            strategy->gathers == NW_GATHERS_UNITS || strategy->gathers == NW_GATHERS_UNITS_ONCE
                ? NW_STREAM_WEIGHTS
                : NW_STREAM_GRADIENTS,
    };
    const int32_t sum = nw_put_message(build, stage, &message, count, after);

    if (sum > 0)
        at->reduced = sum;
    if (!cut || experts)
        return;
    message.collective = strategy->quantised ? "alltoall" : "all_reduce";
    message.bytes = elements * bytes / shards;
    message.group = NW_GROUP_REPLICA;
    message.stream = NW_STREAM_GRADIENTS;
    const int32_t replica = nw_put_message(build, stage, &message, count, sum > 0 ? sum : after);

    if (replica > 0)
        at->reduced_replica = replica;
}

/* ---- buckets ------------------------------------------------------------------------------- */

static double bucket_bytes(const struct nw_build *build, bool first)
{
    const struct nw_profile *profile = build->profile;
    const double ranks = nw_layout_group(&build->layout, NW_GROUP_SHARD).rank_count;

    if ((!build->strategy->optimizer_sharded && !build->strategy->gradients_sharded) ||
        nw_broadcasts_updated(build)) {
        const double bytes = first ? profile->ddp_first_bucket_bytes : profile->ddp_bucket_bytes;

        return bytes > 0 ? bytes : INFINITY;
    }
    if (!(profile->reduce_bucket_elements > 0))
        return INFINITY;
    return fmax(profile->reduce_bucket_elements, profile->bucket_elements_per_rank * ranks) *
           nw_job_reduce_bytes(build->job);
}

static void close_bucket(struct nw_build *build, int stage, double count, int32_t after)
{
    struct nw_bucket *bucket = &build->stages[stage].bucket;
    const double elements = bucket->held_bytes / nw_job_reduce_bytes(build->job);

    bucket->held_bytes = 0;
    bucket->limit_bytes = bucket_bytes(build, false);
    put_reduction(build, stage, elements, false, count, after);
}

/* The time of a unit is dealt out to its tensors by elements, as its products are; a bucket leaves
 * as soon as it is full. */
static void fill_bucket(struct nw_build *build, int stage, nw_unit_kind kind, int index,
                        double count)
{
    const struct nw_unit *unit = &build->units[kind];
    struct nw_stage *at = &build->stages[stage];
    const bool plain = unit->backward[0].collective == NULL && unit->backward[1].collective == NULL;
    double done = 0, sent = 0;

    if (plain)
        nw_put_activations(build, stage, kind, 1, true, count);
    else
        nw_put_units(build, stage, kind, index, 1, true, count);
    if (at->bucket.limit_bytes == 0)
        at->bucket.limit_bytes = bucket_bytes(build, true);
    const double dense = unit->trained_elements - unit->trained_experts;
    const double scale = dense > 0 ? dense / unit->trained_elements : 0;

    for (size_t i = unit->tensors.count; i-- > 0;) {
        done += (double)unit->tensors.elements[i];
        at->bucket.held_bytes +=
            (double)unit->tensors.elements[i] * scale * nw_job_reduce_bytes(build->job);
        if (!(at->bucket.held_bytes >= at->bucket.limit_bytes))
            continue;
        if (plain && unit->backward_ns > 0)
            nw_put_compute(build, stage, NW_EVENT_BACKWARD, index, 1,
                           unit->backward_ns * (done - sent) / unit->trained_elements, count);
        sent = done;
        close_bucket(build, stage, count, at->computed);
    }
    if (plain)
        nw_put_compute(build, stage, NW_EVENT_BACKWARD, index, 1,
                       unit->trained_elements > 0
                           ? unit->backward_ns * fmax(1 - sent / unit->trained_elements, 0)
                           : unit->backward_ns,
                       count);
    if (unit->trained_experts > 0)
        put_reduction(build, stage, unit->trained_experts, true, count, at->computed);
}

void nw_put_backward_unit(struct nw_build *build, int stage, nw_unit_kind kind, int index,
                          bool reduces, double count)
{
    const struct nw_unit *unit = &build->units[kind];
    struct nw_stage *at = &build->stages[stage];

    if (reduces && !build->strategy->reduces_units) {
        fill_bucket(build, stage, kind, index, count);
        return;
    }
    nw_put_units(build, stage, kind, index, 1, true, count);
    if (!reduces)
        return;
    put_reduction(build, stage, unit->trained_elements - unit->trained_experts, false, count,
                  at->computed);
    put_reduction(build, stage, unit->trained_experts, true, count, at->computed);
}

/* The last bucket leaves with the pass. Without a pipeline, the next pass waits for all: an event
 * of no length, so that the wait counts as often as the pass. */
void nw_finish_reduction(struct nw_build *build, int stage, double count)
{
    struct nw_stage *at = &build->stages[stage];

    if (!build->strategy->reduces_units && at->bucket.held_bytes > 0)
        close_bucket(build, stage, count, at->computed);
    if (build->stage_count > 1)
        return;
    at->bucket.limit_bytes = 0;
    nw_stage_waits(at, at->reduced);
    nw_stage_waits(at, at->reduced_replica);
    nw_put_compute(build, stage, NW_EVENT_BACKWARD, 0, 0, 0, count);
}
