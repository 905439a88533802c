/* MPI on host memory. Counts above INT_MAX, which MPI 3.1 cannot express: data that is only moved
 * goes as one element of a large derived type; reductions, whose operations take plain types only,
 * go in pieces. MPI's errors are returned, not fatal. */
#include <mpi.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "collectives/comm.h"
#include "collectives/common.h"
#include "collectives/mpi_kit.h"

#define ALARM_TAG 7
#define ALARM_MAX 32

struct mpi_comm {
    struct nw_comm base;
    int alarms[ALARM_MAX]; /* sent: MPI may still read them */
    int alarm_count;
    int heard; /* the highest generation that was given up; 0: none */
    MPI_Comm comm;
    struct nw_mpi_kit *kit;
};

static const struct nw_comm_ops mpi_ops;

static nw_rc fail(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return nw_fail_lib(NW_ELIB, "mpi", code, "%s: %s", what, text[0] ? text : "unknown MPI error");
}

/* Hand an MPI error code on. */
#define MPI_TRY(call)                                                                              \
    do {                                                                                           \
        int mpi_try_code_ = (call);                                                                \
        if (mpi_try_code_ != MPI_SUCCESS)                                                          \
            return mpi_try_code_;                                                                  \
    } while (0)

#define PIECE (1 << 30) /* elements or bytes of one MPI call, where MPI needs an int */

/* `bytes` bytes as (count, type). */
struct span {
    int count;
    MPI_Datatype type;
};

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

static int span_open(uint64_t bytes, struct span *span_out)
{
    if (bytes <= INT_MAX) {
        *span_out = (struct span){.count = (int)bytes, .type = MPI_BYTE};
        return MPI_SUCCESS;
    }
    span_out->count = 1;
    return make_large_type(bytes, &span_out->type);
}

static void span_close(struct span *span)
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
    struct span chunk;
    MPI_TRY(span_open(chunk_bytes(call), &chunk));
    int code = MPI_Allgather(call->in_place ? MPI_IN_PLACE : call->send, chunk.count, chunk.type,
                             call->recv, chunk.count, chunk.type, comm->comm);
    span_close(&chunk);
    return code;
}

static int alltoall(const struct mpi_comm *comm, const struct nw_call *call)
{
    struct span chunk;
    MPI_TRY(span_open(chunk_bytes(call), &chunk));
    int code = MPI_Alltoall(call->send, chunk.count, chunk.type, call->recv, chunk.count,
                            chunk.type, comm->comm);
    span_close(&chunk);
    return code;
}

/* Out of place the root's result is a copy of its input, as NCCL defines it; MPI has one buffer. */
static int broadcast(const struct mpi_comm *comm, const struct nw_call *call)
{
    const bool is_root = comm->base.rank == call->root;
    struct span all;
    MPI_TRY(span_open(call->shape.bytes, &all));
    int code =
        MPI_Bcast(is_root ? call->send : call->recv, all.count, all.type, call->root, comm->comm);
    span_close(&all);
    if (code == MPI_SUCCESS && is_root && call->send != call->recv)
        memcpy(call->recv, call->send, call->shape.bytes);
    return code;
}

static int gather(const struct mpi_comm *comm, const struct nw_call *call)
{
    const bool is_root = comm->base.rank == call->root;
    struct span chunk;
    MPI_TRY(span_open(chunk_bytes(call), &chunk));
    int code =
        MPI_Gather(is_root && call->in_place ? MPI_IN_PLACE : call->send, chunk.count, chunk.type,
                   is_root ? call->recv : NULL, chunk.count, chunk.type, call->root, comm->comm);
    span_close(&chunk);
    return code;
}

static int scatter(const struct mpi_comm *comm, const struct nw_call *call)
{
    const bool is_root = comm->base.rank == call->root;
    struct span chunk;
    MPI_TRY(span_open(chunk_bytes(call), &chunk));
    int code = MPI_Scatter(is_root ? call->send : NULL, chunk.count, chunk.type,
                           is_root && call->in_place ? MPI_IN_PLACE : call->recv, chunk.count,
                           chunk.type, call->root, comm->comm);
    span_close(&chunk);
    return code;
}

static int sendrecv(const struct mpi_comm *comm, const struct nw_call *call)
{
    const int rank = comm->base.rank, rank_count = comm->base.rank_count;
    struct span all;
    MPI_TRY(span_open(call->shape.bytes, &all));
    int code = MPI_Sendrecv(call->send, all.count, all.type, (rank + 1) % rank_count, 0, call->recv,
                            all.count, all.type, (rank + rank_count - 1) % rank_count, 0,
                            comm->comm, MPI_STATUS_IGNORE);
    span_close(&all);
    return code;
}

static bool mpi_supports(const struct nw_comm *base, const struct nw_call *call)
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

static nw_rc mpi_call(struct nw_comm *base, const struct nw_call *call)
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
    if (!mpi_supports(base, call))
        return nw_last_error()->rc;
    int code = functions[call->coll->id]((struct mpi_comm *)base, call);
    if (code == MPI_SUCCESS)
        return NW_OK;
    char what[128], size[32];
    snprintf(what, sizeof what, "%s of %s over %d ranks", call->coll->name,
             nw_format_bytes(size, call->shape.bytes), base->rank_count);
    return fail(code, what);
}

static nw_rc mpi_swap(struct nw_comm *base, int peer, const void *send, void *recv, uint64_t bytes)
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
            return fail(code, what);
        }
        done += (uint64_t)count;
    } while (done < bytes);
    return NW_OK;
}

/* MPI's own waits never sleep; on hosts with more ranks than CPUs they keep the kernel's
 * network threads from running, for which they wait. */
static int wait_asleep(MPI_Request *request)
{
    const struct timespec pause = {.tv_nsec = 20000};
    int done = 0;

    for (;;) {
        const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);

        if (code != MPI_SUCCESS || done)
            return code;
        nanosleep(&pause, NULL);
    }
}

static int all_gather_bytes(const struct mpi_comm *comm, const void *mine, const struct span *span,
                            void *all)
{
    MPI_Request request;

    if (!comm->base.gentle)
        return MPI_Allgather(mine, span->count, span->type, all, span->count, span->type,
                             comm->comm);
    MPI_TRY(MPI_Iallgather(mine, span->count, span->type, all, span->count, span->type, comm->comm,
                           &request));
    return wait_asleep(&request);
}

static int broadcast_bytes(const struct mpi_comm *comm, void *data, const struct span *span,
                           int root)
{
    MPI_Request request;

    if (!comm->base.gentle)
        return MPI_Bcast(data, span->count, span->type, root, comm->comm);
    MPI_TRY(MPI_Ibcast(data, span->count, span->type, root, comm->comm, &request));
    return wait_asleep(&request);
}

static int meet(const struct mpi_comm *comm)
{
    MPI_Request request;

    if (!comm->base.gentle)
        return MPI_Barrier(comm->comm);
    MPI_TRY(MPI_Ibarrier(comm->comm, &request));
    return wait_asleep(&request);
}

static nw_rc mpi_barrier(struct nw_comm *base)
{
    int code = meet((struct mpi_comm *)base);
    return code == MPI_SUCCESS ? NW_OK : fail(code, "barrier");
}

static nw_rc mpi_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    struct span span;
    int code = span_open(bytes, &span);
    if (code == MPI_SUCCESS) {
        code = all_gather_bytes((struct mpi_comm *)base, mine, &span, all);
        span_close(&span);
    }
    return code == MPI_SUCCESS ? NW_OK : fail(code, "exchange between all ranks");
}

static nw_rc mpi_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    struct span span;
    int code = span_open(bytes, &span);
    if (code == MPI_SUCCESS) {
        code = broadcast_bytes((struct mpi_comm *)base, data, &span, root);
        span_close(&span);
    }
    return code == MPI_SUCCESS ? NW_OK : fail(code, "sharing one rank's data");
}

/* Small messages leave at once; nobody waits for them to be read. */
static void mpi_alarm(struct nw_comm *base, int generation)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    int *message;

    if (comm->alarm_count == ALARM_MAX)
        return;
    message = &comm->alarms[comm->alarm_count++];
    *message = generation;
    for (int rank = 0; rank < base->rank_count; rank++) {
        MPI_Request request;

        if (rank != base->rank &&
            MPI_Isend(message, 1, MPI_INT, rank, ALARM_TAG, comm->comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

static bool mpi_alarmed(struct nw_comm *base, int generation)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    int there = 0, number;

    while (MPI_Iprobe(MPI_ANY_SOURCE, ALARM_TAG, comm->comm, &there, MPI_STATUS_IGNORE) ==
               MPI_SUCCESS &&
           there &&
           MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, ALARM_TAG, comm->comm,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS)
        comm->heard = number > comm->heard ? number : comm->heard;
    return comm->heard >= generation;
}

static void mpi_close(struct nw_comm *base)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    int finalized = 1;
    MPI_Finalized(&finalized);
    if (!finalized && comm->comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm->comm);
    nw_mpi_kit_release(comm->kit);
    nw_comm_drop_hosts(base);
    free(comm);
}

static nw_rc set_hosts(struct mpi_comm *comm)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "", mine[NW_HOST_NAME_SIZE] = "";
    int length = 0;
    int code = MPI_Get_processor_name(name, &length);
    if (code != MPI_SUCCESS)
        return fail(code, "asking for the host's name");
    snprintf(mine, sizeof mine, "%.*s", NW_HOST_NAME_SIZE - 1, name);

    char(*names)[NW_HOST_NAME_SIZE] = calloc((size_t)comm->base.rank_count, sizeof *names);
    if (!names)
        return nw_fail(NW_ENOMEM, "cannot keep the host names of %d ranks", comm->base.rank_count);
    nw_rc rc = mpi_exchange(&comm->base, mine, sizeof mine, names);
    if (rc == NW_OK)
        rc = nw_comm_set_hosts(&comm->base, (const char(*)[NW_HOST_NAME_SIZE])names);
    free(names);
    return rc;
}

/* Takes `handle` and a reference to `kit`, also when it fails. */
static nw_rc wrap(MPI_Comm handle, struct nw_mpi_kit *kit, struct nw_comm **comm_out)
{
    struct mpi_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        MPI_Comm_free(&handle);
        nw_mpi_kit_release(kit);
        return nw_fail(NW_ENOMEM, "cannot keep a communicator");
    }
    *comm = (struct mpi_comm){.base.ops = &mpi_ops, .comm = handle, .kit = kit};
    MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
    MPI_Comm_rank(handle, &comm->base.rank);
    MPI_Comm_size(handle, &comm->base.rank_count);
    nw_mpi_name(comm->base.library, sizeof comm->base.library);
    nw_rc rc = set_hosts(comm);
    if (rc != NW_OK)
        mpi_close(&comm->base);
    else
        *comm_out = &comm->base;
    return rc;
}

static nw_rc mpi_split(struct nw_comm *base, int colour, struct nw_comm **comm_out)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    MPI_Comm handle;
    int code = MPI_Comm_split(comm->comm, colour < 0 ? MPI_UNDEFINED : colour, base->rank, &handle);
    if (code != MPI_SUCCESS)
        return fail(code, "splitting the ranks");
    if (handle == MPI_COMM_NULL) {
        *comm_out = NULL;
        return NW_OK;
    }
    NW_TRY(wrap(handle, nw_mpi_kit_hold(comm->kit), comm_out));
    (*comm_out)->gentle = base->gentle;
    return NW_OK;
}

static const struct nw_comm_ops mpi_ops = {
    .name = "mpi",
    .title = "MPI on host memory",
    .call = mpi_call,
    .swap = mpi_swap,
    .barrier = mpi_barrier,
    .exchange = mpi_exchange,
    .share = mpi_share,
    .split = mpi_split,
    .close = mpi_close,
    .supports = mpi_supports,
    .alarm = mpi_alarm,
    .alarmed = mpi_alarmed,
};

nw_rc nw_comm_open_mpi(struct nw_comm **comm_out)
{
    MPI_Comm handle;
    struct nw_mpi_kit *kit;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &handle);
    if (code != MPI_SUCCESS)
        return fail(code, "opening the ranks' communicator");
    nw_rc rc = nw_mpi_kit_make(&kit);
    if (rc != NW_OK) {
        MPI_Comm_free(&handle);
        return rc;
    }
    NW_TRY(wrap(handle, kit, comm_out));
    const char *restriction = nw_mpi_restriction();

    if (restriction == NULL)
        return NW_OK;
    rc = nw_findings_add(&(*comm_out)->findings, NW_FINDING_WARN, "mpi-restricted",
                         (*comm_out)->host_names[(*comm_out)->host_index],
                         "start it with --cap-add SYS_PTRACE", "%s", restriction);
    if (rc != NW_OK)
        nw_comm_close(*comm_out);
    return rc;
}
