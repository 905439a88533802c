/* Private to kernels/: to gemm.cu. The tensor cores' instructions, of which a warp does one
 * together. Operands are seen as bytes: a step along k is 32 bytes (16 half, 16 bfloat16, 32 fp8),
 * and the layout over the lanes is the same for all types (PTX ISA, "Matrix fragments for
 * mma.m16n8k16" and "… m16n8k32"): lane 4·g + t has bytes 4·t … 4·t + 3 of the rows g.
 *
 * The tests compile gemm.cu for the CPU with another file of these
 * (tests/gpu/emulate/kernels/mma.cuh). */
#ifndef NW_KERNELS_MMA_CUH
#define NW_KERNELS_MMA_CUH

#include <stdint.h>

struct nw_mma_half {
};
struct nw_mma_bfloat16 {
}; // from compute capability 8.0 on
struct nw_mma_float8 {
}; // e4m3; 8.9 and 12.0 (others have it by other instructions)

// Four matrices of 8 rows of 16 bytes: lane 8·m + r says where row r of matrix m is, in shared
// memory, aligned to 16 bytes; matrix m comes into r[m].
__device__ inline void nw_load_matrices(uint32_t (&r)[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

// d (16 × 8) += a (16 rows of 32 bytes) · b (8 rows of 32 bytes)ᵀ. a: rows 0-7 and 8-15 of the
// first 16 bytes, then of the last 16; b: first, last; d: columns 2·t, 2·t + 1 of rows g, g + 8.
#define NW_MMA(shape, type)                                                                        \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "                   \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

__device__ inline void nw_multiply_add(nw_mma_half, float (&d)[4], const uint32_t (&a)[4],
                                       const uint32_t *b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 // Turing: half as long
#define NW_MMA_K8(a0, a1, b0)                                                                      \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "                               \
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                             \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(a0), "r"(a1), "r"(b0))
    NW_MMA_K8(a[0], a[1], b[0]);
    NW_MMA_K8(a[2], a[3], b[1]);
#undef NW_MMA_K8
#else
    NW_MMA("m16n8k16", "f16");
#endif
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__device__ inline void nw_multiply_add(nw_mma_bfloat16, float (&d)[4], const uint32_t (&a)[4],
                                       const uint32_t *b)
{
    NW_MMA("m16n8k16", "bf16");
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
__device__ inline void nw_multiply_add(nw_mma_float8, float (&d)[4], const uint32_t (&a)[4],
                                       const uint32_t *b)
{
    NW_MMA("m16n8k32", "e4m3");
}
#endif
#undef NW_MMA

#endif
