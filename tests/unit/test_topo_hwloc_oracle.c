/* Our reading of hwloc XML against libhwloc's own import of the same file. libhwloc 2.9 refuses
 * version 3; those files are held against their known reading only (test_topo_hwloc_xml.c). */
#include <criterion/criterion.h>
#include <hwloc.h>
#include <stdlib.h>

#include "tests/unit/topo_machines.h"
#include "topo/topo.h"

static bool import(const char *path, hwloc_topology_t *topology_out)
{
    hwloc_topology_t topology;

    setenv("HWLOC_XML_VERBOSE", "0", 1);
    setenv("HWLOC_HIDE_ERRORS", "2", 1);
    cr_assert_eq(hwloc_topology_init(&topology), 0);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_set_xml(topology, path) != 0 || hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return false;
    }
    *topology_out = topology;
    return true;
}

static uint64_t memory_of_node(hwloc_topology_t topology, int os_index)
{
    hwloc_obj_t numa = hwloc_get_numanode_obj_by_os_index(topology, (unsigned)os_index);

    cr_assert_not_null(numa);
    return numa->attr->numanode.local_memory;
}

/* The only NUMA node near a PCI device by libhwloc; -1: none or several. */
static int numa_of_device(hwloc_topology_t topology, const char *pci)
{
    hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology, pci);
    hwloc_obj_t near;

    cr_assert_not_null(device, "libhwloc has no %s", pci);
    near = hwloc_get_non_io_ancestor_obj(topology, device);
    return hwloc_bitmap_weight(near->nodeset) == 1 ? hwloc_bitmap_first(near->nodeset) : -1;
}

/* libhwloc drops the nodes without memory of a version 1 file; they are places all the same. */
static int numa_nodes_with_memory(const struct nw_topo *topo)
{
    int count = 0;

    for (size_t i = 0; i < topo->node_count; i++)
        count += topo->nodes[i].kind == NW_NODE_NUMA && topo->nodes[i].memory_bytes > 0;
    return count;
}

static void compare(const char *name, const struct nw_topo *topo, hwloc_topology_t topology)
{
    const struct {
        const char *what;
        int ours;
        hwloc_obj_type_t type;
    } counts[] = {{"packages", topo->package_count, HWLOC_OBJ_PACKAGE},
                  {"NUMA nodes", numa_nodes_with_memory(topo), HWLOC_OBJ_NUMANODE},
                  {"cores", topo->core_count, HWLOC_OBJ_CORE},
                  {"threads", topo->pu_count, HWLOC_OBJ_PU}};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        cr_expect_eq(counts[i].ours, hwloc_get_nbobjs_by_type(topology, counts[i].type),
                     "%s: %d %s, libhwloc %d", name, counts[i].ours, counts[i].what,
                     hwloc_get_nbobjs_by_type(topology, counts[i].type));
    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];

        if (node->kind == NW_NODE_NUMA && node->memory_bytes > 0)
            cr_expect_eq(node->memory_bytes, memory_of_node(topology, node->numa),
                         "%s: memory of %s", name, node->name);
        if (node->kind == NW_NODE_GPU && node->pci[0] != '\0')
            cr_expect_eq(node->numa, numa_of_device(topology, node->pci), "%s: %s on NUMA %d", name,
                         node->name, node->numa);
    }
}

Test(topo_hwloc_oracle, agrees_with_libhwloc_on_versions_1_and_2)
{
    int compared = 0;

    for (int i = 0; i < MACHINE_COUNT; i++) {
        hwloc_topology_t topology;
        struct nw_topo *topo;
        char path[1024];

        if (!machine_path(all_machines[i], path, sizeof path) || !import(path, &topology))
            continue;
        cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s", nw_last_error()->text);
        compare(all_machines[i], topo, topology);
        compared++;
        nw_topo_free(topo);
        hwloc_topology_destroy(topology);
    }
    cr_expect_geq(compared, 5, "only %d files compared", compared);
}
