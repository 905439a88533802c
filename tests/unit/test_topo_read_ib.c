/* RDMA tools' output: the right reading of every file in tests/field/ibstat, and the forms that no
 * file there has. */
#include "topo_field.h"

struct tally {
    int nics, ports, active, down;
    double active_gbit_per_s; /* of all active ports */
};

static struct tally tally_of(const struct nw_topo *topo)
{
    struct tally tally = {0};

    for (size_t i = 0; i < topo->node_count; i++) {
        const char *state = nw_topo_text(topo, (int)i, NW_FACT_STATE);

        tally.nics += topo->nodes[i].kind == NW_NODE_NIC;
        if (topo->nodes[i].kind != NW_NODE_PORT)
            continue;
        tally.ports++;
        tally.active += state != NULL && strcmp(state, "active") == 0;
        tally.down += state != NULL && strcmp(state, "down") == 0;
        tally.active_gbit_per_s += topo->nodes[i].rate_bits_per_s / 1e9;
    }
    return tally;
}

static int of_fabric(const struct nw_topo *topo, const char *fabric, double gbit_per_s)
{
    int count = 0;

    for (size_t i = 0; i < topo->node_count; i++)
        count += topo->nodes[i].kind == NW_NODE_NIC && strcmp(topo->nodes[i].fabric, fabric) == 0 &&
                 fabs(topo->nodes[i].rate_bits_per_s / 1e9 - gbit_per_s) < 1e-6;
    return count;
}

Test(topo_read_ib, every_field_file_is_read_right)
{
    static const struct {
        const char *file;
        int nics, ports, active, down;
        double gbit_per_s;
        const char *fabric;
        double fabric_gbit_per_s; /* that many NICs of it with that rate */
        int fabric_count;
        const char *finding; /* NULL: none at all */
    } rows[] = {
        {"ibstat/dlperf-edr-1port.txt", 1, 1, 1, 0, 100, "infiniband", 100, 1, NULL},
        {"ibstat/dlperf-edr-prompt.txt", 1, 1, 1, 0, 100, "infiniband", 100, 1, NULL},
        {"ibstat/iblinkinfo-v100-mixed-width.txt", 3, 3, 3, 0, 300, "infiniband", 100, 3,
         "fabric-view"},
        {"ibstat/ibstat-a100-8hdr-ibpanic.txt", 8, 8, 8, 0, 1600, "infiniband", 200, 8,
         "tool-failed"},
        {"ibstat/ibstat-h100-3down.txt", 12, 12, 9, 3, 3300, "infiniband", 400, 8, NULL},
        {"ibstat/ibstat-h100-3down.txt", 12, 12, 9, 3, 3300, "roce", 0, 3, NULL},
        {"ibstat/ibstat-h100-3down.txt", 12, 12, 9, 3, 3300, "roce", 100, 1, NULL},
        {"ibstat/ibstat-h100-roce-12.txt", 12, 12, 12, 0, 3600, "roce", 400, 8, NULL},
        {"ibstat/ibstat-h100-roce-12.txt", 12, 12, 12, 0, 3600, "roce", 100, 4, NULL},
        {"ibstat/ibstatus-1up-1down.txt", 2, 2, 1, 1, 200, "infiniband", 200, 1, NULL},
        {"ibstat/ibv-devinfo-2ports.txt", 2, 2, 0, 2, 0, "roce", 0, 2, NULL},
        {"ibstat/show-gids-1port-footer.txt", 1, 1, 0, 0, 0, "roce", 0, 1, NULL},
        {"ibstat/show-gids-4ports-roce.txt", 2, 2, 0, 0, 0, "roce", 0, 2, NULL},
        {"ibstat/show-gids-pod.txt", 1, 1, 0, 0, 0, "roce", 0, 1, NULL},
        {"ibstat/superbench-ibnetdiscover.txt", 10, 10, 10, 0, 2000, "infiniband", 200, 10,
         "fabric-view"},
        {"rxe/ibv-devinfo-v.txt", 2, 2, 2, 0, 20, "roce", 10, 2, NULL},
        {"rxe/ibstat.txt", 2, 2, 2, 0, 20, "roce", 10, 2, NULL},
        {"rxe/rdma-link.txt", 2, 2, 2, 0, 0, "", 0, 2, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = field_topo(rows[i].file);
        const struct tally tally = tally_of(topo);

        cr_expect_eq(tally.nics, rows[i].nics, "%s: %d NICs", rows[i].file, tally.nics);
        cr_expect_eq(tally.ports, rows[i].ports, "%s: %d ports", rows[i].file, tally.ports);
        cr_expect_eq(tally.active, rows[i].active, "%s: %d active", rows[i].file, tally.active);
        cr_expect_eq(tally.down, rows[i].down, "%s: %d down", rows[i].file, tally.down);
        cr_expect_float_eq(tally.active_gbit_per_s, rows[i].gbit_per_s, 1e-6, "%s: %g Gb/s",
                           rows[i].file, tally.active_gbit_per_s);
        cr_expect_eq(of_fabric(topo, rows[i].fabric, rows[i].fabric_gbit_per_s),
                     rows[i].fabric_count, "%s: %s", rows[i].file, rows[i].fabric);
        cr_expect_eq(topo->sources, NW_SOURCE_RDMA);
        cr_expect(topo->gaps & NW_TOPO_PARTIAL);
        if (rows[i].finding == NULL)
            cr_expect_eq(topo->findings.count, 0, "%s: %s", rows[i].file,
                         topo->findings.count > 0 ? topo->findings.items[0].text : "");
        else
            cr_expect_not_null(finding_of(topo, rows[i].finding), "%s", rows[i].file);
        nw_topo_free(topo);
    }
}

Test(topo_read_ib, ports_have_their_facts)
{
    static const struct {
        const char *file, *node;
        nw_fact_id id;
        const char *text; /* NULL: a number; "": no such fact */
        double number;
    } rows[] = {
        {"dlperf-edr-1port.txt", "mlx5_0/1", NW_FACT_STATE, "active", 0},
        {"dlperf-edr-1port.txt", "mlx5_0/1", NW_FACT_PHYSICAL_STATE, "link up", 0},
        {"dlperf-edr-1port.txt", "mlx5_0/1", NW_FACT_LINK_LAYER, "infiniband", 0},
        {"dlperf-edr-1port.txt", "mlx5_0/1", NW_FACT_LID, NULL, 99},
        {"dlperf-edr-1port.txt", "mlx5_0/1", NW_FACT_PORT_GUID, "0002:c903:0000:0002", 0},
        {"dlperf-edr-1port.txt", "mlx5_0", NW_FACT_FIRMWARE, "12.28.2006", 0},
        {"dlperf-edr-1port.txt", "mlx5_0", NW_FACT_NODE_GUID, "0002:c903:0000:0002", 0},
        {"dlperf-edr-prompt.txt", "mlx5_0/1", NW_FACT_LID, NULL, 56},
        {"ibstat-h100-3down.txt", "mlx5_2/1", NW_FACT_STATE, "down", 0},
        {"ibstat-h100-3down.txt", "mlx5_2/1", NW_FACT_PHYSICAL_STATE, "disabled", 0},
        {"ibstat-h100-3down.txt", "mlx5_1/1", NW_FACT_LID, "", 0}, /* Ethernet has none */
        {"ibstatus-1up-1down.txt", "mlx5_0/1", NW_FACT_WIDTH, NULL, 4},
        {"ibstatus-1up-1down.txt", "mlx5_0/1", NW_FACT_LANE_RATE, NULL, 53.125e9},
        {"ibstatus-1up-1down.txt", "mlx5_0/1", NW_FACT_LID, NULL, 0x81},
        {"ibstatus-1up-1down.txt", "mlx5_1/1", NW_FACT_WIDTH, "", 0}, /* a placeholder */
        {"ibstatus-1up-1down.txt", "mlx5_1/1", NW_FACT_LID, "", 0},
        {"ibv-devinfo-2ports.txt", "mlx5_1/1", NW_FACT_MTU, NULL, 1024},
        {"ibv-devinfo-2ports.txt", "mlx5_1/1", NW_FACT_MTU_MAX, NULL, 4096},
        {"ibv-devinfo-2ports.txt", "mlx5_1", NW_FACT_BOARD, "MT_0000000834", 0},
        {"ibv-devinfo-2ports.txt", "mlx5_1", NW_FACT_SYSTEM_GUID, "0002:c903:0000:0001", 0},
        {"iblinkinfo-v100-mixed-width.txt", "node4 HCA-1/1", NW_FACT_LANE_RATE, NULL, 25.78125e9},
        {"iblinkinfo-v100-mixed-width.txt", "node4 HCA-1/1", NW_FACT_WIDTH, NULL, 4},
        {"iblinkinfo-v100-mixed-width.txt", "node4 HCA-1/1", NW_FACT_LID, NULL, 6},
        {"iblinkinfo-v100-mixed-width.txt", "node4 HCA-1/1", NW_FACT_PEER,
         "MF0;node5:MQM8700/U1 port 3", 0},
        {"superbench-ibnetdiscover.txt", "node91901003 ibp11s0f0/1", NW_FACT_LID, NULL, 1181},
        {"superbench-ibnetdiscover.txt", "node91901003 ibp11s0f0/1", NW_FACT_LANE_RATE, NULL,
         53.125e9},
        {"superbench-ibnetdiscover.txt", "node91902019 ibp11s0f0/1", NW_FACT_PEER,
         "MF0;sw-0919-03ib0:MQM8700/U1 port 9", 0},
        {"show-gids-1port-footer.txt", "mlx5_0/1", NW_FACT_NETDEV, "rdma0", 0},
        {"show-gids-4ports-roce.txt", "mlx5_1/1", NW_FACT_NETDEV, "eth02", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char file[80];
        struct nw_topo *topo;

        snprintf(file, sizeof file, "ibstat/%s", rows[i].file);
        topo = field_topo(file);
        if (rows[i].text == NULL)
            cr_expect_float_eq(number_of(topo, rows[i].node, rows[i].id), rows[i].number, 1, "%s",
                               nw_fact_rows[rows[i].id].key);
        else
            cr_expect_str_eq(text_of(topo, rows[i].node, rows[i].id), rows[i].text, "%s %s",
                             rows[i].file, nw_fact_rows[rows[i].id].key);
        if (rows[i].text != NULL && rows[i].text[0] == '\0')
            cr_expect(isnan(number_of(topo, rows[i].node, rows[i].id)));
        nw_topo_free(topo);
    }
}

static const struct nw_topo_gid *gid_of(const struct nw_topo *topo, const char *port, int index)
{
    for (size_t i = 0; i < topo->gid_count; i++)
        if (topo->gids[i].port == node_named(topo, port) && topo->gids[i].index == index)
            return &topo->gids[i];
    return NULL;
}

static void expect_gid(const struct nw_topo *topo, const char *port, int index, const char *type,
                       const char *ip, const char *interface)
{
    const struct nw_topo_gid *gid = gid_of(topo, port, index);

    cr_assert_not_null(gid, "%s %d", port, index);
    cr_expect_str_eq(gid->type, type, "%s %d: %s", port, index, gid->type);
    cr_expect_str_eq(gid->ip, ip, "%s %d: %s", port, index, gid->ip);
    cr_expect_str_eq(gid->interface, interface, "%s %d: %s", port, index, gid->interface);
}

Test(topo_read_ib, gid_tables_keep_type_address_and_interface)
{
    struct nw_topo *topo = field_topo("ibstat/show-gids-4ports-roce.txt");

    cr_expect_eq(topo->gid_count, 8);
    expect_gid(topo, "mlx5_0/1", 0, "roce v1", "", "eth05"); /* its IPv4 column is empty */
    expect_gid(topo, "mlx5_0/1", 1, "roce v2", "", "eth05");
    expect_gid(topo, "mlx5_1/1", 3, "roce v2", "192.0.2.2", "eth02");
    nw_topo_free(topo);

    topo = text_topo("hca_id:\tmlx5_4\n\ttransport:\tInfiniBand (0)\n\tphys_port_cnt:\t1\n"
                     "\t\tport:\t1\n\t\t\tstate:\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t4096 (5)\n"
                     "\t\t\tactive_mtu:\t4096 (5)\n\t\t\tlink_layer:\tEthernet\n"
                     "\t\t\tactive_width:\t4X (2)\n\t\t\tactive_speed:\t100.0 Gbps (128)\n"
                     "\t\t\tphys_state:\tLINK_UP (5)\n"
                     "\t\t\tGID[  0]:\t\tfe80::a288:c2ff:fe3b:506a, RoCE v1\n"
                     "\t\t\tGID[  1]:\t\tfe80::a288:c2ff:fe3b:506a, RoCE v2\n"
                     "\t\t\tGID[  3]:\t\t::ffff:10.200.1.10, RoCE v2\n"
                     "\t\t\tGID[  5]:\t\t2010:200:0:2:a288:c2ff:fe3b:506a, RoCE v2\n");
    cr_expect_eq(topo->gid_count, 4);
    expect_gid(topo, "mlx5_4/1", 1, "roce v2", "", "");
    expect_gid(topo, "mlx5_4/1", 3, "roce v2", "10.200.1.10", "");
    expect_gid(topo, "mlx5_4/1", 5, "roce v2", "2010:200:0:2:a288:c2ff:fe3b:506a", "");
    cr_expect_float_eq(topo->nodes[node_named(topo, "mlx5_4")].rate_bits_per_s, 400e9, 1);
    cr_expect_float_eq(number_of(topo, "mlx5_4/1", NW_FACT_LANE_RATE), 106.25e9, 1);
    nw_topo_free(topo);
}

Test(topo_read_ib, other_tools_and_one_paste_of_several)
{
    struct nw_topo *topo = text_topo(
        "$ rdma link\r\n"
        "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 13399 sm_lid 49151 lmc 0 state ACTIVE "
        "physical_state LINK_UP \r\n"
        "link mlx5_1/1 state DOWN physical_state DISABLED netdev ens1f1np1 \r\n"
        "$ rdma dev\r\n"
        "0: mlx5_0: node_type ca fw 28.39.2048 node_guid 0002:c903:0000:0001 sys_image_guid "
        "0002:c903:0000:0009 \r\n"
        "$ ibdev2netdev -v\r\n"
        "0000:17:00.0 mlx5_0 (MT4129 - MCX75310AAC-NEAT) ConnectX-7 fw 28.39.2048 port 1 (ACTIVE) "
        "==> ib0 (Up)\r\n"
        "mlx5_1 port 1 ==> ens1f1np1 (Down)\r\n"
        "$ ibstatus\r\n"
        "Infiniband device 'mlx5_0' port 1 status:\r\n"
        "\tstate:\t\t 4: ACTIVE\r\n\tphys state:\t 5: LinkUp\r\n\trate:\t\t 400 Gb/sec (4X NDR)\r\n"
        "\tlink_layer:\t InfiniBand\r\n");

    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 2);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_PORT), 2);
    cr_expect_str_eq(topo->nodes[node_named(topo, "mlx5_0")].pci, "0000:17:00.0");
    cr_expect_str_eq(topo->nodes[node_named(topo, "mlx5_0")].model, "Mellanox ConnectX-7");
    cr_expect_float_eq(topo->nodes[node_named(topo, "mlx5_0")].rate_bits_per_s, 400e9, 1);
    cr_expect_eq(topo->nodes[node_named(topo, "mlx5_1")].port_up, 0);
    cr_expect_str_eq(text_of(topo, "mlx5_0", NW_FACT_SYSTEM_GUID), "0002:c903:0000:0009");
    cr_expect_float_eq(number_of(topo, "mlx5_0/1", NW_FACT_LID), 13399, 1e-9);
    cr_expect_str_eq(text_of(topo, "mlx5_0/1", NW_FACT_NETDEV), "ib0");
    cr_expect_str_eq(text_of(topo, "mlx5_1/1", NW_FACT_PHYSICAL_STATE), "disabled");
    cr_expect_str_eq(text_of(topo, "mlx5_1/1", NW_FACT_NETDEV), "ens1f1np1");
    cr_expect_eq(topo->findings.count, 0);
    nw_topo_free(topo);
}

Test(topo_read_ib, rates_are_as_sold)
{
    static const struct {
        const char *rate; /* of ibstatus */
        double gbit_per_s, lane_gbit_per_s;
        int width;
    } rows[] = {
        {"10 Gb/sec (4X SDR)", 10, 2.5, 4},        {"40 Gb/sec (4X QDR)", 40, 10, 4},
        {"40 Gb/sec (4X FDR10)", 40, 10.3125, 4},  {"56 Gb/sec (4X FDR)", 56, 14.0625, 4},
        {"100 Gb/sec (4X EDR)", 100, 25.78125, 4}, {"100 Gb/sec (2X HDR)", 100, 53.125, 2},
        {"25 Gb/sec (1X EDR)", 25, 25.78125, 1},   {"400 Gb/sec (4X NDR)", 400, 106.25, 4},
        {"800 Gb/sec (4X XDR)", 800, 212.5, 4},    {"10 Gb/sec (4X)", 10, 2.5, 4},
        {"100 Gb/sec (4X)", 100, 25.78125, 4},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        struct nw_topo *topo;

        snprintf(text, sizeof text,
                 "Infiniband device 'mlx5_0' port 1 status:\n\tstate: 4: ACTIVE\n\trate: %s\n",
                 rows[i].rate);
        topo = text_topo(text);
        cr_expect_float_eq(topo->nodes[1].rate_bits_per_s, rows[i].gbit_per_s * 1e9, 1, "%s",
                           rows[i].rate);
        cr_expect_float_eq(number_of(topo, "mlx5_0/1", NW_FACT_LANE_RATE),
                           rows[i].lane_gbit_per_s * 1e9, 1, "%s", rows[i].rate);
        cr_expect_eq((int)number_of(topo, "mlx5_0/1", NW_FACT_WIDTH), rows[i].width);
        nw_topo_free(topo);
    }
}

Test(topo_read_ib, what_is_cut_or_odd_is_said)
{
    static const struct {
        const char *text, *finding;
    } rows[] = {
        {"CA 'mlx5_0'\n\tNumber of ports: 1\n", "file-cut"},
        {"CA 'mlx5_0'\n\tNumber of ports: 2\n\tPort 1:\n\t\tState: Active\n", "file-cut"},
        {"CA 'mlx5_0'\n\tNumber of ports: 1\n\tPort 1:\n", "file-cut"},
        {"CA 'mlx5_0'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n[...]\n", "file-cut"},
        {"mlx5_0\t1\t0\tfe80:0000:0000:0000:0002:c903:0000:0001\t\t\tv1\teth0\nn_gids_found=4\n",
         "file-cut"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = text_topo(rows[i].text);

        cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 1);
        cr_expect_not_null(finding_of(topo, rows[i].finding), "row %zu", i);
        nw_topo_free(topo);
    }
}

Test(topo_read_ib, a_slow_adapter_of_a_fabric_is_named_with_its_loss)
{
    struct nw_topo *topo = text_topo(
        "CA: a HCA-1:\n 0x1 6 1[  ] ==( 4X 53.125 Gbps Active/ LinkUp)==> 3 3[  ] \"S\" ( )\n"
        "CA: b HCA-1:\n 0x2 7 1[  ] ==( 4X 53.125 Gbps Active/ LinkUp)==> 3 4[  ] \"S\" ( )\n"
        "CA: c HCA-1:\n 0x3 8 1[  ] ==( 1X 25.78125 Gbps Active/ LinkUp)==> 3 5[  ] \"S\" ( )\n"
        "CA: d HCA-1:\n 0x4 0 1[  ] ==( Down/ Polling)==> [  ] \"\" ( )\n");
    const struct nw_finding *finding = finding_of(topo, "link-slower-than-siblings");

    cr_assert_not_null(finding);
    cr_expect_float_eq(finding->lost_bytes_per_s, (200e9 - 25e9) / 8, 1);
    cr_expect_str_eq(text_of(topo, "d HCA-1/1", NW_FACT_STATE), "down");
    cr_expect_eq(topo->nodes[node_named(topo, "d HCA-1")].port_up, 0);
    nw_topo_free(topo);
}

Test(topo_read_ib, lines_that_name_their_own_device)
{
    struct nw_topo *topo = text_topo(
        "0x0002c90300000001 \"       node1 HCA-1\"   4  1[  ] ==( 4X 53.125 Gbps Active/ "
        "LinkUp)==> "
        "0x0002c90300000005   3  1[  ] \"MF0;sw1\" ( )\n"
        "0x0002c90300000005 \"           MF0;sw1\"   3  1[  ] ==( 4X 53.125 Gbps Active/ "
        "LinkUp)==> "
        "0x0002c90300000001   4  1[  ] \"node1 HCA-1\" ( )\n"
        "0x0002c90300000005 \"           MF0;sw1\"   3  2[  ] ==(                Down/ Polling)==> "
        "  [  ] \"\" ( )\n");

    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 1);
    cr_expect_float_eq(topo->nodes[node_named(topo, "node1 HCA-1")].rate_bits_per_s, 200e9, 1);
    cr_expect_float_eq(number_of(topo, "node1 HCA-1/1", NW_FACT_LID), 4, 1e-9);
    cr_expect_not_null(strstr(finding_of(topo, "fabric-view")->text, "adapters: 1, switches: 1"));
    nw_topo_free(topo);

    topo =
        text_topo("    device                 node GUID\n    ------              ----------------\n"
                  "    mlx5_0              0002c90300000001\n    rocep1s0            "
                  "0002c90300000002\n");
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 2);
    cr_expect_str_eq(text_of(topo, "rocep1s0", NW_FACT_NODE_GUID), "0002:c903:0000:0002");
    nw_topo_free(topo);
}

Test(topo_read_ib, a_fabric_of_switches_alone)
{
    struct nw_topo *topo = text_topo(
        "Switch  41 \"S-0011223344550001\"      # \"switch0001\" base port 0 lid 1433 lmc 0\n"
        "Switch  41 \"S-0011223344550002\"      # \"switch0002\" base port 0 lid 1434 lmc 0\n");
    const struct nw_finding *finding = finding_of(topo, "fabric-view");

    cr_assert_not_null(finding);
    cr_expect_not_null(strstr(finding->text, "switches: 2"), "%s", finding->text);
    cr_expect_eq(topo->node_count, 1);
    nw_topo_free(topo);
}

Test(topo_read_ib, no_cut_of_a_file_crashes)
{
    static const char *const files[] = {
        "ibstat/ibstat-a100-8hdr-ibpanic.txt",    "ibstat/ibstatus-1up-1down.txt",
        "ibstat/ibv-devinfo-2ports.txt",          "ibstat/show-gids-4ports-roce.txt",
        "ibstat/iblinkinfo-v100-mixed-width.txt", "ibstat/superbench-ibnetdiscover.txt"};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        try_all_cuts(files[i], 13);
}
