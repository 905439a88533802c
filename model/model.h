/* Public. From measured curves to memory, step time, cost and the decision about a second node.
 *
 * Pieces: model/transformer.h (shape, parameters, FLOPs), topo/gpu.h (catalogue), model/curve.h
 * (cost of a collective); here: the job, the strategies, the prediction of one step, the decision.
 * Every formula stands in one place with its source (docs/model.md lists them), every assumed
 * constant is a row of nw_constants, and each result says which of them it used.
 *
 *     struct nw_model_request request;                     // option rows: model/request.h
 *     struct nw_model model;
 *     NW_TRY(nw_model_open(&request, &results, &model));   // job, platform, curves
 *     NW_TRY(nw_predict_all(&model, &steps));              // every strategy × node count
 *     NW_TRY(nw_decide(&model, &decision));
 *     nw_report_predict(stdout, &model, &steps);           // report/model_text.h
 *     nw_report_decide(stdout, &model, &decision);
 *     nw_steps_free(&steps); nw_decision_free(&decision); nw_model_close(&model);
 */
#ifndef NW_MODEL_MODEL_H
#define NW_MODEL_MODEL_H

#include <jansson.h>

#include "model/anchor.h"
#include "model/compute.h"
#include "model/constants.h"
#include "model/curve.h"
#include "model/layout.h"
#include "model/measured.h"
#include "model/memory.h"
#include "model/profile.h"
#include "topo/gpu.h"

#define NW_MODEL_SCHEMA_VERSION 1

/* ---- the platform -------------------------------------------------------------------------- */

typedef enum {
    NW_RATE_STATED,    /* measured on a training step by the user */
    NW_RATE_GEMM,      /* measured matrix products, of which a step reaches a share */
    NW_RATE_CATALOGUE, /* datasheet × assumed efficiency */
} nw_rate_source;

struct nw_rate {
    double flops_per_s; /* executed, per GPU, in a training step */
    double rel_error;   /* of the compute time, 90 % */
    nw_rate_source source;
    bool simulated;
    bool measured;              /* GEMM: by records of this program (case gemm) */
    double base_low, base_high; /* of base_flops_per_s; NAN: unknown */
    double base_flops_per_s;    /* what it was taken of */
};

struct nw_platform {
    const struct nw_gpu *gpu; /* NULL: not in the catalogue */
    uint64_t memory_bytes;    /* per GPU; 0: unknown */
    double hbm_bytes_per_s;   /* NAN: unknown, the optimizer's time is left out */
    struct nw_rate rate;
    struct nw_assumptions assumptions;
    struct nw_measured measured;       /* what stands in the place of a data sheet's figure */
    nw_units_kind units;               /* of the job's products */
    double peak_flops;                 /* dense, of these units; NAN unknown */
    double step_time_factor;           /* measured step over the predicted one (anchor); 1 */
    bool anchored;                     /* the factor comes from a measured step */
    nw_constant anchor_error;          /* whose held-out error then counts */
    double host_to_device_bytes_per_s; /* one way, pinned; NAN unknown */
    double host_memory_bytes_per_s;    /* that the CPU's update can use, per GPU; NAN */
    double nvme_bytes_per_s;           /* per GPU; NAN */
    uint64_t host_memory_bytes;        /* of the node; 0 unknown */
    struct nw_fabric fabric;
};

/* A constant in use: the platform's, or the table's where nobody filled it (HBM_SHARE is never 0).
 */
static inline double nw_assumption(const struct nw_platform *platform, nw_constant key)
{
    const double *values = platform->assumptions.value;

    return values[NW_CONSTANT_HBM_SHARE] > 0 ? values[key] : nw_constants[key].value;
}

/* ---- strategies and one step --------------------------------------------------------------- */

struct nw_traffic {    /* of one optimizer step */
    double bytes_sent; /* per GPU, ring: Ψ = parameters × bytes; 2Ψ, 2Ψ, 3Ψ for many GPUs */
    double calls;
    double message_bytes;   /* the largest */
    const char *collective; /* of that message */
    struct nw_group group;  /* that it goes through */
};

struct nw_step {
    const struct nw_strategy *strategy;
    struct nw_layout layout;
    int node_count, rank_count;
    uint64_t micro_batch, micro_batch_count, global_batch;
    int stage;         /* pipeline stage that takes longest: the times are its own */
    double compute_ns; /* of all micro-batches */
    double product_ns, attention_ns, memory_ns, launch_ns; /* of which: matrix products, attention,
                                          memory-bound work, gaps in which the CPU launches */
    double communication_ns, exposed_ns, hidden_ns;        /* hidden + exposed = communication */
    double overlap_loss_ns;                  /* what the hidden part costs all the same */
    double recompute_ns;                     /* of which: done twice */
    double bubble_ns;                        /* pipeline stages that wait */
    double group_exposed_ns[NW_GROUP_COUNT]; /* exposed_ns, by whose messages they are */
    double offload_ns;                       /* copies to and from the CPU that stand out */
    double jitter_ns;                        /* the slowest of many */
    double optimizer_ns;                     /* 0 where unknown: see optimizer_known */
    bool optimizer_known;
    double step_ns, low_ns, high_ns;                          /* likely and its 90 % interval */
    double full_overlap_ns, no_overlap_ns;                    /* bounds */
    double tokens_per_s, tokens_per_s_low, tokens_per_s_high; /* of all GPUs */
    double mfu; /* model FLOPs (no recompute) over datasheet peak; NAN without a GPU */
    struct nw_memory memory;
    int fits; /* 1 yes, 0 no, -1 memory of the card unknown */
    struct nw_traffic traffic;
    unsigned how; /* NW_COST_… of every message, or'ed */
    nw_assumed assumed;
};

typedef enum { /* when weights that a rank does not hold are gathered */
               NW_GATHERS_NEVER,
               NW_GATHERS_UPDATED, /* all, once they are updated */
               NW_GATHERS_UNITS,   /* unit by unit, forward and again backward, in every micro-batch
                                    */
               NW_GATHERS_UNITS_ONCE, /* unit by unit forward, kept until the backward pass is
                                         through */
} nw_gathers;
typedef enum { /* when gradients are reduced */
               NW_REDUCES_NEVER,
               NW_REDUCES_LAST, /* after the last micro-batch; summed locally before */
               NW_REDUCES_EACH,
} nw_reduces_when;

struct nw_strategy { /* of the data-parallel ranks */
    const char *name, *title;
    /* 1: cut into as many pieces as there are ranks that share one copy */
    bool weights_sharded, gradients_sharded, optimizer_sharded;
    nw_gathers gathers;
    nw_reduces_when reduces;
    bool reduces_units; /* one message per unit, not in buckets */
    bool hybrid;        /* shards within a node, copies across (parallel.shard_count) */
    bool quantised;     /* ZeRO++: gathers in 8 bit, reductions in 4 */
    bool wraps_ddp;     /* where the profile has it so (broadcasts_updated) */
    const char *volume; /* "2Ψ", for people */
    const char *source;
};

extern const struct nw_strategy nw_strategies[];
extern const size_t nw_strategy_count;
extern const char *const nw_strategy_names[];                  /* NULL-terminated */
const struct nw_strategy *nw_strategy_named(const char *name); /* NULL: none */

/* One step with its interval and bounds; `scenario` NULL: the likely one. NW_EUSAGE: the batch
 * cannot be dealt so; NW_ENODEV: the communication is neither measured nor given. */
nw_rc nw_predict(const struct nw_job *job, const struct nw_platform *platform,
                 const struct nw_layout *layout, const struct nw_scenario *scenario,
                 struct nw_step *step_out);
/* The same without interval, tokens/s, mfu and memory, which stay 0. */
nw_rc nw_predict_scenario(const struct nw_job *job, const struct nw_platform *platform,
                          const struct nw_layout *layout, const struct nw_scenario *scenario,
                          struct nw_step *step_out);
/* Its time and batch only, all else stays 0. `events` is used again and again; the caller frees it
 * with nw_graph_free. */
struct nw_graph;
nw_rc nw_predict_time(const struct nw_job *job, const struct nw_platform *platform,
                      const struct nw_layout *layout, const struct nw_scenario *scenario,
                      struct nw_graph *events, struct nw_step *step_out);

/* Every event of one step, no event standing for several micro-batches, timed as `timing_out` says;
 * `scale`: × time of computation and copies, × bytes of messages. As nw_predict_time, with `how`
 * and traffic. The caller frees `events_out`. */
struct nw_timing;
nw_rc nw_predict_events(const struct nw_job *job, const struct nw_platform *platform,
                        const struct nw_layout *layout, double scale, struct nw_graph *events_out,
                        struct nw_timing *timing_out, struct nw_step *step_out);

/* The independent sources of error of a prediction. */
enum nw_error_source { NW_ERROR_COMPUTE, NW_ERROR_CURVE, NW_ERROR_OVERLAP, NW_ERROR_COUNT };
/* `middle` at the low and the high end of one of them. */
void nw_scenario_ends(const struct nw_platform *platform, const struct nw_scenario *middle,
                      enum nw_error_source source, struct nw_scenario ends_out[2]);

/* Dense peak of the GPU's matrix units at this precision; 0: not in the catalogue. */
double nw_gpu_peak(const struct nw_gpu *gpu, const struct nw_precision *precision);

#include "model/decide.h" /* stands on struct nw_step */

/* ---- one lane against another -------------------------------------------------------------- */

struct nw_lane_effect {      /* the same step over two ways for its bytes */
    const char *fast, *slow; /* lanes: "nvlink", "pcie" */
    const char *title;       /* "NVLink": what the fast one has */
    struct nw_step over_fast, over_slow;
    double saved, saved_low, saved_high; /* of the step over `slow`: 0.44 */
};
#define NW_LANE_EFFECTS_MAX 2
struct nw_lane_effects {
    struct nw_lane_effect items[NW_LANE_EFFECTS_MAX];
    size_t count;
};

/* ---- everything from one request ----------------------------------------------------------- */

struct nw_model_request; /* model/request.h */

#define NW_STRATEGIES_MAX 31

struct nw_default {     /* what was not asked for and taken all the same */
    const char *option; /* "framework" */
    char value[64];
    const char *text; /* where the value comes from: "documented defaults" */
};
#define NW_DEFAULTS_MAX 32
struct nw_defaults {
    struct nw_default items[NW_DEFAULTS_MAX];
    size_t count;
};

struct nw_model {        /* owns its curves and lists */
    struct nw_job job;   /* nw_model_job: with the types of a strategy's own framework */
    uint64_t grad_accum; /* > 0: job.global_batch follows from it, on the fewest nodes asked for */
    bool gradients_given, reduce_given; /* job's types stand whatever the framework */
    struct nw_defaults defaults;
    struct nw_anchor anchor;
    struct nw_platform platform;
    struct nw_curves curves;
    bool curves_borrowed;
    struct nw_terms terms;
    int *node_counts; /* rising */
    size_t node_count_count;
    int rank_count; /* > 0: predict for exactly these ranks; 0: nodes × gpus_per_node */
    struct nw_parallel parallel;
    const struct nw_profile *profile; /* NULL: each strategy's natural one */
    const struct nw_strategy *strategies[NW_STRATEGIES_MAX + 1]; /* to look at; ends with NULL */
    struct nw_scenario scenario; /* the likely one, or with the overlap asked for */
};

struct nw_steps { /* owns its items */
    struct nw_step *items;
    size_t count;
    size_t unpredicted; /* node counts left out: what passes between their GPUs is unknown */
    size_t undealt;     /* node counts left out: the global batch cannot be dealt to them */
};

/* `results` may be NULL; only read, not kept. */
nw_rc nw_model_open(const struct nw_model_request *request, const struct nw_results *results,
                    struct nw_model *model_out);
void nw_model_close(struct nw_model *model); /* accepts an empty one */
struct nw_layout nw_model_layout(const struct nw_model *model, int node_count,
                                 const struct nw_strategy *strategy);
/* The job in the types that the layout's framework keeps and reduces gradients in. */
struct nw_job nw_model_job(const struct nw_model *model, const struct nw_layout *layout);
/* The platform with its fabric on the model's curves; valid as long as the model. */
struct nw_platform nw_model_platform(const struct nw_model *model);
nw_rc nw_predict_all(const struct nw_model *model, struct nw_steps *steps_out);
void nw_steps_free(struct nw_steps *steps);
/* The fastest that fits, or whose card's memory is unknown; NULL: none does. */
const struct nw_step *nw_steps_fastest(const struct nw_steps *steps);
/* The step `like` over NVLink against PCIe, over RDMA against TCP, where the curves have both lanes
 * for its ranks. */
nw_rc nw_predict_lanes(const struct nw_model *model, const struct nw_step *like,
                       struct nw_lane_effects *effects_out);

nw_rc nw_lane_effects_to_json(const struct nw_lane_effects *effects, json_t **json_out);
const char *nw_peak_name(nw_peak_moment moment); /* "backward" … */
/* For --json and report pages; the caller owns the result. */
nw_rc nw_step_to_json(const struct nw_step *step, json_t **json_out);
nw_rc nw_steps_to_json(const struct nw_model *model, const struct nw_steps *steps,
                       json_t **json_out);

#endif
