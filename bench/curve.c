#include "bench/curve.h"

#include <math.h>

struct nw_curve_point nw_curve_point_of(const struct nw_record *record)
{
    const struct nw_stats *time = &record->time_ns;
    const double busbw = record->busbw_bytes_per_s;

    return (struct nw_curve_point){
        .bytes = record->bytes,
        .busbw = busbw,
        .low = time->high > 0 ? busbw * time->median / time->high : busbw,
        .high = time->low > 0 ? busbw * time->median / time->low : busbw,
    };
}

void nw_curve_add(struct nw_curve *curve, const struct nw_record *record)
{
    if (record->busbw_bytes_per_s > 0 && curve->count < curve->capacity)
        curve->points[curve->count++] = nw_curve_point_of(record);
}

static bool is_fallen(const struct nw_curve_point *point, const struct nw_curve_point *best)
{
    return point->bytes > best->bytes && point->busbw < (1 - NW_FALL_REL) * best->busbw &&
           point->high < best->low;
}

/* Keep the `fallen` list descending and short. */
static void insert_fallen(struct nw_fall *fall, uint64_t bytes)
{
    size_t at = fall->fallen_count;

    if (at < NW_FALL_SIZES_MAX)
        fall->fallen_count++;
    else if (fall->fallen[--at] > bytes)
        return;
    for (; at > 0 && fall->fallen[at - 1] < bytes; at--)
        fall->fallen[at] = fall->fallen[at - 1];
    fall->fallen[at] = bytes;
}

bool nw_curve_falls(const struct nw_curve *curve, struct nw_fall *fall_out)
{
    struct nw_fall fall = {.fallen_count = 0};

    if (curve->count < 2)
        return false;
    fall.best = fall.last = curve->points[0];
    for (size_t i = 1; i < curve->count; i++) {
        if (curve->points[i].busbw > fall.best.busbw)
            fall.best = curve->points[i];
        if (curve->points[i].bytes > fall.last.bytes)
            fall.last = curve->points[i];
    }
    if (fall.last.bytes < NW_FALL_BYTES_MIN || !is_fallen(&fall.last, &fall.best))
        return false;
    fall.widest = fall.best;
    for (size_t i = 0; i < curve->count; i++) {
        const struct nw_curve_point *point = &curve->points[i];

        if (is_fallen(point, &fall.best))
            insert_fallen(&fall, point->bytes);
        if (point->bytes > fall.widest.bytes && point->busbw >= (1 - NW_FALL_REL) * fall.best.busbw)
            fall.widest = *point;
    }
    *fall_out = fall;
    return true;
}
