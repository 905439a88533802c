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

#define NW_LAYER_KINDS 2
enum { NW_LAYER_PLAIN, NW_LAYER_EXPERTS }; /* kinds of layers */

struct nw_transformer {
    char name[128];
    uint64_t layers, hidden, ffn;
    uint64_t heads, kv_heads, head_size; /* attention width = heads × head_size */
    uint64_t vocab;
    uint64_t positions;      /* rows of learned position embeddings; 0: rotary or ALiBi, none */
    bool alibi;              /* positions by a slope on the scores (BLOOM, MPT, Baichuan 13B) */
    uint64_t max_positions;  /* longest sequence the model was made for; 0: unknown */
    uint64_t token_types;    /* BERT's segment embeddings; 0: none */
    uint64_t embedding_size; /* width of the token embeddings, projected to hidden; 0: hidden */
    bool tied;               /* the output layer shares the embedding matrix */
    bool gated;              /* MLP with gate, up and down (SwiGLU); else up and down */
    bool qkv_bias, output_bias, mlp_bias;
    bool head_bias;          /* of the output layer */
    bool no_vocabulary_head; /* no output layer: BertModel, or a classifier's `classes` alone */
    bool norm_bias;          /* LayerNorm: weight and bias; RMSNorm: weight only */
    bool norm_free;          /* norms without parameters (OLMo) */
    bool embedding_norm;     /* a norm behind the embeddings (BERT, BLOOM) */
    bool post_norm;       /* norms behind the blocks, none behind the last layer (BERT, OPT-350M) */
    bool parallel;        /* attention and MLP read the same input (GPT-J, NeoX, Falcon, Phi) */
    bool one_norm;        /* … through one norm */
    bool encoder;         /* attention looks both ways (not causal) */
    bool pooler;          /* BERT's dense layer on the first token */
    uint64_t classes;     /* outputs of a classifier with bias behind the head; 0: none */
    bool mlm_head;        /* BERT's dense layer, norm and bias in front of the output layer */
    bool query_norm;      /* a norm over each head of query and key (Qwen3) */
    bool wide_query_norm; /* a norm over all heads of the query, and of the key (OLMo 2) */
    bool four_norms;      /* norms behind attention and MLP too (Gemma 2, 3) */
    bool sinks;           /* a learned logit per head (gpt-oss) */
    /* Mixture of experts; experts 0: none. `dense_layers` of the layers (the first, mostly) have
     * the plain MLP. */
    uint64_t experts, experts_per_token, expert_ffn;
    uint64_t shared_ffn; /* width of the MLP that every token passes beside its experts; 0: none */
    uint64_t dense_layers;
    bool shared_gate; /* a gate of one output before the shared MLP (Qwen) */
    bool router_bias;
    /* Multi-head latent attention (DeepSeek-V2); kv_rank 0: none, query_rank 0: the query is one
     * matrix. head_size then counts the part of a head without rotary positions. */
    uint64_t query_rank, kv_rank, rope_head_size, value_head_size;
    /* No transformer at all (ResNet, UNet, a user's own): parameters and cost of one sample as
     * stated. stated_parameters 0: the fields above say all. `layers` equal units. */
    uint64_t stated_parameters;
    double flops_per_sample;         /* forward, multiply and add are two */
    double activations_per_sample;   /* elements kept for the backward pass; 0: unknown */
    double memory_passes_per_sample; /* elements read and written forward, beside the products */
};

/* The parameter tensors of one unit, in the order of the forward pass. The matrices of all experts
 * count as one tensor each, as grouped products hold them. */
#define NW_TENSORS_MAX 40
struct nw_tensors {
    uint64_t elements[NW_TENSORS_MAX];
    size_t count;
    uint64_t total;
};

uint64_t nw_transformer_parameter_count(const struct nw_transformer *net);
/* Those that one token is multiplied with: all but the experts that it does not choose. */
uint64_t nw_transformer_active_count(const struct nw_transformer *net);
void nw_transformer_embedding(const struct nw_transformer *net, struct nw_tensors *tensors_out);
/* Outputs at every position: the vocabulary, or a classifier's. */
uint64_t nw_transformer_outputs(const struct nw_transformer *net);
/* Elements of the embedding matrix that is the output layer's too; 0: it is not. The first and the
 * last stage of a pipeline have a copy each. */
uint64_t nw_transformer_shared_embedding(const struct nw_transformer *net);
/* A layer of the most frequent kind. */
void nw_transformer_layer(const struct nw_transformer *net, struct nw_tensors *tensors_out);
/* Of the kind asked for, whether the net has such layers or not. */
void nw_transformer_layer_kind(const struct nw_transformer *net, int kind,
                               struct nw_tensors *tensors_out);
uint64_t nw_transformer_layer_count(const struct nw_transformer *net, int kind);
/* Final norm, untied output matrix, pooler. */
void nw_transformer_head(const struct nw_transformer *net, struct nw_tensors *tensors_out);

/* One layer by what is cut differently: tensor parallelism cuts attention, MLP and experts, expert
 * parallelism the experts; norms and router are copies. Elements. */
struct nw_layer_parts {
    uint64_t attention; /* projections; of latent attention also its two inner norms */
    uint64_t mlp;       /* the plain MLP, or the shared experts with their gate */
    uint64_t router;
    uint64_t experts; /* all of them */
    uint64_t norms;
    uint64_t total;
};
struct nw_layer_parts nw_transformer_layer_parts(const struct nw_transformer *net, int kind);

/* Parameters of one layer's adapters (Hu et al. 2021: in × rank + rank × out for each adapted
 * matrix, of every expert too); `targets`: NW_LORA_… of model/job.h. Latent attention: Q both
 * matrices of the query, K the one down to kv_rank, V the one up from it. */
uint64_t nw_transformer_adapter(const struct nw_transformer *net, int kind, uint64_t rank,
                                unsigned targets);
struct nw_adapter_parts { /* experts: of all of them; EP cuts those */
    uint64_t dense, experts;
};
struct nw_adapter_parts nw_transformer_adapter_parts(const struct nw_transformer *net, int kind,
                                                     uint64_t rank, unsigned targets);

/* Floating-point operations of one micro-batch of `tokens` tokens in sequences of `sequence`
 * (multiply and add count as two). A token's own experts only. A net as stated: tokens / sequence
 * samples. */
struct nw_flops {
    double layer_forward, layer_backward; /* one layer, the mean of all */
    double head_forward, head_backward;
};
struct nw_flops nw_transformer_flops(const struct nw_transformer *net, double tokens,
                                     double sequence, bool flash);

/* A preset's name, or the path of a config.json (anything with a '/' or ending in ".json").
 * NW_EUSAGE names the nearest presets, or file and key. */
nw_rc nw_transformer_find(const char *name_or_path, struct nw_transformer *net_out);
nw_rc nw_transformer_read_config(const char *path, struct nw_transformer *net_out);
/* The same from memory; `what` words the errors. */
nw_rc nw_transformer_parse_config(const char *text, size_t length, const char *what,
                                  struct nw_transformer *net_out);
/* Every rule that a shape must keep; `what` words the error. */
nw_rc nw_transformer_check(const struct nw_transformer *net, const char *what);
/* One field alone, by its offset; `key` is how the input calls it. */
nw_rc nw_transformer_check_field(size_t offset, uint64_t value, const char *what, const char *key);

/* A shape by its numbers, as the options of the same names give them; 0: not given. */
typedef enum { NW_NOT_GIVEN, NW_YES, NW_NO } nw_yes_no;
struct nw_transformer_fields {
    uint64_t layers, hidden, heads, kv_heads, head_size, ffn, vocab;
    uint64_t experts, experts_per_token, expert_ffn;
    nw_yes_no gated, tied, encoder;
    double parameters, flops_per_sample, activations_per_sample;
};
bool nw_transformer_fields_given(const struct nw_transformer_fields *fields); /* any of them */
/* Replaces what is given. `net` all zero (layers 0): makes a net of the fields alone, which must
 * then say layers, hidden, heads and vocab, or parameters and flops_per_sample. What they leave
 * open is as in GPT-2 (MLP 4 × hidden wide, biases, LayerNorm, tied output layer), with a gated
 * MLP as in Llama (8/3 × hidden up to a multiple of 256, none of these). On error `net` is as it
 * was, NW_EUSAGE names the option. */
nw_rc nw_transformer_override(struct nw_transformer *net,
                              const struct nw_transformer_fields *fields);

struct nw_preset {
    struct nw_transformer net;
    uint64_t published_parameters; /* as the published checkpoint has it */
    const char *source;
};
size_t nw_preset_count(void);
const struct nw_preset *nw_preset_at(size_t index); /* NULL past the last */

#endif
