/* The option rows of the model. */
#include "model/request.h"

#define ROW(row_name, row_type, row_argument, field, ...)                                          \
    {                                                                                              \
        .name = row_name, .type = row_type, .argument = row_argument,                              \
        .offset = offsetof(struct nw_model_request, field), __VA_ARGS__                            \
    }

const struct nw_option nw_model_options[] = {
    {.help = "Job:"},
    ROW("model", NW_OPTION_TEXT, "NAME|FILE", model,
        .help = "preset (nodeworth list models) or a Hugging Face config.json"),
    ROW("seq", NW_OPTION_U64, "TOKENS", sequence, .min = 1, .max = 16777216, .unit = "tokens",
        .help = "sequence length (the model's own, at most 4096)"),
    ROW("micro-batch", NW_OPTION_U64, "N", micro_batch, .min = 1, .max = 1e6, .unit = "sequences",
        .help = "sequences per GPU at a time (8192 tokens)"),
    ROW("global-batch", NW_OPTION_U64, "N", global_batch, .min = 1, .max = 1e9, .fallback = "512",
        .unit = "sequences", .help = "sequences per optimizer step (512)"),
    ROW("precision", NW_OPTION_CHOICE, "TYPE", precision, .fallback = "bf16",
        .choices = nw_precision_names, .help = "fp32, bf16 (default) or fp16"),
    ROW("optimizer", NW_OPTION_CHOICE, "NAME", optimizer, .fallback = "adam",
        .choices = nw_optimizer_names, .help = "adam (default), adamw, adam8bit, sgd, sgd-plain"),
    ROW("gradients", NW_OPTION_CHOICE, "same|fp32", gradients, .fallback = "same",
        .choices = nw_gradient_names,
        .help = "type that gradients are kept and reduced in (same: as the weights)"),
    ROW("recompute", NW_OPTION_CHOICE, "none|full", recompute, .fallback = "none",
        .choices = nw_recompute_names, .help = "activation checkpointing"),
    ROW("attention", NW_OPTION_CHOICE, "KIND", attention, .fallback = "flash",
        .choices = nw_attention_names, .help = "flash (default) or materialized"),
    ROW("tokens", NW_OPTION_COUNT, "COUNT", tokens, .min = 1, .max = 1e18, .unit = "tokens",
        .help = "length of the whole training, e.g. 300B"),
    {.help = "Machine:"},
    ROW("tflops", NW_OPTION_REAL, "X", tflops, .min = 1e-9, .max = 1e6, .unit = "10^12/s",
        .help = "what one GPU reaches in a training step, measured"),
    ROW("gemm-tflops", NW_OPTION_REAL, "X", gemm_tflops, .min = 1e-9, .max = 1e6, .unit = "10^12/s",
        .help = "what one GPU reaches in matrix products, measured"),
    ROW("gpu", NW_OPTION_TEXT, "NAME", gpu,
        .help = "GPU of the catalogue (h100-sxm, a100-80, …) with an assumed efficiency"),
    ROW("gpu-memory", NW_OPTION_BYTES, "SIZE", gpu_memory_bytes, .unit = "bytes",
        .help = "memory of one GPU, e.g. 80G"),
    ROW("hbm", NW_OPTION_REAL, "GB/s", hbm_gb_per_s, .min = 1e-9, .max = 1e6, .unit = "GB/s",
        .help = "memory bandwidth of one GPU, for the optimizer's time"),
    ROW("gpus-per-node", NW_OPTION_INT, "N", gpus_per_node, .min = 1, .max = 1024,
        .help = "ranks on a node (as measured, else 8)"),
    ROW("ranks", NW_OPTION_INT, "N", ranks, .min = 1, .max = 131072,
        .help = "predict for exactly so many GPUs, instead of --nodes"),
    ROW("nodes", NW_OPTION_TEXT, "LIST", nodes, .help = "node counts, e.g. 1,2,4,8"),
    ROW("strategy", NW_OPTION_TEXT, "LIST", strategy,
        .help = "ddp, zero1, zero2, zero3, fsdp (all)"),
    ROW("overlap", NW_OPTION_CHOICE, "MODE", overlap, .fallback = "typical",
        .choices = nw_overlap_names,
        .help = "communication behind computation: typical, full (costs nothing), none"),
    ROW("lane", NW_OPTION_TEXT, "NAME", lane, .help = "lane of the results to use (auto, host, …)"),
    ROW("intra-node", NW_OPTION_REAL, "GB/s", intra_gb_per_s, .min = 1e-9, .max = 1e6,
        .unit = "GB/s", .help = "bus bandwidth inside a node, instead of measured"),
    ROW("inter-node", NW_OPTION_REAL, "GB/s", inter_gb_per_s, .min = 1e-9, .max = 1e6,
        .unit = "GB/s", .help = "bus bandwidth over nodes, instead of measured"),
};
const size_t nw_model_option_count = sizeof nw_model_options / sizeof nw_model_options[0];

const struct nw_option nw_price_options[] = {
    {.help = "Money:"},
    ROW("price-per-node-hour", NW_OPTION_REAL, "X", price_per_node_hour, .min = 1e-9, .max = 1e12,
        .help = "price of one node for an hour, any currency"),
    ROW("extra-per-node-hour", NW_OPTION_REAL, "X", extra_per_node_hour, .min = 0, .max = 1e12,
        .help = "what each further node adds: network, storage, operations"),
    ROW("currency", NW_OPTION_TEXT, "TEXT", currency, .fallback = "",
        .help = "shown behind prices"),
    ROW("max-extra-cost", NW_OPTION_REAL, "PERCENT", max_extra_cost_percent, .min = 0, .max = 1e6,
        .fallback = "25", .unit = "%",
        .help = "more cost per token that the time won is worth (25: 80 % efficiency)"),
    ROW("deadline", NW_OPTION_DURATION, "TIME", deadline_ns,
        .help = "all --tokens by then, e.g. 720h"),
};
const size_t nw_price_option_count = sizeof nw_price_options / sizeof nw_price_options[0];
