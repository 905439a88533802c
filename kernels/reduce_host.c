#include "kernels/kernels.h"

#include <string.h>

#include "kernels/half.h"

/* Elements of type T at any alignment, added as W in the order of the inputs, rounded once. */
#define LOOP(name, T, W, WIDEN, NARROW)                                                            \
    static void name(unsigned char *to, const struct nw_reduce_inputs *inputs, uint64_t count)     \
    {                                                                                              \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            T element;                                                                             \
            memcpy(&element, (const unsigned char *)inputs->from[0] + i * sizeof(T), sizeof(T));   \
            W sum = WIDEN(element);                                                                \
            for (int k = 1; k < inputs->count; k++) {                                              \
                memcpy(&element, (const unsigned char *)inputs->from[k] + i * sizeof(T),           \
                       sizeof(T));                                                                 \
                sum += WIDEN(element);                                                             \
            }                                                                                      \
            element = NARROW(sum);                                                                 \
            memcpy(to + i * sizeof(T), &element, sizeof(T));                                       \
        }                                                                                          \
    }

#define SAME(x) (x)
LOOP(reduce_float, float, float, SAME, SAME)
LOOP(reduce_int32, uint32_t, uint32_t, SAME, SAME) /* unsigned: wraps */
LOOP(reduce_half, uint16_t, float, nw_half_to_float, nw_float_to_half)
LOOP(reduce_bfloat16, uint16_t, float, nw_bfloat16_to_float, nw_float_to_bfloat16)

void nw_reduce_host(void *to, const struct nw_reduce_inputs *inputs, uint64_t count, nw_dtype dtype)
{
    if (dtype == NW_FLOAT)
        reduce_float(to, inputs, count);
    else if (dtype == NW_INT32)
        reduce_int32(to, inputs, count);
    else if (dtype == NW_HALF)
        reduce_half(to, inputs, count);
    else if (dtype == NW_BFLOAT16)
        reduce_bfloat16(to, inputs, count);
}
