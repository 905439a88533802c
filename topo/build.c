/* From what a reader found to what the machine is: which PCI device is a GPU, a NIC, a disk; which
 * NUMA node it is near; which bridges are worth keeping. */
#include "topo/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/classify.h"

struct building {
    const struct nw_raw *raw;
    struct nw_topo *topo;
    int *node_of;              /* raw index to node index, -1 */
    struct nw_device *devices; /* in final order */
    size_t device_count;
};

nw_rc nw_topo_add_node(struct nw_topo *topo, nw_node_kind kind, int parent, int *index_out)
{
    struct nw_topo_node *nodes = realloc(topo->nodes, (topo->node_count + 1) * sizeof *topo->nodes);

    if (nodes == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %zu topology nodes", topo->node_count + 1);
    topo->nodes = nodes;
    nodes[topo->node_count] =
        (struct nw_topo_node){.kind = kind, .parent = parent, .numa = -1, .port_up = -1};
    *index_out = (int)topo->node_count++;
    return NW_OK;
}

static int ancestor_of_type(const struct nw_raw *raw, int index, nw_raw_type type)
{
    while (index >= 0 && raw->objects[index].type != type)
        index = raw->objects[index].parent;
    return index;
}

/* --- machine, packages, NUMA nodes --- */

static nw_rc add_machine(struct building *building)
{
    static const char *const product_keys[] = {"DMIProductName", "PlatformModel"};
    struct nw_topo *topo = building->topo;
    const char *host = nw_raw_info(building->raw, 0, "HostName");
    const char *system = nw_raw_info(building->raw, 0, "OSName");
    const char *release = nw_raw_info(building->raw, 0, "OSRelease");
    struct nw_topo_node *machine;
    int index;

    NW_TRY(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &index));
    building->node_of[0] = index;
    machine = &topo->nodes[index];
    snprintf(topo->host, sizeof topo->host, "%s", host != NULL ? host : "");
    if (system != NULL)
        snprintf(topo->os, sizeof topo->os, "%.60s%s%.60s", system, release != NULL ? " " : "",
                 release != NULL ? release : "");
    snprintf(machine->name, sizeof machine->name, "machine");
    for (size_t i = 0; i < sizeof product_keys / sizeof *product_keys; i++) {
        const char *product = nw_raw_info(building->raw, 0, product_keys[i]);

        if (product != NULL && machine->model[0] == '\0')
            nw_squeeze(product, machine->model, sizeof machine->model);
    }
    return NW_OK;
}

static nw_rc add_packages(struct building *building)
{
    const struct nw_raw *raw = building->raw;
    struct nw_topo *topo = building->topo;

    for (size_t i = 0; i < raw->count; i++) {
        const char *cpu = nw_raw_info(raw, (int)i, "CPUModel");
        int index;

        if (raw->objects[i].type != NW_RAW_PACKAGE)
            continue;
        NW_TRY(nw_topo_add_node(topo, NW_NODE_PACKAGE, 0, &index));
        building->node_of[i] = index;
        snprintf(topo->nodes[index].name, sizeof topo->nodes[index].name, "package%d",
                 topo->package_count++);
        if (cpu != NULL)
            nw_squeeze(cpu, topo->nodes[index].model, sizeof topo->nodes[index].model);
    }
    for (size_t i = 0; i < raw->count; i++) {
        const int package = ancestor_of_type(raw, (int)i, NW_RAW_PACKAGE);
        const int node = package >= 0 ? building->node_of[package] : 0;
        const nw_raw_type type = raw->objects[i].type;

        topo->core_count += type == NW_RAW_CORE;
        topo->pu_count += type == NW_RAW_PU;
        if (node > 0) {
            topo->nodes[node].core_count += type == NW_RAW_CORE;
            topo->nodes[node].pu_count += type == NW_RAW_PU;
        }
    }
    topo->nodes[0].core_count = topo->core_count;
    topo->nodes[0].pu_count = topo->pu_count;
    return NW_OK;
}

enum { NONE = -1, SEVERAL = -2 };

/* For each NUMA node the package that holds all its hardware threads: raw index, or SEVERAL where
 * one node spans packages. A node without threads is where the tree has it. */
static void find_packages(const struct nw_raw *raw, int *package_of)
{
    for (size_t n = 0; n < raw->numa_count; n++)
        package_of[n] = NONE;
    for (size_t i = 0; i < raw->count; i++) {
        int numa, package;

        if (raw->objects[i].type != NW_RAW_PU)
            continue;
        numa = nw_raw_numa(raw, (int)i);
        package = ancestor_of_type(raw, (int)i, NW_RAW_PACKAGE);
        for (size_t n = 0; n < raw->numa_count && numa >= 0 && package >= 0; n++)
            if (raw->objects[raw->numas[n]].os_index == numa)
                package_of[n] =
                    package_of[n] == NONE || package_of[n] == package ? package : SEVERAL;
    }
    for (size_t n = 0; n < raw->numa_count; n++)
        if (package_of[n] == NONE)
            package_of[n] = ancestor_of_type(raw, raw->numas[n], NW_RAW_PACKAGE);
}

static nw_rc add_numa_node(struct building *building, int object, int package)
{
    const struct nw_raw_object *raw = &building->raw->objects[object];
    struct nw_topo *topo = building->topo;
    struct nw_topo_node *node;
    int index;

    NW_TRY(nw_topo_add_node(topo, NW_NODE_NUMA, package >= 0 ? building->node_of[package] : 0,
                            &index));
    building->node_of[object] = index;
    node = &topo->nodes[index];
    node->numa = raw->os_index;
    node->memory_bytes = raw->memory_bytes;
    snprintf(node->name, sizeof node->name, "numa%d", raw->os_index);
    snprintf(node->model, sizeof node->model, "%s", nw_raw_memory_kind(building->raw, object));
    if (node->model[0] == '\0')
        topo->memory_bytes += raw->memory_bytes;
    topo->numa_count++;
    return NW_OK;
}

static nw_rc add_numa_nodes(struct building *building)
{
    const struct nw_raw *raw = building->raw;
    struct nw_topo *topo = building->topo;
    int *package_of = calloc(raw->numa_count + 1, sizeof *package_of);
    nw_rc rc = NW_OK;

    if (package_of == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the NUMA nodes");
    find_packages(raw, package_of);
    for (size_t n = 0; n < raw->numa_count && rc == NW_OK; n++)
        rc = add_numa_node(building, raw->numas[n], package_of[n]);
    free(package_of);
    if (topo->numa_count == 0)
        topo->memory_bytes = raw->objects[0].memory_bytes; /* version 1 without NUMA nodes */
    topo->nodes[0].memory_bytes = topo->memory_bytes;
    return rc;
}

/* --- bridges and devices --- */

static int numa_node_index(const struct nw_topo *topo, int numa)
{
    for (size_t i = 0; i < topo->node_count && numa >= 0; i++)
        if (topo->nodes[i].kind == NW_NODE_NUMA && topo->nodes[i].numa == numa)
            return (int)i;
    return -1;
}

/* Nearest bridge that was kept, else the NUMA node, the package, the machine. */
static int parent_node(const struct building *building, int index)
{
    const struct nw_raw *raw = building->raw;
    int numa, package;

    for (int up = raw->objects[index].parent; up >= 0; up = raw->objects[up].parent)
        if (building->node_of[up] > 0 &&
            building->topo->nodes[building->node_of[up]].kind == NW_NODE_BRIDGE)
            return building->node_of[up];
    numa = numa_node_index(building->topo, nw_raw_numa(raw, index));
    if (numa >= 0)
        return numa;
    package = ancestor_of_type(raw, index, NW_RAW_PACKAGE);
    return package >= 0 ? building->node_of[package] : 0;
}

static void fill_pci(const struct nw_raw_object *object, struct nw_topo_node *node)
{
    if (object->type == NW_RAW_HOST_BRIDGE)
        return;
    nw_raw_pci_text(object, node->pci);
    node->pci_class = object->pci_class;
    node->pci_vendor = object->pci_vendor;
    node->pci_device = object->pci_device;
    node->link_bytes_per_s = object->link_bytes_per_s;
}

static nw_rc add_bridges(struct building *building)
{
    const struct nw_raw *raw = building->raw;
    struct nw_topo *topo = building->topo;
    bool *wanted = calloc(raw->count, sizeof *wanted);
    nw_rc rc = NW_OK;

    if (wanted == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the PCI tree");
    for (size_t i = 0; i < building->device_count; i++)
        for (int up = building->devices[i].object; up >= 0; up = raw->objects[up].parent)
            wanted[up] = true;
    for (size_t i = 0; i < raw->count && rc == NW_OK; i++) {
        const struct nw_raw_object *object = &raw->objects[i];
        int index;

        if (!wanted[i] || (object->type != NW_RAW_HOST_BRIDGE && object->type != NW_RAW_PCI_BRIDGE))
            continue;
        rc = nw_topo_add_node(topo, NW_NODE_BRIDGE, parent_node(building, (int)i), &index);
        if (rc != NW_OK)
            break;
        building->node_of[i] = index;
        topo->nodes[index].numa = nw_raw_numa(raw, (int)i);
        fill_pci(object, &topo->nodes[index]);
        nw_describe_pci(raw, (int)i, topo->nodes[index].model, sizeof topo->nodes[index].model);
        if (object->type == NW_RAW_HOST_BRIDGE)
            snprintf(topo->nodes[index].name, sizeof topo->nodes[index].name, "pci%04x:%02x",
                     object->domain & 0xfffffff, object->bus & 0xff);
        else
            snprintf(topo->nodes[index].name, sizeof topo->nodes[index].name, "%s",
                     topo->nodes[index].pci);
    }
    free(wanted);
    return rc;
}

static nw_rc add_devices(struct building *building)
{
    int gpu_count = 0;

    for (size_t i = 0; i < building->device_count; i++) {
        const struct nw_device *device = &building->devices[i];
        const int object = device->object;
        struct nw_topo_node *node;
        int index;

        NW_TRY(
            nw_topo_add_node(building->topo, device->kind, parent_node(building, object), &index));
        building->node_of[object] = index;
        node = &building->topo->nodes[index];
        node->numa = nw_raw_numa(building->raw, object);
        nw_describe_device(building->raw, device, node);
        if (building->raw->objects[object].type == NW_RAW_PCI)
            fill_pci(&building->raw->objects[object], node);
        if (device->kind == NW_NODE_GPU)
            snprintf(node->name, sizeof node->name, "gpu%d", gpu_count++);
        for (size_t os = 0; os < device->osdev_count; os++)
            building->node_of[device->osdevs[os]] = index;
    }
    return NW_OK;
}

static void set_gaps(struct building *building)
{
    const struct nw_raw *raw = building->raw;
    struct nw_topo *topo = building->topo;
    bool io = false;

    for (size_t i = 0; i < raw->count; i++)
        io |= raw->objects[i].type >= NW_RAW_HOST_BRIDGE;
    if (!io)
        topo->gaps |= NW_TOPO_NO_IO;
    topo->pu_complete_count = raw->pu_complete_count;
    topo->pu_allowed_count = raw->pu_allowed_count;
    if (topo->pu_count < topo->pu_complete_count ||
        (topo->pu_allowed_count > 0 && topo->pu_allowed_count < topo->pu_count))
        topo->gaps |= NW_TOPO_RESTRICTED;
}

static nw_rc build(struct building *building)
{
    struct nw_topo *topo = building->topo;

    NW_TRY(add_machine(building));
    NW_TRY(add_packages(building));
    NW_TRY(add_numa_nodes(building));
    NW_TRY(nw_find_devices(building->raw, &building->devices, &building->device_count));
    NW_TRY(add_bridges(building));
    NW_TRY(add_devices(building));
    set_gaps(building);
    NW_TRY(nw_topo_build_links(building->raw, building->node_of, topo));
    snprintf(topo->source, sizeof topo->source, "%s", building->raw->source);
    topo->sources = NW_SOURCE_HWLOC | (building->raw->format > 0 ? NW_SOURCE_XML : 0u);
    return NW_OK;
}

nw_rc nw_topo_build(struct nw_raw *raw, struct nw_topo **topo_out)
{
    struct building building = {.raw = raw, .topo = calloc(1, sizeof *building.topo)};
    nw_rc rc = nw_raw_finish(raw);

    building.node_of = calloc(raw->count, sizeof *building.node_of);
    if (rc == NW_OK && (building.topo == NULL || building.node_of == NULL))
        rc = nw_fail(NW_ENOMEM, "out of memory for the topology");
    for (size_t i = 0; i < raw->count && building.node_of != NULL; i++)
        building.node_of[i] = -1;
    if (rc == NW_OK)
        rc = build(&building);
    free(building.node_of);
    nw_devices_free(building.devices, building.device_count);
    if (rc != NW_OK) {
        nw_topo_free(building.topo);
        return rc;
    }
    *topo_out = building.topo;
    return NW_OK;
}
