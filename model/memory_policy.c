/* The frameworks' memory policies: one row each. */
#include "model/memory_policy.h"

#include <string.h>

#include "model/profile.h"

const struct nw_memory_policy nw_memory_policies[] = {
    {
        .name = "pytorch",
        .text = "fp32 weights with 16-bit copies, unfused norms and SwiGLU, fp32 loss",
        .fp32_weights = true,
        .update_bytes = 0,
        .gathered_units = 2,
        .norm_copies = true,
        .gate_copies = true,
        .heads_repeated = true,
        .dropout = true,
        .quantised_inputs = true,
        .loss_bytes = 14,
        .loss_pieces = 1,
        .source = "torch.autocast; FSDP MixedPrecision; cross_entropy: log-softmax and two "
                  "gradients in fp32 beside the logits and their fp32 copy",
    },
    {
        .name = "deepspeed",
        .text = "16-bit weights, fp32 copy in the optimizer, buckets of their own, fp32 loss",
        .gradients_stay = true,
        .bucket_copies = true,
        .update_bytes = 4,
        .norm_copies = true,
        .gate_copies = true,
        .heads_repeated = true,
        .dropout = true,
        .quantised_inputs = true,
        .loss_bytes = 14,
        .loss_pieces = 1,
        .source = "DeepSpeed runtime/zero/stage_1_and_2.py, stage3.py: flat 16-bit groups, fp32 "
                  "partition and its fp32 gradient during the step",
    },
    {
        .name = "megatron",
        .text = "16-bit weights, gradients in one fp32 buffer, fused norms and SwiGLU",
        .gradients_stay = true,
        .joined_qkv = true,
        .dropout = true,
        .loss_bytes = 8,
        .loss_pieces = 1,
        .source = "Megatron-Core distributed/param_and_grad_buffer.py, tensor_parallel/"
                  "cross_entropy.py (fp32 logits, their softmax reused for the gradient)",
    },
    {
        .name = "torchtitan",
        .text = "fp32 weights cut by FSDP2, 16-bit gathered layers, loss in fp32",
        .fp32_weights = true,
        .gathered_units = 2,
        .norm_copies = true,
        .gate_copies = true,
        .heads_repeated = true,
        .alternate_products = true,
        .loss_bytes = 12,
        .loss_pieces = 1,
        .source = "torchtitan parallelisms/parallelize_llama.py (_save_list, every second mm), "
                  "train.py (the prediction is freed before the backward pass)",
    },
    {
        .name = "torchtitan-compile",
        .text = "as torchtitan, layers compiled: norms and SwiGLU fused",
        .fp32_weights = true,
        .gathered_units = 2,
        .heads_repeated = true,
        .alternate_products = true,
        .loss_bytes = 12,
        .loss_pieces = 1,
        .source = "torchtitan, torch.compile of every layer",
    },
    {
        .name = "litgpt",
        .text = "16-bit weights without fp32 copy, unfused layers, loss in 16 bit",
        .update_bytes = 2,
        .gathered_units = 2,
        .norm_copies = true,
        .gate_copies = true,
        .heads_repeated = true,
        .joined_qkv = true,
        .quantised_inputs = true,
        .frozen_stay = true,
        .adapter_dropout = true,
        .loss_bytes = 10,
        .loss_pieces = 1,
        .source = "LitGPT model.py, utils.py (chunked_cross_entropy); Fabric precision bf16-true",
    },
    {
        .name = "megatron-deepspeed",
        .text = "16-bit weights and gradients, ZeRO-1 buckets, fused kernels of Megatron-LM",
        .gradients_stay = true,
        .gradient_beside = true,
        .bucket_copies = true,
        .update_bytes = 4,
        .joined_qkv = true,
        .dropout = true,
        .loss_bytes = 10,
        .loss_pieces = 1,
        .source = "Megatron-DeepSpeed; DeepSpeed runtime/zero/stage_1_and_2.py",
    },
    {
        .name = "paddle",
        .text = "16-bit weights, fp32 copy in the optimizer",
        .gradients_stay = true,
        .heads_repeated = true,
        .gate_copies = true,
        .loss_bytes = 10,
        .loss_pieces = 1,
        .source = "PaddlePaddle amp O2",
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
