/* What hwloc does not tell of the live machine: port rates, GPU names without NVML, devices of a
 * virtual machine (PCIe: live_pci.c). Every file is optional; what can't be read
 * stays unknown. Formats: Linux Documentation/ABI (sysfs-bus-pci, sysfs-class-net,
 * sysfs-class-infiniband). */
#include "topo/read.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/system_text.h"

/* --- devices that hwloc left out --- */

static bool osdev_is_there(const struct nw_raw *raw, const char *name)
{
    for (size_t i = 0; i < raw->count; i++)
        if (raw->objects[i].type == NW_RAW_OSDEV && strcmp(raw->objects[i].name, name) == 0)
            return true;
    return false;
}

/* The innermost PCI device of a resolved path below /sys/devices; 0, the machine, when none is. */
static int parent_of_path(const struct nw_raw *raw, const char *path)
{
    int found = 0;
    char address[16];

    for (const char *part = strchr(path, '/'); part != NULL; part = strchr(part + 1, '/')) {
        const size_t length = strcspn(part + 1, "/");

        for (size_t i = 0; i < raw->count && length < sizeof address; i++)
            if (raw->objects[i].type == NW_RAW_PCI &&
                strlen(nw_raw_pci_text(&raw->objects[i], address)) == length &&
                strncmp(address, part + 1, length) == 0)
                found = (int)i;
    }
    return found;
}

static nw_rc add_osdev(const struct nw_sysfs *sysfs, const char *folder, const char *name,
                       nw_osdev osdev, struct nw_raw *raw)
{
    char link[PATH_MAX], path[PATH_MAX], text[128], kib[32];
    uint64_t sectors;
    int index;

    snprintf(link, sizeof link, "%s/%s/%s", sysfs->sys, folder, name);
    if (realpath(link, path) == NULL || strstr(path, "/devices/virtual/") != NULL)
        return NW_OK;
    if (osdev == NW_OSDEV_NETWORK && strncmp(name, "veth", 4) == 0)
        return NW_OK;
    NW_TRY(nw_raw_add(raw, NW_RAW_OSDEV, parent_of_path(raw, path), &index));
    raw->objects[index].osdev = osdev;
    snprintf(raw->objects[index].name, sizeof raw->objects[index].name, "%.63s", name);
    if (osdev != NW_OSDEV_BLOCK)
        return NW_OK;
    if (nw_system_text(text, sizeof text, "%s/%s/%s/device/model", sysfs->sys, folder, name))
        NW_TRY(nw_raw_add_info(raw, index, "Model", text));
    if (nw_system_text(text, sizeof text, "%s/%s/%s/size", sysfs->sys, folder, name) &&
        nw_parse_u64(text, 0, UINT64_MAX >> 10, &sectors) == NW_OK) { /* of 512 bytes, always */
        snprintf(kib, sizeof kib, "%llu", (unsigned long long)(sectors / 2));
        NW_TRY(nw_raw_add_info(raw, index, "Size", kib));
    }
    return NW_OK;
}

nw_rc nw_sysfs_complete(const struct nw_sysfs *sysfs, struct nw_raw *raw)
{
    static const struct {
        const char *folder;
        nw_osdev osdev;
    } folders[] = {{"class/net", NW_OSDEV_NETWORK},
                   {"class/infiniband", NW_OSDEV_RDMA},
                   {"block", NW_OSDEV_BLOCK}};
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < sizeof folders / sizeof *folders && rc == NW_OK; i++) {
        char path[PATH_MAX];
        const struct dirent *entry;
        DIR *folder;

        snprintf(path, sizeof path, "%s/%s", sysfs->sys, folders[i].folder);
        folder = opendir(path);
        while (folder != NULL && rc == NW_OK && (entry = readdir(folder)) != NULL)
            if (entry->d_name[0] != '.' && !osdev_is_there(raw, entry->d_name))
                rc = add_osdev(sysfs, folders[i].folder, entry->d_name, folders[i].osdev, raw);
        if (folder != NULL)
            closedir(folder);
    }
    return rc;
}

/* --- NICs --- */

struct ports {
    double bits_per_s;
    int up; /* as nw_topo_node.port_up */
};

static void add_port(struct ports *ports, bool up, double bits_per_s)
{
    if (up && bits_per_s > 0)
        ports->bits_per_s += bits_per_s;
    ports->up = up || ports->up == 1;
}

static void read_network(const struct nw_sysfs *sysfs, const char *name, struct ports *ports)
{
    char state[32], speed[32];
    double megabits_per_s = 0;

    if (!nw_system_text(state, sizeof state, "%s/class/net/%s/operstate", sysfs->sys, name))
        return;
    if (strcmp(state, "up") != 0 && strcmp(state, "down") != 0)
        return; /* "unknown", "dormant", …: no statement */
    if (nw_system_text(speed, sizeof speed, "%s/class/net/%s/speed", sysfs->sys, name) &&
        nw_parse_double(speed, 1, 1e8, &megabits_per_s) != NW_OK)
        megabits_per_s = 0; /* -1: the driver does not say */
    add_port(ports, strcmp(state, "up") == 0, megabits_per_s * 1e6);
}

static void read_rdma_fabric(const struct nw_sysfs *sysfs, const char *name,
                             struct nw_topo_node *node, int port)
{
    char text[64];

    if (strcmp(node->fabric, "cxi") == 0 || strcmp(node->fabric, "efa") == 0 ||
        strcmp(node->fabric, "omnipath") == 0)
        return;
    if (nw_system_text(text, sizeof text, "%s/class/infiniband/%s/node_type", sysfs->sys, name) &&
        strstr(text, "RNIC") != NULL) {
        snprintf(node->fabric, sizeof node->fabric, "iwarp");
        return;
    }
    if (!nw_system_text(text, sizeof text, "%s/class/infiniband/%s/ports/%d/link_layer", sysfs->sys,
                        name, port))
        return;
    if (strcmp(text, "InfiniBand") == 0)
        snprintf(node->fabric, sizeof node->fabric, "infiniband");
    else if (strcmp(text, "Ethernet") == 0)
        snprintf(node->fabric, sizeof node->fabric, "roce");
}

static void read_rdma(const struct nw_sysfs *sysfs, const char *name, struct nw_topo_node *node,
                      struct ports *ports)
{
    for (int port = 1; port <= 8; port++) {
        char state[32], rate[64];
        double gigabits_per_s = 0;

        if (!nw_system_text(state, sizeof state, "%s/class/infiniband/%s/ports/%d/state",
                            sysfs->sys, name, port))
            break;
        /* "200 Gb/sec (4X HDR)"; a port that is down still shows a rate, of nothing. */
        if (nw_system_text(rate, sizeof rate, "%s/class/infiniband/%s/ports/%d/rate", sysfs->sys,
                           name, port) &&
            (sscanf(rate, "%lf Gb/sec", &gigabits_per_s) != 1 ||
             !(gigabits_per_s > 0 && gigabits_per_s < 1e5)))
            gigabits_per_s = 0;
        add_port(ports, strstr(state, "ACTIVE") != NULL, gigabits_per_s * 1e9);
        if (port == 1)
            read_rdma_fabric(sysfs, name, node, port);
    }
}

static void annotate_nic(const struct nw_sysfs *sysfs, struct nw_topo_node *node)
{
    struct ports network = {.up = -1}, rdma = {.up = -1};
    char names[sizeof node->os_names], *rest = names, *name;

    snprintf(names, sizeof names, "%s", node->os_names);
    while ((name = strsep(&rest, " ")) != NULL) {
        read_network(sysfs, name, &network);
        read_rdma(sysfs, name, node, &rdma);
    }
    node->rate_bits_per_s = rdma.bits_per_s > 0 ? rdma.bits_per_s : network.bits_per_s;
    if (rdma.up >= 0 || network.up >= 0)
        node->port_up = rdma.up == 1 || network.up == 1;
}

/* --- GPUs --- */

/* NVIDIA's driver: "Model: \t\t NVIDIA H200". AMD's: mem_info_vram_total in bytes. */
static void annotate_gpu(const struct nw_sysfs *sysfs, struct nw_topo_node *node)
{
    char text[2048];
    const char *model;
    uint64_t bytes;

    if (nw_system_text(text, sizeof text, "%s/driver/nvidia/gpus/%s/information", sysfs->proc,
                       node->pci) &&
        (model = strstr(text, "Model:")) != NULL) {
        model += strlen("Model:");
        model += strspn(model, " \t");
        snprintf(node->model, sizeof node->model, "%.*s", (int)strcspn(model, "\n"), model);
    }
    if (node->memory_bytes == 0 &&
        nw_system_text(text, sizeof text, "%s/bus/pci/devices/%s/mem_info_vram_total", sysfs->sys,
                       node->pci) &&
        nw_parse_u64(text, 1, UINT64_MAX >> 8, &bytes) == NW_OK)
        node->memory_bytes = bytes;
}

/* /proc/meminfo's total, where it is more than the NUMA nodes': memory that a hypervisor plugged in
 * later is not in theirs. It counts GPUs' memory too, so not where some node holds such. */
static void annotate_memory(const struct nw_sysfs *sysfs, struct nw_topo *topo)
{
    char text[256];
    unsigned long long kib;

    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NUMA && topo->nodes[i].model[0] != '\0')
            return;
    if (!nw_system_text(text, sizeof text, "%s/meminfo", sysfs->proc) ||
        sscanf(text, "MemTotal: %16llu kB", &kib) != 1 || kib > UINT64_MAX >> 11 ||
        kib * 1024 <= topo->memory_bytes)
        return;
    topo->memory_bytes = kib * 1024;
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_MACHINE ||
            (topo->nodes[i].kind == NW_NODE_NUMA && topo->numa_count == 1))
            topo->nodes[i].memory_bytes = topo->memory_bytes;
}

void nw_sysfs_annotate(const struct nw_sysfs *sysfs, struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++) {
        struct nw_topo_node *node = &topo->nodes[i];

        if (node->kind == NW_NODE_NIC)
            annotate_nic(sysfs, node);
        if (node->kind == NW_NODE_GPU && node->pci[0] != '\0')
            annotate_gpu(sysfs, node);
    }
    annotate_memory(sysfs, topo);
    nw_clear_error(); /* texts that are no numbers mean unknown, here */
    topo->sources |= NW_SOURCE_SYSFS;
}
