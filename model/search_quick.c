/* The closed form of one step and a lower bound of its memory. Left out beside the event
 * simulation: that buckets fill tensor by tensor, waits between stages that differ, experts' own
 * groups. */
#include <math.h>
#include <string.h>

#include "model/search_parts.h"

/* ---- one micro-batch in one unit ------------------------------------------------------------ */

static double constant(const struct nw_platform *platform, nw_constant key)
{
    const double *values = platform->assumptions.value;

    return values[NW_CONSTANT_HBM_SHARE] > 0 ? values[key] : nw_constants[key].value;
}

static double loss_of(const struct nw_platform *platform, const struct nw_scenario *scenario,
                      nw_overlap mode)
{
    if (isfinite(scenario->overlap_loss))
        return scenario->overlap_loss;
    return constant(platform,
                    mode == NW_OVERLAP_FUSED ? NW_CONSTANT_FUSED_LOSS : NW_CONSTANT_OVERLAP_LOSS);
}

/* What a message of `ns` adds to computation of `cover_ns` that it may hide behind. */
static double added(double ns, double cover_ns, double loss)
{
    const double hidden = fmin(ns, cover_ns);

    return ns - hidden + loss * hidden;
}

static nw_rc price(const struct nw_model *model, const struct nw_platform *platform,
                   const struct nw_layout *layout, const struct nw_message *list, nw_stream stream,
                   double *ns_out)
{
    *ns_out = 0;
    for (int i = 0; i < NW_MESSAGES_MAX && list[i].collective != NULL; i++) {
        struct nw_cost cost;

        if (list[i].stream != stream)
            continue;
        NW_TRY(nw_fabric_cost(&platform->fabric, list[i].collective, list[i].bytes,
                              nw_layout_group(layout, list[i].group), &model->scenario, &cost));
        *ns_out += cost.time_ns * list[i].times;
    }
    return NW_OK;
}

static nw_rc unit_ns(const struct nw_build *build, const struct nw_model *model,
                     const struct nw_message *list, double compute_ns, double attention_ns,
                     double *ns_out)
{
    const nw_overlap mode = build->profile->tensor;
    double tensor, ring;

    NW_TRY(price(model, build->platform, &build->layout, list, NW_STREAM_TENSOR, &tensor));
    NW_TRY(price(model, build->platform, &build->layout, list, NW_STREAM_CONTEXT, &ring));
    *ns_out =
        compute_ns +
        (mode == NW_OVERLAP_SERIAL
             ? tensor
             : added(tensor, compute_ns, loss_of(build->platform, &model->scenario, mode))) +
        added(ring, attention_ns, loss_of(build->platform, &model->scenario, NW_OVERLAP_STREAM));
    return NW_OK;
}

static nw_rc fill_times(const struct nw_build *build, const struct nw_model *model,
                        struct nw_quick_shape *shape)
{
    for (int k = 0; k < NW_UNIT_KINDS; k++) {
        const struct nw_unit *unit = &build->units[k];

        NW_TRY(unit_ns(build, model, unit->forward, unit->forward_ns, unit->attention_forward_ns,
                       &shape->forward_ns[k]));
        NW_TRY(unit_ns(build, model, unit->backward, unit->backward_ns, unit->attention_backward_ns,
                       &shape->backward_ns[k]));
    }
    return NW_OK;
}

nw_rc nw_quick_shape_make(const struct nw_model *model, const struct nw_platform *platform,
                          const struct nw_job *job, const struct nw_layout *layout,
                          uint64_t micro_batch, struct nw_quick_shape *shape_out)
{
    struct nw_quick_shape shape = {.made = true, .micro_batch = (double)micro_batch};
    struct nw_memory_task task = nw_memory_task_of(job, layout, micro_batch, 1);
    struct nw_build build;

    NW_TRY(nw_build_init(job, platform, layout, micro_batch, 1, &model->scenario, &build));
    const nw_rc rc = fill_times(&build, model, &shape);

    nw_build_free(&build);
    NW_TRY(rc);
    for (int kind = 0; kind < NW_LAYER_KINDS; kind++)
        if (nw_transformer_layer_count(&job->net, kind) > 0 &&
            job->offload.activations == NW_OFFLOAD_NONE)
            shape.stored_bytes[kind] = nw_memory_layer(&task, kind).stored;
    *shape_out = shape;
    return NW_OK;
}

/* ---- one placement --------------------------------------------------------------------------- */

struct messages {
    const struct nw_build *build;
    struct nw_placement *placement;
    double elements[NW_UNIT_KINDS]; /* trained, of the stage that has most */
    double counts[NW_UNIT_KINDS];
};

static nw_rc cost_ns(const struct messages *at, const char *collective, double bytes,
                     nw_group_kind kind, double *ns_out)
{
    struct nw_cost cost;

    NW_TRY(nw_fabric_cost(&at->build->platform->fabric, collective, bytes,
                          nw_layout_group(&at->build->layout, kind), at->build->scenario, &cost));
    *ns_out = cost.time_ns;
    return NW_OK;
}

static double all_elements(const struct messages *at)
{
    double all = 0;

    for (int k = 0; k < NW_UNIT_KINDS; k++)
        all += at->counts[k] * at->elements[k];
    return all;
}

/* `bytes_each` an element, in buckets or unit by unit. */
static nw_rc whole_ns(const struct messages *at, const char *collective, double bytes_each,
                      double bucket_elements, bool by_unit, nw_group_kind kind, double *ns_out,
                      double *one_out)
{
    const double all = all_elements(at);
    double one = 0;

    *ns_out = *one_out = 0;
    if (!by_unit) {
        const double bucket = fmin(bucket_elements > 0 ? bucket_elements : INFINITY, all);

        if (!(bucket > 0))
            return NW_OK;
        NW_TRY(cost_ns(at, collective, bucket * bytes_each, kind, one_out));
        *ns_out = *one_out * all / bucket;
        return NW_OK;
    }
    for (int k = 0; k < NW_UNIT_KINDS; k++) {
        if (!(at->counts[k] * at->elements[k] > 0))
            continue;
        NW_TRY(cost_ns(at, collective, at->elements[k] * bytes_each, kind, &one));
        *ns_out += at->counts[k] * one;
        *one_out = fmax(*one_out, one);
    }
    return NW_OK;
}

static nw_rc fill_reduction(const struct messages *at)
{
    const struct nw_strategy *strategy = at->placement->strategy;
    const struct nw_profile *profile = at->placement->profile;
    const struct nw_job *job = at->build->job;
    const double wire = strategy->quantised     ? 0.5
                        : job->reduce_bytes > 0 ? job->reduce_bytes
                                                : job->gradient_bytes;
    const bool cut = strategy->gradients_sharded || strategy->optimizer_sharded;
    const double shards = nw_layout_shard_count(&at->build->layout);
    const double bucket =
        cut ? fmax(profile->reduce_bucket_elements, profile->bucket_elements_per_rank * shards)
            : profile->ddp_bucket_bytes / wire;

    if (strategy->reduces == NW_REDUCES_NEVER || nw_layout_reduce_count(&at->build->layout) < 2)
        return NW_OK;
    NW_TRY(whole_ns(at,
                    strategy->quantised ? "alltoall"
                    : cut               ? "reduce_scatter"
                                        : "all_reduce",
                    wire, bucket, strategy->reduces_units, cut ? NW_GROUP_SHARD : NW_GROUP_DP,
                    &at->placement->reduce_ns, &at->placement->reduce_tail_ns));
    if (!cut || nw_layout_group(&at->build->layout, NW_GROUP_REPLICA).rank_count < 2)
        return NW_OK;
    return cost_ns(at, strategy->quantised ? "alltoall" : "all_reduce",
                   all_elements(at) * wire / shards, NW_GROUP_REPLICA, &at->placement->replica_ns);
}

static nw_rc fill_gathers(const struct messages *at)
{
    const struct nw_strategy *strategy = at->placement->strategy;
    const struct nw_job *job = at->build->job;
    const bool by_unit =
        strategy->gathers == NW_GATHERS_UNITS || strategy->gathers == NW_GATHERS_UNITS_ONCE;
    const double wire = job->precision->element_bytes;

    if (strategy->gathers == NW_GATHERS_NEVER || nw_layout_shard_count(&at->build->layout) < 2)
        return NW_OK;
    return whole_ns(at, "all_gather", wire, nw_gather_bucket(at->build), by_unit, NW_GROUP_SHARD,
                    &at->placement->gather_ns, &at->placement->gather_first_ns);
}

static void fill_stages(const struct nw_build *build, const struct nw_job *job,
                        struct nw_placement *placement)
{
    const int wanted[NW_ENDS] = {0, 1, placement->pp - 1};
    const struct nw_memory_task task = nw_memory_task_of(job, &placement->layout, 1, 1);

    for (int i = 0; i < NW_ENDS; i++) {
        const int s = placement->stage_count;

        if (wanted[i] >= placement->pp || (s > 0 && placement->at[s - 1] == wanted[i]))
            continue;
        const struct nw_stage_share share = nw_memory_stage(&task, wanted[i]);
        const struct nw_stage_parameters own = nw_memory_parameters(&task, &share);
        const struct nw_states states = nw_memory_states(&task, &own);

        placement->at[s] = wanted[i];
        placement->fixed_bytes[s] = states.weights + states.optimizer;
        placement->gradient_bytes[s] = states.gradients;
        for (int c = 0; c < placement->virtual_stages; c++) {
            const struct nw_chunk chunk = nw_build_chunk(build, wanted[i], c);

            placement->counts[s][NW_UNIT_EMBEDDING] += chunk.embedding;
            placement->counts[s][NW_UNIT_PLAIN] += chunk.count[NW_LAYER_PLAIN];
            placement->counts[s][NW_UNIT_EXPERTS] += chunk.count[NW_LAYER_EXPERTS];
            placement->counts[s][NW_UNIT_HEAD] += chunk.head;
        }
        placement->stage_count++;
    }
}

static double elements_of(const struct nw_build *build, const double counts[NW_UNIT_KINDS])
{
    double all = 0;

    for (int k = 0; k < NW_UNIT_KINDS; k++)
        all += counts[k] * build->units[k].trained_elements;
    return all;
}

static nw_rc fill_messages(const struct nw_build *build, struct nw_placement *placement)
{
    struct messages at = {.build = build, .placement = placement};
    int most = 0;

    for (int s = 1; s < placement->stage_count; s++)
        if (elements_of(build, placement->counts[s]) > elements_of(build, placement->counts[most]))
            most = s;
    memcpy(at.counts, placement->counts[most], sizeof at.counts);
    for (int k = 0; k < NW_UNIT_KINDS; k++)
        at.elements[k] = build->units[k].trained_elements;
    NW_TRY(fill_reduction(&at));
    for (int k = 0; k < NW_UNIT_KINDS; k++)
        at.elements[k] = build->units[k].gathered_elements;
    return fill_gathers(&at);
}

/* Activations of one sequence to the next stage; a straight line through two sizes. */
static nw_rc fill_hops(const struct nw_build *build, struct nw_placement *placement)
{
    const struct nw_job *job = build->job;
    const double cut = build->layout.parallel.sequence_parallel ? nw_layout_tp(&build->layout) : 1;
    const double bytes =
        build->tokens * (double)job->net.hidden * job->precision->element_bytes / cut;
    const struct messages at = {.build = build, .placement = placement};
    double one, eight;

    if (placement->pp < 2)
        return NW_OK;
    NW_TRY(cost_ns(&at, "sendrecv", bytes, NW_GROUP_PP, &one));
    NW_TRY(cost_ns(&at, "sendrecv", 8 * bytes, NW_GROUP_PP, &eight));
    placement->hop_ns_per_sequence = (eight - one) / 7;
    placement->hop_ns = one - placement->hop_ns_per_sequence;
    return NW_OK;
}

/* The same units in another pipeline. */
static void take_pipeline(const struct nw_job *job, const struct nw_layout *layout,
                          struct nw_build *build)
{
    build->job = job;
    build->layout = *layout;
    build->strategy = layout->strategy;
    build->profile = layout->profile;
    build->stage_count = nw_layout_pp(layout);
    build->virtual_stages = build->stage_count > 1 ? nw_layout_virtual_stages(layout) : 1;
    build->stages = NULL;
    if (!job->net.tied || build->stage_count == 1)
        return;
    const double copy = (double)job->net.vocab * (double)job->net.hidden / nw_layout_tp(layout);

    build->units[NW_UNIT_HEAD].gathered_elements += copy;
    build->units[NW_UNIT_HEAD].trained_elements += job->lora.rank > 0 ? 0 : copy;
}

nw_rc nw_placement_make(const struct nw_build *cut, const struct nw_job *job,
                        const struct nw_layout *layout, struct nw_placement *placement_out)
{
    const struct nw_platform *platform = cut->platform;
    const struct nw_update update = nw_update_of(job, layout, platform);
    struct nw_placement placement = {
        .layout = *layout,
        .strategy = layout->strategy,
        .profile = layout->profile,
        .pp = nw_layout_pp(layout),
        .virtual_stages = nw_layout_pp(layout) > 1 ? nw_layout_virtual_stages(layout) : 1,
        .stream_loss = loss_of(platform, cut->scenario, NW_OVERLAP_STREAM),
        .fused_loss = loss_of(platform, cut->scenario, NW_OVERLAP_FUSED),
        .jitter = 1 + constant(platform, NW_CONSTANT_JITTER) * log2(layout->node_count),
    };
    struct nw_build build = *cut;

    take_pipeline(job, layout, &build);
    fill_stages(&build, job, &placement);
    NW_TRY(fill_messages(&build, &placement));
    NW_TRY(fill_hops(&build, &placement));
    placement.update_ns = job->offload.optimizer == NW_OFFLOAD_NONE ? update.gpu_ns : update.cpu_ns;
    placement.update_ns = isfinite(placement.update_ns) ? placement.update_ns : 0;
    placement.copy_ns = isfinite(update.copy_ns) ? update.copy_ns : 0;
    *placement_out = placement;
    return NW_OK;
}

/* ---- the innermost loop ---------------------------------------------------------------------- */

/* The part of data-parallel communication that shows, of one step. */
static double exposed_ns(const struct nw_placement *at, double forward_ns, double backward_ns,
                         double m)
{
    const struct nw_strategy *strategy = at->strategy;
    const nw_overlap gathers = at->profile->weights, reduces = at->profile->gradients;
    const double gather_loss = gathers == NW_OVERLAP_FUSED ? at->fused_loss : at->stream_loss;
    const double reduce_loss = reduces == NW_OVERLAP_FUSED ? at->fused_loss : at->stream_loss;
    const bool once =
        strategy->reduces == NW_REDUCES_LAST || at->pp > 1 || at->profile->reduces_last;
    const double reductions = once ? 1 : m;
    double ns = 0;

    if (strategy->gathers == NW_GATHERS_UPDATED) {
        ns += gathers == NW_OVERLAP_SERIAL
                  ? at->gather_ns
                  : at->gather_first_ns +
                        added(at->gather_ns - at->gather_first_ns, forward_ns, gather_loss);
    } else if (at->gather_ns > 0) {
        const double passes = at->pp > 1 ? 1 : m;
        const bool twice = strategy->gathers == NW_GATHERS_UNITS && at->pp == 1;

        ns += passes * (gathers == NW_OVERLAP_SERIAL
                            ? at->gather_ns * (twice ? 2 : 1)
                            : at->gather_first_ns + added(at->gather_ns, forward_ns, gather_loss) +
                                  (twice ? added(at->gather_ns, backward_ns, gather_loss) : 0));
        if (twice && gathers != NW_OVERLAP_SERIAL) /* both directions share the backward pass */
            backward_ns = fmax(backward_ns - at->gather_ns, 0);
    }
    ns += reductions *
          (reduces == NW_OVERLAP_SERIAL
               ? at->reduce_ns
               : fmin(at->reduce_tail_ns, at->reduce_ns) +
                     added(fmax(at->reduce_ns - at->reduce_tail_ns, 0), backward_ns, reduce_loss));
    return ns + (reduces == NW_OVERLAP_SERIAL ? at->replica_ns
                                              : added(at->replica_ns, backward_ns, reduce_loss));
}

double nw_quick_ns(const struct nw_placement *at, const struct nw_quick_shape *shape, double m)
{
    double slowest = 0, forward = 0, backward = 0;

    for (int s = 0; s < at->stage_count; s++) {
        double f = 0, b = 0;

        for (int k = 0; k < NW_UNIT_KINDS; k++) {
            f += at->counts[s][k] * shape->forward_ns[k];
            b += at->counts[s][k] * shape->backward_ns[k];
        }
        if (f + b > slowest) {
            slowest = f + b;
            forward = f;
            backward = b;
        }
    }
    const double bubble = (double)(at->pp - 1) / at->virtual_stages * slowest;
    const double ns =
        m * slowest + bubble +
        2 * (at->pp - 1) * (at->hop_ns + at->hop_ns_per_sequence * shape->micro_batch) +
        exposed_ns(at, forward, backward, m) + at->update_ns + at->copy_ns;

    return ns * at->jitter;
}

void nw_in_flight(const struct nw_job *job, const struct nw_placement *placement,
                  double micro_batch_count, double in_flight_out[NW_ENDS])
{
    struct nw_memory_task task = nw_memory_task_of(job, &placement->layout, 1, 1);

    task.micro_batch_count = micro_batch_count;
    for (int s = 0; s < placement->stage_count; s++)
        in_flight_out[s] = nw_memory_stage(&task, placement->at[s]).in_flight;
}

double nw_quick_bytes(const struct nw_placement *at, const struct nw_quick_shape *shape,
                      const double in_flight[NW_ENDS], double micro_batch_count)
{
    double most = 0;

    for (int s = 0; s < at->stage_count; s++) {
        const double stored =
            in_flight[s] * (at->counts[s][NW_UNIT_PLAIN] * shape->stored_bytes[NW_LAYER_PLAIN] +
                            at->counts[s][NW_UNIT_EXPERTS] * shape->stored_bytes[NW_LAYER_EXPERTS]);
        const double held = micro_batch_count > 1 ? at->gradient_bytes[s] : 0;

        most = fmax(most, at->fixed_bytes[s] + fmax(stored + held, at->gradient_bytes[s]));
    }
    return most;
}
