/* Modules and launches: a kernel is looked up by its name among those that have a C body here; its
 * machine code is not looked at. */
#include <string.h>
#include <time.h>

#include "kernels/kernels.h"
#include "tests/fake/fake.h"

/* The first word of what nvcc -fatbin makes. */
#define FATBIN_MAGIC 0xba55ed50u

struct CUfunc_st; /* a struct fk_kernel */
struct CUmod_st {
    int unused;
};
static struct CUmod_st module;

FK_EXPORT fk_result cuModuleLoadDataEx(struct CUmod_st **module_out, const void *image,
                                       unsigned option_count, unsigned *options, void **values)
{
    unsigned magic;
    (void)option_count;
    (void)options;
    (void)values;
    if (!fk_context())
        return CU_INVALID_CONTEXT;
    if (!image)
        return CU_INVALID_VALUE;
    memcpy(&magic, image, sizeof magic);
    if (magic != FATBIN_MAGIC)
        return CU_INVALID_IMAGE;
    *module_out = &module;
    return CU_OK;
}

FK_EXPORT fk_result cuModuleUnload(struct CUmod_st *which)
{
    return which == &module ? CU_OK : CU_INVALID_VALUE;
}

static const struct fk_kernel *kernel_of(const struct CUfunc_st *function)
{
    return (const struct fk_kernel *)(const void *)function;
}

FK_EXPORT fk_result cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *which,
                                        const char *name)
{
    const struct CUctx_st *context = fk_context();
    if (!context || which != &module)
        return CU_INVALID_VALUE;
    for (size_t i = 0; i < fk_kernel_count; i++)
        if (strcmp(fk_kernels[i].name, name) == 0 &&
            fk_gpu_of(context)->capability >= fk_kernels[i].capability &&
            (!fk_kernels[i].has || fk_kernels[i].has(fk_gpu_of(context)->capability))) {
            *function = (struct CUfunc_st *)(uintptr_t)&fk_kernels[i];
            return CU_OK;
        }
    return CU_NOT_FOUND;
}

FK_EXPORT fk_result cuFuncGetAttribute(int *value, unsigned attribute, struct CUfunc_st *function)
{
    if (!function)
        return CU_INVALID_HANDLE;
    *value = attribute == 0 ? 1024 : 0; /* threads of a block; no spills and no shared memory */
    return CU_OK;
}

FK_EXPORT fk_result cuFuncSetAttribute(struct CUfunc_st *function, unsigned attribute, int value)
{
    const struct CUctx_st *context = fk_context();
    if (!function || !context)
        return CU_INVALID_HANDLE;
    return attribute == 8 && value > fk_gpu_of(context)->shared_optin_bytes ? CU_INVALID_VALUE
                                                                            : CU_OK;
}

FK_EXPORT fk_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                struct CUfunc_st *function,
                                                                int block_threads,
                                                                size_t shared_bytes)
{
    const struct CUctx_st *context = fk_context();
    if (!function || !context || block_threads < 1 || block_threads > 1024)
        return CU_INVALID_VALUE;
    const int by_threads = 2048 / block_threads;
    const int by_memory =
        shared_bytes ? fk_gpu_of(context)->shared_optin_bytes / (int)shared_bytes : by_threads;
    *blocks = by_threads < by_memory ? by_threads : by_memory;
    return CU_OK;
}

#define MAX_ARGUMENT_BYTES 192

struct launch_op {
    const struct fk_kernel *kernel;
    double us;
    /* One row an argument: each with the alignment of any type. */
    _Alignas(16) unsigned char values[FK_MAX_ARGUMENTS][MAX_ARGUMENT_BYTES];
};

/* Polls: a GPU's thread would too. Real time, since it is the host that opens it. */
static bool wait_for_gate(struct nw_gate_state *state, uint32_t ticket, uint64_t timeout_ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    __atomic_store_n(&state->reached, ticket, __ATOMIC_RELEASE);
    while ((int32_t)(__atomic_load_n(&state->open, __ATOMIC_ACQUIRE) - ticket) < 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - start > timeout_ns) {
            __atomic_store_n(&state->timed_out, ticket, __ATOMIC_RELEASE);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    return true;
}

static void run_gate(struct fk_op *op, struct CUstream_st *stream, void **arguments)
{
    struct nw_gate_state *state = *(struct nw_gate_state **)arguments[0];
    const uint64_t timeout_ns = *(const uint64_t *)arguments[2];
    state = fk_view(state, sizeof *state, "a gate");
    const bool opened = state && wait_for_gate(state, *(const uint32_t *)arguments[1], timeout_ns);
    fk_span_gate(stream, op, !opened, (double)timeout_ns * 1e-3);
}

static void run_kernel(struct fk_op *op, struct CUstream_st *stream)
{
    struct launch_op *o = (struct launch_op *)(void *)op->data;
    void *arguments[FK_MAX_ARGUMENTS];
    for (int i = 0; i < FK_MAX_ARGUMENTS; i++)
        arguments[i] = o->values[i];
    if (o->kernel->gate) {
        run_gate(op, stream, arguments);
        return;
    }
    if (!o->kernel->body(arguments))
        fk_stream_context(stream)->error = CU_ILLEGAL_ADDRESS;
    fk_span(stream, op, o->us);
}

FK_EXPORT fk_result cuLaunchKernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes,
                                   struct CUstream_st *stream, void **arguments, void **extra)
{
    const struct CUctx_st *context = fk_context();
    (void)shared_bytes;
    if (!function || !context)
        return CU_INVALID_HANDLE;
    if (extra || (uint64_t)grid_x * grid_y * grid_z == 0 ||
        (uint64_t)block_x * block_y * block_z == 0 || (uint64_t)block_x * block_y * block_z > 1024)
        return CU_INVALID_VALUE;
    struct launch_op o = {.kernel = kernel_of(function)};
    void *values[FK_MAX_ARGUMENTS];
    for (int i = 0; i < o.kernel->argument_count; i++)
        values[i] = memcpy(o.values[i], arguments[i], o.kernel->argument_bytes[i]);
    if (!o.kernel->gate)
        o.us = o.kernel->us(context, values);
    return fk_push(stream, run_kernel, NULL, &o, sizeof o);
}
