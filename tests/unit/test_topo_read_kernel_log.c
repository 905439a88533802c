/* The kernel's log: what its lines come to, in every dress a line wears. */
#include "topo/read.h"
#include "topo/read_kernel_log.h"
#include "topo/system.h"
#include "topo_field.h"

static int at(const struct nw_topo *topo, const char *pci)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].pci, pci) == 0)
            return (int)i;
    return -1;
}

Test(topo_read_kernel_log, field_files)
{
    struct nw_topo *topo = field_topo("logs/dmesg-gpu-limited-gen4-switch.txt");

    cr_expect_eq(topo->sources, NW_SOURCE_LOG);
    cr_assert_geq(at(topo, "0000:04:00.0"), 0);
    cr_assert_geq(at(topo, "0000:8b:00.0"), 0);
    cr_expect_str_eq(nw_topo_text(topo, at(topo, "0000:8b:00.0"), NW_FACT_LIMITED_BY),
                     "16.0 GT/s PCIe x16 link at 0000:87:00.0");
    cr_expect_float_eq(nw_topo_number(topo, at(topo, "0000:04:00.0"), NW_FACT_LIMITED_TO),
                       252.048e9 / 8, 1);
    cr_expect_float_eq(nw_topo_number(topo, at(topo, "0000:04:00.0"), NW_FACT_CAPABLE),
                       504.112e9 / 8, 1);
    cr_expect_eq(topo->node_count, 3);
    nw_topo_free(topo);

    topo = field_topo("logs/dmesg-mlx5-pcie-x8-limited.txt");
    cr_assert_eq(topo->node_count, 2);
    cr_expect_eq(topo->nodes[1].kind, NW_NODE_NIC);
    cr_expect_str_eq(topo->nodes[1].pci, "0001:43:00.0");
    cr_expect_str_eq(nw_topo_text(topo, 1, NW_FACT_LIMITED_BY),
                     "8.0 GT/s PCIe x8 link at 0001:42:01.0");
    cr_expect_float_eq(nw_topo_number(topo, 1, NW_FACT_LIMITED_TO), 63.008e9 / 8, 1);
    cr_expect(isnan(nw_topo_number(topo, 1, NW_FACT_FLAPS)));
    nw_topo_free(topo);

    topo = field_topo("logs/syslog-ib-0flap.txt");
    cr_expect_eq(topo->node_count, 1);
    cr_expect_eq(topo->fact_count, 0);
    cr_expect_not_null(finding_of(topo, "log-says-nothing"));
    nw_topo_free(topo);
}

Test(topo_read_kernel_log, gpu_errors_count_by_number_and_gpu)
{
    struct nw_topo *topo = text_topo(
        "[    1.0] pci 0000:17:00.0: [10de:2330] type 00 class 0x030200 PCIe Endpoint\n"
        "[   10.1] NVRM: GPU at PCI:0000:17:00: GPU-11111111-2222-3333-4444-555555555555\n"
        "May  1 12:00:00 node1 kernel: NVRM: Xid (PCI:0000:17:00): 63, pid='<unknown>', row remap\n"
        "2024-05-01T12:00:00.1+00:00 node1 kernel: [11.0] NVRM: Xid (PCI:0000:17:00): 79, GPU has "
        "fallen off the bus.\n"
        "[Mon Aug 17 00:00:24 2023] NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen\n"
        "6,901,100,-;NVRM: Xid (PCI:00000000:65:00 GPU-I:05): 94, pid=7194, Contained\n"
        "kern  :warn  : 2025-01-21T02:21:33,498559+00:00 NVRM: Xid (PCI:0000:38:00): 13, "
        "pid='<u>'\n"
        "[   12.0] NVRM: Xid (0000:66:00): 31, Ch 00000010\n"
        "[   12.0] NVRM: Xid (PCI:0000:66:00) 31, Ch 00000010\n"
        "[   13.0] NVRM: GPU 0000:67:00.0: GPU has fallen off the bus.\n"
        "[   13.0] NVRM: Xid (PCI:0000:zz:00): 31\n[   13.0] NVRM: Xid (PCI:0000:17:00): x\n");
    static const struct {
        const char *pci, *xids;
    } rows[] = {{"0000:17:00.0", "63, 79 x2"},
                {"0000:65:00.0", "94"},
                {"0000:38:00.0", "13"},
                {"0000:66:00.0", "31 x2"},
                {"0000:67:00.0", "79"}};

    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int gpu = at(topo, rows[i].pci);

        cr_assert_geq(gpu, 0, "%s", rows[i].pci);
        cr_expect_str_eq(nw_topo_text(topo, gpu, NW_FACT_XID), rows[i].xids, "%s", rows[i].pci);
    }
    cr_expect_str_eq(nw_topo_text(topo, at(topo, "0000:17:00.0"), NW_FACT_UUID),
                     "GPU-11111111-2222-3333-4444-555555555555");
    cr_expect_eq(topo->nodes[at(topo, "0000:17:00.0")].pci_device, 0x2330);
    nw_topo_free(topo);
}

Test(topo_read_kernel_log, pcie_errors_are_counted_once)
{
    struct nw_topo *topo = text_topo(
        "[1.0] pcieport 0000:16:01.0: AER: Multiple Corrected error received: 0000:17:00.0\n"
        "[1.0] mlx5_core 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n"
        "[2.0] pcieport 0000:16:01.0: AER: Corrected error received: 0000:17:00.0\n"
        "[2.0] mlx5_core 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n"
        "[3.0] pcieport 0000:16:01.0: AER: Uncorrectable (Fatal) error message received from "
        "0000:17:00.0\n"
        "[3.0] mlx5_core 0000:17:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal)\n"
        "[4.0] pcieport 0000:16:02.0: AER: Corrected error received: id=00e5\n");

    cr_assert_geq(at(topo, "0000:17:00.0"), 0);
    cr_expect_eq(nw_topo_number(topo, at(topo, "0000:17:00.0"), NW_FACT_AER), 3);
    cr_expect_eq(nw_topo_number(topo, at(topo, "0000:17:00.0"), NW_FACT_AER_UNCORRECTED), 1);
    cr_expect_eq(nw_topo_number(topo, at(topo, "0000:16:02.0"), NW_FACT_AER), 1);
    cr_expect_eq(at(topo, "0000:16:01.0"), -1); /* only told of another's */
    nw_topo_free(topo);
}

Test(topo_read_kernel_log, links_that_went_down)
{
    static const struct {
        const char *text, *name; /* NULL: nothing is counted */
        int count;
    } rows[] = {
        {"[1.0] mlx5_core 0000:98:00.0 ens3np0: Link down\n[2.0] mlx5_core 0000:98:00.0 ens3np0: "
         "Link up\n[3.0] mlx5_core 0000:98:00.0 ens3np0: Link down\n",
         "ens3np0", 2},
        {"Aug 17 00:00:24 vm systemd-networkd[614]: ib0: Lost carrier\nAug 17 00:00:25 vm "
         "systemd-networkd[614]: ib0: Gained carrier\n",
         "ib0", 1},
        {"Aug 17 00:00:24 vm NetworkManager[9]: <info>  [1] device (ib2): carrier: link "
         "disconnected\n",
         "ib2", 1},
        {"Aug 17 06:18:01 vm systemd-networkd[5398]: ib6: lost carrier\nAug 17 06:18:06 vm "
         "systemd-networkd[5398]: ib6: lost carrier\nAug 17 06:18:06 vm systemd-networkd[5398]: "
         "ib6: "
         "Gained carrier\n",
         "ib6", 2},
        /* one event, told by two */
        {"Aug 17 00:00:24 vm kernel: [1.0] mlx5_core 0000:98:00.0 ens3np0: Link down\n"
         "Aug 17 00:00:24 vm systemd-networkd[614]: ens3np0: Lost carrier\n",
         "ens3np0", 1},
        {"[1.0] bnxt_en 0000:31:00.0 ens1f0np0: NIC Link is Down\n", "ens1f0np0", 1},
        {"[1.0] pcieport 0000:16:01.0: pciehp: Slot(3): Link Down\n", NULL, 0},
        {"[1.0] ata3: SATA link down (SStatus 0 SControl 300)\n", NULL, 0},
        {"[1.0] IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready\n", NULL, 0},
        {"Aug 17 00:00:24 vm systemd-networkd[614]: docker0: Lost carrier\n", NULL, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = text_topo(rows[i].text);

        if (rows[i].name == NULL) {
            cr_expect_eq(topo->node_count, 1, "%s", rows[i].text);
        } else {
            cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 1, "%s", rows[i].text);
            cr_expect_eq((int)number_of(topo, rows[i].name, NW_FACT_FLAPS), rows[i].count, "%s",
                         rows[i].text);
        }
        nw_topo_free(topo);
    }
}

Test(topo_read_kernel_log, a_live_machine_gets_the_facts_of_its_devices)
{
    static const char log[] =
        "[1.0] NVRM: Xid (PCI:0000:17:00): 48, pid=1\n"
        "[1.0] NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off the bus.\n"
        "[2.0] mlx5_core 0000:18:00.0 ens3np0: Link down\n"
        "[2.0] mlx5_core 0000:77:00.0: 63.008 Gb/s available PCIe bandwidth, limited by x\n";
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int machine, gpu, nic;
    size_t nodes;

    cr_assert_not_null(topo);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &machine), NW_OK);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_GPU, 0, &gpu), NW_OK);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_NIC, 0, &nic), NW_OK);
    strcpy(topo->nodes[gpu].pci, "0000:17:00.0");
    strcpy(topo->nodes[nic].pci, "0000:18:00.0");
    nodes = topo->node_count;
    cr_assert_eq(nw_kernel_log_apply(log, sizeof log - 1, "log", "kernel log", topo), NW_OK);
    cr_expect_eq(topo->node_count, nodes); /* none is invented */
    cr_expect_str_eq(nw_topo_text(topo, gpu, NW_FACT_XID), "48");
    cr_expect_eq(nw_topo_number(topo, nic, NW_FACT_FLAPS), 1);
    cr_expect_str_eq(nw_topo_text(topo, machine, NW_FACT_XID), "0000:99:00.0: 79");
    nw_topo_free(topo);
}

Test(topo_read_kernel_log, logs_that_say_nothing_are_read)
{
    static const char *const rows[] = {
        "kern  :err   : 2025-02-10T16:28:06,502716+00:00 nvidia-peermem invalid context\n",
        "[    0.000000] Linux version 6.8.0\n",
        "Nov 30 10:00:00 node1 sshd[1]: Accepted publickey\n",
        "2024-05-01T12:00:00.1+00:00 node1 systemd[1]: Started x\n",
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = text_topo(rows[i]);

        cr_expect_not_null(finding_of(topo, "log-says-nothing"), "%s", rows[i]);
        nw_topo_free(topo);
    }
}

/* Readable or not, depending on rights: either way there is something to say or to know. */
Test(topo_read_kernel_log, live)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int machine;

    cr_assert_not_null(topo);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &machine), NW_OK);
    cr_assert_eq(nw_kernel_log_live(topo), NW_OK);
    cr_expect(((topo->sources & NW_SOURCE_LOG) != 0) != (finding_of(topo, "not-checked") != NULL));
    nw_topo_free(topo);
}

Test(topo_read_kernel_log, no_cut_of_a_file_crashes)
{
    try_all_cuts("logs/dmesg-gpu-limited-gen4-switch.txt", 1);
    try_all_cuts("logs/dmesg-mlx5-pcie-x8-limited.txt", 1);
    try_all_cuts("logs/syslog-ib-0flap.txt", 1);
}
