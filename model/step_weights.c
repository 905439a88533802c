/* Weights that a rank does not hold: gathered unit by unit in the passes (ZeRO-3, FSDP), or all
 * after the update (ZeRO-1, ZeRO-2, distributed optimizer).
 *
 * Volume of unit-wise gathers: Ψ forward and Ψ again backward (Rajbhandari et al. 2020, section
 * 7.2), each one unit ahead of the computation (Zhao et al. 2023, PyTorch FSDP, section 3.3). */
#include "model/step_build.h"

#include <math.h>

/* A pipeline keeps what it gathered for all micro-batches of the step (torchtitan: no reshard after
 * forward with PP). */
static bool gathers_in(const struct nw_build *build, unsigned role, bool backward)
{
    const nw_gathers gathers = build->strategy->gathers;

    if (gathers != NW_GATHERS_UNITS && gathers != NW_GATHERS_UNITS_ONCE)
        return false;
    if (build->stage_count > 1)
        return !backward && (role & NW_ROLE_FIRST) != 0;
    return !backward || gathers == NW_GATHERS_UNITS;
}

/* In pieces no larger than the framework's prefetch bucket. */
static int32_t put_pieces(struct nw_build *build, int stage, double elements, double element_bytes,
                          nw_group_kind group, double count, int32_t after)
{
    const double limit =
        build->profile->prefetch_elements > 0 ? build->profile->prefetch_elements : INFINITY;
    const double whole = isfinite(limit) ? floor(elements / limit) : 0;
    const double rest = isfinite(limit) ? elements - whole * limit : elements;
    struct nw_message message = {.collective = "all_gather",
                                 .bytes = isfinite(limit) ? limit * element_bytes : 0,
                                 .times = whole,
                                 .group = group,
                                 .stream = NW_STREAM_WEIGHTS};
    const int32_t first = nw_put_message(build, stage, &message, count, after);

    message.bytes = rest * element_bytes;
    message.times = 1;
    const int32_t last = nw_put_message(build, stage, &message, count, after);

    return last > 0 ? last : first;
}

static int32_t put_gather(struct nw_build *build, int stage, nw_unit_kind kind, bool backward,
                          double count, int32_t after)
{
    const struct nw_unit *unit = &build->units[kind];
    const struct nw_strategy *strategy = build->strategy;
    const double dense = unit->gathered_elements - unit->expert_elements;
    double bytes = nw_job_base_bytes(build->job);
    nw_group_kind group = NW_GROUP_SHARD;

    if (build->job->offload.parameters != NW_OFFLOAD_NONE) {
        const double host = build->platform->host_to_device_bytes_per_s;
        const double rate = build->job->offload.parameters == NW_OFFLOAD_NVME
                                ? fmin(host, build->platform->nvme_bytes_per_s)
                                : host;
        const double share =
            unit->gathered_elements * bytes / nw_layout_state_count(&build->layout);
        const int32_t copy =
            nw_put_copy(build, stage, rate > 0 ? share / rate * 1e9 : 0, count, after);

        after = copy > 0 ? copy : after;
    }
    /* ZeRO++ qwZ: 8 bit, from all; backward hpZ: within the node (Wang et al. 2023, section 3). */
    if (strategy->quantised && !backward) {
        bytes = fmin(bytes, 1);
        group = NW_GROUP_DP;
    }
    const int32_t experts =
        put_pieces(build, stage, unit->expert_elements, bytes, NW_GROUP_EXPERT, count, after);
    const int32_t last = put_pieces(build, stage, dense, bytes, group, count, after);

    return last > 0 ? last : experts;
}

/* ---- forward ------------------------------------------------------------------------------- */

static int unit_index(const struct nw_chunk *chunk, int i)
{
    return chunk->first[0] + i + (chunk->embedding ? 0 : 1);
}

/* Units whose activations are copied go one by one: each copy leaves behind its own layer and is
 * back before it. */
static void put_run(struct nw_build *build, int stage, const struct nw_chunk *chunk, bool backward,
                    double count)
{
    const bool single = build->job->offload.activations != NW_OFFLOAD_NONE;
    const int length = nw_chunk_length(chunk);

    for (int at = 0, n; at < length; at += n) {
        const int first = backward ? length - 1 - at : at;
        const nw_unit_kind kind = nw_chunk_unit(chunk, first);

        n = 1;
        while (!single && at + n < length &&
               nw_chunk_unit(chunk, backward ? first - n : first + n) == kind)
            n++;
        nw_put_units(build, stage, kind, unit_index(chunk, backward ? first - n + 1 : first), n,
                     backward, count);
    }
}

/* Gathers of the updated weights, bucket by bucket in the order of the forward pass, which starts
 * as they arrive (Megatron-Core overlap_param_gather). */
static bool gathers_updated(const struct nw_build *build, unsigned role)
{
    return build->strategy->gathers == NW_GATHERS_UPDATED && (role & NW_ROLE_FIRST) != 0 &&
           build->profile->weights != NW_OVERLAP_SERIAL && !nw_broadcasts_updated(build);
}

static struct nw_message updated_message(const struct nw_build *build, double elements,
                                         nw_group_kind group)
{
    return (struct nw_message){.collective = "all_gather",
                               .bytes = elements * build->job->precision->element_bytes,
                               .times = 1,
                               .group = group,
                               .stream = NW_STREAM_WEIGHTS};
}

struct elements { /* experts: over the ranks that hold the same ones */
    double dense, experts;
};

static void add_updated(const struct nw_build *build, nw_unit_kind kind, struct elements *elements)
{
    const struct nw_unit *unit = &build->units[kind];

    elements->dense += unit->trained_elements - unit->trained_experts;
    elements->experts += unit->trained_experts;
}

static void put_forward_of_updated(struct nw_build *build, int stage, const struct nw_chunk *chunk,
                                   double count)
{
    struct nw_stage *at = &build->stages[stage];
    const int length = nw_chunk_length(chunk);
    const double limit = nw_gather_bucket(build);
    int gathered = 0; /* units whose weights are on their way */

    for (int i = 0; i < length; i++) {
        if (i == gathered) {
            struct elements held = {0};

            while (gathered < length &&
                   (held.dense + held.experts == 0 || held.dense + held.experts < limit))
                add_updated(build, nw_chunk_unit(chunk, gathered++), &held);
            const struct nw_message dense = updated_message(build, held.dense, NW_GROUP_SHARD);
            const struct nw_message experts = updated_message(build, held.experts, NW_GROUP_EXPERT);

            nw_stage_waits(at, nw_put_message(build, stage, &experts, count, 0));
            nw_stage_waits(at, nw_put_message(build, stage, &dense, count, 0));
        }
        nw_put_units(build, stage, nw_chunk_unit(chunk, i), unit_index(chunk, i), 1, false, count);
    }
}

void nw_put_forward(struct nw_build *build, int stage, const struct nw_chunk *chunk, unsigned role,
                    double count)
{
    struct nw_stage *at = &build->stages[stage];
    const int length = nw_chunk_length(chunk);

    if (!gathers_in(build, role, false)) {
        if (gathers_updated(build, role))
            put_forward_of_updated(build, stage, chunk, count);
        else
            put_run(build, stage, chunk, false, count);
        return;
    }
    int32_t here = put_gather(build, stage, nw_chunk_unit(chunk, 0), false, count, at->computed),
            next = 0;

    for (int i = 0; i < length; i++) {
        if (i + 1 < length) /* while this one computes: not before the last one has */
            next =
                put_gather(build, stage, nw_chunk_unit(chunk, i + 1), false, count, at->computed);
        nw_stage_waits(at, here);
        nw_put_units(build, stage, nw_chunk_unit(chunk, i), unit_index(chunk, i), 1, false, count);
        here = next;
    }
}

/* ---- backward ------------------------------------------------------------------------------ */

void nw_put_backward(struct nw_build *build, int stage, const struct nw_chunk *chunk, unsigned role,
                     double count)
{
    struct nw_stage *at = &build->stages[stage];
    const bool gathers = gathers_in(build, role, true), reduces = nw_reduces(build, role);
    const int length = nw_chunk_length(chunk);
    int32_t here = 0, next = 0;

    at->before_last = at->computed;
    if (!gathers && !reduces) {
        put_run(build, stage, chunk, true, count);
        return;
    }
    if (gathers)
        here =
            put_gather(build, stage, nw_chunk_unit(chunk, length - 1), true, count, at->computed);
    for (int i = length; i-- > 0;) {
        const nw_unit_kind kind = nw_chunk_unit(chunk, i);

        if (gathers && i > 0)
            next = put_gather(build, stage, nw_chunk_unit(chunk, i - 1), true, count, at->computed);
        nw_stage_waits(at, here);
        nw_put_backward_unit(build, stage, kind, unit_index(chunk, i), reduces, count);
        here = next;
    }
    if (reduces)
        nw_finish_reduction(build, stage, count);
}

/* ---- after the update ---------------------------------------------------------------------- */

double nw_gather_bucket(const struct nw_build *build)
{
    const double elements = build->profile->gather_bucket_elements;
    const double per_rank = build->profile->bucket_elements_per_rank *
                            nw_layout_group(&build->layout, NW_GROUP_SHARD).rank_count;

    return elements > 0 ? fmax(elements, per_rank) : INFINITY;
}

bool nw_broadcasts_updated(const struct nw_build *build)
{
    return build->profile->broadcasts_updated && build->strategy->wraps_ddp;
}

/* Each rank's share to the others, rank after rank (torch.distributed.optim
 * ZeroRedundancyOptimizer, _sync_params). */
static void put_broadcasts(struct nw_build *build, int stage, double elements, nw_group_kind group,
                           int32_t after)
{
    const double shares = nw_layout_group(&build->layout, group).rank_count;
    struct nw_message message = updated_message(build, elements / shares, group);

    message.collective = "broadcast";
    message.times = shares;
    nw_put_message(build, stage, &message, 1, after);
}

/* In buckets, and what is left over. */
static void put_updated(struct nw_build *build, int stage, double elements, nw_group_kind group,
                        int32_t after)
{
    const double limit = nw_gather_bucket(build);
    const double whole = isfinite(limit) ? floor(elements / limit) : 0;

    if (nw_broadcasts_updated(build)) {
        put_broadcasts(build, stage, elements, group, after);
        return;
    }
    struct nw_message message = updated_message(build, isfinite(limit) ? limit : 0, group);

    message.times = whole;
    nw_put_message(build, stage, &message, 1, after);
    message = updated_message(build, whole > 0 ? elements - whole * limit : elements, group);
    nw_put_message(build, stage, &message, 1, after);
}

void nw_put_updated_weights(struct nw_build *build, int stage, int32_t after)
{
    struct elements elements = {0};

    if (build->strategy->gathers != NW_GATHERS_UPDATED ||
        (build->profile->weights != NW_OVERLAP_SERIAL && !nw_broadcasts_updated(build)))
        return;
    for (int c = 0; c < build->virtual_stages; c++) {
        const struct nw_chunk chunk = nw_build_chunk(build, build->first_stage + stage, c);
        const int length = nw_chunk_length(&chunk);

        for (int i = 0; i < length; i++)
            add_updated(build, nw_chunk_unit(&chunk, i), &elements);
    }
    put_updated(build, stage, elements.experts, NW_GROUP_EXPERT, after);
    put_updated(build, stage, elements.dense, NW_GROUP_SHARD, after);
}
