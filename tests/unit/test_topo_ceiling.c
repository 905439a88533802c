/* Ceilings: arithmetic over what was read, beside published measurements. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/coll.h"
#include "report/topo_text.h"
#include "topo/ceiling.h"
#include "topo/read.h"

static struct nw_topo *read_one(const char *file)
{
    char path[512];
    struct nw_topo *topo;

    snprintf(path, sizeof path, "%s/tests/%s", NW_SOURCE_DIR, file);
    cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s: %s", file, nw_last_error()->text);
    return topo;
}

static int named(const struct nw_topo *topo, const char *name)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].name, name) == 0)
            return (int)i;
    cr_assert_fail("%s is not there", name);
    return -1;
}

/* --- pairs --- */

Test(ceiling, pairs_of_real_machines)
{
    static const struct {
        const char *file, *a, *b;
        double ceiling, low, high; /* GB/s; NAN: unknown */
        const char *by, *why;      /* words; NULL: not looked at */
    } rows[] = {
        {"machines/hgx-8gpu-hwloc2.xml", "gpu0", "gpu7", 450, 373.5, 409.5, "18 NVLinks", NULL},
        {"machines/hgx-8gpu-hwloc2.xml", "gpu0", "mlx5_0", 63.0154, NAN, NAN, "PCIe Gen5 x16",
         "rate of mlx5_0"},
        {"machines/hgx-8gpu-hwloc2.xml", "gpu0", "mlx5_7", 63.0154, NAN, NAN, "PCIe",
         "4 x UPI 2.0"},
        {"field/ncclxml/gvisor-b200-vm.xml", "gpu3", "gpu4", 900, 747, 819, "18 NVLinks", NULL},
        {"field/ncclxml/azure-nc48v4-topo.xml", "gpu0", "gpu1", 300, 249, 273, "12 NVLinks", NULL},
        {"field/ncclxml/yccl-a6000-4gpu.xml", "gpu0", "gpu1", 15.7538, 9.452, 13.233,
         "PCIe Gen3 x16 at gpu0", NULL},
        {"field/ncclxml/nebius-h100-topo.xml", "gpu0", "mlx5_4", 50, 46, 49, "rate of mlx5_4",
         NULL},
        {"field/ncclxml/panlichen-8gpu-56g.xml", "gpu7", "mlx5_0", 7, 6.44, 6.86, "rate of mlx5_0",
         NULL},
        {"field/ncclxml/rccl-topo_8p_940.xml", "gpu0", "gpu7", 64, NAN, NAN, "1 XGMI link", NULL},
        {"field/ncclxml/rccl-topo_8p_rome_n2.xml", "gpu0", "gpu1", NAN, NAN, NAN, NULL, "XGMI"},
        {"field/ncclxml/azure-ncv4-topo.xml", "gpu0", "gpu1", NAN, NAN, NAN, NULL, "PCIe link"},
        /* the slowest link of the way counts, not that of the ends */
        {"field/ncclxml/oci-h100-topology.xml", "gpu0", "mlx5_3", 8, 3.52, 7.36,
         "PCIe Gen2 x16 at 0000:08:00.0", NULL},
        {"field/ncclxml/oci-h100-topology.xml", "gpu0", "mlx5_0", 22.5, 20.7, 22.05,
         "rate of mlx5_0", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_one(rows[i].file);
        struct nw_ceiling pair;

        nw_ceiling_pair(topo, named(topo, rows[i].a), named(topo, rows[i].b), &pair);
        cr_expect(isnan(rows[i].ceiling)
                      ? isnan(pair.bytes_per_s)
                      : fabs(pair.bytes_per_s / 1e9 / rows[i].ceiling - 1) < 1e-4,
                  "row %zu: %g", i, pair.bytes_per_s);
        cr_expect(isnan(rows[i].low) ? isnan(pair.low)
                                     : fabs(pair.low / 1e9 / rows[i].low - 1) < 1e-3,
                  "row %zu: low %g", i, pair.low);
        cr_expect(isnan(rows[i].high) ? isnan(pair.high)
                                      : fabs(pair.high / 1e9 / rows[i].high - 1) < 1e-3,
                  "row %zu: high %g", i, pair.high);
        cr_expect(isnan(pair.low) || pair.source[0] != '\0', "row %zu: no source", i);
        cr_expect(rows[i].by == NULL || strstr(pair.by, rows[i].by) != NULL, "row %zu: %s", i,
                  pair.by);
        cr_expect(rows[i].why == NULL || strstr(pair.why, rows[i].why) != NULL, "row %zu: %s", i,
                  pair.why);
        nw_topo_free(topo);
    }
}

/* An idle GPU runs its link slower: that is no lower ceiling. A missing width is. */
Test(ceiling, speed_comes_back_and_width_does_not)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int gpu;

    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &gpu), NW_OK);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_GPU, 0, &gpu), NW_OK);
    cr_expect(isnan(nw_ceiling_pcie(topo, gpu)));
    topo->nodes[gpu].link_bytes_per_s = nw_pcie_bytes_per_s(1, 16);
    cr_expect_eq(nw_ceiling_pcie(topo, gpu), 4e9);
    topo->nodes[gpu].link_max_bytes_per_s = nw_pcie_bytes_per_s(4, 16);
    topo->nodes[gpu].link_lanes = topo->nodes[gpu].link_max_lanes = 16;
    cr_expect_float_eq(nw_ceiling_pcie(topo, gpu), 31.5077e9, 1e5);
    topo->nodes[gpu].link_lanes = 8;
    cr_expect_float_eq(nw_ceiling_pcie(topo, gpu), 15.7538e9, 1e5);
    nw_topo_free(topo);
}

/* --- NVLink of one GPU --- */

Test(ceiling, nvlinks_of_a_gpu_are_not_the_sum_over_its_peers)
{
    static const struct {
        const char *file;
        double gb_per_s;
        int lanes;
        bool switched;
    } rows[] = {
        {"field/ncclxml/gvisor-b200-vm.xml", 900, 18, true},
        {"field/ncclxml/oci-h100-topology.xml", 450, 18, true},
        {"field/ncclxml/simccl-8a100-4cx6.xml", 300, 12, true},
        {"machines/hgx-8gpu-hwloc2.xml", 450, 18, true},
        {"field/ncclxml/azure-nc48v4-topo.xml", 300, 12, false},
        {"field/topom/a100x4-booster-nv4.txt", NAN, 12, false}, /* a mesh: 3 x NV4; model unknown */
        {"field/topom/nvlink8-h800-9nic-head.txt", NAN, 8, true},
        {"field/topom/aws-p3.16xlarge.txt", NAN, 6, false},
        {"field/ncclxml/yccl-a6000-4gpu.xml", NAN, 0, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_one(rows[i].file);
        const int gpu = named(topo, "gpu1");
        bool switched;
        int lanes;
        const double sum = nw_ceiling_nvlink(topo, gpu, &lanes, &switched);

        cr_expect(isnan(rows[i].gb_per_s) ? isnan(sum) : sum == rows[i].gb_per_s * 1e9, "%s: %g",
                  rows[i].file, sum);
        cr_expect_eq(lanes, rows[i].lanes, "%s: %d", rows[i].file, lanes);
        cr_expect_eq(switched, rows[i].switched, "%s", rows[i].file);
        nw_topo_free(topo);
    }
}

/* Links that are down on one GPU narrow its pairs only. */
Test(ceiling, inactive_links_carry_nothing)
{
    struct nw_topo *topo = read_one("machines/hgx-8gpu-hwloc2.xml");
    const int bad = named(topo, "gpu3");
    struct nw_ceiling pair;

    cr_assert_eq(nw_topo_set_number(topo, bad, NW_FACT_NVLINK_COUNT, 16, "test"), NW_OK);
    nw_ceiling_pair(topo, named(topo, "gpu0"), bad, &pair);
    cr_expect_eq(pair.bytes_per_s, 400e9);
    nw_ceiling_pair(topo, named(topo, "gpu0"), named(topo, "gpu1"), &pair);
    cr_expect_eq(pair.bytes_per_s, 450e9);
    cr_expect_eq(nw_ceiling_nvlink(topo, bad, NULL, NULL), 400e9);
    nw_topo_free(topo);
}

/* What the driver reports of a link is its signal; a link that is slow is slow. */
Test(ceiling, a_driver_s_rate_is_the_signal)
{
    static const struct {
        const char *model;
        double told, pair; /* GB/s */
    } rows[] = {
        {"", 26.562, 450}, {"NVIDIA H200", 26.562, 450}, {"", 25.781, 450},
        {"", 53.125, 900}, {"NVIDIA H200", 12.5, 225},   {"", 20, 360},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_one("field/topom/h100x8-spaces-book.txt");
        const int gpu = named(topo, "gpu0");
        struct nw_ceiling pair;

        snprintf(topo->nodes[gpu].model, sizeof topo->nodes[gpu].model, "%s", rows[i].model);
        cr_assert_eq(nw_topo_set_number(topo, gpu, NW_FACT_NVLINK_RATE, rows[i].told * 1e9, "t"),
                     NW_OK);
        nw_ceiling_pair(topo, gpu, named(topo, "gpu5"), &pair);
        cr_expect_float_eq(pair.bytes_per_s, rows[i].pair * 1e9, 1, "row %zu: %g", i,
                           pair.bytes_per_s);
        nw_topo_free(topo);
    }
}

/* --- the node's network --- */

struct nic {
    const char *name, *pci, *fabric, *card, *port_guid;
    double gbit;
    int port_up, numa;
};

/* One GPU near the NICs of NUMA node 0, below one switch. */
static struct nw_topo *node_with(const struct nic *nics)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int at, numa[2], port;

    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &at), NW_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(nw_topo_add_node(topo, NW_NODE_NUMA, 0, &at), NW_OK);
        topo->nodes[at].numa = i;
        cr_assert_eq(nw_topo_add_node(topo, NW_NODE_BRIDGE, at, &numa[i]), NW_OK);
        snprintf(topo->nodes[numa[i]].pci, 16, "0000:%02x:00.0", 0xa0 + i);
    }
    topo->numa_count = 2;
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_GPU, numa[0], &at), NW_OK);
    snprintf(topo->nodes[at].name, sizeof topo->nodes[at].name, "gpu0");
    for (; nics->name != NULL; nics++) {
        cr_assert_eq(nw_topo_add_node(topo, NW_NODE_NIC, numa[nics->numa], &at), NW_OK);
        snprintf(topo->nodes[at].name, sizeof topo->nodes[at].name, "%s", nics->name);
        snprintf(topo->nodes[at].pci, sizeof topo->nodes[at].pci, "%s", nics->pci);
        snprintf(topo->nodes[at].fabric, sizeof topo->nodes[at].fabric, "%s", nics->fabric);
        topo->nodes[at].rate_bits_per_s = nics->gbit * 1e9;
        topo->nodes[at].port_up = nics->port_up;
        topo->nodes[at].link_max_bytes_per_s = nw_pcie_bytes_per_s(4, 16);
        cr_assert_eq(nw_topo_set_text(topo, at, NW_FACT_SYSTEM_GUID, nics->card, "test"), NW_OK);
        cr_assert_eq(nw_topo_add_node(topo, NW_NODE_PORT, at, &port), NW_OK);
        cr_assert_eq(nw_topo_set_text(topo, port, NW_FACT_PORT_GUID, nics->port_guid, "test"),
                     NW_OK);
    }
    return topo;
}

Test(ceiling, network_counts_each_physical_port_once)
{
    static const struct {
        const char *what;
        struct nic nics[6];
        double gb_per_s;
        int ports;
        const char *left_out;
    } rows[] = {
        {"two cards",
         {{"mlx5_0", "0000:01:00.0", "infiniband", "a", "1", 200, 1, 0},
          {"mlx5_1", "0000:02:00.0", "infiniband", "b", "2", 200, 1, 0}},
         50,
         2,
         ""},
        /* NVIDIA/nccl#307: two cards of two PCIe connections each, cables of 100 Gb/s: 25, not 50
         */
        {"one card twice",
         {{"mlx5_0", "0000:01:00.0", "infiniband", "a", "1", 100, 1, 0},
          {"mlx5_1", "0000:41:00.0", "infiniband", "a", "2", 100, 1, 0},
          {"mlx5_2", "0000:81:00.0", "infiniband", "b", "3", 100, 1, 0},
          {"mlx5_3", "0000:c1:00.0", "infiniband", "b", "4", 100, 1, 0}},
         25,
         2,
         "mlx5_1 (same port as another function), mlx5_3 (same port"},
        {"two ports of one card, together no more than its PCIe link",
         {{"mlx5_0", "0000:01:00.0", "roce", "a", "1", 200, 1, 0},
          {"mlx5_1", "0000:01:00.1", "roce", "a", "2", 200, 1, 0}},
         31.5077,
         2,
         ""},
        {"equal port GUIDs",
         {{"mlx5_0", "0000:01:00.0", "roce", "a", "1", 100, 1, 0},
          {"mlx5_1", "0000:01:00.1", "roce", "a", "1", 100, 1, 0}},
         12.5,
         1,
         "mlx5_1 (same port"},
        {"management and dead ports",
         {{"mlx5_0", "0000:01:00.0", "infiniband", "a", "1", 200, 1, 0},
          {"mlx5_1", "0000:02:00.0", "infiniband", "b", "2", 200, 0, 0},
          {"mlx5_2", "0000:03:00.0", "infiniband", "c", "3", 100, 1, 1},
          {"eth0", "0000:04:00.0", "ethernet", "d", "4", 25, 1, 0}},
         25,
         1,
         "mlx5_1 (port down), mlx5_2 (near no GPU, while others are), eth0 (no RDMA)"},
        {"a slow one beside the GPU's",
         {{"mlx5_0", "0000:01:00.0", "infiniband", "a", "1", 200, 1, 0},
          {"mlx5_1", "0000:02:00.0", "infiniband", "b", "2", 100, 1, 0}},
         25,
         1,
         "mlx5_1 (half as fast"},
        {"all are far",
         {{"mlx5_0", "0000:01:00.0", "infiniband", "a", "1", 200, 1, 1},
          {"mlx5_1", "0000:02:00.0", "infiniband", "b", "2", 200, 1, 1}},
         50,
         2,
         ""},
        {"a rate that is not known",
         {{"mlx5_0", "0000:01:00.0", "infiniband", "a", "1", 0, 1, 0}},
         NAN,
         1,
         ""},
        {"none", {{0}}, NAN, 0, ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = node_with(rows[i].nics);
        struct nw_ceiling_network network;

        nw_ceiling_network(topo, &network);
        cr_expect(isnan(rows[i].gb_per_s)
                      ? isnan(network.bytes_per_s) && network.why[0] != '\0'
                      : fabs(network.bytes_per_s / 1e9 - rows[i].gb_per_s) < 1e-3,
                  "%s: %g", rows[i].what, network.bytes_per_s);
        cr_expect_eq(network.port_count, rows[i].ports, "%s: %d", rows[i].what, network.port_count);
        cr_expect(strstr(network.left_out, rows[i].left_out) != NULL, "%s: %s", rows[i].what,
                  network.left_out);
        nw_topo_free(topo);
    }
}

/* --- collectives --- */

Test(ceiling, bus_factors_are_those_of_the_collectives)
{
    for (size_t i = 0; i < nw_coll_count; i++)
        for (int n = 1; n <= 9; n++)
            cr_expect_float_eq(nw_ceiling_bus_factor(nw_colls[i].name, n),
                               n > 1 || nw_colls[i].bus_factor(n) > 0
                                   ? nw_colls[i].bus_factor(n)
                                   : nw_ceiling_bus_factor(nw_colls[i].name, n),
                               1e-12, "%s %d", nw_colls[i].name, n);
    cr_expect(isnan(nw_ceiling_bus_factor("all_redux", 8)));
}

/* Published busbw lies in the expected range and below the ceiling. */
Test(ceiling, published_runs_fit)
{
    static const struct {
        const char *file, *collective, *algorithm;
        int hosts;
        double network_gb_per_s; /* of the node, where the file has none; 0: as the file says */
        double ceiling, measured;
        const char *bound;
    } rows[] = {
        /* H100: 367 ring, 480 NVLS, 361 gather, 348 all-to-all (stas00/ml-engineering) */
        {"field/ncclxml/oci-h100-topology.xml", "all_reduce", "ring", 1, 0, 450, 367, "NVLink"},
        {"field/ncclxml/oci-h100-topology.xml", "all_reduce", "nvls", 1, 0, 700, 480, "NVLink"},
        {"field/ncclxml/oci-h100-topology.xml", "all_gather", "ring", 1, 0, 450, 361, "NVLink"},
        {"field/ncclxml/oci-h100-topology.xml", "alltoall", "pairs", 1, 0, 450, 348, "NVLink"},
        /* two nodes of 8x 400 Gb/s: 487 NVLS tree, 370 ring, 91.9 all-to-all */
        {"field/ncclxml/nebius-h100-topo.xml", "all_reduce", "ring", 2, 0, NAN, NAN, ""},
        {"machines/hgx-8gpu-hwloc2.xml", "all_reduce", "nvls", 2, 400, 750, 487, "NVLink"},
        {"machines/hgx-8gpu-hwloc2.xml", "all_reduce", "ring", 2, 400, 400, 370, "network"},
        {"machines/hgx-8gpu-hwloc2.xml", "alltoall", "pairs", 2, 400, 93.75, 91.93, "network"},
        {"machines/hgx-8gpu-hwloc2.xml", "all_reduce", "tree", 2, 400, 421.875, NAN, "NVLink"},
        /* A100: 235 of 300 (one node), 187 of 200 (two NDv4) */
        {"field/ncclxml/simccl-8a100-4cx6.xml", "all_reduce", "ring", 1, 0, 300, 235, "NVLink"},
        {"field/ncclxml/simccl-8a100-4cx6.xml", "all_reduce", "ring", 2, 200, 200, 187, "network"},
        {"field/ncclxml/simccl-8a100-4cx6.xml", "all_reduce", "ring", 2, 0, 100, NAN, "network"},
        /* B200 */
        {"field/ncclxml/gvisor-b200-vm.xml", "all_reduce", "ring", 1, 0, 900, 682, "NVLink"},
        {"field/ncclxml/gvisor-b200-vm.xml", "all_gather", "ring", 1, 0, 900, 617, "NVLink"},
        /* 4x RTX 4090: 12.6 of 31.5 */
        {"field/ncclxml/stone-4x4090-61nets.xml", "all_reduce", "ring", 1, 0, 31.5077, 12.6,
         "PCIe"},
        {"field/ncclxml/rccl-topo_8p_940.xml", "all_reduce", "ring", 1, 0, 448, NAN, "XGMI"},
        {"field/ncclxml/rccl-topo_8p_940.xml", "sendrecv", "pairs", 1, 0, 64, NAN, "XGMI"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_one(rows[i].file);
        struct nw_ceiling_network network;
        struct nw_ceiling_collective it;

        nw_ceiling_network(topo, &network);
        if (rows[i].network_gb_per_s > 0) {
            network.bytes_per_s = rows[i].network_gb_per_s * 1e9;
            network.nic_bytes_per_s = rows[i].network_gb_per_s * 1e9 / 8;
        }
        cr_assert_eq(nw_ceiling_collective(topo, &network, rows[i].collective, rows[i].algorithm,
                                           rows[i].hosts, &it),
                     NW_OK, "row %zu: %s", i, nw_last_error()->text);
        cr_expect(isnan(rows[i].ceiling)
                      ? isnan(it.bus_bytes_per_s) && it.why[0] != '\0'
                      : fabs(it.bus_bytes_per_s / 1e9 / rows[i].ceiling - 1) < 1e-4,
                  "row %zu: %g", i, it.bus_bytes_per_s);
        cr_expect_str_eq(it.bound, rows[i].bound, "row %zu", i);
        if (isfinite(rows[i].measured))
            cr_expect(rows[i].measured * 1e9 >= 0.99 * it.low &&
                          rows[i].measured * 1e9 <= 1.01 * it.high && it.source[0] != '\0',
                      "row %zu: %g is not in %g to %g", i, rows[i].measured, it.low / 1e9,
                      it.high / 1e9);
        nw_topo_free(topo);
    }
}

Test(ceiling, what_cannot_run_is_said)
{
    static const struct {
        const char *file, *collective, *algorithm, *words;
    } rows[] = {
        {"field/ncclxml/simccl-8a100-4cx6.xml", "all_reduce", "nvls", "compute capability 9"},
        {"field/ncclxml/azure-nc48v4-topo.xml", "all_reduce", "nvls", "NVSwitch"},
        {"field/ncclxml/azure-nc48v4-topo.xml", "all_gather", "tree", "no ceiling for"},
        {"machines/sandy-noio.xml", "all_reduce", "ring", "two GPUs"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_one(rows[i].file);
        struct nw_ceiling_network network;
        struct nw_ceiling_collective it;

        nw_ceiling_network(topo, &network);
        cr_expect_eq(
            nw_ceiling_collective(topo, &network, rows[i].collective, rows[i].algorithm, 1, &it),
            NW_ENOTSUP, "row %zu", i);
        cr_expect(strstr(nw_last_error()->text, rows[i].words) != NULL, "row %zu: %s", i,
                  nw_last_error()->text);
        nw_topo_free(topo);
    }
}

/* --- sockets --- */

Test(ceiling, socket_links_by_cpu)
{
    static const struct {
        const char *cpu;
        double gb_per_s; /* all links */
    } rows[] = {
        {"Intel(R) Xeon(R) Platinum 8480C", 153.6},
        {"Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", 62.4},
        {"INTEL(R) XEON(R) PLATINUM 8558", NAN},
        {"Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", 67.2},
        {"GenuineIntel family 6 model 143", 153.6},
        {"AuthenticAMD family 143 model 49", 144},
        {"AMD EPYC 7763 64-Core Processor", 144},
        {"AMD EPYC 9555 64-Core Processor", 256},
        {"AMD EPYC 9V84 96-Core Processor", 256},
        {"POWER9, altivec supported", 64},
        {"Intel(R) Xeon(R) CPU E5-2650 0 @ 2.00GHz", 32},
        {"Some CPU", NAN},
        {"", NAN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_socket_link link = nw_socket_link(rows[i].cpu);
        const double sum = link.link_count * link.bytes_per_s;

        cr_expect(isnan(rows[i].gb_per_s) ? isnan(sum) : fabs(sum / 1e9 - rows[i].gb_per_s) < 1e-6,
                  "%s: %g", rows[i].cpu, sum / 1e9);
    }
}

/* --- size --- */

static char *domain_of(int hosts, int gpus)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    fputs("<system version=\"1\">\n", stream);
    for (int i = 0; i < hosts * gpus; i++) {
        if (i % 2 == 0)
            fprintf(stream, "%s<cpu host_hash=\"0x%x\" numaid=\"%d\">\n", i > 0 ? "</cpu>\n" : "",
                    i / gpus + 1, i % gpus / 2);
        fprintf(stream,
                "<pci busid=\"%04x:01:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
                "device=\"0x2941\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
                "<gpu dev=\"%d\" sm=\"100\" rank=\"%d\" gdr=\"1\"><nvlink "
                "target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>\n"
                "<pci busid=\"%04x:03:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" "
                "link_width=\"16\"><nic><net name=\"mlx5_%d\" dev=\"%d\" port=\"1\" "
                "speed=\"400000\" guid=\"0x%x\"/></nic></pci>\n",
                8 + i % gpus, i % gpus, i, i % gpus, i % gpus, i % gpus, 0x1000 + i);
    }
    fputs("</cpu></system>\n", stream);
    fclose(stream);
    return text;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* GB200 NVL72: 18 hosts of 4 GPUs, all pairs joined. Processor time, as the machine may be busy; a
 * sanitizer costs a factor of some. */
Test(ceiling, a_domain_of_72_gpus_takes_no_time)
{
    char *text = domain_of(18, 4), *printed = NULL;
    const double start = seconds();
    struct nw_ceiling_network network;
    struct nw_ceiling pair;
    struct nw_topo *topo;
    size_t length;
    FILE *stream = open_memstream(&printed, &length);
    int full = 0;

    cr_assert_eq(nw_topo_read_data(text, strlen(text), "nvl72", &topo), NW_OK, "%s",
                 nw_last_error()->text);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 72);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 72);
    for (int a = 0; a < (int)topo->node_count; a++)
        for (int b = a + 1; b < (int)topo->node_count; b++)
            if (topo->nodes[a].kind == NW_NODE_GPU && topo->nodes[b].kind == NW_NODE_GPU) {
                nw_ceiling_pair(topo, a, b, &pair);
                full += pair.class_id == NW_CLASS_NV && pair.lane_count == 18 &&
                        pair.bytes_per_s == 900e9;
            }
    cr_expect_eq(full, 72 * 71 / 2);
    nw_ceiling_network(topo, &network);
    cr_expect_float_eq(network.bytes_per_s, 72 * 50e9, 1);
    cr_expect_eq(nw_report_topo(stream, topo), NW_OK);
    fclose(stream);
    cr_expect(strstr(printed, "NV18  2556") != NULL, "%s", printed);
    cr_expect_lt(seconds() - start, 5.0, "%g s", seconds() - start);
    nw_topo_free(topo);
    free(printed);
    free(text);
}
