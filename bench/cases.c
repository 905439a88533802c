/* The cases there are. */
#include "bench/case.h"

#include <stdio.h>

const struct nw_case nw_cases[] = {
    {.name = "coll", .title = "a collective over all ranks", .run = nw_case_coll, .of_plan = true},
    {.name = "pairs", .title = "every two ranks", .run = nw_case_pairs},
    {.name = "scaling",
     .title = "one host, two, four, … and all",
     .run = nw_case_scaling,
     .of_plan = true},
    {"tcp", "TCP sockets between hosts, one way", nw_case_tcp, .of_device = true},
    {"h2d", "from host memory to a GPU", nw_case_h2d, .of_device = true, .needs_gpu = true},
    {"d2h", "from a GPU to host memory", nw_case_d2h, .of_device = true, .needs_gpu = true},
    {"d2d", "a GPU's own memory", nw_case_d2d, .of_device = true, .needs_gpu = true},
    {"p2p", "between two GPUs of a host", nw_case_p2p, .of_device = true, .needs_gpu = true},
    {"gemm", "matrix products on all GPUs", nw_case_gemm, .of_device = true, .needs_gpu = true},
    {"overlap", "collectives beside matrix products", nw_case_overlap, .needs_gpu = true,
     .no_graphs = true},
    {"nic", "RDMA: each NIC with those of a peer host", nw_case_nic, .of_device = true},
    {"loopback", "RDMA: each NIC with itself", nw_case_loopback, .of_device = true},
    {"rail", "RDMA: all NICs of a host at once", nw_case_rail, .of_device = true},
    {"bisect", "RDMA: half of the hosts to the other half", nw_case_bisect, .of_device = true},
    {"incast", "RDMA: all hosts to one", nw_case_incast, .of_device = true},
};
const size_t nw_case_count = sizeof nw_cases / sizeof *nw_cases;

const char *nw_bench_case_name(size_t index)
{
    return index < nw_case_count ? nw_cases[index].name : NULL;
}

const char *nw_bench_case_title(size_t index)
{
    return index < nw_case_count ? nw_cases[index].title : NULL;
}

bool nw_bench_cases_of(const struct nw_plan *plan, bool first, bool one_collective, char *names_out,
                       size_t size)
{
    size_t length = 0;

    names_out[0] = '\0';
    for (size_t i = 0; i < nw_case_count; i++) {
        const struct nw_case *row = &nw_cases[i];
        const bool fits = row->of_device ? first : row->of_plan || !one_collective;

        if (plan->cases & 1u << i && fits && length < size)
            length += (size_t)snprintf(names_out + length, size - length, "%s%s",
                                       length > 0 ? "," : "", row->name);
    }
    return length > 0;
}
