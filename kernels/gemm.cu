// Matrix product on the tensor cores: D (float) = A · Bᵀ of half or bfloat16. Own code, so that a
// GPU can be loaded and its compute rate measured without cuBLAS.
//
// Floor: 2 · m · n · k operations / tensor rate. H200 bf16: 989 TFLOP/s dense by datasheet, so
// 8192³ takes at least 1.11 ms; the memory floor, (m·k + n·k) · 2 + m·n · 4 bytes once, is 0.1 ms.
// What bounds this kernel:
//   - a block makes a 128 × 256 tile, so per step of k it reads (128 + 256) · 2 bytes from L2 for
//     32768 products: 43 products a byte. At 25 B/clock of L2 rate per multiprocessor that is 1070
//     of Hopper's 2048 products a clock;
//   - a warp makes 64 × 64, so per 16 steps of k it reads (64 + 64) · 32 bytes of shared memory for
//     65536 products: 16 a byte, at 128 B/clock 2048;
//   - WMMA (mma.sync) itself reaches about 0.6 of the rate that Hopper's wgmma has.
// So expect 0.5 to 0.6 of the datasheet on Hopper, more on Ampere and Ada. Not measured yet.
#include "kernels/device.cuh"
#include "kernels/kernels.h"

#include <cuda_pipeline_primitives.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

constexpr int tile_m = NW_GEMM_TILE_M, tile_n = NW_GEMM_TILE_N, tile_k = NW_GEMM_TILE_K;
constexpr int warp_m = 64, warp_n = 64, fragment = 16;
constexpr int warps_n = tile_n / warp_n, threads = 32 * (tile_m / warp_m) * warps_n;
// 8 elements of padding: rows of 80 bytes put eight successive rows on different banks.
constexpr int row = tile_k + 8;
constexpr int stage_elements = (tile_m + tile_n) * row;

// 16 bytes (8 elements) at a time, from rows `k` elements apart into rows `row` apart.
template <typename T>
__device__ inline void load_tile(T *to, const T *from, int rows, int k, int at_k)
{
    constexpr int per_row = tile_k / 8;
    for (int i = threadIdx.x; i < rows * per_row; i += threads) {
        const int r = i / per_row, c = i % per_row * 8;
        __pipeline_memcpy_async(to + r * row + c, from + (int64_t)r * k + at_k + c, 16);
    }
}

template <typename T>
__device__ inline void load_stage(T *stage, const T *a, const T *b, int k, int at_k)
{
    if (at_k < k) {
        load_tile(stage, a, tile_m, k, at_k);
        load_tile(stage + tile_m * row, b, tile_n, k, at_k);
    }
    __pipeline_commit(); // an empty group at the end keeps the count of groups
}

template <typename T> struct warp_tile {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[warp_m / fragment][warp_n / fragment];

    __device__ void clear()
    {
#pragma unroll
        for (int i = 0; i < warp_m / fragment; i++)
#pragma unroll
            for (int j = 0; j < warp_n / fragment; j++)
                wmma::fill_fragment(sum[i][j], 0.0f);
    }

    __device__ void multiply(const T *a, const T *b)
    {
#pragma unroll
        for (int at = 0; at < tile_k; at += fragment) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa[warp_m / fragment];
#pragma unroll
            for (int i = 0; i < warp_m / fragment; i++)
                wmma::load_matrix_sync(fa[i], a + i * fragment * row + at, row);
#pragma unroll
            for (int j = 0; j < warp_n / fragment; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> fb;
                wmma::load_matrix_sync(fb, b + j * fragment * row + at, row);
#pragma unroll
                for (int i = 0; i < warp_m / fragment; i++)
                    wmma::mma_sync(sum[i][j], fa[i], fb, sum[i][j]);
            }
        }
    }

    __device__ void store(float *d, int n)
    {
#pragma unroll
        for (int i = 0; i < warp_m / fragment; i++)
#pragma unroll
            for (int j = 0; j < warp_n / fragment; j++)
                wmma::store_matrix_sync(d + (int64_t)i * fragment * n + j * fragment, sum[i][j], n,
                                        wmma::mem_row_major);
    }
};

// Blocks walk down columns of 8 tiles before they move right: the A tiles of a column stay in L2.
__device__ inline void tile_of_block(int tiles_m, int tiles_n, int *tile_row, int *tile_column)
{
    constexpr int group = 8;
    const int in_group = group * tiles_n, first = blockIdx.x / in_group * group;
    const int rows = tiles_m - first < group ? tiles_m - first : group;
    *tile_row = first + blockIdx.x % in_group % rows;
    *tile_column = blockIdx.x % in_group / rows;
}

// `stages` tiles are in flight: 2 or 3, as the shared memory allows.
template <typename T> __device__ inline void multiply(const struct nw_gemm &g, int stages)
{
    NW_SHARED_DYNAMIC(memory);
    T *const shared = reinterpret_cast<T *>(memory);
    int tile_row, tile_column;
    tile_of_block(g.m / tile_m, g.n / tile_n, &tile_row, &tile_column);
    const T *a = (const T *)g.a + (int64_t)tile_row * tile_m * g.k;
    const T *b = (const T *)g.b + (int64_t)tile_column * tile_n * g.k;
    const int warp = threadIdx.x / 32;
    const int in_m = warp / warps_n * warp_m, in_n = warp % warps_n * warp_n;

    warp_tile<T> tile;
    tile.clear();
    for (int s = 0; s < stages - 1; s++)
        load_stage(shared + s * stage_elements, a, b, g.k, s * tile_k);
    for (int step = 0; step < g.k / tile_k; step++) {
        if (stages == 3)
            __pipeline_wait_prior(1);
        else
            __pipeline_wait_prior(0);
        __syncthreads(); // the stage is loaded, and nobody reads the one that is overwritten next
        const int next = step + stages - 1;
        load_stage(shared + next % stages * stage_elements, a, b, g.k, next * tile_k);
        const T *stage = shared + step % stages * stage_elements;
        tile.multiply(stage + in_m * row, stage + (tile_m + in_n) * row);
    }
    tile.store((float *)g.d + ((int64_t)tile_row * tile_m + in_m) * g.n + tile_column * tile_n +
                   in_n,
               g.n);
}

extern "C" __global__ void __launch_bounds__(threads, 1)
    nw_kernel_gemm_half(const __grid_constant__ struct nw_gemm gemm, int stages)
{
    multiply<__half>(gemm, stages);
}

// Turing (sm_75) has no bfloat16 tensor cores: the kernel is not in its binary.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
extern "C" __global__ void __launch_bounds__(threads, 1)
    nw_kernel_gemm_bfloat16(const __grid_constant__ struct nw_gemm gemm, int stages)
{
    multiply<__nv_bfloat16>(gemm, stages);
}
#endif
