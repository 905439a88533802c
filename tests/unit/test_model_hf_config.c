#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/transformer.h"

#define LLAMA(extra)                                                                               \
    "{\"model_type\":\"llama\",\"num_hidden_layers\":32,\"hidden_size\":4096,"                     \
    "\"intermediate_size\":11008,\"num_attention_heads\":32,\"vocab_size\":32000" extra "}"

#define MIXTRAL(experts, used)                                                                     \
    "{\"model_type\":\"mixtral\",\"num_hidden_layers\":32,\"hidden_size\":4096,"                   \
    "\"intermediate_size\":14336,\"num_attention_heads\":32,\"vocab_size\":32000,"                 \
    "\"num_local_experts\":" #experts ",\"num_experts_per_tok\":" #used "}"
#define QWEN_MOE(extra)                                                                            \
    "{\"model_type\":\"qwen3_moe\",\"num_hidden_layers\":48,\"hidden_size\":2048,"                 \
    "\"intermediate_size\":6144,\"num_attention_heads\":32,\"num_key_value_heads\":4,"             \
    "\"vocab_size\":151936,\"head_dim\":128,\"num_experts\":128,\"num_experts_per_tok\":8,"        \
    "\"moe_intermediate_size\":768," extra "}"
#define DEEPSEEK(extra)                                                                            \
    "{\"model_type\":\"deepseek_v2\",\"num_hidden_layers\":27,\"hidden_size\":2048,"               \
    "\"intermediate_size\":10944,\"num_attention_heads\":16,\"vocab_size\":102400,"                \
    "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"    \
    "\"n_routed_experts\":64,\"num_experts_per_tok\":6,\"moe_intermediate_size\":1408," extra "}"
#define MPT(extra)                                                                                 \
    "{\"model_type\":\"mpt\",\"n_layers\":2,\"d_model\":64,\"n_heads\":2,\"vocab_size\":"          \
    "100," extra "}"

static nw_rc parse(const char *text, struct nw_transformer *net_out)
{
    return nw_transformer_parse_config(text, strlen(text), "config.json", net_out);
}

/* tests/models/configs.jsonl: the numbers of published config.json files, one a line, with the
 * preset that they describe and its count. Parameters in `parameters` were counted with the
 * model's own code (transformers 4.51 and 4.57 on shapes without memory; where the code comes with
 * the checkpoint, the checkpoint's own total). */
static void compare(const struct nw_transformer *net, const struct nw_transformer *preset)
{
#define SAME(field)                                                                                \
    cr_expect(eq(u64, (uint64_t)net->field, (uint64_t)preset->field), "%s: " #field, preset->name)
    SAME(layers);
    SAME(hidden);
    SAME(ffn);
    SAME(heads);
    SAME(kv_heads);
    SAME(head_size);
    SAME(vocab);
    SAME(positions);
    SAME(alibi);
    SAME(max_positions);
    SAME(token_types);
    SAME(embedding_size);
    SAME(tied);
    SAME(gated);
    SAME(parallel);
    SAME(one_norm);
    SAME(encoder);
    SAME(experts);
    SAME(experts_per_token);
    SAME(expert_ffn);
    SAME(shared_ffn);
    SAME(dense_layers);
    SAME(query_rank);
    SAME(kv_rank);
#undef SAME
}

Test(hf_config, published_configs_give_the_presets)
{
    FILE *file = fopen(NW_SOURCE_DIR "/tests/models/configs.jsonl", "r");
    char *line = NULL;
    size_t size = 0, count = 0;

    cr_assert(ne(ptr, file, NULL));
    while (getline(&line, &size, file) > 0) {
        json_t *row = json_loads(line, 0, NULL);
        char *config = json_dumps(json_object_get(row, "config"), 0);
        const char *name = json_string_value(json_object_get(row, "preset"));
        struct nw_transformer net, preset;

        cr_assert(ne(ptr, row, NULL), "line %zu", count + 1);
        cr_expect(eq(int, nw_transformer_parse_config(config, strlen(config), name, &net), NW_OK),
                  "%s", nw_last_error()->text);
        cr_assert(eq(int, nw_transformer_find(name, &preset), NW_OK), "%s", nw_last_error()->text);
        compare(&net, &preset);
        cr_expect(eq(u64, nw_transformer_parameter_count(&net),
                     (uint64_t)json_integer_value(json_object_get(row, "parameters"))),
                  "%s", name);
        free(config);
        json_decref(row);
        count++;
    }
    cr_expect(ge(sz, count, 100));
    free(line);
    fclose(file);
}

Test(hf_config, gives_the_published_counts)
{
    static const struct {
        const char *text;
        uint64_t parameters;
    } cases[] = {
        {"{\"model_type\":\"glm\",\"num_hidden_layers\":40,\"hidden_size\":4096,"
         "\"intermediate_size\":13696,\"num_attention_heads\":32,\"num_key_value_heads\":2,"
         "\"head_dim\":128,\"vocab_size\":151552,\"attention_bias\":true}",
         9399951360}, /* huggingface.co/THUDM/glm-4-9b-hf */
        {"{\"model_type\":\"stablelm\",\"num_hidden_layers\":24,\"hidden_size\":2048,"
         "\"intermediate_size\":5632,\"num_attention_heads\":32,\"num_key_value_heads\":32,"
         "\"vocab_size\":100352,\"use_qkv_bias\":true,\"use_parallel_residual\":false}",
         1644515328}, /* huggingface.co/stabilityai/stablelm-2-1_6b */
        {LLAMA(""), 6738415616},
        {LLAMA(",\"num_key_value_heads\":32,\"head_dim\":128,\"rope_theta\":1e4"), 6738415616},
        {LLAMA(",\"tie_word_embeddings\":true"), 6738415616 - 32000u * 4096u},
        {"{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":768,\"n_head\":12,"
         "\"vocab_size\":50257,\"n_positions\":1024,\"n_inner\":null}",
         124439808},
        {"{\"model_type\":\"bert\",\"num_hidden_layers\":24,\"hidden_size\":1024,"
         "\"intermediate_size\":4096,\"num_attention_heads\":16,\"vocab_size\":30522,"
         "\"max_position_embeddings\":512,\"type_vocab_size\":2}",
         335141888},
        {"{\"model_type\":\"qwen2\",\"num_hidden_layers\":28,\"hidden_size\":3584,"
         "\"intermediate_size\":18944,\"num_attention_heads\":28,\"num_key_value_heads\":4,"
         "\"vocab_size\":152064,\"tie_word_embeddings\":false}",
         7615616512},
        /* huggingface.co/mistralai/Mistral-7B-v0.1 */
        {"{\"model_type\":\"mistral\",\"num_hidden_layers\":32,\"hidden_size\":4096,"
         "\"intermediate_size\":14336,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
         "\"vocab_size\":32000}",
         7241732096},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_transformer net;

        cr_assert(eq(int, parse(cases[i].text, &net), NW_OK), "%s", nw_last_error()->text);
        cr_expect(eq(u64, nw_transformer_parameter_count(&net), cases[i].parameters), "%zu", i);
    }
}

/* Variants that no published line above has. */
Test(hf_config, keys_change_what_their_code_changes)
{
    static const struct {
        const char *text;
        uint64_t parameters;
    } cases[] = {
        /* every second layer, and none of the first two, has experts: 23 of 48 */
        {QWEN_MOE("\"mlp_only_layers\":[0,1],\"decoder_sparse_step\":2"),
         2 * 151936 * 2048ull + 2048 + 48ull * (2 * 2048 * 4096 + 2 * 2048 * 512 + 2 * 2048 + 256) +
             23ull * (128 * 2048 + 128ull * 3 * 2048 * 768) + 25ull * 3 * 2048 * 6144},
        /* multi-query attention and learned positions */
        {MPT("\"attn_config\":{\"attn_type\":\"multiquery_attention\"},\"max_seq_len\":128"),
         100 * 64 + 128 * 64 + 64 + 2 * (64 * 128 + 2 * 64 * 32 + 2 * 64 * 256 + 2 * 64)},
        /* three labels: pooler and classifier */
        {"{\"model_type\":\"bert\",\"num_hidden_layers\":12,\"hidden_size\":768,"
         "\"intermediate_size\":3072,\"num_attention_heads\":12,\"vocab_size\":30522,"
         "\"max_position_embeddings\":512,\"architectures\":[\"BertForSequenceClassification\"],"
         "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}}",
         109482240 + 3 * 768 + 3},
        /* SQuAD: two outputs, no pooler */
        {"{\"model_type\":\"bert\",\"num_hidden_layers\":24,\"hidden_size\":1024,"
         "\"intermediate_size\":4096,\"num_attention_heads\":16,\"vocab_size\":30522,"
         "\"max_position_embeddings\":512,\"architectures\":[\"BertForQuestionAnswering\"]}",
         335141888 - (1024 * 1024 + 1024) + 2 * 1024 + 2},
        /* the language model of one that sees too */
        {"{\"model_type\":\"llava\",\"architectures\":[\"LlavaForConditionalGeneration\"],"
         "\"text_config\":" LLAMA("") "}",
         6738415616},
        /* by its class alone */
        {"{\"architectures\":[\"LlamaForCausalLM\"],\"num_hidden_layers\":32,\"hidden_size\":4096,"
         "\"intermediate_size\":11008,\"num_attention_heads\":32,\"vocab_size\":32000}",
         6738415616},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_transformer net;

        cr_assert(eq(int, parse(cases[i].text, &net), NW_OK), "%s", nw_last_error()->text);
        cr_expect(eq(u64, nw_transformer_parameter_count(&net), cases[i].parameters), "%zu", i);
    }
}

Test(hf_config, positions_by_a_slope_are_known)
{
#define FALCON(alibi)                                                                              \
    "{\"model_type\":\"falcon\",\"num_hidden_layers\":24,\"hidden_size\":2048,"                    \
    "\"num_attention_heads\":32,\"vocab_size\":50304,\"alibi\":" alibi "}"
    static const struct {
        const char *text;
        bool alibi;
        uint64_t positions; /* of a matrix */
    } cases[] = {
        {FALCON("true"), true, 0},
        {FALCON("false"), false, 0},
        {MPT("\"attn_config\":{\"alibi\":true},\"max_seq_len\":128"), true, 0},
        {MPT("\"max_seq_len\":128"), false, 128},
        {"{\"model_type\":\"baichuan\",\"num_hidden_layers\":40,\"hidden_size\":5120,"
         "\"intermediate_size\":13696,\"num_attention_heads\":40,\"vocab_size\":64000}",
         true, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_transformer net;

        cr_assert(eq(int, parse(cases[i].text, &net), NW_OK), "%s", nw_last_error()->text);
        cr_expect(eq(int, net.alibi, cases[i].alibi), "%zu", i);
        cr_expect(eq(u64, net.positions, cases[i].positions), "%zu", i);
    }
}

/* No logits over the vocabulary where the class has no output layer: no time, no memory. */
Test(hf_config, the_class_of_an_encoder_says_what_stands_behind_it)
{
    static const struct {
        const char *class;
        uint64_t outputs, parameters;
    } cases[] = {
        {"\"BertModel\"", 0, 335141888},
        {"\"BertForSequenceClassification\"", 2, 335141888 + 2 * 1024 + 2},
        {"\"BertForMaskedLM\"", 30522, 335174458},
        {"\"BertLMHeadModel\"", 30522, 335174458},
        {"\"BertForPreTraining\"", 30522, 336226108},
        {"", 30522, 335141888},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_transformer net;
        char text[400];

        snprintf(text, sizeof text,
                 "{\"model_type\":\"bert\",\"num_hidden_layers\":24,\"hidden_size\":1024,"
                 "\"intermediate_size\":4096,\"num_attention_heads\":16,\"vocab_size\":30522,"
                 "\"max_position_embeddings\":512,\"architectures\":[%s]}",
                 cases[i].class);
        cr_assert(eq(int, parse(text, &net), NW_OK), "%s", nw_last_error()->text);
        cr_expect(eq(u64, nw_transformer_outputs(&net), cases[i].outputs), "%s", cases[i].class);
        cr_expect(eq(u64, nw_transformer_parameter_count(&net), cases[i].parameters), "%s",
                  cases[i].class);
        const struct nw_flops flops = nw_transformer_flops(&net, 512, 512, true);
        const double transform = net.mlm_head ? 1024 : 0;

        cr_expect(
            eq(dbl, flops.head_forward, 2.0 * 512 * 1024 * ((double)cases[i].outputs + transform)),
            "%s", cases[i].class);
        /* "--tied no" makes no output layer where there is none */
        net.tied = false;
        cr_expect(eq(u64, nw_transformer_parameter_count(&net),
                     cases[i].parameters + (net.no_vocabulary_head ? 0 : 30522 * 1024)),
                  "%s untied", cases[i].class);
    }
}

Test(hf_config, bad_input_is_refused_with_file_and_key)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "config.json:1: not valid JSON"},
        {"[]", "object is expected"},
        {"{}", "model_type"},
        {"{\"model_type\":\"t5\"}", "\"t5\" is not supported; accepted: gpt2, gpt_bigcode, gptj"},
        {"{\"model_type\":5}", "model_type"},
        {"{\"model_type\":\"llama\",\"hidden_size\":4096}",
         "num_hidden_layers, num_attention_heads, vocab_size, intermediate_size"},
        {LLAMA(",\"num_key_value_heads\":5"), "5 key-value heads"},
        {LLAMA(",\"num_key_value_heads\":0"), "num_key_value_heads is 0"},
        {LLAMA(",\"vocab_size\":0"), "not valid JSON"}, /* a key twice */
        {"{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":768,\"n_head\":12,"
         "\"vocab_size\":0,\"n_positions\":1024}",
         "vocab_size is 0"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":768,\"n_head\":11,"
         "\"vocab_size\":50257,\"n_positions\":1024}",
         "11 attention heads do not divide the hidden size 768"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":768.5,\"n_head\":12,"
         "\"vocab_size\":50257,\"n_positions\":1024}",
         "n_embd"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":-12,\"n_embd\":768,\"n_head\":12,"
         "\"vocab_size\":50257,\"n_positions\":1024}",
         "n_layer"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":9223372036854775807,"
         "\"n_head\":12,\"vocab_size\":50257,\"n_positions\":1024}",
         "n_embd is 9223372036854775807; accepted: 1 to"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":1e400}", "config.json:1: not valid JSON"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":NaN}", "config.json:1: not valid JSON"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":4096,\"n_embd\":1048576,\"n_head\":1024,"
         "\"vocab_size\":16777216,\"n_positions\":1024}",
         "parameters; accepted: up to 1e14"},
        {LLAMA(",\"tie_word_embeddings\":\"yes\""), "tie_word_embeddings"},
        {"{\"architectures\":[\"T5ForConditionalGeneration\"]}", "architecture \"T5For"},
        {"{\"architectures\":[\"Qwen2VLForConditionalGeneration\"]}", "is not supported"},
        {"{\"architectures\":[5]}", "model_type\" is missing"},
        {"{\"text_config\":{\"model_type\":\"gemma3_text\"}}",
         "a gemma3_text config needs the keys"},
        {MIXTRAL(8, 9), "cannot use 9 of 8 experts"},
        {MIXTRAL(8, 0), "cannot use 0 of 8 experts"},
        {MIXTRAL(-1, 2), "num_local_experts"},
        {MIXTRAL(16385, 2), "num_local_experts is 16385; accepted: 0 to 16384"},
        {QWEN_MOE("\"mlp_only_layers\":5"), "mlp_only_layers"},
        {QWEN_MOE("\"mlp_only_layers\":[48]"), "expected 0 to 47"},
        {QWEN_MOE("\"mlp_only_layers\":[\"1\"]"), "expected 0 to 47"},
        {QWEN_MOE("\"decoder_sparse_step\":49"), "leave none with them"},
        {DEEPSEEK("\"n_shared_experts\":9999"), "n_shared_experts is 9999; accepted: 0 to 1024"},
        {DEEPSEEK("\"first_k_dense_replace\":27"), "leave none with them"},
        {DEEPSEEK("\"v_head_dim\":0"), "not valid JSON"},
        {DEEPSEEK("\"q_lora_rank\":\"1536\""), "q_lora_rank"},
        {MPT("\"expansion_ratio\":9999999"), "expansion_ratio is 9999999; accepted: 1 to 1024"},
        {MPT("\"expansion_ratio\":9223372036854775807"), "expansion_ratio"},
        {MPT("\"attn_config\":[]"), "attn_config"},
        {MPT("\"attn_config\":{\"kv_n_heads\":5}"), "5 key-value heads"},
        {MPT("\"attn_config\":{\"alibi\":1}"), "alibi"},
        {"{\"model_type\":\"qwen\",\"num_hidden_layers\":2,\"hidden_size\":64,"
         "\"num_attention_heads\":2,\"vocab_size\":100,\"intermediate_size\":1}",
         "intermediate_size / 2 is 0"},
        {"{\"model_type\":\"opt\",\"num_hidden_layers\":2,\"hidden_size\":64,\"ffn_dim\":64,"
         "\"num_attention_heads\":2,\"vocab_size\":100}",
         "max_position_embeddings"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_transformer net;

        cr_expect(eq(int, parse(cases[i].text, &net), NW_EUSAGE), "%zu: %s", i, cases[i].text);
        cr_expect(ne(ptr, strstr(nw_last_error()->text, cases[i].says), NULL), "%zu: %s", i,
                  nw_last_error()->text);
    }
}
