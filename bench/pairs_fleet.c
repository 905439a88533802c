#include "bench/pairs_fleet.h"

#include <math.h>
#include <stdlib.h>

static size_t fill(const struct nw_pair_rate *rates, size_t count, struct nw_fleet_edge *edges)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!rates[i].same_host)
            edges[kept++] = rates[i].edge;
    return kept;
}

static nw_rc score(struct nw_fleet *fleet, struct nw_fleet_edge *edges,
                   struct nw_fleet_scores *scores)
{
    fleet->edges = edges;
    NW_TRY(nw_fleet_drop_cleared(fleet, edges, &fleet->edge_count));
    return nw_fleet_score(fleet, scores);
}

nw_rc nw_pairs_fleet_judge(const struct nw_pair_rate *rates, size_t count, const int *host_of_rank,
                           int rank_count, int host_count, struct nw_pairs_fleet *judged_out)
{
    struct nw_pairs_fleet judged = {.hosts = {.end_count = host_count, .class_count = 1},
                                    .ranks = {.end_count = rank_count, .class_count = 1}};
    nw_rc rc;

    judged.rank_edges = calloc(count + 1, sizeof *judged.rank_edges);
    if (judged.rank_edges == NULL)
        return nw_fail(NW_ENOMEM, "no memory to judge the pairs of %d hosts", host_count);
    judged.ranks.edges = judged.rank_edges;
    judged.ranks.edge_count = fill(rates, count, judged.rank_edges);
    rc = nw_fleet_merge(&judged.ranks, host_of_rank, &judged.host_edges, &judged.hosts.edge_count);
    if (rank_count == host_count) /* the ranks' pairs would say the same again */
        judged.ranks.edge_count = 0;
    if (rc == NW_OK)
        rc = score(&judged.hosts, judged.host_edges, &judged.host_scores);
    if (rc == NW_OK)
        rc = score(&judged.ranks, judged.rank_edges, &judged.rank_scores);
    if (rc == NW_OK) {
        nw_fleet_excuse(&judged.host_scores, host_of_rank, &judged.ranks, &judged.rank_scores);
        *judged_out = judged;
    } else
        nw_pairs_fleet_free(&judged);
    return rc;
}

void nw_pairs_fleet_free(struct nw_pairs_fleet *judged)
{
    free(judged->host_edges);
    free(judged->rank_edges);
    nw_fleet_scores_free(&judged->host_scores);
    nw_fleet_scores_free(&judged->rank_scores);
    *judged = (struct nw_pairs_fleet){.host_edges = NULL};
}

/* ---- what is measured again --------------------------------------------------------------------
 */

struct choice {
    struct nw_pairs_again *list;
    int first, most, count, left_out;
};

static void add(struct choice *choice, int a, int b)
{
    if (a < 0 || b < 0 || a == b)
        return;
    for (int i = 0; i < choice->count; i++)
        if ((choice->list[i].a == a && choice->list[i].b == b) ||
            (choice->list[i].a == b && choice->list[i].b == a))
            return;
    if (choice->count - choice->first < choice->most)
        choice->list[choice->count++] = (struct nw_pairs_again){a, b};
    else
        choice->left_out++;
}

/* The lowest share among suspects not yet taken; a failed one has none and comes first. -1: none.
 */
static int next_suspect(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores,
                        const bool *taken)
{
    int found = -1;
    double least = INFINITY;

    for (int end = 0; end < fleet->end_count; end++) {
        const struct nw_fleet_end *score = &scores->ends[end];
        const double share = isnan(score->share) ? 0 : score->share;

        if (!taken[end] && nw_fleet_is_suspect(score) && share < least) {
            found = end;
            least = share;
        }
    }
    return found;
}

static nw_rc add_ends(const struct nw_pairs_fleet *judged, const int *host_of_rank, bool ranks,
                      struct choice *choice)
{
    const struct nw_fleet *fleet = ranks ? &judged->ranks : &judged->hosts;
    const struct nw_fleet_scores *scores = ranks ? &judged->rank_scores : &judged->host_scores;
    bool *taken = calloc((size_t)fleet->end_count + 1, sizeof *taken);

    if (taken == NULL)
        return nw_fail(NW_ENOMEM, "no memory to choose among %d", fleet->end_count);
    for (int end; (end = next_suspect(fleet, scores, taken)) >= 0; taken[end] = true) {
        const int host = ranks ? host_of_rank[end] : end;

        add(choice, host, nw_fleet_known_good(&judged->hosts, &judged->host_scores, host));
    }
    free(taken);
    return NW_OK;
}

nw_rc nw_pairs_fleet_again(const struct nw_pairs_fleet *judged, const int *host_of_rank, int most,
                           struct nw_pairs_again *list, int *count_out, int *left_out)
{
    const struct nw_fleet_scores *hosts = &judged->host_scores, *ranks = &judged->rank_scores;
    struct choice choice = {.list = list, .most = most};

    NW_TRY(add_ends(judged, host_of_rank, false, &choice));
    NW_TRY(add_ends(judged, host_of_rank, true, &choice));
    choice.first = choice.count;
    for (size_t i = 0; i < hosts->suspect_count; i++)
        if (!hosts->suspects[i].explained)
            add(&choice, hosts->suspects[i].a, hosts->suspects[i].b);
    for (size_t i = 0; i < ranks->suspect_count; i++)
        if (!ranks->suspects[i].explained)
            add(&choice, host_of_rank[ranks->suspects[i].a], host_of_rank[ranks->suspects[i].b]);
    *count_out = choice.count;
    *left_out = choice.left_out;
    return NW_OK;
}
