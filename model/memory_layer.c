/* What one layer keeps for its backward pass, operator by operator. */
#include "model/memory_parts.h"

#include <math.h>

#include "model/profile.h"

struct kept {        /* bytes per token */
    double residual; /* around the products: copies on every tp rank, unless sequence parallel */
    double inputs;   /* of the products: as residual, unless they are kept as gathered */
    double cut;      /* inside them: 1/tp */
};

/* The input of a product is kept for the gradient of its weight only: of all weights, of an
 * adapter's, or because the kernel of a 4-bit base keeps it. */
static bool input_kept(const struct nw_memory_task *task, unsigned targets)
{
    const struct nw_lora *lora = &task->job->lora;

    return nw_memory_trains_all(task) ||
           ((lora->targets & targets) != 0 && !task->policy->adapter_dropout) ||
           (lora->base_bytes > 0 && task->policy->quantised_inputs);
}

/* An adapter behind dropout keeps its own copy of the input, and the mask. */
static double adapter_copy(const struct nw_memory_task *task, unsigned targets, double width)
{
    if (nw_memory_trains_all(task) || !task->policy->adapter_dropout ||
        (task->job->lora.targets & targets) == 0)
        return 0;
    return width * (task->job->precision->element_bytes + 1);
}

static double norm(const struct nw_memory_task *task)
{
    const double h = (double)task->job->net.hidden, e = task->job->precision->element_bytes;

    if (!task->policy->norm_copies || e >= 4)
        return e * h;
    return 4 * h + (nw_memory_trains_all(task) ? e * h : 0);
}

struct widths { /* of attention on all tensor-parallel ranks, in elements */
    double query, key, value, out;
};

static struct widths widths_of(const struct nw_memory_task *task)
{
    const struct nw_transformer *net = &task->job->net;
    const double a = (double)net->heads, d = (double)net->head_size;
    const double key = nw_layout_kv_heads(task->layout, net) * task->tp * d;

    if (net->kv_rank > 0) /* latent attention: keys and values of every head are unfolded */
        return (struct widths){a * (d + (double)net->rope_head_size),
                               a * (d + (double)net->rope_head_size),
                               a * (double)net->value_head_size, a * (double)net->value_head_size};
    return (struct widths){a * d, key, key, a * d};
}

/* Softmax output, and with dropout its mask and output: 5as² per sequence in 16 bit. */
static double scores(const struct nw_memory_task *task)
{
    const struct nw_job *job = task->job;
    const double e = job->precision->element_bytes;

    return (double)job->net.heads * (double)job->sequence * (task->policy->dropout ? 2 * e + 1 : e);
}

/* Query, key and value after the rotation, the output; Korthikanti et al. 2022, section 4.1. */
static void attention(const struct nw_memory_task *task, struct kept *kept)
{
    const struct nw_job *job = task->job;
    const struct nw_memory_policy *policy = task->policy;
    const double e = job->precision->element_bytes, h = (double)job->net.hidden;
    const struct widths w = widths_of(task);

    kept->residual += norm(task);
    if (input_kept(task, NW_LORA_Q | NW_LORA_K | NW_LORA_V))
        kept->inputs += e * h;
    kept->residual += adapter_copy(task, NW_LORA_Q | NW_LORA_K | NW_LORA_V, h);
    kept->cut += adapter_copy(task, NW_LORA_O, w.out);
    if (job->net.kv_rank > 0)
        kept->residual += 2 * e * (double)(job->net.query_rank + job->net.kv_rank);
    if (policy->heads_repeated && job->net.kv_rank == 0)
        kept->cut += 3 * e * w.query;
    else
        kept->cut += e * (w.query + w.key + w.value);
    if (policy->joined_qkv && job->net.positions == 0 && job->net.kv_rank == 0)
        kept->cut += e * (w.query + w.key);
    kept->cut += e * w.out;
    if (!job->flash)
        kept->cut += scores(task);
}

static double mlp_width(const struct nw_memory_task *task, double ffn)
{
    const struct nw_transformer *net = &task->job->net;
    const double e = task->job->precision->element_bytes;
    const double inputs = input_kept(task, NW_LORA_DOWN) ? 1 : 0;
    const double adapter = adapter_copy(task, NW_LORA_DOWN, ffn);

    if (!net->gated)
        return e * ffn * (1 + inputs) + adapter;
    return e * ffn * (2 + (task->policy->gate_copies ? 1 : 0) + inputs) + adapter;
}

/* A mixture of experts: each token's copies for its k experts, their MLPs, their outputs, which
 * the router's weights need. Evenly dealt over the ep ranks, each has k × its tokens to work on. */
static void mlp(const struct nw_memory_task *task, int kind, struct kept *kept)
{
    const struct nw_job *job = task->job;
    const struct nw_transformer *net = &job->net;
    const double e = job->precision->element_bytes, h = (double)net->hidden;
    const bool input = input_kept(task, NW_LORA_GATE | NW_LORA_UP);

    kept->residual += norm(task);
    kept->inputs += input ? e * h : 0;
    kept->residual += adapter_copy(task, NW_LORA_GATE, h) + adapter_copy(task, NW_LORA_UP, h);
    if (kind == NW_LAYER_EXPERTS) {
        const double k = (double)net->experts_per_token;

        kept->residual += e * h * k * (input ? 2 : 1) + 4 * (double)net->experts;
        kept->cut +=
            k * mlp_width(task, (double)net->expert_ffn) + mlp_width(task, (double)net->shared_ffn);
    } else {
        kept->cut += mlp_width(task, (double)net->ffn);
    }
    if (!net->gated && task->policy->dropout)
        kept->residual += 2 * h; /* the masks of both residual dropouts, a byte each */
}

/* Of all MLPs that a token passes together. */
static double mlp_columns(const struct nw_transformer *net, int kind)
{
    return kind == NW_LAYER_EXPERTS
               ? (double)(net->expert_ffn * net->experts_per_token + net->shared_ffn)
               : (double)net->ffn;
}

/* torchtitan's selective checkpointing: every other product's output and attention's are kept. In
 * order q, k, v, o, gate, up, down (llama), q, k, v, o, up, down else. */
static double alternate_products(const struct nw_memory_task *task, int kind)
{
    const struct nw_transformer *net = &task->job->net;
    const struct widths w = widths_of(task);
    const double f = mlp_columns(net, kind);
    const double down = net->gated ? (double)net->hidden : 0;

    return task->job->precision->element_bytes * (w.query + w.value + f + down + w.out);
}

/* Sequence parallelism keeps inputs cut and gathers them again in the backward pass, beside the
 * gradient that is not yet cut (Korthikanti et al. 2022, section 4.2.2). */
static double regathered(const struct nw_memory_task *task)
{
    const double h = (double)task->job->net.hidden;

    return task->norm_cut > 1 ? 2 * task->tokens * task->job->precision->element_bytes * h : 0;
}

double nw_memory_boundary(const struct nw_memory_task *task)
{
    return task->job->precision->element_bytes * (double)task->job->net.hidden * task->tokens /
           task->norm_cut;
}

struct nw_saved nw_memory_layer(const struct nw_memory_task *task, int kind)
{
    const struct nw_job *job = task->job;
    const double e = job->precision->element_bytes, h = (double)job->net.hidden;
    const double input = nw_memory_boundary(task);
    struct kept kept = {0};
    struct nw_saved saved;

    if (job->net.stated_parameters > 0) {
        const double all = job->net.activations_per_sample * task->micro_batch * e;
        const double layers = (double)(job->net.layers > 0 ? job->net.layers : 1);

        return (struct nw_saved){.stored = all / layers, .whole = all / layers};
    }
    attention(task, &kept);
    mlp(task, kind, &kept);
    saved.whole =
        task->tokens * (kept.residual / task->norm_cut + kept.cut / task->tp +
                        kept.inputs / (task->policy->gathered_inputs ? 1 : task->norm_cut));
    saved.working =
        task->tokens * e * (2 * h / task->norm_cut + mlp_columns(&job->net, kind) / task->tp) +
        regathered(task);
    saved.stored = saved.whole;
    if (job->recompute == NW_RECOMPUTE_FULL) {
        saved.stored = input;
    } else if (job->recompute == NW_RECOMPUTE_SELECTIVE) {
        if (task->policy->alternate_products)
            saved.stored = input + task->tokens * alternate_products(task, kind) / task->tp;
        else if (!job->flash) /* Korthikanti et al. 2022, section 5: the attention core again */
            saved.stored -= task->tokens * scores(task) / task->tp;
    }
    if (saved.stored > saved.whole) /* nothing is kept twice */
        saved.stored = saved.whole;
    return saved;
}

double nw_memory_last_norm(const struct nw_memory_task *task)
{
    const double e = task->job->precision->element_bytes, h = (double)task->job->net.hidden;

    if (task->job->net.stated_parameters > 0)
        return 0;
    return task->tokens * (norm(task) + (nw_memory_trains_all(task) ? e * h : 0)) / task->norm_cut;
}

/* Pieces that a chunked loss takes the tokens in (torchtune CEWithChunkedOutputLoss, Liger). */
#define LOSS_PIECES 8

/* Logits in the working precision, fp32 copies and gradients as the policy counts them. */
double nw_memory_logits(const struct nw_memory_task *task)
{
    const bool full = task->job->precision->element_bytes >= 4;
    const double bytes =
        full ? nw_larger(task->policy->loss_bytes - 2, 8) : task->policy->loss_bytes;
    const double outputs = (double)nw_transformer_outputs(&task->job->net);
    const double all = task->tokens * outputs / task->tp * bytes;

    return (task->job->chunked_loss ? all / LOSS_PIECES : all) + regathered(task);
}
