#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/transformer.h"

Test(transformer, presets_have_exactly_the_published_parameter_counts)
{
    cr_assert(ge(sz, nw_preset_count, 10));
    for (size_t i = 0; i < nw_preset_count; i++) {
        const struct nw_preset *preset = &nw_presets[i];
        struct nw_transformer net;

        cr_assert(eq(int, nw_transformer_find(preset->net.name, &net), NW_OK));
        cr_expect(eq(u64, nw_transformer_parameter_count(&net), preset->published_parameters), "%s",
                  preset->net.name);
        cr_expect(eq(int, nw_transformer_check(&net, "preset"), NW_OK), "%s", preset->net.name);
    }
}

/* The same numbers once more, so that a changed table is seen. */
Test(transformer, well_known_counts)
{
    static const struct {
        const char *name;
        uint64_t parameters;
    } known[] = {
        {"gpt2-124m", 124439808},     {"gpt2-1.5b", 1557611200},    {"bert-large", 335141888},
        {"llama-2-7b", 6738415616},   {"llama-2-13b", 13015864320}, {"llama-2-70b", 68976648192},
        {"llama-3-8b", 8030261248},   {"llama-3-70b", 70553706496}, {"qwen2.5-7b", 7615616512},
        {"qwen2.5-72b", 72706203648}, {"LLAMA-2-7B", 6738415616},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct nw_transformer net;

        cr_assert(eq(int, nw_transformer_find(known[i].name, &net), NW_OK), "%s", known[i].name);
        cr_expect(eq(u64, nw_transformer_parameter_count(&net), known[i].parameters), "%s",
                  known[i].name);
    }
}

Test(transformer, unknown_name_names_the_nearest_and_all)
{
    struct nw_transformer net;

    cr_assert(eq(int, nw_transformer_find("lama-2-7b", &net), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "did you mean \"llama-2-7b\""), NULL), "%s",
              nw_last_error()->text);
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "qwen2.5-72b"), NULL));
}

/* 6 FLOPs per parameter and token (Kaplan et al. 2020), for the weights that are multiplied with.
 */
Test(transformer, flops_are_six_per_matrix_weight_and_token_without_attention)
{
    for (size_t i = 0; i < nw_preset_count; i++) {
        const struct nw_transformer *net = &nw_presets[i].net;
        const struct nw_flops flops = nw_transformer_flops(net, 1, 0, true);
        const double all = (double)net->layers * (flops.layer_forward + flops.layer_backward) +
                           flops.head_forward + flops.head_backward;
        struct nw_tensors layer;
        double matrices = (double)(net->vocab * net->hidden);

        nw_transformer_layer(net, &layer);
        for (size_t t = 0; t < layer.count; t++) /* all but biases and norms, which are vectors */
            if (layer.elements[t] > 4 * net->ffn)
                matrices += (double)(net->layers * layer.elements[t]);
        cr_expect(lt(dbl, fabs(all / (6 * matrices) - 1), 1e-12), "%s", net->name);
    }
}

Test(transformer, attention_flops_know_causal_flash_and_encoder)
{
    const struct nw_transformer *gpt = &nw_presets[0].net, *bert = &nw_presets[2].net;
    const double without = nw_transformer_flops(gpt, 100, 0, true).layer_forward;
    const double flash = nw_transformer_flops(gpt, 100, 1024, true).layer_forward - without;
    const double full = nw_transformer_flops(gpt, 100, 1024, false).layer_forward - without;

    cr_expect(lt(dbl, fabs(full / (4.0 * 100 * 1024 * 768) - 1), 1e-12));
    cr_expect(lt(dbl, fabs(full / flash - 2), 1e-12));
    const double back = nw_transformer_flops(gpt, 100, 0, true).layer_backward;

    cr_expect(lt(dbl, fabs(back / without - 2), 1e-12));
    cr_expect(lt(
        dbl, fabs((nw_transformer_flops(gpt, 100, 1024, true).layer_backward - back) / flash - 2.5),
        1e-9));
    cr_expect(lt(
        dbl, fabs((nw_transformer_flops(gpt, 100, 1024, false).layer_backward - back) / full - 2),
        1e-9));
    cr_expect(eq(dbl, nw_transformer_flops(bert, 64, 512, true).layer_forward,
                 nw_transformer_flops(bert, 64, 512, false).layer_forward));
}

#define LLAMA(extra)                                                                               \
    "{\"model_type\":\"llama\",\"num_hidden_layers\":32,\"hidden_size\":4096,"                     \
    "\"intermediate_size\":11008,\"num_attention_heads\":32,\"vocab_size\":32000" extra "}"

static nw_rc parse(const char *text, struct nw_transformer *net_out)
{
    return nw_transformer_parse_config(text, strlen(text), "config.json", net_out);
}

Test(hf_config, gives_the_published_counts)
{
    static const struct {
        const char *text;
        uint64_t parameters;
    } cases[] = {
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

Test(hf_config, bad_input_is_refused_with_file_and_key)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "config.json:1: not valid JSON"},
        {"[]", "object is expected"},
        {"{}", "model_type"},
        {"{\"model_type\":\"t5\"}", "accepted: gpt2, llama, mistral, qwen2, bert"},
        {"{\"model_type\":5}", "model_type"},
        {"{\"model_type\":\"llama\",\"hidden_size\":4096}",
         "num_hidden_layers, intermediate_size, num_attention_heads, vocab_size"},
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
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_transformer net;

        cr_expect(eq(int, parse(cases[i].text, &net), NW_EUSAGE), "%zu: %s", i, cases[i].text);
        cr_expect(ne(ptr, strstr(nw_last_error()->text, cases[i].says), NULL), "%zu: %s", i,
                  nw_last_error()->text);
    }
}
