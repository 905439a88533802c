/* Public. The lanes of a run side by side: the same collective by each way that the bytes were made
 * to go. Bandwidth is the plateau (results.h), latency the smallest size; never an average.
 *
 * Owns its groups; the strings of `notes` are the run's.
 *
 *     struct nw_lanes lanes;
 *     NW_TRY(nw_lanes_compare(&results.runs[0], &lanes));
 *     for (size_t i = 0; i < lanes.count; i++) … lanes.groups[i].sides[lane] …
 *     nw_lanes_free(&lanes);
 */
#ifndef NW_RESULTS_LANES_H
#define NW_RESULTS_LANES_H

#include "results/results.h"

#define NW_LANES_MAX 16

struct nw_value { /* NAN: not measured */
    double value, low, high;
};

struct nw_lane_side { /* one lane of a group */
    char lane[16];
    struct nw_value busbw_bytes_per_s, latency_ns;
    uint64_t to_bytes;     /* its largest size */
    bool partial;          /* ends at a smaller size than another lane: not compared */
    struct nw_value ratio; /* of the bus bandwidth, over the slowest lane's */
};

/* The library's own choice (lane auto) against the algorithms that were forced (ring, tree, nvls),
 * size by size. */
struct nw_lane_choice {
    size_t size_count;  /* that both were measured at; 0: nothing to compare */
    size_t worse_count; /* at which a forced one took NW_CHOICE_REL less, beyond the intervals */
    uint64_t worse_from_bytes, worse_to_bytes;
    /* The largest of those; where worse_count is 0, of all sizes: noise may hide what it costs. */
    uint64_t worst_bytes;
    char worst_lane[16];
    struct nw_value worst_ratio; /* time of the choice over the forced one's */
};
#define NW_CHOICE_REL 0.05

struct nw_lanes_group {           /* records that differ in lane, bytes and times only */
    const struct nw_record *like; /* its first record */
    uint64_t latency_bytes;       /* smallest size that all lanes have; 0: none */
    struct nw_lane_side sides[NW_LANES_MAX];
    size_t side_count;
    struct nw_lane_choice choice;
    int slowest, fastest; /* by bus bandwidth; -1: fewer than two can be compared */
};

struct nw_lane_note { /* a lane that is not there, or not whole */
    const char *lane; /* "lane pcie" of a broken one: as its finding says */
    const char *text;
    bool broke; /* false: left out */
};

struct nw_lanes {
    struct nw_lanes_group *groups; /* two lanes or more each */
    size_t count;
    struct nw_lane_note *notes;
    size_t note_count;
    bool simulated;
};

nw_rc nw_lanes_compare(const struct nw_run *run, struct nw_lanes *lanes_out);
void nw_lanes_free(struct nw_lanes *lanes); /* leaves it empty */
/* The side of a lane; NULL: it has none. */
const struct nw_lane_side *nw_lanes_side(const struct nw_lanes_group *group, const char *lane);
/* a / b with the interval that theirs allow; NAN where one is. */
struct nw_value nw_value_ratio(struct nw_value a, struct nw_value b);
/* One array of groups, for --json; the caller owns it. */
nw_rc nw_lanes_to_json(const struct nw_lanes *lanes, json_t **json_out);

#endif
