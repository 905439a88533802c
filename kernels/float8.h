/* Public. The 8-bit float format e4m3 as bits: sign, 4 bits of exponent (bias 7), 3 of fraction. No
 * infinity; 0x7f and 0xff are NaN, the largest number is 448 (OCP 8-bit Floating Point
 * Specification 1.0, 2023). Conversions to it round to nearest, ties to even, and what is too
 * large becomes 448, as NVIDIA's saturating conversion does.
 */
#ifndef NW_KERNELS_FLOAT8_H
#define NW_KERNELS_FLOAT8_H

#include <math.h>
#include <stdint.h>

static inline float nw_float8_to_float(uint8_t value)
{
    const int exponent = value >> 3 & 15, fraction = value & 7;
    const float magnitude = (value & 0x7f) == 0x7f ? NAN
                            : exponent == 0        ? ldexpf((float)fraction, -9)
                                                   : ldexpf((float)(8 + fraction), exponent - 10);
    return value & 0x80 ? -magnitude : magnitude;
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
