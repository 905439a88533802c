/* Bad pairs, over all classes. */
#include <math.h>
#include <stdlib.h>

#include "bench/fleet_parts.h"

bool nw_fleet_is_bad(const struct nw_fleet_work *work, size_t i)
{
    const struct nw_fleet_edge *edge = &work->fleet->edges[i];
    const nw_fleet_state state = work->scores->pairs[i].state;

    return state == NW_FLEET_FAILED ||
           (state == NW_FLEET_SLOW && !work->scores->classes[edge->class].divided);
}

static int compare_suspects(const void *left, const void *right)
{
    const struct nw_fleet_suspect *a = left, *b = right;
    const double share_a = isnan(a->share) ? 0 : a->share;
    const double share_b = isnan(b->share) ? 0 : b->share;

    if (a->failed_count != b->failed_count)
        return a->failed_count > b->failed_count ? -1 : 1;
    if (share_a != share_b)
        return share_a < share_b ? -1 : 1;
    return a->a != b->a ? a->a - b->a : a->b - b->b;
}

static int compare_ends(const void *left, const void *right)
{
    const struct nw_fleet_suspect *a = left, *b = right;

    return a->a != b->a ? (a->a > b->a) - (a->a < b->a) : (a->b > b->b) - (a->b < b->b);
}

static struct nw_fleet_suspect ends_of(const struct nw_fleet_edge *edge)
{
    const bool ordered = edge->a < edge->b;

    return (struct nw_fleet_suspect){.a = ordered ? edge->a : edge->b,
                                     .b = ordered ? edge->b : edge->a,
                                     .share = NAN,
                                     .class = -1};
}

static void add_edge(const struct nw_fleet_work *work, size_t i, struct nw_fleet_suspect *suspect)
{
    const struct nw_fleet_edge *edge = &work->fleet->edges[i];
    const struct nw_fleet_pair_score *score = &work->scores->pairs[i];

    suspect->count++;
    suspect->explained = nw_fleet_is_suspect(&work->scores->ends[edge->a]) ||
                         nw_fleet_is_suspect(&work->scores->ends[edge->b]);
    if (!nw_fleet_is_bad(work, i))
        return;
    suspect->failed_count += score->state == NW_FLEET_FAILED;
    suspect->slow_count += score->state == NW_FLEET_SLOW;
    if (suspect->class < 0 || score->share < suspect->share ||
        (isnan(suspect->share) && !isnan(score->share))) {
        suspect->class = edge->class;
        suspect->share = score->share;
    }
}

nw_rc nw_fleet_collect_suspects(struct nw_fleet_work *work)
{
    struct nw_fleet_scores *scores = work->scores;
    size_t bad = 0, kept = 0;

    for (size_t i = 0; i < work->fleet->edge_count; i++)
        bad += nw_fleet_is_bad(work, i);
    scores->suspects = calloc(bad + 1, sizeof *scores->suspects);
    if (scores->suspects == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu suspects", bad);
    bad = 0;
    for (size_t i = 0; i < work->fleet->edge_count; i++)
        if (nw_fleet_is_bad(work, i))
            scores->suspects[bad++] = ends_of(&work->fleet->edges[i]);
    qsort(scores->suspects, bad, sizeof *scores->suspects, compare_ends);
    for (size_t i = 0; i < bad; i++)
        if (kept == 0 || compare_ends(&scores->suspects[kept - 1], &scores->suspects[i]) != 0)
            scores->suspects[kept++] = scores->suspects[i];
    scores->suspect_count = kept;
    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_suspect key = ends_of(&work->fleet->edges[i]);
        struct nw_fleet_suspect *suspect =
            bsearch(&key, scores->suspects, kept, sizeof key, compare_ends);

        if (suspect != NULL)
            add_edge(work, i, suspect);
    }
    qsort(scores->suspects, kept, sizeof *scores->suspects, compare_suspects);
    return NW_OK;
}
