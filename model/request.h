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
#include "results/quote.h"

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
    double extra_per_hour, extra_when_several_per_hour; /* from a quote only */
    const char *currency;
    double max_extra_cost_percent;
    double deadline_ns;
};

extern const char *const nw_gradient_names[],
    *const nw_recompute_names[], *const nw_attention_names[], *const nw_overlap_names[];

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
