/* Private to tests/fake/. The insides of the CUDA double, and what of them the NCCL double uses
 * (FK_EXPORT): memory that only the double can reach, streams as threads, and work with modelled
 * times.
 */
#ifndef NW_TESTS_FAKE_FAKE_H
#define NW_TESTS_FAKE_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fake/clock.h"
#include "tests/fake/machine.h"

typedef unsigned int fk_result; /* CUresult */
typedef unsigned long long fk_ptr;

/* cuda.h's numbers. */
enum {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_PEER_ALREADY = 704,
    CU_PEER_NOT = 705,
    CU_CAPTURE_UNSUPPORTED = 900,
    CU_CAPTURE_INVALIDATED = 901,
    CU_NOT_PERMITTED = 800,
};

struct CUctx_st {
    int ordinal, gpu;       /* CUDA's number; the machine's */
    int users;              /* retained how often */
    unsigned peers;         /* bits of ordinals whose memory this context may use */
    _Atomic unsigned error; /* sticky: an address outside of any allocation was used */
    size_t allocated_bytes;
    struct CUstream_st *null_stream;
};

/* cuda_device.c */
fk_result fk_started(void);                  /* CU_OK after cuInit */
FK_EXPORT struct CUctx_st *fk_context(void); /* the thread's current one; NULL */
FK_EXPORT int fk_context_ordinal(const struct CUctx_st *context);
FK_EXPORT int fk_context_gpu(const struct CUctx_st *context);
FK_EXPORT void fk_set_context(struct CUctx_st *context);
FK_EXPORT struct CUctx_st *fk_context_of_ordinal(int ordinal); /* NULL: no such GPU */
struct CUctx_st *fk_context_at(int ordinal);                   /* without a check */
const struct fk_gpu *fk_gpu_of(const struct CUctx_st *context);

/* cuda_memory.c */
typedef enum { FK_PAGEABLE, FK_PINNED, FK_DEVICE } fk_space;
struct fk_place {
    fk_space space;
    int ordinal;  /* FK_DEVICE: of which GPU */
    size_t bytes; /* from the address to the end of its allocation; SIZE_MAX: unknown */
};
struct fk_place fk_where(const void *address);
/* Where the double reads and writes what is at `address` on a device; ordinary memory stays where
 * it is. NULL, with a message, when [address, + bytes) is not inside one allocation. */
FK_EXPORT void *fk_view(const void *address, size_t bytes, const char *who);
/* The same for somebody who only reads. */
const void *fk_look(const void *address, size_t bytes, const char *who);
/* Another number whenever the memory at `address` may have been written since; 0: unknown, as of
 * memory that others write too. */
uint64_t fk_writes(const void *address);

/* cuda_stream.c */
struct CUevent_st;
struct fk_op {
    struct fk_op *next;
    void (*run)(struct fk_op *op, struct CUstream_st *stream);
    /* Each time the operation is queued: at its call, or at the launch of a graph that holds it.
     * May be NULL. */
    void (*queued)(struct fk_op *op);
    int64_t queued_ps;
    size_t bytes;
    _Alignas(16) unsigned char data[];
};
/* A copy of `data`. CU_OK, or why not; `cost_us` < 0: the machine's launch time. */
FK_EXPORT fk_result fk_push(struct CUstream_st *stream,
                            void (*run)(struct fk_op *, struct CUstream_st *),
                            void (*queued)(struct fk_op *), const void *data, size_t bytes);
fk_result fk_push_op(struct CUstream_st *stream, const struct fk_op *op);
/* NULL: the current context's null stream. */
FK_EXPORT struct CUstream_st *fk_stream(struct CUstream_st *stream);
struct CUctx_st *fk_stream_context(const struct CUstream_st *stream);

/* For a running operation, by the stream's worker: it begins where the stream is, and lasts. */
void fk_span(struct CUstream_st *stream, const struct fk_op *op, double us);
/* The gate is open: what follows begins when the host last queued something; until the first real
 * work, the start of a collective moves the marks that were set. */
void fk_span_gate(struct CUstream_st *stream, const struct fk_op *op, bool gave_up,
                  double timeout_us);
/* Of a collective: where this rank is, and whether that may still move to the others' place. */
FK_EXPORT int64_t fk_arrive(struct CUstream_st *stream, const struct fk_op *op, bool *movable_out);
/* All ranks stood at `base_ps` before the work, which ended at end_ps. */
FK_EXPORT void fk_depart(struct CUstream_st *stream, int64_t base_ps, int64_t end_ps);

void fk_mark(struct CUstream_st *stream, struct CUevent_st *event, uint64_t generation);
int64_t fk_stream_ps(const struct CUstream_st *stream);
/* Until the stream is empty; the host is then where it was. */
fk_result fk_wait(struct CUstream_st *stream);
void fk_wait_context(const struct CUctx_st *context); /* all its streams */
/* Exported for NVML's double: there is work that ends after the host's time. */
FK_EXPORT int fk_gpu_is_busy(int gpu);

struct CUgraph_st;
struct CUgraph_st *fk_capturing(struct CUstream_st *stream);
void fk_set_capturing(struct CUstream_st *stream, struct CUgraph_st *graph);

/* cuda_graph.c */
fk_result fk_capture(struct CUgraph_st *graph, const struct fk_op *op);

/* cuda_copy.c */
/* What a kernel on `context` moves: bytes of its own memory, and the time of all others. */
struct fk_traffic {
    const struct CUctx_st *context;
    double local_bytes, remote_us;
};
void fk_traffic_add(struct fk_traffic *traffic, const void *address, double bytes);
double fk_traffic_us(const struct fk_traffic *traffic);

/* cuda_kernels.c */
#define FK_MAX_ARGUMENTS 5
struct fk_kernel {
    const char *name;
    int argument_count;
    size_t argument_bytes[FK_MAX_ARGUMENTS];
    /* Runs the kernel's work; arguments as cuLaunchKernel has them. False: bad addresses. */
    bool (*body)(void **arguments);
    /* How long the GPU takes for it. */
    double (*us)(const struct CUctx_st *context, void **arguments);
    int capability;              /* the lowest that has it */
    bool gate;                   /* struct nw_gate_state *, uint32_t ticket, uint64_t timeout_ns */
    bool (*has)(int capability); /* of those; NULL: all */
};
extern const struct fk_kernel fk_kernels[];
extern const size_t fk_kernel_count;

/* cuda_gemm.c: D = A · Bᵀ for the kernels and for cuBLAS' double. */
struct nw_gemm;
bool fk_gemm_run(const struct nw_gemm *gemm);
/* 2mnk over the machine's tensor rate, which fp8 has twice, times `factor`, at the clock held. */
double fk_gemm_us(const struct CUctx_st *context, const struct nw_gemm *gemm, double factor);
FK_EXPORT fk_result fk_gemm_push_cublas(struct CUstream_st *stream, const struct nw_gemm *gemm);

#endif
