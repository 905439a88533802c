/* Rules that a shape must keep, and shapes by their numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/transformer.h"

/* A hundred times the largest model published. */
#define MAX_PARAMETERS 1e14
#define MAX_WIDTH      (1u << 20)

#define AT(field) offsetof(struct nw_transformer, field)

/* Bounds far beyond any model, so that the elements of one layer stay below 2^60. */
static const struct bound {
    const char *key;
    size_t offset;
    uint64_t min, max;
} bounds[] = {
#define BOUND(field, low, high)                                                                    \
    {                                                                                              \
#field, AT(field), low, high                                                               \
    }
    BOUND(layers, 1, 4096),
    BOUND(hidden, 1, MAX_WIDTH),
    BOUND(ffn, 1, 1u << 22),
    BOUND(heads, 1, 1u << 14),
    BOUND(kv_heads, 1, 1u << 14),
    BOUND(head_size, 1, 1u << 14),
    BOUND(vocab, 1, 1u << 24),
    BOUND(positions, 0, 1u << 24),
    BOUND(max_positions, 0, 1u << 30),
    BOUND(token_types, 0, 1u << 16),
    BOUND(classes, 0, 1u << 20),
    BOUND(embedding_size, 0, MAX_WIDTH),
    BOUND(experts, 0, 1u << 14),
    BOUND(experts_per_token, 0, 1u << 14),
    BOUND(expert_ffn, 0, 1u << 22),
    BOUND(shared_ffn, 0, 1u << 22),
    BOUND(dense_layers, 0, 4096),
    BOUND(query_rank, 0, MAX_WIDTH),
    BOUND(kv_rank, 0, MAX_WIDTH),
    BOUND(rope_head_size, 0, 1u << 14),
    BOUND(value_head_size, 0, 1u << 14),
#undef BOUND
};
#define BOUND_COUNT (sizeof bounds / sizeof bounds[0])

nw_rc nw_transformer_check_field(size_t offset, uint64_t value, const char *what, const char *key)
{
    for (size_t i = 0; i < BOUND_COUNT; i++)
        if (bounds[i].offset == offset && (value < bounds[i].min || value > bounds[i].max))
            return nw_fail(NW_EUSAGE, "%s: %s is %llu; accepted: %llu to %llu", what, key,
                           (unsigned long long)value, (unsigned long long)bounds[i].min,
                           (unsigned long long)bounds[i].max);
    return NW_OK;
}

static uint64_t field_at(const struct nw_transformer *net, size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)net + offset, sizeof value);
    return value;
}

/* "1, 2, 4, 8" */
static const char *divisors(char *text, size_t size, uint64_t of)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint64_t i = 1; i <= of && used + 16 < size; i++)
        if (of % i == 0)
            used += (size_t)snprintf(text + used, size - used, "%s%llu", used > 0 ? ", " : "",
                                     (unsigned long long)i);
    return text;
}

static nw_rc check_heads(const struct nw_transformer *net, const char *what)
{
    char accepted[160];

    if (net->heads % net->kv_heads != 0)
        return nw_fail(NW_EUSAGE,
                       "%s: %llu attention heads cannot share %llu key-value heads; accepted: a "
                       "divisor of the head count (%s)",
                       what, (unsigned long long)net->heads, (unsigned long long)net->kv_heads,
                       divisors(accepted, sizeof accepted, net->heads));
    if (net->heads * (net->head_size + net->rope_head_size) > MAX_WIDTH)
        return nw_fail(NW_EUSAGE, "%s: %llu heads of size %llu are wider than %u", what,
                       (unsigned long long)net->heads,
                       (unsigned long long)(net->head_size + net->rope_head_size), MAX_WIDTH);
    if (net->kv_rank > 0 && (net->rope_head_size == 0 || net->value_head_size == 0))
        return nw_fail(NW_EUSAGE,
                       "%s: latent attention (kv rank %llu) needs the sizes of a head's rotary "
                       "part and of its value; accepted: 1 to %u",
                       what, (unsigned long long)net->kv_rank, 1u << 14);
    return NW_OK;
}

static nw_rc check_experts(const struct nw_transformer *net, const char *what)
{
    if (net->experts == 0)
        return NW_OK;
    if (net->experts_per_token < 1 || net->experts_per_token > net->experts)
        return nw_fail(NW_EUSAGE,
                       "%s: a token cannot use %llu of %llu experts; accepted: 1 to %llu", what,
                       (unsigned long long)net->experts_per_token, (unsigned long long)net->experts,
                       (unsigned long long)net->experts);
    if (net->expert_ffn == 0)
        return nw_fail(NW_EUSAGE, "%s: the width of an expert is 0; accepted: 1 to %u", what,
                       1u << 22);
    if (net->dense_layers >= net->layers)
        return nw_fail(NW_EUSAGE,
                       "%s: %llu of %llu layers without experts leave none with them; accepted: 0 "
                       "to %llu",
                       what, (unsigned long long)net->dense_layers, (unsigned long long)net->layers,
                       (unsigned long long)net->layers - 1);
    return NW_OK;
}

static nw_rc check_stated(const struct nw_transformer *net, const char *what)
{
    NW_TRY(nw_transformer_check_field(AT(layers), net->layers, what, "layers"));
    if (net->stated_parameters > MAX_PARAMETERS || net->stated_parameters < net->layers)
        return nw_fail(NW_EUSAGE, "%s: %.3g parameters in %llu layers; accepted: %llu to %g", what,
                       (double)net->stated_parameters, (unsigned long long)net->layers,
                       (unsigned long long)net->layers, MAX_PARAMETERS);
    if (!(net->flops_per_sample > 0 && net->flops_per_sample <= 1e24))
        return nw_fail(NW_EUSAGE, "%s: %.3g FLOPs per sample; accepted: above 0, up to 1e24", what,
                       net->flops_per_sample);
    if (!(net->activations_per_sample >= 0 && net->activations_per_sample <= 1e18) ||
        !(net->memory_passes_per_sample >= 0 && net->memory_passes_per_sample <= 1e18))
        return nw_fail(NW_EUSAGE, "%s: activations per sample: accepted: 0 to 1e18 elements", what);
    return NW_OK;
}

/* In floating point: a sum of the kinds' layers may pass 2^64. */
static double approximate_count(const struct nw_transformer *net)
{
    struct nw_tensors unit;
    double count;

    nw_transformer_embedding(net, &unit);
    count = (double)unit.total;
    nw_transformer_head(net, &unit);
    count += (double)unit.total;
    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        nw_transformer_layer_kind(net, kind, &unit);
        count += (double)nw_transformer_layer_count(net, kind) * (double)unit.total;
    }
    return count;
}

nw_rc nw_transformer_check(const struct nw_transformer *net, const char *what)
{
    if (net->stated_parameters > 0)
        return check_stated(net, what);
    for (size_t i = 0; i < BOUND_COUNT; i++)
        NW_TRY(nw_transformer_check_field(bounds[i].offset, field_at(net, bounds[i].offset), what,
                                          bounds[i].key));
    NW_TRY(check_heads(net, what));
    NW_TRY(check_experts(net, what));
    if (approximate_count(net) > MAX_PARAMETERS)
        return nw_fail(NW_EUSAGE, "%s: %.3g parameters; accepted: up to 1e14", what,
                       approximate_count(net));
    return NW_OK;
}

/* ---- by its numbers ------------------------------------------------------------------------ */

static const struct field {
    const char *option;
    size_t from, to; /* in nw_transformer_fields, in nw_transformer */
} numbers[] = {
#define FIELD(option, field)                                                                       \
    {                                                                                              \
        option, offsetof(struct nw_transformer_fields, field), AT(field)                           \
    }
    FIELD("--layers", layers),
    FIELD("--hidden", hidden),
    FIELD("--heads", heads),
    FIELD("--kv-heads", kv_heads),
    FIELD("--head-size", head_size),
    FIELD("--ffn", ffn),
    FIELD("--vocab", vocab),
    FIELD("--experts", experts),
    FIELD("--experts-per-token", experts_per_token),
    FIELD("--expert-ffn", expert_ffn),
#undef FIELD
};
#define NUMBER_COUNT (sizeof numbers / sizeof numbers[0])

static uint64_t given(const struct nw_transformer_fields *fields, const struct field *row)
{
    uint64_t value;

    memcpy(&value, (const char *)fields + row->from, sizeof value);
    return value;
}

/* The first option that a net as stated cannot take; NULL: none was given. */
static const char *shape_option(const struct nw_transformer_fields *fields)
{
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (numbers[i].to != AT(layers) && given(fields, &numbers[i]) != 0)
            return numbers[i].option;
    if (fields->gated != NW_NOT_GIVEN)
        return "--gated";
    if (fields->tied != NW_NOT_GIVEN)
        return "--tied";
    return fields->encoder != NW_NOT_GIVEN ? "--encoder" : NULL;
}

/* The first option that a transformer cannot take; NULL: none was given. */
static const char *stated_option(const struct nw_transformer_fields *fields)
{
    if (fields->parameters != 0)
        return "--parameters";
    if (fields->flops_per_sample != 0)
        return "--flops-per-sample";
    return fields->activations_per_sample != 0 ? "--activations-per-sample" : NULL;
}

bool nw_transformer_fields_given(const struct nw_transformer_fields *fields)
{
    return fields->layers > 0 || shape_option(fields) != NULL || stated_option(fields) != NULL;
}

#define STATED_UNITS 32 /* where --layers does not say into how many units a net is cut */

static nw_rc override_stated(struct nw_transformer *net, const struct nw_transformer_fields *fields)
{
    struct nw_transformer stated = *net;
    const bool fresh = net->layers == 0;
    const char *option = stated_option(fields);

    if (shape_option(fields) != NULL && option == NULL)
        return nw_fail(NW_EUSAGE,
                       "%s says the shape of a transformer, \"%s\" is none; accepted: --layers, "
                       "--parameters, --flops-per-sample, --activations-per-sample",
                       shape_option(fields), net->name);
    if (shape_option(fields) != NULL)
        return nw_fail(NW_EUSAGE,
                       "%s says the shape of a transformer, %s is of a net that is none; accepted: "
                       "one of the two",
                       shape_option(fields), option);
    if (!fresh && net->stated_parameters == 0)
        return nw_fail(NW_EUSAGE,
                       "%s with the transformer \"%s\": it follows from its shape; accepted: "
                       "without --model",
                       option, net->name);
    if (fields->parameters > 0 && !(fields->parameters <= MAX_PARAMETERS))
        return nw_fail(NW_EUSAGE, "--parameters is %g; accepted: 1 to %g", fields->parameters,
                       MAX_PARAMETERS);
    if (fresh && !(fields->parameters >= 1))
        return nw_fail(NW_EUSAGE, "%s needs --parameters; accepted: 1 to %g", option,
                       MAX_PARAMETERS);
    if (fresh && !(fields->flops_per_sample > 0))
        return nw_fail(NW_EUSAGE, "--parameters needs --flops-per-sample (of the forward pass; "
                                  "multiply and add are two); accepted: above 0");
    if (fields->parameters >= 1)
        stated.stated_parameters = (uint64_t)fields->parameters;
    if (fields->flops_per_sample > 0)
        stated.flops_per_sample = fields->flops_per_sample;
    if (fields->activations_per_sample > 0)
        stated.activations_per_sample = fields->activations_per_sample;
    if (fields->layers > 0)
        stated.layers = fields->layers;
    else if (fresh)
        stated.layers = stated.stated_parameters < STATED_UNITS ? 1 : STATED_UNITS;
    if (fresh)
        snprintf(stated.name, sizeof stated.name, "custom");
    NW_TRY(nw_transformer_check(&stated, "--parameters, --flops-per-sample, --layers"));
    *net = stated;
    return NW_OK;
}

static nw_rc check_enough(const struct nw_transformer_fields *fields)
{
    static const size_t needed[] = {AT(layers), AT(hidden), AT(heads), AT(vocab)};

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        for (size_t row = 0; row < NUMBER_COUNT; row++)
            if (numbers[row].to == needed[i] && given(fields, &numbers[row]) == 0)
                return nw_fail(NW_EUSAGE,
                               "a model by its numbers needs %s; accepted: --layers, --hidden, "
                               "--heads and --vocab, or --parameters and --flops-per-sample, or "
                               "--model",
                               numbers[row].option);
    return NW_OK;
}

/* Llama's conventions with a gated MLP (Touvron et al. 2023: 8/3 of the width, up to the next
 * multiple of 256), GPT-2's without one. */
static void start_fresh(const struct nw_transformer_fields *fields, struct nw_transformer *net)
{
    const bool gated = fields->gated == NW_YES;

    *net = (struct nw_transformer){
        .name = "custom",
        .ffn = gated ? (8 * fields->hidden + 767) / 768 * 256 : 4 * fields->hidden,
        .gated = gated,
        .tied = !gated,
        .qkv_bias = !gated,
        .output_bias = !gated,
        .mlp_bias = !gated,
        .norm_bias = !gated,
    };
}

static nw_rc follow_width(const struct nw_transformer *before, bool fresh,
                          const struct nw_transformer_fields *fields, struct nw_transformer *net)
{
    const bool changed = fields->hidden > 0 || fields->heads > 0;

    /* heads and key-value heads that were the same stay the same */
    if (fields->kv_heads == 0 && fields->heads > 0 && (fresh || before->kv_heads == before->heads))
        net->kv_heads = net->heads;
    if (fields->head_size > 0 || !changed ||
        (!fresh && before->heads * before->head_size != before->hidden))
        return NW_OK;
    if (net->hidden % net->heads != 0)
        return nw_fail(
            NW_EUSAGE,
            "--heads: %llu attention heads do not divide the hidden size %llu; accepted: "
            "a divisor, or --head-size",
            (unsigned long long)net->heads, (unsigned long long)net->hidden);
    net->head_size = net->hidden / net->heads;
    return NW_OK;
}

static nw_rc follow_experts(const struct nw_transformer_fields *fields, struct nw_transformer *net)
{
    if (net->experts == 0 && (fields->experts_per_token > 0 || fields->expert_ffn > 0))
        return nw_fail(NW_EUSAGE, "%s needs --experts; accepted: 1 to 16384",
                       fields->expert_ffn > 0 ? "--expert-ffn" : "--experts-per-token");
    if (net->experts > 0 && net->experts_per_token == 0)
        return nw_fail(NW_EUSAGE, "--experts %llu needs --experts-per-token; accepted: 1 to %llu",
                       (unsigned long long)net->experts, (unsigned long long)net->experts);
    if (net->experts > 0 && net->expert_ffn == 0)
        net->expert_ffn = net->ffn;
    return NW_OK;
}

nw_rc nw_transformer_override(struct nw_transformer *net,
                              const struct nw_transformer_fields *fields)
{
    const bool fresh = net->layers == 0;
    struct nw_transformer shape = *net;

    if (stated_option(fields) != NULL || (!fresh && net->stated_parameters > 0))
        return override_stated(net, fields);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (given(fields, &numbers[i]) != 0)
            NW_TRY(nw_transformer_check_field(numbers[i].to, given(fields, &numbers[i]), "model",
                                              numbers[i].option));
    if (fresh) {
        NW_TRY(check_enough(fields));
        start_fresh(fields, &shape);
    }
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        const uint64_t value = given(fields, &numbers[i]);

        if (value != 0)
            memcpy((char *)&shape + numbers[i].to, &value, sizeof value);
    }
    shape.gated = fields->gated != NW_NOT_GIVEN ? fields->gated == NW_YES : shape.gated;
    shape.tied = fields->tied != NW_NOT_GIVEN ? fields->tied == NW_YES : shape.tied;
    shape.encoder = fields->encoder != NW_NOT_GIVEN ? fields->encoder == NW_YES : shape.encoder;
    NW_TRY(follow_width(net, fresh, fields, &shape));
    NW_TRY(follow_experts(fields, &shape));
    NW_TRY(nw_transformer_check(&shape, "--model with the numbers given"));
    *net = shape;
    return NW_OK;
}
