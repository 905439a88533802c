#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/link.h"

/* Less than quoted by more than rounding. */
#define LESS 0.97

/* --- likely causes, by the share of the need that was reached --- */

struct cause {
    double from, below; /* share of what a healthy machine reaches */
    const char *text, *remedy;
};

/* Shares: 33 of 93 GB/s without GPUDirect RDMA (NVIDIA/nccl#1412), 9.8 of 24 with ACS redirecting
 * (NVIDIA/nccl-tests#112), 16 of 24 with the NIC on the other socket (NVIDIA/nccl#412), 1.4 of 100
 * and more over IP sockets (Azure/aks-rdma-infiniband). */
static const struct cause rdma_causes[] = {
    {0, 0.12, "TCP sockets are used instead of RDMA",
     "NCCL_DEBUG=INFO shows NET/IB or NET/Socket; check NCCL_IB_DISABLE, NCCL_IB_HCA, "
     "NCCL_IB_GID_INDEX"},
    {0.12, 0.6, "GPUDirect RDMA is off on a node: data goes through host memory",
     "lsmod | grep nvidia_peermem, or dma-buf; NCCL_DEBUG=INFO shows GDRDMA where it is on"},
    {0.12, 0.6, "PCIe ACS or an IOMMU redirects traffic between GPU and NIC through the CPU",
     "lspci -vvv | grep ACSCtl; ask the vendor to switch ACS off on the PCIe switches"},
    {0.4, 0.62, "half of the NICs carry the traffic, or they run at half of their rate",
     "ibstat on each node: port state and rate; NCCL_IB_HCA must name them all"},
    {0.55, 0.97, "a NIC is down, or sits on another socket than its GPU",
     "nodeworth topo on each node; nvidia-smi topo -m: PIX or PXB between a GPU and its NIC"},
    {0.12, 1, "the fabric between these nodes is shared or congested",
     "run one pair of nodes at a time; ask the vendor for the oversubscription of the leaf"},
};

static const struct cause tcp_causes[] = {
    {0, 0.6, "a slower link is in the path, or the traffic is shaped",
     "ethtool on both ends and the vendor's limit for the virtual machine"},
    {0, 0.8, "MPI uses another interface than the quoted one",
     "name it: OMPI_MCA_btl_tcp_if_include=IFACE"},
    {0.3, 1, "one TCP connection or one core does not fill the link",
     "several connections: OMPI_MCA_btl_tcp_links=2; iperf3 -P 4 for comparison"},
    {0, 1, "the processors were busy with other work during the run",
     "uptime on each node; run with nothing else there"},
};

static const struct cause nvlink_causes[] = {
    {0, 0.3, "NVLink is not used: data goes over PCIe or host memory",
     "nvidia-smi topo -m; NCCL_DEBUG=INFO shows P2P or SHM; NCCL_P2P_DISABLE, container isolation, "
     "the fabric manager's state"},
    {0.3, 1, "some NVLinks are inactive", "nvidia-smi nvlink -s on each GPU"},
    {0.5, 1, "a GPU is throttled or slower than the others",
     "nvidia-smi -q -d PERFORMANCE,CLOCK during the run"},
};

/* `share`: of what a healthy machine reaches. */
static nw_rc add_causes_of_share(struct nw_audit_row *row, const struct cause *causes, size_t count,
                                 double share)
{
    for (size_t i = 0; i < count; i++)
        if (share >= causes[i].from && share < causes[i].below)
            NW_TRY(nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                                   causes[i].remedy, "%s", causes[i].text));
    return NW_OK;
}

static nw_rc add_causes(struct nw_audit_row *row, const struct cause *causes, size_t count,
                        const struct nw_wire_evidence *evidence)
{
    char peak[32], at[32];

    if (evidence->plateau.falls)
        NW_TRY(nw_findings_add(&row->causes, NW_FINDING_WARN, "curve-falls", row->source,
                               "look for congestion control, pause frames or a throttled device "
                               "that shows after some milliseconds",
                               "the rate falls with size: the best was %s GB/s at %s",
                               nw_format_gb_per_s(peak, evidence->plateau.peak_bytes_per_s),
                               nw_format_bytes(at, evidence->plateau.peak_bytes)));
    return add_causes_of_share(row, causes, count, evidence->score);
}

/* --- what every rate has in common --- */

static void fill(struct nw_audit_row *row, const struct nw_wire_evidence *evidence)
{
    row->verdict = evidence->verdict;
    row->simulated = evidence->simulated;
    row->reading_count = evidence->reading_count;
    memcpy(row->readings, evidence->readings, sizeof row->readings);
    nw_audit_reason(row, "%s", evidence->reason);
    if (evidence->run->context.source[0] != '\0')
        snprintf(row->source, sizeof row->source, "%s", evidence->run->context.source);
    else
        snprintf(row->source, sizeof row->source, "%s, lane %s", evidence->collective,
                 evidence->lane);
    if (evidence->best < 0)
        return;
    const struct nw_audit_reading *reading = &evidence->readings[evidence->best];
    const double scale = reading->bytes_per_s / evidence->plateau.busbw_bytes_per_s;

    row->part = evidence->part;
    row->ceiling *= evidence->part;
    row->expected_low = reading->expected_low;
    row->expected_high = reading->expected_high;
    row->measured = reading->bytes_per_s;
    if (evidence->has_interval) {
        row->measured_low = evidence->plateau.low * scale;
        row->measured_high = evidence->plateau.high * scale;
    }
    if (row->reason[0] == '\0' && evidence->reading_count > 1)
        nw_audit_reason(row, "%s, read as %s", evidence->collective, reading->algorithm);
    else if (row->reason[0] == '\0')
        nw_audit_reason(row, "%s", evidence->collective);
}

static nw_rc short_by_hardware(struct nw_audit_row *row, const char *remedy, const char *text)
{
    char ceiling[32];

    row->verdict = NW_AUDIT_SHORT;
    if (row->ceiling > 0 && (row->reason[0] == '\0' || isnan(row->measured)))
        nw_audit_reason(row, "the hardware carries at most %s GB/s",
                        nw_format_gb_per_s(ceiling, row->ceiling));
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source, remedy, "%s",
                           text);
}

/* --- NVLink --- */

/* Of one GPU, one way, by the topology: where GPUs hang on switches every pair shows the whole
 * bundle, where they are joined directly the pairs share it. NAN: unknown. */
static double nvlink_of_node(const struct nw_topo *topo, int node, double product)
{
    double sum = 0, most = 0;

    for (size_t i = 0; i < topo->link_count; i++) {
        const struct nw_topo_link *link = &topo->links[i];

        if (link->kind != NW_LINK_NVLINK || (link->a != node && link->b != node))
            continue;
        sum += link->bytes_per_s;
        if (link->bytes_per_s > most)
            most = link->bytes_per_s;
    }
    /* Without the product's figure: 18 links of 50 GB/s are the most there is. */
    return sum <= 1.02 * (isfinite(product) ? product : 18 * nw_nvlink_bytes_per_s(5)) ? sum : most;
}

static double nvlink_by_topology(const struct nw_audit_state *state, double product)
{
    double least = NAN;

    for (size_t i = 0; i < state->machine_count; i++) {
        const struct nw_machine *machine = &state->machines[i];

        if (machine->topo == NULL || !machine->has_io || machine->gpu_count < 2 ||
            (machine->topo->gaps & NW_TOPO_NO_NVLINK) != 0)
            continue;
        for (size_t node = 0; node < machine->topo->node_count; node++) {
            if (machine->topo->nodes[node].kind != NW_NODE_GPU)
                continue;
            const double rate = nvlink_of_node(machine->topo, (int)node, product);

            if (!(rate >= least))
                least = rate;
        }
    }
    return least;
}

static nw_rc judge_nvlink_ceiling(struct nw_audit_row *row, double product, double topology)
{
    if (product == 0)
        return short_by_hardware(row, "ask for SXM modules where NVLink matters",
                                 "this GPU has no NVLink");
    if (row->ceiling == 0)
        return short_by_hardware(row, "nvidia-smi nvlink -s; the fabric manager's state",
                                 "no NVLink is active on a GPU");
    if (fabs(row->quoted / 2 / row->ceiling - 1) < 0.03)
        return short_by_hardware(row, "in the quote file: nvlink_is = bidirectional",
                                 "the figure counts both directions: one way it is half");
    if (isfinite(topology) && topology < LESS * product)
        return short_by_hardware(row, "nvidia-smi nvlink -s on each GPU",
                                 "some NVLinks are inactive");
    return short_by_hardware(row, "compare with the product page of the GPU that is there",
                             "the GPU's NVLink is slower than quoted");
}

static void say_nvlink_unmeasured(const struct nw_audit_state *state, struct nw_audit_row *row,
                                  bool bridge)
{
    const char *how = bridge
                          ? "bridges join pairs of cards: run all_reduce_perf on the two GPUs of a "
                            "bridge up to 8G and audit its log"
                          : "run all_reduce_perf of nccl-tests on all GPUs of one node, -b 8 -e "
                            "8G -f 2, and audit its log";
    char ceiling[32];
    bool any_gpu = nw_audit_gpu_model(state) != NULL;

    for (size_t i = 0; i < state->machine_count; i++)
        any_gpu = any_gpu || state->machines[i].gpu_count != 0;
    if (nw_wire_has_unknown_hosts(state))
        nw_audit_reason(row, "the log does not tell how many nodes it ran on; %s", how);
    else if (!any_gpu && state->machine_count > 0)
        nw_audit_reason(row, "no GPU here; on the GPU node: %s", how);
    else if (row->ceiling > 0)
        nw_audit_reason(row, "the GPU's links carry at most %s GB/s; %s",
                        nw_format_gb_per_s(ceiling, row->ceiling), how);
    else
        nw_audit_reason(row, "no run on the GPUs of one node; %s", how);
}

/* Bridges join pairs: only a run of two GPUs can be one, and it need not be. */
static size_t keep_pairs(struct nw_wire_evidence *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (list[i].rank_count != 2)
            continue;
        if (list[i].verdict == NW_AUDIT_SHORT) {
            list[i].verdict = NW_AUDIT_NOT_MEASURED;
            snprintf(list[i].reason, sizeof list[i].reason,
                     "bridges join pairs of cards, and these two need not be one; choose them by "
                     "nvidia-smi topo -m (NV#)");
        }
        list[kept++] = list[i];
    }
    return kept;
}

static nw_rc decide_nvlink(const struct nw_audit_state *state, struct nw_audit_row *row,
                           const struct nw_wire_target *target, bool bridge)
{
    struct nw_wire_evidence *list;
    size_t count;
    nw_rc rc = NW_OK;

    NW_TRY(nw_wire_gather(state, target, &list, &count));
    if (bridge)
        count = keep_pairs(list, count);
    const struct nw_wire_evidence *evidence = nw_wire_decide(list, count, state->findings);

    if (evidence == NULL)
        say_nvlink_unmeasured(state, row, bridge);
    else
        fill(row, evidence);
    if (row->verdict == NW_AUDIT_SHORT)
        rc = add_causes(row, nvlink_causes, sizeof nvlink_causes / sizeof nvlink_causes[0],
                        evidence);
    free(list);
    return rc;
}

nw_rc nw_judge_nvlink(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    const char *model = nw_audit_gpu_model(state);
    struct nw_gpu_nvlink product = {NAN, false, false};
    struct nw_gpu_name name;
    bool by_pairs;

    if (model != NULL) {
        nw_gpu_name_of(model, true, &name);
        product = nw_gpu_nvlink_of(&name);
        snprintf(row->source, sizeof row->source, "%s", model);
    }
    const double topology = nvlink_by_topology(state, product.bytes_per_s);

    row->ceiling = isfinite(topology) ? topology : product.bytes_per_s;
    if (row->ceiling == 0)
        return judge_nvlink_ceiling(row, product.bytes_per_s, topology);
    NW_TRY(nw_judge_nvlink_by_pairs(state, product.bytes_per_s, row, &by_pairs));
    if (by_pairs && row->verdict == NW_AUDIT_SHORT)
        NW_TRY(
            add_causes_of_share(row, nvlink_causes, sizeof nvlink_causes / sizeof nvlink_causes[0],
                                row->measured / (nw_nvlink_copy_efficiency().low * row->quoted)));
    if (!by_pairs)
        NW_TRY(decide_nvlink(state, row,
                             &(struct nw_wire_target){.gpu = true,
                                                      .reduces = product.reduces,
                                                      .quoted = row->quoted,
                                                      .ceiling = row->ceiling},
                             product.bridge));
    if (row->ceiling < LESS * row->quoted)
        return judge_nvlink_ceiling(row, product.bytes_per_s, topology);
    return NW_OK;
}

/* --- network --- */

/* What the ports of the worst node sum up to; NAN: unknown. */
static double nics_by_topology(const struct nw_audit_state *state)
{
    double least = NAN;

    for (size_t i = 0; i < state->machine_count; i++) {
        const struct nw_machine *machine = &state->machines[i];
        double sum = 0;
        bool known = machine->topo != NULL && machine->has_io;

        for (int nic = 0; known && nic < nw_topo_count(machine->topo, NW_NODE_NIC); nic++) {
            const struct nw_topo_node *node = nw_topo_nth(machine->topo, NW_NODE_NIC, nic);

            if (node->port_up == 0)
                continue;
            known = node->rate_bits_per_s > 0;
            sum += node->rate_bits_per_s / 8;
        }
        if (known && !(sum >= least))
            least = sum;
    }
    return least;
}

static struct nw_wire_target network_target(const struct nw_audit_state *state,
                                            const struct nw_audit_row *row)
{
    const char *model = nw_audit_gpu_model(state);
    struct nw_wire_target target = {
        .between_nodes = true,
        .gpu = state->quote->gpu_count > 0 || state->quote->gpu_model[0] != '\0',
        .rdma = state->quote->has_rdma != 0 &&
                (state->quote->has_rdma == 1 || state->quote->gpu_count > 0),
        .may_be_slow_inside = false,
        .quoted = row->quoted,
        .ceiling = row->ceiling,
        .gpus_per_node = nw_audit_gpus_per_node(state),
    };
    struct nw_gpu_name name;

    if (model != NULL) {
        nw_gpu_name_of(model, true, &name);
        const struct nw_gpu_nvlink nvlink = nw_gpu_nvlink_of(&name);

        target.may_be_slow_inside = nvlink.bytes_per_s == 0 || nvlink.bridge;
    }
    return target;
}

nw_rc nw_judge_network(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    const double detected = nics_by_topology(state);
    struct nw_wire_evidence *list;
    size_t count;
    nw_rc rc = NW_OK;

    /* The arithmetic of the quoted ports, or of those that are there when they are less. */
    row->ceiling = detected < row->quoted ? detected : row->quoted;
    const struct nw_wire_target target = network_target(state, row);

    NW_TRY(nw_wire_gather(state, &target, &list, &count));
    const struct nw_wire_evidence *evidence = nw_wire_decide(list, count, state->findings);

    if (evidence != NULL)
        fill(row, evidence);
    else if (nw_wire_has_unknown_hosts(state))
        nw_audit_reason(row,
                        "the log does not tell how many nodes it ran on; keep the lines \"Rank "
                        "0 ... on HOST device\" that nccl-tests prints first");
    else if (state->host_count == 1)
        nw_audit_reason(row, "the results are of one node; run on two or more");
    else
        nw_audit_reason(row, "no collective across nodes is among the results; run on all of them");
    if (row->verdict == NW_AUDIT_SHORT && target.rdma)
        rc = add_causes(row, rdma_causes, sizeof rdma_causes / sizeof rdma_causes[0], evidence);
    else if (row->verdict == NW_AUDIT_SHORT)
        rc = add_causes(row, tcp_causes, sizeof tcp_causes / sizeof tcp_causes[0], evidence);
    if (rc == NW_OK && row->ceiling < LESS * row->quoted * row->part)
        rc =
            short_by_hardware(row, "ibstat or ip -br link on the node: state and rate of each port",
                              "the ports of the node sum up to less than quoted");
    free(list);
    return rc;
}
