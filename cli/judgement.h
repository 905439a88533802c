/* Private to cli/. What results say, all of it: the lanes side by side, the quote held against
 * them, faults of the hosts, the fleet, the step of a job and the decision. What the end of `run`
 * and `report` show.
 *
 *     struct nw_judgement judgement = {.job_problem = ""};
 *     NW_TRY(nw_results_read(path, &judgement.results));
 *     NW_TRY(nw_judgement_make(&judgement, quote, &request));
 *     … nw_judgement_page(&judgement, "en") …
 *     nw_judgement_free(&judgement);
 */
#ifndef NW_CLI_JUDGEMENT_H
#define NW_CLI_JUDGEMENT_H

#include <stdbool.h>

#include "model/request.h"
#include "model/scaling_cost.h"
#include "report/html.h"
#include "results/audit.h"
#include "results/fleet.h"
#include "results/lanes.h"

struct nw_judgement { /* owns everything but the strings */
    struct nw_results results;
    size_t left_out_count;  /* records read and not kept in `results` */
    struct nw_topo **topos; /* of the hosts, as the runs kept them; each host once */
    size_t topo_count;
    struct nw_topo *const *further_topos; /* borrowed: given besides, for the audit */
    size_t further_count;
    struct nw_lanes *lanes; /* of each run */
    struct nw_findings preflight;
    struct nw_audit audit;
    struct nw_fleet_report fleet;
    struct nw_model model;
    struct nw_steps steps;
    struct nw_decision decision;
    struct nw_wire_curve wire;
    struct nw_lane_effects lane_effects;
    struct nw_scaling_cost scaling_cost;
    bool preflighted, audited, compared, modelled;
    char job_problem[1024]; /* why a job that was given has no prediction; "" */
    char note[256];         /* the caller's: what a reader must know of the job's figures; "" */
};

/* From judgement->results, which may be empty. `quote` NULL: none; `request` NULL: no job. */
nw_rc nw_judgement_make(struct nw_judgement *judgement, const struct nw_quote *quote,
                        const struct nw_model_request *request);
/* The step could be predicted. */
bool nw_judgement_predicted(const struct nw_judgement *judgement);
/* Borrows the judgement. */
struct nw_page nw_judgement_page(const struct nw_judgement *judgement, const char *language);
void nw_judgement_free(struct nw_judgement *judgement);

#endif
