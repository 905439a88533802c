/* A program that watches its collectives as a careful one does: each phase has a deadline in real
 * time, after it the communicator is aborted. Says in one line how it ended; expect-faults holds
 * that against the fault.
 *
 *     with-gpus … spawn 4 test_faults [COLLECTIVE [CALLS]]
 *
 * Exits 0 done, 3 deadline passed, 4 asynchronous error, 5 a call failed, 6 wrong data.
 */
#include "tests/fake/tests/gpus.h"

#define DEADLINE_S 2.0
#define COUNT      1000

static struct gpus g;
static int rank, ranks;
static ncclComm_t comm;
static struct CUstream_st *stream;
static struct CUevent_st *start, *end;

static int say(int code, const char *format, int call, const char *more)
{
    char line[300];
    int n = snprintf(line, sizeof line, "rank %d: ", rank);
    n += snprintf(line + n, sizeof line - (size_t)n, format, call, more);
    printf("%s\n", line);
    fflush(stdout);
    return code;
}

static const char *why(void)
{
    return g.ncclGetLastError ? g.ncclGetLastError(comm) : "";
}

static int stop(int code, const char *format, int call, const char *more)
{
    say(code, format, call, more);
    const double began = now_s();
    MUST(g.ncclCommAbort(comm));
    MUST(g.cu.cuStreamSynchronize(stream)); /* nothing of it is left on the GPU */
    if (now_s() - began > 1)
        say(1, "the abort of call %d took too long%s", call, "");
    return code;
}

static int start_up(void)
{
    ncclConfig_t config = {sizeof config, FK_NCCL_CONFIG_MAGIC, 22809,         .blocking = 0,
                           FK_NCCL_UNDEF, FK_NCCL_UNDEF,        FK_NCCL_UNDEF, NULL,
                           FK_NCCL_UNDEF, FK_NCCL_UNDEF,        NULL,          FK_NCCL_UNDEF,
                           FK_NCCL_UNDEF, FK_NCCL_UNDEF,        FK_NCCL_UNDEF, FK_NCCL_UNDEF,
                           FK_NCCL_UNDEF};
    ncclUniqueId id;
    ncclResult_t state = ncclInProgress;
    share_id(&g, rank, "world", &id);
    if (!g.ncclCommInitRankConfig)
        state = g.ncclCommInitRank(&comm, ranks, id, rank);
    else
        g.ncclCommInitRankConfig(&comm, ranks, id, rank, &config);
    for (const double began = now_s(); state == ncclInProgress && now_s() - began < DEADLINE_S;
         sleep_ms(2))
        MUST(g.ncclCommGetAsyncError(comm, &state));
    if (state == ncclInProgress)
        return stop(3, "init timed out%.0d%s", 0, "");
    if (state != ncclSuccess)
        return stop(5, "init failed, result %d: %s", (int)state, why());
    return 0;
}

/* A call of a non-blocking communicator has only begun, and no other may follow it before it is
 * done on the host. */
static ncclResult_t settled(ncclResult_t code, int call, void *send, void *recv)
{
    if (code == ncclInProgress && call == 1 &&
        g.ncclAllReduce(send, recv, COUNT, ncclFloat32, ncclSum, comm, stream) !=
            ncclInvalidArgument)
        return ncclInvalidUsage;
    while (code == ncclInProgress)
        MUST(g.ncclCommGetAsyncError(comm, &code));
    return code;
}

static int wait_for(int call)
{
    for (const double began = now_s();; sleep_ms(1)) {
        const nw_cu_result code = g.cu.cuStreamQuery(stream);
        ncclResult_t state = ncclSuccess;
        if (code == 0)
            return 0;
        if (code != 600)
            return say(5, "call %d: CUDA error%s", call, "");
        MUST(g.ncclCommGetAsyncError(comm, &state));
        if (state != ncclSuccess)
            return stop(4, "call %d: asynchronous error: %s", call, why());
        if (now_s() - began > DEADLINE_S)
            return stop(3, "call %d timed out%s", call, "");
    }
}

static int check(int call, void *recv)
{
    float host[COUNT];
    int wrong = 0;
    gpus_copy(&g, stream, host, recv, sizeof host);
    for (int i = 0; i < COUNT; i++)
        wrong += host[i] != (float)(ranks * (ranks + 1) / 2);
    char more[40];
    snprintf(more, sizeof more, "%d wrong", wrong);
    return wrong ? stop(6, "call %d: %s", call, more) : 0;
}

static int one_call(int call, const char *name, void *send, void *recv)
{
    ncclResult_t code;
    MUST(g.cu.cuEventRecord(start, stream));
    if (strcmp(name, "all_gather") == 0)
        code = g.ncclAllGather(send, recv, COUNT, ncclFloat32, comm, stream);
    else
        code = g.ncclAllReduce(send, recv, COUNT, ncclFloat32, ncclSum, comm, stream);
    code = settled(code, call, send, recv);
    if (code == ncclRemoteError || code == ncclSystemError)
        return stop(4, "call %d: asynchronous error: %s", call, why());
    if (code != ncclSuccess)
        return stop(5, "call %d failed: %s", call, why());
    MUST(g.cu.cuEventRecord(end, stream));
    const int rc = wait_for(call);
    return rc || strcmp(name, "all_gather") == 0 ? rc : check(call, recv);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "all_reduce";
    const int calls = argc > 2 ? atoi(argv[2]) : 5;
    float host[COUNT], ms = 0;
    double total_us = 0;
    nw_cu_ptr send, recv;
    find_rank(&rank, &ranks);
    gpus_open(&g);
    gpus_use(&g, rank);
    MUST(g.cu.cuStreamCreate(&stream, 1));
    MUST(g.cu.cuEventCreate(&start, 0));
    MUST(g.cu.cuEventCreate(&end, 0));
    int rc = start_up();
    if (rc)
        return rc;
    if (g.cu.cuMemAlloc(&send, sizeof host) != 0 ||
        g.cu.cuMemAlloc(&recv, sizeof host * (size_t)ranks) != 0)
        return stop(5, "allocation failed%.0d%s", 0, "");
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)(rank + 1);
    gpus_copy(&g, stream, (void *)(uintptr_t)send, host, sizeof host);
    for (int call = 1; call <= calls && rc == 0; call++) {
        rc = one_call(call, name, (void *)(uintptr_t)send, (void *)(uintptr_t)recv);
        if (rc == 0)
            MUST(g.cu.cuEventElapsedTime(&ms, start, end));
        total_us += call > 1 ? (double)ms * 1e3 : 0; /* the first waits for the others' start */
    }
    if (rc)
        return rc;
    MUST(g.ncclCommDestroy(comm));
    char more[60];
    snprintf(more, sizeof more, "%.4f us each", total_us / (calls - 1));
    return say(0, "%d calls done, %s", calls, more);
}
