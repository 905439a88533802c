/* Public. The training job: what is computed, whatever machine it runs on. Plain data, nothing
 * owned.
 *
 *     struct nw_job job = {.sequence = 4096, .micro_batch = 1, .global_batch = 512, …};
 *     NW_TRY(nw_transformer_find("llama-3-8b", &job.net));
 *     NW_TRY(nw_job_check(&job));        // every contradiction, in words
 */
#ifndef NW_MODEL_JOB_H
#define NW_MODEL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "model/transformer.h"

typedef enum { /* which matrix units run the products */
               NW_UNITS_FP32,
               NW_UNITS_TF32,
               NW_UNITS_FP16,
               NW_UNITS_BF16,
               NW_UNITS_FP8,
} nw_units_kind;

struct nw_precision {
    const char *name;     /* "fp32" "tf32" "fp16" "bf16" "fp8" */
    double element_bytes; /* weights and activations; fp8: 2, the products cast them */
    double master_bytes;  /* fp32 copy of the weights in the optimizer */
    bool half;            /* runs on the GPU's 16-bit matrix units, or faster ones */
    nw_units_kind units;
};
extern const struct nw_precision nw_precisions[];
extern const char *const nw_precision_names[];                   /* NULL-terminated */
const struct nw_precision *nw_precision_named(const char *name); /* NULL: none */

struct nw_optimizer {
    const char *name, *title;
    double state_bytes; /* per parameter, without the master copy */
    double again_bytes; /* read and written once more by the update itself, per parameter */
};
extern const struct nw_optimizer nw_optimizers[];
extern const char *const nw_optimizer_names[];
const struct nw_optimizer *nw_optimizer_named(const char *name); /* NULL: none */

typedef enum { /* activation checkpointing */
               NW_RECOMPUTE_NONE,
               NW_RECOMPUTE_FULL,      /* every layer keeps its input only (Chen et al. 2016) */
               NW_RECOMPUTE_SELECTIVE, /* the attention core again (Korthikanti et al. 2022, section
                                          5) */
} nw_recompute;
const char *nw_recompute_name(nw_recompute recompute); /* "none" "full" "selective" */

/* Adapters (Hu et al. 2021). rank 0: none, all weights are trained. */
enum {
    NW_LORA_Q = 1,
    NW_LORA_K = 2,
    NW_LORA_V = 4,
    NW_LORA_O = 8,
    NW_LORA_GATE = 16,
    NW_LORA_UP = 32,
    NW_LORA_DOWN = 64,
};
/* Bytes of a weight in NF4 with double quantisation: 4 bits, and for 64 weights an 8-bit scale that
 * shares an fp32 one with 255 others (Dettmers et al. 2023, QLoRA, section 3). */
#define NW_NF4_BYTES (0.5 + 1.0 / 64 + 4.0 / (64 * 256))
struct nw_lora {
    uint64_t rank;
    unsigned targets; /* NW_LORA_… */
    double
        base_bytes; /* per parameter of the frozen base; 0: element_bytes; nf4 0.5 + its scales */
};

typedef enum { NW_OFFLOAD_NONE, NW_OFFLOAD_CPU, NW_OFFLOAD_NVME } nw_offload_to;
struct nw_offload {
    nw_offload_to optimizer, parameters; /* where these parts live and the update runs */
    nw_offload_to activations;           /* what checkpointing keeps */
};

struct nw_job {
    struct nw_transformer net;
    uint64_t sequence;     /* tokens */
    uint64_t micro_batch;  /* sequences per data-parallel rank at a time */
    uint64_t global_batch; /* sequences per optimizer step */
    const struct nw_precision *precision;
    const struct nw_optimizer *optimizer;
    double master_bytes;   /* per parameter: fp32 copy in the optimizer; NAN: the precision's own */
    double gradient_bytes; /* per parameter, as kept; 0: the weights' type */
    double reduce_bytes;   /* per gradient element on the wire; 0: gradient_bytes */
    nw_recompute recompute;
    bool flash;        /* attention scores never in memory */
    bool chunked_loss; /* output layer and loss in pieces, the logits never whole */
    struct nw_lora lora;
    struct nw_offload offload;
    double tokens; /* of the whole training; NAN: not given */
};

/* Every matrix of a layer: NW_LORA_…. */
unsigned nw_lora_all(const struct nw_transformer *net);
/* Parameters that are trained, those of the adapters if there are any. */
double nw_job_trained_parameters(const struct nw_job *job);
/* Per parameter, in use: the job's own, else what its precision and its gradients say. */
double nw_job_master_bytes(const struct nw_job *job);
double nw_job_gradient_bytes(const struct nw_job *job);
/* Of a weight of the layers' matrices as it lies there and is gathered: a quantised base's under
 * adapters. */
double nw_job_base_bytes(const struct nw_job *job);
double nw_job_reduce_bytes(const struct nw_job *job);
/* The optimizer's moments; without an fp32 copy in the type of the weights. */
double nw_job_state_bytes(const struct nw_job *job);
/* Contradictions of the job itself: NW_EUSAGE naming the option, what it is and what is accepted.
 */
nw_rc nw_job_check(const struct nw_job *job);

#endif
