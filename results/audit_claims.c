#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/link.h"

#define GIB 1073741824.0

/* What one machine says to a claim. */
struct opinion {
    nw_audit_verdict verdict; /* NOT_MEASURED: nothing */
    double value;             /* NAN: a text */
    char text[128];           /* as found */
    char reason[300];
    const char *cause, *remedy; /* of SHORT; NULL */
};
typedef void opinion_of(const struct nw_quote *quote, const struct nw_machine *machine,
                        struct opinion *opinion);

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

static bool is_worse(const struct opinion *a, const struct opinion *b)
{
    if (weight(a->verdict) != weight(b->verdict))
        return weight(a->verdict) > weight(b->verdict);
    return a->value < b->value;
}

/* Every node must be as quoted: the worst machine speaks, machines that know nothing don't. */
static nw_rc judge_machines(const struct nw_audit_state *state, struct nw_audit_row *row,
                            opinion_of *opinion_of_machine, const char *how)
{
    struct opinion worst = {.verdict = NW_AUDIT_NOT_MEASURED, .value = NAN};
    const struct nw_machine *speaker = NULL;
    int met = 0;

    for (size_t i = 0; i < state->machine_count; i++) {
        struct opinion opinion = {.verdict = NW_AUDIT_NOT_MEASURED, .value = NAN};

        opinion_of_machine(state->quote, &state->machines[i], &opinion);
        met += opinion.verdict == NW_AUDIT_MET;
        if (speaker == NULL || is_worse(&opinion, &worst)) {
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
    if (speaker == NULL || worst.verdict == NW_AUDIT_NOT_MEASURED)
        return NW_OK;
    row->simulated = speaker->simulated;
    snprintf(row->source, sizeof row->source, "%s",
             speaker->host[0] != '\0' ? speaker->host : speaker->source);
    if (worst.verdict == NW_AUDIT_MET && met > 1 && row->reason[0] == '\0')
        nw_audit_reason(row, "on %d hosts", met);
    if (worst.verdict == NW_AUDIT_SHORT && worst.cause != NULL)
        return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source, worst.remedy,
                               "%s", worst.cause);
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
    if (seen < quoted)
        nw_audit_reason(row,
                        "the results cover %d of %d nodes; run on all of them: mpirun over "
                        "every host, then audit its results",
                        seen, quoted);
    return NW_OK;
}

/* --- GPU --- */

static void gpu_model_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                              struct opinion *opinion)
{
    struct nw_gpu_name quoted, found;
    const char *model = machine->gpu_model;

    nw_gpu_name_of(quote->gpu_model, false, &quoted);
    if (model[0] == '\0') {
        if (machine->gpu_count != 0)
            return;
        opinion->verdict = NW_AUDIT_SHORT;
        snprintf(opinion->text, sizeof opinion->text, "no GPU");
        opinion->cause = "no GPU is visible on the PCI bus";
        opinion->remedy = "a virtual machine may hide it: ask the vendor to pass the GPUs through";
        return;
    }
    /* Several models in one machine: the first that is not the quoted one. */
    for (int i = 0; machine->gpus_differ && i < machine->gpu_count; i++) {
        const struct nw_topo_node *gpu = nw_topo_nth(machine->topo, NW_NODE_GPU, i);

        nw_gpu_name_of(gpu->model, true, &found);
        if (gpu->model[0] != '\0' && !nw_gpu_name_fits(&quoted, &found))
            model = gpu->model;
    }
    nw_gpu_name_of(model, true, &found);
    snprintf(opinion->text, sizeof opinion->text, "%s", model);
    opinion->verdict = nw_gpu_name_fits(&quoted, &found) ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (opinion->verdict == NW_AUDIT_SHORT)
        opinion->cause = quoted.form != found.form && quoted.form != NW_GPU_FORM_UNKNOWN
                             ? "another form of the product: SXM modules, PCIe cards and NVL cards "
                               "differ in clocks, power and NVLink"
                             : "another product than the one quoted";
    else if (quoted.form == NW_GPU_FORM_UNKNOWN && found.form != NW_GPU_FORM_UNKNOWN)
        snprintf(opinion->reason, sizeof opinion->reason,
                 "the quote leaves the form open; found: %s", nw_gpu_form_text(found.form));
}

nw_rc nw_judge_gpu_model(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, gpu_model_opinion,
                          "no GPU is named in the results; give a topology (nodeworth topo --save "
                          "FILE on the node, --topo FILE here) or an nccl-tests log");
}

static void gpu_count_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                              struct opinion *opinion)
{
    if (machine->gpu_count >= 0) {
        opinion->value = machine->gpu_count;
        snprintf(opinion->text, sizeof opinion->text, "%d", machine->gpu_count);
        opinion->verdict = machine->gpu_count >= quote->gpu_count ? NW_AUDIT_MET : NW_AUDIT_SHORT;
        opinion->cause =
            "GPUs are missing on the PCI bus, or hidden from this container or virtual "
            "machine";
        opinion->remedy = "nvidia-smi -L on the host; dmesg | grep -i xid shows a GPU that fell "
                          "off the bus";
    } else if (machine->gpu_count_seen >= quote->gpu_count) {
        opinion->value = machine->gpu_count_seen;
        snprintf(opinion->text, sizeof opinion->text, "%d took part", machine->gpu_count_seen);
        opinion->verdict = NW_AUDIT_MET;
    } else if (machine->gpu_count_seen > 0) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "%d GPUs took part in the run; the node may have more", machine->gpu_count_seen);
    }
}

nw_rc nw_judge_gpu_count(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, gpu_count_opinion,
                          "give a topology of the node (--topo), or a run on all of its GPUs");
}

/* A driver shows less than what is sold: ECC on GDDR takes 1/16, firmware a little more (L40S:
 * 46068 of 49152 MiB = 93.7 %; H100 80GB: 81559 of 81920). */
#define GPU_MEMORY_SHARE 0.93

static void gpu_memory_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                               struct opinion *opinion)
{
    struct nw_gpu_name name;

    nw_gpu_name_of(machine->gpu_model, true, &name);
    if (machine->gpu_memory_bytes > 0) {
        opinion->value = machine->gpu_memory_bytes;
        snprintf(opinion->text, sizeof opinion->text, "%.1f GiB", opinion->value / GIB);
    } else if (name.memory_gb > 0) {
        opinion->value = name.memory_gb * GIB;
        snprintf(opinion->text, sizeof opinion->text, "%d GB by its name", name.memory_gb);
    } else {
        return;
    }
    opinion->verdict = opinion->value >= GPU_MEMORY_SHARE * quote->gpu_memory_bytes
                           ? NW_AUDIT_MET
                           : NW_AUDIT_SHORT;
    opinion->cause = "a smaller variant of the product, or a share of a GPU (MIG, vGPU)";
    opinion->remedy = "nvidia-smi -q shows memory and MIG mode";
}

nw_rc nw_judge_gpu_memory(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, gpu_memory_opinion,
                          "give a topology of the node with its GPU memory (--topo)");
}

/* Numbers of equal links are compared within rounding of their printed forms. */
#define SAME_RATE 0.97

static void pcie_of_gpu(const struct nw_topo_node *gpu, const struct nw_quote *quote,
                        struct opinion *opinion)
{
    const int lanes = quote->pcie_lanes > 0 ? quote->pcie_lanes : 16;
    const double wanted = nw_pcie_bytes_per_s(quote->pcie_generation, lanes);
    const bool best_known = gpu->link_max_bytes_per_s > 0;
    const double rate = best_known ? gpu->link_max_bytes_per_s : gpu->link_bytes_per_s;
    const int width = best_known ? gpu->link_max_lanes : gpu->link_lanes;
    int generation, named_lanes;

    if (!(rate > 0))
        return;
    nw_pcie_from_rate(width > 0 ? rate * 16 / width : rate, &generation, &named_lanes);
    opinion->value = rate;
    if (width > 0 && generation > 0)
        snprintf(opinion->text, sizeof opinion->text, "%s: Gen%d x%d", gpu->name, generation,
                 width);
    else
        snprintf(opinion->text, sizeof opinion->text, "%s: %.1f GB/s", gpu->name, rate / 1e9);
    if (rate >= SAME_RATE * wanted) {
        opinion->verdict = NW_AUDIT_MET;
        if (best_known && gpu->link_bytes_per_s > 0 && gpu->link_bytes_per_s < SAME_RATE * rate)
            snprintf(opinion->reason, sizeof opinion->reason,
                     "at best; %s runs slower now, as idle GPUs do", gpu->name);
    } else if (best_known || (width > 0 && width < lanes)) {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = "a slot, riser or switch of fewer lanes or an older generation, or a link "
                         "that trained down";
        opinion->remedy = "lspci -vv on the GPU and on the bridges above it: LnkCap against LnkSta";
    } else {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "%s runs at %.1f GB/s now; idle GPUs slow their link down", gpu->name, rate / 1e9);
    }
}

static void pcie_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                         struct opinion *opinion)
{
    bool spoken = false;

    for (int i = 0; machine->topo != NULL && i < machine->gpu_count; i++) {
        struct opinion gpu = {.verdict = NW_AUDIT_NOT_MEASURED, .value = NAN};

        pcie_of_gpu(nw_topo_nth(machine->topo, NW_NODE_GPU, i), quote, &gpu);
        if (!spoken || is_worse(&gpu, opinion))
            *opinion = gpu;
        spoken = true;
    }
}

nw_rc nw_judge_pcie(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    const int lanes = state->quote->pcie_lanes;

    row->ceiling = nw_pcie_bytes_per_s(state->quote->pcie_generation, lanes > 0 ? lanes : 16);
    return judge_machines(state, row, pcie_opinion,
                          "give a topology of the node, saved while the GPUs work (--topo)");
}

/* --- network --- */

static void nics_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                         struct opinion *opinion)
{
    const double wanted = isfinite(quote->nic_bytes_per_s) ? quote->nic_bytes_per_s * 8 : 0;
    int good = 0, unknown = 0, down = 0;
    double fastest = 0;

    if (machine->topo == NULL || !machine->has_io)
        return;
    const int count = nw_topo_count(machine->topo, NW_NODE_NIC);

    for (int i = 0; i < count; i++) {
        const struct nw_topo_node *nic = nw_topo_nth(machine->topo, NW_NODE_NIC, i);

        if (nic->port_up == 0)
            down++;
        else if (!(nic->rate_bits_per_s > 0))
            unknown++;
        else if (nic->rate_bits_per_s >= SAME_RATE * wanted)
            good++;
        if (nic->port_up != 0 && nic->rate_bits_per_s > fastest)
            fastest = nic->rate_bits_per_s;
    }
    const int needed = quote->nic_count > 0 ? quote->nic_count : 1;

    snprintf(opinion->text, sizeof opinion->text,
             wanted > 0 ? "%d of %d NICs at %.4g Gb/s or more" : "%d of %d NICs", good, count,
             wanted / 1e9);
    opinion->value = good;
    if (good >= needed) {
        opinion->verdict = NW_AUDIT_MET;
        return;
    }
    if (good + unknown >= needed) {
        snprintf(opinion->reason, sizeof opinion->reason, "the rate of %d NICs is unknown",
                 unknown);
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

nw_rc nw_judge_nics(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, nics_opinion, "give a topology of the node (--topo)");
}

static bool does_rdma(const struct nw_topo_node *nic)
{
    static const char *const fabrics[] = {"infiniband", "roce", "efa", "iwarp", "cxi", "omnipath"};

    for (size_t i = 0; i < sizeof fabrics / sizeof fabrics[0]; i++)
        if (strcmp(nic->fabric, fabrics[i]) == 0)
            return true;
    return false;
}

static void rdma_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                         struct opinion *opinion)
{
    if (machine->topo == NULL || !machine->has_io)
        return;
    const int count = nw_topo_count(machine->topo, NW_NODE_NIC);
    int able = 0;
    const char *first = "";

    for (int i = 0; i < count; i++) {
        const struct nw_topo_node *nic = nw_topo_nth(machine->topo, NW_NODE_NIC, i);

        if (!does_rdma(nic) || nic->port_up == 0)
            continue;
        if (able++ == 0)
            first = nic->fabric;
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

nw_rc nw_judge_rdma(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, rdma_opinion, "give a topology of the node (--topo)");
}

static void kind_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                         struct opinion *opinion)
{
    int known = 0;

    if (machine->topo == NULL || !machine->has_io)
        return;
    for (int i = 0; i < nw_topo_count(machine->topo, NW_NODE_NIC); i++) {
        const struct nw_topo_node *nic = nw_topo_nth(machine->topo, NW_NODE_NIC, i);

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

nw_rc nw_judge_kind(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, kind_opinion, "give a topology of the node (--topo)");
}

/* --- CPU, memory, disks --- */

static void count_opinion(int found, int quoted, const struct nw_machine *machine,
                          struct opinion *opinion)
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

static void cores_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                          struct opinion *opinion)
{
    count_opinion(machine->core_count, quote->core_count, machine, opinion);
    if (machine->thread_count >= quote->core_count) {
        opinion->cause = "the vendor counts hardware threads (vCPUs) as cores";
        opinion->remedy = "quote them as threads, or ask for physical cores";
    } else {
        opinion->cause = "a smaller processor, or a share of the machine";
    }
}

static void threads_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                            struct opinion *opinion)
{
    count_opinion(machine->thread_count, quote->thread_count, machine, opinion);
    opinion->cause = machine->thread_count > 0 && machine->thread_count == machine->core_count
                         ? "hardware threads (SMT) are switched off"
                         : "a smaller processor, or a share of the machine";
}

nw_rc nw_judge_cores(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, cores_opinion, "give a topology of the node (--topo)");
}

nw_rc nw_judge_threads(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, threads_opinion, "give a topology of the node (--topo)");
}

/* Firmware, kernel and crash kernel keep 1 to 3 % of what is installed; a GB sold as a GiB is 7 %.
 */
#define RAM_SHARE 0.95

static void ram_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                        struct opinion *opinion)
{
    if (!(machine->ram_bytes > 0))
        return;
    opinion->value = machine->ram_bytes;
    snprintf(opinion->text, sizeof opinion->text, "%.0f GiB", machine->ram_bytes / GIB);
    if (machine->ram_bytes >= RAM_SHARE * quote->ram_bytes) {
        opinion->verdict = NW_AUDIT_MET;
    } else if (machine->restricted) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "the process that looked sees %.0f GiB, which may be a part",
                 machine->ram_bytes / GIB);
    } else {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = machine->ram_bytes >= RAM_SHARE * quote->ram_bytes * 1e9 / GIB
                             ? "10^9 bytes sold as GiB"
                             : "less memory than quoted, or a share of the machine";
    }
}

nw_rc nw_judge_ram(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, ram_opinion, "give a topology of the node (--topo)");
}

static void disks_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                          struct opinion *opinion)
{
    int found = 0, unknown = 0;
    const double wanted = isfinite(quote->nvme_bytes) ? quote->nvme_bytes : 0;
    const int needed = quote->nvme_count > 0 ? quote->nvme_count : 1;

    if (machine->topo == NULL || !machine->has_io)
        return;
    for (int i = 0; i < nw_topo_count(machine->topo, NW_NODE_DISK); i++) {
        const struct nw_topo_node *disk = nw_topo_nth(machine->topo, NW_NODE_DISK, i);

        if (strncmp(disk->name, "nvme", 4) != 0 && disk->pci_class != 0x0108)
            continue;
        if (wanted > 0 && disk->memory_bytes == 0)
            unknown++;
        else if ((double)disk->memory_bytes >= SAME_RATE * wanted)
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
    } else {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = "fewer or smaller NVMe disks than quoted, or disks that are not attached";
        opinion->remedy = "lsblk -d -o NAME,SIZE,MODEL on the node";
    }
}

nw_rc nw_judge_disks(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return judge_machines(state, row, disks_opinion, "give a topology of the node (--topo)");
}

nw_rc nw_judge_disk_read(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    (void)state;
    nw_audit_reason(row, "no result here is of a disk; on the node: fio --name=read --rw=read "
                         "--bs=1M --direct=1 --iodepth=32 --size=20G --filename=FILE");
    return NW_OK;
}
