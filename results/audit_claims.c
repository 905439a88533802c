#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/link.h"

void nw_audit_reason(struct nw_audit_row *row, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(row->reason, sizeof row->reason, format, arguments);
    va_end(arguments);
}

static int weight(nw_audit_verdict verdict)
{
    static const int weights[] = {
        [NW_AUDIT_NOT_MEASURED] = 0, [NW_AUDIT_MET] = 1, [NW_AUDIT_SHORT] = 2};

    return weights[verdict];
}

bool nw_opinion_is_worse(const struct nw_opinion *a, const struct nw_opinion *b)
{
    if (weight(a->verdict) != weight(b->verdict))
        return weight(a->verdict) > weight(b->verdict);
    return a->value < b->value;
}

nw_rc nw_audit_judge_machines(const struct nw_audit_state *state, struct nw_audit_row *row,
                              nw_opinion_of *opinion_of_machine, const char *how)
{
    struct nw_opinion worst = {.verdict = NW_AUDIT_NOT_MEASURED, .value = NAN};
    const struct nw_machine *speaker = NULL;
    int met = 0;

    for (size_t i = 0; i < state->machine_count; i++) {
        struct nw_opinion opinion = {.verdict = NW_AUDIT_NOT_MEASURED, .value = NAN};

        opinion_of_machine(state->quote, &state->machines[i], &opinion);
        met += opinion.verdict == NW_AUDIT_MET;
        const bool says_why = worst.verdict == NW_AUDIT_NOT_MEASURED && worst.reason[0] == '\0' &&
                              opinion.reason[0] != '\0';

        if (speaker == NULL || nw_opinion_is_worse(&opinion, &worst) || says_why) {
            worst = opinion;
            speaker = &state->machines[i];
        }
    }
    row->verdict = worst.verdict;
    row->measured = worst.value;
    snprintf(row->measured_text, sizeof row->measured_text, "%s", worst.text);
    nw_audit_reason(row, "%s%s%s", worst.reason,
                    worst.reason[0] != '\0' && worst.verdict == NW_AUDIT_NOT_MEASURED ? "; " : "",
                    worst.verdict == NW_AUDIT_NOT_MEASURED ? how : "");
    if (worst.verdict == NW_AUDIT_NOT_MEASURED)
        snprintf(row->how, sizeof row->how, "%s", how);
    if (speaker == NULL || worst.verdict == NW_AUDIT_NOT_MEASURED)
        return NW_OK;
    row->simulated = speaker->simulated;
    snprintf(row->source, sizeof row->source, "%s",
             speaker->host[0] != '\0' ? speaker->host : speaker->source);
    row->machine_count = met;
    if (worst.verdict == NW_AUDIT_SHORT && (worst.cause != NULL || worst.cause_text[0] != '\0'))
        return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source, worst.remedy,
                               "%s", worst.cause_text[0] != '\0' ? worst.cause_text : worst.cause);
    return NW_OK;
}

nw_rc nw_judge_nodes(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    const int quoted = state->quote->node_count, seen = state->host_count;

    if (seen > 0) {
        row->measured = seen;
        snprintf(row->measured_text, sizeof row->measured_text, "%d seen", seen);
    }
    row->verdict = seen >= quoted ? NW_AUDIT_MET : NW_AUDIT_NOT_MEASURED;
    if (seen >= quoted)
        return NW_OK;
    snprintf(row->how, sizeof row->how,
             "run on all of them: mpirun over every host, then audit its results");
    nw_audit_reason(row, "the results cover %d of %d nodes; %s", seen, quoted, row->how);
    return NW_OK;
}

/* --- network --- */

void nw_opinion_nics(const struct nw_quote *quote, const struct nw_machine *machine,
                     struct nw_opinion *opinion)
{
    const double wanted = isfinite(quote->nic_bytes_per_s) ? quote->nic_bytes_per_s * 8 : 0;
    int good = 0, unknown = 0, down = 0;
    double fastest = 0;
    bool complete;
    const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_NIC, &complete);

    if (topo == NULL)
        return;
    const int count = nw_topo_count(topo, NW_NODE_NIC);

    for (int i = 0; i < count; i++) {
        const struct nw_topo_node *nic = nw_topo_nth(topo, NW_NODE_NIC, i);

        if (nic->port_up == 0)
            down++;
        else if (!(nic->rate_bits_per_s > 0))
            unknown++;
        else if (nic->rate_bits_per_s >= NW_SAME_RATE * wanted)
            good++;
        if (nic->port_up != 0 && nic->rate_bits_per_s > fastest)
            fastest = nic->rate_bits_per_s;
    }
    const int needed = quote->nic_count > 0 ? quote->nic_count : 1;

    snprintf(opinion->text, sizeof opinion->text,
             wanted > 0 ? "%d of %d NICs at %.4g Gb/s or more" : "%d of %d NICs", good, count,
             wanted / 1e9);
    if (count == 0)
        snprintf(opinion->text, sizeof opinion->text, "no NIC");
    opinion->value = good;
    if (good >= needed) {
        opinion->verdict = NW_AUDIT_MET;
        return;
    }
    if (good + unknown >= needed) {
        snprintf(opinion->text, sizeof opinion->text, "%d of unknown rate", unknown);
        snprintf(opinion->reason, sizeof opinion->reason, "%d of %d NICs do not tell their rate",
                 unknown, count);
        return;
    }
    if (!complete) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "this source shows %d NICs; there may be more", count);
        return;
    }
    opinion->verdict = NW_AUDIT_SHORT;
    if (fastest > 0)
        snprintf(opinion->reason, sizeof opinion->reason, "the fastest runs at %.4g Gb/s",
                 fastest / 1e9);
    opinion->cause = down > 0 ? "ports are down"
                              : "fewer or slower NICs than quoted, or hidden "
                                "from this container or virtual machine";
    opinion->remedy = "ibstat or ip -br link on the node: state and rate of each port";
}

void nw_opinion_rdma(const struct nw_quote *quote, const struct nw_machine *machine,
                     struct nw_opinion *opinion)
{
    bool complete;
    const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_NIC, &complete);

    if (topo == NULL)
        return;
    const int count = nw_topo_count(topo, NW_NODE_NIC);
    int able = 0, unknown = 0;
    const char *first = "";

    for (int i = 0; i < count; i++) {
        const struct nw_topo_node *nic = nw_topo_nth(topo, NW_NODE_NIC, i);

        unknown += nic->fabric[0] == '\0' && nic->port_up != 0;
        if (!nw_nic_does_rdma(nic) || nic->port_up == 0)
            continue;
        if (able++ == 0)
            first = nic->fabric;
    }
    if (able == 0 && (unknown > 0 || !complete)) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "%d of %d NICs do not tell whether they do RDMA", unknown, count);
        return;
    }
    opinion->value = able;
    if (able > 0)
        snprintf(opinion->text, sizeof opinion->text, "%d NICs with RDMA (%s)", able, first);
    else
        snprintf(opinion->text, sizeof opinion->text, "none of %d NICs has RDMA", count);
    opinion->verdict = quote->has_rdma == 0 || able > 0 ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (able > 0 && quote->has_rdma == 1)
        snprintf(opinion->reason, sizeof opinion->reason,
                 "devices are there; whether GPU memory uses them shows in the network rate");
    opinion->cause = "no RDMA device is visible, or its port is down";
    opinion->remedy = "ibv_devinfo on the node; load the driver (mlx5_ib, efa), or ask the vendor "
                      "to pass the devices through";
}

void nw_opinion_kind(const struct nw_quote *quote, const struct nw_machine *machine,
                     struct nw_opinion *opinion)
{
    int known = 0;
    bool complete;
    const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_NIC, &complete);

    if (topo == NULL)
        return;
    for (int i = 0; i < nw_topo_count(topo, NW_NODE_NIC); i++) {
        const struct nw_topo_node *nic = nw_topo_nth(topo, NW_NODE_NIC, i);

        if (nic->fabric[0] == '\0')
            continue;
        known++;
        if (opinion->verdict != NW_AUDIT_MET)
            snprintf(opinion->text, sizeof opinion->text, "%s", nic->fabric);
        if (strcasecmp(nic->fabric, quote->network_kind) == 0)
            opinion->verdict = NW_AUDIT_MET;
    }
    if (known > 0 && opinion->verdict != NW_AUDIT_MET) {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = "another network than the one quoted";
    }
}

/* --- CPU, memory, disks --- */

static void count_opinion(int found, int quoted, const struct nw_machine *machine,
                          struct nw_opinion *opinion)
{
    if (found <= 0)
        return;
    opinion->value = found;
    snprintf(opinion->text, sizeof opinion->text, "%d", found);
    if (found >= quoted) {
        opinion->verdict = NW_AUDIT_MET;
    } else if (machine->restricted) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "the process that looked may use %d of the machine's only", found);
    } else {
        opinion->verdict = NW_AUDIT_SHORT;
    }
}

void nw_opinion_cores(const struct nw_quote *quote, const struct nw_machine *machine,
                      struct nw_opinion *opinion)
{
    count_opinion(machine->core_count, quote->core_count, machine, opinion);
    if (machine->thread_count >= quote->core_count) {
        opinion->cause = "the vendor counts hardware threads (vCPUs) as cores";
        opinion->remedy = "quote them as threads, or ask for physical cores";
    } else {
        opinion->cause = "a smaller processor, or a share of the machine";
    }
}

void nw_opinion_threads(const struct nw_quote *quote, const struct nw_machine *machine,
                        struct nw_opinion *opinion)
{
    count_opinion(machine->thread_count, quote->thread_count, machine, opinion);
    opinion->cause = machine->thread_count > 0 && machine->thread_count == machine->core_count &&
                             2 * machine->thread_count >= quote->thread_count
                         ? "hardware threads (SMT) are switched off"
                         : "a smaller processor, or a share of the machine";
}

/* Firmware, kernel and crash kernel keep 1 to 3 % of what is installed; a GB sold as a GiB is 7 %.
 */
#define RAM_SHARE 0.95

void nw_opinion_ram(const struct nw_quote *quote, const struct nw_machine *machine,
                    struct nw_opinion *opinion)
{
    if (!(machine->ram_bytes > 0))
        return;
    opinion->value = machine->ram_bytes;
    snprintf(opinion->text, sizeof opinion->text, "%.0f GiB", machine->ram_bytes / NW_GIB);
    if (machine->ram_bytes >= RAM_SHARE * quote->ram_bytes) {
        opinion->verdict = NW_AUDIT_MET;
    } else if (machine->restricted) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "the process that looked sees %.0f GiB, which may be a part",
                 machine->ram_bytes / NW_GIB);
    } else {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = machine->ram_bytes >= RAM_SHARE * quote->ram_bytes * 1e9 / NW_GIB
                             ? "10^9 bytes sold as GiB"
                             : "less memory than quoted, or a share of the machine";
    }
}

void nw_opinion_disks(const struct nw_quote *quote, const struct nw_machine *machine,
                      struct nw_opinion *opinion)
{
    int found = 0, unknown = 0;
    const double wanted = isfinite(quote->nvme_bytes) ? quote->nvme_bytes : 0;
    const int needed = quote->nvme_count > 0 ? quote->nvme_count : 1;

    bool complete;
    const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_DISK, &complete);

    if (topo == NULL)
        return;
    for (int i = 0; i < nw_topo_count(topo, NW_NODE_DISK); i++) {
        const struct nw_topo_node *disk = nw_topo_nth(topo, NW_NODE_DISK, i);

        if (strncmp(disk->name, "nvme", 4) != 0 && disk->pci_class != 0x0108)
            continue;
        if (wanted > 0 && disk->memory_bytes == 0)
            unknown++;
        else if ((double)disk->memory_bytes >= NW_SAME_RATE * wanted)
            found++;
    }
    opinion->value = found;
    if (wanted > 0)
        snprintf(opinion->text, sizeof opinion->text, "%d of %.3g TB or more", found,
                 wanted / 1e12);
    else
        snprintf(opinion->text, sizeof opinion->text, "%d", found);
    if (found >= needed) {
        opinion->verdict = NW_AUDIT_MET;
    } else if (found + unknown >= needed) {
        snprintf(opinion->reason, sizeof opinion->reason, "the size of %d disks is unknown",
                 unknown);
    } else if (!complete) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "this source shows %d disks; there may be more", found);
    } else {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = "fewer or smaller NVMe disks than quoted, or disks that are not attached";
        opinion->remedy = "lsblk -d -o NAME,SIZE,MODEL on the node";
    }
}
