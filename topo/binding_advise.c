/* The mpirun options that put each rank beside its GPU.
 *
 * ppr:N:numa deals N ranks to each NUMA node in turn, in the order of the nodes, pe=M gives each M
 * cores of it (Open MPI 4.1 and 5; tried on synthetic machines with Open MPI 4.1.4's ras
 * simulator). That fits where GPU 0..N-1 are on the first node, the next N on the second and so on.
 * Elsewhere a rankfile says it rank by rank: "rank 0=HOST slot=PACKAGE:CORES", cores counted within
 * the package, which both versions read. */
#include "topo/binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct area {                   /* a NUMA node with memory and cores of its own */
    int numa, package;          /* OS index; index among the packages */
    int core_count, first_core; /* first within the package */
};

struct machine {
    struct area areas[NW_PLACE_NUMAS];
    int count;
};

static int package_of(const struct nw_topo *topo, int node)
{
    while (node >= 0 && topo->nodes[node].kind != NW_NODE_PACKAGE)
        node = topo->nodes[node].parent;
    return node;
}

static bool is_ram(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_NUMA && node->model[0] == '\0';
}

static int index_of_package(const struct nw_topo *topo, int package)
{
    int index = 0;

    for (int i = 0; i < package; i++)
        index += topo->nodes[i].kind == NW_NODE_PACKAGE;
    return index;
}

/* Cores are dealt evenly to the NUMA nodes of a package, as all makers do; false where that cannot
 * be. */
static bool survey(const struct nw_topo *topo, struct machine *machine)
{
    *machine = (struct machine){.count = 0};
    for (size_t i = 0; i < topo->node_count && machine->count < NW_PLACE_NUMAS; i++) {
        const int package = package_of(topo, (int)i);
        int siblings = 0, before = 0;

        if (!is_ram(&topo->nodes[i]))
            continue;
        if (package < 0 || topo->nodes[i].numa < 0)
            return false;
        for (size_t j = 0; j < topo->node_count; j++)
            if (is_ram(&topo->nodes[j]) && package_of(topo, (int)j) == package) {
                siblings++;
                before += j < i;
            }
        if (topo->nodes[package].core_count == 0 || topo->nodes[package].core_count % siblings != 0)
            return false;
        machine->areas[machine->count++] =
            (struct area){.numa = topo->nodes[i].numa,
                          .package = index_of_package(topo, package),
                          .core_count = topo->nodes[package].core_count / siblings,
                          .first_core = topo->nodes[package].core_count / siblings * before};
    }
    return machine->count > 0;
}

static int ranks_of(const struct nw_rank_place_input *input, size_t host)
{
    int count = 0;

    for (size_t i = 0; i < input->place_count; i++)
        count += input->places[i].host == (int)host;
    return count > 0 ? count : nw_topo_count(input->hosts[host], NW_NODE_GPU);
}

/* The place in `areas` of the GPU of a local rank; -1: unknown. */
static int area_of_rank(const struct nw_rank_place_input *input, size_t host,
                        const struct machine *machine, int local_rank)
{
    const struct nw_topo *topo = input->hosts[host];
    const struct nw_topo_node *gpu;
    int index = local_rank;

    for (size_t i = 0; i < input->place_count; i++)
        if (input->places[i].host == (int)host && input->places[i].local_rank == local_rank)
            index = input->places[i].gpu;
    gpu = index >= 0 ? nw_topo_nth(topo, NW_NODE_GPU, index) : NULL;
    for (int i = 0; gpu != NULL && i < machine->count; i++)
        if (machine->areas[i].numa == gpu->numa)
            return i;
    return -1;
}

struct host_plan {
    struct machine machine;
    int ranks, area_of[NW_PLACE_CPUS]; /* of each local rank */
    int per_area;                      /* ranks a NUMA node where ppr fits; 0: it does not */
    int cores_each;                    /* then */
};

/* Ranks without a GPU of a known place are dealt evenly, in order. */
static const char *plan_host(const struct nw_rank_place_input *input, size_t host,
                             struct host_plan *plan)
{
    const struct machine *machine = &plan->machine;
    int least = NW_PLACE_CPUS;
    bool known = true;

    if (!survey(input->hosts[host], &plan->machine))
        return "cores and NUMA nodes of a host are not known";
    plan->ranks = ranks_of(input, host);
    if (plan->ranks == 0)
        return "there are neither ranks nor GPUs to place";
    if (plan->ranks >= NW_PLACE_CPUS)
        return "there are too many ranks";
    for (int rank = 0; rank < plan->ranks; rank++) {
        plan->area_of[rank] = area_of_rank(input, host, machine, rank);
        known &= plan->area_of[rank] >= 0;
    }
    if (!known && nw_topo_count(input->hosts[host], NW_NODE_GPU) > 0 && machine->count > 1)
        return "the NUMA node of a GPU, or which GPU a rank works on, is not known";
    for (int rank = 0; rank < plan->ranks && !known; rank++)
        plan->area_of[rank] = rank * machine->count / plan->ranks;
    plan->per_area = plan->ranks % machine->count == 0 ? plan->ranks / machine->count : 0;
    for (int rank = 0; rank < plan->ranks && plan->per_area > 0; rank++)
        if (plan->area_of[rank] != rank / plan->per_area)
            plan->per_area = 0;
    for (int i = 0; i < machine->count; i++)
        least = machine->areas[i].core_count < least ? machine->areas[i].core_count : least;
    plan->cores_each = plan->per_area > 0 ? least / plan->per_area : 0;
    return NULL;
}

/* One host's lines. False: more ranks at a NUMA node than it has cores. */
static bool write_ranks(FILE *stream, const char *host, int first_rank,
                        const struct host_plan *plan)
{
    for (int rank = 0; rank < plan->ranks; rank++) {
        const struct area *area = &plan->machine.areas[plan->area_of[rank]];
        int together = 0, before = 0, each, first;

        for (int other = 0; other < plan->ranks; other++)
            if (plan->area_of[other] == plan->area_of[rank]) {
                together++;
                before += other < rank;
            }
        each = area->core_count / together;
        if (each == 0)
            return false;
        first = area->first_core + before * each;
        if (each == 1)
            fprintf(stream, "rank %d=%s slot=%d:%d\n", first_rank + rank, host, area->package,
                    first);
        else
            fprintf(stream, "rank %d=%s slot=%d:%d-%d\n", first_rank + rank, host, area->package,
                    first, first + each - 1);
    }
    return true;
}

static const char *rankfile(const struct nw_rank_place_input *input, const struct host_plan *plans,
                            char **text_out)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    bool fits = stream != NULL;
    int rank = 0;

    for (size_t host = 0; host < input->host_count && fits; host++) {
        fits = write_ranks(stream, input->hosts[host]->host, rank, &plans[host]);
        rank += plans[host].ranks;
    }
    if (stream != NULL && fclose(stream) != 0)
        fits = false;
    if (!fits) {
        free(text);
        return "there are more ranks than cores beside their GPUs: start fewer ranks";
    }
    *text_out = text;
    return NULL;
}

static const char *advise(const struct nw_rank_place_input *input, struct host_plan *plans,
                          struct nw_rank_place_advice *advice)
{
    bool same = true;
    int cores = NW_PLACE_CPUS;
    const char *problem;

    for (size_t host = 0; host < input->host_count; host++) {
        if (input->hosts[host] == NULL)
            return "a host was not read";
        problem = plan_host(input, host, &plans[host]);
        if (problem != NULL)
            return problem;
        same &= plans[host].per_area > 0 && plans[host].per_area == plans[0].per_area;
        cores = plans[host].cores_each < cores ? plans[host].cores_each : cores;
    }
    if (same && cores == 0)
        return "there are more ranks than cores: start fewer ranks";
    if (same) {
        snprintf(advice->map_by, sizeof advice->map_by, "--map-by ppr:%d:numa:pe=%d --bind-to core",
                 plans[0].per_area, cores);
        return NULL;
    }
    problem = rankfile(input, plans, &advice->rankfile);
    if (problem == NULL)
        snprintf(advice->why, sizeof advice->why, "%s",
                 "the GPUs are not dealt evenly and in order to the NUMA nodes: no --map-by puts "
                 "every rank beside its GPU");
    return problem;
}

nw_rc nw_rank_place_advise(const struct nw_rank_place_input *input,
                           struct nw_rank_place_advice *advice_out)
{
    struct host_plan *plans = calloc(input->host_count + 1, sizeof *plans);
    struct nw_rank_place_advice advice = {.rankfile = NULL};
    const char *problem;

    if (plans == NULL)
        return nw_fail(NW_ENOMEM, "no memory to place the ranks of %zu hosts", input->host_count);
    problem = input->host_count > 0 ? advise(input, plans, &advice) : "there is no host";
    if (problem != NULL)
        snprintf(advice.why, sizeof advice.why, "%s", problem);
    free(plans);
    *advice_out = advice;
    return NW_OK;
}

void nw_rank_place_advice_free(struct nw_rank_place_advice *advice)
{
    free(advice->rankfile);
    *advice = (struct nw_rank_place_advice){.rankfile = NULL};
}
