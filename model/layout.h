/* Public. How a job is spread over GPUs: the degrees of parallelism, the strategy of the
 * data-parallel ranks, the framework. Plain data.
 *
 *     struct nw_layout layout = {.node_count = 2, .rank_count = 16, .strategy = fsdp,
 *                                .profile = pytorch, .parallel = {.tp = 2, …}};
 *
 * Ranks are dealt as Megatron-LM does: tensor-parallel ranks next to each other, then context, then
 * data, then pipeline (tp-cp-ep-dp-pp). rank_count = tp × cp × pp × data-parallel ranks; experts
 * are dealt over ep of the cp × dp ranks.
 */
#ifndef NW_MODEL_LAYOUT_H
#define NW_MODEL_LAYOUT_H

#include "model/job.h"

struct nw_strategy;
struct nw_profile;

struct nw_parallel { /* 0 counts as 1 */
    int tp, pp, cp, ep;
    int virtual_stages; /* of each pipeline rank (interleaved 1F1B) */
    int shard_count;  /* ranks that share one copy of what the strategy cuts; 0: all; less: HSDP */
    bool reduce_each; /* gradients that are cut: in every micro-batch, also where the framework sums
                         them first (accelerate's sync_each_batch) */
    bool sequence_parallel; /* norms and dropout cut over tp as well (Korthikanti et al. 2022) */
};

/* How the batch is dealt to more GPUs. */
typedef enum {
    NW_SCALING_STRONG, /* the job's global batch, fewer micro-batches per GPU */
    NW_SCALING_WEAK,   /* the job's micro-batch and the micro-batch count of the base */
} nw_scaling;

struct nw_layout {
    int node_count, rank_count;
    nw_scaling scaling;
    int base_rank_count; /* weak: where the micro-batch count is taken from */
    struct nw_parallel parallel;
    const struct nw_strategy *strategy; /* NULL: of one rank only */
    const struct nw_profile *profile;   /* NULL: nw_profiles[0], plain PyTorch */
};

const struct nw_profile *nw_layout_profile(const struct nw_layout *layout); /* never NULL */
int nw_layout_tp(const struct nw_layout *layout); /* 1 or more; the same below */
int nw_layout_pp(const struct nw_layout *layout);
int nw_layout_cp(const struct nw_layout *layout);
int nw_layout_ep(const struct nw_layout *layout);
int nw_layout_virtual_stages(const struct nw_layout *layout);
/* Data-parallel ranks: copies of the model that see other sequences. */
int nw_layout_dp(const struct nw_layout *layout);
/* Ranks that weights' gradients are summed over: dp × cp. Of a sharding strategy, how many share
 * one copy: shard_count, or all of them. */
int nw_layout_reduce_count(const struct nw_layout *layout);
int nw_layout_shard_count(const struct nw_layout *layout);
/* Ranks that a strategy's cut states lie on: those of one copy; of ZeRO++, which keeps a second
 * copy of the weights in each node (hpZ), all. */
int nw_layout_state_count(const struct nw_layout *layout);
/* Key-value heads that a rank holds; fewer than tensor-parallel ranks are copied. */
double nw_layout_kv_heads(const struct nw_layout *layout, const struct nw_transformer *net);

/* A group of ranks with equal stride, as it lies on the nodes. `sharing` groups of the same kind
 * run at the same time over one node's NICs. */
struct nw_group {
    int rank_count, host_count;
    int sharing;   /* 0 counts as 1 */
    int host_span; /* from the first of its hosts to the last; 0 counts as host_count */
};
typedef enum {
    NW_GROUP_TP,
    NW_GROUP_CP,
    NW_GROUP_DP,      /* the ranks that gradients are summed over: dp × cp */
    NW_GROUP_SHARD,   /* of which share one copy */
    NW_GROUP_REPLICA, /* one rank of each copy (HSDP) */
    NW_GROUP_EP,
    NW_GROUP_EXPERT, /* the ranks that hold the same experts: their gradients are summed over it */
    NW_GROUP_PP,     /* two neighbouring stages */
    NW_GROUP_WORLD,
    NW_GROUP_COUNT,
} nw_group_kind;
struct nw_group nw_layout_group(const struct nw_layout *layout, nw_group_kind kind);

/* Degrees against the job and the machine: NW_EUSAGE naming which does not divide what, with
 * accepted values. */
nw_rc nw_layout_check(const struct nw_layout *layout, const struct nw_job *job);

struct nw_deal {
    uint64_t micro_batch;       /* the largest up to the job's that divides a rank's share */
    uint64_t micro_batch_count; /* of a rank, a step */
    uint64_t global_batch;      /* the job's; weak scaling: as many for each rank */
};
/* NW_EUSAGE: it does not go round the data-parallel ranks, or interleaved stages. */
nw_rc nw_layout_deal(const struct nw_layout *layout, const struct nw_job *job,
                     struct nw_deal *deal_out);

#endif
