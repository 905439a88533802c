/* What should be equal on all hosts and among the devices of one model, and is not. Generic: the
 * flags of topo/facts.h say which facts; the table here says how much it matters. */
#include <stdlib.h>

#include "base/units.h"
#include "topo/preflight_run.h"

/* Sizes of memory file systems and the like follow the RAM, which differs by what the firmware
 * keeps. */
#define SIZE_REL 0.05

/* Facts that a rule of their own judges. */
static bool has_own_rule(nw_fact_id id)
{
    static const nw_fact_id own[] = {NW_FACT_NVLINK_COUNT,  NW_FACT_POWER_LIMIT, NW_FACT_MTU,
                                     NW_FACT_GPUS_ATTACHED, NW_FACT_LINK_LOADED, NW_FACT_MIG,
                                     NW_FACT_COMPUTE_MODE};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i] == id)
            return true;
    return false;
}

/* How much a difference matters; facts not in the table are worth a line (info). */
static const struct weight {
    nw_fact_id id;
    nw_severity hosts, siblings;
    const char *why, *remedy;
} weights[] = {
    {NW_FACT_DRIVER, NW_FINDING_WARN, NW_FINDING_WARN,
     "NCCL and CUDA choose other paths with another driver; a job meets the bugs of both",
     "install one driver version on all hosts"},
    {NW_FACT_DRIVER_KIND, NW_FINDING_WARN, NW_FINDING_WARN,
     "GPUDirect over dma-buf needs the open kernel module on every host",
     "install the same flavour of the NVIDIA kernel module everywhere"},
    {NW_FACT_CUDA, NW_FINDING_WARN, NW_FINDING_WARN, "the oldest decides what a job may use",
     "install one driver version on all hosts"},
    {NW_FACT_NCCL, NW_FINDING_WARN, NW_FINDING_WARN,
     "ranks with different NCCL versions fail to connect, hang, or disagree on the algorithm",
     "use one container image, or one NCCL package, on all hosts"},
    {NW_FACT_MPI, NW_FINDING_WARN, NW_FINDING_WARN,
     "different MPI versions often cannot start together", "install one MPI version on all hosts"},
    {NW_FACT_OFED, NW_FINDING_WARN, NW_FINDING_WARN, "RDMA defaults differ between versions",
     "install one RDMA stack on all hosts"},
    {NW_FACT_PYTORCH, NW_FINDING_WARN, NW_FINDING_WARN, "one job needs one PyTorch",
     "use one environment on all hosts"},
    {NW_FACT_PYTORCH_CUDA, NW_FINDING_WARN, NW_FINDING_WARN, "one job needs one PyTorch build",
     "use one environment on all hosts"},
    {NW_FACT_PYTORCH_NCCL, NW_FINDING_WARN, NW_FINDING_WARN,
     "ranks with different NCCL versions fail to connect, hang, or disagree on the algorithm",
     "use one environment on all hosts"},
    {NW_FACT_PYTORCH_GPUS, NW_FINDING_WARN, NW_FINDING_WARN,
     "a host with fewer visible GPUs cannot take its ranks", "look at CUDA_VISIBLE_DEVICES"},
    {NW_FACT_PEERMEM, NW_FINDING_WARN, NW_FINDING_WARN,
     "GPUDirect RDMA on one side only: the pair runs at the slower side's rate",
     "modprobe nvidia_peermem on every host"},
    {NW_FACT_DMABUF, NW_FINDING_WARN, NW_FINDING_WARN,
     "GPUDirect RDMA on one side only: the pair runs at the slower side's rate",
     "use the same driver flavour and kernel on every host"},
    {NW_FACT_FABRIC_MANAGER, NW_FINDING_WARN, NW_FINDING_WARN,
     "without it a host with NVSwitches cannot use NVLink",
     "systemctl enable --now nvidia-fabricmanager"},
    {NW_FACT_IOMMU, NW_FINDING_WARN, NW_FINDING_WARN,
     "peer-to-peer traffic through a translating IOMMU is slower",
     "boot all hosts with the same IOMMU options"},
    {NW_FACT_VIRTUAL, NW_FINDING_WARN, NW_FINDING_WARN, "these are not the same kind of machine",
     NULL},
    {NW_FACT_CLOCK_SYNC, NW_FINDING_WARN, NW_FINDING_WARN, "logs of the hosts cannot be compared",
     "run chrony or ptp on all hosts"},
    {NW_FACT_DATA_FS, NW_FINDING_WARN, NW_FINDING_WARN,
     "the host with the slowest storage holds all others up", "use the same storage on all hosts"},
    {NW_FACT_VBIOS, NW_FINDING_WARN, NW_FINDING_INFO,
     "another VBIOS can mean other power and clock limits", "ask the vendor for one VBIOS version"},
    {NW_FACT_POWER_DEFAULT, NW_FINDING_WARN, NW_FINDING_WARN,
     "boards of one name with another power limit are not the same product",
     "ask the vendor which boards these are"},
    {NW_FACT_ECC, NW_FINDING_WARN, NW_FINDING_WARN,
     "without ECC memory errors go unseen, and GPUs with it have less memory bandwidth",
     "nvidia-smi -e 1 on all, then reset"},
    {NW_FACT_SM_CLOCK_MAX, NW_FINDING_WARN, NW_FINDING_WARN, "the slowest GPU sets the pace of all",
     "ask the vendor which boards these are"},
    {NW_FACT_MEMORY_CLOCK_MAX, NW_FINDING_WARN, NW_FINDING_WARN,
     "the slowest GPU sets the pace of all", "ask the vendor which boards these are"},
    {NW_FACT_NVLINK_RATE, NW_FINDING_WARN, NW_FINDING_WARN,
     "the slowest NVLink sets the pace of a ring", "nvidia-smi nvlink -s; ask the vendor"},
    {NW_FACT_BAR1, NW_FINDING_INFO, NW_FINDING_WARN,
     "GPUs with a small BAR1 cannot be mapped whole by a peer",
     "enable above-4G decoding and resizable BAR"},
    {NW_FACT_FIRMWARE, NW_FINDING_WARN, NW_FINDING_INFO,
     "other firmware can have other defaults of congestion control and PCIe",
     "flash one firmware version"},
};

static const struct weight *weight_of(nw_fact_id id)
{
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (weights[i].id == id)
            return &weights[i];
    return NULL;
}

static bool same_value(const struct nw_fact *a, const struct nw_fact *b)
{
    const char *key = nw_fact_rows[a->id].key;
    const size_t length = strlen(key);
    const bool is_size = length > 6 && strcmp(key + length - 6, "_bytes") == 0;
    const double rel = is_size ? SIZE_REL : 0;

    if (nw_fact_rows[a->id].type == NW_FACT_TEXT)
        return strcmp(a->text, b->text) == 0;
    return a->number == b->number ||
           fabs(a->number - b->number) <= rel * fmax(fabs(a->number), fabs(b->number));
}

/* Of `count` facts (NULL: unknown) the one that more than half of the known ones equal; NULL. */
static const struct nw_fact *majority(const struct nw_fact *const *facts, size_t count,
                                      size_t *same_out, size_t *known_out)
{
    const struct nw_fact *best = NULL;

    *same_out = *known_out = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;

        *known_out += facts[i] != NULL;
        for (size_t k = 0; k < count && facts[i] != NULL; k++)
            same += facts[k] != NULL && same_value(facts[i], facts[k]);
        if (same > *same_out) {
            *same_out = same;
            best = facts[i];
        }
    }
    return 2 * *same_out > *known_out ? best : NULL;
}

/* --- hosts -------------------------------------------------------------------------------------
 */

/* What a row compares: a fact of the machine, or of its devices of one kind and model. */
struct compared {
    nw_fact_id id;
    nw_node_kind kind;
    const char *model; /* NULL: of the machine */
};

static nw_rc tell_effect_of(struct nw_preflight_run *run, const struct weight *weight)
{
    return weight != NULL ? nw_tell_effect(run, NAN, "%s", weight->why) : NW_OK;
}

static nw_rc tell_odd_host(struct nw_preflight_run *run, size_t host, const struct compared *what,
                           const struct nw_fact *odd, const struct nw_fact *usual, size_t same,
                           size_t known)
{
    const struct weight *weight = weight_of(what->id);
    char value[224], normal[224];

    NW_TRY(nw_tell(run, host, 0, weight != NULL ? weight->hosts : NW_FINDING_INFO, "hosts-differ",
                   weight != NULL ? weight->remedy : NULL,
                   "%s%s%s: %s, where %zu of %zu hosts have %s",
                   what->model != NULL ? what->model : "", what->model != NULL ? ", " : "",
                   nw_fact_rows[what->id].title, nw_fact_value_text(odd, value), same, known,
                   nw_fact_value_text(usual, normal)));
    return tell_effect_of(run, weight);
}

/* No majority: the first value of each kind, with a host that has it. */
static nw_rc tell_split(struct nw_preflight_run *run, const struct compared *what,
                        const struct nw_fact *const *facts, size_t count)
{
    const struct weight *weight = weight_of(what->id);
    char text[512] = "", value[224], name[96];

    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(text);
        bool first = facts[i] != NULL;

        for (size_t k = 0; k < i && first; k++)
            first = facts[k] == NULL || !same_value(facts[k], facts[i]);
        if (first)
            snprintf(text + length, sizeof text - length, "%s%.80s on %.60s",
                     length > 0 ? ", " : "", nw_fact_value_text(facts[i], value),
                     nw_host_name(run, i, name));
    }
    NW_TRY(nw_tell(run, NW_ALL_HOSTS, 0, weight != NULL ? weight->hosts : NW_FINDING_INFO,
                   "hosts-differ", weight != NULL ? weight->remedy : NULL, "%s%s%s differs: %s",
                   what->model != NULL ? what->model : "", what->model != NULL ? ", " : "",
                   nw_fact_rows[what->id].title, text));
    return tell_effect_of(run, weight);
}

static nw_rc judge_facts(struct nw_preflight_run *run, const struct compared *what,
                         const struct nw_fact *const *facts)
{
    const size_t count = run->input->host_count;
    size_t same, known;
    const struct nw_fact *usual = majority(facts, count, &same, &known);

    if (known < 2 || same == known)
        return NW_OK;
    if (usual == NULL)
        return tell_split(run, what, facts, count);
    for (size_t host = 0; host < count; host++)
        if (facts[host] != NULL && !same_value(facts[host], usual))
            NW_TRY(tell_odd_host(run, host, what, facts[host], usual, same, known));
    return NW_OK;
}

nw_rc nw_preflight_hosts_alike(struct nw_preflight_run *run)
{
    const size_t count = run->input->host_count;
    const struct nw_fact **facts = calloc(count + 1, sizeof *facts);
    nw_rc rc = NW_OK;

    if (facts == NULL)
        return nw_fail(NW_ENOMEM, "out of memory to compare %zu hosts", count);
    for (int id = 0; id < NW_FACT_COUNT && rc == NW_OK; id++) {
        const unsigned wanted = NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS;
        const struct compared what = {.id = (nw_fact_id)id};

        if ((nw_fact_rows[id].flags & wanted) != wanted || has_own_rule(what.id))
            continue;
        for (size_t host = 0; host < count; host++)
            facts[host] = nw_topo_fact(nw_run_host(run, host), 0, what.id);
        rc = judge_facts(run, &what, facts);
    }
    free(facts);
    return rc;
}

/* The fact that all devices of this kind and model on a host agree on; NULL: none, or they differ,
 * which the rule of siblings tells. */
static const struct nw_fact *common_fact(const struct nw_topo *topo, const struct compared *what)
{
    const struct nw_fact *common = NULL;

    for (int i = -1; (i = nw_next(topo, what->kind, i)) >= 0;) {
        const struct nw_fact *fact = nw_topo_fact(topo, i, what->id);

        if (fact == NULL || strcmp(topo->nodes[i].model, what->model) != 0)
            continue;
        if (common != NULL && !same_value(common, fact))
            return NULL;
        common = fact;
    }
    return common;
}

static nw_rc judge_model(struct nw_preflight_run *run, nw_node_kind kind, const char *model,
                         const struct nw_fact **facts)
{
    const unsigned of = kind == NW_NODE_GPU ? NW_FACT_OF_GPU : NW_FACT_OF_NIC;

    for (int id = 0; id < NW_FACT_COUNT; id++) {
        const struct compared what = {.id = (nw_fact_id)id, .kind = kind, .model = model};

        if ((nw_fact_rows[id].flags & of) == 0 ||
            (nw_fact_rows[id].flags & NW_FACT_EQUAL_ON_HOSTS) == 0 || has_own_rule(what.id))
            continue;
        for (size_t host = 0; host < run->input->host_count; host++)
            facts[host] = common_fact(nw_run_host(run, host), &what);
        NW_TRY(judge_facts(run, &what, facts));
    }
    return NW_OK;
}

/* Is this the first device of its model, over all hosts in order? */
static bool is_first(const struct nw_preflight_run *run, size_t host, int node)
{
    const struct nw_topo_node *own = &nw_run_host(run, host)->nodes[node];

    for (size_t h = 0; h <= host; h++) {
        const struct nw_topo *topo = nw_run_host(run, h);

        for (int i = -1; (i = nw_next(topo, own->kind, i)) >= 0 && !(h == host && i >= node);)
            if (nw_is_alike(&topo->nodes[i], own))
                return false;
    }
    return true;
}

nw_rc nw_preflight_hosts_devices(struct nw_preflight_run *run)
{
    static const nw_node_kind kinds[] = {NW_NODE_GPU, NW_NODE_NIC};
    const struct nw_fact **facts = calloc(run->input->host_count + 1, sizeof *facts);
    nw_rc rc = NW_OK;

    if (facts == NULL)
        return nw_fail(NW_ENOMEM, "out of memory to compare hosts");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t host = 0; host < run->input->host_count; host++) {
            const struct nw_topo *topo = nw_run_host(run, host);

            for (int i = -1; rc == NW_OK && (i = nw_next(topo, kinds[k], i)) >= 0;)
                if (topo->nodes[i].model[0] != '\0' && is_first(run, host, i))
                    rc = judge_model(run, kinds[k], topo->nodes[i].model, facts);
        }
    free(facts);
    return rc;
}

/* --- siblings ----------------------------------------------------------------------------------
 */

static nw_rc tell_odd_sibling(struct nw_preflight_run *run, size_t host, int node,
                              const struct nw_fact *odd, const struct nw_fact *usual, size_t same,
                              size_t known)
{
    const struct weight *weight = weight_of(odd->id);
    char value[224], normal[224];

    NW_TRY(nw_tell(run, host, node, weight != NULL ? weight->siblings : NW_FINDING_INFO,
                   "siblings-differ", weight != NULL ? weight->remedy : NULL,
                   "%s: %s, where %zu of %zu of its model have %s", nw_fact_rows[odd->id].title,
                   nw_fact_value_text(odd, value), same, known, nw_fact_value_text(usual, normal)));
    return tell_effect_of(run, weight);
}

/* Without a majority the value of the first device is what the others differ from. */
static nw_rc judge_siblings(struct nw_preflight_run *run, size_t host, int first, nw_fact_id id,
                            const struct nw_fact **facts)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const struct nw_topo_node *own = &topo->nodes[first];
    const struct nw_fact *usual;
    size_t same, known, count = 0;

    for (int i = -1; (i = nw_next(topo, own->kind, i)) >= 0;)
        if (nw_is_alike(&topo->nodes[i], own))
            facts[count++] = nw_topo_fact(topo, i, id);
    usual = majority(facts, count, &same, &known);
    for (size_t i = 0; i < count && usual == NULL; i++)
        if (facts[i] != NULL) {
            usual = facts[i];
            same = 0;
            for (size_t k = 0; k < count; k++)
                same += facts[k] != NULL && same_value(facts[k], usual);
        }
    if (known < 2 || same == known)
        return NW_OK;
    count = 0;
    for (int i = -1; (i = nw_next(topo, own->kind, i)) >= 0;)
        if (nw_is_alike(&topo->nodes[i], own)) {
            const struct nw_fact *fact = facts[count++];

            if (fact != NULL && !same_value(fact, usual))
                NW_TRY(tell_odd_sibling(run, host, i, fact, usual, same, known));
        }
    return NW_OK;
}

static bool is_first_here(const struct nw_topo *topo, int node)
{
    for (int i = -1; (i = nw_next(topo, topo->nodes[node].kind, i)) >= 0 && i < node;)
        if (nw_is_alike(&topo->nodes[i], &topo->nodes[node]))
            return false;
    return true;
}

nw_rc nw_preflight_siblings(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const struct nw_fact **facts = calloc(topo->node_count + 1, sizeof *facts);
    nw_rc rc = NW_OK;

    if (facts == NULL)
        return nw_fail(NW_ENOMEM, "out of memory to compare devices");
    for (size_t i = 0; i < topo->node_count; i++) {
        const nw_node_kind kind = topo->nodes[i].kind;
        const unsigned of = kind == NW_NODE_GPU   ? NW_FACT_OF_GPU | NW_FACT_OF_PCI
                            : kind == NW_NODE_NIC ? NW_FACT_OF_NIC
                                                  : 0;

        if (of == 0 || topo->nodes[i].model[0] == '\0' || !is_first_here(topo, (int)i))
            continue;
        for (int id = 0; id < NW_FACT_COUNT && rc == NW_OK; id++)
            if ((nw_fact_rows[id].flags & of) != 0 &&
                (nw_fact_rows[id].flags & NW_FACT_EQUAL_ON_SIBLINGS) != 0 &&
                !has_own_rule((nw_fact_id)id))
                rc = judge_siblings(run, host, (int)i, (nw_fact_id)id, facts);
    }
    free(facts);
    return rc;
}
