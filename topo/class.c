/* Path classes in nvidia-smi's sense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/topo.h"

static const char *const names[] = {
#define X(class_id, name_text) [class_id] = name_text,
    NW_CLASS_MAP(X)
#undef X
};

const char *nw_class_name(nw_class class_id)
{
    return (unsigned)class_id < NW_CLASS_COUNT ? names[class_id] : "?";
}

/* Grows `*list` of elements of `size` bytes by one. */
static nw_rc grow(void **list, size_t *count, size_t *capacity, size_t size)
{
    if (*count == *capacity) {
        const size_t wanted = *capacity > 0 ? 2 * *capacity : 32;
        void *grown = realloc(*list, wanted * size);

        if (grown == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for a topology of %zu pairs", wanted);
        *list = grown;
        *capacity = wanted;
    }
    ++*count;
    return NW_OK;
}

nw_rc nw_topo_state(struct nw_topo *topo, int a, int b, nw_class class_id, int nvlinks)
{
    const struct nw_topo_stated stated = {
        .a = a < b ? a : b, .b = a < b ? b : a, .class_id = class_id, .nvlinks = nvlinks};

    for (size_t i = 0; i < topo->stated_count; i++)
        if (topo->stated[i].a == stated.a && topo->stated[i].b == stated.b) {
            topo->stated[i] = stated;
            return NW_OK;
        }
    NW_TRY(
        grow((void **)&topo->stated, &topo->stated_count, &topo->stated_capacity, sizeof stated));
    topo->stated[topo->stated_count - 1] = stated;
    return NW_OK;
}

nw_rc nw_topo_add_gid(struct nw_topo *topo, const struct nw_topo_gid *gid)
{
    NW_TRY(grow((void **)&topo->gids, &topo->gid_count, &topo->gid_capacity, sizeof *gid));
    topo->gids[topo->gid_count - 1] = *gid;
    return NW_OK;
}

nw_rc nw_topo_add_link(struct nw_topo *topo, const struct nw_topo_link *link)
{
    struct nw_topo_link *links = realloc(topo->links, (topo->link_count + 1) * sizeof *links);

    if (links == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %zu links", topo->link_count + 1);
    topo->links = links;
    links[topo->link_count] = *link;
    nw_topo_chain_link(topo, topo->link_count++);
    return NW_OK;
}

void nw_topo_chain_link(struct nw_topo *topo, size_t index)
{
    struct nw_topo_link *link = &topo->links[index];

    link->next_of_a = topo->nodes[link->a].first_link;
    topo->nodes[link->a].first_link = (int)index + 1;
    link->next_of_b = topo->nodes[link->b].first_link;
    topo->nodes[link->b].first_link = (int)index + 1;
}

/* --- from the tree --- */

/* A port hangs below its NIC. */
static int device_of(const struct nw_topo *topo, int node)
{
    while (node > 0 && topo->nodes[node].kind == NW_NODE_PORT)
        node = topo->nodes[node].parent;
    return node;
}

static int above(const struct nw_topo *topo, int node, nw_node_kind kind)
{
    while (node > 0 && topo->nodes[node].kind != kind)
        node = topo->nodes[node].parent;
    return node > 0 ? node : -1;
}

static bool is_host_bridge(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_BRIDGE && node->pci[0] == '\0';
}

static bool has_host_bridge(const struct nw_topo *topo, int node)
{
    while (node > 0 && !is_host_bridge(&topo->nodes[node]))
        node = topo->nodes[node].parent;
    return node > 0;
}

static int bridges_below(const struct nw_topo *topo, int node, int top)
{
    int count = 0;

    for (node = topo->nodes[node].parent; node > top; node = topo->nodes[node].parent)
        count += topo->nodes[node].kind == NW_NODE_BRIDGE;
    return count;
}

/* The system's tree has a node for every port: two devices of one switch have its upstream port
 * above and a downstream port each between. NCCL's files have one node for a switch, and no host
 * bridge. */
static nw_class below_bridge(const struct nw_topo *topo, int a, int b, int top)
{
    const int ports = has_host_bridge(topo, top) ? 1 : 0;

    if (is_host_bridge(&topo->nodes[top]))
        return NW_CLASS_PHB;
    return bridges_below(topo, a, top) <= ports && bridges_below(topo, b, top) <= ports
               ? NW_CLASS_PIX
               : NW_CLASS_PXB;
}

enum { SAME, DIFFERENT, NOT_KNOWN };

/* NUMA nodes of two devices: by their place in the tree, else by number, else by the package where
 * a package is one NUMA node. */
static int compare_numa(const struct nw_topo *topo, int a, int b)
{
    const int x = above(topo, a, NW_NODE_NUMA), y = above(topo, b, NW_NODE_NUMA);
    const int p = above(topo, a, NW_NODE_PACKAGE), q = above(topo, b, NW_NODE_PACKAGE);

    if (x > 0 && y > 0)
        return x == y ? SAME : DIFFERENT;
    if (topo->nodes[a].numa >= 0 && topo->nodes[b].numa >= 0)
        return topo->nodes[a].numa == topo->nodes[b].numa ? SAME : DIFFERENT;
    if (p > 0 && q > 0 && p != q)
        return DIFFERENT;
    if (topo->numa_count == 1 || (p > 0 && p == q && topo->numa_count == topo->package_count))
        return SAME;
    return NOT_KNOWN;
}

bool nw_topo_on_other_hosts(const struct nw_topo *topo, int a, int b)
{
    const int x = above(topo, a, NW_NODE_NUMA), y = above(topo, b, NW_NODE_NUMA);
    const char *of_a = x > 0 ? nw_topo_text(topo, x, NW_FACT_HOST_HASH) : NULL;
    const char *of_b = y > 0 ? nw_topo_text(topo, y, NW_FACT_HOST_HASH) : NULL;

    return of_a != NULL && of_b != NULL && strcmp(of_a, of_b) != 0;
}

nw_class nw_topo_class_of_tree(const struct nw_topo *topo, int a, int b)
{
    int top, other;

    a = device_of(topo, a);
    b = device_of(topo, b);
    if (a == b)
        return NW_CLASS_SELF;
    if (topo->nodes[a].pci[0] != '\0' && strcmp(topo->nodes[a].pci, topo->nodes[b].pci) == 0 &&
        !nw_topo_on_other_hosts(topo, a, b))
        return NW_CLASS_PIX;
    for (top = a, other = b; top != other;) /* parents have smaller indexes */
        if (top > other)
            top = topo->nodes[top].parent;
        else
            other = topo->nodes[other].parent;
    if (topo->nodes[top].kind == NW_NODE_BRIDGE)
        return below_bridge(topo, a, b, top);
    if (nw_topo_on_other_hosts(topo, a, b))
        return NW_CLASS_UNKNOWN;
    switch (compare_numa(topo, a, b)) {
    case DIFFERENT:
        return NW_CLASS_SYS;
    case SAME: /* below different host bridges, or the source does not show them */
        return has_host_bridge(topo, a) && has_host_bridge(topo, b) ? NW_CLASS_NODE
                                                                    : NW_CLASS_UNKNOWN;
    default:
        return NW_CLASS_UNKNOWN;
    }
}

nw_class nw_topo_class(const struct nw_topo *topo, int a, int b, int *nvlinks_out)
{
    const struct nw_topo_link *link = nw_topo_link_between(topo, NW_LINK_NVLINK, a, b);
    int nvlinks = 0;
    nw_class class_id = link != NULL ? NW_CLASS_NV : NW_CLASS_UNKNOWN;

    if (link != NULL)
        nvlinks = link->lane_count;
    for (size_t i = 0; i < topo->stated_count; i++)
        if ((topo->stated[i].a == a && topo->stated[i].b == b) ||
            (topo->stated[i].a == b && topo->stated[i].b == a)) {
            class_id = topo->stated[i].class_id;
            nvlinks = topo->stated[i].nvlinks;
        }
    if (class_id == NW_CLASS_UNKNOWN)
        class_id = nw_topo_class_of_tree(topo, a, b);
    if (nvlinks_out != NULL)
        *nvlinks_out = nvlinks;
    return class_id;
}
