#include "bench/case.h"

#include <stdio.h>

#include "base/units.h"
#include "bench/ports.h"

#define UNEVEN 1.5 /* times a port's part */

/* A rank goes by a port of its own: a host need not use more than it has ranks. */
static int wanted_ports(const struct nw_comm *comm, const struct nw_ports_use *use)
{
    int ranks = 0;

    for (int rank = 0; rank < comm->rank_count; rank++)
        ranks += comm->host_of_rank[rank] == use->host;
    return ranks < use->port_count ? ranks : use->port_count;
}

static void tell_idle(struct nw_bench *bench, const char *where, const struct nw_ports_use *use)
{
    nw_bench_finding(bench, NW_FINDING_WARN, "ports-idle", where,
                     use->rdma ? "NCCL_IB_HCA names those to use; NCCL_DEBUG=INFO "
                                 "NCCL_DEBUG_SUBSYS=INIT,NET says which it took"
                               : "NCCL_SOCKET_IFNAME of NCCL, btl_tcp_if_include of Open MPI",
                     "only %d of %d ports carried the bytes between hosts: %s", use->used_count,
                     use->port_count, use->used);
}

static void tell_uneven(struct nw_bench *bench, const char *where, const struct nw_ports_use *use)
{
    nw_bench_finding(bench, NW_FINDING_WARN, "ports-uneven", where,
                     "give each GPU the NIC beside it: nodeworth topo shows which that is",
                     "one of %d ports carried %.0f %% of the bytes between hosts (%s)",
                     use->used_count, 100 * use->busiest_share, use->used);
}

void nw_ports_tell(struct nw_bench *bench, const char *collective, const struct nw_ports_use *use,
                   uint64_t bytes, double time_ns)
{
    const double bytes_per_s = use->call_bytes / time_ns * 1e9;
    char where[128], rate[32], size[32], sent[32], line[96] = "";

    snprintf(where, sizeof where, "%s, %s", collective, bench->comm->host_names[use->host]);
    if (use->bits_per_s > 0)
        snprintf(line, sizeof line, ", %.0f %% of the %.6g Gb/s of its NICs",
                 800 * bytes_per_s / use->bits_per_s, use->bits_per_s / 1e9);
    nw_bench_finding(bench, NW_FINDING_INFO, "scaling-wire", where, NULL,
                     "a call of %s over %d hosts moves %s one way through %s: %s GB/s%s",
                     nw_format_bytes(size, bytes), bench->comm->host_count,
                     nw_format_bytes(sent, (uint64_t)use->call_bytes), use->used,
                     nw_format_gb_per_s(rate, bytes_per_s), line);
    if (use->left_out > 0)
        nw_bench_finding(bench, NW_FINDING_INFO, "ports-left-out", where, NULL,
                         "the host has many ports: the %zu least busy ones are not counted",
                         use->left_out);
    if (use->used_count < wanted_ports(bench->comm, use))
        tell_idle(bench, where, use);
    else if (use->used_count > 1 && use->busiest_share * use->used_count > UNEVEN)
        tell_uneven(bench, where, use);
}
