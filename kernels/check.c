#include "kernels/backends.h"

nw_rc nw_check_reduce(const struct nw_reduce_inputs *inputs, nw_dtype dtype)
{
    if (inputs->count < 1 || inputs->count > NW_REDUCE_MAX_INPUTS)
        return nw_fail(NW_EUSAGE, "a reduction of %d inputs; accepted: 1 to %d", inputs->count,
                       NW_REDUCE_MAX_INPUTS);
    if (dtype != NW_FLOAT && dtype != NW_HALF && dtype != NW_BFLOAT16 && dtype != NW_INT32)
        return nw_fail(NW_EUSAGE,
                       "a reduction of element type %d; accepted: float, half, bfloat16, int32",
                       (int)dtype);
    return NW_OK;
}

nw_rc nw_check_pattern(const struct nw_pattern *pattern)
{
    const int bytes = pattern->element_bytes;
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
        return nw_fail(NW_EUSAGE, "pattern: elements of %d bytes; accepted: 1, 2, 4, 8", bytes);
    if (!pattern->table)
        return nw_fail(NW_EUSAGE, "pattern: the table is missing");
    return NW_OK;
}

nw_rc nw_check_gemm(const struct nw_gemm *gemm)
{
    if (gemm->dtype != NW_HALF && gemm->dtype != NW_BFLOAT16 && gemm->dtype != NW_FLOAT8)
        return nw_fail(NW_EUSAGE,
                       "matrix product of element type %d; accepted: half, bfloat16, fp8 (e4m3)",
                       gemm->dtype);
    const int tile_k = NW_GEMM_TILE_K_BYTES / (int)nw_gemm_element_bytes(gemm->dtype);
    if (gemm->m <= 0 || gemm->n <= 0 || gemm->k <= 0 || gemm->m % NW_GEMM_TILE_M ||
        gemm->n % NW_GEMM_TILE_N || gemm->k % tile_k)
        return nw_fail(NW_EUSAGE,
                       "matrix product of %d × %d × %d; accepted: multiples of %d × %d × %d",
                       gemm->m, gemm->n, gemm->k, NW_GEMM_TILE_M, NW_GEMM_TILE_N, tile_k);
    /* 16 bytes at a time for the loads */
    if (((uintptr_t)gemm->a | (uintptr_t)gemm->b | (uintptr_t)gemm->d) % 16)
        return nw_fail(NW_EUSAGE, "matrix product: operands must be aligned to 16 bytes");
    return NW_OK;
}
