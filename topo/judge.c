/* Gaps and oddities of a topology in words. Nothing is concluded from what a source could not see.
 */
#include "topo/read.h"

#include <stdio.h>
#include <string.h>

/* "gpu0, gpu1, gpu2 and 5 more" */
struct names {
    char text[256];
    int count;
};

static void add_name(struct names *names, const char *name)
{
    enum { SHOWN = 8 };
    const size_t length = strlen(names->text);

    names->count++;
    if (names->count <= SHOWN)
        snprintf(names->text + length, sizeof names->text - length, "%s%s",
                 names->count > 1 ? ", " : "", name);
}

static const char *end_names(struct names *names)
{
    enum { SHOWN = 8 };
    const size_t length = strlen(names->text);

    if (names->count > SHOWN)
        snprintf(names->text + length, sizeof names->text - length, " and %d more",
                 names->count - SHOWN);
    return names->text;
}

static const char *place(const struct nw_topo *topo)
{
    return topo->host[0] != '\0' ? topo->host : topo->source;
}

static bool is_live(const struct nw_topo *topo)
{
    return (topo->sources & NW_SOURCE_XML) == 0;
}

static nw_rc judge_io(struct nw_topo *topo)
{
    if ((topo->gaps & NW_TOPO_NO_IO) == 0)
        return NW_OK;
    if (is_live(topo))
        return nw_findings_add(&topo->findings, NW_FINDING_WARN, "io-not-visible", place(topo),
                               "look from outside the container, or mount /sys into it",
                               "no PCI, network or block device is visible here: whether this "
                               "machine has GPUs, NICs and disks is unknown");
    return nw_findings_add(&topo->findings, NW_FINDING_WARN, "io-not-in-file", place(topo),
                           "export again with I/O: \"lstopo --whole-io FILE.xml\", or \"nodeworth "
                           "topo --save FILE\" on the machine",
                           "this file carries no I/O objects: GPUs, NICs and disks of the machine "
                           "are not in this file, which does not mean that it has none");
}

static nw_rc judge_gpus(struct nw_topo *topo)
{
    struct names nowhere = {0};
    int gpus = 0, nvidia = 0;

    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];

        if (node->kind != NW_NODE_GPU)
            continue;
        gpus++;
        nvidia += nw_topo_is_nvidia(node);
        if (node->numa < 0)
            add_name(&nowhere, node->name);
    }
    if ((topo->gaps & NW_TOPO_NO_IO) == 0 && gpus > 0 && nvidia == 0)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_INFO, "no-nvidia-gpu", place(topo), NULL,
                               "no NVIDIA GPU: %s of another maker",
                               gpus == 1 ? "the one GPU is" : "all GPUs are"));
    if (nowhere.count > 0 && topo->numa_count > 1)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_WARN, "gpu-place-unknown", place(topo),
                               "in a virtual machine: ask for NUMA placement to be passed through",
                               "the NUMA node of %s is unknown, so processes cannot be bound near",
                               end_names(&nowhere)));
    if ((topo->gaps & NW_TOPO_NO_NVLINK) != 0)
        NW_TRY(nw_findings_add(
            &topo->findings, NW_FINDING_WARN, "nvlink-unknown", place(topo),
            "\"nvidia-smi topo -m\" and \"nvidia-smi nvlink -s\" on the machine tell",
            "%d NVIDIA GPUs, but no word on NVLink (hwloc without its NVML part): whether they are "
            "joined by NVLink is unknown",
            nvidia));
    return NW_OK;
}

static double nvlink_sum(const struct nw_topo *topo, int gpu)
{
    double sum = 0;

    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == NW_LINK_NVLINK &&
            (topo->links[i].a == gpu || topo->links[i].b == gpu))
            sum += topo->links[i].bytes_per_s;
    return sum;
}

/* GPUs of one product in one machine have the same NVLinks; one with fewer has a fault, or is a
 * card without its bridge. */
static nw_rc judge_nvlink(struct nw_topo *topo)
{
    struct names weak = {0};
    double best = 0;

    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU && nvlink_sum(topo, (int)i) > best)
            best = nvlink_sum(topo, (int)i);
    if (best <= 0)
        return NW_OK;
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU && nw_topo_is_nvidia(&topo->nodes[i]) &&
            nvlink_sum(topo, (int)i) < 0.99 * best)
            add_name(&weak, topo->nodes[i].name);
    if (weak.count == 0)
        return NW_OK;
    return nw_findings_add(&topo->findings, NW_FINDING_WARN, "nvlink-uneven", place(topo),
                           "\"nvidia-smi nvlink -s\" shows inactive links",
                           "fewer NVLinks than their neighbours have: %s", end_names(&weak));
}

/* The link as it runs, or at best where that is known: an idle GPU slows its link down. */
static double judged_link(const struct nw_topo_node *node)
{
    return node->link_max_bytes_per_s > 0 ? node->link_max_bytes_per_s : node->link_bytes_per_s;
}

static nw_rc judge_slow_links(struct nw_topo *topo)
{
    struct names slow = {0}, narrow = {0};

    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];
        double best = 0;

        if (node->kind != NW_NODE_GPU || judged_link(node) <= 0)
            continue;
        for (size_t other = 0; other < topo->node_count; other++)
            if (topo->nodes[other].kind == NW_NODE_GPU &&
                strcmp(topo->nodes[other].model, node->model) == 0 &&
                judged_link(&topo->nodes[other]) > best)
                best = judged_link(&topo->nodes[other]);
        if (judged_link(node) < 0.99 * best)
            add_name(&slow, node->name);
        if (node->link_lanes > 0 && node->link_lanes < node->link_max_lanes)
            add_name(&narrow, node->name);
    }
    if (slow.count > 0)
        NW_TRY(nw_findings_add(
            &topo->findings, NW_FINDING_WARN, "pcie-slower-than-siblings", place(topo),
            "measure host-to-device bandwidth: an idle GPU slows its link down, under load it must "
            "be the same as its siblings'",
            "slower PCIe link than GPUs of the same model in this machine: %s", end_names(&slow)));
    if (narrow.count > 0)
        NW_TRY(nw_findings_add(
            &topo->findings, NW_FINDING_WARN, "pcie-narrow", place(topo),
            "reseat the card or riser; a width, unlike a speed, does not change when idle",
            "PCIe link runs narrower than both ends can: %s", end_names(&narrow)));
    return NW_OK;
}

static nw_rc judge_nics(struct nw_topo *topo)
{
    struct names down = {0}, iwarp = {0};

    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];

        if (node->kind != NW_NODE_NIC)
            continue;
        if (node->port_up == 0)
            add_name(&down, node->name);
        if (strcmp(node->fabric, "iwarp") == 0)
            add_name(&iwarp, node->name);
    }
    if (down.count > 0)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_INFO, "nic-down", place(topo),
                               "if it belongs to the quoted network: cable, switch port, driver",
                               "no port is active: %s", end_names(&down)));
    if (iwarp.count > 0)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_INFO, "iwarp", place(topo), NULL,
                               "RDMA over TCP (iWARP), neither InfiniBand nor RoCE: %s",
                               end_names(&iwarp)));
    return NW_OK;
}

static nw_rc judge_cpus(struct nw_topo *topo)
{
    struct names special = {0};

    if ((topo->gaps & NW_TOPO_RESTRICTED) != 0 && topo->pu_count < topo->pu_complete_count)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_INFO, "cpus-hidden", place(topo),
                               "look again outside the job, as root",
                               "%d of %d hardware threads are shown: the others are offline or "
                               "were not allowed to the process that looked",
                               topo->pu_count, topo->pu_complete_count));
    if ((topo->gaps & NW_TOPO_RESTRICTED) != 0 && topo->pu_allowed_count < topo->pu_count)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_INFO, "cpus-not-allowed", place(topo),
                               "ask the batch system or container for more CPUs",
                               "%d of %d hardware threads may be used here", topo->pu_allowed_count,
                               topo->pu_count));
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NUMA && topo->nodes[i].model[0] != '\0')
            add_name(&special, topo->nodes[i].name);
    if (special.count > 0)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_INFO, "memory-not-ram", place(topo),
                               NULL, "not counted as RAM (memory of GPUs, or persistent): %s",
                               end_names(&special)));
    return NW_OK;
}

nw_rc nw_topo_judge(struct nw_topo *topo)
{
    NW_TRY(judge_io(topo));
    NW_TRY(judge_cpus(topo));
    NW_TRY(judge_gpus(topo));
    NW_TRY(judge_nvlink(topo));
    NW_TRY(judge_slow_links(topo));
    return judge_nics(topo);
}

bool nw_topo_is_judged(const char *code)
{
    static const char *const codes[] = {
        "io-not-visible", "io-not-in-file", "cpus-hidden",       "cpus-not-allowed",
        "memory-not-ram", "no-nvidia-gpu",  "gpu-place-unknown", "nvlink-unknown",
        "nvlink-uneven",  "pcie-narrow",    "nic-down",          "pcie-slower-than-siblings",
        "iwarp"};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(codes[i], code) == 0)
            return true;
    return false;
}
