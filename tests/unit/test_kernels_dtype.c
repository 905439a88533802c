#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dtype.h"
#include "kernels/half.h"
#include "kernels/reduce.h"

/* In loops: Criterion reports every assertion to its parent, also those that hold. */
#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            cr_assert_fail(__VA_ARGS__);                                                           \
    } while (0)

Test(kernels_dtype, names_and_sizes_go_there_and_back)
{
    for (int i = 0; i < NW_DTYPE_COUNT; i++) {
        nw_dtype type;
        cr_assert_eq(nw_dtype_parse(nw_dtype_name((nw_dtype)i), &type), NW_OK);
        cr_expect_eq((int)type, i);
    }
    for (int i = 0; i < NW_REDOP_COUNT; i++) {
        nw_redop op;
        cr_assert_eq(nw_redop_parse(nw_redop_name((nw_redop)i), &op), NW_OK);
        cr_expect_eq((int)op, i);
    }
    cr_expect_eq(nw_dtype_bytes(NW_BFLOAT16), 2);
    cr_expect_eq(nw_dtype_bytes(NW_UINT64), 8);
    cr_expect_null(nw_dtype_names[NW_DTYPE_COUNT]);
    cr_expect_null(nw_redop_names[NW_REDOP_COUNT]);
}

Test(kernels_dtype, an_unknown_name_is_refused_with_the_accepted_ones)
{
    nw_dtype type = NW_DOUBLE;
    nw_redop op = NW_MAX;
    static const char *const bad[] = {"", "flaot", "FLOAT", "float ", "fp16"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(nw_dtype_parse(bad[i], &type), NW_EUSAGE);
        cr_expect(strstr(nw_last_error()->text, "bfloat16"), "%s", nw_last_error()->text);
        cr_expect_eq(nw_redop_parse(bad[i], &op), NW_EUSAGE);
        cr_expect(strstr(nw_last_error()->text, "avg"), "%s", nw_last_error()->text);
    }
    cr_expect_eq(type, NW_DOUBLE);
    cr_expect_eq(op, NW_MAX);
}

/* The value of a half from its definition (IEEE 754-2008, 3.4), without bit tricks. */
static double half_by_definition(unsigned bits)
{
    const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, -24);
    return sign * ldexp(1024 + fraction, (int)exponent - 25);
}

Test(kernels_dtype, every_half_is_its_value_and_comes_back)
{
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const float value = nw_half_to_float((uint16_t)bits);
        const double defined = half_by_definition(bits);
        if (isnan(defined)) {
            REQUIRE(isnan(value) && isnan(nw_half_to_float(nw_float_to_half(value))), "%x", bits);
            continue;
        }
        REQUIRE(value == defined && !signbit(value) == !signbit(defined), "%x is %g", bits, value);
        REQUIRE(nw_float_to_half(value) == bits, "%x", bits);
    }
}

Test(kernels_dtype, every_bfloat16_comes_back)
{
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const float value = nw_bfloat16_to_float((uint16_t)bits);
        if (isnan(value))
            REQUIRE(isnan(nw_bfloat16_to_float(nw_float_to_bfloat16(value))), "%x", bits);
        else
            REQUIRE(nw_float_to_bfloat16(value) == bits, "%x", bits);
    }
}

/* Nearest, ties to even: no neighbour may be nearer, and at equal distance the last bit is 0. */
static void expect_nearest(float value, uint16_t bits, double here, double below, double above)
{
    const double miss = fabs(here - value);
    const double other = fmin(fabs(below - value), fabs(above - value));
    REQUIRE(miss < other || (miss == other && !(bits & 1)), "%a became %04x = %a", value, bits,
            here);
}

Test(kernels_dtype, rounding_to_16_bits_is_nearest_even)
{
    uint64_t state = 1;
    for (int i = 0; i < 2000000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        /* Exponents around the halfs' range; the upper bits often zero: many exact ties. */
        const uint32_t fraction = (uint32_t)(state >> 33) & 0x7fffff & (i % 3 ? ~0u : 0x7ff000u);
        const uint32_t exponent = 100 + (uint32_t)(state >> 58) % 45;
        const float value = nw_float_from_bits(exponent << 23 | fraction);
        const uint16_t half = nw_float_to_half(value);
        if (value < 65520) {
            REQUIRE(half < 0x7c00, "%a", value);
            if (half > 0 && half < 0x7bff)
                expect_nearest(value, half, half_by_definition(half), half_by_definition(half - 1u),
                               half_by_definition(half + 1u));
        } else {
            REQUIRE(half == 0x7c00, "%a", value);
        }
        const uint16_t brain = nw_float_to_bfloat16(-value);
        const uint32_t up = (uint32_t)brain << 16;
        expect_nearest(-value, brain, nw_float_from_bits(up), nw_float_from_bits(up - 0x10000),
                       nw_float_from_bits(up + 0x10000));
    }
    cr_expect_eq(nw_float_to_half(65519.996f), 0x7bff);
    cr_expect_eq(nw_float_to_half(0x1p-25f), 0);         /* a tie, to even */
    cr_expect_eq(nw_float_to_half(0x1.002p-25f), 1);     /* just above it */
    cr_expect_eq(nw_float_to_half(-0x1.8p-24f), 0x8002); /* a tie, to even */
    cr_expect_eq(nw_float_to_half(-INFINITY), 0xfc00);
    cr_expect_eq(nw_float_to_bfloat16(INFINITY), 0x7f80);
    cr_expect_eq(nw_float_to_bfloat16(3.4e38f), 0x7f80); /* above the largest: carries */
}

static void set(nw_dtype type, void *array, size_t index, double value)
{
    switch (type) {
    case NW_INT8:
        ((int8_t *)array)[index] = (int8_t)value;
        break;
    case NW_UINT8:
        ((uint8_t *)array)[index] = (uint8_t)value;
        break;
    case NW_INT32:
        ((int32_t *)array)[index] = (int32_t)value;
        break;
    case NW_UINT32:
        ((uint32_t *)array)[index] = (uint32_t)value;
        break;
    case NW_INT64:
        ((int64_t *)array)[index] = (int64_t)value;
        break;
    case NW_UINT64:
        ((uint64_t *)array)[index] = (uint64_t)value;
        break;
    case NW_HALF:
        ((uint16_t *)array)[index] = nw_float_to_half((float)value);
        break;
    case NW_BFLOAT16:
        ((uint16_t *)array)[index] = nw_float_to_bfloat16((float)value);
        break;
    case NW_FLOAT:
        ((float *)array)[index] = (float)value;
        break;
    default:
        ((double *)array)[index] = value;
    }
}

static double combined(nw_redop op, double a, double b)
{
    switch (op) {
    case NW_PROD:
        return a * b;
    case NW_MIN:
        return fmin(a, b);
    case NW_MAX:
        return fmax(a, b);
    default:
        return a + b;
    }
}

Test(kernels_dtype, reductions_of_every_type_are_exact_on_small_numbers)
{
    enum { COUNT = 101 }; /* not a multiple of a vector */
    for (int type = 0; type < NW_DTYPE_COUNT; type++) {
        const bool is_unsigned = type == NW_UINT8 || type == NW_UINT32 || type == NW_UINT64;
        for (int op = 0; op < NW_REDOP_COUNT; op++) {
            uint64_t a[COUNT + 1], b[COUNT];
            memset(a, 0x55, sizeof a);
            for (size_t i = 0; i < COUNT; i++) {
                set((nw_dtype)type, a, i, (double)(i % 11) - (is_unsigned ? 0 : 5));
                set((nw_dtype)type, b, i, (double)(i % 7) - (is_unsigned ? 0 : 3));
            }
            unsigned char *end = (unsigned char *)a + COUNT * nw_dtype_bytes((nw_dtype)type);
            nw_reduce_into((nw_dtype)type, (nw_redop)op, a, b, COUNT);
            for (size_t i = 0; i < COUNT; i++) {
                const double expected =
                    combined((nw_redop)op, (double)(i % 11) - (is_unsigned ? 0 : 5),
                             (double)(i % 7) - (is_unsigned ? 0 : 3));
                REQUIRE(nw_dtype_value((nw_dtype)type, a, i) == expected, "%s %s at %zu: %g",
                        nw_dtype_name((nw_dtype)type), nw_redop_name((nw_redop)op), i,
                        nw_dtype_value((nw_dtype)type, a, i));
            }
            REQUIRE(*end == 0x55, "wrote behind the end");
        }
    }
}

Test(kernels_dtype, integers_wrap_and_16_bit_sums_round_once)
{
    int8_t a8[] = {127, -128}, b8[] = {1, -1};
    nw_reduce_into(NW_INT8, NW_SUM, a8, b8, 2);
    cr_expect_eq(a8[0], -128);
    cr_expect_eq(a8[1], 127);
    int32_t a32[] = {INT32_MAX, 65536}, b32[] = {1, 65536};
    nw_reduce_into(NW_INT32, NW_SUM, a32, b32, 1);
    nw_reduce_into(NW_INT32, NW_PROD, a32 + 1, b32 + 1, 1);
    cr_expect_eq(a32[0], INT32_MIN);
    cr_expect_eq(a32[1], 0);
    uint16_t a16[] = {nw_float_to_bfloat16(256)}, b16[] = {nw_float_to_bfloat16(1)};
    nw_reduce_into(NW_BFLOAT16, NW_SUM, a16, b16, 1); /* 257: a tie, to even */
    cr_expect_eq(nw_dtype_value(NW_BFLOAT16, a16, 0), 256);
    a16[0] = nw_float_to_half(2048), b16[0] = nw_float_to_half(3);
    nw_reduce_into(NW_HALF, NW_SUM, a16, b16, 1); /* 2051: a tie, to even */
    cr_expect_eq(nw_dtype_value(NW_HALF, a16, 0), 2052);
}

Test(kernels_dtype, quotients_are_correctly_rounded)
{
    for (int divisor = 1; divisor < 3000; divisor += 7) {
        for (int number = 0; number <= 2048; number += 3) {
            uint16_t half = nw_float_to_half((float)number);
            float single = (float)number;
            int8_t byte = (int8_t)(number % 128);
            nw_divide(NW_HALF, &half, 1, divisor);
            nw_divide(NW_FLOAT, &single, 1, divisor);
            nw_divide(NW_INT8, &byte, 1, divisor);
            /* half × divisor is exact in double: compare the distances to the true quotient there
             */
            const double miss = fabs(half_by_definition(half) * divisor - number);
            const double up = fabs(half_by_definition(half + 1u) * divisor - number);
            const double down = half ? fabs(half_by_definition(half - 1u) * divisor - number) : up;
            REQUIRE(miss <= up && miss <= down, "%d / %d", number, divisor);
            REQUIRE(single == (float)((double)number / divisor), "%d / %d", number, divisor);
            REQUIRE(byte == number % 128 / divisor, "%d / %d", number % 128, divisor);
        }
    }
}
