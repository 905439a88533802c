/* Public. The user's own measured step: what the model says of the same job on the same GPUs,
 * against what it took. Their ratio is the platform's step_time_factor: it scales computation, not
 * communication, so that the step on more GPUs stands on what the user has seen.
 */
#ifndef NW_MODEL_ANCHOR_H
#define NW_MODEL_ANCHOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct nw_model;
struct nw_model_request;

struct nw_anchor {
    bool given;
    double step_ns, low_ns, high_ns; /* measured; low and high NAN: one value */
    int rank_count, node_count;      /* on which */
    uint64_t global_batch;
    char source[160];    /* "--measured-step", "train.log: 84 lines of Megatron-LM" */
    double predicted_ns; /* before it was known */
    double factor;       /* platform.step_time_factor */
    double rest;         /* measured over predicted with the factor: 1, unless the communication
                            alone explains more than what was measured */
    double of_peak;      /* model FLOPs over the GPUs' peak; NAN unknown */
};

/* Sets model->anchor and the platform's factor and error; does nothing where no step was measured.
 * NW_EUSAGE: what is missing, or a step that no such GPU can do. */
nw_rc nw_anchor_take(const struct nw_model_request *request, struct nw_model *model);

#endif
