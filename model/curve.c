#include "model/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

void nw_curves_free(struct nw_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        free(curves->items[i].samples);
        free(curves->items[i].points);
    }
    free(curves->items);
    *curves = (struct nw_curves){0};
}

bool nw_curves_have_lane(const struct nw_curves *curves, const char *lane)
{
    for (size_t i = 0; i < curves->count; i++)
        if (strcmp(curves->items[i].lane, lane) == 0)
            return true;
    return false;
}

const char *nw_curves_lane(const struct nw_curves *curves)
{
    static const char *const preferred[] = {"auto", "host", "local"};

    for (size_t p = 0; p < sizeof preferred / sizeof preferred[0]; p++)
        if (nw_curves_have_lane(curves, preferred[p]))
            return preferred[p];
    return curves->count > 0 ? curves->items[0].lane : NULL;
}

/* ---- building ------------------------------------------------------------------------------ */

static bool is_usable(const struct nw_record *record)
{
    return nw_record_is_collective(record) && nw_coll_find(record->collective) != NULL &&
           record->rc == NW_OK && record->wrong_elements <= 0 && record->rank_count >= 2 &&
           record->bytes > 0 && record->piece_bytes == 0 && isfinite(record->time_ns.median) &&
           record->time_ns.median > 0;
}

static int host_count_of(const struct nw_record *record, const struct nw_context *context,
                         int gpus_per_node, bool *guessed_out)
{
    const int per_node = gpus_per_node > 0 ? gpus_per_node : 8;

    *guessed_out = false;
    if (record->host_count > 0)
        return record->host_count;
    if (context->host_count > 0 && context->rank_count == record->rank_count)
        return context->host_count;
    *guessed_out = true;
    return (record->rank_count + per_node - 1) / per_node;
}

static nw_rc find_or_add(struct nw_curves *curves, const struct nw_record *record, int host_count,
                         struct nw_curve **curve_out)
{
    for (size_t i = 0; i < curves->count; i++) {
        struct nw_curve *curve = &curves->items[i];

        if (curve->rank_count == record->rank_count && curve->host_count == host_count &&
            strcmp(curve->collective, record->collective) == 0 &&
            strcmp(curve->lane, record->lane) == 0 &&
            strcmp(curve->features, record->features) == 0) {
            *curve_out = curve;
            return NW_OK;
        }
    }
    struct nw_curve *items = realloc(curves->items, (curves->count + 1) * sizeof *items);

    if (items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a curve");
    curves->items = items;
    struct nw_curve *curve = &items[curves->count++];

    *curve = (struct nw_curve){
        .rank_count = record->rank_count, .host_count = host_count, .has_interval = true};
    curve->coll = nw_coll_find(record->collective)->id; /* is_usable saw to it */
    memcpy(curve->collective, record->collective, sizeof curve->collective);
    memcpy(curve->lane, record->lane, sizeof curve->lane);
    memcpy(curve->features, record->features, sizeof curve->features);
    *curve_out = curve;
    return NW_OK;
}

static nw_rc add_sample(struct nw_curve *curve, const struct nw_record *record, double error)
{
    const struct nw_stats *time = &record->time_ns;
    /* The array doubles: its capacity is the power of two that holds the count. */
    if ((curve->sample_count & (curve->sample_count - 1)) == 0) {
        const size_t capacity = curve->sample_count == 0 ? 1 : 2 * curve->sample_count;
        struct nw_curve_sample *samples =
            realloc(curve->samples, capacity * sizeof *curve->samples);

        if (samples == NULL)
            return nw_fail(NW_ENOMEM, "no memory for a curve");
        curve->samples = samples;
    }
    const bool known = isfinite(time->low) && isfinite(time->high) && time->low > 0 &&
                       time->low <= time->median && time->median <= time->high && time->count >= 2;

    curve->samples[curve->sample_count++] = (struct nw_curve_sample){
        .point = {.bytes = (double)record->bytes,
                  .time_ns = time->median,
                  .low_ns = known ? time->low : time->median * (1 - error),
                  .high_ns = known ? time->high : time->median * (1 + error)},
        .in_place = record->in_place,
        .has_interval = known,
    };
    return NW_OK;
}

/* By bytes, out-of-place first, then by time. */
static int compare_samples(const void *a, const void *b)
{
    const struct nw_curve_sample *x = a, *y = b;

    if (x->point.bytes != y->point.bytes)
        return x->point.bytes < y->point.bytes ? -1 : 1;
    if (x->in_place != y->in_place)
        return x->in_place ? 1 : -1;
    return (x->point.time_ns > y->point.time_ns) - (x->point.time_ns < y->point.time_ns);
}

/* Samples [first, first + count) measured the same thing: the median of the times (of an even
 * count the mean of the middle two), the widest interval. */
static struct nw_curve_point merge(const struct nw_curve_sample *samples, size_t count)
{
    struct nw_curve_point point = samples[count / 2].point;

    if (count % 2 == 0)
        point.time_ns = (samples[count / 2 - 1].point.time_ns + point.time_ns) / 2;
    for (size_t i = 0; i < count; i++) {
        point.low_ns = fmin(point.low_ns, samples[i].point.low_ns);
        point.high_ns = fmax(point.high_ns, samples[i].point.high_ns);
    }
    return point;
}

/* Time of an empty message: the line through the two smallest sizes, between 0 and the smallest
 * time. Slope at the end: least squares over the last three sizes; never less than half the bytes'
 * cost at the best rate seen, so that noise does not promise a faster wire than was ever measured.
 */
static void fit_ends(struct nw_curve *curve)
{
    const struct nw_curve_point *points = curve->points;
    const size_t count = curve->point_count, tail = count < 3 ? count : 3;
    double x[3], y[3], a, slope = NAN, best = INFINITY;

    for (size_t i = 0; i < count; i++)
        best = fmin(best, points[i].time_ns / points[i].bytes);
    for (size_t i = 0; i < tail; i++) {
        x[i] = points[count - tail + i].bytes;
        y[i] = points[count - tail + i].time_ns;
    }
    if (tail < 2 || nw_fit_line(x, y, tail, &a, &slope) != NW_OK || !(slope > 0))
        slope = points[count - 1].time_ns / points[count - 1].bytes;
    curve->beta_ns_per_byte = fmax(slope, best / 2);
    curve->alpha_ns = 0;
    if (count >= 2) {
        const double rise =
            (points[1].time_ns - points[0].time_ns) / (points[1].bytes - points[0].bytes);

        curve->alpha_ns =
            fmin(fmax(points[0].time_ns - rise * points[0].bytes, 0), points[0].time_ns);
    }
}

/* A point that is left out would be read off the line between its neighbours. */
static double roughness_of(const struct nw_curve_point *points, size_t count)
{
    double sum = 0;

    for (size_t i = 1; i + 1 < count; i++) {
        const struct nw_curve_point *a = &points[i - 1], *at = &points[i], *b = &points[i + 1];
        const double off = a->log_time_ns - at->log_time_ns +
                           (b->log_time_ns - a->log_time_ns) * (at->log_bytes - a->log_bytes) /
                               (b->log_bytes - a->log_bytes);

        sum += off * off;
    }
    return count > 2 ? sqrt(sum / (double)(count - 2)) : 0;
}

static nw_rc finish(struct nw_curve *curve)
{
    struct nw_curve_point *points = malloc(curve->sample_count * sizeof *points);
    size_t count = 0;

    if (points == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a curve");
    qsort(curve->samples, curve->sample_count, sizeof *curve->samples, compare_samples);
    curve->has_interval = true;
    for (size_t i = 0; i < curve->sample_count;) {
        size_t end = i + 1, next;

        while (end < curve->sample_count &&
               curve->samples[end].point.bytes == curve->samples[i].point.bytes &&
               curve->samples[end].in_place == curve->samples[i].in_place)
            end++;
        for (next = end; next < curve->sample_count &&
                         curve->samples[next].point.bytes == curve->samples[i].point.bytes;)
            next++; /* in-place of a size that has out-of-place */
        for (size_t s = i; s < end; s++)
            curve->has_interval = curve->has_interval && curve->samples[s].has_interval;
        points[count] = merge(&curve->samples[i], end - i);
        points[count].log_bytes = log(points[count].bytes);
        points[count].log_time_ns = log(points[count].time_ns);
        count++;
        i = next;
    }
    free(curve->points);
    curve->points = points;
    curve->point_count = count;
    curve->roughness = roughness_of(points, count);
    fit_ends(curve);
    return NW_OK;
}

nw_rc nw_curves_add(struct nw_curves *curves, const struct nw_results *results, int gpus_per_node)
{
    return nw_curves_add_with(curves, results, gpus_per_node,
                              nw_constants[NW_CONSTANT_IMPORT_ERROR].value);
}

nw_rc nw_curves_add_with(struct nw_curves *curves, const struct nw_results *results,
                         int gpus_per_node, double import_error)
{
    for (size_t r = 0; r < results->run_count; r++) {
        const struct nw_run *run = &results->runs[r];

        for (size_t i = 0; i < run->record_count; i++) {
            struct nw_curve *curve = NULL;
            bool guessed;

            if (!is_usable(&run->records[i]))
                continue;
            const int hosts =
                host_count_of(&run->records[i], &run->context, gpus_per_node, &guessed);

            NW_TRY(find_or_add(curves, &run->records[i], hosts, &curve));
            NW_TRY(add_sample(curve, &run->records[i], import_error));
            curve->hosts_guessed = curve->hosts_guessed || guessed;
            curve->simulated = curve->simulated || run->records[i].simulated;
        }
    }
    for (size_t i = 0; i < curves->count; i++)
        NW_TRY(finish(&curves->items[i]));
    return NW_OK;
}

/* ---- reading off --------------------------------------------------------------------------- */

static double log_log(double x, double x0, double y0, double x1, double y1)
{
    const double u = log(x / x0) / log(x1 / x0);

    return y0 * pow(y1 / y0, u);
}

/* `at` scaled to the time `time_ns`, its interval with it. */
static struct nw_curve_point scaled(const struct nw_curve_point *at, double bytes, double time_ns)
{
    const double factor = time_ns / at->time_ns;

    return (struct nw_curve_point){.bytes = bytes,
                                   .time_ns = time_ns,
                                   .low_ns = at->low_ns * factor,
                                   .high_ns = at->high_ns * factor};
}

/* `bytes` lies between this point and the next, or on either; of one point: on it. */
static const struct nw_curve_point *point_below(const struct nw_curve *curve, double bytes)
{
    size_t low = 0, high = curve->point_count - 1;

    while (high - low > 1) {
        const size_t middle = (low + high) / 2;

        if (curve->points[middle].bytes <= bytes)
            low = middle;
        else
            high = middle;
    }
    return &curve->points[low];
}

bool nw_curve_time(const struct nw_curve *curve, double bytes, struct nw_curve_point *point_out)
{
    const struct nw_curve_point *points = curve->points;
    const struct nw_curve_point *first = &points[0], *last = &points[curve->point_count - 1];

    if (bytes < first->bytes) {
        const double slope = (first->time_ns - curve->alpha_ns) / first->bytes;

        *point_out = scaled(first, bytes, curve->alpha_ns + slope * bytes);
        return true;
    }
    if (bytes > last->bytes) {
        const double beyond = curve->beta_ns_per_byte * (bytes - last->bytes);

        *point_out = scaled(last, bytes, last->time_ns + beyond);
        return true;
    }
    const struct nw_curve_point *a = point_below(curve, bytes), *b = a + 1;

    if (bytes == a->bytes || bytes == b->bytes) {
        *point_out = bytes == a->bytes ? *a : *b;
        return false;
    }
    *point_out = (struct nw_curve_point){
        .bytes = bytes,
        .time_ns = log_log(bytes, a->bytes, a->time_ns, b->bytes, b->time_ns),
        .low_ns = log_log(bytes, a->bytes, a->low_ns, b->bytes, b->low_ns),
        .high_ns = log_log(bytes, a->bytes, a->high_ns, b->bytes, b->high_ns),
    };
    return false;
}

double nw_curve_time_only(const struct nw_curve *curve, double bytes)
{
    const struct nw_curve_point *points = curve->points;
    const struct nw_curve_point *first = &points[0], *last = &points[curve->point_count - 1];

    if (bytes <= first->bytes)
        return curve->alpha_ns + (first->time_ns - curve->alpha_ns) / first->bytes * bytes;
    if (bytes >= last->bytes)
        return last->time_ns + curve->beta_ns_per_byte * (bytes - last->bytes);
    const struct nw_curve_point *a = point_below(curve, bytes), *b = a + 1;

    return exp(a->log_time_ns + (log(bytes) - a->log_bytes) / (b->log_bytes - a->log_bytes) *
                                    (b->log_time_ns - a->log_time_ns));
}
