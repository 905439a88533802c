#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "topo/binding.h"
#include "topo/read.h"

/* A machine with `packages` × `numas` NUMA nodes of `cores` cores each; gpus[i]: NUMA node of GPU
 * i, ends with -1. */
static struct nw_topo *machine(int packages, int numas, int cores, const int *gpus)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int node, next = 0;

    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &node), NW_OK);
    strcpy(topo->host, "node1");
    for (int p = 0; p < packages; p++) {
        int package;

        cr_assert_eq(nw_topo_add_node(topo, NW_NODE_PACKAGE, 0, &package), NW_OK);
        topo->nodes[package].core_count = numas * cores;
        topo->nodes[package].pu_count = numas * cores * 2;
        for (int n = 0; n < numas; n++) {
            cr_assert_eq(nw_topo_add_node(topo, NW_NODE_NUMA, package, &node), NW_OK);
            topo->nodes[node].numa = next++;
        }
    }
    for (int i = 0; gpus[i] >= 0; i++) {
        cr_assert_eq(nw_topo_add_node(topo, NW_NODE_GPU, 0, &node), NW_OK);
        topo->nodes[node].numa = gpus[i];
        snprintf(topo->nodes[node].name, sizeof topo->nodes[node].name, "gpu%d", i);
    }
    topo->numa_count = next;
    return topo;
}

Test(binding, advice_follows_where_the_gpus_are)
{
    static const struct {
        int packages, numas, cores;
        int gpus[9];
        const char *map_by, *rankfile; /* "": none */
    } rows[] = {
        {2, 1, 32, {0, 0, 0, 0, 1, 1, 1, 1, -1}, "--map-by ppr:4:numa:pe=8 --bind-to core", ""},
        {2, 4, 8, {0, 1, 2, 3, 4, 5, 6, 7, -1}, "--map-by ppr:1:numa:pe=8 --bind-to core", ""},
        {1, 1, 24, {0, 0, -1}, "--map-by ppr:2:numa:pe=12 --bind-to core", ""},
        /* as on EPYC boards with four NUMA nodes a socket: out of order, some nodes without */
        {2,
         4,
         8,
         {3, 3, 1, 1, 7, 7, 5, 5, -1},
         "",
         "rank 0=node1 slot=0:24-27\nrank 1=node1 slot=0:28-31\nrank 2=node1 slot=0:8-11\n"
         "rank 3=node1 slot=0:12-15\nrank 4=node1 slot=1:24-27\nrank 5=node1 slot=1:28-31\n"
         "rank 6=node1 slot=1:8-11\nrank 7=node1 slot=1:12-15\n"},
        /* uneven: three on one socket, one on the other */
        {2,
         1,
         6,
         {0, 0, 0, 1, -1},
         "",
         "rank 0=node1 slot=0:0-1\nrank 1=node1 slot=0:2-3\nrank 2=node1 slot=0:4-5\n"
         "rank 3=node1 slot=1:0-5\n"},
        /* four GPUs beside two cores */
        {1, 1, 2, {0, 0, 0, 0, -1}, "", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo =
            machine(rows[i].packages, rows[i].numas, rows[i].cores, rows[i].gpus);
        const struct nw_rank_place_input input = {.hosts = &topo, .host_count = 1};
        struct nw_rank_place_advice advice;

        cr_assert_eq(nw_rank_place_advise(&input, &advice), NW_OK);
        cr_expect_str_eq(advice.map_by, rows[i].map_by, "row %zu: %s", i, advice.map_by);
        cr_expect_str_eq(advice.rankfile != NULL ? advice.rankfile : "", rows[i].rankfile,
                         "row %zu", i);
        cr_expect((advice.why[0] != '\0') == (advice.map_by[0] == '\0'), "row %zu", i);
        nw_rank_place_advice_free(&advice);
        nw_topo_free(topo);
    }
}

/* A sysfs with 2 NUMA nodes of 4 cores with 2 threads each: 0-3,8-11 and 4-7,12-15. */
static const char *make_sysfs(char *directory)
{
    char path[256];
    FILE *file;

    cr_assert_not_null(mkdtemp(directory));
    for (int cpu = 0; cpu < 16; cpu++) {
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology", directory, cpu);
        cr_assert_eq(nw_make_directory(path), NW_OK);
        strcat(path, "/thread_siblings_list");
        file = fopen(path, "w");
        fprintf(file, "%d,%d\n", cpu % 8, cpu % 8 + 8);
        fclose(file);
    }
    for (int node = 0; node < 2; node++) {
        snprintf(path, sizeof path, "%s/devices/system/node/node%d", directory, node);
        cr_assert_eq(nw_make_directory(path), NW_OK);
        strcat(path, "/cpulist");
        file = fopen(path, "w");
        fprintf(file, "%s\n", node == 0 ? "0-3,8-11" : "4-7,12-15");
        fclose(file);
    }
    snprintf(path, sizeof path, "%s/devices/system/cpu/online", directory);
    file = fopen(path, "w");
    fprintf(file, "0-15\n");
    fclose(file);
    return directory;
}

static size_t judge(struct nw_topo *topo, const char *sys, const char *const *cpus, size_t ranks,
                    struct nw_findings *findings)
{
    struct nw_rank_place places[16] = {{.rank = 0}};
    const struct nw_rank_place_input input = {
        .hosts = &topo, .host_count = 1, .places = places, .place_count = ranks};
    struct nw_rank_place_advice advice;

    for (size_t i = 0; i < ranks; i++) {
        cr_assert_eq(nw_rank_place_read_cpus(sys, cpus[i], &places[i]), NW_OK);
        places[i].rank = places[i].local_rank = (int)i;
        places[i].gpu = nw_rank_place_gpu(topo, (int)i, NULL);
    }
    *findings = (struct nw_findings){0};
    cr_assert_eq(nw_rank_place_advise(&input, &advice), NW_OK);
    cr_assert_eq(nw_rank_place_judge(&input, &advice, findings), NW_OK);
    nw_rank_place_advice_free(&advice);
    return findings->count;
}

static bool has(const struct nw_findings *findings, const char *code, const char *in_text)
{
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->items[i].code, code) == 0 &&
            strstr(findings->items[i].text, in_text) != NULL)
            return true;
    return false;
}

Test(binding, tells_not_bound_far_and_shared)
{
    char directory[] = "/tmp/nw-binding-XXXXXX", command[64];
    const char *sys = make_sysfs(directory);
    static const char *const good[] = {"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"},
                             *const swapped[] = {"4-5,12-13", "6-7,14-15", "0-1,8-9", "2-3,10-11"},
                             *const loose[] = {"0-15", "0-15", "0-15", "0-15"},
                             *const shared[] = {"0,8", "0,8", "4-5", "6-7"},
                             *const many[] = {"0-15", "0-15", "0-15", "0-15", "0-15",
                                              "0-15", "0-15", "0-15", "0-15"};
    struct nw_topo *topo = machine(2, 1, 4, (const int[]){0, 0, 1, 1, -1}),
                   *none = machine(2, 1, 4, (const int[]){-1}),
                   *uniform = machine(1, 1, 8, (const int[]){0, 0, -1});
    struct nw_findings findings;

    cr_expect_eq(judge(topo, sys, good, 4, &findings), 0);
    cr_expect_eq(judge(topo, sys, swapped, 4, &findings), 1);
    cr_expect(has(&findings, "binding-far",
                  "ranks 0-3 run far from their GPU: rank 0 on CPUs "
                  "4-5,12-13 (NUMA node 1), its gpu0 is at NUMA node 0"));
    cr_expect_str_eq(findings.items[0].remedy, "mpirun --map-by ppr:2:numa:pe=2 --bind-to core");
    nw_findings_free(&findings);
    cr_expect_eq(judge(topo, sys, loose, 4, &findings), 1);
    cr_expect(has(&findings, "binding-none", "ranks 0-3 are not bound"));
    nw_findings_free(&findings);
    cr_expect_eq(judge(topo, sys, shared, 4, &findings), 1);
    cr_expect(has(&findings, "cores-shared", "ranks 0-1 share cores"));
    nw_findings_free(&findings);
    judge(none, sys, many, 9, &findings);
    cr_expect(has(&findings, "ranks-exceed-cores", "9 ranks share 8 cores"));
    nw_findings_free(&findings);
    cr_expect_eq(judge(uniform, sys, loose, 2, &findings), 0); /* one NUMA node: nothing to lose */
    nw_topo_free(topo);
    nw_topo_free(none);
    nw_topo_free(uniform);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    cr_expect_eq(system(command), 0);
}

Test(binding, a_rank_works_on_the_gpu_that_it_sees)
{
    static const struct {
        const char *visible;
        int local_rank, gpu;
    } rows[] = {
        {NULL, 2, 2}, {NULL, 9, -1},    {"3", 0, 3},       {"3", 2, 3},
        {"", 0, -1},  {"2,3", 1, 3},    {"2,3", 2, -1},    {"MIG-abc", 0, -1},
        {"7", 0, -1}, {"GPU-b1", 0, 1}, {"GPU-zz", 0, -1}, {"GPU-b1,GPU-a0", 1, 0},
    };
    struct nw_topo *topo = machine(1, 1, 8, (const int[]){0, 0, 0, 0, -1});

    for (int i = 0; i < 2; i++)
        cr_assert_eq(nw_topo_set_text(topo, (int)(nw_topo_nth(topo, NW_NODE_GPU, i) - topo->nodes),
                                      NW_FACT_UUID, i == 0 ? "GPU-a0c1" : "GPU-b1c1", "test"),
                     NW_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(nw_rank_place_gpu(topo, rows[i].local_rank, rows[i].visible), rows[i].gpu,
                     "row %zu", i);
    nw_topo_free(topo);
}

Test(binding, goes_through_json_unchanged)
{
    struct nw_rank_place place = {.rank = 3, .host = 1, .local_rank = 1, .gpu = 1}, read;
    json_t *json;

    nw_rank_place_read("/sys", &place);
    cr_assert(place.core_count > 0);
    cr_assert_eq(nw_rank_place_to_json(&place, &json), NW_OK);
    cr_assert_eq(nw_rank_place_from_json(json, "test", &read), NW_OK);
    cr_expect_eq(memcmp(&place, &read, sizeof place), 0);
    json_object_set_new(json, "cores", json_string("3-1"));
    cr_expect_eq(nw_rank_place_from_json(json, "test", &read), NW_EUSAGE);
    json_decref(json);
}
