/* Private to results/. Results by node and by what was measured, for baselines.
 */
#ifndef NW_RESULTS_BASELINE_NODES_H
#define NW_RESULTS_BASELINE_NODES_H

#include "results/compare_key.h"
#include "results/select.h"

struct nw_node_value {             /* one thing on one node: median of its records */
    struct nw_compare_entry entry; /* the first of them */
    size_t node;
    double time_ns;
};

struct nw_node_values {
    char **nodes; /* names, in order of appearance */
    size_t node_count;
    struct nw_node_value *items; /* by thing, then by node */
    size_t count;
};

nw_rc nw_node_values_of(const struct nw_results *results, const struct nw_select *select,
                        struct nw_node_values *values_out);
void nw_node_values_free(struct nw_node_values *values);

#endif
