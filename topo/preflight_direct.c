/* The direct way between GPU and NIC, and between GPUs, over PCIe: ACS, IOMMU, GPUDirect. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/preflight_run.h"

/* ACS Control Register, PCI Express Base Specification 7.7.11.3. */
enum {
    ACS_SOURCE_VALIDATION = 0x01,
    ACS_REQUEST_REDIRECT = 0x04,
    ACS_COMPLETION_REDIRECT = 0x08,
    ACS_REDIRECT = ACS_REQUEST_REDIRECT | ACS_COMPLETION_REDIRECT,
};

static int common_bridge(const struct nw_topo *topo, int a, int b)
{
    while (a != b && a > 0 && b > 0) {
        if (a > b)
            a = topo->nodes[a].parent;
        else
            b = topo->nodes[b].parent;
    }
    return a == b && a > 0 && topo->nodes[a].kind == NW_NODE_BRIDGE && topo->nodes[a].pci[0] != '\0'
               ? a
               : -1;
}

struct acs {
    bool *on_path; /* of each node: a bridge that a direct path goes through */
    int *gpu;      /* a GPU whose path it is */
    int *partner;
};

/* Only below a common switch is there a direct path that a redirect can spoil: it ends at the
 * switch's ports, which are the bridges below the common one. */
static void mark_path(const struct nw_topo *topo, int gpu, int partner, const struct acs *acs)
{
    const int above = common_bridge(topo, gpu, partner);
    const int ends[] = {gpu, partner};

    if (above < 0)
        return;
    for (int end = 0; end < 2; end++)
        for (int up = topo->nodes[ends[end]].parent; up > above; up = topo->nodes[up].parent) {
            acs->on_path[up] = topo->nodes[up].kind == NW_NODE_BRIDGE;
            acs->gpu[up] = gpu;
            acs->partner[up] = partner;
        }
}

static void mark_paths(const struct nw_topo *topo, const struct acs *acs)
{
    for (int gpu = -1; (gpu = nw_next(topo, NW_NODE_GPU, gpu)) >= 0;) {
        for (int peer = gpu; (peer = nw_next(topo, NW_NODE_GPU, peer)) >= 0;)
            if (nw_topo_class(topo, gpu, peer, NULL) != NW_CLASS_NV)
                mark_path(topo, gpu, peer, acs);
        /* A NIC's path is the one to tell: it comes last and stays. */
        for (int nic = -1; (nic = nw_next(topo, NW_NODE_NIC, nic)) >= 0;)
            if (nw_is_rdma(&topo->nodes[nic]) ||
                topo->nodes[nic].pci_vendor == NW_PCI_VENDOR_MELLANOX)
                mark_path(topo, gpu, nic, acs);
    }
}

/* `example`: the bridge whose pair is named, the same for all of a host so that they are one
 * finding. */
static nw_rc tell_redirect(struct nw_preflight_run *run, size_t host, int bridge, int example,
                           const struct acs *acs)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const bool guest = nw_is_virtual(topo);
    const struct nw_topo_node *partner = &topo->nodes[acs->partner[example]];
    const double rate = partner->rate_bits_per_s / 8;

    NW_TRY(nw_tell(
        run, host, bridge, NW_FINDING_WARN, "acs-redirect",
        guest ? "a virtual machine needs ACS: have ATS switched on in NIC and switch instead"
              : "setpci -s BRIDGE ECAP_ACS+6.w=0000 as root for each bridge named; that does not "
                "survive a reboot: do it at every boot, or switch ACS off in the firmware",
        "ACS is on and redirects what passes between a GPU and its NIC or neighbour up to the CPU "
        "and back"));
    /* 9.84 of 24 GB/s: NVIDIA/nccl-tests#112, NVIDIA/nccl#700. 50 of 103: voipmonitor/rtx6kpro. */
    return nw_tell_effect(run, rate > 0 ? rate / 2 : NAN,
                          "%s and %s, for example: a path of this kind reached 41 %% (NIC) or half "
                          "(GPU to GPU) of its rate; a test of the NIC with host memory does not "
                          "show it",
                          topo->nodes[acs->gpu[example]].name, partner->name);
}

/* The reader of the live machine says why itself (topo/live_pci.c). */
static bool is_unread_told(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, "not-checked") == 0 &&
            strstr(topo->findings.items[i].text, "ACS of ") != NULL)
            return true;
    return false;
}

static nw_rc judge_acs(struct nw_preflight_run *run, size_t host, const struct acs *acs)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    int elsewhere = 0, unknown = 0, on_path = 0, example = -1;

    for (size_t i = 0; i < topo->node_count; i++) {
        const double control = nw_topo_number(topo, (int)i, NW_FACT_ACS);
        const unsigned bits = (unsigned)nw_small(control);

        if (topo->nodes[i].kind != NW_NODE_BRIDGE)
            continue;
        on_path += acs->on_path[i];
        unknown += acs->on_path[i] && isnan(control);
        if (acs->on_path[i] && (bits & ACS_REDIRECT) != 0) {
            example = example < 0 ? (int)i : example;
            NW_TRY(tell_redirect(run, host, (int)i, example, acs));
        } else if ((bits & (ACS_REDIRECT | ACS_SOURCE_VALIDATION)) != 0)
            elsewhere++;
    }
    if (elsewhere > 0)
        NW_TRY(nw_tell(run, host, 0, NW_FINDING_INFO, "acs-elsewhere", NULL,
                       "ACS is on in %d PCIe bridge%s, but %s a direct path between GPUs and NICs",
                       elsewhere, elsewhere > 1 ? "s" : "",
                       elsewhere > 1 ? "none redirects" : "it does not redirect"));
    if (on_path > 0 && unknown == on_path && !is_unread_told(topo))
        nw_gap(run, host,
               "ACS of the PCIe bridges between GPUs and NICs (needs root: run check as root, or "
               "give \"lspci -vvv\" of root)");
    return NW_OK;
}

nw_rc nw_preflight_acs(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    struct acs acs = {
        .on_path = calloc(topo->node_count + 1, sizeof *acs.on_path),
        .gpu = calloc(topo->node_count + 1, sizeof *acs.gpu),
        .partner = calloc(topo->node_count + 1, sizeof *acs.partner),
    };
    nw_rc rc;

    if (acs.on_path == NULL || acs.gpu == NULL || acs.partner == NULL) {
        rc = nw_fail(NW_ENOMEM, "out of memory for %zu PCI devices", topo->node_count);
    } else {
        mark_paths(topo, &acs);
        rc = judge_acs(run, host, &acs);
    }
    free(acs.on_path);
    free(acs.gpu);
    free(acs.partner);
    return rc;
}

/* --- switches with slow writes -----------------------------------------------------------------
 */

/* Two GPUs below one such switch that write through its uplink to GPUs below two other root ports
 * had 2.7 GB/s where one had 36.8; reads are not slow (voipmonitor/rtx6kpro). */
static bool is_pex890xx(const struct nw_topo_node *bridge)
{
    return bridge->kind == NW_NODE_BRIDGE &&
           ((bridge->pci_vendor == 0x1000 && (bridge->pci_device & 0xfff0) == 0xc030) ||
            strstr(bridge->model, "PEX890") != NULL);
}

/* The topmost such switch port above a device; -1: none. */
static int switch_above(const struct nw_topo *topo, int device)
{
    int found = -1;

    for (int up = topo->nodes[device].parent; up > 0; up = topo->nodes[up].parent)
        if (is_pex890xx(&topo->nodes[up]))
            found = up;
    return found;
}

nw_rc nw_preflight_switches(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    bool shared = false, beyond = false;

    for (int gpu = -1; (gpu = nw_next(topo, NW_NODE_GPU, gpu)) >= 0;) {
        const int above = switch_above(topo, gpu);

        for (int peer = gpu; above > 0 && (peer = nw_next(topo, NW_NODE_GPU, peer)) >= 0;) {
            if (nw_topo_class(topo, gpu, peer, NULL) == NW_CLASS_NV)
                return NW_OK;
            shared |= switch_above(topo, peer) == above;
            beyond |= switch_above(topo, peer) != above;
        }
    }
    if (!shared || !beyond)
        return NW_OK;
    NW_TRY(nw_tell(run, host, 0, NW_FINDING_INFO, "pcie-switch-writes",
                   "measure copies of several GPUs at once, written and read; let GPUs read from "
                   "their peers where the program can choose",
                   "several GPUs share a PEX890xx switch and reach others through its uplink"));
    return nw_tell_effect(
        run, NAN,
        "writes of two GPUs at once through one uplink were seen to collapse from "
        "36.8 to 2.7 GB/s; reads were not slow, and one flow alone does not show "
        "it");
}

/* --- IOMMU -------------------------------------------------------------------------------------
 */

static bool has_nvidia(const struct nw_topo *topo)
{
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        if (nw_topo_is_nvidia(&topo->nodes[i]))
            return true;
    return false;
}

nw_rc nw_preflight_iommu(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    if (!nw_text_is(topo, 0, NW_FACT_IOMMU, "translated") || nw_is_virtual(topo) ||
        nw_is_grace(topo) || !has_nvidia(topo) ||
        nw_topo_count(topo, NW_NODE_GPU) + nw_count_rdma(topo) < 2)
        return NW_OK;
    NW_TRY(nw_tell(run, host, 0, NW_FINDING_WARN, "iommu-translates",
                   "boot with iommu=pt, or switch the IOMMU off in the firmware",
                   "the IOMMU translates every device's addresses, on a machine that is not "
                   "virtual"));
    return nw_tell_effect(run, NAN,
                          "traffic between GPUs and NICs goes up to the CPU's IOMMU and back; "
                          "peer-to-peer copies can hang or give wrong data (NVIDIA/nccl#199, "
                          "#257)");
}

/* --- GPUDirect RDMA ----------------------------------------------------------------------------
 */

/* InfiniBand and RoCE; other fabrics have other ways to GPU memory. */
static double direct_bytes_per_s(const struct nw_topo *topo, int *count_out)
{
    double sum = 0;

    *count_out = 0;
    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
        const struct nw_topo_node *nic = &topo->nodes[i];
        const bool verbs =
            strcmp(nic->fabric, "infiniband") == 0 || strcmp(nic->fabric, "roce") == 0;

        if (!verbs || nic->port_up == 0)
            continue;
        ++*count_out;
        sum += nic->rate_bits_per_s / 8;
    }
    return sum;
}

nw_rc nw_preflight_gpudirect(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const int gpu = nw_next(topo, NW_NODE_GPU, -1);
    const bool no_peermem = nw_is_no(topo, 0, NW_FACT_PEERMEM);
    const bool no_dmabuf = nw_is_no(topo, 0, NW_FACT_DMABUF);
    int nics;
    const double rate = direct_bytes_per_s(topo, &nics);
    char text[32];

    if (!has_nvidia(topo) || nics == 0)
        return NW_OK;
    if ((no_peermem && !no_dmabuf && nw_topo_fact(topo, 0, NW_FACT_DMABUF) == NULL) ||
        nw_topo_fact(topo, 0, NW_FACT_PEERMEM) == NULL)
        nw_gap(run, host,
               "GPUDirect RDMA (\"lsmod | grep nvidia_peermem\", or dma-buf of the open driver)");
    if (!no_peermem || !no_dmabuf)
        return NW_OK;
    NW_TRY(nw_tell(run, host, 0,
                   nw_is_consumer(&topo->nodes[gpu]) ? NW_FINDING_INFO : NW_FINDING_WARN,
                   "gpudirect-off",
                   "modprobe nvidia_peermem (and load it at boot), or install the open NVIDIA "
                   "kernel module on a kernel with dma-buf",
                   "GPUDirect RDMA is off: nvidia_peermem is not loaded and the driver has no "
                   "dma-buf, with %d RDMA NIC%s",
                   nics, nics > 1 ? "s" : ""));
    /* 33 with 4 NICs where 93 came with GPUDirect: NVIDIA/nccl#1412. */
    return nw_tell_effect(run, rate > 0 ? rate * (1 - 33.0 / 93) : NAN,
                          "bytes go through host memory: 33 of 93 GB/s on a machine with 4 NICs%s%s"
                          "%s",
                          rate > 0 ? "; the NICs here carry " : "",
                          rate > 0 ? nw_format_gb_per_s(text, rate) : "",
                          rate > 0 ? " GB/s together" : "");
}
