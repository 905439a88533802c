#include "topo/topo.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key, *title;
} node_kinds[] =
    {
#define X(kind, key_text, title_text) [kind] = {key_text, title_text},
        NW_NODE_KIND_MAP(X)
#undef X
},
  link_kinds[] =
      {
#define X(kind, key_text, title_text) [kind] = {key_text, title_text},
          NW_LINK_KIND_MAP(X)
#undef X
},
  paths[] = {
#define X(path, key_text, title_text) [path] = {key_text, title_text},
      NW_PATH_MAP(X)
#undef X
};

void nw_topo_free(struct nw_topo *topo)
{
    if (topo == NULL)
        return;
    free(topo->nodes);
    free(topo->links);
    free(topo->facts);
    free(topo->stated);
    free(topo->gids);
    nw_findings_free(&topo->findings);
    free(topo);
}

int nw_topo_count(const struct nw_topo *topo, nw_node_kind kind)
{
    int count = 0;

    for (size_t i = 0; i < topo->node_count; i++)
        count += topo->nodes[i].kind == kind;
    return count;
}

const struct nw_topo_node *nw_topo_nth(const struct nw_topo *topo, nw_node_kind kind, int index)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == kind && index-- == 0)
            return &topo->nodes[i];
    return NULL;
}

bool nw_topo_is_nvidia(const struct nw_topo_node *node)
{
    /* An integrated GPU is no PCI device; then its OS devices tell. */
    return node->pci_vendor == 0x10de ||
           (node->kind == NW_NODE_GPU && node->pci_vendor == 0 &&
            (strncmp(node->os_names, "cuda", 4) == 0 || strncmp(node->os_names, "nvml", 4) == 0));
}

const char *nw_node_kind_key(nw_node_kind kind)
{
    return (unsigned)kind < NW_NODE_KIND_COUNT ? node_kinds[kind].key : "";
}

const char *nw_node_kind_title(nw_node_kind kind)
{
    return (unsigned)kind < NW_NODE_KIND_COUNT ? node_kinds[kind].title : "";
}

const char *nw_link_kind_key(nw_link_kind kind)
{
    return (unsigned)kind < NW_LINK_KIND_COUNT ? link_kinds[kind].key : "";
}

const char *nw_link_kind_title(nw_link_kind kind)
{
    return (unsigned)kind < NW_LINK_KIND_COUNT ? link_kinds[kind].title : "";
}

const char *nw_path_key(nw_path path)
{
    return (unsigned)path < NW_PATH_COUNT ? paths[path].key : "";
}

static bool is_between(const struct nw_topo_link *link, nw_link_kind kind, int a, int b)
{
    return link->kind == kind && ((link->a == a && link->b == b) || (link->a == b && link->b == a));
}

/* Along the chain of links that end at a; one by one where nobody chained them. */
const struct nw_topo_link *nw_topo_link_between(const struct nw_topo *topo, nw_link_kind kind,
                                                int a, int b)
{
    const struct nw_topo_link *found = NULL;

    if (topo->nodes[a].first_link == 0 && topo->nodes[b].first_link == 0) {
        for (size_t i = 0; i < topo->link_count; i++)
            if (is_between(&topo->links[i], kind, a, b))
                return &topo->links[i];
        return NULL;
    }
    for (int at = topo->nodes[a].first_link; at != 0;) {
        const struct nw_topo_link *link = &topo->links[at - 1];

        if (is_between(link, kind, a, b))
            found = link; /* the first of several, as in the list */
        at = link->a == a ? link->next_of_a : link->next_of_b;
    }
    return found;
}

const struct nw_topo_link *nw_topo_next_link(const struct nw_topo *topo, int node,
                                             const struct nw_topo_link *after)
{
    size_t at = after != NULL ? (size_t)(after - topo->links) + 1 : 0;
    int next;

    if (topo->link_count > 0 && topo->nodes[topo->links[0].a].first_link != 0) {
        if (after == NULL)
            next = topo->nodes[node].first_link;
        else
            next = after->a == node ? after->next_of_a : after->next_of_b;
        return next != 0 ? &topo->links[next - 1] : NULL;
    }
    while (at < topo->link_count && topo->links[at].a != node && topo->links[at].b != node)
        at++; /* nobody chained them */
    return at < topo->link_count ? &topo->links[at] : NULL;
}

/* The deepest node above both; parents have smaller indexes than their children. */
static int common_ancestor(const struct nw_topo *topo, int a, int b)
{
    while (a != b && a >= 0 && b >= 0) {
        if (a > b)
            a = topo->nodes[a].parent;
        else
            b = topo->nodes[b].parent;
    }
    return a == b && a >= 0 ? a : 0;
}

nw_path nw_topo_path(const struct nw_topo *topo, int a, int b)
{
    const struct nw_topo_node *node = &topo->nodes[common_ancestor(topo, a, b)];

    if (a == b ||
        (topo->nodes[a].pci[0] != '\0' && strcmp(topo->nodes[a].pci, topo->nodes[b].pci) == 0))
        return NW_PATH_SAME;
    switch (node->kind) {
    case NW_NODE_BRIDGE:
        return node->pci[0] != '\0' ? NW_PATH_SWITCH : NW_PATH_ROOT;
    case NW_NODE_NUMA:
        return NW_PATH_NUMA;
    case NW_NODE_PACKAGE:
        return NW_PATH_PACKAGE;
    default:
        return NW_PATH_MACHINE;
    }
}

/* Among NICs at the same distance: RDMA before plain Ethernet, active ports before dead ones, fast
 * before slow ones. */
static bool is_preferred(const struct nw_topo_node *node, const struct nw_topo_node *to)
{
    const struct nw_topo_node *const nodes[] = {node, to};
    int score[2];

    for (int i = 0; i < 2; i++) {
        const char *fabric = nodes[i]->fabric;
        const bool plain = strcmp(fabric, "ethernet") == 0 || strcmp(fabric, "wifi") == 0;

        score[i] = 2 * !plain + (nodes[i]->port_up != 0);
    }
    return score[0] != score[1] ? score[0] > score[1] : node->rate_bits_per_s > to->rate_bits_per_s;
}

int nw_topo_nearest(const struct nw_topo *topo, int from, nw_node_kind kind, nw_path *path_out)
{
    int nearest = -1;
    nw_path best = NW_PATH_COUNT;

    for (size_t i = 0; i < topo->node_count; i++) {
        nw_path path;

        if (topo->nodes[i].kind != kind || (int)i == from)
            continue;
        path = nw_topo_path(topo, from, (int)i);
        if (path < best || (path == best && is_preferred(&topo->nodes[i], &topo->nodes[nearest]))) {
            best = path;
            nearest = (int)i;
        }
    }
    if (nearest >= 0 && path_out != NULL)
        *path_out = best;
    return nearest;
}
