/* Public. The one screen a run ends in: what was measured, the quote held against it, findings, the
 * job's step, the decision, where the files are; and report.txt, the same with every strategy, its
 * memory and time part by part, and everything assumed. They show what they are given and compute
 * nothing. */
#ifndef NW_REPORT_SCREEN_H
#define NW_REPORT_SCREEN_H

#include <stdio.h>

#include "model/model.h"
#include "model/scaling_cost.h"
#include "results/audit.h"
#include "results/lanes.h"

struct nw_screen { /* borrows everything */
    const char *version;
    const struct nw_run *run;
    const struct nw_lanes *lanes;
    double elapsed_ns;
    const struct nw_findings *preflight; /* of the hosts' topologies; NULL: none were kept */
    const struct nw_audit *audit;        /* NULL: no quote was given */
    const struct nw_model *model;        /* NULL: no job was given */
    const struct nw_steps *steps;
    const struct nw_decision *decision;
    const struct nw_lane_effects *lane_effects; /* of the model; NULL without one */
    const struct nw_scaling_cost *scaling_cost; /* the same */
    const char *job_problem; /* why a job that was given has no prediction; NULL */
    const char *note;        /* what a reader must know of the job's figures; NULL */
    bool host_compute;       /* the ranks are CPU cores: the lines about GPUs are left out */
    const char *page_path, *report_path, *results_path; /* NULL: not written */
    const char *letter_paths;                           /* blank-separated; NULL: not written */
};

nw_rc nw_report_screen(FILE *stream, const struct nw_screen *screen);
nw_rc nw_report_whole(FILE *stream, const struct nw_screen *screen);
/* The same for --json: one object with the measured plateaus, the audit, the steps, the decision.
 */
nw_rc nw_report_screen_json(FILE *stream, const struct nw_screen *screen);

#endif
