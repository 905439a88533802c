// Sum of n inputs, element by element: what a collective does in each GPU.
//
// Floor: n inputs are read once and the result is written once, (n + 1) · bytes through the memory:
//     time >= (n + 1) · bytes / memory rate    H200, n = 2, 1 GiB each: 3 · 1 GiB / 4.8 TB/s = 671
//     us
// The adds are free beside it: n = 2 of 4-byte floats is 1 add per 12 bytes, at 4.8 TB/s 0.4 T
// adds/s of the 33 T that the multiprocessors can do.
//
// half and bfloat16 are added as floats in the order of the inputs and rounded once (nearest even);
// the order is part of the contract, so the host twin gives the same bits.
#include "kernels/device.cuh"
#include "kernels/kernels.h"

struct element_float {
    typedef float stored;
    typedef float wide;
    static __device__ float widen(float value)
    {
        return value;
    }
    static __device__ float narrow(float value)
    {
        return value;
    }
};

struct element_int32 { // unsigned: wraps, where signed overflow is undefined
    typedef uint32_t stored;
    typedef uint32_t wide;
    static __device__ uint32_t widen(uint32_t value)
    {
        return value;
    }
    static __device__ uint32_t narrow(uint32_t value)
    {
        return value;
    }
};

struct element_half {
    typedef __half stored;
    typedef float wide;
    static __device__ float widen(__half value)
    {
        return __half2float(value);
    }
    static __device__ __half narrow(float value)
    {
        return __float2half_rn(value);
    }
};

struct element_bfloat16 {
    typedef __nv_bfloat16 stored;
    typedef float wide;
    static __device__ float widen(__nv_bfloat16 value)
    {
        return __bfloat162float(value);
    }
    static __device__ __nv_bfloat16 narrow(float value)
    {
        return __float2bfloat16_rn(value);
    }
};

// 16 bytes of elements.
template <typename T> union packet {
    uint4 word;
    T element[16 / sizeof(T)];
    __device__ packet() : word()
    {
    }
};

template <typename E>
__device__ inline void reduce_packet(void *to, const struct nw_reduce_inputs &inputs, uint64_t i)
{
    typedef typename E::stored T;
    constexpr int n = 16 / sizeof(T);
    packet<T> in;
    typename E::wide sum[n];
    in.word = nw_load_once((const uint4 *)inputs.from[0] + i);
#pragma unroll
    for (int e = 0; e < n; e++)
        sum[e] = E::widen(in.element[e]);
#pragma unroll 4
    for (int k = 1; k < inputs.count; k++) {
        in.word = nw_load_once((const uint4 *)inputs.from[k] + i);
#pragma unroll
        for (int e = 0; e < n; e++)
            sum[e] = sum[e] + E::widen(in.element[e]);
    }
#pragma unroll
    for (int e = 0; e < n; e++)
        in.element[e] = E::narrow(sum[e]);
    nw_store_once((uint4 *)to + i, in.word);
}

template <typename E>
__device__ inline void reduce(void *to, const struct nw_reduce_inputs &inputs, uint64_t count)
{
    typedef typename E::stored T;
    uintptr_t bits = (uintptr_t)to;
    for (int k = 0; k < inputs.count; k++)
        bits |= (uintptr_t)inputs.from[k];
    const uint64_t packets = bits % 16 == 0 ? count * sizeof(T) / 16 : 0;
    for (uint64_t i = nw_thread_first(); i < packets; i += nw_thread_count())
        reduce_packet<E>(to, inputs, i);

    for (uint64_t i = packets * (16 / sizeof(T)) + nw_thread_first(); i < count;
         i += nw_thread_count()) {
        typename E::wide sum = E::widen(((const T *)inputs.from[0])[i]);
        for (int k = 1; k < inputs.count; k++)
            sum = sum + E::widen(((const T *)inputs.from[k])[i]);
        ((T *)to)[i] = E::narrow(sum);
    }
}

#define KERNEL(name, element)                                                                      \
    extern "C" __global__ void __launch_bounds__(512, 2)                                           \
        name(void *to, const __grid_constant__ struct nw_reduce_inputs inputs, uint64_t count)     \
    {                                                                                              \
        reduce<element>(to, inputs, count);                                                        \
    }

KERNEL(nw_kernel_reduce_float, element_float)
KERNEL(nw_kernel_reduce_int32, element_int32)
KERNEL(nw_kernel_reduce_half, element_half)
KERNEL(nw_kernel_reduce_bfloat16, element_bfloat16)
