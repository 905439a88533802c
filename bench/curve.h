/* Public. Does bandwidth fall with size? Pure. */
#ifndef NW_BENCH_CURVE_H
#define NW_BENCH_CURVE_H

#include "bench/record.h"

#define NW_FALL_REL 0.10 /* the largest size this much below the best: the curve falls */

/* Below that, calls are all latency: a smaller size with more "bandwidth" is noise. */
#define NW_FALL_BYTES_MIN (64u << 10)

struct nw_curve_point {
    uint64_t bytes;
    double busbw, low, high; /* bytes/s; from the interval of the median */
};

struct nw_curve {
    struct nw_curve_point *points; /* the caller's, `capacity` entries, in any order */
    size_t count, capacity;
};

/* What a record reached; busbw NAN: nothing. */
struct nw_curve_point nw_curve_point_of(const struct nw_record *record);
/* Leaves out records without a bus bandwidth, and what is beyond the capacity. */
void nw_curve_add(struct nw_curve *curve, const struct nw_record *record);

#define NW_FALL_SIZES_MAX 3
struct nw_fall {
    struct nw_curve_point best, last;   /* the best, and the largest size */
    struct nw_curve_point widest;       /* the largest size within NW_FALL_REL of the best */
    uint64_t fallen[NW_FALL_SIZES_MAX]; /* the largest sizes that are above the best in size
                                           and below it in bandwidth, descending */
    size_t fallen_count;
};

/* True when the largest size, NW_FALL_BYTES_MIN or more, is NW_FALL_REL below the best, beyond what
 * the intervals allow. */
bool nw_curve_falls(const struct nw_curve *curve, struct nw_fall *fall_out);

#endif
