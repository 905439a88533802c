/* Algorithms as legs.
 *
 *   ring       n - 1 steps (all_reduce twice), of which k - 1 over the wire; every link and every
 *              node's NICs carry bytes x factor
 *   tree       all_reduce: up and down a chain in the node and a binary tree between nodes
 *              (Sanders et al. 2009, two trees: each node sends 2 bytes per byte)
 *   switch     NVLS: links carry (n + 1) / n; between nodes the tree (of two nodes each sends 1
 *              byte per byte, of three 1.5)
 *   pairs      all-to-all, send/recv, gather, scatter: straight from rank to rank
 *
 * Small messages carry flags beside the data (protocol LL): a short hop at less than half the rate.
 * Large ones (Simple) hand over whole chunks: a long hop at the full rate. NCCL 2.30,
 * src/graph/tuning.cc, has 6.6 us to start and 0.6 us a hop over NVLink with LL, 8.4 and 3.4 with
 * Simple; 14 us a hop between nodes with Simple, 25 for the switch; LL at half the rate. The hops
 * of LL in use are measured ones; ratios inside a node are NCCL's, those between nodes and LL's
 * rate those of published curves (10 nodes of H100: 10 us a hop; LL 0.41). */
#include "model/fabric.h"

#include <math.h>

static const double slow_links = 3.4 / 0.6, slow_wires = 1.5, slow_start = 8.4 / 6.6;
static const double small_rate = 0.41; /* published curves */
static const double switch_ns = 25e3;
static const double tree_share = 0.92;
/* A rank also copies its own part, at that share of the time that the links need for it: two ranks
 * of a switch reach 0.72 of the busbw that eight do in a gather, 0.88 in an all-reduce. */
static const double gather_copy = 0.5, reduce_copy = 0.3;
static const double pair_hops = 3.5; /* all-to-all in a node, whatever the count of ranks */
static const double peer_hops = 0.5; /* of all-to-all: of one more peer over the wire */
static const double pcie_pair = 1.6; /* two GPUs have a bridge for themselves */
static const double unknown_rate = 1e6;

double nw_level_factor(nw_coll_id coll, int rank_count)
{
    const double n = rank_count;

    switch (coll) {
    case NW_ALL_REDUCE:
        return (2 * (n - 1) + reduce_copy) / n;
    case NW_ALL_GATHER:
    case NW_REDUCE_SCATTER:
    case NW_ALLTOALL:
        return (n - 1 + gather_copy) / n;
    default:
        return nw_colls[coll].bus_factor(rank_count);
    }
}

double nw_level_share(const struct nw_levels *levels, struct nw_group group)
{
    const double local = nw_group_local(group);

    if (group.sharing > 1)
        return 1.0 / group.sharing;
    if (levels->nic_count <= 0 || levels->gpus_per_node <= 0)
        return 1;
    /* Alone, a GPU uses the NICs near it. */
    return fmin(1, local * fmax(1, (double)levels->nic_count / levels->gpus_per_node) /
                       levels->nic_count);
}

static double link_rate(const struct nw_levels *levels, int local_count)
{
    if (levels->pcie)
        return levels->link_rate * (local_count == 2 ? pcie_pair : 1);
    if (levels->mesh && local_count < levels->gpus_per_node)
        return levels->link_rate * (local_count - 1) / (levels->gpus_per_node - 1);
    return levels->link_rate;
}

static void add(struct nw_legs *legs, double alpha_ns, double beta_ns_per_byte)
{
    if (legs->count < NW_LEGS_MAX)
        legs->items[legs->count++] =
            (struct nw_leg){.alpha_ns = alpha_ns, .beta_ns_per_byte = beta_ns_per_byte};
}

/* Both protocols of one algorithm. */
static void add_both(struct nw_legs *legs, double links_ns, double wires_ns,
                     double beta_ns_per_byte)
{
    add(legs, legs->start_ns + links_ns + wires_ns, beta_ns_per_byte / small_rate);
    add(legs, legs->start_ns * slow_start + links_ns * slow_links + wires_ns * slow_wires,
        beta_ns_per_byte);
}

/* ns that `bytes` take; a rate that is unknown counts as very fast. */
static double over(double bytes, double rate)
{
    return bytes / fmin(rate, unknown_rate);
}

struct shape { /* of the group on this machine */
    int n, k, l;
    double link, wire; /* rates; INFINITY where it does not cross it */
    double link_hop_ns, wire_hop_ns;
};

static void ring(struct nw_legs *legs, nw_coll_id coll, const struct shape *at)
{
    const double turns = coll == NW_ALL_REDUCE ? 2 : 1;
    const double wires = turns * (at->k - 1);
    const double links = at->l > 1 ? turns * (at->n - 1) - wires : 0;

    add_both(legs, links * at->link_hop_ns, wires * at->wire_hop_ns,
             fmax(over(nw_level_factor(coll, at->n), at->link),
                  over(nw_colls[coll].bus_factor(at->n), at->wire)));
}

/* Bytes that the busiest node sends per byte of the buffer. */
static double tree_bytes(int host_count)
{
    return host_count <= 2 ? 1 : host_count == 3 ? 1.5 : 2;
}

static double depth(int host_count)
{
    return host_count > 1 ? ceil(log2(host_count)) : 0;
}

static void tree(struct nw_legs *legs, const struct shape *at)
{
    /* The library holds its trees to 2 bytes per byte, whatever the node count. */
    add_both(legs, 2 * (at->l - 1) * at->link_hop_ns, 2 * depth(at->k) * at->wire_hop_ns,
             over(2 / tree_share, fmin(at->link, at->wire)));
}

static void in_switch(struct nw_legs *legs, const struct shape *at, double switch_rate)
{
    const double inside = over((at->l + 1.0) / at->l, switch_rate);
    const double between = at->k > 1 ? over(tree_bytes(at->k), at->wire) : 0;

    add(legs, switch_ns + slow_wires * 2 * depth(at->k) * at->wire_hop_ns, fmax(inside, between));
}

static void pairs(struct nw_legs *legs, nw_coll_id coll, const struct shape *at)
{
    const int away = at->n - at->l;
    const double hops_ns = (at->l > 1 ? pair_hops * at->link_hop_ns : 0) +
                           (away > 0 ? at->wire_hop_ns * (1 + peer_hops * (away - 1)) : 0);
    const double inside = over(nw_level_factor(coll, at->n), at->link);
    /* All ranks of the node send what goes to others. */
    const double between = away > 0 ? over((double)away / at->n * at->l, at->wire) : 0;
    const double beta = fmax(inside, between);

    add(legs, legs->start_ns + hops_ns, beta / small_rate);
    add(legs, legs->start_ns * slow_start + hops_ns, beta);
}

/* One rank to another: over the wire where the group has several hosts, with its own part of it. */
static void one_hop(struct nw_legs *legs, const struct shape *at)
{
    const bool away = at->k > 1;

    add_both(legs, away ? 0 : at->link_hop_ns, away ? at->wire_hop_ns : 0,
             over(1, away ? at->wire : at->link));
}

void nw_legs_of(const struct nw_levels *levels, nw_coll_id coll, struct nw_group group,
                struct nw_legs *legs_out)
{
    const int hosts = nw_group_hosts(group), local = nw_group_local(group);
    const struct shape at = {
        .n = group.rank_count,
        .k = hosts,
        .l = local,
        .link = local > 1 ? link_rate(levels, local) : INFINITY,
        .wire = hosts > 1 ? levels->wire_rate * nw_level_share(levels, group) : INFINITY,
        .link_hop_ns = levels->link_hop_ns,
        .wire_hop_ns = levels->wire_hop_ns,
    };

    *legs_out = (struct nw_legs){.start_ns = levels->start_ns};
    switch (coll) {
    case NW_ALLTOALL:
    case NW_GATHER:
    case NW_SCATTER:
        pairs(legs_out, coll, &at);
        break;
    case NW_SENDRECV:
        one_hop(legs_out, &at);
        break;
    default:
        ring(legs_out, coll, &at);
    }
    if (coll != NW_ALL_REDUCE)
        return;
    if (hosts > 1)
        tree(legs_out, &at);
    if (levels->switch_rate > 0 && local > 2)
        in_switch(legs_out, &at, levels->switch_rate);
}

double nw_legs_time(const struct nw_legs *legs, double bytes)
{
    double least = INFINITY;

    for (int i = 0; i < legs->count; i++)
        least = fmin(least, legs->items[i].alpha_ns + legs->items[i].beta_ns_per_byte * bytes);
    return least;
}

double nw_legs_alpha(const struct nw_legs *legs)
{
    double least = INFINITY;

    for (int i = 0; i < legs->count; i++)
        least = fmin(least, legs->items[i].alpha_ns);
    return least;
}

double nw_legs_beta(const struct nw_legs *legs)
{
    double least = INFINITY;

    for (int i = 0; i < legs->count; i++)
        least = fmin(least, legs->items[i].beta_ns_per_byte);
    return least;
}
