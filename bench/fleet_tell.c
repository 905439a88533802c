#include "bench/fleet_tell.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* ---- hosts from ranks --------------------------------------------------------------------------
 */

static int compare_edges(const void *left, const void *right)
{
    const struct nw_fleet_edge *a = left, *b = right;

    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    return (a->b > b->b) - (a->b < b->b);
}

/* The mean of edges between the same two groups. */
static struct nw_fleet_edge fold(const struct nw_fleet_edge *edges, size_t count)
{
    struct nw_fleet_edge mean = edges[0];
    double sum = 0, high = 0, low = 0, before = 0;
    size_t measured_before = 0;
    size_t measured = 0;

    for (size_t i = 0; i < count; i++) {
        const double first = edges[i].again ? edges[i].before_bytes_per_s : edges[i].bytes_per_s;

        mean.again |= edges[i].again;
        if (!isnan(first)) {
            before += first;
            measured_before++;
        }
        if (isnan(edges[i].bytes_per_s))
            continue;
        measured++;
        sum += edges[i].bytes_per_s;
        high += fmax(edges[i].bytes_per_s, edges[i].high_bytes_per_s);
        low += edges[i].low_bytes_per_s > 0 ? edges[i].low_bytes_per_s : edges[i].bytes_per_s;
    }
    mean.bytes_per_s = measured > 0 ? sum / (double)measured : NAN;
    mean.low_bytes_per_s = measured > 0 ? low / (double)measured : NAN;
    mean.high_bytes_per_s = measured > 0 ? high / (double)measured : NAN;
    mean.before_bytes_per_s = measured_before > 0 ? before / (double)measured_before : NAN;
    return mean;
}

nw_rc nw_fleet_merge(const struct nw_fleet *members, const int *group_of_end,
                     struct nw_fleet_edge **edges_out, size_t *count_out)
{
    struct nw_fleet_edge *edges = calloc(members->edge_count + 1, sizeof *edges);
    size_t count = 0, kept = 0;

    if (edges == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu pairs", members->edge_count);
    for (size_t i = 0; i < members->edge_count; i++) {
        struct nw_fleet_edge edge = members->edges[i];
        const int a = group_of_end[edge.a], b = group_of_end[edge.b];

        edge.a = a < b ? a : b;
        edge.b = a < b ? b : a;
        if (a != b)
            edges[count++] = edge;
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && compare_edges(&edges[i], &edges[next]) == 0;)
            next++;
        edges[kept++] = fold(&edges[i], next - i);
    }
    *edges_out = edges;
    *count_out = kept;
    return NW_OK;
}

void nw_fleet_excuse(const struct nw_fleet_scores *groups, const int *group_of_end,
                     const struct nw_fleet *members, struct nw_fleet_scores *scores)
{
    for (int i = 0; i < members->end_count; i++)
        if (nw_fleet_is_suspect(&groups->ends[group_of_end[i]]))
            scores->ends[i].state = NW_FLEET_GOOD;
    for (size_t i = 0; i < scores->suspect_count; i++) {
        struct nw_fleet_suspect *pair = &scores->suspects[i];
        const int a = group_of_end[pair->a], b = group_of_end[pair->b];

        for (size_t k = 0; k < groups->suspect_count && !pair->explained; k++)
            pair->explained = (groups->suspects[k].a == a && groups->suspects[k].b == b) ||
                              (groups->suspects[k].a == b && groups->suspects[k].b == a);
        pair->explained |=
            nw_fleet_is_suspect(&groups->ends[a]) || nw_fleet_is_suspect(&groups->ends[b]);
    }
}

/* ---- words -------------------------------------------------------------------------------------
 */

struct tell {
    const struct nw_fleet *fleet;
    const struct nw_fleet_scores *scores;
    const struct nw_fleet_names *names;
    struct nw_findings *findings;
};

static const char *const end_remedy =
    "look at its port, cable, PCIe link and load; until it is repaired leave it out";

static nw_rc tell_slow_end(const struct tell *tell, int index, const char *code)
{
    const struct nw_fleet_end *end = &tell->scores->ends[index];
    const double usual = tell->scores->classes[end->class].usual_bytes_per_s;
    char rate[32], other[32];

    return nw_findings_add(
        tell->findings, NW_FINDING_WARN, code, tell->names->ends[index], end_remedy,
        "%s: it reaches %s GB/s with its better partners, %.0f %% of the %s GB/s of the "
        "other %s (robust z-score %.0f)",
        tell->names->classes[end->class], nw_format_gb_per_s(rate, end->share * usual),
        100 * end->share, nw_format_gb_per_s(other, usual), tell->names->kinds, end->z);
}

static nw_rc tell_end(const struct tell *tell, int index)
{
    const struct nw_fleet_end *end = &tell->scores->ends[index];
    const char *where = tell->names->ends[index];
    char code[48];

    if (!nw_fleet_is_suspect(end) || end->lost)
        return NW_OK;
    snprintf(code, sizeof code, "%s-%s", tell->names->kind, nw_fleet_state_name(end->state));
    if (end->state == NW_FLEET_SLOW)
        return tell_slow_end(tell, index, code);
    if (end->state == NW_FLEET_FAILED)
        return nw_findings_add(tell->findings, NW_FINDING_FAIL, code, where, end_remedy,
                               "none of its %zu measurements gave a result", end->pair_count);
    return nw_findings_add(tell->findings, NW_FINDING_WARN, code, where, end_remedy,
                           "%s: %zu of its %zu pairs are slow or gave no result",
                           tell->names->classes[end->class], end->class_bad_count,
                           end->class_pair_count);
}

/* The edge in which the suspect is slowest. */
static size_t edge_of(const struct tell *tell, const struct nw_fleet_suspect *suspect)
{
    size_t found = 0;
    double least = INFINITY;

    for (size_t i = 0; i < tell->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &tell->fleet->edges[i];

        if (edge->class == suspect->class && tell->scores->pairs[i].share < least &&
            ((edge->a == suspect->a && edge->b == suspect->b) ||
             (edge->a == suspect->b && edge->b == suspect->a))) {
            found = i;
            least = tell->scores->pairs[i].share;
        }
    }
    return found;
}

static nw_rc tell_pair(const struct tell *tell, const struct nw_fleet_suspect *suspect)
{
    const size_t edge = edge_of(tell, suspect);
    char where[192], rate[32], other[32], failed[96] = "";

    snprintf(where, sizeof where, "%s, %s", tell->names->ends[suspect->a],
             tell->names->ends[suspect->b]);
    if (suspect->failed_count > 0 && suspect->count > 1)
        snprintf(failed, sizeof failed, "no result in %zu of %zu measurements",
                 suspect->failed_count, suspect->count);
    else if (suspect->failed_count > 0)
        snprintf(failed, sizeof failed, "no result");
    if (isnan(suspect->share))
        return nw_findings_add(tell->findings, NW_FINDING_FAIL, "pair-failed", where,
                               "look at the path between the two: ports, cables, routes", "%s",
                               failed);
    nw_format_gb_per_s(rate, tell->fleet->edges[edge].bytes_per_s);
    nw_format_gb_per_s(other, tell->scores->pairs[edge].expected_bytes_per_s);
    return nw_findings_add(
        tell->findings, suspect->failed_count > 0 ? NW_FINDING_FAIL : NW_FINDING_WARN,
        suspect->failed_count > 0 ? "pair-failed" : "pair-slow", where,
        "look at the path between the two: ports, cables, routes",
        "%s%s%s: %s GB/s, where the weaker of the two reaches %s GB/s with others (%.0f %%)",
        failed, failed[0] != '\0' ? "; " : "", tell->names->classes[suspect->class], rate, other,
        100 * suspect->share);
}

/* How many of an end's pairs lie in the class's lower cluster, as the least and the largest share
 * of all ends. */
static void low_shares(const struct tell *tell, int class, double *least_out, double *most_out)
{
    const double boundary = tell->scores->classes[class].clusters.boundary;
    double least = 1, most = 0;

    for (int end = 0; end < tell->fleet->end_count; end++) {
        size_t low = 0, all = 0;

        for (size_t i = 0; i < tell->fleet->edge_count; i++) {
            const struct nw_fleet_edge *edge = &tell->fleet->edges[i];

            if (edge->class != class || isnan(edge->bytes_per_s) ||
                (edge->a != end && edge->b != end))
                continue;
            all++;
            low += edge->bytes_per_s < boundary;
        }
        if (all == 0)
            continue;
        least = fmin(least, (double)low / (double)all);
        most = fmax(most, (double)low / (double)all);
    }
    *least_out = least;
    *most_out = most;
}

static nw_rc tell_class(const struct tell *tell, int class)
{
    const struct nw_fleet_class *row = &tell->scores->classes[class];
    char low[32], high[32];
    double least, most;

    if (row->ends_divided)
        NW_TRY(nw_findings_add(
            tell->findings, NW_FINDING_INFO, "two-clusters", tell->names->classes[class],
            "are they of two kinds, or behind two switches?",
            "two clusters of %s: %zu reach %s GB/s, %zu only %s GB/s; the slower ones are the "
            "majority, so none is named",
            tell->names->kinds, row->end_clusters.high_count,
            nw_format_gb_per_s(high, row->end_clusters.high_mean), row->end_clusters.low_count,
            nw_format_gb_per_s(low, row->end_clusters.low_mean)));
    if (row->detect_share < NW_FLEET_NOISY_SHARE)
        NW_TRY(nw_findings_add(
            tell->findings, NW_FINDING_WARN, "pairs-noisy", tell->names->classes[class],
            "measure again while nothing else runs there, or with a larger --budget",
            "the results vary so much that only what is below %.0f %% of the usual could be named; "
            "whether anything between that and %.0f %% is slow is not known",
            100 * row->detect_share, 100 * NW_FLEET_SLOW_SHARE));
    if (!row->divided)
        return NW_OK;
    if (!row->two_clusters)
        return nw_findings_add(tell->findings, NW_FINDING_WARN, "pairs-divided",
                               tell->names->classes[class],
                               "look at what many paths share: switches, uplinks, routing, load",
                               "%zu of %zu pairs are slow, too many to name single ones",
                               row->slow_count, row->pair_count - row->failed_count);
    low_shares(tell, class, &least, &most);
    return nw_findings_add(
        tell->findings, NW_FINDING_WARN, "two-clusters", tell->names->classes[class],
        most < 1 ? "look at how the switches spread flows over paths (ECMP, adaptive routing), and "
                   "at oversubscribed uplinks"
                 : "compare the switches and cables of the two groups",
        "two clusters of pairs, no noise: %zu near %s GB/s and %zu near %s GB/s. Each of the %s "
        "has %.0f to %.0f %% of its pairs in the slower one: %s",
        row->clusters.high_count, nw_format_gb_per_s(high, row->clusters.high_mean),
        row->clusters.low_count, nw_format_gb_per_s(low, row->clusters.low_mean),
        tell->names->kinds, 100 * least, 100 * most,
        least > 0 && most < 1 ? "it is the paths between them, not single ones of them"
        : most < 1            ? "some of them have none in it"
                              : "some of them are always in it");
}

nw_rc nw_fleet_findings(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores,
                        const struct nw_fleet_names *names, size_t most_pairs,
                        struct nw_findings *findings)
{
    const struct tell tell = {fleet, scores, names, findings};
    size_t told = 0, left = 0;

    for (int end = 0; end < fleet->end_count; end++)
        NW_TRY(tell_end(&tell, end));
    for (size_t i = 0; i < scores->suspect_count; i++) {
        if (scores->suspects[i].explained)
            continue;
        if (told < most_pairs) {
            NW_TRY(tell_pair(&tell, &scores->suspects[i]));
            told++;
        } else
            left++;
    }
    if (left > 0)
        NW_TRY(nw_findings_add(findings, NW_FINDING_WARN, "pairs-more", names->kinds,
                               "nodeworth fleet on the results lists them all",
                               "%zu more pairs are slow or gave no result", left));
    for (int class = 0; class < fleet->class_count; class ++)
        NW_TRY(tell_class(&tell, class));
    for (int end = 0; end < fleet->end_count; end++)
        if (scores->ends[end].state != NW_FLEET_UNKNOWN || scores->ends[end].pair_count == 0)
            return NW_OK;
    return nw_findings_add(findings, NW_FINDING_INFO, "nothing-to-compare", names->kinds,
                           "three and more of them, each with each",
                           "too few pairs to tell which of the two is slow");
}
