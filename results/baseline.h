/* Public. What the nodes of a set usually reach, as a file; and a node held against it.
 *
 * A node is a host, or the hosts of a run together. Of each thing measured on NW_BASELINE_LEAST
 * nodes or more the file has the median over nodes and its spread (median absolute deviation), and
 * mean and standard deviation of the logarithms of those nodes that are no outliers. A node is slow
 * where its time lies beyond what one more node of the same kind would show (Student's prediction
 * interval, Holm's correction over everything that is compared: the chance of any false alarm is at
 * most NW_COMPARE_ALPHA) and beyond the threshold.
 *
 * Owns its lists.
 *
 *     NW_TRY(nw_baseline_make(&results, &select, &baseline));
 *     NW_TRY(nw_baseline_save(&baseline, "base.json"));
 *     NW_TRY(nw_baseline_hold(&baseline, &node, &plan, &report));
 */
#ifndef NW_RESULTS_BASELINE_H
#define NW_RESULTS_BASELINE_H

#include "results/compare.h"

#define NW_BASELINE_LEAST 3     /* nodes of a row */
#define NW_BASELINE_FLOOR 0.005 /* nodes that agree better did so by chance (bench/fleet.h) */

struct nw_baseline_row {
    struct nw_record like; /* what was measured; owns nothing */
    int node_count;        /* that its figures are of */
    double time_ns;        /* of a call: median over the nodes */
    double spread;         /* 1.4826 times the median absolute deviation, of the median */
    double mean_ns;        /* geometric mean and standard deviation of the logarithms, of those */
    double deviation;      /* that are no outliers */
};

struct nw_baseline {
    struct nw_context context; /* backend, gpu_model, simulated, tool_version of it */
    char **nodes;              /* their names */
    size_t node_count;
    struct nw_baseline_row *rows; /* ordered */
    size_t row_count;
    size_t few_count;            /* rows left out: too few nodes */
    struct nw_findings findings; /* outliers */
};

/* NW_EUSAGE: several backends, GPU models, or simulated ones among real ones. NW_ENODEV: nothing
 * was measured on enough nodes. */
nw_rc nw_baseline_make(const struct nw_results *results, const struct nw_select *select,
                       struct nw_baseline *baseline_out);
nw_rc nw_baseline_save(const struct nw_baseline *baseline, const char *path);
nw_rc nw_baseline_read(const char *path, struct nw_baseline *baseline_out);
/* The same from memory; `path` words the errors. */
nw_rc nw_baseline_read_data(const char *data, size_t length, const char *path,
                            struct nw_baseline *baseline_out);
void nw_baseline_free(struct nw_baseline *baseline); /* leaves it empty */

struct nw_baseline_plan {
    struct nw_select select;
    double threshold;
};

struct nw_held_row {
    size_t node;
    const struct nw_baseline_row *of; /* borrowed */
    double time_ns;
    double speed;      /* over the baseline's median: 0.8 is a fifth slower */
    double p, p_joint; /* one-sided: slower than the nodes of the baseline */
    bool slower;
};

struct nw_baseline_report {
    char **nodes;
    size_t node_count;
    size_t *slower_of_node;
    struct nw_held_row *rows;
    size_t compared_count, row_count; /* the same: every row is compared */
    size_t slower_count;
    size_t missing_count;     /* rows of the baseline that no node has */
    size_t unknown_count;     /* results that the baseline does not have */
    char unknown_reason[256]; /* of the first */
    double threshold;
    int baseline_node_count;
    bool simulated;
};

nw_rc nw_baseline_hold(const struct nw_baseline *baseline, const struct nw_results *results,
                       const struct nw_baseline_plan *plan, struct nw_baseline_report *report_out);
void nw_baseline_report_free(struct nw_baseline_report *report); /* leaves it empty */
nw_rc nw_baseline_report_to_json(const struct nw_baseline_report *report, json_t **json_out);

#endif
