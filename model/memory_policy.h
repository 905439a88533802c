/* Public. What a training framework keeps in memory beside the formulas that are the same for all
 * of them: the type of the weights, whether gradient buffers stay, what an unfused kernel saves for
 * the backward pass, copies in the loss and in the update. One row a framework, each field a
 * property of the software with its source, never of a machine or of a run.
 */
#ifndef NW_MODEL_MEMORY_POLICY_H
#define NW_MODEL_MEMORY_POLICY_H

#include <stdbool.h>
#include <stddef.h>

struct nw_profile;

struct nw_memory_policy {
    const char *name;  /* as the profile's that it belongs to */
    const char *text;  /* for people: what was assumed */
    bool whole_layers; /* has neither tensor nor pipeline parallelism */
    /* Parameters. */
    bool fp32_weights;     /* the weights are fp32, products use 16-bit copies (autocast, FSDP's
                              MixedPrecision); no other master copy then */
    bool gradients_stay;   /* gradient buffers live through the whole step */
    bool gradient_beside;  /* a gradient in the type of the weights next to the fp32 sum */
    bool bucket_copies;    /* zero1 and zero2 reduce through a bucket of their own */
    double update_bytes;   /* per updated parameter, only while the update runs */
    double gathered_units; /* fsdp: gathered at a time */
    bool pipeline_keeps;   /* fsdp in a pipeline: gathered weights and unreduced gradients stay from
                              micro-batch to micro-batch */
    bool stage_outputs;    /* a pipeline stage keeps what it sent for every micro-batch in flight */
    bool frozen_stay;      /* fsdp: gathered frozen weights stay until the backward pass ends */
    bool one_arena; /* memory is taken once or given back: nothing cached beside what is in use */
    /* Activations. */
    bool norm_copies;        /* an unfused norm keeps its input in fp32 and its own output */
    bool gate_copies;        /* an unfused SwiGLU keeps the activated gate too */
    bool heads_repeated;     /* keys and values are repeated for all heads before attention */
    bool joined_qkv;         /* the value is a view that keeps the whole product of q, k and v */
    bool gathered_inputs;    /* with sequence parallelism products keep their input as gathered */
    bool dropout;            /* masks of the two residual dropouts, plain MLP only */
    bool alternate_products; /* selective recomputation: every other matrix product is kept */
    bool adapter_dropout;    /* adapters read a dropped copy of their input */
    bool quantised_inputs;   /* products with a 4-bit base keep their input */
    double loss_bytes;       /* per logit at its largest moment, all copies */
    const char *source;
};

extern const struct nw_memory_policy nw_memory_policies[]; /* [0]: plain PyTorch */
extern const size_t nw_memory_policy_count;

/* By the profile's name; NULL or a name without a row: plain PyTorch. */
const struct nw_memory_policy *nw_memory_policy_of(const struct nw_profile *profile);

#endif
