#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/audit_private.h"
#include "topo/link.h"

/* A machine without any GPU, alone: not the quoted one, and nothing is known of that. */
static bool says_no_gpu(const struct nw_machine *machine, struct nw_opinion *opinion)
{
    if (machine->gpu_count != 0 || machine->others_have_gpus)
        return false;
    snprintf(opinion->reason, sizeof opinion->reason, "no GPU here");
    return true;
}

/* The same product but for its form? */
static bool is_other_form(struct nw_gpu_name quoted, const struct nw_gpu_name found)
{
    quoted.form = found.form;
    return nw_gpu_name_fits(&quoted, &found);
}

/* "350 W limit, no NVLink: this is H100 PCIe": what else was read speaks for the name. */
static void say_product(const struct nw_machine *machine, const struct nw_gpu_name *found,
                        struct nw_opinion *opinion)
{
    const double fact = nw_machine_least(machine, NW_FACT_POWER_LIMIT, NULL, NULL);
    const double watts = isfinite(fact) ? fact : machine->power_limit_w;
    const double links = nw_machine_least(machine, NW_FACT_NVLINK_COUNT, NULL, NULL);
    char power[48] = "", nvlink[48] = "", product[64];

    if (isfinite(watts))
        snprintf(power, sizeof power, "%.4g W limit", watts);
    if (links > 0)
        snprintf(nvlink, sizeof nvlink, "%.0f NVLinks", links);
    else if (links == 0 || machine->nvlink == 0)
        snprintf(nvlink, sizeof nvlink, "no NVLink");
    if (power[0] == '\0' && nvlink[0] == '\0')
        return;
    snprintf(opinion->reason, sizeof opinion->reason, "%s%s%s: this is %s", power,
             power[0] != '\0' && nvlink[0] != '\0' ? ", " : "", nvlink,
             nw_gpu_name_text(found, product));
}

static void gpu_model_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                              struct nw_opinion *opinion)
{
    struct nw_gpu_name quoted, found;
    const char *model = machine->gpu_model;
    bool complete;
    const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_GPU, &complete);

    nw_gpu_name_of(quote->gpu_model, false, &quoted);
    if (model[0] == '\0') {
        if (machine->gpu_count != 0 || says_no_gpu(machine, opinion))
            return;
        opinion->verdict = NW_AUDIT_SHORT;
        snprintf(opinion->text, sizeof opinion->text, "no GPU");
        opinion->cause = "no GPU is visible on the PCI bus";
        opinion->remedy = "a virtual machine may hide it: ask the vendor to pass the GPUs through";
        return;
    }
    /* Several models in one machine: the first that is not the quoted one. */
    for (int i = 0; machine->gpus_differ && i < nw_topo_count(topo, NW_NODE_GPU); i++) {
        const struct nw_topo_node *gpu = nw_topo_nth(topo, NW_NODE_GPU, i);

        nw_gpu_name_of(gpu->model, true, &found);
        if (gpu->model[0] != '\0' && !nw_gpu_name_fits(&quoted, &found))
            model = gpu->model;
    }
    char why[320];
    const struct nw_gpu *product = nw_machine_product(machine, why);

    nw_gpu_name_of(product != NULL ? product->name : model, product == NULL, &found);
    snprintf(opinion->text, sizeof opinion->text, "%s", model);
    opinion->verdict = nw_gpu_name_fits(&quoted, &found) ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (opinion->verdict == NW_AUDIT_SHORT)
        opinion->cause = is_other_form(quoted, found)
                             ? "another form of the product: SXM modules, PCIe cards and NVL cards "
                               "differ in clocks, power and NVLink"
                             : "another product than the one quoted";
    if (product != NULL || (why[0] != '\0' && opinion->verdict == NW_AUDIT_MET))
        snprintf(opinion->reason, sizeof opinion->reason, "%s", why);
    else if (opinion->verdict == NW_AUDIT_SHORT)
        say_product(machine, &found, opinion);
    else if (quoted.form == NW_GPU_FORM_UNKNOWN && found.form != NW_GPU_FORM_UNKNOWN)
        snprintf(opinion->reason, sizeof opinion->reason,
                 "the quote leaves the form open; found: %s", nw_gpu_form_text(found.form));
}

nw_rc nw_judge_gpu_model(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return nw_audit_judge_machines(
        state, row, gpu_model_opinion,
        "no GPU is named in the results; give a topology (nodeworth topo --save "
        "FILE on the node, --topo FILE here) or an nccl-tests log");
}

static void gpu_count_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                              struct nw_opinion *opinion)
{
    if (says_no_gpu(machine, opinion))
        return;
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
        snprintf(opinion->text, sizeof opinion->text,
                 machine->topo_count > 0 ? "%d shown" : "%d took part", machine->gpu_count_seen);
        opinion->verdict = NW_AUDIT_MET;
    } else if (machine->gpu_count_seen > 0) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 machine->topo_count > 0 ? "this source shows %d GPUs; the node may have more"
                                         : "%d GPUs took part in the run; the node may have more",
                 machine->gpu_count_seen);
    }
}

nw_rc nw_judge_gpu_count(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    return nw_audit_judge_machines(
        state, row, gpu_count_opinion,
        "give a topology of the node (--topo), or a run on all of its GPUs");
}

/* A driver shows less than what is sold: ECC on GDDR takes 1/16, firmware a little more (L40S:
 * 46068 of 49152 MiB = 93.7 %; H100 80GB: 81559 of 81920). */
#define GPU_MEMORY_SHARE 0.93

static void gpu_memory_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                               struct nw_opinion *opinion)
{
    struct nw_gpu_name name;

    nw_gpu_name_of(machine->gpu_model, true, &name);
    if (machine->gpu_memory_bytes > 0) {
        opinion->value = machine->gpu_memory_bytes;
        snprintf(opinion->text, sizeof opinion->text, "%.1f GiB", opinion->value / NW_GIB);
    } else if (name.memory_gb > 0) {
        opinion->value = name.memory_gb * NW_GIB;
        snprintf(opinion->text, sizeof opinion->text, "%d GB by its name", name.memory_gb);
    } else {
        says_no_gpu(machine, opinion);
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
    return nw_audit_judge_machines(state, row, gpu_memory_opinion,
                                   "give a topology of the node with its GPU memory (--topo)");
}

static void pcie_of_gpu(const struct nw_topo_node *gpu, const struct nw_quote *quote,
                        struct nw_opinion *opinion)
{
    const int lanes = quote->pcie_lanes > 0 ? quote->pcie_lanes : 16;
    const double wanted = nw_pcie_bytes_per_s(quote->pcie_generation, lanes);
    const bool best_known = gpu->link_max_bytes_per_s > 0;
    const double rate = best_known ? gpu->link_max_bytes_per_s : gpu->link_bytes_per_s;
    const int width = best_known ? gpu->link_max_lanes : gpu->link_lanes;
    int generation, named_lanes;

    if (!(rate > 0))
        return;
    nw_pcie_from_rate(width > 0 ? rate * 16 / width : 0, &generation, &named_lanes);
    opinion->value = rate;
    if (width > 0 && generation > 0)
        snprintf(opinion->text, sizeof opinion->text, "%s: Gen%d x%d", gpu->name, generation,
                 width);
    else
        snprintf(opinion->text, sizeof opinion->text, "%s: %.1f GB/s", gpu->name, rate / 1e9);
    if (rate >= NW_SAME_RATE * wanted) {
        opinion->verdict = NW_AUDIT_MET;
        if (best_known && gpu->link_bytes_per_s > 0 && gpu->link_bytes_per_s < NW_SAME_RATE * rate)
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
                         struct nw_opinion *opinion)
{
    /* Within a machine one GPU that cannot be told leaves the claim open. */
    static const int urgency[] = {
        [NW_AUDIT_MET] = 0, [NW_AUDIT_NOT_MEASURED] = 1, [NW_AUDIT_SHORT] = 2};
    bool spoken = says_no_gpu(machine, opinion), complete;
    const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_GPU, &complete);

    for (int i = 0; topo != NULL && i < nw_topo_count(topo, NW_NODE_GPU); i++) {
        struct nw_opinion gpu = {.verdict = NW_AUDIT_NOT_MEASURED, .value = NAN};

        pcie_of_gpu(nw_topo_nth(topo, NW_NODE_GPU, i), quote, &gpu);
        if (!spoken || urgency[gpu.verdict] > urgency[opinion->verdict] ||
            (gpu.verdict == opinion->verdict && gpu.value < opinion->value))
            *opinion = gpu;
        spoken = true;
    }
}

nw_rc nw_judge_pcie(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    bool by_copies;

    row->ceiling = row->quoted;
    NW_TRY(nw_judge_pcie_by_copies(state, row, &by_copies));
    return by_copies ? NW_OK
                     : nw_audit_judge_machines(
                           state, row, pcie_opinion,
                           "measure it: mpirun nodeworth bench --cases h2d,d2h; or give a topology "
                           "of the node, saved while the GPUs work (--topo)");
}

/* ---- ECC, power --------------------------------------------------------------------------------
 */

void nw_opinion_ecc(const struct nw_quote *quote, const struct nw_machine *machine,
                    struct nw_opinion *opinion)
{
    const char *gpu = "";
    int known;
    const double least = nw_machine_least(machine, NW_FACT_ECC, &gpu, &known);

    if (!isfinite(least)) {
        says_no_gpu(machine, opinion);
        return;
    }
    opinion->value = least;
    if (least > 0)
        snprintf(opinion->text, sizeof opinion->text, "on, %d GPUs", known);
    else
        snprintf(opinion->text, sizeof opinion->text, "%s: off", gpu);
    opinion->verdict = least > 0 || quote->has_ecc == 0 ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    opinion->cause = "ECC is switched off, or the product has none (GeForce)";
    opinion->remedy = "nvidia-smi -e 1 and a reset of the GPU; it costs 1/16 of GDDR memory";
}

static void power_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                          struct nw_opinion *opinion)
{
    const char *gpu = "";
    const double limit = nw_machine_least(machine, NW_FACT_POWER_LIMIT, &gpu, NULL);
    const double normal = nw_machine_least(machine, NW_FACT_POWER_DEFAULT, NULL, NULL);
    const double found = isfinite(limit) ? limit : normal;

    if (!isfinite(found)) {
        says_no_gpu(machine, opinion);
        return;
    }
    opinion->value = found;
    snprintf(opinion->text, sizeof opinion->text, "%.4g W", found);
    opinion->verdict = found >= NW_SAME_POWER * quote->power_w ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (opinion->verdict == NW_AUDIT_MET)
        return;
    snprintf(opinion->reason, sizeof opinion->reason, "%s has the lowest", gpu);
    if (normal >= NW_SAME_POWER * quote->power_w) {
        opinion->cause = "the limit in force was set below the product's own";
        opinion->remedy = "nvidia-smi -pl sets it; the vendor may cap power for cooling or supply";
    } else {
        opinion->cause = "another form of the product: PCIe cards and modules of less power share "
                         "the name";
        opinion->remedy = "nvidia-smi -q -d POWER: default and maximum limit";
    }
}

/* What the case gemm read while it loaded the GPUs. */
static nw_rc power_by_load(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    for (size_t r = 0; state->results != NULL && r < state->results->run_count; r++) {
        const struct nw_run *run = &state->results->runs[r];

        for (size_t i = 0; i < run->record_count; i++) {
            const struct nw_record *record = &run->records[i];

            if (strcmp(record->case_name, "gemm") != 0 || !isfinite(record->during.power_limit_w) ||
                record->during.power_limit_w >= row->measured) /* of NAN: false */
                continue;
            row->measured = record->during.power_limit_w;
            row->simulated = record->simulated || run->context.simulated;
            snprintf(row->source, sizeof row->source, "%s%srank %d's GPU", record->host_a,
                     record->host_a[0] != '\0' ? ", " : "", record->peer_a);
        }
    }
    if (!isfinite(row->measured))
        return NW_OK;
    row->how[0] = '\0';
    snprintf(row->measured_text, sizeof row->measured_text, "%.4g W", row->measured);
    nw_audit_reason(row, "read while the case gemm loaded the GPUs");
    row->verdict = row->measured >= NW_SAME_POWER * row->quoted ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (row->verdict == NW_AUDIT_MET)
        return NW_OK;
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                           "nvidia-smi -q -d POWER: default and maximum limit",
                           "another form of the product, or a limit that was set");
}

nw_rc nw_judge_power(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    NW_TRY(nw_audit_judge_machines(state, row, power_opinion,
                                   "on the node: nodeworth topo --save FILE, or mpirun nodeworth "
                                   "bench --cases gemm"));
    if (row->verdict != NW_AUDIT_NOT_MEASURED)
        return NW_OK;
    return power_by_load(state, row);
}
