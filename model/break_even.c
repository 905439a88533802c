#include "model/break_even.h"

#include <math.h>
#include <string.h>

#include "collectives/coll.h"

/* Where nothing between nodes was measured, the bus bandwidth itself is looked for: the reference
 * that the scale multiplies. */
#define REFERENCE_BYTES_PER_S 1e9
/* Scales that stand for no wire and for an infinitely fast one. */
#define NO_WIRE       1e-9
#define INFINITE_WIRE 1e9
/* Standard deviations from the middle to an end of a 90 % interval. */
#define INTERVAL_DEVIATIONS 1.6449

/* Fastest step of one node count under the scenario. */
static nw_rc fastest(const struct nw_comparison *comparison, const struct nw_platform *platform,
                     int node_count, const struct nw_scenario *scenario, struct nw_step *step_out)
{
    bool found;

    NW_TRY(nw_fastest(comparison->model, platform, node_count, 0, scenario, &found, step_out));
    if (!found)
        step_out->step_ns = INFINITY;
    return NW_OK;
}

/* Strong scaling: the same tokens in each step. */
nw_rc nw_ratios_of(const struct nw_comparison *comparison, const struct nw_platform *platform,
                   const struct nw_scenario *scenario, struct nw_ratios *ratios_out)
{
    const struct nw_model *model = comparison->model;
    const int base_nodes = comparison->base->node_count;
    const int nodes = comparison->choice->node_count;
    struct nw_step base_step, step;

    NW_TRY(fastest(comparison, platform, base_nodes, scenario, &base_step));
    NW_TRY(fastest(comparison, platform, nodes, scenario, &step));
    const double base_rate = nw_useful_tokens_per_s(&model->job, &model->terms, &base_step);
    const double rate = nw_useful_tokens_per_s(&model->job, &model->terms, &step);

    *ratios_out =
        (struct nw_ratios){.cost = nw_total_cost(model, nodes, base_nodes, rate) /
                                   nw_total_cost(model, base_nodes, base_nodes, base_rate),
                           .time = base_rate / rate,
                           .strategy = step.strategy};
    return NW_OK;
}

double nw_probability_below(double distance, double half)
{
    if (!(half > 0))
        return distance >= 0 ? 1 : 0;
    return 0.5 * erfc(-distance / (half / INTERVAL_DEVIATIONS) / sqrt(2));
}

/* Each source of error moves both node counts alike (the same GPUs, the same wires); its effect on
 * the logarithm of the ratio is taken as half the distance between its ends, the sources as
 * independent and normal. */
nw_rc nw_fill_intervals(const struct nw_comparison *comparison, double limit,
                        struct nw_choice *choice_out)
{
    const struct nw_scenario *middle = &comparison->model->scenario;
    double cost_half = 0, time_half = 0;

    for (enum nw_error_source source = 0; source < NW_ERROR_COUNT; source++) {
        struct nw_scenario ends[2];
        struct nw_ratios low, high;

        nw_scenario_ends(comparison->platform, middle, source, ends);
        NW_TRY(nw_ratios_of(comparison, comparison->platform, &ends[0], &low));
        NW_TRY(nw_ratios_of(comparison, comparison->platform, &ends[1], &high));
        cost_half = hypot(cost_half, log(high.cost / low.cost) / 2);
        time_half = hypot(time_half, log(high.time / low.time) / 2);
    }
    choice_out->cost_ratio_low = choice_out->cost_ratio * exp(-cost_half);
    choice_out->cost_ratio_high = choice_out->cost_ratio * exp(cost_half);
    choice_out->time_ratio_low = choice_out->time_ratio * exp(-time_half);
    choice_out->time_ratio_high = choice_out->time_ratio * exp(time_half);
    choice_out->probability = nw_probability_below(log(limit / choice_out->cost_ratio), cost_half);
    return NW_OK;
}

/* ---- break-even ---------------------------------------------------------------------------- */

struct search {
    const struct nw_comparison *comparison;
    struct nw_platform platform; /* with the reference where nothing was measured */
    double limit;
};

static nw_rc ratio_at(const struct search *search, double scale, double *ratio_out,
                      const struct nw_strategy **strategy_out)
{
    struct nw_scenario scenario = search->comparison->model->scenario;
    struct nw_ratios ratios;

    scenario.inter_scale *= scale;
    NW_TRY(nw_ratios_of(search->comparison, &search->platform, &scenario, &ratios));
    *ratio_out = ratios.cost;
    *strategy_out = ratios.strategy;
    return NW_OK;
}

/* Bisection of the logarithm: the ratio falls as the wire gets faster. */
static nw_rc bisect(const struct search *search, double *scale_out,
                    const struct nw_strategy **strategy_out)
{
    double low = log(NO_WIRE), high = log(INFINITE_WIRE);

    while (high - low > 1e-7) {
        const double middle = (low + high) / 2;
        const struct nw_strategy *strategy;
        double ratio;

        NW_TRY(ratio_at(search, exp(middle), &ratio, &strategy));
        if (ratio <= search->limit) {
            high = middle;
            *strategy_out = strategy;
        } else {
            low = middle;
        }
    }
    *scale_out = exp(high);
    return NW_OK;
}

nw_rc nw_traffic_busbw(const struct nw_platform *platform, const struct nw_traffic *traffic,
                       const struct nw_scenario *scenario, struct nw_value *busbw_out)
{
    struct nw_cost cost;

    NW_TRY(nw_fabric_cost(&platform->fabric, traffic->collective, traffic->message_bytes,
                          traffic->group, scenario, &cost));
    const double moved = 1e9 * traffic->message_bytes *
                         nw_coll_find(traffic->collective)->bus_factor(traffic->group.rank_count);

    *busbw_out = (struct nw_value){moved / cost.time_ns, moved / cost.high_ns, moved / cost.low_ns};
    return NW_OK;
}

/* At that scale. */
static nw_rc busbw_at(const struct search *search, const struct nw_traffic *traffic, double scale,
                      double *busbw_out)
{
    struct nw_scenario scenario = nw_scenario_likely;

    struct nw_value busbw;

    scenario.inter_scale = scale;
    NW_TRY(nw_traffic_busbw(&search->platform, traffic, &scenario, &busbw));
    *busbw_out = busbw.value;
    return NW_OK;
}

static nw_rc fill_rates(const struct search *search, double scale, bool measured,
                        struct nw_choice *choice)
{
    const struct nw_layout layout =
        nw_model_layout(search->comparison->model, choice->node_count, choice->break_even_strategy);
    struct nw_step step;

    const struct nw_job job = nw_model_job(search->comparison->model, &layout);

    NW_TRY(nw_predict_scenario(&job, &search->platform, &layout, &nw_scenario_likely, &step));
    if (step.traffic.collective == NULL)
        return NW_OK; /* one rank: no message */
    choice->break_even_message_bytes = step.traffic.message_bytes;
    choice->break_even_collective = step.traffic.collective;
    if (choice->break_even == NW_BREAK_EVEN_AT)
        NW_TRY(busbw_at(search, &step.traffic, scale, &choice->break_even_busbw_bytes_per_s));
    if (measured)
        NW_TRY(busbw_at(search, &step.traffic, 1, &choice->measured_busbw_bytes_per_s));
    return NW_OK;
}

nw_rc nw_break_even_of(const struct nw_comparison *comparison, struct nw_choice *choice_out)
{
    const bool measured = nw_fabric_knows_inter(&comparison->platform->fabric);
    struct search search = {.comparison = comparison,
                            .platform = *comparison->platform,
                            .limit = 1 + comparison->model->terms.max_extra_cost};
    double at_none, at_infinite, scale = 1;

    if (!measured)
        search.platform.fabric.inter_busbw_bytes_per_s = REFERENCE_BYTES_PER_S;
    NW_TRY(ratio_at(&search, INFINITE_WIRE, &at_infinite, &choice_out->break_even_strategy));
    if (at_infinite > search.limit) {
        choice_out->break_even = NW_BREAK_EVEN_NEVER;
        return fill_rates(&search, scale, measured, choice_out);
    }
    NW_TRY(ratio_at(&search, NO_WIRE, &at_none, &choice_out->break_even_strategy));
    if (at_none <= search.limit) {
        choice_out->break_even = NW_BREAK_EVEN_ALWAYS;
        return fill_rates(&search, scale, measured, choice_out);
    }
    NW_TRY(bisect(&search, &scale, &choice_out->break_even_strategy));
    choice_out->break_even = NW_BREAK_EVEN_AT;
    return fill_rates(&search, scale, measured, choice_out);
}
