/* Public. What a person can ask of the model, as option rows that any subcommand can take in.
 *
 *     struct mine { bool json; struct nw_model_request model; };
 *     static const struct nw_option rows[] = {
 *         …, NW_MODEL_OPTION_ROWS(struct mine, model) };
 *
 * Numbers that were not given are 0, texts NULL. Texts are borrowed from argv or the plan.
 */
#ifndef NW_MODEL_REQUEST_H
#define NW_MODEL_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/option.h"
#include "model/model.h"

struct nw_model_request {
    const char *model;
    uint64_t sequence, micro_batch, global_batch;
    const char *precision, *optimizer, *gradients, *recompute, *attention;
    double tokens;
    double tflops, gemm_tflops; /* 10^12 per second and GPU */
    const char *gpu;
    uint64_t gpu_memory_bytes;
    double hbm_gb_per_s;
    int gpus_per_node;
    int ranks;
    const char *nodes;    /* "1,2,4" */
    const char *strategy; /* "ddp,fsdp"; NULL: all */
    const char *lane;
    double intra_gb_per_s, inter_gb_per_s; /* busbw */
    const char *overlap;
    double price_per_node_hour, extra_per_node_hour;
    const char *currency;
    double max_extra_cost_percent;
    double deadline_ns;
};

extern const char *const nw_gradient_names[],
    *const nw_recompute_names[], *const nw_attention_names[], *const nw_overlap_names[];

#define NW_MODEL_ROW(row_name, row_type, row_argument, owner, member, field, ...)                  \
    {                                                                                              \
        .name = row_name, .type = row_type, .argument = row_argument,                              \
        .offset = offsetof(owner, member.field), __VA_ARGS__                                       \
    }

/* clang-format off */
#define NW_MODEL_OPTION_ROWS(owner, m)                                                              \
    {.help = "Job:"},                                                                              \
    NW_MODEL_ROW("model", NW_OPTION_TEXT, "NAME|FILE", owner, m, model,                             \
        .help = "preset (nodeworth list models) or a Hugging Face config.json"),                   \
    NW_MODEL_ROW("seq", NW_OPTION_U64, "TOKENS", owner, m, sequence, .min = 0, .max = 16777216,      \
        .unit = "tokens", .help = "sequence length (the model's own, at most 4096)"),              \
    NW_MODEL_ROW("micro-batch", NW_OPTION_U64, "N", owner, m, micro_batch, .min = 1, .max = 1e6,    \
        .fallback = "1", .unit = "sequences", .help = "sequences per GPU at a time (1)"),          \
    NW_MODEL_ROW("global-batch", NW_OPTION_U64, "N", owner, m, global_batch, .min = 1, .max = 1e9,  \
        .fallback = "512", .unit = "sequences", .help = "sequences per optimizer step (512)"),     \
    NW_MODEL_ROW("precision", NW_OPTION_CHOICE, "TYPE", owner, m, precision, .fallback = "bf16",    \
        .choices = nw_precision_names, .help = "fp32, bf16 (default) or fp16"),                    \
    NW_MODEL_ROW("optimizer", NW_OPTION_CHOICE, "NAME", owner, m, optimizer, .fallback = "adam",    \
        .choices = nw_optimizer_names, .help = "adam (default), adamw, adam8bit, sgd, sgd-plain"), \
    NW_MODEL_ROW("gradients", NW_OPTION_CHOICE, "same|fp32", owner, m, gradients,                   \
        .fallback = "same", .choices = nw_gradient_names,                                          \
        .help = "type that gradients are kept and reduced in (same: as the weights)"),             \
    NW_MODEL_ROW("recompute", NW_OPTION_CHOICE, "none|full", owner, m, recompute,                   \
        .fallback = "none", .choices = nw_recompute_names, .help = "activation checkpointing"),    \
    NW_MODEL_ROW("attention", NW_OPTION_CHOICE, "KIND", owner, m, attention, .fallback = "flash",   \
        .choices = nw_attention_names, .help = "flash (default) or materialized"),                 \
    NW_MODEL_ROW("tokens", NW_OPTION_COUNT, "COUNT", owner, m, tokens, .unit = "tokens",            \
        .help = "length of the whole training, e.g. 300B"),                                        \
    {.help = "Machine:"},                                                                          \
    NW_MODEL_ROW("tflops", NW_OPTION_REAL, "X", owner, m, tflops, .min = 0, .max = 1e6,             \
        .unit = "10^12/s", .help = "what one GPU reaches in a training step, measured"),           \
    NW_MODEL_ROW("gemm-tflops", NW_OPTION_REAL, "X", owner, m, gemm_tflops, .min = 0, .max = 1e6,   \
        .unit = "10^12/s", .help = "what one GPU reaches in matrix products, measured"),           \
    NW_MODEL_ROW("gpu", NW_OPTION_TEXT, "NAME", owner, m, gpu,                                      \
        .help = "GPU of the catalogue (h100-sxm, a100-80, …) with an assumed efficiency"),         \
    NW_MODEL_ROW("gpu-memory", NW_OPTION_BYTES, "SIZE", owner, m, gpu_memory_bytes,                 \
        .unit = "bytes", .help = "memory of one GPU, e.g. 80G"),                                   \
    NW_MODEL_ROW("hbm", NW_OPTION_REAL, "GB/s", owner, m, hbm_gb_per_s, .min = 0, .max = 1e6,       \
        .unit = "GB/s", .help = "memory bandwidth of one GPU, for the optimizer's time"),          \
    NW_MODEL_ROW("gpus-per-node", NW_OPTION_INT, "N", owner, m, gpus_per_node, .min = 0,            \
        .max = 1024, .help = "ranks on a node (as measured, else 8)"),                             \
    NW_MODEL_ROW("nodes", NW_OPTION_TEXT, "LIST", owner, m, nodes,                                  \
        .help = "node counts, e.g. 1,2,4,8"),                                                      \
    NW_MODEL_ROW("strategy", NW_OPTION_TEXT, "LIST", owner, m, strategy,                            \
        .help = "ddp, zero1, zero2, zero3, fsdp (all)"),                                           \
    NW_MODEL_ROW("overlap", NW_OPTION_CHOICE, "MODE", owner, m, overlap, .fallback = "typical",     \
        .choices = nw_overlap_names,                                                               \
        .help = "communication behind computation: typical, full (costs nothing), none"),          \
    NW_MODEL_ROW("lane", NW_OPTION_TEXT, "NAME", owner, m, lane,                                    \
        .help = "lane of the results to use (auto, host, …)"),                                     \
    NW_MODEL_ROW("intra-node", NW_OPTION_REAL, "GB/s", owner, m, intra_gb_per_s, .min = 0,          \
        .max = 1e6, .unit = "GB/s", .help = "bus bandwidth inside a node, instead of measured"),   \
    NW_MODEL_ROW("inter-node", NW_OPTION_REAL, "GB/s", owner, m, inter_gb_per_s, .min = 0,          \
        .max = 1e6, .unit = "GB/s", .help = "bus bandwidth over nodes, instead of measured")

#define NW_MODEL_PRICE_ROWS(owner, m)                                                               \
    {.help = "Money:"},                                                                            \
    NW_MODEL_ROW("price-per-node-hour", NW_OPTION_REAL, "X", owner, m, price_per_node_hour,         \
        .min = 0, .max = 1e12, .help = "price of one node for an hour, any currency"),             \
    NW_MODEL_ROW("extra-per-node-hour", NW_OPTION_REAL, "X", owner, m, extra_per_node_hour,         \
        .min = 0, .max = 1e12,                                                                     \
        .help = "what each further node adds: network, storage, operations"),                      \
    NW_MODEL_ROW("currency", NW_OPTION_TEXT, "TEXT", owner, m, currency, .fallback = "",            \
        .help = "shown behind prices"),                                                            \
    NW_MODEL_ROW("max-extra-cost", NW_OPTION_REAL, "PERCENT", owner, m, max_extra_cost_percent,     \
        .min = 0, .max = 1e6, .fallback = "25", .unit = "%",                                       \
        .help = "more cost per token that the time won is worth (25: 80 % efficiency)"),           \
    NW_MODEL_ROW("deadline", NW_OPTION_DURATION, "TIME", owner, m, deadline_ns,                     \
        .help = "all --tokens by then, e.g. 720h")
/* clang-format on */

#endif
