/* Public. What bandwidth that is lost between nodes costs a step, and which change of the network
 * would win most of it back: from a run's case scaling (bus bandwidth over one node and over
 * several, what the nodes' ports carried), its lanes and its NICs.
 *
 * Every figure is the whole step predicted anew with one thing changed. Changes do not add up.
 *
 *     struct nw_scaling_cost cost;
 *     NW_TRY(nw_scaling_cost_of(&model, &results, &step, &cost));
 *     if (cost.known) cost.efficiency, cost.full_step_ns, cost.levers[0].what …
 */
#ifndef NW_MODEL_SCALING_COST_H
#define NW_MODEL_SCALING_COST_H

#include <jansson.h>

#include "model/model.h"

struct nw_scaling_lever {
    const char *key; /* "ports" "balance" "line_rate" "gpudirect" "algorithm" "nics" */
    char what[160];
    double step_ns;
    double change; /* of the step's time, below 0 */
};
enum { NW_SCALING_LEVERS_MAX = 6 };

struct nw_scaling_cost {
    bool known; /* else nothing below is set */
    struct nw_step step;
    /* Of the message that carries most bytes (where that was not measured, of all_reduce or
     * all_gather), at the measured size that is closest to it. */
    const char *collective;
    uint64_t bytes;
    int node_count;      /* of the measurement; the step's, or the most that were measured */
    double efficiency;   /* bus bandwidth over them / over one node */
    double full_step_ns; /* the step if that was 1; the step itself where it is 1 or more */
    struct nw_scaling_lever levers[NW_SCALING_LEVERS_MAX]; /* the largest first */
    size_t lever_count;
};

/* `like`: a step of the model on several nodes. Not known: one node, or no case scaling. */
nw_rc nw_scaling_cost_of(const struct nw_model *model, const struct nw_results *results,
                         const struct nw_step *like, struct nw_scaling_cost *cost_out);
/* The caller owns the result; JSON null where nothing is known. */
nw_rc nw_scaling_cost_to_json(const struct nw_scaling_cost *cost, json_t **json_out);

#endif
