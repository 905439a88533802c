/* Collectives: what a rank does when its turn comes. All say where they are, the slowest arrival is
 * the start, the data are moved for real, and the model says when it ends. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/fake/nccl_comm.h"

void fk_turn_take(ncclComm_t comm, fk_coll coll, long *turn, struct fk_faults *faults)
{
    pthread_mutex_lock(&comm->lock);
    *turn = comm->issued++;
    const long nth = ++comm->calls[coll], nth_any = ++comm->all_calls;
    pthread_mutex_unlock(&comm->lock);
    *faults = fk_faults_of(fk_coll_names[coll], comm->rank, nth, nth_any);
}

bool fk_turn_wait(ncclComm_t comm, long turn)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->done != turn)
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
    return !atomic_load(&comm->aborted);
}

void fk_turn_end(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->done++;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

bool fk_fault_before(ncclComm_t comm, const struct fk_faults *faults)
{
    if (fk_fault_has(faults, FK_FAULT_CRASH))
        raise(SIGKILL);
    if (fk_fault_has(faults, FK_FAULT_ASYNC))
        fk_nccl_async(comm, ncclRemoteError,
                      "simulated: remote process exited or there was a network error");
    if (!fk_fault_has(faults, FK_FAULT_HANG) && !fk_fault_has(faults, FK_FAULT_ASYNC))
        return true;
    while (!atomic_load(&comm->aborted))
        fk_pause();
    return false;
}

static struct fk_call announce(const struct fk_coll_op *op, struct fk_op *work,
                               struct CUstream_st *stream)
{
    struct fk_call call = {.coll = (int)op->coll,
                           .type = (int)op->type,
                           .op = op->op >= ncclNumOps ? ncclNumOps : (int)op->op,
                           .root = op->root,
                           .count = op->count,
                           .late_us = op->faults.late_us,
                           .link_factor = op->faults.link_factor};
    call.base_ps = fk_arrive(stream, work, &call.movable);
    op->comm->segment->seats[op->comm->rank].call = call;
    return call;
}

/* Ranks that call different things: real NCCL hangs or mixes up data; here it is said. */
static bool agree(const struct fk_coll_op *op, const struct fk_call *mine)
{
    ncclComm_t comm = op->comm;
    for (int r = 0; r < comm->rank_count; r++) {
        const struct fk_call *c = &comm->segment->seats[r].call;
        if (c->coll == mine->coll && c->type == mine->type && c->op == mine->op &&
            c->root == mine->root && c->count == mine->count)
            continue;
        char text[200];
        snprintf(text, sizeof text,
                 "simulated: rank %d calls %s of %llu (type %d, op %d, root %d), rank %d %s of "
                 "%llu (type %d, op %d, root %d)",
                 comm->rank, fk_coll_names[mine->coll], (unsigned long long)mine->count, mine->type,
                 mine->op, mine->root, r, fk_coll_names[c->coll], (unsigned long long)c->count,
                 c->type, c->op, c->root);
        fprintf(stderr, "SIMULATED GPUs: %s\n", text);
        fk_nccl_async(comm, ncclInvalidUsage, text);
        return false;
    }
    return true;
}

/* Where all stood, and when the last one came; the worst link. */
static void settle(const ncclComm_t comm, int64_t *base_ps, int64_t *start_ps, double *link_factor)
{
    const struct fk_seat *seats = comm->segment->seats;
    *base_ps = *start_ps = INT64_MIN;
    *link_factor = 1;
    for (int r = 0; r < comm->rank_count; r++)
        if (seats[r].call.base_ps > *base_ps)
            *base_ps = seats[r].call.base_ps;
    for (int r = 0; r < comm->rank_count; r++) {
        const struct fk_call *call = &seats[r].call;
        const int64_t arrival =
            (call->movable ? *base_ps : call->base_ps) + (int64_t)(call->late_us * FK_PS_PER_US);
        if (arrival > *start_ps)
            *start_ps = arrival;
        if (call->link_factor > *link_factor)
            *link_factor = call->link_factor;
    }
}

static void corrupt(const struct fk_coll_op *op)
{
    const bool gathers =
        op->coll == FK_ALL_GATHER || op->coll == FK_GATHER || op->coll == FK_ALLTOALL;
    const size_t bytes =
        op->count * fk_type_bytes(op->type) * (gathers ? (size_t)op->comm->rank_count : 1);
    unsigned char *recv = op->recv ? fk_view(op->recv, bytes, "a fault") : NULL;
    size_t at = (size_t)(op->faults.corrupt_at * (double)bytes);
    if (recv && bytes > 0)
        recv[at < bytes ? at : bytes - 1] ^= 0x10;
}

/* A GPU or a link that is slower is slower with data: one element takes the time of starting. */
static double slowed(const struct fk_coll_op *op)
{
    return op->count > 1 ? op->faults.slow_factor : 1;
}

static void take_part(struct fk_coll_op *op, struct fk_op *work, struct CUstream_st *stream)
{
    ncclComm_t comm = op->comm;
    const struct fk_call mine = announce(op, work, stream);
    int64_t base_ps, start_ps;
    double link_factor;
    if (!fk_barrier(comm, &comm->segment->on_stream) || !agree(op, &mine))
        return;
    settle(comm, &base_ps, &start_ps, &link_factor);
    if (!fk_move(op))
        return;
    if (fk_fault_has(&op->faults, FK_FAULT_CORRUPT))
        corrupt(op);
    const double us =
        fk_coll_us(comm, op->coll, op->count, fk_type_bytes(op->type), op->send == op->recv) *
        link_factor * slowed(op);
    fk_depart(stream, mine.movable ? base_ps : mine.base_ps,
              start_ps + (int64_t)(us * FK_PS_PER_US + 0.5));
}

static void run_coll(struct fk_op *work, struct CUstream_st *stream)
{
    struct fk_coll_op *op = (struct fk_coll_op *)(void *)work->data;
    if (fk_turn_wait(op->comm, op->turn) && fk_fault_before(op->comm, &op->faults))
        take_part(op, work, stream);
    fk_turn_end(op->comm);
}

static void queued_coll(struct fk_op *work)
{
    struct fk_coll_op *op = (struct fk_coll_op *)(void *)work->data;
    fk_turn_take(op->comm, op->coll, &op->turn, &op->faults);
}

/* An algorithm that NCCL_ALGO names for all collectives and that this one has not: NCCL falls back
 * up to 2.23, and refuses from 2.24 on (src/enqueue.cc). */
static bool has_algorithm(const struct fk_coll_op *op)
{
    static const struct {
        const char *lane;
        unsigned colls;
    } rows[] = {
        {"tree", 1u << FK_ALL_REDUCE},
        {"nvls", 1u << FK_ALL_REDUCE | 1u << FK_ALL_GATHER | 1u << FK_REDUCE_SCATTER},
    };

    for (size_t i = 0; FAKE_NCCL_VERSION >= 22403 && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(op->comm->lane->name, rows[i].lane) == 0)
            return rows[i].colls >> op->coll & 1;
    return true;
}

ncclResult_t fk_nccl_push_coll(struct fk_coll_op *op, struct CUstream_st *stream)
{
    ncclComm_t comm = op->comm;
    const struct fk_faults faults = fk_faults_of(fk_coll_names[op->coll], comm->rank,
                                                 comm->calls[op->coll] + 1, comm->all_calls + 1);
    if (op->coll == FK_ALL_REDUCE && comm->lane->refuse[0])
        return fk_nccl_fail(comm, ncclInvalidUsage, "%s", comm->lane->refuse);
    if (!has_algorithm(op))
        return fk_nccl_fail(comm, ncclInvalidUsage,
                            "simulated: no algorithm/protocol available for function %s with "
                            "NCCL_ALGO as it was set",
                            fk_coll_names[op->coll]);
    if (fk_fault_has(&faults, FK_FAULT_ERROR) || fk_fault_has(&faults, FK_FAULT_OOM)) {
        pthread_mutex_lock(&comm->lock);
        comm->calls[op->coll]++;
        comm->all_calls++;
        pthread_mutex_unlock(&comm->lock);
        return fk_fault_has(&faults, FK_FAULT_ERROR)
                   ? fk_nccl_fail(comm, ncclSystemError, "simulated: unhandled system error in %s",
                                  fk_coll_names[op->coll])
                   : fk_nccl_fail(comm, ncclUnhandledCudaError,
                                  "simulated: Cuda failure 2 'out of memory'");
    }
    const fk_result code = fk_push(stream, run_coll, queued_coll, op, sizeof *op);
    return code == CU_OK ? ncclSuccess
                         : fk_nccl_fail(comm, ncclUnhandledCudaError, "Cuda failure %u", code);
}
