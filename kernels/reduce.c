#include "kernels/reduce.h"

#include "kernels/clones.h"
#include "kernels/half.h"

typedef void (*reduce_fn)(void *inout, const void *in, size_t count);

/* One loop: elements of type T, computed in type C, read with IN and written with OUT. */
#define LOOP(name, T, C, IN, OUT, EXPRESSION)                                                      \
    NW_CLONES static void name(void *inout, const void *in, size_t count)                          \
    {                                                                                              \
        T *restrict to = inout;                                                                    \
        const T *restrict from = in;                                                               \
        for (size_t i = 0; i < count; i++) {                                                       \
            const C a = IN(to[i]), b = IN(from[i]);                                                \
            to[i] = (T)OUT(EXPRESSION);                                                            \
        }                                                                                          \
    }

/* Sum and product of integers in an unsigned type U of at least 32 bits: they wrap, as in MPI and
 * NCCL, where signed arithmetic would be undefined. */
#define LOOPS(suffix, T, U, C, IN, OUT)                                                            \
    LOOP(sum_##suffix, T, U, IN, OUT, a + b)                                                       \
    LOOP(prod_##suffix, T, U, IN, OUT, a *b)                                                       \
    LOOP(min_##suffix, T, C, IN, OUT, a < b ? a : b)                                               \
    LOOP(max_##suffix, T, C, IN, OUT, a > b ? a : b)

#define SAME(x) (x)
LOOPS(int8, int8_t, uint32_t, int8_t, SAME, SAME)
LOOPS(uint8, uint8_t, uint32_t, uint8_t, SAME, SAME)
LOOPS(int32, int32_t, uint32_t, int32_t, SAME, SAME)
LOOPS(uint32, uint32_t, uint32_t, uint32_t, SAME, SAME)
LOOPS(int64, int64_t, uint64_t, int64_t, SAME, SAME)
LOOPS(uint64, uint64_t, uint64_t, uint64_t, SAME, SAME)
LOOPS(half, uint16_t, float, float, nw_half_to_float, nw_float_to_half)
LOOPS(float, float, float, float, SAME, SAME)
LOOPS(double, double, double, double, SAME, SAME)
LOOPS(bfloat16, uint16_t, float, float, nw_bfloat16_to_float, nw_float_to_bfloat16)

#define ROW(type, suffix)                                                                          \
    [type] = {[NW_SUM] = sum_##suffix,                                                             \
              [NW_PROD] = prod_##suffix,                                                           \
              [NW_MIN] = min_##suffix,                                                             \
              [NW_MAX] = max_##suffix,                                                             \
              [NW_AVG] = sum_##suffix}

static const reduce_fn loops[NW_DTYPE_COUNT][NW_REDOP_COUNT] = {
    ROW(NW_INT8, int8),         ROW(NW_UINT8, uint8), ROW(NW_INT32, int32),
    ROW(NW_UINT32, uint32),     ROW(NW_INT64, int64), ROW(NW_UINT64, uint64),
    ROW(NW_HALF, half),         ROW(NW_FLOAT, float), ROW(NW_DOUBLE, double),
    ROW(NW_BFLOAT16, bfloat16),
};

void nw_reduce_into(nw_dtype type, nw_redop op, void *inout, const void *in, size_t count)
{
    loops[type][op](inout, in, count);
}

typedef void (*divide_fn)(void *data, size_t count, int divisor);

/* The quotient of two integers below 2^24 and 2^12, in float and then in half or bfloat16, is
 * rounded as if once: float has more than twice their digits (Figueroa, "When is double rounding
 * innocuous?", 1995). */
#define DIVIDE(suffix, T, C, IN, OUT)                                                              \
    NW_CLONES static void divide_##suffix(void *data, size_t count, int divisor)                   \
    {                                                                                              \
        T *restrict values = data;                                                                 \
        for (size_t i = 0; i < count; i++)                                                         \
            values[i] = (T)OUT(IN(values[i]) / (C)divisor);                                        \
    }

DIVIDE(int8, int8_t, int32_t, SAME, SAME)
DIVIDE(uint8, uint8_t, int32_t, SAME, SAME)
DIVIDE(int32, int32_t, int32_t, SAME, SAME)
DIVIDE(uint32, uint32_t, uint32_t, SAME, SAME)
DIVIDE(int64, int64_t, int64_t, SAME, SAME)
DIVIDE(uint64, uint64_t, uint64_t, SAME, SAME)
DIVIDE(half, uint16_t, float, nw_half_to_float, nw_float_to_half)
DIVIDE(float, float, float, SAME, SAME)
DIVIDE(double, double, double, SAME, SAME)
DIVIDE(bfloat16, uint16_t, float, nw_bfloat16_to_float, nw_float_to_bfloat16)

void nw_divide(nw_dtype type, void *data, size_t count, int divisor)
{
    static const divide_fn divisions[NW_DTYPE_COUNT] = {
        [NW_INT8] = divide_int8,         [NW_UINT8] = divide_uint8, [NW_INT32] = divide_int32,
        [NW_UINT32] = divide_uint32,     [NW_INT64] = divide_int64, [NW_UINT64] = divide_uint64,
        [NW_HALF] = divide_half,         [NW_FLOAT] = divide_float, [NW_DOUBLE] = divide_double,
        [NW_BFLOAT16] = divide_bfloat16,
    };
    divisions[type](data, count, divisor);
}
