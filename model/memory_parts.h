/* Private to model/. The parts of one GPU's memory; model/memory.c puts them together. */
#ifndef NW_MODEL_MEMORY_PARTS_H
#define NW_MODEL_MEMORY_PARTS_H

#include "model/memory.h"
#include "model/memory_policy.h"

/* Of two numbers that are none of them NAN: a compare, where fmax and fmin are calls. */
static inline double nw_larger(double a, double b)
{
    return a > b ? a : b;
}
static inline double nw_smaller(double a, double b)
{
    return a < b ? a : b;
}

struct nw_saved {   /* bytes of one layer for the backward pass, one micro-batch */
    double stored;  /* what the recomputation policy keeps */
    double whole;   /* all of it: there while the layer is worked on */
    double working; /* gradients of activations while the layer is worked on */
};

struct nw_memory_task { /* what all parts read */
    const struct nw_job *job;
    const struct nw_layout *layout;
    const struct nw_profile *profile;
    const struct nw_memory_policy *policy;
    double tokens; /* of one micro-batch on one GPU: cut over cp */
    double micro_batch, micro_batch_count;
    int tp, pp, cp, ep;
    double norm_cut; /* ranks that norms' activations are cut over: tp with sequence parallelism */
    /* The same for every stage. */
    double layer_count[NW_LAYER_KINDS], all_layers;
    struct nw_layer_parts parts[NW_LAYER_KINDS];
    struct nw_adapter_parts adapters[NW_LAYER_KINDS]; /* parameters of one layer's */
    double embedding, head;                           /* parameters */
    struct nw_saved saved[NW_LAYER_KINDS];
};

struct nw_memory_task nw_memory_task_of(const struct nw_job *job, const struct nw_layout *layout,
                                        uint64_t micro_batch, uint64_t micro_batch_count);

struct nw_stage_share { /* one pipeline rank */
    int index;
    bool first, last;
    double layers[NW_LAYER_KINDS];
    double in_flight; /* micro-batches whose activations are kept, of all its layers */
};
struct nw_stage_share nw_memory_stage(const struct nw_memory_task *task, int index);

/* Parameters on one GPU, after tensor, pipeline and expert parallelism, before any strategy. */
struct nw_stage_parameters {
    double layers;    /* all of the layers but the experts */
    double quantised; /* of which matrices */
    double experts;
    double ends; /* embedding and output layer, as far as they are here */
    double adapters, expert_adapters;
    double layer_unit;     /* the largest layer with its experts */
    double unit_quantised; /* of which matrices */
};
struct nw_stage_parameters nw_memory_parameters(const struct nw_memory_task *task,
                                                const struct nw_stage_share *stage);

struct nw_states {
    double weights, gradients, optimizer; /* bytes on the GPU */
    double update;                        /* while the update runs */
    double host;
};
struct nw_states nw_memory_states(const struct nw_memory_task *task,
                                  const struct nw_stage_parameters *parameters);
double nw_memory_weight_bytes(const struct nw_memory_task *task); /* of one trained weight */
double nw_memory_gradient_bytes(const struct nw_memory_task *task);
bool nw_memory_weights_cut(const struct nw_memory_task *task);    /* at rest */
bool nw_memory_keeps_gathered(const struct nw_memory_task *task); /* through the micro-batch */
bool nw_memory_trains_all(const struct nw_memory_task *task);     /* no adapters */

/* Communication buffers and gathered weights: held through the step, and at the update too. */
double nw_memory_buffers(const struct nw_memory_task *task, const struct nw_stage_parameters *own);

struct nw_saved nw_memory_layer(const struct nw_memory_task *task, int kind);
double nw_memory_logits(const struct nw_memory_task *task);   /* with the loss */
double nw_memory_boundary(const struct nw_memory_task *task); /* between two layers */
double nw_memory_last_norm(const struct nw_memory_task *task);

double nw_memory_runtime(const struct nw_memory_task *task,
                         const struct nw_assumptions *assumptions);

#endif
