/* Public. What findings cost a training job: its step at the bandwidth that healthy hardware
 * reaches, against the step with what the finding takes away.
 *
 * Both steps are predictions with the same assumptions; only the one bandwidth differs. A finding
 * whose loss lies on no path of the step (storage, host copies without offload) keeps step_ns NAN.
 *
 *     const struct nw_finding_cost_input input = {.request = &request, .hosts = …, .host_count =
 * n}; NW_TRY(nw_finding_costs(&input, &findings, &costs));   // findings.items[i].step_ns
 */
#ifndef NW_MODEL_FINDING_COST_H
#define NW_MODEL_FINDING_COST_H

#include "model/model.h"
#include "model/request.h"
#include "topo/topo.h"

struct nw_finding_cost_input {
    const struct nw_model_request *request; /* the job; bandwidths that it gives come first */
    struct nw_topo *const *hosts;           /* one each; NULL entries: not read */
    size_t host_count;
};

struct nw_finding_costs {
    bool known; /* the job's step could be predicted */
    const struct nw_strategy *strategy;
    int node_count, gpus_per_node;
    /* Bus bandwidths of healthy hardware; NAN: unknown, or no such path. */
    double intra_bytes_per_s, inter_bytes_per_s;
    bool intra_is_nvlink;
    double step_ns;  /* NAN: not known */
    char text[1024]; /* the step and every assumption; or why there is none */
};

/* Sets step_ns of the findings that it can say it of. NW_EUSAGE: the job cannot be read. */
nw_rc nw_finding_costs(const struct nw_finding_cost_input *input, struct nw_findings *findings,
                       struct nw_finding_costs *costs_out);

#endif
