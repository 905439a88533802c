/* Private to kernels/. The CUDA driver API, opened at run time: our own prototypes of the ~50 calls
 * that dev_cuda.c makes, so that one program starts on machines with and without a driver, under
 * CUDA 11.4 to 13, and needs neither cuda.h nor libcuda when it is built.
 *
 * The names are those of the library's symbol table, version suffix included (cuMemAlloc_v2): what
 * cuda.h hides behind macros. tests/gpu/check_cuda_api.c holds every prototype against the
 * toolkit's cuda.h where there is one.
 *
 *     const struct nw_cuda_api *cu;
 *     NW_TRY(nw_cuda_api_open(&cu));            // NW_ENODEV: no driver here, with the reason
 *     unsigned code = cu->cuDeviceGetCount(&count);
 */
#ifndef NW_KERNELS_CUDA_API_H
#define NW_KERNELS_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The same types as cuda.h's CUdevice, CUdeviceptr, CUresult and handles. */
typedef int nw_cu_device;
typedef unsigned long long nw_cu_ptr;
typedef unsigned int nw_cu_result;
struct CUuuid_st; /* 16 bytes */

/* X(member, symbol, older symbol or NULL, arguments) */
#define NW_CUDA_API_MAP(X)                                                                         \
    X(cuInit, "cuInit", NULL, (unsigned int flags))                                                \
    X(cuDriverGetVersion, "cuDriverGetVersion", NULL, (int *version))                              \
    X(cuGetErrorName, "cuGetErrorName", NULL, (nw_cu_result code, const char **text))              \
    X(cuGetErrorString, "cuGetErrorString", NULL, (nw_cu_result code, const char **text))          \
    X(cuDeviceGetCount, "cuDeviceGetCount", NULL, (int *count))                                    \
    X(cuDeviceGet, "cuDeviceGet", NULL, (nw_cu_device * device, int ordinal))                      \
    X(cuDeviceGetName, "cuDeviceGetName", NULL, (char *name, int length, nw_cu_device device))     \
    X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", "cuDeviceGetUuid",                                    \
      (struct CUuuid_st * uuid, nw_cu_device device))                                              \
    X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", NULL,                                            \
      (char *text, int length, nw_cu_device device))                                               \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", NULL, (size_t * bytes, nw_cu_device device))        \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", NULL,                                          \
      (int *value, unsigned int attribute, nw_cu_device device))                                   \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", NULL,                                        \
      (int *can, nw_cu_device device, nw_cu_device peer))                                          \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", NULL,                                  \
      (struct CUctx_st * *context, nw_cu_device device))                                           \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease",      \
      (nw_cu_device device))                                                                       \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", NULL, (struct CUctx_st * context))                       \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", NULL, (struct CUctx_st * *context))                      \
    X(cuCtxSynchronize, "cuCtxSynchronize", NULL, (void))                                          \
    X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", NULL,                                        \
      (struct CUctx_st * peer, unsigned int flags))                                                \
    X(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", NULL, (struct CUctx_st * peer))            \
    X(cuMemGetInfo, "cuMemGetInfo_v2", NULL, (size_t * free_bytes, size_t * total_bytes))          \
    X(cuMemAlloc, "cuMemAlloc_v2", NULL, (nw_cu_ptr * pointer, size_t bytes))                      \
    X(cuMemFree, "cuMemFree_v2", NULL, (nw_cu_ptr pointer))                                        \
    X(cuMemHostAlloc, "cuMemHostAlloc", NULL, (void **pointer, size_t bytes, unsigned int flags))  \
    X(cuMemFreeHost, "cuMemFreeHost", NULL, (void *pointer))                                       \
    X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", NULL,                             \
      (nw_cu_ptr * device_pointer, void *pointer, unsigned int flags))                             \
    X(cuMemHostRegister, "cuMemHostRegister_v2", NULL,                                             \
      (void *pointer, size_t bytes, unsigned int flags))                                           \
    X(cuMemHostUnregister, "cuMemHostUnregister", NULL, (void *pointer))                           \
    X(cuMemcpyAsync, "cuMemcpyAsync", NULL,                                                        \
      (nw_cu_ptr to, nw_cu_ptr from, size_t bytes, struct CUstream_st * stream))                   \
    X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", NULL,                                                \
      (nw_cu_ptr to, struct CUctx_st * to_context, nw_cu_ptr from, struct CUctx_st * from_context, \
       size_t bytes, struct CUstream_st * stream))                                                 \
    X(cuMemsetD8Async, "cuMemsetD8Async", NULL,                                                    \
      (nw_cu_ptr to, unsigned char value, size_t bytes, struct CUstream_st *stream))               \
    X(cuStreamCreate, "cuStreamCreate", NULL, (struct CUstream_st * *stream, unsigned int flags))  \
    X(cuStreamDestroy, "cuStreamDestroy_v2", NULL, (struct CUstream_st * stream))                  \
    X(cuStreamQuery, "cuStreamQuery", NULL, (struct CUstream_st * stream))                         \
    X(cuStreamSynchronize, "cuStreamSynchronize", NULL, (struct CUstream_st * stream))             \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", NULL,                                                \
      (struct CUstream_st * stream, struct CUevent_st * event, unsigned int flags))                \
    X(cuEventCreate, "cuEventCreate", NULL, (struct CUevent_st * *event, unsigned int flags))      \
    X(cuEventDestroy, "cuEventDestroy_v2", NULL, (struct CUevent_st * event))                      \
    X(cuEventRecord, "cuEventRecord", NULL,                                                        \
      (struct CUevent_st * event, struct CUstream_st * stream))                                    \
    X(cuEventQuery, "cuEventQuery", NULL, (struct CUevent_st * event))                             \
    X(cuEventElapsedTime, "cuEventElapsedTime", NULL,                                              \
      (float *ms, struct CUevent_st *start, struct CUevent_st *end))                               \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", NULL,                                              \
      (struct CUmod_st * *module, const void *image, unsigned int option_count,                    \
       unsigned int *options, void **values))                                                      \
    X(cuModuleUnload, "cuModuleUnload", NULL, (struct CUmod_st * module))                          \
    X(cuModuleGetFunction, "cuModuleGetFunction", NULL,                                            \
      (struct CUfunc_st * *function, struct CUmod_st * module, const char *name))                  \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", NULL,                                              \
      (int *value, unsigned int attribute, struct CUfunc_st *function))                            \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", NULL,                                              \
      (struct CUfunc_st * function, unsigned int attribute, int value))                            \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",  \
      NULL, (int *blocks, struct CUfunc_st *function, int block_threads, size_t shared_bytes))     \
    X(cuLaunchKernel, "cuLaunchKernel", NULL,                                                      \
      (struct CUfunc_st * function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
       unsigned int block_x, unsigned int block_y, unsigned int block_z,                           \
       unsigned int shared_bytes, struct CUstream_st *stream, void **arguments, void **extra))

/* The same, of what a driver may lack: NULL then. */
#define NW_CUDA_API_OPTIONAL_MAP(X)                                                                \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", NULL,                                       \
      (struct CUstream_st * stream, unsigned int mode))                                            \
    X(cuStreamEndCapture, "cuStreamEndCapture", NULL,                                              \
      (struct CUstream_st * stream, struct CUgraph_st * *graph))                                   \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", NULL,                            \
      (struct CUgraphExec_st * *instance, struct CUgraph_st * graph, unsigned long long flags))    \
    X(cuGraphLaunch, "cuGraphLaunch", NULL,                                                        \
      (struct CUgraphExec_st * instance, struct CUstream_st * stream))                             \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", NULL, (struct CUgraphExec_st * instance))          \
    X(cuGraphDestroy, "cuGraphDestroy", NULL, (struct CUgraph_st * graph))                         \
    X(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", NULL,                        \
      (void *handle, nw_cu_ptr address, size_t bytes, unsigned int type,                           \
       unsigned long long flags))

struct CUctx_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;

struct nw_cuda_api {
#define X(member, symbol, older, arguments) nw_cu_result(*member) arguments;
    NW_CUDA_API_MAP(X)
    NW_CUDA_API_OPTIONAL_MAP(X)
#undef X
    int driver_version; /* of the API: 13000 = CUDA 13.0 */
    const char *path;   /* the library file that was loaded */
    bool simulated;     /* a double, which says so itself */
};

/* cuda.h's numbers, of those that we use (facts of the public API). */
enum {
    NW_CU_SUCCESS = 0,
    NW_CU_INVALID_VALUE = 1,
    NW_CU_OUT_OF_MEMORY = 2,
    NW_CU_STUB_LIBRARY = 34,
    NW_CU_NO_DEVICE = 100,
    NW_CU_INVALID_IMAGE = 200,
    NW_CU_NO_BINARY_FOR_GPU = 209,
    NW_CU_INVALID_PTX = 218,
    NW_CU_UNSUPPORTED_PTX_VERSION = 222,
    NW_CU_INVALID_HANDLE = 400,
    NW_CU_NOT_READY = 600,
    NW_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    NW_CU_PEER_ACCESS_NOT_ENABLED = 705,
    NW_CU_SYSTEM_NOT_READY = 802,
    NW_CU_SYSTEM_DRIVER_MISMATCH = 803,

    NW_CU_ATTRIBUTE_CLOCK_RATE_KHZ = 13,
    NW_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    NW_CU_ATTRIBUTE_MEMORY_CLOCK_RATE_KHZ = 36,
    NW_CU_ATTRIBUTE_MEMORY_BUS_WIDTH_BITS = 37,
    NW_CU_ATTRIBUTE_L2_CACHE_BYTES = 38,
    NW_CU_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    NW_CU_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    NW_CU_ATTRIBUTE_CAPABILITY_MINOR = 76,
    NW_CU_ATTRIBUTE_SHARED_BYTES_PER_BLOCK_OPTIN = 97,
    NW_CU_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
    NW_CU_MEM_RANGE_DMA_BUF_FD = 1,

    NW_CU_FUNCTION_LOCAL_BYTES = 3,
    NW_CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8,
    NW_CU_STREAM_NON_BLOCKING = 1,
    NW_CU_STREAM_CAPTURE_THREAD_LOCAL = 1,
    NW_CU_EVENT_DEFAULT = 0,
    NW_CU_MEMHOSTALLOC_PORTABLE = 1,
    NW_CU_MEMHOSTALLOC_DEVICEMAP = 2,
    NW_CU_JIT_ERROR_LOG_BUFFER = 5,
    NW_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

/* Opens the driver once per process and initialises it; later calls return the same table or the
 * same reason. Safe to call from several threads. The library stays loaded until the process ends.
 */
nw_rc nw_cuda_api_open(const struct nw_cuda_api **api_out);

/* Word a failed driver call: "gpu 0: cuMemAlloc of 4 GiB: out of memory (CUDA_ERROR_…, 2)". */
#define nw_cuda_fail(api, code, ...) nw_cuda_fail_at((api), (code), NW_HERE, __VA_ARGS__)
nw_rc nw_cuda_fail_at(const struct nw_cuda_api *api, nw_cu_result code, const char *where,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
