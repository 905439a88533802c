/* Public. The 8-bit float format e4m3 as bits: sign, 4 bits of exponent (bias 7), 3 of fraction. No
 * infinity; 0x7f and 0xff are NaN, the largest number is 448 (OCP 8-bit Floating Point
 * Specification 1.0, 2023). Conversions to it round to nearest, ties to even, and what is too
 * large becomes 448, as NVIDIA's saturating conversion does.
 */
#ifndef NW_KERNELS_FLOAT8_H
#define NW_KERNELS_FLOAT8_H

#include <math.h>
#include <stdint.h>

#include "kernels/half.h"

/* The exponent biases differ by 127 - 7 = 120; multiplying by 2^120 rebiases normal numbers and
 * normalises subnormal ones. */
static inline float nw_float8_to_float(uint8_t value)
{
    const uint32_t magnitude = value & 0x7fu;
    const uint32_t bits = nw_float_bits(nw_float_from_bits(magnitude << 20) * 0x1p120f);
    const uint32_t nan = magnitude == 0x7f ? 0x7fc00000u : 0;
    return nw_float_from_bits(bits | nan | (uint32_t)(value & 0x80) << 24);
}

static inline uint8_t nw_float_to_float8(float value)
{
    const uint8_t sign = signbit(value) ? 0x80 : 0;
    const float magnitude = fabsf(value);
    int exponent;
    if (isnan(value))
        return sign | 0x7f;
    if (magnitude >= 448)
        return sign | 0x7e;
    frexpf(magnitude, &exponent); /* magnitude = 0.5 … 1 times 2^exponent */
    if (magnitude == 0 || exponent < -5)
        exponent = -5; /* subnormal: steps of 2^-9 */
    /* In steps of the last place; nearbyint rounds ties to even. A carry is right by itself. */
    const int steps = (int)nearbyintf(ldexpf(magnitude, 4 - exponent));
    const int bits = steps < 8 ? steps : (exponent + 6) * 8 + steps - 8;
    return sign | (uint8_t)bits;
}

#endif
