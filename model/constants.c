#include "model/model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

const struct nw_constant_row nw_constants[NW_CONSTANT_COUNT] = {
#define X(key_name, key_value, key_unit, key_text, key_source, how, effect)                        \
    [NW_CONSTANT_##key_name] = {.key = #key_name,                                                  \
                                .value = key_value,                                                \
                                .unit = key_unit,                                                  \
                                .text = key_text,                                                  \
                                .source = key_source,                                              \
                                .measured_by = how,                                                \
                                .sensitivity = effect},
    NW_CONSTANT_MAP(X)
#undef X
#define X(key_name, key_value, key_unit, key_text, key_source)                                     \
    [NW_CONSTANT_##key_name] = {.key = #key_name,                                                  \
                                .value = key_value,                                                \
                                .unit = key_unit,                                                  \
                                .text = key_text,                                                  \
                                .source = key_source},
        NW_ERROR_MAP(X)
#undef X
};

void nw_assumptions_reset(struct nw_assumptions *assumptions)
{
    for (size_t i = 0; i < NW_CONSTANT_COUNT; i++)
        assumptions->value[i] = nw_constants[i].value;
    assumptions->measured = assumptions->stated = 0;
}

/* Rates are multiplied by shares and divided into work: 0 has no meaning there. */
static bool divides(const char *key)
{
    const char *end = strstr(key, "_SHARE");

    return end != NULL && end[strlen("_SHARE")] == '\0' && strcmp(key, "ALLOCATOR_SHARE") != 0;
}

/* Shares are parts of one, errors of what they are errors of (the widest is 1.5): 97 is no 97 %. */
static double largest(const struct nw_constant_row *row)
{
    return strcmp(row->unit, "ns") == 0      ? 1e9
           : strcmp(row->unit, "bytes") == 0 ? 1e13
           : strcmp(row->unit, "±") == 0     ? 5
                                             : 2;
}

nw_rc nw_assumptions_set(struct nw_assumptions *assumptions, const char *text)
{
    const char *equals = strchr(text, '=');
    const char *names[NW_CONSTANT_COUNT + 1] = {NULL};
    char accepted[512];

    for (size_t i = 0; i < NW_CONSTANT_COUNT; i++) {
        const size_t length = strlen(nw_constants[i].key);

        names[i] = nw_constants[i].key;
        if (equals != NULL && (size_t)(equals - text) == length &&
            strncasecmp(text, names[i], length) == 0) {
            double value;

            if (nw_parse_double(equals + 1, 0, largest(&nw_constants[i]), &value) != NW_OK)
                return nw_fail(NW_EUSAGE, "%s: %s", names[i], nw_last_error()->text);
            if (value == 0 && divides(names[i]))
                return nw_fail(NW_EUSAGE, "%s=0: nothing would ever end; accepted: above 0",
                               names[i]);
            assumptions->value[i] = value;
            assumptions->stated |= (nw_assumed)1 << i;
            return NW_OK;
        }
    }
    names[NW_CONSTANT_PHYSICAL_COUNT] = NULL;
    return nw_fail(NW_EUSAGE,
                   "\"%.80s\" is no KEY=VALUE of an assumed constant; accepted keys: %s, or one of "
                   "nodeworth list errors",
                   text, nw_join_names(accepted, sizeof accepted, names));
}

/* Mixed precision keeps an fp32 copy of the weights in the optimizer (Micikevicius et al. 2018). */
const struct nw_precision nw_precisions[] = {
    {.name = "fp32", .element_bytes = 4, .units = NW_UNITS_FP32},
    {.name = "bf16", .element_bytes = 2, .master_bytes = 4, .half = true, .units = NW_UNITS_BF16},
    {.name = "fp16", .element_bytes = 2, .master_bytes = 4, .half = true, .units = NW_UNITS_FP16},
    {.name = "tf32", .element_bytes = 4, .units = NW_UNITS_TF32},
    {.name = "fp8", .element_bytes = 2, .master_bytes = 4, .half = true, .units = NW_UNITS_FP8},
    {.name = NULL},
};
const char *const nw_precision_names[] = {"fp32", "bf16", "fp16", "tf32", "fp8", NULL};

/* Adam keeps two fp32 moments (Rajbhandari et al. 2020, ZeRO, section 3.1: K = 12 with the master
 * copy); 8-bit Adam two bytes (Dettmers et al. 2022); SGD with momentum one fp32 buffer. Adafactor
 * keeps a sum per row and column, next to nothing per parameter, and passes over the squared
 * gradient and the update three times (Shazeer and Stern 2018, algorithm 4); LAMB writes its update
 * and reads it and the weights again for their norms (You et al. 2020, algorithm 2). */
const struct nw_optimizer nw_optimizers[] = {
    {.name = "adam", .title = "Adam", .state_bytes = 8},
    {.name = "adamw", .title = "AdamW", .state_bytes = 8},
    {.name = "adam8bit", .title = "8-bit Adam", .state_bytes = 2},
    {.name = "adafactor", .title = "Adafactor", .state_bytes = 0, .again_bytes = 16},
    {.name = "lamb", .title = "LAMB", .state_bytes = 8, .again_bytes = 12},
    {.name = "sgd", .title = "SGD with momentum", .state_bytes = 4},
    {.name = "sgd-plain", .title = "SGD without momentum", .state_bytes = 0},
    {.name = NULL},
};
const char *const nw_optimizer_names[] = {"adam", "adamw", "adam8bit",  "adafactor",
                                          "lamb", "sgd",   "sgd-plain", NULL};
