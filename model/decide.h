/* Public. The decision about further nodes: what each node count costs and brings, why it pays or
 * not, and where that turns. Included by model/model.h, on whose struct nw_step it stands.
 *
 *     struct nw_decision decision;
 *     NW_TRY(nw_decide(&model, &decision));
 *     decision.choices[decision.headline].pays …
 *     nw_decision_free(&decision);
 */
#include "model/model.h" /* outside the guard: that header comes back here */

#ifndef NW_MODEL_DECIDE_H
#define NW_MODEL_DECIDE_H

struct nw_model;

/* ---- terms: prices, limits, storage, failures ---------------------------------------------- */

typedef enum { NW_RENTAL_HOUR, NW_RENTAL_MONTH, NW_RENTAL_SPOT, NW_RENTAL_COUNT } nw_rental;

/* Where a figure comes from. */
typedef enum { NW_FIGURE_UNKNOWN, NW_FIGURE_GIVEN, NW_FIGURE_MEASURED, NW_FIGURE_QUOTED } nw_figure;

struct nw_storage {                             /* a node's path to training data and checkpoints */
    double read_bytes_per_s, write_bytes_per_s; /* NAN: unknown */
    nw_figure read_from, write_from;
    bool shared; /* all nodes together reach no more than one; else each brings its own */
    bool shared_given;
};

struct nw_failures {
    double per_gpu_hour;           /* unexpected interruptions of the job */
    double restart_ns;             /* from one until training goes on from the checkpoint */
    double checkpoint_interval_ns; /* NAN: the optimal one */
    bool rate_assumed, restart_assumed;
};

struct nw_terms {
    double price_per_node_hour; /* as rented; NAN: not given, nodes cost the same */
    nw_rental rental;           /* which of these that is */
    double rental_per_node_hour[NW_RENTAL_COUNT]; /* NAN: not offered */
    double extra_per_further_node_hour;           /* each node beyond the first; 0 */
    double extra_per_hour;                        /* whatever the node count (storage); 0 */
    double extra_when_several_per_hour; /* once there are two nodes (network, operations); 0 */
    double setup_cost;                  /* once, of each further node; 0 */
    double minimum_rental_ns;           /* a further node is paid for at least this long; 0 */
    double interruptions_per_node_hour; /* of spot nodes; NAN: unknown */
    const char *currency;               /* free text; "" */
    double max_extra_cost;              /* 0.25: up to 25 % more per token is worth the time won */
    double deadline_ns;                 /* NAN */
    double max_step_ns;                 /* a longer step is too long; NAN */
    double bytes_per_token;             /* read from storage */
    struct nw_storage storage;
    struct nw_failures failures;
};

/* ---- checkpoints, failures, loading (model/reliability.c) ---------------------------------- */

/* Compute time between two checkpoints that loses least, where writing one takes `write_ns` and the
 * mean time between failures is `failure_ns`. Young 1974: sqrt(2 w M); Daly 2006: the same to
 * higher order. */
double nw_young_interval(double write_ns, double failure_ns);
double nw_daly_interval(double write_ns, double failure_ns);
/* Share of the time that is kept (Daly 2006, the complete model: failures of a Poisson process,
 * also while writing and restarting). Interval 0 and write 0: nothing but restarts is lost. */
double nw_useful_share(double interval_ns, double write_ns, double restart_ns, double failure_ns);
/* What a checkpoint holds: weights and optimizer states of all that is trained; frozen weights are
 * not written. */
double nw_checkpoint_bytes(const struct nw_job *job);

struct nw_upkeep { /* what a node count loses beside its steps */
    double checkpoint_bytes;
    double write_ns; /* of one checkpoint; NAN: write rate unknown, its time is left out */
    double
        interval_ns;   /* between two; NAN: unknown, lost work is left out; INFINITY: no failures */
    double failure_ns; /* mean time between failures; INFINITY: none */
    double useful;     /* share of the time that is kept, 0..1 */
    double loading_needed_bytes_per_s, loading_bytes_per_s; /* second NAN: unknown */
    double loading_ns; /* that one step's data takes to be read; 0 unknown */
    bool saturated;    /* loading takes longer than the step: the step waits for it */
};
void nw_upkeep_of(const struct nw_job *job, const struct nw_terms *terms,
                  const struct nw_step *step, struct nw_upkeep *upkeep_out);
/* Tokens/s of a step with all that. */
double nw_useful_tokens_per_s(const struct nw_job *job, const struct nw_terms *terms,
                              const struct nw_step *step);

/* ---- the decision -------------------------------------------------------------------------- */

typedef enum {
    NW_PAYS_BASE,     /* the smallest node count looked at: what the others are held against */
    NW_PAYS_YES,      /* cost per token within the limit */
    NW_PAYS_MEMORY,   /* does not fit on fewer */
    NW_PAYS_DEADLINE, /* fewer are too late */
    NW_PAYS_NO,
    NW_PAYS_UNFIT,   /* does not fit on these nodes either */
    NW_PAYS_UNKNOWN, /* nothing between nodes measured or given */
    NW_PAYS_BATCH,   /* the global batch cannot be dealt to these GPUs */
    NW_PAYS_STEP,    /* a step takes too long on fewer */
} nw_pays;

typedef enum {
    NW_BREAK_EVEN_NONE, /* not a question of this: base, memory, batch; nothing to earn back */
    NW_BREAK_EVEN_AT,
    NW_BREAK_EVEN_NEVER, /* an infinitely fast wire, a free node, any number of tokens: not worth */
    NW_BREAK_EVEN_ALWAYS, /* pays at any */
} nw_break_even;

/* X(enumerator, key in JSON, against, unit of value and limit: "bytes" "ns" "ratio" "share"
 * "bytes/s" "sequences" "tokens" "") */
#define NW_REASON_MAP(X)                                                                           \
    X(NW_REASON_MEMORY, "memory", false, "bytes")         /* needed on fewer nodes; the card's */  \
    X(NW_REASON_DEADLINE, "deadline", false, "ns")        /* on fewer; the deadline */             \
    X(NW_REASON_STEP, "step", false, "ns")                /* on fewer; --max-step */               \
    X(NW_REASON_LOADING, "loading", false, "bytes_per_s") /* needed on fewer; what they read */    \
    X(NW_REASON_CHEAPER, "cheaper", false, "ratio")       /* cost of a token; 1 */                 \
    X(NW_REASON_FASTER, "faster", false, "ratio")         /* tokens/s over the base; needed */     \
    X(NW_REASON_COST, "cost", true, "ratio")              /* cost of a token; the limit */         \
    X(NW_REASON_WIRE, "wire", true, "share")              /* of the step that waits; allowed */    \
    X(NW_REASON_BATCH, "batch", true, "sequences")        /* the global batch; a multiple of */    \
    X(NW_REASON_LARGER_BATCH, "larger_batch", true, "sequences") /* needed; as asked */            \
    X(NW_REASON_ONE_OFF, "one_off", true, "tokens")              /* break-even; as asked */        \
    X(NW_REASON_FAILURES, "failures", true, "share")             /* time kept; on the base */      \
    X(NW_REASON_SHARED_STORAGE, "shared_storage", true, "bytes_per_s") /* needed; what is read */  \
    X(NW_REASON_LATE_TOO, "late_too", true, "ns")   /* on these nodes; the deadline */             \
    X(NW_REASON_SLOW_TOO, "slow_too", true, "ns")   /* step on these nodes; --max-step */          \
    X(NW_REASON_UNMEASURED, "unmeasured", true, "") /* nothing between nodes */                    \
    X(NW_REASON_UNFIT, "unfit", true, "bytes")      /* needed on these nodes; the card's */

typedef enum {
#define X(reason, key, against, unit) reason,
    NW_REASON_MAP(X)
#undef X
        NW_REASON_COUNT
} nw_reason_kind;

struct nw_reason {
    nw_reason_kind kind;
    double value, limit; /* in the map's unit; NAN: has none */
};
const char *nw_reason_key(nw_reason_kind kind);
bool nw_reason_is_against(nw_reason_kind kind);

struct nw_choice { /* one node count */
    int node_count, rank_count;
    nw_pays pays;
    char problem[240]; /* BATCH: why the job cannot be laid out so; "": not so */
    bool predicted;    /* strong and weak hold figures */
    bool weak_predicted;
    struct nw_step strong, weak; /* the fastest strategy that fits */
    struct nw_upkeep upkeep;     /* of strong */
    double useful_tokens_per_s;  /* with loading, checkpoints and failures */
    double speedup, efficiency;  /* strong: useful tokens/s over the base; over base × nodes */
    double weak_speedup, weak_efficiency;
    double price_per_hour; /* 1 per node when no price was given */
    double cost_per_billion_tokens;
    double time_ns, cost;                  /* of all --tokens, one-off cost included; NAN */
    double deadline_tokens, deadline_cost; /* reached and spent by --deadline; NAN */
    double cost_ratio, cost_ratio_low, cost_ratio_high; /* of the same tokens, over the base */
    double time_ratio, time_ratio_low, time_ratio_high; /* the same of their time */
    /* Tokens/s over those of the step that the user measured; NAN: none was. */
    double anchor_speedup, anchor_speedup_low, anchor_speedup_high;
    double probability;         /* that the cost ratio is within the limit; NAN */
    double in_time_probability; /* that all tokens are done by the deadline; NAN: not asked */
    nw_break_even break_even;
    const struct nw_strategy *break_even_strategy;
    double break_even_busbw_bytes_per_s; /* between nodes, at break_even_message_bytes */
    double break_even_message_bytes;
    const char *break_even_collective;
    double measured_busbw_bytes_per_s; /* the same, as measured or given; NAN: not */
    /* What each further node may cost an hour, all extras that it brings included, and does. */
    nw_break_even price_even; /* AT or NEVER */
    double price_even_per_further_node_hour, price_per_further_node_hour;
    /* From how many tokens set-up and minimum rental are worth it. */
    nw_break_even token_even;
    double token_even_count;
    double least_bytes; /* per GPU: of the strategy that needs least; NAN: unknown */
    struct nw_reason reasons[NW_REASON_COUNT];
    size_t reason_count;
};

struct nw_rental_cost { /* base and headline, rented in one of the ways that have a price */
    nw_rental rental;
    double per_node_hour;
    bool known;                 /* false: spot without a rate of interruptions */
    double base_useful, useful; /* share of the time kept */
    double base_cost_per_billion_tokens, cost_per_billion_tokens;
    double base_cost, cost; /* of all tokens, whole months by the month; NAN */
    double cost_ratio;
};

struct nw_fit_way { /* what would make the job fit on fewer nodes */
    const struct nw_strategy *strategy;
    char text[480];      /* "full recomputation of every layer (--recompute full)" */
    double memory_bytes; /* per GPU */
    double time_ratio;   /* GPU-seconds per token over those without the change; NAN unknown */
};
#define NW_FIT_WAYS 3

struct nw_decision {
    struct nw_choice *choices; /* in rising node count */
    size_t count;
    size_t base;            /* what the others are held against; count: none could be predicted */
    size_t headline;        /* the one the sentence is about: the second count asked for */
    int fitting_node_count; /* fewest nodes that hold the job; 0: none up to 4096 */
    /* Where memory decides: single changes with which it fits on the next smaller count (else on
     * the headline's own), the fastest first. */
    struct nw_fit_way fit_ways[NW_FIT_WAYS];
    size_t fit_way_count;
    int fit_way_nodes;
    struct nw_rental_cost rentals[NW_RENTAL_COUNT];
    size_t rental_count; /* 0: no price, or no headline to hold against the base */
    unsigned how;
    nw_assumed assumed;
};

nw_rc nw_decide(const struct nw_model *model, struct nw_decision *decision_out);
void nw_decision_free(struct nw_decision *decision);
const char *nw_rental_name(nw_rental rental); /* "hour" "month" "spot" */
/* For --json; the caller owns the result. */
nw_rc nw_decision_to_json(const struct nw_model *model, const struct nw_decision *decision,
                          json_t **json_out);

#endif
