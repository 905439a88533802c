// Test patterns on the device: fill a buffer, check a buffer, at any size.
//
// Floor: fill writes the bytes and verify reads them once; the table (at most 32 KiB) stays in L1:
//     time >= bytes / memory rate              H200: 4.8 TB/s by datasheet, so 1 GiB >= 224 us
// One thread block works on one block of the pattern at a time: one hash for 2048 elements.
#include "kernels/device.cuh"
#include "kernels/pattern.h"

// Calls visit(i, table entry) for every element i of the buffer that is this thread's.
template <typename W, typename V>
__device__ inline void for_elements(uint64_t count, const struct nw_pattern &pattern, V visit)
{
    const uint64_t end = pattern.first + count;
    const uint64_t last_block = (end + NW_PATTERN_BLOCK - 1) / NW_PATTERN_BLOCK;
    for (uint64_t block = pattern.first / NW_PATTERN_BLOCK + blockIdx.x; block < last_block;
         block += gridDim.x) {
        const W *const window = (const W *)pattern.table + nw_pattern_start(block);
        for (uint32_t j = threadIdx.x; j < NW_PATTERN_BLOCK; j += blockDim.x) {
            const uint64_t index = block * NW_PATTERN_BLOCK + j;
            if (index >= pattern.first && index < end)
                visit(index - pattern.first, window[j]);
        }
    }
}

template <typename W>
__device__ inline void fill(void *to, uint64_t count, const struct nw_pattern &pattern)
{
    for_elements<W>(count, pattern,
                    [=](uint64_t i, W value) { nw_store_once((W *)to + i, value); });
}

template <typename W>
__device__ inline void verify(const void *buffer, uint64_t count, const struct nw_pattern &pattern,
                              struct nw_verdict *verdict)
{
    uint64_t wrong = 0, first = UINT64_MAX;
    for_elements<W>(count, pattern, [&](uint64_t i, W value) {
        if (nw_load_once((const W *)buffer + i) != value) {
            wrong++;
            first = i < first ? i : first;
        }
    });
    if (wrong)
        nw_note_wrong(&verdict->wrong_count, &verdict->first_index, wrong, first);
}

// After verify, in stream order, one thread: the bits of the first wrong element.
template <typename W>
__device__ inline void explain(const void *buffer, const struct nw_pattern &pattern,
                               struct nw_verdict *verdict)
{
    const uint64_t i = verdict->first_index;
    if (i == UINT64_MAX)
        return;
    verdict->expected_bits = ((const W *)pattern.table)[nw_pattern_place(pattern.first + i)];
    verdict->found_bits = ((const W *)buffer)[i];
}

#define KERNELS(bytes, W)                                                                          \
    extern "C" __global__ void __launch_bounds__(256) nw_kernel_fill_##bytes(                      \
        void *to, uint64_t count, const __grid_constant__ struct nw_pattern pattern)               \
    {                                                                                              \
        fill<W>(to, count, pattern);                                                               \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) nw_kernel_verify_##bytes(                    \
        const void *buffer, uint64_t count, const __grid_constant__ struct nw_pattern pattern,     \
        struct nw_verdict *verdict)                                                                \
    {                                                                                              \
        verify<W>(buffer, count, pattern, verdict);                                                \
    }                                                                                              \
    extern "C" __global__ void nw_kernel_explain_##bytes(                                          \
        const void *buffer, const __grid_constant__ struct nw_pattern pattern,                     \
        struct nw_verdict *verdict)                                                                \
    {                                                                                              \
        explain<W>(buffer, pattern, verdict);                                                      \
    }

KERNELS(1, unsigned char)
KERNELS(2, unsigned short)
KERNELS(4, unsigned int)
KERNELS(8, unsigned long long)
