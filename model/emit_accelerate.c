/* The file that `accelerate launch --config_file` reads (huggingface/accelerate, FSDP). */
#include <string.h>

#include "model/emit.h"

/* Of how many ranks hold one copy: all, or those of a node (HYBRID_SHARD). */
static bool is_hybrid(const struct nw_emission *emission)
{
    const struct nw_layout *layout = &emission->step->layout;

    return !nw_emit_is(emission, "ddp") &&
           nw_layout_shard_count(layout) < nw_layout_reduce_count(layout);
}

static nw_rc check_shard(const struct nw_emission *emission)
{
    const int shards = nw_layout_shard_count(&emission->step->layout);

    if (!is_hybrid(emission))
        return NW_OK;
    if (shards != emission->gpus_per_node)
        return nw_fail(NW_EUSAGE,
                       "accelerate.yaml can say one copy a node or one in all, not --shard %d; "
                       "accepted: %d or %d",
                       shards, emission->gpus_per_node, emission->step->rank_count);
    if (nw_emit_is(emission, "fsdp-keep"))
        return nw_fail(NW_EUSAGE,
                       "accelerate.yaml has no --strategy fsdp-keep with --shard %d; accepted: "
                       "--shard %d, or --strategy hsdp",
                       shards, emission->step->rank_count);
    return NW_OK;
}

/* fsdp_offload_params moves weights, gradients and the optimizer to the host together (torch:
 * CPUOffload, CPUOffloadPolicy). */
static nw_rc check_offload(const struct nw_emission *emission)
{
    const struct nw_offload *offload = &emission->job.offload;
    const bool none =
                   offload->optimizer == NW_OFFLOAD_NONE && offload->parameters == NW_OFFLOAD_NONE,
               both = offload->optimizer == NW_OFFLOAD_CPU && offload->parameters == NW_OFFLOAD_CPU;

    if (offload->activations != NW_OFFLOAD_NONE)
        return nw_fail(NW_EUSAGE, "accelerate.yaml has no --offload-activations; accepted: none");
    if (none || (both && !nw_emit_is(emission, "ddp")))
        return NW_OK;
    if (nw_emit_is(emission, "ddp"))
        return nw_fail(NW_EUSAGE, "accelerate offloads with FSDP only; accepted: --strategy fsdp, "
                                  "fsdp-keep or hsdp");
    return nw_fail(NW_EUSAGE,
                   "accelerate's FSDP offloads weights and optimizer together, to the host; "
                   "accepted: --offload-optimizer cpu with --offload-params cpu, or neither");
}

nw_rc nw_emit_accelerate_check(const struct nw_emission *emission)
{
    const struct nw_layout *layout = &emission->step->layout;

    if (!nw_emit_is(emission, "ddp fsdp fsdp-keep hsdp"))
        return nw_fail(NW_EUSAGE,
                       "accelerate's FSDP has no %s; accepted: --strategy ddp, fsdp, "
                       "fsdp-keep or hsdp",
                       emission->step->strategy->name);
    if (nw_layout_tp(layout) * nw_layout_pp(layout) * nw_layout_cp(layout) * nw_layout_ep(layout) >
        1)
        return nw_fail(NW_EUSAGE, "accelerate.yaml is written without --tp, --pp, --cp and --ep; "
                                  "accepted: 1 of each, or --as megatron");
    NW_TRY(check_shard(emission));
    return check_offload(emission);
}

static const char *yes_no(bool value)
{
    return value ? "true" : "false";
}

static void write_fsdp(const struct nw_emission *emission, FILE *stream)
{
    const bool hybrid = is_hybrid(emission), keep = nw_emit_is(emission, "fsdp-keep");

    /* Version 1 names HSDP; version 2 has a flag for resharding and the mesh in the script. */
    fprintf(stream,
            "fsdp_config:\n"
            "  fsdp_version: %d\n",
            hybrid ? 1 : 2);
    if (hybrid)
        fprintf(stream, "  fsdp_sharding_strategy: HYBRID_SHARD\n"
                        "  fsdp_use_orig_params: true\n"
                        "  fsdp_backward_prefetch: BACKWARD_PRE\n"
                        "  fsdp_forward_prefetch: true\n");
    else
        fprintf(stream, "  fsdp_reshard_after_forward: %s\n", yes_no(!keep));
    fprintf(stream,
            "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
            "  fsdp_cpu_ram_efficient_loading: true\n"
            "  fsdp_offload_params: %s\n"
            "  fsdp_activation_checkpointing: %s\n"
            "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
            yes_no(emission->job.offload.parameters != NW_OFFLOAD_NONE),
            yes_no(emission->job.recompute == NW_RECOMPUTE_FULL));
}

/* Mixed: fp32 weights, computed with in fewer bits. Without them the script loads short ones. */
static bool is_mixed(const struct nw_job *job)
{
    return job->precision->half && nw_job_master_bytes(job) > 0;
}

/* What the file has no key for. */
static void write_script_notes(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_job *job = &emission->job;
    const bool fsdp = !nw_emit_is(emission, "ddp");

    fprintf(stream, "# In the script: micro-batch %llu, gradient_accumulation_steps %llu",
            (unsigned long long)emission->step->micro_batch,
            (unsigned long long)emission->step->micro_batch_count);
    if (job->recompute == NW_RECOMPUTE_SELECTIVE || (job->recompute == NW_RECOMPUTE_FULL && !fsdp))
        fprintf(stream, ", %s recomputation", nw_recompute_name(job->recompute));
    if (job->precision->half && !is_mixed(job))
        fprintf(stream, ", weights in %s", job->precision->name);
    fprintf(stream, ".\n");
}

nw_rc nw_emit_accelerate(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_job *job = &emission->job;
    const bool fsdp = !nw_emit_is(emission, "ddp");

    fprintf(stream,
            "# On each node: accelerate launch --config_file accelerate.yaml --machine_rank RANK"
            " --main_process_ip HOST %s\n",
            emission->script);
    write_script_notes(emission, stream);
    fprintf(stream,
            "compute_environment: LOCAL_MACHINE\n"
            "distributed_type: %s\n"
            "mixed_precision: '%s'\n"
            "num_machines: %d\n"
            "num_processes: %d\n"
            "main_process_port: 29500\n"
            "rdzv_backend: c10d\n"
            "same_network: true\n"
            "use_cpu: false\n",
            fsdp ? "FSDP" : "MULTI_GPU", is_mixed(job) ? job->precision->name : "no",
            emission->step->node_count, emission->step->rank_count);
    if (fsdp)
        write_fsdp(emission, stream);
    return NW_OK;
}
