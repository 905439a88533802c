/* The cost in one group from curves of others.
 *
 * A measured curve is taken over to another collective, rank or node count by two ratios that the
 * levels (fabric_level.c) give for both groups: of what does not depend on the size (hops), and of
 * what a byte costs. With a = ratio of the hops, b = ratio of a byte:
 *
 *     wanted(bytes) = start + a × (measured(bytes × b / a) - start)
 *
 * A ring of n ranks makes n - 1 like steps of bytes / n: then this is exact, with whatever the
 * library changes at certain sizes; a straight line (latency + bytes / rate) stays one. Rates and
 * hops of the wire are those that the measured curve itself shows. */
#include "model/fabric.h"

#include <math.h>
#include <string.h>

#include "model/model.h"

const char *nw_fabric_lane(const struct nw_fabric *fabric)
{
    if (fabric->curves == NULL || fabric->curves->count == 0)
        return NULL;
    return fabric->lane != NULL ? fabric->lane : nw_curves_lane(fabric->curves);
}

static struct nw_group group_of(const struct nw_curve *curve)
{
    return (struct nw_group){.rank_count = curve->rank_count, .host_count = curve->host_count};
}

static bool gathers(nw_coll_id coll)
{
    return coll == NW_ALL_GATHER || coll == NW_REDUCE_SCATTER;
}

/* ---- rates that curves show ---------------------------------------------------------------- */

/* The rate of the links (or of the wire) that makes an endless message take what was measured. */
static double rate_behind(const struct nw_curve *curve, const struct nw_levels *levels,
                          bool of_wire)
{
    struct nw_levels unit = *levels;
    struct nw_legs legs;

    unit.link_rate = of_wire ? INFINITY : 1;
    unit.wire_rate = of_wire ? 1 : INFINITY;
    unit.switch_rate = of_wire && levels->switch_rate > 0 ? INFINITY : 0;
    nw_legs_of(&unit, curve->coll, group_of(curve), &legs);
    return nw_legs_beta(&legs) / curve->beta_ns_per_byte;
}

/* In the switch: links carry (n + 1) / n of the buffer. */
static double switch_rate_behind(const struct nw_curve *curve)
{
    return (curve->rank_count + 1.0) / curve->rank_count / curve->beta_ns_per_byte;
}

static const struct nw_curve *widest(const struct nw_curves *curves, const char *lane,
                                     bool (*wanted)(nw_coll_id))
{
    const struct nw_curve *best = NULL;

    for (size_t i = 0; i < curves->count; i++) {
        const struct nw_curve *curve = &curves->items[i];

        if (curve->host_count == 1 && wanted(curve->coll) && strcmp(curve->lane, lane) == 0 &&
            (best == NULL || curve->rank_count > best->rank_count))
            best = curve;
    }
    return best;
}

static bool reduces(nw_coll_id coll)
{
    return coll == NW_ALL_REDUCE;
}

struct nw_levels nw_fabric_levels(const struct nw_fabric *fabric)
{
    struct nw_levels levels = nw_levels_of_datasheet(fabric);
    const char *lane = nw_fabric_lane(fabric);

    if (lane == NULL)
        return levels;
    const struct nw_curve *gather = widest(fabric->curves, lane, gathers);
    const struct nw_curve *reduce = widest(fabric->curves, lane, reduces);
    const double by_datasheet = levels.link_rate;

    if (gather != NULL)
        levels.link_rate = rate_behind(gather, &levels, false);
    if (reduce == NULL || reduce->rank_count < 3) {
        if (gather != NULL && isfinite(by_datasheet))
            levels.switch_rate *= levels.link_rate / by_datasheet;
        return levels;
    }
    const double as_ring = rate_behind(reduce, &levels, false);
    const bool may_add = levels.switch_rate > 0 || !(fabric->link_bytes_per_s > 0);

    /* Faster than a ring of its links: added up in the switch. */
    if (may_add && isfinite(levels.link_rate) ? as_ring > 1.1 * levels.link_rate
                                              : levels.switch_rate > 0)
        levels.switch_rate = switch_rate_behind(reduce);
    else
        levels.switch_rate = 0;
    if (gather == NULL && !(levels.switch_rate > 0))
        levels.link_rate = as_ring;
    return levels;
}

/* ---- which curve --------------------------------------------------------------------------- */

/* How far another collective's time is from saying the wanted one's; the ring's halves first. */
static double strangeness(nw_coll_id wanted, nw_coll_id measured)
{
    if (wanted == measured)
        return 0;
    if (gathers(wanted) && gathers(measured))
        return 0.15;
    if (gathers(measured))
        return 0.5;
    return measured == NW_ALL_REDUCE ? 0.6 : measured == NW_ALLTOALL ? 1 : 1.2;
}

/* In doublings of what differs, weighed. */
static double distance(const struct nw_curve *curve, nw_coll_id coll, struct nw_group wanted)
{
    const struct nw_group group = group_of(curve);
    const double local = fabs(log2((double)nw_group_local(wanted) / (double)nw_group_local(group)));
    const double hosts = fabs(log2((double)nw_group_hosts(wanted) / (double)nw_group_hosts(group)));

    return strangeness(coll, curve->coll) + 1.2 * local + 0.7 * hosts +
           (curve->features[0] != '\0' ? 0.01 : 0);
}

static const struct nw_curve *nearest(const struct nw_fabric *fabric, nw_coll_id coll,
                                      struct nw_group wanted, bool over_hosts)
{
    const char *lane = nw_fabric_lane(fabric);
    const struct nw_curve *best = NULL;
    double least = INFINITY;

    for (size_t i = 0; lane != NULL && i < fabric->curves->count; i++) {
        const struct nw_curve *curve = &fabric->curves->items[i];

        if ((curve->host_count > 1) != over_hosts || strcmp(curve->lane, lane) != 0)
            continue;
        const double away = distance(curve, coll, wanted);

        if (away < least) {
            least = away;
            best = curve;
        }
    }
    return best;
}

static double weight(struct nw_group group, bool over_hosts)
{
    return over_hosts ? nw_group_hosts(group) : group.rank_count;
}

static bool alike(const struct nw_curve *a, const struct nw_curve *b, bool over_hosts)
{
    return a->coll == b->coll && strcmp(a->lane, b->lane) == 0 &&
           (a->host_count > 1) == over_hosts && (b->host_count > 1) == over_hosts &&
           (!over_hosts || nw_group_local(group_of(a)) == nw_group_local(group_of(b)));
}

/* The curve like `like` (of one node, or of as many ranks per node) whose count of ranks, or of
 * hosts, is nearest to `count` on the other side of it; `below`: nearest below `count`. */
static const struct nw_curve *sibling(const struct nw_fabric *fabric, const struct nw_curve *like,
                                      double count, bool over_hosts, bool below)
{
    const struct nw_curve *best = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < fabric->curves->count; i++) {
        const struct nw_curve *curve = &fabric->curves->items[i];
        const double own = weight(group_of(curve), over_hosts);

        if (alike(curve, like, over_hosts) && (below ? own < count : own > count) &&
            fabs(own - count) < least) {
            least = fabs(own - count);
            best = curve;
        }
    }
    return best;
}

/* ---- taking it over ------------------------------------------------------------------------ */

/* Wire rate and hop that the curve shows. Where the links inside the nodes take as long already, it
 * shows only that the wire is not slower; then the line rate counts, where it is known. */
static void read_wire(const struct nw_curve *curve, struct nw_levels *levels)
{
    const struct nw_group group = group_of(curve);
    const double line_rate = levels->wire_rate;
    struct nw_legs legs;

    levels->wire_rate = INFINITY;
    nw_legs_of(levels, curve->coll, group, &legs);
    const bool by_links = nw_legs_beta(&legs) > 0.85 * curve->beta_ns_per_byte;

    levels->wire_rate = fmax(rate_behind(curve, levels, true), 1e-9);
    if (by_links && isfinite(line_rate))
        levels->wire_rate = fmax(levels->wire_rate, line_rate);
    nw_legs_of(levels, curve->coll, group, &legs);
    const double alpha = nw_legs_alpha(&legs), hop = fmax(levels->wire_hop_ns, 1);

    levels->wire_hop_ns += hop;
    nw_legs_of(levels, curve->coll, group, &legs);
    const double per_hop = (nw_legs_alpha(&legs) - alpha) / hop;

    levels->wire_hop_ns =
        per_hop > 0 ? fmin(fmax(hop + (curve->alpha_ns - alpha) / per_hop, hop / 4), hop * 8) : hop;
}

/* Of more ranks per node than the curve had: as many NICs as any curve or the datasheet says. */
static double best_wire(const struct nw_fabric *fabric, const struct nw_levels *levels,
                        const char *lane)
{
    const struct nw_levels datasheet = nw_levels_of_datasheet(fabric);
    double best = isfinite(datasheet.wire_rate) ? datasheet.wire_rate : 0;

    for (size_t i = 0; i < fabric->curves->count; i++) {
        const struct nw_curve *curve = &fabric->curves->items[i];

        if (curve->host_count > 1 && strcmp(curve->lane, lane) == 0)
            best = fmax(best, rate_behind(curve, levels, true));
    }
    return best;
}

/* Levels of the machine as the curve shows them, for the wanted group. */
static struct nw_levels levels_behind(const struct nw_fabric *fabric, const struct nw_curve *curve,
                                      struct nw_group wanted, struct nw_legs *from_out)
{
    struct nw_levels levels = nw_fabric_levels(fabric);
    const struct nw_group group = group_of(curve);

    if (curve->host_count > 1)
        read_wire(curve, &levels);
    nw_legs_of(&levels, curve->coll, group, from_out);
    if (curve->host_count > 1 && nw_group_local(wanted) > nw_group_local(group) &&
        levels.nic_count <= 0)
        levels.wire_rate = fmax(levels.wire_rate, best_wire(fabric, &levels, curve->lane));
    return levels;
}

static struct nw_curve_transfer take_over(const struct nw_fabric *fabric,
                                          const struct nw_curve *curve, nw_coll_id coll,
                                          struct nw_group wanted)
{
    struct nw_legs from, to;
    const struct nw_levels levels = levels_behind(fabric, curve, wanted, &from);

    nw_legs_of(&levels, coll, wanted, &to);
    const double alpha = nw_legs_alpha(&from);
    const double hops = (nw_legs_alpha(&to) - to.start_ns + 1) / (alpha - from.start_ns + 1);
    const double bytes = nw_legs_beta(&to) / nw_legs_beta(&from);

    return (struct nw_curve_transfer){
        .curve = curve,
        .start_ns = fmin(from.start_ns, from.start_ns * curve->alpha_ns / alpha),
        .stretch = hops,
        .squeeze = bytes / hops,
    };
}

/* Straight from rank to rank, not in steps. */
static bool in_pairs(nw_coll_id coll)
{
    return coll == NW_ALLTOALL || coll == NW_GATHER || coll == NW_SCATTER || coll == NW_SENDRECV;
}

static unsigned how_of(const struct nw_curve *curve, nw_coll_id coll, struct nw_group wanted,
                       const struct nw_curve_transfer *transfer)
{
    const struct nw_group group = group_of(curve);
    unsigned how = 0;

    if (curve->coll != coll)
        how |= NW_COST_DERIVED;
    if (nw_group_local(group) != nw_group_local(wanted))
        how |= NW_COST_RANKS;
    if (nw_group_hosts(group) != nw_group_hosts(wanted))
        how |= NW_COST_NODES;
    if (how == 0 && transfer != NULL && (transfer->stretch != 1 || transfer->squeeze != 1))
        how |= NW_COST_SHARED;
    if (!curve->has_interval)
        how |= NW_COST_NO_INTERVAL;
    if (curve->simulated)
        how |= NW_COST_SIMULATED;
    if (curve->hosts_guessed)
        how |= NW_COST_HOSTS;
    return how;
}

/* What a doubling of the nodes adds to the cost of a byte, by two measured node counts: never less
 * than nothing. */
static double congestion(const struct nw_fabric *fabric, const struct nw_curve *less,
                         const struct nw_curve *more)
{
    const struct nw_curve_transfer transfer = take_over(fabric, less, more->coll, group_of(more));
    const double predicted = less->beta_ns_per_byte * transfer.stretch * transfer.squeeze;
    const double doublings = log2((double)more->host_count / less->host_count);

    return fmin(fmax(pow(more->beta_ns_per_byte / predicted, 1 / doublings), 1), 1.2);
}

bool nw_fabric_from_curves(const struct nw_fabric *fabric, nw_coll_id coll, struct nw_group group,
                           bool over_hosts, struct nw_line_part *part_out, unsigned *how_out)
{
    const struct nw_curve *curve = nearest(fabric, coll, group, over_hosts);
    const int hosts = nw_group_hosts(group);
    struct nw_line_part part = {.from_count = 1};
    const struct nw_curve *other = NULL;

    if (curve == NULL)
        return false;
    if (over_hosts && in_pairs(coll) && !in_pairs(curve->coll)) {
        /* A ring's steps say nothing of pairs between nodes but the rate and the hop. */
        const struct nw_levels levels = levels_behind(fabric, curve, group, &(struct nw_legs){0});

        part.from_count = 0;
        nw_legs_of(&levels, coll, group, &part.legs);
        *how_out = how_of(curve, coll, group, NULL);
        *part_out = part;
        return true;
    }
    part.from[0] = take_over(fabric, curve, coll, group);
    *how_out = how_of(curve, coll, group, &part.from[0]);
    const double own = weight(group_of(curve), over_hosts), count = weight(group, over_hosts);

    if (own != count && over_hosts == (hosts > 1))
        other = sibling(fabric, curve, count, over_hosts, own > count);
    if (other != NULL) {
        part.from[1] = take_over(fabric, other, coll, group);
        part.from_count = 2;
        part.mix = log(count / own) / log(weight(group_of(other), over_hosts) / own);
    } else if (over_hosts && count > own &&
               (other = sibling(fabric, curve, own, over_hosts, true)) != NULL) {
        part.from[0].squeeze *= pow(congestion(fabric, other, curve), log2(count / own));
    }
    *part_out = part;
    return true;
}
