/* A fabric by its datasheet: links of the catalogue's GPU, NICs by their line rate; or by the
 * ceilings of a machine that was read. */
#include "model/fabric.h"

#include <math.h>
#include <string.h>

#include "model/model.h"
#include "topo/ceiling.h"
#include "topo/facts.h"

/* Share of its links that a GPU fills while the switch adds up, over what a ring fills: NCCL
 * src/graph/tuning.cc, NVLS efficiency by generation. Boards of two GPUs or fewer have no switch.
 */
#define HOPPER    0.85
#define BLACKWELL 0.74
static const struct {
    const char *prefix, *form;
    double share;
} switches[] = {
    {"H100", "sxm", HOPPER},  {"H200", "sxm", HOPPER},    {"H800", "sxm", HOPPER},
    {"H20", "sxm", HOPPER},   {"B200", "sxm", BLACKWELL}, {"B300", "sxm", BLACKWELL},
    {"GB200", "", BLACKWELL}, {"GB300", "", BLACKWELL},
};

static double switch_share(const struct nw_gpu *gpu)
{
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (strncmp(gpu->name, switches[i].prefix, strlen(switches[i].prefix)) == 0 &&
            (switches[i].form[0] == '\0' || strcmp(gpu->form, switches[i].form) == 0))
            return switches[i].share;
    return 0;
}

/* Racks whose links join the GPUs of all their nodes: GB200 NVL72, GB300 NVL72 (NVIDIA). */
static int domain_of(const struct nw_gpu *gpu)
{
    return strncmp(gpu->name, "GB200", 5) == 0 || strncmp(gpu->name, "GB300", 5) == 0 ? 72 : 0;
}

/* Boards whose GPUs are joined two by two, without a switch: DGX-1 (V100 SXM2, P100), xGMI, HCCS.
 */
static bool is_mesh(const struct nw_gpu *gpu)
{
    static const char *const prefixes[] = {"V100 SXM2", "P100", "MI", "Ascend"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(gpu->name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Do links join all GPUs of a node? A bridge between cards joins two. */
static bool joins_all(const struct nw_gpu *gpu)
{
    return gpu->nvlink_one_way_bytes_per_s > 0 && strcmp(gpu->form, "pcie") != 0 &&
           strcmp(gpu->form, "nvl") != 0 && strncmp(gpu->name, "GH200", 5) != 0;
}

nw_rc nw_fabric_take_gpu(struct nw_fabric *fabric, const struct nw_gpu *gpu, const char *link)
{
    const bool asked = link != NULL && strcmp(link, "nvlink") == 0;
    const bool pcie = link != NULL && strcmp(link, "pcie") == 0;
    const bool bridged = gpu->nvlink_one_way_bytes_per_s > 0 && fabric->gpus_per_node == 2;

    if (asked && !(gpu->nvlink_one_way_bytes_per_s > 0))
        return nw_fail(NW_EUSAGE,
                       "--link nvlink: %s has none in the catalogue; accepted: auto, pcie, or give "
                       "--intra-node",
                       gpu->name);
    fabric->link_is_pcie = pcie || !(asked || joins_all(gpu) || bridged);
    fabric->link_is_mesh = !fabric->link_is_pcie && is_mesh(gpu);
    fabric->link_domain = fabric->link_is_pcie ? 0 : domain_of(gpu);
    fabric->switch_bytes_per_s =
        fabric->link_is_pcie ? 0 : gpu->nvlink_one_way_bytes_per_s * switch_share(gpu);
    const double rate =
        fabric->link_is_pcie ? gpu->pcie_one_way_bytes_per_s : gpu->nvlink_one_way_bytes_per_s;

    fabric->link_bytes_per_s = rate > 0 ? rate : NAN;
    return NW_OK;
}

/* Of a machine that has NVLS: by its GPU's name, else by its generation. */
static double switch_share_of(const struct nw_topo *topo)
{
    const struct nw_topo_node *node = nw_topo_nth(topo, NW_NODE_GPU, 0);
    const struct nw_gpu *gpu;
    double share = 0;

    if (nw_gpu_find(node->model, &gpu) == NW_OK)
        share = switch_share(gpu);
    if (share > 0)
        return share;
    return nw_topo_number(topo, (int)(node - topo->nodes), NW_FACT_CAPABILITY) >= 100 ? BLACKWELL
                                                                                      : HOPPER;
}

void nw_fabric_take_topo(struct nw_fabric *fabric, const struct nw_topo *topo)
{
    struct nw_ceiling_network network;
    struct nw_ceiling_collective ring, in_switch;

    nw_ceiling_network(topo, &network);
    if (isfinite(network.bytes_per_s) && network.port_count > 0) {
        fabric->wire_bytes_per_s = network.bytes_per_s;
        fabric->nic_count = network.port_count;
    }
    if (nw_ceiling_collective(topo, &network, "all_gather", "ring", 1, &ring) == NW_OK &&
        isfinite(ring.bus_bytes_per_s)) {
        fabric->link_bytes_per_s = ring.bus_bytes_per_s;
        fabric->link_is_pcie = strcmp(ring.bound, "PCIe") == 0;
        fabric->link_is_mesh = false; /* the ceiling is that of the best ring of the mesh */
    }
    if (nw_ceiling_collective(topo, &network, "all_reduce", "nvls", 1, &in_switch) != NW_OK)
        fabric->switch_bytes_per_s = 0;
    else if (isfinite(in_switch.bus_bytes_per_s)) /* links that are down are missing here too */
        fabric->switch_bytes_per_s = switch_share_of(topo) * fabric->link_bytes_per_s;
    nw_clear_error(); /* what the machine cannot run is no error */
}

struct nw_levels nw_levels_of_datasheet(const struct nw_fabric *fabric)
{
    const double share = nw_fabric_constant(fabric, NW_CONSTANT_LINK_SHARE);
    const double link =
        fabric->link_bytes_per_s * share * (fabric->link_is_pcie ? NW_PCIE_RING : 1) / 1e9;
    const double adds = fabric->switch_bytes_per_s * share / 1e9;
    const double wire =
        fabric->wire_bytes_per_s * nw_fabric_constant(fabric, NW_CONSTANT_WIRE_SHARE) / 1e9;

    return (struct nw_levels){
        .link_rate = link > 0 ? link : INFINITY,
        .switch_rate = adds > 0 ? adds : 0,
        .wire_rate = wire > 0 ? wire : INFINITY,
        .pcie = fabric->link_is_pcie,
        .mesh = fabric->link_is_mesh,
        .gpus_per_node = fabric->gpus_per_node,
        .nic_count = fabric->nic_count,
        .start_ns = 6600, /* NCCL, src/graph/tuning.cc */
        .link_hop_ns = NW_LINK_HOP_NS,
        .wire_hop_ns = nw_fabric_constant(fabric, NW_CONSTANT_WIRE_LATENCY_NS),
    };
}
