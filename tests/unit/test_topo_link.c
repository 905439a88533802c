#include <criterion/criterion.h>
#include <math.h>

#include "topo/link.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

Test(topo_link, pcie_ceilings_are_those_of_the_specification)
{
    static const struct {
        int generation, lanes;
        double gb_per_s;
    } rows[] = {{1, 16, 4.0},   {2, 16, 8.0},  {3, 16, 15.754}, {4, 16, 31.508}, {5, 16, 63.015},
                {6, 16, 121.0}, {3, 8, 7.877}, {5, 4, 15.754},  {3, 1, 0.98462}, {4, 2, 3.938}};
    static const int bad[][2] = {{0, 16}, {7, 16}, {-1, 16}, {4, 0}, {4, 3}, {4, 64}, {4, -16}};

    for (size_t i = 0; i < COUNT(rows); i++)
        cr_expect_float_eq(nw_pcie_bytes_per_s(rows[i].generation, rows[i].lanes) / 1e9,
                           rows[i].gb_per_s, 1e-3, "Gen%d x%d", rows[i].generation, rows[i].lanes);
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect(isnan(nw_pcie_bytes_per_s(bad[i][0], bad[i][1])));
}

Test(topo_link, a_rate_names_its_generation_and_width)
{
    static const int widths[] = {16, 8, 4, 2, 1};
    static const struct {
        double bytes_per_s;
        int generation, lanes;
    } rows[] = {{15.75e9, 3, 16}, {31.5e9, 4, 16},  {63e9, 5, 16},  {4e9, 1, 16}, {8.0e9, 2, 16},
                {7.877e9, 3, 8},  {1e9, 1, 4},      {0.25e9, 1, 1}, {0, 0, 0},    {-5, 0, 0},
                {NAN, 0, 0},      {INFINITY, 0, 0}, {50e9, 0, 0},   {1e12, 0, 0}};
    int generation, lanes;

    for (size_t i = 0; i < COUNT(rows); i++) {
        nw_pcie_from_rate(rows[i].bytes_per_s, &generation, &lanes);
        cr_expect_eq(generation, rows[i].generation, "%g: Gen%d x%d", rows[i].bytes_per_s,
                     generation, lanes);
        cr_expect_eq(lanes, rows[i].lanes, "%g: Gen%d x%d", rows[i].bytes_per_s, generation, lanes);
    }
    /* Every pair comes back as a pair of the same rate. */
    for (int g = 1; g <= 6; g++) {
        for (size_t w = 0; w < COUNT(widths); w++) {
            const double rate = nw_pcie_bytes_per_s(g, widths[w]);

            nw_pcie_from_rate(rate, &generation, &lanes);
            cr_expect_float_eq(nw_pcie_bytes_per_s(generation, lanes), rate, rate * 0.016,
                               "Gen%d x%d came back as Gen%d x%d", g, widths[w], generation, lanes);
            cr_expect_geq(lanes, widths[w]);
        }
    }
}

Test(topo_link, nvlink_bundles_give_the_quoted_figures_one_way)
{
    static const struct {
        const char *gpu;
        int generation, links;
        double quoted_both_ways;
    } rows[] = {{"P100", 1, 4, 160e9},  {"V100", 2, 6, 300e9}, {"A100", 3, 12, 600e9},
                {"H100", 4, 18, 900e9}, {"H800", 4, 8, 400e9}, {"B200", 5, 18, 1800e9}};

    for (size_t i = 0; i < COUNT(rows); i++)
        cr_expect_float_eq(2 * rows[i].links * nw_nvlink_bytes_per_s(rows[i].generation),
                           rows[i].quoted_both_ways, 1, "%s", rows[i].gpu);
    cr_expect(isnan(nw_nvlink_bytes_per_s(0)) && isnan(nw_nvlink_bytes_per_s(6)));
    cr_expect_float_eq(nw_nic_bytes_per_s(400), 50e9, 1);
}

Test(topo_link, measured_machines_lie_within_the_stated_efficiencies)
{
    /* Public measurements that did not make the figures. */
    static const struct {
        const char *what;
        struct nw_efficiency (*efficiency)(void);
        double measured, ceiling;
    } rows[] = {
        {"H200 copy, nvbandwidth", nw_nvlink_copy_efficiency, 396.4, 450},
        {"H200 ring all-reduce", nw_nvlink_collective_efficiency, 367.6, 450},
        {"H200 NVLS all-reduce, algbw 275.6", nw_nvlink_switch_efficiency, 275.6 * 9 / 8, 450},
        {"D2H Gen5", nw_pcie_efficiency, 55.1, 63.0},
        {"HDR", nw_rdma_efficiency, 193.7, 200},
        {"4x8 H200 over EFA, ring", nw_rdma_collective_efficiency, 364.9, 400},
        {"iperf3 on 1 Gb/s", nw_tcp_efficiency, 0.93427, 1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct nw_efficiency range = rows[i].efficiency();
        const double share = rows[i].measured / rows[i].ceiling;

        cr_expect(range.low > 0 && range.low < range.high && range.high < 1);
        cr_expect_not_null(range.source);
        cr_expect(share >= range.low && share <= range.high, "%s: %.3f outside %.2f to %.2f",
                  rows[i].what, share, range.low, range.high);
    }
}
