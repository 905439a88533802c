#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/results.h"

/* Sizes "agree" when the best of them is within this ratio of the worst. */
#define AGREES 1.02
/* A curve falls when its largest size is below this share of its best. */
#define FALLEN 0.90

struct point {
    uint64_t bytes;
    double busbw, algbw;
};

struct wanted {
    const char *case_name, *collective;
    int rank_count, host_count, place;
    const struct nw_record *like; /* lane, features, dtype, op and root of the curve; NULL: any */
};

static bool is_wanted(const struct nw_record *record, const struct wanted *wanted)
{
    const struct nw_record *like = wanted->like;

    if (record->rc != NW_OK || !isfinite(record->busbw_bytes_per_s) || record->piece_bytes > 0 ||
        record->wrong_elements > 0 || record->bytes == 0)
        return false;
    if (strcmp(record->case_name, wanted->case_name) != 0 ||
        strcmp(record->collective, wanted->collective) != 0)
        return false;
    if ((wanted->rank_count > 0 && record->rank_count != wanted->rank_count) ||
        (wanted->host_count > 0 && record->host_count != wanted->host_count) ||
        (wanted->place >= 0 && record->in_place != (wanted->place == 1)))
        return false;
    return like == NULL ||
           (strcmp(record->lane, like->lane) == 0 &&
            strcmp(record->features, like->features) == 0 &&
            strcmp(record->dtype, like->dtype) == 0 && strcmp(record->op, like->op) == 0 &&
            record->root == like->root && record->peer_a == like->peer_a &&
            record->peer_b == like->peer_b && record->rank_count == like->rank_count &&
            record->host_count == like->host_count);
}

static int by_bytes_then_rate(const void *a, const void *b)
{
    const struct point *left = a, *right = b;

    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? -1 : 1;
    return (left->busbw > right->busbw) - (left->busbw < right->busbw);
}

static int by_rate(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(const double *sorted, size_t count)
{
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* Several records of one size (both places, repeats) become one point: the middle one, or the mean
 * of the middle two. Returns how many points are left. */
static size_t merge_sizes(struct point *points, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count;) {
        size_t same = 1;

        while (i + same < count && points[i + same].bytes == points[i].bytes)
            same++;
        const struct point low = points[i + (same - 1) / 2], high = points[i + same / 2];

        points[kept++] = (struct point){.bytes = low.bytes,
                                        .busbw = (low.busbw + high.busbw) / 2,
                                        .algbw = (low.algbw + high.algbw) / 2};
        i += same;
    }
    return kept;
}

static void fill(struct nw_plateau *plateau, const struct point *points, size_t count,
                 double *scratch)
{
    double least = INFINITY, most = 0;
    size_t first = count;

    while (first > 0) {
        const double rate = points[first - 1].busbw;
        const double new_least = fmin(least, rate), new_most = fmax(most, rate);

        if (first < count && new_most > AGREES * new_least)
            break;
        least = new_least;
        most = new_most;
        first--;
    }
    for (size_t i = first; i < count; i++)
        scratch[i - first] = points[i].busbw;
    qsort(scratch, count - first, sizeof *scratch, by_rate);
    plateau->busbw_bytes_per_s = median(scratch, count - first);
    for (size_t i = first; i < count; i++)
        scratch[i - first] = points[i].algbw;
    qsort(scratch, count - first, sizeof *scratch, by_rate);
    plateau->algbw_bytes_per_s = median(scratch, count - first);
    plateau->low = least;
    plateau->high = most;
    plateau->from_bytes = points[first].bytes;
    plateau->to_bytes = points[count - 1].bytes;
    for (size_t i = 0; i < count; i++)
        if (points[i].busbw > plateau->peak_bytes_per_s) {
            plateau->peak_bytes_per_s = points[i].busbw;
            plateau->peak_bytes = points[i].bytes;
        }
    plateau->falls = points[count - 1].busbw < FALLEN * plateau->peak_bytes_per_s;
}

/* Records of several runs, one after the other. */
struct sweep {
    const struct nw_run *const *runs;
    size_t run_count, record_count;
};

/* Record number `i` of the sweep; *run and *first remember where it was for the next one. */
static const struct nw_record *record_at(const struct sweep *sweep, size_t i, size_t *run,
                                         size_t *first)
{
    while (i - *first >= sweep->runs[*run]->record_count) {
        *first += sweep->runs[*run]->record_count;
        (*run)++;
    }
    return &sweep->runs[*run]->records[i - *first];
}

/* The widest interval of the records that make the plateau, where they have one. */
static void widen(struct nw_plateau *plateau, const struct sweep *sweep,
                  const struct wanted *wanted)
{
    size_t run = 0, first = 0;

    for (size_t i = 0; i < sweep->record_count; i++) {
        const struct nw_record *record = record_at(sweep, i, &run, &first);
        const struct nw_stats *time = &record->time_ns;

        if (!isfinite(time->low) || !(time->low > 0) || record->bytes < plateau->from_bytes ||
            record->bytes > plateau->to_bytes || !is_wanted(record, wanted))
            continue;
        plateau->low = fmin(plateau->low, record->busbw_bytes_per_s * time->median / time->high);
        plateau->high = fmax(plateau->high, record->busbw_bytes_per_s * time->median / time->low);
    }
}

/* Whose curve is taken: the most ranks, then the library's own choice of a way, then nothing asked
 * of it besides. */
static bool is_before(const struct nw_record *record, const struct nw_record *other)
{
    const bool own = strcmp(record->lane, "auto") == 0,
               other_own = strcmp(other->lane, "auto") == 0;

    if (record->rank_count != other->rank_count)
        return record->rank_count > other->rank_count;
    if (own != other_own)
        return own;
    return record->features[0] == '\0' && other->features[0] != '\0' &&
           strcmp(record->lane, other->lane) == 0;
}

/* NULL: none is wanted. */
static const struct nw_record *find_like(const struct sweep *sweep, const struct wanted *wanted)
{
    const struct nw_record *like = NULL;
    size_t run = 0, first = 0;

    for (size_t i = 0; i < sweep->record_count; i++) {
        const struct nw_record *record = record_at(sweep, i, &run, &first);

        if ((like == NULL || is_before(record, like)) && is_wanted(record, wanted))
            like = record;
    }
    return like;
}

static size_t collect(const struct sweep *sweep, const struct wanted *wanted, struct point *points)
{
    size_t count = 0, run = 0, first = 0;

    for (size_t i = 0; i < sweep->record_count; i++) {
        const struct nw_record *record = record_at(sweep, i, &run, &first);

        if (is_wanted(record, wanted))
            points[count++] =
                (struct point){record->bytes, record->busbw_bytes_per_s, record->algbw_bytes_per_s};
    }
    qsort(points, count, sizeof *points, by_bytes_then_rate);
    return merge_sizes(points, count);
}

/* `wanted->like` says whose curve it is. */
static nw_rc plateau_of_sweep(const struct sweep *sweep, const struct wanted *wanted,
                              struct nw_plateau *plateau_out)
{
    struct point *points = malloc((sweep->record_count + 1) * sizeof *points);
    double *scratch = malloc((sweep->record_count + 1) * sizeof *scratch);
    struct nw_plateau plateau = {.rank_count = wanted->like->rank_count,
                                 .host_count = wanted->like->host_count};
    size_t count;

    if (points == NULL || scratch == NULL) {
        free(points);
        free(scratch);
        return nw_fail(NW_ENOMEM, "no memory for a curve of %zu records", sweep->record_count);
    }
    count = collect(sweep, wanted, points);
    if (count > 0) {
        fill(&plateau, points, count, scratch);
        widen(&plateau, sweep, wanted);
        *plateau_out = plateau;
    }
    free(points);
    free(scratch);
    return count > 0 ? NW_OK
                     : nw_fail(NW_ENODEV, "no record of case %s, %s with a bus bandwidth",
                               wanted->case_name, wanted->collective);
}

nw_rc nw_plateau_of_runs(const struct nw_run *const *runs, size_t run_count, const char *case_name,
                         const char *collective, int rank_count, int host_count, int place,
                         struct nw_plateau *plateau_out)
{
    struct wanted wanted = {case_name, collective, rank_count, host_count, place, NULL};
    struct sweep sweep = {.runs = runs, .run_count = run_count};

    for (size_t i = 0; i < run_count; i++)
        sweep.record_count += runs[i]->record_count;
    wanted.like = find_like(&sweep, &wanted);
    if (wanted.like == NULL)
        return nw_fail(NW_ENODEV, "no record of case %s, %s with a bus bandwidth", case_name,
                       collective);
    return plateau_of_sweep(&sweep, &wanted, plateau_out);
}

nw_rc nw_plateau_like(const struct nw_run *run, const struct nw_record *like, int place,
                      struct nw_plateau *plateau_out)
{
    const struct wanted wanted = {like->case_name, like->collective, 0, 0, place, like};
    const struct sweep sweep = {.runs = &run, .run_count = 1, .record_count = run->record_count};

    return plateau_of_sweep(&sweep, &wanted, plateau_out);
}

nw_rc nw_plateau_of(const struct nw_run *run, const char *case_name, const char *collective,
                    int rank_count, int host_count, int place, struct nw_plateau *plateau_out)
{
    return nw_plateau_of_runs(&run, 1, case_name, collective, rank_count, host_count, place,
                              plateau_out);
}
