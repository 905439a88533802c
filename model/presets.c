#include "model/transformer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

/* Families share what the code of their architecture fixes. */
#define GPT2                                                                                       \
    .vocab = 50257, .positions = 1024, .max_positions = 1024, .head_size = 64, .tied = true,       \
    .qkv_bias = true, .output_bias = true, .mlp_bias = true, .norm_bias = true
#define BERT                                                                                       \
    .vocab = 30522, .positions = 512, .max_positions = 512, .token_types = 2, .head_size = 64,     \
    .tied = true, .qkv_bias = true, .output_bias = true, .mlp_bias = true, .norm_bias = true,      \
    .embedding_norm = true, .post_norm = true, .encoder = true, .pooler = true
#define LLAMA2 .vocab = 32000, .max_positions = 4096, .head_size = 128, .gated = true
#define LLAMA3 .vocab = 128256, .max_positions = 8192, .head_size = 128, .gated = true
#define QWEN25                                                                                     \
    .vocab = 152064, .max_positions = 131072, .head_size = 128, .gated = true, .qkv_bias = true

#define SHAPE(preset, l, h, f, a, g)                                                               \
    .name = preset, .layers = l, .hidden = h, .ffn = f, .heads = a, .kv_heads = g

/* Counts are those of the checkpoints; bert-large is the encoder with its pooler (BertModel), its
 * output layer tied and without the extra transform of the pre-training head. */
const struct nw_preset nw_presets[] = {
    {{SHAPE("gpt2-124m", 12, 768, 3072, 12, 12), GPT2}, 124439808, "huggingface.co/gpt2"},
    {{SHAPE("gpt2-1.5b", 48, 1600, 6400, 25, 25), GPT2}, 1557611200, "huggingface.co/gpt2-xl"},
    {{SHAPE("bert-large", 24, 1024, 4096, 16, 16), BERT},
     335141888,
     "huggingface.co/bert-large-uncased"},
    {{SHAPE("llama-2-7b", 32, 4096, 11008, 32, 32), LLAMA2},
     6738415616,
     "huggingface.co/meta-llama/Llama-2-7b-hf"},
    {{SHAPE("llama-2-13b", 40, 5120, 13824, 40, 40), LLAMA2},
     13015864320,
     "huggingface.co/meta-llama/Llama-2-13b-hf"},
    {{SHAPE("llama-2-70b", 80, 8192, 28672, 64, 8), LLAMA2},
     68976648192,
     "huggingface.co/meta-llama/Llama-2-70b-hf"},
    {{SHAPE("llama-3-8b", 32, 4096, 14336, 32, 8), LLAMA3},
     8030261248,
     "huggingface.co/meta-llama/Meta-Llama-3-8B"},
    {{SHAPE("llama-3-70b", 80, 8192, 28672, 64, 8), LLAMA3},
     70553706496,
     "huggingface.co/meta-llama/Meta-Llama-3-70B"},
    {{SHAPE("qwen2.5-7b", 28, 3584, 18944, 28, 4), QWEN25},
     7615616512,
     "huggingface.co/Qwen/Qwen2.5-7B"},
    {{SHAPE("qwen2.5-72b", 80, 8192, 29568, 64, 8), QWEN25},
     72706203648,
     "huggingface.co/Qwen/Qwen2.5-72B"},
};
const size_t nw_preset_count = sizeof nw_presets / sizeof nw_presets[0];

static bool is_path(const char *text)
{
    const size_t length = strlen(text);

    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".json") == 0);
}

nw_rc nw_transformer_find(const char *name_or_path, struct nw_transformer *net_out)
{
    const char *names[sizeof nw_presets / sizeof nw_presets[0] + 1] = {NULL};
    char accepted[512];

    if (is_path(name_or_path))
        return nw_transformer_read_config(name_or_path, net_out);
    for (size_t i = 0; i < nw_preset_count; i++) {
        names[i] = nw_presets[i].net.name;
        if (strcasecmp(names[i], name_or_path) == 0) {
            *net_out = nw_presets[i].net;
            return NW_OK;
        }
    }
    const char *nearest = nw_nearest_name(name_or_path, names);

    nw_join_names(accepted, sizeof accepted, names);
    return nw_fail(NW_EUSAGE,
                   "unknown model \"%.80s\"%s%s%s Accepted: %s, or the path of a Hugging Face "
                   "config.json",
                   name_or_path, nearest != NULL ? "; did you mean \"" : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : ".", accepted);
}
