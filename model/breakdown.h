/* Public. The parts that a step is made of, in the order of a reader: what all of them sum to is
 * the step.
 *
 *     struct nw_breakdown breakdown;
 *     nw_breakdown_of(&step, &breakdown);      // breakdown.items[i].ns / step.step_ns: its share
 */
#ifndef NW_MODEL_BREAKDOWN_H
#define NW_MODEL_BREAKDOWN_H

#include "model/model.h"

struct nw_part {
    const char *key;   /* "compute" "tensor_parallel": in JSON, with _ns */
    const char *title; /* "tensor parallel" */
    double ns;
};
#define NW_PARTS_MAX 20
struct nw_breakdown { /* parts of 0 ns are left out */
    struct nw_part items[NW_PARTS_MAX];
    size_t count;
};

void nw_breakdown_of(const struct nw_step *step, struct nw_breakdown *breakdown_out);

#endif
