/* Compiled where the toolkit's cuda.h is: our prototypes of the driver API are those of NVIDIA's
 * header, type for type, and our numbers its numbers. A difference does not compile. */
#include <cuda.h>

#undef cuEventElapsedTime /* _v2 is CUDA 12.8's; the plain one is in every driver since 2007 */
#undef cuDevicePrimaryCtxRelease
#undef cuDeviceGetUuid
#undef cuDeviceTotalMem
#undef cuMemGetInfo
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemHostGetDevicePointer
#undef cuMemHostRegister
#undef cuStreamDestroy
#undef cuEventDestroy

#include "kernels/cuda_api.h"

#define SAME(member, function)                                                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(*((struct nw_cuda_api *)0)->member),    \
                                                __typeof__(function)),                             \
                   #member " is not what cuda.h declares")

/* The function behind each name, which is a macro in cuda.h where there are versions. */
SAME(cuInit, cuInit);
SAME(cuDriverGetVersion, cuDriverGetVersion);
SAME(cuGetErrorName, cuGetErrorName);
SAME(cuGetErrorString, cuGetErrorString);
SAME(cuDeviceGetCount, cuDeviceGetCount);
SAME(cuDeviceGet, cuDeviceGet);
SAME(cuDeviceGetName, cuDeviceGetName);
SAME(cuDeviceGetUuid, cuDeviceGetUuid_v2);
SAME(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId);
SAME(cuDeviceTotalMem, cuDeviceTotalMem_v2);
SAME(cuDeviceGetAttribute, cuDeviceGetAttribute);
SAME(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer);
SAME(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
SAME(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);
SAME(cuCtxSetCurrent, cuCtxSetCurrent);
SAME(cuCtxGetCurrent, cuCtxGetCurrent);
SAME(cuCtxSynchronize, cuCtxSynchronize);
SAME(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess);
SAME(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess);
SAME(cuMemGetInfo, cuMemGetInfo_v2);
SAME(cuMemAlloc, cuMemAlloc_v2);
SAME(cuMemFree, cuMemFree_v2);
SAME(cuMemHostAlloc, cuMemHostAlloc);
SAME(cuMemFreeHost, cuMemFreeHost);
SAME(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2);
SAME(cuMemHostRegister, cuMemHostRegister_v2);
SAME(cuMemHostUnregister, cuMemHostUnregister);
SAME(cuMemcpyAsync, cuMemcpyAsync);
SAME(cuMemcpyPeerAsync, cuMemcpyPeerAsync);
SAME(cuMemsetD8Async, cuMemsetD8Async);
SAME(cuStreamCreate, cuStreamCreate);
SAME(cuStreamDestroy, cuStreamDestroy_v2);
SAME(cuStreamQuery, cuStreamQuery);
SAME(cuStreamSynchronize, cuStreamSynchronize);
SAME(cuStreamWaitEvent, cuStreamWaitEvent);
SAME(cuEventCreate, cuEventCreate);
SAME(cuEventDestroy, cuEventDestroy_v2);
SAME(cuEventRecord, cuEventRecord);
SAME(cuEventQuery, cuEventQuery);
SAME(cuModuleLoadDataEx, cuModuleLoadDataEx);
SAME(cuModuleUnload, cuModuleUnload);
SAME(cuModuleGetFunction, cuModuleGetFunction);
SAME(cuFuncGetAttribute, cuFuncGetAttribute);
SAME(cuFuncSetAttribute, cuFuncSetAttribute);
SAME(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor);
SAME(cuLaunchKernel, cuLaunchKernel);
SAME(cuStreamBeginCapture, cuStreamBeginCapture_v2);
SAME(cuStreamEndCapture, cuStreamEndCapture);
SAME(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags);
SAME(cuGraphLaunch, cuGraphLaunch);
SAME(cuGraphExecDestroy, cuGraphExecDestroy);
SAME(cuGraphDestroy, cuGraphDestroy);
#if CUDA_VERSION >= 11070
SAME(cuMemGetHandleForAddressRange, cuMemGetHandleForAddressRange);
#endif
#if CUDA_VERSION >= 12080
SAME(cuEventElapsedTime, cuEventElapsedTime_v2);
#else
SAME(cuEventElapsedTime, cuEventElapsedTime);
#endif

#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

EQUAL(NW_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
EQUAL(NW_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(NW_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
EQUAL(NW_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
EQUAL(NW_CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
EQUAL(NW_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
EQUAL(NW_CU_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
EQUAL(NW_CU_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
EQUAL(NW_CU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
EQUAL(NW_CU_NOT_READY, CUDA_ERROR_NOT_READY);
EQUAL(NW_CU_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
EQUAL(NW_CU_PEER_ACCESS_NOT_ENABLED, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
EQUAL(NW_CU_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
EQUAL(NW_CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
EQUAL(NW_CU_ATTRIBUTE_CLOCK_RATE_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
EQUAL(NW_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(NW_CU_ATTRIBUTE_MEMORY_CLOCK_RATE_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
EQUAL(NW_CU_ATTRIBUTE_MEMORY_BUS_WIDTH_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
EQUAL(NW_CU_ATTRIBUTE_L2_CACHE_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
EQUAL(NW_CU_ATTRIBUTE_UNIFIED_ADDRESSING, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
EQUAL(NW_CU_ATTRIBUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(NW_CU_ATTRIBUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(NW_CU_ATTRIBUTE_SHARED_BYTES_PER_BLOCK_OPTIN,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
EQUAL(NW_CU_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
EQUAL(NW_CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
EQUAL(NW_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
EQUAL(NW_CU_STREAM_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
EQUAL(NW_CU_EVENT_DEFAULT, CU_EVENT_DEFAULT);
EQUAL(NW_CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
EQUAL(NW_CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP);
EQUAL(NW_CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER);
EQUAL(NW_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
_Static_assert(__builtin_types_compatible_p(nw_cu_ptr, CUdeviceptr), "CUdeviceptr");

int main(void)
{
    return 0;
}
