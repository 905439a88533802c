/* Public. What one device does, as plain functions on memory: the CPU twin of every GPU kernel, and
 * the small structs that both take. C and CUDA compile this header; the kernels of the same names
 * (nw_kernel_…) are in the .cu files.
 *
 * Twins have the kernels' semantics bit for bit, at any size and any alignment. Callers outside
 * kernels/ go through nw_dev_ops (dev.h), which checks arguments; these functions trust theirs.
 */
#ifndef NW_KERNELS_KERNELS_H
#define NW_KERNELS_KERNELS_H

#include <stdint.h>

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NW_REDUCE_MAX_INPUTS 16

struct nw_reduce_inputs {
    const void *from[NW_REDUCE_MAX_INPUTS];
    int32_t count; /* 1 … NW_REDUCE_MAX_INPUTS */
};

/* What the elements of a buffer must be: kernels/pattern.h. Elements are compared by their bits. */
struct nw_pattern {
    const void *table;     /* NW_PATTERN_TABLE elements, in memory that the device reads */
    uint64_t first;        /* index of the buffer's element 0 in its chunk */
    int32_t element_bytes; /* 1, 2, 4, 8 */
};

/* The result of a check; in memory that the device can write. */
struct nw_verdict {
    uint64_t wrong_count;
    uint64_t first_index;   /* of the buffer; UINT64_MAX: nothing wrong */
    uint64_t expected_bits; /* of the first wrong element, in the low bytes */
    uint64_t found_bits;
};

/* The host opens gates by number: kernel n waits until `open` reaches n. Lives in host memory that
 * the device reads over the bus. */
struct nw_gate_state {
    uint32_t open;      /* written by the host */
    uint32_t reached;   /* the last gate that began to wait */
    uint32_t timed_out; /* the last gate that gave up; 0: none */
};

/* D (m × n, float, row-major) = A (m × k, row-major) · Bᵀ (B n × k, row-major): both operands are
 * read along k. */
struct nw_gemm {
    const void *a, *b;
    void *d;
    int32_t m, n, k;
    int32_t dtype; /* NW_HALF, NW_BFLOAT16, NW_FLOAT8 */
};
/* fp8, e4m3 (kernels/float8.h): an element type of matrix products only, so no row of nw_dtype. */
#define NW_FLOAT8 NW_DTYPE_COUNT
/* The kernel's tile; sizes must be multiples. Of k in bytes: 32 half or bfloat16, 64 fp8. */
#define NW_GEMM_TILE_M       128
#define NW_GEMM_TILE_N       256
#define NW_GEMM_TILE_K_BYTES 64
/* Shared memory of the kernel for each stage of k that is on its way. */
#define NW_GEMM_STAGE_BYTES ((NW_GEMM_TILE_M + NW_GEMM_TILE_N) * NW_GEMM_TILE_K_BYTES)

void nw_copy_host(void *to, const void *from, uint64_t bytes);
/* *fold ^= the bytes, each shifted to its place in a 32-bit word: byte i goes to bits 8·(i mod 4).
 */
void nw_read_host(const void *from, uint64_t bytes, uint32_t *fold);
/* Byte i becomes bits 8·(i mod 4) of `value`. */
void nw_write_host(void *to, uint64_t bytes, uint32_t value);
/* to[i] = from[0][i] + from[1][i] + … in this order. int32 wraps; half and bfloat16 are added as
 * floats and rounded once. `to` may be one of the inputs. */
void nw_reduce_host(void *to, const struct nw_reduce_inputs *inputs, uint64_t count,
                    nw_dtype dtype);
void nw_fill_host(void *to, uint64_t count, const struct nw_pattern *pattern);
/* Adds to *verdict, which starts as NW_VERDICT_CLEAN. */
void nw_verify_host(const void *buffer, uint64_t count, const struct nw_pattern *pattern,
                    struct nw_verdict *verdict);
/* Waits for gate `ticket`, at most `timeout_ns`. */
void nw_gate_host(struct nw_gate_state *state, uint32_t ticket, uint64_t timeout_ns);
void nw_gemm_host(const struct nw_gemm *gemm);
/* Of NW_HALF, NW_BFLOAT16, NW_FLOAT8. */
const char *nw_gemm_dtype_name(int32_t dtype); /* "half" "bfloat16" "f8e4m3" */
uint64_t nw_gemm_element_bytes(int32_t dtype);

#define NW_VERDICT_CLEAN                                                                           \
    {                                                                                              \
        0, UINT64_MAX, 0, 0                                                                        \
    }

#ifdef __cplusplus
}
#endif

#endif
