// Compiled where the toolkit's headers are: our numbers of cuBLAS are NVIDIA's, and each of our
// prototypes has as many arguments as NVIDIA's, of the same sizes, pointers where it has pointers
// (enumerations are ints in ours, and opaque structs have names of ours). A difference does not
// compile.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <type_traits>

#undef cublasCreate // macros for the names that we use
#include "kernels/cublas_api.h"

template <typename R, typename... A, typename S, typename... B>
constexpr bool same(R (*)(A...), S (*)(B...))
{
    if constexpr (sizeof...(A) != sizeof...(B))
        return false;
    else
        return sizeof(R) == sizeof(S) &&
               ((sizeof(A) == sizeof(B) && std::is_pointer<A>() == std::is_pointer<B>()) && ...);
}

// cublasGemmEx has an overload in C++: the one of the C library.
using gemm_ex = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                   int, const void *, const void *, cudaDataType, int, const void *,
                                   cudaDataType, int, const void *, void *, cudaDataType, int,
                                   cublasComputeType_t, cublasGemmAlgo_t);
using declared = decltype(static_cast<gemm_ex>(cublasGemmEx)); // there is one like this
static_assert(same(static_cast<gemm_ex>(nullptr),
                   static_cast<decltype(nw_cublas_api::cublasGemmEx)>(nullptr)),
              "cublasGemmEx is not what NVIDIA declares");
#define SAME(name)                                                                                 \
    static_assert(same(static_cast<decltype(&name)>(nullptr),                                      \
                       static_cast<decltype(nw_cublas_api::name)>(nullptr)),                       \
                  #name " is not what NVIDIA declares");
SAME(cublasCreate_v2)
SAME(cublasDestroy_v2)
SAME(cublasGetVersion_v2)
SAME(cublasSetStream_v2)
#define X(name, arguments) SAME(name)
NW_CUBLAS_LT_API_MAP(X)
#undef X

#define EQUAL(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours)
EQUAL(NW_CUBLAS_OP_N, CUBLAS_OP_N);
EQUAL(NW_CUBLAS_OP_T, CUBLAS_OP_T);
EQUAL(NW_CUBLAS_R_32F, CUDA_R_32F);
EQUAL(NW_CUBLAS_R_16F, CUDA_R_16F);
EQUAL(NW_CUBLAS_R_16BF, CUDA_R_16BF);
EQUAL(NW_CUBLAS_R_8F_E4M3, CUDA_R_8F_E4M3);
EQUAL(NW_CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F);
EQUAL(NW_CUBLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT);
EQUAL(NW_CUBLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
EQUAL(NW_CUBLAS_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
EQUAL(NW_CUBLAS_LT_PREF_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
EQUAL(sizeof(nw_cublas_lt_heuristic), sizeof(cublasLtMatmulHeuristicResult_t));
EQUAL(offsetof(nw_cublas_lt_heuristic, algo), offsetof(cublasLtMatmulHeuristicResult_t, algo));
EQUAL(offsetof(nw_cublas_lt_heuristic, state), offsetof(cublasLtMatmulHeuristicResult_t, state));

int main()
{
    return 0;
}
