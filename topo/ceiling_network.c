/* What a node can send: the negotiated rates of its physical RDMA ports near GPUs, each counted
 * once, no card more than its PCIe link carries. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/ceiling.h"

enum { NEAR, ON_NODE, FAR, RANKS }; /* of a NIC to its nearest GPU */

struct nic {
    int node, rank;
    bool counted;
    const char *out; /* why it does not count; NULL: it does */
};

struct network {
    const struct nw_topo *topo;
    struct nic *nics;
    int count;
};

static bool carries_rdma(const struct nw_topo_node *nic)
{
    return strcmp(nic->fabric, "ethernet") != 0 && strcmp(nic->fabric, "wifi") != 0;
}

static int rank_of(nw_class class_id)
{
    switch (class_id) {
    case NW_CLASS_SELF:
    case NW_CLASS_PIX:
    case NW_CLASS_PXB:
        return NEAR;
    case NW_CLASS_SYS:
        return FAR;
    default:
        return ON_NODE; /* or unknown: not to be held against it */
    }
}

/* A GPU that is no PCI device of this list (integrated) does not come into it. */
static int nearest_rank(const struct nw_topo *topo, int nic)
{
    int best = RANKS;

    for (int i = 0; i < (int)topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU) {
            const int rank = rank_of(nw_topo_class(topo, i, nic, NULL));

            best = rank < best ? rank : best;
        }
    return best;
}

/* --- one card, one port --- */

static const char *card_of(const struct nw_topo *topo, int nic)
{
    const char *guid = nw_topo_text(topo, nic, NW_FACT_SYSTEM_GUID);

    return guid != NULL ? guid : nw_topo_text(topo, nic, NW_FACT_CARD);
}

static const char *port_guid_of(const struct nw_topo *topo, int nic)
{
    for (size_t i = (size_t)nic + 1; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_PORT && topo->nodes[i].parent == nic)
            return nw_topo_text(topo, (int)i, NW_FACT_PORT_GUID);
    return NULL;
}

static bool same_slot(const struct nw_topo_node *a, const struct nw_topo_node *b)
{
    const size_t length = strlen(a->pci);

    return length > 2 && strlen(b->pci) == length && strncmp(a->pci, b->pci, length - 2) == 0;
}

static bool on_one_card(const struct nw_topo *topo, int a, int b)
{
    const char *x = card_of(topo, a), *y = card_of(topo, b);

    if (nw_topo_on_other_hosts(topo, a, b))
        return false;
    if (same_slot(&topo->nodes[a], &topo->nodes[b]))
        return true;
    return x != NULL && y != NULL && strcmp(x, y) == 0;
}

/* Do two devices end on one cable? Equal port GUIDs; or one card with two PCIe connections
 * (Socket Direct, multi-host), whose functions of equal number share a port. Functions of one slot
 * are a port each. */
static bool is_same_port(const struct nw_topo *topo, int a, int b)
{
    const struct nw_topo_node *x = &topo->nodes[a], *y = &topo->nodes[b];
    const char *guid_x = port_guid_of(topo, a), *guid_y = port_guid_of(topo, b);
    const double port_x = nw_topo_number(topo, a, NW_FACT_CARD_PORT);
    const double port_y = nw_topo_number(topo, b, NW_FACT_CARD_PORT);

    if (guid_x != NULL && guid_y != NULL && strcmp(guid_x, guid_y) == 0)
        return !nw_topo_on_other_hosts(topo, a, b);
    if (card_of(topo, a) == NULL || !on_one_card(topo, a, b) || same_slot(x, y))
        return false;
    if (isfinite(port_x) && isfinite(port_y))
        return port_x == port_y;
    return x->pci[0] != '\0' && y->pci[0] != '\0' &&
           x->pci[strlen(x->pci) - 1] == y->pci[strlen(y->pci) - 1];
}

/* --- which count --- */

static void leave_out(struct network *network)
{
    int best = RANKS;

    for (int i = 0; i < network->count; i++) {
        struct nic *nic = &network->nics[i];

        if (!carries_rdma(&network->topo->nodes[nic->node]))
            nic->out = "no RDMA";
        else if (network->topo->nodes[nic->node].port_up == 0)
            nic->out = "port down";
        else
            best = nic->rank < best ? nic->rank : best;
    }
    for (int i = 0; i < network->count; i++) {
        struct nic *nic = &network->nics[i];

        if (nic->out == NULL && nic->rank > best)
            nic->out = best == NEAR ? "near no GPU, while others are" : "far from all GPUs";
        for (int j = 0; j < i && nic->out == NULL; j++)
            if (network->nics[j].out == NULL &&
                is_same_port(network->topo, network->nics[j].node, nic->node))
                nic->out = "same port as another function";
    }
}

/* Where every GPU has a fast NIC, the slow ones beside them are for something else (a dump of a
 * virtual machine shows all at one distance). A slow one in place of a fast one counts: its cable
 * or port is what to look at. */
static void leave_out_slow(struct network *network)
{
    const int gpus = nw_topo_count(network->topo, NW_NODE_GPU);
    double fastest = 0;
    int count = 0;

    for (int i = 0; i < network->count; i++) {
        const double rate = network->topo->nodes[network->nics[i].node].rate_bits_per_s;

        if (network->nics[i].out != NULL || rate < fastest)
            continue;
        count = rate > fastest ? 1 : count + 1;
        fastest = rate;
    }
    for (int i = 0; i < network->count && gpus > 0 && count >= gpus; i++) {
        const double rate = network->topo->nodes[network->nics[i].node].rate_bits_per_s;

        if (network->nics[i].out == NULL && rate > 0 && rate <= fastest / 2)
            network->nics[i].out = "half as fast as the others, or less";
    }
}

static void append(char *text, size_t size, const char *name, const char *why)
{
    const size_t length = strlen(text);

    if (length + strlen(name) + (why != NULL ? strlen(why) + 3 : 0) + 6 > size) {
        if (length + 5 < size && (length < 3 || strcmp(text + length - 3, "…") != 0))
            snprintf(text + length, size - length, "%s", length > 0 ? ", …" : "…");
        return;
    }
    snprintf(text + length, size - length, "%s%s%s%s%s", length > 0 ? ", " : "", name,
             why != NULL ? " (" : "", why != NULL ? why : "", why != NULL ? ")" : "");
}

/* The ports of a card from the i-th NIC on, together, and no more than its PCIe links carry. */
static double card_rate(struct network *network, int from, const char **unknown_out)
{
    const struct nw_topo *topo = network->topo;
    const int first = network->nics[from].node;
    double ports = 0, links = 0, link_of_slot = NAN;

    for (int i = from; i < network->count; i++) {
        struct nic *nic = &network->nics[i];
        const struct nw_topo_node *node = &topo->nodes[nic->node];
        const double link = nw_ceiling_pcie(topo, nic->node);

        if (nic->node != first && !on_one_card(topo, first, nic->node))
            continue;
        if (nic->node == first)
            link_of_slot = link;
        else if (node->pci[0] != '\0' && !same_slot(&topo->nodes[first], node))
            links += link; /* a second PCIe connection; NAN spreads: then no bound */
        if (nic->out != NULL || nic->counted)
            continue;
        nic->counted = true;
        if (!(node->rate_bits_per_s > 0)) {
            if (*unknown_out == NULL)
                *unknown_out = node->name;
            return NAN;
        }
        ports += node->rate_bits_per_s / 8;
    }
    links += link_of_slot;
    return links > 0 && links < ports ? links : ports;
}

static void sum_up(struct network *network, struct nw_ceiling_network *sum)
{
    const char *unknown = NULL;
    double total = 0;

    for (int i = 0; i < network->count; i++) {
        struct nic *nic = &network->nics[i];
        const char *name = network->topo->nodes[nic->node].name;
        double card;

        if (nic->out != NULL) {
            sum->left_out_count++;
            append(sum->left_out, sizeof sum->left_out, name, nic->out);
            continue;
        }
        sum->port_count++;
        append(sum->ports, sizeof sum->ports, name, NULL);
        if (nic->counted)
            continue;
        card = card_rate(network, i, &unknown);
        total += card;
        if (!(card <= sum->nic_bytes_per_s))
            sum->nic_bytes_per_s = card;
    }
    sum->bytes_per_s = sum->port_count > 0 && unknown == NULL ? total : NAN;
    if (unknown != NULL)
        snprintf(sum->why, sizeof sum->why, "the rate of %.60s is not in this source", unknown);
    else if (sum->port_count == 0)
        snprintf(sum->why, sizeof sum->why, "%s",
                 (network->topo->gaps & (NW_TOPO_NO_IO | NW_TOPO_PARTIAL)) != 0
                     ? "no RDMA port in this source"
                     : "no active RDMA port");
}

void nw_ceiling_network(const struct nw_topo *topo, struct nw_ceiling_network *network_out)
{
    struct network network = {.topo = topo, .nics = calloc(topo->node_count, sizeof *network.nics)};
    struct nw_ceiling_network sum = {.bytes_per_s = NAN, .nic_bytes_per_s = NAN};

    if (network.nics == NULL) {
        snprintf(sum.why, sizeof sum.why, "out of memory");
        *network_out = sum;
        return;
    }
    for (int i = 0; i < (int)topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC)
            network.nics[network.count++] = (struct nic){.node = i, .rank = nearest_rank(topo, i)};
    leave_out(&network);
    leave_out_slow(&network);
    sum_up(&network, &sum);
    free(network.nics);
    *network_out = sum;
}
