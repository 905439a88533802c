#include "model/model.h"

#include "model/request.h"

const struct nw_constant_row nw_constants[NW_CONSTANT_COUNT] = {
#define X(key_name, key_value, key_unit, key_text, key_source)                                     \
    [NW_CONSTANT_##key_name] = {.key = #key_name,                                                  \
                                .value = key_value,                                                \
                                .unit = key_unit,                                                  \
                                .text = key_text,                                                  \
                                .source = key_source},
    NW_CONSTANT_MAP(X)
#undef X
};

/* Mixed precision keeps an fp32 copy of the weights in the optimizer (Micikevicius et al. 2018). */
const struct nw_precision nw_precisions[] = {
    {.name = "fp32", .element_bytes = 4, .master_bytes = 0, .half = false},
    {.name = "bf16", .element_bytes = 2, .master_bytes = 4, .half = true},
    {.name = "fp16", .element_bytes = 2, .master_bytes = 4, .half = true},
    {.name = NULL},
};
const char *const nw_precision_names[] = {"fp32", "bf16", "fp16", NULL};

/* Adam keeps two fp32 moments (Rajbhandari et al. 2020, ZeRO, section 3.1: K = 12 with the master
 * copy); 8-bit Adam two bytes (Dettmers et al. 2022); SGD with momentum one fp32 buffer. */
const struct nw_optimizer nw_optimizers[] = {
    {.name = "adam", .title = "Adam", .state_bytes = 8},
    {.name = "adamw", .title = "AdamW", .state_bytes = 8},
    {.name = "adam8bit", .title = "8-bit Adam", .state_bytes = 2},
    {.name = "sgd", .title = "SGD with momentum", .state_bytes = 4},
    {.name = "sgd-plain", .title = "SGD without momentum", .state_bytes = 0},
    {.name = NULL},
};
const char *const nw_optimizer_names[] = {"adam", "adamw", "adam8bit", "sgd", "sgd-plain", NULL};

const char *const nw_gradient_names[] = {"same", "fp32", NULL};
const char *const nw_recompute_names[] = {"none", "full", NULL};
const char *const nw_attention_names[] = {"flash", "materialized", NULL};
const char *const nw_overlap_names[] = {"typical", "full", "none", NULL};
