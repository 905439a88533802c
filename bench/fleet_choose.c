/* From scores: whom to trust, whom to leave out, whom a measurement alone has cleared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fleet.h"

int nw_fleet_known_good(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores,
                        int except)
{
    int best = -1;

    for (int end = 0; end < fleet->end_count; end++) {
        const struct nw_fleet_end *score = &scores->ends[end];

        if (end == except || score->state != NW_FLEET_GOOD)
            continue;
        const size_t bad = score->slow_count + score->failed_count;
        const struct nw_fleet_end *rival = best >= 0 ? &scores->ends[best] : NULL;
        const size_t rival_bad = rival != NULL ? rival->slow_count + rival->failed_count : 0;

        if (rival == NULL || bad < rival_bad || (bad == rival_bad && score->share > rival->share))
            best = end;
    }
    return best;
}

nw_rc nw_fleet_leave_out(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores,
                         bool *out, size_t *count_out)
{
    size_t *bad = calloc((size_t)fleet->end_count + 1, sizeof *bad);
    size_t marked = 0;

    if (bad == NULL)
        return nw_fail(NW_ENOMEM, "no memory to count the bad pairs of %d", fleet->end_count);

    for (int end = 0; end < fleet->end_count; end++) {
        out[end] = nw_fleet_is_suspect(&scores->ends[end]);
        marked += out[end];
    }
    for (;;) {
        int worst = -1;

        memset(bad, 0, (size_t)fleet->end_count * sizeof *bad);
        for (size_t i = 0; i < scores->suspect_count; i++) {
            const struct nw_fleet_suspect *pair = &scores->suspects[i];

            if (!out[pair->a] && !out[pair->b]) {
                bad[pair->a]++;
                bad[pair->b]++;
            }
        }
        for (int end = 0; end < fleet->end_count; end++)
            if (bad[end] > 0 && (worst < 0 || bad[end] > bad[worst]))
                worst = end;
        if (worst < 0)
            break;
        out[worst] = true;
        marked++;
    }
    free(bad);
    *count_out = marked;
    return NW_OK;
}

/* ---- measured again ----------------------------------------------------------------------------
 */

/* Ends that were suspects by what was measured first: scores are the caller's to free. */
static nw_rc score_before(const struct nw_fleet *fleet, struct nw_fleet_scores *scores_out)
{
    struct nw_fleet_edge *edges = calloc(fleet->edge_count + 1, sizeof *edges);
    struct nw_fleet before = *fleet;
    nw_rc rc;

    if (edges == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu pairs", fleet->edge_count);
    for (size_t i = 0; i < fleet->edge_count; i++) {
        edges[i] = fleet->edges[i];
        if (!edges[i].again)
            continue;
        edges[i].bytes_per_s = edges[i].before_bytes_per_s;
        edges[i].high_bytes_per_s = edges[i].low_bytes_per_s = NAN;
    }
    before.edges = edges;
    rc = nw_fleet_score(&before, scores_out);
    free(edges);
    return rc;
}

static void drop_of(const bool *cleared, int class, struct nw_fleet_edge *edges, size_t *count)
{
    size_t kept = 0;

    for (size_t i = 0; i < *count; i++)
        if (edges[i].class != class || edges[i].again ||
            !(cleared[edges[i].a] || cleared[edges[i].b]))
            edges[kept++] = edges[i];
    *count = kept;
}

nw_rc nw_fleet_drop_cleared(const struct nw_fleet *fleet, struct nw_fleet_edge *edges,
                            size_t *count_out)
{
    struct nw_fleet_scores before = {0}, after = {0};
    bool *cleared = calloc((size_t)fleet->end_count + 1, sizeof *cleared);
    const size_t all = fleet->edge_count;
    size_t count = all;
    bool again = false;
    nw_rc rc = cleared != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d", fleet->end_count);

    for (size_t i = 0; i < all; i++)
        again |= edges[i].again;
    if (rc == NW_OK && again)
        rc = score_before(fleet, &before);
    if (rc == NW_OK && again)
        rc = nw_fleet_score(fleet, &after);
    for (int class = 0; rc == NW_OK && again && class < fleet->class_count; class ++) {
        const double usual = after.classes[class].usual_bytes_per_s;

        memset(cleared, 0, (size_t)fleet->end_count * sizeof *cleared);
        for (size_t i = 0; i < count; i++)
            if (edges[i].class == class && edges[i].again &&
                fmax(edges[i].bytes_per_s, edges[i].high_bytes_per_s) >=
                    NW_FLEET_LOW_SHARE * usual) {
                cleared[edges[i].a] |= nw_fleet_is_suspect(&before.ends[edges[i].a]);
                cleared[edges[i].b] |= nw_fleet_is_suspect(&before.ends[edges[i].b]);
            }
        drop_of(cleared, class, edges, &count);
    }
    nw_fleet_scores_free(&before);
    nw_fleet_scores_free(&after);
    free(cleared);
    if (rc == NW_OK)
        *count_out = count;
    return rc;
}
