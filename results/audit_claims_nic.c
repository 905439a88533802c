/* Claims about the NICs of a node: GPUDirect, a NIC beside every GPU, MTU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"

bool nw_nic_does_rdma(const struct nw_topo_node *nic)
{
    static const char *const fabrics[] = {"infiniband", "roce", "efa", "iwarp", "cxi", "omnipath"};

    for (size_t i = 0; i < sizeof fabrics / sizeof fabrics[0]; i++)
        if (strcmp(nic->fabric, fabrics[i]) == 0)
            return true;
    return false;
}

static bool has_rdma(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC && nw_nic_does_rdma(&topo->nodes[i]))
            return true;
    return false;
}

/* Does traffic between nodes use it? Where a machine has RDMA, its plain ports are for management;
 * so are ports far slower than the quoted ones. */
static bool is_for_data(const struct nw_topo *topo, const struct nw_topo_node *nic,
                        const struct nw_quote *quote)
{
    const double wanted = isfinite(quote->nic_bytes_per_s) ? quote->nic_bytes_per_s * 8 : 0;

    return nic->kind == NW_NODE_NIC && nic->port_up != 0 &&
           (nic->fabric[0] == '\0' || nw_nic_does_rdma(nic) || !has_rdma(topo)) &&
           (!(nic->rate_bits_per_s > 0) || nic->rate_bits_per_s >= wanted / 4);
}

/* ---- a NIC beside every GPU --------------------------------------------------------------------
 */

/* Augmenting path of a matching between GPUs and the NICs beside them. */
struct places {
    const struct nw_topo *topo;
    const struct nw_quote *quote;
    int *gpu_of; /* of each node that is a NIC; -1 */
    bool *tried;
    nw_class farthest;
};

static bool place_gpu(struct places *places, int gpu)
{
    for (size_t nic = 0; nic < places->topo->node_count; nic++) {
        const nw_class class_id =
            is_for_data(places->topo, &places->topo->nodes[nic], places->quote)
                ? nw_topo_class(places->topo, gpu, (int)nic, NULL)
                : NW_CLASS_UNKNOWN;

        if (places->tried[nic] || class_id < NW_CLASS_PIX || class_id > places->farthest)
            continue;
        places->tried[nic] = true;
        if (places->gpu_of[nic] < 0 || place_gpu(places, places->gpu_of[nic])) {
            places->gpu_of[nic] = gpu;
            return true;
        }
    }
    return false;
}

/* GPUs with a NIC of their own that is no farther than the class. -1: no memory. */
static int count_placed(const struct nw_topo *topo, const struct nw_quote *quote, nw_class farthest)
{
    struct places places = {.topo = topo, .quote = quote, .farthest = farthest};
    int placed = 0;

    places.gpu_of = malloc(topo->node_count * sizeof *places.gpu_of);
    places.tried = malloc(topo->node_count * sizeof *places.tried);
    for (size_t i = 0; places.gpu_of != NULL && i < topo->node_count; i++)
        places.gpu_of[i] = -1;
    for (size_t gpu = 0; places.gpu_of != NULL && places.tried != NULL && gpu < topo->node_count;
         gpu++) {
        if (topo->nodes[gpu].kind != NW_NODE_GPU)
            continue;
        memset(places.tried, 0, topo->node_count * sizeof *places.tried);
        placed += place_gpu(&places, (int)gpu);
    }
    if (places.gpu_of == NULL || places.tried == NULL)
        placed = -1;
    free(places.gpu_of);
    free(places.tried);
    return placed;
}

/* Is the place of one GPU against one NIC known? Where it is, the others are. */
static bool knows_places(const struct nw_topo *topo, const struct nw_quote *quote)
{
    for (size_t gpu = 0; gpu < topo->node_count; gpu++)
        for (size_t nic = 0; nic < topo->node_count && topo->nodes[gpu].kind == NW_NODE_GPU; nic++)
            if (is_for_data(topo, &topo->nodes[nic], quote) &&
                nw_topo_class(topo, (int)gpu, (int)nic, NULL) != NW_CLASS_UNKNOWN)
                return true;
    return false;
}

/* Do any two devices share a PCIe switch? Where none do, a virtual machine may hide the switches.
 */
static bool shows_switches(const struct nw_topo *topo)
{
    for (size_t a = 0; a < topo->node_count; a++)
        for (size_t b = a + 1; b < topo->node_count; b++) {
            const nw_node_kind kinds[] = {topo->nodes[a].kind, topo->nodes[b].kind};
            const bool devices = (kinds[0] == NW_NODE_GPU || kinds[0] == NW_NODE_NIC) &&
                                 (kinds[1] == NW_NODE_GPU || kinds[1] == NW_NODE_NIC);
            const nw_class class_id =
                devices ? nw_topo_class(topo, (int)a, (int)b, NULL) : NW_CLASS_UNKNOWN;

            if (class_id == NW_CLASS_PIX || class_id == NW_CLASS_PXB)
                return true;
        }
    return false;
}

static bool is_virtual(const struct nw_machine *machine)
{
    const char *hypervisor = nw_machine_text(machine, NW_FACT_VIRTUAL);

    return hypervisor != NULL && strcmp(hypervisor, "none") != 0;
}

/* The topology that has the places of GPUs against NICs; NULL: none has, and why. */
static const struct nw_topo *places_of(const struct nw_quote *quote,
                                       const struct nw_machine *machine, struct nw_opinion *opinion)
{
    bool complete;
    const struct nw_topo *nics = nw_machine_topo(machine, NW_NODE_NIC, &complete);

    for (size_t i = 0; i < machine->topo_count; i++) {
        const struct nw_topo *topo = machine->topos[i];

        if (nw_topo_count(topo, NW_NODE_GPU) == 0 || !knows_places(topo, quote))
            continue;
        if (complete)
            return topo;
        snprintf(opinion->reason, sizeof opinion->reason,
                 "this source shows %d NICs; there may be more", nw_topo_count(topo, NW_NODE_NIC));
        return NULL;
    }
    if (nics != NULL && nw_topo_count(nics, NW_NODE_GPU) > 0)
        snprintf(opinion->reason, sizeof opinion->reason,
                 "where GPUs and NICs sit on the PCIe tree is not in this source");
    return NULL;
}

void nw_opinion_nic_per_gpu(const struct nw_quote *quote, const struct nw_machine *machine,
                            struct nw_opinion *opinion)
{
    const struct nw_topo *topo = places_of(quote, machine, opinion);

    if (topo == NULL)
        return;
    const int gpus = nw_topo_count(topo, NW_NODE_GPU);
    const int beside = count_placed(topo, quote, NW_CLASS_PXB);

    /* Guests, and files made for guests, show a tree of their own. */
    if (beside == 0 &&
        ((topo->gaps & NW_TOPO_PARTIAL) != 0 || !shows_switches(topo) || is_virtual(machine))) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "no GPU and NIC share a PCIe switch here; a virtual machine hides them, so look "
                 "on the host");
        return;
    }
    opinion->value = beside;
    snprintf(opinion->text, sizeof opinion->text, "%d of %d GPUs", beside, gpus);
    opinion->verdict =
        beside == gpus || quote->has_nic_per_gpu == 0 ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (opinion->verdict == NW_AUDIT_SHORT)
        snprintf(opinion->reason, sizeof opinion->reason,
                 "%d of %d GPUs have a NIC of their own behind the same PCIe switch (PIX, PXB); "
                 "%d have one on the same NUMA node",
                 beside, gpus, count_placed(topo, quote, NW_CLASS_NODE));
    opinion->cause = "GPUs share NICs, or a NIC sits behind another root port or socket: GPUDirect "
                     "crosses the CPU there";
    opinion->remedy = "nvidia-smi topo -m: PIX or PXB between each GPU and its NIC";
}

/* ---- MTU ---------------------------------------------------------------------------------------
 */

/* InfiniBand and RoCE carry at most 4096 bytes a packet; larger figures are of the interface. */
#define LARGEST_RDMA_MTU 4096

static double mtu_of(const struct nw_topo *topo, int nic, bool interface)
{
    double least = NAN;

    for (size_t port = 0; port < topo->node_count && !interface; port++) {
        const double mtu = topo->nodes[port].kind == NW_NODE_PORT && topo->nodes[port].parent == nic
                               ? nw_topo_number(topo, (int)port, NW_FACT_MTU)
                               : NAN;

        if (isfinite(mtu) && !(mtu >= least))
            least = mtu;
    }
    return isfinite(least) ? least : nw_topo_number(topo, nic, NW_FACT_MTU);
}

void nw_opinion_mtu(const struct nw_quote *quote, const struct nw_machine *machine,
                    struct nw_opinion *opinion)
{
    const char *worst = "";

    for (size_t i = 0; i < machine->topo_count && isnan(opinion->value); i++) {
        const struct nw_topo *topo = machine->topos[i];

        for (size_t nic = 0; nic < topo->node_count; nic++) {
            const double mtu = is_for_data(topo, &topo->nodes[nic], quote)
                                   ? mtu_of(topo, (int)nic, quote->mtu_bytes > LARGEST_RDMA_MTU)
                                   : NAN;

            if (isfinite(mtu) && !(mtu >= opinion->value)) {
                opinion->value = mtu;
                worst = topo->nodes[nic].name;
            }
        }
    }
    if (isnan(opinion->value))
        return;
    snprintf(opinion->text, sizeof opinion->text, "%.0f", opinion->value);
    opinion->verdict = opinion->value >= quote->mtu_bytes ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (opinion->verdict == NW_AUDIT_SHORT)
        snprintf(opinion->reason, sizeof opinion->reason, "%s has the smallest", worst);
    opinion->cause = "a smaller MTU is set on the NIC, its interface or its switch port";
    opinion->remedy = "ip link show and ibv_devinfo on the node: active_mtu; the switch must carry "
                      "the same";
}

/* ---- GPUDirect RDMA ----------------------------------------------------------------------------
 */

static void gpudirect_opinion(const struct nw_quote *quote, const struct nw_machine *machine,
                              struct nw_opinion *opinion)
{
    const double peermem = nw_machine_number(machine, NW_FACT_PEERMEM);
    const double dmabuf = nw_machine_number(machine, NW_FACT_DMABUF);
    bool complete;
    const struct nw_topo *topo = nw_machine_topo(machine, NW_NODE_NIC, &complete);

    if (topo != NULL && complete && nw_topo_count(topo, NW_NODE_NIC) > 0 && !has_rdma(topo) &&
        (topo->gaps & NW_TOPO_PARTIAL) == 0) {
        snprintf(opinion->text, sizeof opinion->text, "no NIC with RDMA");
        opinion->verdict = quote->has_gpudirect == 0 ? NW_AUDIT_MET : NW_AUDIT_SHORT;
        opinion->cause = "no RDMA device is visible";
        opinion->remedy = "ibv_devinfo on the node";
        return;
    }
    if (peermem == 1 || dmabuf == 1) {
        snprintf(opinion->text, sizeof opinion->text, "able (%s)",
                 peermem == 1 ? "nvidia_peermem" : "dma-buf");
        snprintf(opinion->reason, sizeof opinion->reason,
                 "the kernel can; that data takes this way was not measured: nodeworth bench "
                 "--lanes auto,nogdr over two nodes shows it");
        opinion->verdict = NW_AUDIT_MET;
    } else if (peermem == 0 && dmabuf == 0) {
        snprintf(opinion->text, sizeof opinion->text, "off");
        opinion->verdict = quote->has_gpudirect == 0 ? NW_AUDIT_MET : NW_AUDIT_SHORT;
        opinion->cause = "neither nvidia_peermem is loaded nor dma-buf possible: data goes through "
                         "host memory";
        opinion->remedy = "modprobe nvidia_peermem, or the driver's open kernel module with Linux "
                          "5.12 or newer";
    } else if (isfinite(peermem) || isfinite(dmabuf)) {
        snprintf(opinion->reason, sizeof opinion->reason, "%s; of %s nothing was read",
                 isfinite(peermem) ? "nvidia_peermem is not loaded" : "dma-buf is not possible",
                 isfinite(peermem) ? "dma-buf" : "nvidia_peermem");
    }
}

/* Between nodes the best plateau of a lane that may use GPUDirect, and of nogdr. NAN: none. */
static double best_between(const struct nw_audit_state *state, const char *lane, bool *simulated)
{
    double best = NAN;

    for (size_t r = 0; state->results != NULL && r < state->results->run_count; r++) {
        const struct nw_run *run = &state->results->runs[r];

        for (size_t i = 0; i < run->record_count; i++) {
            const struct nw_record *record = &run->records[i];

            if (strcmp(record->lane, lane) == 0 && record->host_count > 1 && record->rc == NW_OK &&
                strcmp(record->collective, "all_reduce") == 0 && record->wrong_elements <= 0 &&
                nw_record_is_collective(record) && isfinite(record->busbw_bytes_per_s) &&
                !(record->busbw_bytes_per_s <= best)) {
                best = record->busbw_bytes_per_s;
                *simulated = *simulated || record->simulated || run->context.simulated;
            }
        }
    }
    return best;
}

/* Less is noise. Without GPUDirect 33 of 93 GB/s were left (NVIDIA/nccl#1412). */
#define GAIN 1.1

nw_rc nw_judge_gpudirect(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    bool simulated = false;
    const double without = best_between(state, "nogdr", &simulated);
    const double rdma = best_between(state, "rdma", &simulated);
    const double with = isfinite(rdma) ? rdma : best_between(state, "auto", &simulated);
    char fast[32], slow[32];

    NW_TRY(nw_audit_judge_machines(
        state, row, gpudirect_opinion,
        "on the node: nodeworth check --save DIR; here: --topo DIR/host1.json. Or over two nodes: "
        "nodeworth bench --lanes rdma,nogdr"));
    if (!isfinite(with) || !isfinite(without) || row->verdict == NW_AUDIT_SHORT)
        return NW_OK;
    nw_format_gb_per_s(fast, with);
    nw_format_gb_per_s(slow, without);
    row->simulated = row->simulated || simulated;
    if (with >= GAIN * without) {
        row->verdict = NW_AUDIT_MET;
        snprintf(row->measured_text, sizeof row->measured_text, "in use");
        nw_audit_reason(row, "all_reduce between nodes: %s GB/s with it, %s without", fast, slow);
        row->how[0] = '\0';
    } else {
        nw_audit_reason(row,
                        "all_reduce between nodes is as fast without it (%s against %s GB/s): "
                        "either it is not in use, or the network is too slow for it to matter",
                        slow, fast);
    }
    return NW_OK;
}
