/* Serving by roofline. Decoding reads every weight and the cache once a step (Pope et al. 2022,
 * "Efficiently Scaling Transformer Inference", section 2; Kwon et al. 2023, vLLM, for what the
 * cache holds); a prompt runs through the products at once. */
#include "model/infer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* Share of a card that a server gives to weights and cache (vLLM gpu_memory_utilization). */
#define MEMORY_SHARE 0.9
/* Kernels of one layer of a served model, started from a CUDA graph: norms, rotary, four products,
 * attention, activation, all-reduces. The gap between two kernels of a graph is judgement, to be
 * replaced by a measurement. */
#define KERNELS_PER_LAYER 10.0
#define KERNEL_GAP_NS     1500.0
/* Between a request and its first token a server does more than the model: it schedules, samples,
 * answers. Judgement: TensorRT-LLM and LMDeploy need 2 to 6 ms more for short prompts than weights
 * and products explain (tests/truth/published/serving.csv). */
#define REQUEST_NS 3e6
/* Rows of a product that fill its tiles: kernels for decoding choose tiles to fit few rows, and the
 * roofline's other side, the reading of the weights, is counted by itself. */
#define FULL_TILES 4096
/* Of 58 published measurements (tests/truth/serving.py) nine in ten lie between these: servers lose
 * time where a roofline has none. Nothing here is anchored by a measurement of the user's. */
#define SLOWER        1.5
#define FASTER        1.1
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
     .bytes = 0.5 + 1.0 / 64 + 4.0 / (64 * 256),
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
    double cache_elements; /* per token */
};

static struct need need_of(const struct nw_transformer *net)
{
    const double layers = (double)net->layers, hidden = (double)net->hidden;
    const double expert_layers = net->experts > 0 ? layers - (double)net->dense_layers : 0;
    const double matrix = hidden * (double)net->vocab;
    struct need need = {
        .experts = expert_layers * (double)net->experts * (net->gated ? 3 : 2) * hidden *
                   (double)net->expert_ffn,
        .lookup = net->tied ? 0 : matrix,
        .head = matrix,
    };

    need.other =
        (double)nw_transformer_parameter_count(net) - need.experts - need.lookup - need.head;
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
    const double share = (double)net->experts_per_token / (double)net->experts;

    return net->experts > 0 ? 1 - pow(1 - share, tokens) : 0;
}

static double active_weights(const struct nw_transformer *net, const struct need *need)
{
    const double share =
        net->experts > 0 ? (double)net->experts_per_token / (double)net->experts : 0;

    return need->other + need->experts * share;
}

/* ---- one split ----------------------------------------------------------------------------- */

struct split {
    const struct nw_serving *serving;
    const struct nw_server *server;
    int tp, pp;
    struct need need;
    double cache_split; /* GPUs of a stage that share a sequence's cache */
    double hbm, peak;   /* bytes and FLOP per second */
    unsigned how;
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

/* Two all-reduces a layer of what a step's tokens carry (Shoeybi et al. 2019, section 3), and what
 * passes from stage to stage. */
static nw_rc communication(struct split *split, double tokens, double *ns_out)
{
    const struct nw_transformer *net = &split->serving->net;
    const struct nw_fabric *fabric = &split->server->platform.fabric;
    const double bytes = tokens * (double)net->hidden * 2;
    const struct nw_group stages = {.rank_count = 2,
                                    .host_count =
                                        split->tp * 2 > split->server->gpus_per_node ? 2 : 1,
                                    .sharing = split->tp};
    struct nw_cost cost = {0};

    *ns_out = 0;
    if (split->tp > 1) {
        NW_TRY(nw_fabric_cost(fabric, "all_reduce", bytes,
                              (struct nw_group){.rank_count = split->tp, .host_count = 1}, NULL,
                              &cost));
        *ns_out += 2 * (double)net->layers * cost.time_ns;
        split->how |= cost.how;
    }
    if (split->pp > 1) {
        NW_TRY(nw_fabric_cost(fabric, "sendrecv", bytes / split->tp, stages, NULL, &cost));
        *ns_out += (split->pp - 1) * cost.time_ns;
        split->how |= cost.how;
    }
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
    const double attended = (double)(net->heads * net->head_size) * (double)net->layers;
    const double flops = 2 * group * (active_weights(net, &split->need) + split->need.head) +
                         4 * group * context * attended;
    struct nw_token_time time = {
        .weights_ns = read * serving->format->bytes / split->tp / split->hbm * 1e9,
        .cache_ns = group * context * split->need.cache_elements * serving->kv_bytes /
                    split->cache_split / split->hbm * 1e9,
        .compute_ns = flops / split->tp / product_rate(split, FULL_TILES) * 1e9,
        .launch_ns = (double)net->layers * KERNELS_PER_LAYER * KERNEL_GAP_NS,
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
    const double attended = (double)(net->heads * net->head_size) * (double)net->layers;
    const double flops = 2 * tokens * active_weights(net, &split->need) +
                         2 * tokens * prompt * attended + 2 * count * split->need.head;
    const double read =
        (split->need.other + split->need.head + split->need.experts * awake(net, tokens)) *
        serving->format->bytes;
    double wire;

    NW_TRY(communication(split, tokens, &wire));
    *ns_out = fmax(flops / product_rate(split, tokens), read / split->hbm) / split->tp * 1e9 +
              elementwise_ns(split, tokens, count) + wire +
              (double)net->layers * KERNELS_PER_LAYER * KERNEL_GAP_NS;
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

/* The most sequences of a replica within the limit: tokens come slower the more there are. */
static nw_rc fill_load(struct split *split, double by_memory, struct nw_infer *infer)
{
    const double limit = split->serving->max_token_ns;
    const double wanted = split->serving->sequences / infer->replica_count;
    double low = 1, high = fmin(by_memory, MAX_SEQUENCES), ns;

    infer->bound = NW_INFER_BY_MEMORY;
    if (wanted > 0 && wanted <= high) {
        infer->bound = NW_INFER_BY_WISH;
        high = fmax(wanted, 1);
    }
    NW_TRY(between_tokens(split, high, &infer->loaded, &ns));
    if (isfinite(limit) && ns > limit) {
        infer->bound = NW_INFER_BY_LATENCY;
        while (high - low > 1) {
            const double middle = floor((low + high) / 2);

            NW_TRY(between_tokens(split, middle, &infer->loaded, &ns));
            *(ns > limit ? &high : &low) = middle;
        }
        NW_TRY(between_tokens(split, low, &infer->loaded, &ns));
        high = low;
    }
    infer->token_ns = ns;
    infer->sequences = high * infer->replica_count;
    infer->fast_enough =
        (!isfinite(limit) || ns <= limit) && (!isfinite(split->serving->max_first_ns) ||
                                              infer->first_ns <= split->serving->max_first_ns);
    infer->tokens_per_s = infer->sequences / ns * 1e9;
    infer->tokens_per_s_low = infer->tokens_per_s / SLOWER;
    infer->tokens_per_s_high = infer->tokens_per_s * FASTER;
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
    infer->needed_bytes = infer->weights_bytes + infer->cache_bytes_per_token * tokens + runtime;
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
        infer.first_ns += REQUEST_NS;
        NW_TRY(decode(&split, 1, &infer.single));
        NW_TRY(fill_load(&split, infer.sequences_by_memory / infer.replica_count, &infer));
        infer.cost_per_million_tokens =
            server->price_per_gpu_hour * server->gpu_count / (infer.tokens_per_s * 3600) * 1e6;
    }
    infer.how = split.how;
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

nw_rc nw_infer_best(const struct nw_serving *serving, const struct nw_server *server,
                    struct nw_infer *infer_out)
{
    bool any = false;

    for (int tp = 1; tp <= server->gpu_count && tp <= server->gpus_per_node; tp++) {
        for (int pp = 1; tp * pp <= server->gpu_count; pp++) {
            struct nw_infer infer;

            if (server->gpu_count % (tp * pp) != 0 || (serving->tp > 0 && tp != serving->tp) ||
                (serving->pp > 0 && pp != serving->pp))
                continue;
            const nw_rc rc = nw_infer(serving, server, tp, pp, &infer);

            if (rc == NW_EUSAGE && tp * pp > 1 && serving->tp == 0 && serving->pp == 0)
                continue; /* cannot be dealt so; one GPU says what is wrong with the rest */
            NW_TRY(rc);
            if (!any || is_better(&infer, infer_out))
                *infer_out = infer;
            any = true;
        }
    }
    return any ? NW_OK
               : nw_fail(NW_EUSAGE,
                         "%s: no such split of its GPUs is possible; accepted: --tp and --pp "
                         "whose product divides them",
                         server->name);
}
