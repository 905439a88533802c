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

/* ---- the fabric ---------------------------------------------------------------------------- */

static struct nw_cost cost(const struct nw_fabric *fabric, const char *collective, double bytes,
                           int ranks, int hosts, double inter_scale)
{
    struct nw_scenario scenario = nw_scenario_likely;
    struct nw_cost found;

    scenario.inter_scale = inter_scale;
    cr_assert(eq(int,
                 nw_fabric_cost(fabric, collective, bytes,
                                (struct nw_group){.rank_count = ranks, .host_count = hosts},
                                &scenario, &found),
                 NW_OK),
              "%s", nw_last_error()->text);
    cr_expect(le(dbl, found.low_ns, found.time_ns));
    cr_expect(ge(dbl, found.high_ns, found.time_ns));
    return found;
}

Test(fabric, derives_gathers_from_all_reduce_by_ring_equivalence)
{
    struct nw_results results = {0};

    add_wire(nw_results_add_run(&results), &eight);
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;
    const double measured = cost(&fabric, "all_reduce", 1 << 26, 8, 1, 1).time_ns;
    const struct nw_cost gather = cost(&fabric, "all_gather", 1 << 26, 8, 1, 1);
    const struct nw_cost scatter = cost(&fabric, "reduce_scatter", 1 << 26, 8, 1, 1);

    near(gather.time_ns, measured * 0.61, 1e-12, "gather");
    near(scatter.time_ns, measured * 0.61, 1e-12, "scatter");
    cr_expect(eq(uint, gather.how & NW_COST_DERIVED, NW_COST_DERIVED));
    cr_expect(eq(uint, cost(&fabric, "all_reduce", 1 << 26, 8, 1, 1).how, 0));
    cr_expect(eq(dbl, cost(&fabric, "all_reduce", 1 << 26, 1, 1, 1).time_ns, 0));
    cr_expect(eq(dbl, cost(&fabric, "all_reduce", 0, 8, 1, 1).time_ns, 0));
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(fabric, derived_gathers_are_not_faster_than_the_link)
{
    struct nw_results results = {0};

    /* Added up in switches: all-reduce reads more than the links of 450 GB/s carry. */
    add_wire(nw_results_add_run(&results), &(struct wire){"all_reduce", 8, 1, 0, 900e9});
    struct nw_curves curves = curves_of(&results, 8);
    struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;

    fabric.link_bytes_per_s = 450e9;
    const double bytes = 1 << 28;
    const struct nw_cost gather = cost(&fabric, "all_gather", bytes, 8, 1, 1);

    near(7.0 / 8 * bytes / gather.time_ns, 450, 1e-9, "bus bandwidth, bytes per ns");
    near(7.0 / 4 * bytes / cost(&fabric, "all_reduce", bytes, 8, 1, 1).time_ns, 900, 1e-9,
         "the measured one stands");
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(fabric, scales_rank_and_node_counts_like_a_ring)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);

    add_wire(run, &(struct wire){"all_gather", 8, 1, 7e3, 300e9});
    add_wire(run, &(struct wire){"all_gather", 16, 2, 15e3, 50e9});
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;
    const double bytes = 1 << 28;
    const struct nw_cost four = cost(&fabric, "all_gather", bytes, 4, 1, 1);
    const struct nw_cost wide = cost(&fabric, "all_gather", bytes, 32, 4, 1);

    cr_expect(eq(uint, four.how & NW_COST_RANKS, NW_COST_RANKS));
    near(four.time_ns, 3e3 + 0.75 * bytes / 300, 1e-3, "4 of 8");
    cr_expect(eq(uint, wide.how & NW_COST_NODES, NW_COST_NODES));
    near(wide.time_ns, 31e3 + 31.0 / 32 * bytes / 50, 1e-3, "4 of 2 nodes");
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(fabric, faster_wires_stop_at_the_links_inside_and_slower_ones_do_not)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);

    add_wire(run, &(struct wire){"all_gather", 8, 1, 0, 300e9});
    add_wire(run, &(struct wire){"all_gather", 16, 2, 0, 50e9});
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;
    const double bytes = 1 << 28, factor = 15.0 / 16;

    near(cost(&fabric, "all_gather", bytes, 16, 2, 1).time_ns, factor * bytes / 50, 1e-9, "as is");
    near(cost(&fabric, "all_gather", bytes, 16, 2, 2).time_ns, factor * bytes / 100, 1e-9, "twice");
    near(cost(&fabric, "all_gather", bytes, 16, 2, 1e6).time_ns, factor * bytes / 300, 1e-9,
         "at most the links inside");
    near(cost(&fabric, "all_gather", bytes, 16, 2, 0.1).time_ns, factor * bytes / 5, 1e-9, "tenth");
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* Two nodes may read more than one (trees in the switch): then the measured time stands. */
Test(fabric, what_was_measured_between_nodes_stands)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);

    add_wire(run, &(struct wire){"all_reduce", 8, 1, 0, 400e9});
    add_wire(run, &(struct wire){"all_reduce", 16, 2, 0, 480e9});
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;
    const double bytes = 1 << 28;

    near(cost(&fabric, "all_reduce", bytes, 16, 2, 1).time_ns, 15.0 / 8 * bytes / 480, 1e-9, "1");
    near(cost(&fabric, "all_reduce", bytes, 16, 2, 9).time_ns, 15.0 / 8 * bytes / 480, 1e-9, "9");
    nw_curves_free(&curves);
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

Test(fabric, says_what_is_missing)
{
    const struct nw_fabric fabric = platform_on(NULL, 1, 8).fabric;
    struct nw_cost found;

    cr_expect(eq(int,
                 nw_fabric_cost(&fabric, "all_reduce", 1e6,
                                (struct nw_group){.rank_count = 16, .host_count = 2}, NULL, &found),
                 NW_ENODEV));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--inter-node"), NULL));
    cr_expect(eq(int,
                 nw_fabric_cost(&fabric, "all_reduce", 1e6,
                                (struct nw_group){.rank_count = 8, .host_count = 1}, NULL, &found),
                 NW_ENODEV));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--intra-node"), NULL));
    cr_expect(not(nw_fabric_knows_inter(&fabric)));
}
