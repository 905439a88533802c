/* Does the plan fit? On GPUs the sizes that do not are left out. On hosts, where what does not fit
 * is not refused but brings the out-of-memory killer, the plan is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/case.h"

/* What nccl-tests leaves for the library's own buffers (its common.cu), which NCCL allocates when a
 * size is first used; of a small GPU an eighth. */
#define RESERVE_BYTES (1u << 30)
#define RESERVE_SHARE 8

struct least { /* of all ranks' GPUs */
    uint64_t free_bytes;
    int rank;
};

static nw_rc find_least(struct nw_comm *comm, struct least *least_out)
{
    uint64_t mine = 0, *all = calloc((size_t)comm->rank_count, sizeof *all);
    nw_rc rc = all != NULL ? comm->ops->free_bytes(comm, &mine)
                           : nw_fail(NW_ENOMEM, "no memory for %d ranks", comm->rank_count);

    rc = nw_agree(comm, rc);
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &mine, sizeof mine, all);
    if (rc == NW_OK) {
        *least_out = (struct least){.free_bytes = all[0], .rank = 0};
        for (int rank = 1; rank < comm->rank_count; rank++)
            if (all[rank] < least_out->free_bytes)
                *least_out = (struct least){.free_bytes = all[rank], .rank = rank};
    }
    free(all);
    return rc;
}

static double needed_bytes(const struct nw_bench *bench)
{
    return (double)bench->send_bytes + (double)bench->recv_bytes;
}

static bool fits(const struct nw_bench *bench, const struct least *least)
{
    const uint64_t share = least->free_bytes / RESERVE_SHARE;
    const uint64_t reserve = share < RESERVE_BYTES ? share : RESERVE_BYTES;

    return needed_bytes(bench) <= (double)(least->free_bytes - reserve);
}

static const char *format_needed(char text[32], double bytes)
{
    return nw_format_bytes(text, (uint64_t)fmin(bytes, 1.8e19));
}

static nw_rc tell_left_out(struct nw_bench *bench, const struct least *least, double wanted)
{
    const struct nw_comm *comm = bench->comm;
    char where[96], size[32], needed[32], available[32];

    snprintf(where, sizeof where, "rank %d on %s", least->rank,
             comm->host_names[comm->host_of_rank[least->rank]]);
    return nw_findings_add(&bench->notes, NW_FINDING_WARN, "memory-short", where,
                           "lower -e (--maxbytes), or look who else uses that GPU's memory",
                           "sizes above %s are left out: the largest needs %s of GPU memory, %s "
                           "are free on rank %d",
                           nw_format_bytes(size, bench->sizes[bench->size_count - 1]),
                           format_needed(needed, wanted),
                           nw_format_bytes(available, least->free_bytes), least->rank);
}

/* A GPU refuses what does not fit, but late, in the middle of the run. All ranks come to the same
 * answer, as they have the same numbers. */
static nw_rc fit_devices(struct nw_bench *bench, nw_rc (*count)(struct nw_bench *bench))
{
    const struct nw_comm *comm = bench->comm;
    const double wanted = needed_bytes(bench);
    struct least least;
    char needed[32], available[32];

    NW_TRY(find_least(bench->comm, &least));
    if (fits(bench, &least))
        return NW_OK;
    while (!fits(bench, &least) && bench->size_count > 1) {
        bench->size_count--;
        NW_TRY(count(bench));
    }
    if (fits(bench, &least))
        return tell_left_out(bench, &least, wanted);
    return nw_fail(NW_EUSAGE,
                   "already the smallest size needs %s of GPU memory, %s are free on rank %d on "
                   "%s; lower -b (--minbytes), -e (--maxbytes) or --pair-bytes",
                   format_needed(needed, needed_bytes(bench)),
                   nw_format_bytes(available, least.free_bytes), least.rank,
                   comm->host_names[comm->host_of_rank[least.rank]]);
}

static nw_rc check_host(const struct nw_bench *bench)
{
    const struct nw_comm *comm = bench->comm;
    const int here = comm->ops->simulated ? comm->rank_count : comm->local_count;
    const uint64_t available = nw_env_available_bytes();
    const double needed = (double)here * needed_bytes(bench);
    char needed_text[32], available_text[32];

    if (available == 0 || needed <= (double)available)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "the largest size needs %s of memory for %d rank%s on %s, %s are free there; "
                   "lower -e (--maxbytes)",
                   format_needed(needed_text, needed), here, here == 1 ? "" : "s",
                   comm->host_names[comm->host_index], nw_format_bytes(available_text, available));
}

nw_rc nw_bench_fit(struct nw_bench *bench, nw_rc (*count)(struct nw_bench *bench))
{
    return nw_agree(bench->comm, bench->comm->ops->free_bytes != NULL ? fit_devices(bench, count)
                                                                      : check_host(bench));
}
