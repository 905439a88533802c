/* Public. Serving a language model: time to first token, time between tokens, how many sequences at
 * a time, cost of a million tokens; by roofline, for any GPUs of the catalogue.
 *
 *     struct nw_serving serving = {.net = net, .format = format, .kv_bytes = 2,
 *                                  .prompt_tokens = 1024, .output_tokens = 256, …};
 *     struct nw_server server;
 *     NW_TRY(nw_server_parse("4xRTX 4090@12", NULL, NULL, &server));
 *     NW_TRY(nw_infer_best(&serving, &server, &infer));   // the best split of these GPUs
 *
 * Plain data, nothing owned.
 */
#ifndef NW_MODEL_INFER_H
#define NW_MODEL_INFER_H

#include <jansson.h>

#include "model/model.h"

/* Between a request and its first token a server does more than the model: it schedules, samples,
 * answers. Judgement: TensorRT-LLM and LMDeploy need 2 to 6 ms more for short prompts than weights
 * and products explain (tests/truth/published/serving.csv). */
#define NW_REQUEST_NS 3e6
/* The range: told over the first to told times the second. Chosen on the same 58 published
 * measurements that it is held against (tests/truth/serving.py prints the share inside, nine in
 * ten), so no held-out error: servers lose time where a roofline has none. Nothing here is anchored
 * by a measurement of the user's. */
#define NW_INFER_SLOWER 1.5
#define NW_INFER_FASTER 1.1

struct nw_weight_format {
    const char *name;
    double bytes;            /* per weight, scales included */
    bool eight_bit_products; /* run on the GPU's 8-bit units where it has them */
    const char *source;
};
extern const struct nw_weight_format nw_weight_formats[]; /* ends with name NULL */
extern const char *const nw_weight_format_names[];

struct nw_serving {
    struct nw_transformer net;
    const struct nw_weight_format *format;
    double kv_bytes;                       /* per element of the cache */
    uint64_t prompt_tokens, output_tokens; /* of one request */
    double max_token_ns;                   /* between two tokens of a sequence; NAN: no limit */
    double max_first_ns; /* to the first token of a prompt that comes alone; NAN */
    double sequences;    /* at once, of all replicas; 0: as many as the limits allow */
    int tp, pp;          /* the split; 0: the best */
};

struct nw_server {
    char name[96]; /* "4x RTX 4090 24GB" */
    int gpu_count;
    int gpus_per_node; /* that tensor parallelism may span */
    struct nw_gpu gpu; /* the card, or the MIG slice of it */
    bool sliced;
    bool measured;             /* the card is the one that was measured */
    bool simulated;            /* … by a double, not a machine */
    double price_per_gpu_hour; /* NAN: not given */
    struct nw_platform platform;
};

struct nw_results;
/* "4xRTX 4090", "2xA100-80@45", "7xA100-80:1g.10gb@3": GPUs, name, MIG slice, price per GPU (slice)
 * and hour. Fabric and rates from the catalogue; `results`, `curves` (borrowed by the server):
 * measurements of one machine, for those servers whose card it has; NULL. NW_EUSAGE names the part
 * that is wrong. */
nw_rc nw_server_parse(const char *text, const struct nw_results *results,
                      const struct nw_curves *curves, struct nw_server *server_out);

struct nw_token_time { /* of one decoding step of a replica, ns */
    double weights_ns, cache_ns, compute_ns, communication_ns, launch_ns;
    double other_ns; /* norms, activations, sampling */
    double total_ns; /* the larger of weights and compute, and the rest */
};

typedef enum {
    NW_INFER_BY_MEMORY,  /* no room for one more sequence */
    NW_INFER_BY_LATENCY, /* one more would break max_token_ns */
    NW_INFER_BY_WISH,    /* no more were asked for */
} nw_infer_bound;

struct nw_infer {
    bool fits;                                   /* weights and one sequence */
    bool fast_enough;                            /* one sequence meets both limits */
    int tp, pp, replica_count;                   /* gpu_count = tp × pp × replica_count */
    double weights_bytes, cache_bytes_per_token; /* of the GPU that has most */
    double needed_bytes; /* memory that it must have for weights, one sequence and runtime */
    double first_ns;     /* prompt alone, on an idle replica */
    struct nw_token_time single; /* one sequence alone */
    double sequences_by_memory;  /* of all replicas */
    double sequences;            /* at once, of all replicas, within the limits */
    nw_infer_bound bound;
    struct nw_token_time loaded; /* at that many */
    double token_ns;             /* between tokens at that many, prompts of newcomers included */
    double tokens_per_s, tokens_per_s_low, tokens_per_s_high; /* output, of all GPUs */
    double cost_per_million_tokens;                           /* output tokens; NAN: no price */
    unsigned all_reduce_how, stage_how; /* NW_COST_… where tp > 1, where pp > 1 */
};

/* One split. NW_EUSAGE: the heads or layers cannot be dealt so. NW_ENODEV: it would hold the model,
 * but what its GPUs meet over is not known. */
nw_rc nw_infer(const struct nw_serving *serving, const struct nw_server *server, int tp, int pp,
               struct nw_infer *infer_out);
/* The split with most tokens/s within the limits; where none is, the one that comes nearest. Splits
 * that fail are passed over; NW_ENODEV: only those of unknown links would hold the model. */
nw_rc nw_infer_best(const struct nw_serving *serving, const struct nw_server *server,
                    struct nw_infer *infer_out);

nw_rc nw_infer_to_json(const struct nw_server *server, const struct nw_infer *infer,
                       json_t **json_out);

#endif
