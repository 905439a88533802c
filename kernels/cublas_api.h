/* Public. cuBLAS as the control of our own matrix product, opened at run time (libcublas.so.13, .12
 * or .11, or the file that NW_CUBLAS_LIBRARY names) with our own declarations of the calls used.
 * fp8 goes through cuBLASLt, which libcublas brings along.
 *
 * Belongs to whoever opened it; close it before its stream. nw_cublas_close accepts NULL.
 *
 *     struct nw_cublas *cublas;
 *     if (nw_cublas_open(dev, stream, &cublas) == NW_ENODEV) ...  // the sentence says what is
 * missing NW_TRY(nw_cublas_gemm(cublas, &gemm));                      // queued on the stream
 */
#ifndef NW_KERNELS_CUBLAS_API_H
#define NW_KERNELS_CUBLAS_API_H

#include "kernels/dev.h"

/* The same types as cublas_api.h's and cublasLt.h's handles; enumerations are ints. */
struct cublasContext;
struct cublasLtContext;
struct CUstream_st;
struct nw_cublas_lt_desc;       /* cublasLtMatmulDescOpaque_t */
struct nw_cublas_lt_layout;     /* cublasLtMatrixLayoutOpaque_t */
struct nw_cublas_lt_preference; /* cublasLtMatmulPreferenceOpaque_t */
struct nw_cublas_lt_heuristic { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algo[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

/* X(member and symbol, arguments): of libcublas */
#define NW_CUBLAS_API_MAP(X)                                                                       \
    X(cublasCreate_v2, (struct cublasContext * *handle))                                           \
    X(cublasDestroy_v2, (struct cublasContext * handle))                                           \
    X(cublasGetVersion_v2, (struct cublasContext * handle, int *version))                          \
    X(cublasSetStream_v2, (struct cublasContext * handle, struct CUstream_st * stream))            \
    X(cublasGemmEx,                                                                                \
      (struct cublasContext * handle, int transa, int transb, int m, int n, int k,                 \
       const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb,  \
       const void *beta, void *c, int c_type, int ldc, int compute_type, int algo))
/* The same of libcublasLt */
#define NW_CUBLAS_LT_API_MAP(X)                                                                    \
    X(cublasLtCreate, (struct cublasLtContext * *handle))                                          \
    X(cublasLtDestroy, (struct cublasLtContext * handle))                                          \
    X(cublasLtMatmulDescCreate,                                                                    \
      (struct nw_cublas_lt_desc * *desc, int compute_type, int scale_type))                        \
    X(cublasLtMatmulDescDestroy, (struct nw_cublas_lt_desc * desc))                                \
    X(cublasLtMatmulDescSetAttribute,                                                              \
      (struct nw_cublas_lt_desc * desc, int attribute, const void *value, size_t bytes))           \
    X(cublasLtMatrixLayoutCreate, (struct nw_cublas_lt_layout * *layout, int type, uint64_t rows,  \
                                   uint64_t columns, int64_t ld))                                  \
    X(cublasLtMatrixLayoutDestroy, (struct nw_cublas_lt_layout * layout))                          \
    X(cublasLtMatmulPreferenceCreate, (struct nw_cublas_lt_preference * *preference))              \
    X(cublasLtMatmulPreferenceDestroy, (struct nw_cublas_lt_preference * preference))              \
    X(cublasLtMatmulPreferenceSetAttribute, (struct nw_cublas_lt_preference * preference,          \
                                             int attribute, const void *value, size_t bytes))      \
    X(cublasLtMatmulAlgoGetHeuristic,                                                              \
      (struct cublasLtContext * handle, struct nw_cublas_lt_desc * desc,                           \
       struct nw_cublas_lt_layout * a, struct nw_cublas_lt_layout * b,                             \
       struct nw_cublas_lt_layout * c, struct nw_cublas_lt_layout * d,                             \
       struct nw_cublas_lt_preference * preference, int wanted,                                    \
       struct nw_cublas_lt_heuristic *results, int *count))                                        \
    X(cublasLtMatmul,                                                                              \
      (struct cublasLtContext * handle, struct nw_cublas_lt_desc * desc, const void *alpha,        \
       const void *a, struct nw_cublas_lt_layout *a_layout, const void *b,                         \
       struct nw_cublas_lt_layout *b_layout, const void *beta, const void *c,                      \
       struct nw_cublas_lt_layout *c_layout, void *d, struct nw_cublas_lt_layout *d_layout,        \
       const void *algo, void *workspace, size_t workspace_bytes, struct CUstream_st *stream))

struct nw_cublas_api {
#define X(name, arguments) int(*name) arguments;
    NW_CUBLAS_API_MAP(X)
    NW_CUBLAS_LT_API_MAP(X) /* NULL: not in this library */
#undef X
};

/* The headers' numbers, of those that we use (facts of the public API). */
enum {
    NW_CUBLAS_OP_N = 0,
    NW_CUBLAS_OP_T = 1,
    NW_CUBLAS_R_32F = 0, /* cudaDataType */
    NW_CUBLAS_R_16F = 2,
    NW_CUBLAS_R_16BF = 14,
    NW_CUBLAS_R_8F_E4M3 = 28,
    NW_CUBLAS_COMPUTE_32F = 68,
    NW_CUBLAS_GEMM_DEFAULT = -1,
    NW_CUBLAS_NOT_SUPPORTED = 15,
    NW_CUBLAS_LT_DESC_TRANSA = 3,
    NW_CUBLAS_LT_PREF_WORKSPACE_BYTES = 1,
};

struct nw_cublas;

/* NW_ENODEV: no such library, or one that does not belong to the device (a double of one of them).
 */
nw_rc nw_cublas_open(struct nw_dev *dev, struct nw_stream *stream, struct nw_cublas **cublas_out);
void nw_cublas_close(struct nw_cublas *cublas);
const char *nw_cublas_version(const struct nw_cublas *cublas); /* "cuBLAS 13.1.0" */
/* NW_ENOTSUP: this chip or this cuBLAS has no such product. */
nw_rc nw_cublas_gemm(struct nw_cublas *cublas, const struct nw_gemm *gemm);

#endif
