/* lspci's text: the tree from bus numbers, links, ACS, names and ids in every form it prints. */
#include "topo_field.h"

static const struct nw_topo_node *at(const struct nw_topo *topo, const char *pci)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].pci, pci) == 0)
            return &topo->nodes[i];
    cr_assert_fail("no device at %s", pci);
    return NULL;
}

static double fact_at(const struct nw_topo *topo, const char *pci, nw_fact_id id)
{
    return nw_topo_number(topo, (int)(at(topo, pci) - topo->nodes), id);
}

static const char *parent_at(const struct nw_topo *topo, const char *pci)
{
    return topo->nodes[at(topo, pci)->parent].name;
}

Test(topo_read_lspci, a_whole_hgx_host)
{
    struct nw_topo *topo = field_topo("logs/lspci-vvv-hgx-h100-acs-on.txt");
    int switches = 0, with_acs = 0, source_valid = 0;

    cr_expect_eq(topo->sources, NW_SOURCE_LSPCI);
    cr_expect_eq(topo->gaps, NW_TOPO_PARTIAL | NW_TOPO_NO_NVLINK);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 5);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 9);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_BRIDGE), 14 + 3); /* and three host bridges */
    for (size_t i = 0; i < topo->node_count; i++) {
        const double acs = nw_topo_number(topo, (int)i, NW_FACT_ACS);

        switches += strcmp(topo->nodes[i].model, "NVIDIA NVSwitch") == 0;
        with_acs += !isnan(acs);
        source_valid += acs == 1;
        if (topo->nodes[i].kind == NW_NODE_GPU) {
            cr_expect_str_eq(topo->nodes[i].model, "NVIDIA H100 SXM5 80GB");
            cr_expect_eq(topo->nodes[i].link_lanes, 16);
            cr_expect_eq(nw_topo_number(topo, (int)i, NW_FACT_LINK_GENERATION), 5);
        }
    }
    cr_expect_eq(switches, 4);
    cr_expect_eq(with_acs, 14); /* every bridge of the text: functions of cards do not count */
    cr_expect_eq(source_valid, 2);
    cr_expect_eq(fact_at(topo, "0000:00:0c.0", NW_FACT_ACS), 1);
    cr_expect_str_eq(parent_at(topo, "0000:19:00.0"), "0000:17:01.0");
    cr_expect_str_eq(parent_at(topo, "0000:17:01.0"), "0000:15:01.0");
    cr_expect_str_eq(parent_at(topo, "0000:15:01.0"), "pci0000:15");
    cr_expect_str_eq(parent_at(topo, "0000:37:01.0"), "pci0000:37");
    cr_expect_eq(at(topo, "0000:9b:00.0")->numa, 1);
    /* An NVSwitch manages itself over two lanes: all that it can. */
    cr_expect_eq(at(topo, "0000:83:00.0")->link_lanes, 2);
    cr_expect_eq(at(topo, "0000:83:00.0")->link_max_lanes, 2);
    cr_expect_str_eq(
        nw_topo_text(topo, (int)(at(topo, "0000:83:00.0") - topo->nodes), NW_FACT_PCI_DRIVER),
        "nvidia-nvswitch");
    cr_expect_not_null(
        finding_of(topo, "file-cut")); /* bridges of half the devices are not there */
    nw_topo_free(topo);
}

/* Devices whose bridges were not saved hang below their NUMA node: what joins them is not known. */
Test(topo_read_lspci, devices_without_their_bridges_have_no_class)
{
    static const struct {
        const char *a, *b;
        nw_class class_id;
    } rows[] = {
        {"0000:5d:00.0", "0000:5e:00.0", NW_CLASS_UNKNOWN}, /* both without, one NUMA node */
        {"0000:5d:00.0", "0000:19:00.0", NW_CLASS_UNKNOWN}, /* one of them */
        {"0000:19:00.0", "0000:3b:00.0", NW_CLASS_NODE},    /* none */
        {"0000:19:00.0", "0000:1a:00.0", NW_CLASS_PIX},
        {"0000:5d:00.0", "0000:9b:00.0", NW_CLASS_SYS}, /* the NUMA node was printed */
    };
    struct nw_topo *topo = field_topo("logs/lspci-vvv-hgx-h100-acs-on.txt");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(nw_topo_class_of_tree(topo, (int)(at(topo, rows[i].a) - topo->nodes),
                                           (int)(at(topo, rows[i].b) - topo->nodes)),
                     rows[i].class_id, "%s %s", rows[i].a, rows[i].b);
    nw_topo_free(topo);
}

Test(topo_read_lspci, single_devices)
{
    struct nw_topo *topo = field_topo("logs/lspci-rtx6000ada-idle-gen1.txt");
    const struct nw_topo_node *gpu = at(topo, "0000:01:00.0");

    cr_expect_eq(gpu->kind, NW_NODE_GPU);
    cr_expect_str_eq(gpu->model, "NVIDIA AD102GL [RTX 6000 Ada Generation]");
    cr_expect_eq(gpu->link_lanes, 16);
    cr_expect_eq(gpu->link_max_lanes, 16);
    cr_expect_eq(fact_at(topo, "0000:01:00.0", NW_FACT_LINK_GENERATION), 1); /* idle: a fact only */
    cr_expect_eq(fact_at(topo, "0000:01:00.0", NW_FACT_DEVICE_MAX_GENERATION), 4);
    cr_expect_eq(topo->findings.count, 0);
    nw_topo_free(topo);

    topo = field_topo("logs/lspci-nvme-or-nic-x1.txt");
    cr_expect_eq(at(topo, "0000:71:00.0")->link_lanes, 1);
    cr_expect_eq(at(topo, "0000:71:00.0")->link_max_lanes, 2);
    cr_expect_float_eq(at(topo, "0000:71:00.0")->link_bytes_per_s, 5e8, 1);
    cr_expect_eq(at(topo, "0000:71:00.0")->pci_class, 0x0104);
    nw_topo_free(topo);
}

Test(topo_read_lspci, every_form_of_the_first_line)
{
    static const struct {
        const char *line, *pci, *model;
        nw_node_kind kind;
        unsigned int vendor, device, class_id;
    } rows[] = {
        {"17:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev "
         "a1)",
         "0000:17:00.0", "NVIDIA GH100 [H100 SXM5 80GB]", NW_NODE_GPU, 0x10de, 0x2330, 0x0302},
        {"0001:17:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)", "0001:17:00.0",
         "NVIDIA H100 SXM5 80GB", NW_NODE_GPU, 0x10de, 0x2330, 0x0302},
        {"17:00.0 0302: 10de:2330 (rev a1)", "0000:17:00.0", "NVIDIA H100 SXM5 80GB", NW_NODE_GPU,
         0x10de, 0x2330, 0x0302},
        {"c1:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Aqua "
         "Vanjaram [Instinct MI300X] [1002:74a1]",
         "0000:c1:00.0", "AMD Aqua Vanjaram [Instinct MI300X]", NW_NODE_GPU, 0x1002, 0x74a1,
         0x1200},
        {"1a:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]",
         "0000:1a:00.0", "Mellanox MT2910 Family [ConnectX-7]", NW_NODE_NIC, 0x15b3, 0, 0x0207},
        {"03:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family (rev "
         "52) (prog-if 00 [VGA controller])",
         "0000:03:00.0", "ASPEED ASPEED Graphics Family", NW_NODE_PCI, 0x1a03, 0, 0x0300},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = text_topo(rows[i].line);
        const struct nw_topo_node *node = at(topo, rows[i].pci);

        cr_expect_eq(node->kind, rows[i].kind, "%s", rows[i].line);
        cr_expect_str_eq(node->model, rows[i].model, "%s", node->model);
        cr_expect_eq(node->pci_vendor, rows[i].vendor, "%s", rows[i].line);
        cr_expect_eq(node->pci_device, rows[i].device, "%s", rows[i].line);
        cr_expect_eq(node->pci_class, rows[i].class_id, "%s", rows[i].line);
        nw_topo_free(topo);
    }
}

Test(topo_read_lspci, acs_is_the_register)
{
    static const struct {
        const char *bits;
        int value;
    } rows[] = {
        {"SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", 0},
        {"SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-", 0x1d},
        {"SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+", 0x7f},
        {"", -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1200];
        struct nw_topo *topo;

        snprintf(text, sizeof text,
                 "16:01.0 PCI bridge: Intel Corporation Device 352a (rev 04)\n"
                 "\tBus: primary=16, secondary=17, subordinate=17, sec-latency=0\n"
                 "\tIOMMU group: 7\n\tNUMA node: 1\n"
                 "\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00\n"
                 "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
                 "\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)\n"
                 "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+\n\t\tACSCtl:\t%s\n"
                 "17:00.0 3D controller: NVIDIA Corporation Device 2330\n"
                 "\t\tLnkCap:\tPort #0, Speed 64GT/s, Width x16\n"
                 "\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)\n",
                 rows[i].bits);
        topo = text_topo(text);
        if (rows[i].value < 0)
            cr_expect(isnan(fact_at(topo, "0000:16:01.0", NW_FACT_ACS)));
        else
            cr_expect_eq((int)fact_at(topo, "0000:16:01.0", NW_FACT_ACS), rows[i].value);
        cr_expect_eq(fact_at(topo, "0000:16:01.0", NW_FACT_IOMMU_GROUP), 7);
        cr_expect_eq(fact_at(topo, "0000:17:00.0", NW_FACT_LINK_GENERATION), 4);
        cr_expect_eq(fact_at(topo, "0000:17:00.0", NW_FACT_LINK_MAX_GENERATION), 5); /* the slot */
        cr_expect_eq(fact_at(topo, "0000:17:00.0", NW_FACT_DEVICE_MAX_GENERATION), 6);
        cr_expect_eq(at(topo, "0000:17:00.0")->link_lanes, 8);
        cr_expect_eq(at(topo, "0000:17:00.0")->link_max_lanes, 16);
        cr_expect_eq(at(topo, "0000:17:00.0")->numa, 1);
        nw_topo_free(topo);
    }
}

Test(topo_read_lspci, without_root_links_are_unknown_and_that_is_said)
{
    struct nw_topo *topo = text_topo("17:00.0 3D controller: NVIDIA Corporation Device 2330\n"
                                     "\tCapabilities: <access denied>\n"
                                     "\tKernel driver in use: nvidia\n");

    cr_expect_not_null(finding_of(topo, "not-checked"));
    cr_expect_eq(at(topo, "0000:17:00.0")->link_lanes, 0);
    cr_expect(isnan(fact_at(topo, "0000:17:00.0", NW_FACT_LINK_GENERATION)));
    nw_topo_free(topo);
}

/* Bus numbers that no machine has: bridges that hold themselves, or each other. */
Test(topo_read_lspci, absurd_bridges_make_no_cycle)
{
    struct nw_topo *topo =
        text_topo("02:00.0 PCI bridge: A\n\tBus: primary=02, secondary=02, subordinate=ff\n"
                  "03:00.0 PCI bridge: B\n\tBus: primary=03, secondary=01, subordinate=ff\n"
                  "04:00.0 PCI bridge: C\n\tBus: primary=04, secondary=05, subordinate=03\n"
                  "05:00.0 3D controller: NVIDIA Corporation Device 2330\n"
                  "06:00.0 3D controller [-123]: NVIDIA Corporation x [-001:-002]\n"
                  "\tNUMA node: -2\n\tIOMMU group: -5\n\tBus: primary=00, secondary=-1, "
                  "subordinate=-1\n"
                  "07:00.0 3D controller: NVIDIA Corporation Device -123\n"
                  "05:00.0 3D controller: NVIDIA Corporation Device 2330\n");

    for (size_t i = 1; i < topo->node_count; i++)
        cr_expect_lt(topo->nodes[i].parent, (int)i);
    nw_topo_free(topo);
}

Test(topo_read_lspci, no_cut_of_a_file_crashes)
{
    try_all_cuts("logs/lspci-rtx6000ada-idle-gen1.txt", 7);
    try_all_cuts("logs/lspci-nvme-or-nic-x1.txt", 7);
    try_all_cuts("logs/lspci-vvv-hgx-h100-acs-on.txt", 1999);
}
