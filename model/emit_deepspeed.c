/* ds_config.json: https://www.deepspeed.ai/docs/config-json/ */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "model/emit.h"

/* Offload of optimizer states is a matter of ZeRO; stages 1 and 2 keep them in host memory whatever
 * the device (runtime/zero/stage_1_and_2.py knows no NVMe). */
static nw_rc check_offload(const struct nw_emission *emission)
{
    const struct nw_offload *offload = &emission->job.offload;
    const bool optimizer = offload->optimizer != NW_OFFLOAD_NONE;

    if (offload->activations != NW_OFFLOAD_NONE)
        return nw_fail(NW_EUSAGE, "ds_config.json is written without --offload-activations: the "
                                  "script does it; accepted: none");
    if (optimizer && nw_emit_is(emission, "ddp"))
        return nw_fail(NW_EUSAGE, "DeepSpeed offloads the optimizer with ZeRO only; accepted: "
                                  "--strategy zero1, zero2, zero3 or zeropp");
    if (offload->optimizer == NW_OFFLOAD_NVME && !nw_emit_is(emission, "zero3 zeropp"))
        return nw_fail(NW_EUSAGE,
                       "DeepSpeed's %s has no --offload-optimizer nvme; accepted: none or cpu, or "
                       "--strategy zero3",
                       emission->step->strategy->name);
    if (offload->parameters != NW_OFFLOAD_NONE && !nw_emit_is(emission, "zero3 zeropp"))
        return nw_fail(NW_EUSAGE,
                       "DeepSpeed's %s has no --offload-params; accepted: none, or --strategy "
                       "zero3",
                       emission->step->strategy->name);
    return NW_OK;
}

/* runtime/engine.py _do_optimizer_sanity_check */
static nw_rc check_types(const struct nw_emission *emission)
{
    const struct nw_job *job = &emission->job;

    if (job->precision->half && nw_job_master_bytes(job) <= 0)
        return nw_fail(NW_EUSAGE, "ds_config.json is written for an optimizer with an fp32 copy of "
                                  "the weights; accepted: --master fp32");
    if (nw_emit_is(emission, "ddp") && nw_job_gradient_bytes(job) > job->precision->element_bytes)
        return nw_fail(NW_EUSAGE, "DeepSpeed without ZeRO keeps gradients in the type of the "
                                  "weights; accepted: --gradients same, or --strategy zero1");
    return NW_OK;
}

/* MiCS, the shards of ZeRO-3 on fewer ranks, is gone from DeepSpeed (issue 8489). */
nw_rc nw_emit_deepspeed_check(const struct nw_emission *emission)
{
    const struct nw_layout *layout = &emission->step->layout;

    if (!nw_emit_is(emission, "ddp zero1 zero2 zero3 zeropp"))
        return nw_fail(NW_EUSAGE,
                       "DeepSpeed has no %s; accepted: --strategy ddp, zero1, zero2, "
                       "zero3 or zeropp",
                       emission->step->strategy->name);
    if (nw_layout_tp(layout) * nw_layout_pp(layout) * nw_layout_cp(layout) * nw_layout_ep(layout) >
        1)
        return nw_fail(NW_EUSAGE, "a ds_config.json says nothing of --tp, --pp, --cp and --ep; "
                                  "accepted: 1 of each, or --as megatron");
    if (!nw_emit_is(emission, "ddp zeropp") &&
        nw_layout_shard_count(layout) < nw_layout_reduce_count(layout))
        return nw_fail(NW_EUSAGE,
                       "DeepSpeed's %s has no --shard %d (MiCS was removed); accepted: --shard %d, "
                       "or --strategy zeropp",
                       emission->step->strategy->name, nw_layout_shard_count(layout),
                       nw_layout_reduce_count(layout));
    NW_TRY(check_types(emission));
    return check_offload(emission);
}

static int stage_of(const struct nw_emission *emission)
{
    static const char *const stages[] = {"ddp", "zero1", "zero2", "zero3 zeropp"};

    for (int stage = 0; stage < 4; stage++)
        if (nw_emit_is(emission, stages[stage]))
            return stage;
    return 0;
}

static nw_rc add_offload(json_t *zero, const char *key, nw_offload_to to)
{
    json_t *object;

    if (to == NW_OFFLOAD_NONE)
        return NW_OK;
    object = json_object();
    NW_TRY(nw_json_set_new(zero, key, object));
    NW_TRY(nw_json_set_text(object, "device", to == NW_OFFLOAD_CPU ? "cpu" : "nvme"));
    if (to == NW_OFFLOAD_NVME)
        NW_TRY(nw_json_set_text(object, "nvme_path", "/local_nvme"));
    return nw_json_set_bool(object, "pin_memory", true);
}

static nw_rc add_stage3(json_t *zero, const struct nw_emission *emission, uint64_t elements)
{
    const struct nw_transformer *net = &emission->job.net;
    struct nw_tensors layer;

    nw_transformer_layer(net, &layer);
    /* A layer ahead, no more than the bucket that pays no latency; what is smaller than a norm's
     * weights stays gathered. */
    NW_TRY(nw_json_set_u64(zero, "stage3_prefetch_bucket_size",
                           elements > layer.total ? elements : layer.total));
    NW_TRY(nw_json_set_u64(zero, "stage3_max_live_parameters", 1000000000));
    NW_TRY(nw_json_set_u64(zero, "stage3_max_reuse_distance", 1000000000));
    NW_TRY(nw_json_set_u64(zero, "stage3_param_persistence_threshold", 10 * net->hidden));
    NW_TRY(nw_json_set_bool(zero, "stage3_gather_16bit_weights_on_model_save", true));
    if (!nw_emit_is(emission, "zeropp"))
        return NW_OK;
    NW_TRY(nw_json_set_int(zero, "zero_hpz_partition_size",
                           nw_layout_shard_count(&emission->step->layout)));
    NW_TRY(nw_json_set_bool(zero, "zero_quantized_weights", true));
    return nw_json_set_bool(zero, "zero_quantized_gradients", true);
}

static nw_rc add_zero(json_t *root, const struct nw_emission *emission)
{
    const struct nw_job *job = &emission->job;
    const int stage = stage_of(emission);
    const uint64_t elements =
        (uint64_t)(fmax(emission->bucket_bytes, 1) / nw_job_gradient_bytes(job));
    json_t *zero = json_object();

    NW_TRY(nw_json_set_new(root, "zero_optimization", zero));
    NW_TRY(nw_json_set_int(zero, "stage", stage));
    if (stage == 0)
        return NW_OK;
    if (emission->bucket_bytes > 0) {
        NW_TRY(nw_json_set_u64(zero, "reduce_bucket_size", elements));
        NW_TRY(nw_json_set_u64(zero, "allgather_bucket_size", elements));
    }
    NW_TRY(nw_json_set_bool(zero, "overlap_comm", true));
    NW_TRY(nw_json_set_bool(zero, "contiguous_gradients", true));
    NW_TRY(add_offload(zero, "offload_optimizer", job->offload.optimizer));
    if (stage < 3)
        return NW_OK;
    NW_TRY(add_offload(zero, "offload_param", job->offload.parameters));
    return add_stage3(zero, emission, elements);
}

/* Types by their names in DeepSpeed. */
static nw_rc add_precision(json_t *root, const struct nw_emission *emission)
{
    const struct nw_job *job = &emission->job;
    const bool half = nw_emit_is_fp16(emission), brain = job->precision->half && !half;
    json_t *object = json_object();

    NW_TRY(nw_json_set_new(root, "bf16", object));
    NW_TRY(nw_json_set_bool(object, "enabled", brain));
    object = json_object();
    NW_TRY(nw_json_set_new(root, "fp16", object));
    NW_TRY(nw_json_set_bool(object, "enabled", half));
    if (job->reduce_bytes > 0)
        NW_TRY(nw_json_set_text(root, "communication_data_type",
                                job->reduce_bytes >= 4 ? "fp32"
                                : half                 ? "fp16"
                                                       : "bf16"));
    if (nw_job_gradient_bytes(job) <= job->precision->element_bytes)
        return NW_OK;
    object = json_object();
    NW_TRY(nw_json_set_new(root, "data_types", object));
    return nw_json_set_text(object, "grad_accum_dtype", "fp32");
}

/* A learning rate is not ours to choose, so the optimizer stays in the script. ZeRO takes those of
 * others than Adam, and of hosts other than its own CPU Adam, only when told so. */
static nw_rc add_optimizer(json_t *root, const struct nw_emission *emission)
{
    if (nw_emit_is_adam(emission) || stage_of(emission) == 0)
        return NW_OK;
    NW_TRY(nw_json_set_bool(root, "zero_allow_untested_optimizer", true));
    return emission->job.offload.optimizer == NW_OFFLOAD_NONE
               ? NW_OK
               : nw_json_set_bool(root, "zero_force_ds_cpu_optimizer", false);
}

static nw_rc fill(json_t *root, const struct nw_emission *emission)
{
    const struct nw_step *step = emission->step;

    NW_TRY(nw_json_set_u64(root, "train_batch_size", step->global_batch));
    NW_TRY(nw_json_set_u64(root, "train_micro_batch_size_per_gpu", step->micro_batch));
    NW_TRY(nw_json_set_u64(root, "gradient_accumulation_steps", step->micro_batch_count));
    NW_TRY(nw_json_set_real(root, "gradient_clipping", 1.0));
    NW_TRY(add_precision(root, emission));
    NW_TRY(add_optimizer(root, emission));
    return add_zero(root, emission);
}

nw_rc nw_emit_deepspeed(const struct nw_emission *emission, FILE *stream)
{
    json_t *root = json_object();
    nw_rc rc = root != NULL ? fill(root, emission) : nw_fail(NW_ENOMEM, "JSON: no memory");

    if (rc == NW_OK)
        rc = nw_json_print(stream, root);
    json_decref(root);
    return rc;
}
