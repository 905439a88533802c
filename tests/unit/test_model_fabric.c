#include "fabric_support.h"

#include "topo/facts.h"
#include "topo/topo.h"
#include "topo_machines.h"

static const struct wire eight = {"all_reduce", 8, 1, 20e3, 100e9};

/* ---- from curves --------------------------------------------------------------------------- */

Test(fabric, measured_groups_are_as_measured)
{
    struct nw_results results = {0};

    add_wire(nw_results_add_run(&results), &eight);
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;

    near(cost(&fabric, "all_reduce", 1 << 26, 8, 1, 1).time_ns, wire_ns(&eight, 1 << 26), 1e-12,
         "a point");
    cr_expect(eq(uint, cost(&fabric, "all_reduce", 1 << 26, 8, 1, 1).how, 0));
    cr_expect(eq(dbl, cost(&fabric, "all_reduce", 1 << 26, 1, 1, 1).time_ns, 0));
    cr_expect(eq(dbl, cost(&fabric, "all_reduce", 0, 8, 1, 1).time_ns, 0));
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* An all-reduce is a reduce-scatter and an all-gather: half the steps, half the bytes. */
Test(fabric, derives_gathers_from_all_reduce_by_ring_equivalence)
{
    struct nw_results results = {0};

    add_wire(nw_results_add_run(&results), &eight);
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;
    const double reduced = cost(&fabric, "all_reduce", 1 << 28, 8, 1, 1).time_ns;
    const struct nw_cost gather = cost(&fabric, "all_gather", 1 << 28, 8, 1, 1);
    const struct nw_cost small = cost(&fabric, "all_gather", 8, 8, 1, 1);

    near(gather.time_ns, reduced / 2, 0.06, "half, and the copy of one's own part");
    cr_expect(gt(dbl, gather.time_ns, reduced / 2));
    near(cost(&fabric, "reduce_scatter", 1 << 28, 8, 1, 1).time_ns, gather.time_ns, 1e-12, "both");
    cr_expect(gt(dbl, small.time_ns, 10e3), "starting is not halved");
    cr_expect(lt(dbl, small.time_ns, 20e3));
    cr_expect(eq(uint, gather.how & NW_COST_DERIVED, NW_COST_DERIVED));
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(fabric, derived_gathers_are_not_faster_than_the_link)
{
    struct nw_results results = {0};

    /* Added up in switches: all-reduce reads more than the links of 450 GB/s carry. */
    add_wire(nw_results_add_run(&results), &(struct wire){"all_reduce", 8, 1, 0, 900e9});
    struct nw_curves curves = curves_of(&results, 8);
    struct nw_fabric fabric = datasheet("H100 SXM5", 8, NAN, 0);

    fabric.curves = &curves;
    const double bytes = 1 << 28;
    const double gather = cost(&fabric, "all_gather", bytes, 8, 1, 1).time_ns;

    cr_expect(lt(dbl, 7.0 / 8 * bytes / gather, 450), "bus bandwidth %g", 7.0 / 8 * bytes / gather);
    cr_expect(gt(dbl, 7.0 / 8 * bytes / gather, 300));
    near(7.0 / 4 * bytes / cost(&fabric, "all_reduce", bytes, 8, 1, 1).time_ns, 900, 1e-9,
         "the measured one stands");
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* A ring as the levels have it: 6.6 us to start, then n - 1 equal steps. */
Test(fabric, scales_rank_and_node_counts_like_a_ring)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    const double start = 6600, hop = NW_LINK_HOP_NS;

    add_wire(run, &(struct wire){"all_gather", 8, 1, start + 7 * hop, 300e9});
    add_wire(run, &(struct wire){"all_gather", 16, 2, start + 14 * hop + 20e3, 50e9});
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;
    const double bytes = 1 << 28;
    const struct nw_cost four = cost(&fabric, "all_gather", bytes, 4, 1, 1);
    const struct nw_cost wide = cost(&fabric, "all_gather", bytes, 32, 4, 1);

    cr_expect(eq(uint, four.how & NW_COST_RANKS, NW_COST_RANKS));
    near(cost(&fabric, "all_gather", 1e-3, 4, 1, 1).time_ns, start + 3 * hop, 1e-3, "3 of 7 hops");
    near(four.time_ns, 0.75 * bytes / 300, 0.12, "4 of 8, whose own part is a quarter");
    cr_expect(eq(uint, wide.how & NW_COST_NODES, NW_COST_NODES));
    near(wide.time_ns, start + 28 * hop + 3 * 20e3 + 31.0 / 32 * bytes / 50, 5e-3, "4 of 2 nodes");
    near(cost(&fabric, "all_gather", 1e-3, 32, 4, 1).time_ns, start + 28 * hop + 3 * 20e3, 0.05,
         "its latency");
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* Whatever the library changes at a message size per step moves with the step. */
Test(fabric, steps_of_a_ring_keep_their_shape)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    const struct wire two = {"all_gather", 2, 2, 0, 1};

    for (uint64_t bytes = 1024; bytes <= 1u << 26; bytes *= 2) /* a jump at 1 MiB: 0.5 a step */
        add_point(run, &two, bytes, (bytes <= 1u << 20 ? 30e3 : 90e3) + (double)bytes / 20, 0.01,
                  false);
    struct nw_curves curves = curves_of(&results, 1);
    const struct nw_fabric fabric = platform_on(&curves, 1, 1).fabric;
    const double before = cost(&fabric, "all_gather", 4 << 20, 8, 8, 1).time_ns;
    const double after = cost(&fabric, "all_gather", 8 << 20, 8, 8, 1).time_ns;

    near(before, 7 * (30e3 + (double)(1 << 20) / 20), 0.25, "0.5 MiB a step");
    cr_expect(gt(dbl, after - before, 7 * 50e3), "1 MiB a step: over the jump");
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(fabric, the_nearest_node_count_speaks_and_two_show_the_trend)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    const double bytes = 1 << 28;

    add_wire(run, &(struct wire){"all_gather", 16, 2, 30e3, 50e9});
    add_wire(run, &(struct wire){"all_gather", 32, 4, 60e3, 45e9});
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;

    near(busbw(&fabric, "all_gather", bytes, group(64, 8, 0)), 40.5, 0.03, "a tenth less again");
    const double between = busbw(&fabric, "all_gather", bytes, group(24, 3, 0));

    cr_expect(gt(dbl, between, 45));
    cr_expect(lt(dbl, between, 50));
    nw_curves_free(&curves);

    /* A faster large run is no promise of more speed beyond. */
    add_wire(run, &(struct wire){"all_gather", 64, 8, 120e3, 60e9});
    curves = curves_of(&results, 8);
    const double beyond = busbw(&fabric, "all_gather", bytes, group(128, 16, 0));

    cr_expect(le(dbl, beyond, 60 * 1.001), "%g", beyond);
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* Two nodes that the switches inside bound say nothing against the wire. */
Test(fabric, a_curve_that_the_links_bound_is_no_measure_of_the_wire)
{
    struct nw_results results = {0};
    struct nw_fabric fabric = datasheet("H100 SXM5", 8, 3200, 8);

    add_wire(nw_results_add_run(&results), &(struct wire){"all_reduce", 16, 2, 60e3, 480e9});
    struct nw_curves curves = curves_of(&results, 8);

    fabric.curves = &curves;
    const double four = busbw(&fabric, "all_reduce", 1 << 30, group(32, 4, 0));

    cr_expect(gt(dbl, four, 300), "%g", four);
    cr_expect(lt(dbl, four, 400), "%g", four);
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* Groups of one rank per node share the node's NICs; a curve measured so is divided no further. */
Test(fabric, groups_that_share_nics_divide_them)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    const double bytes = 1 << 28;

    add_wire(run, &(struct wire){"all_reduce", 16, 2, 60e3, 200e9});
    struct nw_curves curves = curves_of(&results, 8);
    struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;
    const struct nw_cost replica = cost_in(&fabric, "all_reduce", bytes, group(2, 2, 8), 1);

    near(bytes / replica.time_ns, 25, 0.05, "an eighth of the node's wire");
    cr_expect(eq(uint, replica.how & NW_COST_RANKS, NW_COST_RANKS));
    near(busbw(&fabric, "sendrecv", bytes, group(2, 2, 8)), 25, 0.05, "stages of a pipeline");
    near(busbw(&fabric, "alltoall", bytes, group(16, 2, 1)), 25 * 15.0 / 8, 0.05,
         "half of what each sends goes over the wire");
    nw_curves_free(&curves);

    add_wire(run, &(struct wire){"all_reduce", 2, 2, 30e3, 23e9});
    curves = curves_of(&results, 8);
    fabric.nic_count = 8; /* each GPU has its own: others that run do not matter */
    fabric.wire_bytes_per_s = 200e9;
    const struct nw_cost measured = cost_in(&fabric, "all_reduce", bytes, group(2, 2, 8), 1);

    near(bytes / measured.time_ns, 23, 1e-2, "as measured");
    fabric.nic_count = 4; /* two GPUs share one: alone each had it all */
    const struct nw_cost halved = cost_in(&fabric, "all_reduce", bytes, group(2, 2, 8), 1);

    near(bytes / halved.time_ns, 11.5, 1e-2, "half");
    cr_expect(eq(uint, halved.how & NW_COST_SHARED, NW_COST_SHARED));
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* Only one collective of one group was measured: every other has a cost all the same. */
Test(fabric, one_curve_says_something_of_all)
{
    struct nw_results results = {0};

    add_wire(nw_results_add_run(&results), &(struct wire){"all_gather", 16, 2, 50e3, 80e9});
    struct nw_curves curves = curves_of(&results, 8);
    const struct nw_fabric fabric = platform_on(&curves, 1, 8).fabric;

    for (size_t c = 0; c < nw_coll_count; c++)
        for (int hosts = 1; hosts <= 64; hosts *= 4)
            for (int local = hosts > 1 ? 1 : 2; local <= 8; local *= 2) {
                const struct nw_cost found =
                    cost(&fabric, nw_colls[c].name, 1 << 24, hosts * local, hosts, 1);

                cr_expect(gt(dbl, found.time_ns, 5e3), "%s %dx%d: %g", nw_colls[c].name, hosts,
                          local, found.time_ns);
                cr_expect(lt(dbl, found.time_ns, 1e9), "%s %dx%d: %g", nw_colls[c].name, hosts,
                          local, found.time_ns);
            }
    nw_curves_free(&curves);
    nw_results_free(&results);
}

/* ---- faster and slower wires --------------------------------------------------------------- */

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
    near(cost(&fabric, "all_gather", bytes, 16, 2, 1e6).time_ns, factor * bytes / 300, 0.04,
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

Test(fabric, a_given_bandwidth_is_the_bus_bandwidth)
{
    struct nw_fabric fabric = platform_on(NULL, 1, 8).fabric;
    const double bytes = 1 << 30;

    fabric.inter_busbw_bytes_per_s = 40e9;
    fabric.intra_busbw_bytes_per_s = 200e9;
    near(busbw(&fabric, "all_gather", bytes, group(16, 2, 0)), 40, 0.01, "between");
    near(busbw(&fabric, "all_reduce", bytes, group(8, 1, 0)), 200, 0.01, "inside");
    near(busbw(&fabric, "all_reduce", bytes, group(2, 2, 8)), 5, 0.01, "an eighth of it");
    cr_expect(eq(uint, cost(&fabric, "all_gather", bytes, 16, 2, 1).how, NW_COST_GIVEN));
    cr_expect(nw_fabric_knows_inter(&fabric));
}

/* ---- by datasheet -------------------------------------------------------------------------- */

Test(fabric, reads_links_off_the_catalogue)
{
    static const struct {
        const char *gpu;
        double link;
        bool pcie, mesh, adds;
    } rows[] = {
        {"H100 SXM5", 450e9, false, false, true}, {"A100 SXM4 80GB", 300e9, false, false, false},
        {"B200 SXM", 900e9, false, false, true},  {"V100 SXM2 32GB", 150e9, false, true, false},
        {"RTX 4090 24GB", 0, true, false, false}, {"H100 PCIe", 0, true, false, false},
        {"L40S", 0, true, false, false},          {"MI300X", 448e9, false, true, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct nw_fabric fabric = datasheet(rows[i].gpu, 8, NAN, 0);

        cr_expect(eq(int, fabric.link_is_pcie, rows[i].pcie), "%s", rows[i].gpu);
        cr_expect(eq(int, fabric.link_is_mesh, rows[i].mesh), "%s", rows[i].gpu);
        cr_expect(eq(int, fabric.switch_bytes_per_s > 0, rows[i].adds), "%s", rows[i].gpu);
        if (rows[i].link > 0)
            near(fabric.link_bytes_per_s, rows[i].link, 1e-9, rows[i].gpu);
        else
            cr_expect(lt(dbl, fabric.link_bytes_per_s, 65e9), "%s", rows[i].gpu);
    }
}

Test(fabric, takes_the_link_that_is_asked_for)
{
    const struct nw_gpu *h100, *card, *bridged;
    struct nw_fabric fabric = platform_on(NULL, 1, 8).fabric;

    nw_gpu_find("H100 SXM5", &h100);
    nw_gpu_find("RTX 4090 24GB", &card);
    nw_gpu_find("A100 PCIe 80GB", &bridged);
    cr_expect(eq(int, nw_fabric_take_gpu(&fabric, h100, "pcie"), NW_OK));
    cr_expect(fabric.link_is_pcie);
    cr_expect(eq(dbl, fabric.switch_bytes_per_s, 0));
    cr_expect(eq(int, nw_fabric_take_gpu(&fabric, card, "nvlink"), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "RTX 4090"), NULL));
    nw_fabric_take_gpu(&fabric, bridged, "auto");
    cr_expect(fabric.link_is_pcie, "a bridge joins two of eight");
    fabric.gpus_per_node = 2;
    nw_fabric_take_gpu(&fabric, bridged, "auto");
    cr_expect(not(fabric.link_is_pcie), "a bridge joins two of two");
}

/* Orders of magnitude that any such machine has (nccl-tests, published). */
Test(fabric, a_machine_by_its_quote_is_about_right)
{
    static const struct {
        const char *gpu, *collective;
        int per_node, ranks, hosts;
        double nic_gbps, bytes, low, high; /* bus bandwidth, GB/s */
    } rows[] = {
        {"H100 SXM5", "all_reduce", 8, 8, 1, NAN, 1u << 30, 430, 500},
        {"H100 SXM5", "all_gather", 8, 8, 1, NAN, 1u << 30, 315, 380},
        {"A100 SXM4 80GB", "all_reduce", 8, 8, 1, NAN, 1u << 30, 215, 245},
        {"H100 SXM5", "all_gather", 8, 16, 2, 3200, 1u << 30, 310, 370},
        {"H100 SXM5", "all_reduce", 8, 16, 2, 3200, 1u << 30, 400, 500},
        {"A100 SXM4 80GB", "all_reduce", 8, 16, 2, 800, 1u << 30, 75, 100},
        {"RTX 4090 24GB", "all_reduce", 4, 4, 1, NAN, 1u << 30, 8, 16},
        {"A100 SXM4 80GB", "all_gather", 8, 16, 2, 100, 1u << 28, 9, 12.5},
        {"V100 SXM2 32GB", "all_reduce", 8, 2, 1, NAN, 1u << 28, 12, 26},
        {"V100 SXM2 32GB", "all_reduce", 8, 8, 1, NAN, 1u << 28, 100, 140},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct nw_fabric fabric =
            datasheet(rows[i].gpu, rows[i].per_node, rows[i].nic_gbps, 0);
        const double found = busbw(&fabric, rows[i].collective, rows[i].bytes,
                                   group(rows[i].ranks, rows[i].hosts, 0));

        cr_expect(ge(dbl, found, rows[i].low), "row %zu: %g", i, found);
        cr_expect(le(dbl, found, rows[i].high), "row %zu: %g", i, found);
    }
}

Test(fabric, says_that_it_was_not_measured)
{
    const struct nw_fabric fabric = datasheet("H100 SXM5", 8, 3200, 8);
    const struct nw_cost inside = cost(&fabric, "all_gather", 1e8, 8, 1, 1);
    const struct nw_cost between = cost(&fabric, "all_gather", 1e8, 16, 2, 1);

    cr_expect(eq(uint, inside.how, NW_COST_DATASHEET));
    cr_expect(eq(uint, between.how, NW_COST_DATASHEET | NW_COST_WIRE));
    cr_expect(gt(dbl, inside.high_ns / inside.time_ns, 1.3));
    cr_expect(gt(dbl, between.high_ns / between.time_ns, inside.high_ns / inside.time_ns));
    cr_expect(nw_fabric_knows_inter(&fabric));
}

/* GB200 NVL72: 18 nodes of 4 whose GPUs meet over NVLink. */
Test(fabric, a_rack_of_nodes_that_links_join_is_one_node)
{
    struct nw_fabric fabric = datasheet("GB200", 4, 1600, 4);
    const double bytes = 1 << 30;
    struct nw_group apart = group(2, 2, 4);

    cr_expect(gt(dbl, busbw(&fabric, "all_gather", bytes, group(64, 16, 0)), 500));
    cr_expect(eq(uint, cost(&fabric, "all_gather", bytes, 64, 16, 1).how, NW_COST_DATASHEET));
    near(busbw(&fabric, "all_gather", bytes * 64, group(144, 36, 0)), 0.79 * 900, 0.06,
         "two racks");
    apart.host_span = 18; /* the last node of the rack */
    cr_expect(gt(dbl, busbw(&fabric, "sendrecv", bytes, apart), 500));
    apart.host_span = 19;
    near(busbw(&fabric, "sendrecv", bytes, apart), 45, 0.05, "one NIC of 400 Gb/s");
    fabric.wire_bytes_per_s = NAN;
    cr_expect(gt(dbl, busbw(&fabric, "all_gather", bytes, group(64, 16, 0)), 500));
    cr_expect(nw_fabric_knows_inter(&fabric));
}

Test(fabric, says_what_is_missing)
{
    const struct nw_fabric fabric = platform_on(NULL, 1, 8).fabric;
    struct nw_cost found;

    cr_expect(eq(int, nw_fabric_cost(&fabric, "all_reduce", 1e6, group(16, 2, 0), NULL, &found),
                 NW_ENODEV));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--nic-gbps"), NULL));
    cr_expect(eq(int, nw_fabric_cost(&fabric, "all_reduce", 1e6, group(8, 1, 0), NULL, &found),
                 NW_ENODEV));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--intra-node"), NULL));
    cr_expect(eq(int, nw_fabric_cost(&fabric, "all_rodeuce", 1e6, group(8, 1, 0), NULL, &found),
                 NW_EUSAGE));
    cr_expect(not(nw_fabric_knows_inter(&fabric)));
}

Test(fabric, a_machine_that_was_read_gives_its_ceilings)
{
    struct nw_fabric fabric = platform_on(NULL, 1, 8).fabric;
    struct nw_topo *topo;
    char path[512];

    if (!machine_path("hgx-8gpu-hwloc2.xml", path, sizeof path))
        cr_skip("no machine file");
    cr_assert(eq(int, nw_topo_read_file(path, &topo), NW_OK), "%s", nw_last_error()->text);
    nw_fabric_take_topo(&fabric, topo);
    cr_expect(gt(dbl, fabric.link_bytes_per_s, 10e9));
    cr_expect(not(isnan(cost(&fabric, "all_gather", 1e8, 8, 1, 1).time_ns)));
    nw_topo_free(topo);
}

/* Links that are down are missing to the switch too. */
Test(fabric, the_switch_adds_up_at_the_share_of_the_links_that_were_read)
{
    static const struct {
        const char *file, *model, *gpu;
        int links;
        double link, adds;
    } rows[] = {
        {"b200x8-10nic-ansi.txt", "NVIDIA B200", "B200 SXM", 18, 900e9, 0.74 * 900e9},
        {"b200x8-10nic-ansi.txt", "NVIDIA B200", "B200 SXM", 9, 450e9, 0.74 * 450e9},
        {"h100x8-spaces-book.txt", "NVIDIA H100 80GB HBM3", "H100 SXM5", 9, 225e9, 0.85 * 225e9},
        {"b200x8-10nic-ansi.txt", "NVIDIA B200", NULL, 9, 450e9, 0.74 * 450e9},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_fabric fabric = rows[i].gpu != NULL ? datasheet(rows[i].gpu, 8, NAN, 0)
                                                      : platform_on(NULL, 1, 8).fabric;
        struct nw_topo *topo;
        char path[512];

        snprintf(path, sizeof path, "%s/tests/field/topom/%s", NW_SOURCE_DIR, rows[i].file);
        cr_assert(eq(int, nw_topo_read_file(path, &topo), NW_OK), "%s", nw_last_error()->text);
        for (int g = 0; g < nw_topo_count(topo, NW_NODE_GPU); g++) {
            const int node = (int)(nw_topo_nth(topo, NW_NODE_GPU, g) - topo->nodes);

            snprintf(topo->nodes[node].model, sizeof topo->nodes[node].model, "%s", rows[i].model);
            cr_assert(
                eq(int, nw_topo_set_number(topo, node, NW_FACT_NVLINK_COUNT, rows[i].links, "test"),
                   NW_OK));
        }
        nw_fabric_take_topo(&fabric, topo);
        near(fabric.link_bytes_per_s, rows[i].link, 1e-9, rows[i].model);
        near(fabric.switch_bytes_per_s, rows[i].adds, 1e-9, rows[i].model);
        nw_topo_free(topo);
    }
}
