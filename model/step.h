/* Private to model/. Event simulation of one optimizer step: a computation stream and a
 * communication stream, each doing one thing after the other.
 *
 * A strategy's simulate() walks through the step, puts computation and messages on the two streams
 * and leaves the sums in the step: compute, communication, exposed. nw_predict() turns them into
 * time under a scenario.
 */
#ifndef NW_MODEL_STEP_H
#define NW_MODEL_STEP_H

#include "model/model.h"

#define NW_MEMO_COUNT 16

struct nw_memo { /* costs asked for before: a step repeats few sizes */
    const char *collective;
    double bytes;
    struct nw_cost cost;
};

struct nw_simulation {
    const struct nw_job *job;
    const struct nw_platform *platform;
    const struct nw_scenario *scenario;
    struct nw_group group;
    uint64_t micro_batch_count;
    /* one micro-batch on one GPU, ns */
    double layer_forward_ns, layer_backward_ns; /* backward with what is recomputed */
    double head_forward_ns, head_backward_ns;
    struct nw_tensors embedding, layer, head;
    struct nw_memo *memo; /* NW_MEMO_COUNT entries */
};

struct nw_timeline {
    double compute_free_ns, wire_free_ns; /* when each stream has done all it was given */
};

/* Times of one micro-batch; see model/compute.c. */
void nw_simulation_init(const struct nw_job *job, const struct nw_platform *platform,
                        const struct nw_scenario *scenario, struct nw_group group,
                        uint64_t micro_batch, uint64_t micro_batch_count, struct nw_memo *memo,
                        struct nw_simulation *simulation_out);
double nw_micro_batch_ns(const struct nw_simulation *simulation);
/* NAN: memory bandwidth unknown. */
double nw_optimizer_ns(const struct nw_job *job, const struct nw_platform *platform,
                       const struct nw_strategy *strategy, int rank_count);

/* Computation of `ns` after everything given before and not before `ready_ns`; returns its end. */
double nw_compute(struct nw_timeline *timeline, struct nw_step *step, double ready_ns, double ns);
/* A message that may start at `ready_ns`; its end into *end_out. */
nw_rc nw_send(const struct nw_simulation *simulation, struct nw_timeline *timeline,
              struct nw_step *step, const char *collective, double bytes, double ready_ns,
              double *end_out);
/* Both streams wait for each other; what communication stood out is added to step->exposed_ns. */
void nw_join(struct nw_timeline *timeline, struct nw_step *step);

/* Backward of one micro-batch, gradients sent in buckets as they become ready. */
struct nw_bucketing {
    const char *collective;
    double first_bytes, bytes; /* a bucket is closed once it holds this much */
};
nw_rc nw_backward_buckets(const struct nw_simulation *simulation, struct nw_timeline *timeline,
                          struct nw_step *step, const struct nw_bucketing *bucketing);
/* Everything in a step counted again `factor` times. */
void nw_step_repeat(struct nw_step *step, double factor);

double nw_largest_unit(const struct nw_transformer *net); /* elements */

nw_rc nw_simulate_ddp(const struct nw_simulation *simulation, struct nw_step *step);
nw_rc nw_simulate_zero1(const struct nw_simulation *simulation, struct nw_step *step);
nw_rc nw_simulate_zero2(const struct nw_simulation *simulation, struct nw_step *step);
nw_rc nw_simulate_zero3(const struct nw_simulation *simulation, struct nw_step *step);
nw_rc nw_simulate_fsdp(const struct nw_simulation *simulation, struct nw_step *step);

#endif
