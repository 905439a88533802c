/* Ceilings of pairs: NVLink by count and rate, PCIe by the slowest link of the path, the socket
 * link, a NIC's port. */
#include "topo/ceiling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

static int device_of(const struct nw_topo *topo, int node)
{
    while (node > 0 && topo->nodes[node].kind == NW_NODE_PORT)
        node = topo->nodes[node].parent;
    return node;
}

/* --- NVLink --- */

/* A driver reports the signal (25.781 GB/s on V100, 26.562 on H100 and H200, 53.125 on B200), of
 * which the product's figure is the payload. */
static double payload_of(double told)
{
    static const double pairs[][2] = {{25.781e9, 25e9}, {26.562e9, 25e9}, {53.125e9, 50e9}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (fabs(told / pairs[i][0] - 1) < 0.005)
            return pairs[i][1];
    return told;
}

/* One link: the product's rate, or the driver's where the product is unknown or the link runs
 * clearly slower. */
static double nvlink_rate(const struct nw_topo *topo, int gpu)
{
    const double told = payload_of(nw_topo_number(topo, gpu, NW_FACT_NVLINK_RATE));
    const double product = nw_nvlink_bytes_per_s_of(topo->nodes[gpu].model,
                                                    nw_topo_number(topo, gpu, NW_FACT_CAPABILITY));

    return isnan(product) || told < 0.9 * product ? told : product;
}

enum { NVLINKS_AT_MOST = 18 }; /* of one GPU, up to now */

double nw_ceiling_nvlink(const struct nw_topo *topo, int gpu, int *lane_count_out,
                         bool *switched_out)
{
    const double active = nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT);
    const double rate = nvlink_rate(topo, gpu);
    int sum = 0, most = 0, peers = 0, lanes;
    double bytes = 0, most_bytes = 0, found;
    bool switched = nw_topo_number(topo, gpu, NW_FACT_NVLINK_SWITCH) == 1;

    for (const struct nw_topo_link *link = NULL;
         (link = nw_topo_next_link(topo, gpu, link)) != NULL;) {
        if (link->kind != NW_LINK_NVLINK ||
            topo->nodes[link->a == gpu ? link->b : link->a].kind != NW_NODE_GPU)
            continue; /* POWER: links to the CPU */
        peers++;
        sum += link->lane_count;
        bytes += link->bytes_per_s;
        most = link->lane_count > most ? link->lane_count : most;
        most_bytes = link->bytes_per_s > most_bytes ? link->bytes_per_s : most_bytes;
    }
    for (size_t i = 0; i < topo->stated_count && peers == 0; i++) {
        const struct nw_topo_stated *stated = &topo->stated[i];

        if (stated->class_id != NW_CLASS_NV || (stated->a != gpu && stated->b != gpu))
            continue;
        sum += stated->nvlinks;
        most = stated->nvlinks > most ? stated->nvlinks : most;
    }
    /* To every peer as many links as to all of them: they share them through switches. */
    switched |= sum > NVLINKS_AT_MOST && most <= NVLINKS_AT_MOST;
    lanes = switched ? most : sum;
    if (active > 0 && (switched || sum == 0 || active < sum))
        lanes = (int)active;
    found = lanes > 0 && isfinite(rate) ? lanes * rate : switched ? most_bytes : bytes;
    if (lane_count_out != NULL)
        *lane_count_out = lanes;
    if (switched_out != NULL)
        *switched_out = switched;
    return found > 0 ? found : NAN;
}

static void of_nvlink(const struct nw_topo *topo, int a, int b, int lanes,
                      struct nw_ceiling *ceiling)
{
    const struct nw_topo_link *link = nw_topo_link_between(topo, NW_LINK_NVLINK, a, b);
    const struct nw_efficiency copy = nw_nvlink_copy_efficiency();
    const int gpu = topo->nodes[a].kind == NW_NODE_GPU ? a : b;
    double rate = nvlink_rate(topo, gpu);
    const int ends[] = {a, b};
    char text[32];

    for (int end = 0; end < 2 && lanes > 0; end++) { /* links that are down carry nothing */
        const double active = nw_topo_number(topo, ends[end], NW_FACT_NVLINK_COUNT);

        if (active >= 0 && active < lanes)
            lanes = (int)active;
    }
    ceiling->link = NW_LINK_NVLINK;
    ceiling->lane_count = lanes;
    if (isnan(rate) && lanes > 0 && link != NULL && link->lane_count > 0 && link->bytes_per_s > 0)
        rate = link->bytes_per_s / link->lane_count;
    if (lanes > 0 && isfinite(rate))
        ceiling->bytes_per_s = lanes * rate;
    else if (link != NULL && link->bytes_per_s > 0)
        ceiling->bytes_per_s = link->bytes_per_s;
    if (isnan(ceiling->bytes_per_s)) {
        snprintf(ceiling->why, sizeof ceiling->why, "the rate of an NVLink of %s is not known",
                 topo->nodes[gpu].name);
        return;
    }
    if (lanes > 0)
        snprintf(ceiling->by, sizeof ceiling->by, "%d NVLinks of %s GB/s", lanes,
                 nw_format_gb_per_s(text, ceiling->bytes_per_s / lanes));
    else
        snprintf(ceiling->by, sizeof ceiling->by, "NVLink");
    ceiling->low = copy.low * ceiling->bytes_per_s;
    ceiling->high = copy.high * ceiling->bytes_per_s;
    ceiling->source = copy.source;
}

/* XGMI has no published efficiency here. */
static bool of_xgmi(const struct nw_topo *topo, int a, int b, struct nw_ceiling *ceiling)
{
    const struct nw_topo_link *link = nw_topo_link_between(topo, NW_LINK_XGMI, a, b);

    if (link == NULL)
        return false;
    ceiling->link = NW_LINK_XGMI;
    ceiling->lane_count = link->lane_count;
    if (link->bytes_per_s > 0) {
        ceiling->bytes_per_s = link->bytes_per_s;
        snprintf(ceiling->by, sizeof ceiling->by, "%d XGMI link%s", link->lane_count,
                 link->lane_count == 1 ? "" : "s");
    } else {
        snprintf(ceiling->why, sizeof ceiling->why, "the rate of an XGMI link of %s is not known",
                 topo->nodes[a].name);
    }
    return true;
}

/* --- PCIe --- */

double nw_ceiling_pcie(const struct nw_topo *topo, int node)
{
    const struct nw_topo_node *at = &topo->nodes[node];
    double rate = at->link_max_bytes_per_s;

    /* Speed comes back when the device works; a width that is missing does not. */
    if (rate > 0 && at->link_lanes > 0 && at->link_max_lanes > at->link_lanes)
        rate *= (double)at->link_lanes / at->link_max_lanes;
    if (!(rate > 0))
        rate = at->link_bytes_per_s;
    return rate > 0 ? rate : NAN;
}

static int parent_bridge(const struct nw_topo *topo, int node)
{
    const int parent = topo->nodes[node].parent;

    return parent > 0 && topo->nodes[parent].kind == NW_NODE_BRIDGE ? parent : -1;
}

static int above(const struct nw_topo *topo, int node, nw_node_kind kind)
{
    while (node > 0 && topo->nodes[node].kind != kind)
        node = topo->nodes[node].parent;
    return node > 0 ? node : -1;
}

static int common_ancestor(const struct nw_topo *topo, int a, int b)
{
    while (a != b)
        if (a > b)
            a = topo->nodes[a].parent;
        else
            b = topo->nodes[b].parent;
    return a;
}

/* The slowest link from a device up to `top`; -1 to *at_out: none is known. The port above a device
 * says the same link where the device does not. */
static double slowest_below(const struct nw_topo *topo, int node, int top, int *at_out)
{
    double slowest = NAN;
    int at = node;

    *at_out = -1;
    for (; at > top && at > 0; at = topo->nodes[at].parent) {
        double rate = nw_ceiling_pcie(topo, at);

        if (topo->nodes[at].kind == NW_NODE_BRIDGE && topo->nodes[at].pci[0] == '\0')
            continue; /* a host bridge has no link */
        if (isnan(rate) && at == node && parent_bridge(topo, at) > 0)
            rate = nw_ceiling_pcie(topo, parent_bridge(topo, at));
        if (isnan(rate) && at == node)
            return NAN;
        if (isfinite(rate) && (isnan(slowest) || rate < slowest * (1 - 1e-9))) {
            slowest = rate;
            *at_out = at;
        }
        if (topo->nodes[topo->nodes[at].parent].kind != NW_NODE_BRIDGE)
            break;
    }
    return slowest;
}

static void name_pcie(const struct nw_topo *topo, int at, double rate, char *text, size_t size)
{
    int generation, lanes;
    char number[32];

    nw_pcie_from_rate(rate, &generation, &lanes);
    if (topo->nodes[at].link_max_lanes > 0) { /* Gen3 x16 is Gen4 x8 by rate */
        const double told = nw_topo_number(topo, at, NW_FACT_LINK_MAX_GENERATION);
        const int width = topo->nodes[at].link_lanes > 0 ? topo->nodes[at].link_lanes
                                                         : topo->nodes[at].link_max_lanes;

        if (told > 0) {
            generation = (int)told;
            lanes = width;
        }
    }
    if (generation > 0)
        snprintf(text, size, "PCIe Gen%d x%d at %.40s", generation, lanes, topo->nodes[at].name);
    else
        snprintf(text, size, "PCIe of %s GB/s at %.40s", nw_format_gb_per_s(number, rate),
                 topo->nodes[at].name);
}

/* --- sockets --- */

static const char *cpu_of(const struct nw_topo *topo)
{
    const char *told = nw_topo_text(topo, 0, NW_FACT_CPU);

    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_PACKAGE && topo->nodes[i].model[0] != '\0')
            return topo->nodes[i].model;
    return told != NULL ? told : "";
}

static bool is_grace(const struct nw_topo *topo, int gpu)
{
    return strstr(cpu_of(topo), "Grace") != NULL || strstr(topo->nodes[gpu].model, "GB200") ||
           strstr(topo->nodes[gpu].model, "GB300") || strstr(topo->nodes[gpu].model, "GH200");
}

/* A class SYS goes to another NUMA node, which may lie on the same package (NPS4, sub-NUMA
 * clusters), and on a Grace machine always reads SYS. */
static void add_sockets(const struct nw_topo *topo, int a, int b, struct nw_ceiling *ceiling)
{
    const int p = above(topo, a, NW_NODE_PACKAGE), q = above(topo, b, NW_NODE_PACKAGE);
    const struct nw_socket_link socket = nw_socket_link(cpu_of(topo));
    const double all = socket.link_count * socket.bytes_per_s;

    if (is_grace(topo, a) || is_grace(topo, b)) {
        snprintf(ceiling->why, sizeof ceiling->why,
                 "Grace: SYS is what the driver says of every NIC, also of those on the GPU's own "
                 "CPU");
        return;
    }
    if (p > 0 && p == q) {
        snprintf(ceiling->why, sizeof ceiling->why, "two NUMA nodes of one package");
        return;
    }
    if (isnan(socket.bytes_per_s)) {
        snprintf(ceiling->why, sizeof ceiling->why,
                 "the link between the sockets is not known (CPU: %.60s); it may carry less",
                 cpu_of(topo)[0] != '\0' ? cpu_of(topo) : "not in this source");
        return;
    }
    ceiling->socket_bytes_per_s = all;
    snprintf(ceiling->why, sizeof ceiling->why, "%s %d x %s",
             p > 0 && q > 0 ? "between the sockets at most" : "where it crosses sockets, at most",
             socket.link_count, socket.name);
    if (p > 0 && q > 0 && all < ceiling->bytes_per_s) {
        ceiling->bytes_per_s = all;
        snprintf(ceiling->by, sizeof ceiling->by, "%d x %s", socket.link_count, socket.name);
    }
}

/* --- a pair over PCIe --- */

static bool of_pcie(const struct nw_topo *topo, int a, int b, struct nw_ceiling *ceiling)
{
    const int top = common_ancestor(topo, a, b), ends[] = {a, b};
    const int limit = topo->nodes[top].kind == NW_NODE_BRIDGE ? top : 0;

    for (int end = 0; end < 2; end++) {
        int at;
        const double rate = slowest_below(topo, ends[end], limit, &at);

        if (isnan(rate)) {
            ceiling->bytes_per_s = NAN;
            ceiling->by[0] = '\0';
            snprintf(ceiling->why, sizeof ceiling->why, "the PCIe link of %s is not in this source",
                     topo->nodes[ends[end]].name);
            return false;
        }
        if (isnan(ceiling->bytes_per_s) || rate < ceiling->bytes_per_s * (1 - 1e-9)) {
            ceiling->bytes_per_s = rate;
            name_pcie(topo, at, rate, ceiling->by, sizeof ceiling->by);
        }
    }
    return true;
}

/* What the NIC's ports negotiated; a port by itself by its lanes. */
static double port_rate(const struct nw_topo *topo, int node)
{
    const double width = nw_topo_number(topo, node, NW_FACT_WIDTH);
    const double lane = nw_topo_number(topo, node, NW_FACT_LANE_RATE);
    const struct nw_topo_node *nic = &topo->nodes[device_of(topo, node)];

    if (topo->nodes[node].kind == NW_NODE_PORT && topo->nodes[node].rate_bits_per_s > 0)
        return topo->nodes[node].rate_bits_per_s / 8;
    if (topo->nodes[node].kind == NW_NODE_PORT && width * lane > 0)
        return width * lane / 8;
    return nic->rate_bits_per_s > 0 ? nic->rate_bits_per_s / 8 : NAN;
}

static void of_nic(const struct nw_topo *topo, int node, bool pcie_known,
                   struct nw_ceiling *ceiling)
{
    const double rate = port_rate(topo, node);

    if (isnan(rate)) {
        if (ceiling->why[0] == '\0')
            snprintf(ceiling->why, sizeof ceiling->why, "the rate of %s is not in this source",
                     topo->nodes[node].name);
        return;
    }
    if (pcie_known && ceiling->bytes_per_s <= rate)
        return;
    ceiling->bytes_per_s = rate;
    snprintf(ceiling->by, sizeof ceiling->by, "rate of %.60s", topo->nodes[node].name);
    if (!pcie_known)
        snprintf(ceiling->why, sizeof ceiling->why,
                 "its PCIe link is not in this source and may carry less");
}

static void expect(const struct nw_topo *topo, int nic, struct nw_ceiling *ceiling)
{
    const bool near = ceiling->class_id == NW_CLASS_PIX || ceiling->class_id == NW_CLASS_PXB;
    struct nw_efficiency efficiency = nw_pcie_peer_efficiency(near);

    if (isnan(ceiling->bytes_per_s) || ceiling->class_id == NW_CLASS_SELF)
        return;
    if (nic >= 0 && isnan(port_rate(topo, nic)))
        return; /* the PCIe link bounds it from above; what the port carries is unknown */
    if (nic >= 0 && !near)
        efficiency = nw_rdma_far_efficiency();
    else if (nic >= 0 && strncmp(ceiling->by, "rate", 4) == 0)
        efficiency = nw_rdma_efficiency();
    if (nic >= 0 && strcmp(topo->nodes[device_of(topo, nic)].fabric, "ethernet") == 0)
        efficiency = nw_tcp_efficiency();
    ceiling->low = efficiency.low * ceiling->bytes_per_s;
    ceiling->high = efficiency.high * ceiling->bytes_per_s;
    ceiling->source = efficiency.source;
}

void nw_ceiling_pair(const struct nw_topo *topo, int a, int b, struct nw_ceiling *ceiling_out)
{
    const int x = device_of(topo, a), y = device_of(topo, b);
    const int nic = topo->nodes[x].kind == NW_NODE_NIC   ? a
                    : topo->nodes[y].kind == NW_NODE_NIC ? b
                                                         : -1;
    struct nw_ceiling ceiling = {.link = NW_LINK_PCI,
                                 .bytes_per_s = NAN,
                                 .low = NAN,
                                 .high = NAN,
                                 .source = "",
                                 .socket_bytes_per_s = NAN};
    int lanes = 0;
    bool known;

    ceiling.class_id = nw_topo_class(topo, x, y, &lanes);
    if (ceiling.class_id == NW_CLASS_NV) {
        of_nvlink(topo, x, y, lanes, &ceiling);
    } else if (x != y && !of_xgmi(topo, x, y, &ceiling)) {
        known = of_pcie(topo, x, y, &ceiling);
        if (known && ceiling.class_id == NW_CLASS_SYS)
            add_sockets(topo, x, y, &ceiling);
        if (nic >= 0)
            of_nic(topo, nic, known, &ceiling);
        expect(topo, nic, &ceiling);
    }
    *ceiling_out = ceiling;
}
