/* Serving by roofline. Decoding reads every weight and the cache once a step (Pope et al. 2022,
 * "Efficiently Scaling Transformer Inference", section 2; Kwon et al. 2023, vLLM, for what the
 * cache holds); a prompt runs through the products at once. */
#include "model/infer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "model/compute.h"

/* Share of a card that a server gives to weights and cache (vLLM gpu_memory_utilization). */
#define MEMORY_SHARE 0.9
/* Kernels of one layer of a served model, started from a CUDA graph: norms, rotary, four products,
 * attention, activation, all-reduces. Judgement, to be replaced by a measurement. */
#define KERNELS_PER_LAYER 10.0
/* Rows of a product that fill its tiles: kernels for decoding choose tiles to fit few rows, and the
 * roofline's other side, the reading of the weights, is counted by itself. */
#define FULL_TILES    4096
#define MAX_SEQUENCES 65536.0

const struct nw_weight_format nw_weight_formats[] = {
    {.name = "bf16", .bytes = 2, .source = "two bytes"},
    {.name = "fp16", .bytes = 2, .source = "two bytes"},
    {.name = "fp8", .bytes = 1, .eight_bit_products = true, .source = "a byte, scales per tensor"},
    {.name = "int8", .bytes = 1.0 + 2.0 / 4096, .source = "a byte, a 16-bit scale per row"},
    {.name = "int4",
     .bytes = 0.5 + (2 + 0.5) / 128,
     .source = "GPTQ, AWQ: groups of 128 with a 16-bit scale and a 4-bit zero"},
    {.name = "nf4",
     .bytes = NW_NF4_BYTES,
     .source = "QLoRA: blocks of 64 with an 8-bit scale, 256 of these with a 32-bit one"},
    {.name = NULL},
};
const char *const nw_weight_format_names[] = {"bf16", "fp16", "fp8", "int8", "int4", "nf4", NULL};

/* ---- what the net needs -------------------------------------------------------------------- */

struct need {
    double experts;        /* weights of all routed experts */
    double lookup;         /* embedding rows that no product reads */
    double head;           /* output matrix */
    double other;          /* every other weight */
    double active;         /* of experts and other, those of one token */
    double cache_elements; /* per token */
};

static struct need need_of(const struct nw_transformer *net)
{
    const double layers = (double)net->layers;
    const double width = (double)(net->embedding_size > 0 ? net->embedding_size : net->hidden);
    const double matrix = width * (double)net->vocab;
    struct need need = {
        .experts = (double)nw_transformer_layer_parts(net, NW_LAYER_EXPERTS).experts *
                   (double)nw_transformer_layer_count(net, NW_LAYER_EXPERTS),
        .lookup = net->tied ? 0 : matrix,
        .head = matrix,
    };

    need.other =
        (double)nw_transformer_parameter_count(net) - need.experts - need.lookup - need.head;
    need.active = (double)nw_transformer_active_count(net) - need.lookup - need.head;
    /* DeepSeek-V2 keeps the compressed vector and the rotary part of the key (2024, section 2.1).
     */
    need.cache_elements =
        layers * (net->kv_rank > 0 ? (double)(net->kv_rank + net->rope_head_size)
                                   : 2 * (double)(net->kv_heads * net->head_size));
    return need;
}

/* Expected share of the experts that a step of so many tokens wakes, routed evenly. */
static double awake(const struct nw_transformer *net, double tokens)
{
    if (net->experts == 0)
        return 0;
    return 1 - pow(1 - (double)net->experts_per_token / (double)net->experts, tokens);
}

/* ---- one split ----------------------------------------------------------------------------- */

struct split {
    const struct nw_serving *serving;
    const struct nw_server *server;
    int tp, pp;
    struct need need;
    double cache_split; /* GPUs of a stage that share a sequence's cache */
    double hbm, peak;   /* bytes and FLOP per second */
    unsigned all_reduce_how, stage_how;
};

static double product_rate(const struct split *split, double tokens)
{
    const struct nw_transformer *net = &split->serving->net;
    const double width = fmax((double)net->ffn, (double)(net->expert_ffn * net->experts_per_token));

    return split->peak * nw_gemm_efficiency(&split->server->platform, 1, tokens,
                                            fmax(width / split->tp, 1), (double)net->hidden);
}

/* What norms, rotary embedding, activation and residuals move, fused as servers have them: of each
 * token and layer about 7 times its hidden vector, 3 times the MLP's; and the logits, in fp32, read
 * and written by the sampler (PyTorch eager code: twice to three times as much). */
static double elementwise_ns(const struct split *split, double tokens, double sampled)
{
    const struct nw_transformer *net = &split->serving->net;
    const double width =
        net->experts > 0 ? (double)(net->expert_ffn * net->experts_per_token) : (double)net->ffn;
    const double layer = (7 * (double)net->hidden + 3 * width / split->tp) * 2;
    const double logits = 4 * 4 * (double)net->vocab / split->tp;

    return (tokens * (double)net->layers * layer + sampled * logits) / split->hbm * 1e9;
}

static nw_rc message(const struct split *split, const char *collective, double bytes,
                     struct nw_group group, unsigned *how, double *ns_out)
{
    const struct nw_server *server = split->server;
    struct nw_cost cost = {0};
    const nw_rc rc =
        nw_fabric_cost(&server->platform.fabric, collective, bytes, group, NULL, &cost);

    if (rc == NW_ENODEV && group.host_count > 1)
        return nw_fail(NW_ENODEV,
                       "%s: TP%d PP%d reaches over nodes of %d GPUs, and how fast the network "
                       "between these is is not known; give --nic-gbps, or --results of two nodes "
                       "or more",
                       server->name, split->tp, split->pp, server->gpus_per_node);
    if (rc == NW_ENODEV)
        return nw_fail(NW_ENODEV,
                       "%s: what its GPUs meet over is not known; give --results with all-reduces "
                       "of them",
                       server->name);
    NW_TRY(rc);
    *how |= cost.how;
    *ns_out = cost.time_ns;
    return NW_OK;
}

/* From stage to stage. A node holds as many whole stages as it can; every rank of a stage sends its
 * part at the same time. */
static nw_rc stage_hops(struct split *split, double bytes, double *ns)
{
    const int node_stages = (int)fmax(split->server->gpus_per_node / split->tp, 1);
    const int nodes = (split->pp + node_stages - 1) / node_stages;
    const int hops[] = {split->pp - nodes, nodes - 1}; /* inside nodes, between them */

    for (int between = 0; between < 2; between++) {
        const struct nw_group group = {
            .rank_count = 2, .host_count = 1 + between, .sharing = split->tp};
        double hop_ns;

        if (hops[between] == 0)
            continue;
        NW_TRY(message(split, "sendrecv", bytes / split->tp, group, &split->stage_how, &hop_ns));
        *ns += hops[between] * hop_ns;
    }
    return NW_OK;
}

/* Products of one token's attention with one token before it, all layers: scores and values. With
 * the compressed cache decoding takes both in its width (DeepSeek-V2, section 2.1.2), a prompt in
 * that of the heads. */
static double attended(const struct nw_transformer *net, bool decoding)
{
    const double heads = (double)(net->layers * net->heads);

    if (net->kv_rank == 0)
        return 2 * heads * (double)net->head_size;
    return heads * (double)(net->rope_head_size +
                            (decoding ? 2 * net->kv_rank : net->head_size + net->value_head_size));
}

/* Two all-reduces a layer of what a step's tokens carry (Shoeybi et al. 2019, section 3), and what
 * passes from stage to stage. */
static nw_rc communication(struct split *split, double tokens, double *ns_out)
{
    const struct nw_transformer *net = &split->serving->net;
    const double bytes = tokens * (double)net->hidden * 2;
    const struct nw_group all = {.rank_count = split->tp, .host_count = 1};
    double one_ns, ns = 0;

    if (split->tp > 1) {
        NW_TRY(message(split, "all_reduce", bytes, all, &split->all_reduce_how, &one_ns));
        ns += 2 * (double)net->layers * one_ns;
    }
    if (split->pp > 1)
        NW_TRY(stage_hops(split, bytes, &ns));
    *ns_out = ns;
    return NW_OK;
}

/* One token of each of `sequences` in one replica, through all stages. As many groups of sequences
 * are on their way as there are stages, each stage working for one of them: a group waits for no
 * other, and its step lasts as long as its own way. */
static nw_rc decode(struct split *split, double sequences, struct nw_token_time *time_out)
{
    const struct nw_serving *serving = split->serving;
    const struct nw_transformer *net = &serving->net;
    const double group = sequences / fmin(split->pp, sequences);
    const double read =
        split->need.other + split->need.head + split->need.experts * awake(net, group);
    const double context = (double)serving->prompt_tokens + (double)serving->output_tokens / 2;
    const double flops =
        2 * group * (split->need.active + split->need.head + context * attended(net, true));
    struct nw_token_time time = {
        .weights_ns = read * serving->format->bytes / split->tp / split->hbm * 1e9,
        .cache_ns = group * context * split->need.cache_elements * serving->kv_bytes /
                    split->cache_split / split->hbm * 1e9,
        .compute_ns = flops / split->tp / product_rate(split, FULL_TILES) * 1e9,
        .launch_ns = (double)net->layers * KERNELS_PER_LAYER * NW_KERNEL_GAP_NS,
    };

    NW_TRY(communication(split, group, &time.communication_ns));
    time.other_ns = elementwise_ns(split, group, group);
    time.total_ns = fmax(time.weights_ns, time.compute_ns) + time.cache_ns + time.other_ns +
                    time.communication_ns + time.launch_ns;
    *time_out = time;
    return NW_OK;
}

/* Prompts of `count` sequences together through all stages; the output layer sees the last token of
 * each only. */
static nw_rc prefill(struct split *split, double count, double *ns_out)
{
    const struct nw_serving *serving = split->serving;
    const struct nw_transformer *net = &serving->net;
    const double prompt = (double)serving->prompt_tokens, tokens = count * prompt;
    const double flops = 2 * tokens * (split->need.active + prompt / 2 * attended(net, false)) +
                         2 * count * split->need.head;
    const double read =
        (split->need.other + split->need.head + split->need.experts * awake(net, tokens)) *
        serving->format->bytes;
    double wire;

    NW_TRY(communication(split, tokens, &wire));
    *ns_out = fmax(flops / product_rate(split, tokens), read / split->hbm) / split->tp * 1e9 +
              elementwise_ns(split, tokens, count) + wire +
              (double)net->layers * KERNELS_PER_LAYER * NW_KERNEL_GAP_NS;
    return NW_OK;
}

/* Under load short prompts run together, up to so many tokens at a time (vLLM
 * max_num_batched_tokens, TensorRT-LLM max_num_tokens); of one sequence. */
#define PREFILL_TOKENS 8192

static nw_rc loaded_prefill(struct split *split, double sequences, double *ns_out)
{
    const double room = floor(PREFILL_TOKENS / (double)split->serving->prompt_tokens);
    const double count = fmax(fmin(room, sequences), 1);

    NW_TRY(prefill(split, count, ns_out));
    *ns_out /= count;
    return NW_OK;
}

/* ---- how many sequences at a time ---------------------------------------------------------- */

/* Between two tokens of a sequence when `sequences` are served in turn: each brings its prompt once
 * in output_tokens steps, and meanwhile the others wait. */
static nw_rc between_tokens(struct split *split, double sequences, struct nw_token_time *time_out,
                            double *ns_out)
{
    double prefill_ns;

    NW_TRY(loaded_prefill(split, sequences, &prefill_ns));
    NW_TRY(decode(split, sequences, time_out));
    *ns_out = time_out->total_ns +
              sequences * prefill_ns / split->pp / (double)split->serving->output_tokens;
    return NW_OK;
}

/* The most sequences of a replica within the limit: tokens come slower the more there are. Whole
 * numbers, since `high` is one too many. */
static nw_rc within_limit(struct split *split, double high, struct nw_infer *infer,
                          double *most_out, double *ns_out)
{
    double low = 1;

    for (high = ceil(high); high - low > 1;) {
        const double middle = floor((low + high) / 2);

        NW_TRY(between_tokens(split, middle, &infer->loaded, ns_out));
        *(*ns_out > split->serving->max_token_ns ? &high : &low) = middle;
    }
    *most_out = low;
    return between_tokens(split, low, &infer->loaded, ns_out);
}

static nw_rc fill_load(struct split *split, double by_memory, struct nw_infer *infer)
{
    const struct nw_serving *serving = split->serving;
    const double copies = infer->replica_count, asked = serving->sequences;
    double busy = copies; /* fewer sequences than copies leave some of these idle */
    double each = fmin(by_memory, MAX_SEQUENCES), ns;

    infer->bound = NW_INFER_BY_MEMORY;
    if (asked > 0 && asked / copies <= each) {
        infer->bound = NW_INFER_BY_WISH;
        busy = fmin(copies, fmax(asked, 1));
        each = fmax(asked / busy, 1);
    }
    NW_TRY(between_tokens(split, each, &infer->loaded, &ns));
    if (isfinite(serving->max_token_ns) && ns > serving->max_token_ns) {
        infer->bound = NW_INFER_BY_LATENCY;
        NW_TRY(within_limit(split, each, infer, &each, &ns));
    }
    infer->token_ns = ns;
    infer->sequences = infer->bound == NW_INFER_BY_WISH ? asked : each * busy;
    infer->fast_enough =
        (!isfinite(serving->max_token_ns) || ns <= serving->max_token_ns) &&
        (!isfinite(serving->max_first_ns) || infer->first_ns <= serving->max_first_ns);
    infer->tokens_per_s = infer->sequences / ns * 1e9;
    infer->tokens_per_s_low = infer->tokens_per_s / NW_INFER_SLOWER;
    infer->tokens_per_s_high = infer->tokens_per_s * NW_INFER_FASTER;
    return NW_OK;
}

static void fill_memory(const struct split *split, struct nw_infer *infer)
{
    const struct nw_serving *serving = split->serving;
    const struct need *need = &split->need;
    const double tokens = (double)(serving->prompt_tokens + serving->output_tokens);
    const double weights = need->experts + need->lookup + need->head + need->other;
    const double runtime = split->server->platform.assumptions.value[NW_CONSTANT_RUNTIME_BYTES];
    const double room = (double)split->server->gpu.memory_bytes * MEMORY_SHARE - runtime;

    infer->weights_bytes = weights * serving->format->bytes / (split->tp * split->pp);
    infer->cache_bytes_per_token =
        need->cache_elements * serving->kv_bytes / (split->cache_split * split->pp);
    infer->needed_bytes =
        (infer->weights_bytes + infer->cache_bytes_per_token * tokens + runtime) / MEMORY_SHARE;
    infer->sequences_by_memory =
        floor(fmax(room - infer->weights_bytes, 0) / (infer->cache_bytes_per_token * tokens)) *
        infer->replica_count;
    infer->fits = infer->sequences_by_memory >= infer->replica_count;
}

static nw_rc check_split(const struct nw_serving *serving, const struct nw_server *server, int tp,
                         int pp)
{
    const struct nw_transformer *net = &serving->net;

    if (net->stated_parameters > 0 || net->encoder)
        return nw_fail(NW_EUSAGE, "%s does not write text token by token; accepted: a decoder",
                       net->name);
    if (net->heads % (uint64_t)tp != 0)
        return nw_fail(NW_EUSAGE,
                       "%d GPUs cannot share the %llu heads of %s; accepted: a divisor of them", tp,
                       (unsigned long long)net->heads, net->name);
    if ((uint64_t)pp > net->layers)
        return nw_fail(NW_EUSAGE, "%d stages for the %llu layers of %s; accepted: up to that", pp,
                       (unsigned long long)net->layers, net->name);
    if (server->sliced && tp * pp > 1)
        return nw_fail(NW_EUSAGE,
                       "MIG slices have no access to each other: %s can only serve "
                       "copies of the model, one a slice",
                       server->name);
    return NW_OK;
}

nw_rc nw_infer(const struct nw_serving *serving, const struct nw_server *server, int tp, int pp,
               struct nw_infer *infer_out)
{
    const struct nw_gpu *gpu = &server->gpu;
    const double eight = serving->format->eight_bit_products ? gpu->fp8_flops : 0;
    struct split split = {
        .serving = serving,
        .server = server,
        .tp = tp,
        .pp = pp,
        .need = need_of(&serving->net),
        .cache_split = serving->net.kv_rank > 0 ? 1 : fmin(tp, (double)serving->net.kv_heads),
        .hbm = server->platform.hbm_bytes_per_s *
               server->platform.assumptions.value[NW_CONSTANT_HBM_SHARE],
        .peak = eight > 0 ? eight : gpu->fp16_flops,
    };
    struct nw_infer infer = {.tp = tp,
                             .pp = pp,
                             .replica_count = server->gpu_count / (tp * pp),
                             .tokens_per_s = NAN,
                             .cost_per_million_tokens = NAN};

    NW_TRY(check_split(serving, server, tp, pp));
    fill_memory(&split, &infer);
    if (infer.fits) {
        NW_TRY(prefill(&split, 1, &infer.first_ns));
        infer.first_ns += NW_REQUEST_NS;
        NW_TRY(decode(&split, 1, &infer.single));
        NW_TRY(fill_load(&split, infer.sequences_by_memory / infer.replica_count, &infer));
        infer.cost_per_million_tokens =
            server->price_per_gpu_hour * server->gpu_count / (infer.tokens_per_s * 3600) * 1e6;
    }
    infer.all_reduce_how = split.all_reduce_how;
    infer.stage_how = split.stage_how;
    *infer_out = infer;
    return NW_OK;
}

/* Better: fits, then meets the limits, then has no stages (servers use them only where a node's
 * GPUs are too few; the even filling assumed here is their best case), then more tokens. */
static bool is_better(const struct nw_infer *a, const struct nw_infer *b)
{
    if (a->fits != b->fits)
        return a->fits;
    if (!a->fits)
        return a->needed_bytes < b->needed_bytes;
    if (a->fast_enough != b->fast_enough)
        return a->fast_enough;
    if ((a->pp > 1) != (b->pp > 1))
        return a->pp == 1;
    return a->fast_enough ? a->tokens_per_s > b->tokens_per_s : a->token_ns < b->token_ns;
}

static bool is_asked(const struct nw_serving *serving, const struct nw_server *server, int tp,
                     int pp)
{
    return server->gpu_count % (tp * pp) == 0 && (serving->tp == 0 || tp == serving->tp) &&
           (serving->pp == 0 || pp == serving->pp);
}

struct passed_over { /* the first split of a kind of failure; tp 0: none */
    int tp, pp;
};

nw_rc nw_infer_best(const struct nw_serving *serving, const struct nw_server *server,
                    struct nw_infer *infer_out)
{
    struct passed_over refused = {0}, unknown = {0};
    struct nw_infer infer, best = {0}; /* best.tp 0: none */

    for (int tp = 1; tp <= server->gpu_count && tp <= server->gpus_per_node; tp++) {
        for (int pp = 1; tp * pp <= server->gpu_count; pp++) {
            if (!is_asked(serving, server, tp, pp))
                continue;
            const nw_rc rc = nw_infer(serving, server, tp, pp, &infer);

            if (rc == NW_EUSAGE || rc == NW_ENODEV) {
                struct passed_over *passed = rc == NW_EUSAGE ? &refused : &unknown;

                if (passed->tp == 0)
                    *passed = (struct passed_over){.tp = tp, .pp = pp};
                continue;
            }
            NW_TRY(rc);
            if (best.tp == 0 || is_better(&infer, &best))
                best = infer;
        }
    }
    /* once more, for the words */
    if (unknown.tp > 0 && !best.fits)
        return nw_infer(serving, server, unknown.tp, unknown.pp, &infer);
    if (best.tp == 0 && refused.tp > 0)
        return nw_infer(serving, server, refused.tp, refused.pp, &infer);
    if (best.tp == 0)
        return nw_fail(
            NW_EUSAGE,
            "%s: no such split of its GPUs is possible; accepted: --tp up to the %d GPUs "
            "of a node, --tp x --pp that divides them all",
            server->name, server->gpus_per_node);
    nw_clear_error();
    *infer_out = best;
    return NW_OK;
}
