/* NCCL's calls. Each only queues its work on the stream; nw_nccl_finish waits for all of it. */
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "collectives/comm_nccl.h"
#include "collectives/common.h"

static const int nccl_types[NW_DTYPE_COUNT] = {
    [NW_INT8] = NW_NCCL_INT8,         [NW_UINT8] = NW_NCCL_UINT8,   [NW_INT32] = NW_NCCL_INT32,
    [NW_UINT32] = NW_NCCL_UINT32,     [NW_INT64] = NW_NCCL_INT64,   [NW_UINT64] = NW_NCCL_UINT64,
    [NW_HALF] = NW_NCCL_FLOAT16,      [NW_FLOAT] = NW_NCCL_FLOAT32, [NW_DOUBLE] = NW_NCCL_FLOAT64,
    [NW_BFLOAT16] = NW_NCCL_BFLOAT16,
};
static const int nccl_ops[NW_REDOP_COUNT] = {
    [NW_SUM] = NW_NCCL_SUM, [NW_PROD] = NW_NCCL_PROD, [NW_MIN] = NW_NCCL_MIN,
    [NW_MAX] = NW_NCCL_MAX, [NW_AVG] = NW_NCCL_AVG,
};

/* ---- the calls ----------------------------------------------------------------------------------
 */

/* One call, as NCCL wants it. */
struct queued {
    const struct nw_nccl_api *nccl;
    struct ncclComm *handle;
    struct CUstream_st *stream;
    const struct nw_call *call;
    size_t count, chunk_bytes;
    int type, op, rank, rank_count;
};

#define WHERE q->handle, q->stream
#define MOVE  q->call->send, q->call->recv, q->count, q->type

static int all_reduce(const struct queued *q)
{
    return q->nccl->all_reduce(MOVE, q->op, WHERE);
}

static int all_gather(const struct queued *q)
{
    return q->nccl->all_gather(MOVE, WHERE);
}

static int reduce_scatter(const struct queued *q)
{
    return q->nccl->reduce_scatter(MOVE, q->op, WHERE);
}

static int broadcast(const struct queued *q)
{
    return q->nccl->broadcast(MOVE, q->call->root, WHERE);
}

static int reduce(const struct queued *q)
{
    return q->nccl->reduce(MOVE, q->op, q->call->root, WHERE);
}

static int send_chunk(const struct queued *q, int chunk, int peer)
{
    return q->nccl->send((const char *)q->call->send + (size_t)chunk * q->chunk_bytes, q->count,
                         q->type, peer, WHERE);
}

static int recv_chunk(const struct queued *q, int chunk, int peer)
{
    return q->nccl->recv((char *)q->call->recv + (size_t)chunk * q->chunk_bytes, q->count, q->type,
                         peer, WHERE);
}

/* A group is ended also when a call in it was refused: it would stay open for the next call. */
static int grouped(const struct queued *q, int (*calls)(const struct queued *q))
{
    int code = q->nccl->group_start(), end;

    if (code != NW_NCCL_SUCCESS)
        return code;
    code = calls(q);
    end = q->nccl->group_end();
    return code != NW_NCCL_SUCCESS ? code : end;
}

static int alltoall_messages(const struct queued *q)
{
    int code = NW_NCCL_SUCCESS;

    for (int peer = 0; peer < q->rank_count && code == NW_NCCL_SUCCESS; peer++) {
        code = send_chunk(q, peer, peer);
        if (code == NW_NCCL_SUCCESS)
            code = recv_chunk(q, peer, peer);
    }
    return code;
}

static int gather_messages(const struct queued *q)
{
    int code = send_chunk(q, 0, q->call->root);

    for (int peer = 0; q->rank == q->call->root && peer < q->rank_count; peer++)
        if (code == NW_NCCL_SUCCESS)
            code = recv_chunk(q, peer, peer);
    return code;
}

static int scatter_messages(const struct queued *q)
{
    int code = recv_chunk(q, 0, q->call->root);

    for (int peer = 0; q->rank == q->call->root && peer < q->rank_count; peer++)
        if (code == NW_NCCL_SUCCESS)
            code = send_chunk(q, peer, peer);
    return code;
}

static int ring_messages(const struct queued *q)
{
    const int code = send_chunk(q, 0, (q->rank + 1) % q->rank_count);

    return code != NW_NCCL_SUCCESS
               ? code
               : recv_chunk(q, 0, (q->rank + q->rank_count - 1) % q->rank_count);
}

static int alltoall(const struct queued *q)
{
    return q->nccl->alltoall != NULL ? q->nccl->alltoall(MOVE, WHERE)
                                     : grouped(q, alltoall_messages);
}

static int gather(const struct queued *q)
{
    return q->nccl->gather != NULL ? q->nccl->gather(MOVE, q->call->root, WHERE)
                                   : grouped(q, gather_messages);
}

static int scatter(const struct queued *q)
{
    return q->nccl->scatter != NULL ? q->nccl->scatter(MOVE, q->call->root, WHERE)
                                    : grouped(q, scatter_messages);
}

static int sendrecv(const struct queued *q)
{
    return grouped(q, ring_messages);
}

static bool is_float(nw_dtype type)
{
    return type == NW_HALF || type == NW_FLOAT || type == NW_DOUBLE || type == NW_BFLOAT16;
}

bool nw_nccl_supports(const struct nw_comm *comm, const struct nw_call *call)
{
    const int ranks = comm->rank_count;

    if (!nw_call_is_valid(comm, call))
        return false;
    /* ncclAvg of floats is a sum of inputs that were each multiplied by 1/n (hostToDevRedOp in
     * NCCL's enqueue.cc): exact where n is a power of two. */
    if (call->coll->flags & NW_COLL_REDUCES && call->op == NW_AVG && is_float(call->dtype) &&
        ranks & (ranks - 1)) {
        (void)nw_fail(
            NW_ENOTSUP,
            "NCCL rounds each rank's part of an average of floats over %d ranks, so there "
            "is no exact result to check it against; take sum, or 2, 4, 8 … ranks",
            ranks);
        return false;
    }
    return true;
}

/* Ready to queue work: the GPU is the thread's, the communicators are whole. */
static nw_rc enter(struct nccl_comm *comm)
{
    void *handle;

    if (comm->handle == NULL)
        return nw_fail(NW_EPEER, "the NCCL communicator was given up");
    return comm->gpu->dev->ops->native(comm->gpu->stream, &handle);
}

static nw_rc word(struct nccl_comm *comm, int code)
{
    return nw_nccl_fail(comm->gpu->nccl, comm->handle, code, "%s over %d ranks", comm->last,
                        comm->base.rank_count);
}

static int queue(const struct queued *queued)
{
    static int (*const functions[NW_COLL_COUNT])(const struct queued *) = {
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

    return functions[queued->call->coll->id](queued);
}

/* Checks it, and has the communicator ready and named for failures. */
static nw_rc prepare(struct nw_comm *base, const struct nw_call *call, struct queued *queued_out)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    char size[32];

    if (!nw_nccl_supports(base, call))
        return nw_last_error()->rc;
    snprintf(comm->last, sizeof comm->last, "%s of %s", call->coll->name,
             nw_format_bytes(size, call->shape.bytes));
    NW_TRY(enter(comm));
    *queued_out = (struct queued){
        .nccl = comm->gpu->nccl,
        .handle = comm->handle,
        .stream = comm->gpu->handle,
        .call = call,
        .count = call->shape.count,
        .chunk_bytes = call->shape.count * nw_dtype_bytes(call->dtype),
        .type = nccl_types[call->dtype],
        .op = nccl_ops[call->op],
        .rank = base->rank,
        .rank_count = base->rank_count,
    };
    return NW_OK;
}

nw_rc nw_nccl_call(struct nw_comm *base, const struct nw_call *call)
{
    struct queued queued;

    NW_TRY(prepare(base, call, &queued));
    return nw_nccl_settle((struct nccl_comm *)base, queue(&queued));
}

/* Those that NCCL runs as collectives. The others are sends and receives inside, and one that is
 * only simulated stays in its peer's queue, to be found there by the next real one: p2pTaskAppend
 * in enqueue.cc and ncclGroupCommJoin in group.h, 2.22.3 to 2.30. They would have no estimate
 * anyway. */
static const bool has_estimate[NW_COLL_COUNT] = {
    [NW_ALL_REDUCE] = true, [NW_ALL_GATHER] = true, [NW_REDUCE_SCATTER] = true,
    [NW_BROADCAST] = true,  [NW_REDUCE] = true,
};

/* A group of one call that is estimated in place of run: of several in a group the last one's
 * estimate would stand (topoGetAlgoInfo in enqueue.cc). One rank's calls never become a task. Where
 * the call needs a connection that is not there yet, it is made: the ranks wait for each other. */
nw_rc nw_nccl_expect(struct nw_comm *base, const struct nw_call *call, double *ns_out)
{
    struct nw_nccl_sim_info info = {.size = sizeof info,
                                    .magic = NW_NCCL_SIM_INFO_MAGIC,
                                    .version = NW_NCCL_SIM_INFO_VERSION,
                                    .estimated_us = NW_NCCL_UNDEF_FLOAT};
    struct queued queued;
    int code, end;

    if (((struct nccl_comm *)base)->gpu->nccl->group_simulate_end == NULL || base->rank_count < 2 ||
        !has_estimate[call->coll->id])
        return nw_fail(NW_ENOTSUP,
                       "NCCL has no estimate of %s over %d rank%s, or is older than 2.22.3",
                       call->coll->name, base->rank_count, base->rank_count == 1 ? "" : "s");
    NW_TRY(prepare(base, call, &queued));
    NW_TRY(nw_nccl_estimator((struct nccl_comm *)base, &queued.handle));
    code = queued.nccl->group_start();
    if (code != NW_NCCL_SUCCESS)
        return word((struct nccl_comm *)base, code);
    code = queue(&queued);
    end = queued.nccl->group_simulate_end(&info);
    code = code != NW_NCCL_SUCCESS ? code : end;
    if (code != NW_NCCL_SUCCESS)
        return word((struct nccl_comm *)base, code);
    if (!(info.estimated_us > 0))
        return nw_fail(NW_ENOTSUP, "NCCL has no estimate of %s", call->coll->name);
    *ns_out = (double)info.estimated_us * 1e3;
    return NW_OK;
}

struct nw_stream *nw_nccl_stream(struct nw_comm *base)
{
    return ((struct nccl_comm *)base)->gpu->stream;
}

/* An all-reduce of one element: the one collective that exists in every algorithm, since NCCL_ALGO
 * makes NCCL refuse (from 2.24) what the algorithm named has not. Of the sum nothing is made. */
nw_rc nw_nccl_meet(struct nw_comm *base)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    struct nccl_gpu *gpu = comm->gpu;
    float *met = &gpu->device->met;

    NW_TRY(enter(comm));
    return nw_nccl_settle(comm, gpu->nccl->all_reduce(met, met, 1, NW_NCCL_FLOAT32, NW_NCCL_SUM,
                                                      comm->handle, gpu->handle));
}

nw_rc nw_nccl_swap(struct nw_comm *base, int peer, const void *send, void *recv, uint64_t bytes)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    const struct nw_nccl_api *nccl = comm->gpu->nccl;
    int code, end;

    snprintf(comm->last, sizeof comm->last, "exchange between ranks %d and %d", base->rank, peer);
    NW_TRY(enter(comm));
    code = nccl->group_start();
    if (code != NW_NCCL_SUCCESS)
        return word(comm, code);
    code = nccl->send(send, bytes, NW_NCCL_INT8, peer, comm->handle, comm->gpu->handle);
    if (code == NW_NCCL_SUCCESS)
        code = nccl->recv(recv, bytes, NW_NCCL_INT8, peer, comm->handle, comm->gpu->handle);
    end = nccl->group_end();
    return nw_nccl_settle(comm, code != NW_NCCL_SUCCESS ? code : end);
}

nw_rc nw_nccl_pass(struct nw_comm *base, bool out, const struct nw_message *messages, size_t count)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    const struct nw_nccl_api *nccl = comm->gpu->nccl;
    int code, end;

    snprintf(comm->last, sizeof comm->last, "%zu messages %s rank %d", count, out ? "from" : "to",
             base->rank);
    NW_TRY(enter(comm));
    code = nccl->group_start();
    if (code != NW_NCCL_SUCCESS)
        return word(comm, code);
    for (size_t i = 0; i < count && code == NW_NCCL_SUCCESS; i++)
        code = (out ? nccl->send(messages[i].data, messages[i].bytes, NW_NCCL_INT8,
                                 messages[i].peer, comm->handle, comm->gpu->handle)
                    : nccl->recv(messages[i].data, messages[i].bytes, NW_NCCL_INT8,
                                 messages[i].peer, comm->handle, comm->gpu->handle));
    end = nccl->group_end();
    return nw_nccl_settle(comm, code != NW_NCCL_SUCCESS ? code : end);
}

/* ---- waiting ------------------------------------------------------------------------------------
 */

/* A look at NCCL's own state every so often. The stream is polled without a pause at first; after
 * LAZY_AFTER_NS with pauses of 50 us, below 0.3 % of what is measured. */
#define SLICE_NS      200e3
#define LAZY_AFTER_NS 20e6
#define LAZY_SLICE_NS 2e6

static nw_rc ask_for_errors(struct nccl_gpu *gpu)
{
    for (struct nccl_comm *comm = gpu->comms; comm != NULL; comm = comm->next) {
        int error = NW_NCCL_SUCCESS;

        if (comm->handle == NULL)
            continue;
        const int code = gpu->nccl->comm_get_async_error(comm->handle, &error);

        if (code != NW_NCCL_SUCCESS)
            return word(comm, code);
        if (error != NW_NCCL_SUCCESS && error != NW_NCCL_IN_PROGRESS)
            return word(comm, error);
    }
    return NW_OK;
}

static nw_rc wait_for_stream(struct nccl_comm *comm, double timeout_ns)
{
    struct nccl_gpu *gpu = comm->gpu;
    const uint64_t began_ns = nw_now_ns();

    for (;;) {
        const double waited_ns = (double)(nw_now_ns() - began_ns);
        const bool lazy = waited_ns > LAZY_AFTER_NS || gpu->about.simulated;
        const nw_rc rc = gpu->dev->ops->wait(gpu->stream, lazy ? LAZY_SLICE_NS : SLICE_NS);

        if (rc != NW_ETIMEOUT)
            return rc;
        NW_TRY(ask_for_errors(gpu));
        if (waited_ns > timeout_ns)
            return nw_fail(NW_ETIMEOUT,
                           "%s over %d ranks: the GPU is not done after %.3g s; given up "
                           "(ncclCommAbort)",
                           comm->last, comm->base.rank_count, timeout_ns * 1e-9);
    }
}

nw_rc nw_nccl_finish(struct nw_comm *base, double timeout_ns)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    struct nccl_gpu *gpu = comm->gpu;
    nw_rc rc;

    if (gpu->given_up)
        return nw_fail(NW_EPEER, "the NCCL communicator was given up");
    if (gpu->failed.rc != NW_OK)
        return nw_fail_at(gpu->failed.rc == NW_ETIMEOUT ? NW_ETIMEOUT : NW_ELIB, gpu->failed.lib,
                          gpu->failed.lib_code, gpu->failed.where, "%s", gpu->failed.text);
    rc = wait_for_stream(comm, timeout_ns);
    if (rc != NW_OK)
        nw_nccl_give_up(gpu);
    return rc != NW_OK ? rc : ask_for_errors(gpu);
}
