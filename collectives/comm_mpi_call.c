/* What MPI moves. Counts above INT_MAX, which MPI 3.1 cannot express: data that is only moved goes
 * as one element of a large derived type; reductions, whose operations take plain types only, go in
 * pieces. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "collectives/comm_mpi.h"
#include "collectives/common.h"

#define PIECE (1 << 30) /* elements or bytes of one MPI call, where MPI needs an int */

static int make_large_type(uint64_t bytes, MPI_Datatype *type_out)
{
    MPI_Datatype piece, pieces, tail;
    const int whole = (int)(bytes / PIECE), rest = (int)(bytes % PIECE);
    MPI_TRY(MPI_Type_contiguous(PIECE, MPI_BYTE, &piece));
    MPI_TRY(MPI_Type_contiguous(whole, piece, &pieces));
    MPI_TRY(MPI_Type_contiguous(rest, MPI_BYTE, &tail));
    MPI_TRY(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, (MPI_Aint)whole * PIECE},
                                   (MPI_Datatype[]){pieces, tail}, type_out));
    MPI_Type_free(&piece);
    MPI_Type_free(&pieces);
    MPI_Type_free(&tail);
    return MPI_Type_commit(type_out);
}

int nw_mpi_span_open(uint64_t bytes, struct nw_mpi_span *span_out)
{
    if (bytes <= INT_MAX) {
        *span_out = (struct nw_mpi_span){.count = (int)bytes, .type = MPI_BYTE};
        return MPI_SUCCESS;
    }
    span_out->count = 1;
    return make_large_type(bytes, &span_out->type);
}

void nw_mpi_span_close(struct nw_mpi_span *span)
{
    if (span->type != MPI_BYTE)
        MPI_Type_free(&span->type);
}

static uint64_t chunk_bytes(const struct nw_call *call)
{
    return call->shape.count * nw_dtype_bytes(call->dtype);
}

/* MPI has no average: sum, then divide where the result is. Both are in the measured time. */
static void finish_average(const struct mpi_comm *comm, const struct nw_call *call)
{
    if (call->op == NW_AVG)
        nw_divide(call->dtype, call->recv, call->shape.count, comm->base.rank_count);
}

static int all_reduce(const struct mpi_comm *comm, const struct nw_call *call)
{
    const size_t element_bytes = nw_dtype_bytes(call->dtype);
    const MPI_Datatype type = comm->kit->types[call->dtype];
    const MPI_Op op = comm->kit->ops[call->dtype][call->op];
    for (uint64_t done = 0; done < call->shape.count; done += PIECE) {
        const uint64_t left = call->shape.count - done;
        const size_t offset = done * element_bytes;
        const void *send = call->in_place ? MPI_IN_PLACE : (char *)call->send + offset;
        MPI_TRY(MPI_Allreduce(send, (char *)call->recv + offset, (int)(left < PIECE ? left : PIECE),
                              type, op, comm->comm));
    }
    finish_average(comm, call);
    return MPI_SUCCESS;
}

static int reduce(const struct mpi_comm *comm, const struct nw_call *call)
{
    const size_t element_bytes = nw_dtype_bytes(call->dtype);
    const bool is_root = comm->base.rank == call->root;
    const MPI_Datatype type = comm->kit->types[call->dtype];
    const MPI_Op op = comm->kit->ops[call->dtype][call->op];
    for (uint64_t done = 0; done < call->shape.count; done += PIECE) {
        const uint64_t left = call->shape.count - done;
        const size_t offset = done * element_bytes;
        const void *send = is_root && call->in_place ? MPI_IN_PLACE : (char *)call->send + offset;
        MPI_TRY(MPI_Reduce(send, is_root ? (char *)call->recv + offset : NULL,
                           (int)(left < PIECE ? left : PIECE), type, op, call->root, comm->comm));
    }
    if (is_root)
        finish_average(comm, call);
    return MPI_SUCCESS;
}

/* In place, MPI leaves the result at the start of the buffer, nccl-tests wants it where the rank's
 * chunk was: one copy of 1/n of the data, in the measured time. */
static int reduce_scatter(const struct mpi_comm *comm, const struct nw_call *call)
{
    const MPI_Datatype type = comm->kit->types[call->dtype];
    const MPI_Op op = comm->kit->ops[call->dtype][call->op];
    MPI_TRY(MPI_Reduce_scatter_block(call->in_place ? MPI_IN_PLACE : call->send,
                                     call->in_place ? call->send : call->recv,
                                     (int)call->shape.count, type, op, comm->comm));
    if (call->in_place && call->recv != call->send)
        memcpy(call->recv, call->send, chunk_bytes(call));
    finish_average(comm, call);
    return MPI_SUCCESS;
}

static int all_gather(const struct mpi_comm *comm, const struct nw_call *call)
{
    struct nw_mpi_span chunk;
    MPI_TRY(nw_mpi_span_open(chunk_bytes(call), &chunk));
    int code = MPI_Allgather(call->in_place ? MPI_IN_PLACE : call->send, chunk.count, chunk.type,
                             call->recv, chunk.count, chunk.type, comm->comm);
    nw_mpi_span_close(&chunk);
    return code;
}

static int alltoall(const struct mpi_comm *comm, const struct nw_call *call)
{
    struct nw_mpi_span chunk;
    MPI_TRY(nw_mpi_span_open(chunk_bytes(call), &chunk));
    int code = MPI_Alltoall(call->send, chunk.count, chunk.type, call->recv, chunk.count,
                            chunk.type, comm->comm);
    nw_mpi_span_close(&chunk);
    return code;
}

/* Out of place the root's result is a copy of its input, as NCCL defines it; MPI has one buffer. */
static int broadcast(const struct mpi_comm *comm, const struct nw_call *call)
{
    const bool is_root = comm->base.rank == call->root;
    struct nw_mpi_span all;
    MPI_TRY(nw_mpi_span_open(call->shape.bytes, &all));
    int code =
        MPI_Bcast(is_root ? call->send : call->recv, all.count, all.type, call->root, comm->comm);
    nw_mpi_span_close(&all);
    if (code == MPI_SUCCESS && is_root && call->send != call->recv)
        memcpy(call->recv, call->send, call->shape.bytes);
    return code;
}

static int gather(const struct mpi_comm *comm, const struct nw_call *call)
{
    const bool is_root = comm->base.rank == call->root;
    struct nw_mpi_span chunk;
    MPI_TRY(nw_mpi_span_open(chunk_bytes(call), &chunk));
    int code =
        MPI_Gather(is_root && call->in_place ? MPI_IN_PLACE : call->send, chunk.count, chunk.type,
                   is_root ? call->recv : NULL, chunk.count, chunk.type, call->root, comm->comm);
    nw_mpi_span_close(&chunk);
    return code;
}

static int scatter(const struct mpi_comm *comm, const struct nw_call *call)
{
    const bool is_root = comm->base.rank == call->root;
    struct nw_mpi_span chunk;
    MPI_TRY(nw_mpi_span_open(chunk_bytes(call), &chunk));
    int code = MPI_Scatter(is_root ? call->send : NULL, chunk.count, chunk.type,
                           is_root && call->in_place ? MPI_IN_PLACE : call->recv, chunk.count,
                           chunk.type, call->root, comm->comm);
    nw_mpi_span_close(&chunk);
    return code;
}

static int sendrecv(const struct mpi_comm *comm, const struct nw_call *call)
{
    const int rank = comm->base.rank, rank_count = comm->base.rank_count;
    struct nw_mpi_span all;
    MPI_TRY(nw_mpi_span_open(call->shape.bytes, &all));
    int code = MPI_Sendrecv(call->send, all.count, all.type, (rank + 1) % rank_count, 0, call->recv,
                            all.count, all.type, (rank + rank_count - 1) % rank_count, 0,
                            comm->comm, MPI_STATUS_IGNORE);
    nw_mpi_span_close(&all);
    return code;
}

bool nw_mpi_supports(const struct nw_comm *base, const struct nw_call *call)
{
    const uint64_t elements = call->shape.bytes / nw_dtype_bytes(call->dtype);
    if (!nw_call_is_valid(base, call))
        return false;
    if (call->coll->id == NW_REDUCE_SCATTER && elements > INT_MAX) {
        (void)nw_fail(NW_ENOTSUP,
                      "reduce_scatter of %llu elements: MPI 3.1 counts elements in an int, at most "
                      "%d; use smaller sizes",
                      (unsigned long long)elements, INT_MAX);
        return false;
    }
    return true;
}

nw_rc nw_mpi_call(struct nw_comm *base, const struct nw_call *call)
{
    static int (*const functions[NW_COLL_COUNT])(const struct mpi_comm *,
                                                 const struct nw_call *) = {
        [NW_ALL_REDUCE] = all_reduce,
        [NW_ALL_GATHER] = all_gather,
        [NW_REDUCE_SCATTER] = reduce_scatter,
        [NW_BROADCAST] = broadcast,
        [NW_REDUCE] = reduce,
        [NW_ALLTOALL] = alltoall,
        [NW_GATHER] = gather,
        [NW_SCATTER] = scatter,
        [NW_SENDRECV] = sendrecv,
    };
    if (!nw_mpi_supports(base, call))
        return nw_last_error()->rc;
    int code = functions[call->coll->id]((struct mpi_comm *)base, call);
    if (code == MPI_SUCCESS)
        return NW_OK;
    char what[128], size[32];
    snprintf(what, sizeof what, "%s of %s over %d ranks", call->coll->name,
             nw_format_bytes(size, call->shape.bytes), base->rank_count);
    return nw_mpi_fail(code, what);
}

nw_rc nw_mpi_swap(struct nw_comm *base, int peer, const void *send, void *recv, uint64_t bytes)
{
    const struct mpi_comm *comm = (const struct mpi_comm *)base;
    uint64_t done = 0;
    do {
        const uint64_t left = bytes - done;
        const int count = (int)(left < PIECE ? left : PIECE);
        int code =
            MPI_Sendrecv((const char *)send + done, count, MPI_BYTE, peer, 1, (char *)recv + done,
                         count, MPI_BYTE, peer, 1, comm->comm, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) {
            char what[64];
            snprintf(what, sizeof what, "exchange between ranks %d and %d", base->rank, peer);
            return nw_mpi_fail(code, what);
        }
        done += (uint64_t)count;
    } while (done < bytes);
    return NW_OK;
}

static int post(const struct mpi_comm *comm, bool out, const struct nw_message *message,
                MPI_Request *request)
{
    struct nw_mpi_span span;
    int code;

    MPI_TRY(nw_mpi_span_open(message->bytes, &span));
    code =
        out ? MPI_Isend(message->data, span.count, span.type, message->peer, 2, comm->comm, request)
            : MPI_Irecv(message->data, span.count, span.type, message->peer, 2, comm->comm,
                        request);
    nw_mpi_span_close(&span); /* MPI keeps it until the message is through */
    return code;
}

nw_rc nw_mpi_pass(struct nw_comm *base, bool out, const struct nw_message *messages, size_t count)
{
    const struct mpi_comm *comm = (const struct mpi_comm *)base;
    MPI_Request *requests = calloc(count + 1, sizeof(MPI_Request));
    int code = MPI_SUCCESS;
    size_t posted = 0;

    if (requests == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu messages", count);
    while (posted < count && code == MPI_SUCCESS) {
        code = post(comm, out, &messages[posted], &requests[posted]);
        posted += code == MPI_SUCCESS;
    }
    if (code == MPI_SUCCESS)
        code = MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
    free(requests);
    if (code == MPI_SUCCESS)
        return NW_OK;
    char what[96];
    snprintf(what, sizeof what, "%zu message%s %s rank %d", count, count == 1 ? "" : "s",
             out ? "from" : "to", base->rank);
    return nw_mpi_fail(code, what);
}
