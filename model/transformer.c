#include "model/transformer.h"

#include "model/job.h"

static void add(struct nw_tensors *tensors, uint64_t elements)
{
    if (elements == 0 || tensors->count == NW_TENSORS_MAX)
        return;
    tensors->elements[tensors->count++] = elements;
    tensors->total += elements;
}

static void add_norm(struct nw_tensors *tensors, const struct nw_transformer *net, uint64_t width)
{
    add(tensors, net->norm_free ? 0 : width);
    add(tensors, net->norm_bias && !net->norm_free ? width : 0);
}

static void add_linear(struct nw_tensors *tensors, uint64_t in, uint64_t out, bool bias)
{
    add(tensors, in * out);
    add(tensors, bias ? out : 0);
}

static uint64_t embedding_size(const struct nw_transformer *net)
{
    return net->embedding_size > 0 ? net->embedding_size : net->hidden;
}

/* A net as stated: equal units, what does not divide in the head. */
static bool add_stated(const struct nw_transformer *net, bool head, struct nw_tensors *tensors)
{
    if (net->stated_parameters == 0)
        return false;
    const uint64_t unit = net->stated_parameters / net->layers;

    add(tensors, head ? net->stated_parameters - unit * net->layers : unit);
    return true;
}

void nw_transformer_embedding(const struct nw_transformer *net, struct nw_tensors *tensors_out)
{
    struct nw_tensors tensors = {0};

    if (net->stated_parameters == 0) {
        add(&tensors, net->vocab * embedding_size(net));
        if (embedding_size(net) != net->hidden) /* without a bias: OPT */
            add_linear(&tensors, embedding_size(net), net->hidden, false);
        add(&tensors, net->positions * net->hidden);
        add(&tensors, net->token_types * net->hidden);
        if (net->embedding_norm)
            add_norm(&tensors, net, net->hidden);
    }
    *tensors_out = tensors;
}

uint64_t nw_transformer_outputs(const struct nw_transformer *net)
{
    return net->no_vocabulary_head ? net->classes : net->vocab;
}

uint64_t nw_transformer_shared_embedding(const struct nw_transformer *net)
{
    return net->tied && !net->no_vocabulary_head && net->stated_parameters == 0
               ? net->vocab * embedding_size(net)
               : 0;
}

/* DeepSeek-V2, section 2.1: query and key-value go through narrow matrices with a norm each; the
 * key's rotary part is shared by the heads. */
static void add_latent_attention(struct nw_tensors *tensors, const struct nw_transformer *net)
{
    const uint64_t query = net->heads * (net->head_size + net->rope_head_size);

    if (net->query_rank > 0) {
        add_linear(tensors, net->hidden, net->query_rank, net->qkv_bias);
        add(tensors, net->query_rank);
        add_linear(tensors, net->query_rank, query, false);
    } else {
        add_linear(tensors, net->hidden, query, false);
    }
    add_linear(tensors, net->hidden, net->kv_rank + net->rope_head_size, net->qkv_bias);
    add(tensors, net->kv_rank);
    add_linear(tensors, net->kv_rank, net->heads * (net->head_size + net->value_head_size), false);
    add_linear(tensors, net->heads * net->value_head_size, net->hidden, net->output_bias);
}

static void add_attention(struct nw_tensors *tensors, const struct nw_transformer *net)
{
    const uint64_t query = net->heads * net->head_size, key = net->kv_heads * net->head_size;

    if (net->kv_rank > 0) {
        add_latent_attention(tensors, net);
        return;
    }
    add_linear(tensors, net->hidden, query, net->qkv_bias);
    add_linear(tensors, net->hidden, key, net->qkv_bias);
    add_linear(tensors, net->hidden, key, net->qkv_bias);
    add(tensors, net->sinks ? net->heads : 0);
    add_linear(tensors, query, net->hidden, net->output_bias);
}

static void add_query_norms(struct nw_tensors *tensors, const struct nw_transformer *net)
{
    if (net->query_norm) {
        add_norm(tensors, net, net->head_size);
        add_norm(tensors, net, net->head_size);
    }
    if (net->wide_query_norm) {
        add_norm(tensors, net, net->heads * net->head_size);
        add_norm(tensors, net, net->kv_heads * net->head_size);
    }
}

/* `copies` MLPs of `width`, each matrix of all of them one tensor. */
static void add_mlp(struct nw_tensors *tensors, const struct nw_transformer *net, uint64_t width,
                    uint64_t copies)
{
    for (int matrix = net->gated ? 0 : 1; matrix < 2; matrix++) {
        add(tensors, copies * net->hidden * width);
        add(tensors, net->mlp_bias ? copies * width : 0);
    }
    add(tensors, copies * width * net->hidden);
    add(tensors, net->mlp_bias ? copies * net->hidden : 0);
}

static void add_router(struct nw_tensors *tensors, const struct nw_transformer *net)
{
    add_linear(tensors, net->hidden, net->experts, net->router_bias);
}

static void add_shared(struct nw_tensors *tensors, const struct nw_transformer *net)
{
    if (net->shared_ffn == 0)
        return;
    add_mlp(tensors, net, net->shared_ffn, 1);
    add(tensors, net->shared_gate ? net->hidden : 0);
}

void nw_transformer_layer_kind(const struct nw_transformer *net, int kind,
                               struct nw_tensors *tensors_out)
{
    struct nw_tensors tensors = {0};

    *tensors_out = tensors;
    if (add_stated(net, false, tensors_out))
        return;
    add_norm(&tensors, net, net->hidden);
    add_attention(&tensors, net);
    add_query_norms(&tensors, net);
    if (net->four_norms)
        add_norm(&tensors, net, net->hidden);
    if (!net->one_norm)
        add_norm(&tensors, net, net->hidden);
    if (kind == NW_LAYER_EXPERTS) {
        add_router(&tensors, net);
        add_mlp(&tensors, net, net->expert_ffn, net->experts);
        add_shared(&tensors, net);
    } else {
        add_mlp(&tensors, net, net->ffn, 1);
    }
    if (net->four_norms)
        add_norm(&tensors, net, net->hidden);
    *tensors_out = tensors;
}

uint64_t nw_transformer_layer_count(const struct nw_transformer *net, int kind)
{
    const uint64_t plain = net->experts > 0 ? net->dense_layers : net->layers;

    return kind == NW_LAYER_PLAIN ? plain : net->layers - plain;
}

static int frequent_kind(const struct nw_transformer *net)
{
    return nw_transformer_layer_count(net, NW_LAYER_EXPERTS) >=
                   nw_transformer_layer_count(net, NW_LAYER_PLAIN)
               ? NW_LAYER_EXPERTS
               : NW_LAYER_PLAIN;
}

void nw_transformer_layer(const struct nw_transformer *net, struct nw_tensors *tensors_out)
{
    nw_transformer_layer_kind(net, frequent_kind(net), tensors_out);
}

/* The dense layer, norm and bias of BERT's language-model head come before the output matrix, which
 * is the embedding's. */
void nw_transformer_head(const struct nw_transformer *net, struct nw_tensors *tensors_out)
{
    struct nw_tensors tensors = {0};

    *tensors_out = tensors;
    if (add_stated(net, true, tensors_out))
        return;
    if (!net->post_norm)
        add_norm(&tensors, net, net->hidden);
    if (embedding_size(net) != net->hidden)
        add_linear(&tensors, net->hidden, embedding_size(net), false);
    if (net->mlm_head) {
        add_linear(&tensors, net->hidden, net->hidden, true);
        add_norm(&tensors, net, net->hidden);
    }
    add(&tensors, net->tied || net->no_vocabulary_head ? 0 : net->vocab * embedding_size(net));
    add(&tensors, net->head_bias ? net->vocab : 0);
    if (net->pooler)
        add_linear(&tensors, net->hidden, net->hidden, true);
    if (net->classes > 0)
        add_linear(&tensors, net->hidden, net->classes, true);
    *tensors_out = tensors;
}

struct nw_layer_parts nw_transformer_layer_parts(const struct nw_transformer *net, int kind)
{
    struct nw_tensors all, attention = {0}, router = {0}, mlp = {0}, experts = {0};

    nw_transformer_layer_kind(net, kind, &all);
    if (net->stated_parameters > 0)
        return (struct nw_layer_parts){.mlp = all.total, .total = all.total};
    add_attention(&attention, net);
    if (kind == NW_LAYER_EXPERTS) {
        add_router(&router, net);
        add_shared(&mlp, net);
        add_mlp(&experts, net, net->expert_ffn, net->experts);
    } else {
        add_mlp(&mlp, net, net->ffn, 1);
    }
    return (struct nw_layer_parts){
        .attention = attention.total,
        .mlp = mlp.total,
        .router = router.total,
        .experts = experts.total,
        .norms = all.total - attention.total - mlp.total - router.total - experts.total,
        .total = all.total,
    };
}

static uint64_t ends(const struct nw_transformer *net)
{
    struct nw_tensors embedding, head;

    nw_transformer_embedding(net, &embedding);
    nw_transformer_head(net, &head);
    return embedding.total + head.total;
}

uint64_t nw_transformer_parameter_count(const struct nw_transformer *net)
{
    uint64_t count = ends(net);

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        struct nw_tensors layer;

        nw_transformer_layer_kind(net, kind, &layer);
        count += nw_transformer_layer_count(net, kind) * layer.total;
    }
    return count;
}

uint64_t nw_transformer_active_count(const struct nw_transformer *net)
{
    uint64_t idle = 0;

    if (net->experts > 0) {
        struct nw_tensors expert = {0};

        add_mlp(&expert, net, net->expert_ffn, 1);
        idle = (net->experts - net->experts_per_token) * expert.total *
               nw_transformer_layer_count(net, NW_LAYER_EXPERTS);
    }
    return nw_transformer_parameter_count(net) - idle;
}

/* in + out of the attention's matrices, by NW_LORA_…: rank × this is an adapter. */
static uint64_t attention_ends(const struct nw_transformer *net, unsigned targets)
{
    const bool latent = net->kv_rank > 0;
    const uint64_t query = net->heads * (net->head_size + (latent ? net->rope_head_size : 0));
    const uint64_t key = net->kv_heads * net->head_size;
    const uint64_t value = net->heads * (latent ? net->value_head_size : net->head_size);
    const struct {
        unsigned target;
        uint64_t ends;
    } rows[] = {
        {NW_LORA_Q,
         net->hidden + query + (latent && net->query_rank > 0 ? 2 * net->query_rank : 0)},
        {NW_LORA_K, net->hidden + (latent ? net->kv_rank + net->rope_head_size : key)},
        {NW_LORA_V,
         latent ? net->kv_rank + net->heads * net->head_size + value : net->hidden + key},
        {NW_LORA_O, value + net->hidden},
    };
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        sum += (targets & rows[i].target) != 0 ? rows[i].ends : 0;
    return sum;
}

/* The same of an MLP's. */
static uint64_t mlp_ends(const struct nw_transformer *net, unsigned targets, uint64_t width)
{
    const unsigned wanted = targets & (net->gated ? NW_LORA_GATE | NW_LORA_UP | NW_LORA_DOWN
                                                  : NW_LORA_UP | NW_LORA_DOWN);

    return width > 0 ? (uint64_t)__builtin_popcount(wanted) * (net->hidden + width) : 0;
}

struct nw_adapter_parts nw_transformer_adapter_parts(const struct nw_transformer *net, int kind,
                                                     uint64_t rank, unsigned targets)
{
    const bool experts = kind == NW_LAYER_EXPERTS;

    if (net->stated_parameters > 0)
        return (struct nw_adapter_parts){0};
    return (struct nw_adapter_parts){
        .dense = rank * (attention_ends(net, targets) +
                         mlp_ends(net, targets, experts ? net->shared_ffn : net->ffn)),
        .experts = experts ? rank * net->experts * mlp_ends(net, targets, net->expert_ffn) : 0,
    };
}

uint64_t nw_transformer_adapter(const struct nw_transformer *net, int kind, uint64_t rank,
                                unsigned targets)
{
    const struct nw_adapter_parts parts = nw_transformer_adapter_parts(net, kind, rank, targets);

    return parts.dense + parts.experts;
}

/* Elements of the layer's matrices that one token is multiplied with. */
static double token_matrices(const struct nw_transformer *net, int kind)
{
    const double h = (double)net->hidden, query = (double)(net->heads * net->head_size);
    const double matrices = net->gated ? 3 : 2;
    double attention;

    if (net->kv_rank > 0) {
        const double heads = (double)net->heads, rank = (double)net->query_rank;
        const double rope = (double)net->rope_head_size, value = (double)net->value_head_size;
        const double wide = query + heads * rope, kv = (double)net->kv_rank;

        attention = (rank > 0 ? rank * (h + wide) : h * wide) + h * (kv + rope) +
                    kv * (query + heads * value) + heads * value * h;
    } else {
        attention = h * (2 * query + 2 * (double)(net->kv_heads * net->head_size));
    }
    if (kind == NW_LAYER_PLAIN)
        return attention + matrices * h * (double)net->ffn;
    return attention + h * (double)(net->experts + (net->shared_gate ? 1 : 0)) +
           matrices * h * (double)(net->experts_per_token * net->expert_ffn + net->shared_ffn);
}

/* Width of the scores' and of the values' products together: 2 × attention width without MLA. */
static double attention_width(const struct nw_transformer *net)
{
    const uint64_t query = net->head_size + (net->kv_rank > 0 ? net->rope_head_size : 0);
    const uint64_t value = net->kv_rank > 0 ? net->value_head_size : net->head_size;

    return (double)(net->heads * (query + value));
}

static struct nw_flops stated_flops(const struct nw_transformer *net, double tokens,
                                    double sequence)
{
    const double samples = sequence > 0 ? tokens / sequence : tokens;
    const double forward = samples * net->flops_per_sample / (double)net->layers;

    return (struct nw_flops){.layer_forward = forward, .layer_backward = 2 * forward};
}

/* Forward of a matrix product with an in × out weight: 2 · tokens · in · out. Its backward is two
 * such products (gradient of the input and of the weight). Attention scores and their product with
 * the values: 2 · 2 · tokens · sequence · width; a causal flash kernel skips the masked half.
 * Backward of attention: 2 × materialised, 2.5 × flash, which recomputes the scores (Dao 2023,
 * FlashAttention-2, section 4.1). Narayanan et al. 2021 (Megatron), appendix, counts the same.
 * Embedding look-up: none. Output layer: 2 · tokens · hidden · vocabulary (or a classifier's
 * outputs), at every position. */
struct nw_flops nw_transformer_flops(const struct nw_transformer *net, double tokens,
                                     double sequence, bool flash)
{
    if (net->stated_parameters > 0)
        return stated_flops(net, tokens, sequence);
    const double attention =
        2 * tokens * sequence * attention_width(net) * (flash && !net->encoder ? 0.5 : 1.0);
    const double embedding = (double)embedding_size(net), h = (double)net->hidden;
    const double transform = (net->mlm_head ? h * h : 0) + (embedding < h ? embedding * h : 0);
    const double head = 2 * tokens * (embedding * (double)nw_transformer_outputs(net) + transform);
    double matrices = 0;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++)
        matrices += (double)nw_transformer_layer_count(net, kind) * token_matrices(net, kind);
    const double products = 2 * tokens * matrices / (double)net->layers;

    return (struct nw_flops){
        .layer_forward = products + attention,
        .layer_backward = 2 * products + (flash ? 2.5 : 2.0) * attention,
        .head_forward = head,
        .head_backward = 2 * head,
    };
}
