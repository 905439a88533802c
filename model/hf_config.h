/* Private to model/: what the readers of Hugging Face's config.json share. An architecture is a row
 * of nw_hf_architectures (model/hf_config_table.c): which keys it has, and what its code fixes. */
#ifndef NW_MODEL_HF_CONFIG_H
#define NW_MODEL_HF_CONFIG_H

#include <jansson.h>

#include "model/transformer.h"

/* The net, and what keys say that it is derived from. */
struct nw_hf_shape {
    struct nw_transformer net; /* first: a row's offset into it is one into this */
    /* numbers, 0: not given */
    uint64_t other_ffn;       /* of a key whose meaning the architecture's code decides */
    uint64_t expansion;       /* MLP width over hidden */
    uint64_t group_heads;     /* key-value heads where the attention is grouped */
    uint64_t shared_experts;  /* experts that every token passes */
    uint64_t sparse_step;     /* every how manieth layer has experts; 0: each */
    uint64_t extra_positions; /* rows of the position matrix beyond the sequence length */
    uint64_t norms_in_parallel;
    /* flags */
    bool grouped, single_kv_head, new_decoder, learned_positions, norm_first;
};

struct nw_hf_number {
    const char *key, *other_key; /* NULL: one name only */
    size_t offset;
    bool optional;
};

#define NW_HF_FLAG_FIELDS 4
struct nw_hf_flag { /* a key that sets several fields at once */
    const char *key;
    size_t fields[NW_HF_FLAG_FIELDS];
    size_t count;
    bool inverted; /* the key says that they are absent */
};

struct nw_hf_architecture {
    const char *model_types[4];      /* NULL-terminated; the first names it */
    const char *classes[4];          /* "Llama": LlamaForCausalLM, LlamaModel … */
    struct nw_hf_number numbers[24]; /* ends with key NULL */
    struct nw_hf_flag flags[6];
    struct nw_hf_shape fixed; /* what the config does not say; starting values of the keys */
    uint64_t ffn_of_hidden;   /* ffn = this × hidden where absent; 0: required */
    /* What no row of keys can say. NULL: nothing. */
    nw_rc (*derive)(const json_t *root, const char *what, struct nw_hf_shape *shape);
};
extern const struct nw_hf_architecture nw_hf_architectures[];
extern const size_t nw_hf_architecture_count;

const char *nw_hf_class(const json_t *root); /* the first of "architectures"; NULL: none */

nw_rc nw_hf_derive_bert(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_roberta(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_opt(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_mpt(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_falcon(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_qwen(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_qwen_moe(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_llama4(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_experts_as_wide(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_deepseek(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_chatglm(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_baichuan(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_one_head(const json_t *root, const char *what, struct nw_hf_shape *shape);
nw_rc nw_hf_derive_one_norm(const json_t *root, const char *what, struct nw_hf_shape *shape);

#endif
