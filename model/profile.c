/* The frameworks: one row each. */
#include "model/profile.h"

#include <math.h>

#define MIB (1024.0 * 1024.0)

const struct nw_profile nw_profiles[] = {
    {
        .name = "pytorch",
        .title = "PyTorch DDP and FSDP, eager",
        .ddp_first_bucket_bytes = 1 * MIB,
        .ddp_bucket_bytes = 25 * MIB,
        .reduce_bucket_elements = 5e8,
        .gather_bucket_elements = 5e8,
        .prefetch_elements = INFINITY,
        .live_elements = 0,
        .buckets_are_copies = true,
        .gradients = NW_OVERLAP_STREAM,
        .weights = NW_OVERLAP_STREAM,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source =
            "PyTorch DistributedDataParallel bucket_cap_mb = 25, c10d kDefaultFirstBucketBytes",
    },
    {
        .name = "deepspeed",
        .title = "DeepSpeed ZeRO",
        .ddp_first_bucket_bytes = 1 * MIB,
        .ddp_bucket_bytes = 25 * MIB,
        .reduce_bucket_elements = 5e8,
        .gather_bucket_elements = 5e8,
        .prefetch_elements = 5e7,
        .live_elements = 1e9,
        .gradients = NW_OVERLAP_SERIAL,
        .weights = NW_OVERLAP_SERIAL,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 2,
        .launch_share = 1,
        .time_factor = 1,
        .source = "DeepSpeed reduce_bucket_size, allgather_bucket_size, stage3_*",
    },
    {
        .name = "megatron",
        .title = "Megatron-Core with overlap",
        .ddp_first_bucket_bytes = 40e6 * 4,
        .ddp_bucket_bytes = 40e6 * 4,
        .reduce_bucket_elements = 4e7,
        .gather_bucket_elements = 4e7,
        .prefetch_elements = INFINITY,
        .gradient_bytes = 4,
        .reduce_bytes = 4,
        .gradients = NW_OVERLAP_FUSED,
        .weights = NW_OVERLAP_FUSED,
        .tensor = NW_OVERLAP_SERIAL,
        .memory_passes = 1.2,
        .launch_share = 1,
        .time_factor = 1,
        .fused_loss = true,
        .source = "Megatron-Core DistributedDataParallelConfig bucket_size = max(40M, 1M × dp)",
    },
};
const size_t nw_profile_count = sizeof nw_profiles / sizeof nw_profiles[0];
const char *const nw_profile_names[] = {"pytorch", "deepspeed", "megatron", NULL};
