#include "bench/fleet_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From so many pairs on an end's second best one stands for it: the best may be a misreading. */
#define SECOND_PAIRS 8
/* Fewer pairs of an end say nothing about their majority. */
#define MAJORITY_PAIRS 2

struct usual { /* what values are held against */
    double median, deviation;
    size_t count;
    bool two_clusters;
    struct nw_clusters clusters;
};

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
}

static double median_of(const double *sorted, size_t count)
{
    return nw_quantile_sorted(sorted, count, 0.5);
}

/* `values` are sorted, and lost. `upper`: of two clusters the upper one, also where it is smaller.
 */
static struct usual usual_of(double *values, size_t count, bool upper)
{
    struct usual usual = {.median = NAN};

    if (count == 0)
        return usual;
    sort(values, count);
    usual.two_clusters = nw_two_clusters(values, count, &usual.clusters);
    if (usual.two_clusters && (upper || usual.clusters.low_count <= usual.clusters.high_count)) {
        values += usual.clusters.low_count;
        count = usual.clusters.high_count;
    }
    usual.median = median_of(values, count);
    usual.count = count;
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - usual.median);
    sort(values, count);
    usual.deviation = fmax(median_of(values, count), NW_FLEET_LEAST_DEVIATION * usual.median);
    return usual;
}

static bool is_outlier(double share, double z, const struct usual *usual)
{
    return (share < NW_FLEET_SLOW_SHARE && z < NW_FLEET_SLOW_Z) ||
           (share < NW_FLEET_LOW_SHARE && z < NW_FLEET_LOW_Z && usual->count >= NW_FLEET_LOW_LEAST);
}

/* With one partner only, nobody can tell which of the two is to blame: the pair is named. `class`
 * -1: over all. `measured`: failed pairs do not count. */
static void count_partners(struct nw_fleet_work *work, int class, bool measured)
{
    for (int end = 0; end < work->fleet->end_count; end++) {
        work->several[end] = false;
        work->partner[end] = -1;
    }
    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &work->fleet->edges[i];

        if ((class >= 0 && edge->class != class) || (measured && isnan(edge->bytes_per_s)))
            continue;
        for (int side = 0; side < 2; side++) {
            const int end = side == 0 ? edge->a : edge->b, other = side == 0 ? edge->b : edge->a;

            work->several[end] |= work->partner[end] >= 0 && work->partner[end] != other;
            work->partner[end] = other;
        }
    }
}

/* ---- ends --------------------------------------------------------------------------------------
 */

static double surely(const struct nw_fleet_edge *edge)
{
    return edge->low_bytes_per_s > 0 ? fmin(edge->bytes_per_s, edge->low_bytes_per_s)
                                     : edge->bytes_per_s;
}

/* What each end can do, into work->reach. The rates of an end's pairs lie together in work->values,
 * from work->first[end] on. */
static void find_reach(struct nw_fleet_work *work, int class)
{
    const struct nw_fleet *fleet = work->fleet;
    const size_t ends = (size_t)fleet->end_count;

    memset(work->first, 0, (ends + 1) * sizeof *work->first);
    for (size_t i = 0; i < fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &fleet->edges[i];

        if (edge->class == class && !isnan(edge->bytes_per_s)) {
            work->first[edge->a + 1]++;
            work->first[edge->b + 1]++;
        }
    }
    for (size_t end = 0; end < ends; end++) {
        work->first[end + 1] += work->first[end];
        work->pairs[end] = work->first[end];
    }
    for (size_t i = 0; i < fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &fleet->edges[i];

        if (edge->class == class && !isnan(edge->bytes_per_s)) {
            work->values[work->pairs[edge->a]++] = surely(edge);
            work->values[work->pairs[edge->b]++] = surely(edge);
        }
    }
    for (size_t end = 0; end < ends; end++) {
        double *values = work->values + work->first[end];
        const size_t count = work->first[end + 1] - work->first[end];

        sort(values, count);
        work->reach[end] = count == 0 ? NAN : values[count - (count < SECOND_PAIRS ? 1 : 2)];
    }
}

/* The most that the interval of any of its pairs allows. */
static double best_of(const struct nw_fleet_work *work, int end, int class)
{
    double best = 0;

    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &work->fleet->edges[i];

        if (edge->class == class && (edge->a == end || edge->b == end) && !isnan(edge->bytes_per_s))
            best = fmax(best, fmax(edge->bytes_per_s, edge->high_bytes_per_s));
    }
    return best;
}

/* By what the rules ask for: of an end that is all of its pairs' rates scaled. */
static double detect_share(struct nw_fleet_work *work, int class, const struct usual *usual)
{
    const double width = usual->deviation / usual->median / 0.6745; /* of nw_modified_z */
    size_t count = 0;

    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &work->fleet->edges[i];

        if (edge->class == class && !isnan(edge->bytes_per_s))
            work->values[count++] =
                edge->bytes_per_s / fmax(edge->bytes_per_s, edge->high_bytes_per_s);
    }
    sort(work->values, count);
    const double reached = NW_FLEET_LOW_SHARE * median_of(work->values, count);
    const double slow = fmin(NW_FLEET_SLOW_SHARE, 1 + NW_FLEET_SLOW_Z * width);
    const double low = usual->count >= NW_FLEET_LOW_LEAST
                           ? fmin(NW_FLEET_LOW_SHARE, 1 + NW_FLEET_LOW_Z * width)
                           : 0;

    return fmax(0, fmin(reached, fmax(slow, low)));
}

/* Where ends are few, the disagreement of their pairs says more of the noise than that of the ends.
 */
static void judge_ends(struct nw_fleet_work *work, int class, double pair_deviation)
{
    struct nw_fleet_class *row = &work->scores->classes[class];
    size_t count = 0;

    for (int end = 0; end < work->fleet->end_count; end++)
        if (!isnan(work->reach[end]))
            work->values[count++] = work->reach[end];
    struct usual usual = usual_of(work->values, count, false);

    usual.deviation = fmax(usual.deviation, pair_deviation * usual.median);
    row->usual_bytes_per_s = usual.median;
    row->ends_divided = usual.two_clusters && usual.clusters.low_count > usual.clusters.high_count;
    row->end_clusters = usual.clusters;
    if (count < 3) /* of two ends both have the same pair */
        return;
    row->detect_share = detect_share(work, class, &usual);
    for (int end = 0; end < work->fleet->end_count; end++) {
        struct nw_fleet_end *score = &work->scores->ends[end];
        const double share = work->reach[end] / usual.median;
        const double z = nw_modified_z(work->reach[end], usual.median, usual.deviation);
        const bool was_slow = score->state == NW_FLEET_SLOW;

        if (isnan(share))
            continue;
        const bool slow = work->several[end] && is_outlier(share, z, &usual) &&
                          best_of(work, end, class) < NW_FLEET_LOW_SHARE * usual.median;

        if (slow)
            score->state = NW_FLEET_SLOW;
        else if (score->state == NW_FLEET_UNKNOWN)
            score->state = NW_FLEET_GOOD;
        /* of a slow one: only a class where it is slow says by how much */
        if (slow == was_slow ? isnan(score->share) || share < score->share : slow) {
            score->share = share;
            score->z = z;
            score->class = class;
        }
    }
}

/* ---- pairs -------------------------------------------------------------------------------------
 */

/* What an end with one partner can do is not known from that pair itself: as much as others. */
static double expected_of(const struct nw_fleet_work *work, int end, int class)
{
    const struct nw_fleet_class *row = &work->scores->classes[class];

    return work->several[end] || row->pair_count - row->failed_count < MAJORITY_PAIRS + 1
               ? work->reach[end]
               : fmax(work->reach[end], row->median_bytes_per_s);
}

static struct usual usual_share(struct nw_fleet_work *work, int class)
{
    size_t count = 0;

    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &work->fleet->edges[i];
        struct nw_fleet_pair_score *score = &work->scores->pairs[i];

        if (edge->class != class || isnan(edge->bytes_per_s))
            continue;
        score->expected_bytes_per_s =
            fmin(expected_of(work, edge->a, class), expected_of(work, edge->b, class));
        score->share = edge->bytes_per_s / score->expected_bytes_per_s;
        score->usual_share = edge->bytes_per_s / work->scores->classes[class].median_bytes_per_s;
        work->values[count++] = fmin(score->share, 1); /* more is unsteadiness, no width of noise */
    }
    return usual_of(work->values, count, true); /* which is what their ends can do */
}

static void judge_pair(const struct nw_fleet_edge *edge, const struct usual *usual, bool alone,
                       struct nw_fleet_pair_score *score)
{
    /* Its interval may reach what is usual: then it is not measured well enough to be named. */
    const double best = fmax(edge->bytes_per_s, edge->high_bytes_per_s) /* fmax passes NAN over */
                        / score->expected_bytes_per_s;

    if (isnan(edge->bytes_per_s)) {
        score->state = NW_FLEET_FAILED;
        return;
    }
    score->z = nw_modified_z(score->share, usual->median, usual->deviation);
    score->state = alone ? NW_FLEET_UNKNOWN
                   : is_outlier(score->share, score->z, usual) && best < NW_FLEET_LOW_SHARE
                       ? NW_FLEET_SLOW
                       : NW_FLEET_GOOD;
}

static void summarise(struct nw_fleet_work *work, int class)
{
    struct nw_fleet_class *row = &work->scores->classes[class];
    size_t count = 0;

    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &work->fleet->edges[i];

        if (edge->class != class)
            continue;
        row->pair_count++;
        row->failed_count += isnan(edge->bytes_per_s);
        if (!isnan(edge->bytes_per_s))
            work->values[count++] = edge->bytes_per_s;
    }
    sort(work->values, count);
    row->median_bytes_per_s = count > 0 ? median_of(work->values, count) : NAN;
    row->two_clusters = nw_two_clusters(work->values, count, &row->clusters);
    row->detect_share = NAN;
}

static void judge_pairs(struct nw_fleet_work *work, int class, const struct usual *usual)
{
    struct nw_fleet_class *row = &work->scores->classes[class];

    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &work->fleet->edges[i];

        if (edge->class != class)
            continue;
        judge_pair(edge, usual, row->pair_count - row->failed_count < 2, &work->scores->pairs[i]);
        row->slow_count += work->scores->pairs[i].state == NW_FLEET_SLOW;
    }
    row->divided = row->slow_count > 1 &&
                   (double)row->slow_count >
                       NW_FLEET_DIVIDED_SHARE * (double)(row->pair_count - row->failed_count);
}

/* ---- ends by the number of their bad pairs -----------------------------------------------------
 */

static void count_class(struct nw_fleet_work *work, int class)
{
    const size_t ends = (size_t)work->fleet->end_count;

    memset(work->pairs, 0, ends * sizeof *work->pairs);
    memset(work->bad, 0, ends * sizeof *work->bad);
    for (size_t i = 0; i < work->fleet->edge_count; i++) {
        const struct nw_fleet_edge *edge = &work->fleet->edges[i];

        if (edge->class != class)
            continue;
        for (int side = 0; side < 2; side++) {
            const int end = side == 0 ? edge->a : edge->b;
            struct nw_fleet_end *score = &work->scores->ends[end];

            work->pairs[end]++;
            work->bad[end] += nw_fleet_is_bad(work, i);
            score->pair_count++;
            score->failed_count += work->scores->pairs[i].state == NW_FLEET_FAILED;
            score->slow_count +=
                nw_fleet_is_bad(work, i) && work->scores->pairs[i].state == NW_FLEET_SLOW;
        }
    }
}

static void judge_majorities(struct nw_fleet_work *work, int class)
{
    count_class(work, class);
    count_partners(work, class, false);
    for (int end = 0; end < work->fleet->end_count; end++) {
        struct nw_fleet_end *score = &work->scores->ends[end];
        const bool most = work->several[end] && work->pairs[end] > MAJORITY_PAIRS &&
                          2 * work->bad[end] > work->pairs[end];
        const bool worse = most && (score->state != NW_FLEET_FLAKY ||
                                    work->bad[end] * score->class_pair_count >
                                        score->class_bad_count * work->pairs[end]);

        if (score->class == class || (worse && score->state != NW_FLEET_SLOW)) {
            score->class_pair_count = work->pairs[end];
            score->class_bad_count = work->bad[end];
        }
        if (worse && score->state != NW_FLEET_SLOW) {
            score->state = NW_FLEET_FLAKY;
            score->class = class;
        }
    }
}

static void judge_counts(struct nw_fleet_work *work)
{
    const size_t ends = (size_t)work->fleet->end_count;

    count_partners(work, -1, false);
    for (size_t i = 0; i < ends; i++) {
        struct nw_fleet_end *end = &work->scores->ends[i];

        end->lost = work->fleet->lost != NULL && work->fleet->lost[i];
        if (end->lost || (work->several[i] && end->failed_count == end->pair_count))
            end->state = NW_FLEET_FAILED;
        work->values[i] = (double)(end->slow_count + end->failed_count);
    }
    sort(work->values, ends);
    const double median = median_of(work->values, ends);

    for (size_t i = 0; i < ends; i++)
        work->values[i] = fabs(work->values[i] - median);
    sort(work->values, ends);
    const double deviation = fmax(median_of(work->values, ends), 0.5); /* counts are whole */

    for (size_t i = 0; i < ends; i++) {
        struct nw_fleet_end *end = &work->scores->ends[i];

        if (end->pair_count > 0 && ends > 2)
            end->bad_z =
                nw_modified_z((double)(end->slow_count + end->failed_count), median, deviation);
    }
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static nw_rc allocate(struct nw_fleet_work *work)
{
    const struct nw_fleet *fleet = work->fleet;
    struct nw_fleet_scores *scores = work->scores;
    const size_t ends = (size_t)fleet->end_count, most = ends + 2 * fleet->edge_count + 1;

    scores->ends = calloc(ends + 1, sizeof *scores->ends);
    scores->pairs = calloc(fleet->edge_count + 1, sizeof *scores->pairs);
    scores->classes = calloc((size_t)fleet->class_count + 1, sizeof *scores->classes);
    work->reach = calloc(ends + 1, sizeof *work->reach);
    work->values = calloc(most, sizeof *work->values);
    work->first = calloc(ends + 2, sizeof *work->first);
    work->pairs = calloc(ends + 1, sizeof *work->pairs);
    work->bad = calloc(ends + 1, sizeof *work->bad);
    work->several = calloc(ends + 1, sizeof *work->several);
    work->partner = calloc(ends + 1, sizeof *work->partner);
    if (scores->ends == NULL || scores->pairs == NULL || scores->classes == NULL ||
        work->reach == NULL || work->values == NULL || work->first == NULL || work->pairs == NULL ||
        work->bad == NULL || work->several == NULL || work->partner == NULL)
        return nw_fail(NW_ENOMEM, "no memory to judge %zu pairs of %d", fleet->edge_count,
                       fleet->end_count);
    for (size_t i = 0; i < ends; i++)
        scores->ends[i] = (struct nw_fleet_end){.share = NAN, .z = NAN, .class = -1, .bad_z = NAN};
    for (size_t i = 0; i < fleet->edge_count; i++)
        scores->pairs[i] = (struct nw_fleet_pair_score){
            .expected_bytes_per_s = NAN, .share = NAN, .z = NAN, .usual_share = NAN};
    return NW_OK;
}

nw_rc nw_fleet_score(const struct nw_fleet *fleet, struct nw_fleet_scores *scores_out)
{
    struct nw_fleet_scores scores = {0};
    struct nw_fleet_work work = {.fleet = fleet, .scores = &scores};
    nw_rc rc = allocate(&work);

    for (int class = 0; class < fleet->class_count && rc == NW_OK; class ++) {
        summarise(&work, class);
        find_reach(&work, class);
        count_partners(&work, class, true);
        const struct usual usual = usual_share(&work, class);

        judge_ends(&work, class, usual.deviation);
        judge_pairs(&work, class, &usual);
    }
    for (int class = 0; class < fleet->class_count && rc == NW_OK; class ++)
        judge_majorities(&work, class);
    if (rc == NW_OK && fleet->end_count > 0)
        judge_counts(&work);
    if (rc == NW_OK)
        rc = nw_fleet_collect_suspects(&work);
    free(work.reach);
    free(work.values);
    free(work.first);
    free(work.pairs);
    free(work.bad);
    free(work.several);
    free(work.partner);
    if (rc != NW_OK)
        nw_fleet_scores_free(&scores);
    else
        *scores_out = scores;
    return rc;
}

void nw_fleet_scores_free(struct nw_fleet_scores *scores)
{
    free(scores->ends);
    free(scores->pairs);
    free(scores->classes);
    free(scores->suspects);
    *scores = (struct nw_fleet_scores){0};
}

bool nw_fleet_is_suspect(const struct nw_fleet_end *end)
{
    return end->state == NW_FLEET_SLOW || end->state == NW_FLEET_FLAKY ||
           end->state == NW_FLEET_FAILED;
}

const char *nw_fleet_state_name(nw_fleet_state state)
{
    static const char *const names[] = {[NW_FLEET_UNKNOWN] = "unknown",
                                        [NW_FLEET_GOOD] = "good",
                                        [NW_FLEET_SLOW] = "slow",
                                        [NW_FLEET_FLAKY] = "flaky",
                                        [NW_FLEET_FAILED] = "failed"};

    return names[state];
}
