/* The frameworks' memory policies: one row each. */
#include "model/memory_policy.h"

#include <string.h>

#include "model/profile.h"

/* Weights are fp32; products run on 16-bit copies. */
#define AUTOCAST .fp32_weights = true
/* Norms, SwiGLU and the repetition of keys and values as kernels of their own. */
#define EAGER .norm_copies = true, .gate_copies = true, .heads_repeated = true

const struct nw_memory_policy nw_memory_policies[] = {
    {
        .name = "pytorch",
        .text = "fp32 weights used as 16-bit copies, unfused layers, fp32 loss",
        AUTOCAST,
        EAGER,
        .dropout = true,
        .gathered_units = 2,
        .loss_bytes = 14,
        .source = "torch.autocast; FSDP MixedPrecision; cross_entropy: logits, their log-softmax "
                  "and two fp32 gradients",
    },
    {
        .name = "pytorch-compile",
        .text = "fp32 weights used as 16-bit copies, compiled layers, fp32 loss",
        AUTOCAST,
        .dropout = true,
        .gathered_units = 2,
        .loss_bytes = 10,
        .source = "as pytorch; Inductor recomputes elementwise work in the backward pass",
    },
    {
        .name = "hf",
        .text =
            "fp32 weights used as 16-bit copies, unfused layers, logits turned to fp32 and shifted",
        AUTOCAST,
        EAGER,
        .quantised_inputs = true,
        .gathered_units = 2,
        .whole_layers = true,
        .loss_bytes = 16,
        .source = "transformers modeling_llama.py: logits.float(), shift_logits.contiguous(), "
                  "CrossEntropyLoss; accelerate autocast",
    },
    {
        .name = "torchtitan",
        .text = "fp32 weights cut by FSDP2, 16-bit gathered layers, fp32 loss",
        AUTOCAST,
        EAGER,
        .alternate_products = true,
        .pipeline_keeps = true,
        .gathered_inputs = true,
        .gathered_units = 2,
        .loss_bytes = 12,
        .source =
            "torchtitan parallelize_llama.py (_save_list, every second mm; reshard_after_forward "
            "off in pipelines), train.py (the prediction is freed before the backward pass)",
    },
    {
        .name = "torchtitan-compile",
        .text = "as torchtitan, layers compiled",
        AUTOCAST,
        .heads_repeated = true,
        .alternate_products = true,
        .pipeline_keeps = true,
        .gathered_inputs = true,
        .gathered_units = 2,
        .loss_bytes = 12,
        .source = "as torchtitan; torch.compile of each layer",
    },
    {
        .name = "composer",
        .text = "fp32 weights cut by FSDP, 16-bit gathered layers, fused loss",
        AUTOCAST,
        .gathered_units = 2,
        .whole_layers = true,
        .loss_bytes = 4,
        .source = "llm-foundry: mixed_precision PURE, low_precision_layernorm, loss_fn "
                  "fused_crossentropy",
    },
    {
        .name = "litgpt",
        .text = "16-bit weights, moments in their type, unfused layers, loss in 16 bit",
        EAGER,
        .joined_qkv = true,
        .quantised_inputs = true,
        .adapter_dropout = true,
        .frozen_stay = true,
        .gathered_units = 2,
        .update_bytes = 2,
        .whole_layers = true,
        .loss_bytes = 10,
        .source = "LitGPT model.py, lora.py (lora_dropout 0.05), utils.py (chunked_cross_entropy); "
                  "Fabric bf16-true; torch.optim foreach",
    },
    {
        .name = "deepspeed",
        .text = "16-bit weights, fp32 copy in the optimizer, buckets of their own, unfused layers, "
                "fp32 loss",
        EAGER,
        .dropout = true,
        .quantised_inputs = true,
        .gradients_stay = true,
        .bucket_copies = true,
        .update_bytes = 4,
        .whole_layers = true,
        .loss_bytes = 16,
        .source = "DeepSpeed runtime/zero/stage_1_and_2.py, stage3.py: flat 16-bit groups, fp32 "
                  "partition and its fp32 gradient during the step; models of transformers",
    },
    {
        .name = "megatron",
        .text = "16-bit weights, gradients in one fp32 buffer, fused layers, fp32 loss in place",
        .dropout = true,
        .gradients_stay = true,
        .loss_bytes = 8,
        .source =
            "Megatron-Core distributed/param_and_grad_buffer.py; tensor_parallel/cross_entropy.py",
    },
    {
        .name = "nemo",
        .text = "16-bit weights, gradients in one fp32 buffer, fused layers, fused loss",
        .dropout = true,
        .gradients_stay = true,
        .loss_bytes = 6,
        .source = "as megatron; cross_entropy_loss_fusion",
    },
    {
        .name = "megatron-lm",
        .text = "16-bit weights, gradients in one fp32 buffer, fused kernels, fp32 loss",
        .dropout = true,
        .gradients_stay = true,
        .stage_outputs = true,
        .loss_bytes = 10,
        .source = "Megatron-LM before 2023: LocalDDP's contiguous buffers, "
                  "--accumulate-allreduce-grads-in-fp32",
    },
    {
        .name = "megatron-deepspeed",
        .text = "16-bit weights and gradients, buckets of their own, fused kernels, fp32 loss",
        .dropout = true,
        .gradients_stay = true,
        .gradient_beside = true,
        .bucket_copies = true,
        .update_bytes = 4,
        .stage_outputs = true,
        .loss_bytes = 10,
        .source = "Megatron-DeepSpeed; DeepSpeed runtime/pipe/engine.py (pipe_buffers), "
                  "runtime/zero/stage_1_and_2.py, "
                  "runtime/bf16_optimizer.py",
    },
    {
        .name = "apex",
        .text = "16-bit weights, fp32 copy in the optimizer, fused kernels, fp32 loss",
        .dropout = true,
        .update_bytes = 4,
        .whole_layers = true,
        .loss_bytes = 14,
        .source = "apex amp O2",
    },
    {
        .name = "jax",
        .text = "16-bit copies of fp32 weights inside the compiled step, fused",
        AUTOCAST,
        .gathered_units = 2,
        .one_arena = true,
        .loss_bytes = 8,
        .source =
            "MaxText weight_dtype float32, dtype bfloat16; XLA rematerialises elementwise work",
    },
    {
        .name = "paddle",
        .text = "16-bit weights, fp32 copy in the optimizer, unfused layers, fp32 loss",
        EAGER,
        .dropout = true,
        .gradients_stay = true,
        .bucket_copies = true,
        .update_bytes = 4,
        .one_arena = true,
        .loss_bytes = 14,
        .source = "PaddleNLP amp O2 with master weights; fleet group_sharded_stage2; "
                  "ParallelCrossEntropy in fp32",
    },
    {
        .name = "internevo",
        .text = "16-bit weights, fp32 copy in the optimizer, fused layers, fused loss",
        .gradients_stay = true,
        .bucket_copies = true,
        .update_bytes = 4,
        .loss_bytes = 6,
        .source = "InternEvo HybridZeroOptimizer; flash-attn cross entropy",
    },
    {
        .name = "colossalai",
        .text = "16-bit weights in chunks, fp32 copy in the optimizer, unfused layers, fp32 loss",
        EAGER,
        .gradients_stay = false,
        .gathered_units = 2,
        .loss_bytes = 14,
        .source = "ColossalAI Gemini: gradients reuse the weights' chunks",
    },
    {
        .name = "llm.c",
        .text = "16-bit weights, gradients in place, fused kernels, loss in place",
        .gradients_stay = true,
        .gathered_units = 2,
        .one_arena = true,
        .whole_layers = true,
        .loss_bytes = 2,
        .source = "llm.c train_gpt2.cu: fused classifier writes the gradient over the logits",
    },
    {
        .name = "mxnet",
        .text = "16-bit weights, fp32 copy in the optimizer, fp32 loss",
        .dropout = true,
        .gradients_stay = true,
        .one_arena = true,
        .whole_layers = true,
        .loss_bytes = 14,
        .source = "MXNet amp multi_precision",
    },
};
const size_t nw_memory_policy_count = sizeof nw_memory_policies / sizeof nw_memory_policies[0];

const struct nw_memory_policy *nw_memory_policy_of(const struct nw_profile *profile)
{
    for (size_t i = 0; profile != NULL && i < nw_memory_policy_count; i++)
        if (strcmp(nw_memory_policies[i].name, profile->name) == 0)
            return &nw_memory_policies[i];
    return &nw_memory_policies[0];
}
