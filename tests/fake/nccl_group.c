/* The collective calls, and groups of them: checked at the call, queued at the end of the outermost
 * group. */
#include <stdlib.h>
#include <string.h>

#include "tests/fake/nccl_comm.h"
#include "tests/fake/nccl_group.h"

enum item_kind { ITEM_COLL, ITEM_MESSAGE };
struct item {
    enum item_kind kind;
    ncclComm_t comm;
    struct CUstream_st *stream;
    struct fk_coll_op op;
    struct fk_message message;
    bool taken;
};

static _Thread_local struct {
    int depth;
    struct item *items;
    size_t count, room;
    ncclResult_t failed; /* the first refusal inside the group */
} group;

static ncclResult_t add(const struct item *item)
{
    if (group.count == group.room) {
        const size_t room = group.room ? 2 * group.room : 32;
        struct item *more = realloc(group.items, room * sizeof *more);
        if (!more)
            return ncclSystemError;
        group.items = more;
        group.room = room;
    }
    group.items[group.count++] = *item;
    return ncclSuccess;
}

/* All messages of one communicator and stream, from item `first` on, as one operation. */
static ncclResult_t push_messages(size_t first)
{
    struct item *const items = group.items;
    struct fk_message *messages = malloc(group.count * sizeof *messages);
    int count = 0;
    if (!messages)
        return ncclSystemError;
    for (size_t i = first; i < group.count; i++)
        if (items[i].kind == ITEM_MESSAGE && !items[i].taken &&
            items[i].comm == items[first].comm && items[i].stream == items[first].stream) {
            messages[count++] = items[i].message;
            items[i].taken = true;
        }
    const ncclResult_t code =
        fk_nccl_push_messages(items[first].comm, messages, count, items[first].stream);
    free(messages);
    return code;
}

static ncclResult_t push_all(void)
{
    ncclResult_t code = ncclSuccess;
    for (size_t i = 0; i < group.count && code == ncclSuccess; i++)
        if (group.items[i].kind == ITEM_COLL)
            code = fk_nccl_push_coll(&group.items[i].op, group.items[i].stream);
    for (size_t i = 0; i < group.count && code == ncclSuccess; i++)
        if (group.items[i].kind == ITEM_MESSAGE && !group.items[i].taken)
            code = push_messages(i);
    return code;
}

bool fk_group_is_open(void)
{
    return group.depth > 0;
}

ncclResult_t ncclGroupStart(void)
{
    if (group.depth++ == 0) {
        group.count = 0;
        group.failed = ncclSuccess;
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group.depth == 0)
        return fk_nccl_fail(NULL, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--group.depth > 0)
        return ncclSuccess;
    ncclResult_t code = fk_group_run_inits();
    if (group.failed != ncclSuccess)
        code = group.failed;
    if (code == ncclSuccess)
        code = push_all();
    for (size_t i = 0; i < group.count && (code == ncclSuccess || code == ncclInProgress); i++)
        if (fk_nccl_begun(group.items[i].comm) == ncclInProgress)
            code = ncclInProgress;
    group.count = 0;
    return code;
}

#if FAKE_NCCL_VERSION >= 22203
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    if (group.depth == 0)
        return fk_nccl_fail(NULL, ncclInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart");
    if (info && info->magic != FK_NCCL_SIM_MAGIC)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "the simulation info is not initialised");
    if (group.depth == 1 && group.count > 0 && !group.items[0].comm->config.blocking)
        return ncclGroupEnd(); /* runs it, and leaves `info` as it is: as NCCL does (group.cc) */
    if (--group.depth > 0)
        return ncclSuccess;
    double us = -1;
    for (size_t i = 0; i < group.count; i++) {
        const struct item *item = &group.items[i];
        if (item->comm->rank_count == 1) /* never becomes a task there */
            continue;
        us = item->kind == ITEM_COLL
                 ? fk_coll_us(item->comm, item->op.coll, item->op.count,
                              fk_type_bytes(item->op.type), item->op.send == item->op.recv)
                 : fk_messages_us(item->comm, &item->message, 1);
        us *= fk_machine()->simulate_factor;
    }
    if (info)
        info->estimatedTime = (float)us;
    group.count = 0;
    return group.failed;
}
#endif

/* Checks as NCCL makes them at the call. */
static ncclResult_t check(const struct item *item)
{
    const struct fk_coll_op *op = &item->op;
    ncclComm_t comm = item->comm;
    const ncclResult_t usable = fk_nccl_usable(comm);
    if (usable != ncclSuccess)
        return usable;
    if ((unsigned)op->type >= ncclNumTypes)
        return fk_nccl_fail(comm, ncclInvalidArgument, "data type %d", (int)op->type);
    const bool own = op->op >= ncclNumOps && op->op < ncclNumOps + FK_MAX_SCALED &&
                     comm->scaled[op->op - ncclNumOps].used &&
                     comm->scaled[op->op - ncclNumOps].type == op->type;
    if ((int)op->op < 0 || (op->op >= ncclNumOps && !own))
        return fk_nccl_fail(comm, ncclInvalidArgument, "reduction operator %d", (int)op->op);
    if (op->root < 0 || op->root >= comm->rank_count)
        return fk_nccl_fail(comm, ncclInvalidArgument, "root or peer %d of %d ranks", op->root,
                            comm->rank_count);
    return ncclSuccess;
}

static ncclResult_t call(struct item item)
{
    item.op.comm = item.comm;
    ncclResult_t code =
        item.comm ? check(&item) : fk_nccl_fail(NULL, ncclInvalidArgument, "comm is NULL");
    if (code != ncclSuccess) {
        if (group.depth > 0 && group.failed == ncclSuccess)
            group.failed = code;
        return code;
    }
    if (item.kind == ITEM_MESSAGE)
        item.message.bytes = item.op.count * fk_type_bytes(item.op.type);
    if (group.depth > 0)
        return add(&item);
    code = item.kind == ITEM_COLL ? fk_nccl_push_coll(&item.op, item.stream)
                                  : fk_nccl_push_messages(item.comm, &item.message, 1, item.stream);
    return code == ncclSuccess ? fk_nccl_begun(item.comm) : code;
}

#define CALL(id, to_root, with)                                                                    \
    call((struct item){.kind = ITEM_COLL,                                                          \
                       .comm = comm,                                                               \
                       .stream = stream,                                                           \
                       .op = {.coll = id,                                                          \
                              .send = send,                                                        \
                              .recv = recv,                                                        \
                              .count = count,                                                      \
                              .type = type,                                                        \
                              .op = with,                                                          \
                              .root = to_root}})

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, FK_STREAM)
{
    return CALL(FK_ALL_REDUCE, 0, op);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, FK_STREAM)
{
    return CALL(FK_REDUCE, root, op);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, FK_STREAM)
{
    return CALL(FK_REDUCE_SCATTER, 0, op);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
                           FK_STREAM)
{
    return CALL(FK_ALL_GATHER, 0, ncclSum);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, FK_STREAM)
{
    return CALL(FK_BROADCAST, root, ncclSum);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, FK_STREAM)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

#if FAKE_NCCL_VERSION >= 22803
ncclResult_t ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                          FK_STREAM)
{
    return CALL(FK_ALLTOALL, 0, ncclSum);
}

ncclResult_t ncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                        FK_STREAM)
{
    return CALL(FK_GATHER, root, ncclSum);
}

ncclResult_t ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                         FK_STREAM)
{
    return CALL(FK_SCATTER, root, ncclSum);
}
#endif

static ncclResult_t message(bool send, void *buffer, size_t count, ncclDataType_t type, int peer,
                            FK_STREAM)
{
    return call(
        (struct item){.kind = ITEM_MESSAGE,
                      .comm = comm,
                      .stream = stream,
                      .op = {.coll = FK_SENDRECV, .count = count, .type = type, .root = peer},
                      .message = {.send = send, .peer = peer, .buffer = buffer}});
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, FK_STREAM)
{
    return message(true, (void *)(uintptr_t)send, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, FK_STREAM)
{
    return message(false, recv, count, type, peer, comm, stream);
}
