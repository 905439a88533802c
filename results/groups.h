/* Public. Results by what was measured: one group for all records that differ only in size, place,
 * ends (ranks, hosts, NICs of pairs) and times. Keeps a few numbers a record, so that a million of
 * them fit.
 *
 * Owns everything.
 *
 *     struct nw_groups groups = {0};
 *     NW_TRY(nw_groups_add(&groups, &record));        // each
 *     NW_TRY(nw_groups_finish(&groups));
 *     groups.items[0].rate.value …
 *     nw_groups_free(&groups);
 */
#ifndef NW_RESULTS_GROUPS_H
#define NW_RESULTS_GROUPS_H

#include "results/lanes.h"
#include "results/results.h"

struct nw_group_point { /* one size: the median of its records */
    uint64_t bytes;
    struct nw_value time_ns, rate; /* rate: see struct nw_group */
    size_t count;
};

struct nw_group_reading { /* one record */
    uint64_t bytes;
    double time_ns, low_ns, high_ns, rate;
    bool in_place;
};

typedef enum { NW_RATE_BUSBW, NW_RATE_ALGBW, NW_RATE_FLOP } nw_rate_kind;

struct nw_group {
    struct nw_record like; /* its first record, without what it owns */
    struct nw_group_reading *readings;
    size_t reading_count, reading_capacity;
    size_t record_count, failed_count; /* failed: without a time */
    int64_t wrong;                     /* elements; -1: never checked */
    bool simulated;
    /* by nw_groups_finish */
    struct nw_group_point *points; /* rising in size */
    size_t point_count;
    nw_rate_kind kind;        /* busbw where the records have it, flop/s of products, else algbw */
    struct nw_value rate;     /* collectives: plateau; else at the largest size median, min, max */
    uint64_t rate_from_bytes; /* where the plateau begins; else the largest size */
    struct nw_value latency_ns; /* at the smallest size */
};

struct nw_groups {
    struct nw_group *items; /* in the order of their first record */
    size_t count, capacity;
    size_t last; /* where the last record went */
};

nw_rc nw_groups_add(struct nw_groups *groups, const struct nw_record *record);
nw_rc nw_groups_finish(struct nw_groups *groups);
void nw_groups_free(struct nw_groups *groups);

#endif
