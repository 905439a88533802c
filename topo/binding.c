/* Reading where a rank runs. What follows from it: binding_judge.c, binding_advise.c. */
#include "topo/binding.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "base/units.h"
#include "topo/system_text.h"

#define LIST_BYTES 8192

/* "0-3,8" as bits; false: no such list. */
static bool parse_list(const char *list, uint64_t bits[NW_PLACE_CPUS / 64])
{
    memset(bits, 0, NW_PLACE_CPUS / 8);
    while (*list != '\0') {
        char word[32];
        const size_t length = strcspn(list, ",");
        uint64_t first, last;
        char *dash;

        if (length == 0 || length >= sizeof word)
            return false;
        snprintf(word, sizeof word, "%.*s", (int)length, list);
        dash = strchr(word, '-');
        if (dash != NULL)
            *dash = '\0';
        if (nw_parse_u64(word, 0, NW_PLACE_CPUS - 1, &first) != NW_OK)
            return false;
        last = first;
        if (dash != NULL && nw_parse_u64(dash + 1, first, NW_PLACE_CPUS - 1, &last) != NW_OK)
            return false;
        for (uint64_t i = first; i <= last; i++)
            bits[i / 64] |= UINT64_C(1) << i % 64;
        list += length;
        list += *list == ',';
    }
    return true;
}

static bool has(const uint64_t *bits, int i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static int count_bits(const uint64_t bits[NW_PLACE_CPUS / 64])
{
    int count = 0;

    for (size_t i = 0; i < NW_PLACE_CPUS / 64; i++)
        count += __builtin_popcountll(bits[i]);
    return count;
}

/* The lowest hardware thread of a CPU's core; itself where the kernel does not say. */
static int core_of(const char *sys, int cpu)
{
    char path[96], text[LIST_BYTES];
    uint64_t first = (uint64_t)cpu;

    snprintf(path, sizeof path, "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    if (!nw_system_text(text, sizeof text, "%s/%s", sys, path))
        return cpu;
    text[strcspn(text, ",-")] = '\0';
    if (nw_parse_u64(text, 0, NW_PLACE_CPUS - 1, &first) != NW_OK)
        return cpu;
    return (int)first;
}

static void find_numas(const char *sys, const uint64_t cpus[NW_PLACE_CPUS / 64],
                       struct nw_rank_place *place)
{
    for (int numa = 0; numa < NW_PLACE_NUMAS; numa++) {
        uint64_t own[NW_PLACE_CPUS / 64];
        char path[96], text[LIST_BYTES];

        snprintf(path, sizeof path, "devices/system/node/node%d/cpulist", numa);
        if (!nw_system_text(text, sizeof text, "%s/%s", sys, path) || !parse_list(text, own))
            continue;
        for (size_t i = 0; i < NW_PLACE_CPUS / 64; i++)
            if (own[i] & cpus[i])
                place->numas |= UINT64_C(1) << numa;
    }
}

static int count_cores(const char *sys)
{
    uint64_t online[NW_PLACE_CPUS / 64], cores[NW_PLACE_CPUS / 64] = {0};
    char text[LIST_BYTES];

    if (!nw_system_text(text, sizeof text, "%s/devices/system/cpu/online", sys) ||
        !parse_list(text, online))
        return 0;
    for (int cpu = 0; cpu < NW_PLACE_CPUS; cpu++)
        if (has(online, cpu)) {
            const int core = core_of(sys, cpu);

            cores[core / 64] |= UINT64_C(1) << core % 64;
        }
    return count_bits(cores);
}

static void take_cpus(const char *sys, const uint64_t cpus[NW_PLACE_CPUS / 64],
                      struct nw_rank_place *place)
{
    memset(place->cores, 0, sizeof place->cores);
    place->numas = 0;
    for (int cpu = 0; cpu < NW_PLACE_CPUS; cpu++)
        if (has(cpus, cpu)) {
            const int core = core_of(sys, cpu);

            place->cores[core / 64] |= UINT64_C(1) << core % 64;
        }
    place->core_count = count_bits(place->cores);
    place->host_core_count = count_cores(sys);
    find_numas(sys, cpus, place);
    nw_clear_error();
}

nw_rc nw_rank_place_read_cpus(const char *sys, const char *cpus, struct nw_rank_place *place)
{
    uint64_t bits[NW_PLACE_CPUS / 64];

    if (!parse_list(cpus, bits))
        return nw_fail(NW_EUSAGE, "\"%.40s\" is no list of CPUs; accepted: 0-3,8", cpus);
    snprintf(place->cpus, sizeof place->cpus, "%s", cpus);
    take_cpus(sys, bits, place);
    return NW_OK;
}

static void append_range(char *text, size_t size, int first, int last)
{
    const size_t used = strlen(text);

    if (first == last)
        snprintf(text + used, size - used, "%s%d", used > 0 ? "," : "", first);
    else
        snprintf(text + used, size - used, "%s%d-%d", used > 0 ? "," : "", first, last);
}

static void list_bits(const uint64_t bits[NW_PLACE_CPUS / 64], char *text, size_t size)
{
    int first = -1;

    text[0] = '\0';
    for (int i = 0; i <= NW_PLACE_CPUS; i++) {
        const bool in = i < NW_PLACE_CPUS && has(bits, i);

        if (in && first < 0)
            first = i;
        if (!in && first >= 0) {
            append_range(text, size, first, i - 1);
            first = -1;
        }
    }
}

void nw_rank_place_read(const char *sys, struct nw_rank_place *place)
{
    uint64_t cpus[NW_PLACE_CPUS / 64] = {0};
    cpu_set_t set;

    place->cpus[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int cpu = 0; cpu < NW_PLACE_CPUS; cpu++)
        if (CPU_ISSET((size_t)cpu, &set))
            cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
    list_bits(cpus, place->cpus, sizeof place->cpus);
    take_cpus(sys, cpus, place);
}

/* The GPU that nvidia-smi gives this number; by place in the list where it is not known. */
static int gpu_of_number(const struct nw_topo *topo, int number)
{
    const int count = nw_topo_count(topo, NW_NODE_GPU);

    for (int i = 0; i < count; i++) {
        const struct nw_topo_node *gpu = nw_topo_nth(topo, NW_NODE_GPU, i);

        if (nw_topo_number(topo, (int)(gpu - topo->nodes), NW_FACT_GPU_INDEX) == number)
            return i;
    }
    return number < count ? number : -1;
}

static int gpu_of_uuid(const struct nw_topo *topo, const char *uuid)
{
    for (int i = 0; i < nw_topo_count(topo, NW_NODE_GPU); i++) {
        const struct nw_topo_node *gpu = nw_topo_nth(topo, NW_NODE_GPU, i);
        const char *own = nw_topo_text(topo, (int)(gpu - topo->nodes), NW_FACT_UUID);

        if (own != NULL && strncmp(own, uuid, strlen(uuid)) == 0)
            return i;
    }
    return -1;
}

int nw_rank_place_gpu(const struct nw_topo *topo, int local_rank, const char *visible)
{
    const char *at = visible;
    char word[64];
    uint64_t number;

    if (visible == NULL)
        return local_rank < nw_topo_count(topo, NW_NODE_GPU) ? gpu_of_number(topo, local_rank) : -1;
    /* A launcher that shows each rank one GPU; else the local rank picks from the list. */
    for (int i = 0; i < local_rank && strchr(visible, ',') != NULL; i++) {
        at = strchr(at, ',');
        if (at == NULL)
            return -1;
        at++;
    }
    snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
    if (strncmp(word, "GPU-", 4) == 0)
        return gpu_of_uuid(topo, word);
    if (nw_parse_u64(word, 0, 4096, &number) != NW_OK) {
        nw_clear_error();
        return -1;
    }
    return gpu_of_number(topo, (int)number);
}

nw_rc nw_rank_place_to_json(const struct nw_rank_place *place, json_t **json_out)
{
    char cores[LIST_BYTES], numas[512];
    const uint64_t nodes[NW_PLACE_CPUS / 64] = {place->numas};
    json_t *json = json_object();
    nw_rc rc = NW_OK;

    list_bits(place->cores, cores, sizeof cores);
    list_bits(nodes, numas, sizeof numas);
    NW_TRY_GOTO(nw_json_set_int(json, "rank", place->rank), out);
    NW_TRY_GOTO(nw_json_set_int(json, "host", place->host), out);
    NW_TRY_GOTO(nw_json_set_int(json, "local_rank", place->local_rank), out);
    if (place->gpu >= 0)
        NW_TRY_GOTO(nw_json_set_int(json, "gpu", place->gpu), out);
    NW_TRY_GOTO(nw_json_set_text(json, "cpus", place->cpus), out);
    NW_TRY_GOTO(nw_json_set_text(json, "cores", cores), out);
    if (place->numas != 0)
        NW_TRY_GOTO(nw_json_set_text(json, "numa_nodes", numas), out);
    if (place->host_core_count > 0)
        NW_TRY_GOTO(nw_json_set_int(json, "host_cores", place->host_core_count), out);
    *json_out = json;
    return NW_OK;
out:
    json_decref(json);
    return rc;
}

nw_rc nw_rank_place_from_json(const json_t *json, const char *what, struct nw_rank_place *place_out)
{
    struct nw_rank_place place = {.gpu = -1};
    uint64_t numas[NW_PLACE_CPUS / 64] = {0};
    const char *cores = "", *nodes = "";

    NW_TRY(nw_json_get_int(json, what, "rank", true, &place.rank));
    NW_TRY(nw_json_get_int(json, what, "host", true, &place.host));
    NW_TRY(nw_json_get_int(json, what, "local_rank", true, &place.local_rank));
    NW_TRY(nw_json_get_int(json, what, "gpu", false, &place.gpu));
    NW_TRY(nw_json_get_int(json, what, "host_cores", false, &place.host_core_count));
    NW_TRY(nw_json_get_field(json, what, "cpus", true, place.cpus, sizeof place.cpus));
    NW_TRY(nw_json_get_text(json, what, "cores", true, &cores));
    NW_TRY(nw_json_get_text(json, what, "numa_nodes", false, &nodes));
    if (!parse_list(cores, place.cores) || !parse_list(nodes, numas))
        return nw_fail(NW_EUSAGE, "%s: cores and numa_nodes must be lists like 0-3,8", what);
    place.core_count = count_bits(place.cores);
    place.numas = numas[0];
    *place_out = place;
    return NW_OK;
}
