/* Hugging Face config.json: the architectures. Keys are those of transformers' configuration_*.py
 * (of the model's own repository where it brings its code: qwen, chatglm, baichuan, internlm,
 * internlm2), `fixed` is what modeling_*.py builds whatever the config says. */
#include "model/hf_config.h"

#define AT(field) offsetof(struct nw_hf_shape, field)

#define NUMBER(name, field)                                                                        \
    {                                                                                              \
        .key = name, .offset = AT(net.field)                                                       \
    }
#define EITHER(name, other, field)                                                                 \
    {                                                                                              \
        .key = name, .other_key = other, .offset = AT(net.field)                                   \
    }
#define MAYBE(name, field)                                                                         \
    {                                                                                              \
        .key = name, .offset = AT(net.field), .optional = true                                     \
    }
#define MAYBE2(name, other, field)                                                                 \
    {                                                                                              \
        .key = name, .other_key = other, .offset = AT(net.field), .optional = true                 \
    }
#define ASIDE(name, field)                                                                         \
    {                                                                                              \
        .key = name, .offset = AT(field), .optional = true                                         \
    }

#define FLAG(name, field)                                                                          \
    {                                                                                              \
        .key = name, .fields = {AT(net.field)}, .count = 1                                         \
    }
#define FLAGS(name, n, ...)                                                                        \
    {                                                                                              \
        .key = name, .fields = {__VA_ARGS__}, .count = n                                           \
    }
#define SIGN(name, field)                                                                          \
    {                                                                                              \
        .key = name, .fields = {AT(field)}, .count = 1                                             \
    }
#define TIED FLAG("tie_word_embeddings", tied)
#define QKV  AT(net.qkv_bias)
#define OUT  AT(net.output_bias)
#define MLP  AT(net.mlp_bias)

#define BIASES .qkv_bias = true, .output_bias = true, .mlp_bias = true, .norm_bias = true

/* The names that most configs since Llama use. */
#define COMMON                                                                                     \
    NUMBER("num_hidden_layers", layers), NUMBER("hidden_size", hidden),                            \
        NUMBER("num_attention_heads", heads), NUMBER("vocab_size", vocab),                         \
        MAYBE2("max_position_embeddings", "model_max_length", max_positions)
#define LLAMA                                                                                      \
    COMMON, NUMBER("intermediate_size", ffn), MAYBE("num_key_value_heads", kv_heads),              \
        MAYBE("head_dim", head_size)
#define GPT2                                                                                       \
    NUMBER("n_layer", layers), NUMBER("n_embd", hidden), NUMBER("n_head", heads),                  \
        MAYBE("n_inner", ffn), NUMBER("vocab_size", vocab)
#define BERT                                                                                       \
    NUMBER("num_hidden_layers", layers), NUMBER("hidden_size", hidden),                            \
        NUMBER("intermediate_size", ffn), NUMBER("num_attention_heads", heads),                    \
        NUMBER("vocab_size", vocab), NUMBER("max_position_embeddings", positions),                 \
        MAYBE("type_vocab_size", token_types)
#define BERT_FIXED                                                                                 \
    .tied = true, .embedding_norm = true, .post_norm = true, .encoder = true, .token_types = 2,    \
    BIASES

const struct nw_hf_architecture nw_hf_architectures[] = {
    {
        .model_types = {"gpt2"},
        .classes = {"GPT2"},
        .numbers = {GPT2, NUMBER("n_positions", positions)},
        .flags = {TIED},
        .fixed.net = {.tied = true, BIASES},
        .ffn_of_hidden = 4,
    },
    {
        .model_types = {"gpt_bigcode"},
        .classes = {"GPTBigCode"},
        .numbers = {GPT2, NUMBER("n_positions", positions)},
        .flags = {TIED, SIGN("multi_query", single_kv_head)},
        .fixed = {.net = {.tied = true, BIASES}, .single_kv_head = true},
        .ffn_of_hidden = 4,
        .derive = nw_hf_derive_one_head,
    },
    {
        .model_types = {"gptj"},
        .classes = {"GPTJ"},
        .numbers = {GPT2, MAYBE("n_positions", max_positions)},
        .flags = {TIED},
        .fixed.net = {.parallel = true,
                      .one_norm = true,
                      .mlp_bias = true,
                      .head_bias = true,
                      .norm_bias = true},
        .ffn_of_hidden = 4,
    },
    {
        .model_types = {"gpt_neox"},
        .classes = {"GPTNeoX"},
        .numbers = {COMMON, NUMBER("intermediate_size", ffn)},
        .flags = {TIED, FLAG("use_parallel_residual", parallel),
                  FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.parallel = true, BIASES},
    },
    {
        .model_types = {"llama", "aquila", "Yi"},
        .classes = {"Llama", "Aquila", "Yi"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT), FLAG("mlp_bias", mlp_bias)},
        .fixed.net = {.gated = true},
    },
    {
        .model_types = {"llama4_text", "llama4"},
        .classes = {"Llama4"},
        .numbers = {COMMON, NUMBER("intermediate_size_mlp", ffn),
                    NUMBER("intermediate_size", expert_ffn), MAYBE("num_key_value_heads", kv_heads),
                    MAYBE("head_dim", head_size), NUMBER("num_local_experts", experts),
                    NUMBER("num_experts_per_tok", experts_per_token),
                    ASIDE("interleave_moe_layer_step", sparse_step)},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true},
        .derive = nw_hf_derive_llama4,
    },
    {
        .model_types = {"mistral"},
        .classes = {"Mistral"},
        .numbers = {LLAMA},
        .flags = {TIED},
        .fixed.net = {.gated = true},
    },
    {
        .model_types = {"mixtral"},
        .classes = {"Mixtral"},
        .numbers = {LLAMA, NUMBER("num_local_experts", experts),
                    NUMBER("num_experts_per_tok", experts_per_token)},
        .flags = {TIED},
        .fixed.net = {.gated = true},
        .derive = nw_hf_derive_experts_as_wide,
    },
    {
        .model_types = {"qwen"},
        .classes = {"QWen"},
        .numbers = {COMMON,
                    {.key = "intermediate_size", .offset = AT(other_ffn)},
                    MAYBE("kv_channels", head_size)},
        .flags = {TIED, {.key = "no_bias", .fields = {OUT, MLP}, .count = 2, .inverted = true}},
        .fixed.net = {.gated = true, .qkv_bias = true},
        .derive = nw_hf_derive_qwen,
    },
    {
        .model_types = {"qwen2"},
        .classes = {"Qwen2"},
        .numbers = {LLAMA},
        .flags = {TIED},
        .fixed.net = {.gated = true, .qkv_bias = true},
    },
    {
        .model_types = {"qwen2_moe"},
        .classes = {"Qwen2Moe"},
        .numbers = {LLAMA, NUMBER("num_experts", experts),
                    NUMBER("num_experts_per_tok", experts_per_token),
                    NUMBER("moe_intermediate_size", expert_ffn),
                    NUMBER("shared_expert_intermediate_size", shared_ffn),
                    ASIDE("decoder_sparse_step", sparse_step)},
        .flags = {TIED, FLAG("qkv_bias", qkv_bias)},
        .fixed.net = {.gated = true, .qkv_bias = true, .shared_gate = true},
        .derive = nw_hf_derive_qwen_moe,
    },
    {
        .model_types = {"qwen3"},
        .classes = {"Qwen3"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .query_norm = true, .head_size = 128},
    },
    {
        .model_types = {"qwen3_moe"},
        .classes = {"Qwen3Moe"},
        .numbers = {LLAMA, NUMBER("num_experts", experts),
                    NUMBER("num_experts_per_tok", experts_per_token),
                    NUMBER("moe_intermediate_size", expert_ffn),
                    ASIDE("decoder_sparse_step", sparse_step)},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .query_norm = true},
        .derive = nw_hf_derive_qwen_moe,
    },
#define DEEPSEEK                                                                                   \
    COMMON, NUMBER("intermediate_size", ffn), MAYBE("n_routed_experts", experts),                  \
        MAYBE("num_experts_per_tok", experts_per_token),                                           \
        MAYBE("moe_intermediate_size", expert_ffn), MAYBE("first_k_dense_replace", dense_layers),  \
        MAYBE("q_lora_rank", query_rank), NUMBER("kv_lora_rank", kv_rank),                         \
        NUMBER("qk_nope_head_dim", head_size), NUMBER("qk_rope_head_dim", rope_head_size),         \
        NUMBER("v_head_dim", value_head_size), ASIDE("n_shared_experts", shared_experts),          \
        ASIDE("moe_layer_freq", sparse_step)
    {
        .model_types = {"deepseek_v2"},
        .classes = {"DeepseekV2"},
        .numbers = {DEEPSEEK},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true},
        .derive = nw_hf_derive_deepseek,
    },
    {
        .model_types = {"deepseek_v3", "kimi_k2"},
        .classes = {"DeepseekV3"},
        .numbers = {DEEPSEEK},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .router_bias = true},
        .derive = nw_hf_derive_deepseek,
    },
    {
        .model_types = {"gemma"},
        .classes = {"Gemma"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .tied = true, .head_size = 256},
    },
    {
        .model_types = {"gemma2"},
        .classes = {"Gemma2"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .tied = true, .four_norms = true, .head_size = 256},
    },
    {
        .model_types = {"gemma3_text", "gemma3"},
        .classes = {"Gemma3"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net =
            {.gated = true, .tied = true, .four_norms = true, .query_norm = true, .head_size = 256},
    },
    {
        .model_types = {"phi"},
        .classes = {"Phi"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAG("qk_layernorm", query_norm)},
        .fixed.net = {.parallel = true, .one_norm = true, .head_bias = true, BIASES},
    },
    {
        .model_types = {"phi3"},
        .classes = {"Phi3"},
        .numbers = {LLAMA},
        .flags = {TIED},
        .fixed.net = {.gated = true},
    },
    {
        .model_types = {"opt"},
        .classes = {"OPT"},
        .numbers = {COMMON, NUMBER("ffn_dim", ffn), MAYBE("word_embed_proj_dim", embedding_size)},
        .flags = {TIED, FLAGS("enable_bias", 3, QKV, OUT, MLP),
                  SIGN("do_layer_norm_before", norm_first)},
        .fixed = {.net = {.tied = true, BIASES}, .norm_first = true, .extra_positions = 2},
        .derive = nw_hf_derive_opt,
    },
    {
        .model_types = {"bloom"},
        .classes = {"Bloom", "BLOOM"},
        .numbers = {EITHER("n_layer", "num_hidden_layers", layers),
                    EITHER("hidden_size", "n_embed", hidden),
                    EITHER("n_head", "num_attention_heads", heads), NUMBER("vocab_size", vocab),
                    MAYBE("seq_length", max_positions)},
        .flags = {TIED},
        .fixed.net =
            {.tied = true, .embedding_norm = true, .max_positions = 2048, .alibi = true, BIASES},
        .ffn_of_hidden = 4,
    },
    {
        .model_types = {"mpt"},
        .classes = {"MPT", "Mpt"},
        .numbers = {NUMBER("n_layers", layers), NUMBER("d_model", hidden), NUMBER("n_heads", heads),
                    NUMBER("vocab_size", vocab), MAYBE("max_seq_len", max_positions),
                    ASIDE("expansion_ratio", expansion)},
        .flags = {TIED,
                  {.key = "no_bias",
                   .fields = {QKV, OUT, MLP, AT(net.norm_bias)},
                   .count = 4,
                   .inverted = true},
                  SIGN("learned_pos_emb", learned_positions)},
        .fixed = {.net = {.tied = true}, .learned_positions = true},
        .derive = nw_hf_derive_mpt,
    },
    {
        .model_types = {"falcon"},
        .classes = {"Falcon"},
        .numbers = {EITHER("num_hidden_layers", "n_layer", layers), NUMBER("hidden_size", hidden),
                    EITHER("num_attention_heads", "n_head", heads), NUMBER("vocab_size", vocab),
                    MAYBE("ffn_hidden_size", ffn), MAYBE("max_position_embeddings", max_positions),
                    ASIDE("num_kv_heads", group_heads),
                    ASIDE("num_ln_in_parallel_attn", norms_in_parallel)},
        .flags = {TIED, FLAGS("bias", 3, QKV, OUT, MLP), FLAG("parallel_attn", parallel),
                  SIGN("multi_query", single_kv_head), FLAG("alibi", alibi),
                  SIGN("new_decoder_architecture", new_decoder)},
        .fixed = {.net = {.tied = true, .parallel = true, .norm_bias = true, .max_positions = 2048},
                  .single_kv_head = true},
        .ffn_of_hidden = 4,
        .derive = nw_hf_derive_falcon,
    },
    {
        .model_types = {"bert"},
        .classes = {"Bert"},
        .numbers = {BERT},
        .flags = {TIED},
        .fixed.net = {BERT_FIXED},
        .derive = nw_hf_derive_bert,
    },
    {
        .model_types = {"roberta", "xlm-roberta", "camembert"},
        .classes = {"Roberta", "XLMRoberta", "Camembert"},
        .numbers = {BERT},
        .flags = {TIED},
        .fixed.net = {BERT_FIXED},
        .derive = nw_hf_derive_roberta,
    },
    {
        .model_types = {"distilbert"},
        .classes = {"DistilBert"},
        .numbers = {NUMBER("n_layers", layers), NUMBER("dim", hidden), NUMBER("hidden_dim", ffn),
                    NUMBER("n_heads", heads), NUMBER("vocab_size", vocab),
                    NUMBER("max_position_embeddings", positions)},
        .flags = {TIED},
        .fixed.net =
            {.tied = true, .embedding_norm = true, .post_norm = true, .encoder = true, BIASES},
        .derive = nw_hf_derive_bert,
    },
    {
        .model_types = {"chatglm"},
        .classes = {"ChatGLM"},
        .numbers = {NUMBER("num_layers", layers), NUMBER("hidden_size", hidden),
                    NUMBER("num_attention_heads", heads),
                    EITHER("padded_vocab_size", "vocab_size", vocab),
                    MAYBE2("seq_length", "max_sequence_length", max_positions),
                    MAYBE("kv_channels", head_size),
                    EITHER("ffn_hidden_size", "inner_hidden_size", ffn),
                    ASIDE("multi_query_group_num", group_heads)},
        .flags = {TIED, FLAGS("add_bias_linear", 3, QKV, OUT, MLP), FLAG("add_qkv_bias", qkv_bias),
                  SIGN("multi_query_attention", grouped)},
        .fixed.net = {.gated = true},
        .derive = nw_hf_derive_chatglm,
    },
    {
        .model_types = {"glm"},
        .classes = {"Glm"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAG("attention_bias", qkv_bias)},
        .fixed.net = {.gated = true},
    },
    {
        .model_types = {"glm4_moe"},
        .classes = {"Glm4Moe"},
        .numbers = {LLAMA, NUMBER("n_routed_experts", experts),
                    NUMBER("num_experts_per_tok", experts_per_token),
                    NUMBER("moe_intermediate_size", expert_ffn),
                    MAYBE("first_k_dense_replace", dense_layers),
                    ASIDE("n_shared_experts", shared_experts)},
        .flags = {TIED, FLAG("attention_bias", qkv_bias), FLAG("use_qk_norm", query_norm)},
        .fixed.net = {.gated = true, .router_bias = true},
        .derive = nw_hf_derive_deepseek,
    },
    {
        .model_types = {"baichuan"},
        .classes = {"Baichuan", "BaiChuan"},
        .numbers = {COMMON, NUMBER("intermediate_size", ffn)},
        .flags = {TIED},
        .fixed.net = {.gated = true},
        .derive = nw_hf_derive_baichuan,
    },
    {
        .model_types = {"internlm"},
        .classes = {"InternLM"},
        .numbers = {COMMON, NUMBER("intermediate_size", ffn)},
        .flags = {TIED, FLAGS("bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .qkv_bias = true, .output_bias = true},
    },
    {
        .model_types = {"internlm2"},
        .classes = {"InternLM2"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .qkv_bias = true, .output_bias = true},
    },
    {
        .model_types = {"starcoder2"},
        .classes = {"Starcoder2"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("use_bias", 3, QKV, OUT, MLP)},
        .fixed.net = {.tied = true, BIASES},
    },
    {
        .model_types = {"stablelm"},
        .classes = {"StableLm"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAG("use_qkv_bias", qkv_bias), FLAG("use_parallel_residual", parallel)},
        .fixed.net = {.gated = true, .norm_bias = true},
        .derive = nw_hf_derive_one_norm,
    },
    {
        .model_types = {"olmo"},
        .classes = {"Olmo"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .norm_free = true},
    },
    {
        .model_types = {"olmo2"},
        .classes = {"Olmo2"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .wide_query_norm = true},
    },
    {
        .model_types = {"olmoe"},
        .classes = {"Olmoe"},
        .numbers = {LLAMA, NUMBER("num_experts", experts),
                    NUMBER("num_experts_per_tok", experts_per_token)},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true, .wide_query_norm = true},
        .derive = nw_hf_derive_experts_as_wide,
    },
    {
        .model_types = {"nemotron"},
        .classes = {"Nemotron"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT), FLAG("mlp_bias", mlp_bias)},
        .fixed.net = {.norm_bias = true},
    },
    {
        .model_types = {"cohere"},
        .classes = {"Cohere"},
        .numbers = {LLAMA},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT), FLAG("use_qk_norm", wide_query_norm)},
        .fixed.net = {.gated = true, .tied = true, .parallel = true, .one_norm = true},
    },
    {
        .model_types = {"gpt_oss"},
        .classes = {"GptOss"},
        .numbers = {LLAMA, NUMBER("num_local_experts", experts),
                    EITHER("num_experts_per_tok", "experts_per_token", experts_per_token)},
        .flags = {TIED, FLAGS("attention_bias", 2, QKV, OUT)},
        .fixed.net = {.gated = true,
                      .qkv_bias = true,
                      .output_bias = true,
                      .mlp_bias = true,
                      .router_bias = true,
                      .sinks = true},
        .derive = nw_hf_derive_experts_as_wide,
    },
};
const size_t nw_hf_architecture_count = sizeof nw_hf_architectures / sizeof nw_hf_architectures[0];
