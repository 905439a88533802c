/* Which busbw fills a wire, by collective, algorithm and number of nodes.
 *
 * n GPUs, g on each of k nodes; W: what one GPU sends one way inside the node (all its NVLinks, or
 * its PCIe link); R: what a node sends to others. A collective of S bytes in time t has algbw S/t
 * and busbw = factor x algbw. What each wire carries per S, one way:
 *
 *   ring        every GPU sends busbw; every node's NICs too: busbw <= W, busbw <= R
 *   tree        inside a node a chain: every GPU sends S up and S down: algbw <= W/2;
 *               between nodes at best 2(k-1)/k S a node: algbw <= R k/(2(k-1))
 *   nvls        the switch reduces: S (n+1)/n a GPU: algbw <= W g/(g+1); between nodes as tree
 *   all-to-all  every GPU sends (n-1)/n S, of it (n-g)/n off the node: busbw <= W,
 *               busbw <= R/g (n-1)/(n-g)
 *   send/recv   to the next GPU: busbw <= W, and what one GPU's card carries
 *
 * Sources: nccl-tests doc/PERFORMANCE.md for ring; NVIDIA/nccl-tests#153 for NVLS; the rest by
 * counting bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/ceiling.h"

const struct nw_ceiling_coll_row nw_ceiling_collectives[] = {
    {"all_reduce", "ring"}, {"all_reduce", "tree"},     {"all_reduce", "nvls"},
    {"all_gather", "ring"}, {"reduce_scatter", "ring"}, {"alltoall", "pairs"},
    {"broadcast", "ring"},  {"reduce", "ring"},         {"sendrecv", "pairs"},
    {NULL, NULL},
};

double nw_ceiling_bus_factor(const char *collective, int rank_count)
{
    /* nccl-tests, doc/PERFORMANCE.md */
    static const struct {
        const char *name;
        int twice, all; /* 2(n-1)/n, (n-1)/n; else 1 */
    } rows[] = {{"all_reduce", 1, 0}, {"all_gather", 0, 0}, {"reduce_scatter", 0, 0},
                {"alltoall", 0, 0},   {"gather", 0, 0},     {"scatter", 0, 0},
                {"broadcast", 0, 1},  {"reduce", 0, 1},     {"sendrecv", 0, 1}};
    const double n = rank_count;

    for (size_t i = 0; i < sizeof rows / sizeof *rows && rank_count > 0; i++)
        if (strcmp(rows[i].name, collective) == 0)
            return rows[i].all ? 1 : rows[i].twice ? 2 * (n - 1) / n : (n - 1) / n;
    return NAN;
}

/* Inside the node. */
struct inside {
    int gpu_count;
    double bytes_per_s; /* of the slowest GPU; NAN: unknown */
    nw_link_kind link;  /* that joins all GPUs: NVLINK, XGMI, else PCI */
    bool switched;      /* NVLink through switches */
    double capability;  /* the least; NAN */
    const char *why;
};

/* Who stands for the group that a node is in. */
static int leader_of(int *leader, int node)
{
    while (leader[node] != node)
        node = leader[node] = leader[leader[node]];
    return node;
}

static void join(const struct nw_topo *topo, nw_link_kind kind, int *leader)
{
    for (int i = 0; i < (int)topo->node_count; i++)
        leader[i] = i;
    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == kind)
            leader[leader_of(leader, topo->links[i].a)] = leader_of(leader, topo->links[i].b);
    for (size_t i = 0; i < topo->stated_count && kind == NW_LINK_NVLINK; i++)
        if (topo->stated[i].class_id == NW_CLASS_NV)
            leader[leader_of(leader, topo->stated[i].a)] = leader_of(leader, topo->stated[i].b);
}

/* Do links of this kind join all GPUs, over others where need be? */
static bool joined(const struct nw_topo *topo, nw_link_kind kind)
{
    int *leader = calloc(topo->node_count, sizeof *leader);
    int first = -1;
    bool one = true;

    if (leader == NULL)
        return false;
    join(topo, kind, leader);
    for (int i = 0; i < (int)topo->node_count; i++) {
        if (topo->nodes[i].kind != NW_NODE_GPU)
            continue;
        if (first < 0)
            first = leader_of(leader, i);
        one &= leader_of(leader, i) == first;
    }
    free(leader);
    return one && first >= 0;
}

static double xgmi_of(const struct nw_topo *topo, int gpu)
{
    double sum = 0;

    for (const struct nw_topo_link *link = NULL;
         (link = nw_topo_next_link(topo, gpu, link)) != NULL;)
        if (link->kind == NW_LINK_XGMI) {
            if (!(link->bytes_per_s > 0))
                return NAN;
            sum += link->bytes_per_s;
        }
    return sum > 0 ? sum : NAN;
}

static void look_inside(const struct nw_topo *topo, struct inside *inside)
{
    *inside = (struct inside){.bytes_per_s = NAN, .capability = NAN, .why = "", .switched = true};
    inside->link = joined(topo, NW_LINK_NVLINK) ? NW_LINK_NVLINK
                   : joined(topo, NW_LINK_XGMI) ? NW_LINK_XGMI
                                                : NW_LINK_PCI;
    for (int i = 0; i < (int)topo->node_count; i++) {
        const double capability = nw_topo_number(topo, i, NW_FACT_CAPABILITY);
        bool switched = false;
        double rate;

        if (topo->nodes[i].kind != NW_NODE_GPU)
            continue;
        rate = inside->link == NW_LINK_NVLINK ? nw_ceiling_nvlink(topo, i, NULL, &switched)
               : inside->link == NW_LINK_XGMI ? xgmi_of(topo, i)
                                              : nw_ceiling_pcie(topo, i);
        inside->gpu_count++;
        inside->switched &= switched;
        if (isfinite(capability) && !(capability >= inside->capability))
            inside->capability = capability;
        if (isnan(rate))
            inside->why = inside->link != NW_LINK_PCI
                              ? "the rate of the links between the GPUs is not known"
                              : "the GPUs' PCIe links are not in this source";
        else if (!(rate >= inside->bytes_per_s))
            inside->bytes_per_s = rate;
    }
    if ((topo->gaps & NW_TOPO_NO_NVLINK) != 0 && inside->link == NW_LINK_PCI)
        inside->why = "whether NVLink joins the GPUs is not in this source";
    if (inside->why[0] != '\0')
        inside->bytes_per_s = NAN;
}

/* In a mesh a GPU sends to its next over the links of that pair only; the best pair bounds it. */
static void narrow_to_pairs(const struct nw_topo *topo, struct inside *inside)
{
    double best = 0;

    if (inside->link == NW_LINK_PCI || inside->switched || isnan(inside->bytes_per_s))
        return;
    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == inside->link && topo->links[i].bytes_per_s > best)
            best = topo->links[i].bytes_per_s;
    if (best > 0 && best < inside->bytes_per_s)
        inside->bytes_per_s = best;
}

/* Is the GPU new enough for NVLS? By capability, else by name. */
static bool has_nvls(const struct nw_topo *topo, const struct inside *inside)
{
    static const char *const names[] = {"H100", "H200",  "H800",  "H20",  "B200",
                                        "B300", "GB200", "GB300", "GH200"};

    if (inside->link != NW_LINK_NVLINK || !inside->switched || inside->gpu_count < 2)
        return false;
    if (isfinite(inside->capability))
        return inside->capability >= 90;
    for (size_t i = 0; i < topo->node_count; i++) {
        bool known = false;

        if (topo->nodes[i].kind != NW_NODE_GPU)
            continue;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            known |= strstr(topo->nodes[i].model, names[n]) != NULL;
        if (!known)
            return false;
    }
    return true;
}

/* busbw at which the wires inside, and those outside, are full. */
struct walls {
    double inside, outside;
    struct nw_efficiency in, out;
};

static const struct nw_efficiency unpublished = {NAN, NAN, ""};

static double outside_wall(const char *collective, const char *algorithm, double factor, int n,
                           int g, double node, double nic)
{
    const double k = (double)n / g;

    if (n == g)
        return INFINITY;
    if (strcmp(collective, "alltoall") == 0)
        return node / g * (n - 1) / (n - g);
    if (strcmp(collective, "sendrecv") == 0)
        return nic;
    if (strcmp(algorithm, "ring") == 0)
        return node;
    return factor * node * k / (2 * (k - 1));
}

static double inside_wall(const char *algorithm, double factor, int g, double wire)
{
    if (g < 2)
        return INFINITY;
    if (strcmp(algorithm, "tree") == 0)
        return factor * wire / 2;
    if (strcmp(algorithm, "nvls") == 0)
        return factor * wire * g / (g + 1);
    return wire;
}

static struct nw_efficiency inside_efficiency(const char *collective, const char *algorithm,
                                              nw_link_kind link)
{
    if (strcmp(algorithm, "tree") == 0 || link == NW_LINK_XGMI)
        return unpublished;
    if (link == NW_LINK_PCI)
        return nw_pcie_collective_efficiency();
    if (strcmp(algorithm, "nvls") == 0)
        return nw_nvlink_switch_efficiency();
    if (strcmp(collective, "alltoall") == 0)
        return nw_nvlink_alltoall_efficiency();
    if (strcmp(collective, "all_gather") == 0 || strcmp(collective, "reduce_scatter") == 0)
        return nw_nvlink_gather_efficiency();
    return nw_nvlink_collective_efficiency();
}

static struct nw_efficiency outside_efficiency(const char *collective)
{
    if (strcmp(collective, "alltoall") == 0)
        return nw_rdma_alltoall_efficiency();
    if (strcmp(collective, "sendrecv") == 0)
        return nw_rdma_efficiency();
    return nw_rdma_collective_efficiency();
}

static void fill(const struct walls *walls, const struct inside *inside,
                 struct nw_ceiling_collective *ceiling)
{
    const bool by_network = walls->outside < walls->inside;
    const double in_low = walls->in.low * walls->inside, in_high = walls->in.high * walls->inside;
    const double out_low = walls->out.low * walls->outside;
    const double out_high = walls->out.high * walls->outside;

    if (isnan(walls->inside) || isnan(walls->outside))
        return;
    ceiling->bus_bytes_per_s = by_network ? walls->outside : walls->inside;
    ceiling->bound = by_network ? "network" : nw_link_kind_title(inside->link);
    if (isinf(walls->outside)) {
        ceiling->low = in_low;
        ceiling->high = in_high;
        ceiling->source = walls->in.source;
    } else if (isnan(in_low) || out_high < in_low || isinf(walls->inside)) {
        /* Nothing published for the inside: good only where the network is far below it. */
        if (isnan(in_low) && walls->outside > walls->inside / 2)
            return;
        ceiling->low = out_low;
        ceiling->high = out_high;
        ceiling->source = walls->out.source;
    } else {
        ceiling->low = in_low < out_low ? in_low : out_low;
        ceiling->high = in_high < out_high ? in_high : out_high;
        ceiling->source = ceiling->low == out_low ? walls->out.source : walls->in.source;
    }
}

static bool is_row(const char *collective, const char *algorithm)
{
    for (size_t i = 0; nw_ceiling_collectives[i].collective != NULL; i++)
        if (strcmp(nw_ceiling_collectives[i].collective, collective) == 0 &&
            strcmp(nw_ceiling_collectives[i].algorithm, algorithm) == 0)
            return true;
    return false;
}

nw_rc nw_ceiling_collective(const struct nw_topo *topo, const struct nw_ceiling_network *network,
                            const char *collective, const char *algorithm, int host_count,
                            struct nw_ceiling_collective *ceiling_out)
{
    struct nw_ceiling_collective ceiling = {.collective = collective,
                                            .algorithm = algorithm,
                                            .host_count = host_count,
                                            .bus_bytes_per_s = NAN,
                                            .low = NAN,
                                            .high = NAN,
                                            .source = "",
                                            .bound = ""};
    struct inside inside;
    struct walls walls;
    double factor;
    int n;

    if (!is_row(collective, algorithm))
        return nw_fail(NW_ENOTSUP, "no ceiling for %s by %s", collective, algorithm);
    look_inside(topo, &inside);
    n = ceiling.gpu_count = inside.gpu_count * host_count;
    if (n < 2 || host_count < 1)
        return nw_fail(NW_ENOTSUP, "a collective needs two GPUs; here are %d", n);
    if (strcmp(algorithm, "nvls") == 0 && !has_nvls(topo, &inside))
        return nw_fail(NW_ENOTSUP, "NVLS needs NVSwitch and GPUs of compute capability 9 or newer");
    if (strcmp(algorithm, "pairs") == 0 && strcmp(collective, "sendrecv") == 0)
        narrow_to_pairs(topo, &inside);
    factor = nw_ceiling_bus_factor(collective, n);
    walls.inside = inside_wall(algorithm, factor, inside.gpu_count, inside.bytes_per_s);
    walls.outside = outside_wall(collective, algorithm, factor, n, inside.gpu_count,
                                 network->bytes_per_s, network->nic_bytes_per_s);
    walls.in = inside_efficiency(collective, algorithm, inside.link);
    walls.out = outside_efficiency(collective);
    fill(&walls, &inside, &ceiling);
    if (isnan(walls.inside))
        snprintf(ceiling.why, sizeof ceiling.why, "%s", inside.why);
    else if (isnan(walls.outside))
        snprintf(ceiling.why, sizeof ceiling.why, "%s", network->why);
    *ceiling_out = ceiling;
    return NW_OK;
}
