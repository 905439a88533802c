/* The table of rules, and what is done with what they find. */
#include "topo/preflight.h"

#include <stdlib.h>

#include "topo/preflight_run.h"

const struct nw_preflight_rule nw_preflight_rules[] = {
    {"gpus-differ nics-differ cpus-differ memory-differs", "the devices of several hosts", NULL,
     nw_preflight_hosts_counts},
    {"hosts-differ", "versions and settings of several hosts", NULL, nw_preflight_hosts_alike},
    {"hosts-differ", "GPUs and NICs of several hosts", NULL, nw_preflight_hosts_devices},
    {"nic-names-differ", "PCI addresses of the NICs of several hosts", NULL,
     nw_preflight_nic_names_hosts},
    {"mtu-differs", "MTU of the ports of several hosts", NULL, nw_preflight_mtu_hosts},
    {"gpu-missing gpus-not-ours gpus-mixed gpu-memory-differs", "the GPUs' models",
     nw_preflight_gpu_count, NULL},
    {"gpu-fraction product-contradiction", "the GPUs' names, memory, power limits, NVLinks",
     nw_preflight_product, NULL},
    {"siblings-differ", "facts of several devices of one model", nw_preflight_siblings, NULL},
    {"nvlink-down nvlink-bridge-seat nvlink-none nvlink-no-bridge nvlink-cut-down nvlink-uneven "
     "nvlink-errors driver-slow",
     "active NVLinks, or a matrix of links", nw_preflight_nvlinks, NULL},
    {"nvlink-fabric fabric-manager-off imex-stopped", "services, or the GPUs' fabric state",
     nw_preflight_fabric, NULL},
    {"memory-remap-failed memory-worn memory-remap-pending ecc-uncorrected gpu-needs-reset",
     "ECC counts and remapped rows", nw_preflight_memory, NULL},
    {"power-brake-all power-brake gpu-too-hot hw-slowdown power-cap-low",
     "clock event reasons, power, clocks", nw_preflight_throttle, NULL},
    {"power-limit-one power-limit-lowered", "power limits", nw_preflight_power, NULL},
    {"mig-on compute-prohibited compute-exclusive persistence-off ecc-off", "the GPUs' modes",
     nw_preflight_modes, NULL},
    {"gpu-lost xid-memory xid-gpu xid-nvlink", "the kernel's log", nw_preflight_xid, NULL},
    {"pcie-narrow", "PCIe widths", nw_preflight_pcie_width, NULL},
    {"pcie-slow-under-load pcie-limited pcie-slower-than-siblings",
     "PCIe generations; under load for the first", nw_preflight_pcie_speed, NULL},
    {"pcie-errors pcie-replays", "the kernel's log, replay counts", nw_preflight_pcie_errors, NULL},
    {"acs-redirect acs-elsewhere", "ACS registers of the bridges (root)", nw_preflight_acs, NULL},
    {"pcie-switch-writes", "PCI bridges above the GPUs", nw_preflight_switches, NULL},
    {"iommu-translates", "the kernel's IOMMU mode", nw_preflight_iommu, NULL},
    {"gpudirect-off", "kernel modules", nw_preflight_gpudirect, NULL},
    {"nic-down nic-port-down ib-no-subnet-manager rdma-all-down", "states of ports",
     nw_preflight_ports, NULL},
    {"nic-slow port-narrow", "rates and widths of ports", nw_preflight_port_rates, NULL},
    {"nics-share-port", "system GUIDs and PCI addresses of NICs", nw_preflight_cards, NULL},
    {"mtu-differs roce-mtu-small mtu-below-max", "MTU of ports", nw_preflight_mtu, NULL},
    {"roce-loss ib-retransmits port-symbol-errors link-flaps", "counters of ports",
     nw_preflight_losses, NULL},
    {"nic-name-moved", "PCI addresses of NICs", nw_preflight_nic_names, NULL},
    {"near-nic-down nic-wrong-socket nic-not-for-gpus gpu-without-near-nic",
     "classes between GPUs and NICs", nw_preflight_nic_place, NULL},
    {"gpus-uneven", "NUMA nodes of GPUs", nw_preflight_gpu_place, NULL},
    {"cpu-powersave numa-balancing-on", "settings of the kernel", nw_preflight_cpu, NULL},
    {"memlock-small shm-small open-files-few", "limits of processes", nw_preflight_limits, NULL},
    {"clock-not-synchronised", "the clock's state", nw_preflight_clock, NULL},
    {"data-path data-slow", "the file system of the data path (--disk)", nw_preflight_data, NULL},
    {.codes = NULL},
};

/* Findings of the readers (topo/judge.c) that a rule here judges better, that only say what the
 * source could not see (they belong to "not-checked"), or that are of the file rather than of the
 * machine. */
static const struct {
    const char *code;
    enum { LEFT_OUT, GAP, INFO } as;
    const char *gap;
} carried[] = {
    {"nvlink-uneven", LEFT_OUT, NULL},
    {"pcie-slower-than-siblings", LEFT_OUT, NULL},
    {"pcie-narrow", LEFT_OUT, NULL},
    {"nic-down", LEFT_OUT, NULL},
    {"rdma-names-out-of-order", LEFT_OUT, NULL},
    {"nvlink-to-itself", INFO, NULL},
    {"file-cut", INFO, NULL},
    {"nvlink-unknown", GAP, "NVLink (\"nvidia-smi nvlink -s\" and \"nvidia-smi topo -m\" tell)"},
    {"io-not-in-file", GAP, "GPUs, NICs and disks (the file has no I/O objects)"},
    {"io-not-visible", GAP, "GPUs, NICs and disks (no I/O device is visible here)"},
};

/* The index in `carried`, -1: none. */
static int find_carried(const char *code)
{
    for (size_t i = 0; i < sizeof carried / sizeof *carried; i++)
        if (strcmp(carried[i].code, code) == 0)
            return (int)i;
    return -1;
}

/* The device that a reader's words name: "gpu3", "node2 gpu3"; 0: none. */
static int device_named(const struct nw_topo *topo, const char *where)
{
    const size_t host = strlen(topo->host);

    if (host > 0 && strncmp(where, topo->host, host) == 0 && where[host] == ' ')
        where += host + 1;
    for (size_t i = 1; i < topo->node_count; i++)
        if (topo->nodes[i].name[0] != '\0' && strcmp(topo->nodes[i].name, where) == 0)
            return (int)i;
    return 0;
}

/* What a reader could not see stands in one list with what the rules could not check. */
static void carry_gap(struct nw_preflight_run *run, size_t host, const struct nw_finding *finding)
{
    static const char begin[] = "not checked: ";
    const char *text = finding->text;
    char gap[1024];

    if (strncmp(text, begin, sizeof begin - 1) == 0)
        text += sizeof begin - 1;
    snprintf(gap, sizeof gap, "%s%s%s%s", text, finding->remedy != NULL ? " (" : "",
             finding->remedy != NULL ? finding->remedy : "", finding->remedy != NULL ? ")" : "");
    nw_gap(run, host, gap);
}

static nw_severity carried_severity(const struct nw_preflight_run *run, int known,
                                    const struct nw_finding *finding)
{
    const bool cut = run->input->warn_of_cut && strcmp(finding->code, "file-cut") == 0;

    return known >= 0 && !cut ? NW_FINDING_INFO : finding->severity;
}

static nw_rc carry_over(struct nw_preflight_run *run, size_t host)
{
    const struct nw_findings *from = &nw_run_host(run, host)->findings;

    for (size_t i = 0; i < from->count; i++) {
        const struct nw_finding *finding = &from->items[i];
        const int known = find_carried(finding->code);
        const int node = device_named(nw_run_host(run, host), finding->where);

        if (strcmp(finding->code, "not-checked") == 0) {
            carry_gap(run, host, finding);
            continue;
        }
        if (known >= 0 && carried[known].as == GAP)
            nw_gap(run, host, carried[known].gap);
        if (known >= 0 && carried[known].as != INFO)
            continue;
        NW_TRY(nw_tell(run, host, node, carried_severity(run, known, finding), finding->code,
                       finding->remedy, "%s", finding->text));
        if (finding->effect != NULL)
            NW_TRY(nw_tell_effect(run, finding->lost_bytes_per_s, "%s", finding->effect));
        if (node == 0)
            NW_TRY(nw_tell_where(run, host, finding->where));
    }
    return NW_OK;
}

/* Rules compare devices with each other; the largest domain of GPUs known has 576. */
enum { DEVICES_MOST = 2048 };

static nw_rc check_size(const struct nw_topo *topo)
{
    static const nw_node_kind kinds[] = {NW_NODE_GPU, NW_NODE_NIC, NW_NODE_PORT};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (nw_topo_count(topo, kinds[i]) > DEVICES_MOST)
            return nw_fail(NW_EUSAGE, "%s: %d nodes of kind \"%s\"; at most %d can be judged",
                           topo->source[0] != '\0' ? topo->source : topo->host,
                           nw_topo_count(topo, kinds[i]), nw_node_kind_key(kinds[i]),
                           (int)DEVICES_MOST);
    return NW_OK;
}

static nw_rc apply(struct nw_preflight_run *run)
{
    const size_t host_count = run->input->host_count;

    for (size_t host = 0; host < host_count; host++)
        NW_TRY(check_size(nw_run_host(run, host)));
    for (const struct nw_preflight_rule *rule = nw_preflight_rules; rule->codes != NULL; rule++) {
        if (rule->all != NULL)
            NW_TRY(rule->all(run));
        else
            for (size_t host = 0; host < host_count; host++)
                NW_TRY(rule->one(run, host));
    }
    for (size_t host = 0; host < host_count; host++)
        NW_TRY(carry_over(run, host));
    for (size_t host = 0; host < host_count && !run->input->no_gaps; host++)
        if (run->gaps[host][0] != '\0')
            NW_TRY(nw_tell(run, host, 0, NW_FINDING_INFO, "not-checked", NULL, "not checked: %s",
                           run->gaps[host]));
    return NW_OK;
}

nw_rc nw_preflight_judge(const struct nw_preflight_input *input, struct nw_findings *findings)
{
    struct nw_preflight_run run = {.input = input};
    nw_rc rc;

    run.gaps = calloc(input->host_count + 1, sizeof *run.gaps);
    if (run.gaps == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the findings of %zu hosts", input->host_count);
    rc = apply(&run);
    for (int severity = NW_FINDING_FAIL; severity >= NW_FINDING_INFO && rc == NW_OK; severity--)
        rc = nw_preflight_join(&run, (nw_severity)severity, findings);
    nw_findings_free(&run.told);
    free(run.places);
    free(run.gaps);
    return rc;
}
