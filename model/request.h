/* Public. What a person can ask of the model, as option rows that any subcommand can take in.
 *
 * Numbers that were not given are 0, texts NULL. Texts are borrowed from argv or the plan.
 */
#ifndef NW_MODEL_REQUEST_H
#define NW_MODEL_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/option.h"
#include "model/model.h"
#include "model/options_price.h"
#include "results/quote.h"

struct nw_model_request {
    /* the job */
    const char *model;
    uint64_t sequence, micro_batch, global_batch, grad_accum;
    const char *precision, *optimizer, *master, *gradients, *reduce, *recompute, *attention;
    uint64_t lora_rank;
    const char *lora_targets; /* "q,v" */
    const char *base;         /* type of the frozen weights */
    const char *offload_optimizer, *offload_params, *offload_activations;
    const char *loss;
    double tokens;
    /* the model by its numbers: instead of a preset's, or without one */
    uint64_t layers, hidden, heads, kv_heads, head_size, ffn, vocab;
    const char *gated, *tied, *encoder; /* "yes" "no" */
    uint64_t experts, experts_per_token, expert_ffn;
    double parameters, flops_per_sample, activations_per_sample;
    /* how it is spread */
    const char *strategy; /* "ddp,fsdp"; NULL: those of the framework */
    const char *framework;
    int tp, pp, cp, ep, virtual_stages, shard;
    const char *sequence_parallel; /* "yes" "no" */
    const char *sync_each_batch;   /* the same */
    int gpus_per_node;
    int ranks;
    const char *nodes; /* "1,2,4" */
    const char *overlap;
    /* the machine */
    double tflops, gemm_tflops; /* 10^12 per second and GPU */
    const char *gpu;
    uint64_t gpu_memory_bytes, host_memory_bytes;
    double hbm_gb_per_s, host_gb_per_s, nvme_gb_per_s;
    const char *lane, *link;
    double intra_gb_per_s, inter_gb_per_s; /* busbw */
    double nic_gbit_per_s;                 /* line rate of a node's NICs together */
    int nic_count;
    struct nw_option_list assume; /* "KEY=VALUE" */
    struct nw_topo *const *topos; /* borrowed: of its nodes, as read; no option row */
    size_t topo_count;
    /* what the user's own step took */
    double measured_step_ns, measured_tokens_per_s;
    const char *measured_log;
    int measured_ranks, measured_nodes;
    double time_factor; /* an earlier anchor's */
    /* prices */
    double price_per_node_hour, extra_per_node_hour;
    double extra_per_hour, extra_when_several_per_hour; /* from a quote only */
    const char *currency;
    double max_extra_cost_percent;
    double deadline_ns;
    struct nw_price_request price; /* all else about money */
};

extern const char *const nw_gradient_names[],
    *const nw_reduce_names[], *const nw_master_names[],
                                  *const nw_recompute_names[],
                                      *const nw_attention_names[],
                                          *const nw_overlap_names[],
                                              *const nw_yes_no_names[],
                                                  *const nw_base_names[],
                                                      *const nw_offload_names[],
                                                          *const nw_loss_names[],
                                                              *const nw_link_names[];

/* Rows over struct nw_model_request; embed them in another struct with nw_cli_embed. */
extern const struct nw_option nw_model_options[]; /* the job and the machine */
extern const size_t nw_model_option_count;
extern const struct nw_option nw_price_options[]; /* prices and deadline */
extern const size_t nw_price_option_count;

/* Prices and what hangs on them from a quote, where the request does not have them yet: hour, else
 * month / 730 h, else GPU hour × GPUs; network and operations count from the second node on,
 * storage always. Borrows the quote's texts. */
void nw_model_request_take_quote(struct nw_model_request *request, const struct nw_quote *quote);

#endif
