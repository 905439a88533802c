#include "kernels/dev_cuda.h"

#include <stdio.h>
#include <string.h>

#include "kernels/fatbin.h"
#include "kernels/pattern.h"

static const struct {
    const char *file, *name;
    unsigned int threads;
} kernels[KERNEL_COUNT] = {
#define X(id, file, name, threads) [id] = {file, name, threads},
    NW_CUDA_KERNEL_MAP(X)
#undef X
};

static bool is_gemm(cuda_kernel id)
{
    return id == KERNEL_GEMM_HALF || id == KERNEL_GEMM_BFLOAT16 || id == KERNEL_GEMM_FLOAT8;
}

static nw_rc load_module(struct cuda_dev *dev, size_t which)
{
    char log[512] = "";
    unsigned int options[] = {NW_CU_JIT_ERROR_LOG_BUFFER, NW_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const nw_cu_result code = dev->cu->cuModuleLoadDataEx(
        &dev->modules[which], nw_fatbins[which].image, 2, options, values);
    if (code == NW_CU_SUCCESS)
        return NW_OK;
    log[sizeof log - 1] = '\0';
    log[strcspn(log, "\n")] = '\0';
    const int driver = dev->cu->driver_version;
    nw_cuda_fail(dev->cu, code,
                 "gpu %d (%s, compute capability %d.%d) cannot load the program's kernels, made by "
                 "CUDA %s for %s; its driver is of CUDA %d.%d%s%s",
                 dev->base.index, dev->base.name, dev->base.capability / 10,
                 dev->base.capability % 10, nw_fatbin_compiler, nw_fatbin_chips, driver / 1000,
                 driver % 1000 / 10, log[0] ? ": " : "", log);
    const bool unfit = code == NW_CU_NO_BINARY_FOR_GPU || code == NW_CU_INVALID_PTX ||
                       code == NW_CU_UNSUPPORTED_PTX_VERSION || code == NW_CU_INVALID_IMAGE;
    return unfit ? NW_ENODEV : NW_ELIB;
}

/* Shared memory beyond 48 KiB must be asked for. Four stages where they fit (sm_80 and later),
 * else two (sm_75). */
static nw_rc prepare_gemm(struct cuda_dev *dev, struct CUfunc_st *function, bool *fits_out)
{
    int limit = 0;
    nw_cu_result code = dev->cu->cuDeviceGetAttribute(
        &limit, NW_CU_ATTRIBUTE_SHARED_BYTES_PER_BLOCK_OPTIN, dev->device);
    dev->gemm_stages = limit >= 4 * NW_GEMM_STAGE_BYTES ? 4 : 2;
    const int bytes = dev->gemm_stages * NW_GEMM_STAGE_BYTES;
    *fits_out = limit >= bytes;
    if (code == NW_CU_SUCCESS && *fits_out)
        code =
            dev->cu->cuFuncSetAttribute(function, NW_CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, bytes);
    if (code != NW_CU_SUCCESS)
        return nw_cuda_fail(dev->cu, code, "gpu %d: cannot prepare the matrix product",
                            dev->base.index);
    return NW_OK;
}

static nw_rc load_kernel(struct cuda_dev *dev, cuda_kernel id, struct CUmod_st *module)
{
    struct CUfunc_st *function;
    nw_cu_result code = dev->cu->cuModuleGetFunction(&function, module, kernels[id].name);
    /* A chip's binary has only the products that its tensor cores do (gemm.cu). */
    if (code != NW_CU_SUCCESS && is_gemm(id))
        return NW_OK;
    bool fits = true;
    if (code == NW_CU_SUCCESS && is_gemm(id))
        NW_TRY(prepare_gemm(dev, function, &fits));
    if (!fits)
        return NW_OK;

    /* Asking for an attribute loads the code, also where loading is lazy. */
    int local_bytes = 0, blocks = 0;
    if (code == NW_CU_SUCCESS)
        code = dev->cu->cuFuncGetAttribute(&local_bytes, NW_CU_FUNCTION_LOCAL_BYTES, function);
    const size_t shared = is_gemm(id) ? (size_t)dev->gemm_stages * NW_GEMM_STAGE_BYTES : 0;
    if (code == NW_CU_SUCCESS)
        code = dev->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, function, (int)kernels[id].threads, shared);
    if (code != NW_CU_SUCCESS)
        return nw_cuda_fail(dev->cu, code, "gpu %d: cannot load the kernel %s", dev->base.index,
                            kernels[id].name);
    dev->kernels[id].function = function;
    dev->kernels[id].full_grid = (unsigned int)((blocks > 0 ? blocks : 1) * dev->base.sm_count);
    return NW_OK;
}

nw_rc nw_cuda_kernels_load(struct cuda_dev *dev)
{
    for (size_t m = 0; m < nw_fatbin_count && m < NW_CUDA_MAX_MODULES; m++) {
        NW_TRY(load_module(dev, m));
        for (cuda_kernel id = 0; id < KERNEL_COUNT; id++)
            if (strcmp(kernels[id].file, nw_fatbins[m].name) == 0)
                NW_TRY(load_kernel(dev, id, dev->modules[m]));
    }
    return NW_OK;
}

void nw_cuda_kernels_unload(struct cuda_dev *dev)
{
    for (size_t m = 0; m < NW_CUDA_MAX_MODULES; m++)
        if (dev->modules[m])
            dev->cu->cuModuleUnload(dev->modules[m]);
}

static nw_rc launch(struct nw_stream *stream, cuda_kernel id, unsigned int blocks,
                    unsigned int shared_bytes, void **arguments)
{
    struct cuda_dev *dev = stream->dev;
    if (!dev->kernels[id].function)
        return nw_fail(NW_ENOTSUP, "gpu %d (%s, compute capability %d.%d) cannot run %s",
                       dev->base.index, dev->base.name, dev->base.capability / 10,
                       dev->base.capability % 10, kernels[id].name);
    NW_TRY(nw_cuda_enter(dev));
    const nw_cu_result code =
        dev->cu->cuLaunchKernel(dev->kernels[id].function, blocks, 1, 1, kernels[id].threads, 1, 1,
                                shared_bytes, stream->handle, arguments, NULL);
    if (code != NW_CU_SUCCESS)
        return nw_cuda_fail(dev->cu, code, "gpu %d: cannot launch %s", dev->base.index,
                            kernels[id].name);
    return NW_OK;
}

/* Enough blocks for the work, no more than fill the device. */
static unsigned int grid_for(const struct nw_stream *stream, cuda_kernel id, uint64_t work,
                             uint64_t work_per_block)
{
    const uint64_t blocks = work / work_per_block + (work % work_per_block != 0);
    const uint64_t full = stream->dev->kernels[id].full_grid;
    return blocks == 0 ? 1 : (unsigned int)(blocks < full ? blocks : full);
}

static unsigned int grid_for_bytes(const struct nw_stream *stream, cuda_kernel id, uint64_t bytes)
{
    return grid_for(stream, id, bytes, 16 * (uint64_t)kernels[id].threads);
}

nw_rc nw_cuda_gate_hold(struct nw_stream *stream, double timeout_ns)
{
    uint32_t ticket = ++stream->held;
    uint64_t timeout = (uint64_t)timeout_ns;
    stream->held_timeout_ns = timeout_ns;
    void *arguments[] = {&stream->gate_address, &ticket, &timeout};
    return launch(stream, KERNEL_GATE, 1, 0, arguments);
}

nw_rc nw_cuda_kernel_copy(struct nw_stream *stream, void *to, const void *from, uint64_t bytes)
{
    void *arguments[] = {&to, &from, &bytes};
    return launch(stream, KERNEL_COPY, grid_for_bytes(stream, KERNEL_COPY, bytes), 0, arguments);
}

nw_rc nw_cuda_kernel_read(struct nw_stream *stream, const void *from, uint64_t bytes,
                          uint32_t *fold)
{
    void *arguments[] = {&from, &bytes, &fold};
    return launch(stream, KERNEL_READ, grid_for_bytes(stream, KERNEL_READ, bytes), 0, arguments);
}

nw_rc nw_cuda_kernel_write(struct nw_stream *stream, void *to, uint64_t bytes, uint32_t value)
{
    void *arguments[] = {&to, &bytes, &value};
    return launch(stream, KERNEL_WRITE, grid_for_bytes(stream, KERNEL_WRITE, bytes), 0, arguments);
}

nw_rc nw_cuda_reduce(struct nw_stream *stream, void *to, const struct nw_reduce_inputs *inputs,
                     uint64_t count, nw_dtype dtype)
{
    NW_TRY(nw_check_reduce(inputs, dtype));
    const cuda_kernel id = dtype == NW_FLOAT   ? KERNEL_REDUCE_FLOAT
                           : dtype == NW_INT32 ? KERNEL_REDUCE_INT32
                           : dtype == NW_HALF  ? KERNEL_REDUCE_HALF
                                               : KERNEL_REDUCE_BFLOAT16;
    struct nw_reduce_inputs copy = *inputs;
    void *arguments[] = {&to, &copy, &count};
    return launch(stream, id, grid_for_bytes(stream, id, count * nw_dtype_bytes(dtype)), 0,
                  arguments);
}

/* 1, 2, 4, 8 bytes: the first, second … of four kernels. */
static cuda_kernel for_width(cuda_kernel first, int32_t element_bytes)
{
    return first + (cuda_kernel)__builtin_ctz((unsigned int)element_bytes);
}

nw_rc nw_cuda_fill(struct nw_stream *stream, void *to, uint64_t count,
                   const struct nw_pattern *pattern)
{
    NW_TRY(nw_check_pattern(pattern));
    const cuda_kernel id = for_width(KERNEL_FILL_1, pattern->element_bytes);
    struct nw_pattern copy = *pattern;
    void *arguments[] = {&to, &count, &copy};
    return launch(stream, id, grid_for(stream, id, count + NW_PATTERN_BLOCK, NW_PATTERN_BLOCK), 0,
                  arguments);
}

nw_rc nw_cuda_verify(struct nw_stream *stream, const void *buffer, uint64_t count,
                     const struct nw_pattern *pattern, struct nw_verdict *verdict)
{
    NW_TRY(nw_check_pattern(pattern));
    const cuda_kernel id = for_width(KERNEL_VERIFY_1, pattern->element_bytes);
    struct nw_pattern copy = *pattern;
    void *arguments[] = {&buffer, &count, &copy, &verdict};
    NW_TRY(launch(stream, id, grid_for(stream, id, count + NW_PATTERN_BLOCK, NW_PATTERN_BLOCK), 0,
                  arguments));
    void *explain[] = {&buffer, &copy, &verdict};
    return launch(stream, for_width(KERNEL_EXPLAIN_1, pattern->element_bytes), 1, 0, explain);
}

nw_rc nw_cuda_gemm(struct nw_stream *stream, const struct nw_gemm *gemm)
{
    NW_TRY(nw_check_gemm(gemm));
    const cuda_kernel id = gemm->dtype == NW_HALF       ? KERNEL_GEMM_HALF
                           : gemm->dtype == NW_BFLOAT16 ? KERNEL_GEMM_BFLOAT16
                                                        : KERNEL_GEMM_FLOAT8;
    const uint64_t tiles =
        (uint64_t)(gemm->m / NW_GEMM_TILE_M) * (uint64_t)(gemm->n / NW_GEMM_TILE_N);
    if (tiles > INT32_MAX)
        return nw_fail(NW_EUSAGE, "matrix product of %d × %d: too large for one launch", gemm->m,
                       gemm->n);
    struct nw_gemm copy = *gemm;
    int stages = stream->dev->gemm_stages;
    void *arguments[] = {&copy, &stages};
    return launch(stream, id, (unsigned int)tiles, (unsigned int)(stages * NW_GEMM_STAGE_BYTES),
                  arguments);
}
