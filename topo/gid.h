/* Public. RoCE: which row of the GID tables all hosts can use, and what to set for NCCL.
 *
 * A NIC of RoCE has a table of addresses (GIDs); NCCL_IB_GID_INDEX is one number for all NICs of a
 * process. RoCE v2 over IPv4 (routable) goes before IPv6, before link-local addresses. InfiniBand
 * needs no choice. Only the local NIC uses the number: it may differ between hosts, if each host is
 * told its own.
 *
 *     struct nw_gid_choice choice;
 *     NW_TRY(nw_gid_choose(topos, count, &choice, &findings));   // adds what is to be said
 *     if (choice.verdict == NW_GID_SHARED) … NCCL_IB_GID_INDEX=choice.index
 */
#ifndef NW_TOPO_GID_H
#define NW_TOPO_GID_H

#include <stdbool.h>
#include <stddef.h>

#include "base/finding.h"
#include "topo/topo.h"

typedef enum {
    NW_GID_NOT_NEEDED, /* InfiniBand, or no RDMA */
    NW_GID_SHARED,     /* one index does on every port of every host */
    NW_GID_DIFFERS,    /* one index does on every host, not the same */
    NW_GID_MIXED,      /* some host has no index that does for all its ports */
    NW_GID_OLD,        /* no port has RoCE v2 */
    NW_GID_UNKNOWN,    /* GID tables were not read */
} nw_gid_verdict;

struct nw_gid_choice {
    nw_gid_verdict verdict;
    int index;         /* NW_GID_SHARED; else -1 */
    bool ipv4;         /* of that index: RoCE v2 over IPv4 */
    bool link_local;   /* of that index: works within one Ethernet segment only */
    bool fastest_only; /* the slower ports were left out, for no index does for all */
    bool nccl_chooses; /* NCCL is 2.21 or later on every host: it finds the index by itself */
    int port_count;    /* active RoCE ports that were looked at, of all hosts */
};

/* One machine is a list of one. Findings: "gid-index" (info), "gid-index-differs",
 * "gid-index-mixed", "gid-link-local", "roce-v1-only", "not-checked". */
nw_rc nw_gid_choose(const struct nw_topo *const *topos, size_t count,
                    struct nw_gid_choice *choice_out, struct nw_findings *findings);

#endif
