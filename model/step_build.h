/* Private to model/. Builds the events of one optimizer step.
 *
 *     struct nw_build build;
 *     NW_TRY(nw_build_init(job, platform, layout, micro_batch, count, scenario, &build));
 *     NW_TRY(nw_build_step(&build));            // build.graph, build.traffic, build.how
 *     nw_build_free(&build);
 *
 * step_units.c   what one rank computes and sends in a layer
 * step_messages.c  messages, their cost, what is sent in all
 * step_weights.c, step_gradients.c  the data-parallel strategies: gathers, reductions
 * step_pipeline.c  which micro-batch when
 * step_build.c   all of it in order, the update
 */
#ifndef NW_MODEL_STEP_BUILD_H
#define NW_MODEL_STEP_BUILD_H

#include "model/graph.h"
#include "model/model.h"

enum { NW_MESSAGES_MAX = 4, NW_BUILD_MEMO_COUNT = 64, NW_UNIT_KINDS = 4 };

struct nw_message {
    const char *collective; /* NULL: none */
    double bytes;           /* of one call */
    double times;           /* calls in a row */
    nw_group_kind group;
    nw_stream stream;
    int host_count, sharing; /* > 0: this pair of the group lies so */
};

typedef enum { NW_UNIT_EMBEDDING, NW_UNIT_PLAIN, NW_UNIT_EXPERTS, NW_UNIT_HEAD } nw_unit_kind;

/* One unit of the net on one rank, one micro-batch. */
struct nw_unit {
    double forward_ns, backward_ns;                     /* backward with what is recomputed */
    double attention_forward_ns, attention_backward_ns; /* of which; what CP's ring hides behind */
    double idle_share; /* of the computation: the GPU waits for the CPU's launches */
    struct nw_unit_time time;
    double gathered_elements;  /* weights of the data-parallel group, after TP and EP */
    double expert_elements;    /* of which experts, on dp × cp / ep ranks */
    double trained_elements;   /* that have gradients */
    double trained_experts;    /* of which experts, or their adapters */
    struct nw_tensors tensors; /* their shares, in the order of the forward pass */
    struct nw_message forward[NW_MESSAGES_MAX], backward[NW_MESSAGES_MAX];
};

struct nw_priced { /* costs asked for before: a step repeats few sizes */
    const char *collective;
    double bytes;
    nw_group_kind group;
    int host_count;
    struct nw_cost cost;
};

struct nw_chunk { /* a run of layers of one stage */
    int first[NW_LAYER_KINDS], count[NW_LAYER_KINDS];
    bool embedding, head;
};

struct nw_stage {     /* what has been issued so far */
    int32_t computed; /* last computation, as nw_event.after counts; the same below */
    int32_t waits[NW_EVENT_WAITS];
    int wait_count;                   /* what the next computation waits for */
    int32_t reduced, reduced_replica; /* last messages of gradients */
    int32_t before_last;              /* last computation before the last backward pass */
    struct nw_bucket {
        double held_bytes, limit_bytes;
    } bucket;
};

struct nw_build {
    const struct nw_job *job;
    const struct nw_platform *platform;
    struct nw_layout layout;
    const struct nw_scenario *scenario;
    const struct nw_strategy *strategy;
    const struct nw_profile *profile;
    double micro_batch, micro_batch_count, tokens; /* of one micro-batch on one rank */
    bool unrolled; /* every micro-batch as events of its own: no event stands for several */
    double scale;  /* × time of computation and copies, × bytes of messages; 1 */
    int stage_count, virtual_stages;
    struct nw_unit units[NW_UNIT_KINDS];
    double idle_share; /* of the whole computation, as nw_unit.idle_share */
    struct nw_update update;
    int first_stage;         /* of the graph: 0, of the closed form the one that it stands on */
    struct nw_stage *stages; /* owned */
    struct nw_graph graph;   /* owned */
    struct nw_priced memo[NW_BUILD_MEMO_COUNT];
    int memo_count;
    struct nw_traffic traffic; /* of the first stage */
    unsigned how;
    int32_t tied[2]; /* last events before the tied gradients meet: first stage, last stage */
    nw_rc rc;        /* first error; later calls do nothing */
};

nw_rc nw_build_init(const struct nw_job *job, const struct nw_platform *platform,
                    const struct nw_layout *layout, uint64_t micro_batch,
                    uint64_t micro_batch_count, const struct nw_scenario *scenario,
                    struct nw_build *build_out);
nw_rc nw_build_step(struct nw_build *build);
void nw_build_free(struct nw_build *build);

/* step_units.c */
void nw_build_units(struct nw_build *build);
struct nw_chunk nw_build_chunk(const struct nw_build *build, int stage, int chunk);
/* Units of a chunk in the order of the forward pass. */
int nw_chunk_length(const struct nw_chunk *chunk);
nw_unit_kind nw_chunk_unit(const struct nw_chunk *chunk, int index);

/* step_messages.c: `after` 0: nothing. Both give what the event is called in `after`, 0 for a
 * message to nobody. */
int32_t nw_put_message(struct nw_build *build, int stage, const struct nw_message *message,
                       double count, int32_t after);
int32_t nw_put_copy(struct nw_build *build, int stage, double ns, double count, int32_t after);
void nw_stage_waits(struct nw_stage *stage, int32_t event); /* before it computes on */
/* Computation of `unit_count` units of a kind; waits for what the stage waits for. */
int32_t nw_put_compute(struct nw_build *build, int stage, nw_event_kind kind, int unit,
                       int unit_count, double ns, double count);
/* Copies of what checkpointing keeps, where it is kept outside the GPU: backward before the units
 * compute, forward behind them. */
void nw_put_activations(struct nw_build *build, int stage, nw_unit_kind kind, int n, bool backward,
                        double count);
/* A run of `n` equal units with all they send within the layer. */
void nw_put_units(struct nw_build *build, int stage, nw_unit_kind kind, int unit, int n,
                  bool backward, double count);

/* step_weights.c, step_gradients.c: a chunk's pass with the data-parallel messages of it. */
enum { NW_ROLE_FIRST = 1, NW_ROLE_LAST = 2 }; /* among the step's micro-batches */
void nw_put_forward(struct nw_build *build, int stage, const struct nw_chunk *chunk, unsigned role,
                    double count);
void nw_put_backward(struct nw_build *build, int stage, const struct nw_chunk *chunk, unsigned role,
                     double count);
/* Weights that are gathered after the update with nothing to hide behind. */
void nw_put_updated_weights(struct nw_build *build, int stage, int32_t after);
/* ZeRO-1 as a wrapper around DDP (profile.h). */
bool nw_broadcasts_updated(const struct nw_build *build);
double nw_gather_bucket(const struct nw_build *build); /* elements */
bool nw_reduces(const struct nw_build *build, unsigned role);
void nw_put_backward_unit(struct nw_build *build, int stage, nw_unit_kind kind, int index,
                          bool reduces, double count);
void nw_finish_reduction(struct nw_build *build, int stage, double count);

/* step_pipeline.c: every micro-batch of every stage. */
void nw_put_micro_batches(struct nw_build *build);

#endif
