/* Private to kernels/. An NVIDIA GPU: what dev_cuda.c (memory, streams, time) and cuda_kernels.c
 * (the compiled kernels and their launches) share; cuda_graph.c has the graphs. */
#ifndef NW_KERNELS_DEV_CUDA_H
#define NW_KERNELS_DEV_CUDA_H

#include "kernels/backends.h"
#include "kernels/cuda_api.h"

/* X(id, file of the kernel, its name, threads of a block) */
#define NW_CUDA_KERNEL_MAP(X)                                                                      \
    X(KERNEL_COPY, "copy", "nw_kernel_copy", 512)                                                  \
    X(KERNEL_READ, "copy", "nw_kernel_read", 512)                                                  \
    X(KERNEL_WRITE, "copy", "nw_kernel_write", 512)                                                \
    X(KERNEL_REDUCE_FLOAT, "reduce", "nw_kernel_reduce_float", 512)                                \
    X(KERNEL_REDUCE_INT32, "reduce", "nw_kernel_reduce_int32", 512)                                \
    X(KERNEL_REDUCE_HALF, "reduce", "nw_kernel_reduce_half", 512)                                  \
    X(KERNEL_REDUCE_BFLOAT16, "reduce", "nw_kernel_reduce_bfloat16", 512)                          \
    X(KERNEL_FILL_1, "pattern", "nw_kernel_fill_1", 256)                                           \
    X(KERNEL_FILL_2, "pattern", "nw_kernel_fill_2", 256)                                           \
    X(KERNEL_FILL_4, "pattern", "nw_kernel_fill_4", 256)                                           \
    X(KERNEL_FILL_8, "pattern", "nw_kernel_fill_8", 256)                                           \
    X(KERNEL_VERIFY_1, "pattern", "nw_kernel_verify_1", 256)                                       \
    X(KERNEL_VERIFY_2, "pattern", "nw_kernel_verify_2", 256)                                       \
    X(KERNEL_VERIFY_4, "pattern", "nw_kernel_verify_4", 256)                                       \
    X(KERNEL_VERIFY_8, "pattern", "nw_kernel_verify_8", 256)                                       \
    X(KERNEL_EXPLAIN_1, "pattern", "nw_kernel_explain_1", 1)                                       \
    X(KERNEL_EXPLAIN_2, "pattern", "nw_kernel_explain_2", 1)                                       \
    X(KERNEL_EXPLAIN_4, "pattern", "nw_kernel_explain_4", 1)                                       \
    X(KERNEL_EXPLAIN_8, "pattern", "nw_kernel_explain_8", 1)                                       \
    X(KERNEL_GATE, "gate", "nw_kernel_gate", 1)                                                    \
    X(KERNEL_GEMM_HALF, "gemm", "nw_kernel_gemm_half", 256)                                        \
    X(KERNEL_GEMM_BFLOAT16, "gemm", "nw_kernel_gemm_bfloat16", 256)                                \
    X(KERNEL_GEMM_FLOAT8, "gemm", "nw_kernel_gemm_float8", 256)

typedef enum {
#define X(id, file, name, threads) id,
    NW_CUDA_KERNEL_MAP(X)
#undef X
        KERNEL_COUNT
} cuda_kernel;

#define NW_CUDA_MAX_MODULES 8

struct cuda_dev {
    struct nw_dev base; /* first: a struct nw_dev * is one of these */
    const struct nw_cuda_api *cu;
    nw_cu_device device;
    struct CUctx_st *context; /* the primary one, as NCCL uses it too */
    struct CUmod_st *modules[NW_CUDA_MAX_MODULES];
    struct {
        struct CUfunc_st *function; /* NULL: this chip has no such kernel */
        unsigned int full_grid;     /* blocks that fill the device once */
    } kernels[KERNEL_COUNT];
    int gemm_stages;
    uint64_t peers; /* bit i: this program has turned on access to gpu i (modulo 64) */
};

struct nw_stream {
    struct cuda_dev *dev;
    struct CUstream_st *handle;
    struct nw_gate_state *gate; /* pinned */
    nw_cu_ptr gate_address;     /* the same memory, as the device sees it */
    uint32_t held;              /* the last ticket given out */
    double held_timeout_ns;
};

static inline struct cuda_dev *nw_cuda_dev(struct nw_dev *dev)
{
    return (struct cuda_dev *)dev;
}

/* Makes the device's context the thread's current one. */
nw_rc nw_cuda_enter(struct cuda_dev *dev);

/* Loads every kernel now: lazy loading in the middle of a measurement costs time, and behind a
 * closed gate it deadlocks. */
nw_rc nw_cuda_kernels_load(struct cuda_dev *dev);
void nw_cuda_kernels_unload(struct cuda_dev *dev);

nw_rc nw_cuda_graph_begin(struct nw_stream *stream);
nw_rc nw_cuda_graph_end(struct nw_stream *stream, struct nw_graph **graph_out);
nw_rc nw_cuda_graph_launch(struct nw_stream *stream, struct nw_graph *graph);
void nw_cuda_graph_close(struct nw_graph *graph);

nw_rc nw_cuda_gate_hold(struct nw_stream *stream, double timeout_ns);
nw_rc nw_cuda_kernel_copy(struct nw_stream *stream, void *to, const void *from, uint64_t bytes);
nw_rc nw_cuda_kernel_read(struct nw_stream *stream, const void *from, uint64_t bytes,
                          uint32_t *fold);
nw_rc nw_cuda_kernel_write(struct nw_stream *stream, void *to, uint64_t bytes, uint32_t value);
nw_rc nw_cuda_reduce(struct nw_stream *stream, void *to, const struct nw_reduce_inputs *inputs,
                     uint64_t count, nw_dtype dtype);
nw_rc nw_cuda_fill(struct nw_stream *stream, void *to, uint64_t count,
                   const struct nw_pattern *pattern);
nw_rc nw_cuda_verify(struct nw_stream *stream, const void *buffer, uint64_t count,
                     const struct nw_pattern *pattern, struct nw_verdict *verdict);
nw_rc nw_cuda_gemm(struct nw_stream *stream, const struct nw_gemm *gemm);

#endif
