/* The model's results as JSON: keys carry units, what is unknown is absent. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "model/breakdown.h"
#include "model/fit.h"
#include "model/json_parts.h"
#include "model/levers.h"

/* ---- where a figure comes from ------------------------------------------------------------- */

nw_rc nw_json_set_how(json_t *object, const char *key, unsigned how)
{
    static const struct {
        unsigned how;
        const char *name;
    } rows[] = {
        {NW_COST_SIZE, "size_extrapolated"},   {NW_COST_DERIVED, "derived"},
        {NW_COST_RANKS, "ranks_extrapolated"}, {NW_COST_NODES, "nodes_extrapolated"},
        {NW_COST_GIVEN, "bandwidth_given"},    {NW_COST_DATASHEET, "datasheet"},
        {NW_COST_NO_INTERVAL, "no_interval"},  {NW_COST_SIMULATED, "simulated"},
        {NW_COST_HOSTS, "hosts_guessed"},      {NW_COST_SHARED, "nics_shared"},
        {NW_COST_WIRE, "line_rate"},
    };
    json_t *list = json_array();

    NW_TRY(nw_json_set_new(object, key, list));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((how & rows[i].how) != 0 && json_array_append_new(list, json_string(rows[i].name)) != 0)
            return nw_fail(NW_ENOMEM, "JSON: no memory");
    if (how == 0 && json_array_append_new(list, json_string("measured")) != 0)
        return nw_fail(NW_ENOMEM, "JSON: no memory");
    return NW_OK;
}

/* ---- one step ------------------------------------------------------------------------------ */

const char *nw_peak_name(nw_peak_moment moment)
{
    static const char *const names[] = {
        [NW_PEAK_FORWARD_END] = "forward end",
        [NW_PEAK_BACKWARD] = "backward",
        [NW_PEAK_UPDATE] = "update",
    };

    return names[moment];
}

static nw_rc set_memory(json_t *step, const struct nw_step *from)
{
    const struct nw_memory *memory = &from->memory;
    json_t *object;

    NW_TRY(nw_json_add_object(step, "memory", &object));
    NW_TRY(NW_SET_REALS(
        object, {"weights_bytes", memory->weights_bytes},
        {"gradients_bytes", memory->gradients_bytes}, {"optimizer_bytes", memory->optimizer_bytes},
        {"activations_bytes", memory->activations_bytes}, {"logits_bytes", memory->logits_bytes},
        {"buffers_bytes", memory->buffers_bytes}, {"runtime_bytes", memory->runtime_bytes},
        {"fragmentation_bytes", memory->fragmentation_bytes},
        {"allocated_bytes", memory->allocated_bytes}, {"total_bytes", memory->total_bytes},
        {"host_bytes", memory->host_bytes}));
    NW_TRY(nw_json_set_text(object, "peak_moment", nw_peak_name(memory->peak)));
    NW_TRY(nw_json_set_int(object, "peak_stage", memory->stage));
    if (memory->policy != NULL)
        NW_TRY(nw_json_set_text(object, "policy", memory->policy));
    if (from->fits >= 0)
        NW_TRY(nw_json_set_bool(object, "fits", from->fits == 1));
    return NW_OK;
}

static nw_rc set_times(json_t *object, const struct nw_step *step)
{
    return NW_SET_REALS(
        object, {"step_ns", step->step_ns}, {"step_low_ns", step->low_ns},
        {"step_high_ns", step->high_ns}, {"compute_ns", step->compute_ns},
        {"communication_ns", step->communication_ns},
        {"exposed_communication_ns", step->exposed_ns},
        {"hidden_communication_ns", step->hidden_ns}, {"overlap_loss_ns", step->overlap_loss_ns},
        {"recompute_ns", step->recompute_ns}, {"bubble_ns", step->bubble_ns},
        {"offload_ns", step->offload_ns}, {"jitter_ns", step->jitter_ns},
        {"optimizer_ns", step->optimizer_known ? step->optimizer_ns : NAN},
        {"step_full_overlap_ns", step->full_overlap_ns},
        {"step_no_overlap_ns", step->no_overlap_ns}, {"tokens_per_s", step->tokens_per_s},
        {"tokens_per_s_low", step->tokens_per_s_low},
        {"tokens_per_s_high", step->tokens_per_s_high}, {"mfu", step->mfu});
}

static nw_rc set_layout(json_t *step, const struct nw_layout *layout)
{
    const struct {
        const char *key;
        int value;
    } degrees[] = {
        {"tp", nw_layout_tp(layout)},
        {"pp", nw_layout_pp(layout)},
        {"cp", nw_layout_cp(layout)},
        {"ep", nw_layout_ep(layout)},
        {"dp", nw_layout_dp(layout)},
        {"virtual_stages", nw_layout_virtual_stages(layout)},
        {"shard_ranks", nw_layout_shard_count(layout)},
    };
    json_t *object;

    NW_TRY(nw_json_add_object(step, "layout", &object));
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++)
        NW_TRY(nw_json_set_int(object, degrees[i].key, degrees[i].value));
    NW_TRY(nw_json_set_bool(object, "sequence_parallel", layout->parallel.sequence_parallel));
    return nw_json_set_text(object, "framework",
                            layout->profile != NULL ? layout->profile->name : NULL);
}

/* {"compute_ns": …}: they sum to step_ns. */
static nw_rc set_breakdown(json_t *step, const struct nw_step *from)
{
    struct nw_breakdown breakdown;
    json_t *object;
    char key[64];

    nw_breakdown_of(from, &breakdown);
    NW_TRY(nw_json_add_object(step, "breakdown", &object));
    for (size_t i = 0; i < breakdown.count; i++) {
        snprintf(key, sizeof key, "%s_ns", breakdown.items[i].key);
        NW_TRY(nw_json_set_real(object, key, breakdown.items[i].ns));
    }
    return NW_OK;
}

static nw_rc fill_step(const struct nw_step *step, json_t *object)
{
    json_t *traffic;

    NW_TRY(nw_json_set_text(object, "strategy", step->strategy->name));
    NW_TRY(nw_json_set_int(object, "nodes", step->node_count));
    NW_TRY(nw_json_set_int(object, "ranks", step->rank_count));
    NW_TRY(nw_json_set_u64(object, "micro_batch", step->micro_batch));
    NW_TRY(nw_json_set_u64(object, "micro_batches", step->micro_batch_count));
    NW_TRY(nw_json_set_u64(object, "global_batch", step->global_batch));
    NW_TRY(set_layout(object, &step->layout));
    NW_TRY(set_times(object, step));
    NW_TRY(set_breakdown(object, step));
    NW_TRY(set_memory(object, step));
    NW_TRY(nw_json_add_object(object, "traffic", &traffic));
    NW_TRY(NW_SET_REALS(traffic, {"sent_per_gpu_bytes", step->traffic.bytes_sent},
                        {"calls", step->traffic.calls},
                        {"largest_message_bytes", step->traffic.message_bytes}));
    NW_TRY(nw_json_set_text(traffic, "largest_message_collective", step->traffic.collective));
    return step->rank_count > 1 ? nw_json_set_how(object, "communication_from", step->how) : NW_OK;
}

nw_rc nw_step_to_json(const struct nw_step *step, json_t **json_out)
{
    json_t *object = json_object();
    const nw_rc rc = fill_step(step, object);

    if (rc != NW_OK) {
        json_decref(object);
        return rc;
    }
    *json_out = object;
    return NW_OK;
}

/* ---- job and platform ---------------------------------------------------------------------- */

/* Only where the job has them. */
static nw_rc set_extras(json_t *object, const struct nw_job *job)
{
    static const char *const places[] = {
        [NW_OFFLOAD_NONE] = NULL, [NW_OFFLOAD_CPU] = "cpu", [NW_OFFLOAD_NVME] = "nvme"};

    NW_TRY(nw_json_set_text(object, "offload_optimizer", places[job->offload.optimizer]));
    NW_TRY(nw_json_set_text(object, "offload_params", places[job->offload.parameters]));
    NW_TRY(nw_json_set_text(object, "offload_activations", places[job->offload.activations]));
    NW_TRY(nw_json_set_text(object, "loss", job->chunked_loss ? "chunked" : "framework"));
    if (job->lora.rank == 0)
        return NW_OK;
    NW_TRY(nw_json_set_u64(object, "lora_rank", job->lora.rank));
    NW_TRY(nw_json_set_real(object, "trained_parameters", nw_job_trained_parameters(job)));
    return nw_json_set_real(object, "base_bytes_per_parameter", nw_job_base_bytes(job));
}

static nw_rc set_job(json_t *root, const struct nw_job *job)
{
    json_t *object;

    NW_TRY(nw_json_add_object(root, "job", &object));
    NW_TRY(nw_json_set_text(object, "model", job->net.name));
    NW_TRY(nw_json_set_u64(object, "parameters", nw_transformer_parameter_count(&job->net)));
    NW_TRY(nw_json_set_u64(object, "sequence_tokens", job->sequence));
    NW_TRY(nw_json_set_u64(object, "micro_batch", job->micro_batch));
    NW_TRY(nw_json_set_u64(object, "global_batch", job->global_batch));
    NW_TRY(nw_json_set_text(object, "precision", job->precision->name));
    NW_TRY(nw_json_set_text(object, "optimizer", job->optimizer->name));
    NW_TRY(NW_SET_REALS(object, {"gradient_bytes_per_parameter", job->gradient_bytes},
                        {"reduce_bytes_per_parameter", nw_job_reduce_bytes(job)},
                        {"master_bytes_per_parameter", nw_job_master_bytes(job)}));
    NW_TRY(nw_json_set_text(object, "recompute", nw_recompute_name(job->recompute)));
    NW_TRY(nw_json_set_text(object, "attention", job->flash ? "flash" : "materialized"));
    NW_TRY(set_extras(object, job));
    return nw_json_set_real(object, "tokens", job->tokens);
}

static nw_rc set_figure(json_t *list, const char *key, const struct nw_figure *figure)
{
    json_t *object;

    if (!figure->known)
        return NW_OK;
    NW_TRY(nw_json_add_object(list, key, &object));
    NW_TRY(NW_SET_REALS(object, {"value", figure->value}, {"low", figure->low},
                        {"high", figure->high}));
    NW_TRY(nw_json_set_int(object, "gpus", figure->gpu_count));
    return nw_json_set_bool(object, "simulated", figure->simulated);
}

static nw_rc set_products(json_t *object, const struct nw_measured *measured)
{
    json_t *list, *entry = NULL;

    if (measured->product_count == 0)
        return NW_OK;
    NW_TRY(nw_json_add_list(object, "products", &list));
    for (size_t i = 0; i < measured->product_count; i++) {
        const struct nw_gemm_point *point = &measured->products[i];

        NW_TRY(nw_json_append_object(list, &entry));
        NW_TRY(NW_SET_REALS(entry, {"m", point->m}, {"n", point->n}, {"k", point->k},
                            {"flops_per_s", point->flops_per_s}, {"low", point->low},
                            {"high", point->high}));
    }
    NW_TRY(nw_json_set_bool(object, "products_simulated", measured->products_simulated));
    return NW_SET_REALS(object, {"sm_clock_hz", measured->sm_clock_hz},
                        {"power_w", measured->power_w});
}

/* Which figures the results gave, and which a topology. */
static nw_rc set_measured(json_t *root, const struct nw_platform *platform)
{
    const struct nw_measured *measured = &platform->measured;
    json_t *object;

    NW_TRY(nw_json_add_object(root, "measured", &object));
    NW_TRY(set_products(object, measured));
    NW_TRY(set_figure(object, "memory_bytes_per_s", &measured->memory));
    NW_TRY(set_figure(object, "host_to_device_bytes_per_s", &measured->to_device));
    NW_TRY(set_figure(object, "device_to_host_bytes_per_s", &measured->to_host));
    NW_TRY(set_figure(object, "overlap_loss", &measured->overlap_loss));
    if (!measured->links_by_topology && !measured->nics_by_topology)
        return NW_OK;
    NW_TRY(nw_json_add_object(root, "by_topology", &object));
    NW_TRY(nw_json_set_text(object, "host", measured->topology_host));
    NW_TRY(nw_json_set_bool(object, "simulated", measured->topology_simulated));
    if (measured->links_by_topology)
        NW_TRY(nw_json_set_real(object, "link_bytes_per_s", platform->fabric.link_bytes_per_s));
    if (measured->nics_by_topology) {
        NW_TRY(nw_json_set_real(object, "nic_bytes_per_s", platform->fabric.wire_bytes_per_s));
        NW_TRY(nw_json_set_int(object, "nics", platform->fabric.nic_count));
    }
    return NW_OK;
}

static nw_rc set_platform(json_t *root, const struct nw_platform *platform)
{
    static const char *const sources[] = {[NW_RATE_STATED] = "measured step",
                                          [NW_RATE_GEMM] = "measured matrix products",
                                          [NW_RATE_CATALOGUE] = "catalogue, assumed efficiency"};
    json_t *object;

    NW_TRY(nw_json_add_object(root, "platform", &object));
    if (platform->gpu != NULL)
        NW_TRY(nw_json_set_text(object, "gpu", platform->gpu->name));
    if (platform->memory_bytes > 0)
        NW_TRY(nw_json_set_u64(object, "gpu_memory_bytes", platform->memory_bytes));
    NW_TRY(nw_json_set_int(object, "gpus_per_node", platform->fabric.gpus_per_node));
    NW_TRY(nw_json_set_text(object, "rate_from", sources[platform->rate.source]));
    if (platform->rate.measured) {
        NW_TRY(nw_json_set_real(object, "gemm_flops_per_s", platform->rate.base_flops_per_s));
        NW_TRY(nw_json_set_real(object, "gemm_low_flops_per_s", platform->rate.base_low));
        NW_TRY(nw_json_set_real(object, "gemm_high_flops_per_s", platform->rate.base_high));
    }
    NW_TRY(set_measured(object, platform));
    return NW_SET_REALS(object, {"rate_flops_per_s", platform->rate.flops_per_s},
                        {"rate_relative_error", platform->rate.rel_error},
                        {"hbm_bytes_per_s", platform->hbm_bytes_per_s},
                        {"peak_flops_per_s", platform->peak_flops},
                        {"step_time_factor", platform->step_time_factor},
                        {"host_to_device_bytes_per_s", platform->host_to_device_bytes_per_s},
                        {"nvme_bytes_per_s", platform->nvme_bytes_per_s},
                        {"nic_line_rate_bytes_per_s", platform->fabric.wire_bytes_per_s},
                        {"intra_node_busbw_bytes_per_s", platform->fabric.intra_busbw_bytes_per_s},
                        {"inter_node_busbw_bytes_per_s", platform->fabric.inter_busbw_bytes_per_s});
}

/* What was not asked for and taken all the same. */
static nw_rc set_defaults(json_t *root, const struct nw_defaults *defaults)
{
    json_t *list, *entry = NULL;

    NW_TRY(nw_json_add_list(root, "defaults", &list));
    for (size_t i = 0; i < defaults->count; i++) {
        NW_TRY(nw_json_append_object(list, &entry));
        NW_TRY(nw_json_set_text(entry, "option", defaults->items[i].option));
        NW_TRY(nw_json_set_text(entry, "value", defaults->items[i].value));
        NW_TRY(nw_json_set_text(entry, "text", defaults->items[i].text));
    }
    return NW_OK;
}

static nw_rc set_anchor(json_t *root, const struct nw_anchor *anchor)
{
    json_t *object;

    if (!anchor->given)
        return NW_OK;
    NW_TRY(nw_json_add_object(root, "anchor", &object));
    NW_TRY(nw_json_set_text(object, "source", anchor->source));
    NW_TRY(nw_json_set_int(object, "ranks", anchor->rank_count));
    NW_TRY(nw_json_set_int(object, "nodes", anchor->node_count));
    NW_TRY(nw_json_set_u64(object, "global_batch", anchor->global_batch));
    return NW_SET_REALS(
        object, {"measured_step_ns", anchor->step_ns}, {"measured_step_low_ns", anchor->low_ns},
        {"measured_step_high_ns", anchor->high_ns}, {"predicted_step_ns", anchor->predicted_ns},
        {"step_time_factor", anchor->factor}, {"unexplained_ratio", anchor->rest},
        {"of_peak", anchor->of_peak});
}

nw_rc nw_model_json_start(const struct nw_model *model, const char *kind, json_t *root)
{
    NW_TRY(nw_json_set_int(root, "schema", NW_MODEL_SCHEMA_VERSION));
    NW_TRY(nw_json_set_text(root, "kind", kind));
    const struct nw_layout layout =
        nw_model_layout(model, model->node_counts[0], model->strategies[0]);
    const struct nw_job job = nw_model_job(model, &layout);

    NW_TRY(set_job(root, &job));
    NW_TRY(set_platform(root, &model->platform));
    NW_TRY(set_anchor(root, &model->anchor));
    return set_defaults(root, &model->defaults);
}

static nw_rc set_levers(const struct nw_model *model, const struct nw_step *step, json_t *object)
{
    const struct nw_platform platform = nw_model_platform(model);
    const struct nw_job job = nw_model_job(model, &step->layout);
    struct nw_levers levers;
    json_t *list, *entry = NULL;

    nw_levers_of(&job, &platform, &step->layout, &model->scenario, step, &levers);
    NW_TRY(nw_json_add_list(object, "levers", &list));
    for (size_t i = 0; i < levers.count; i++) {
        const struct nw_lever *lever = &levers.items[i];

        NW_TRY(nw_json_append_object(list, &entry));
        NW_TRY(nw_json_set_text(entry, "key", lever->key));
        NW_TRY(nw_json_set_text(entry, "text", lever->what));
        NW_TRY(nw_json_set_text(entry, "setting", lever->how));
        NW_TRY(nw_json_set_bool(entry, "changes_rounding", lever->changes_rounding));
        NW_TRY(NW_SET_REALS(entry, {"step_ns", lever->step_ns}, {"change_of_step", lever->change},
                            {"memory_bytes", lever->memory_bytes}));
    }
    return NW_OK;
}

static nw_rc add_fit_item(const struct nw_fit_item *item, json_t *list)
{
    json_t *entry = NULL;

    NW_TRY(nw_json_append_object(list, &entry));
    NW_TRY(nw_json_set_text(entry, "key", item->change->name));
    NW_TRY(nw_json_set_text(entry, "text", item->text));
    NW_TRY(nw_json_set_bool(entry, "fits", item->fits));
    NW_TRY(nw_json_set_bool(entry, "changes_numerics", item->change->other_numerics));
    NW_TRY(nw_json_set_bool(entry, "changes_training", item->change->other_training));
    NW_TRY(nw_json_set_bool(entry, "more_gpus", item->change->more_gpus));
    return NW_SET_REALS(entry, {"memory_bytes", item->memory_bytes},
                        {"gpu_time_per_token_ratio", item->time_ratio},
                        {"time_per_token_ratio", item->step_ratio});
}

/* Of a step that does not fit: single changes, and where none is enough several together. */
static nw_rc set_fit(const struct nw_model *model, const struct nw_step *step, json_t *object)
{
    struct nw_fit_advice advice;
    json_t *list;

    if (step->fits != 0)
        return NW_OK;
    if (nw_fit_advise(model, &step->layout, &advice) != NW_OK) {
        nw_clear_error(); /* nothing can be advised: the key is absent */
        return NW_OK;
    }
    NW_TRY(nw_json_add_list(object, "would_fit", &list));
    for (size_t i = 0; i < advice.count; i++)
        NW_TRY(add_fit_item(&advice.items[i], list));
    if (advice.combination_count == 0)
        return NW_OK;
    NW_TRY(nw_json_add_list(object, "would_fit_together", &list));
    for (size_t i = 0; i < advice.combination_count; i++)
        NW_TRY(add_fit_item(&advice.combination[i], list));
    return NW_OK;
}

nw_rc nw_model_step_to_json(const struct nw_model *model, const struct nw_step *step,
                            json_t **json_out)
{
    json_t *object;

    NW_TRY(nw_step_to_json(step, &object));
    nw_rc rc = model->anchor.given ? nw_json_set_real(object, "ratio_to_measured",
                                                      step->step_ns / model->anchor.step_ns)
                                   : NW_OK;

    if (rc != NW_OK) {
        json_decref(object);
        return rc;
    }
    *json_out = object;
    return NW_OK;
}

static nw_rc fill_steps(const struct nw_model *model, const struct nw_steps *steps, json_t *root)
{
    nw_assumed assumed = 0;
    json_t *list;

    NW_TRY(nw_model_json_start(model, "prediction", root));
    NW_TRY(nw_json_add_list(root, "steps", &list));
    for (size_t i = 0; i < steps->count; i++) {
        json_t *step;

        NW_TRY(nw_model_step_to_json(model, &steps->items[i], &step));
        if (json_array_append_new(list, step) != 0)
            return nw_fail(NW_ENOMEM, "JSON: no memory");
        NW_TRY(set_levers(model, &steps->items[i], step));
        NW_TRY(set_fit(model, &steps->items[i], step));
        assumed |= steps->items[i].assumed;
    }
    NW_TRY(nw_steps_json_left_out(steps, root));
    return nw_model_json_assumed(model, assumed, root);
}

nw_rc nw_steps_to_json(const struct nw_model *model, const struct nw_steps *steps,
                       json_t **json_out)
{
    json_t *root = json_object();
    const nw_rc rc = fill_steps(model, steps, root);

    if (rc != NW_OK) {
        json_decref(root);
        return rc;
    }
    *json_out = root;
    return NW_OK;
}

/* ---- lanes --------------------------------------------------------------------------------- */

static nw_rc fill_effect(const struct nw_lane_effect *effect, json_t *object)
{
    NW_TRY(nw_json_set_text(object, "fast_lane", effect->fast));
    NW_TRY(nw_json_set_text(object, "slow_lane", effect->slow));
    NW_TRY(nw_json_set_text(object, "strategy", effect->over_fast.strategy->name));
    NW_TRY(nw_json_set_int(object, "nodes", effect->over_fast.node_count));
    NW_TRY(nw_json_set_int(object, "ranks", effect->over_fast.rank_count));
    return NW_SET_REALS(
        object, {"fast_step_ns", effect->over_fast.step_ns},
        {"fast_step_low_ns", effect->over_fast.low_ns},
        {"fast_step_high_ns", effect->over_fast.high_ns},
        {"slow_step_ns", effect->over_slow.step_ns}, {"slow_step_low_ns", effect->over_slow.low_ns},
        {"slow_step_high_ns", effect->over_slow.high_ns}, {"saved_of_slow", effect->saved},
        {"saved_of_slow_low", effect->saved_low}, {"saved_of_slow_high", effect->saved_high});
}

nw_rc nw_lane_effects_to_json(const struct nw_lane_effects *effects, json_t **json_out)
{
    json_t *list = json_array();

    for (size_t i = 0; i < effects->count; i++) {
        json_t *object = NULL;
        nw_rc rc = nw_json_append_object(list, &object);

        if (rc == NW_OK)
            rc = fill_effect(&effects->items[i], object);
        if (rc != NW_OK) {
            json_decref(list);
            return rc;
        }
    }
    *json_out = list;
    return NW_OK;
}
