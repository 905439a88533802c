#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/link.h"

/* --- likely causes, by the share of the need that was reached --- */

#define RDMA_REMEDY                                                                                \
    "NCCL_DEBUG=INFO shows NET/IB or NET/Socket; check NCCL_IB_DISABLE, NCCL_IB_HCA, "             \
    "NCCL_IB_GID_INDEX"

/* Shares: 33 of 93 GB/s without GPUDirect RDMA (NVIDIA/nccl#1412), 9.8 of 24 with ACS redirecting
 * (NVIDIA/nccl-tests#112), 16 of 24 with the NIC on the other socket (NVIDIA/nccl#412), 1.4 of 100
 * and more over IP sockets (Azure/aks-rdma-infiniband). */
static const struct nw_rate_cause rdma_causes[] = {
    {0, 0.12, "TCP sockets are used instead of RDMA", RDMA_REMEDY},
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

static const struct nw_rate_cause tcp_causes[] = {
    {0, 0.6, "a slower link is in the path, or the traffic is shaped",
     "ethtool on both ends and the vendor's limit for the virtual machine"},
    {0, 0.8, "MPI uses another interface than the quoted one",
     "name it: OMPI_MCA_btl_tcp_if_include=IFACE"},
    {0.3, 1, "one TCP connection or one core does not fill the link",
     "several connections: OMPI_MCA_btl_tcp_links=2; iperf3 -P 4 for comparison"},
    {0, 1, "the processors were busy with other work during the run",
     "uptime on each node; run with nothing else there"},
};

/* `share`: of what a healthy machine reaches. */
nw_rc nw_rate_add_causes_of_share(struct nw_audit_row *row, const struct nw_rate_cause *causes,
                                  size_t count, double share)
{
    for (size_t i = 0; i < count; i++)
        if (share >= causes[i].from && share < causes[i].below)
            NW_TRY(nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                                   causes[i].remedy, "%s", causes[i].text));
    return NW_OK;
}

nw_rc nw_rate_add_causes(struct nw_audit_row *row, const struct nw_rate_cause *causes, size_t count,
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
    return nw_rate_add_causes_of_share(row, causes, count, evidence->score);
}

/* --- what every rate has in common --- */

void nw_rate_fill(struct nw_audit_row *row, const struct nw_wire_evidence *evidence)
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

nw_rc nw_rate_short_by_hardware(struct nw_audit_row *row, const char *remedy, const char *text)
{
    char ceiling[32];

    row->verdict = NW_AUDIT_SHORT;
    if (row->ceiling > 0 && (row->reason[0] == '\0' || isnan(row->measured)))
        nw_audit_reason(row, "the hardware carries at most %s GB/s",
                        nw_format_gb_per_s(ceiling, row->ceiling));
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source, remedy, "%s",
                           text);
}

/* --- network --- */

/* What the ports of the worst node sum up to; NAN: unknown. */
static double nics_by_topology(const struct nw_audit_state *state)
{
    double least = NAN;

    for (size_t i = 0; i < state->machine_count; i++) {
        const struct nw_machine *machine = &state->machines[i];
        double sum = 0;
        bool complete;
        const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_NIC, &complete);
        bool known = topo != NULL && complete;

        for (int nic = 0; known && nic < nw_topo_count(topo, NW_NODE_NIC); nic++) {
            const struct nw_topo_node *node = nw_topo_nth(topo, NW_NODE_NIC, nic);

            if (node->port_up == 0)
                continue;
            known = node->rate_bits_per_s > 0;
            sum += node->rate_bits_per_s / 8;
        }
        if (known && sum > 0 && !(sum >= least)) /* without any NIC it would not be there */
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

static void say_unmeasured(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    snprintf(row->how, sizeof row->how,
             "mpirun over two or more nodes: nodeworth bench --cases coll");
    if (nw_wire_has_unknown_hosts(state))
        nw_audit_reason(row,
                        "the log does not tell how many nodes it ran on; keep the lines \"Rank "
                        "0 ... on HOST device\" that nccl-tests prints first");
    else if (state->host_count == 1)
        nw_audit_reason(row, "the results are of one node; run on two or more");
    else
        nw_audit_reason(row, "no collective across nodes is among the results; run on all of them");
}

/* Of a network that is sold with RDMA: TCP's own rate says what the first cause of the table only
 * supposes. */
static nw_rc add_rdma_causes(const struct nw_audit_state *state,
                             const struct nw_wire_evidence *evidence, struct nw_audit_row *row)
{
    const size_t count = sizeof rdma_causes / sizeof rdma_causes[0];
    struct nw_tcp_control control;

    nw_tcp_control_of(state, evidence, row->quoted * row->part, &control);
    if (control.says != NW_TCP_SILENT)
        row->simulated = row->simulated || control.simulated;
    if (control.says == NW_TCP_RUNS && row->verdict != NW_AUDIT_SHORT)
        return nw_findings_add(state->findings, NW_FINDING_WARN, "tcp-runs", row->source,
                               RDMA_REMEDY, "%s", control.text);
    if (row->verdict != NW_AUDIT_SHORT)
        return NW_OK;
    if (control.says == NW_TCP_IS_SLOWER)
        nw_audit_reason(row, "%s", control.text);
    else if (control.says != NW_TCP_SILENT)
        NW_TRY(nw_findings_add(&row->causes, NW_FINDING_FAIL,
                               control.says == NW_TCP_RUNS ? "tcp-runs" : row->key, row->source,
                               control.says == NW_TCP_IS_FASTER
                                   ? "look at the processors, the PCIe paths and the interfaces "
                                     "that NCCL takes: NCCL_DEBUG=INFO"
                                   : RDMA_REMEDY,
                               "%s", control.text));
    const size_t skip = control.says != NW_TCP_SILENT;
    struct nw_wire_evidence judged = *evidence;

    if (control.says == NW_TCP_IS_SLOWER) /* then it is one of the others, however slow */
        judged.score = fmax(judged.score, rdma_causes[0].below);
    return nw_rate_add_causes(row, rdma_causes + skip, count - skip, &judged);
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
        nw_rate_fill(row, evidence);
    else
        say_unmeasured(state, row);
    if (evidence != NULL && target.rdma)
        rc = add_rdma_causes(state, evidence, row);
    else if (row->verdict == NW_AUDIT_SHORT)
        rc =
            nw_rate_add_causes(row, tcp_causes, sizeof tcp_causes / sizeof tcp_causes[0], evidence);
    if (rc == NW_OK && row->ceiling < NW_SAME_RATE * row->quoted * row->part)
        rc = nw_rate_short_by_hardware(
            row, "ibstat or ip -br link on the node: state and rate of each port",
            "the ports of the node sum up to less than quoted");
    free(list);
    return rc;
}
