/* Operators of a transformer's units, counted from its shape. Tensor parallelism cuts heads, MLP
 * width, experts' width and vocabulary (Shoeybi et al. 2019); sequence parallelism what lies
 * between them (Korthikanti et al. 2022); context parallelism the tokens of a sequence; expert
 * parallelism the experts (Lepikhin et al. 2020).
 *
 * Bytes of the work between the products: elements read and written by fused kernels, per token.
 *     norm                    2h forward; 3h backward (input, gradient in, gradient out)
 *     residual sum            3h; 3h
 *     rotary                  2 (query + key); the same
 *     GELU, ReLU              2f; 3f
 *     SwiGLU                  3f; 5f
 *     dropout (era of LayerNorm and biases): a mask of a byte per element and pass
 *     softmax of materialised scores, masked and scaled in one kernel: 2 per score; 3
 *     its dropout             2 and the mask; the same
 */
#include "model/operators.h"

#include <math.h>

#include "model/profile.h"

struct shape {                /* of one micro-batch on one GPU */
    double sequences, tokens; /* tokens: of this GPU's part of the sequences (CP) */
    double tp, ep, cp;
    double kv_heads;
    double outer; /* tokens between the blocks: with sequence parallelism / tp */
    double e;     /* bytes of an element */
    bool fused_qkv;
};

static struct shape shape_of(const struct nw_job *job, const struct nw_layout *layout,
                             uint64_t micro_batch)
{
    struct shape shape = {
        .sequences = (double)micro_batch,
        .tp = nw_layout_tp(layout),
        .ep = nw_layout_ep(layout),
        .cp = nw_layout_cp(layout),
        .kv_heads = nw_layout_kv_heads(layout, &job->net),
        .e = job->precision->element_bytes,
        .fused_qkv = nw_layout_profile(layout)->fused_qkv,
    };

    shape.tokens = shape.sequences * (double)job->sequence / shape.cp;
    shape.outer = shape.tokens / (layout->parallel.sequence_parallel ? shape.tp : 1);
    return shape;
}

static bool is_adapted(const struct nw_job *job)
{
    return job->lora.rank > 0;
}

/* Models of LayerNorm and biases were trained with dropout after attention and MLP (GPT-2, BERT,
 * Megatron's defaults); those without were not. */
static bool has_dropout(const struct nw_transformer *net)
{
    return net->norm_bias && net->mlp_bias && !net->gated;
}

static void add(struct nw_operators *operators, const struct nw_linear *linear)
{
    if (operators->linear_count < NW_LINEARS_MAX && linear->batch > 0 && linear->rows > 0 &&
        linear->in > 0 && linear->out > 0)
        operators->linears[operators->linear_count++] = *linear;
}

/* A weight of the layers. */
static void add_weight(struct nw_operators *operators, const struct nw_job *job, double rows,
                       double in, double out)
{
    add(operators, &(struct nw_linear){.batch = 1,
                                       .rows = rows,
                                       .in = in,
                                       .out = out,
                                       .weights = true,
                                       .frozen = is_adapted(job),
                                       .narrow = true});
}

/* Adapters of `batch` equal matrices, in × rank and rank × out, and the sum of both ways. */
static void add_adapters(struct nw_operators *operators, const struct nw_job *job, unsigned target,
                         double batch, double rows, double in, double out)
{
    const double rank = (double)job->lora.rank, e = job->precision->element_bytes;

    if (!is_adapted(job) || (job->lora.targets & target) == 0)
        return;
    struct nw_linear half = {
        .batch = batch, .rows = rows, .in = in, .out = rank, .weights = true, .adapter = true};

    add(operators, &half);
    half.in = rank;
    half.out = out;
    add(operators, &half);
    /* The sum; backward of the input's gradients. */
    operators->forward_bytes += 3 * e * batch * rows * out;
    operators->backward_bytes += 3 * e * batch * rows * in;
}

static void add_adapter(struct nw_operators *operators, const struct nw_job *job, unsigned target,
                        double rows, double in, double out)
{
    add_adapters(operators, job, target, 1, rows, in, out);
}

static void add_norm(struct nw_operators *operators, double elements, double e)
{
    operators->forward_bytes += 2 * e * elements;
    operators->backward_bytes += 3 * e * elements;
    operators->forward_kernels += 1;
    operators->backward_kernels += 2;
}

static void add_residual(struct nw_operators *operators, const struct nw_transformer *net,
                         double elements, double e)
{
    const double mask = has_dropout(net) ? 1 : 0;

    operators->forward_bytes += (3 * e + mask) * elements;
    operators->backward_bytes += (3 * e + mask) * elements;
    operators->forward_kernels += 1;
    operators->backward_kernels += 1;
}

/* ---- attention ----------------------------------------------------------------------------- */

static void add_projections(struct nw_operators *operators, const struct nw_job *job,
                            const struct shape *shape)
{
    const unsigned inputs = NW_LORA_Q | NW_LORA_K | NW_LORA_V;
    const struct nw_transformer *net = &job->net;
    const double hidden = (double)net->hidden, tokens = shape->tokens;
    const double query = (double)(net->heads * net->head_size) / shape->tp;
    const double key = shape->kv_heads * (double)net->head_size;

    add_weight(operators, job, tokens, hidden, query + 2 * key);
    add_weight(operators, job, tokens, query, hidden);
    if (shape->fused_qkv && (job->lora.targets & inputs) == inputs) {
        add_adapter(operators, job, inputs, tokens, hidden, query + 2 * key);
    } else {
        add_adapter(operators, job, NW_LORA_Q, tokens, hidden, query);
        add_adapter(operators, job, NW_LORA_K, tokens, hidden, key);
        add_adapter(operators, job, NW_LORA_V, tokens, hidden, key);
    }
    add_adapter(operators, job, NW_LORA_O, tokens, query, hidden);
}

/* DeepSeek-V2, section 2.1; the narrow matrices are not cut by TP. */
static void add_latent_projections(struct nw_operators *operators, const struct nw_job *job,
                                   const struct shape *shape)
{
    const struct nw_transformer *net = &job->net;
    const double hidden = (double)net->hidden, tokens = shape->tokens;
    const double query = (double)(net->heads * (net->head_size + net->rope_head_size)) / shape->tp;
    const double narrow = (double)(net->kv_rank + net->rope_head_size);
    const double wide = (double)(net->heads * (net->head_size + net->value_head_size)) / shape->tp;
    const double value = (double)(net->heads * net->value_head_size) / shape->tp;
    const double query_rank = (double)net->query_rank;

    add_weight(operators, job, tokens, hidden, query_rank > 0 ? query_rank : query);
    if (query_rank > 0)
        add_weight(operators, job, tokens, query_rank, query);
    add_weight(operators, job, tokens, hidden, narrow);
    add_weight(operators, job, tokens, (double)net->kv_rank, wide);
    add_weight(operators, job, tokens, value, hidden);
    add_adapter(operators, job, NW_LORA_Q, tokens, hidden, query);
    add_adapter(operators, job, NW_LORA_K, tokens, hidden, narrow);
    add_adapter(operators, job, NW_LORA_V, tokens, (double)net->kv_rank, wide);
    add_adapter(operators, job, NW_LORA_O, tokens, value, hidden);
    add_norm(operators, tokens * (query_rank + narrow), shape->e);
}

static void add_softmax(struct nw_operators *operators, const struct nw_transformer *net,
                        const struct nw_attention_core *core, double e)
{
    const double scores = core->batch * core->rows * core->keys;
    const bool dropout = has_dropout(net);
    const double forward = scores * (2 * e + (dropout ? 2 * e + 1 : 0));

    operators->softmax_bytes = forward;
    operators->forward_bytes += forward;
    operators->backward_bytes += scores * (3 * e + (dropout ? 2 * e + 1 : 0));
    operators->forward_kernels += dropout ? 2 : 1;
    operators->backward_kernels += dropout ? 2 : 1;
}

/* Causal masks spare half of the scores where they are never written (flash). */
static void add_core(struct nw_operators *operators, const struct nw_job *job,
                     const struct shape *shape)
{
    const struct nw_transformer *net = &job->net;
    const bool latent = net->kv_rank > 0;
    const double size = (double)net->head_size;
    const struct nw_attention_core core = {
        .batch = shape->sequences * (double)net->heads / shape->tp,
        .rows = (double)job->sequence / shape->cp,
        .keys = (double)job->sequence,
        .query_size = latent ? size + (double)net->rope_head_size : size,
        .value_size = latent ? (double)net->value_head_size : size,
        .share = net->encoder ? 1 : 0.5,
    };

    if (job->flash) {
        operators->core = core;
        return;
    }
    add(operators, &(struct nw_linear){.batch = core.batch,
                                       .rows = core.rows,
                                       .in = core.query_size,
                                       .out = core.keys,
                                       .attention = true});
    add(operators, &(struct nw_linear){.batch = core.batch,
                                       .rows = core.rows,
                                       .in = core.keys,
                                       .out = core.value_size,
                                       .attention = true});
    add_softmax(operators, net, &core, shape->e);
}

static void add_attention(struct nw_operators *operators, const struct nw_job *job,
                          const struct shape *shape)
{
    const struct nw_transformer *net = &job->net;
    const double heads =
        ((double)net->heads / shape->tp + shape->kv_heads) * (double)net->head_size;
    const double positions = 2 * shape->e * shape->tokens * heads;

    if (net->kv_rank > 0)
        add_latent_projections(operators, job, shape);
    else
        add_projections(operators, job, shape);
    add_core(operators, job, shape);
    if (net->query_norm || net->wide_query_norm)
        add_norm(operators, shape->tokens * heads, shape->e);
    if (net->positions == 0 && !net->encoder) { /* rotary */
        operators->forward_bytes += positions;
        operators->backward_bytes += positions;
        operators->forward_kernels += 2;
        operators->backward_kernels += 2;
    }
}

/* ---- MLP ----------------------------------------------------------------------------------- */

static void add_activation(struct nw_operators *operators, bool gated, double elements, double e)
{
    operators->forward_bytes += (gated ? 3 : 2) * e * elements;
    operators->backward_bytes += (gated ? 5 : 3) * e * elements;
    operators->forward_kernels += 1;
    operators->backward_kernels += 1;
}

static void add_mlp(struct nw_operators *operators, const struct nw_job *job,
                    const struct shape *shape, double width)
{
    const struct nw_transformer *net = &job->net;
    const double hidden = (double)net->hidden, tokens = shape->tokens;
    const double part = width / shape->tp;

    if (!(width > 0))
        return;
    add_weight(operators, job, tokens, hidden, net->gated ? 2 * part : part);
    add_weight(operators, job, tokens, part, hidden);
    if (net->gated)
        add_adapter(operators, job, NW_LORA_GATE, tokens, hidden, part);
    add_adapter(operators, job, NW_LORA_UP, tokens, hidden, part);
    add_adapter(operators, job, NW_LORA_DOWN, tokens, part, hidden);
    add_activation(operators, net->gated, tokens * part, shape->e);
}

/* Tokens go to their experts over the ep ranks and come back: with as many tokens for each expert,
 * a GPU gets as many as it sends. */
static void add_experts(struct nw_operators *operators, const struct nw_job *job,
                        const struct shape *shape)
{
    const struct nw_transformer *net = &job->net;
    const double hidden = (double)net->hidden, part = (double)net->expert_ffn / shape->tp;
    const double routed = shape->tokens * (double)net->experts_per_token;
    const double local = fmax((double)net->experts / shape->ep, 1);
    const struct nw_linear linear = {.batch = local,
                                     .rows = routed / local,
                                     .weights = true,
                                     .frozen = is_adapted(job),
                                     .narrow = true};
    struct nw_linear up = linear, down = linear;
    const double moved = 4 * shape->e * routed * hidden; /* sorted by expert, and back */

    up.in = down.out = hidden;
    up.out = net->gated ? 2 * part : part;
    down.in = part;
    add(operators, &(struct nw_linear){.batch = 1,
                                       .rows = shape->outer,
                                       .in = hidden,
                                       .out = (double)net->experts,
                                       .weights = true,
                                       .frozen = is_adapted(job)});
    add(operators, &up);
    add(operators, &down);
    if (net->gated)
        add_adapters(operators, job, NW_LORA_GATE, local, linear.rows, hidden, part);
    add_adapters(operators, job, NW_LORA_UP, local, linear.rows, hidden, part);
    add_adapters(operators, job, NW_LORA_DOWN, local, linear.rows, part, hidden);
    add_activation(operators, net->gated, routed * part, shape->e);
    operators->forward_bytes += moved;
    operators->backward_bytes += moved;
    operators->forward_kernels += 12; /* choice, sorting, weighting */
    operators->backward_kernels += 12;
    add_mlp(operators, job, shape, (double)net->shared_ffn);
}

/* ---- what moves once in every pass --------------------------------------------------------- */

static double frozen_elements(const struct nw_operators *operators)
{
    double sum = 0;

    for (size_t i = 0; i < operators->linear_count; i++) {
        const struct nw_linear *linear = &operators->linears[i];

        sum += linear->weights && linear->narrow && linear->frozen
                   ? linear->batch * linear->in * linear->out
                   : 0;
    }
    return sum;
}

/* fp8: each product's input or gradient is cast and transposed, read twice in a byte each way or
 * once in 16 bit (Transformer Engine: norm and activation write their output cast, gradients are
 * cast and transposed), 4 bytes an element; weights are cast in the first micro-batch only. QLoRA
 * (Dettmers et al. 2023, section 3): the base is widened before each product. */
static void add_passes(struct nw_operators *operators, const struct nw_job *job, double e)
{
    const double base = job->lora.base_bytes;

    if (job->precision->units == NW_UNITS_FP8) {
        for (size_t i = 0; i < operators->linear_count; i++)
            if (operators->linears[i].narrow)
                operators->pass_bytes += 2 * operators->linears[i].batch *
                                         operators->linears[i].rows *
                                         (operators->linears[i].in + operators->linears[i].out);
    }
    if (is_adapted(job) && base > 0 && base < e)
        operators->pass_bytes += (base + e) * frozen_elements(operators);
}

/* ---- units --------------------------------------------------------------------------------- */

static void stated_layer(const struct nw_job *job, const struct shape *shape,
                         struct nw_operators *operators)
{
    const struct nw_transformer *net = &job->net;
    const double layers = (double)net->layers;
    const double bytes =
        net->memory_passes_per_sample * shape->e * shape->sequences / (layers * shape->tp);

    operators->stated_flops = net->flops_per_sample * shape->sequences / (layers * shape->tp);
    operators->forward_bytes = bytes;
    operators->backward_bytes = 2 * bytes;
    operators->forward_kernels = 4;
    operators->backward_kernels = 8;
}

void nw_operators_layer(const struct nw_job *job, const struct nw_layout *layout,
                        uint64_t micro_batch, int kind, struct nw_operators *operators_out)
{
    const struct nw_transformer *net = &job->net;
    const struct shape shape = shape_of(job, layout, micro_batch);
    const double outer = shape.outer * (double)net->hidden;
    const int norms = net->one_norm ? 1 : net->four_norms ? 4 : 2;
    struct nw_operators operators = {0};

    if (net->stated_parameters > 0) {
        stated_layer(job, &shape, &operators);
        *operators_out = operators;
        return;
    }
    add_attention(&operators, job, &shape);
    if (kind == NW_LAYER_EXPERTS)
        add_experts(&operators, job, &shape);
    else
        add_mlp(&operators, job, &shape, (double)net->ffn);
    for (int i = 0; i < norms; i++)
        add_norm(&operators, outer, shape.e);
    for (int i = 0; i < 2; i++)
        add_residual(&operators, net, outer, shape.e);
    add_passes(&operators, job, shape.e);
    *operators_out = operators;
}

/* The look-up copies rows; backward adds them into a gradient that is as large as the table. */
void nw_operators_embedding(const struct nw_job *job, const struct nw_layout *layout,
                            uint64_t micro_batch, struct nw_operators *operators_out)
{
    const struct nw_transformer *net = &job->net;
    const struct shape shape = shape_of(job, layout, micro_batch);
    const double hidden = (double)net->hidden, moved = shape.e * shape.outer * hidden;
    const double table = (double)net->vocab * hidden / shape.tp;
    struct nw_operators operators = {0};

    if (net->stated_parameters == 0) {
        operators.forward_bytes = (net->positions > 0 ? 4 : 2) * moved;
        operators.forward_kernels = net->positions > 0 ? 3 : 1;
        if (!is_adapted(job)) {
            operators.backward_bytes = 3 * moved + shape.e * table;
            operators.backward_kernels = 2;
        }
        if (net->embedding_norm)
            add_norm(&operators, shape.outer * hidden, shape.e);
    }
    *operators_out = operators;
}

/* Of the output matrix on one rank. */
static double vocabulary_part(const struct nw_transformer *net, const struct nw_layout *layout)
{
    const double part = (double)nw_transformer_outputs(net) / nw_layout_tp(layout);

    if (net->no_vocabulary_head)
        return part;
    return nw_layout_profile(layout)->padded_vocabulary ? 128 * ceil(part / 128) : part;
}

/* Cross entropy. Fused: logits read, exponentiated in a second pass, their gradient written in
 * place. Unfused in 16 bit: an fp32 copy (e + 4), log-softmax of it (8), its gradient (8) and the
 * gradient's cast (4 + e); in fp32 without the copies. */
void nw_operators_head(const struct nw_job *job, const struct nw_layout *layout,
                       uint64_t micro_batch, bool fused_loss, struct nw_operators *operators_out)
{
    const struct nw_transformer *net = &job->net;
    const struct shape shape = shape_of(job, layout, micro_batch);
    const double hidden = (double)net->hidden, e = shape.e;
    const double vocab = vocabulary_part(net, layout), logits = shape.tokens * vocab;
    const double narrow = net->embedding_size > 0 ? (double)net->embedding_size : hidden;
    const struct nw_linear linear = {
        .batch = 1, .rows = shape.tokens, .weights = true, .frozen = is_adapted(job)};
    struct nw_linear output = linear, dense = linear;
    struct nw_operators operators = {0};

    if (net->stated_parameters > 0 || nw_transformer_outputs(net) == 0) {
        *operators_out = operators;
        return;
    }
    output.in = narrow;
    output.out = vocab;
    add(&operators, &output);
    dense.in = hidden;
    dense.out = net->mlm_head ? hidden : narrow;
    if (net->mlm_head || narrow != hidden)
        add(&operators, &dense);
    if (!net->post_norm || net->mlm_head)
        add_norm(&operators, shape.outer * hidden, e);
    operators.forward_bytes += logits * (fused_loss ? 2 * e : e < 4 ? e + 12 : 8);
    operators.backward_bytes += logits * (fused_loss ? 2 * e : e < 4 ? e + 12 : 8);
    operators.forward_kernels += fused_loss ? 2 : 4;
    operators.backward_kernels += fused_loss ? 1 : 4;
    *operators_out = operators;
}

/* ---- FLOPs --------------------------------------------------------------------------------- */

double nw_core_flops(const struct nw_attention_core *core)
{
    return 2 * core->batch * core->rows * core->keys * core->share *
           (core->query_size + core->value_size);
}

double nw_operators_forward_flops(const struct nw_operators *operators)
{
    double sum = operators->stated_flops + nw_core_flops(&operators->core);

    for (size_t i = 0; i < operators->linear_count; i++)
        sum += 2 * operators->linears[i].batch * operators->linears[i].rows *
               operators->linears[i].in * operators->linears[i].out;
    return sum;
}

double nw_operators_backward_flops(const struct nw_operators *operators)
{
    double sum = 2 * operators->stated_flops + 2.5 * nw_core_flops(&operators->core);

    for (size_t i = 0; i < operators->linear_count; i++)
        sum += (operators->linears[i].frozen ? 2 : 4) * operators->linears[i].batch *
               operators->linears[i].rows * operators->linears[i].in * operators->linears[i].out;
    return sum;
}
