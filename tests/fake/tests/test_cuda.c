/* The CUDA double alone: memory that the host cannot touch, order, events, copies, kernels, graphs,
 * and the times of exact.machine. One process. */
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/fake/tests/gpus.h"

static struct gpus g;
static struct CUstream_st *stream;
static struct gate gate;

static double elapsed_us(struct CUevent_st *start, struct CUevent_st *end)
{
    float ms;
    MUST(g.cu.cuEventElapsedTime(&ms, start, end));
    return (double)ms * 1e3;
}

static bool near(double us, double model)
{
    return fabs(us / model - 1) < 1e-6;
}

static nw_cu_ptr as_ptr(const void *memory)
{
    return (nw_cu_ptr)(uintptr_t)memory;
}

static void host_access(void)
{
    volatile char *memory = gpus_alloc(&g, 100);
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* also under AddressSanitizer */
        _exit(memory[5]);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %#x", (unsigned)status);
    gpus_free(&g, (void *)(uintptr_t)memory);
}

static void memory(void)
{
    unsigned char host[300];
    void *a = gpus_alloc(&g, 200);
    gpus_copy(&g, stream, host, a, 200);
    EXPECT(host[0] == 0xa5 && host[199] == 0xa5, "fresh memory is %#x", host[0]);
    EXPECT(g.cu.cuMemcpyAsync(as_ptr(host), as_ptr(a), 201, stream) == 1, "a copy past the end");
    EXPECT(g.cu.cuMemsetD8Async(as_ptr(a) + 100, 0, 101, stream) == 1, "a fill past the end");
    EXPECT(g.cu.cuMemFree(as_ptr(a) + 8) == 1, "a free in the middle");
    MUST(g.cu.cuMemsetD8Async(as_ptr(a) + 100, 7, 100, stream));
    gpus_copy(&g, stream, host, a, 200);
    EXPECT(host[99] == 0xa5 && host[100] == 7 && host[199] == 7, "a fill");

    size_t free_bytes, total, later;
    nw_cu_ptr pointer, other_pointer;
    MUST(g.cu.cuMemGetInfo(&free_bytes, &total));
    EXPECT(total == 1u << 30, "%zu bytes", total);
    EXPECT(g.cu.cuMemAlloc(&pointer, free_bytes + 1) == 2, "more than there is");
    MUST(g.cu.cuMemAlloc(&pointer, free_bytes)); /* and it costs nothing */
    EXPECT(g.cu.cuMemAlloc(&other_pointer, 1) == 2, "one byte more");
    MUST(g.cu.cuMemGetInfo(&later, &total));
    EXPECT(later == 0, "%zu left", later);
    gpus_copy(&g, stream, host, (const char *)(uintptr_t)pointer + free_bytes - 5, 5);
    EXPECT(host[4] == 0xa5, "the last byte");
    MUST(g.cu.cuMemFree(pointer));
    MUST(g.cu.cuMemGetInfo(&later, &total));
    EXPECT(later == free_bytes, "%zu free, before %zu", later, free_bytes);
    gpus_free(&g, a);
}

/* Copies of each kind behind one gate; times add up exactly. */
static void copies(void)
{
    static const struct {
        const char *what;
        int to, from; /* 0: device, 1: pinned */
        double alpha, rate;
    } kinds[] = {{"h2d", 0, 1, 8, 50e3}, {"d2h", 1, 0, 9, 40e3}, {"d2d", 0, 0, 4, 200e3}};
    const size_t bytes = 3000000;
    struct CUevent_st *start, *end;
    void *pinned[2], *device[2] = {gpus_alloc(&g, bytes), gpus_alloc(&g, bytes)};
    MUST(g.cu.cuEventCreate(&start, 0));
    MUST(g.cu.cuEventCreate(&end, 0));
    for (int i = 0; i < 2; i++)
        MUST(g.cu.cuMemHostAlloc(&pinned[i], bytes, 0));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        void *to = kinds[k].to ? pinned[0] : device[0],
             *from = kinds[k].from ? pinned[1] : device[1];
        gate_hold(&g, &gate, stream);
        MUST(g.cu.cuEventRecord(start, stream));
        for (int i = 0; i < 10; i++)
            MUST(g.cu.cuMemcpyAsync(as_ptr(to), as_ptr(from), bytes, stream));
        MUST(g.cu.cuEventRecord(end, stream));
        EXPECT(g.cu.cuEventQuery(end) == 600, "%s: done before the gate is open", kinds[k].what);
        gate_release(&gate);
        MUST(g.cu.cuStreamSynchronize(stream));
        const double us = elapsed_us(start, end) / 10,
                     model = kinds[k].alpha + (double)bytes / kinds[k].rate;
        EXPECT(near(us, model), "%s: %.6f us, model %.6f", kinds[k].what, us, model);
    }
    /* To pageable memory it returns when all is there; the host's time says so. */
    char *pageable = calloc(1, bytes);
    const uint64_t before = g.fk_now();
    MUST(g.cu.cuMemsetD8Async(as_ptr(device[0]), 0x42, bytes, stream));
    MUST(g.cu.cuMemcpyAsync(as_ptr(pageable), as_ptr(device[0]), bytes, stream));
    EXPECT(pageable[bytes - 1] == 0x42, "a copy to pageable memory is waited for");
    /* set: 3 launch + 2 + 3 MB at 800 GB/s; copy: 20 + 3 MB at 10 GB/s */
    const double us = (double)(g.fk_now() - before) * 1e-3, model = 3 + 2 + 3.75 + 20 + 300;
    EXPECT(fabs(us - model) < 2e-3, "%.3f us, model %.3f", us, model);
    free(pageable);
    for (int i = 0; i < 2; i++) {
        MUST(g.cu.cuMemFreeHost(pinned[i]));
        gpus_free(&g, device[i]);
    }
    MUST(g.cu.cuEventDestroy(start));
    MUST(g.cu.cuEventDestroy(end));
}

static void between_gpus(void)
{
    const size_t bytes = 1000000;
    struct CUctx_st *mine, *other;
    struct CUevent_st *start, *end;
    MUST(g.cu.cuEventCreate(&start, 0));
    MUST(g.cu.cuEventCreate(&end, 0));
    MUST(g.cu.cuCtxGetCurrent(&mine));
    void *here = gpus_alloc(&g, bytes);
    gpus_use(&g, 1);
    MUST(g.cu.cuCtxGetCurrent(&other));
    void *there = gpus_alloc(&g, bytes);
    MUST(g.cu.cuCtxSetCurrent(mine));
    for (int direct = 0; direct < 2; direct++) {
        if (direct) {
            MUST(g.cu.cuCtxEnablePeerAccess(other, 0));
            EXPECT(g.cu.cuCtxEnablePeerAccess(other, 0) == 704, "twice");
        }
        gate_hold(&g, &gate, stream);
        MUST(g.cu.cuEventRecord(start, stream));
        MUST(g.cu.cuMemcpyPeerAsync(as_ptr(there), other, as_ptr(here), mine, bytes, stream));
        MUST(g.cu.cuEventRecord(end, stream));
        gate_release(&gate);
        MUST(g.cu.cuStreamSynchronize(stream));
        const double model = direct ? 6 + 10 : 25 + 50, us = elapsed_us(start, end);
        EXPECT(near(us, model), "peer access %d: %.6f us, model %.6f", direct, us, model);
    }
    EXPECT(g.cu.cuMemcpyPeerAsync(as_ptr(there), mine, as_ptr(here), other, 8, stream) == 1,
           "wrong sides");
    MUST(g.cu.cuCtxDisablePeerAccess(other));
    gpus_free(&g, here);
    MUST(g.cu.cuCtxSetCurrent(other));
    gpus_free(&g, there);
    MUST(g.cu.cuCtxSetCurrent(mine));
    MUST(g.cu.cuEventDestroy(start));
    MUST(g.cu.cuEventDestroy(end));
}

static void kernels(void)
{
    static const unsigned image[4] = {0xba55ed50}, nonsense[4] = {1};
    struct CUmod_st *module;
    struct CUfunc_st *copy, *none;
    struct CUevent_st *start, *end;
    uint64_t bytes = 800000;
    void *a = gpus_alloc(&g, bytes), *b = gpus_alloc(&g, bytes);
    MUST(g.cu.cuEventCreate(&start, 0));
    MUST(g.cu.cuEventCreate(&end, 0));
    EXPECT(g.cu.cuModuleLoadDataEx(&module, nonsense, 0, NULL, NULL) == 200, "no fatbin");
    MUST(g.cu.cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    EXPECT(g.cu.cuModuleGetFunction(&none, module, "no_such_kernel") == 500, "no kernel");
    MUST(g.cu.cuModuleGetFunction(&copy, module, "nw_kernel_copy"));
    void *arguments[] = {&b, &a, &bytes};
    gate_hold(&g, &gate, stream);
    MUST(g.cu.cuEventRecord(start, stream));
    MUST(g.cu.cuLaunchKernel(copy, 8, 1, 1, 512, 1, 1, 0, stream, arguments, NULL));
    MUST(g.cu.cuEventRecord(end, stream));
    gate_release(&gate);
    MUST(g.cu.cuStreamSynchronize(stream));
    EXPECT(near(elapsed_us(start, end), 2 + 2), "%.6f us, model 4",
           elapsed_us(start, end)); /* 1.6 MB at 800 GB/s */
    EXPECT(g.cu.cuLaunchKernel(copy, 8, 1, 1, 2048, 1, 1, 0, stream, arguments, NULL) == 1,
           "2048 threads");
    gpus_free(&g, a);
    gpus_free(&g, b);
    MUST(g.cu.cuEventDestroy(start));
    MUST(g.cu.cuEventDestroy(end));
}

static void order(void)
{
    struct CUstream_st *second;
    struct CUevent_st *never, *first, *mark;
    float ms;
    char host[2] = {1, 2};
    char *a = gpus_alloc(&g, 2);
    MUST(g.cu.cuStreamCreate(&second, 1));
    MUST(g.cu.cuEventCreate(&never, 0));
    MUST(g.cu.cuEventCreate(&first, 0));
    MUST(g.cu.cuEventCreate(&mark, 0));
    EXPECT(g.cu.cuEventQuery(never) == 0, "an event that was never recorded is reached");
    EXPECT(g.cu.cuEventElapsedTime(&ms, never, never) == 400, "but has no time");
    gate_hold(&g, &gate, stream);
    MUST(g.cu.cuMemsetD8Async(as_ptr(a), 5, 1, stream));
    MUST(g.cu.cuEventRecord(first, stream));
    MUST(g.cu.cuStreamWaitEvent(second, first, 0));
    MUST(g.cu.cuMemsetD8Async(as_ptr(a + 1), 6, 1, second));
    MUST(g.cu.cuEventRecord(mark, second));
    sleep_ms(20);
    EXPECT(g.cu.cuStreamQuery(second) == 600, "follows a closed gate");
    gate_release(&gate);
    MUST(g.cu.cuStreamSynchronize(second));
    gpus_copy(&g, second, host, a, 2);
    EXPECT(host[0] == 5 && host[1] == 6, "%d %d", host[0], host[1]);
    EXPECT(elapsed_us(first, mark) >= 2, "%.3f us", elapsed_us(first, mark));
    MUST(g.cu.cuStreamDestroy(second));
    MUST(g.cu.cuStreamSynchronize(stream));
    gpus_free(&g, a);
    MUST(g.cu.cuEventDestroy(never));
    MUST(g.cu.cuEventDestroy(first));
    MUST(g.cu.cuEventDestroy(mark));
}

/* Launching a graph costs the host one launch, whatever is in it. */
static void graphs(void)
{
    struct CUgraph_st *graph, *instance;
    nw_cu_result (*begin)(struct CUstream_st *, int),
        (*end)(struct CUstream_st *, struct CUgraph_st **);
    nw_cu_result (*make)(struct CUgraph_st **, struct CUgraph_st *, unsigned long long);
    nw_cu_result (*launch)(struct CUgraph_st *, struct CUstream_st *), (*drop)(struct CUgraph_st *);
    void *p[5] = {symbol(g.cuda, "cuStreamBeginCapture_v2", true),
                  symbol(g.cuda, "cuStreamEndCapture", true),
                  symbol(g.cuda, "cuGraphInstantiateWithFlags", true),
                  symbol(g.cuda, "cuGraphLaunch", true), symbol(g.cuda, "cuGraphDestroy", true)};
    memcpy(&begin, &p[0], sizeof begin);
    memcpy(&end, &p[1], sizeof end);
    memcpy(&make, &p[2], sizeof make);
    memcpy(&launch, &p[3], sizeof launch);
    memcpy(&drop, &p[4], sizeof drop);
    void *pinned;
    char *a = gpus_alloc(&g, 4096);
    MUST(g.cu.cuMemHostAlloc(&pinned, 4096, 0));
    MUST(begin(stream, 0));
    for (int i = 0; i < 20; i++)
        MUST(g.cu.cuMemsetD8Async(as_ptr(a), (unsigned char)i, 4096, stream));
    MUST(g.cu.cuMemcpyAsync(as_ptr(pinned), as_ptr(a), 4096, stream));
    MUST(end(stream, &graph));
    MUST(make(&instance, graph, 0));
    MUST(drop(graph));
    memset(pinned, 0, 4096);
    MUST(g.cu.cuStreamSynchronize(stream));
    EXPECT(((char *)pinned)[9] == 0, "capturing does nothing");
    for (int i = 0; i < 2; i++) {
        memset(pinned, 0, 4096);
        const uint64_t before = g.fk_now();
        MUST(launch(instance, stream));
        EXPECT(g.fk_now() - before <= 3001, "%llu ns of host time",
               (unsigned long long)(g.fk_now() - before));
        MUST(g.cu.cuStreamSynchronize(stream));
        EXPECT(((char *)pinned)[9] == 19, "launch %d", i);
    }
    MUST(drop(instance));
    MUST(g.cu.cuMemFreeHost(pinned));
    gpus_free(&g, a);
}

struct ipc_handle {
    char bytes[64];
};

/* The same memory in another process, which is this program with the handle as its argument. */
static void other_process(const char *program)
{
    nw_cu_result (*get)(struct ipc_handle *, nw_cu_ptr);
    void *address = symbol(g.cuda, "cuIpcGetMemHandle", true);
    struct ipc_handle handle;
    char text[129], host[4], option[] = "--peer";
    char *argv[] = {(char *)(uintptr_t)program, option, text, NULL};
    void *a = gpus_alloc(&g, 5000);
    pid_t pid;
    int status;
    memcpy(&get, &address, sizeof get);
    MUST(g.cu.cuMemsetD8Async(as_ptr(a), 0x11, 5000, stream));
    MUST(g.cu.cuStreamSynchronize(stream));
    MUST(get(&handle, as_ptr(a)));
    for (int i = 0; i < 64; i++)
        sprintf(text + 2 * i, "%02x", (unsigned char)handle.bytes[i]);
    MUST(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ));
    waitpid(pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process ends with %#x",
           (unsigned)status);
    gpus_copy(&g, stream, host, (char *)a + 4999, 1);
    EXPECT(host[0] == 0x22, "the other process wrote %#x", host[0]);
    gpus_free(&g, a);
}

static int peer(const char *text)
{
    nw_cu_result (*open_handle)(nw_cu_ptr *, struct ipc_handle, unsigned);
    void *address = symbol(g.cuda, "cuIpcOpenMemHandle_v2", true);
    struct ipc_handle handle;
    nw_cu_ptr pointer;
    char host = 0;
    memcpy(&open_handle, &address, sizeof open_handle);
    for (int i = 0; i < 64; i++) {
        unsigned byte;
        MUST(sscanf(text + 2 * i, "%2x", &byte) != 1);
        handle.bytes[i] = (char)byte;
    }
    MUST(open_handle(&pointer, handle, 1));
    gpus_copy(&g, stream, &host, (char *)(uintptr_t)pointer + 17, 1);
    EXPECT(host == 0x11, "the other process reads %#x", host);
    MUST(g.cu.cuMemsetD8Async(pointer + 4999, 0x22, 1, stream));
    MUST(g.cu.cuStreamSynchronize(stream));
    return failures != 0;
}

/* The last: the context is of no use afterwards. */
static void bad_kernel(void)
{
    struct CUmod_st *module;
    struct CUfunc_st *copy;
    static const unsigned image[4] = {0xba55ed50};
    uint64_t bytes = 101;
    void *a = gpus_alloc(&g, 100), *b = gpus_alloc(&g, 101);
    MUST(g.cu.cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    MUST(g.cu.cuModuleGetFunction(&copy, module, "nw_kernel_copy"));
    void *arguments[] = {&b, &a, &bytes};
    MUST(g.cu.cuLaunchKernel(copy, 1, 1, 1, 512, 1, 1, 0, stream, arguments, NULL));
    EXPECT(g.cu.cuStreamSynchronize(stream) == 700, "an address outside");
    EXPECT(g.cu.cuStreamQuery(stream) == 700, "and it stays so");
}

int main(int argc, char **argv)
{
    gpus_open(&g);
    EXPECT(symbol(g.cuda, "nw_simulated_marker", false), "the mark of a simulation");
    EXPECT(symbol(g.nccl, "nw_simulated_marker", false), "the mark of a simulation");
    gpus_use(&g, 0);
    MUST(g.cu.cuStreamCreate(&stream, 1));
    if (argc > 2)
        return peer(argv[2]);
    gate_open(&g, &gate);
    host_access();
    memory();
    copies();
    between_gpus();
    kernels();
    order();
    graphs();
    other_process(argv[0]);
    const uint64_t at = g.fk_now();
    bad_kernel();
    printf("%d failures, the host at %llu ns\n", failures, (unsigned long long)at);
    return failures != 0;
}
