/* Public. The shape of a transformer, from which parameters and FLOPs are counted exactly.
 *
 * A preset is a row of a table; a Hugging Face config.json gives the same structure. Plain data,
 * nothing owned.
 *
 *     struct nw_transformer net;
 *     NW_TRY(nw_transformer_find("llama-2-7b", &net));       // preset, or path of a config.json
 *     nw_transformer_parameter_count(&net);                  // 6738415616
 */
#ifndef NW_MODEL_TRANSFORMER_H
#define NW_MODEL_TRANSFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nw_transformer {
    char name[128];
    uint64_t layers, hidden, ffn;
    uint64_t heads, kv_heads, head_size; /* attention width = heads × head_size */
    uint64_t vocab;
    uint64_t positions;     /* learned position embeddings; 0: rotary, no parameters */
    uint64_t max_positions; /* longest sequence the model was made for; 0: unknown */
    uint64_t token_types;   /* BERT's segment embeddings; 0: none */
    bool tied;              /* the output layer shares the embedding matrix */
    bool gated;             /* MLP with gate, up and down (SwiGLU); else up and down */
    bool qkv_bias, output_bias, mlp_bias;
    bool norm_bias;      /* LayerNorm: weight and bias; RMSNorm: weight only */
    bool embedding_norm; /* a norm behind the embeddings (BERT) instead of behind the last layer */
    bool encoder;        /* attention looks both ways (not causal) */
    bool pooler;         /* BERT's dense layer on the first token */
    bool query_norm;     /* a norm over each head of query and key (Qwen3) */
    bool four_norms;     /* norms behind attention and MLP too (Gemma 2, 3) */
    /* Mixture of experts; experts 0: none. The first `dense_layers` layers have the plain MLP. */
    uint64_t experts, experts_per_token, expert_ffn;
    uint64_t shared_ffn; /* width of the MLP that every token passes beside its experts; 0: none */
    uint64_t dense_layers;
    bool shared_gate; /* a gate of one output before the shared MLP (Qwen) */
    /* Multi-head latent attention (DeepSeek-V2); kv_rank 0: none. head_size then counts the part of
     * a head without rotary positions. */
    uint64_t query_rank, kv_rank, rope_head_size, value_head_size;
    /* No transformer at all (ResNet, UNet, a user's own): parameters and cost of one sample as
     * stated. stated_parameters 0: the fields above say all. `layers` equal units. */
    uint64_t stated_parameters;
    double flops_per_sample;         /* forward, multiply and add are two */
    double activations_per_sample;   /* elements kept for the backward pass */
    double memory_passes_per_sample; /* elements read and written forward, beside the products */
};

/* The parameter tensors of one unit, in the order of the forward pass. */
#define NW_TENSORS_MAX 24
struct nw_tensors {
    uint64_t elements[NW_TENSORS_MAX];
    size_t count;
    uint64_t total;
};

uint64_t nw_transformer_parameter_count(const struct nw_transformer *net);
void nw_transformer_embedding(const struct nw_transformer *net, struct nw_tensors *tensors_out);
void nw_transformer_layer(const struct nw_transformer *net, struct nw_tensors *tensors_out);
/* Final norm, untied output matrix, pooler. */
void nw_transformer_head(const struct nw_transformer *net, struct nw_tensors *tensors_out);

/* Floating-point operations of one micro-batch of `tokens` tokens in sequences of `sequence`
 * (multiply and add count as two). */
struct nw_flops {
    double layer_forward, layer_backward; /* one layer */
    double head_forward, head_backward;
};
struct nw_flops nw_transformer_flops(const struct nw_transformer *net, double tokens,
                                     double sequence, bool flash);

/* A preset's name, or the path of a config.json (anything with a '/' or ending in ".json").
 * NW_EUSAGE names the presets, or file and key. */
nw_rc nw_transformer_find(const char *name_or_path, struct nw_transformer *net_out);
nw_rc nw_transformer_read_config(const char *path, struct nw_transformer *net_out);
/* The same from memory; `what` words the errors. */
nw_rc nw_transformer_parse_config(const char *text, size_t length, const char *what,
                                  struct nw_transformer *net_out);
/* Every rule that a shape must keep; `what` words the error. */
nw_rc nw_transformer_check(const struct nw_transformer *net, const char *what);
/* One field alone, by its offset; `key` is how the input calls it. */
nw_rc nw_transformer_check_field(size_t offset, uint64_t value, const char *what, const char *key);

struct nw_preset {
    struct nw_transformer net;
    uint64_t published_parameters; /* as the published checkpoint has it */
    const char *source;
};
extern const struct nw_preset nw_presets[];
extern const size_t nw_preset_count;

#endif
