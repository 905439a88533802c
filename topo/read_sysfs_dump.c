/* {"/sys/bus/pci/devices/0000:17:00.0/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)\n", …}:
 * a part of a machine's sysfs in one file. PCI devices become nodes by what is below them or by
 * their class; the rest is the live reader's work (live_rdma.c), over these paths. */
#include "topo/read_sysfs_dump.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/link.h"
#include "topo/live_rdma.h"
#include "topo/pci_address.h"
#include "topo/read.h"
#include "topo/read_ib.h"

#define SOURCE "sysfs"

struct device {
    char pci[16];
    char folders[2][80]; /* where its files are; "": not there */
};

struct devices {
    struct device *items; /* owned */
    size_t count;
};

/* --- the list of PCI devices --- */

static nw_rc add_device(struct devices *devices, const char *name, const char *folder)
{
    struct device *items;
    char pci[16];

    if (nw_pci_normalise(name, pci) != NW_OK) {
        nw_clear_error();
        return NW_OK;
    }
    for (size_t i = devices->count; i-- > 0;)
        if (strcmp(devices->items[i].pci, pci) == 0) {
            snprintf(devices->items[i].folders[1], sizeof devices->items[i].folders[1], "%.79s",
                     folder);
            return NW_OK;
        }
    if (devices->count == NW_RAW_MAX_DEVICES)
        return nw_fail(NW_EUSAGE, "more than %d PCI devices; no machine has that many",
                       NW_RAW_MAX_DEVICES);
    items = realloc(devices->items, (devices->count + 1) * sizeof *items);
    if (items == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %zu PCI devices", devices->count + 1);
    devices->items = items;
    items[devices->count] = (struct device){.pci = ""};
    memcpy(items[devices->count].pci, pci, sizeof pci);
    snprintf(items[devices->count++].folders[0], sizeof items->folders[0], "%.79s", folder);
    return NW_OK;
}

static nw_rc add_folder(const struct nw_files *files, const char *folder, struct devices *devices)
{
    struct nw_names names;
    char path[128];
    nw_rc rc = NW_OK;

    NW_TRY(nw_files_list(files, folder, &names));
    for (size_t i = 0; i < names.count && rc == NW_OK; i++) {
        snprintf(path, sizeof path, "%.60s/%.40s", folder, names.items[i]);
        rc = add_device(devices, names.items[i], path);
    }
    nw_names_free(&names);
    return rc;
}

/* bus/pci/devices, and class/pci_bus/BUS/device below which a bus's devices are, too. */
static nw_rc find_devices(const struct nw_files *files, struct devices *devices)
{
    struct nw_names buses;
    char path[80];
    nw_rc rc;

    NW_TRY(add_folder(files, "bus/pci/devices", devices));
    NW_TRY(nw_files_list(files, "class/pci_bus", &buses));
    rc = NW_OK;
    for (size_t i = 0; i < buses.count && rc == NW_OK; i++) {
        snprintf(path, sizeof path, "class/pci_bus/%.20s/device", buses.items[i]);
        rc = add_folder(files, path, devices);
    }
    nw_names_free(&buses);
    return rc;
}

/* --- one device --- */

static bool read_of(const struct nw_files *files, const struct device *device, const char *file,
                    char *text, size_t size)
{
    for (size_t i = 0; i < 2; i++)
        if (device->folders[i][0] != '\0' &&
            nw_files_read(files, text, size, "%s/%s", device->folders[i], file))
            return true;
    return false;
}

static unsigned int read_hex(const struct nw_files *files, const struct device *device,
                             const char *file)
{
    char text[32];
    unsigned int value;

    return read_of(files, device, file, text, sizeof text) && sscanf(text, "0x%8x", &value) == 1
               ? value
               : 0;
}

/* The first name in a folder below the device, "nvme0" of nvme/; false: none. */
static bool first_below(const struct nw_files *files, const struct device *device,
                        const char *folder, char name[64])
{
    for (size_t i = 0; i < 2; i++) {
        struct nw_names names;
        char path[128];
        bool found;

        snprintf(path, sizeof path, "%s/%.40s", device->folders[i], folder);
        if (device->folders[i][0] == '\0' || nw_files_list(files, path, &names) != NW_OK)
            continue;
        found = names.count > 0;
        if (found)
            snprintf(name, 64, "%.63s", names.items[0]);
        nw_names_free(&names);
        if (found)
            return true;
    }
    return false;
}

static nw_node_kind kind_of(const struct nw_files *files, const struct device *device,
                            unsigned int class_id, char name[64])
{
    static const struct {
        const char *folder;
        nw_node_kind kind;
    } folders[] = {{"infiniband", NW_NODE_NIC}, {"net", NW_NODE_NIC}, {"nvme", NW_NODE_DISK}};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (first_below(files, device, folders[i].folder, name))
            return folders[i].kind;
    snprintf(name, 64, "%s", device->pci);
    switch (class_id) {
    case NW_PCI_CLASS_VGA:
    case NW_PCI_CLASS_3D:
    case NW_PCI_CLASS_DISPLAY:
    case NW_PCI_CLASS_ACCELERATOR: {
        const unsigned int vendor = read_hex(files, device, "vendor");

        return vendor == NW_PCI_VENDOR_NVIDIA || vendor == NW_PCI_VENDOR_AMD ? NW_NODE_GPU
                                                                             : NW_NODE_PCI;
    }
    case NW_PCI_CLASS_ETHERNET:
    case NW_PCI_CLASS_INFINIBAND:
        return NW_NODE_NIC;
    case 0x0604:
        return NW_NODE_BRIDGE;
    default:
        return NW_NODE_PCI;
    }
}

static int read_lanes(const struct nw_files *files, const struct device *device, const char *file)
{
    char text[32];
    uint64_t lanes;

    if (!read_of(files, device, file, text, sizeof text))
        return 0;
    if (nw_parse_u64(text, 1, 32, &lanes) == NW_OK)
        return (int)lanes;
    nw_clear_error(); /* 0 and 255: no link */
    return 0;
}

/* "16.0 GT/s PCIe", "16 GT/s" */
static int read_generation(const struct nw_files *files, const struct device *device,
                           const char *file)
{
    static const double rates[] = {2.5, 5, 8, 16, 32, 64};
    char text[64];
    double rate;

    if (!read_of(files, device, file, text, sizeof text) || sscanf(text, "%lf GT/s", &rate) != 1)
        return 0;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (fabs(rate - rates[i]) < 0.01)
            return (int)i + 1;
    return 0;
}

static nw_rc set_link(const struct nw_files *files, const struct device *device,
                      struct nw_topo *topo, int index)
{
    const int now = read_generation(files, device, "current_link_speed");
    const int best = read_generation(files, device, "max_link_speed");
    struct nw_topo_node *node = &topo->nodes[index];
    double rate;

    node->link_lanes = read_lanes(files, device, "current_link_width");
    node->link_max_lanes = read_lanes(files, device, "max_link_width");
    rate = nw_pcie_bytes_per_s(now, node->link_lanes);
    if (rate > 0)
        node->link_bytes_per_s = round(rate);
    rate = nw_pcie_bytes_per_s(best, node->link_max_lanes);
    if (rate > 0)
        node->link_max_bytes_per_s = round(rate);
    if (now > 0 && node->link_lanes > 0)
        NW_TRY(nw_topo_set_number(topo, index, NW_FACT_LINK_GENERATION, now, SOURCE));
    if (best > 0)
        NW_TRY(nw_topo_set_number(topo, index, NW_FACT_DEVICE_MAX_GENERATION, best, SOURCE));
    return NW_OK;
}

static nw_rc add_node(const struct nw_files *files, const struct device *device,
                      struct nw_topo *topo)
{
    const unsigned int class_id = read_hex(files, device, "class") >> 8 & 0xffff;
    char name[64], text[32], beside[64];
    const nw_node_kind kind = kind_of(files, device, class_id, name);
    const int gpus = nw_topo_count(topo, NW_NODE_GPU);
    struct nw_topo_node *node;
    int index, numa;

    NW_TRY(nw_topo_add_node(topo, kind, 0, &index));
    node = &topo->nodes[index];
    if (kind == NW_NODE_GPU)
        snprintf(name, sizeof name, "gpu%d", gpus);
    memcpy(node->name, name, sizeof node->name);
    if (strcmp(name, device->pci) != 0 && kind != NW_NODE_GPU)
        snprintf(node->os_names, sizeof node->os_names, "%.40s", name);
    if (kind == NW_NODE_NIC && first_below(files, device, "net", beside) &&
        strcmp(beside, name) != 0)
        snprintf(node->os_names, sizeof node->os_names, "%.40s %.40s", name, beside);
    memcpy(node->pci, device->pci, sizeof node->pci);
    node->pci_class = class_id;
    node->pci_vendor = read_hex(files, device, "vendor") & 0xffff;
    node->pci_device = read_hex(files, device, "device") & 0xffff;
    if (read_of(files, device, "numa_node", text, sizeof text) && sscanf(text, "%4d", &numa) == 1 &&
        numa >= 0)
        node->numa = numa;
    return set_link(files, device, topo, index);
}

/* Interfaces without RDMA: up or down, and the rate. */
static void set_plain_nic(const struct nw_files *files, const struct device *device,
                          struct nw_topo_node *node)
{
    char interface[64], path[128], text[32];
    double megabits_per_s;

    if (node->kind != NW_NODE_NIC || node->port_up >= 0 ||
        !first_below(files, device, "net", interface))
        return;
    snprintf(path, sizeof path, "net/%.60s/operstate", interface);
    if (!read_of(files, device, path, text, sizeof text) ||
        (strcmp(text, "up") != 0 && strcmp(text, "down") != 0))
        return;
    node->port_up = strcmp(text, "up") == 0;
    if (node->fabric[0] == '\0')
        snprintf(node->fabric, sizeof node->fabric, "ethernet");
    snprintf(path, sizeof path, "net/%.60s/speed", interface);
    if (node->port_up == 1 && read_of(files, device, path, text, sizeof text)) {
        if (nw_parse_double(text, 1, 1e8, &megabits_per_s) == NW_OK)
            node->rate_bits_per_s = megabits_per_s * 1e6;
        else
            nw_clear_error(); /* -1: not said */
    }
}

/* --- the file --- */

static nw_rc read_files(const struct nw_files *files, struct nw_topo *topo)
{
    struct devices devices = {.items = NULL};
    nw_rc rc = find_devices(files, &devices);

    for (size_t i = 0; i < devices.count && rc == NW_OK; i++)
        rc = add_node(files, &devices.items[i], topo);
    if (rc == NW_OK)
        rc = nw_rdma_read(files, topo);
    for (size_t i = 0; i < devices.count && rc == NW_OK; i++)
        set_plain_nic(files, &devices.items[i], &topo->nodes[i + 1]); /* 0: the machine */
    free(devices.items);
    return rc;
}

static nw_rc read_map(const json_t *map, const char *what, struct nw_topo **topo_out)
{
    struct nw_files files;
    struct nw_topo *topo = NULL;
    nw_rc rc;

    NW_TRY(nw_files_of_map(map, what, &files));
    rc = nw_topo_start(what, NW_SOURCE_SYSFS, &topo);
    if (rc == NW_OK)
        rc = read_files(&files, topo);
    nw_files_close(&files);
    if (rc == NW_OK && topo->node_count < 2)
        rc = nw_fail(NW_EUSAGE,
                     "%s: sysfs paths without a PCI or RDMA device; give those of "
                     "/sys/bus/pci/devices and /sys/class/infiniband",
                     what);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    nw_topo_clean(topo);
    *topo_out = topo;
    return NW_OK;
}

nw_rc nw_read_sysfs_dump(const char *data, size_t length, const char *what,
                         struct nw_topo **topo_out)
{
    json_error_t error;
    json_t *map = json_loadb(data, length, 0, &error);
    nw_rc rc;

    if (map == NULL)
        return nw_fail(NW_EUSAGE, "%s:%d:%d: not valid JSON: %s", what,
                       error.line > 0 ? error.line : 1, error.column > 0 ? error.column : 1,
                       error.text);
    rc = read_map(map, what, topo_out);
    json_decref(map);
    return rc;
}

/* An object whose first key is a path below /sys. */
bool nw_is_sysfs_dump(const char *data, size_t length)
{
    static const char key[] = "\"/sys/";
    size_t at = 0;

    while (at < length && data[at] != '\0' && strchr(" \t\r\n", data[at]) != NULL)
        at++;
    if (at == length || data[at++] != '{')
        return false;
    while (at < length && data[at] != '\0' && strchr(" \t\r\n", data[at]) != NULL)
        at++;
    return length - at > sizeof key && memcmp(data + at, key, sizeof key - 1) == 0;
}
