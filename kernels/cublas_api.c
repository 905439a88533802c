#include "kernels/cublas_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/library.h"

/* What NVIDIA recommends for Hopper; the choice of a kernel is poorer without. */
#define WORKSPACE_BYTES (32u << 20)

struct nw_cublas {
    const struct nw_cublas_api *api;
    struct nw_dev *dev;
    struct CUstream_st *stream;
    struct cublasContext *handle;
    char version[32];
    /* cuBLASLt, from the first fp8 product on. */
    struct cublasLtContext *lt;
    void *workspace;
    struct nw_gemm planned; /* m, n, k of the plan below; m 0: none */
    struct nw_cublas_lt_desc *desc;
    struct nw_cublas_lt_layout *a, *b, *d;
    struct nw_cublas_lt_heuristic choice;
};

/* One library per process, never closed; written under pthread_once and never again. */
static pthread_once_t cublas_once = PTHREAD_ONCE_INIT;
static struct nw_cublas_api cublas_api;
static struct nw_err cublas_error;
static bool cublas_simulated;

static const struct nw_library_symbol cublas_symbols[] = {
#define X(name, arguments) {offsetof(struct nw_cublas_api, name), #name, NULL, true},
    NW_CUBLAS_API_MAP(X)
#undef X
#define X(name, arguments) {offsetof(struct nw_cublas_api, name), #name, NULL, false},
        NW_CUBLAS_LT_API_MAP(X)
#undef X
};

static void *load(const char **file_out)
{
    static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    const char *given = getenv("NW_CUBLAS_LIBRARY");
    void *library = NULL;
    *file_out = given ? given : files[0];
    if (given)
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !library && i < sizeof files / sizeof *files; i++) {
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            *file_out = files[i];
    }
    return library;
}

static nw_rc open_library(void)
{
    const char *file;
    void *library = load(&file);
    if (!library)
        return nw_library_missing(file, "cuBLAS", dlerror());
    NW_TRY(nw_library_symbols(library, file, cublas_symbols,
                              sizeof cublas_symbols / sizeof *cublas_symbols, &cublas_api));
    cublas_simulated = dlsym(library, NW_SIMULATED_MARKER) != NULL;
    return cublas_simulated ? nw_library_simulated_allowed(file) : NW_OK;
}

static void open_once(void)
{
    if (open_library() != NW_OK) {
        cublas_error = *nw_last_error();
        cublas_error.rc = NW_ENODEV;
    }
}

static nw_rc fail(const struct nw_cublas *cublas, int code, const char *what)
{
    return nw_fail_lib(code == NW_CUBLAS_NOT_SUPPORTED ? NW_ENOTSUP : NW_ELIB, "cublas", code,
                       "gpu %d (%s): cuBLAS cannot %s (cublasStatus %d)", cublas->dev->index,
                       cublas->dev->name, what, code);
}

static nw_rc open_handle(struct nw_cublas *cublas, struct nw_stream *stream)
{
    void *handle;
    int version = 0;
    NW_TRY(cublas->dev->ops->native(stream, &handle));
    cublas->stream = handle;
    int code = cublas->api->cublasCreate_v2(&cublas->handle);
    if (code != 0)
        return fail(cublas, code, "start");
    code = cublas->api->cublasSetStream_v2(cublas->handle, cublas->stream);
    if (code != 0)
        return fail(cublas, code, "use a stream");
    cublas->api->cublasGetVersion_v2(cublas->handle, &version);
    /* 130100: 13.1.0; up to 11: 11111: 11.11.1 */
    const int major = version < 100000 ? 1000 : 10000;
    snprintf(cublas->version, sizeof cublas->version, "cuBLAS %d.%d.%d", version / major,
             version % major / 100, version % 100);
    return NW_OK;
}

nw_rc nw_cublas_open(struct nw_dev *dev, struct nw_stream *stream, struct nw_cublas **cublas_out)
{
    if (!dev->ops->native)
        return nw_fail(NW_ENODEV, "cuBLAS is for NVIDIA GPUs, this is %s", dev->ops->title);
    pthread_once(&cublas_once, open_once);
    if (cublas_error.rc != NW_OK)
        return nw_fail_at(cublas_error.rc, cublas_error.lib, cublas_error.lib_code,
                          cublas_error.where, "%s", cublas_error.text);
    if (cublas_simulated != dev->simulated)
        return nw_fail(NW_ENODEV, "of the NVIDIA driver and cuBLAS one is a simulation");
    struct nw_cublas *cublas = calloc(1, sizeof *cublas);
    if (!cublas)
        return nw_fail(NW_ENOMEM, "no memory for cuBLAS");
    cublas->api = &cublas_api;
    cublas->dev = dev;
    const nw_rc rc = open_handle(cublas, stream);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();
        nw_cublas_close(cublas);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *cublas_out = cublas;
    return NW_OK;
}

static void drop_plan(struct nw_cublas *cublas)
{
    const struct nw_cublas_api *api = cublas->api;
    struct nw_cublas_lt_layout *const layouts[] = {cublas->a, cublas->b, cublas->d};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i])
            api->cublasLtMatrixLayoutDestroy(layouts[i]);
    if (cublas->desc)
        api->cublasLtMatmulDescDestroy(cublas->desc);
    cublas->a = cublas->b = cublas->d = NULL;
    cublas->desc = NULL;
    cublas->planned.m = 0;
}

void nw_cublas_close(struct nw_cublas *cublas)
{
    if (!cublas)
        return;
    drop_plan(cublas);
    if (cublas->lt)
        cublas->api->cublasLtDestroy(cublas->lt);
    if (cublas->workspace)
        cublas->dev->ops->free(cublas->dev, NW_SPACE_DEVICE, cublas->workspace);
    if (cublas->handle)
        cublas->api->cublasDestroy_v2(cublas->handle);
    free(cublas);
}

const char *nw_cublas_version(const struct nw_cublas *cublas)
{
    return cublas->version;
}

/* Ours are rows, cuBLAS' are columns: its D (n × m) = Bᵀ · A, where B and A have k rows. */

static nw_rc gemm_16bit(struct nw_cublas *cublas, const struct nw_gemm *gemm)
{
    const float one = 1, zero = 0;
    const int type = gemm->dtype == NW_HALF ? NW_CUBLAS_R_16F : NW_CUBLAS_R_16BF;
    const int code = cublas->api->cublasGemmEx(
        cublas->handle, NW_CUBLAS_OP_T, NW_CUBLAS_OP_N, gemm->n, gemm->m, gemm->k, &one, gemm->b,
        type, gemm->k, gemm->a, type, gemm->k, &zero, gemm->d, NW_CUBLAS_R_32F, gemm->n,
        NW_CUBLAS_COMPUTE_32F, NW_CUBLAS_GEMM_DEFAULT);
    return code == 0 ? NW_OK : fail(cublas, code, "multiply matrices");
}

static int choose(struct nw_cublas *cublas)
{
    const struct nw_cublas_api *api = cublas->api;
    const uint64_t workspace = WORKSPACE_BYTES;
    struct nw_cublas_lt_preference *preference = NULL;
    int count = 0, code = api->cublasLtMatmulPreferenceCreate(&preference);
    if (code == 0)
        code = api->cublasLtMatmulPreferenceSetAttribute(
            preference, NW_CUBLAS_LT_PREF_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (code == 0)
        code = api->cublasLtMatmulAlgoGetHeuristic(cublas->lt, cublas->desc, cublas->b, cublas->a,
                                                   cublas->d, cublas->d, preference, 1,
                                                   &cublas->choice, &count);
    if (preference)
        api->cublasLtMatmulPreferenceDestroy(preference);
    return code == 0 && count == 0 ? NW_CUBLAS_NOT_SUPPORTED : code;
}

static int make_plan(struct nw_cublas *cublas, const struct nw_gemm *gemm)
{
    const struct nw_cublas_api *api = cublas->api;
    const uint64_t m = (uint64_t)gemm->m, n = (uint64_t)gemm->n, k = (uint64_t)gemm->k;
    const int transpose = NW_CUBLAS_OP_T;
    int code = api->cublasLtMatmulDescCreate(&cublas->desc, NW_CUBLAS_COMPUTE_32F, NW_CUBLAS_R_32F);
    if (code == 0)
        code = api->cublasLtMatmulDescSetAttribute(cublas->desc, NW_CUBLAS_LT_DESC_TRANSA,
                                                   &transpose, sizeof transpose);
    if (code == 0)
        code = api->cublasLtMatrixLayoutCreate(&cublas->b, NW_CUBLAS_R_8F_E4M3, k, n, gemm->k);
    if (code == 0)
        code = api->cublasLtMatrixLayoutCreate(&cublas->a, NW_CUBLAS_R_8F_E4M3, k, m, gemm->k);
    if (code == 0)
        code = api->cublasLtMatrixLayoutCreate(&cublas->d, NW_CUBLAS_R_32F, n, m, gemm->n);
    return code == 0 ? choose(cublas) : code;
}

static nw_rc plan(struct nw_cublas *cublas, const struct nw_gemm *gemm)
{
    const struct nw_gemm *have = &cublas->planned;
    if (have->m == gemm->m && have->n == gemm->n && have->k == gemm->k)
        return NW_OK;
    if (!cublas->api->cublasLtMatmul || !cublas->api->cublasLtMatmulAlgoGetHeuristic)
        return nw_fail(NW_ENOTSUP, "this cuBLAS has no cuBLASLt, which fp8 needs");
    const int started = cublas->lt ? 0 : cublas->api->cublasLtCreate(&cublas->lt);
    if (started != 0)
        return fail(cublas, started, "start cuBLASLt");
    if (!cublas->workspace)
        NW_TRY(cublas->dev->ops->alloc(cublas->dev, NW_SPACE_DEVICE, WORKSPACE_BYTES,
                                       &cublas->workspace));
    drop_plan(cublas);
    const int code = make_plan(cublas, gemm);
    if (code != 0) {
        drop_plan(cublas);
        return fail(cublas, code, "multiply fp8 matrices");
    }
    cublas->planned = *gemm;
    return NW_OK;
}

static nw_rc gemm_8bit(struct nw_cublas *cublas, const struct nw_gemm *gemm)
{
    const float one = 1, zero = 0;
    NW_TRY(plan(cublas, gemm));
    const int code = cublas->api->cublasLtMatmul(
        cublas->lt, cublas->desc, &one, gemm->b, cublas->b, gemm->a, cublas->a, &zero, gemm->d,
        cublas->d, gemm->d, cublas->d, cublas->choice.algo, cublas->workspace, WORKSPACE_BYTES,
        cublas->stream);
    return code == 0 ? NW_OK : fail(cublas, code, "multiply fp8 matrices");
}

nw_rc nw_cublas_gemm(struct nw_cublas *cublas, const struct nw_gemm *gemm)
{
    return gemm->dtype == NW_FLOAT8 ? gemm_8bit(cublas, gemm) : gemm_16bit(cublas, gemm);
}
