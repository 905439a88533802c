/* Every collective x element type x reduction x root x placement at a few sizes on any
 * communicator, every element checked. For the tests of the local and the MPI backend. */
#ifndef NW_TESTS_MPI_MATRIX_H
#define NW_TESTS_MPI_MATRIX_H

#include <string.h>

#include "collectives/comm.h"
#include "collectives/oracle.h"

struct matrix_tally {
    uint64_t calls, elements, wrong; /* elements: checked on this rank */
};

static nw_rc matrix_call(struct nw_comm *comm, struct nw_call *call, void *send, void *recv,
                         uint64_t round, struct matrix_tally *tally)
{
    struct nw_wrong first = {0};
    nw_call_place(call, comm->rank, send, recv);
    nw_oracle_fill(call, comm->rank, comm->rank_count, round);
    NW_TRY(comm->ops->call(comm, call));
    const uint64_t wrong = nw_oracle_check(call, comm->rank, comm->rank_count, round, &first);
    tally->calls++;
    tally->elements += call->shape.recv_bytes / nw_dtype_bytes(call->dtype);
    tally->wrong += wrong;
    if (wrong > 0)
        return nw_fail(NW_EWRONG,
                       "rank %d of %d: %s %s %s, %llu bytes, root %d, in place %d: %llu wrong, the "
                       "first at %llu: expected %.17g, found %.17g, from rank %d",
                       comm->rank, comm->rank_count, call->coll->name, nw_dtype_name(call->dtype),
                       nw_redop_name(call->op), (unsigned long long)call->shape.bytes, call->root,
                       call->in_place, (unsigned long long)wrong, (unsigned long long)first.index,
                       first.expected, first.found, first.from_rank);
    return NW_OK;
}

/* All variants of one collective at one size. */
static nw_rc matrix_variants(struct nw_comm *comm, const struct nw_coll *coll, uint64_t bytes,
                             void *send, void *recv, struct matrix_tally *tally)
{
    const int ops = coll->flags & NW_COLL_REDUCES ? NW_REDOP_COUNT : 1;
    const int roots = coll->flags & NW_COLL_ROOTED && comm->rank_count > 1 ? 2 : 1;
    const int places = coll->flags & NW_COLL_NO_INPLACE ? 1 : 2;
    for (int i = 0; i < NW_DTYPE_COUNT * ops * roots * places; i++) {
        struct nw_call call = {.coll = coll,
                               .dtype = (nw_dtype)(i % NW_DTYPE_COUNT),
                               .op = (nw_redop)(i / NW_DTYPE_COUNT % ops),
                               .root = i / NW_DTYPE_COUNT / ops % roots * (comm->rank_count - 1),
                               .in_place = i / NW_DTYPE_COUNT / ops / roots == 1};
        call.shape = nw_coll_shape(coll, bytes, call.dtype, comm->rank_count);
        if (call.shape.count > 0)
            NW_TRY(matrix_call(comm, &call, send, recv, (uint64_t)i + bytes, tally));
    }
    return NW_OK;
}

static nw_rc matrix_run(struct nw_comm *comm, struct matrix_tally *tally)
{
    /* One element; less than a block of the pattern; odd; more than its table in every type. */
    static const uint64_t sizes[] = {8, 1024, 12345, 300001};
    const uint64_t most = sizes[sizeof sizes / sizeof *sizes - 1];
    void *send = nw_comm_alloc(most), *recv = nw_comm_alloc(most);
    nw_rc rc = send && recv ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the test");
    for (size_t c = 0; c < nw_coll_count && rc == NW_OK; c++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes && rc == NW_OK; s++)
            rc = matrix_variants(comm, &nw_colls[c], sizes[s], send, recv, tally);
    }
    nw_comm_free(send, most);
    nw_comm_free(recv, most);
    return rc;
}

#define PASS_BYTES 100001

/* From all others to rank 0 at once (`in`), or from it to all of them. */
static nw_rc matrix_pass(struct nw_comm *comm, bool in)
{
    const bool many = comm->rank == 0;
    const size_t count = many ? (size_t)comm->rank_count - 1 : 1;
    struct nw_message messages[64];
    unsigned char *data = nw_comm_alloc(64 * (uint64_t)PASS_BYTES);
    nw_rc rc = data != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the test");

    for (size_t i = 0; i < count && rc == NW_OK; i++) {
        messages[i] = (struct nw_message){many ? (int)i + 1 : 0, data + i * PASS_BYTES, PASS_BYTES};
        if (many != in)
            memset(messages[i].data, 1 + (many ? (int)i + 1 : comm->rank), PASS_BYTES);
    }
    if (rc == NW_OK)
        rc = comm->ops->pass(comm, many != in, messages, count);
    for (size_t i = 0; i < count && rc == NW_OK && many == in; i++)
        for (size_t k = 0; k < PASS_BYTES && rc == NW_OK; k++)
            if (data[i * PASS_BYTES + k] != 1 + (many ? (int)i + 1 : comm->rank))
                rc = nw_fail(NW_EWRONG, "pass: byte %zu of message %zu", k, i);
    nw_comm_free(data, 64 * (uint64_t)PASS_BYTES);
    return rc;
}

/* exchange, share, swap with every peer, barrier, split in two and a collective on the half. */
static nw_rc matrix_services(struct nw_comm *comm)
{
    int all[64] = {0}, shared = comm->rank == comm->rank_count - 1 ? 4711 : 0;
    const int mine = 100 + comm->rank;
    NW_TRY(comm->ops->exchange(comm, &mine, sizeof mine, all));
    for (int rank = 0; rank < comm->rank_count; rank++) {
        if (all[rank] != 100 + rank)
            return nw_fail(NW_EWRONG, "exchange: rank %d's is %d", rank, all[rank]);
    }
    NW_TRY(comm->ops->share(comm, &shared, sizeof shared, comm->rank_count - 1));
    if (shared != 4711)
        return nw_fail(NW_EWRONG, "share: %d", shared);
    for (int shift = 1; shift < comm->rank_count; shift <<= 1) {
        const int peer = comm->rank ^ shift;
        int theirs = 0;
        if (peer >= comm->rank_count)
            continue;
        NW_TRY(comm->ops->swap(comm, peer, &mine, &theirs, sizeof mine));
        if (theirs != 100 + peer)
            return nw_fail(NW_EWRONG, "swap: rank %d's is %d", peer, theirs);
    }
    for (int turn = 0; comm->rank_count > 1 && turn < 2; turn++)
        NW_TRY(matrix_pass(comm, turn == 0));
    NW_TRY(comm->ops->barrier(comm));

    struct nw_comm *half = NULL;
    const int colour = comm->rank == 0 ? -1 : comm->rank % 2;
    NW_TRY(comm->ops->split(comm, colour, &half));
    if (comm->rank == 0)
        return half ? nw_fail(NW_EWRONG, "split: rank 0 asked for none") : NW_OK;
    int fellows[64] = {0};
    nw_rc rc = half->ops->exchange(half, &mine, sizeof mine, fellows);
    if (rc == NW_OK && fellows[half->rank] != mine)
        rc = nw_fail(NW_EWRONG, "split: rank %d finds %d", comm->rank, fellows[half->rank]);
    if (rc == NW_OK && fellows[0] != 100 + (colour == 1 ? 1 : 2))
        rc = nw_fail(NW_EWRONG, "split: the first fellow is %d", fellows[0]);
    nw_comm_close(half);
    return rc;
}

#endif
