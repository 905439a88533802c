/* Public. What a training framework does by default: how it cuts messages, what it overlaps, what
 * it reduces in, how it runs the small kernels. One row a framework; each figure is a documented
 * default of the software, with its source, or (memory_passes to time_factor) judged on published
 * steps that used it; never of a machine. Plain data.
 */
#ifndef NW_MODEL_PROFILE_H
#define NW_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    NW_OVERLAP_SERIAL, /* communication after computation */
    NW_OVERLAP_STREAM, /* behind computation, which it slows (OVERLAP_LOSS) */
    NW_OVERLAP_FUSED,  /* behind it, in chunks or with few SMs: FUSED_LOSS */
} nw_overlap;

struct nw_profile {
    const char *name, *title; /* "pytorch" "pytorch-compile" "deepspeed" "megatron" … */
    double ddp_first_bucket_bytes, ddp_bucket_bytes;
    double reduce_bucket_elements;       /* zero1, zero2, zero3 */
    double gather_bucket_elements;       /* weights after the update */
    double bucket_elements_per_rank;     /* buckets grow with the ranks: at least so much each */
    double prefetch_elements;            /* largest gather of zero3; INFINITY: a layer */
    double live_elements;                /* gathered weights that zero3 keeps */
    double gradient_bytes, reduce_bytes; /* 0: the weights' own type */
    bool buckets_are_copies;             /* DDP's gradient_as_bucket_view = False */
    bool broadcasts_updated; /* zero1 is a wrapper around DDP: whole gradients are all-reduced, each
                                rank's updated share is broadcast, one after the other */
    bool reduces_last;       /* sharded gradients too are reduced after the last micro-batch only */
    nw_overlap gradients, weights, tensor; /* what hides: reductions, gathers, TP all-reduces */
    double memory_passes;   /* bytes of elementwise work over the least possible (fused): 1 … 2;
                               of a net as stated, over what it states */
    double launch_share;    /* kernels that the CPU launches for one that the model counts: eager
                               frameworks reshape, cast and copy; 1: none of that; 0: graphs */
    double attention_share; /* rate of its fused attention over the best kernels' (cuDNN, FA-3): 1;
                               less: written for Ampere's instructions. On A100 forward and
                               backward at heads of 128 FlashAttention-1 reaches 120 TFLOP/s (0.55),
                               FlashAttention-2 185 (0.8; Dao 2023, figure 4) */
    double time_factor;     /* a step of this software over the roofline: loader, allocator, gaps */
    bool fused_qkv;         /* query, key and value are one matrix, with one adapter (LoRA) */
    bool sums_apart;        /* gradients of micro-batches are summed by kernels of their own, not by
                               the product that makes them; bf16 ones in fp32 */
    bool stops_recompute;   /* recomputation ends with the last value that the backward pass needs:
                               without a block's last product (PyTorch's checkpointing without
                               reentry: set_checkpoint_early_stop; XLA removes what is unused) */
    bool padded_vocabulary; /* to a multiple of 128 on each rank (Megatron-LM) */
    bool fused_loss;        /* cross entropy without fp32 logits in memory */
    const char *source;
};

extern const struct nw_profile nw_profiles[]; /* [0]: plain PyTorch */
extern const size_t nw_profile_count;
extern const char *const nw_profile_names[];                 /* NULL-terminated */
const struct nw_profile *nw_profile_named(const char *name); /* NULL: none */

#endif
