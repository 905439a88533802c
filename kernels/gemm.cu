// Matrix product on the tensor cores: D (float) = A · Bᵀ of half, bfloat16 or fp8 (e4m3). Own code,
// so that a GPU can be loaded and its compute rate measured without cuBLAS.
//
// Floor: 2 · m · n · k operations / tensor rate. H100 SXM bf16: 989 TFLOP/s dense by datasheet (132
// multiprocessors × 4096 operations a clock × 1.83 GHz), so 8192³ takes at least 1.11 ms; the
// memory floor, operands and result once over 3.35 TB/s, is 0.16 ms.
//
// A block makes 128 × 256 of D with 8 warps of 64 × 64; a stage is 64 bytes of k (32 half, 64 fp8).
// Per multiprocessor and clock, of 16-bit types, in multiply-adds:
//   - tensor cores: A100 1024, H100 2048 by wgmma; what mma.sync, this kernel's instruction, gets
//   of
//     them on Hopper is 60 to 65 %: some 1300. (wgmma exists on sm_90a only.)
//   - shared memory, 128 B a clock: a warp reads (64 + 64) · 32 B for 64 · 64 · 16 multiply-adds,
//     and the copies write (128 + 256) · 32 B for 128 · 256 · 16: 2048 / (1 + 0.375) = 1490.
//   - L2: (128 + 256) · 32 B for 524288 multiply-adds: 23 B of L2 a 1000 multiply-adds, where a
//     multiprocessor of both chips gets 40 and more. So tiles need not be larger.
//   - a warp's registers: 128 of sums, 64 of operands (two steps of k: while one is multiplied the
//     next is read), the rest addresses. 255 is the limit, so one block a multiprocessor.
// So at best 60 % of the datasheet on Hopper (and about 80 % of cuBLAS), 85 to 90 % on Ampere and
// Ada. Fp8 has half the bytes: the same arithmetic for twice the rate. Hopper and the Blackwell of
// sm_100 have no fp8 in mma.sync: the compiler would make 16-bit products of it (NVIDIA/cutlass
// issue 1986), so there the kernel is left out and cuBLAS shows the chip's rate. Not measured yet.
//
// No bank conflicts: 16-byte piece c of row r lies at c ^ (r / 2 % 4), so the 8 rows that ldmatrix
// reads at once lie on 8 different groups of 4 banks (the emulation in tests/gpu asserts it).
#include "kernels/device.cuh"
#include "kernels/kernels.h"
#include "kernels/mma.cuh"

#include <cuda_pipeline_primitives.h>

constexpr int tile_m = NW_GEMM_TILE_M, tile_n = NW_GEMM_TILE_N, row_bytes = NW_GEMM_TILE_K_BYTES;
constexpr int warp_m = 64, warp_n = 64;
constexpr int warps_n = tile_n / warp_n, threads = 32 * (tile_m / warp_m) * warps_n;
constexpr int stage_bytes = NW_GEMM_STAGE_BYTES;
constexpr int pieces = row_bytes / 16, rows_at_once = threads / pieces;
constexpr int parts_m = warp_m / 16, parts_n = warp_n / 8;
static_assert(row_bytes == 64 && rows_at_once % 8 == 0, "the places of the pieces");

__device__ inline int place_of(int row, int piece)
{
    return row * row_bytes + ((piece ^ (row >> 1 & 3)) << 4);
}

// What a thread copies of every stage: one piece of each rows_at_once-th row.
struct copies {
    const unsigned char *a, *b; // of the first row, at k = 0
    int64_t pitch;              // bytes from one row of a matrix to the next
    int place;
};

__device__ inline void load_stage(unsigned char *stage, const struct copies &c, int64_t at)
{
    if (at < c.pitch) {
#pragma unroll
        for (int i = 0; i < tile_m / rows_at_once; i++)
            __pipeline_memcpy_async(stage + c.place + i * rows_at_once * row_bytes,
                                    c.a + i * rows_at_once * c.pitch + at, 16);
#pragma unroll
        for (int i = 0; i < tile_n / rows_at_once; i++)
            __pipeline_memcpy_async(stage + c.place + (tile_m + i * rows_at_once) * row_bytes,
                                    c.b + i * rows_at_once * c.pitch + at, 16);
    }
    __pipeline_commit(); // an empty group at the end keeps the count of groups
}

// A warp's operands of one step of k.
struct operands {
    uint32_t a[parts_m][4], b[parts_n / 2][4];
};

// `from_a`, `from_b`: this lane's row of the warp's first 16 rows of A and of B, at step 0. The
// second step's pieces are 2 further: bit 5 of the place.
__device__ inline void load_operands(struct operands &o, const unsigned char *stage, int from_a,
                                     int from_b, int step)
{
#pragma unroll
    for (int i = 0; i < parts_m; i++)
        nw_load_matrices(o.a[i], stage + (from_a ^ step << 5) + i * 16 * row_bytes);
#pragma unroll
    for (int j = 0; j < parts_n / 2; j++)
        nw_load_matrices(o.b[j], stage + (from_b ^ step << 5) + j * 16 * row_bytes);
}

template <typename Type>
__device__ inline void multiply_step(float (&sum)[parts_m][parts_n][4], const struct operands &o)
{
#pragma unroll
    for (int i = 0; i < parts_m; i++)
#pragma unroll
        for (int j = 0; j < parts_n; j++)
            nw_multiply_add(Type{}, sum[i][j], o.a[i], &o.b[j / 2][j % 2 * 2]);
}

__device__ inline void store(float *d, int n, const float (&sum)[parts_m][parts_n][4])
{
    const int lane = threadIdx.x % 32;
    d += (int64_t)(lane / 4) * n + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < parts_m; i++)
#pragma unroll
        for (int j = 0; j < parts_n; j++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float2 pair;
                pair.x = sum[i][j][2 * half];
                pair.y = sum[i][j][2 * half + 1];
                *(float2 *)(d + (int64_t)(16 * i + 8 * half) * n + 8 * j) = pair;
            }
}

// Blocks walk down columns of 8 tiles before they move right: the A tiles of a column stay in L2.
__device__ inline void tile_of_block(int tiles_m, int tiles_n, int *tile_row, int *tile_column)
{
    constexpr int group = 8;
    const int in_group = group * tiles_n, first = blockIdx.x / in_group * group;
    const int rows = tiles_m - first < group ? tiles_m - first : group;
    *tile_row = first + blockIdx.x % in_group % rows;
    *tile_column = blockIdx.x % in_group / rows;
}

// `stages` in flight: 4 as the shared memory of sm_80 and later has room for, 2 on sm_75.
template <typename Type, int element_bytes, int stages>
__device__ inline void multiply(const struct nw_gemm &g)
{
    NW_SHARED_DYNAMIC(shared);
    int tile_row, tile_column;
    tile_of_block(g.m / tile_m, g.n / tile_n, &tile_row, &tile_column);
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int in_m = warp / warps_n * warp_m, in_n = warp % warps_n * warp_n;

    struct copies c;
    const int first_row = thread / pieces, piece = thread % pieces;
    c.pitch = (int64_t)g.k * element_bytes;
    c.a = (const unsigned char *)g.a + ((int64_t)tile_row * tile_m + first_row) * c.pitch +
          piece * 16;
    c.b = (const unsigned char *)g.b + ((int64_t)tile_column * tile_n + first_row) * c.pitch +
          piece * 16;
    c.place = place_of(first_row, piece);
    // ldmatrix: A by rows 0-7, 8-15 of piece 0, then of piece 1; B by pieces 0, 1 of rows 0-7,
    // 8-15.
    const int from_a = place_of(in_m + lane % 16, lane / 16);
    const int from_b = place_of(tile_m + in_n + lane / 16 * 8 + lane % 8, lane / 8 % 2);

    float sum[parts_m][parts_n][4] = {};
    struct operands even, odd;
    for (int s = 0; s < stages - 1; s++)
        load_stage(shared + s * stage_bytes, c, (int64_t)s * row_bytes);
    __pipeline_wait_prior(stages - 2);
    __syncthreads();
    load_operands(even, shared, from_a, from_b, 0);
    const int steps = (int)(c.pitch / row_bytes);
    for (int step = 0, slot = 0; step < steps; step++) {
        // Nobody reads the slot before this one any more: its last reads are before the barrier.
        const int behind = slot == 0 ? stages - 1 : slot - 1;
        load_operands(odd, shared + slot * stage_bytes, from_a, from_b, 1);
        load_stage(shared + behind * stage_bytes, c, (int64_t)(step + stages - 1) * row_bytes);
        multiply_step<Type>(sum, even);
        slot = slot == stages - 1 ? 0 : slot + 1;
        __pipeline_wait_prior(stages - 2); // the next stage is here,
        __syncthreads();                   // also what others have copied of it
        if (step + 1 < steps)
            load_operands(even, shared + slot * stage_bytes, from_a, from_b, 0);
        multiply_step<Type>(sum, odd);
    }
    store((float *)g.d + ((int64_t)tile_row * tile_m + in_m) * g.n + tile_column * tile_n + in_n,
          g.n, sum);
}

#define GEMM(name, type, element_bytes)                                                            \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        nw_kernel_gemm_##name(const __grid_constant__ struct nw_gemm gemm, int stages)             \
    {                                                                                              \
        if (stages == 4)                                                                           \
            multiply<type, element_bytes, 4>(gemm);                                                \
        else                                                                                       \
            multiply<type, element_bytes, 2>(gemm);                                                \
    }

// A chip's binary has what its tensor cores do by mma.sync: Turing no bfloat16; fp8 sm_89, sm_120.
GEMM(half, nw_mma_half, 2)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GEMM(bfloat16, nw_mma_bfloat16, 2)
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
GEMM(float8, nw_mma_float8, 1)
#endif
