/* Findings about where ranks run. One a host and fault, naming the ranks. */
#include "topo/binding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A rank with one core on a host that has this many for each is starved of data loading threads. */
#define FEW_CORES_OF 4

struct view {
    const struct nw_rank_place_input *input;
    const struct nw_topo *topo; /* of the host */
    size_t host;
    char remedy[400];
};

/* "--map-by …", where one fits; else the rankfile, or nothing. */
static const char *remedy_of(struct view *view, const struct nw_rank_place_advice *advice)
{
    if (advice->map_by[0] != '\0')
        snprintf(view->remedy, sizeof view->remedy, "mpirun %s", advice->map_by);
    else if (advice->rankfile != NULL)
        snprintf(view->remedy, sizeof view->remedy,
                 "nodeworth check --rankfile FILE writes the places, then mpirun --rankfile FILE "
                 "(%s)",
                 advice->why);
    else
        snprintf(view->remedy, sizeof view->remedy, "mpirun --bind-to numa%s%s",
                 advice->why[0] != '\0' ? "; no more exact advice: " : "", advice->why);
    return view->remedy;
}

static int numa_count(const struct nw_topo *topo)
{
    int count = 0;

    for (size_t i = 0; i < topo->node_count; i++)
        count += topo->nodes[i].kind == NW_NODE_NUMA && topo->nodes[i].model[0] == '\0';
    return count;
}

static const struct nw_topo_node *gpu_of(const struct view *view, const struct nw_rank_place *place)
{
    return place->gpu >= 0 ? nw_topo_nth(view->topo, NW_NODE_GPU, place->gpu) : NULL;
}

static bool runs_on(const struct nw_rank_place *place, int numa)
{
    return numa < NW_PLACE_NUMAS && place->numas >> numa & 1;
}

static bool is_loose(const struct view *view, const struct nw_rank_place *place)
{
    return numa_count(view->topo) > 1 && __builtin_popcountll(place->numas) > 1;
}

/* Of a GPU whose node is known, and the rank runs elsewhere only. */
static bool is_far(const struct view *view, const struct nw_rank_place *place)
{
    const struct nw_topo_node *gpu = gpu_of(view, place);

    return gpu != NULL && gpu->numa >= 0 && place->numas != 0 && !runs_on(place, gpu->numa);
}

/* The NIC nearest to its GPU hangs elsewhere than the rank, which is beside its GPU. */
static bool is_far_from_nic(const struct view *view, const struct nw_rank_place *place)
{
    const struct nw_topo_node *gpu = gpu_of(view, place);
    int nic;

    if (gpu == NULL || gpu->numa < 0 || place->numas == 0 || !runs_on(place, gpu->numa) ||
        is_loose(view, place))
        return false;
    nic = nw_topo_nearest(view->topo, (int)(gpu - view->topo->nodes), NW_NODE_NIC, NULL);
    return nic >= 0 && view->topo->nodes[nic].numa >= 0 &&
           !runs_on(place, view->topo->nodes[nic].numa);
}

static bool is_within(const struct nw_rank_place *inner, const struct nw_rank_place *outer)
{
    for (size_t i = 0; i < NW_PLACE_CPUS / 64; i++)
        if (inner->cores[i] & ~outer->cores[i])
            return false;
    return true;
}

/* Ranks whose cores all lie within this rank's: more of them than cores must share. */
static bool must_share(const struct view *view, const struct nw_rank_place *place)
{
    int within = 0;

    for (size_t i = 0; i < view->input->place_count; i++) {
        const struct nw_rank_place *other = &view->input->places[i];

        within += other->host == place->host && is_within(other, place);
    }
    return place->core_count > 0 && within > place->core_count;
}

static bool has_few_cores(const struct view *view, const struct nw_rank_place *place)
{
    int ranks = 0;

    for (size_t i = 0; i < view->input->place_count; i++)
        ranks += view->input->places[i].host == place->host;
    return place->core_count == 1 && place->host_core_count / ranks >= FEW_CORES_OF &&
           !must_share(view, place);
}

/* The ranks of the host for which it holds, as a list; how many. `first_out`: one of them. */
static int list_ranks(const struct view *view,
                      bool (*holds)(const struct view *, const struct nw_rank_place *), char *text,
                      size_t size, const struct nw_rank_place **first_out)
{
    int count = 0, first = -1, last = -1;

    text[0] = '\0';
    for (size_t i = 0; i <= view->input->place_count; i++) {
        const struct nw_rank_place *place =
            i < view->input->place_count ? &view->input->places[i] : NULL;
        const bool in = place != NULL && place->host == (int)view->host && holds(view, place);
        const size_t used = strlen(text);

        if (in && last >= 0 && place->rank == last + 1) {
            last = place->rank;
            count++;
            continue;
        }
        if (last >= 0 && (in || place == NULL)) {
            snprintf(text + used, size - used, first == last ? "%s%d" : "%s%d-%d",
                     used > 0 ? ", " : "", first, last);
            last = -1;
        }
        if (!in)
            continue;
        if (count++ == 0)
            *first_out = place;
        first = last = place->rank;
    }
    return count;
}

static const char *several(int count)
{
    return count == 1 ? "" : "s";
}

static nw_rc judge_loose(struct view *view, const struct nw_rank_place_advice *advice,
                         struct nw_findings *findings)
{
    const struct nw_rank_place *one;
    char ranks[128];
    const int count = list_ranks(view, is_loose, ranks, sizeof ranks, &one);

    if (count == 0)
        return NW_OK;
    NW_TRY(nw_findings_add(
        findings, NW_FINDING_WARN, "binding-none", view->topo->host, remedy_of(view, advice),
        "rank%s %s %s not bound: CPUs %s lie on %d NUMA nodes, and the kernel moves the process "
        "between them",
        several(count), ranks, count == 1 ? "is" : "are", one->cpus,
        __builtin_popcountll(one->numas)));
    return nw_findings_effect(findings, NAN,
                              "host memory and GPU are then on different sockets by chance: copies "
                              "go over the socket link, times vary from run to run");
}

static nw_rc judge_far(struct view *view, const struct nw_rank_place_advice *advice,
                       struct nw_findings *findings)
{
    const struct nw_rank_place *one;
    char ranks[128];
    const int count = list_ranks(view, is_far, ranks, sizeof ranks, &one);

    if (count == 0)
        return NW_OK;
    NW_TRY(nw_findings_add(
        findings, NW_FINDING_WARN, "binding-far", view->topo->host, remedy_of(view, advice),
        "rank%s %s run%s far from %s GPU: rank %d on CPUs %s (NUMA node %d), its %s is at NUMA "
        "node %d",
        several(count), ranks, count == 1 ? "s" : "", count == 1 ? "its" : "their", one->rank,
        one->cpus, __builtin_ctzll(one->numas), gpu_of(view, one)->name, gpu_of(view, one)->numa));
    return nw_findings_effect(findings, NAN,
                              "copies between host and GPU and all traffic through host memory go "
                              "over the socket link, which all such ranks share");
}

static nw_rc judge_nic(struct view *view, struct nw_findings *findings)
{
    const struct nw_rank_place *one;
    char ranks[128];
    const int count = list_ranks(view, is_far_from_nic, ranks, sizeof ranks, &one);
    int nic;

    if (count == 0)
        return NW_OK;
    nic = nw_topo_nearest(view->topo, (int)(gpu_of(view, one) - view->topo->nodes), NW_NODE_NIC,
                          NULL);
    return nw_findings_add(findings, NW_FINDING_INFO, "binding-far-nic", view->topo->host, NULL,
                           "rank%s %s %s beside the GPU, whose nearest NIC is at another NUMA "
                           "node: rank %d at %d, %s at %d",
                           several(count), ranks, count == 1 ? "is" : "are", one->rank,
                           gpu_of(view, one)->numa, view->topo->nodes[nic].name,
                           view->topo->nodes[nic].numa);
}

static nw_rc judge_shared(struct view *view, const struct nw_rank_place_advice *advice,
                          struct nw_findings *findings)
{
    const struct nw_rank_place *one;
    char ranks[128];
    const int count = list_ranks(view, must_share, ranks, sizeof ranks, &one);

    if (count == 0)
        return NW_OK;
    if (count > one->host_core_count && one->host_core_count > 0)
        return nw_findings_add(findings, NW_FINDING_WARN, "ranks-exceed-cores", view->topo->host,
                               "fewer ranks on this host", "%d ranks share %d core%s", count,
                               one->host_core_count, several(one->host_core_count));
    return nw_findings_add(findings, NW_FINDING_WARN, "cores-shared", view->topo->host,
                           remedy_of(view, advice),
                           "ranks %s share cores, while others of the %d are free: CPUs %s of "
                           "rank %d",
                           ranks, one->host_core_count, one->cpus, one->rank);
}

static nw_rc judge_few(struct view *view, const struct nw_rank_place_advice *advice,
                       struct nw_findings *findings)
{
    const struct nw_rank_place *one;
    char ranks[128];
    const int count = list_ranks(view, has_few_cores, ranks, sizeof ranks, &one);

    if (count == 0)
        return NW_OK;
    return nw_findings_add(findings, NW_FINDING_INFO, "binding-few-cores", view->topo->host,
                           remedy_of(view, advice),
                           "rank%s %s may use one core of %d: threads that load data would wait "
                           "for each other",
                           several(count), ranks, one->host_core_count);
}

nw_rc nw_rank_place_judge(const struct nw_rank_place_input *input,
                          const struct nw_rank_place_advice *advice, struct nw_findings *findings)
{
    for (size_t host = 0; host < input->host_count; host++) {
        struct view view = {.input = input, .topo = input->hosts[host], .host = host};

        if (view.topo == NULL)
            continue;
        NW_TRY(judge_shared(&view, advice, findings));
        NW_TRY(judge_loose(&view, advice, findings));
        NW_TRY(judge_far(&view, advice, findings));
        NW_TRY(judge_nic(&view, findings));
        NW_TRY(judge_few(&view, advice, findings));
    }
    return NW_OK;
}
