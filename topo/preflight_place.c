/* Where GPUs and NICs are: a NIC behind the wrong socket, GPUs without one near, NICs that are not
 * for the GPUs. By class, as nvidia-smi names it. */
#include <stdlib.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/preflight_run.h"

/* NICs that carry GPU traffic: RDMA, or what a tool of GPUs listed. */
static bool is_candidate(const struct nw_topo *topo, int nic)
{
    const struct nw_topo_node *node = &topo->nodes[nic];

    if (node->port_up == 0)
        return false;
    if (nw_is_rdma(node))
        return true;
    for (size_t i = 0; i < topo->stated_count; i++)
        if (topo->stated[i].a == nic || topo->stated[i].b == nic)
            return node->fabric[0] == '\0';
    return false;
}

struct places {
    int gpus, near_gpus, far_gpus; /* NVIDIA GPUs of which the class to every NIC is known */
    int nics, near_nics, far_nics; /* far: SYS to every GPU */
    bool *is_far;                  /* of each node */
};

static bool is_near(nw_class class_id)
{
    return class_id != NW_CLASS_UNKNOWN && class_id != NW_CLASS_SYS;
}

/* Of one device to all of the other kind. `from` is a GPU when `gpu` is set. */
static bool look(const struct nw_topo *topo, int from, bool gpu, bool *near_out)
{
    const nw_node_kind kind = gpu ? NW_NODE_NIC : NW_NODE_GPU;
    int known = 0, unknown = 0;

    *near_out = false;
    for (int i = -1; (i = nw_next(topo, kind, i)) >= 0;) {
        nw_class class_id;

        if (gpu ? !is_candidate(topo, i) : !nw_topo_is_nvidia(&topo->nodes[i]))
            continue;
        class_id = nw_topo_class(topo, from, i, NULL);
        known += class_id != NW_CLASS_UNKNOWN;
        unknown += class_id == NW_CLASS_UNKNOWN;
        *near_out |= is_near(class_id);
    }
    /* A matrix that was cut off lacks a GPU or two: what the others say of a NIC is enough. */
    return known > 0 && (*near_out || unknown <= (gpu ? 0 : known / 4));
}

static void find_places(const struct nw_topo *topo, struct places *places)
{
    bool near;

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        if (nw_topo_is_nvidia(&topo->nodes[i]) && look(topo, i, true, &near)) {
            places->gpus++;
            places->near_gpus += near;
            places->far_gpus += !near;
            places->is_far[i] = !near;
        }
    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        if (is_candidate(topo, i) && look(topo, i, false, &near)) {
            places->nics++;
            places->near_nics += near;
            places->far_nics += !near;
            places->is_far[i] = !near;
        }
}

static nw_rc tell_effect(struct nw_preflight_run *run)
{
    return nw_tell_effect(
        run, NAN,
        "across the sockets a NIC reached 11 of 23 GB/s to a GPU's memory "
        "(linux-rdma/perftest#241), and 16 of 24 in all-reduce (NVIDIA/nccl#412)");
}

/* Where GPUs are on both sides, a NIC cannot be far from all: a virtual machine that hides places,
 * or a NUMA node without GPUs. */
static bool is_plausible(const struct nw_topo *topo, const struct places *places)
{
    if (nw_is_virtual(topo))
        return false;
    for (int a = -1; places->near_nics == 0 && (a = nw_next(topo, NW_NODE_GPU, a)) >= 0;)
        for (int b = a; (b = nw_next(topo, NW_NODE_GPU, b)) >= 0;)
            if (nw_topo_class(topo, a, b, NULL) == NW_CLASS_SYS ||
                (topo->nodes[a].numa >= 0 && topo->nodes[b].numa >= 0 &&
                 topo->nodes[a].numa != topo->nodes[b].numa))
                return false;
    return true;
}

/* NICs far from all GPUs: misplaced where GPUs lack one, else not meant for GPUs. */
static nw_rc judge_nics(struct nw_preflight_run *run, size_t host, const struct places *places)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const bool wrong = places->far_gpus > 0;
    const nw_severity severity = is_plausible(topo, places) ? NW_FINDING_WARN : NW_FINDING_INFO;

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
        if (!places->is_far[i])
            continue;
        if (!wrong) {
            NW_TRY(
                nw_tell(run, host, i, NW_FINDING_INFO, "nic-not-for-gpus",
                        "leave it out of NCCL's traffic: NCCL_IB_HCA=^NAME",
                        "far from every GPU seen (SYS), while each has a NIC near: for storage or "
                        "management"));
            continue;
        }
        NW_TRY(nw_tell(run, host, i, severity, "nic-wrong-socket",
                       "move it into a slot of the CPU that its GPUs hang on",
                       "behind the other socket (SYS) for every GPU, while %d of %d GPUs have no "
                       "NIC near",
                       places->far_gpus, places->gpus));
        NW_TRY(tell_effect(run));
    }
    return NW_OK;
}

/* GPUs without a NIC near, where no NIC is misplaced: there are too few. */
static nw_rc judge_gpus(struct nw_preflight_run *run, size_t host, const struct places *places)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    if (places->far_nics > 0)
        return NW_OK;
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        if (!places->is_far[i])
            continue;
        NW_TRY(
            nw_tell(run, host, i, NW_FINDING_INFO, "gpu-without-near-nic",
                    "let NCCL send through the GPU beside a NIC (PXN, over NVLink), or have a NIC "
                    "added",
                    "every NIC is across the sockets (SYS); %d of %d GPUs have one near",
                    places->near_gpus, places->gpus));
        NW_TRY(tell_effect(run));
    }
    return NW_OK;
}

/* The NIC at the same switch as this GPU whose ports are all down; -1: none. */
static int dead_neighbour(const struct nw_topo *topo, int gpu)
{
    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
        const nw_class class_id = nw_topo_class(topo, gpu, i, NULL);

        if (nw_is_rdma(&topo->nodes[i]) && topo->nodes[i].port_up == 0 &&
            (class_id == NW_CLASS_PIX || class_id == NW_CLASS_PXB))
            return i;
    }
    return -1;
}

/* A NIC of this model beside another GPU that is up. */
static int live_neighbour(const struct nw_topo *topo, const struct nw_topo_node *model)
{
    for (int gpu = -1; (gpu = nw_next(topo, NW_NODE_GPU, gpu)) >= 0;)
        for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
            const nw_class class_id = nw_topo_class(topo, gpu, i, NULL);

            if (topo->nodes[i].port_up == 1 && nw_is_alike(&topo->nodes[i], model) &&
                (class_id == NW_CLASS_PIX || class_id == NW_CLASS_PXB))
                return i;
        }
    return -1;
}

static nw_rc judge_neighbours(struct nw_preflight_run *run, size_t host, bool *is_far)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int gpu = -1; (gpu = nw_next(topo, NW_NODE_GPU, gpu)) >= 0;) {
        const int dead = is_far[gpu] ? dead_neighbour(topo, gpu) : -1;
        const int live = dead >= 0 ? live_neighbour(topo, &topo->nodes[dead]) : -1;

        if (live < 0)
            continue;
        is_far[gpu] = false; /* told */
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "near-nic-down",
                       "look at the NIC's cable and transceiver, then at the switch port",
                       "the NIC beside it, %s, has no active port, while %s beside another GPU is "
                       "up",
                       topo->nodes[dead].name, topo->nodes[live].name));
        NW_TRY(tell_effect(run));
    }
    return NW_OK;
}

nw_rc nw_preflight_nic_place(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    struct places places = {.is_far = calloc(topo->node_count + 1, sizeof(bool))};
    nw_rc rc = NW_OK;

    if (places.is_far == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %zu devices", topo->node_count);
    /* On Grace every NIC is SYS, though it hangs on the GPU's own CPU. */
    if (!nw_is_grace(topo))
        find_places(topo, &places);
    if (places.gpus > 0)
        rc = judge_neighbours(run, host, places.is_far);
    if (rc == NW_OK && places.gpus > 0 && places.nics > 0)
        rc = judge_nics(run, host, &places);
    if (rc == NW_OK && places.near_gpus > 0)
        rc = judge_gpus(run, host, &places);
    free(places.is_far);
    return rc;
}

/* --- GPUs over NUMA nodes ----------------------------------------------------------------------
 */

static int count_at(const struct nw_topo *topo, int numa, int *total_out)
{
    int count = 0;

    *total_out = 0;
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        *total_out += nw_topo_is_nvidia(&topo->nodes[i]);
        count += nw_topo_is_nvidia(&topo->nodes[i]) && topo->nodes[i].numa == numa;
    }
    return count;
}

nw_rc nw_preflight_gpu_place(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    int most = 0, least = 0, total = 0, covered = 0, full = 0, empty = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        const int numa = topo->nodes[i].numa;
        const int count = numa >= 0 ? count_at(topo, numa, &total) : 0;

        if (numa < 0 || !nw_topo_is_nvidia(&topo->nodes[i]))
            continue;
        covered++;
        if (count > most) {
            most = count;
            full = numa;
        }
        if (least == 0 || count < least) {
            least = count;
            empty = numa;
        }
    }
    if ((topo->gaps & NW_TOPO_PARTIAL) != 0 || covered < 4 || covered != total || most == least)
        return NW_OK;
    return nw_tell(run, host, 0, NW_FINDING_INFO, "gpus-uneven",
                   "bind each process near its own GPU, not by rank number",
                   "GPUs are spread unevenly: %d near NUMA node %d, %d near NUMA node %d", most,
                   full, least, empty);
}
