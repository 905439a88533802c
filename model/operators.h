/* Private to model/. What one GPU computes for one micro-batch in one unit of the net: matrix
 * products by shape, the attention core, bytes of work that only moves memory, kernels. Counts
 * only; model/compute.c makes times of them.
 *
 *     struct nw_operators operators;
 *     nw_operators_layer(&job, &layout, micro_batch, NW_LAYER_PLAIN, &operators);
 */
#ifndef NW_MODEL_OPERATORS_H
#define NW_MODEL_OPERATORS_H

#include "model/layout.h"

/* rows × in by in × out, `batch` of them at a time. Backward: the input's gradient is rows × out by
 * out × in, the second factor's in × rows by rows × out. */
struct nw_linear {
    double batch, rows, in, out;
    bool weights;   /* the second factor is a weight; else both are activations */
    bool frozen;    /* a weight without gradient (LoRA's base) */
    bool narrow;    /* cast to fp8 where the job computes in it */
    bool attention; /* of the materialised attention core */
    bool adapter;   /* of LoRA */
};

struct nw_attention_core {         /* fused (flash): scores never in memory */
    double batch;                  /* sequences × heads; 0: none, or materialised in the linears */
    double rows, keys;             /* queries of this GPU, keys of the whole sequence */
    double query_size, value_size; /* of a head */
    double share;                  /* of rows × keys that is computed: causal ½ */
};

#define NW_LINEARS_MAX 40
struct nw_operators {
    struct nw_linear linears[NW_LINEARS_MAX];
    size_t linear_count;
    struct nw_attention_core core;
    /* The least that fused kernels move. softmax: of the materialised core, within them. */
    double forward_bytes, backward_bytes, softmax_bytes;
    double pass_bytes; /* moved once in every pass whatever the fusing: casts, dequantisation */
    double forward_kernels, backward_kernels; /* beside products and core, fused */
    double stated_flops;                      /* forward, of a net that is stated, not counted */
};

void nw_operators_layer(const struct nw_job *job, const struct nw_layout *layout,
                        uint64_t micro_batch, int kind, struct nw_operators *operators_out);
void nw_operators_embedding(const struct nw_job *job, const struct nw_layout *layout,
                            uint64_t micro_batch, struct nw_operators *operators_out);
/* `fused_loss`: logits are read once and become their gradient in place. */
void nw_operators_head(const struct nw_job *job, const struct nw_layout *layout,
                       uint64_t micro_batch, bool fused_loss, struct nw_operators *operators_out);

double nw_core_flops(const struct nw_attention_core *core); /* forward */
double nw_operators_forward_flops(const struct nw_operators *operators);
/* Without what is recomputed; weights' gradients only of what is trained. */
double nw_operators_backward_flops(const struct nw_operators *operators);

#endif
