#include "topo/live_nvml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "topo/classify.h"
#include "topo/link.h"
#include "topo/nvml_api.h"
#include "topo/read.h"

struct live {
    struct nw_topo *topo;
    struct nw_nvml *nvml;
    struct nw_nvml_gpu *gpus; /* by NVML's index */
    int *node_of;             /* -1: the driver does not let it be looked at */
    int count;
};

/* --- one GPU --- */

static int find_gpu(const struct nw_topo *topo, const char *pci)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind != NW_NODE_BRIDGE && strcmp(topo->nodes[i].pci, pci) == 0)
            return (int)i;
    return -1;
}

static void name_gpu(const struct nw_topo *topo, struct nw_topo_node *node)
{
    snprintf(node->name, sizeof node->name, "gpu%d", nw_topo_count(topo, NW_NODE_GPU) - 1);
}

static nw_rc find_or_add(struct nw_topo *topo, const char *pci, int *node_out)
{
    int node = find_gpu(topo, pci);

    if (node < 0) {
        NW_TRY(nw_topo_add_node(topo, NW_NODE_GPU, 0, &node));
        snprintf(topo->nodes[node].pci, sizeof topo->nodes[node].pci, "%s", pci);
        name_gpu(topo, &topo->nodes[node]);
    } else if (topo->nodes[node].kind != NW_NODE_GPU) {
        topo->nodes[node].kind = NW_NODE_GPU;
        name_gpu(topo, &topo->nodes[node]);
    }
    topo->nodes[node].pci_vendor = NW_PCI_VENDOR_NVIDIA;
    *node_out = node;
    return NW_OK;
}

static void fill_node(const struct nw_nvml_gpu *gpu, struct nw_topo_node *node)
{
    const double now = nw_pcie_bytes_per_s(gpu->pcie_generation, gpu->pcie_width);
    const double most = nw_pcie_bytes_per_s(gpu->pcie_max_generation, gpu->pcie_max_width);

    nw_squeeze(gpu->name, node->model, sizeof node->model);
    if (gpu->memory_bytes > 0)
        node->memory_bytes = gpu->memory_bytes;
    if (gpu->pcie_width > 0)
        node->link_lanes = gpu->pcie_width;
    if (gpu->pcie_max_width > 0)
        node->link_max_lanes = gpu->pcie_max_width;
    if (isfinite(now))
        node->link_bytes_per_s = now;
    if (isfinite(most))
        node->link_max_bytes_per_s = most;
}

/* --- NVLink --- */

static int active_count(const struct nw_nvml_gpu *gpu, const char *peer_pci)
{
    int count = 0;

    for (int i = 0; i < gpu->link_count; i++)
        count += gpu->links[i].active &&
                 (peer_pci == NULL || strcmp(gpu->links[i].peer_pci, peer_pci) == 0);
    return count;
}

static int switch_count(const struct nw_nvml_gpu *gpu)
{
    int count = 0;

    for (int i = 0; i < gpu->link_count; i++)
        count += gpu->links[i].active && gpu->links[i].peer == NW_NVLINK_PEER_SWITCH;
    return count;
}

static double link_rate(const struct nw_nvml_gpu *gpu)
{
    for (int i = 0; i < gpu->link_count; i++)
        if (gpu->links[i].active && gpu->links[i].bytes_per_s > 0)
            return gpu->links[i].bytes_per_s;
    return NAN;
}

/* The driver tells the rate of the wire (26.562 GB/s on H100, 25.781 on A100), datasheets and
 * hwloc's matrices the payload's (25). */
static double nominal_rate(double wire)
{
    for (int generation = 1; generation <= 5; generation++) {
        const double rate = nw_nvlink_bytes_per_s(generation);

        if (wire >= 0.99 * rate && wire <= 1.08 * rate)
            return rate;
    }
    return wire;
}

static void list_inactive(const struct nw_nvml_gpu *gpu, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < gpu->link_count && length + 8 < size; i++)
        if (!gpu->links[i].active)
            length += (size_t)snprintf(text + length, size - length, "%s%d", length > 0 ? ", " : "",
                                       gpu->links[i].index);
}

/* MIG switches NVLink off, and a virtual GPU does not show it: none is then no answer. */
static bool nvlink_is_told(const struct live *live, int index)
{
    const struct nw_nvml_gpu *gpu = &live->gpus[index];
    const char *virtual = nw_topo_text(live->topo, live->node_of[index], NW_FACT_GPU_VIRTUAL);

    return gpu->link_count > 0 || (gpu->links_known && gpu->mig_enabled != 1 &&
                                   (virtual == NULL || strstr(virtual, "vgpu") == NULL));
}

static nw_rc set_link_facts(const struct live *live, int index)
{
    const struct nw_nvml_gpu *gpu = &live->gpus[index];
    const int node = live->node_of[index], active = active_count(gpu, NULL);
    char inactive[160];

    if (!nvlink_is_told(live, index))
        return NW_OK;
    list_inactive(gpu, inactive, sizeof inactive);
    NW_TRY(nw_topo_set_number(live->topo, node, NW_FACT_NVLINK_COUNT, active, "nvml"));
    NW_TRY(nw_topo_set_number(live->topo, node, NW_FACT_NVLINK_INACTIVE_COUNT,
                              gpu->link_count - active, "nvml"));
    NW_TRY(nw_topo_set_text(live->topo, node, NW_FACT_NVLINK_INACTIVE, inactive, "nvml"));
    NW_TRY(nw_topo_set_number(live->topo, node, NW_FACT_NVLINK_RATE, link_rate(gpu), "nvml"));
    return active > 0 ? nw_topo_set_number(live->topo, node, NW_FACT_NVLINK_SWITCH,
                                           switch_count(gpu) > 0, "nvml")
                      : NW_OK;
}

/* NVLinks between two GPUs: those that end at the other, or the fewer of both's into the switches.
 */
static int links_between(const struct nw_nvml_gpu *a, const struct nw_nvml_gpu *b)
{
    const int direct = active_count(a, b->pci);
    const int through_a = switch_count(a), through_b = switch_count(b);

    return direct > 0 ? direct : through_a < through_b ? through_a : through_b;
}

static nw_rc add_link(const struct live *live, int a, int b)
{
    struct nw_topo_link link = {
        .a = live->node_of[a], .b = live->node_of[b], .kind = NW_LINK_NVLINK};
    const double rate = nominal_rate(link_rate(&live->gpus[a]));

    link.lane_count = links_between(&live->gpus[a], &live->gpus[b]);
    if (link.lane_count == 0 ||
        nw_topo_link_between(live->topo, NW_LINK_NVLINK, link.a, link.b) != NULL)
        return NW_OK;
    link.bytes_per_s = rate > 0 ? rate * link.lane_count : 0;
    return nw_topo_add_link(live->topo, &link);
}

/* --- pairs --- */

/* The tree tells the way over PCIe where the system shows both GPUs below bridges. */
static bool tree_tells(const struct nw_topo *topo, int a, int b)
{
    return topo->nodes[topo->nodes[a].parent].kind == NW_NODE_BRIDGE &&
           topo->nodes[topo->nodes[b].parent].kind == NW_NODE_BRIDGE;
}

static nw_rc state_path(const struct live *live, int a, int b)
{
    const int x = live->node_of[a], y = live->node_of[b];
    const struct nw_topo_link *link = nw_topo_link_between(live->topo, NW_LINK_NVLINK, x, y);
    const int path = nw_nvml_path(live->nvml, a, b);

    if (tree_tells(live->topo, x, y) || path < 0)
        return NW_OK;
    return link != NULL ? nw_topo_state(live->topo, x, y, NW_CLASS_NV, link->lane_count)
                        : nw_topo_state(live->topo, x, y, (nw_class)path, 0);
}

static nw_rc read_pairs(const struct live *live, int a)
{
    int reached = 0, told = 0;

    for (int b = 0; b < live->count; b++) {
        if (b == a || live->node_of[b] < 0)
            continue;
        const int reaches = nw_nvml_reaches(live->nvml, a, b);

        told += reaches >= 0;
        reached += reaches > 0;
        if (b < a)
            continue;
        NW_TRY(add_link(live, a, b));
        NW_TRY(state_path(live, a, b));
    }
    return told > 0
               ? nw_topo_set_number(live->topo, live->node_of[a], NW_FACT_PEERS, reached, "nvml")
               : NW_OK;
}

/* --- all of it --- */

static nw_rc read_gpu(const struct live *live, int index)
{
    const uint64_t start = nw_now_ns();
    struct nw_nvml_gpu *gpu = &live->gpus[index];
    int node;

    if (nw_nvml_gpu(live->nvml, index, gpu) != NW_OK) {
        NW_TRY(nw_findings_add(&live->topo->findings, NW_FINDING_WARN, "gpu-no-answer",
                               live->topo->host, "look into the kernel's log for Xid lines",
                               "the driver lists %d GPUs, but tells nothing of GPU %d: %s",
                               live->count, index, nw_last_error()->text));
        nw_clear_error();
        return NW_OK;
    }
    NW_TRY(find_or_add(live->topo, gpu->pci, &node));
    live->node_of[index] = node;
    fill_node(gpu, &live->topo->nodes[node]);
    NW_TRY(nw_nvml_facts(live->nvml, index, live->topo, node));
    NW_TRY(set_link_facts(live, index));
    return nw_topo_set_number(live->topo, node, NW_FACT_QUERY_TIME,
                              (double)(nw_now_ns() - start) * 1e-9, "nvml");
}

static nw_rc set_machine(const struct live *live)
{
    const int version = nw_nvml_cuda_version(live->nvml);
    char text[32];

    if (nw_nvml_simulated(live->nvml))
        NW_TRY(nw_topo_set_number(live->topo, 0, NW_FACT_SIMULATED, 1, "nvml"));
    NW_TRY(nw_topo_set_text(live->topo, 0, NW_FACT_DRIVER, nw_nvml_driver_version(live->nvml),
                            "nvml"));
    NW_TRY(nw_topo_set_number(live->topo, 0, NW_FACT_GPUS_ATTACHED, live->count, "nvml"));
    if (version <= 0)
        return NW_OK;
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    return nw_topo_set_text(live->topo, 0, NW_FACT_CUDA, text, "nvml");
}

static nw_rc read_all(struct live *live)
{
    bool told = false;

    NW_TRY(set_machine(live));
    for (int i = 0; i < live->count; i++)
        live->node_of[i] = -1;
    for (int i = 0; i < live->count; i++)
        NW_TRY(read_gpu(live, i));
    for (int i = 0; i < live->count; i++)
        if (live->node_of[i] >= 0) {
            NW_TRY(read_pairs(live, i));
            told |= nvlink_is_told(live, i);
        }
    if (told)
        live->topo->gaps &= ~(unsigned)NW_TOPO_NO_NVLINK;
    live->topo->sources |= NW_SOURCE_NVML;
    return NW_OK;
}

static bool has_nvidia(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU && nw_topo_is_nvidia(&topo->nodes[i]))
            return true;
    return false;
}

/* No library and no GPU is the ordinary case. */
static nw_rc note_absence(struct nw_topo *topo)
{
    nw_rc rc = NW_OK;

    if (has_nvidia(topo))
        rc = nw_findings_add(&topo->findings, NW_FINDING_WARN, "driver-not-asked", topo->host,
                             "install NVIDIA's driver, or look from where it is installed",
                             "there are NVIDIA GPUs, but the driver cannot be asked: %s",
                             nw_last_error()->text);
    nw_clear_error();
    return rc;
}

nw_rc nw_nvml_live(struct nw_topo *topo)
{
    struct live live = {.topo = topo};
    nw_rc rc = nw_nvml_open(&live.nvml);

    if (rc != NW_OK)
        return rc == NW_ENOMEM ? rc : note_absence(topo);
    live.count = nw_nvml_count(live.nvml);
    live.gpus = calloc((size_t)live.count + 1, sizeof *live.gpus);
    live.node_of = calloc((size_t)live.count + 1, sizeof *live.node_of);
    rc = live.gpus != NULL && live.node_of != NULL
             ? read_all(&live)
             : nw_fail(NW_ENOMEM, "out of memory for %d GPUs", live.count);
    free(live.gpus);
    free(live.node_of);
    nw_nvml_close(live.nvml);
    return rc;
}
