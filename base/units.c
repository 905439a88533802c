#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct suffix {
    const char *name;
    long double factor;
};

#define KI 1024.0L

static const struct suffix byte_suffixes[] = {
    {"", 1},
    {"B", 1},
    {"K", KI},
    {"KiB", KI},
    {"M", KI *KI},
    {"MiB", KI *KI},
    {"G", KI *KI *KI},
    {"GiB", KI *KI *KI},
    {"T", KI *KI *KI *KI},
    {"TiB", KI *KI *KI *KI},
    {NULL, 0},
};

static const struct suffix duration_suffixes[] = {
    {"", 1e9L},  {"ns", 1},      {"us", 1e3L},   {"\xC2\xB5s", 1e3L}, {"ms", 1e6L},
    {"s", 1e9L}, {"min", 60e9L}, {"h", 3600e9L}, {"d", 86400e9L},     {NULL, 0},
};

static const struct suffix count_suffixes[] = {
    {"", 1}, {"K", 1e3L}, {"M", 1e6L}, {"B", 1e9L}, {"G", 1e9L}, {"T", 1e12L}, {NULL, 0},
};

/* Length of a plain decimal number at the start of `text`: no blanks, no hexadecimal, no "inf" or
 * "nan", which strtod would take. 0: none. */
static size_t number_length(const char *text)
{
    const char *at = text;
    size_t digit_count = 0;

    if (*at == '+' || *at == '-')
        at++;
    for (; isdigit((unsigned char)*at); at++)
        digit_count++;
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at); at++)
            digit_count++;
    if (digit_count == 0)
        return 0;
    if (*at == 'e' || *at == 'E') {
        const char *exponent = at + 1;

        if (*exponent == '+' || *exponent == '-')
            exponent++;
        if (isdigit((unsigned char)*exponent)) {
            while (isdigit((unsigned char)*exponent))
                exponent++;
            at = exponent;
        }
    }
    return (size_t)(at - text);
}

/* NULL: no such suffix. One blank may stand before it ("4 MiB", as the formatters write). */
static const struct suffix *find_suffix(const struct suffix *suffixes, const char *text)
{
    if (text[0] == ' ' && text[1] != '\0')
        text++;
    for (; suffixes->name != NULL; suffixes++)
        if (strcasecmp(suffixes->name, text) == 0)
            return suffixes;
    return NULL;
}

static nw_rc parse_scaled(const char *text, const struct suffix *suffixes, const char *accepted,
                          long double *value_out)
{
    if (text == NULL || text[0] == '\0')
        return nw_fail(NW_EUSAGE, "nothing given; accepted: %s", accepted);
    const size_t length = number_length(text);
    const struct suffix *suffix = length > 0 ? find_suffix(suffixes, text + length) : NULL;

    if (suffix == NULL)
        return nw_fail(NW_EUSAGE, "\"%.80s\" is not understood; accepted: %s", text, accepted);
    /* strtold itself stops before the suffix: its characters start none of its continuations. */
    const long double value = strtold(text, NULL) * suffix->factor;

    if (!isfinite(value) || fabsl(value) > 1e300L)
        return nw_fail(NW_EUSAGE, "\"%.80s\" is out of range; accepted: %s", text, accepted);
    if (value < 0)
        return nw_fail(NW_EUSAGE, "\"%.80s\" is negative; accepted: %s", text, accepted);
    *value_out = value;
    return NW_OK;
}

nw_rc nw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value_out)
{
    const size_t length = text != NULL ? strlen(text) : 0;
    const char *digits = text != NULL && text[0] == '+' ? text + 1 : text;

    if (length == 0)
        return nw_fail(NW_EUSAGE, "nothing given; accepted: a whole number from %llu to %llu",
                       (unsigned long long)min, (unsigned long long)max);
    errno = 0;
    if (digits[0] != '\0' && strspn(digits, "0123456789") == strlen(digits)) {
        const unsigned long long value = strtoull(digits, NULL, 10);

        if (errno == 0 && value >= min && value <= max) {
            *value_out = value;
            return NW_OK;
        }
        return nw_fail(NW_EUSAGE,
                       "\"%.80s\" is out of range; accepted: a whole number from %llu to %llu",
                       text, (unsigned long long)min, (unsigned long long)max);
    }
    return nw_fail(NW_EUSAGE, "\"%.80s\" is not a whole number; accepted: %llu to %llu", text,
                   (unsigned long long)min, (unsigned long long)max);
}

nw_rc nw_parse_double(const char *text, double min, double max, double *value_out)
{
    if (text == NULL || text[0] == '\0')
        return nw_fail(NW_EUSAGE, "nothing given; accepted: a number from %g to %g", min, max);
    if (number_length(text) != strlen(text))
        return nw_fail(NW_EUSAGE, "\"%.80s\" is not a number; accepted: a number from %g to %g",
                       text, min, max);
    const double value = strtod(text, NULL);

    if (!isfinite(value) || value < min || value > max)
        return nw_fail(NW_EUSAGE, "\"%.80s\" is out of range; accepted: a number from %g to %g",
                       text, min, max);
    *value_out = value;
    return NW_OK;
}

nw_rc nw_parse_bytes(const char *text, uint64_t *bytes_out)
{
    static const char accepted[] = "a size in bytes, with a binary suffix if you like: 8, 64K, 1M, "
                                   "2G, 1T (K = 1024)";
    long double value;

    NW_TRY(parse_scaled(text, byte_suffixes, accepted, &value));
    if (value >= 18446744073709551616.0L)
        return nw_fail(NW_EUSAGE, "\"%.80s\" is out of range; accepted: %s", text, accepted);
    if (value != floorl(value))
        return nw_fail(NW_EUSAGE, "\"%.80s\" is not a whole number of bytes; accepted: %s", text,
                       accepted);
    *bytes_out = (uint64_t)value;
    return NW_OK;
}

nw_rc nw_parse_duration(const char *text, double *ns_out)
{
    long double value;

    NW_TRY(parse_scaled(text, duration_suffixes,
                        "a time: 250us, 20ms, 1.5s, 2min, 3h, 1d (a bare number is seconds)",
                        &value));
    *ns_out = (double)value;
    return NW_OK;
}

nw_rc nw_parse_count(const char *text, double *count_out)
{
    long double value;

    NW_TRY(parse_scaled(
        text, count_suffixes,
        "a count, with a decimal suffix if you like: 2048, 10K, 300M, 7B, 1.5T, 2e9", &value));
    *count_out = (double)value;
    return NW_OK;
}

nw_rc nw_parse_bool(const char *text, int *value_out)
{
    static const struct {
        const char *name;
        int value;
    } words[] = {{"yes", 1}, {"no", 0},  {"true", 1}, {"false", 0},
                 {"on", 1},  {"off", 0}, {"1", 1},    {"0", 0}};

    for (size_t i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i].name) == 0) {
            *value_out = words[i].value;
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE,
                   "\"%.80s\" is neither yes nor no; accepted: yes, no, true, false, on, "
                   "off, 1, 0",
                   text != NULL ? text : "");
}

const char *nw_format_sig(char text[32], double value, int digits)
{
    if (!isfinite(value)) {
        snprintf(text, 32, "%s", isnan(value) ? "\xE2\x80\x93" : value > 0 ? "inf" : "-inf");
        return text;
    }
    if (digits < 1)
        digits = 1;
    if (digits > 15)
        digits = 15;
    if (value == 0) {
        snprintf(text, 32, "0");
        return text;
    }
    /* The exponent after rounding: 9.996 with three digits is 10.0. */
    char scientific[40];

    snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
    const int exponent = (int)strtol(strchr(scientific, 'e') + 1, NULL, 10);

    if (exponent < -6 || exponent > 14)
        snprintf(text, 32, "%.*g", digits, value);
    else
        snprintf(text, 32, "%.*f", exponent >= digits ? 0 : digits - 1 - exponent, value);
    return text;
}

/* 4.00 -> 4, 1.50 -> 1.5; 100 stays. */
static void trim_zeros(char *text)
{
    if (strchr(text, '.') == NULL || strchr(text, 'e') != NULL)
        return;
    size_t length = strlen(text);

    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[length - 1] = '\0';
}

/* `value` in the largest unit that leaves at least 1 of it, 3 significant digits. */
static void format_scaled(char text[32], double value, double base, const char *const *units,
                          size_t unit_count)
{
    size_t unit = 0;
    char number[32];

    while (unit + 1 < unit_count && fabs(value) >= base) {
        value /= base;
        unit++;
    }
    nw_format_sig(number, value, 3);
    /* 999.7 K would read "1000 K". */
    if (base == 1000 && unit + 1 < unit_count && strcmp(number, "1000") == 0) {
        snprintf(number, sizeof number, "1");
        unit++;
    }
    trim_zeros(number);
    snprintf(text, 32, "%.20s%s%s", number, units[unit][0] != '\0' ? " " : "", units[unit]);
}

const char *nw_format_bytes(char text[32], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

    format_scaled(text, (double)bytes, 1024, units, sizeof units / sizeof units[0]);
    return text;
}

const char *nw_format_count(char text[32], double count)
{
    static const char *const units[] = {"", "K", "M", "B", "T"};

    if (!isfinite(count))
        return nw_format_sig(text, count, 3);
    format_scaled(text, count, 1000, units, sizeof units / sizeof units[0]);
    return text;
}

static void format_two(char text[32], double seconds, double big, const char *big_unit,
                       double small, const char *small_unit)
{
    const double smalls = floor(seconds / small + 0.5);
    const double per_big = big / small;
    const double bigs = floor(smalls / per_big);
    const double rest = smalls - bigs * per_big;

    if (bigs > 1e9)
        snprintf(text, 32, "%.3g %s", bigs, big_unit);
    else if (rest > 0)
        snprintf(text, 32, "%.0f %s %.0f %s", bigs, big_unit, rest, small_unit);
    else
        snprintf(text, 32, "%.0f %s", bigs, big_unit);
}

const char *nw_format_ns(char text[32], double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    const double seconds = ns / 1e9;

    if (!isfinite(ns))
        return nw_format_sig(text, ns, 3);
    if (seconds < 119.5)
        format_scaled(text, ns, 1000, units, sizeof units / sizeof units[0]);
    else if (seconds < 3599.5)
        format_two(text, seconds, 60, "min", 1, "s");
    else if (seconds < 2 * 86400.0)
        format_two(text, seconds, 3600, "h", 60, "min");
    else
        format_two(text, seconds, 86400, "d", 3600, "h");
    return text;
}

const char *nw_format_gb_per_s(char text[32], double bytes_per_s)
{
    return nw_format_sig(text, bytes_per_s / 1e9, 3);
}
