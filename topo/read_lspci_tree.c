/* The PCI tree of lspci's list: who is below whom, from the bridges' bus numbers. Goes through the
 * same list of objects as hwloc's readers, so that a device is the same kind of node there and
 * here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/classify.h"
#include "topo/link.h"
#include "topo/read.h"
#include "topo/read_lspci.h"

#define SOURCE "lspci"

struct building {
    struct nw_lspci *lspci;
    struct nw_raw raw;
    int *object_of;             /* of each device */
    int numas[NW_RAW_MAX_NUMA]; /* raw object of each NUMA node, 0: none */
    int lost;                   /* devices whose bridge is not in the text */
    char lost_buses[64];
};

static int compare_devices(const void *a, const void *b)
{
    const struct nw_lspci_device *x = a, *y = b;
    const uint64_t left = (uint64_t)x->domain << 32 | x->bus << 16 | x->device << 8 | x->function;
    const uint64_t right = (uint64_t)y->domain << 32 | y->bus << 16 | y->device << 8 | y->function;

    return left < right ? -1 : left > right;
}

/* The innermost bridge whose buses hold `bus`; -1: none. Bridges stand on lower buses than what is
 * below them, so it comes earlier in the list. */
static int bridge_above(const struct nw_lspci *lspci, size_t of)
{
    const struct nw_lspci_device *device = &lspci->devices[of];
    int best = -1;

    for (size_t i = 0; i < of; i++) {
        const struct nw_lspci_device *bridge = &lspci->devices[i];

        if (bridge->domain == device->domain && bridge->bus < device->bus &&
            bridge->secondary > (int)bridge->bus && bridge->secondary <= (int)device->bus &&
            bridge->subordinate >= (int)device->bus &&
            (best < 0 || bridge->secondary > lspci->devices[best].secondary))
            best = (int)i;
    }
    return best;
}

static nw_rc numa_object(struct building *building, int numa, int *object_out)
{
    int object = 0;

    if (numa >= 0 && numa < NW_RAW_MAX_NUMA) {
        object = building->numas[numa];
        if (object == 0) {
            NW_TRY(nw_raw_add(&building->raw, NW_RAW_NUMA, 0, &object));
            building->raw.objects[object].os_index = numa;
            building->numas[numa] = object;
        }
    }
    *object_out = object;
    return NW_OK;
}

/* Does the bus hang below a host bridge? */
static bool is_root_bus(const struct nw_lspci *lspci, size_t of)
{
    const struct nw_lspci_device *device = &lspci->devices[of];

    if (device->bus == 0)
        return true;
    for (size_t i = 0; i < lspci->count; i++)
        if (lspci->devices[i].domain == device->domain && lspci->devices[i].bus == device->bus &&
            lspci->devices[i].root_bus)
            return true;
    return false;
}

/* The NUMA node of a root bus: that of the first of its devices that has one. */
static int numa_of_bus(const struct nw_lspci *lspci, size_t of)
{
    const struct nw_lspci_device *device = &lspci->devices[of];

    for (size_t i = 0; i < lspci->count; i++)
        if (lspci->devices[i].domain == device->domain && lspci->devices[i].bus == device->bus &&
            lspci->devices[i].numa >= 0)
            return lspci->devices[i].numa;
    return -1;
}

static nw_rc host_bridge(struct building *building, size_t of, int *object_out)
{
    const struct nw_lspci_device *device = &building->lspci->devices[of];
    int numa;

    for (size_t i = 0; i < building->raw.count; i++)
        if (building->raw.objects[i].type == NW_RAW_HOST_BRIDGE &&
            building->raw.objects[i].domain == device->domain &&
            building->raw.objects[i].bus == device->bus) {
            *object_out = (int)i;
            return NW_OK;
        }
    NW_TRY(numa_object(building, numa_of_bus(building->lspci, of), &numa));
    NW_TRY(nw_raw_add(&building->raw, NW_RAW_HOST_BRIDGE, numa, object_out));
    building->raw.objects[*object_out].domain = device->domain;
    building->raw.objects[*object_out].bus = device->bus;
    return NW_OK;
}

static nw_rc parent_of(struct building *building, size_t of, int *parent_out)
{
    const struct nw_lspci_device *device = &building->lspci->devices[of];
    const int bridge = bridge_above(building->lspci, of);
    const size_t used = strlen(building->lost_buses);

    if (bridge >= 0) {
        *parent_out = building->object_of[bridge];
        return NW_OK;
    }
    if (is_root_bus(building->lspci, of))
        return host_bridge(building, of, parent_out);
    building->lost++;
    if (used >= 2 && of > 0 && building->lspci->devices[of - 1].bus == device->bus)
        return numa_object(building, device->numa, parent_out); /* named already */
    if (used < sizeof building->lost_buses - 8)
        snprintf(building->lost_buses + used, sizeof building->lost_buses - used, "%s%02x",
                 used > 0 ? ", " : "", device->bus);
    return numa_object(building, device->numa, parent_out);
}

static nw_rc add_device(struct building *building, size_t of)
{
    const struct nw_lspci_device *device = &building->lspci->devices[of];
    struct nw_raw_object *object;
    int parent, index;

    NW_TRY(parent_of(building, of, &parent));
    NW_TRY(nw_raw_add(&building->raw, device->class_id == 0x0604 ? NW_RAW_PCI_BRIDGE : NW_RAW_PCI,
                      parent, &index));
    building->object_of[of] = index;
    object = &building->raw.objects[index];
    object->domain = device->domain;
    object->bus = device->bus;
    object->device = device->device;
    object->function = device->function;
    object->pci_class = device->class_id;
    object->pci_vendor = device->vendor;
    object->pci_device = device->id;
    if (device->vendor_name[0] != '\0')
        NW_TRY(nw_raw_add_info(&building->raw, index, "PCIVendor", device->vendor_name));
    if (device->name[0] != '\0')
        NW_TRY(nw_raw_add_info(&building->raw, index, "PCIDevice", device->name));
    return NW_OK;
}

/* --- facts --- */

static void address_of(const struct nw_lspci_device *device, char text[16])
{
    snprintf(text, 16, "%04x:%02x:%02x.%01x", device->domain & 0xffff, device->bus & 0xff,
             device->device & 0x1f, device->function & 7);
}

static int node_of(const struct nw_topo *topo, const struct nw_lspci_device *device)
{
    char address[16];

    address_of(device, address);
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].pci, address) == 0)
            return (int)i;
    return -1;
}

/* Bridges that carry an ACS register though no device below them is in the text, and the one device
 * of lspci -s whatever it is. */
static nw_rc add_missing(struct building *building, struct nw_topo *topo)
{
    const struct nw_lspci *lspci = building->lspci;

    for (size_t i = 0; i < lspci->count; i++) {
        const struct nw_lspci_device *device = &lspci->devices[i];
        const bool bridge = device->class_id == 0x0604;
        const int above = bridge_above(lspci, i);
        int parent = above >= 0 ? node_of(topo, &lspci->devices[above]) : 0, index;
        struct nw_topo_node *node;

        if (node_of(topo, device) >= 0 || !(lspci->count == 1 || (bridge && device->acs >= 0)))
            continue;
        parent = parent < 0 ? 0 : parent;
        NW_TRY(nw_topo_add_node(topo, bridge ? NW_NODE_BRIDGE : NW_NODE_PCI, parent, &index));
        node = &topo->nodes[index];
        address_of(device, node->pci);
        snprintf(node->name, sizeof node->name, "%s", node->pci);
        node->pci_class = device->class_id;
        node->pci_vendor = device->vendor;
        node->pci_device = device->id;
        node->numa = device->numa;
        nw_describe_pci(&building->raw, building->object_of[i], node->model, sizeof node->model);
    }
    return NW_OK;
}

static int smaller_known(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static double rate_of(struct nw_lspci_link link)
{
    const double rate = nw_pcie_bytes_per_s(link.generation, link.lanes);

    return rate > 0 ? round(rate) : 0;
}

static nw_rc set_link(struct nw_topo *topo, int index, const struct nw_lspci_device *device,
                      const struct nw_lspci_device *above)
{
    struct nw_topo_node *node = &topo->nodes[index];
    struct nw_lspci_link best = device->can;

    /* The port right above it counts as well: only where its link is this device's. */
    if (above != NULL && above->secondary == (int)device->bus) {
        best.generation = smaller_known(best.generation, above->can.generation);
        best.lanes = smaller_known(best.lanes, above->can.lanes);
    }
    node->link_lanes = device->now.lanes;
    node->link_max_lanes = best.lanes;
    node->link_bytes_per_s = rate_of(device->now);
    node->link_max_bytes_per_s = rate_of(best);
    if (device->now.lanes > 0 && device->now.generation > 0)
        NW_TRY(nw_topo_set_number(topo, index, NW_FACT_LINK_GENERATION, device->now.generation,
                                  SOURCE));
    if (best.generation > 0)
        NW_TRY(
            nw_topo_set_number(topo, index, NW_FACT_LINK_MAX_GENERATION, best.generation, SOURCE));
    if (device->can.generation > 0)
        NW_TRY(nw_topo_set_number(topo, index, NW_FACT_DEVICE_MAX_GENERATION,
                                  device->can.generation, SOURCE));
    return NW_OK;
}

static nw_rc set_facts(const struct nw_lspci *lspci, size_t of, struct nw_topo *topo)
{
    const struct nw_lspci_device *device = &lspci->devices[of];
    const int index = node_of(topo, device), above = bridge_above(lspci, of);

    if (index < 0)
        return NW_OK;
    if (topo->nodes[index].numa < 0)
        topo->nodes[index].numa = device->numa;
    /* A ConnectX of class "Ethernet controller" may or may not run RoCE: lspci does not say. */
    if (device->vendor == NW_PCI_VENDOR_MELLANOX && device->class_id == NW_PCI_CLASS_ETHERNET)
        topo->nodes[index].fabric[0] = '\0';
    if (topo->nodes[index].model[0] == '\0')
        nw_squeeze(device->name, topo->nodes[index].model, sizeof topo->nodes[index].model);
    NW_TRY(set_link(topo, index, device, above >= 0 ? &lspci->devices[above] : NULL));
    NW_TRY(nw_topo_set_text(topo, index, NW_FACT_PCI_DRIVER, device->driver, SOURCE));
    if (device->iommu_group >= 0)
        NW_TRY(nw_topo_set_number(topo, index, NW_FACT_IOMMU_GROUP, device->iommu_group, SOURCE));
    /* The functions of a card have the register too; peer traffic passes bridges. */
    if (device->acs >= 0 && device->class_id == 0x0604)
        NW_TRY(nw_topo_set_number(topo, index, NW_FACT_ACS, device->acs, SOURCE));
    return NW_OK;
}

static nw_rc say(const struct building *building, struct nw_topo *topo)
{
    const struct nw_lspci *lspci = building->lspci;

    if (lspci->denied > 0)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_INFO, "not-checked", topo->source,
                               "run it as root: sudo lspci -vvv",
                               "links and ACS of %d devices were not read: lspci ran without root",
                               lspci->denied));
    if (lspci->count > 1 && (building->lost > 0 || lspci->cut))
        NW_TRY(nw_findings_add(
            &topo->findings, NW_FINDING_INFO, "file-cut", topo->source,
            "save the whole output: sudo lspci -vvv > FILE",
            "is a part of lspci's list%s%s: what is above those devices is unknown",
            building->lost > 0 ? "; bridges are missing above buses " : "", building->lost_buses));
    return NW_OK;
}

static nw_rc finish(struct building *building, const char *what, struct nw_topo *topo)
{
    int gpus = 0;

    snprintf(topo->source, sizeof topo->source, "%s", what);
    topo->sources = NW_SOURCE_LSPCI;
    topo->gaps = NW_TOPO_PARTIAL;
    NW_TRY(add_missing(building, topo));
    for (size_t i = 0; i < building->lspci->count; i++)
        NW_TRY(set_facts(building->lspci, i, topo));
    for (size_t i = 0; i < topo->node_count; i++)
        gpus += topo->nodes[i].kind == NW_NODE_GPU && nw_topo_is_nvidia(&topo->nodes[i]);
    if (gpus > 1)
        topo->gaps |= NW_TOPO_NO_NVLINK;
    NW_TRY(say(building, topo));
    nw_topo_clean(topo);
    return NW_OK;
}

static nw_rc build(struct building *building, const char *what, struct nw_topo **topo_out)
{
    struct nw_lspci *lspci = building->lspci;
    int machine;
    nw_rc rc;

    qsort(lspci->devices, lspci->count, sizeof *lspci->devices, compare_devices);
    NW_TRY(nw_raw_add(&building->raw, NW_RAW_MACHINE, -1, &machine));
    for (size_t i = 0; i < lspci->count; i++)
        NW_TRY(add_device(building, i));
    NW_TRY(nw_topo_build(&building->raw, topo_out));
    rc = finish(building, what, *topo_out);
    if (rc != NW_OK) {
        nw_topo_free(*topo_out);
        *topo_out = NULL;
    }
    return rc;
}

nw_rc nw_lspci_build(struct nw_lspci *lspci, const char *what, struct nw_topo **topo_out)
{
    struct building *building = calloc(1, sizeof *building);
    struct nw_topo *topo = NULL;
    nw_rc rc;

    if (building == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for the PCI tree", what);
    building->lspci = lspci;
    building->object_of = calloc(lspci->count + 1, sizeof *building->object_of);
    nw_raw_init(&building->raw);
    if (building->object_of == NULL)
        rc = nw_fail(NW_ENOMEM, "%s: out of memory for %zu PCI devices", what, lspci->count);
    else
        rc = build(building, what, &topo);
    nw_raw_free(&building->raw);
    free(building->object_of);
    free(building);
    if (rc == NW_OK)
        *topo_out = topo;
    return rc;
}
