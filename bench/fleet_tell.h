/* Public. Pairs of ranks into pairs of hosts, and scores into findings. Pure. */
#ifndef NW_BENCH_FLEET_TELL_H
#define NW_BENCH_FLEET_TELL_H

#include "base/finding.h"
#include "bench/fleet.h"

/* Pairs of groups (hosts) from pairs of their members: for each two groups and class the mean of
 * the pairs between them; failed where all of these failed. Pairs within a group are left out. The
 * caller frees *edges_out. */
nw_rc nw_fleet_merge(const struct nw_fleet *members, const int *group_of_end,
                     struct nw_fleet_edge **edges_out, size_t *count_out);

/* A group that is a suspect explains its members and their pairs, two groups that are one explain
 * the pairs between their members: these are no suspects any more, or marked as explained. */
void nw_fleet_excuse(const struct nw_fleet_scores *groups, const int *group_of_end,
                     const struct nw_fleet *members, struct nw_fleet_scores *scores);

struct nw_fleet_names {
    const char *kind;           /* "host", "rank", "NIC": beginning of the findings' codes */
    const char *kinds;          /* "hosts" */
    const char *const *ends;    /* end_count names */
    const char *const *classes; /* class_count titles */
};

/* KIND-slow, KIND-flaky, KIND-failed (what was lost in mid-run is told already); then pair-slow and
 * pair-failed for pairs that no such end explains, at most `most_pairs` of them; what is said of a
 * class as a whole. Appends. */
nw_rc nw_fleet_findings(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores,
                        const struct nw_fleet_names *names, size_t most_pairs,
                        struct nw_findings *findings);

#endif
