#include "tests/unit/system_tree.h"
#include "topo/traffic.h"

/* Two RDMA NICs, one with two ports of which one is down, EFA; interfaces of all sorts. */
static const struct tree_file before[] = {
    {"class/infiniband/mlx5_0/device/vendor", "0x15b3\n"},
    {"class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"},
    {"class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"},
    {"class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1000\n"},
    {"class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "500\n"},
    {"class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n"},
    {"class/infiniband/mlx5_0/ports/2/counters/port_xmit_data", "9\n"},
    {"class/infiniband/mlx5_0/ports/2/counters/port_rcv_data", "9\n"},
    {"class/infiniband/rdmap0s1/ports/1/state", "4: ACTIVE\n"},
    {"class/infiniband/rdmap0s1/device/vendor", "0x1d0f\n"},
    {"class/infiniband/rdmap0s1/ports/1/rate", "2.5 Gb/sec (1X SDR)\n"},
    {"class/infiniband/rdmap0s1/ports/1/hw_counters/tx_bytes", "70\n"},
    {"class/infiniband/rdmap0s1/ports/1/hw_counters/rx_bytes", "80\n"},
    {"class/infiniband/soft0/ports/1/state", "4: ACTIVE\n"}, /* no device behind it */
    {"class/infiniband/soft0/ports/1/rate", "lots of Gb/sec\n"},
    {"class/infiniband/soft0/ports/1/counters/port_xmit_data", "1\n"},
    {"class/infiniband/soft0/ports/1/counters/port_rcv_data", "2\n"},
    {"class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n"}, /* counts packets, no bytes */
    {"class/net/eth0/operstate", "up\n"},
    {"class/net/eth0/type", "1\n"},
    {"class/net/eth0/speed", "25000\n"},
    {"class/net/eth0/device/vendor", "0x15b3\n"},
    {"class/net/eth0/statistics/tx_bytes", "18446744073709551615\n"},
    {"class/net/eth0/statistics/rx_bytes", "7\n"},
    {"class/net/veth1/operstate", "up\n"},
    {"class/net/veth1/speed", "10000\n"},
    {"class/net/veth1/statistics/tx_bytes", "3\n"},
    {"class/net/veth1/statistics/rx_bytes", "4\n"},
    {"class/net/lo/operstate", "up\n"},
    {"class/net/lo/statistics/tx_bytes", "3\n"},
    {"class/net/lo/statistics/rx_bytes", "3\n"},
    {"class/net/bond0/operstate", "up\n"},
    {"class/net/bond0/lower_eth0/x", "1\n"},
    {"class/net/bond0/statistics/tx_bytes", "3\n"},
    {"class/net/bond0/statistics/rx_bytes", "3\n"},
    {"class/net/ib0/operstate", "up\n"},
    {"class/net/ib0/type", "32\n"},
    {"class/net/ib0/statistics/tx_bytes", "3\n"},
    {"class/net/ib0/statistics/rx_bytes", "3\n"},
    {"class/net/eth1/operstate", "down\n"},
    {"class/net/eth1/statistics/tx_bytes", "3\n"},
    {"class/net/eth1/statistics/rx_bytes", "3\n"},
    {"class/net/eth2/operstate", "up\n"},
    {"class/net/eth2/statistics/tx_bytes", "many\n"},
    {"class/net/eth2/statistics/rx_bytes", "3\n"},
};

static const struct tree_file after[] = {
    {"class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "3500\n"},
    {"class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "500\n"},
    {"class/infiniband/rdmap0s1/ports/1/hw_counters/tx_bytes", "75\n"},
    {"class/net/veth1/statistics/tx_bytes", "1\n"}, /* was reset */
    {"class/net/veth1/statistics/rx_bytes", "10\n"},
};

static const struct nw_traffic_port *find(const struct nw_traffic *traffic, const char *name)
{
    for (size_t i = 0; i < traffic->count; i++)
        if (strcmp(traffic->ports[i].name, name) == 0)
            return &traffic->ports[i];
    return NULL;
}

Test(topo_traffic, ports_that_are_up_and_count_bytes_are_read_and_none_twice)
{
    static const struct {
        const char *name;
        bool rdma, physical;
        double bits_per_s, sent, received;
    } rows[] = {
        {"mlx5_0", true, true, 400e9, 4000, 2000}, /* in words of four bytes */
        {"rdmap0s1", true, true, 2.5e9, 70, 80},
        {"soft0", true, false, 0, 4, 8}, /* a rate that is no number */
        {"eth0", false, true, 25e9, 18446744073709551615.0, 7},
        {"veth1", false, false, 0, 3, 4}, /* no physical port: its speed means nothing */
    };
    char root[] = "/tmp/nw_traffic_XXXXXX";
    struct nw_traffic traffic;

    cr_assert_not_null(mkdtemp(root));
    tree_add(root, before, sizeof before / sizeof *before);
    nw_traffic_read(root, &traffic);
    cr_expect_eq(traffic.count, sizeof rows / sizeof *rows, "%zu", traffic.count);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_traffic_port *port = find(&traffic, rows[i].name);

        cr_assert_not_null(port, "%s", rows[i].name);
        cr_expect_eq(port->rdma, rows[i].rdma, "%s", rows[i].name);
        cr_expect_eq(port->physical, rows[i].physical, "%s", rows[i].name);
        cr_expect_eq(port->bits_per_s, rows[i].bits_per_s, "%s", rows[i].name);
        cr_expect_eq(port->sent_bytes, rows[i].sent, "%s", rows[i].name);
        cr_expect_eq(port->received_bytes, rows[i].received, "%s", rows[i].name);
    }
    tree_remove(root);
    nw_traffic_read(root, &traffic); /* no /sys at all */
    cr_expect_eq(traffic.count, 0);
}

Test(topo_traffic, what_was_moved_between_two_readings)
{
    char root[] = "/tmp/nw_traffic_XXXXXX";
    struct nw_traffic first, second, moved;

    cr_assert_not_null(mkdtemp(root));
    tree_add(root, before, sizeof before / sizeof *before);
    nw_traffic_read(root, &first);
    tree_add(root, after, sizeof after / sizeof *after);
    nw_traffic_read(root, &second);
    nw_traffic_since(&first, &second, &moved);
    cr_expect_eq(moved.count, 5);
    cr_expect_eq(find(&moved, "mlx5_0")->sent_bytes, 10000);
    cr_expect_eq(find(&moved, "mlx5_0")->received_bytes, 0);
    cr_expect_eq(find(&moved, "rdmap0s1")->sent_bytes, 5);
    cr_expect_eq(find(&moved, "veth1")->sent_bytes, 0);
    cr_expect_eq(find(&moved, "veth1")->received_bytes, 6);
    first.count = 1; /* a port that came up meanwhile */
    nw_traffic_since(&first, &second, &moved);
    cr_expect_eq(moved.count, 1);
    tree_remove(root);
}

/* A node of a cluster of containers: their ends of the wires come first by name. */
Test(topo_traffic, a_device_is_counted_however_many_virtual_interfaces_there_are)
{
    static const struct tree_file nic[] = {
        {"class/net/eth0/operstate", "up\n"},
        {"class/net/eth0/device/vendor", "0x15b3\n"},
        {"class/net/eth0/statistics/tx_bytes", "5\n"},
        {"class/net/eth0/statistics/rx_bytes", "7\n"},
    };
    char root[] = "/tmp/nw_traffic_XXXXXX";
    static struct nw_traffic traffic;

    cr_assert_not_null(mkdtemp(root));
    tree_add(root, nic, sizeof nic / sizeof *nic);
    for (int i = 0; i < NW_TRAFFIC_PORTS_MAX + 8; i++) {
        char names[3][64];
        struct tree_file virtual[3] = {{names[0], "up\n"}, {names[1], "1\n"}, {names[2], "2\n"}};

        snprintf(names[0], sizeof names[0], "class/net/cali%03d/operstate", i);
        snprintf(names[1], sizeof names[1], "class/net/cali%03d/statistics/tx_bytes", i);
        snprintf(names[2], sizeof names[2], "class/net/cali%03d/statistics/rx_bytes", i);
        tree_add(root, virtual, 3);
    }
    nw_traffic_read(root, &traffic);
    cr_expect_eq(traffic.count, NW_TRAFFIC_PORTS_MAX);
    cr_expect_eq(traffic.left_out, 9);
    cr_expect_str_eq(traffic.ports[0].name, "eth0");
    tree_remove(root);
}
