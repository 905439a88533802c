/* The arithmetic of reductions. Halves by the compiler's own type, not by the project's
 * conversions: an independent opinion. */
#include <string.h>

#include "tests/fake/nccl_comm.h"

typedef struct {
    uint16_t bits;
} bfloat16;

static float widen_bfloat16(bfloat16 value)
{
    const uint32_t bits = (uint32_t)value.bits << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* To nearest, ties to even; a NaN stays one. */
static bfloat16 narrow_bfloat16(float wide)
{
    uint32_t bits;
    memcpy(&bits, &wide, sizeof bits);
    if (wide != wide)
        return (bfloat16){(uint16_t)(bits >> 16 | 0x40)};
    return (bfloat16){(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

size_t fk_type_bytes(ncclDataType_t type)
{
    static const size_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return bytes[type];
}

/* Sums and products in an unsigned type W, where integers wrap; comparisons in the type's own, C.
 */
#define REDUCE(name, T, W, C, WIDEN, NARROW, DIVIDE)                                               \
    static void reduce_##name(ncclRedOp_t op, void *to, const void *const *from, int inputs,       \
                              size_t count)                                                        \
    {                                                                                              \
        T *t = to;                                                                                 \
        for (size_t i = 0; i < count; i++) {                                                       \
            W sum = (W)WIDEN(((const T *)from[0])[i]);                                             \
            for (int k = 1; k < inputs; k++) {                                                     \
                const W value = (W)WIDEN(((const T *)from[k])[i]);                                 \
                if (op == ncclProd)                                                                \
                    sum *= value;                                                                  \
                else if (op == ncclMax)                                                            \
                    sum = (C)value > (C)sum ? value : sum;                                         \
                else if (op == ncclMin)                                                            \
                    sum = (C)value < (C)sum ? value : sum;                                         \
                else                                                                               \
                    sum += value;                                                                  \
            }                                                                                      \
            if (op == ncclAvg)                                                                     \
                sum = (W)((DIVIDE)sum / inputs);                                                   \
            t[i] = NARROW(sum);                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void scale_##name(void *values, const void *scalar, size_t count)                       \
    {                                                                                              \
        T *t = values, s;                                                                          \
        memcpy(&s, scalar, sizeof s);                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            t[i] = NARROW((W)((W)WIDEN(t[i]) * (W)WIDEN(s)));                                      \
    }

#define SAME(x) (x)
#define INT(T)  (T)
REDUCE(int8, int8_t, uint32_t, int8_t, SAME, INT(int8_t), int8_t)
REDUCE(uint8, uint8_t, uint32_t, uint8_t, SAME, INT(uint8_t), uint8_t)
REDUCE(int32, int32_t, uint32_t, int32_t, SAME, INT(int32_t), int32_t)
REDUCE(uint32, uint32_t, uint32_t, uint32_t, SAME, INT(uint32_t), uint32_t)
REDUCE(int64, int64_t, uint64_t, int64_t, SAME, INT(int64_t), int64_t)
REDUCE(uint64, uint64_t, uint64_t, uint64_t, SAME, INT(uint64_t), uint64_t)
REDUCE(half, _Float16, float, float, SAME, INT(_Float16), float)
REDUCE(float, float, float, float, SAME, SAME, float)
REDUCE(double, double, double, double, SAME, SAME, double)
#define float_of(x) widen_bfloat16(x)
REDUCE(bfloat16, bfloat16, float, float, float_of, narrow_bfloat16, float)

void fk_reduce(ncclDataType_t type, ncclRedOp_t op, void *to, const void *const *from, int inputs,
               size_t count)
{
    static void (*const table[ncclNumTypes])(ncclRedOp_t, void *, const void *const *, int,
                                             size_t) = {
        reduce_int8,   reduce_uint8, reduce_int32, reduce_uint32, reduce_int64,
        reduce_uint64, reduce_half,  reduce_float, reduce_double, reduce_bfloat16};
    table[type](op, to, from, inputs, count);
}

void fk_scale(ncclDataType_t type, void *values, const void *scalar, size_t count)
{
    static void (*const table[ncclNumTypes])(void *, const void *, size_t) = {
        scale_int8,   scale_uint8, scale_int32, scale_uint32, scale_int64,
        scale_uint64, scale_half,  scale_float, scale_double, scale_bfloat16};
    table[type](values, scalar, count);
}
