/* What each real export says, against its right reading (tests/machines/SOURCES.tsv and
 * tests/field/SOURCES.tsv). */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/topo_machines.h"
#include "topo/topo.h"

struct expected {
    const char *file;
    int gpus, nvidia, nics, disks;
    int packages, numas, cores, pus;
    unsigned gaps;
    const char *gpu_numa;  /* of gpu0, gpu1 …; "-": unknown */
    const char *nic_names; /* in order of the PCI addresses */
    const char *fabrics;   /* of the same */
    int nvlinks;           /* pairs */
    double nvlink_gb_per_s;
    int nvlink_lanes;
    const char *findings; /* codes that must be there */
};

static const struct expected table[] = {
    {"hgx-8gpu-hwloc2.xml", 8, 8, 8, 1, 2, 2, 8, 16, 0, "0 0 0 0 1 1 1 1",
     "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7",
     "infiniband infiniband infiniband infiniband infiniband infiniband infiniband infiniband", 28,
     450, 18, ""},
    {"aws-g4dn-metal-8xt4.xml", 8, 8, 2, 3, 2, 2, 48, 96, 0, "0 0 0 0 1 1 1 1", "rdmap197s0 eth0",
     "efa ethernet", 0, 0, 0, "written-in-job"},
    {"chimera-mixed-gpus-hwloc1.xml", 2, 1, 3, 2, 1, 4, 32, 64, 0, "0 2", "enp4s0 wlp5s0 enp6s0",
     "ethernet wifi ethernet", 0, 0, 0, ""},
    {"coral-ea-4xp100-hwloc1.xml", 4, 4, 4, 0, 2, 2, 20, 160, NW_TOPO_NO_NVLINK, "0 0 1 1",
     "mlx5_0 mlx5_1 enP5p7s0f0 enP5p7s0f1", "infiniband infiniband ethernet ethernet", 0, 0, 0,
     "nvlink-unknown"},
    {"coral-lassen-4xv100-hwloc2.xml", 4, 4, 6, 1, 2, 2, 40, 160,
     NW_TOPO_NO_NVLINK | NW_TOPO_RESTRICTED, "0 0 8 8",
     "mlx5_0 mlx5_1 enP5p1s0f0 enP5p1s0f1 mlx5_2 mlx5_3",
     "infiniband infiniband ethernet ethernet infiniband infiniband", 0, 0, 0,
     "nvlink-unknown cpus-hidden written-in-job"},
    {"gh200-grace-hopper.xml", 0, 0, 0, 0, 1, 1, 72, 72, NW_TOPO_NO_IO, "", "", "", 0, 0, 0,
     "io-not-in-file"},
    {"jetson-xavier.xml", 0, 0, 0, 0, 4, 1, 8, 8, NW_TOPO_NO_IO, "", "", "", 0, 0, 0,
     "io-not-in-file"},
    {"lenovo-sd665n-4xh200-nonvml.xml", 4, 4, 7, 2, 2, 8, 128, 256, NW_TOPO_NO_NVLINK, "1 2 6 7",
     NULL, NULL, 0, 0, 0, "nvlink-unknown"},
    {"lenovo-sd665n-4xh200-nvml.xml", 4, 4, 7, 2, 2, 8, 128, 256, 0, "1 2 6 7",
     "mlx5_0 mlx5_3 eno6 mlx5_1 mlx5_2 mlx5_4 mlx5_5",
     "infiniband infiniband ethernet roce roce infiniband infiniband", 6, 150, 6,
     "nic-down written-in-job"},
    {"misc-libxml2-topo.xml", 0, 0, 5, 1, 4, 7, 32, 64, 0, "", "i40iw3 i40iw0 i40iw1 i40iw2 ens2",
     "iwarp iwarp iwarp iwarp ethernet", 0, 0, 0, "iwarp memory-not-ram"},
    {"rocm-tioga-mi250x.xml", 8, 0, 5, 2, 1, 4, 64, 128, 0, "3 3 1 1 0 0 2 2",
     "ens2 hsi0 hsi1 hsi2 hsi3", "ethernet cxi cxi cxi cxi", 0, 0, 0, "no-nvidia-gpu"},
    {"sandy-3gpu-1ib-wholeio.xml", 4, 3, 3, 1, 2, 2, 16, 32, NW_TOPO_NO_NVLINK, "0 1 1 1",
     "mlx5_0 eth0 eth1", "infiniband ethernet ethernet", 0, 0, 0, "nvlink-unknown"},
    {"sandy-noio.xml", 0, 0, 0, 0, 2, 2, 16, 32, NW_TOPO_NO_IO, "", "", "", 0, 0, 0,
     "io-not-in-file"},
    {"sierra2-4xv100-hwloc1.xml", 4, 4, 6, 1, 2, 6, 44, 176, NW_TOPO_NO_NVLINK, "0 0 8 8",
     "mlx5_0 mlx5_1 enP5p1s0f0 enP5p1s0f1 mlx5_2 mlx5_3",
     "infiniband infiniband ethernet ethernet infiniband infiniband", 0, 0, 0,
     "nvlink-unknown memory-not-ram written-in-job"},
    {"westmere-3gpu-1ib.xml", 3, 3, 3, 1, 2, 2, 12, 24, NW_TOPO_NO_NVLINK, "0 1 1",
     "eth0 eth1 mlx4_0", "ethernet ethernet infiniband", 0, 0, 0, "nvlink-unknown"},
    /* two boards of 8 GPUs, each over switches of its own that are joined */
    {"made-up-dgx2.xml", 16, 16, 8, 0, 2, 2, 2, 4, 0, "0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1",
     "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7",
     "infiniband infiniband infiniband infiniband infiniband infiniband infiniband infiniband", 120,
     150, 6, ""},
};
enum { ROWS = sizeof table / sizeof *table };

/* Reads the file of that name; false: not here. */
static bool read_machine(const char *name, struct nw_topo **topo_out)
{
    char path[1024];

    if (!machine_path(name, path, sizeof path))
        return false;
    cr_assert_eq(nw_topo_read_file(path, topo_out), NW_OK, "%s: %s", name, nw_last_error()->text);
    return true;
}

static void append(char *text, size_t size, const char *word)
{
    const size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s", length > 0 ? " " : "", word);
}

static int nvidia_count(const struct nw_topo *topo)
{
    int count = 0;

    for (int i = 0; i < nw_topo_count(topo, NW_NODE_GPU); i++)
        count += nw_topo_is_nvidia(nw_topo_nth(topo, NW_NODE_GPU, i));
    return count;
}

static void check_counts(const struct expected *row, const struct nw_topo *topo)
{
    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), row->gpus, "%s: %d GPUs", row->file,
                 nw_topo_count(topo, NW_NODE_GPU));
    cr_expect_eq(nvidia_count(topo), row->nvidia, "%s: %d NVIDIA", row->file, nvidia_count(topo));
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), row->nics, "%s: %d NICs", row->file,
                 nw_topo_count(topo, NW_NODE_NIC));
    cr_expect_eq(nw_topo_count(topo, NW_NODE_DISK), row->disks, "%s: %d disks", row->file,
                 nw_topo_count(topo, NW_NODE_DISK));
    cr_expect_eq(topo->package_count, row->packages, "%s: packages", row->file);
    cr_expect_eq(topo->numa_count, row->numas, "%s: NUMA nodes", row->file);
    cr_expect_eq(topo->core_count, row->cores, "%s: %d cores", row->file, topo->core_count);
    cr_expect_eq(topo->pu_count, row->pus, "%s: %d threads", row->file, topo->pu_count);
    cr_expect_eq(topo->gaps, row->gaps, "%s: gaps %u", row->file, topo->gaps);
}

static void check_names(const struct expected *row, const struct nw_topo *topo)
{
    char numas[128] = "", names[256] = "", fabrics[256] = "", number[16];

    for (int i = 0; i < nw_topo_count(topo, NW_NODE_GPU); i++) {
        snprintf(number, sizeof number, "%d", nw_topo_nth(topo, NW_NODE_GPU, i)->numa);
        append(numas, sizeof numas, number);
    }
    for (int i = 0; i < nw_topo_count(topo, NW_NODE_NIC); i++) {
        append(names, sizeof names, nw_topo_nth(topo, NW_NODE_NIC, i)->name);
        append(fabrics, sizeof fabrics, nw_topo_nth(topo, NW_NODE_NIC, i)->fabric);
    }
    cr_expect_str_eq(numas, row->gpu_numa, "%s: GPUs on NUMA nodes %s", row->file, numas);
    if (row->nic_names != NULL)
        cr_expect_str_eq(names, row->nic_names, "%s: NICs %s", row->file, names);
    if (row->fabrics != NULL)
        cr_expect_str_eq(fabrics, row->fabrics, "%s: fabrics %s", row->file, fabrics);
}

static void check_nvlinks(const struct expected *row, const struct nw_topo *topo)
{
    int count = 0;

    for (size_t i = 0; i < topo->link_count; i++) {
        if (topo->links[i].kind != NW_LINK_NVLINK)
            continue;
        count++;
        cr_expect_float_eq(topo->links[i].bytes_per_s / 1e9, row->nvlink_gb_per_s, 1e-9,
                           "%s: link %zu has %g GB/s", row->file, i,
                           topo->links[i].bytes_per_s / 1e9);
        cr_expect_eq(topo->links[i].lane_count, row->nvlink_lanes, "%s: link %zu has %d lanes",
                     row->file, i, topo->links[i].lane_count);
    }
    cr_expect_eq(count, row->nvlinks, "%s: %d NVLink pairs", row->file, count);
}

static bool has_finding(const struct nw_topo *topo, const char *code)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, code) == 0)
            return true;
    return false;
}

/* All that are expected, and of the gap findings no other. */
static void check_findings(const struct expected *row, const struct nw_topo *topo)
{
    static const char *const gap_codes[] = {"io-not-in-file", "io-not-visible", "nvlink-unknown",
                                            "cpus-hidden",    "no-nvidia-gpu",  "nvlink-uneven",
                                            "iwarp",          "memory-not-ram"};
    char wanted[256], *rest = wanted, *code;

    snprintf(wanted, sizeof wanted, "%s", row->findings);
    while ((code = strsep(&rest, " ")) != NULL)
        if (code[0] != '\0')
            cr_expect(has_finding(topo, code), "%s: no finding %s", row->file, code);
    for (size_t i = 0; i < sizeof gap_codes / sizeof *gap_codes; i++)
        if (strstr(row->findings, gap_codes[i]) == NULL)
            cr_expect(!has_finding(topo, gap_codes[i]), "%s: finding %s", row->file, gap_codes[i]);
}

Test(topo_hwloc_xml, every_real_export_is_read_rightly)
{
    int read = 0;

    for (int i = 0; i < ROWS; i++) {
        struct nw_topo *topo;

        if (!read_machine(table[i].file, &topo))
            continue;
        read++;
        check_counts(&table[i], topo);
        check_names(&table[i], topo);
        check_nvlinks(&table[i], topo);
        check_findings(&table[i], topo);
        nw_topo_free(topo);
    }
    cr_expect_eq(read, MACHINE_COUNT, "only %d machines were there", read);
}

Test(topo_hwloc_xml, devices_have_their_model_size_and_link)
{
    static const struct {
        const char *file, *name, *model, *pci;
        double gib, link_gb_per_s;
        int port_up;
    } rows[] = {
        {"lenovo-sd665n-4xh200-nvml.xml", "gpu0", "NVIDIA H200", "0000:06:00.0", 139.8, 63.015, -1},
        {"lenovo-sd665n-4xh200-nvml.xml", "mlx5_4", "Mellanox MT2910 Family [ConnectX-7]",
         "0000:93:00.0", 0, 63.015, 1},
        {"lenovo-sd665n-4xh200-nvml.xml", "mlx5_0", "Mellanox MT2910 Family [ConnectX-7]",
         "0000:03:00.0", 0, 63.015, 0},
        {"lenovo-sd665n-4xh200-nvml.xml", "nvme1n1", "SAMSUNG MZ3L615THBLF-00AW7", "0000:71:00.0",
         14306, 15.754, -1},
        {"aws-g4dn-metal-8xt4.xml", "gpu7", "Tesla T4", "0000:f5:00.0", 14.755, 15.754, -1},
        {"rocm-tioga-mi250x.xml", "gpu0", "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2",
         "0000:c1:00.0", 63.98, 31.508, -1},
        {"coral-ea-4xp100-hwloc1.xml", "gpu0", "NVIDIA Tesla P100 SXM2 16GB", "0002:01:00.0", 0, 0,
         -1}, /* 0.000000: unknown, not zero */
        {"sandy-3gpu-1ib-wholeio.xml", "gpu2", "Tesla K40m", "0000:84:00.0", 11.25, 0, -1},
        {"westmere-3gpu-1ib.xml", "mlx4_0", "Mellanox InfiniBand controller [15b3:6746]",
         "0000:05:00.0", 0, 2.0, -1},
        {"hgx-8gpu-hwloc2.xml", "gpu7", "NVIDIA H100 80GB HBM3", "0000:d9:00.0", 79.512, 63.015,
         -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_topo_node *node = NULL;
        struct nw_topo *topo;

        if (!read_machine(rows[i].file, &topo))
            continue;
        for (size_t n = 0; n < topo->node_count; n++)
            if (strcmp(topo->nodes[n].name, rows[i].name) == 0)
                node = &topo->nodes[n];
        cr_assert_not_null(node, "%s: no %s", rows[i].file, rows[i].name);
        cr_expect_str_eq(node->model, rows[i].model, "%s %s", rows[i].file, rows[i].name);
        cr_expect_str_eq(node->pci, rows[i].pci, "%s %s", rows[i].file, rows[i].name);
        cr_expect_float_eq((double)node->memory_bytes / 0x1p30, rows[i].gib,
                           0.001 * rows[i].gib + 1e-9, "%s %s: %.3f GiB", rows[i].file,
                           rows[i].name, (double)node->memory_bytes / 0x1p30);
        cr_expect_float_eq(node->link_bytes_per_s / 1e9, rows[i].link_gb_per_s, 0.001,
                           "%s %s: %g GB/s", rows[i].file, rows[i].name,
                           node->link_bytes_per_s / 1e9);
        cr_expect_eq(node->port_up, rows[i].port_up, "%s %s: port_up %d", rows[i].file,
                     rows[i].name, node->port_up);
        nw_topo_free(topo);
    }
}

Test(topo_hwloc_xml, each_gpu_has_its_nearest_nic)
{
    static const struct {
        const char *file, *gpu, *nic;
        nw_path path;
    } rows[] = {
        {"hgx-8gpu-hwloc2.xml", "gpu0", "mlx5_0", NW_PATH_SWITCH},
        {"hgx-8gpu-hwloc2.xml", "gpu7", "mlx5_7", NW_PATH_SWITCH},
        {"lenovo-sd665n-4xh200-nvml.xml", "gpu0", "mlx5_0", NW_PATH_SWITCH},
        {"lenovo-sd665n-4xh200-nvml.xml", "gpu1", "mlx5_3", NW_PATH_SWITCH},
        {"lenovo-sd665n-4xh200-nvml.xml", "gpu2", "mlx5_4", NW_PATH_SWITCH},
        {"lenovo-sd665n-4xh200-nvml.xml", "gpu3", "mlx5_5", NW_PATH_SWITCH},
        {"rocm-tioga-mi250x.xml", "gpu1", "hsi0", NW_PATH_ROOT},
        {"coral-lassen-4xv100-hwloc2.xml", "gpu2", "mlx5_2", NW_PATH_NUMA},
        {"aws-g4dn-metal-8xt4.xml", "gpu4", "rdmap197s0", NW_PATH_NUMA},
        {"aws-g4dn-metal-8xt4.xml", "gpu0", "rdmap197s0", NW_PATH_MACHINE},
        {"westmere-3gpu-1ib.xml", "gpu0", "mlx4_0", NW_PATH_ROOT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo;
        nw_path path = NW_PATH_COUNT;
        int gpu = -1, nic;

        if (!read_machine(rows[i].file, &topo))
            continue;
        for (int n = 0; n < (int)topo->node_count; n++)
            if (strcmp(topo->nodes[n].name, rows[i].gpu) == 0)
                gpu = n;
        cr_assert_geq(gpu, 0);
        nic = nw_topo_nearest(topo, gpu, NW_NODE_NIC, &path);
        cr_assert_geq(nic, 0);
        cr_expect_str_eq(topo->nodes[nic].name, rows[i].nic, "%s %s: %s", rows[i].file, rows[i].gpu,
                         topo->nodes[nic].name);
        cr_expect_eq(path, rows[i].path, "%s %s: %s", rows[i].file, rows[i].gpu, nw_path_key(path));
        nw_topo_free(topo);
    }
}

/* RAM only: GPU memory (sierra2) and persistent memory (misc) are NUMA nodes and are not counted.
 */
Test(topo_hwloc_xml, memory_is_the_ram)
{
    static const struct {
        const char *file;
        double gib;
    } rows[] = {{"sierra2-4xv100-hwloc1.xml", 255.46},
                {"misc-libxml2-topo.xml", 125.581},
                {"lenovo-sd665n-4xh200-nvml.xml", 1511.403},
                {"jetson-xavier.xml", 14.557}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo;

        if (!read_machine(rows[i].file, &topo))
            continue;
        cr_expect_float_eq((double)topo->memory_bytes / 0x1p30, rows[i].gib, 0.01, "%s: %.3f GiB",
                           rows[i].file, (double)topo->memory_bytes / 0x1p30);
        nw_topo_free(topo);
    }
}
