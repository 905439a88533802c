// The CPU in place of kernels/device.cuh: the CUDA sources of kernels/ compile as C++ with this,
// and run thread by thread (emulator.h). It checks their arithmetic and indices; races and the
// memory model it cannot see.
#ifndef NW_KERNELS_DEVICE_CUH
#define NW_KERNELS_DEVICE_CUH

#include <stdint.h>
#include <string.h>

#include "emulator.h"
#include "kernels/half.h"

#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(...)
#define NW_SHARED_DYNAMIC(name) unsigned char *const name = emulator_shared

struct uint2 {
    uint32_t x, y;
};
struct float2 {
    float x, y;
};
struct uint4 {
    uint32_t x, y, z, w;
};
struct __half {
    uint16_t bits;
};
struct __nv_bfloat16 {
    uint16_t bits;
};

inline float __half2float(__half h)
{
    return nw_half_to_float(h.bits);
}
inline __half __float2half_rn(float f)
{
    return {nw_float_to_half(f)};
}
inline float __bfloat162float(__nv_bfloat16 b)
{
    return nw_bfloat16_to_float(b.bits);
}
inline __nv_bfloat16 __float2bfloat16_rn(float f)
{
    return {nw_float_to_bfloat16(f)};
}

inline uint64_t nw_thread_first()
{
    return blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
}
inline uint64_t nw_thread_count()
{
    return gridDim.x * (uint64_t)blockDim.x;
}
inline void nw_warp_xor_into(uint32_t *to, uint32_t value)
{
    *to ^= value;
}
inline void nw_note_wrong(uint64_t *count, uint64_t *first, uint64_t wrong, uint64_t index)
{
    *count += wrong;
    *first = index < *first ? index : *first;
}
inline uint64_t nw_device_clock_ns()
{
    return emulator_clock_ns();
}

// Vector accesses fault on a GPU where they are not aligned.
template <typename W> inline W nw_load_once(const W *from)
{
    if ((uintptr_t)from % sizeof(W))
        emulator_fault("misaligned load");
    W value;
    memcpy(&value, from, sizeof value);
    return value;
}
template <typename W> inline void nw_store_once(W *to, W value)
{
    if ((uintptr_t)to % sizeof(W))
        emulator_fault("misaligned store");
    memcpy(to, &value, sizeof value);
}

inline void __syncthreads()
{
    emulator_barrier();
}
inline void __threadfence_system()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
