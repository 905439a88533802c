/* Private to model/: the preset tables of the families, and what their rows share. A family of its
 * own is a table here and a row of `families` in model/presets.c. */
#ifndef NW_MODEL_PRESETS_H
#define NW_MODEL_PRESETS_H

#include "model/transformer.h"

/* f: width of the MLP, a: heads, g: key-value heads */
#define SHAPE(preset, l, h, f, a, g)                                                               \
    .name = preset, .layers = l, .hidden = h, .ffn = f, .heads = a, .kv_heads = g
/* Hugging Face's name of the model; --model takes it too. */
#define HUB      "huggingface.co/"
#define HF(name) HUB name

#define NW_PRESET_FAMILIES(X) X(gpt) X(llama) X(qwen) X(bert) X(vision)
#define NW_PRESET_FAMILY(name)                                                                     \
    extern const struct nw_preset nw_presets_##name[];                                             \
    extern const size_t nw_presets_##name##_count;
NW_PRESET_FAMILIES(NW_PRESET_FAMILY)
#undef NW_PRESET_FAMILY

#endif
