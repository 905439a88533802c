/* NVLink, XGMI and NVLink-C2C of NCCL's topology file.
 *
 * <nvlink target= count= tclass=> says to what a GPU's links go. Class 0x0680 is an NVSwitch: where
 * the targets are switches, the GPU's links are their sum; where a virtual machine hides the
 * switches, every peer GPU is listed with all the links of the GPU (count 18 seven times is 18, not
 * 126). Any other target is a peer, and the links to it are its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/classify.h"
#include "topo/link.h"
#include "topo/pci_address.h"
#include "topo/read_nccl_xml.h"

enum {
    TARGET_SWITCH = 0x0680,
    NVLINKS_AT_MOST = 18, /* of one GPU: H100, H200, B200, GB200 */
};

struct gpu {
    int node, element;
    int switched;  /* links to switches */
    int direct;    /* links to peers */
    int to_itself; /* links whose target is the GPU itself */
    bool any;
};

struct linking {
    const struct nw_nccl_file *file;
    struct nw_topo *topo;
    struct gpu *gpus;
    int count;
    int *pairs; /* count x count: NVLinks that a says it has to b */
    int *xgmi;
};

static int gpu_by_address(const struct linking *linking, int from, const char *target)
{
    const struct nw_topo_node *nodes = linking->topo->nodes;
    char pci[16];
    int found = -1;

    if (nw_pci_normalise(target, pci) != NW_OK) {
        nw_clear_error(); /* "fffffff:ffff:ff": a switch that the virtual machine hides */
        return -1;
    }
    for (int i = 0; i < linking->count; i++)
        if (strcmp(nodes[linking->gpus[i].node].pci, pci) == 0) {
            /* Addresses repeat on the hosts of a domain: the own host's comes first. */
            if (nodes[linking->gpus[i].node].parent == nodes[linking->gpus[from].node].parent)
                return i;
            if (found < 0)
                found = i;
        }
    return found;
}

static int count_of(const struct nw_nccl_element *link)
{
    return link->number > 0 ? link->number : 1;
}

/* The links of one GPU, by what they go to. */
static nw_rc read_nvlink(struct linking *linking, int from, int index)
{
    const struct nw_nccl_element *link = &linking->file->elements[index];
    struct gpu *gpu = &linking->gpus[from];
    const int peer = gpu_by_address(linking, from, link->name);

    if (count_of(link) > 256)
        return nw_nccl_fail(linking->file, link, "count=\"%d\" is not a number of NVLinks",
                            link->number);
    gpu->any = true;
    if (peer == from)
        gpu->to_itself += count_of(link);
    else if (peer >= 0)
        linking->pairs[from * linking->count + peer] += count_of(link);
    else if (link->pci_class == TARGET_SWITCH || link->pci_class == 0)
        gpu->switched += count_of(link);
    else
        gpu->direct += count_of(link); /* a CPU (POWER), or a GPU that no rank uses */
    /* Behind hidden switches each peer stands for all the links. */
    if (peer >= 0 && peer != from && link->pci_class == TARGET_SWITCH &&
        gpu->switched < count_of(link))
        gpu->switched = count_of(link);
    return NW_OK;
}

static nw_rc read_c2c(struct linking *linking, const struct gpu *gpu, int index)
{
    const struct nw_nccl_element *c2c = &linking->file->elements[index];
    const int cpu = nw_nccl_above(linking->file, index, NW_NCCL_CPU);
    const double one = isfinite(c2c->megarate) ? c2c->megarate * 1e6 : 0;
    const struct nw_topo_link link = {.a = cpu >= 0 ? linking->file->elements[cpu].node : 0,
                                      .b = gpu->node,
                                      .kind = NW_LINK_C2C,
                                      .lane_count = count_of(c2c),
                                      .bytes_per_s = one * count_of(c2c)};

    return nw_topo_add_link(linking->topo, &link);
}

static nw_rc read_links(struct linking *linking, int from)
{
    const struct nw_nccl_file *file = linking->file;
    const int pci = linking->gpus[from].element;

    for (size_t i = (size_t)pci + 1; i < file->count && file->elements[i].parent >= pci; i++) {
        const struct nw_nccl_element *element = &file->elements[i];
        int peer;

        if (nw_nccl_above(file, (int)i, NW_NCCL_PCI) != pci)
            continue;
        switch (element->kind) {
        case NW_NCCL_NVLINK:
            NW_TRY(read_nvlink(linking, from, (int)i));
            break;
        case NW_NCCL_XGMI:
            peer = gpu_by_address(linking, from, element->name);
            if (peer >= 0 && peer != from)
                linking->xgmi[from * linking->count + peer] += count_of(element);
            break;
        case NW_NCCL_C2C:
            NW_TRY(read_c2c(linking, &linking->gpus[from], (int)i));
            break;
        default:
            break;
        }
    }
    return NW_OK;
}

/* A monitor may give peers the class of a GPU though switches join them: more links than a GPU can
 * have, and the same number to every peer. */
static void find_hidden_switches(struct linking *linking, int from)
{
    const int *row = &linking->pairs[from * linking->count];
    struct gpu *gpu = &linking->gpus[from];
    int sum = 0, most = 0;
    bool equal = true;

    for (int i = 0; i < linking->count; i++) {
        sum += row[i];
        equal &= row[i] == 0 || most == 0 || row[i] == most;
        most = row[i] > most ? row[i] : most;
    }
    if (gpu->switched == 0 && equal && sum > NVLINKS_AT_MOST)
        gpu->switched = most;
    if (gpu->switched == 0)
        gpu->direct += sum;
}

static double rate_of(const struct linking *linking, int gpu)
{
    const struct nw_topo *topo = linking->topo;
    const int node = linking->gpus[gpu].node;
    const double rate = nw_nvlink_bytes_per_s_of(topo->nodes[node].model,
                                                 nw_topo_number(topo, node, NW_FACT_CAPABILITY));

    return isfinite(rate) ? rate : 0;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static nw_rc link_pair(struct linking *linking, int a, int b)
{
    const struct gpu *x = &linking->gpus[a], *y = &linking->gpus[b];
    struct nw_topo_link link = {.a = x->node, .b = y->node};
    const int there = linking->pairs[a * linking->count + b];
    const int back = linking->pairs[b * linking->count + a];

    link.kind = NW_LINK_NVLINK;
    if (x->switched > 0 && y->switched > 0)
        link.lane_count = smaller(x->switched, y->switched);
    else if (there > 0 && back > 0)
        link.lane_count = smaller(there, back);
    else
        link.lane_count = there > back ? there : back;
    link.bytes_per_s = link.lane_count * rate_of(linking, a);
    if (link.lane_count > 0)
        NW_TRY(nw_topo_add_link(linking->topo, &link));
    if (x->switched == 0 && y->switched == 0 && there != back)
        NW_TRY(nw_findings_add(&linking->topo->findings, NW_FINDING_WARN, "nvlink-one-sided",
                               linking->topo->nodes[x->node].name, NULL,
                               "%s names %d NVLinks to %s, which names %d back",
                               linking->topo->nodes[x->node].name, there,
                               linking->topo->nodes[y->node].name, back));
    link.kind = NW_LINK_XGMI;
    link.lane_count = linking->xgmi[a * linking->count + b];
    if (link.lane_count == 0)
        link.lane_count = linking->xgmi[b * linking->count + a];
    link.bytes_per_s = link.lane_count * nw_xgmi_bytes_per_s(linking->topo->nodes[x->node].model);
    if (!isfinite(link.bytes_per_s))
        link.bytes_per_s = 0;
    return link.lane_count > 0 ? nw_topo_add_link(linking->topo, &link) : NW_OK;
}

static nw_rc set_facts(const struct linking *linking, const struct gpu *gpu)
{
    struct nw_topo *topo = linking->topo;
    const int count = gpu->switched > 0 ? gpu->switched : gpu->direct + gpu->to_itself;

    if (!gpu->any)
        return NW_OK;
    NW_TRY(nw_topo_set_number(topo, gpu->node, NW_FACT_NVLINK_COUNT, count, NW_NCCL_SOURCE));
    NW_TRY(nw_topo_set_number(topo, gpu->node, NW_FACT_NVLINK_SWITCH, gpu->switched > 0,
                              NW_NCCL_SOURCE));
    if (gpu->to_itself == 0)
        return NW_OK;
    return nw_findings_add(&topo->findings, NW_FINDING_WARN, "nvlink-to-itself",
                           topo->nodes[gpu->node].name,
                           "read it together with \"nvidia-smi topo -m\" or \"nvidia-smi nvlink "
                           "-s\"",
                           "%s names itself as the other end of its %d NVLinks: which GPU its "
                           "partner is, this file does not say",
                           topo->nodes[gpu->node].name, gpu->to_itself);
}

/* A dump by NCCL lists the NVLinks of every <gpu>; a template without <gpu> says nothing of them,
 * and a file in which GPUs name only themselves does not say who is joined. */
static nw_rc set_gap(const struct linking *linking)
{
    int silent = 0, nvidia = 0;

    for (int i = 0; i < linking->count; i++) {
        const struct gpu *gpu = &linking->gpus[i];
        const struct nw_nccl_file *file = linking->file;
        const size_t next = (size_t)gpu->element + 1;

        if (linking->topo->nodes[gpu->node].pci_vendor == NW_PCI_VENDOR_AMD)
            continue;
        nvidia++;
        silent += gpu->to_itself > 0 ||
                  !(next < file->count && file->elements[next].parent == gpu->element &&
                    file->elements[next].kind == NW_NCCL_GPU);
    }
    if (nvidia < 2 || silent == 0)
        return NW_OK;
    linking->topo->gaps |= NW_TOPO_NO_NVLINK;
    return nw_findings_add(
        &linking->topo->findings, NW_FINDING_INFO, "nvlink-unknown", "",
        "\"nvidia-smi topo -m\" and \"nvidia-smi nvlink -s\" on the machine tell",
        "this file does not say which of its %d GPUs NVLink joins: unknown, not "
        "absent",
        nvidia);
}

static nw_rc build(struct linking *linking)
{
    for (int i = 0; i < linking->count; i++)
        NW_TRY(read_links(linking, i));
    for (int i = 0; i < linking->count; i++)
        find_hidden_switches(linking, i);
    for (int i = 0; i < linking->count; i++)
        for (int j = i + 1; j < linking->count; j++)
            NW_TRY(link_pair(linking, i, j));
    for (int i = 0; i < linking->count; i++)
        NW_TRY(set_facts(linking, &linking->gpus[i]));
    return set_gap(linking);
}

nw_rc nw_nccl_build_links(const struct nw_nccl_file *file, struct nw_topo *topo)
{
    const int count = nw_topo_count(topo, NW_NODE_GPU);
    struct linking linking = {.file = file, .topo = topo, .count = count};
    const size_t cells = (size_t)count * (size_t)count + 1;
    nw_rc rc;

    linking.gpus = calloc((size_t)count + 1, sizeof *linking.gpus);
    linking.pairs = calloc(cells, sizeof *linking.pairs);
    linking.xgmi = calloc(cells, sizeof *linking.xgmi);
    if (linking.gpus == NULL || linking.pairs == NULL || linking.xgmi == NULL) {
        rc = nw_fail(NW_ENOMEM, "out of memory for the links of %d GPUs", count);
    } else {
        linking.count = 0;
        for (size_t i = 0; i < file->count; i++) {
            const int node = file->elements[i].node;

            if (file->elements[i].kind == NW_NCCL_PCI && node > 0 &&
                topo->nodes[node].kind == NW_NODE_GPU)
                linking.gpus[linking.count++] = (struct gpu){.node = node, .element = (int)i};
        }
        rc = build(&linking);
    }
    free(linking.gpus);
    free(linking.pairs);
    free(linking.xgmi);
    return rc;
}
