/* Sends and receives of one group: all of them progress together, each direction between two ranks
 * through a mailbox in the shared file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/nccl_comm.h"

#define MAX_MESSAGES (2 * FK_MAX_RANKS)

struct messages_op {
    ncclComm_t comm;
    fk_coll coll;
    long turn;
    struct fk_faults faults;
    int count;
    struct fk_message messages[];
};

/* A message on its way. */
struct transfer {
    const struct fk_message *message;
    struct fk_mail *mail;
    uint64_t number; /* of the messages between the two ranks, this way */
    unsigned char *view;
    size_t moved;
    bool posted, met, done;
    struct fk_call other;
};

static void post(struct transfer *t, const struct fk_call *call)
{
    struct fk_mail *mail = t->mail;
    if (atomic_load(&mail->acknowledged) < 2 * t->number)
        return; /* the last message is not over on both sides */
    if (t->message->send) {
        mail->send_call = *call;
        mail->send_bytes = t->message->bytes;
        atomic_store(&mail->send_posted, t->number + 1);
    } else {
        mail->recv_call = *call;
        mail->recv_bytes = t->message->bytes;
        atomic_store(&mail->recv_posted, t->number + 1);
    }
    t->posted = true;
}

static bool meet(ncclComm_t comm, struct transfer *t)
{
    struct fk_mail *mail = t->mail;
    if (atomic_load(&mail->send_posted) != t->number + 1 ||
        atomic_load(&mail->recv_posted) != t->number + 1)
        return true;
    t->other = t->message->send ? mail->recv_call : mail->send_call;
    t->met = true;
    if (mail->send_bytes == mail->recv_bytes)
        return true;
    char text[160];
    snprintf(text, sizeof text, "simulated: rank %d and rank %d: %llu bytes sent, %llu expected",
             comm->rank, t->message->peer, (unsigned long long)mail->send_bytes,
             (unsigned long long)mail->recv_bytes);
    fprintf(stderr, "SIMULATED GPUs: %s\n", text);
    fk_nccl_async(comm, ncclInvalidUsage, text);
    return false;
}

static void carry(struct transfer *t)
{
    struct fk_mail *mail = t->mail;
    const size_t left = t->message->bytes - t->moved;
    const size_t bytes = left < FK_MAIL_BYTES ? left : FK_MAIL_BYTES;
    const bool full = atomic_load(&mail->put) > atomic_load(&mail->got);
    if (left > 0 && full != t->message->send) {
        if (t->message->send)
            memcpy(mail->data, t->view + t->moved, bytes);
        else
            memcpy(t->view + t->moved, mail->data, bytes);
        t->moved += bytes;
        atomic_fetch_add(t->message->send ? &mail->put : &mail->got, 1);
    }
    if (t->moved == t->message->bytes) {
        atomic_fetch_add(&mail->acknowledged, 1);
        t->done = true;
    }
}

/* One look at it; true when something moved. */
static bool step(ncclComm_t comm, struct transfer *t, const struct fk_call *call, bool *good)
{
    const size_t moved = t->moved;
    const bool posted = t->posted, met = t->met;
    if (!t->posted)
        post(t, call);
    if (t->posted && !t->met)
        *good &= meet(comm, t);
    if (t->met && *good)
        carry(t);
    return moved != t->moved || posted != t->posted || met != t->met || t->done;
}

static bool progress(ncclComm_t comm, struct transfer *transfers, int count,
                     const struct fk_call *call)
{
    bool good = true;
    for (int left = count; left > 0 && good;) {
        bool moved = false;
        for (int i = 0; i < count && good; i++)
            if (!transfers[i].done && step(comm, &transfers[i], call, &good)) {
                moved = true;
                left -= transfers[i].done;
            }
        if (atomic_load(&comm->aborted))
            return false;
        if (moved)
            fk_progress();
        else
            fk_pause();
    }
    return good;
}

/* To oneself: the sends in order into the receives in order. */
static bool to_self(const struct messages_op *op)
{
    int next = 0;
    for (int i = 0; i < op->count; i++) {
        const struct fk_message *send = &op->messages[i];
        if (!send->send || send->peer != op->comm->rank)
            continue;
        while (next < op->count &&
               (op->messages[next].send || op->messages[next].peer != op->comm->rank))
            next++;
        if (next == op->count)
            return false;
        const struct fk_message *recv = &op->messages[next++];
        const size_t bytes = send->bytes < recv->bytes ? send->bytes : recv->bytes;
        void *to = fk_view(recv->buffer, bytes, "a receive");
        const void *from = fk_view(send->buffer, bytes, "a send");
        if (!to || !from)
            return false;
        memmove(to, from, bytes);
    }
    return true;
}

static int set_up(struct messages_op *op, struct transfer *transfers)
{
    ncclComm_t comm = op->comm;
    int count = 0;
    for (int i = 0; i < op->count; i++) {
        const struct fk_message *m = &op->messages[i];
        if (m->peer == comm->rank)
            continue;
        struct transfer *t = &transfers[count++];
        *t = (struct transfer){.message = m};
        t->mail = m->send ? fk_mail(comm, comm->rank, m->peer) : fk_mail(comm, m->peer, comm->rank);
        t->number = m->send ? comm->sent[m->peer]++ : comm->received[m->peer]++;
        t->view = fk_view(m->buffer, m->bytes, m->send ? "a send" : "a receive");
        if (!t->view && m->bytes > 0)
            return -1;
    }
    return count;
}

static void corrupt(const struct messages_op *op)
{
    for (int i = 0; i < op->count; i++) {
        const struct fk_message *m = &op->messages[i];
        if (m->send || m->bytes == 0)
            continue;
        unsigned char *view = fk_view(m->buffer, m->bytes, "a fault");
        const size_t at = (size_t)(op->faults.corrupt_at * (double)m->bytes);
        if (view)
            view[at < m->bytes ? at : m->bytes - 1] ^= 0x10;
        return;
    }
}

static void depart(const struct messages_op *op, struct CUstream_st *stream,
                   const struct fk_call *call, const struct transfer *transfers, int count)
{
    int64_t base_ps = call->base_ps;
    double link_factor = call->link_factor;
    for (int i = 0; i < count; i++)
        base_ps = transfers[i].other.base_ps > base_ps ? transfers[i].other.base_ps : base_ps;
    int64_t start_ps =
        (call->movable ? base_ps : call->base_ps) + (int64_t)(call->late_us * FK_PS_PER_US);
    for (int i = 0; i < count; i++) {
        const struct fk_call *other = &transfers[i].other;
        const int64_t arrival =
            (other->movable ? base_ps : other->base_ps) + (int64_t)(other->late_us * FK_PS_PER_US);
        start_ps = arrival > start_ps ? arrival : start_ps;
        link_factor = other->link_factor > link_factor ? other->link_factor : link_factor;
    }
    const double us =
        fk_messages_us(op->comm, op->messages, op->count) * link_factor * op->faults.slow_factor;
    fk_depart(stream, call->movable ? base_ps : call->base_ps,
              start_ps + (int64_t)(us * FK_PS_PER_US + 0.5));
}

static void take_part(struct messages_op *op, struct fk_op *work, struct CUstream_st *stream)
{
    struct fk_call call = {.late_us = op->faults.late_us, .link_factor = op->faults.link_factor};
    struct transfer *transfers = calloc((size_t)op->count, sizeof *transfers);
    const int count = transfers ? set_up(op, transfers) : -1;
    call.base_ps = fk_arrive(stream, work, &call.movable);
    if (count < 0 || !to_self(op))
        fk_nccl_async(op->comm, ncclUnhandledCudaError, "an illegal memory access");
    else if (progress(op->comm, transfers, count, &call)) {
        if (fk_fault_has(&op->faults, FK_FAULT_CORRUPT))
            corrupt(op);
        depart(op, stream, &call, transfers, count);
    }
    free(transfers);
}

static void run_messages(struct fk_op *work, struct CUstream_st *stream)
{
    struct messages_op *op = (struct messages_op *)(void *)work->data;
    if (fk_turn_wait(op->comm, op->turn) && fk_fault_before(op->comm, &op->faults))
        take_part(op, work, stream);
    fk_turn_end(op->comm);
}

static void queued_messages(struct fk_op *work)
{
    struct messages_op *op = (struct messages_op *)(void *)work->data;
    fk_turn_take(op->comm, FK_SENDRECV, &op->turn, &op->faults);
}

static bool self_is_even(const ncclComm_t comm, const struct fk_message *messages, int count)
{
    int balance = 0;
    for (int i = 0; i < count; i++)
        if (messages[i].peer == comm->rank)
            balance += messages[i].send ? 1 : -1;
    return balance == 0;
}

ncclResult_t fk_nccl_push_messages(ncclComm_t comm, const struct fk_message *messages, int count,
                                   struct CUstream_st *stream)
{
    const struct fk_faults faults = fk_faults_of(fk_coll_names[FK_SENDRECV], comm->rank,
                                                 comm->calls[FK_SENDRECV] + 1, comm->all_calls + 1);
    if (!self_is_even(comm, messages, count))
        return fk_nccl_fail(comm, ncclInvalidUsage,
                            "a send to oneself without a receive of it in the same group");
    if (fk_fault_has(&faults, FK_FAULT_ERROR)) {
        pthread_mutex_lock(&comm->lock);
        comm->calls[FK_SENDRECV]++;
        comm->all_calls++;
        pthread_mutex_unlock(&comm->lock);
        return fk_nccl_fail(comm, ncclSystemError, "simulated: unhandled system error in sendrecv");
    }
    const size_t bytes = sizeof(struct messages_op) + (size_t)count * sizeof *messages;
    struct messages_op *op = calloc(1, bytes);
    if (!op)
        return ncclSystemError;
    op->comm = comm;
    op->count = count;
    memcpy(op->messages, messages, (size_t)count * sizeof *messages);
    const fk_result code = fk_push(stream, run_messages, queued_messages, op, bytes);
    free(op);
    return code == CU_OK ? ncclSuccess
                         : fk_nccl_fail(comm, ncclUnhandledCudaError, "Cuda failure %u", code);
}
