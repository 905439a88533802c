#include "kernels/kernels.h"

#include "kernels/float8.h"
#include "kernels/half.h"

const char *nw_gemm_dtype_name(int32_t dtype)
{
    return dtype == NW_HALF ? "half" : dtype == NW_BFLOAT16 ? "bfloat16" : "f8e4m3";
}

uint64_t nw_gemm_element_bytes(int32_t dtype)
{
    return dtype == NW_FLOAT8 ? 1 : 2;
}

static float element(const struct nw_gemm *gemm, const void *matrix, int64_t i)
{
    if (gemm->dtype == NW_FLOAT8)
        return nw_float8_to_float(((const uint8_t *)matrix)[i]);

    const uint16_t bits = ((const uint16_t *)matrix)[i];
    return gemm->dtype == NW_HALF ? nw_half_to_float(bits) : nw_bfloat16_to_float(bits);
}

/* Products of two 11-bit significands are exact in float; sums are rounded in the order of k, where
 * tensor cores have an order of their own: equal bits only where all partial sums are exact. */
void nw_gemm_host(const struct nw_gemm *gemm)
{
    float *d = gemm->d;
    for (int64_t i = 0; i < gemm->m; i++)
        for (int64_t j = 0; j < gemm->n; j++) {
            float sum = 0;
            for (int64_t k = 0; k < gemm->k; k++)
                sum += element(gemm, gemm->a, i * gemm->k + k) *
                       element(gemm, gemm->b, j * gemm->k + k);
            d[i * gemm->n + j] = sum;
        }
}
