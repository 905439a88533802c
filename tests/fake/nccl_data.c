/* The data of collectives, through the shared file: in chunks, each rank puts its part into its
 * slot, and after a barrier takes what it needs out of all. */
#include <string.h>

#include "tests/fake/nccl_comm.h"

static bool has_pieces(fk_coll coll)
{
    return coll == FK_REDUCE_SCATTER || coll == FK_ALLTOALL || coll == FK_SCATTER;
}

struct chunk {
    const struct fk_coll_op *op;
    size_t from, count, bytes, type_bytes; /* elements; bytes of `count` */
};

static void put_at(const struct chunk *c, size_t slot_offset, size_t element)
{
    const struct fk_coll_op *op = c->op;
    if (c->bytes == 0)
        return;
    const unsigned char *send = fk_view((const unsigned char *)op->send + element * c->type_bytes,
                                        c->bytes, "a collective's send buffer");
    unsigned char *slot = fk_slot(op->comm, op->comm->rank) + slot_offset;
    if (!send)
        return fk_nccl_async(op->comm, ncclUnhandledCudaError, "an illegal memory access");
    memcpy(slot, send, c->bytes);
    if (op->op >= ncclNumOps)
        fk_scale(op->type, slot, op->comm->scaled[op->op - ncclNumOps].scalar, c->count);
}

static void put(const struct chunk *c)
{
    const struct fk_coll_op *op = c->op;
    const bool rooted = op->coll == FK_BROADCAST || op->coll == FK_SCATTER;
    if (rooted && op->comm->rank != op->root)
        return;
    if (!has_pieces(op->coll)) {
        put_at(c, 0, c->from);
        return;
    }
    for (int d = 0; d < op->comm->rank_count; d++)
        put_at(c, (size_t)d * c->bytes, (size_t)d * op->count + c->from);
}

static void take(const struct chunk *c, size_t element, const void *from)
{
    const struct fk_coll_op *op = c->op;
    if (c->bytes == 0)
        return;
    void *recv = fk_view((unsigned char *)op->recv + element * c->type_bytes, c->bytes,
                         "a collective's receive buffer");
    if (!recv)
        return fk_nccl_async(op->comm, ncclUnhandledCudaError, "an illegal memory access");
    memcpy(recv, from, c->bytes);
}

/* Of `count` elements at `offset` bytes in all slots, into the result's slot at the same place. */
static void reduce_slots(const struct fk_coll_op *op, size_t offset, size_t count)
{
    const void *from[FK_MAX_RANKS];
    for (int s = 0; s < op->comm->rank_count; s++)
        from[s] = fk_slot(op->comm, s) + offset;
    if (count > 0)
        fk_reduce(op->type, op->op, fk_slot(op->comm, op->comm->rank_count) + offset, from,
                  op->comm->rank_count, count);
}

/* After the barrier. All-reduce and reduce: each rank adds up a part of the chunk. */
static bool get(const struct chunk *c)
{
    const struct fk_coll_op *op = c->op;
    ncclComm_t comm = op->comm;
    const size_t n = (size_t)comm->rank_count, r = (size_t)comm->rank;
    const bool root = comm->rank == op->root;
    switch (op->coll) {
    case FK_ALL_REDUCE:
    case FK_REDUCE: {
        const size_t first = c->count * r / n, end = c->count * (r + 1) / n;
        reduce_slots(op, first * c->type_bytes, end - first);
        if (!fk_barrier(comm, &comm->segment->on_stream))
            return false;
        if (op->coll == FK_ALL_REDUCE || root)
            take(c, c->from, fk_slot(comm, comm->rank_count));
        return true;
    }
    case FK_REDUCE_SCATTER:
        reduce_slots(op, r * c->bytes, c->count);
        take(c, c->from, fk_slot(comm, comm->rank_count) + r * c->bytes);
        break;
    case FK_BROADCAST:
        if (op->recv && !(root && op->send == op->recv))
            take(c, c->from, fk_slot(comm, op->root));
        break;
    case FK_SCATTER:
        take(c, c->from, fk_slot(comm, op->root) + r * c->bytes);
        break;
    case FK_ALL_GATHER:
    case FK_GATHER:
    case FK_ALLTOALL:
        for (size_t s = 0; s < n && (root || op->coll != FK_GATHER); s++)
            take(c, s * op->count + c->from,
                 fk_slot(comm, (int)s) + (op->coll == FK_ALLTOALL ? r * c->bytes : 0));
        break;
    default:
        break;
    }
    return fk_barrier(comm, &comm->segment->on_stream);
}

bool fk_move(const struct fk_coll_op *op)
{
    const size_t type_bytes = fk_type_bytes(op->type);
    const size_t pieces = has_pieces(op->coll) ? (size_t)op->comm->rank_count : 1;
    const size_t most = FK_SLOT_BYTES / pieces / type_bytes;
    size_t from = 0;
    do { /* at least once: the barriers */
        const size_t count = op->count - from < most ? op->count - from : most;
        const struct chunk c = {op, from, count, count * type_bytes, type_bytes};
        put(&c);
        if (!fk_barrier(op->comm, &op->comm->segment->on_stream) || !get(&c))
            return false;
        from += count;
    } while (from < op->count);
    return true;
}
