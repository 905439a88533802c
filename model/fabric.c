/* Cost of a collective in a group of GPUs: measured, or the nearest thing that was.
 *
 * Inside a node: a bandwidth that the user gave; the measured curve, or the one that says most of
 * this group (fabric_curve.c); the datasheet's link (fabric_spec.c); a curve over nodes. Between
 * nodes: a bandwidth that the user gave; a measured curve over nodes; the NICs' line rate. */
#include "model/fabric.h"

#include <math.h>
#include <string.h>

#include "model/model.h"

const struct nw_scenario nw_scenario_likely = {
    .compute_scale = 1, .curve_end = 0, .overlap_loss = NAN, .inter_scale = 1};

/* A bandwidth that was given holds for all sizes: the shortest latency, then bytes / rate. */
static void from_rate(struct nw_levels levels, nw_coll_id coll, struct nw_group group,
                      double busbw_bytes_per_s, bool between, struct nw_line_part *part_out)
{
    struct nw_legs legs;
    const double share = between ? nw_level_share(&levels, group) : 1;

    nw_legs_of(&levels, coll, group, &legs);
    *part_out = (struct nw_line_part){.legs.count = 1};
    part_out->legs.items[0] =
        (struct nw_leg){.alpha_ns = nw_legs_alpha(&legs),
                        .beta_ns_per_byte = nw_colls[coll].bus_factor(group.rank_count) /
                                            (busbw_bytes_per_s * share) * 1e9};
}

static bool is_given(const struct nw_fabric *fabric)
{
    return fabric->intra_busbw_bytes_per_s > 0 && !fabric->intra_from_datasheet;
}

static bool inside_node(const struct nw_fabric *fabric, nw_coll_id coll, struct nw_group group,
                        struct nw_line_part *part_out, unsigned *how_out)
{
    const struct nw_group here = {.rank_count = group.rank_count, .host_count = 1};

    if (is_given(fabric)) {
        from_rate(nw_levels_of_datasheet(fabric), coll, here, fabric->intra_busbw_bytes_per_s,
                  false, part_out);
        *how_out = NW_COST_GIVEN;
        return true;
    }
    if (nw_fabric_from_curves(fabric, coll, here, false, part_out, how_out))
        return true;
    const struct nw_levels levels = nw_levels_of_datasheet(fabric);

    if (isfinite(levels.link_rate)) {
        *part_out = (struct nw_line_part){0};
        nw_legs_of(&levels, coll, here, &part_out->legs);
        *how_out = NW_COST_DATASHEET;
        return true;
    }
    if (!nw_fabric_from_curves(fabric, coll, here, true, part_out, how_out))
        return false;
    *how_out |= NW_COST_RANKS | NW_COST_NODES;
    return true;
}

/* What the same message would cost if only the links inside the nodes counted. */
static void add_floor(const struct nw_fabric *fabric, nw_coll_id coll, struct nw_group group,
                      struct nw_line *line)
{
    const struct nw_group node = {.rank_count = nw_group_local(group), .host_count = 1};
    const char *lane = nw_fabric_lane(fabric);
    unsigned how;
    bool known = fabric->intra_busbw_bytes_per_s > 0 || fabric->link_bytes_per_s > 0;

    for (size_t i = 0; !known && lane != NULL && i < fabric->curves->count; i++)
        known = fabric->curves->items[i].host_count == 1 &&
                strcmp(fabric->curves->items[i].lane, lane) == 0;
    if (node.rank_count < 2 || !known || !inside_node(fabric, coll, node, &line->floor, &how))
        return;
    line->has_floor = true;
    line->floor_factor =
        nw_level_factor(coll, group.rank_count) / nw_level_factor(coll, node.rank_count);
}

/* Nodes that links join count as one: the group as it lies on such racks, and how many nodes one
 * has. */
static struct nw_group on_racks(const struct nw_fabric *fabric, struct nw_group group,
                                int *nodes_out)
{
    const int per_node = fabric->gpus_per_node > 0 ? fabric->gpus_per_node : 1;
    const int nodes = fabric->link_domain / per_node > 1 ? fabric->link_domain / per_node : 1;
    const int span = group.host_span > group.host_count ? group.host_span : nw_group_hosts(group);
    const int racks = (span + nodes - 1) / nodes;
    struct nw_group seen = group;

    *nodes_out = nodes;
    if (nodes == 1 || nw_group_hosts(group) == 1)
        return group;
    seen.host_count = racks < group.rank_count ? racks : group.rank_count;
    seen.sharing = nodes * per_node / nw_group_local(seen);
    return seen;
}

static nw_rc by_line_rate(const struct nw_fabric *fabric, nw_coll_id coll, struct nw_group group,
                          double inter_scale, struct nw_line *line, bool *between_out)
{
    struct nw_levels levels = nw_fabric_levels(fabric);
    int nodes;
    const struct nw_group seen = on_racks(fabric, group, &nodes);

    line->divide = 1;
    *between_out = nw_group_hosts(seen) > 1;
    if (!*between_out && inside_node(fabric, coll, seen, &line->part, &line->how))
        return NW_OK;
    if (!isfinite(levels.wire_rate))
        return nw_fail(NW_ENODEV,
                       "nothing between nodes was measured; give results of two nodes or more, "
                       "--inter-node GB/s or --nic-gbps");
    levels.gpus_per_node *= nodes;
    levels.nic_count *= nodes;
    levels.wire_rate *= inter_scale * nodes;
    nw_legs_of(&levels, coll, seen, &line->part.legs);
    line->how = NW_COST_DATASHEET | NW_COST_WIRE;
    return NW_OK;
}

static nw_rc over_nodes(const struct nw_fabric *fabric, nw_coll_id coll, struct nw_group group,
                        double inter_scale, struct nw_line *line, bool *between_out)
{
    *between_out = true;
    line->divide = inter_scale;
    if (fabric->inter_busbw_bytes_per_s > 0) {
        from_rate(nw_levels_of_datasheet(fabric), coll, group,
                  fabric->inter_busbw_bytes_per_s * inter_scale, true, &line->part);
        line->how = NW_COST_GIVEN;
        line->divide = 1;
        add_floor(fabric, coll, group, line);
        return NW_OK;
    }
    if (nw_fabric_from_curves(fabric, coll, group, true, &line->part, &line->how)) {
        line->floor_stands = (line->how & (NW_COST_DERIVED | NW_COST_RANKS | NW_COST_NODES)) == 0;
        if (!line->floor_stands || inter_scale > 1)
            add_floor(fabric, coll, group, line);
        return NW_OK;
    }
    return by_line_rate(fabric, coll, group, inter_scale, line, between_out);
}

/* Errors of how the cost was come by, independent of each other. `hop`: of the latency, where it
 * differs. */
static void widen(const struct nw_fabric *fabric, nw_coll_id coll, bool over_nodes,
                  struct nw_line *line)
{
    const bool pairs = coll == NW_ALLTOALL || coll == NW_SENDRECV;
    const nw_constant inside =
        fabric->link_is_pcie ? NW_CONSTANT_PCIE_ERROR : NW_CONSTANT_LINK_ERROR;
    const struct {
        unsigned how;
        nw_constant error, hop;
    } rows[] = {
        {NW_COST_DERIVED, pairs ? NW_CONSTANT_PAIRS_ERROR : NW_CONSTANT_DERIVED_ERROR,
         over_nodes ? NW_CONSTANT_HOP_ERROR : NW_CONSTANT_DERIVED_ERROR},
        {NW_COST_RANKS, fabric->link_is_pcie && !over_nodes ? inside : NW_CONSTANT_RANKS_ERROR,
         NW_CONSTANT_RANKS_ERROR},
        {NW_COST_NODES, NW_CONSTANT_NODES_ERROR, NW_CONSTANT_NODES_ERROR},
        {NW_COST_SHARED, NW_CONSTANT_DERIVED_ERROR, NW_CONSTANT_DERIVED_ERROR},
        {NW_COST_GIVEN, NW_CONSTANT_LINK_ERROR, NW_CONSTANT_LINK_ERROR},
        {NW_COST_DATASHEET, over_nodes ? NW_CONSTANT_WIRE_ERROR : inside,
         over_nodes ? NW_CONSTANT_HOP_ERROR : inside},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((line->how & rows[i].how) == 0)
            continue;
        line->error = hypot(line->error, nw_fabric_constant(fabric, rows[i].error));
        line->hop_error = hypot(line->hop_error, nw_fabric_constant(fabric, rows[i].hop));
    }
}

/* No GPU takes in a gather faster than its link: only an all-reduce added up in switches can read
 * more. */
static double least_by_link(const struct nw_fabric *fabric, nw_coll_id coll, struct nw_group group,
                            unsigned how)
{
    const bool through_link = nw_group_local(group) > 1;

    if ((how & NW_COST_DERIVED) == 0 || coll == NW_ALL_REDUCE || !(fabric->link_bytes_per_s > 0) ||
        !through_link)
        return 0;
    return nw_colls[coll].bus_factor(group.rank_count) / fabric->link_bytes_per_s * 1e9;
}

static double alpha_of(const struct nw_line_part *part)
{
    const struct nw_curve_transfer *from = &part->from[0];

    return part->from_count == 0
               ? nw_legs_alpha(&part->legs)
               : from->start_ns + from->stretch * (from->curve->alpha_ns - from->start_ns);
}

nw_rc nw_fabric_prepare(const struct nw_fabric *fabric, const char *collective,
                        struct nw_group group, const struct nw_scenario *scenario,
                        struct nw_line *line_out)
{
    const struct nw_coll *coll = nw_coll_find(collective);
    struct nw_line line = {.divide = 1, .end = scenario != NULL ? scenario->curve_end : 0};
    bool between = false;

    if (coll == NULL)
        return nw_fail(NW_EUSAGE, "\"%.40s\" is no collective", collective);
    if (group.rank_count < 2) {
        line.is_nothing = true;
        *line_out = line;
        return NW_OK;
    }
    if (nw_group_hosts(group) > 1)
        NW_TRY(over_nodes(fabric, coll->id, group, scenario != NULL ? scenario->inter_scale : 1,
                          &line, &between));
    else if (!inside_node(fabric, coll->id, group, &line.part, &line.how))
        return nw_fail(NW_ENODEV,
                       "what %d ranks of one node need for %s was not measured; give results with "
                       "it, --gpu or --intra-node GB/s",
                       group.rank_count, collective);
    line.least_ns_per_byte = least_by_link(fabric, coll->id, group, line.how);
    line.alpha_ns = alpha_of(&line.part);
    widen(fabric, coll->id, between, &line);
    *line_out = line;
    return NW_OK;
}

/* ---- reading off --------------------------------------------------------------------------- */

static bool is_as_measured(const struct nw_curve_transfer *from)
{
    return from->stretch == 1 && from->squeeze == 1;
}

static double taken_over(const struct nw_curve_transfer *from, double time_ns)
{
    return from->start_ns + from->stretch * fmax(time_ns - from->start_ns, time_ns / 20);
}

static double fast_time(const struct nw_line_part *part, double bytes)
{
    double times[2] = {0, 0};

    if (part->from_count == 0)
        return nw_legs_time(&part->legs, bytes);
    for (int i = 0; i < part->from_count; i++) {
        const struct nw_curve_transfer *from = &part->from[i];
        const double time = nw_curve_time_only(from->curve, bytes * from->squeeze);

        times[i] = is_as_measured(from) ? time : taken_over(from, time);
    }
    return part->from_count == 1 ? times[0] : times[0] * pow(times[1] / times[0], part->mix);
}

/* With its interval; the second source only moves it. */
static struct nw_cost full_cost(const struct nw_line_part *part, double bytes)
{
    const struct nw_curve_transfer *from = &part->from[0];
    struct nw_curve_point point;
    struct nw_cost cost = {0};

    if (part->from_count == 0) {
        cost.time_ns = cost.low_ns = cost.high_ns = nw_legs_time(&part->legs, bytes);
        return cost;
    }
    if (nw_curve_time(from->curve, bytes * from->squeeze, &point))
        cost.how |= NW_COST_SIZE;
    if (is_as_measured(from)) {
        cost.time_ns = point.time_ns;
        cost.low_ns = point.low_ns;
        cost.high_ns = point.high_ns;
    } else {
        cost.time_ns = taken_over(from, point.time_ns);
        cost.low_ns = fmin(taken_over(from, point.low_ns), cost.time_ns);
        cost.high_ns = taken_over(from, point.high_ns);
    }
    if (part->from_count == 2) {
        const double factor = fast_time(part, bytes) / cost.time_ns;

        cost.time_ns *= factor;
        cost.low_ns *= factor;
        cost.high_ns *= factor;
    }
    return cost;
}

/* What stands between the part's time and the cost. */
static double bounded(const struct nw_line *line, double bytes, double time_ns)
{
    double time = time_ns / line->divide;

    if (line->has_floor) {
        const double floor = fast_time(&line->floor, bytes) * line->floor_factor;

        time = fmax(time, line->floor_stands ? fmin(floor, time_ns) : floor);
    }
    return fmax(time, line->least_ns_per_byte * bytes);
}

double nw_line_time(const struct nw_line *line, double bytes)
{
    if (line->end != 0) {
        const struct nw_cost cost = nw_line_cost(line, bytes);

        return line->end > 0 ? cost.time_ns + line->end * (cost.high_ns - cost.time_ns)
                             : cost.time_ns + line->end * (cost.time_ns - cost.low_ns);
    }
    if (line->is_nothing || !(bytes > 0))
        return 0;
    return bounded(line, bytes, fast_time(&line->part, bytes));
}

/* Between two measured sizes: the error that the curve's own points show, doubled gaps against
 * single ones; none at a point. */
static double between_points(const struct nw_curve *curve, double bytes)
{
    const struct nw_curve_point *points = curve->points;
    size_t i = 0;

    while (i < curve->point_count && points[i].bytes < bytes)
        i++;
    if (i == 0 || i == curve->point_count || points[i].bytes == bytes)
        return 0;
    const double at =
        (log(bytes) - points[i - 1].log_bytes) / (points[i].log_bytes - points[i - 1].log_bytes);

    return curve->roughness * 4 * at * (1 - at);
}

struct nw_cost nw_line_cost(const struct nw_line *line, double bytes)
{
    struct nw_cost cost;

    if (line->is_nothing || !(bytes > 0))
        return (struct nw_cost){0};
    cost = full_cost(&line->part, bytes);
    const double factor = bounded(line, bytes, cost.time_ns) / cost.time_ns;
    const double latency = fmin(line->alpha_ns / cost.time_ns, 1);
    double error = line->error + latency * (line->hop_error - line->error);

    if (line->part.from_count > 0)
        error = hypot(error,
                      between_points(line->part.from[0].curve, bytes * line->part.from[0].squeeze));
    const double below = hypot(1 - cost.low_ns / cost.time_ns, error / (1 + error));
    const double above = hypot(cost.high_ns / cost.time_ns - 1, error);

    cost.how |= line->how;
    cost.time_ns *= factor;
    cost.low_ns = cost.time_ns * fmax(1 - below, 0);
    cost.high_ns = cost.time_ns * (1 + above);
    return cost;
}

nw_rc nw_fabric_cost(const struct nw_fabric *fabric, const char *collective, double bytes,
                     struct nw_group group, const struct nw_scenario *scenario,
                     struct nw_cost *cost_out)
{
    struct nw_line line;

    NW_TRY(nw_fabric_prepare(fabric, collective, group, scenario, &line));
    *cost_out = nw_line_cost(&line, bytes);
    return NW_OK;
}

bool nw_fabric_knows_inter(const struct nw_fabric *fabric)
{
    const char *lane = nw_fabric_lane(fabric);
    bool any = fabric->inter_busbw_bytes_per_s > 0 || fabric->wire_bytes_per_s > 0 ||
               (fabric->gpus_per_node > 0 && fabric->link_domain > fabric->gpus_per_node);

    for (size_t i = 0; !any && lane != NULL && i < fabric->curves->count; i++)
        any = fabric->curves->items[i].host_count > 1 &&
              strcmp(fabric->curves->items[i].lane, lane) == 0;
    return any;
}
