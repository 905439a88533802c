/* Hugging Face config.json: which keys an architecture has, and what its code fixes. */
#include "model/transformer.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"

#define MAX_CONFIG_BYTES (1u << 20)

struct number_key {
    const char *key;
    size_t offset;
    bool optional;
};

struct flag_key {
    const char *key;
    size_t offset, also; /* `also`: a second field that the key sets; the same offset: none */
};

struct architecture {
    const char *model_type;
    struct number_key numbers[10]; /* ends with key NULL */
    struct flag_key flags[4];
    struct nw_transformer fixed; /* what the config does not say; starting values of the keys */
    uint64_t ffn_of_hidden;      /* ffn = this × hidden where absent; 0: required */
};

#define AT(field) offsetof(struct nw_transformer, field)
#define NUMBER(name, field)                                                                        \
    {                                                                                              \
        name, AT(field), false                                                                     \
    }
#define MAYBE(name, field)                                                                         \
    {                                                                                              \
        name, AT(field), true                                                                      \
    }
#define FLAG(name, field)                                                                          \
    {                                                                                              \
        name, AT(field), AT(field)                                                                 \
    }

/* Llama and its relatives (modeling_llama.py, modeling_mistral.py, modeling_qwen2.py). */
#define LLAMA_NUMBERS                                                                              \
    NUMBER("num_hidden_layers", layers), NUMBER("hidden_size", hidden),                            \
        NUMBER("intermediate_size", ffn), NUMBER("num_attention_heads", heads),                    \
        MAYBE("num_key_value_heads", kv_heads), MAYBE("head_dim", head_size),                      \
        NUMBER("vocab_size", vocab), MAYBE("max_position_embeddings", max_positions)

static const struct architecture architectures[] = {
    {
        .model_type = "gpt2",
        .numbers = {NUMBER("n_layer", layers), NUMBER("n_embd", hidden), MAYBE("n_inner", ffn),
                    NUMBER("n_head", heads), NUMBER("vocab_size", vocab),
                    NUMBER("n_positions", positions)},
        .flags = {FLAG("tie_word_embeddings", tied)},
        .fixed = {.tied = true,
                  .qkv_bias = true,
                  .output_bias = true,
                  .mlp_bias = true,
                  .norm_bias = true},
        .ffn_of_hidden = 4,
    },
    {
        .model_type = "llama",
        .numbers = {LLAMA_NUMBERS},
        .flags = {FLAG("tie_word_embeddings", tied),
                  {"attention_bias", AT(qkv_bias), AT(output_bias)},
                  FLAG("mlp_bias", mlp_bias)},
        .fixed = {.gated = true},
    },
    {
        .model_type = "mistral",
        .numbers = {LLAMA_NUMBERS},
        .flags = {FLAG("tie_word_embeddings", tied)},
        .fixed = {.gated = true},
    },
    {
        .model_type = "qwen2",
        .numbers = {LLAMA_NUMBERS},
        .flags = {FLAG("tie_word_embeddings", tied)},
        .fixed = {.gated = true, .qkv_bias = true},
    },
    {
        .model_type = "bert",
        .numbers = {NUMBER("num_hidden_layers", layers), NUMBER("hidden_size", hidden),
                    NUMBER("intermediate_size", ffn), NUMBER("num_attention_heads", heads),
                    NUMBER("vocab_size", vocab), NUMBER("max_position_embeddings", positions),
                    MAYBE("type_vocab_size", token_types)},
        .flags = {FLAG("tie_word_embeddings", tied)},
        .fixed = {.tied = true,
                  .qkv_bias = true,
                  .output_bias = true,
                  .mlp_bias = true,
                  .norm_bias = true,
                  .embedding_norm = true,
                  .post_norm = true,
                  .encoder = true,
                  .pooler = true,
                  .token_types = 2},
    },
};
#define ARCHITECTURE_COUNT (sizeof architectures / sizeof architectures[0])

static nw_rc find_architecture(const json_t *root, const char *what,
                               const struct architecture **architecture_out)
{
    const char *names[ARCHITECTURE_COUNT + 1] = {NULL};
    const char *type = NULL;
    char accepted[128];

    for (size_t i = 0; i < ARCHITECTURE_COUNT; i++)
        names[i] = architectures[i].model_type;
    nw_join_names(accepted, sizeof accepted, names);
    if (!json_is_object(root))
        return nw_fail(NW_EUSAGE, "%s: a JSON object is expected (Hugging Face config.json)", what);
    NW_TRY(nw_json_get_text(root, what, "model_type", false, &type));
    if (type == NULL)
        return nw_fail(NW_EUSAGE, "%s: key \"model_type\" is missing; accepted: %s", what,
                       accepted);
    for (size_t i = 0; i < ARCHITECTURE_COUNT; i++) {
        if (strcmp(architectures[i].model_type, type) == 0) {
            *architecture_out = &architectures[i];
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "%s: model_type \"%.60s\" is not supported; accepted: %s", what, type,
                   accepted);
}

/* Every missing key in one sentence. */
static nw_rc check_present(const json_t *root, const struct architecture *architecture,
                           const char *what)
{
    const char *missing[11] = {NULL};
    size_t count = 0;
    char text[256];

    for (const struct number_key *row = architecture->numbers; row->key != NULL; row++) {
        const json_t *value = json_object_get(root, row->key);

        if (!row->optional && (value == NULL || json_is_null(value)))
            missing[count++] = row->key;
    }
    if (count == 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s: a %s config needs %s \"%s\"", what, architecture->model_type,
                   count == 1 ? "key" : "the keys", nw_join_names(text, sizeof text, missing));
}

static nw_rc read_keys(const json_t *root, const struct architecture *architecture,
                       const char *what, struct nw_transformer *net)
{
    char *base = (char *)net;

    for (const struct number_key *row = architecture->numbers; row->key != NULL; row++) {
        uint64_t value;

        memcpy(&value, base + row->offset, sizeof value);
        const uint64_t absent = value;

        NW_TRY(nw_json_get_u64(root, what, row->key, false, &value));
        const json_t *given = json_object_get(root, row->key);

        if (value != absent || (given != NULL && !json_is_null(given)))
            NW_TRY(nw_transformer_check_field(row->offset, value, what, row->key));
        memcpy(base + row->offset, &value, sizeof value);
    }
    for (const struct flag_key *row = architecture->flags; row->key != NULL; row++) {
        bool value;

        memcpy(&value, base + row->offset, sizeof value);
        NW_TRY(nw_json_get_bool(root, what, row->key, false, &value));
        memcpy(base + row->offset, &value, sizeof value);
        memcpy(base + row->also, &value, sizeof value);
    }
    return NW_OK;
}

static nw_rc read_config(const json_t *root, const char *what, struct nw_transformer *net_out)
{
    const struct architecture *architecture = NULL;

    NW_TRY(find_architecture(root, what, &architecture));
    NW_TRY(check_present(root, architecture, what));
    struct nw_transformer net = architecture->fixed;

    NW_TRY(read_keys(root, architecture, what, &net));
    NW_TRY(nw_json_get_field(root, what, "_name_or_path", false, net.name, sizeof net.name));
    if (net.name[0] == '\0')
        snprintf(net.name, sizeof net.name, "%s", architecture->model_type);
    if (net.ffn == 0)
        net.ffn = architecture->ffn_of_hidden * net.hidden;
    if (net.kv_heads == 0)
        net.kv_heads = net.heads;
    if (net.max_positions == 0)
        net.max_positions = net.positions;
    if (net.head_size == 0 && net.hidden % net.heads != 0)
        return nw_fail(NW_EUSAGE,
                       "%s: %llu attention heads do not divide the hidden size %llu; accepted: a "
                       "divisor, or \"head_dim\"",
                       what, (unsigned long long)net.heads, (unsigned long long)net.hidden);
    if (net.head_size == 0)
        net.head_size = net.hidden / net.heads;
    NW_TRY(nw_transformer_check(&net, what));
    *net_out = net;
    return NW_OK;
}

nw_rc nw_transformer_parse_config(const char *text, size_t length, const char *what,
                                  struct nw_transformer *net_out)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL)
        return nw_fail(NW_EUSAGE, "%s:%d: not valid JSON: %s", what,
                       error.line > 0 ? error.line : 1, error.text);
    const nw_rc rc = read_config(root, what, net_out);

    json_decref(root);
    return rc;
}

nw_rc nw_transformer_read_config(const char *path, struct nw_transformer *net_out)
{
    json_t *root;

    NW_TRY(nw_json_load(path, MAX_CONFIG_BYTES, &root));
    const nw_rc rc = read_config(root, path, net_out);

    json_decref(root);
    return rc;
}
