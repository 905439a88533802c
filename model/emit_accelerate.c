/* The file that `accelerate launch --config_file` reads (huggingface/accelerate, FSDP). */
#include <string.h>

#include "model/emit.h"

nw_rc nw_emit_accelerate_check(const struct nw_emission *emission)
{
    const struct nw_layout *layout = &emission->step->layout;

    if (!nw_emit_is(emission, "ddp fsdp fsdp-keep hsdp"))
        return nw_fail(NW_EUSAGE,
                       "accelerate's FSDP has no %s; accepted: --strategy ddp, fsdp, "
                       "fsdp-keep or hsdp",
                       emission->step->strategy->name);
    if (nw_layout_tp(layout) * nw_layout_pp(layout) * nw_layout_cp(layout) > 1)
        return nw_fail(NW_EUSAGE, "accelerate.yaml is written without --tp, --pp and --cp; give "
                                  "them to --as megatron");
    return NW_OK;
}

static const char *yes_no(bool value)
{
    return value ? "true" : "false";
}

static void write_fsdp(const struct nw_emission *emission, FILE *stream)
{
    const bool hybrid = nw_emit_is(emission, "hsdp"), keep = nw_emit_is(emission, "fsdp-keep");

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

nw_rc nw_emit_accelerate(const struct nw_emission *emission, FILE *stream)
{
    const char *precision = emission->job.precision->name;
    const bool fsdp = !nw_emit_is(emission, "ddp");
    const bool mixed = strcmp(precision, "fp32") != 0 && strcmp(precision, "tf32") != 0;

    fprintf(stream,
            "# On each node: accelerate launch --config_file accelerate.yaml --machine_rank RANK"
            " --main_process_ip HOST %s\n"
            "# In the script: micro-batch %llu, gradient_accumulation_steps %llu.\n"
            "compute_environment: LOCAL_MACHINE\n"
            "distributed_type: %s\n"
            "mixed_precision: '%s'\n"
            "num_machines: %d\n"
            "num_processes: %d\n"
            "main_process_port: 29500\n"
            "rdzv_backend: c10d\n"
            "same_network: true\n"
            "use_cpu: false\n",
            emission->script, (unsigned long long)emission->step->micro_batch,
            (unsigned long long)emission->step->micro_batch_count, fsdp ? "FSDP" : "MULTI_GPU",
            mixed ? precision : "no", emission->step->node_count, emission->step->rank_count);
    if (fsdp)
        write_fsdp(emission, stream);
    return NW_OK;
}
