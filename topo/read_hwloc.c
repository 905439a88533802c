#include "topo/read.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Discovery parts that are left out: they start a GPU's whole driver (cuda, opencl, levelzero: up
 * to seconds, and memory on the GPU), ask an X server (gl), bind to each hardware thread in turn
 * for what /sys tells already (x86), or go through libpciaccess, which leaks (pci; the PCI devices
 * come from /sys too, their names from pci_ids.c). NVML and RSMI stay: they bring NVLink and XGMI
 * where the distribution's hwloc has them. */
static const char *const left_out[] = {"cuda", "opencl", "levelzero", "gl", "x86", "pci"};

static nw_raw_type raw_type(const struct hwloc_obj *object)
{
    switch (object->type) {
    case HWLOC_OBJ_MACHINE:
        return NW_RAW_MACHINE;
    case HWLOC_OBJ_PACKAGE:
        return NW_RAW_PACKAGE;
    case HWLOC_OBJ_NUMANODE:
        return NW_RAW_NUMA;
    case HWLOC_OBJ_CORE:
        return NW_RAW_CORE;
    case HWLOC_OBJ_PU:
        return NW_RAW_PU;
    case HWLOC_OBJ_BRIDGE:
        return object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? NW_RAW_PCI_BRIDGE
                                                                          : NW_RAW_HOST_BRIDGE;
    case HWLOC_OBJ_PCI_DEVICE:
        return NW_RAW_PCI;
    case HWLOC_OBJ_OS_DEVICE:
        return NW_RAW_OSDEV;
    default:
        return NW_RAW_OTHER;
    }
}

static nw_osdev osdev_of(hwloc_obj_osdev_type_t type)
{
    static const nw_osdev table[] = {
        [HWLOC_OBJ_OSDEV_BLOCK] = NW_OSDEV_BLOCK,     [HWLOC_OBJ_OSDEV_GPU] = NW_OSDEV_GPU,
        [HWLOC_OBJ_OSDEV_NETWORK] = NW_OSDEV_NETWORK, [HWLOC_OBJ_OSDEV_OPENFABRICS] = NW_OSDEV_RDMA,
        [HWLOC_OBJ_OSDEV_DMA] = NW_OSDEV_DMA,         [HWLOC_OBJ_OSDEV_COPROC] = NW_OSDEV_COPROC,
    };

    return (size_t)type < sizeof table / sizeof *table ? table[type] : NW_OSDEV_UNKNOWN;
}

static void fill_pci(const struct hwloc_pcidev_attr_s *pci, struct nw_raw_object *raw)
{
    raw->domain = pci->domain;
    raw->bus = pci->bus;
    raw->device = pci->dev;
    raw->function = pci->func;
    raw->pci_class = pci->class_id;
    raw->pci_vendor = pci->vendor_id;
    raw->pci_device = pci->device_id;
    raw->link_bytes_per_s = round((double)pci->linkspeed * 1e9); /* hwloc: GB/s */
}

static void fill_attributes(const struct hwloc_obj *object, struct nw_raw_object *raw)
{
    switch (raw->type) {
    case NW_RAW_NUMA:
        raw->memory_bytes = object->attr->numanode.local_memory;
        break;
    case NW_RAW_HOST_BRIDGE:
        raw->domain = object->attr->bridge.downstream.pci.domain;
        raw->bus = object->attr->bridge.downstream.pci.secondary_bus;
        break;
    case NW_RAW_PCI_BRIDGE:
        fill_pci(&object->attr->bridge.upstream.pci, raw);
        break;
    case NW_RAW_PCI:
        fill_pci(&object->attr->pcidev, raw);
        break;
    case NW_RAW_OSDEV:
        raw->osdev = osdev_of(object->attr->osdev.type);
        break;
    default:
        break;
    }
}

static nw_rc copy_sets(const struct hwloc_obj *object, struct nw_raw_object *raw)
{
    if (object->nodeset != NULL)
        raw->nodeset = hwloc_bitmap_dup(object->nodeset);
    if (object->cpuset != NULL && (raw->type == NW_RAW_NUMA || raw->type == NW_RAW_MACHINE))
        raw->cpuset = hwloc_bitmap_dup(object->cpuset);
    return NW_OK;
}

static nw_rc copy_object(const struct hwloc_obj *object, int parent, struct nw_raw *raw,
                         int *index_out)
{
    struct nw_raw_object *to;

    NW_TRY(nw_raw_add(raw, raw_type(object), parent, index_out));
    to = &raw->objects[*index_out];
    if (object->os_index != HWLOC_UNKNOWN_INDEX)
        to->os_index = (int)object->os_index;
    to->id = object->gp_index;
    if (object->name != NULL)
        snprintf(to->name, sizeof to->name, "%s", object->name);
    if (object->subtype != NULL)
        snprintf(to->subtype, sizeof to->subtype, "%s", object->subtype);
    fill_attributes(object, to);
    NW_TRY(copy_sets(object, to));
    for (unsigned i = 0; i < object->infos_count; i++)
        NW_TRY(nw_raw_add_info(raw, *index_out, object->infos[i].name, object->infos[i].value));
    return NW_OK;
}

static nw_rc copy_tree(hwloc_topology_t topology, hwloc_obj_t object, int parent,
                       struct nw_raw *raw)
{
    hwloc_obj_t child = NULL;
    int index;

    NW_TRY(copy_object(object, parent, raw, &index));
    while ((child = hwloc_get_next_child(topology, object, child)) != NULL)
        NW_TRY(copy_tree(topology, child, index, raw));
    return NW_OK;
}

static int index_of_id(const struct nw_raw *raw, uint64_t id)
{
    for (size_t i = 0; i < raw->count; i++)
        if (raw->objects[i].id == id)
            return (int)i;
    return -1;
}

static nw_rc copy_matrices(hwloc_topology_t topology, struct nw_raw *raw)
{
    struct hwloc_distances_s *distances[16];
    unsigned count = sizeof distances / sizeof *distances;
    nw_rc rc = NW_OK;

    if (hwloc_distances_get(topology, &count, distances, HWLOC_DISTANCES_KIND_MEANS_BANDWIDTH, 0) !=
        0)
        return NW_OK; /* none: what is missing is judged later */
    if (count > sizeof distances / sizeof *distances)
        count = sizeof distances / sizeof *distances;
    for (unsigned i = 0; i < count; i++) {
        const char *name = hwloc_distances_get_name(topology, distances[i]);
        const size_t objects = distances[i]->nbobjs;
        struct nw_raw_matrix *matrix;

        if (rc == NW_OK && name != NULL && objects <= NW_RAW_MAX_MATRIX) {
            rc = nw_raw_add_matrix(raw, name, objects, &matrix);
            for (size_t row = 0; rc == NW_OK && row < objects; row++)
                matrix->objects[row] = index_of_id(raw, distances[i]->objs[row]->gp_index);
            for (size_t cell = 0; rc == NW_OK && cell < objects * objects; cell++)
                matrix->values[cell] = distances[i]->values[cell];
        }
        hwloc_distances_release(topology, distances[i]);
    }
    return rc;
}

static int prepare(hwloc_topology_t topology)
{
    static const hwloc_obj_type_t kept[] = {HWLOC_OBJ_PCI_DEVICE, HWLOC_OBJ_OS_DEVICE,
                                            HWLOC_OBJ_BRIDGE};

    if (hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) != 0 ||
        hwloc_topology_set_icache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) != 0)
        return -1;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (hwloc_topology_set_type_filter(topology, kept[i], HWLOC_TYPE_FILTER_KEEP_IMPORTANT) !=
            0)
            return -1;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                            left_out[i]); /* fails for a part that isn't there */
    /* What a control group hides belongs to the machine all the same. */
    return hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
}

nw_rc nw_raw_from_hwloc(struct nw_raw *raw)
{
    hwloc_topology_t topology;
    const struct hwloc_obj *root;
    nw_rc rc;

    /* hwloc writes what firmware got wrong to stderr; the judgement of it is ours. */
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    if (hwloc_topology_init(&topology) != 0)
        return nw_fail_lib(NW_ELIB, "hwloc", errno, "hwloc cannot start: %s", strerror(errno));
    if (prepare(topology) != 0 || hwloc_topology_load(topology) != 0) {
        const int error = errno;

        hwloc_topology_destroy(topology);
        return nw_fail_lib(NW_ELIB, "hwloc", error, "hwloc cannot look at this machine: %s",
                           strerror(error));
    }
    if (!hwloc_topology_is_thissystem(topology)) {
        hwloc_topology_destroy(topology);
        return nw_fail(NW_EUSAGE, "the environment makes hwloc describe another machine "
                                  "(HWLOC_XMLFILE, HWLOC_SYNTHETIC or HWLOC_FSROOT); unset it, or "
                                  "name the file: nodeworth topo --from FILE");
    }
    root = hwloc_get_root_obj(topology);
    rc = copy_tree(topology, hwloc_get_root_obj(topology), -1, raw);
    if (rc == NW_OK)
        rc = copy_matrices(topology, raw);
    raw->hwloc_version =
        (int)(HWLOC_API_VERSION >> 16) * 100 + (int)((HWLOC_API_VERSION >> 8) & 0xff);
    raw->pu_complete_count = hwloc_bitmap_weight(root->complete_cpuset);
    raw->pu_allowed_count = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology));
    snprintf(raw->source, sizeof raw->source, "live");
    hwloc_topology_destroy(topology);
    return rc;
}
