/* Private to model/. Two node counts held against each other under the same scenario. */
#ifndef NW_MODEL_BREAK_EVEN_H
#define NW_MODEL_BREAK_EVEN_H

#include "model/model.h"

struct nw_comparison {
    const struct nw_model *model;
    const struct nw_platform *platform;
    const struct nw_choice *base, *choice;
};

double nw_price_per_hour(const struct nw_terms *terms, int node_count);
/* Cost per token of the choice over the base's. Strategies: those that fit, the fastest under this
 * scenario; the one taken into *strategy_out. */
nw_rc nw_cost_ratio(const struct nw_comparison *comparison, const struct nw_platform *platform,
                    const struct nw_scenario *scenario, double *ratio_out,
                    const struct nw_strategy **strategy_out);
/* Sets the choice's cost_ratio_low, cost_ratio_high and probability. */
nw_rc nw_cost_ratio_interval(const struct nw_comparison *comparison, double limit,
                             struct nw_choice *choice_out);
/* Sets the choice's break_even… and measured_busbw. */
nw_rc nw_break_even_of(const struct nw_comparison *comparison, struct nw_choice *choice_out);

#endif
