/* Public. Element types and reductions, under nccl-tests' names. The arithmetic is in
 * kernels/reduce.h, the 16-bit float formats in kernels/half.h.
 */
#ifndef NW_KERNELS_DTYPE_H
#define NW_KERNELS_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* X(enumerator, name, bytes, exact: largest integer up to which every integer is exact) */
#define NW_DTYPE_MAP(X)                                                                            \
    X(NW_INT8, "int8", 1, 127)                                                                     \
    X(NW_UINT8, "uint8", 1, 255)                                                                   \
    X(NW_INT32, "int32", 4, 2147483647)                                                            \
    X(NW_UINT32, "uint32", 4, 4294967295)                                                          \
    X(NW_INT64, "int64", 8, 9007199254740992)                                                      \
    X(NW_UINT64, "uint64", 8, 9007199254740992)                                                    \
    X(NW_HALF, "half", 2, 2048)                                                                    \
    X(NW_FLOAT, "float", 4, 16777216)                                                              \
    X(NW_DOUBLE, "double", 8, 9007199254740992)                                                    \
    X(NW_BFLOAT16, "bfloat16", 2, 256)

typedef enum {
#define X(type, name, bytes, exact) type,
    NW_DTYPE_MAP(X)
#undef X
        NW_DTYPE_COUNT
} nw_dtype;

#define NW_REDOP_MAP(X)                                                                            \
    X(NW_SUM, "sum")                                                                               \
    X(NW_PROD, "prod")                                                                             \
    X(NW_MIN, "min")                                                                               \
    X(NW_MAX, "max")                                                                               \
    X(NW_AVG, "avg")

typedef enum {
#define X(op, name) op,
    NW_REDOP_MAP(X)
#undef X
        NW_REDOP_COUNT
} nw_redop;

size_t nw_dtype_bytes(nw_dtype type);
uint64_t nw_dtype_exact(nw_dtype type); /* every integer from 0 to this is exact in the type */
const char *nw_dtype_name(nw_dtype type);
const char *nw_redop_name(nw_redop op);
/* NW_EUSAGE names the accepted values. */
nw_rc nw_dtype_parse(const char *text, nw_dtype *type_out);
nw_rc nw_redop_parse(const char *text, nw_redop *op_out);
/* Element `index` of an array, for messages: integers above 2^53 lose their low bits. */
double nw_dtype_value(nw_dtype type, const void *array, uint64_t index);
extern const char *const nw_dtype_names[]; /* NULL-terminated */
extern const char *const nw_redop_names[];

#endif
