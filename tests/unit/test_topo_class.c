/* Path classes: nvidia-smi's rules on trees of the system (every port a node) and of NCCL (one node
 * a switch), and against what nvidia-smi itself said of the same type of machine. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "topo/read.h"
#include "topo/topo.h"

/* --- small trees --- */

struct node {
    nw_node_kind kind;
    int parent;
    const char *name, *pci;
};

#define MACHINE                                                                                    \
    {                                                                                              \
        NW_NODE_MACHINE, -1, "machine", ""                                                         \
    }
#define NUMA(parent)                                                                               \
    {                                                                                              \
        NW_NODE_NUMA, parent, "numa", ""                                                           \
    }
#define PACKAGE                                                                                    \
    {                                                                                              \
        NW_NODE_PACKAGE, 0, "package", ""                                                          \
    }
#define HOST(parent)                                                                               \
    {                                                                                              \
        NW_NODE_BRIDGE, parent, "host", ""                                                         \
    }
#define BRIDGE(parent, pci)                                                                        \
    {                                                                                              \
        NW_NODE_BRIDGE, parent, pci, pci                                                           \
    }
#define GPU(parent, pci)                                                                           \
    {                                                                                              \
        NW_NODE_GPU, parent, "gpu", pci                                                            \
    }
#define NIC(parent, pci)                                                                           \
    {                                                                                              \
        NW_NODE_NIC, parent, "nic", pci                                                            \
    }

struct tree {
    const char *what;
    struct node nodes[16]; /* ends with a kind of machine at an index above 0 */
    int a, b;
    nw_class class_id;
};

static const struct tree trees[] = {
    {"two downstream ports of one switch",
     {MACHINE, NUMA(0), HOST(1), BRIDGE(2, "00:01.0"), BRIDGE(3, "01:00.0"), BRIDGE(4, "02:00.0"),
      GPU(5, "03:00.0"), BRIDGE(4, "02:01.0"), NIC(7, "04:00.0")},
     6,
     8,
     NW_CLASS_PIX},
    {"a switch below a switch",
     {MACHINE, NUMA(0), HOST(1), BRIDGE(2, "00:01.0"), BRIDGE(3, "01:00.0"), BRIDGE(4, "02:00.0"),
      NIC(5, "03:00.0"), BRIDGE(4, "02:01.0"), BRIDGE(7, "04:00.0"), BRIDGE(8, "05:00.0"),
      GPU(9, "06:00.0")},
     6,
     10,
     NW_CLASS_PXB},
    {"two functions of one card below a root port",
     {MACHINE, NUMA(0), HOST(1), BRIDGE(2, "00:01.0"), NIC(3, "01:00.0"), NIC(3, "01:00.1")},
     4,
     5,
     NW_CLASS_PIX},
    {"two root ports of one host bridge",
     {MACHINE, NUMA(0), HOST(1), BRIDGE(2, "00:01.0"), GPU(3, "01:00.0"), BRIDGE(2, "00:02.0"),
      GPU(5, "02:00.0")},
     4,
     6,
     NW_CLASS_PHB},
    {"a virtual machine's flat bus",
     {MACHINE, HOST(0), GPU(1, "00:1d.0"), GPU(1, "00:1e.0")},
     2,
     3,
     NW_CLASS_PHB},
    {"two host bridges of one NUMA node",
     {MACHINE, NUMA(0), HOST(1), BRIDGE(2, "00:01.0"), GPU(3, "01:00.0"), HOST(1),
      BRIDGE(5, "40:01.0"), GPU(6, "41:00.0")},
     4,
     7,
     NW_CLASS_NODE},
    {"two NUMA nodes",
     {MACHINE, NUMA(0), HOST(1), GPU(2, "01:00.0"), NUMA(0), HOST(4), GPU(5, "81:00.0")},
     3,
     6,
     NW_CLASS_SYS},
    {"two NUMA nodes of one package (NPS4)",
     {MACHINE, PACKAGE, NUMA(1), HOST(2), GPU(3, "01:00.0"), NUMA(1), HOST(5), NIC(6, "41:00.0")},
     4,
     7,
     NW_CLASS_SYS},
    {"NCCL: one switch",
     {MACHINE, NUMA(0), BRIDGE(1, "01:00.0"), GPU(2, "03:00.0"), NIC(2, "04:00.0")},
     3,
     4,
     NW_CLASS_PIX},
    {"NCCL: a switch below a switch",
     {MACHINE, NUMA(0), BRIDGE(1, "01:00.0"), NIC(2, "03:00.0"), BRIDGE(2, "04:00.0"),
      GPU(4, "05:00.0")},
     3,
     5,
     NW_CLASS_PXB},
    {"NCCL: one NUMA node, host bridges not told",
     {MACHINE, NUMA(0), BRIDGE(1, "01:00.0"), GPU(2, "03:00.0"), BRIDGE(1, "41:00.0"),
      GPU(4, "43:00.0")},
     3,
     5,
     NW_CLASS_UNKNOWN},
    {"NCCL: two NUMA nodes",
     {MACHINE, NUMA(0), GPU(1, "03:00.0"), NUMA(0), GPU(3, "43:00.0")},
     2,
     4,
     NW_CLASS_SYS},
    {"no place at all", {MACHINE, GPU(0, ""), GPU(0, "")}, 1, 2, NW_CLASS_UNKNOWN},
    {"a device and itself", {MACHINE, GPU(0, "01:00.0")}, 1, 1, NW_CLASS_SELF},
    {"a port and its NIC",
     {MACHINE, NUMA(0), NIC(1, "01:00.0"), {NW_NODE_PORT, 2, "nic/1", ""}},
     2,
     3,
     NW_CLASS_SELF},
};

static void plant(const struct tree *tree, struct nw_topo *topo)
{
    for (int i = 0; i < 16 && (i == 0 || tree->nodes[i].kind != NW_NODE_MACHINE); i++) {
        int index;

        cr_assert_eq(nw_topo_add_node(topo, tree->nodes[i].kind, tree->nodes[i].parent, &index),
                     NW_OK);
        snprintf(topo->nodes[index].name, sizeof topo->nodes[index].name, "%s",
                 tree->nodes[i].name);
        snprintf(topo->nodes[index].pci, sizeof topo->nodes[index].pci, "%s", tree->nodes[i].pci);
        topo->numa_count += tree->nodes[i].kind == NW_NODE_NUMA;
        topo->package_count += tree->nodes[i].kind == NW_NODE_PACKAGE;
    }
}

Test(topo_class, rules_on_trees)
{
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        struct nw_topo *topo = calloc(1, sizeof *topo);

        plant(&trees[i], topo);
        cr_expect_str_eq(nw_class_name(nw_topo_class_of_tree(topo, trees[i].a, trees[i].b)),
                         nw_class_name(trees[i].class_id), "%s", trees[i].what);
        cr_expect_str_eq(nw_class_name(nw_topo_class_of_tree(topo, trees[i].b, trees[i].a)),
                         nw_class_name(trees[i].class_id), "%s, the other way", trees[i].what);
        nw_topo_free(topo);
    }
}

/* --- against nvidia-smi on machines of the same type --- */

static struct nw_topo *read_one(const char *folder, const char *file)
{
    char path[512];
    struct nw_topo *topo;

    snprintf(path, sizeof path, "%s/tests/%s/%s", NW_SOURCE_DIR, folder, file);
    cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s: %s", file, nw_last_error()->text);
    return topo;
}

static int nth(const struct nw_topo *topo, nw_node_kind kind, int index)
{
    const struct nw_topo_node *node = nw_topo_nth(topo, kind, index);

    return node != NULL ? (int)(node - topo->nodes) : -1;
}

/* GPU pairs: what the tree and the links say of each is what the matrix says. */
Test(topo_class, gpu_pairs_are_those_of_topo_m)
{
    static const struct {
        const char *tree, *matrix, *why;
    } rows[] = {
        {"oci-h100-topology.xml", "aws-p5.48xlarge.txt", "8 H100 behind NVSwitch"},
        {"oci-h100-topology.xml", "h100x8-spaces-book.txt", "the same"},
        {"simccl-8a100-4cx6.xml", "aws-p4d.24xlarge.txt", "8 A100 behind NVSwitch"},
        {"simccl-8a100-4cx6.xml", "a100x8-spaces-book.txt", "the same"},
        {"gvisor-b200-vm.xml", "b200x8-10nic-ansi.txt", "8 B200 behind NVSwitch"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *tree = read_one("field/ncclxml", rows[i].tree);
        struct nw_topo *matrix = read_one("field/topom", rows[i].matrix);

        for (int a = 0; a < 8; a++)
            for (int b = 0; b < 8; b++) {
                int ours, theirs;

                cr_expect_eq(nw_topo_class(tree, nth(tree, NW_NODE_GPU, a),
                                           nth(tree, NW_NODE_GPU, b), &ours),
                             nw_topo_class(matrix, nth(matrix, NW_NODE_GPU, a),
                                           nth(matrix, NW_NODE_GPU, b), &theirs),
                             "%s, %s: %d %d", rows[i].why, rows[i].matrix, a, b);
                cr_expect_eq(ours, theirs, "%s, %s: %d %d", rows[i].why, rows[i].matrix, a, b);
            }
        nw_topo_free(tree);
        nw_topo_free(matrix);
    }
}

/* How many of a GPU's NICs are near it (PIX or PXB) and how many across NUMA nodes, in any order of
 * the NICs: a file and a matrix of one type of machine number them differently. */
static void affinity(const struct nw_topo *topo, int gpu, int nics, int *near_out, int *far_out)
{
    *near_out = *far_out = 0;
    for (int i = 0; i < nics; i++) {
        const nw_class class_id =
            nw_topo_class(topo, nth(topo, NW_NODE_GPU, gpu), nth(topo, NW_NODE_NIC, i), NULL);

        *near_out += class_id == NW_CLASS_PIX || class_id == NW_CLASS_PXB;
        *far_out += class_id == NW_CLASS_SYS;
    }
}

Test(topo_class, nic_affinity_is_that_of_topo_m)
{
    /* DGX A100 (matrix cut after 4 rows: 12 NICs, 2 near each pair of GPUs) has the board of OCI's
     * BM.GPU.B4.8: NPS4, two GPUs and two cards a switch, the others across NUMA nodes. */
    static const struct {
        const char *tree, *matrix;
        int gpus, tree_nics, matrix_nics, near, tree_far, matrix_far;
    } rows[] = {
        {"oci-b4-flattened.xml", "dgx-a100-12nic-head.txt", 4, 8, 12, 2, 6, 10},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *tree = read_one("field/ncclxml", rows[i].tree);
        struct nw_topo *matrix = read_one("field/topom", rows[i].matrix);

        for (int gpu = 0; gpu < rows[i].gpus; gpu++) {
            int near, far;

            affinity(tree, gpu, rows[i].tree_nics, &near, &far);
            cr_expect(near == rows[i].near && far == rows[i].tree_far, "%s gpu%d: %d near, %d far",
                      rows[i].tree, gpu, near, far);
            affinity(matrix, gpu, rows[i].matrix_nics, &near, &far);
            cr_expect(near == rows[i].near && far == rows[i].matrix_far,
                      "%s gpu%d: %d near, %d far", rows[i].matrix, gpu, near, far);
        }
        nw_topo_free(tree);
        nw_topo_free(matrix);
    }
}

/* What is stated counts before the tree: a Grace machine's NICs read SYS, though they hang on the
 * GPU's own CPU. */
Test(topo_class, stated_before_links_before_tree)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int nvlinks = -1;

    plant(&trees[0], topo);
    cr_expect_eq(nw_topo_class(topo, 6, 8, &nvlinks), NW_CLASS_PIX);
    cr_expect_eq(nvlinks, 0);
    cr_assert_eq(
        nw_topo_add_link(
            topo, &(struct nw_topo_link){.a = 8, .b = 6, .kind = NW_LINK_NVLINK, .lane_count = 4}),
        NW_OK);
    cr_expect_eq(nw_topo_class(topo, 6, 8, &nvlinks), NW_CLASS_NV);
    cr_expect_eq(nvlinks, 4);
    cr_assert_eq(nw_topo_state(topo, 8, 6, NW_CLASS_SYS, 0), NW_OK);
    cr_expect_eq(nw_topo_class(topo, 6, 8, &nvlinks), NW_CLASS_SYS);
    cr_expect_eq(nw_topo_class_of_tree(topo, 6, 8), NW_CLASS_PIX);
    nw_topo_free(topo);
}
