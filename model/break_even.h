/* Private to model/. Two node counts held against each other under the same scenario, and where
 * the decision turns. */
#ifndef NW_MODEL_BREAK_EVEN_H
#define NW_MODEL_BREAK_EVEN_H

#include "model/model.h"
#include "results/lanes.h"

struct nw_comparison {
    const struct nw_model *model;
    const struct nw_platform *platform;
    const struct nw_choice *base, *choice;
};

/* ---- money (model/decide_cost.c) ----------------------------------------------------------- */

double nw_price_per_hour(const struct nw_terms *terms, int node_count);
double nw_cost_per_billion_tokens(const struct nw_terms *terms, int node_count,
                                  double tokens_per_s);
/* What all tokens cost where they are known, else what 10^9 of them cost in the long run, without
 * what is paid once. Nodes beyond `base_nodes` are rented for the minimum at least. */
double nw_total_cost(const struct nw_model *model, int node_count, int base_nodes,
                     double useful_tokens_per_s);
/* Sets the choice's price_even… and token_even…. */
void nw_fill_price_even(const struct nw_model *model, const struct nw_choice *base,
                        struct nw_choice *choice);
void nw_fill_rentals(const struct nw_model *model, struct nw_decision *decision);

/* ---- the fastest strategy that fits -------------------------------------------------------- */

/* On so many nodes; `weak_base_ranks` > 0: weak scaling from so many ranks. `scenario` NULL: the
 * model's, with intervals, memory and rates; else the time alone. *found_out false: none fits. */
nw_rc nw_fastest(const struct nw_model *model, const struct nw_platform *platform, int node_count,
                 int weak_base_ranks, const struct nw_scenario *scenario, bool *found_out,
                 struct nw_step *step_out);

/* ---- memory (model/decide_fit.c) ----------------------------------------------------------- */

/* Of the strategy and mix that needs least; NAN: none can be laid out on so many nodes. */
double nw_least_memory(const struct nw_model *model, int node_count);
/* Fewest nodes on which something fits; 0: none up to 4096. */
int nw_fewest_nodes(const struct nw_model *model);
/* What would make the job fit on so many nodes, on which it does not. */
nw_rc nw_fill_ways_to_fit(const struct nw_model *model, int node_count,
                          struct nw_decision *decision);

/* ---- intervals and the wire (model/break_even.c) ------------------------------------------- */

struct nw_ratios {                      /* of the choice over the base */
    double cost, time;                  /* of the same tokens */
    const struct nw_strategy *strategy; /* of the choice */
};
/* Strategies: those that fit, the fastest under this scenario. */
nw_rc nw_ratios_of(const struct nw_comparison *comparison, const struct nw_platform *platform,
                   const struct nw_scenario *scenario, struct nw_ratios *ratios_out);
/* Sets the intervals of the choice's ratios, and its probability. */
nw_rc nw_fill_intervals(const struct nw_comparison *comparison, double limit,
                        struct nw_choice *choice_out);
/* Sets the choice's break_even… and measured_busbw. */
nw_rc nw_break_even_of(const struct nw_comparison *comparison, struct nw_choice *choice_out);
/* Bus bandwidth of the message that carries most bytes of a step, with the interval of its time. */
nw_rc nw_traffic_busbw(const struct nw_platform *platform, const struct nw_traffic *traffic,
                       const struct nw_scenario *scenario, struct nw_value *busbw_out);
/* Probability that a value whose likely logarithm lies `distance` below a limit is below it, where
 * its interval reaches `half` to either side. */
double nw_probability_below(double distance, double half);

/* ---- reasons (model/decide_reasons.c) ------------------------------------------------------ */

void nw_fill_reasons(const struct nw_model *model, const struct nw_choice *base,
                     const struct nw_choice *smaller, struct nw_choice *choice);

#endif
