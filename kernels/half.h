/* Public. The two 16-bit float formats as bits: IEEE 754 binary16 ("half") and bfloat16 (the upper
 * half of a binary32). Conversions to them round to nearest, ties to even; infinities and NaN stay
 * what they are. Selects instead of branches, so that loops over them vectorise.
 */
#ifndef NW_KERNELS_HALF_H
#define NW_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t nw_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float nw_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float nw_bfloat16_to_float(uint16_t value)
{
    return nw_float_from_bits((uint32_t)value << 16);
}

static inline uint16_t nw_float_to_bfloat16(float value)
{
    uint32_t bits = nw_float_bits(value);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t quiet_nan = (bits >> 16) | 0x40; /* rounding could carry a NaN into infinity */
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

/* The exponent biases differ by 127 - 15 = 112; multiplying by 2^112 rebiases normal numbers and
 * normalises subnormal ones. */
static inline float nw_half_to_float(uint16_t value)
{
    uint32_t magnitude = value & 0x7fffu;
    uint32_t bits = nw_float_bits(nw_float_from_bits(magnitude << 13) * 0x1p112f);
    uint32_t special = magnitude >= 0x7c00 ? 0x7f800000u : 0; /* infinity, NaN */
    return nw_float_from_bits(bits | special | (uint32_t)(value & 0x8000) << 16);
}

static inline uint16_t nw_float_to_half(float value)
{
    uint32_t bits = nw_float_bits(value);
    uint32_t magnitude = bits & 0x7fffffff;
    /* 2^-14 is the smallest normal half. Below, adding 0.5 makes the unit in the last place 2^-24,
     * which is the subnormals' spacing: the addition itself rounds. */
    uint32_t subnormal = nw_float_bits(nw_float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    /* Rebias by -112, round at bit 13; 65520 and above carry into infinity. */
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
    result = magnitude >= 0x47800000 ? special : result; /* 2^16 */
    return (uint16_t)(result | (bits >> 16 & 0x8000));
}

#endif
