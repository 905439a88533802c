/* Public. The page that people read and pass on: one HTML file that needs nothing else, no network
 * and no script. Verdict first; then findings, the decision, what was measured with its charts, the
 * machine, the step, raw records, how it was measured. In every language of base/words.h,
 * one of them shown first. It shows what it is given and computes nothing.
 *
 *     NW_TRY(nw_report_html(stream, &(struct nw_page){.version = nw_version, .language = "en",
 *                                                     .results = &results}));
 */
#ifndef NW_REPORT_HTML_H
#define NW_REPORT_HTML_H

#include <stdbool.h>
#include <stdio.h>

#include "model/model.h"
#include "model/scaling_cost.h"
#include "model/wire_curve.h"
#include "results/audit.h"
#include "results/fleet.h"
#include "results/lanes.h"

struct nw_page {          /* borrows everything; what is not there is NULL */
    const char *version;  /* of this program */
    const char *language; /* shown first: "en" or "zh" */
    const struct nw_results *results;
    size_t left_out_count;        /* records that were read and are not in `results` */
    const struct nw_lanes *lanes; /* of each run */
    const struct nw_findings *preflight;
    const struct nw_audit *audit;
    const struct nw_fleet_report *fleet;
    struct nw_topo *const *topos; /* of the machines; and those given besides */
    size_t topo_count;
    struct nw_topo *const *further_topos;
    size_t further_count;
    const struct nw_model *model; /* with all of the following up to scaling_cost */
    const struct nw_steps *steps;
    const struct nw_decision *decision;
    const struct nw_wire_curve *wire;
    const struct nw_lane_effects *lane_effects;
    const struct nw_scaling_cost *scaling_cost;
    const char *job_problem; /* why a job that was given has no prediction */
    const char *note;        /* what a reader must know of the job's figures */
};

nw_rc nw_report_html(FILE *stream, const struct nw_page *page);

#endif
