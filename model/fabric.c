/* Cost of a collective in a group of GPUs: measured, or the nearest thing that was.
 *
 * Order inside a node: a bandwidth that the user gave; the measured curve; another collective's by
 * ring equivalence; another rank count's by ring scaling; the datasheet's link rate; a curve over
 * nodes. Between nodes: a bandwidth that the user gave; the measured curve; the nearest node
 * count's. */
#include "model/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/coll.h"
#include "model/model.h"

const struct nw_scenario nw_scenario_likely = {
    .compute_scale = 1, .curve_end = 0, .overlap_loss = NAN, .inter_scale = 1};

/* A ring all-reduce is a reduce-scatter and an all-gather of the same buffer (Thakur et al. 2005);
 * libraries make the two overlap, so that each alone takes more than half. What is derived from a
 * reduction in switches (NVLS, SHARP), which gathers cannot use, is held to the link's rate. */
enum relation { SAME, HALF, WHOLE };

static const struct {
    const char *wanted, *from;
    enum relation relation;
} equivalents[] = {
    {"all_gather", "reduce_scatter", SAME},  {"all_gather", "all_reduce", HALF},
    {"reduce_scatter", "all_gather", SAME},  {"reduce_scatter", "all_reduce", HALF},
    {"all_reduce", "reduce_scatter", WHOLE}, {"all_reduce", "all_gather", WHOLE},
};

static double ratio_of(enum relation relation)
{
    const double half = nw_constants[NW_CONSTANT_GATHER_OF_REDUCE].value;

    return relation == SAME ? 1 : relation == HALF ? half : 1 / half;
}

struct found {
    const struct nw_curve *curve;
    double ratio; /* × its time */
    unsigned how;
};

static double ring_factor(const char *collective, int rank_count)
{
    return nw_coll_find(collective)->bus_factor(rank_count);
}

/* Hops that an empty message makes: libraries take a tree for small all-reduces, a ring else
 * (NCCL, src/graph/tuning.cc). */
static double hops(const char *collective, int rank_count)
{
    return strcmp(collective, "all_reduce") == 0 ? log2(rank_count) : rank_count - 1;
}

static const char *lane_of(const struct nw_fabric *fabric)
{
    return fabric->lane != NULL ? fabric->lane : nw_curves_lane(fabric->curves);
}

static bool has_curves(const struct nw_fabric *fabric)
{
    return fabric->curves != NULL && fabric->curves->count > 0;
}

static bool find_curve(const struct nw_fabric *fabric, const char *collective,
                       struct nw_group group, struct found *found_out)
{
    const char *lane = lane_of(fabric);
    const struct nw_curve *curve =
        nw_curves_find(fabric->curves, collective, lane, group.rank_count, group.host_count);

    if (curve != NULL) {
        *found_out = (struct found){.curve = curve, .ratio = 1};
        return true;
    }
    for (size_t i = 0; i < sizeof equivalents / sizeof equivalents[0]; i++) {
        if (strcmp(equivalents[i].wanted, collective) != 0)
            continue;
        curve = nw_curves_find(fabric->curves, equivalents[i].from, lane, group.rank_count,
                               group.host_count);
        if (curve != NULL) {
            *found_out = (struct found){
                .curve = curve, .ratio = ratio_of(equivalents[i].relation), .how = NW_COST_DERIVED};
            return true;
        }
    }
    return false;
}

static struct nw_cost cost_at(const struct found *found, double bytes)
{
    struct nw_curve_point point;
    unsigned how = found->how;

    if (nw_curve_time(found->curve, bytes, &point))
        how |= NW_COST_SIZE;
    if (!found->curve->has_interval)
        how |= NW_COST_NO_INTERVAL;
    if (found->curve->simulated)
        how |= NW_COST_SIMULATED;
    if (found->curve->hosts_guessed)
        how |= NW_COST_HOSTS;
    return (struct nw_cost){.time_ns = point.time_ns * found->ratio,
                            .low_ns = point.low_ns * found->ratio,
                            .high_ns = point.high_ns * found->ratio,
                            .how = how};
}

/* The interval widened by the errors of how the cost was come by, independent of each other. */
static struct nw_cost widened(struct nw_cost cost)
{
    static const struct {
        unsigned how;
        nw_constant error;
    } errors[] = {
        {NW_COST_DERIVED, NW_CONSTANT_DERIVED_ERROR}, {NW_COST_RANKS, NW_CONSTANT_RANKS_ERROR},
        {NW_COST_NODES, NW_CONSTANT_NODES_ERROR},     {NW_COST_DATASHEET, NW_CONSTANT_LINK_ERROR},
        {NW_COST_GIVEN, NW_CONSTANT_LINK_ERROR},
    };
    double below = 1 - cost.low_ns / cost.time_ns, above = cost.high_ns / cost.time_ns - 1;

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if ((cost.how & errors[i].how) == 0)
            continue;
        below = hypot(below, nw_constants[errors[i].error].value);
        above = hypot(above, nw_constants[errors[i].error].value);
    }
    cost.low_ns = cost.time_ns * fmax(1 - below, 0);
    cost.high_ns = cost.time_ns * (1 + above);
    return cost;
}

/* Ring scaling from the measured group to another: the latency with the hops, the rest with the
 * share of the buffer that each rank sends. */
static struct nw_cost rescaled(const struct found *found, const char *collective, double bytes,
                               int rank_count)
{
    struct nw_cost cost = cost_at(found, bytes);
    const int measured = found->curve->rank_count;
    const double alpha = fmin(found->curve->alpha_ns * found->ratio, cost.time_ns);
    const double time = alpha * hops(collective, rank_count) / hops(collective, measured) +
                        (cost.time_ns - alpha) * ring_factor(collective, rank_count) /
                            ring_factor(collective, measured);
    const double factor = time / cost.time_ns;

    cost.time_ns = time;
    cost.low_ns *= factor;
    cost.high_ns *= factor;
    return cost;
}

/* The measured group nearest to the wanted one, among one-host groups or among those over hosts:
 * the same GPUs per node first, then the nearest rank count in ratio. */
static bool find_nearest(const struct nw_fabric *fabric, const char *collective,
                         struct nw_group wanted, bool over_hosts, struct found *found_out)
{
    bool any = false;
    double best = INFINITY;

    for (size_t i = 0; i < fabric->curves->count; i++) {
        const struct nw_curve *curve = &fabric->curves->items[i];
        const struct nw_group group = {.rank_count = curve->rank_count,
                                       .host_count = curve->host_count};
        struct found found;

        if ((group.host_count > 1) != over_hosts || !find_curve(fabric, collective, group, &found))
            continue;
        const bool same =
            group.rank_count * wanted.host_count == wanted.rank_count * group.host_count;
        const double distance =
            fabs(log((double)wanted.rank_count / group.rank_count)) +
            (over_hosts ? fabs(log((double)wanted.host_count / group.host_count)) : 0) +
            (found.how != 0 ? 0.1 : 0) + (over_hosts && !same ? 100 : 0);

        if (distance < best) {
            best = distance;
            any = true;
            *found_out = found;
        }
    }
    return any;
}

/* latency + bytes × factor / busbw. */
static struct nw_cost from_rate(const char *collective, double bytes, int rank_count,
                                double busbw_bytes_per_s, double latency_ns, unsigned how)
{
    const double time =
        latency_ns + bytes * ring_factor(collective, rank_count) / busbw_bytes_per_s * 1e9;

    return (struct nw_cost){.time_ns = time, .low_ns = time, .high_ns = time, .how = how};
}

static nw_rc inside_node(const struct nw_fabric *fabric, const char *collective, double bytes,
                         struct nw_group group, struct nw_cost *cost_out)
{
    const bool given = fabric->intra_busbw_bytes_per_s > 0;
    struct found found;

    if (given && !fabric->intra_from_datasheet) {
        *cost_out = from_rate(collective, bytes, group.rank_count, fabric->intra_busbw_bytes_per_s,
                              nw_constants[NW_CONSTANT_LINK_LATENCY_NS].value, NW_COST_GIVEN);
        return NW_OK;
    }
    if (has_curves(fabric) && find_curve(fabric, collective, group, &found)) {
        *cost_out = cost_at(&found, bytes);
        return NW_OK;
    }
    if (has_curves(fabric) && find_nearest(fabric, collective, group, false, &found)) {
        *cost_out = rescaled(&found, collective, bytes, group.rank_count);
        cost_out->how |= NW_COST_RANKS;
        return NW_OK;
    }
    if (given) {
        *cost_out = from_rate(collective, bytes, group.rank_count, fabric->intra_busbw_bytes_per_s,
                              nw_constants[NW_CONSTANT_LINK_LATENCY_NS].value, NW_COST_DATASHEET);
        return NW_OK;
    }
    if (has_curves(fabric) && find_nearest(fabric, collective, group, true, &found)) {
        *cost_out = rescaled(&found, collective, bytes, group.rank_count);
        cost_out->how |= NW_COST_RANKS | NW_COST_NODES;
        return NW_OK;
    }
    return nw_fail(NW_ENODEV,
                   "what %d ranks of one node need for %s was not measured; give results with it, "
                   "--gpu or --intra-node GB/s",
                   group.rank_count, collective);
}

/* What the same message would cost if only the links inside the nodes counted; 0: nothing known, or
 * one rank per node. */
static double floor_ns(const struct nw_fabric *fabric, const char *collective, double bytes,
                       struct nw_group group)
{
    const struct nw_group node = {.rank_count = group.rank_count / group.host_count,
                                  .host_count = 1};
    struct nw_cost cost;

    if (node.rank_count < 2 || (!(fabric->intra_busbw_bytes_per_s > 0) &&
                                !(has_curves(fabric) && find_nearest(fabric, collective, node,
                                                                     false, &(struct found){0}))))
        return 0;
    if (inside_node(fabric, collective, bytes, node, &cost) != NW_OK)
        return 0;
    return cost.time_ns * ring_factor(collective, group.rank_count) /
           ring_factor(collective, node.rank_count);
}

static nw_rc over_nodes(const struct nw_fabric *fabric, const char *collective, double bytes,
                        struct nw_group group, double inter_scale, struct nw_cost *cost_out)
{
    const double floor = floor_ns(fabric, collective, bytes, group);
    struct nw_cost cost;
    struct found found;
    double least;

    if (fabric->inter_busbw_bytes_per_s > 0) {
        cost = from_rate(collective, bytes, group.rank_count,
                         fabric->inter_busbw_bytes_per_s * inter_scale,
                         nw_constants[NW_CONSTANT_WIRE_LATENCY_NS].value, NW_COST_GIVEN);
        inter_scale = 1;
        least = floor;
    } else if (has_curves(fabric) && find_curve(fabric, collective, group, &found)) {
        cost = cost_at(&found, bytes);
        least = fmin(floor, cost.time_ns); /* what was measured stands */
    } else if (has_curves(fabric) && find_nearest(fabric, collective, group, true, &found)) {
        cost = rescaled(&found, collective, bytes, group.rank_count);
        cost.how |= NW_COST_NODES;
        least = floor;
    } else {
        return nw_fail(NW_ENODEV,
                       "nothing between nodes was measured; give results of two nodes or more, or "
                       "--inter-node GB/s");
    }
    const double factor = fmax(cost.time_ns / inter_scale, least) / cost.time_ns;

    cost.time_ns *= factor;
    cost.low_ns *= factor;
    cost.high_ns *= factor;
    *cost_out = cost;
    return NW_OK;
}

/* No GPU takes in a gather faster than its link: only an all-reduce added up in switches can read
 * more. */
static void bound_by_link(const struct nw_fabric *fabric, const char *collective, double bytes,
                          struct nw_group group, struct nw_cost *cost)
{
    if ((cost->how & NW_COST_DERIVED) == 0 || strcmp(collective, "all_reduce") == 0 ||
        !(fabric->link_bytes_per_s > 0) || group.rank_count <= group.host_count)
        return;
    const double least =
        bytes * ring_factor(collective, group.rank_count) / fabric->link_bytes_per_s * 1e9;

    if (cost->time_ns >= least)
        return;
    cost->low_ns *= least / cost->time_ns;
    cost->high_ns *= least / cost->time_ns;
    cost->time_ns = least;
}

nw_rc nw_fabric_cost(const struct nw_fabric *fabric, const char *collective, double bytes,
                     struct nw_group group, const struct nw_scenario *scenario,
                     struct nw_cost *cost_out)
{
    struct nw_cost cost = {0};

    if (group.rank_count >= 2 && bytes > 0) {
        if (group.host_count <= 1)
            NW_TRY(inside_node(fabric, collective, bytes, group, &cost));
        else
            NW_TRY(over_nodes(fabric, collective, bytes, group,
                              scenario != NULL ? scenario->inter_scale : 1, &cost));
        bound_by_link(fabric, collective, bytes, group, &cost);
        cost = widened(cost);
    }
    *cost_out = cost;
    return NW_OK;
}

bool nw_fabric_knows_inter(const struct nw_fabric *fabric)
{
    struct found found;

    return fabric->inter_busbw_bytes_per_s > 0 ||
           (has_curves(fabric) &&
            find_nearest(fabric, "all_reduce", (struct nw_group){.rank_count = 2, .host_count = 2},
                         true, &found));
}
