/* What /sys/bus/pci says, made of files; configuration spaces made by hand. */
#include <math.h>

#include "tests/unit/system_tree.h"
#include "topo/live_pci.h"

/* --- ACS --- */

static void put32(uint8_t *config, size_t at, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        config[at + i] = (uint8_t)(value >> 8 * i);
}

static uint32_t header(unsigned id, unsigned next)
{
    return id | 1u << 16 | next << 20;
}

struct capability {
    size_t at;
    unsigned id, next;
};

Test(live_pci, acs_is_found_in_any_list_and_no_list_holds_the_reader)
{
    static const struct {
        const char *name;
        struct capability list[4];
        size_t length;
        size_t control_at; /* where 0x1d is written little-endian; 0: nowhere */
        nw_acs found;
    } rows[] = {
        {"first", {{0x100, 0xd, 0}}, 4096, 0x106, NW_ACS_FOUND},
        {"third",
         {{0x100, 1, 0x148}, {0x148, 3, 0xff0}, {0xff0, 0xd, 0x150}},
         4096,
         0xff6,
         NW_ACS_FOUND},
        {"backwards",
         {{0x100, 1, 0x300}, {0x300, 3, 0x140}, {0x140, 0xd, 0}},
         4096,
         0x146,
         NW_ACS_FOUND},
        {"none", {{0x100, 1, 0x148}, {0x148, 3, 0}}, 4096, 0, NW_ACS_NONE},
        {"empty list", {{0x100, 0, 0}}, 4096, 0, NW_ACS_NONE},
        {"for root only", {{0}}, 64, 0, NW_ACS_UNKNOWN},
        {"conventional", {{0}}, 256, 0, NW_ACS_UNKNOWN},
        {"no file", {{0}}, 0, 0, NW_ACS_UNKNOWN},
        {"cut before ACS", {{0x100, 1, 0x200}}, 0x200, 0, NW_ACS_UNKNOWN},
        {"cut in its header", {{0x100, 1, 0x200}, {0x200, 0xd, 0}}, 0x203, 0, NW_ACS_UNKNOWN},
        {"cut before its control", {{0x100, 0xd, 0}}, 0x107, 0, NW_ACS_UNKNOWN},
        {"whole control, no more", {{0x100, 0xd, 0}}, 0x108, 0x106, NW_ACS_FOUND},
        {"loop of one", {{0x100, 1, 0x100}}, 4096, 0, NW_ACS_UNKNOWN},
        {"loop of two", {{0x100, 1, 0x148}, {0x148, 3, 0x100}}, 4096, 0, NW_ACS_UNKNOWN},
        {"into the old space", {{0x100, 1, 0x40}}, 4096, 0, NW_ACS_UNKNOWN},
        {"not aligned", {{0x100, 1, 0x14a}, {0x14a, 0xd, 0}}, 4096, 0, NW_ACS_UNKNOWN},
        {"no answer", {{0x100, 0xffff, 0xfff}}, 4096, 0, NW_ACS_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t config[4096] = {0}, *exact = malloc(rows[i].length + 1);
        unsigned control = 0xabcd;
        nw_acs found;

        for (size_t c = 0; c < 4 && rows[i].list[c].at != 0; c++)
            put32(config, rows[i].list[c].at, header(rows[i].list[c].id, rows[i].list[c].next));
        if (i == 16)
            put32(config, 0x100, 0xffffffff);
        if (rows[i].control_at != 0) {
            config[rows[i].control_at] = 0x1d;
            config[rows[i].control_at + 1] = 0x01;
        }
        cr_assert_not_null(exact); /* of its very size: the sanitizer sees a byte read too far */
        memcpy(exact, config, rows[i].length);
        found = nw_pci_find_acs(exact, rows[i].length, &control);
        cr_expect_eq(found, rows[i].found, "%s: %d", rows[i].name, (int)found);
        cr_expect_eq(control, found == NW_ACS_FOUND ? 0x11d : 0xabcd, "%s: %x", rows[i].name,
                     control);
        free(exact);
    }
}

/* --- a machine --- */

#define ROOT   "sys/devices/pci0000:16/0000:16:01.0"
#define UP     ROOT "/0000:17:00.0"
#define DOWN0  UP "/0000:18:00.0"
#define DOWN1  UP "/0000:18:01.0"
#define GPU0   DOWN0 "/0000:19:00.0"
#define NIC    DOWN1 "/0000:1a:00.0"
#define PORT1  "sys/devices/pci0000:30/0000:30:01.0"
#define GPU1   PORT1 "/0000:31:00.0"
#define QEMU   "sys/devices/pci0000:40/0000:40:01.0"
#define GPU2   QEMU "/0000:41:00.0"
#define VMD    "sys/devices/pci0000:64/0000:64:05.5/pci10000:e0/10000:e0:06.0"
#define NVME   VMD "/10000:e1:00.0"
#define DIRECT "sys/devices/pci0000:00/0000:00:03.0"

#define LINK(device, now, lanes, best, most)                                                       \
    {device "/current_link_speed", now " GT/s PCIe\n"},                                            \
        {device "/current_link_width", lanes "\n"},                                                \
        {device "/max_link_speed", best " GT/s PCIe\n"},                                           \
    {                                                                                              \
        device "/max_link_width", most "\n"                                                        \
    }

static const struct tree_file files[] = {
    /* a Gen4 switch that runs at x8 of x16 towards the CPU, two Gen5 devices below it */
    LINK(ROOT, "16.0", "8", "32.0", "16"),
    LINK(UP, "16.0", "8", "16.0", "16"),
    LINK(DOWN0, "2.5", "16", "32.0", "16"),
    LINK(DOWN1, "16.0", "16", "16.0", "16"),
    LINK(GPU0, "2.5", "16", "32.0", "16"), /* idle */
    LINK(NIC, "16.0", "16", "32.0", "16"),
    {GPU0 "/driver", "@/nowhere/bus/pci/drivers/nvidia"},
    {NIC "/driver", "@/nowhere/bus/pci/drivers/mlx5_core"},
    {NIC "/physfn", "@../0000:1a:00.1"},
    {NIC "/iommu_group/type", "DMA-FQ\n"},
    {NIC "/numa_node", "1\n"},
    {GPU0 "/numa_node", "-1\n"},
    /* a slot of Gen3 */
    LINK(PORT1, "8.0", "16", "8.0", "16"),
    LINK(GPU1, "8.0", "16", "16.0", "16"),
    {GPU1 "/driver", "@../../../../bus/pci/drivers/vfio-pci"},
    /* a hypervisor's port says Gen1 x1 */
    {QEMU "/vendor", "0x1b36\n"},
    LINK(QEMU, "2.5", "1", "2.5", "1"),
    LINK(GPU2, "32.0", "16", "32.0", "16"),
    /* a disk below a root of its own */
    LINK(VMD, "8.0", "4", "16.0", "4"),
    LINK(NVME, "8.0", "4", "32.0", "4"),
    /* right at the host bridge, as in many virtual machines */
    {DIRECT "/current_link_speed", "Unknown\n"},
    {DIRECT "/current_link_width", "0\n"},
    {DIRECT "/max_link_speed", "Unknown\n"},
    {DIRECT "/max_link_width", "255\n"},
};

static const struct {
    const char *address, *path;
    nw_node_kind kind;
    int parent; /* index in this table; -1: the machine */
    double now, best, generation, path_rate;
    int best_lanes;
    const char *limited, *driver;
    double acs; /* NAN: unknown */
} nodes[] = {
    {"0000:16:01.0", ROOT, NW_NODE_BRIDGE, -1, 15.75e9, 63.0e9, 5, NAN, 16, NULL, NULL, 0x1d},
    {"0000:17:00.0", UP, NW_NODE_BRIDGE, 0, 15.75e9, 31.5e9, 4, NAN, 16, NULL, NULL, 0},
    {"0000:18:00.0", DOWN0, NW_NODE_BRIDGE, 1, 4.0e9, 63.0e9, 5, NAN, 16, NULL, NULL, NAN},
    {"0000:18:01.0", DOWN1, NW_NODE_BRIDGE, 1, 31.5e9, 31.5e9, 4, NAN, 16, NULL, NULL, NAN},
    {"0000:19:00.0", GPU0, NW_NODE_GPU, 2, 4.0e9, 63.0e9, 5, 15.75e9, 16,
     "the Gen4 x8 link (of x16) above bridge 0000:17:00.0", "nvidia", NAN},
    {"0000:1a:00.0", NIC, NW_NODE_NIC, 3, 31.5e9, 31.5e9, 4, 15.75e9, 16,
     "the Gen4 x8 link (of x16) above bridge 0000:17:00.0", "mlx5_core", NAN},
    {"0000:30:01.0", PORT1, NW_NODE_BRIDGE, -1, 15.75e9, 15.75e9, 3, NAN, 16, NULL, NULL, NAN},
    {"0000:31:00.0", GPU1, NW_NODE_GPU, 6, 15.75e9, 15.75e9, 3, 15.75e9, 16,
     "the Gen3 x16 link below bridge 0000:30:01.0", "vfio-pci", NAN},
    {"0000:40:01.0", QEMU, NW_NODE_BRIDGE, -1, 0.25e9, 0.25e9, 1, NAN, 1, NULL, NULL, NAN},
    {"0000:41:00.0", GPU2, NW_NODE_GPU, 8, 63.0e9, 63.0e9, 5, 63.0e9, 16, NULL, NULL, NAN},
    {"10000:e0:06.0", VMD, NW_NODE_BRIDGE, -1, 3.94e9, 7.88e9, 4, NAN, 4, NULL, NULL, NAN},
    {"10000:e1:00.0", NVME, NW_NODE_DISK, 10, 3.94e9, 7.88e9, 4, NAN, 4, NULL, NULL, NAN},
    {"0000:00:03.0", DIRECT, NW_NODE_NIC, -1, 0, 0, NAN, NAN, 0, NULL, NULL, NAN},
};
enum { NODE_COUNT = sizeof nodes / sizeof *nodes };

/* ROOT: on, with five bits; UP: whole, none; DOWN0: for root only; DOWN1: no answer; PORT1: of 256
 * bytes. */
static void add_configs(const char *root)
{
    uint8_t config[4096] = {0};
    char path[256];

    put32(config, 0x100, header(1, 0x148));
    put32(config, 0x148, header(0xd, 0));
    config[0x14e] = 0x1d;
    tree_write(root, ROOT "/config", config, sizeof config);
    put32(config, 0x100, header(1, 0));
    tree_write(root, UP "/config", config, sizeof config);
    memset(config, 0xff, sizeof config);
    tree_write(root, DOWN1 "/config", config, sizeof config);
    tree_write(root, PORT1 "/config", config, 256);
    tree_write(root, DOWN0 "/config", config, 0);
    snprintf(path, sizeof path, "%s/%s/config", root, DOWN0);
    cr_assert_eq(truncate(path, 0), 0);
}

static struct nw_topo *make_topo(const char *root)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    char path[512], target[512];
    int index;

    cr_assert_not_null(topo);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &index), NW_OK);
    for (size_t i = 0; i < NODE_COUNT; i++) {
        cr_assert_eq(nw_topo_add_node(topo, nodes[i].kind, nodes[i].parent + 1, &index), NW_OK);
        snprintf(topo->nodes[index].pci, sizeof topo->nodes[index].pci, "%s", nodes[i].address);
        snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s", root, nodes[i].address);
        snprintf(target, sizeof target, "%s/%s", root, nodes[i].path);
        tree_parent(path);
        cr_assert_eq(symlink(target, path), 0);
    }
    return topo;
}

static void expect_near(double is, double wanted, const char *address, const char *what)
{
    cr_expect(isnan(wanted) ? isnan(is) : fabs(is - wanted) <= 0.002 * fabs(wanted), "%s: %s %g",
              address, what, is);
}

static void check_node(const struct nw_topo *topo, size_t i)
{
    const struct nw_topo_node *node = &topo->nodes[i + 1];
    const int index = (int)i + 1;
    const char *limited = nw_topo_text(topo, index, NW_FACT_LIMITED_BY);
    const char *driver = nw_topo_text(topo, index, NW_FACT_PCI_DRIVER);

    expect_near(node->link_bytes_per_s, nodes[i].now, node->pci, "now");
    expect_near(node->link_max_bytes_per_s, nodes[i].best, node->pci, "best");
    cr_expect_eq(node->link_max_lanes, nodes[i].best_lanes, "%s", node->pci);
    expect_near(nw_topo_number(topo, index, NW_FACT_LINK_MAX_GENERATION), nodes[i].generation,
                node->pci, "generation");
    expect_near(nw_topo_number(topo, index, NW_FACT_PATH_RATE), nodes[i].path_rate, node->pci,
                "path");
    expect_near(nw_topo_number(topo, index, NW_FACT_ACS), nodes[i].acs, node->pci, "ACS");
    cr_expect_str_eq(limited != NULL ? limited : "",
                     nodes[i].limited != NULL ? nodes[i].limited : "", "%s: %s", node->pci,
                     limited);
    cr_expect_str_eq(driver != NULL ? driver : "", nodes[i].driver != NULL ? nodes[i].driver : "",
                     "%s", node->pci);
}

Test(live_pci, links_paths_drivers_and_acs_come_from_sysfs)
{
    char root[] = "/tmp/nw-pci-XXXXXX", sys[64];
    const struct nw_sysfs sysfs = {.sys = sys, .proc = "/nowhere"};
    struct nw_topo *topo;

    cr_assert_not_null(mkdtemp(root));
    snprintf(sys, sizeof sys, "%s/sys", root);
    tree_add(root, files, sizeof files / sizeof *files);
    add_configs(root);
    topo = make_topo(root);
    cr_assert_eq(nw_live_pci(&sysfs, topo), NW_OK, "%s", nw_last_error()->text);
    for (size_t i = 0; i < NODE_COUNT; i++)
        check_node(topo, i);
    cr_expect_eq(topo->nodes[6].numa, 1, "the NIC's");
    cr_expect_eq(topo->nodes[5].numa, -1, "the firmware does not say");
    cr_expect_eq(nw_topo_number(topo, 6, NW_FACT_VF), 1);
    cr_expect(isnan(nw_topo_number(topo, 5, NW_FACT_VF)));
    cr_expect_str_eq(nw_topo_text(topo, 6, NW_FACT_IOMMU_DOMAIN), "DMA-FQ");
    cr_expect_eq(nw_topo_number(topo, 5, NW_FACT_LINK_GENERATION), 1, "idle");
    cr_expect_eq(nw_topo_number(topo, 8, NW_FACT_DEVICE_MAX_GENERATION), 4);
    cr_assert_eq(topo->findings.count, 1);
    cr_expect_str_eq(topo->findings.items[0].code, "not-checked");
    cr_expect_not_null(strstr(topo->findings.items[0].text, "ACS of 4 PCIe bridges"), "%s",
                       topo->findings.items[0].text);
    nw_topo_free(topo);
    tree_remove(root);
}

/* A real file of 4096 bytes of which this user may read 64 cannot be made of files; that it is so
 * on a real machine is seen there (docs/check.md). */
Test(live_pci, this_machine)
{
    const struct nw_sysfs sysfs = {.sys = "/sys", .proc = "/proc"};
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int index;

    cr_assert_not_null(topo);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &index), NW_OK);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_NIC, 0, &index), NW_OK);
    snprintf(topo->nodes[1].pci, sizeof topo->nodes[1].pci, "../../../../.."); /* no address */
    cr_expect_eq(nw_live_pci(&sysfs, topo), NW_OK);
    cr_expect_eq(topo->nodes[1].link_max_bytes_per_s, 0);
    nw_topo_free(topo);
}
