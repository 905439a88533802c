/* Public. What a step takes and costs against the rate between nodes: the fastest strategy at each
 * rate, on the choice's nodes; for the chart beside a decision. Included behind model/model.h.
 *
 *     struct nw_wire_curve curve;
 *     NW_TRY(nw_wire_curve_of(&model, &decision, 400e9, &curve));
 *     if (curve.count > 0) … curve.points[i].step_ns …
 */
#ifndef NW_MODEL_WIRE_CURVE_H
#define NW_MODEL_WIRE_CURVE_H

#include "model/model.h"

#define NW_WIRE_POINTS 33

struct nw_wire_point {
    double busbw_bytes_per_s; /* between nodes, at the curve's message */
    double step_ns;
    double cost_per_billion_tokens; /* steady state; node-hours without a price */
    const struct nw_strategy *strategy;
};

struct nw_wire_curve { /* count 0: nothing passes between nodes, or it cannot be laid out so */
    struct nw_wire_point points[NW_WIRE_POINTS]; /* rising */
    size_t count;
    const char *collective; /* of the message that carries most bytes, and its size */
    double message_bytes;
    int base_nodes, nodes;
    double base_step_ns, base_cost_per_billion_tokens; /* on the fewest nodes; NAN: unknown */
    double limit_cost_per_billion_tokens;              /* above it the nodes do not pay */
    double break_even_bytes_per_s;                     /* NAN: there is none */
    /* The step as measured: rate and step with their intervals. NAN: not measured. */
    double measured_bytes_per_s, measured_low, measured_high;
    double step_ns, step_low_ns, step_high_ns;
    double quoted_bytes_per_s; /* line rate of a node's NICs as quoted; NAN: not quoted */
};

/* Of the decision's headline. `quoted_bytes_per_s`: NAN: not quoted. */
nw_rc nw_wire_curve_of(const struct nw_model *model, const struct nw_decision *decision,
                       double quoted_bytes_per_s, struct nw_wire_curve *curve_out);

#endif
