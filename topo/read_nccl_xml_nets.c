/* The nets of NCCL's topology file: RDMA devices, interfaces (NCCL's socket transport), and virtual
 * interfaces, which are no NICs. Also the names of devices. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/read_nccl_xml.h"

/* PCI device identifiers of the PCI ID database (pci-ids.ucw.cz); GPUs by the name that their
 * driver gives. */
static const struct {
    uint32_t vendor, device;
    const char *name;
} devices[] = {
    {0x10de, 0x15f8, "Tesla P100-PCIE-16GB"},
    {0x10de, 0x15f9, "Tesla P100-SXM2-16GB"},
    {0x10de, 0x1db1, "Tesla V100-SXM2-16GB"},
    {0x10de, 0x1db4, "Tesla V100-PCIE-16GB"},
    {0x10de, 0x1db5, "Tesla V100-SXM2-32GB"},
    {0x10de, 0x1db6, "Tesla V100-PCIE-32GB"},
    {0x10de, 0x1db8, "Tesla V100-SXM3-32GB"},
    {0x10de, 0x1eb8, "Tesla T4"},
    {0x10de, 0x20b0, "NVIDIA A100-SXM4-40GB"},
    {0x10de, 0x20b2, "NVIDIA A100-SXM4-80GB"},
    {0x10de, 0x20b5, "NVIDIA A100 80GB PCIe"},
    {0x10de, 0x20f1, "NVIDIA A100-PCIE-40GB"},
    {0x10de, 0x20f3, "NVIDIA A800-SXM4-80GB"},
    {0x10de, 0x20b7, "NVIDIA A30"},
    {0x10de, 0x2204, "NVIDIA GeForce RTX 3090"},
    {0x10de, 0x2230, "NVIDIA RTX A6000"},
    {0x10de, 0x2235, "NVIDIA A40"},
    {0x10de, 0x2236, "NVIDIA A10"},
    {0x10de, 0x2237, "NVIDIA A10G"},
    {0x10de, 0x2321, "NVIDIA H100 NVL"},
    {0x10de, 0x2324, "NVIDIA H800"},
    {0x10de, 0x2329, "NVIDIA H20"},
    {0x10de, 0x2330, "NVIDIA H100 80GB HBM3"},
    {0x10de, 0x2331, "NVIDIA H100 PCIe"},
    {0x10de, 0x2335, "NVIDIA H200"},
    {0x10de, 0x233b, "NVIDIA H200 NVL"},
    {0x10de, 0x2342, "NVIDIA GH200 480GB"},
    {0x10de, 0x2684, "NVIDIA GeForce RTX 4090"},
    {0x10de, 0x2685, "NVIDIA GeForce RTX 4090 D"},
    {0x10de, 0x26b1, "NVIDIA RTX 6000 Ada Generation"},
    {0x10de, 0x26b5, "NVIDIA L40"},
    {0x10de, 0x26b9, "NVIDIA L40S"},
    {0x10de, 0x27b8, "NVIDIA L4"},
    {0x10de, 0x2901, "NVIDIA B200"},
    {0x10de, 0x2941, "NVIDIA GB200"},
    {0x10de, 0x2b85, "NVIDIA GeForce RTX 5090"},
    {0x10de, 0x3182, "NVIDIA B300"},
    {0x10de, 0x31c2, "NVIDIA GB300"},
    {0x1002, 0x66a1, "AMD Instinct MI50/MI60"},
    {0x1002, 0x738c, "AMD Instinct MI100"},
    {0x1002, 0x7408, "AMD Instinct MI250X"},
    {0x1002, 0x740c, "AMD Instinct MI250X/MI250"},
    {0x1002, 0x740f, "AMD Instinct MI210"},
    {0x1002, 0x74a1, "AMD Instinct MI300X"},
    {0x1002, 0x74a5, "AMD Instinct MI325X"},
    {0x15b3, 0x1013, "Mellanox ConnectX-4"},
    {0x15b3, 0x1015, "Mellanox ConnectX-4 Lx"},
    {0x15b3, 0x1017, "Mellanox ConnectX-5"},
    {0x15b3, 0x1019, "Mellanox ConnectX-5 Ex"},
    {0x15b3, 0x101b, "Mellanox ConnectX-6"},
    {0x15b3, 0x101d, "Mellanox ConnectX-6 Dx"},
    {0x15b3, 0x101e, "Mellanox ConnectX virtual function"},
    {0x15b3, 0x101f, "Mellanox ConnectX-6 Lx"},
    {0x15b3, 0x1021, "Mellanox ConnectX-7"},
    {0x15b3, 0x1023, "Mellanox ConnectX-8"},
    {0x15b3, 0xa2d6, "Mellanox BlueField-2"},
    {0x15b3, 0xa2dc, "Mellanox BlueField-3"},
    {0x1d0f, 0xefa0, "Amazon EFA"},
    {0x1d0f, 0xefa1, "Amazon EFA"},
    {0x1d0f, 0xefa2, "Amazon EFA"},
    {0x1d0f, 0xefa3, "Amazon EFA"},
};

const char *nw_nccl_device_name(uint32_t vendor, uint32_t device)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i].vendor == vendor && devices[i].device == device)
            return devices[i].name;
    return "";
}

static bool starts_with_one(const char *name, const char *const *prefixes)
{
    for (; *prefixes != NULL; prefixes++)
        if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

/* Bridges, tunnels and ends of containers: they end on some NIC that has a line of its own. */
static bool is_virtual(const char *name)
{
    static const char *const prefixes[] = {
        "docker",  "br-",       "veth",  "tunl",  "cali",  "virbr",   "flann",  "cni", "lxc",
        "vxlan",   "tap",       "tun",   "dummy", "kube-", "nerdctl", "podman", "lxd", "wg",
        "cilium_", "nodelocal", "vmnet", "br0",   "ovs",   "gre",     NULL};

    return strcmp(name, "lo") == 0 || starts_with_one(name, prefixes);
}

static bool is_interface(const struct nw_nccl_element *net)
{
    static const char *const prefixes[] = {"eth", "en",  "em",  "ib", "bond",
                                           "wl",  "usb", "p1p", NULL};
    char guid[24];

    /* The socket transport has no port and uses the number of the interface as its GUID. */
    snprintf(guid, sizeof guid, "0x%x", net->number >= 0 ? (unsigned)net->number : 0);
    return net->port == 0 && (strcmp(net->text, guid) == 0 || net->text[0] == '\0' ||
                              starts_with_one(net->name, prefixes));
}

static const char *fabric_of(const struct nw_topo_node *node, const struct nw_nccl_element *net)
{
    if (node->pci_vendor == NW_PCI_VENDOR_AMAZON)
        return "efa";
    if (node->pci_vendor == NW_PCI_VENDOR_CRAY)
        return "cxi";
    if (node->pci_class == NW_PCI_CLASS_INFINIBAND)
        return "infiniband";
    if (net != NULL && is_interface(net))
        return "ethernet";
    if (net != NULL && node->pci_class == NW_PCI_CLASS_ETHERNET && net->port > 0)
        return "roce";
    return "";
}

/* Rates that ports are made for, in Mb/s: Ethernet, InfiniBand (with its payload figures), EFA. */
static bool is_usual(double megabits)
{
    static const double rates[] = {10,    100,   1000,   2500,   5000,   8000,   10000, 14000,
                                   16000, 20000, 25000,  32000,  40000,  50000,  54000, 56000,
                                   80000, 96000, 100000, 106000, 200000, 400000, 800000};

    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (megabits == rates[i])
            return true;
    return false;
}

struct nets {
    struct nw_nccl_file *file;
    struct nw_topo *topo;
    int virtual_count, odd_count;
    const struct nw_nccl_element *first_virtual, *first_odd;
};

/* The NIC's node: that of the PCI device for its first net, else a new one beside it. */
static nw_rc place(struct nets *nets, int index, int *node_out)
{
    struct nw_nccl_file *file = nets->file;
    struct nw_topo *topo = nets->topo;
    const int pci = nw_nccl_above(file, index, NW_NCCL_PCI);
    const int at = pci >= 0 ? file->elements[pci].node : -1;
    const bool under_nic = at > 0 && topo->nodes[at].kind == NW_NODE_NIC;

    if (under_nic && topo->nodes[at].os_names[0] == '\0') {
        *node_out = at;
        return NW_OK;
    }
    if (topo->node_count >= NW_RAW_MAX_DEVICES)
        return nw_fail(NW_EUSAGE, "%s: more than %d devices: this is no machine's topology",
                       file->what, (int)NW_RAW_MAX_DEVICES);
    NW_TRY(nw_topo_add_node(topo, NW_NODE_NIC, 0, node_out));
    if (at <= 0)
        return NW_OK; /* below no PCI device: NCCL puts it anywhere */
    topo->nodes[*node_out].numa = topo->nodes[at].numa;
    topo->nodes[*node_out].parent = under_nic ? topo->nodes[at].parent : at;
    if (!under_nic)
        return NW_OK;
    /* Another function of the same card; which one the file does not say. */
    topo->nodes[*node_out].pci_class = topo->nodes[at].pci_class;
    topo->nodes[*node_out].pci_vendor = topo->nodes[at].pci_vendor;
    topo->nodes[*node_out].pci_device = topo->nodes[at].pci_device;
    memcpy(topo->nodes[*node_out].model, topo->nodes[at].model, sizeof topo->nodes[at].model);
    topo->nodes[*node_out].link_max_bytes_per_s = topo->nodes[at].link_max_bytes_per_s;
    topo->nodes[*node_out].link_max_lanes = topo->nodes[at].link_max_lanes;
    return nw_topo_set_number(topo, *node_out, NW_FACT_LINK_MAX_GENERATION,
                              nw_topo_number(topo, at, NW_FACT_LINK_MAX_GENERATION),
                              NW_NCCL_SOURCE);
}

static bool is_told(const struct nets *nets, const char *name)
{
    for (size_t i = 0; i < nets->topo->node_count; i++)
        if (nets->topo->nodes[i].kind == NW_NODE_NIC &&
            strcmp(nets->topo->nodes[i].os_names, name) == 0)
            return true;
    return false;
}

static nw_rc add_net(struct nets *nets, int index)
{
    const struct nw_nccl_element *net = &nets->file->elements[index];
    struct nw_topo *topo = nets->topo;
    struct nw_topo_node *node;
    int at;

    if (is_virtual(net->name)) {
        if (nets->virtual_count++ == 0)
            nets->first_virtual = net;
        return NW_OK;
    }
    /* NCCL repeats what hangs below no PCI device under every NUMA node. */
    if (net->name[0] == '\0' || (!nets->file->hosts && is_told(nets, net->name)))
        return NW_OK;
    NW_TRY(place(nets, index, &at));
    node = &topo->nodes[at];
    snprintf(node->name, sizeof node->name, "%s", net->name);
    snprintf(node->os_names, sizeof node->os_names, "%s", net->name);
    snprintf(node->fabric, sizeof node->fabric, "%s", fabric_of(node, net));
    node->port_up = 1; /* NCCL leaves out the ports that are not active */
    if (net->megarate > 0) {
        node->rate_bits_per_s = net->megarate * 1e6;
        if (!is_usual(net->megarate) && nets->odd_count++ == 0)
            nets->first_odd = net;
    }
    if (net->gdr >= 0)
        NW_TRY(nw_topo_set_number(topo, at, NW_FACT_GDR, net->gdr != 0, NW_NCCL_SOURCE));
    if (net->port > 0)
        NW_TRY(nw_topo_set_number(topo, at, NW_FACT_CARD_PORT, net->port, NW_NCCL_SOURCE));
    if (!is_interface(net))
        NW_TRY(nw_topo_set_text(topo, at, NW_FACT_CARD, net->text, NW_NCCL_SOURCE));
    return NW_OK;
}

static nw_rc tell(const struct nets *nets)
{
    if (nets->virtual_count > 0)
        NW_TRY(nw_findings_add(&nets->topo->findings, NW_FINDING_INFO, "virtual-interfaces", "",
                               "NCCL_SOCKET_IFNAME names the interface to use",
                               "%d virtual interfaces (%s and the like) are in this file and left "
                               "out: they are no NICs",
                               nets->virtual_count, nets->first_virtual->name));
    if (nets->odd_count > 0)
        NW_TRY(nw_findings_add(
            &nets->topo->findings, NW_FINDING_INFO, "odd-rate", nets->first_odd->name, NULL,
            "%d nets (%s first) have a rate of %.6g Gb/s, which no port has: "
            "set by hand, or after some overhead",
            nets->odd_count, nets->first_odd->name, nets->first_odd->megarate / 1e3));
    return NW_OK;
}

nw_rc nw_nccl_build_nets(struct nw_nccl_file *file, struct nw_topo *topo)
{
    struct nets nets = {.file = file, .topo = topo};

    for (size_t i = 0; i < file->count; i++)
        if (file->elements[i].kind == NW_NCCL_NET)
            NW_TRY(add_net(&nets, (int)i));
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC && topo->nodes[i].fabric[0] == '\0')
            snprintf(topo->nodes[i].fabric, sizeof topo->nodes[i].fabric, "%s",
                     fabric_of(&topo->nodes[i], NULL));
    return tell(&nets);
}
