#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static void near(double value, double expected, double tolerance, const char *what)
{
    cr_expect(lt(dbl, fabs(value - expected), tolerance * fabs(expected) + 1e-300),
              "%s: %.9g instead of %.9g", what, value, expected);
}

static struct nw_curves curves_of(struct nw_results *results, int gpus_per_node)
{
    struct nw_curves curves = {0};

    cr_assert(eq(int, nw_curves_add(&curves, results, gpus_per_node), NW_OK));
    return curves;
}

static const struct wire eight = {"all_reduce", 8, 1, 20e3, 100e9};

Test(curve, is_exact_at_points_between_them_and_continued_by_latency_and_rate)
{
    struct nw_results results = {0};
    struct nw_curve_point point;

    add_wire(nw_results_add_run(&results), &eight);
    struct nw_curves curves = curves_of(&results, 8);

    cr_assert(eq(sz, curves.count, 1));
    cr_expect(eq(str, (char *)nw_curves_lane(&curves), "host"));
    for (double bytes = 1024; bytes <= (double)(1u << 30); bytes *= 4) {
        cr_expect(not(nw_curve_time(&curves.items[0], bytes, &point)));
        cr_expect(eq(dbl, point.time_ns, wire_ns(&eight, bytes)), "%g", bytes);
        near(point.low_ns, point.time_ns * 0.99, 1e-12, "low");
    }
    /* Between points of the same straight line in log-log: the geometric mean. */
    cr_expect(not(nw_curve_time(&curves.items[0], 2048, &point)));
    near(point.time_ns, sqrt(wire_ns(&eight, 1024) * wire_ns(&eight, 4096)), 1e-12, "between");
    /* Outside: the wire's own latency and rate. */
    cr_expect(nw_curve_time(&curves.items[0], 64, &point));
    near(point.time_ns, wire_ns(&eight, 64), 1e-9, "below");
    cr_expect(nw_curve_time(&curves.items[0], 5e9, &point));
    near(point.time_ns, wire_ns(&eight, 5e9), 1e-9, "above");
    near(point.high_ns, point.time_ns * 1.01, 1e-12, "interval goes with it");
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(curve, merges_repeats_and_prefers_out_of_place)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_curve_point point;

    add_point(run, &eight, 1 << 20, 30e3, 0.01, false);
    add_point(run, &eight, 1 << 20, 10e3, 0.01, false);
    add_point(run, &eight, 1 << 20, 20e3, 0.01, false);
    add_point(run, &eight, 1 << 20, 5e3, 0.01, true); /* there is out-of-place: not used */
    add_point(run, &eight, 1 << 22, 80e3, 0.01, true);
    add_point(run, &eight, 1 << 24, 100e3, 0, false); /* no interval */
    struct nw_curves curves = curves_of(&results, 8);

    cr_assert(eq(sz, curves.count, 1));
    cr_assert(eq(sz, curves.items[0].point_count, 3));
    nw_curve_time(&curves.items[0], 1 << 20, &point);
    cr_expect(eq(dbl, point.time_ns, 20e3));
    near(point.low_ns, 9.9e3, 1e-12, "widest low");
    near(point.high_ns, 30.3e3, 1e-12, "widest high");
    nw_curve_time(&curves.items[0], 1 << 22, &point);
    cr_expect(eq(dbl, point.time_ns, 80e3));
    cr_expect(not(curves.items[0].has_interval));
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(curve, leaves_out_what_is_no_measurement_of_a_collective)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);

    for (int i = 0; i < 7; i++)
        add_point(run, &eight, 1 << 20, 30e3, 0.01, false);
    run->records[0].wrong_elements = 3;
    run->records[1].rc = NW_ETIMEOUT;
    run->records[2].rank_count = 1;
    run->records[3].piece_bytes = 8 << 20;
    run->records[4].time_ns.median = NAN;
    snprintf(run->records[5].case_name, sizeof run->records[5].case_name, "pairs");
    run->records[6].bytes = 0;
    struct nw_curves curves = curves_of(&results, 8);

    cr_expect(eq(sz, curves.count, 0));
    cr_expect(eq(ptr, (void *)nw_curves_lane(&curves), NULL));
    nw_results_free(&results);
}

Test(curve, unknown_host_count_is_taken_from_gpus_per_node_and_marked)
{
    struct nw_results results = {0};

    add_wire(nw_results_add_run(&results), &(struct wire){"all_reduce", 16, 0, 20e3, 100e9});
    struct nw_curves by_eight = curves_of(&results, 0), by_sixteen = curves_of(&results, 16);

    cr_expect(eq(int, by_eight.items[0].host_count, 2));
    cr_expect(eq(int, by_sixteen.items[0].host_count, 1));
    cr_expect(by_eight.items[0].hosts_guessed);
    nw_curves_free(&by_eight);
    nw_curves_free(&by_sixteen);
    nw_results_free(&results);
}

/* Noise at the end of a curve must not promise a wire faster than was ever seen. */
Test(curve, is_not_continued_faster_than_twice_the_best_rate)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_curve_point point;

    add_point(run, &eight, 1 << 20, 1.00e6, 0.01, false); /* 1 byte per ns */
    add_point(run, &eight, 2 << 20, 2.10e6, 0.01, false);
    add_point(run, &eight, 4 << 20, 2.11e6, 0.01, false); /* hardly more for twice as much */
    add_point(run, &eight, 8 << 20, 2.12e6, 0.01, false);
    struct nw_curves curves = curves_of(&results, 8);

    cr_expect(nw_curve_time(&curves.items[0], 108 << 20, &point));
    cr_expect(ge(dbl, point.time_ns, 2.12e6 + (100 << 20) * (2.12e6 / (8 << 20)) / 2 * 0.999));
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* A curve that is a straight line between its points says itself that it may be off there. */
Test(curve, knows_how_rough_it_is)
{
    struct nw_results smooth = {0}, rough = {0};
    struct nw_run *run = nw_results_add_run(&rough);

    add_wire(nw_results_add_run(&smooth), &(struct wire){"all_reduce", 8, 1, 0, 100e9});
    for (int i = 0; i < 8; i++)
        add_point(run, &eight, 1024u << i, (i % 2 ? 1.5 : 1) * (1 << i), 0.01, false);
    struct nw_curves even = curves_of(&smooth, 8), uneven = curves_of(&rough, 8);

    cr_expect(lt(dbl, even.items[0].roughness, 1e-9));
    near(uneven.items[0].roughness, log(1.5), 1e-9, "every second point is half as much again");
    nw_curves_free(&even);
    nw_curves_free(&uneven);
    nw_results_free(&smooth);
    nw_results_free(&rough);
}

Test(curve, the_fast_reading_agrees)
{
    struct nw_results results = {0};
    struct nw_curve_point point;

    add_wire(nw_results_add_run(&results), &eight);
    struct nw_curves curves = curves_of(&results, 8);

    for (double bytes = 1; bytes < 1e13; bytes *= 1.7) {
        nw_curve_time(&curves.items[0], bytes, &point);
        near(nw_curve_time_only(&curves.items[0], bytes), point.time_ns, 1e-12, "time");
    }
    nw_curves_free(&curves);
    nw_results_free(&results);
}
