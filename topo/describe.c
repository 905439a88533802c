/* Names and numbers of a device, from its facts. */
#include "topo/classify.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

void nw_squeeze(const char *from, char *to, size_t size)
{
    size_t length = 0;

    while (*from != '\0' && length + 1 < size) {
        if (!isspace((unsigned char)*from))
            to[length++] = *from;
        else if (length > 0 && to[length - 1] != ' ')
            to[length++] = ' ';
        from++;
    }
    while (length > 0 && to[length - 1] == ' ')
        length--;
    to[length] = '\0';
}

/* --- place --- */

const char *nw_raw_memory_kind(const struct nw_raw *raw, int object)
{
    const struct nw_raw_object *numa = &raw->objects[object];

    if (strcmp(numa->subtype, "GPUMemory") == 0)
        return "GPU memory";
    if (strcmp(numa->subtype, "NVM") == 0 || nw_raw_info(raw, object, "DAXDevice") != NULL)
        return "persistent memory";
    /* POWER9 shows each GPU's memory as a NUMA node without CPUs; hwloc 1 had no name for it. */
    if (numa->cpuset != NULL && hwloc_bitmap_iszero(numa->cpuset))
        return "memory without CPUs";
    return "";
}

static int numa_of_set(const struct nw_raw *raw, hwloc_const_bitmap_t nodeset)
{
    const struct nw_raw_object *found = NULL;

    for (size_t i = 0; i < raw->numa_count; i++) {
        const struct nw_raw_object *numa = &raw->objects[raw->numas[i]];

        if (numa->os_index < 0 || !hwloc_bitmap_isset(nodeset, (unsigned)numa->os_index) ||
            nw_raw_memory_kind(raw, raw->numas[i])[0] != '\0')
            continue;
        if (found == NULL)
            found = numa;
        else if (found->cpuset == NULL || numa->cpuset == NULL ||
                 !hwloc_bitmap_isequal(found->cpuset, numa->cpuset))
            return -1;
    }
    return found != NULL ? found->os_index : -1;
}

int nw_raw_numa(const struct nw_raw *raw, int object)
{
    for (int up = object; up >= 0; up = raw->objects[up].parent) {
        const struct nw_raw_object *at = &raw->objects[up];

        if (at->type == NW_RAW_NUMA)
            return at->os_index;
        if (at->type < NW_RAW_HOST_BRIDGE && at->nodeset != NULL)
            return numa_of_set(raw, at->nodeset);
    }
    return -1;
}

/* --- names --- */

static const char *vendor_name(uint32_t vendor)
{
    static const struct {
        uint32_t vendor;
        const char *name;
    } names[] = {
        {0x10de, "NVIDIA"},  {0x1002, "AMD"},       {0x1022, "AMD"},      {0x15b3, "Mellanox"},
        {0x8086, "Intel"},   {0x14e4, "Broadcom"},  {0x1000, "Broadcom"}, {0x1af4, "virtio"},
        {0x1d0f, "Amazon"},  {0x17db, "HPE Cray"},  {0x1a03, "ASPEED"},   {0x102b, "Matrox"},
        {0x144d, "Samsung"}, {0x11f8, "Microchip"}, {0x1e0f, "KIOXIA"},   {0x10b5, "PLX"},
        {0x1344, "Micron"},  {0x1414, "Microsoft"}, {0x1b4b, "Marvell"},  {0x1425, "Chelsio"},
        {0x1ae0, "Google"},  {0x1dd8, "Pensando"},  {0x1077, "QLogic"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].vendor == vendor)
            return names[i].name;
    return NULL;
}

static const char *class_name(uint32_t class_id)
{
    static const struct {
        uint32_t mask, class_id;
        const char *name;
    } names[] = {
        {0xffff, 0x0106, "SATA controller"},
        {0xffff, 0x0108, "NVMe controller"},
        {0xff00, 0x0100, "storage controller"},
        {0xffff, 0x0200, "Ethernet controller"},
        {0xffff, 0x0207, "InfiniBand controller"},
        {0xffff, 0x0c06, "InfiniBand controller"},
        {0xff00, 0x0200, "network controller"},
        {0xffff, 0x0300, "VGA controller"},
        {0xffff, 0x0302, "3D controller"},
        {0xff00, 0x0300, "display controller"},
        {0xff00, 0x0600, "bridge"},
        {0xff00, 0x0b00, "coprocessor"},
        {0xff00, 0x1200, "accelerator"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((class_id & names[i].mask) == names[i].class_id)
            return names[i].name;
    return "device";
}

/* Products by PCI device id, for machines without the PCI ID database (https://pci-ids.ucw.cz, from
 * which these are) and without NVML. */
static const char *nvidia_product(uint32_t device)
{
    static const struct {
        uint32_t device;
        const char *name;
    } names[] = {
        {0x15f8, "Tesla P100 PCIe 16GB"},
        {0x15f9, "Tesla P100 SXM2 16GB"},
        {0x1db1, "Tesla V100 SXM2 16GB"},
        {0x1db4, "Tesla V100 PCIe 16GB"},
        {0x1db5, "Tesla V100 SXM2 32GB"},
        {0x1db6, "Tesla V100 PCIe 32GB"},
        {0x1eb8, "Tesla T4"},
        {0x20b0, "A100 SXM4 40GB"},
        {0x20b2, "A100 SXM4 80GB"},
        {0x20b5, "A100 PCIe 80GB"},
        {0x20f1, "A100 PCIe 40GB"},
        {0x2204, "GeForce RTX 3090"},
        {0x2230, "RTX A6000"},
        {0x2235, "A40"},
        {0x2236, "A10"},
        {0x2324, "H800"},
        {0x2329, "H20"},
        {0x2330, "H100 SXM5 80GB"},
        {0x2331, "H100 PCIe"},
        {0x2335, "H200 SXM 141GB"},
        {0x2684, "GeForce RTX 4090"},
        {0x26b5, "L40"},
        {0x26b9, "L40S"},
        {0x27b8, "L4"},
        {0x2901, "B200"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].device == device)
            return names[i].name;
    return NULL;
}

void nw_describe_pci(const struct nw_raw *raw, int object, char *text, size_t size)
{
    const struct nw_raw_object *pci = &raw->objects[object];
    const char *vendor = vendor_name(pci->pci_vendor);
    const char *device = nw_raw_info(raw, object, "PCIDevice");
    char line[256];

    text[0] = '\0';
    if (pci->pci_vendor == 0)
        return;
    if (vendor == NULL)
        vendor = nw_raw_info(raw, object, "PCIVendor");
    if (vendor == NULL)
        vendor = "";
    if (pci->pci_vendor == NW_PCI_VENDOR_NVIDIA && (device == NULL || device[0] == '\0'))
        device = pci->pci_class == NW_PCI_CLASS_BRIDGE_OTHER ? "NVSwitch"
                                                             : nvidia_product(pci->pci_device);
    if (device != NULL && device[0] != '\0')
        snprintf(line, sizeof line, "%.60s %.180s", vendor, device);
    else
        snprintf(line, sizeof line, "%.60s %s [%04x:%04x]", vendor, class_name(pci->pci_class),
                 pci->pci_vendor & 0xffff, pci->pci_device & 0xffff);
    nw_squeeze(line, text, size);
}

static const char *device_info(const struct nw_raw *raw, const struct nw_device *device,
                               const char *prefix, const char *name)
{
    for (size_t i = 0; i < device->osdev_count; i++) {
        const char *value = nw_raw_info(raw, device->osdevs[i], name);

        if (value != NULL && value[0] != '\0' &&
            strncmp(raw->objects[device->osdevs[i]].name, prefix, strlen(prefix)) == 0)
            return value;
    }
    return NULL;
}

/* hwloc writes sizes in KiB, and from version 3 on says so ("11796032KiB"). 0: not given. */
static uint64_t kib_text(const char *text)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1024},   {"B", 1},         {"KiB", 1024},
                 {"kB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    char digits[24];
    uint64_t value;
    size_t length;

    if (text == NULL)
        return 0;
    length = strspn(text, "0123456789");
    if (length == 0 || length >= sizeof digits)
        return 0;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (nw_parse_u64(digits, 0, (UINT64_C(1) << 43) - 1, &value) != NW_OK)
        return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].unit, text + length) == 0)
            return value <= INT64_MAX / units[i].bytes ? value * units[i].bytes : 0;
    return 0;
}

static void describe_gpu(const struct nw_raw *raw, const struct nw_device *device,
                         struct nw_topo_node *node)
{
    /* Management names the product; the compute interface may name what it emulates. */
    static const char *const sources[] = {"nvml", "rsmi", "cuda", "ze", "opencl"};
    static const char *const sizes[] = {"CUDAGlobalMemorySize", "RSMIVRAMSize",
                                        "OpenCLGlobalMemorySize"};

    for (size_t i = 0; i < sizeof sources / sizeof *sources && node->model[0] == '\0'; i++) {
        const char *model = device_info(raw, device, sources[i], "GPUModel");

        if (model != NULL)
            nw_squeeze(model, node->model, sizeof node->model);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && node->memory_bytes == 0; i++)
        node->memory_bytes = kib_text(device_info(raw, device, "", sizes[i]));
}

static const char *osdev_name(const struct nw_raw *raw, const struct nw_device *device,
                              nw_osdev osdev)
{
    for (size_t i = 0; i < device->osdev_count; i++)
        if (raw->objects[device->osdevs[i]].osdev == osdev)
            return raw->objects[device->osdevs[i]].name;
    return NULL;
}

/* An IP-over-InfiniBand address has 20 octets (RFC 4391), an Ethernet address 6. */
static bool has_infiniband_address(const struct nw_raw *raw, const struct nw_device *device)
{
    const char *address = device_info(raw, device, "", "Address");

    return address != NULL && strlen(address) == 20 * 3 - 1;
}

static const char *fabric_of(const struct nw_raw *raw, const struct nw_device *device)
{
    /* RDMA device names: the kernel driver's, or rdma-core's persistent ones. */
    static const struct {
        const char *prefix, *fabric;
    } by_name[] = {{"i40iw", "iwarp"},    {"cxgb", "iwarp"}, {"iwp", "iwarp"},
                   {"hfi1", "omnipath"},  {"roce", "roce"},  {"ibp", "infiniband"},
                   {"ibs", "infiniband"}, {"efa", "efa"},    {"siw", "iwarp"},
                   {"rxe", "roce"}};
    const struct nw_raw_object *object = &raw->objects[device->object];
    const char *rdma = osdev_name(raw, device, NW_OSDEV_RDMA);
    const char *network = osdev_name(raw, device, NW_OSDEV_NETWORK);
    const bool infiniband = object->pci_class == NW_PCI_CLASS_INFINIBAND ||
                            object->pci_class == NW_PCI_CLASS_INFINIBAND_OLD ||
                            has_infiniband_address(raw, device);

    if (object->pci_vendor == NW_PCI_VENDOR_CRAY)
        return "cxi"; /* HPE Slingshot */
    for (size_t i = 0; i < sizeof by_name / sizeof *by_name && rdma != NULL; i++)
        if (strncmp(rdma, by_name[i].prefix, strlen(by_name[i].prefix)) == 0)
            return by_name[i].fabric;
    if (rdma != NULL && object->pci_vendor == NW_PCI_VENDOR_AMAZON)
        return "efa";
    if (infiniband)
        return "infiniband";
    if (rdma != NULL)
        return object->pci_vendor == NW_PCI_VENDOR_MELLANOX &&
                       object->pci_class == NW_PCI_CLASS_ETHERNET
                   ? "roce"
                   : "";
    if (object->pci_class == NW_PCI_CLASS_WIRELESS ||
        (network != NULL && strncmp(network, "wl", 2) == 0))
        return "wifi";
    return "ethernet";
}

/* InfiniBand Architecture Specification, PortState: 1 down, 2 initialize, 3 armed, 4 active. */
static int port_state(const struct nw_raw *raw, const struct nw_device *device)
{
    static const char *const keys[] = {"Port1State", "Port2State", "Port3State", "Port4State"};
    int up = -1;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *state = device_info(raw, device, "", keys[i]);

        if (state != NULL)
            up = strcmp(state, "4") == 0 || up == 1;
    }
    return up;
}

static void describe_nic(const struct nw_raw *raw, const struct nw_device *device,
                         struct nw_topo_node *node)
{
    const char *name = osdev_name(raw, device, NW_OSDEV_RDMA);

    if (name == NULL)
        name = osdev_name(raw, device, NW_OSDEV_NETWORK);
    if (name != NULL)
        snprintf(node->name, sizeof node->name, "%s", name);
    snprintf(node->fabric, sizeof node->fabric, "%s", fabric_of(raw, device));
    node->port_up = port_state(raw, device);
}

static void describe_disk(const struct nw_raw *raw, const struct nw_device *device,
                          struct nw_topo_node *node)
{
    const char *model = device_info(raw, device, "", "Model");

    snprintf(node->name, sizeof node->name, "%s", raw->objects[device->osdevs[0]].name);
    if (model != NULL)
        nw_squeeze(model, node->model, sizeof node->model);
    node->memory_bytes = kib_text(device_info(raw, device, "", "Size"));
}

static void join_os_names(const struct nw_raw *raw, const struct nw_device *device,
                          struct nw_topo_node *node)
{
    size_t length = 0;

    for (size_t i = 0; i < device->osdev_count; i++) {
        const char *name = raw->objects[device->osdevs[i]].name;
        const size_t needed = strlen(name) + (length > 0);

        if (name[0] == '\0' || length + needed >= sizeof node->os_names)
            continue; /* whole names only */
        length += (size_t)sprintf(node->os_names + length, "%s%s", length > 0 ? " " : "", name);
    }
}

void nw_describe_device(const struct nw_raw *raw, const struct nw_device *device,
                        struct nw_topo_node *node)
{
    const struct nw_raw_object *object = &raw->objects[device->object];

    switch (device->kind) {
    case NW_NODE_GPU:
        describe_gpu(raw, device, node);
        break;
    case NW_NODE_NIC:
        describe_nic(raw, device, node);
        break;
    case NW_NODE_DISK:
        describe_disk(raw, device, node);
        break;
    default:
        break;
    }
    if (object->type == NW_RAW_PCI) {
        if (node->model[0] == '\0')
            nw_describe_pci(raw, device->object, node->model, sizeof node->model);
        if (node->name[0] == '\0')
            nw_raw_pci_text(object, node->name);
    }
    join_os_names(raw, device, node);
}
