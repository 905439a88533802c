// Test patterns on the device: fill a buffer, check a buffer, whatever its size and alignment.
//
// Floor: fill writes bytes, verify reads bytes: time >= bytes / memory rate (H200: 1 GiB >= 224 us).
// The arithmetic is some 12 integer operations an element and rank (two 64-bit multiplications); a
// reduction of n ranks costs n of these. At n = 8 and 4-byte elements that is about 100 operations
// for 4 bytes, so checking is bound by arithmetic, not by memory: about 30 Tops/s / 100 · 4 B = 1.2
// TB/s on an H200. It is never inside a timed window.
#include "kernels/device.cuh"
#include "kernels/pattern.h"

// The bits of `value`, which is exact in the type, as an element of the type.
template <typename T> __device__ inline T as_element(int64_t value)
{
    return (T)value;
}
template <> __device__ inline __half as_element<__half>(int64_t value)
{
    return __float2half_rn((float)value);
}
template <> __device__ inline __nv_bfloat16 as_element<__nv_bfloat16>(int64_t value)
{
    return __float2bfloat16_rn((float)value);
}

template <typename T> __device__ inline uint64_t bits_of(T value)
{
    union {
        uint64_t bits;
        unsigned char byte[8];
    } whole;
    whole.bits = 0;
    const unsigned char *bytes = (const unsigned char *)&value;
#pragma unroll
    for (unsigned int i = 0; i < sizeof(T); i++)
        whole.byte[i] = bytes[i];
    return whole.bits;
}

template <typename T>
__device__ inline void fill(void *to, uint64_t count, const struct nw_pattern &pattern)
{
    const uint32_t mask = nw_pattern_mask(pattern.dtype, pattern.rank_count);
    for (uint64_t i = nw_thread_first(); i < count; i += nw_thread_count())
        nw_store_once((T *)to + i, as_element<T>(nw_pattern_expected(&pattern, mask, i)));
}

template <typename T>
__device__ inline void verify(const void *buffer, uint64_t count, const struct nw_pattern &pattern,
                              struct nw_verdict *verdict)
{
    const uint32_t mask = nw_pattern_mask(pattern.dtype, pattern.rank_count);
    uint64_t wrong = 0, first = UINT64_MAX;
    for (uint64_t i = nw_thread_first(); i < count; i += nw_thread_count()) {
        const T expected = as_element<T>(nw_pattern_expected(&pattern, mask, i));
        const T found = nw_load_once((const T *)buffer + i);
        if (bits_of(found) != bits_of(expected)) {
            wrong++;
            first = i < first ? i : first;
        }
    }
    if (wrong)
        nw_note_wrong(&verdict->wrong_count, &verdict->first_index, wrong, first);
}

// After verify, in stream order, one thread: the bits of the first wrong element.
template <typename T>
__device__ inline void explain(const void *buffer, const struct nw_pattern &pattern,
                               struct nw_verdict *verdict)
{
    const uint64_t i = verdict->first_index;
    if (i == UINT64_MAX)
        return;
    const uint32_t mask = nw_pattern_mask(pattern.dtype, pattern.rank_count);
    verdict->expected_bits = bits_of(as_element<T>(nw_pattern_expected(&pattern, mask, i)));
    verdict->found_bits = bits_of(((const T *)buffer)[i]);
}

#define KERNELS(suffix, T)                                                                         \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        nw_kernel_fill_##suffix(void *to, uint64_t count,                                          \
                                const __grid_constant__ struct nw_pattern pattern)                 \
    {                                                                                              \
        fill<T>(to, count, pattern);                                                               \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        nw_kernel_verify_##suffix(const void *buffer, uint64_t count,                              \
                                  const __grid_constant__ struct nw_pattern pattern,               \
                                  struct nw_verdict *verdict)                                      \
    {                                                                                              \
        verify<T>(buffer, count, pattern, verdict);                                                \
    }                                                                                              \
    extern "C" __global__ void nw_kernel_explain_##suffix(                                         \
        const void *buffer, const __grid_constant__ struct nw_pattern pattern,                     \
        struct nw_verdict *verdict)                                                                \
    {                                                                                              \
        explain<T>(buffer, pattern, verdict);                                                      \
    }

KERNELS(int8, signed char)
KERNELS(uint8, unsigned char)
KERNELS(int32, int)
KERNELS(uint32, unsigned int)
KERNELS(int64, long long)
KERNELS(uint64, unsigned long long)
KERNELS(half, __half)
KERNELS(float, float)
KERNELS(double, double)
KERNELS(bfloat16, __nv_bfloat16)
