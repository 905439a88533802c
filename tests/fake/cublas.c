/* libcublas.so.13: the calls of kernels/cublas_api.h, for the products that it asks for. It takes
 * `cublas` times the tensor rate of the machine file. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "tests/fake/fake.h"

/* The program refuses libraries that have it, without an opt-in (base/library.h). */
FK_EXPORT const int nw_simulated_marker = 1;

/* Numbers of the public API. */
enum {
    OK = 0,
    NOT_INITIALIZED = 1,
    INVALID_VALUE = 7,
    NOT_SUPPORTED = 15,
    OP_N = 0,
    OP_T = 1,
    R_32F = 0,
    R_16F = 2,
    R_16BF = 14,
    R_8F_E4M3 = 28,
    COMPUTE_32F = 68,
    DESC_TRANSA = 3,
};

struct handle {
    struct CUstream_st *stream;
};

FK_EXPORT int cublasCreate_v2(struct handle **handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle && fk_context() ? OK : NOT_INITIALIZED;
}

FK_EXPORT int cublasDestroy_v2(struct handle *handle)
{
    free(handle);
    return OK;
}

FK_EXPORT int cublasSetStream_v2(struct handle *handle, struct CUstream_st *stream)
{
    handle->stream = stream;
    return OK;
}

FK_EXPORT int cublasGetVersion_v2(struct handle *handle, int *version)
{
    *version = 130100;
    return handle ? OK : NOT_INITIALIZED;
}

/* Column-major C (m × n) = Aᵀ · B, A and B with k rows: row-major Cᵀ = Bᵀ · A, of which ours are
 * the rows. */
static int push(struct CUstream_st *stream, int m, int n, int k, const void *a, const void *b,
                void *c, int type)
{
    const struct nw_gemm gemm = {.a = b,
                                 .b = a,
                                 .d = c,
                                 .m = n,
                                 .n = m,
                                 .k = k,
                                 .dtype = type == R_16F    ? NW_HALF
                                          : type == R_16BF ? NW_BFLOAT16
                                                           : NW_FLOAT8};
    return fk_gemm_push_cublas(stream, &gemm) == CU_OK ? OK : NOT_INITIALIZED;
}

FK_EXPORT int cublasGemmEx(struct handle *handle, int transa, int transb, int m, int n, int k,
                           const void *alpha, const void *a, int a_type, int lda, const void *b,
                           int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                           int compute, int algo)
{
    (void)algo;
    if (!handle || m < 1 || n < 1 || k < 1 || lda < k || ldb < k || ldc < m)
        return INVALID_VALUE;
    if (transa != OP_T || transb != OP_N || *(const float *)alpha != 1 ||
        *(const float *)beta != 0 || lda != k || ldb != k || ldc != m || compute != COMPUTE_32F ||
        c_type != R_32F || a_type != b_type || (a_type != R_16F && a_type != R_16BF))
        return NOT_SUPPORTED;
    return push(handle->stream, m, n, k, a, b, c, a_type);
}

/* cuBLASLt, whose product is the one with fp8. */
struct layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
};
struct desc {
    int compute, scale, transposes_a;
};
struct heuristic {
    uint64_t algo[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

FK_EXPORT int cublasLtCreate(void **handle)
{
    *handle = calloc(1, 1);
    return *handle ? OK : NOT_INITIALIZED;
}

FK_EXPORT int cublasLtDestroy(void *handle)
{
    free(handle);
    return OK;
}

FK_EXPORT int cublasLtMatmulDescCreate(struct desc **desc, int compute, int scale)
{
    *desc = calloc(1, sizeof **desc);
    if (*desc)
        **desc = (struct desc){.compute = compute, .scale = scale};
    return *desc ? OK : NOT_INITIALIZED;
}

FK_EXPORT int cublasLtMatmulDescDestroy(struct desc *desc)
{
    free(desc);
    return OK;
}

FK_EXPORT int cublasLtMatmulDescSetAttribute(struct desc *desc, int attribute, const void *value,
                                             size_t bytes)
{
    if (attribute != DESC_TRANSA || bytes != sizeof(int))
        return NOT_SUPPORTED;
    desc->transposes_a = *(const int *)value == OP_T;
    return OK;
}

FK_EXPORT int cublasLtMatrixLayoutCreate(struct layout **layout, int type, uint64_t rows,
                                         uint64_t columns, int64_t ld)
{
    *layout = calloc(1, sizeof **layout);
    if (*layout)
        **layout = (struct layout){.type = type, .rows = rows, .columns = columns, .ld = ld};
    return *layout ? OK : NOT_INITIALIZED;
}

FK_EXPORT int cublasLtMatrixLayoutDestroy(struct layout *layout)
{
    free(layout);
    return OK;
}

FK_EXPORT int cublasLtMatmulPreferenceCreate(void **preference)
{
    return cublasLtCreate(preference);
}

FK_EXPORT int cublasLtMatmulPreferenceDestroy(void *preference)
{
    return cublasLtDestroy(preference);
}

FK_EXPORT int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute,
                                                   const void *value, size_t bytes)
{
    return preference && value && attribute == 1 && bytes == sizeof(uint64_t) ? OK : NOT_SUPPORTED;
}

static bool fits(const struct desc *desc, const struct layout *a, const struct layout *b,
                 const struct layout *c, const struct layout *d)
{
    const struct CUctx_st *context = fk_context();
    return context && fk_machine()->gpus[fk_context_gpu(context)].capability >= 89 &&
           desc->compute == COMPUTE_32F && desc->scale == R_32F && desc->transposes_a &&
           a->type == R_8F_E4M3 && b->type == R_8F_E4M3 && c->type == R_32F && d->type == R_32F &&
           a->rows == b->rows && a->columns == d->rows && b->columns == d->columns &&
           a->ld == (int64_t)a->rows && b->ld == (int64_t)b->rows && d->ld == (int64_t)d->rows;
}

FK_EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, struct desc *desc, struct layout *a,
                                             struct layout *b, struct layout *c, struct layout *d,
                                             void *preference, int wanted,
                                             struct heuristic *results, int *count)
{
    if (!handle || !preference || wanted < 1)
        return INVALID_VALUE;
    *count = fits(desc, a, b, c, d);
    if (*count == 0)
        return NOT_SUPPORTED;
    results[0] = (struct heuristic){.state = OK};
    return OK;
}

FK_EXPORT int cublasLtMatmul(void *handle, struct desc *desc, const void *alpha, const void *a,
                             struct layout *a_layout, const void *b, struct layout *b_layout,
                             const void *beta, const void *c, struct layout *c_layout, void *d,
                             struct layout *d_layout, const void *algo, void *workspace,
                             size_t workspace_bytes, struct CUstream_st *stream)
{
    (void)c;
    (void)algo;
    (void)workspace;
    (void)workspace_bytes;
    if (!handle || !fits(desc, a_layout, b_layout, c_layout, d_layout) ||
        *(const float *)alpha != 1 || *(const float *)beta != 0)
        return NOT_SUPPORTED;
    return push(stream, (int)d_layout->rows, (int)d_layout->columns, (int)a_layout->rows, a, b, d,
                R_8F_E4M3);
}
