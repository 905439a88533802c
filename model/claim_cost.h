/* Public. What the claims of a quote that were measured short cost a job: its step with the one
 * rate that a machine as quoted reaches, against the step as measured. Everything else stays as it
 * is; claims are not added up.
 *
 *     struct nw_claim_costs costs;
 *     NW_TRY(nw_claim_costs_of(&model, &decision, &audit, &costs));
 *     costs.items[0] …    // the one that costs most
 */
#ifndef NW_MODEL_CLAIM_COST_H
#define NW_MODEL_CLAIM_COST_H

#include "model/model.h"
#include "results/audit.h"

struct nw_claim_cost {
    char key[32], claim[64];
    nw_audit_unit unit;
    double quoted, measured; /* in that unit, of the part of the node that took part */
    double healthy; /* what a machine as quoted reaches: the middle of what is normal, at most as
                       quoted; the step is held against this */
    bool on_path;   /* false: on no path of this step that the model knows */
    /* As measured; and as it would be at the healthy rate. */
    double step_ns, healthy_step_ns;
    double cost_per_billion_tokens, healthy_cost_per_billion_tokens;
    double time_ns, healthy_time_ns, cost, healthy_cost; /* of all tokens; NAN */
    bool simulated;
};

#define NW_CLAIM_COSTS_MAX 16
struct nw_claim_costs { /* the dearest first */
    struct nw_claim_cost items[NW_CLAIM_COSTS_MAX];
    size_t count;
    int node_count; /* that these are of; 0: no step could be predicted */
};

/* On the headline's node count where that could be predicted, else on the base's. */
nw_rc nw_claim_costs_of(const struct nw_model *model, const struct nw_decision *decision,
                        const struct nw_audit *audit, struct nw_claim_costs *costs_out);
nw_rc nw_claim_costs_to_json(const struct nw_claim_costs *costs, json_t **json_out);

#endif
