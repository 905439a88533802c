#include "model/wire_curve.h"

#include <math.h>

#include "model/break_even.h"

/* Rates shown, as multiples of the one that stands in the middle: a quarter of what the slowest
 * point has to four times what the fastest one has. */
#define SPREAD 4.0
/* Where nothing between nodes was measured: the scale's reference, as of the break-even. */
#define REFERENCE_BYTES_PER_S 1e9

struct wire { /* what all points share */
    const struct nw_model *model;
    struct nw_platform platform;
    int nodes;
    struct nw_traffic traffic;
};

/* The fastest step with wires `scale` times as fast; *found_out false: none fits. */
static nw_rc step_at(const struct wire *wire, double scale, bool *found_out,
                     struct nw_step *step_out)
{
    struct nw_scenario scenario = wire->model->scenario;

    scenario.inter_scale *= scale;
    return nw_fastest(wire->model, &wire->platform, wire->nodes, 0, &scenario, found_out, step_out);
}

static nw_rc busbw_of(const struct wire *wire, double scale, struct nw_value *busbw_out)
{
    struct nw_scenario scenario = nw_scenario_likely;

    scenario.inter_scale = scale;
    return nw_traffic_busbw(&wire->platform, &wire->traffic, &scenario, busbw_out);
}

static double cost_of(const struct wire *wire, const struct nw_step *step)
{
    const struct nw_model *model = wire->model;

    return nw_cost_per_billion_tokens(&model->terms, step->node_count,
                                      nw_useful_tokens_per_s(&model->job, &model->terms, step));
}

/* From below the slowest of the rates that must be seen to above the fastest, in even factors. The
 * rate of a message grows less than the wire's where latency counts: it is computed, not scaled. */
static nw_rc fill_points(const struct wire *wire, const double *seen, size_t seen_count,
                         struct nw_wire_curve *curve)
{
    double low = INFINITY, high = 0;
    struct nw_value one;

    NW_TRY(busbw_of(wire, 1, &one));
    const double at_one = one.value;

    for (size_t i = 0; i < seen_count; i++)
        if (isfinite(seen[i]) && seen[i] > 0) {
            low = fmin(low, seen[i]);
            high = fmax(high, seen[i]);
        }
    if (!(high > 0))
        low = high = at_one;
    low /= SPREAD * at_one;
    high *= SPREAD / at_one;
    for (size_t i = 0; i < NW_WIRE_POINTS; i++) {
        const double scale = low * pow(high / low, (double)i / (NW_WIRE_POINTS - 1));
        struct nw_wire_point point;
        struct nw_value busbw;
        struct nw_step step;
        bool found;

        NW_TRY(step_at(wire, scale, &found, &step));
        NW_TRY(busbw_of(wire, scale, &busbw));
        point.busbw_bytes_per_s = busbw.value;
        if (!found || (curve->count > 0 && point.busbw_bytes_per_s <=
                                               curve->points[curve->count - 1].busbw_bytes_per_s))
            continue;
        point.step_ns = step.step_ns;
        point.strategy = step.strategy;
        point.cost_per_billion_tokens = cost_of(wire, &step);
        curve->points[curve->count++] = point;
    }
    return NW_OK;
}

static void fill_base(const struct nw_model *model, const struct nw_decision *decision,
                      struct nw_wire_curve *curve)
{
    curve->base_step_ns = curve->base_cost_per_billion_tokens = NAN;
    curve->limit_cost_per_billion_tokens = NAN;
    if (decision->base >= decision->count || decision->base == decision->headline)
        return;
    const struct nw_choice *base = &decision->choices[decision->base];

    if (!base->predicted)
        return;
    curve->base_nodes = base->node_count;
    curve->base_step_ns = base->strong.step_ns;
    curve->base_cost_per_billion_tokens = base->cost_per_billion_tokens;
    curve->limit_cost_per_billion_tokens =
        base->cost_per_billion_tokens * (1 + model->terms.max_extra_cost);
}

static nw_rc fill_measured(const struct wire *wire, const struct nw_choice *choice,
                           struct nw_wire_curve *curve)
{
    struct nw_value busbw;

    curve->measured_bytes_per_s = curve->measured_low = curve->measured_high = NAN;
    curve->step_ns = curve->step_low_ns = curve->step_high_ns = NAN;
    if (!choice->predicted)
        return NW_OK;
    NW_TRY(busbw_of(wire, 1, &busbw));
    curve->measured_bytes_per_s = busbw.value;
    curve->measured_low = busbw.low;
    curve->measured_high = busbw.high;
    curve->step_ns = choice->strong.step_ns;
    curve->step_low_ns = choice->strong.low_ns;
    curve->step_high_ns = choice->strong.high_ns;
    return NW_OK;
}

nw_rc nw_wire_curve_of(const struct nw_model *model, const struct nw_decision *decision,
                       double quoted_bytes_per_s, struct nw_wire_curve *curve_out)
{
    const struct nw_choice *choice = &decision->choices[decision->headline];
    struct wire wire = {
        .model = model, .platform = nw_model_platform(model), .nodes = choice->node_count};
    struct nw_wire_curve curve = {.nodes = choice->node_count};
    struct nw_step step;
    bool found;

    *curve_out = curve;
    if (choice->node_count < 2 || choice->pays == NW_PAYS_BATCH)
        return NW_OK;
    if (!nw_fabric_knows_inter(&wire.platform.fabric))
        wire.platform.fabric.inter_busbw_bytes_per_s = REFERENCE_BYTES_PER_S;
    NW_TRY(step_at(&wire, 1, &found, &step));
    if (!found || step.traffic.collective == NULL)
        return NW_OK;
    wire.traffic = step.traffic;
    curve.collective = step.traffic.collective;
    curve.message_bytes = step.traffic.message_bytes;
    fill_base(model, decision, &curve);
    NW_TRY(fill_measured(&wire, choice, &curve));
    curve.quoted_bytes_per_s = quoted_bytes_per_s;
    curve.break_even_bytes_per_s =
        choice->break_even == NW_BREAK_EVEN_AT ? choice->break_even_busbw_bytes_per_s : NAN;
    NW_TRY(fill_points(&wire,
                       (const double[]){curve.measured_bytes_per_s, curve.break_even_bytes_per_s,
                                        curve.quoted_bytes_per_s},
                       3, &curve));
    *curve_out = curve;
    return NW_OK;
}
