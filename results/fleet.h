/* Public. Hosts and ranks of results compared with each other: bench/fleet.h over records, measured
 * here or imported.
 *
 * Taken are pairs (case pairs, at the largest size of each collective and lane), their retests
 * (case retest: the better of both counts), streams between two NICs (case nic), pairwise
 * summaries, and logs of collectives over two hosts at their largest size. One host that is only
 * ever alone has nothing to be compared with.
 *
 *     struct nw_fleet_report report;
 *     NW_TRY(nw_fleet_of_results(&results, &report));
 *     report.levels[NW_FLEET_HOSTS].scores.ends[0].state …
 *     nw_fleet_report_free(&report);
 */
#ifndef NW_RESULTS_FLEET_H
#define NW_RESULTS_FLEET_H

#include "bench/fleet_tell.h"
#include "results/results.h"

enum { NW_FLEET_HOSTS, NW_FLEET_RANKS, NW_FLEET_NICS, NW_FLEET_LEVELS };
#define NW_FLEET_ENDS_MAX 8192 /* hosts, ranks, or NICs */

struct nw_fleet_level { /* owns its lists */
    const char *kind, *kinds;
    char **ends; /* names: "node2", "rank 3 on node2" */
    int *host_of_end;
    char **classes; /* "alltoall, 4 GPUs a host" */
    struct nw_fleet_edge *edges;
    struct nw_fleet fleet; /* edge_count 0: nothing of this level is there */
    struct nw_fleet_scores scores;
};

struct nw_fleet_report { /* owns everything */
    struct nw_fleet_level levels[NW_FLEET_LEVELS];
    int *rank_count_of_host; /* most of them that any run had there; 0: unknown */
    size_t retest_count;
    struct nw_findings findings;
    bool *leave_out; /* hosts: suspects, and the fewest others without which no bad pair is left */
    bool *lost;      /* hosts that failed in mid-run */
    size_t suspect_count, leave_out_count;
    bool simulated;
};

/* NW_ENODEV: no pair of hosts or ranks. NW_EUSAGE: more than NW_FLEET_ENDS_MAX. */
nw_rc nw_fleet_of_results(const struct nw_results *results, struct nw_fleet_report *report_out);
void nw_fleet_report_free(struct nw_fleet_report *report); /* leaves it empty */
nw_rc nw_fleet_to_json(const struct nw_fleet_report *report, json_t **json_out);

/* The suspects, a host a line, with reasons as comments; whole or not at all. */
nw_rc nw_fleet_write_excluded(const struct nw_fleet_report *report, const char *path);
/* The other hosts, as a hostfile of mpirun. */
nw_rc nw_fleet_write_hosts(const struct nw_fleet_report *report, const char *path);

#endif
