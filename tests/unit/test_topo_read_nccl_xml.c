/* NCCL's topology files: the right reading of each file of tests/field/ncclxml, and what damaged or
 * hostile files get. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/io.h"
#include "topo/topo.h"

#define FIELD NW_SOURCE_DIR "/tests/field/ncclxml/"

struct reading {
    const char *file;
    const char *refused; /* words of the error; NULL: it is read */
    int gpus, nics, numas, bridges;
    const char *first_gpu; /* its PCI address */
    int nvlinks;           /* of each GPU; -1: not said */
    int to_switch;         /* 1, 0, -1 */
    int nv_pairs, xgmi_pairs;
    double pair_gb_per_s; /* of the first link */
    int gpu_generation, gpu_lanes;
    double nic_gbit_sum; /* over all NICs */
    const char *nic;     /* one of them */
    const char *finding; /* a code that must be there; NULL */
    bool nvlink_unknown;
};

static const struct reading readings[] = {
    {"aws-g5-48xl-topo.xml", NULL, 8, 1, 2, 0, "0000:00:16.0", -1, -1, 0, 0, 0, 0, 0, 0,
     "0000:00:15.0", "class-by-address", true},
    {"aws-p4de-topo.xml", NULL, 8, 4, 2, 4, "0000:10:1c.0", -1, -1, 0, 0, 0, 3, 16, 0,
     "0000:10:1b.0", NULL, true},
    {"azure-nc48v4-topo.xml", NULL, 2, 1, 2, 0, "0001:00:00.0", 12, 0, 1, 0, 300, 0, 0, 100, "eth0",
     NULL, false},
    {.file = "azure-ncv4-graph.xml", .refused = "a graph, not a topology"},
    {"azure-ncv4-topo.xml", NULL, 4, 1, 4, 0, "0001:00:00.0", 12, 0, 0, 0, 0, 0, 0, 100, "eth0",
     "nvlink-to-itself", true},
    {"azure-ndv5-topo.xml", NULL, 8, 8, 2, 8, "0001:00:00.0", -1, -1, 0, 0, 0, 5, 16, 0,
     "0108:00:00.0", NULL, true},
    {.file = "dtk26-hygon-topo-mapping.xml", .refused = "Hygon"},
    {"gvisor-b200-vm.xml", NULL, 8, 13, 2, 3, "0002:00:01.0", 18, 1, 28, 0, 900, 5, 16, 3800,
     "mlx5_12", NULL, false},
    {"nebius-h100-topo.xml", NULL, 8, 8, 2, 8, "0000:8d:00.0", -1, -1, 0, 0, 0, 5, 16, 3200,
     "mlx5_4", NULL, true},
    {"oci-b4-flattened.xml", NULL, 8, 8, 4, 4, "0000:0f:00.0", -1, -1, 0, 0, 0, 4, 16, 0,
     "0000:0c:00.0", NULL, true},
    {"oci-h100-topology.xml", NULL, 8, 16, 2, 24, "0000:0f:00.0", 18, 1, 28, 0, 450, 5, 16, 2880,
     "mlx5_17", "odd-rate", false},
    {"panlichen-8gpu-56g.xml", NULL, 8, 1, 2, 2, "0000:0f:00.0", -1, -1, 0, 0, 0, 4, 16, 56,
     "mlx5_0", NULL, false},
    {"rccl-topo_3p_pcie.xml", NULL, 3, 1, 2, 3, "0000:23:00.0", -1, -1, 0, 0, 0, 5, 16, 200,
     "mlx5_0", NULL, false},
    {"rccl-topo_4p3l_2h.xml", NULL, 8, 1, 4, 8, "0000:43:00.0", -1, -1, 0, 12, 46, 4, 16, 200,
     "mlx5_0", NULL, false},
    {"rccl-topo_8p_90a.xml", NULL, 8, 1, 1, 1, "0000:c1:00.0", -1, -1, 0, 12, 50, 4, 16, 1, "eth0",
     NULL, false},
    {"rccl-topo_8p_940.xml", NULL, 8, 8, 2, 24, "0000:0c:00.0", -1, -1, 0, 28, 64, 5, 16, 3200,
     "mlx5_0", NULL, false},
    {"rccl-topo_8p_rome_n2.xml", NULL, 8, 1, 4, 8, "0000:03:00.0", -1, -1, 0, 8, 0, 4, 16, 200,
     "mlx5_0", NULL, false},
    {"simccl-8a100-4cx6.xml", NULL, 8, 5, 2, 20, "0000:13:00.0", 12, 1, 28, 0, 300, 4, 16, 1000,
     "mlx5_bond_4", NULL, false},
    {"stone-4x4090-61nets.xml", NULL, 4, 1, 4, 0, "0000:01:00.0", -1, -1, 0, 0, 0, 4, 16, 1,
     "enp34s0f0", "virtual-interfaces", false},
    {"yccl-a6000-4gpu.xml", NULL, 4, 2, 2, 0, "0000:3b:00.0", -1, -1, 0, 0, 0, 3, 16, 2, "eno1np0",
     "virtual-interfaces", false},
};
enum { READINGS = sizeof readings / sizeof *readings };

static const struct nw_topo_node *by_name(const struct nw_topo *topo, const char *name)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].name, name) == 0)
            return &topo->nodes[i];
    return NULL;
}

static bool has_finding(const struct nw_topo *topo, const char *code)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, code) == 0)
            return true;
    return false;
}

static int links_of(const struct nw_topo *topo, nw_link_kind kind)
{
    int count = 0;

    for (size_t i = 0; i < topo->link_count; i++)
        count += topo->links[i].kind == kind;
    return count;
}

static void check_gpus(const struct nw_topo *topo, const struct reading *want)
{
    for (int i = 0; i < (int)topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];
        const double count = nw_topo_number(topo, i, NW_FACT_NVLINK_COUNT);
        const double to_switch = nw_topo_number(topo, i, NW_FACT_NVLINK_SWITCH);

        if (node->kind != NW_NODE_GPU)
            continue;
        cr_expect(want->nvlinks < 0 ? isnan(count) : count == want->nvlinks, "%s %s: %g NVLinks",
                  want->file, node->name, count);
        cr_expect(want->to_switch < 0 ? isnan(to_switch) : to_switch == want->to_switch, "%s %s",
                  want->file, node->name);
        cr_expect_eq(node->link_max_lanes, want->gpu_lanes, "%s", want->file);
        cr_expect(want->gpu_generation == 0
                      ? isnan(nw_topo_number(topo, i, NW_FACT_LINK_MAX_GENERATION))
                      : nw_topo_number(topo, i, NW_FACT_LINK_MAX_GENERATION) ==
                            want->gpu_generation,
                  "%s", want->file);
    }
}

static void check(const struct nw_topo *topo, const struct reading *want)
{
    double rate = 0;

    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), want->gpus, "%s", want->file);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), want->nics, "%s", want->file);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_BRIDGE), want->bridges, "%s", want->file);
    cr_expect_eq(topo->numa_count, want->numas, "%s", want->file);
    cr_expect_str_eq(nw_topo_nth(topo, NW_NODE_GPU, 0)->pci, want->first_gpu, "%s", want->file);
    cr_expect_eq(links_of(topo, NW_LINK_NVLINK), want->nv_pairs, "%s", want->file);
    cr_expect_eq(links_of(topo, NW_LINK_XGMI), want->xgmi_pairs, "%s", want->file);
    if (topo->link_count > 0)
        cr_expect_eq(topo->links[0].bytes_per_s, want->pair_gb_per_s * 1e9, "%s", want->file);
    for (size_t i = 0; i < topo->node_count; i++)
        rate += topo->nodes[i].rate_bits_per_s;
    cr_expect_float_eq(rate / 1e9, want->nic_gbit_sum, 1e-6, "%s: %g", want->file, rate / 1e9);
    cr_expect_not_null(by_name(topo, want->nic), "%s: %s", want->file, want->nic);
    if (want->finding != NULL)
        cr_expect(has_finding(topo, want->finding), "%s: %s", want->file, want->finding);
    cr_expect_eq((topo->gaps & NW_TOPO_NO_NVLINK) != 0, want->nvlink_unknown, "%s", want->file);
    cr_expect((topo->gaps & NW_TOPO_PARTIAL) != 0 && topo->sources == NW_SOURCE_NCCL_XML);
    check_gpus(topo, want);
}

Test(nccl_xml, reads_each_field_file_right)
{
    for (int i = 0; i < READINGS; i++) {
        char path[512];
        struct nw_topo *topo = NULL;
        const nw_rc rc = (snprintf(path, sizeof path, "%s%s", FIELD, readings[i].file),
                          nw_topo_read_file(path, &topo));

        if (readings[i].refused != NULL) {
            cr_expect_eq(rc, NW_EUSAGE, "%s", readings[i].file);
            cr_expect(rc != NW_OK && strstr(nw_last_error()->text, readings[i].refused) != NULL &&
                          strstr(nw_last_error()->text, readings[i].file) != NULL,
                      "%s: %s", readings[i].file, rc != NW_OK ? nw_last_error()->text : "read");
            continue;
        }
        cr_assert_eq(rc, NW_OK, "%s: %s", readings[i].file, nw_last_error()->text);
        check(topo, &readings[i]);
        nw_topo_free(topo);
    }
}

Test(nccl_xml, no_field_file_is_forgotten)
{
    DIR *folder = opendir(FIELD);
    int count = 0;

    cr_assert_not_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        bool known = entry->d_name[0] == '.';

        for (int i = 0; i < READINGS; i++)
            known |= strcmp(entry->d_name, readings[i].file) == 0;
        cr_expect(known, "%s", entry->d_name);
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    cr_expect_eq(count, READINGS);
}

static struct nw_topo *read_field(const char *file)
{
    char path[512];
    struct nw_topo *topo;

    snprintf(path, sizeof path, "%s%s", FIELD, file);
    cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s: %s", file, nw_last_error()->text);
    return topo;
}

Test(nccl_xml, details_that_mislead)
{
    struct nw_topo *topo = read_field("stone-4x4090-61nets.xml");

    /* The driver's numbers, though GPU 2 is not in the file. */
    cr_expect_not_null(by_name(topo, "gpu4"));
    cr_expect_null(by_name(topo, "gpu2"));
    cr_expect(has_finding(topo, "gpus-left-out"));
    cr_expect_str_eq(by_name(topo, "enp34s0f0")->fabric, "ethernet");
    nw_topo_free(topo);

    topo = read_field("nebius-h100-topo.xml");
    cr_expect_eq(by_name(topo, "gpu0")->parent, by_name(topo, "mlx5_4")->parent);
    cr_expect_str_eq(by_name(topo, "gpu0")->model, "NVIDIA H100 80GB HBM3");
    cr_expect_str_eq(by_name(topo, "mlx5_4")->fabric, "infiniband");
    nw_topo_free(topo);

    topo = read_field("rccl-topo_4p3l_2h.xml"); /* AMD without vendor in the file */
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU) {
            cr_expect_eq(topo->nodes[i].pci_vendor, 0x1002);
            cr_expect(isnan(nw_topo_number(topo, (int)i, NW_FACT_CAPABILITY)));
        }
    nw_topo_free(topo);

    topo = read_field("oci-h100-topology.xml"); /* a card's second function has no address */
    cr_expect_str_eq(by_name(topo, "mlx5_0")->pci, "0000:0c:00.0");
    cr_expect_str_eq(by_name(topo, "mlx5_1")->pci, "");
    cr_expect_eq(by_name(topo, "mlx5_1")->parent, by_name(topo, "mlx5_0")->parent);
    nw_topo_free(topo);
}

#define GPU(busid, dev, inside)                                                                    \
    "<pci busid=\"" busid "\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "             \
    "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"" dev "\" sm=\"90\">" inside       \
    "</gpu></pci>"
#define NVLINK(target, count, tclass)                                                              \
    "<nvlink target=\"" target "\" count=\"" count "\" tclass=\"" tclass "\"/>"
#define FILE_OF(inside) "<system version=\"1\"><cpu numaid=\"0\">" inside "</cpu></system>"

static struct nw_topo *read_text(const char *text)
{
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_read_data(text, strlen(text), "t.xml", &topo), NW_OK, "%s: %s", text,
                 nw_last_error()->text);
    return topo;
}

/* Who is joined, and by how much, by what the file says of the other end. */
Test(nccl_xml, nvlink_targets)
{
    static const struct {
        const char *text;
        int links, lanes, active, switched;
    } rows[] = {
        /* switches that the virtual machine hides */
        {FILE_OF(GPU("0000:01:00.0", "0", NVLINK("fffffff:ffff:ff", "18", "0x068000"))
                     GPU("0000:02:00.0", "1", NVLINK("fffffff:ffff:ff", "18", "0x068000"))),
         1, 18, 18, 1},
        /* four switches, as a real dump has them */
        {FILE_OF(
             GPU("0000:01:00.0", "0",
                 NVLINK("0000:a1:00.0", "5", "0x068000") NVLINK("0000:a2:00.0", "4", "0x068000"))
                 GPU("0000:02:00.0", "1",
                     NVLINK("0000:a1:00.0", "4", "0x068000")
                         NVLINK("0000:a2:00.0", "4", "0x068000"))),
         1, 8, 9, 1},
        /* a bridge between two */
        {FILE_OF(GPU("0000:01:00.0", "0", NVLINK("0000:02:00.0", "12", "0x030200"))
                     GPU("0000:02:00.0", "1", NVLINK("0000:01:00.0", "12", "0x030200"))),
         1, 12, 12, 0},
        /* peers behind switches by the wrong class: 2 x 18 links no GPU has */
        {FILE_OF(
             GPU("0000:01:00.0", "0",
                 NVLINK("0000:02:00.0", "18", "0x030200") NVLINK("0000:03:00.0", "18", "0x030200"))
                 GPU("0000:02:00.0", "1",
                     NVLINK("0000:01:00.0", "18", "0x030200")
                         NVLINK("0000:03:00.0", "18", "0x030200"))
                     GPU("0000:03:00.0", "2",
                         NVLINK("0000:01:00.0", "18", "0x030200")
                             NVLINK("0000:02:00.0", "18", "0x030200"))),
         3, 18, 18, 1},
        /* a mesh: 6 links to each of 2 */
        {FILE_OF(
             GPU("0000:01:00.0", "0",
                 NVLINK("0000:02:00.0", "6", "0x030200") NVLINK("0000:03:00.0", "6", "0x030200"))
                 GPU("0000:02:00.0", "1",
                     NVLINK("0000:01:00.0", "6", "0x030200")
                         NVLINK("0000:03:00.0", "6", "0x030200"))
                     GPU("0000:03:00.0", "2",
                         NVLINK("0000:01:00.0", "6", "0x030200")
                             NVLINK("0000:02:00.0", "6", "0x030200"))),
         3, 6, 12, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_text(rows[i].text);
        const int gpu = (int)(nw_topo_nth(topo, NW_NODE_GPU, 0) - topo->nodes);

        cr_expect_eq(links_of(topo, NW_LINK_NVLINK), rows[i].links, "row %zu", i);
        cr_assert_gt(topo->link_count, 0);
        cr_expect_eq(topo->links[0].lane_count, rows[i].lanes, "row %zu", i);
        cr_expect_eq(nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT), rows[i].active, "row %zu", i);
        cr_expect_eq(nw_topo_number(topo, gpu, NW_FACT_NVLINK_SWITCH), rows[i].switched, "row %zu",
                     i);
        nw_topo_free(topo);
    }
}

Test(nccl_xml, other_links_and_hosts)
{
    struct nw_topo *topo =
        read_text(FILE_OF(GPU("0009:01:00.0", "0", "<c2c bw=\"44712\" count=\"10\"/>")));

    cr_assert_eq(topo->link_count, 1);
    cr_expect_eq(topo->links[0].kind, NW_LINK_C2C);
    cr_expect_float_eq(topo->links[0].bytes_per_s, 447.12e9, 1);
    nw_topo_free(topo);
    /* one NVLink domain over two hosts, whose PCI addresses are equal */
    topo = read_text("<system version=\"1\"><cpu host_hash=\"0x1\" numaid=\"0\">" GPU(
        "0008:01:00.0", "0",
        NVLINK("fffffff:ffff:ff", "18", "0x068000")) "</cpu>"
                                                     "<cpu host_hash=\"0x2\" numaid=\"0\">" GPU(
                                                         "0008:01:00.0", "0",
                                                         NVLINK("fffffff:ffff:ff", "18",
                                                                "0x068000")) "</cpu></system>");
    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 2);
    cr_expect_eq(links_of(topo, NW_LINK_NVLINK), 1);
    cr_expect(has_finding(topo, "several-hosts"));
    cr_expect_eq(nw_topo_class_of_tree(topo, (int)topo->node_count - 1, (int)topo->node_count - 2),
                 NW_CLASS_UNKNOWN);
    nw_topo_free(topo);
}

/* --- damage --- */

Test(nccl_xml, bad_files_are_refused_with_line_and_words)
{
    static const struct {
        const char *text, *words; /* words split at '|' */
    } rows[] = {
        {"<system version=\"1\">", "not well-formed|cut off"},
        {"<system version=\"1\"><cpu><pci busid=\"0000:01:00.0\"/></cpu>", "cut off"},
        {"<system version=\"1\"><cpu><pci busid=\"0000:01", "cut off"},
        {"<system version=\"1\"><cpu></system></cpu>", "not well-formed"},
        {"<system version=\"1\"/>", "without a device"},
        {"<system version=\"1\"><system version=\"2\"/></system>", "Hygon"},
        {"<!DOCTYPE s [<!ENTITY a \"aa\">]><system>&a;</system>", "entities"},
        {"<system>\n<gpu dev=\"0\"/></system>", "t.xml:2|<gpu>|outside <pci>"},
        {FILE_OF("<nvlink target=\"0000:01:00.0\"/>"), "<nvlink>|outside <gpu>"},
        {FILE_OF("<net name=\"mlx5_0\"/>"), "<net>|outside <nic>"},
        {FILE_OF("\n<pci busid=\"zz\"/>"), "t.xml:2|busid|zz"},
        {FILE_OF("<pci busid=\"-1:00:00.0\"/>"), "busid|-1"},
        {FILE_OF(GPU("0000:01:00.0", "-3", "")), "dev|-3"},
        {FILE_OF(GPU("0000:01:00.0", "0", NVLINK("0000:02:00.0", "-12", "0x03"))), "count|-12"},
        {FILE_OF(GPU("0000:01:00.0", "0", NVLINK("0000:02:00.0", "99999", "0x03"))),
         "count|99999|NVLinks"},
        {FILE_OF(GPU("0000:01:00.0", "99999999999999999999", "")), "dev|99999999999999999999"},
        {FILE_OF(GPU("0000:01:00.0", "0", "") "\n" GPU("0000:01:00.0", "1", "")),
         "t.xml:2|0000:01:00.0 a second time|line 1"},
        {FILE_OF("<pci busid=\"0000:01:00.0\"><pci busid=\"0000:01:00.0\"/></pci>"),
         "a second time"}, /* inside itself */
        {FILE_OF("<pci busid=\"0000:01:00.0\" class=\"0x060400\"><pci busid=\"0000:01:00.0\" "
                 "class=\"0x060400\"/></pci>"),
         "a second time"}, /* a switch inside itself */
        {FILE_OF("<nic><net name=\"a\" speed=\"-1\"/></nic>"), "speed|-1"},
        {FILE_OF("<nic><net name=\"a\" speed=\"1e999\"/></nic>"), "speed|1e999"},
        {FILE_OF("<pci busid=\"0000:01:00.0\" class=\"0xzz\"/>"), "class|0xzz"},
        {"<system><cpu numaid=\"-7\"/></system>", "numaid|-7"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = NULL;
        char words[128], *rest = words, *word;

        cr_expect_eq(nw_topo_read_data(rows[i].text, strlen(rows[i].text), "t.xml", &topo),
                     NW_EUSAGE, "%s", rows[i].text);
        cr_assert_null(topo, "%s", rows[i].text);
        snprintf(words, sizeof words, "%s", rows[i].words);
        while ((word = strsep(&rest, "|")) != NULL)
            cr_expect(strstr(nw_last_error()->text, word) != NULL, "%s: \"%s\" is not in: %s",
                      rows[i].text, word, nw_last_error()->text);
    }
}

static size_t convert(const char *text, bool big, char *to)
{
    size_t used = 0;

    to[used++] = (char)(big ? 0xfe : 0xff);
    to[used++] = (char)(big ? 0xff : 0xfe);
    for (; *text != '\0'; text++) {
        to[used++] = big ? '\0' : *text;
        to[used++] = big ? *text : '\0';
    }
    return used;
}

/* PowerShell's ">" writes UTF-16; editors add carriage returns; clouds leave a blank line. */
Test(nccl_xml, other_ways_to_write_the_same)
{
    static const char text[] = "<system version=\"1\">\n<cpu numaid=\"0\">\n"
                               "<pci busid=\"0000:01:00.0\" class=\"0x030200\"/>\n</cpu></system>";
    char other[4 * sizeof text];
    struct nw_topo *topo;

    for (int big = 0; big < 2; big++) {
        const size_t length = convert(text, big, other);

        cr_assert_eq(nw_topo_read_data(other, length, "t.xml", &topo), NW_OK, "%s",
                     nw_last_error()->text);
        cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 1);
        nw_topo_free(topo);
        cr_expect_eq(nw_topo_read_data(other, length / 2, "t.xml", &topo), NW_EUSAGE);
    }
    topo = read_text("\r\n\n<?xml version=\"1.0\"?>\r\n<!-- <graphs/> -->\r\n<system>\r\n<cpu>\r\n"
                     "<pci busid='01:00.0' class='0x030200'/>\r\n</cpu>\r\n</system>\r\n");
    cr_expect_str_eq(nw_topo_nth(topo, NW_NODE_GPU, 0)->pci, "0000:01:00.0");
    nw_topo_free(topo);
}

/* RCCL's dumps of machines with Broadcom switches. */
Test(nccl_xml, folded_switches_share_an_address)
{
    struct nw_topo *topo = read_text(
        "<system version=\"2\"><cpu numaid=\"0\"><pci busid=\"0000:c1:00.0\" class=\"0x060400\">"
        "<pci busid=\"0000:c5:00.0\" class=\"0x060400\">"
        "<pci busid=\"0000:cf:00.0\" class=\"0x030200\"/></pci>"
        "<pci busid=\"0000:c5:00.0\" class=\"0x060400\">"
        "<pci busid=\"0000:d0:00.0\" class=\"0x030200\"/></pci>"
        "<pci busid=\"0000:c1:00.0\" class=\"0x020700\"/></pci></cpu></system>");

    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 2);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 1);
    nw_topo_free(topo);
}

static char *repeat(const char *start, const char *one, int count, const char *end)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    fputs(start, stream);
    for (int i = 0; i < count; i++)
        fprintf(stream, one, i & 0xff, i >> 8 & 0x1f, i >> 13 & 7, i >> 16);
    fputs(end, stream);
    fclose(stream);
    return text;
}

/* A million elements, deep nesting, thousands of GPUs: an error, and no memory to speak of. */
Test(nccl_xml, large_files_end_early)
{
    static const struct {
        const char *start, *one, *end;
        int count;
        const char *words;
    } rows[] = {
        {"<system><cpu>", "<pci busid=\"%4$04x:%1$02x:%2$02x.%3$x\"/>", "</cpu></system>", 400000,
         "more than 16000 elements"},
        {"<system><cpu>", "<net/>", "</cpu></system>", 1000000, "outside <nic>"},
        {"<system><cpu><nic>", "<net name=\"docker0\"/>", "</nic></cpu></system>", 1000000,
         "more than 16000 elements"},
        {"<system><cpu>", "<pci busid=\"%4$04x:%1$02x:%2$02x.%3$x\">", "", 100000,
         "nested deeper than 64"},
        {"<system>", "<a>", "", 300, "nested deeper than 64"},
        {"<system><cpu>", "<pci busid=\"%4$04x:%1$02x:%2$02x.%3$x\" class=\"0x030200\"/>",
         "</cpu></system>", 2000, "more than 360 GPUs"},
    };
    struct rusage before, after;

    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = repeat(rows[i].start, rows[i].one, rows[i].count, rows[i].end);
        struct nw_topo *topo = NULL;

        cr_expect_eq(nw_topo_read_data(text, strlen(text), "t.xml", &topo), NW_EUSAGE, "row %zu",
                     i);
        cr_expect(strstr(nw_last_error()->text, rows[i].words) != NULL, "row %zu: %s", i,
                  nw_last_error()->text);
        free(text);
    }
    getrusage(RUSAGE_SELF, &after);
    cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 300 * 1024); /* KiB; the texts are 30 MiB */
}
