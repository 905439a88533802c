#include "bench/binding.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/units.h"

/* The lowest hardware thread of a CPU's core: thread_siblings_list is "0,64" or "0-1". The CPU
 * itself where the kernel does not say. */
static int core_of(int cpu)
{
    char path[96], *text;
    size_t length;
    uint64_t first = (uint64_t)cpu;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    if (nw_file_read(path, 4096, &text, &length) != NW_OK)
        return cpu;
    text[strcspn(text, ",-\n")] = '\0';
    if (nw_parse_u64(text, 0, NW_BINDING_CPUS_MAX - 1, &first) != NW_OK)
        first = (uint64_t)cpu;
    free(text);
    return (int)first;
}

static void append_range(char *text, size_t size, int first, int last)
{
    const size_t used = strlen(text);
    const char *comma = used > 0 ? "," : "";

    if (first == last)
        snprintf(text + used, size - used, "%s%d", comma, first);
    else
        snprintf(text + used, size - used, "%s%d-%d", comma, first, last);
}

void nw_binding_read(struct nw_rank_binding *binding_out)
{
    cpu_set_t set; /* CPU_SETSIZE is 1024 */
    int first = -1;

    memset(binding_out, 0, sizeof *binding_out);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int cpu = 0; cpu <= NW_BINDING_CPUS_MAX; cpu++) {
        const bool in = cpu < NW_BINDING_CPUS_MAX && CPU_ISSET((size_t)cpu, &set);

        if (in) {
            const int core = core_of(cpu);

            binding_out->cores[core / 64] |= UINT64_C(1) << core % 64;
            first = first < 0 ? cpu : first;
        } else if (first >= 0) {
            append_range(binding_out->cpus, sizeof binding_out->cpus, first, cpu - 1);
            first = -1;
        }
    }
    nw_clear_error();
}

static bool is_within(const struct nw_rank_binding *inner, const struct nw_rank_binding *outer)
{
    for (size_t i = 0; i < NW_BINDING_CPUS_MAX / 64; i++)
        if (inner->cores[i] & ~outer->cores[i])
            return false;
    return true;
}

static int core_count(const struct nw_rank_binding *binding)
{
    int count = 0;

    for (size_t i = 0; i < NW_BINDING_CPUS_MAX / 64; i++)
        count += __builtin_popcountll(binding->cores[i]);
    return count;
}

/* Ranks whose cores all lie within this rank's: more of them than cores must share. */
static int ranks_within(const struct nw_rank_binding *bindings, const struct nw_comm *comm,
                        int rank)
{
    int count = 0;

    for (int other = 0; other < comm->rank_count; other++)
        count += comm->host_of_rank[other] == comm->host_of_rank[rank] &&
                 is_within(&bindings[other], &bindings[rank]);
    return count;
}

nw_rc nw_binding_judge(const struct nw_rank_binding *bindings, const struct nw_comm *comm,
                       struct nw_findings *findings)
{
    for (int host = 0; host < comm->host_count; host++) {
        int worst = -1, sharing = 0, cores = 0;

        for (int rank = 0; rank < comm->rank_count; rank++) {
            const int own = core_count(&bindings[rank]);
            const int here = comm->host_of_rank[rank] == host && own > 0
                                 ? ranks_within(bindings, comm, rank)
                                 : 0;

            if (here > own && here > sharing) {
                worst = rank;
                sharing = here;
                cores = own;
            }
        }
        if (worst < 0)
            continue;
        NW_TRY(nw_findings_add(findings, NW_FINDING_WARN, "cores-shared", comm->host_names[host],
                               "fewer ranks on this host, or mpirun --bind-to core",
                               "%d ranks share %d core%s (CPUs %s): times are those of ranks that "
                               "wait for each other's turn",
                               sharing, cores, cores == 1 ? "" : "s", bindings[worst].cpus));
    }
    return NW_OK;
}
