#include "results/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Groups are looked through one by one: more of them are no set of results. */
#define GROUPS_MAX 4096

static const struct nw_value unknown = {NAN, NAN, NAN};

static bool is_of(const struct nw_group *group, const struct nw_record *record)
{
    const struct nw_record *like = &group->like;

    return strcmp(like->collective, record->collective) == 0 &&
           strcmp(like->lane, record->lane) == 0 && like->rank_count == record->rank_count &&
           like->host_count == record->host_count && strcmp(like->dtype, record->dtype) == 0 &&
           strcmp(like->op, record->op) == 0 && strcmp(like->case_name, record->case_name) == 0 &&
           strcmp(like->features, record->features) == 0 && like->root == record->root &&
           like->piece_bytes == record->piece_bytes && like->stream_count == record->stream_count &&
           strcmp(like->memory, record->memory) == 0;
}

static nw_rc add_group(struct nw_groups *groups, const struct nw_record *record,
                       struct nw_group **group_out)
{
    if (groups->count == GROUPS_MAX)
        return nw_fail(NW_EUSAGE,
                       "more than %d different things were measured; choose some: --cases, "
                       "--collectives, --lanes …",
                       GROUPS_MAX);
    if (groups->count == groups->capacity) {
        const size_t capacity = groups->capacity > 0 ? 2 * groups->capacity : 16;
        struct nw_group *grown = realloc(groups->items, capacity * sizeof *grown);

        if (grown == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu groups of results", capacity);
        groups->items = grown;
        groups->capacity = capacity;
    }
    struct nw_group *group = &groups->items[groups->count];

    *group =
        (struct nw_group){.like = *record, .wrong = -1, .rate = unknown, .latency_ns = unknown};
    group->like.samples_ns = NULL;
    group->like.warnings = (struct nw_findings){0};
    groups->last = groups->count++;
    *group_out = group;
    return NW_OK;
}

static nw_rc find_or_add(struct nw_groups *groups, const struct nw_record *record,
                         struct nw_group **group_out)
{
    for (size_t i = 0; i < groups->count; i++) {
        const size_t index = (groups->last + i) % groups->count;

        if (is_of(&groups->items[index], record)) {
            groups->last = index;
            *group_out = &groups->items[index];
            return NW_OK;
        }
    }
    return add_group(groups, record, group_out);
}

static double rate_of(const struct nw_record *record)
{
    if (isfinite(record->busbw_bytes_per_s))
        return record->busbw_bytes_per_s;
    return isfinite(record->flop_per_s) ? record->flop_per_s : record->algbw_bytes_per_s;
}

nw_rc nw_groups_add(struct nw_groups *groups, const struct nw_record *record)
{
    struct nw_group *group;

    NW_TRY(find_or_add(groups, record, &group));
    group->record_count++;
    group->simulated = group->simulated || record->simulated;
    if (record->wrong_elements >= 0)
        group->wrong = (group->wrong > 0 ? group->wrong : 0) + record->wrong_elements;
    const double rate = rate_of(record);

    if (record->rc != NW_OK || (!isfinite(record->time_ns.median) && !isfinite(rate))) {
        group->failed_count++;
        return NW_OK;
    }
    if (group->reading_count == group->reading_capacity) {
        const size_t capacity = group->reading_capacity > 0 ? 2 * group->reading_capacity : 32;
        struct nw_group_reading *grown = realloc(group->readings, capacity * sizeof *grown);

        if (grown == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu results of a group", capacity);
        group->readings = grown;
        group->reading_capacity = capacity;
    }
    group->readings[group->reading_count++] =
        (struct nw_group_reading){.bytes = record->bytes,
                                  .time_ns = record->time_ns.median,
                                  .low_ns = record->time_ns.low,
                                  .high_ns = record->time_ns.high,
                                  .rate = rate,
                                  .in_place = record->in_place};
    return NW_OK;
}

/* ---- the groups' figures -----------------------------------------------------------------------
 */

static int by_bytes(const void *a, const void *b)
{
    const struct nw_group_reading *left = a, *right = b;

    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? -1 : 1;
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Median, least and most of the finite ones; `scratch` has room for them. */
static struct nw_value spread_of(const struct nw_group_reading *readings, size_t count,
                                 size_t member, double *scratch)
{
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        const double value = *(const double *)((const char *)&readings[i] + member);

        if (isfinite(value))
            scratch[known++] = value;
    }
    if (known == 0)
        return unknown;
    qsort(scratch, known, sizeof *scratch, by_value);
    return (struct nw_value){nw_quantile_sorted(scratch, known, 0.5), scratch[0],
                             scratch[known - 1]};
}

static struct nw_group_point point_of(const struct nw_group_reading *readings, size_t count,
                                      double *scratch)
{
    struct nw_group_point point = {.bytes = readings[0].bytes, .count = count};
    const size_t time = offsetof(struct nw_group_reading, time_ns);

    point.time_ns = spread_of(readings, count, time, scratch);
    point.rate = spread_of(readings, count, offsetof(struct nw_group_reading, rate), scratch);
    if (count == 1) { /* its own interval */
        point.time_ns.low = readings[0].low_ns;
        point.time_ns.high = readings[0].high_ns;
        point.rate.low = point.rate.value * readings[0].time_ns / readings[0].high_ns;
        point.rate.high = point.rate.value * readings[0].time_ns / readings[0].low_ns;
    }
    return point;
}

static nw_rc make_points(struct nw_group *group)
{
    const size_t count = group->reading_count;
    double *scratch = malloc(count * sizeof *scratch);
    size_t sizes = 1;

    qsort(group->readings, count, sizeof *group->readings, by_bytes);
    for (size_t i = 1; i < count; i++)
        sizes += group->readings[i].bytes != group->readings[i - 1].bytes;
    group->points = calloc(sizes, sizeof *group->points);
    if (scratch == NULL || group->points == NULL) {
        free(scratch);
        return nw_fail(NW_ENOMEM, "no memory for the sizes of a group");
    }
    for (size_t i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count; same++)
            if (group->readings[i + same].bytes != group->readings[i].bytes)
                break;
        group->points[group->point_count++] = point_of(&group->readings[i], same, scratch);
    }
    free(scratch);
    return NW_OK;
}

/* By the rule for all curves (results.h), over one record a size. */
static nw_rc take_plateau(struct nw_group *group)
{
    struct nw_run run = {.records = calloc(group->point_count, sizeof *run.records),
                         .record_count = group->point_count};
    struct nw_plateau plateau;

    if (run.records == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a curve");
    for (size_t i = 0; i < group->point_count; i++) {
        run.records[i] = group->like;
        run.records[i].bytes = group->points[i].bytes;
        run.records[i].busbw_bytes_per_s = group->points[i].rate.value;
        run.records[i].rc = NW_OK;
        run.records[i].wrong_elements = -1;
        run.records[i].piece_bytes = 0;
    }
    const nw_rc rc = nw_plateau_like(&run, &group->like, -1, &plateau);

    free(run.records);
    if (rc != NW_OK) { /* only of size 0, say */
        nw_clear_error();
        return NW_OK;
    }
    group->rate = (struct nw_value){plateau.busbw_bytes_per_s, plateau.low, plateau.high};
    group->rate_from_bytes = plateau.from_bytes;
    return NW_OK;
}

static nw_rc finish(struct nw_group *group)
{
    if (group->reading_count == 0)
        return NW_OK;
    NW_TRY(make_points(group));
    const struct nw_group_point *largest = &group->points[group->point_count - 1];

    group->kind = isfinite(group->like.busbw_bytes_per_s) ? NW_RATE_BUSBW
                  : isfinite(group->like.flop_per_s)      ? NW_RATE_FLOP
                                                          : NW_RATE_ALGBW;
    group->latency_ns = group->points[0].time_ns;
    group->rate = largest->rate;
    group->rate_from_bytes = largest->bytes;
    if (nw_record_is_collective(&group->like) && group->kind == NW_RATE_BUSBW)
        return take_plateau(group);
    return NW_OK;
}

nw_rc nw_groups_finish(struct nw_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        NW_TRY(finish(&groups->items[i]));
    return NW_OK;
}

void nw_groups_free(struct nw_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        free(groups->items[i].readings);
        free(groups->items[i].points);
    }
    free(groups->items);
    *groups = (struct nw_groups){0};
}
