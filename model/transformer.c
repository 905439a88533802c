#include "model/transformer.h"

#include <string.h>

static void add(struct nw_tensors *tensors, uint64_t elements)
{
    if (elements == 0)
        return;
    tensors->elements[tensors->count++] = elements;
    tensors->total += elements;
}

static void add_norm(struct nw_tensors *tensors, const struct nw_transformer *net)
{
    add(tensors, net->hidden);
    add(tensors, net->norm_bias ? net->hidden : 0);
}

static void add_linear(struct nw_tensors *tensors, uint64_t in, uint64_t out, bool bias)
{
    add(tensors, in * out);
    add(tensors, bias ? out : 0);
}

void nw_transformer_embedding(const struct nw_transformer *net, struct nw_tensors *tensors_out)
{
    struct nw_tensors tensors = {0};

    add(&tensors, net->vocab * net->hidden);
    add(&tensors, net->positions * net->hidden);
    add(&tensors, net->token_types * net->hidden);
    if (net->embedding_norm)
        add_norm(&tensors, net);
    *tensors_out = tensors;
}

void nw_transformer_layer(const struct nw_transformer *net, struct nw_tensors *tensors_out)
{
    const uint64_t query = net->heads * net->head_size, key = net->kv_heads * net->head_size;
    struct nw_tensors tensors = {0};

    add_norm(&tensors, net);
    add_linear(&tensors, net->hidden, query, net->qkv_bias);
    add_linear(&tensors, net->hidden, key, net->qkv_bias);
    add_linear(&tensors, net->hidden, key, net->qkv_bias);
    add_linear(&tensors, query, net->hidden, net->output_bias);
    add_norm(&tensors, net);
    if (net->gated)
        add_linear(&tensors, net->hidden, net->ffn, net->mlp_bias);
    add_linear(&tensors, net->hidden, net->ffn, net->mlp_bias);
    add_linear(&tensors, net->ffn, net->hidden, net->mlp_bias);
    *tensors_out = tensors;
}

void nw_transformer_head(const struct nw_transformer *net, struct nw_tensors *tensors_out)
{
    struct nw_tensors tensors = {0};

    if (!net->embedding_norm)
        add_norm(&tensors, net);
    add(&tensors, net->tied ? 0 : net->vocab * net->hidden);
    if (net->pooler)
        add_linear(&tensors, net->hidden, net->hidden, true);
    *tensors_out = tensors;
}

uint64_t nw_transformer_parameter_count(const struct nw_transformer *net)
{
    struct nw_tensors embedding, layer, head;

    nw_transformer_embedding(net, &embedding);
    nw_transformer_layer(net, &layer);
    nw_transformer_head(net, &head);
    return embedding.total + net->layers * layer.total + head.total;
}

/* Forward of a matrix product with an in × out weight: 2 · tokens · in · out. Its backward is two
 * such products (gradient of the input and of the weight). Attention scores and their product with
 * the values: 2 · 2 · tokens · sequence · width; a causal flash kernel skips the masked half.
 * Backward of attention: 2 × materialised, 2.5 × flash, which recomputes the scores (Dao 2023,
 * FlashAttention-2, section 4.1). Narayanan et al. 2021 (Megatron), appendix, counts the same.
 * Embedding look-up: none. Output layer: 2 · tokens · hidden · vocabulary, at every position. */
struct nw_flops nw_transformer_flops(const struct nw_transformer *net, double tokens,
                                     double sequence, bool flash)
{
    const double hidden = (double)net->hidden;
    const double query = (double)(net->heads * net->head_size);
    const double key = (double)(net->kv_heads * net->head_size);
    const double matrices =
        (net->gated ? 3.0 : 2.0) * hidden * (double)net->ffn + hidden * (2 * query + 2 * key);
    const double products = 2 * tokens * matrices;
    const double attention = 4 * tokens * sequence * query * (flash && !net->encoder ? 0.5 : 1.0);
    const double head = 2 * tokens * hidden * (double)net->vocab;

    return (struct nw_flops){
        .layer_forward = products + attention,
        .layer_backward = 2 * products + (flash ? 2.5 : 2.0) * attention,
        .head_forward = head,
        .head_backward = 2 * head,
    };
}

/* Bounds far beyond any model, so that products of fields stay below 2^63. */
static const struct {
    const char *key;
    size_t offset;
    uint64_t min, max;
} bounds[] = {
#define BOUND(field, low, high)                                                                    \
    {                                                                                              \
#field, offsetof(struct nw_transformer, field), low, high                                  \
    }
    BOUND(layers, 1, 4096),
    BOUND(hidden, 1, 1u << 20),
    BOUND(ffn, 1, 1u << 22),
    BOUND(heads, 1, 1u << 14),
    BOUND(kv_heads, 1, 1u << 14),
    BOUND(head_size, 1, 1u << 14),
    BOUND(vocab, 1, 1u << 24),
    BOUND(positions, 0, 1u << 24),
    BOUND(max_positions, 0, 1u << 30),
    BOUND(token_types, 0, 1u << 16),
#undef BOUND
};

nw_rc nw_transformer_check_field(size_t offset, uint64_t value, const char *what, const char *key)
{
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
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

nw_rc nw_transformer_check(const struct nw_transformer *net, const char *what)
{
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        NW_TRY(nw_transformer_check_field(bounds[i].offset, field_at(net, bounds[i].offset), what,
                                          bounds[i].key));
    if (net->heads % net->kv_heads != 0)
        return nw_fail(NW_EUSAGE,
                       "%s: %llu attention heads cannot share %llu key-value heads; "
                       "accepted: a divisor of the head count",
                       what, (unsigned long long)net->heads, (unsigned long long)net->kv_heads);
    if (net->heads * net->head_size > 1u << 20)
        return nw_fail(NW_EUSAGE, "%s: %llu heads of size %llu are wider than %u", what,
                       (unsigned long long)net->heads, (unsigned long long)net->head_size,
                       1u << 20);
    /* 10^14 parameters: a hundred times the largest model published. */
    if ((double)nw_transformer_parameter_count(net) > 1e14)
        return nw_fail(NW_EUSAGE, "%s: %.3g parameters; accepted: up to 1e14", what,
                       (double)nw_transformer_parameter_count(net));
    return NW_OK;
}
