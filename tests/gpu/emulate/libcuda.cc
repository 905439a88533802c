// libcuda.so.1 for tests on machines without a GPU: just enough of the driver API to run
// kernels/dev_cuda.c and the CUDA sources of kernels/, which are compiled for the CPU into this
// library. Asynchronous as the real one: a thread for each stream. Nothing about speed can be
// learnt from it, and the program refuses it without NW_ALLOW_SIMULATED=1.
//
//   EMULATE_GPUS=n          how many; default 2
//   EMULATE_CAPABILITY=75   a Turing: 64 KiB of shared memory, no bfloat16 product; default 89
//   EMULATE_INIT=code       what cuInit answers
//   EMULATE_LOAD=code       what cuModuleLoadDataEx answers
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "emulator.h"
#include "kernels/kernels.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

typedef unsigned int result;
typedef unsigned long long address;
enum : result {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PEER_ALREADY = 704,
    PEER_NOT = 705,
};

EXPORT const int nw_simulated_marker = 1;

static int setting(const char *name, int fallback)
{
    const char *text = getenv(name);
    return text ? atoi(text) : fallback;
}

static int gpu_count()
{
    return setting("EMULATE_GPUS", 2);
}

static int capability()
{
    return setting("EMULATE_CAPABILITY", 89);
}

// ---- kernels: by name; the arguments are copied at the launch

template <typename... A, size_t... I>
static std::function<void()> bind_kernel(void (*kernel)(A...), void **arguments,
                                         std::index_sequence<I...>)
{
    std::tuple<std::remove_const_t<A>...> values{*(std::remove_const_t<A> *)arguments[I]...};
    return [=]() { std::apply(kernel, values); };
}

struct CUfunc_st {
    std::function<std::function<void()>(void **)> bind;
};

template <typename... A> static CUfunc_st kernel(void (*k)(A...))
{
    return {[k](void **arguments) {
        return bind_kernel(k, arguments, std::index_sequence_for<A...>{});
    }};
}

extern "C" {
void nw_kernel_copy(void *, const void *, uint64_t);
void nw_kernel_read(const void *, uint64_t, uint32_t *);
void nw_kernel_write(void *, uint64_t, uint32_t);
void nw_kernel_gate(nw_gate_state *, uint32_t, uint64_t);
void nw_kernel_gemm_half(nw_gemm, int);
void nw_kernel_gemm_bfloat16(nw_gemm, int);
void nw_kernel_gemm_float8(nw_gemm, int);
#define REDUCE(type) void nw_kernel_reduce_##type(void *, nw_reduce_inputs, uint64_t);
#define PATTERN(bytes)                                                                             \
    void nw_kernel_fill_##bytes(void *, uint64_t, nw_pattern);                                     \
    void nw_kernel_verify_##bytes(const void *, uint64_t, nw_pattern, nw_verdict *);               \
    void nw_kernel_explain_##bytes(const void *, nw_pattern, nw_verdict *);
REDUCE(float)
REDUCE(int32)
REDUCE(half) REDUCE(bfloat16) // clang-format off
PATTERN(1) PATTERN(2) PATTERN(4) PATTERN(8) // clang-format on
}

static std::map<std::string, CUfunc_st> &kernel_table()
{
#define ROW(name)                                                                                  \
    {                                                                                              \
#name, kernel(name)                                                                        \
    }
    static std::map<std::string, CUfunc_st> table = {
        ROW(nw_kernel_copy),         ROW(nw_kernel_read),
        ROW(nw_kernel_write),        ROW(nw_kernel_gate),
        ROW(nw_kernel_gemm_half),    ROW(nw_kernel_gemm_bfloat16),
        ROW(nw_kernel_reduce_float), ROW(nw_kernel_reduce_int32),
        ROW(nw_kernel_reduce_half),  ROW(nw_kernel_reduce_bfloat16),
        ROW(nw_kernel_fill_1),       ROW(nw_kernel_verify_1),
        ROW(nw_kernel_explain_1),    ROW(nw_kernel_fill_2),
        ROW(nw_kernel_verify_2),     ROW(nw_kernel_explain_2),
        ROW(nw_kernel_fill_4),       ROW(nw_kernel_verify_4),
        ROW(nw_kernel_explain_4),    ROW(nw_kernel_fill_8),
        ROW(nw_kernel_verify_8),     ROW(nw_kernel_explain_8),
        ROW(nw_kernel_gemm_float8),
    };
    return table;
}

// ---- streams and events

struct CUctx_st {
    int device;
    std::atomic<unsigned> peers; // bits of devices
};
static CUctx_st contexts[32];
static thread_local CUctx_st *current;

struct CUevent_st {
    std::mutex lock;
    std::condition_variable changed;
    uint64_t recorded = 0, reached = 0;
    std::chrono::steady_clock::time_point at;
};

struct CUstream_st {
    std::mutex lock;
    std::condition_variable queued, drained;
    std::deque<std::function<void()>> work;
    bool busy = false, closing = false;
    std::thread worker;

    CUstream_st() : worker([this] { run(); })
    {
    }

    void run()
    {
        std::unique_lock<std::mutex> hold(lock);
        for (;;) {
            queued.wait(hold, [this] { return closing || !work.empty(); });
            if (work.empty())
                return;
            auto next = std::move(work.front());
            work.pop_front();
            busy = true;
            hold.unlock();
            next();
            hold.lock();
            busy = false;
            if (work.empty())
                drained.notify_all();
        }
    }

    result push(std::function<void()> task)
    {
        std::lock_guard<std::mutex> hold(lock);
        work.push_back(std::move(task));
        queued.notify_one();
        return OK;
    }
};

// ---- device, context

EXPORT result cuInit(unsigned)
{
    return (result)setting("EMULATE_INIT", OK);
}
EXPORT result cuDriverGetVersion(int *version)
{
    *version = 13000;
    return OK;
}
EXPORT result cuGetErrorName(result code, const char **text)
{
    static thread_local char name[40];
    snprintf(name, sizeof name, "CUDA_ERROR_EMULATED_%u", code);
    *text = name;
    return OK;
}
EXPORT result cuGetErrorString(result code, const char **text)
{
    *text = code == OUT_OF_MEMORY ? "out of memory" : "an emulated error";
    return OK;
}
EXPORT result cuDeviceGetCount(int *count)
{
    *count = gpu_count();
    return OK;
}
EXPORT result cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < gpu_count() ? OK : INVALID_DEVICE;
}
EXPORT result cuDeviceGetName(char *name, int length, int device)
{
    snprintf(name, (size_t)length, "EMULATED GPU %d (no hardware)", device);
    return OK;
}
EXPORT result cuDeviceGetUuid_v2(void *uuid, int device)
{
    memcpy(uuid, "EMULATED-NO-GPU", 16);
    ((char *)uuid)[15] = (char)device;
    return OK;
}
EXPORT result cuDeviceGetPCIBusId(char *text, int length, int device)
{
    snprintf(text, (size_t)length, "F00D:%02X:00.0", device + 1);
    return OK;
}
static const size_t total_memory = (size_t)1 << 30;
EXPORT result cuDeviceTotalMem_v2(size_t *bytes, int)
{
    *bytes = total_memory;
    return OK;
}
EXPORT result cuDeviceGetAttribute(int *value, unsigned attribute, int)
{
    const std::map<unsigned, int> values = {
        {13, 1410000},
        {16, 2},
        {36, 1215000},
        {37, 5120},
        {38, 40 << 20},
        {41, 1},
        {75, capability() / 10},
        {76, capability() % 10},
        {97, capability() < 80 ? 65536 : 166912}}; // CUDA programming guide, compute capabilities
    const auto found = values.find(attribute);
    if (found == values.end())
        return INVALID_VALUE;
    *value = found->second;
    return OK;
}
EXPORT result cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer;
    return OK;
}
EXPORT result cuDevicePrimaryCtxRetain(CUctx_st **context, int device)
{
    contexts[device].device = device;
    *context = &contexts[device];
    return OK;
}
EXPORT result cuDevicePrimaryCtxRelease_v2(int)
{
    return OK;
}
EXPORT result cuCtxSetCurrent(CUctx_st *context)
{
    current = context;
    return OK;
}
EXPORT result cuCtxGetCurrent(CUctx_st **context)
{
    *context = current;
    return OK;
}
EXPORT result cuCtxSynchronize()
{
    return OK;
}
EXPORT result cuCtxEnablePeerAccess(CUctx_st *peer, unsigned)
{
    const unsigned bit = 1u << peer->device;
    return current->peers.fetch_or(bit) & bit ? PEER_ALREADY : OK;
}
EXPORT result cuCtxDisablePeerAccess(CUctx_st *peer)
{
    const unsigned bit = 1u << peer->device;
    return current->peers.fetch_and(~bit) & bit ? OK : PEER_NOT;
}

// ---- memory

EXPORT result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = total_memory;
    return OK;
}
static result take_memory(void **pointer, size_t bytes)
{
    if (!current)
        return INVALID_CONTEXT;
    *pointer = bytes <= total_memory ? aligned_alloc(512, (bytes + 511) / 512 * 512) : nullptr;
    if (!*pointer)
        return OUT_OF_MEMORY;
    memset(*pointer, 0xa5, bytes);
    return OK;
}
EXPORT result cuMemAlloc_v2(address *pointer, size_t bytes)
{
    void *memory;
    const result code = take_memory(&memory, bytes);
    if (code == OK)
        *pointer = (address)(uintptr_t)memory;
    return code;
}
EXPORT result cuMemFree_v2(address pointer)
{
    free((void *)(uintptr_t)pointer);
    return OK;
}
EXPORT result cuMemHostAlloc(void **pointer, size_t bytes, unsigned)
{
    return take_memory(pointer, bytes);
}
EXPORT result cuMemFreeHost(void *pointer)
{
    free(pointer);
    return OK;
}
EXPORT result cuMemHostGetDevicePointer_v2(address *device, void *pointer, unsigned)
{
    *device = (address)(uintptr_t)pointer;
    return OK;
}
EXPORT result cuMemHostRegister_v2(void *, size_t, unsigned)
{
    return OK;
}
EXPORT result cuMemHostUnregister(void *)
{
    return OK;
}
EXPORT result cuMemcpyAsync(address to, address from, size_t bytes, CUstream_st *stream)
{
    return stream->push(
        [=] { memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes); });
}
EXPORT result cuMemcpyPeerAsync(address to, CUctx_st *, address from, CUctx_st *, size_t bytes,
                                CUstream_st *stream)
{
    return cuMemcpyAsync(to, from, bytes, stream);
}
EXPORT result cuMemsetD8Async(address to, unsigned char value, size_t bytes, CUstream_st *stream)
{
    return stream->push([=] { memset((void *)(uintptr_t)to, value, bytes); });
}

// ---- streams and events

EXPORT result cuStreamCreate(CUstream_st **stream, unsigned)
{
    *stream = new CUstream_st;
    return OK;
}
EXPORT result cuStreamDestroy_v2(CUstream_st *stream)
{
    {
        std::lock_guard<std::mutex> hold(stream->lock);
        stream->closing = true;
        stream->queued.notify_one();
    }
    stream->worker.join();
    delete stream;
    return OK;
}
EXPORT result cuStreamQuery(CUstream_st *stream)
{
    std::lock_guard<std::mutex> hold(stream->lock);
    return stream->busy || !stream->work.empty() ? NOT_READY : OK;
}
EXPORT result cuStreamSynchronize(CUstream_st *stream)
{
    std::unique_lock<std::mutex> hold(stream->lock);
    stream->drained.wait(hold, [=] { return !stream->busy && stream->work.empty(); });
    return OK;
}
EXPORT result cuStreamWaitEvent(CUstream_st *stream, CUevent_st *event, unsigned)
{
    std::lock_guard<std::mutex> hold(event->lock);
    const uint64_t until = event->recorded;
    return stream->push([=] {
        std::unique_lock<std::mutex> wait(event->lock);
        event->changed.wait(wait, [=] { return event->reached >= until; });
    });
}
EXPORT result cuEventCreate(CUevent_st **event, unsigned)
{
    *event = new CUevent_st;
    return OK;
}
EXPORT result cuEventDestroy_v2(CUevent_st *event)
{
    delete event;
    return OK;
}
EXPORT result cuEventRecord(CUevent_st *event, CUstream_st *stream)
{
    {
        std::lock_guard<std::mutex> hold(event->lock);
        event->recorded++;
    }
    return stream->push([=] {
        std::lock_guard<std::mutex> hold(event->lock);
        event->reached++;
        event->at = std::chrono::steady_clock::now();
        event->changed.notify_all();
    });
}
EXPORT result cuEventQuery(CUevent_st *event)
{
    std::lock_guard<std::mutex> hold(event->lock);
    return event->reached == event->recorded ? OK : NOT_READY;
}
EXPORT result cuEventElapsedTime(float *ms, CUevent_st *start, CUevent_st *end)
{
    for (CUevent_st *event : {start, end}) {
        std::lock_guard<std::mutex> hold(event->lock);
        if (event->recorded == 0)
            return INVALID_HANDLE;
        if (event->reached != event->recorded)
            return NOT_READY;
    }
    *ms = std::chrono::duration<float, std::milli>(end->at - start->at).count();
    return OK;
}

// ---- modules and launches

EXPORT result cuModuleLoadDataEx(void **module, const void *image, unsigned, unsigned *, void **)
{
    const unsigned char fatbin_magic[] = {0x50, 0xed, 0x55, 0xba};
    if (memcmp(image, fatbin_magic, sizeof fatbin_magic) != 0)
        return 200; // CUDA_ERROR_INVALID_IMAGE
    *module = const_cast<void *>(image);
    return (result)setting("EMULATE_LOAD", OK);
}
EXPORT result cuModuleUnload(void *)
{
    return OK;
}
EXPORT result cuModuleGetFunction(CUfunc_st **function, void *, const char *name)
{
    const auto found = kernel_table().find(name);
    if (found == kernel_table().end() ||
        (capability() < 80 && strcmp(name, "nw_kernel_gemm_bfloat16") == 0) ||
        (capability() < 89 && strcmp(name, "nw_kernel_gemm_float8") == 0))
        return NOT_FOUND;
    *function = &found->second;
    return OK;
}
EXPORT result cuFuncGetAttribute(int *value, unsigned, CUfunc_st *)
{
    *value = 0;
    return OK;
}
EXPORT result cuFuncSetAttribute(CUfunc_st *, unsigned, int)
{
    return OK;
}
EXPORT result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunc_st *, int, size_t)
{
    *blocks = 1;
    return OK;
}
EXPORT result cuLaunchKernel(CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CUstream_st *stream, void **arguments, void **)
{
    if (grid_x == 0 || block_x == 0 || block_x > 1024 || grid_y * grid_z * block_y * block_z != 1)
        return INVALID_VALUE;
    auto kernel = function->bind(arguments);
    return stream->push([=] { emulator_run(grid_x, block_x, shared, kernel); });
}
