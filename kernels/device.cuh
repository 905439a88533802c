/* Private to kernels/: to the .cu files. The few things that kernels need of the hardware, in one
 * place: the tests compile the kernels for the CPU with another file of these
 * (tests/gpu/emulate/kernels/device.cuh). */
#ifndef NW_KERNELS_DEVICE_CUH
#define NW_KERNELS_DEVICE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

// Grid-stride loops: one-dimensional grids and blocks.
__device__ inline uint64_t nw_thread_first()
{
    return blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
}

__device__ inline uint64_t nw_thread_count()
{
    return gridDim.x * (uint64_t)blockDim.x;
}

// *to ^= the values of all threads of the warp: one atomic for 32 threads. All must call it.
__device__ inline void nw_warp_xor_into(uint32_t *to, uint32_t value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value ^= __shfl_xor_sync(0xffffffffu, value, distance);
    if (threadIdx.x % 32 == 0)
        atomicXor(to, value);
}

// Counts `wrong` elements and keeps the smallest index.
__device__ inline void nw_note_wrong(uint64_t *count, uint64_t *first, uint64_t wrong,
                                     uint64_t index)
{
    atomicAdd((unsigned long long *)count, (unsigned long long)wrong);
    atomicMin((unsigned long long *)first, (unsigned long long)index);
}

// Nanoseconds that run at the same rate whatever the clocks do; steps of 32 ns to 1 us.
__device__ inline uint64_t nw_device_clock_ns()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

// Loads and stores of data that is used once: do not keep it in the caches.
template <typename W> __device__ inline W nw_load_once(const W *from)
{
    return __ldcs(from);
}

template <typename W> __device__ inline void nw_store_once(W *to, W value)
{
    __stcs(to, value);
}

// The block's dynamic shared memory, as bytes.
#define NW_SHARED_DYNAMIC(name) extern __shared__ __align__(128) unsigned char name[]

#endif
