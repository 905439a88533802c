/* What must hold of any fabric, group and size. */
#include "fabric_support.h"

static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                    "alltoall",   "broadcast",  "sendrecv"};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

struct draw {
    struct nw_fabric fabric;
    const char *collective;
    struct nw_group where;
    double bytes;
};

static struct draw draw_one(uint64_t *state)
{
    static const char *const gpus[] = {"H100 SXM5", "A100 SXM4 80GB", "RTX 4090 24GB",
                                       "V100 SXM2 32GB", "B200 SXM"};
    const int hosts = 1 << next_random(state) % 8, local = 1 << (next_random(state) % 4);
    struct draw draw = {
        .fabric = datasheet(gpus[next_random(state) % 5], 8, random_between(state, 1, 3200),
                            (int)(next_random(state) % 9)),
        .collective = names[next_random(state) % NAME_COUNT],
        .bytes = random_between(state, 1, 1e11),
    };

    draw.where =
        group(hosts * local > 1 ? hosts * local : 2, hosts, next_random(state) % 2 ? 8 / local : 1);
    return draw;
}

Test(fabric, more_bandwidth_is_never_slower_and_more_bytes_never_faster)
{
    uint64_t state = 7;

    for (int i = 0; i < 3000; i++) {
        struct draw draw = draw_one(&state);
        const double base =
            cost_in(&draw.fabric, draw.collective, draw.bytes, draw.where, 1).time_ns;
        const double more =
            cost_in(&draw.fabric, draw.collective, draw.bytes * 1.3, draw.where, 1).time_ns;

        cr_expect(ge(dbl, more, base), "%s %dx%d", draw.collective, draw.where.rank_count,
                  draw.where.host_count);
        draw.fabric.wire_bytes_per_s *= 2;
        draw.fabric.link_bytes_per_s *= 1.5;
        draw.fabric.switch_bytes_per_s *= 1.5;
        cr_expect(le(dbl, cost_in(&draw.fabric, draw.collective, draw.bytes, draw.where, 1).time_ns,
                     base * (1 + 1e-12)),
                  "%s", draw.collective);
    }
}

/* The same over a measured curve of whatever shape, as long as it rises itself. */
Test(fabric, what_is_taken_over_from_rising_curves_rises)
{
    uint64_t state = 11;

    for (int i = 0; i < 300; i++) {
        struct nw_results results = {0};
        struct nw_run *run = nw_results_add_run(&results);
        const int hosts = 1 << next_random(&state) % 3, local = 1 << (1 + next_random(&state) % 3);
        const struct wire wire = {names[next_random(&state) % NAME_COUNT], hosts * local, hosts, 0,
                                  1};
        double time = random_between(&state, 1e3, 1e5);

        for (uint64_t bytes = 1024; bytes <= 1u << 30; bytes *= 2) {
            time *= random_between(&state, 1, 3);
            add_point(run, &wire, bytes, time, 0.01, false);
        }
        struct nw_curves curves = curves_of(&results, 8);
        struct draw draw = draw_one(&state);

        draw.fabric.curves = &curves;
        double last = 0;
        for (double bytes = 16; bytes < 1e12; bytes *= 2.7) {
            const double now = cost_in(&draw.fabric, draw.collective, bytes, draw.where, 1).time_ns;

            cr_expect(ge(dbl, now, last * (1 - 1e-9)), "%s %dx%d from %s %dx%d at %g",
                      draw.collective, draw.where.rank_count, draw.where.host_count,
                      wire.collective, wire.rank_count, wire.host_count, bytes);
            last = now;
        }
        nw_curves_free(&curves);
        nw_results_free(&results);
    }
}

Test(fabric, no_ring_beats_its_level_and_infinite_bandwidth_leaves_latency)
{
    uint64_t state = 13;

    for (int i = 0; i < 2000; i++) {
        struct draw draw = draw_one(&state);
        const double rate = busbw(&draw.fabric, "all_gather", draw.bytes, draw.where) * 1e9;

        if (draw.where.host_count > 1)
            cr_expect(le(dbl, rate, draw.fabric.wire_bytes_per_s), "%d ranks",
                      draw.where.rank_count);
        if (draw.where.rank_count > draw.where.host_count)
            cr_expect(le(dbl, rate, draw.fabric.link_bytes_per_s));
        draw.fabric.link_bytes_per_s = draw.fabric.wire_bytes_per_s =
            draw.fabric.switch_bytes_per_s = 1e30;
        const double none = cost_in(&draw.fabric, draw.collective, 1e-9, draw.where, 1).time_ns;

        /* A rate that is unknown, or beyond any machine, counts as 10^15 bytes/s. */
        near(cost_in(&draw.fabric, draw.collective, 1e6, draw.where, 1).time_ns, none, 1e-3,
             "latency alone");
        cr_expect(gt(dbl, none, 0));
    }
}

/* Twice the bytes at twice the rates take as long; times do not depend on the unit of bytes. */
Test(fabric, only_ratios_of_bytes_and_rates_count)
{
    uint64_t state = 17;

    for (int i = 0; i < 1000; i++) {
        struct draw draw = draw_one(&state);
        const double base =
            cost_in(&draw.fabric, draw.collective, draw.bytes, draw.where, 1).time_ns;

        draw.fabric.link_bytes_per_s *= 8;
        draw.fabric.wire_bytes_per_s *= 8;
        draw.fabric.switch_bytes_per_s *= 8;
        near(cost_in(&draw.fabric, draw.collective, draw.bytes * 8, draw.where, 1).time_ns, base,
             1e-9, draw.collective);
    }
}

Test(fabric, prepared_lines_tell_the_same_at_any_end)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    uint64_t state = 19;

    add_group(run, 8, 1, 15e3, 300e9);
    add_group(run, 16, 2, 60e3, 90e9);
    add_group(run, 64, 8, 160e3, 80e9);
    struct nw_curves curves = curves_of(&results, 8);

    for (int i = 0; i < 1000; i++) {
        struct draw draw = draw_one(&state);
        struct nw_scenario scenario = nw_scenario_likely;
        struct nw_line line;

        draw.fabric.curves = &curves;
        scenario.inter_scale = next_random(&state) % 2 ? 1 : random_between(&state, 0.1, 10);
        const struct nw_cost at =
            cost_in(&draw.fabric, draw.collective, draw.bytes, draw.where, scenario.inter_scale);
        const double ends[] = {at.low_ns, at.time_ns, at.high_ns};

        for (int end = -1; end <= 1; end++) {
            scenario.curve_end = end;
            cr_assert(eq(
                int, nw_fabric_prepare(&draw.fabric, draw.collective, draw.where, &scenario, &line),
                NW_OK));
            near(nw_line_time(&line, draw.bytes), ends[end + 1], 1e-9, draw.collective);
        }
        cr_expect(eq(dbl, nw_line_time(&line, 0), 0));
    }
    nw_curves_free(&curves);
    nw_results_free(&results);
}
