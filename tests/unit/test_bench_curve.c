#include <criterion/criterion.h>
#include <math.h>

#include "bench/curve.h"

static void add(struct nw_curve *curve, uint64_t bytes, double busbw, double rel_half)
{
    struct nw_record record;

    nw_record_init(&record);
    record.bytes = bytes;
    record.busbw_bytes_per_s = busbw;
    record.time_ns = nw_stats_single(1000);
    record.time_ns.low = 1000 * (1 - rel_half);
    record.time_ns.high = 1000 * (1 + rel_half);
    nw_curve_add(curve, &record);
}

Test(bench_curve, falls_when_the_largest_size_is_a_tenth_below_the_best_beyond_the_intervals)
{
    static const struct {
        const char *name;
        double busbw[6]; /* 1, 2, 4 … MiB; 0: not measured */
        double rel_half;
        bool falls;
        size_t fallen;
        int widest; /* the largest size that is still good */
    } rows[] = {
        {"rises", {1, 2, 3, 4, 5, 6}, 0.01, false, 0, 0},
        {"flat", {1, 5, 5.1, 5, 5.05, 5}, 0.01, false, 0, 0},
        {"nine per cent", {1, 5, 5, 5, 5, 4.56}, 0.001, false, 0, 0},
        {"cliff", {1, 4, 6, 5.8, 0.4, 0.3}, 0.05, true, 2, 3},
        {"before the cliff a shoulder", {1, 6, 5.5, 5, 5.5, 0.3}, 0.01, true, 2, 4},
        {"slope", {6, 5, 4, 3, 2, 1}, 0.01, true, 3, 0}, /* five, the largest three */
        {"within the noise", {1, 4, 6, 6, 5, 5}, 0.2, false, 0, 0},
        {"dip in the middle", {1, 6, 2, 2, 6, 6}, 0.01, false, 0, 0},
        {"one size", {6, 0, 0, 0, 0, 0}, 0.01, false, 0, 0},
        {"nothing", {0, 0, 0, 0, 0, 0}, 0.01, false, 0, 0},
    };

    struct nw_curve_point tiny[2];
    struct nw_curve latency = {.points = tiny, .capacity = 2};
    struct nw_fall none;

    add(&latency, 8, 2e9, 0.01);
    add(&latency, 16, 1e9, 0.01);
    cr_expect_not(nw_curve_falls(&latency, &none), "two latencies are no falling bandwidth");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_curve_point points[6];
        struct nw_curve curve = {.points = points, .capacity = 6};
        struct nw_fall fall = {.fallen_count = 0};
        static const int order[6] = {3, 5, 0, 2, 4, 1}; /* shuffled: the order must not count */

        for (int at = 0; at < 6; at++) {
            const double busbw = rows[i].busbw[order[at]];

            add(&curve, UINT64_C(1) << (20 + order[at]), busbw > 0 ? busbw * 1e9 : NAN,
                rows[i].rel_half);
        }
        cr_expect_eq(nw_curve_falls(&curve, &fall), rows[i].falls, "%s", rows[i].name);
        cr_expect_eq(fall.fallen_count, rows[i].fallen, "%s: %zu", rows[i].name, fall.fallen_count);
        if (rows[i].falls)
            cr_expect_eq(fall.widest.bytes, UINT64_C(1) << (20 + rows[i].widest), "%s",
                         rows[i].name);
        for (size_t at = 0; at < fall.fallen_count && rows[i].widest != 4; at++)
            cr_expect_eq(fall.fallen[at], UINT64_C(1) << (25 - at), "%s: not the largest first",
                         rows[i].name);
    }
}
