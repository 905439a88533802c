#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/topo_machines.h"
#include "topo/topo.h"

Test(topo_live, this_machine_is_seen_as_the_system_sees_it)
{
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    char host[64];
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_read_live(&topo), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(topo->pu_count, sysconf(_SC_NPROCESSORS_ONLN));
    cr_expect_geq(topo->core_count, 1);
    cr_expect_leq(topo->core_count, topo->pu_count);
    cr_expect_float_eq((double)topo->memory_bytes / memory, 1, 0.05);
    cr_assert_eq(gethostname(host, sizeof host), 0);
    cr_expect_str_eq(topo->host, host);
    cr_expect_str_eq(topo->source, "live");
    cr_expect_eq(topo->sources, NW_SOURCE_HWLOC | NW_SOURCE_SYSFS);
    cr_expect_eq(topo->nodes[0].kind, NW_NODE_MACHINE);
    for (size_t i = 1; i < topo->node_count; i++)
        cr_expect(topo->nodes[i].parent >= 0 && topo->nodes[i].parent < (int)i);
    for (int i = 0; i < nw_topo_count(topo, NW_NODE_NIC); i++) {
        const char *name = nw_topo_nth(topo, NW_NODE_NIC, i)->name;

        cr_expect(strcmp(name, "lo") != 0 && strncmp(name, "veth", 4) != 0 &&
                      strcmp(name, "docker0") != 0,
                  "%s is no NIC", name);
    }
    nw_topo_free(topo);
}

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* CPU time, and the best of five: others may keep this machine busy. */
Test(topo_live, reading_takes_less_than_100_ms)
{
    double best = 1e12;

    for (int i = 0; i < 5; i++) {
        const double start = cpu_ns();
        struct nw_topo *topo;

        cr_assert_eq(nw_topo_read_live(&topo), NW_OK);
        if (cpu_ns() - start < best)
            best = cpu_ns() - start;
        nw_topo_free(topo);
    }
    cr_expect_lt(best, 100e6, "%.1f ms", best / 1e6);
}

/* hwloc's variables would pass another machine off as this one. */
Test(topo_live, another_machine_from_the_environment_is_refused)
{
    char path[1024];
    struct nw_topo *topo = NULL;

    cr_assert(machine_path("hgx-8gpu-hwloc2.xml", path, sizeof path));
    setenv("HWLOC_XMLFILE", path, 1);
    cr_expect_eq(nw_topo_read_live(&topo), NW_EUSAGE);
    cr_expect_null(topo);
    cr_expect(strstr(nw_last_error()->text, "HWLOC_XMLFILE") != NULL, "%s", nw_last_error()->text);
}

/* A library prints nothing, not even about a bad file. */
Test(topo_live, nothing_is_printed)
{
    const int before[] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    char name[] = "/tmp/nw-quiet-XXXXXX", path[1024];
    const int file = mkstemp(name);
    struct nw_topo *topo = NULL;
    off_t printed;

    cr_assert_geq(file, 0);
    fflush(NULL);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    if (nw_topo_read_live(&topo) == NW_OK)
        nw_topo_free(topo);
    (void)nw_topo_read_data("<topology version=\"2.0\"><object", 31, "torn", &topo);
    if (machine_path("hgx-8gpu-hwloc2.xml", path, sizeof path) &&
        nw_topo_read_file(path, &topo) == NW_OK)
        nw_topo_free(topo);
    fflush(NULL);
    printed = lseek(file, 0, SEEK_END);
    dup2(before[0], STDOUT_FILENO);
    dup2(before[1], STDERR_FILENO);
    cr_expect_eq(printed, 0, "%ld bytes were printed", (long)printed);
    unlink(name);
}
