/* From the elements of NCCL's topology file to nodes: NUMA nodes, bridges, then GPUs, NICs and
 * other devices, each in the order of their numbers, else of their PCI addresses. */
#include "topo/read_nccl_xml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/classify.h"
#include "topo/link.h"

enum { PCI_CLASS_BRIDGE = 0x0604, PCI_CLASS_HOST_BRIDGE = 0x0600 };

struct building {
    struct nw_nccl_file *file;
    struct nw_topo *topo;
    bool *has_pci, *has_gpu, *has_net; /* of each element: is there one below it */
    int *order;                        /* elements, sorted; scratch */
    uint64_t hosts[128];
    int host_count;
};

/* --- machine and NUMA nodes --- */

static int host_of(const struct building *building, int element)
{
    const int cpu = nw_nccl_above(building->file, element, NW_NCCL_CPU);

    for (int i = 0; i < building->host_count && cpu >= 0; i++)
        if (building->hosts[i] == building->file->elements[cpu].host_hash)
            return i;
    return 0;
}

static nw_rc find_hosts(struct building *building)
{
    const int most = (int)(sizeof building->hosts / sizeof *building->hosts);

    for (size_t i = 0; i < building->file->count; i++) {
        const struct nw_nccl_element *element = &building->file->elements[i];
        int host = 0;

        if (element->kind != NW_NCCL_CPU)
            continue;
        while (host < building->host_count && building->hosts[host] != element->host_hash)
            host++;
        if (host < building->host_count)
            continue;
        if (building->host_count == most)
            return nw_nccl_fail(building->file, element, "more than %d hosts in one file", most);
        building->hosts[building->host_count++] = element->host_hash;
    }
    building->file->hosts = building->host_count > 1;
    return NW_OK;
}

static nw_rc add_cpu(struct building *building, int index)
{
    struct nw_nccl_element *cpu = &building->file->elements[index];
    struct nw_topo *topo = building->topo;
    const int host = host_of(building, index);
    char text[128], name[64];

    if (cpu->capability >= 0 && cpu->model_id >= 0) {
        snprintf(text, sizeof text, "%.40s family %d model %d", cpu->text, cpu->capability,
                 cpu->model_id);
        NW_TRY(nw_topo_set_text(topo, 0, NW_FACT_CPU, text, NW_NCCL_SOURCE));
    }
    cpu->node = 0;
    if (cpu->number < 0)
        return NW_OK; /* a virtual machine that does not say */
    if (building->file->hosts)
        snprintf(name, sizeof name, "host%d-numa%d", host, cpu->number);
    else
        snprintf(name, sizeof name, "numa%d", cpu->number);
    for (size_t i = 1; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].name, name) == 0) {
            cpu->node = (int)i;
            return NW_OK;
        }
    NW_TRY(nw_topo_add_node(topo, NW_NODE_NUMA, 0, &cpu->node));
    topo->nodes[cpu->node].numa = cpu->number;
    snprintf(topo->nodes[cpu->node].name, sizeof topo->nodes[cpu->node].name, "%s", name);
    topo->numa_count++;
    if (!building->file->hosts)
        return NW_OK;
    snprintf(text, sizeof text, "0x%016llx", (unsigned long long)cpu->host_hash);
    return nw_topo_set_text(topo, cpu->node, NW_FACT_HOST_HASH, text, NW_NCCL_SOURCE);
}

static nw_rc add_machine(struct building *building)
{
    struct nw_topo *topo = building->topo;
    int machine;

    NW_TRY(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &machine));
    snprintf(topo->nodes[0].name, sizeof topo->nodes[0].name, "machine");
    snprintf(topo->nodes[0].model, sizeof topo->nodes[0].model, "%s", building->file->platform);
    NW_TRY(find_hosts(building));
    for (size_t i = 0; i < building->file->count; i++)
        if (building->file->elements[i].kind == NW_NCCL_CPU)
            NW_TRY(add_cpu(building, (int)i));
    if (building->file->hosts)
        return nw_findings_add(&topo->findings, NW_FINDING_INFO, "several-hosts", "", NULL,
                               "%d hosts of one NVLink domain are in this file",
                               building->host_count);
    return NW_OK;
}

/* --- what a <pci> is --- */

static bool is_gpu(const struct building *building, int index)
{
    const struct nw_nccl_element *pci = &building->file->elements[index];

    if (building->has_gpu[index])
        return true;
    if (pci->pci_vendor == NW_PCI_VENDOR_AMD)
        return pci->pci_class == NW_PCI_CLASS_DISPLAY ||
               pci->pci_class == NW_PCI_CLASS_ACCELERATOR || pci->pci_class == NW_PCI_CLASS_3D ||
               pci->pci_class == NW_PCI_CLASS_VGA;
    return (pci->pci_vendor == NW_PCI_VENDOR_NVIDIA || pci->pci_vendor == 0) &&
           (pci->pci_class == NW_PCI_CLASS_VGA || pci->pci_class == NW_PCI_CLASS_3D);
}

static nw_node_kind kind_of(const struct building *building, int index)
{
    const uint32_t class_id = building->file->elements[index].pci_class;

    if (is_gpu(building, index))
        return NW_NODE_GPU;
    if (building->has_pci[index] || class_id == PCI_CLASS_BRIDGE ||
        class_id == PCI_CLASS_HOST_BRIDGE)
        return NW_NODE_BRIDGE;
    if (building->has_net[index] || class_id >> 8 == 0x02 ||
        class_id == NW_PCI_CLASS_INFINIBAND_OLD)
        return NW_NODE_NIC;
    return NW_NODE_PCI;
}

/* Templates that name addresses only, and which addresses are what on that type: nvidia-smi and
 * lspci on the instance. */
static nw_rc name_by_platform(struct building *building)
{
    static const struct {
        const char *platform, *first_gpu, *last_gpu, *nic;
    } rows[] = {{"g5.48xlarge", "0000:00:16.0", "0000:00:1d.0", "0000:00:15.0"}};
    const struct nw_nccl_file *file = building->file;

    for (size_t i = 0; i < file->count; i++)
        if (file->elements[i].kind == NW_NCCL_PCI && file->elements[i].pci_class != 0)
            return NW_OK;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        if (strcmp(rows[row].platform, file->platform) != 0)
            continue;
        for (size_t i = 0; i < file->count; i++) {
            struct nw_nccl_element *pci = &file->elements[i];

            if (pci->kind != NW_NCCL_PCI)
                continue;
            if (strcmp(pci->name, rows[row].first_gpu) >= 0 &&
                strcmp(pci->name, rows[row].last_gpu) <= 0)
                pci->pci_class = NW_PCI_CLASS_3D;
            else if (strcmp(pci->name, rows[row].nic) == 0)
                pci->pci_class = NW_PCI_CLASS_ETHERNET;
        }
        return nw_findings_add(&building->topo->findings, NW_FINDING_INFO, "class-by-address", "",
                               NULL,
                               "this template names PCI addresses only; which are GPUs is known "
                               "from the instance type %s that its comment names",
                               file->platform);
    }
    return NW_OK;
}

/* --- nodes --- */

static int parent_of(const struct building *building, int index)
{
    for (int up = building->file->elements[index].parent; up >= 0;
         up = building->file->elements[up].parent)
        if (building->file->elements[up].node >= 0)
            return building->file->elements[up].node;
    return 0;
}

static int numa_of(const struct building *building, int index)
{
    const int cpu = nw_nccl_above(building->file, index, NW_NCCL_CPU);

    return cpu >= 0 ? building->file->elements[cpu].number : -1;
}

/* NCCL writes the lesser of what device and slot can do, not the speed of the moment. */
static nw_rc set_link(struct nw_topo *topo, int node, const struct nw_nccl_element *pci)
{
    const double rate = nw_pcie_bytes_per_s(pci->generation, pci->lanes);

    topo->nodes[node].link_max_lanes = pci->lanes;
    topo->nodes[node].link_max_bytes_per_s = isfinite(rate) ? rate : 0;
    if (pci->generation == 0)
        return NW_OK;
    return nw_topo_set_number(topo, node, NW_FACT_LINK_MAX_GENERATION, pci->generation,
                              NW_NCCL_SOURCE);
}

static nw_rc add_pci_node(struct building *building, int index, nw_node_kind kind, int *node_out)
{
    struct nw_nccl_element *pci = &building->file->elements[index];
    struct nw_topo *topo = building->topo;
    struct nw_topo_node *node;

    NW_TRY(nw_topo_add_node(topo, kind, parent_of(building, index), node_out));
    node = &topo->nodes[*node_out];
    pci->node = *node_out;
    snprintf(node->name, sizeof node->name, "%s", pci->name);
    snprintf(node->pci, sizeof node->pci, "%.15s", pci->name);
    snprintf(node->model, sizeof node->model, "%s",
             nw_nccl_device_name(pci->pci_vendor, pci->pci_device));
    node->pci_class = pci->pci_class;
    /* A cloud's template writes 0x0000 or 0xffff for switches that it made up. */
    node->pci_vendor = pci->pci_vendor != 0xffff ? pci->pci_vendor : 0;
    node->pci_device = pci->pci_device != 0xffff ? pci->pci_device : 0;
    node->numa = numa_of(building, index);
    return set_link(topo, *node_out, pci);
}

static const struct nw_nccl_element *child_of(const struct nw_nccl_file *file, int index,
                                              nw_nccl_kind kind)
{
    for (size_t i = (size_t)index + 1; i < file->count; i++) {
        if (file->elements[i].parent < index)
            return NULL; /* past its subtree */
        if (file->elements[i].parent == index && file->elements[i].kind == kind)
            return &file->elements[i];
    }
    return NULL;
}

static nw_rc add_gpu(struct building *building, int index, int number)
{
    const struct nw_nccl_element *gpu = child_of(building->file, index, NW_NCCL_GPU);
    struct nw_topo *topo = building->topo;
    struct nw_topo_node *node;
    int at;

    NW_TRY(add_pci_node(building, index, NW_NODE_GPU, &at));
    node = &topo->nodes[at];
    snprintf(node->name, sizeof node->name, "gpu%d", number);
    if (gpu == NULL)
        return NW_OK;
    if (gpu->number >= 0)
        NW_TRY(nw_topo_set_number(topo, at, NW_FACT_GPU_INDEX, gpu->number, NW_NCCL_SOURCE));
    if (gpu->gdr >= 0)
        NW_TRY(nw_topo_set_number(topo, at, NW_FACT_GDR, gpu->gdr != 0, NW_NCCL_SOURCE));
    if (gpu->text[0] != '\0') { /* RCCL: "910" or "gfx942"; its sm counts compute units */
        if (node->pci_vendor == 0)
            node->pci_vendor = NW_PCI_VENDOR_AMD;
        if (node->model[0] == '\0')
            snprintf(node->model, sizeof node->model, "AMD GPU (%s%.40s)",
                     strncmp(gpu->text, "gfx", 3) == 0 ? "" : "gfx", gpu->text);
        return NW_OK;
    }
    if (node->pci_vendor == 0 && gpu->capability > 0)
        node->pci_vendor = NW_PCI_VENDOR_NVIDIA;
    if (gpu->capability >= 0 && node->pci_vendor == NW_PCI_VENDOR_NVIDIA)
        NW_TRY(nw_topo_set_number(topo, at, NW_FACT_CAPABILITY, gpu->capability, NW_NCCL_SOURCE));
    return NW_OK;
}

/* Its own number, where every GPU of one host has another; else the place in the list. */
static bool own_numbers(const struct building *building, int count)
{
    bool seen[NW_NCCL_MAX_GPUS] = {false};

    for (int i = 0; i < count; i++) {
        const struct nw_nccl_element *gpu =
            child_of(building->file, building->order[i], NW_NCCL_GPU);

        if (gpu == NULL || gpu->number < 0 || gpu->number >= NW_NCCL_MAX_GPUS || seen[gpu->number])
            return false;
        seen[gpu->number] = true;
    }
    return true;
}

static int number_of(const struct nw_nccl_file *file, int index, nw_nccl_kind kind)
{
    const struct nw_nccl_element *child = child_of(file, index, kind);

    return child != NULL && child->number >= 0 ? child->number : 1000000;
}

static int by_number_and_address(const void *a, const void *b, void *arg)
{
    const struct building *building = arg;
    const struct nw_nccl_file *file = building->file;
    const int x = *(const int *)a, y = *(const int *)b;
    const int keys[][2] = {
        {host_of(building, x), host_of(building, y)},
        {number_of(file, x, NW_NCCL_GPU), number_of(file, y, NW_NCCL_GPU)},
        {strcmp(file->elements[x].name, file->elements[y].name), 0},
        {x, y},
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

/* The <pci> of one kind into building->order, sorted. */
static int collect(struct building *building, nw_node_kind kind)
{
    int count = 0;

    for (size_t i = 0; i < building->file->count; i++)
        if (building->file->elements[i].kind == NW_NCCL_PCI && kind_of(building, (int)i) == kind)
            building->order[count++] = (int)i;
    if (count > 1 && kind != NW_NODE_BRIDGE) /* bridges: parents first, as the file has them */
        qsort_r(building->order, (size_t)count, sizeof *building->order, by_number_and_address,
                building);
    return count;
}

static nw_rc tell_missing_numbers(struct building *building, const struct nw_nccl_element *last,
                                  int count)
{
    return nw_findings_add(&building->topo->findings, NW_FINDING_INFO, "gpus-left-out", "",
                           "run NCCL on all GPUs to see them all",
                           "the GPUs have numbers up to %d, but only %d are in this file: NCCL "
                           "lists the GPUs of its ranks only",
                           last->number, count);
}

static nw_rc add_gpus(struct building *building)
{
    const int count = collect(building, NW_NODE_GPU);
    const struct nw_nccl_element *last;
    bool own;

    if (count > NW_NCCL_MAX_GPUS)
        return nw_fail(NW_EUSAGE, "%s: more than %d GPUs: this is no machine's topology",
                       building->file->what, (int)NW_NCCL_MAX_GPUS);
    own = own_numbers(building, count);
    for (int i = 0; i < count; i++)
        NW_TRY(add_gpu(building, building->order[i],
                       own ? number_of(building->file, building->order[i], NW_NCCL_GPU) : i));
    if (count == 0 || !own)
        return NW_OK;
    last = child_of(building->file, building->order[count - 1], NW_NCCL_GPU);
    return last->number >= count ? tell_missing_numbers(building, last, count) : NW_OK;
}

static nw_rc add_others(struct building *building, nw_node_kind kind)
{
    const int count = collect(building, kind);
    int node, unknown = 0;

    for (int i = 0; i < count; i++) {
        unknown += building->file->elements[building->order[i]].pci_class == 0;
        NW_TRY(add_pci_node(building, building->order[i], kind, &node));
    }
    if (kind != NW_NODE_PCI || unknown == 0)
        return NW_OK;
    return nw_findings_add(&building->topo->findings, NW_FINDING_WARN, "class-unknown", "",
                           "read the file together with another source of the same machine, for "
                           "example \"nodeworth topo --save FILE\" on it",
                           "%d PCI devices have no class in this file: which of them are GPUs and "
                           "NICs is unknown",
                           unknown);
}

/* --- the whole --- */

static int by_host_and_address(const void *a, const void *b, void *arg)
{
    const struct building *building = arg;
    const int x = *(const int *)a, y = *(const int *)b;
    const int host = host_of(building, x) - host_of(building, y);

    return host != 0 ? host
                     : strcmp(building->file->elements[x].name, building->file->elements[y].name);
}

static bool is_above(const struct building *building, int a, int b)
{
    while (b >= 0 && b != a)
        b = building->file->elements[b].parent;
    return b == a;
}

/* NCCL and RCCL fold the levels of some PCIe switches, and give two of them one address, or a NIC
 * that of the switch above it: such dumps are of real machines. A GPU or two NICs of one address
 * are not. */
static bool may_be_twice(const struct building *building, int a, int b)
{
    const struct nw_nccl_element *elements = building->file->elements;

    return (elements[a].pci_class == PCI_CLASS_BRIDGE) !=
                   (elements[b].pci_class == PCI_CLASS_BRIDGE)
               ? !building->has_gpu[a] && !building->has_gpu[b]
               : elements[a].pci_class == PCI_CLASS_BRIDGE && !is_above(building, a, b) &&
                     !is_above(building, b, a);
}

static nw_rc refuse_twice(struct building *building)
{
    const struct nw_nccl_element *elements = building->file->elements;
    size_t count = 0;

    for (size_t i = 0; i < building->file->count; i++)
        if (elements[i].kind == NW_NCCL_PCI)
            building->order[count++] = (int)i;
    if (count > 1)
        qsort_r(building->order, count, sizeof *building->order, by_host_and_address, building);
    for (size_t i = 1; i < count; i++) {
        const int *pair = &building->order[i - 1];

        if (by_host_and_address(&pair[0], &pair[1], building) == 0 &&
            elements[pair[0]].name[0] != '\0' && !may_be_twice(building, pair[0], pair[1]))
            return nw_nccl_fail(building->file, &elements[pair[0] > pair[1] ? pair[0] : pair[1]],
                                "PCI address %s a second time (first in line %d)",
                                elements[pair[0]].name,
                                elements[pair[0] < pair[1] ? pair[0] : pair[1]].line);
    }
    return NW_OK;
}

static void mark(const struct building *building)
{
    for (size_t i = building->file->count; i-- > 0;) {
        const struct nw_nccl_element *element = &building->file->elements[i];

        if (element->parent < 0)
            continue;
        building->has_pci[element->parent] |= element->kind == NW_NCCL_PCI;
        building->has_gpu[element->parent] |= element->kind == NW_NCCL_GPU;
        building->has_net[element->parent] |=
            element->kind == NW_NCCL_NET || (element->kind == NW_NCCL_NIC && building->has_net[i]);
    }
}

static nw_rc build(struct building *building)
{
    NW_TRY(add_machine(building));
    mark(building);
    NW_TRY(refuse_twice(building));
    NW_TRY(name_by_platform(building));
    NW_TRY(add_others(building, NW_NODE_BRIDGE));
    NW_TRY(add_gpus(building));
    NW_TRY(add_others(building, NW_NODE_NIC));
    NW_TRY(nw_nccl_build_nets(building->file, building->topo));
    NW_TRY(add_others(building, NW_NODE_PCI));
    for (size_t i = 1; i < building->topo->node_count; i++)
        if (building->topo->nodes[i].kind != NW_NODE_NUMA)
            return NW_OK;
    return nw_fail(NW_EUSAGE, "%s: NCCL topology file without a device: nothing to read",
                   building->file->what);
}

nw_rc nw_nccl_build(struct nw_nccl_file *file, struct nw_topo *topo)
{
    struct building building = {.file = file, .topo = topo};
    bool *marks = calloc(3 * file->count + 1, sizeof *marks);
    nw_rc rc;

    building.order = calloc(file->count + 1, sizeof *building.order);
    if (marks == NULL || building.order == NULL) {
        rc = nw_fail(NW_ENOMEM, "out of memory for %zu elements", file->count);
    } else {
        building.has_pci = marks;
        building.has_gpu = marks + file->count;
        building.has_net = marks + 2 * file->count;
        rc = build(&building);
    }
    free(marks);
    free(building.order);
    return rc;
}
