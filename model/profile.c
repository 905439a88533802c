/* The frameworks: one row each. */
#include "model/profile.h"

#include <math.h>

#define MIB (1024.0 * 1024.0)

/* What several of them have in common. */
#define DDP_BUCKETS .ddp_first_bucket_bytes = 1 * MIB, .ddp_bucket_bytes = 25 * MIB
#define PYTORCH_PARTS                                                                              \
    DDP_BUCKETS, .reduce_bucket_elements = 2.5e7 / 4, .gather_bucket_elements = INFINITY,          \
                 .prefetch_elements = INFINITY, .gradients = NW_OVERLAP_STREAM,                    \
                 .weights = NW_OVERLAP_STREAM, .tensor = NW_OVERLAP_SERIAL
#define DEEPSPEED_PARTS                                                                            \
    DDP_BUCKETS, .reduce_bucket_elements = 5e8, .gather_bucket_elements = 5e8,                     \
                 .prefetch_elements = 5e7, .live_elements = 1e9
/* Buckets of max(40·10^6, 10^6 × ranks) elements. */
#define MEGATRON_PARTS                                                                             \
    .ddp_first_bucket_bytes = 40e6 * 4, .ddp_bucket_bytes = 40e6 * 4,                              \
    .reduce_bucket_elements = 4e7, .gather_bucket_elements = 4e7,                                  \
    .bucket_elements_per_rank = 1e6, .prefetch_elements = INFINITY, .gradient_bytes = 4,           \
    .reduce_bytes = 4

const struct nw_profile nw_profiles[] = {
    {
        .name = "pytorch",
        .title = "PyTorch DDP and FSDP, eager",
        PYTORCH_PARTS,
        .buckets_are_copies = true,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "DistributedDataParallel bucket_cap_mb = 25, c10d kDefaultFirstBucketBytes; "
                  "FSDP forward_prefetch and BACKWARD_PRE",
    },
    {
        .name = "pytorch-compile",
        .title = "PyTorch DDP and FSDP, torch.compile",
        PYTORCH_PARTS,
        .memory_passes = 1.4,
        .launch_share = 0.5,
        .time_factor = 1,
        .source = "as pytorch; Inductor fuses elementwise work",
    },
    {
        .name = "hf",
        .title = "Hugging Face Trainer, accelerate",
        PYTORCH_PARTS,
        .reduces_last = true,
        .buckets_are_copies = true,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "accelerate Accelerator.accumulate: no_sync for all micro-batches but the last",
    },
    {
        .name = "torchtitan",
        .title = "torchtitan, FSDP2, eager",
        PYTORCH_PARTS,
        .reduce_bytes = 4,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "torchtitan MixedPrecisionPolicy(param bf16, reduce fp32)",
    },
    {
        .name = "torchtitan-compile",
        .title = "torchtitan, FSDP2, layers compiled",
        PYTORCH_PARTS,
        .reduce_bytes = 4,
        .memory_passes = 1.4,
        .launch_share = 0.5,
        .time_factor = 1,
        .source = "as torchtitan; torch.compile of each layer",
    },
    {
        .name = "composer",
        .title = "MosaicML Composer, llm-foundry (FSDP)",
        PYTORCH_PARTS,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "llm-foundry fsdp_config: FULL_SHARD, mixed_precision PURE",
    },
    {
        .name = "litgpt",
        .title = "LitGPT, Lightning Fabric (FSDP)",
        PYTORCH_PARTS,
        .reduces_last = true,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "LitGPT pretrain.py: fabric.no_backward_sync while accumulating",
    },
    {
        .name = "deepspeed",
        .title = "DeepSpeed ZeRO",
        DEEPSPEED_PARTS,
        .gradients = NW_OVERLAP_SERIAL,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "DeepSpeed reduce_bucket_size, allgather_bucket_size, stage3_*; overlap_comm "
                  "is off by default below ZeRO-3",
    },
    {
        .name = "megatron",
        .title = "Megatron-Core, Transformer Engine, overlapped",
        MEGATRON_PARTS,
        .gradients = NW_OVERLAP_FUSED,
        .weights = NW_OVERLAP_FUSED,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.2,
        .launch_share = 1,
        .time_factor = 1,
        .fused_loss = true,
        .source = "Megatron-Core DistributedDataParallelConfig: bucket_size = max(40M, 1M × dp), "
                  "grad_reduce_in_fp32; --overlap-grad-reduce --overlap-param-gather",
    },
    {
        .name = "nemo",
        .title = "NVIDIA NeMo on Megatron-Core",
        MEGATRON_PARTS,
        .gradients = NW_OVERLAP_FUSED,
        .weights = NW_OVERLAP_FUSED,
        .tensor = NW_OVERLAP_FUSED,
        .memory_passes = 1.2,
        .launch_share = 1,
        .time_factor = 1,
        .fused_loss = true,
        .source = "NeMo recipes: MegatronCommOverlapCallback(tp_comm_overlap=True), "
                  "overlap_grad_reduce, overlap_param_gather",
    },
    {
        .name = "megatron-legacy",
        .title = "Megatron-LM, gradients reduced after the backward pass",
        .prefetch_elements = INFINITY,
        .gradients = NW_OVERLAP_SERIAL,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.4,
        .launch_share = 1,
        .time_factor = 1,
        .source = "Megatron-LM before 2023: allreduce_gradients of one contiguous buffer",
    },
    {
        .name = "megatron-deepspeed",
        .title = "Megatron-DeepSpeed (BLOOM)",
        DEEPSPEED_PARTS,
        .gradients = NW_OVERLAP_SERIAL,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.4,
        .launch_share = 1,
        .time_factor = 1,
        .source = "DeepSpeed PipelineEngine: gradients reduced after the last micro-batch",
    },
    {
        .name = "apex",
        .title = "NVIDIA DeepLearningExamples (apex DDP, all-reduce after the backward pass)",
        .prefetch_elements = INFINITY,
        .gradients = NW_OVERLAP_SERIAL,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.6,
        .launch_share = 1,
        .time_factor = 1,
        .source = "DeepLearningExamples BERT run_pretraining.py: flat all-reduce while "
                  "accumulating",
    },
    {
        .name = "jax",
        .title = "JAX: MaxText, Paxml",
        .prefetch_elements = INFINITY,
        .reduce_bucket_elements = 4e7,
        .gather_bucket_elements = 4e7,
        .ddp_bucket_bytes = 30 * MIB,
        .ddp_first_bucket_bytes = 30 * MIB,
        .gradients = NW_OVERLAP_STREAM,
        .weights = NW_OVERLAP_STREAM,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.4,
        .launch_share = 0,
        .time_factor = 1,
        .source = "XLA latency hiding scheduler; xla_gpu_all_reduce_combine_threshold_bytes = "
                  "30 MiB",
    },
    {
        .name = "paddle",
        .title = "PaddlePaddle, PaddleNLP",
        .ddp_first_bucket_bytes = 1 * MIB,
        .ddp_bucket_bytes = 25 * MIB,
        .reduce_bucket_elements = 1.28e8,
        .gather_bucket_elements = 1.28e8,
        .prefetch_elements = INFINITY,
        .gradients = NW_OVERLAP_STREAM,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.6,
        .launch_share = 1,
        .time_factor = 1,
        .source = "paddle.DataParallel comm_buffer_size = 25, last_comm_buffer_size = 1; sharding "
                  "fuse 256 MB",
    },
    {
        .name = "internevo",
        .title = "InternEvo",
        .ddp_first_bucket_bytes = 512 * MIB,
        .ddp_bucket_bytes = 512 * MIB,
        .reduce_bucket_elements = 512 * MIB / 2,
        .gather_bucket_elements = 512 * MIB / 2,
        .prefetch_elements = INFINITY,
        .gradients = NW_OVERLAP_STREAM,
        .weights = NW_OVERLAP_STREAM,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.6,
        .launch_share = 1,
        .time_factor = 1,
        .source = "InternEvo HybridZeroOptimizer: overlap_sync_grad, overlap_sync_param, "
                  "reduce_bucket_size = 512 MB",
    },
    {
        .name = "colossalai",
        .title = "ColossalAI Gemini",
        DDP_BUCKETS,
        .reduce_bucket_elements = 6.7e7,
        .gather_bucket_elements = 6.7e7,
        .prefetch_elements = 6.7e7,
        .gradients = NW_OVERLAP_STREAM,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "GeminiPlugin: chunks found by search_range_m, no prefetch by default",
    },
    {
        .name = "llmc",
        .title = "llm.c, LLM.Q (fused C and CUDA)",
        .prefetch_elements = INFINITY,
        .gradients = NW_OVERLAP_STREAM,
        .weights = NW_OVERLAP_STREAM,
        .tensor = NW_OVERLAP_SERIAL,
        .ddp_first_bucket_bytes = 1,
        .ddp_bucket_bytes = 1,
        .reduce_bucket_elements = 1,
        .gather_bucket_elements = 1,
        .memory_passes = 1,
        .launch_share = 0.3,
        .time_factor = 1,
        .fused_loss = true,
        .source = "llm.c train_gpt2.cu: each layer's gradients reduced on a stream of their own",
    },
    {
        .name = "mxnet",
        .title = "MXNet with Horovod",
        .ddp_first_bucket_bytes = 64 * MIB,
        .ddp_bucket_bytes = 64 * MIB,
        .reduce_bucket_elements = 1.6e7,
        .gather_bucket_elements = 1.6e7,
        .prefetch_elements = INFINITY,
        .gradients = NW_OVERLAP_STREAM,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.6,
        .launch_share = 0.5,
        .time_factor = 1,
        .source = "Horovod HOROVOD_FUSION_THRESHOLD = 64 MB",
    },
};
const size_t nw_profile_count = sizeof nw_profiles / sizeof nw_profiles[0];
const char *const nw_profile_names[] = {
    "pytorch",    "pytorch-compile", "hf",        "torchtitan",      "torchtitan-compile",
    "composer",   "litgpt",          "deepspeed", "megatron",        "nemo",
    "megatron-legacy", "megatron-deepspeed", "apex", "jax",          "paddle",
    "internevo",  "colossalai",      "llmc",      "mxnet",           NULL};
