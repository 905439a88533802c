/* For the tests of the doubles: the libraries opened as the program opens them, and ranks that find
 * each other through a file or through MPI. */
#ifndef NW_TESTS_FAKE_TESTS_GPUS_H
#define NW_TESTS_FAKE_TESTS_GPUS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/cuda_api.h"
#include "kernels/kernels.h"
#include "tests/fake/nccl_fake.h"

/* clang-format off */
#define X_NCCL(X)                                                                                  \
    X(ncclGetVersion) X(ncclGetUniqueId) X(ncclGetErrorString) X(ncclCommInitRank)                 \
    X(ncclCommInitAll) X(ncclCommDestroy) X(ncclCommAbort) X(ncclCommGetAsyncError)                \
    X(ncclCommCount) X(ncclCommCuDevice) X(ncclCommUserRank) X(ncclRedOpCreatePreMulSum)           \
    X(ncclRedOpDestroy) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce) X(ncclReduce)           \
    X(ncclReduceScatter) X(ncclAllGather) X(ncclBroadcast) X(ncclBcast) X(ncclSend) X(ncclRecv)
#define X_LATER(X)                                                                                 \
    X(ncclGetLastError, 21304) X(ncclCommInitRankConfig, 21403) X(ncclCommFinalize, 21403)         \
    X(ncclCommSplit, 21801) X(ncclMemAlloc, 21901) X(ncclMemFree, 21901)                           \
    X(ncclCommRegister, 21901) X(ncclCommDeregister, 21901) X(ncclGroupSimulateEnd, 22203)         \
    X(ncclCommInitRankScalable, 22304) X(ncclCommWindowRegister, 22703)                            \
    X(ncclCommWindowDeregister, 22703) X(ncclCommShrink, 22703) X(ncclAlltoAll, 22803)             \
    X(ncclGather, 22803) X(ncclScatter, 22803) X(ncclCommRevoke, 22807)
/* clang-format on */

struct gpus {
#define X(name, ...) __typeof__(name) *name;
    X_NCCL(X)
    X_LATER(X)
#undef X
    struct nw_cuda_api cu;
    uint64_t (*fk_now)(void);
    void *cuda, *nccl;
};

static int failures __attribute__((unused));
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not so: %s: ", __FILE__, __LINE__, #condition);                         \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)
#define MUST(call)                                                                                 \
    do {                                                                                           \
        const long must_ = (long)(call);                                                           \
        if (must_ != 0) {                                                                          \
            printf("%s:%d: %s = %ld\n", __FILE__, __LINE__, #call, must_);                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *symbol(void *library, const char *name, bool required)
{
    void *address = dlsym(library, name);
    if (!address && required) {
        printf("no %s\n", name);
        exit(1);
    }
    return address;
}

static void gpus_open(struct gpus *g)
{
    g->cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    g->nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!g->cuda || !g->nccl) {
        printf("%s\n", dlerror());
        exit(1);
    }
    void *address;
#define X(member, name, older, arguments)                                                          \
    address = symbol(g->cuda, name, true);                                                         \
    memcpy(&g->cu.member, &address, sizeof address);
    NW_CUDA_API_MAP(X)
#undef X
#define X(name)                                                                                    \
    address = symbol(g->nccl, #name, true);                                                        \
    memcpy(&g->name, &address, sizeof address);
    X_NCCL(X)
#undef X
#define X(name, since)                                                                             \
    address = symbol(g->nccl, #name, false);                                                       \
    memcpy(&g->name, &address, sizeof address);
    X_LATER(X)
#undef X
    address = symbol(g->cuda, "fk_now", true);
    memcpy(&g->fk_now, &address, sizeof address);
    MUST(g->cu.cuInit(0));
}

/* Makes GPU `ordinal` the thread's. */
static inline void gpus_use(struct gpus *g, int ordinal)
{
    struct CUctx_st *context;
    MUST(g->cu.cuDevicePrimaryCtxRetain(&context, ordinal));
    MUST(g->cu.cuCtxSetCurrent(context));
}

static inline void *gpus_alloc(struct gpus *g, size_t bytes)
{
    nw_cu_ptr pointer;
    MUST(g->cu.cuMemAlloc(&pointer, bytes ? bytes : 1));
    return (void *)(uintptr_t)pointer;
}

static inline void gpus_free(struct gpus *g, void *memory)
{
    MUST(g->cu.cuMemFree((nw_cu_ptr)(uintptr_t)memory));
}

/* Both ways; waits. */
static inline void gpus_copy(struct gpus *g, struct CUstream_st *stream, void *to, const void *from,
                             size_t bytes)
{
    MUST(g->cu.cuMemcpyAsync((nw_cu_ptr)(uintptr_t)to, (nw_cu_ptr)(uintptr_t)from, bytes, stream));
    MUST(g->cu.cuStreamSynchronize(stream));
}

/* A gate of the project's own kernel, on this stream. */
struct gate {
    struct CUfunc_st *function;
    struct nw_gate_state *state;
    uint32_t ticket;
};

static inline void gate_open(struct gpus *g, struct gate *gate)
{
    static const unsigned image[4] = {0xba55ed50};
    struct CUmod_st *module;
    void *memory;
    MUST(g->cu.cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    MUST(g->cu.cuModuleGetFunction(&gate->function, module, "nw_kernel_gate"));
    MUST(g->cu.cuMemHostAlloc(&memory, sizeof *gate->state, 0));
    gate->state = memset(memory, 0, sizeof *gate->state);
    gate->ticket = 0;
}

static inline void gate_hold(struct gpus *g, struct gate *gate, struct CUstream_st *stream)
{
    uint64_t timeout_ns = 20000000000;
    gate->ticket++;
    void *arguments[] = {&gate->state, &gate->ticket, &timeout_ns};
    MUST(g->cu.cuLaunchKernel(gate->function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static inline void gate_release(struct gate *gate)
{
    __atomic_store_n(&gate->state->open, gate->ticket, __ATOMIC_RELEASE);
}

static inline double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* RANK and RANKS, or mpirun's. */
static inline void find_rank(int *rank, int *count)
{
    const char *r = getenv("RANK"), *n = getenv("RANKS");
    if (!r)
        r = getenv("OMPI_COMM_WORLD_RANK");
    if (!n)
        n = getenv("OMPI_COMM_WORLD_SIZE");
    *rank = r ? atoi(r) : 0;
    *count = n ? atoi(n) : 1;
}

/* Rank 0's id to all through a file in the job's folder. */
static inline void share_id(struct gpus *g, int rank, const char *name, ncclUniqueId *id)
{
    char path[400], temporary[420];
    snprintf(path, sizeof path, "%s/id-%s", getenv("FAKE_DIR"), name);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    if (rank == 0) {
        MUST(g->ncclGetUniqueId(id));
        const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        MUST(write(fd, id, sizeof *id) != sizeof *id);
        close(fd);
        MUST(rename(temporary, path));
        return;
    }
    for (const double until = now_s() + 30; now_s() < until; sleep_ms(5)) {
        const int fd = open(path, O_RDONLY);
        if (fd < 0)
            continue;
        MUST(read(fd, id, sizeof *id) != sizeof *id);
        close(fd);
        return;
    }
    printf("no id from rank 0\n");
    exit(1);
}

#endif
