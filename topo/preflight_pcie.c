/* PCIe links: width at any time, speed only under load (an idle GPU slows its link down), what
 * limits the path to the CPU, errors. */
#include "base/units.h"
#include "topo/link.h"
#include "topo/preflight_run.h"

/* Replays since the driver was loaded: a handful is usual. */
#define REPLAYS_MANY 1000
/* Corrected errors in the kernel's log: one or two are usual after hot resets. */
#define ERRORS_MANY 10

/* One generation less is half the rate, and a cost; two are a fault. */
#define SLOW_FAILS 0.4

#define NW_PCI_VENDOR_QEMU 0x1b36

static bool is_storage(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_DISK ||
           (node->kind == NW_NODE_PCI && (node->pci_class & 0xff00) == 0x0100);
}

/* --- width -------------------------------------------------------------------------------------
 */

/* A NIC needs no more than its ports carry. */
static bool is_enough(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_NIC && node->rate_bits_per_s > 0 &&
           node->link_bytes_per_s >= node->rate_bits_per_s / 8;
}

static nw_rc judge_width(struct nw_preflight_run *run, size_t host, int index)
{
    const struct nw_topo_node *node = &nw_run_host(run, host)->nodes[index];
    const bool counts = node->kind == NW_NODE_GPU || node->kind == NW_NODE_NIC || is_storage(node);
    /* Without its ports' rate a NIC may be a slow one, for which few lanes are enough. */
    const bool unsure = node->kind == NW_NODE_NIC && !(node->rate_bits_per_s > 0);
    double best, now;
    char text[32], most[32];

    if (!counts || node->link_lanes <= 0 || node->link_lanes >= node->link_max_lanes ||
        is_enough(node))
        return NW_OK;
    NW_TRY(nw_tell(run, host, index, unsure ? NW_FINDING_INFO : NW_FINDING_WARN, "pcie-narrow",
                   "reseat card, riser or cable, look at the slot's width and its bifurcation in "
                   "the firmware; a width, unlike a speed, does not change when idle",
                   "PCIe link runs x%d where x%d is possible", node->link_lanes,
                   node->link_max_lanes));
    best = node->link_max_bytes_per_s;
    now = best * node->link_lanes / node->link_max_lanes;
    if (!(best > 0))
        return NW_OK;
    return nw_tell_effect(run, best - now, "at most %s of %s GB/s to and from the CPU",
                          nw_format_gb_per_s(text, now), nw_format_gb_per_s(most, best));
}

nw_rc nw_preflight_pcie_width(struct nw_preflight_run *run, size_t host)
{
    for (size_t i = 0; i < nw_run_host(run, host)->node_count; i++)
        NW_TRY(judge_width(run, host, (int)i));
    return NW_OK;
}

/* --- speed -------------------------------------------------------------------------------------
 */

static int lanes_of(const struct nw_topo_node *node)
{
    return node->link_lanes > 0 ? node->link_lanes
                                : (node->link_max_lanes > 0 ? node->link_max_lanes : 16);
}

static nw_rc judge_loaded(struct nw_preflight_run *run, size_t host, int index)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double loaded = nw_topo_number(topo, index, NW_FACT_LINK_LOADED);
    const double most = nw_topo_number(topo, index, NW_FACT_LINK_MAX_GENERATION);
    const double now = nw_topo_number(topo, index, NW_FACT_LINK_GENERATION);
    const int lanes = lanes_of(&topo->nodes[index]);
    const double is = nw_pcie_bytes_per_s(nw_small(loaded), lanes);
    const double can = nw_pcie_bytes_per_s(nw_small(most), lanes);
    char text[32], best[32];

    if (isnan(loaded)) {
        if (!isnan(now) && !(now >= most))
            nw_gap(run, host,
                   "PCIe speed of GPUs under load (they are idle, and idle links run slower: "
                   "check --load measures it)");
        return NW_OK;
    }
    if (!(loaded < most))
        return NW_OK;
    NW_TRY(nw_tell(run, host, index, is < SLOW_FAILS * can ? NW_FINDING_FAIL : NW_FINDING_WARN,
                   "pcie-slow-under-load",
                   "riser, cable or slot: take the riser out, or set the slot's speed in the "
                   "firmware",
                   "PCIe Gen%.0f while copying, where both ends can Gen%.0f", loaded, most));
    return nw_tell_effect(run, can - is, "at most %s of %s GB/s to and from the CPU",
                          nw_format_gb_per_s(text, is), nw_format_gb_per_s(best, can));
}

/* A port of a switch that says less than the ports of the same chip below it: no chip is like that;
 * cloud hosts show their switches so (Gen2 above Gen5 ports on OCI BM.GPU.H100.8). */
static bool is_misread(const struct nw_topo_node *bridge, const struct nw_topo_node *below)
{
    return below->kind == NW_NODE_BRIDGE && bridge->pci_device != 0 &&
           bridge->pci_vendor == below->pci_vendor && bridge->pci_device == below->pci_device &&
           below->link_max_bytes_per_s > bridge->link_max_bytes_per_s;
}

/* The nearest bridge above whose link is slower than the device's own at best; -1: none known. AMD
 * GPUs are a switch of their own, whose inner link is faster. */
static int limiting_bridge(const struct nw_topo *topo, int index)
{
    const struct nw_topo_node *device = &topo->nodes[index];
    int below = index;

    for (int up = device->parent; up > 0; below = up, up = topo->nodes[up].parent) {
        const struct nw_topo_node *bridge = &topo->nodes[up];

        if (bridge->pci_vendor == NW_PCI_VENDOR_QEMU)
            return -1;
        if (bridge->kind == NW_NODE_BRIDGE && bridge->link_max_bytes_per_s > 0 &&
            bridge->link_max_bytes_per_s < 0.98 * device->link_max_bytes_per_s &&
            !is_misread(bridge, &topo->nodes[below]))
            return device->kind != NW_NODE_GPU || nw_topo_is_nvidia(device) ? up : -1;
    }
    return -1;
}

static nw_rc tell_limited(struct nw_preflight_run *run, size_t host, int index, double is,
                          double can, const char *by)
{
    char text[32], best[32];

    NW_TRY(nw_tell(run, host, index, NW_FINDING_WARN, "pcie-limited",
                   "another slot, or a machine whose switches and slots are of the device's "
                   "generation and width",
                   "cannot use the PCIe link that it has: limited by %s", by));
    if (!(can > is))
        return NW_OK;
    return nw_tell_effect(run, can - is, "at most %s of %s GB/s to and from the CPU",
                          nw_format_gb_per_s(text, is), nw_format_gb_per_s(best, can));
}

/* By the kernel's word, else by the links above, else by what device and slot can do. */
static nw_rc judge_path(struct nw_preflight_run *run, size_t host, int index)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const struct nw_topo_node *node = &topo->nodes[index];
    const char *by = nw_topo_text(topo, index, NW_FACT_LIMITED_BY);
    const double device = nw_topo_number(topo, index, NW_FACT_DEVICE_MAX_GENERATION);
    const double slot = nw_topo_number(topo, index, NW_FACT_LINK_MAX_GENERATION);
    const int bridge = limiting_bridge(topo, index);
    const int lanes = node->link_max_lanes > 0 ? node->link_max_lanes : lanes_of(node);
    const double can =
        device > 0 ? nw_pcie_bytes_per_s(nw_small(device), lanes) : node->link_max_bytes_per_s;
    char text[192];

    /* Ports that a hypervisor makes up have speeds and widths that nothing runs at. */
    if (nw_is_virtual(topo))
        return NW_OK;
    /* The kernel's word counts for every device, also one that its log alone does not name. */
    if (by != NULL && !is_enough(node))
        return tell_limited(run, host, index, nw_topo_number(topo, index, NW_FACT_LIMITED_TO),
                            nw_topo_number(topo, index, NW_FACT_CAPABLE), by);
    if (node->kind != NW_NODE_GPU && node->kind != NW_NODE_NIC)
        return NW_OK;
    if (bridge > 0) {
        const double is = topo->nodes[bridge].link_max_bytes_per_s;
        int generation, width;

        nw_pcie_from_rate(is, &generation, &width);
        snprintf(text, sizeof text, "the Gen%d x%d link of bridge %s above it", generation, width,
                 topo->nodes[bridge].name);
        if (node->kind == NW_NODE_GPU || is < node->rate_bits_per_s / 8)
            return tell_limited(run, host, index, is, node->link_max_bytes_per_s, text);
        return NW_OK;
    }
    if (node->kind == NW_NODE_GPU && device > slot) {
        snprintf(text, sizeof text, "its slot: Gen%.0f, the GPU can Gen%.0f", slot, device);
        return tell_limited(run, host, index, nw_pcie_bytes_per_s(nw_small(slot), lanes), can,
                            text);
    }
    return NW_OK;
}

/* By the best speed, which does not depend on load. */
static nw_rc judge_siblings(struct nw_preflight_run *run, size_t host, int index)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const struct nw_topo_node *node = &topo->nodes[index];
    double best = 0;
    char text[32], most[32];

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        if (nw_is_alike(&topo->nodes[i], node))
            best = fmax(best, topo->nodes[i].link_max_bytes_per_s);
    if (!(node->link_max_bytes_per_s > 0) || node->link_max_bytes_per_s >= 0.98 * best)
        return NW_OK;
    NW_TRY(nw_tell(run, host, index, NW_FINDING_WARN, "pcie-slower-than-siblings",
                   "look at its slot, riser and cable, and at the firmware's settings of the slot",
                   "its PCIe link can carry %s GB/s at best, those of its siblings %s GB/s",
                   nw_format_gb_per_s(text, node->link_max_bytes_per_s),
                   nw_format_gb_per_s(most, best)));
    return nw_tell_effect(run, best - node->link_max_bytes_per_s,
                          "copies to and from it, and collectives through it, are slower");
}

nw_rc nw_preflight_pcie_speed(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (size_t i = 0; i < topo->node_count; i++) {
        if (topo->nodes[i].kind == NW_NODE_GPU) {
            NW_TRY(judge_loaded(run, host, (int)i));
            NW_TRY(judge_siblings(run, host, (int)i));
        }
        NW_TRY(judge_path(run, host, (int)i));
    }
    return NW_OK;
}

/* --- errors ------------------------------------------------------------------------------------
 */

nw_rc nw_preflight_pcie_errors(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (size_t i = 0; i < topo->node_count; i++) {
        const double errors = nw_topo_number(topo, (int)i, NW_FACT_AER);
        const double replays = nw_topo_number(topo, (int)i, NW_FACT_REPLAYS);

        if (errors > 0)
            NW_TRY(nw_tell(run, host, (int)i,
                           errors >= ERRORS_MANY ? NW_FINDING_WARN : NW_FINDING_INFO, "pcie-errors",
                           "reseat card and riser, clean contacts; a link with errors repeats "
                           "packets, and ends with a GPU that falls off the bus",
                           "the kernel's log has %.0f PCIe error%s (AER)", errors,
                           errors > 1 ? "s" : ""));
        if (replays >= REPLAYS_MANY)
            NW_TRY(nw_tell(run, host, (int)i, NW_FINDING_WARN, "pcie-replays",
                           "reseat card and riser, clean contacts",
                           "%.0f PCIe packets were sent again", replays));
    }
    return NW_OK;
}
