#include <criterion/criterion.h>

#include <math.h>

#include "kernels/float8.h"

/* The value of a code from the format's definition, without bit tricks. */
static double by_definition(unsigned code)
{
    const unsigned exponent = code / 8 % 16, fraction = code % 8;
    const double sign = code >= 128 ? -1 : 1;

    if (exponent == 15 && fraction == 7)
        return NAN;
    return exponent == 0 ? sign * fraction / 8 * pow(2, -6)
                         : sign * (1 + fraction / 8.0) * pow(2, (int)exponent - 7);
}

Test(kernels_float8, every_code_has_its_value_and_comes_back)
{
    int wrong = 0;

    for (unsigned code = 0; code < 256; code++) {
        const double expected = by_definition(code);
        const float value = nw_float8_to_float((uint8_t)code);

        wrong += isnan(expected) ? !isnan(value) : value != (float)expected;
        wrong += isnan(expected) ? (nw_float_to_float8(value) & 0x7f) != 0x7f
                                 : nw_float_to_float8(value) != code;
    }
    cr_expect_eq(wrong, 0, "%d codes", wrong);
    cr_expect_eq(nw_float8_to_float(0x7e), 448);
    cr_expect_eq(nw_float8_to_float(0x01), 0x1p-9f);
}

/* Nearest of all codes; of two equally near the even one. */
Test(kernels_float8, numbers_between_two_codes_are_rounded_to_nearest_even)
{
    int wrong = 0;

    for (unsigned code = 0; code < 0x7e; code++) {
        const double low = by_definition(code), high = by_definition(code + 1);
        const double middle = (low + high) / 2, nudge = (high - low) / 1024;

        wrong += nw_float_to_float8((float)middle) != (code % 2 == 0 ? code : code + 1);
        wrong += nw_float_to_float8((float)(middle - nudge)) != code;
        wrong += nw_float_to_float8((float)(middle + nudge)) != code + 1;
        wrong += nw_float_to_float8((float)-(middle + nudge)) != (128 | (code + 1));
    }
    cr_expect_eq(wrong, 0, "%d roundings", wrong);
    cr_expect_eq(nw_float_to_float8(1e30f), 0x7e, "too large becomes the largest");
    cr_expect_eq(nw_float_to_float8(-INFINITY), 0xfe);
    cr_expect_eq(nw_float_to_float8(1e-30f), 0);
    cr_expect_eq(nw_float_to_float8(NAN) & 0x7f, 0x7f);
}
