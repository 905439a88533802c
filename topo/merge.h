/* Private to topo/. The parts of nw_topo_merge: which node of one source is which of the other
 * (merge_match.c), what a node takes over (merge_node.c), facts, links, classes and GIDs
 * (merge_rest.c), the order of the nodes afterwards (merge_order.c). */
#ifndef NW_TOPO_MERGE_H
#define NW_TOPO_MERGE_H

#include "topo/topo.h"

enum {
    NW_MERGE_MAX_NODES = 16384, /* as the reader of the JSON */
    NW_MERGE_NO_NODE = -1,      /* not there: to be added */
    NW_MERGE_DROP = -2,         /* which one it is cannot be told: not taken over */
};

struct nw_merge {
    struct nw_topo *into;
    const struct nw_topo *from;
    int *into_of;   /* by node of `from`: node of `into`, NW_MERGE_NO_NODE, NW_MERGE_DROP */
    int *from_of;   /* by node of `into` as it was: node of `from`, -1 */
    int into_count; /* nodes that `into` had */
    int told;       /* disagreements */
};

/* Fills into_of and from_of. */
nw_rc nw_merge_match(struct nw_merge *merge);
/* What node `from` says more than its counterpart `into`. */
nw_rc nw_merge_node(struct nw_merge *merge, int from, int into);
nw_rc nw_merge_facts(struct nw_merge *merge);
nw_rc nw_merge_links(struct nw_merge *merge);
nw_rc nw_merge_stated(struct nw_merge *merge);
nw_rc nw_merge_gids(struct nw_merge *merge);
/* Parents before children, kinds together, GPUs by their number, the others by PCI address. */
nw_rc nw_merge_order(struct nw_topo *topo);

/* Does the source claim to show all devices of the machine? */
static inline bool nw_merge_is_whole(const struct nw_topo *topo)
{
    return (topo->gaps & (NW_TOPO_PARTIAL | NW_TOPO_NO_IO)) == 0;
}
/* Does it show adapters of many machines (iblinkinfo, ibnetdiscover)? */
bool nw_merge_is_fabric(const struct nw_topo *topo);
/* "gpu7" to 7, -1 where no number ends it. */
int nw_merge_number(const char *name);
bool nw_merge_is_general(const char *nic_name); /* "NIC0" */
/* Names of two products that cannot be the same: families, forms or memory sizes differ. */
bool nw_merge_models_differ(const char *a, const char *b);
/* A finding "sources-disagree" of a node of `into` (-1: of the machine). NULL as source: the
 * file. */
nw_rc nw_merge_disagree(struct nw_merge *merge, int node, const char *what, const char *into_value,
                        const char *into_source, const char *from_value, const char *from_source);

#endif
