/* Every collective, type and operator on the ranks of this job: every element right, in place and
 * out of place, at sizes around the doubles' chunks; and times exactly those of exact.machine.
 *
 *     with-gpus tests/fake/tests/exact.machine mpirun -np 4 test_collectives     (or: spawn 4
 * test_collectives)
 */
#include <math.h>

#include "tests/fake/tests/gpus.h"

static struct gpus g;
static int rank, ranks;
static ncclComm_t comm;
static struct CUstream_st *stream;

static const size_t type_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
static const char *const type_names[] = {"int8",   "uint8", "int32", "uint32", "int64",
                                         "uint64", "half",  "float", "double", "bfloat16"};

/* Element i of rank r: 1 to 3, so that sums and products of eight are exact in every type. */
static int value(int r, size_t i)
{
    return 1 + (int)((i * 7 + (size_t)r * 5 + i / 1021) % (ranks > 4 ? 2 : 3));
}

static void store(ncclDataType_t type, void *to, size_t i, double v)
{
    const float f = (float)v;
    uint32_t bits;
    switch (type) {
    case ncclInt8:
        ((int8_t *)to)[i] = (int8_t)v;
        break;
    case ncclUint8:
        ((uint8_t *)to)[i] = (uint8_t)v;
        break;
    case ncclInt32:
        ((int32_t *)to)[i] = (int32_t)v;
        break;
    case ncclUint32:
        ((uint32_t *)to)[i] = (uint32_t)v;
        break;
    case ncclInt64:
        ((int64_t *)to)[i] = (int64_t)v;
        break;
    case ncclUint64:
        ((uint64_t *)to)[i] = (uint64_t)v;
        break;
    case ncclFloat16:
        ((_Float16 *)to)[i] = (_Float16)v;
        break;
    case ncclFloat32:
        ((float *)to)[i] = f;
        break;
    case ncclFloat64:
        ((double *)to)[i] = v;
        break;
    default:
        memcpy(&bits, &f, sizeof bits);
        bits += 0x7fff + (bits >> 16 & 1);
        ((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
    }
}

/* What element i of a reduction over all ranks must be, before it is rounded to the type. */
static double reduced(ncclDataType_t type, ncclRedOp_t op, size_t i)
{
    double v = value(0, i);
    for (int r = 1; r < ranks; r++) {
        const double w = value(r, i);
        v = op == ncclProd  ? v * w
            : op == ncclMax ? fmax(v, w)
            : op == ncclMin ? fmin(v, w)
                            : v + w;
    }
    if (op == ncclAvg)
        v = type <= ncclUint64 ? floor(v / ranks) : v / ranks;
    return type == ncclFloat16 || type == ncclBfloat16 ? (float)v : v;
}

enum {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    REDUCE,
    ALLTOALL,
    GATHER,
    SCATTER,
    SENDRECV,
    COLLS
};
static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                    "broadcast",  "reduce",     "alltoall",
                                    "gather",     "scatter",    "sendrecv"};

static ncclResult_t messages(int coll, const char *send, char *recv, size_t count,
                             ncclDataType_t type, int root)
{
    const size_t chunk = count * type_bytes[type];
    MUST(g.ncclGroupStart());
    if (coll == SENDRECV) {
        g.ncclSend(send, count, type, (rank + 1) % ranks, comm, stream);
        g.ncclRecv(recv, count, type, (rank + ranks - 1) % ranks, comm, stream);
    }
    for (int r = 0; r < ranks && coll != SENDRECV; r++) {
        if (coll == ALLTOALL || (coll == SCATTER && rank == root))
            g.ncclSend(send + (size_t)r * chunk, count, type, r, comm, stream);
        if (coll == ALLTOALL || (coll == GATHER && rank == root))
            g.ncclRecv(recv + (size_t)r * chunk, count, type, r, comm, stream);
    }
    if (coll == GATHER)
        g.ncclSend(send, count, type, root, comm, stream);
    if (coll == SCATTER)
        g.ncclRecv(recv, count, type, root, comm, stream);
    return g.ncclGroupEnd();
}

static ncclResult_t call(int coll, const void *send, void *recv, size_t count, ncclDataType_t type,
                         ncclRedOp_t op, int root, bool by_messages)
{
    switch (coll) {
    case ALL_REDUCE:
        return g.ncclAllReduce(send, recv, count, type, op, comm, stream);
    case ALL_GATHER:
        return g.ncclAllGather(send, recv, count, type, comm, stream);
    case REDUCE_SCATTER:
        return g.ncclReduceScatter(send, recv, count, type, op, comm, stream);
    case BROADCAST:
        return g.ncclBroadcast(send, recv, count, type, root, comm, stream);
    case REDUCE:
        return g.ncclReduce(send, recv, count, type, op, root, comm, stream);
    case SENDRECV:
        break;
    default:
        if (by_messages)
            break;
        return coll == ALLTOALL ? g.ncclAlltoAll(send, recv, count, type, comm, stream)
               : coll == GATHER ? g.ncclGather(send, recv, count, type, root, comm, stream)
                                : g.ncclScatter(send, recv, count, type, root, comm, stream);
    }
    return messages(coll, send, recv, count, type, root);
}

/* Elements in the send and receive buffer, of this rank. */
static void extents(int coll, size_t count, size_t *send, size_t *recv)
{
    const size_t n = (size_t)ranks * count;
    *send = coll == REDUCE_SCATTER || coll == ALLTOALL || coll == SCATTER ? n : count;
    *recv = coll == ALL_GATHER || coll == ALLTOALL || coll == GATHER ? n : count;
}

/* Element i of the result; false: it stays what it was. */
static bool expected(int coll, ncclDataType_t type, ncclRedOp_t op, int root, size_t count,
                     size_t i, double *v)
{
    const int part = count ? (int)(i / count) : 0;
    const size_t in = count ? i % count : 0, mine = (size_t)rank * count;
    switch (coll) {
    case ALL_REDUCE:
        *v = reduced(type, op, i);
        return true;
    case REDUCE:
        *v = reduced(type, op, i);
        return rank == root;
    case REDUCE_SCATTER:
        *v = reduced(type, op, mine + i);
        return true;
    case ALL_GATHER:
        *v = value(part, in);
        return true;
    case BROADCAST:
        *v = value(root, i);
        return true;
    case ALLTOALL:
        *v = value(part, mine + in);
        return true;
    case GATHER:
        *v = value(part, in);
        return rank == root;
    case SCATTER:
        *v = value(root, mine + i);
        return true;
    default:
        *v = value((rank + ranks - 1) % ranks, i);
        return true;
    }
}

static void check(int coll, ncclDataType_t type, ncclRedOp_t op, size_t count, bool in_place,
                  int root, bool by_messages)
{
    const size_t size = type_bytes[type];
    size_t send_count, recv_count;
    extents(coll, count, &send_count, &recv_count);
    const size_t most = send_count > recv_count ? send_count : recv_count;
    char *host = malloc(most * size + 1), *want = malloc(most * size + 1);
    char *send = gpus_alloc(&g, most * size), *recv = in_place ? send : gpus_alloc(&g, most * size);
    char *from = send, *to = recv;
    if (in_place && (coll == ALL_GATHER || coll == GATHER))
        from += (size_t)rank * count * size;
    if (in_place && (coll == REDUCE_SCATTER || coll == SCATTER))
        to += (size_t)rank * count * size;
    memset(want, 0x77, most * size);
    gpus_copy(&g, stream, recv, want, most * size);
    for (size_t i = 0; i < send_count; i++)
        store(type, host, i, value(rank, i));
    gpus_copy(&g, stream, from, host, send_count * size);
    MUST(call(coll, from, to, count, type, op, root, by_messages));
    gpus_copy(&g, stream, host, to, recv_count * size);
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < recv_count; i++) {
        double v;
        if (!expected(coll, type, op, root, count, i, &v))
            continue;
        store(type, want, i, v);
        if (memcmp(want + i * size, host + i * size, size) != 0 && wrong++ == 0)
            first = i;
    }
    EXPECT(wrong == 0, "%s of %zu %s, op %d, root %d%s%s: %zu wrong, first at %zu", names[coll],
           count, type_names[type], (int)op, root, in_place ? ", in place" : "",
           by_messages ? ", by messages" : "", wrong, first);
    gpus_free(&g, send);
    if (!in_place)
        gpus_free(&g, recv);
    free(host);
    free(want);
}

static void all_data(void)
{
    /* Slots hold 1 MiB: 262144 floats, or with pieces a rank's part of them. */
    static const size_t counts[] = {0, 1, 3, 1000, 33333, 262145};
    for (int coll = 0; coll < COLLS; coll++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int in_place = 0; in_place < 2; in_place++) {
                if (in_place && (coll == ALLTOALL || coll == SENDRECV))
                    continue;
                const int root = (int)(c % (size_t)ranks);
                if (g.ncclAlltoAll || coll < ALLTOALL || coll == SENDRECV)
                    check(coll, ncclFloat32, ncclSum, counts[c], in_place, root, false);
                if (coll >= ALLTOALL && coll != SENDRECV && !in_place)
                    check(coll, ncclFloat32, ncclSum, counts[c], false, root, true);
            }
    for (int type = 0; type < (int)ncclNumTypes; type++)
        for (int op = 0; op < (int)ncclNumOps; op++) {
            check(ALL_REDUCE, (ncclDataType_t)type, (ncclRedOp_t)op, 1001, op % 2, 0, false);
            check(REDUCE_SCATTER, (ncclDataType_t)type, (ncclRedOp_t)op, 501, op % 2, 0, false);
        }
}

/* Device time of three calls behind a gate, whose release is out of step on purpose. */
static double measure_us(int coll, void *send, void *recv, size_t count, struct gate *gate)
{
    struct CUevent_st *start, *end;
    float ms;
    MUST(g.cu.cuEventCreate(&start, 0));
    MUST(g.cu.cuEventCreate(&end, 0));
    gate_hold(&g, gate, stream);
    MUST(g.cu.cuEventRecord(start, stream));
    for (int i = 0; i < 3; i++)
        MUST(call(coll, send, recv, count, ncclFloat32, ncclSum, 0, false));
    MUST(g.cu.cuEventRecord(end, stream));
    sleep_ms(rank * 2);
    gate_release(gate);
    MUST(g.cu.cuStreamSynchronize(stream));
    MUST(g.cu.cuEventElapsedTime(&ms, start, end));
    MUST(g.cu.cuEventDestroy(start));
    MUST(g.cu.cuEventDestroy(end));
    return (double)ms * 1e3 / 3;
}

/* exact.machine, and nccl-tests' factors. `rate` in bytes per us. */
static double model_us(int coll, size_t count)
{
    const double n = ranks, bytes = 4.0 * (double)count;
    const bool p2p = coll == SENDRECV;
    const double alpha = coll == ALL_REDUCE ? 12 : p2p ? 11 : 10;
    const double rate = (coll == ALL_REDUCE ? 480 : p2p ? 300 : 400) * 1e3;
    const double on_bus = coll == ALL_REDUCE                           ? 2 * (n - 1) / n * bytes
                          : coll == BROADCAST || coll == REDUCE || p2p ? bytes
                                                                       : (n - 1) * bytes;
    return alpha + on_bus / rate;
}

static void all_times(void)
{
    static const size_t counts[] = {2, 1024, 50000, 250000};
    const size_t most = 250000 * 4 * (size_t)ranks;
    struct gate gate;
    void *send = gpus_alloc(&g, most), *recv = gpus_alloc(&g, most);
    gate_open(&g, &gate);
    for (int coll = 0; coll < COLLS; coll++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            if (!g.ncclAlltoAll && coll >= ALLTOALL && coll != SENDRECV)
                continue;
            const double us = measure_us(coll, send, recv, counts[c], &gate),
                         model = model_us(coll, counts[c]);
            EXPECT(fabs(us / model - 1) < 1e-6, "%s of %zu floats: %.6f us, model %.6f",
                   names[coll], counts[c], us, model);
        }
    gpus_free(&g, send);
    gpus_free(&g, recv);
}

/* Factor 3 on rank 0, 1 elsewhere: 3 · value(0) + the others. */
static void scaled_sum(void)
{
    float scalar = rank == 0 ? 3 : 1, host[100];
    ncclRedOp_t op;
    MUST(g.ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
    void *memory = gpus_alloc(&g, sizeof host);
    for (size_t i = 0; i < 100; i++)
        host[i] = (float)value(rank, i);
    gpus_copy(&g, stream, memory, host, sizeof host);
    MUST(g.ncclAllReduce(memory, memory, 100, ncclFloat32, op, comm, stream));
    gpus_copy(&g, stream, host, memory, sizeof host);
    for (size_t i = 0; i < 100; i++)
        EXPECT(host[i] == (float)(reduced(ncclFloat32, ncclSum, i) + 2 * value(0, i)),
               "element %zu: %g", i, (double)host[i]);
    MUST(g.ncclRedOpDestroy(op, comm));
    gpus_free(&g, memory);
}

static void split(void)
{
    if (!g.ncclCommSplit)
        return;
    const ncclComm_t whole = comm;
    const int whole_rank = rank, whole_ranks = ranks;
    ncclComm_t half;
    int count, place;
    MUST(g.ncclCommSplit(comm, rank % 2, -rank, &half, NULL)); /* by falling rank */
    MUST(g.ncclCommCount(half, &count));
    MUST(g.ncclCommUserRank(half, &place));
    EXPECT(count == (ranks + 1 - rank % 2) / 2, "%d ranks", count);
    EXPECT(place == count - 1 - rank / 2, "rank %d of %d became %d of %d", rank, ranks, place,
           count);
    comm = half;
    rank = place;
    ranks = count;
    check(ALL_REDUCE, ncclInt32, ncclSum, 1000, false, 0, false);
    check(SENDRECV, ncclInt32, ncclSum, 1000, false, 0, true);
    comm = whole;
    rank = whole_rank;
    ranks = whole_ranks;
    MUST(g.ncclCommDestroy(half));
    MUST(g.ncclCommSplit(comm, rank == 0 ? -1 : 0, 0, &half, NULL));
    EXPECT((half == NULL) == (rank == 0), "NCCL_SPLIT_NOCOLOR");
    if (half)
        MUST(g.ncclCommDestroy(half));
}

static void simulated_end(void)
{
    ncclSimInfo_t info = {sizeof info, FK_NCCL_SIM_MAGIC, 22203, -1};
    if (!g.ncclGroupSimulateEnd)
        return;
    void *memory = gpus_alloc(&g, 4096);
    MUST(g.ncclGroupStart());
    MUST(g.ncclAllReduce(memory, memory, 1024, ncclFloat32, ncclSum, comm, stream));
    MUST(g.ncclGroupSimulateEnd(&info));
    const double want = ranks == 1 ? -1 : model_us(ALL_REDUCE, 1024) / 2;
    EXPECT(fabs((double)info.estimatedTime - want) < 1e-4, "%f us, not %f",
           (double)info.estimatedTime, want);
    MUST(g.cu.cuStreamSynchronize(stream)); /* and nothing was started */
    gpus_free(&g, memory);
}

int main(void)
{
    ncclUniqueId id;
    find_rank(&rank, &ranks);
    gpus_open(&g);
    gpus_use(&g, rank);
    MUST(g.cu.cuStreamCreate(&stream, 1));
    share_id(&g, rank, "world", &id);
    MUST(g.ncclCommInitRank(&comm, ranks, id, rank));
    all_data();
    if (ranks > 1)
        all_times();
    scaled_sum();
    if (ranks > 1)
        split();
    simulated_end();
    MUST(g.ncclCommDestroy(comm));
    MUST(g.cu.cuStreamDestroy(stream));
    if (rank == 0)
        printf("%d ranks: %d failures, the host at %llu ns\n", ranks, failures,
               (unsigned long long)g.fk_now());
    return failures != 0;
}
