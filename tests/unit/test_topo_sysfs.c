/* A small machine made of files: what /sys and /proc add to hwloc's view. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "topo/classify.h"
#include "topo/live_pci.h"
#include "topo/read.h"

#define ROOT_PORT "sys/devices/pci0000:16/0000:16:01.0"
#define GPU       ROOT_PORT "/0000:17:00.0"
#define NARROW    ROOT_PORT "/0000:18:00.0"
#define HCA       ROOT_PORT "/0000:19:00.0"

static const struct {
    const char *path, *text;
} files[] = {
    {ROOT_PORT "/max_link_speed", "16.0 GT/s PCIe\n"},
    {ROOT_PORT "/max_link_width", "16\n"},
    {GPU "/current_link_speed", "2.5 GT/s PCIe\n"}, /* idle */
    {GPU "/current_link_width", "16\n"},
    {GPU "/max_link_speed", "32.0 GT/s PCIe\n"},
    {GPU "/max_link_width", "16\n"},
    {NARROW "/current_link_speed", "16.0 GT/s PCIe\n"},
    {NARROW "/current_link_width", "8\n"},
    {NARROW "/max_link_speed", "16.0 GT/s PCIe\n"},
    {NARROW "/max_link_width", "16\n"},
    {NARROW "/mem_info_vram_total", "68702699520\n"},
    {HCA "/current_link_speed", "Unknown\n"},
    {HCA "/current_link_width", "0\n"},
    {HCA "/net/ib0/operstate", "up\n"},
    {HCA "/net/ib0/speed", "100000\n"},
    {"sys/class/infiniband/mlx5_0/node_type", "1: CA\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"},
    {"sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n"},
    {"sys/class/infiniband/mlx5_0/ports/2/rate", "10 Gb/sec (4X SDR)\n"},
    {"sys/devices/vif-0/net/eth0/operstate", "up\n"},
    {"sys/devices/vif-0/net/eth0/speed", "-1\n"},
    {"sys/devices/vif-1/net/eth1/operstate", "down\n"},
    {"sys/devices/vif-1/net/eth1/speed", "25000\n"},
    {"sys/devices/virtual/net/lo/operstate", "unknown\n"},
    {"sys/devices/virtual/net/docker0/operstate", "up\n"},
    {ROOT_PORT "/0000:1a:00.0/virtio3/block/vda/size", "4194304\n"},
    {"sys/devices/virtual/block/zram0/size", "4194304\n"},
    {"pci.ids", "# a comment\n10de  NVIDIA Corporation\n\t2330  GH100 [H100 SXM5 80GB]\n"
                "15b3  Mellanox Technologies\n\t1021  MT2910 Family [ConnectX-7]\n"
                "\t\t15b3 0041  ConnectX-7 HHHL\n\t1023  CX8 Family [ConnectX-8]\nbroken\n"
                "C 00  Unclassified device\n\t1021  never\n"},
    {"proc/self/cgroup", "1:name=x:/old\n0::/job/step\n"},
    {"sys/fs/cgroup/job/memory.max", "8589934592\n"},
    {"sys/fs/cgroup/job/cpu.max", "150000 100000\n"},
    {"sys/fs/cgroup/job/step/memory.max", "4294967296\n"},
    {"sys/fs/cgroup/job/step/cpu.max", "max 100000\n"},
    {"proc/meminfo", "MemTotal:       24683652 kB\nMemFree:        23170220 kB\n"},
    {"proc/driver/nvidia/gpus/0000:17:00.0/information",
     "Model: \t\t NVIDIA H100 PCIe\nIRQ:   \t\t 77\nGPU UUID: \t GPU-0\n"},
};

static const struct {
    const char *path, *to;
} links[] = {
    {"sys/bus/pci/devices/0000:17:00.0", "../../../devices/pci0000:16/0000:16:01.0/0000:17:00.0"},
    {"sys/bus/pci/devices/0000:18:00.0", "../../../devices/pci0000:16/0000:16:01.0/0000:18:00.0"},
    {"sys/bus/pci/devices/0000:19:00.0", "../../../devices/pci0000:16/0000:16:01.0/0000:19:00.0"},
    {"sys/class/net/eth0", "../../devices/vif-0/net/eth0"},
    {"sys/class/net/eth1", "../../devices/vif-1/net/eth1"},
    {"sys/class/net/lo", "../../devices/virtual/net/lo"},
    {"sys/class/net/docker0", "../../devices/virtual/net/docker0"},
    {"sys/class/net/ib0", "../../devices/pci0000:16/0000:16:01.0/0000:19:00.0/net/ib0"},
    {"sys/block/vda", "../devices/pci0000:16/0000:16:01.0/0000:1a:00.0/virtio3/block/vda"},
    {"sys/block/zram0", "../devices/virtual/block/zram0"},
};

static void make_parent(const char *path)
{
    char folder[512];

    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    cr_assert_eq(nw_make_directory(folder), NW_OK, "%s", nw_last_error()->text);
}

static void make_tree(const char *root)
{
    char path[512];

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *stream;

        snprintf(path, sizeof path, "%s/%s", root, files[i].path);
        make_parent(path);
        stream = fopen(path, "w");
        cr_assert_not_null(stream);
        fputs(files[i].text, stream);
        fclose(stream);
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "%s/%s", root, links[i].path);
        make_parent(path);
        cr_assert_eq(symlink(links[i].to, path), 0);
    }
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *where)
{
    (void)status, (void)flag, (void)where;
    return remove(path);
}

static void add_pci(struct nw_raw *raw, uint32_t bus, uint32_t class_id, uint32_t vendor,
                    uint32_t device)
{
    int index;

    cr_assert_eq(nw_raw_add(raw, NW_RAW_PCI, 0, &index), NW_OK);
    raw->objects[index].bus = bus;
    raw->objects[index].pci_class = class_id;
    raw->objects[index].pci_vendor = vendor;
    raw->objects[index].pci_device = device;
}

/* What hwloc would have found: four PCI devices and one RDMA device of them. */
static void add_hwloc_view(struct nw_raw *raw)
{
    int index;

    cr_assert_eq(nw_raw_add(raw, NW_RAW_MACHINE, -1, &index), NW_OK);
    add_pci(raw, 0x17, 0x0302, 0x10de, 0x2331);
    add_pci(raw, 0x18, 0x0380, 0x1002, 0x7408);
    add_pci(raw, 0x19, 0x0207, 0x15b3, 0x1021);
    add_pci(raw, 0x1a, 0x0100, 0x1af4, 0x1042);
    cr_assert_eq(nw_raw_add(raw, NW_RAW_OSDEV, 3, &index), NW_OK);
    raw->objects[index].osdev = NW_OSDEV_RDMA;
    snprintf(raw->objects[index].name, sizeof raw->objects[index].name, "mlx5_0");
}

static const struct nw_topo_node *find(const struct nw_topo *topo, const char *name)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].name, name) == 0)
            return &topo->nodes[i];
    return NULL;
}

static void check_pci(const struct nw_topo *topo)
{
    const struct nw_topo_node *idle = find(topo, "gpu0"), *narrow = find(topo, "gpu1"),
                              *hca = find(topo, "mlx5_0");

    cr_assert(idle != NULL && narrow != NULL && hca != NULL);
    cr_expect_str_eq(idle->model, "NVIDIA H100 PCIe");
    cr_expect_float_eq(idle->link_bytes_per_s, 4e9, 1, "now: Gen1 x16");
    cr_expect_float_eq(idle->link_max_bytes_per_s, 31507692308.0, 1,
                       "best: Gen4 x16, as the port above has no more");
    cr_expect_eq(idle->link_lanes, 16);
    cr_expect_float_eq(narrow->link_bytes_per_s, 15753846154.0, 1);
    cr_expect_eq(narrow->link_lanes, 8);
    cr_expect_eq(narrow->link_max_lanes, 16);
    cr_expect_eq(narrow->memory_bytes, 68702699520);
    cr_expect_eq(hca->link_bytes_per_s, 0, "unknown stays 0");
    cr_expect_eq(hca->link_lanes, 0);
}

static void check_nics(const struct nw_topo *topo)
{
    const struct nw_topo_node *hca = find(topo, "mlx5_0"), *silent = find(topo, "eth0"),
                              *down = find(topo, "eth1");

    cr_assert(hca != NULL && silent != NULL && down != NULL);
    cr_expect_float_eq(hca->rate_bits_per_s, 400e9, 1, "the port that is down has no rate: %g",
                       hca->rate_bits_per_s);
    cr_expect_eq(hca->port_up, 1);
    cr_expect_str_eq(hca->fabric, "infiniband");
    cr_expect_str_eq(hca->model, "Mellanox MT2910 Family [ConnectX-7]");
    cr_expect_str_eq(hca->os_names, "mlx5_0 ib0");
    cr_expect_eq(silent->rate_bits_per_s, 0);
    cr_expect_eq(silent->port_up, 1);
    cr_expect_eq(down->rate_bits_per_s, 0, "a rate of nothing");
    cr_expect_eq(down->port_up, 0);
    cr_expect_null(find(topo, "lo"));
    cr_expect_null(find(topo, "docker0"));
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 3);
}

static const char *finding_text(const struct nw_topo *topo, const char *code)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, code) == 0)
            return topo->findings.items[i].text;
    return "";
}

static bool has_finding(const struct nw_topo *topo, const char *code)
{
    return finding_text(topo, code)[0] != '\0';
}

Test(topo_sysfs, rates_links_and_missing_devices_come_from_sysfs)
{
    char root[] = "/tmp/nw-sysfs-XXXXXX", sys[64], proc[64], ids[64];
    const char *const pci_ids[] = {"/nowhere/pci.ids", ids, NULL};
    const struct nw_sysfs sysfs = {.sys = sys, .proc = proc, .pci_ids = pci_ids};
    const struct nw_topo_node *disk;
    struct nw_topo *topo;
    struct nw_raw raw;

    cr_assert_not_null(mkdtemp(root));
    snprintf(sys, sizeof sys, "%s/sys", root);
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(ids, sizeof ids, "%s/pci.ids", root);
    make_tree(root);
    nw_raw_init(&raw);
    add_hwloc_view(&raw);
    cr_assert_eq(nw_sysfs_complete(&sysfs, &raw), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_pci_ids_complete(&sysfs, &raw), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_topo_build(&raw, &topo), NW_OK, "%s", nw_last_error()->text);
    nw_sysfs_annotate(&sysfs, topo);
    cr_assert_eq(nw_live_pci(&sysfs, topo), NW_OK);
    cr_assert_eq(nw_topo_judge(topo), NW_OK);
    topo->pu_count = 64;
    cr_assert_eq(nw_sysfs_judge_limits(&sysfs, topo), NW_OK);
    check_pci(topo);
    check_nics(topo);
    cr_expect(strstr(finding_text(topo, "memory-limited"), "4 GiB of") != NULL, "%s",
              finding_text(topo, "memory-limited"));
    cr_expect(strstr(finding_text(topo, "cpu-limited"), "1.5 of the machine's 64") != NULL, "%s",
              finding_text(topo, "cpu-limited"));
    disk = find(topo, "vda");
    cr_assert_not_null(disk);
    cr_expect_eq(disk->memory_bytes, 2147483648);
    cr_expect_str_eq(disk->pci, "0000:1a:00.0");
    cr_expect_eq(nw_topo_count(topo, NW_NODE_DISK), 1);
    cr_expect(has_finding(topo, "pcie-narrow"));
    cr_expect(!has_finding(topo, "pcie-slower-than-siblings"), "idle is no fault");
    cr_expect(has_finding(topo, "nic-down"));
    cr_expect_eq(topo->memory_bytes, 24683652ull * 1024);
    nw_topo_free(topo);
    nw_raw_free(&raw);
    cr_expect_eq(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
