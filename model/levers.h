/* Public. What would make a step faster: one row of a table a change (larger buckets, another
 * micro-batch, less recomputation, a flag of the framework, a faster wire), each predicted in full
 * and kept where it still fits the card.
 *
 *     struct nw_levers levers;
 *     nw_levers_of(&job, &platform, &layout, &model.scenario, &step, &levers);
 *     levers.items[0].what, levers.items[0].change        // "micro-batch 1 → 2", -0.06
 */
#ifndef NW_MODEL_LEVERS_H
#define NW_MODEL_LEVERS_H

#include "model/model.h"

struct nw_lever {
    const char *key;       /* "micro_batch" */
    char what[96];         /* "micro-batch 1 → 2" */
    const char *how;       /* the flag or setting that does it; NULL: named by `what` */
    bool changes_rounding; /* of the training, not of the prediction */
    double step_ns;
    double change; /* of the step's time, below 0 */
    double memory_bytes;
};
#define NW_LEVERS_MAX 24
struct nw_levers { /* the largest first; those below half a percent are left out */
    struct nw_lever items[NW_LEVERS_MAX];
    size_t count;
};

/* `step`: what nw_predict says of these. Changes that cannot be predicted are left out. */
void nw_levers_of(const struct nw_job *job, const struct nw_platform *platform,
                  const struct nw_layout *layout, const struct nw_scenario *scenario,
                  const struct nw_step *step, struct nw_levers *levers_out);

#endif
