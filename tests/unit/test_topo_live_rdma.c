/* RDMA devices from sysfs: a tree of files and a JSON map of the same must say the same. */
#include <ftw.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/live_rdma.h"
#include "topo/read.h"
#include "topo_field.h"

#define CX7  "bus/pci/devices/0000:17:00.0/"
#define CX6  "bus/pci/devices/0000:31:00.0/"
#define IB   CX7 "infiniband/mlx5_0/"
#define ROCE CX6 "infiniband/mlx5_1/"
#define SOFT "class/infiniband/rxe0/"
#define ZERO "0000:0000:0000:0000:0000:0000:0000:0000\n"

static const struct {
    const char *path, *text;
} files[] = {
    {CX7 "class", "0x020700\n"},
    {CX7 "vendor", "0x15b3\n"},
    {CX7 "device", "0x1021\n"},
    {CX7 "numa_node", "1\n"},
    {CX7 "current_link_speed", "32.0 GT/s PCIe\n"},
    {CX7 "current_link_width", "16\n"},
    {CX7 "net/ib0/mtu", "4092\n"},
    {CX7 "net/ib0/dev_port", "0\n"},
    {CX7 "net/ib0/address", "00:00:10:49:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01\n"},
    {IB "node_type", "1: CA\n"},
    {IB "fw_ver", "28.39.2048\n"},
    {IB "board_id", "MT_0000000838\n"},
    {IB "node_guid", "0002:c903:0000:0001\n"},
    {IB "sys_image_guid", "0002:c903:0000:0009\n"},
    {IB "ports/1/state", "4: ACTIVE\n"},
    {IB "ports/1/phys_state", "5: LinkUp\n"},
    {IB "ports/1/rate", "400 Gb/sec (4X NDR)\n"},
    {IB "ports/1/link_layer", "InfiniBand\n"},
    {IB "ports/1/lid", "0x4b\n"},
    {IB "ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:0000:0001\n"},
    {IB "ports/1/gids/1", ZERO},
    {IB "ports/1/gid_attrs/types/0", "IB/RoCE v1\n"},
    {IB "ports/1/counters/symbol_error", "3\n"},
    {IB "ports/1/counters/link_downed", "2\n"},
    {IB "ports/1/hw_counters/out_of_sequence", "7\n"},
    {IB "ports/1/hw_counters/packet_seq_err", "5\n"},
    {IB "ports/1/hw_counters/local_ack_timeout_err", "1\n"},
    {IB "ports/2/state", "1: DOWN\n"},
    {IB "ports/2/phys_state", "3: Disabled\n"},
    {IB "ports/2/rate", "10 Gb/sec (4X SDR)\n"},
    {IB "ports/2/link_layer", "InfiniBand\n"},
    {IB "ports/2/lid", "0xffff\n"},
    {CX6 "class", "0x020000\n"},
    {CX6 "net/ens1f0np0/mtu", "9000\n"},
    {CX6 "net/ens1f0np0/dev_port", "0\n"},
    {CX6 "net/ens1f0np0/address", "94:6d:ae:00:00:01\n"},
    {ROCE "ports/1/state", "4: ACTIVE\n"},
    {ROCE "ports/1/phys_state", "5: LinkUp\n"},
    {ROCE "ports/1/rate", "100 Gb/sec (4X EDR)\n"},
    {ROCE "ports/1/link_layer", "Ethernet\n"},
    {ROCE "ports/1/lid", "0x0\n"},
    {ROCE "ports/1/gids/0", "fe80:0000:0000:0000:966d:aeff:fe00:0001\n"},
    {ROCE "ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:c000:0201\n"},
    {ROCE "ports/1/gids/10", "2001:0db8:0000:0000:0000:0000:0000:0001\n"},
    {ROCE "ports/1/gid_attrs/types/0", "IB/RoCE v1\n"},
    {ROCE "ports/1/gid_attrs/types/3", "RoCE v2\n"},
    {ROCE "ports/1/gid_attrs/types/10", "RoCE v2\n"},
    {ROCE "ports/1/gid_attrs/ndevs/0", "ens1f0np0\n"},
    {ROCE "ports/1/gid_attrs/ndevs/3", "ens1f0np0\n"},
    {ROCE "ports/1/hw_counters/rx_discards", "11\n"},
    {ROCE "ports/1/counters/symbol_error", "not a number\n"},
    {SOFT "ports/1/state", "4: ACTIVE\n"},
    {SOFT "ports/1/link_layer", "Ethernet\n"},
    {SOFT "parent", "eth9\n"},
};

enum { FILE_COUNT = sizeof files / sizeof *files };

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *where)
{
    (void)status, (void)flag, (void)where;
    return remove(path);
}

static void make_tree(const char *root)
{
    char path[512], folder[512];

    for (size_t i = 0; i < FILE_COUNT; i++) {
        FILE *stream;

        snprintf(path, sizeof path, "%s/%s", root, files[i].path);
        snprintf(folder, sizeof folder, "%s", path);
        *strrchr(folder, '/') = '\0';
        cr_assert_eq(nw_make_directory(folder), NW_OK, "%s", nw_last_error()->text);
        stream = fopen(path, "w");
        cr_assert_not_null(stream);
        fputs(files[i].text, stream);
        fclose(stream);
    }
}

static char *make_map(void)
{
    json_t *map = json_object();
    char path[512], *text;

    for (size_t i = 0; i < FILE_COUNT; i++) {
        snprintf(path, sizeof path, "/sys/%s", files[i].path);
        json_object_set_new(map, path, json_string(files[i].text));
    }
    text = json_dumps(map, 0);
    json_decref(map);
    return text;
}

/* What hwloc would have found: the two PCI devices. */
static struct nw_topo *start(void)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int index;

    cr_assert_not_null(topo);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &index), NW_OK);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_NIC, 0, &index), NW_OK);
    strcpy(topo->nodes[index].pci, "0000:17:00.0");
    strcpy(topo->nodes[index].name, "mlx5_0");
    strcpy(topo->nodes[index].os_names, "mlx5_0 ib0");
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_NIC, 0, &index), NW_OK);
    strcpy(topo->nodes[index].pci, "0000:31:00.0");
    strcpy(topo->nodes[index].name, "mlx5_1");
    strcpy(topo->nodes[index].os_names, "mlx5_1 ens1f0np0");
    return topo;
}

static const struct nw_topo_node *named(const struct nw_topo *topo, const char *name)
{
    const int index = node_named(topo, name);

    cr_assert_geq(index, 0, "%s", name);
    return &topo->nodes[index];
}

static void check_facts(const struct nw_topo *topo)
{
    static const struct {
        const char *node;
        nw_fact_id id;
        const char *text; /* NULL: a number; "": unknown */
        double number;
    } rows[] = {
        {"mlx5_0", NW_FACT_FIRMWARE, "28.39.2048", 0},
        {"mlx5_0", NW_FACT_BOARD, "MT_0000000838", 0},
        {"mlx5_0", NW_FACT_NODE_GUID, "0002:c903:0000:0001", 0},
        {"mlx5_0", NW_FACT_SYSTEM_GUID, "0002:c903:0000:0009", 0},
        {"mlx5_0", NW_FACT_NETDEV, "ib0", 0},
        {"mlx5_0", NW_FACT_MAC, "", 0}, /* twenty octets */
        {"mlx5_0/1", NW_FACT_STATE, "active", 0},
        {"mlx5_0/1", NW_FACT_PORT_GUID, "0002:c903:0000:0001", 0},
        {"mlx5_0/1", NW_FACT_LID, NULL, 0x4b},
        {"mlx5_0/1", NW_FACT_WIDTH, NULL, 4},
        {"mlx5_0/1", NW_FACT_LANE_RATE, NULL, 106.25e9},
        {"mlx5_0/1", NW_FACT_SYMBOL_ERRORS, NULL, 3},
        {"mlx5_0/1", NW_FACT_FLAPS, NULL, 2},
        {"mlx5_0/1", NW_FACT_SEQUENCE_ERRORS, NULL, 12},
        {"mlx5_0/1", NW_FACT_ACK_TIMEOUTS, NULL, 1},
        {"mlx5_0/1", NW_FACT_DISCARDS, "", 0},
        {"mlx5_0/2", NW_FACT_STATE, "down", 0},
        {"mlx5_0/2", NW_FACT_PHYSICAL_STATE, "disabled", 0},
        {"mlx5_0/2", NW_FACT_LANE_RATE, "", 0},
        {"mlx5_0/2", NW_FACT_LID, "", 0},
        {"mlx5_1", NW_FACT_MTU, NULL, 9000},
        {"mlx5_1", NW_FACT_MAC, "94:6d:ae:00:00:01", 0},
        {"mlx5_1/1", NW_FACT_NETDEV, "ens1f0np0", 0},
        {"mlx5_1/1", NW_FACT_LINK_LAYER, "ethernet", 0},
        {"mlx5_1/1", NW_FACT_DISCARDS, NULL, 11},
        {"mlx5_1/1", NW_FACT_SYMBOL_ERRORS, "", 0},
        {"mlx5_1/1", NW_FACT_PORT_GUID, "", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *key = nw_fact_rows[rows[i].id].key;

        if (rows[i].text == NULL) {
            cr_expect_float_eq(number_of(topo, rows[i].node, rows[i].id), rows[i].number, 1e-3,
                               "%s %s", rows[i].node, key);
            continue;
        }
        cr_expect_str_eq(text_of(topo, rows[i].node, rows[i].id), rows[i].text, "%s %s",
                         rows[i].node, key);
        cr_expect(isnan(number_of(topo, rows[i].node, rows[i].id)), "%s %s", rows[i].node, key);
    }
}

static void check_nodes(const struct nw_topo *topo)
{
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 3);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_PORT), 4);
    cr_expect_eq(named(topo, "mlx5_0/2")->parent, node_named(topo, "mlx5_0"));
    cr_expect_float_eq(named(topo, "mlx5_0")->rate_bits_per_s, 400e9, 1); /* not 410 */
    cr_expect_eq(named(topo, "mlx5_0")->port_up, 1);
    cr_expect_str_eq(named(topo, "mlx5_0")->fabric, "infiniband");
    cr_expect_eq(named(topo, "mlx5_0")->numa, 1);
    cr_expect_float_eq(named(topo, "mlx5_1")->rate_bits_per_s, 100e9, 1);
    cr_expect_str_eq(named(topo, "mlx5_1")->fabric, "roce");
    cr_expect_str_eq(named(topo, "rxe0")->pci, "");
    cr_expect_str_eq(named(topo, "rxe0")->fabric, "roce");
    cr_expect_eq(named(topo, "rxe0")->rate_bits_per_s, 0); /* none is said */
    cr_expect(topo->sources & NW_SOURCE_RDMA);
    cr_expect_eq(topo->findings.count, 1); /* the one in software */
    cr_expect_not_null(finding_of(topo, "rdma-in-software"));
}

static void check_gids(const struct nw_topo *topo)
{
    static const struct {
        const char *port, *type, *ip, *interface;
        int index;
    } rows[] = {{"mlx5_0/1", "ib", "", "", 0},
                {"mlx5_1/1", "roce v1", "", "ens1f0np0", 0},
                {"mlx5_1/1", "roce v2", "192.0.2.1", "ens1f0np0", 3},
                {"mlx5_1/1", "roce v2", "2001:db8::1", "", 10}};

    cr_assert_eq(topo->gid_count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < topo->gid_count; i++) {
        cr_expect_eq(topo->gids[i].port, node_named(topo, rows[i].port));
        cr_expect_eq(topo->gids[i].index, rows[i].index);
        cr_expect_str_eq(topo->gids[i].type, rows[i].type);
        cr_expect_str_eq(topo->gids[i].ip, rows[i].ip);
        cr_expect_str_eq(topo->gids[i].interface, rows[i].interface);
    }
}

Test(topo_live_rdma, a_tree_of_files_and_a_map_of_them_say_the_same)
{
    char root[] = "/tmp/nw-rdma-XXXXXX", *map;
    struct nw_topo *topo = start();

    cr_assert_not_null(mkdtemp(root));
    make_tree(root);
    cr_expect_eq(nw_rdma_live(root, topo), NW_OK, "%s", nw_last_error()->text);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    check_nodes(topo);
    check_facts(topo);
    check_gids(topo);
    nw_topo_free(topo);

    map = make_map();
    cr_assert_not_null(map);
    topo = text_topo(map);
    free(map);
    check_nodes(topo);
    check_facts(topo);
    check_gids(topo);
    cr_expect_eq(named(topo, "mlx5_0")->link_lanes, 16);
    cr_expect_eq(named(topo, "mlx5_0")->pci_device, 0x1021);
    nw_topo_free(topo);
}

Test(topo_live_rdma, reading_twice_adds_nothing)
{
    char root[] = "/tmp/nw-rdma-XXXXXX";
    struct nw_topo *topo = start();
    size_t nodes, facts, gids;

    cr_assert_not_null(mkdtemp(root));
    make_tree(root);
    cr_assert_eq(nw_rdma_live(root, topo), NW_OK);
    nodes = topo->node_count, facts = topo->fact_count, gids = topo->gid_count;
    cr_assert_eq(nw_rdma_live(root, topo), NW_OK);
    cr_expect_eq(topo->node_count, nodes);
    cr_expect_eq(topo->fact_count, facts);
    cr_expect_eq(topo->gid_count, gids);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    nw_topo_free(topo);
}

Test(topo_live_rdma, a_machine_without_rdma)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int index;

    cr_assert_not_null(topo);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &index), NW_OK);
    cr_assert_eq(nw_rdma_live("/nonexistent", topo), NW_OK);
    cr_expect_eq(topo->node_count, 1);
    cr_expect_eq(topo->sources, 0);
    cr_expect_eq(topo->findings.count, 0);
    nw_topo_free(topo);
}

/* Health check dumps of one kind of node: eight HCAs of 200 Gb/s; in the second the names sit on
 * other slots. */
Test(topo_live_rdma, field_dumps)
{
    static const struct {
        const char *file, *at_0c, *at_12, *at_4b;
        bool out_of_order;
    } rows[] = {{"logs/gcm-learn_good.json", "mlx5_0", "mlx5_1", "mlx5_2", false},
                {"logs/gcm-learn_ib_misbound_if.json", "mlx5_1", "mlx5_0", "mlx5_12", true}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = field_topo(rows[i].file);
        const struct nw_finding *finding = finding_of(topo, "rdma-names-out-of-order");

        cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 8);
        cr_expect_eq(nw_topo_count(topo, NW_NODE_DISK), 10);
        for (int nic = 0; nic < 8; nic++) {
            const struct nw_topo_node *node = nw_topo_nth(topo, NW_NODE_NIC, nic);

            cr_expect_float_eq(node->rate_bits_per_s, 200e9, 1);
            cr_expect_eq(node->port_up, 1);
            cr_expect_str_eq(node->fabric, "infiniband");
        }
        cr_expect_str_eq(named(topo, rows[i].at_0c)->pci, "0000:0c:00.0");
        cr_expect_str_eq(named(topo, rows[i].at_12)->pci, "0000:12:00.0");
        cr_expect_str_eq(named(topo, rows[i].at_4b)->pci, "0000:4b:00.0");
        cr_expect_str_eq(text_of(topo, "mlx5_6/1", NW_FACT_NETDEV), "ib4");
        /* A blanked value ("node_guid": "node_guid") is none. */
        cr_expect_str_eq(text_of(topo, "mlx5_6", NW_FACT_NODE_GUID), "");
        cr_expect_str_eq(text_of(topo, "mlx5_6", NW_FACT_BOARD), "");
        cr_expect_eq(finding != NULL, rows[i].out_of_order, "%s", rows[i].file);
        cr_expect(finding == NULL || finding->severity == NW_FINDING_INFO);
        nw_topo_free(topo);
    }
}

Test(topo_live_rdma, hostile_maps)
{
    static const char *const rows[] = {
        "{\"/sys/\": \"\"}",
        "{\"/sys/bus/pci/devices/0000:17:00.0/infiniband\": 1}",
        "{\"/sys/x\": {}, \"/sys/y\": []}",
        "{\"/sys/bus/pci/devices/zz/net/eth0/mtu\": \"9\"}",
        "{\"/sys/bus/pci/devices//infiniband//ports//state\": \"4: ACTIVE\"}",
        "{\"/sys/class/infiniband/a\": \"\", \"/sys/class/infiniband/a/ports/999/state\": \"x\"}",
        "{\"/sys/bus",
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = NULL;

        if (nw_topo_read_data(rows[i], strlen(rows[i]), "map", &topo) == NW_OK)
            nw_topo_free(topo);
        else
            cr_expect_neq(nw_last_error()->text[0], '\0');
    }
    try_all_cuts("logs/gcm-learn_good.json", 1501);
}

static const struct nw_topo_gid *gid_of(const struct nw_topo *topo, const char *port, int index)
{
    for (size_t i = 0; i < topo->gid_count; i++)
        if (topo->gids[i].index == index && strcmp(topo->nodes[topo->gids[i].port].name, port) == 0)
            return &topo->gids[i];
    return NULL;
}

/* /sys of two Soft-RoCE devices of Linux 6.1 on the two ends of a veth pair, and what the tools
 * said of them at the same moment. */
Test(topo_live_rdma, soft_roce_is_as_the_tools_say)
{
    static const char *const tools[] = {"rxe/ibv-devinfo-v.txt", "rxe/ibstat.txt",
                                        "rxe/rdma-link.txt"};
    static const char *const names[] = {"rxe0", "rxe1", "rxe0/1", "rxe1/1"};
    static const nw_fact_id facts[] = {NW_FACT_NODE_GUID,      NW_FACT_SYSTEM_GUID, NW_FACT_STATE,
                                       NW_FACT_PHYSICAL_STATE, NW_FACT_LINK_LAYER,  NW_FACT_NETDEV};
    struct nw_topo *topo = field_topo("rxe/sysfs.json");

    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 2);
    cr_expect_eq(topo->gid_count, 4);
    cr_expect_str_eq(named(topo, "rxe1")->fabric, "roce");
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        struct nw_topo *tool = field_topo(tools[i]);
        int compared = 0;

        for (size_t k = 0; k < 4 * (sizeof facts / sizeof *facts); k++) {
            const char *wanted = text_of(tool, names[k % 4], facts[k / 4]);

            if (wanted[0] == '\0')
                continue; /* not of this tool */
            cr_expect_str_eq(text_of(topo, names[k % 4], facts[k / 4]), wanted, "%s: %s", tools[i],
                             names[k % 4]);
            compared++;
        }
        cr_expect_geq(compared, 6, "%s", tools[i]);
        for (size_t k = 0; k < 4; k++)
            cr_expect(named(tool, names[k])->rate_bits_per_s == 0 ||
                      named(tool, names[k])->rate_bits_per_s ==
                          named(topo, names[k])->rate_bits_per_s);
        for (size_t k = 0; k < tool->gid_count; k++) {
            const struct nw_topo_gid *wanted = &tool->gids[k];
            const struct nw_topo_gid *gid =
                gid_of(topo, tool->nodes[wanted->port].name, wanted->index);

            cr_assert_not_null(gid);
            cr_expect_str_eq(gid->gid, wanted->gid);
            cr_expect_str_eq(gid->type, wanted->type);
            cr_expect_str_eq(gid->ip, wanted->ip);
        }
        nw_topo_free(tool);
    }
    nw_topo_free(topo);
}

/* The driver has counters below hw_counters only; what is not hardware is said. */
Test(topo_live_rdma, soft_roce_is_no_hardware)
{
    struct nw_topo *topo = field_topo("rxe/sysfs.json"), *saved = field_topo("rxe/saved.json");
    const struct nw_finding *finding = finding_of(topo, "rdma-in-software");
    const int port = node_named(topo, "rxe0/1");

    cr_assert_geq(port, 0);
    cr_expect_float_eq(nw_topo_number(topo, port, NW_FACT_SEQUENCE_ERRORS), 0, 1e-9);
    cr_expect_float_eq(nw_topo_number(topo, port, NW_FACT_FLAPS), 0, 1e-9);
    cr_assert_not_null(finding);
    cr_expect_eq(finding->severity, NW_FINDING_WARN);
    cr_expect_str_eq(finding->where, "rxe0");
    cr_expect_not_null(strstr(finding->text, "on top of v0"));
    cr_expect_not_null(finding_of(saved, "rdma-in-software"));
    cr_expect_float_eq(nw_topo_number(saved, node_named(saved, "rxe0/1"), NW_FACT_MTU), 4096, 1e-9);
    nw_topo_free(topo);
    nw_topo_free(saved);

    topo = field_topo("logs/gcm-learn_good.json");
    cr_expect_null(finding_of(topo, "rdma-in-software"));
    nw_topo_free(topo);
}
