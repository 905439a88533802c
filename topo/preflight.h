/* Public. Preflight: what is wrong with these machines, by the facts read of them. No measuring, no
 * root, no GPU work.
 *
 * A table of rules (nw_preflight_rules). A rule looks at one machine, or at all machines of a run
 * together, and judges only what was read: what no source said yields no finding. What stayed
 * unknown, and how to learn it, is one finding "not-checked" (info) a host.
 *
 *     struct nw_preflight_input input = {.hosts = topologies, .host_count = count};
 *     NW_TRY(nw_preflight_judge(&input, &findings));
 *
 * `where` is "node2 gpu3": the host's name and the device's. What is the same on several devices
 * or hosts is one finding that names them. A fault is told once, also where a reader told it
 * already. docs/findings.md lists the codes.
 */
#ifndef NW_TOPO_PREFLIGHT_H
#define NW_TOPO_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/finding.h"
#include "topo/topo.h"

struct nw_preflight_input {
    struct nw_topo *const *hosts; /* one each; whole graphs, after merging; only read */
    size_t host_count;
    bool no_gaps;     /* without the "not-checked" findings */
    bool warn_of_cut; /* "file-cut" as severe as the reader of the file said, not an info */
};

struct nw_preflight_run; /* topo/preflight_run.h */

struct nw_preflight_rule {
    const char *codes; /* of its findings, blank-separated */
    const char *needs; /* what must have been read, for people */
    /* One of the two; the other is NULL. */
    nw_rc (*one)(struct nw_preflight_run *run, size_t host);
    nw_rc (*all)(struct nw_preflight_run *run);
};
extern const struct nw_preflight_rule nw_preflight_rules[]; /* ends with codes NULL */

/* Appends what all rules find, and what the hosts' readers left in their topologies, failures
 * first. */
nw_rc nw_preflight_judge(const struct nw_preflight_input *input, struct nw_findings *findings);

#endif
