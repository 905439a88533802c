/* The local backend: every collective exact on 1 to 8 threads; failure wakes the others. A plain
 * main, so that ThreadSanitizer can watch it. */
#include <stdio.h>

#include "matrix.h"

static nw_rc everything(struct nw_comm *comm, void *argument)
{
    struct matrix_tally tally = {0}, *total = argument;
    NW_TRY(matrix_services(comm));
    NW_TRY(matrix_run(comm, &tally));
    if (comm->rank == 0)
        *total = tally;
    return NW_OK;
}

/* Rank 1 fails where the others wait for it. */
static nw_rc rank_1_fails(struct nw_comm *comm, void *argument)
{
    nw_rc *results = argument;
    NW_TRY(comm->ops->barrier(comm));
    if (comm->rank == 1)
        return nw_fail(NW_EIO, "the disk of rank 1 is gone");
    int mine = 1, all[8];
    results[comm->rank] = comm->rank == 2 ? comm->ops->swap(comm, 1, &mine, all, sizeof mine)
                                          : comm->ops->exchange(comm, &mine, sizeof mine, all);
    return results[comm->rank];
}

/* Rank 0 is done early; the others still swap, which does not need it. */
static nw_rc rank_0_leaves(struct nw_comm *comm, void *argument)
{
    (void)argument;
    if (comm->rank == 0)
        return NW_OK;
    const int peer = 3 - comm->rank;
    for (int i = 0; i < 1000; i++) {
        int mine = comm->rank * 10000 + i, theirs = -1;
        NW_TRY(comm->ops->swap(comm, peer, &mine, &theirs, sizeof mine));
        if (theirs != peer * 10000 + i)
            return nw_fail(NW_EWRONG, "swap %d gave %d", i, theirs);
    }
    return NW_OK;
}

static nw_rc ranks_differ(struct nw_comm *comm, void *argument)
{
    char send[64] = {0}, recv[64];
    struct nw_call call = {.coll = nw_coll_find(comm->rank == 2 ? "reduce" : "all_reduce")};
    (void)argument;
    call.shape = nw_coll_shape(call.coll, sizeof send, call.dtype, comm->rank_count);
    nw_call_place(&call, comm->rank, send, recv);
    return comm->ops->call(comm, &call);
}

static nw_rc hosts_are_dealt(struct nw_comm *comm, void *argument)
{
    static const int host_of[5] = {0, 0, 0, 1, 1};
    (void)argument;
    const bool right = comm->host_count == 2 && comm->host_index == host_of[comm->rank] &&
                       comm->local_count == (comm->host_index ? 2 : 3) &&
                       comm->local_rank == comm->rank - (comm->host_index ? 3 : 0);
    return right ? NW_OK : nw_fail(NW_EWRONG, "rank %d on host %d", comm->rank, comm->host_index);
}

static int failures;

static void expect(nw_rc found, nw_rc expected, const char *text, const char *what)
{
    if (found == expected && (!text || strstr(nw_last_error()->text, text)))
        return;
    printf("%s: %s, expected %s (%s)\n", what, nw_rc_name(found), nw_rc_name(expected),
           nw_last_error()->text);
    failures++;
}

int main(void)
{
    static const int rank_counts[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < sizeof rank_counts / sizeof *rank_counts; i++) {
        struct matrix_tally tally = {0};
        expect(nw_comm_run_local(rank_counts[i], 1, everything, &tally), NW_OK, NULL, "the matrix");
        printf("%d ranks: %llu calls, %llu elements checked on rank 0, %llu wrong\n",
               rank_counts[i], (unsigned long long)tally.calls, (unsigned long long)tally.elements,
               (unsigned long long)tally.wrong);
        failures += tally.calls < 1000 || tally.wrong > 0;
    }
    nw_rc results[4] = {NW_OK, NW_OK, NW_OK, NW_OK};
    expect(nw_comm_run_local(4, 1, rank_1_fails, results), NW_EIO, "the disk of rank 1",
           "a rank that fails");
    for (int rank = 0; rank < 4; rank++)
        expect(results[rank], rank == 1 ? NW_OK : NW_EPEER, NULL, "its peers");
    expect(nw_comm_run_local(3, 1, rank_0_leaves, NULL), NW_OK, NULL, "a rank that leaves early");
    expect(nw_comm_run_local(4, 1, ranks_differ, NULL), NW_EUSAGE, "rank 2 reduce", "unlike calls");
    expect(nw_comm_run_local(5, 2, hosts_are_dealt, NULL), NW_OK, NULL, "pretended hosts");
    expect(nw_comm_run_local(0, 1, hosts_are_dealt, NULL), NW_EUSAGE, "accepted", "no ranks");
    expect(nw_comm_run_local(2, 3, hosts_are_dealt, NULL), NW_EUSAGE, "accepted", "empty hosts");
    return failures > 0;
}
