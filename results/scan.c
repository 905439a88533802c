#include "results/scan.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "results/text.h"

struct nw_scan_digits { /* a number before it is one */
    const char *start;
    bool is_integer;
    uint64_t mantissa;
    int exponent; /* of 10, of the last digit */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct nw_scan *scan)
{
    while (scan->at < scan->end && is_blank(*scan->at))
        scan->at++;
}

/* The character itself, with blanks before and behind. */
bool nw_scan_take(struct nw_scan *scan, char c)
{
    skip_blanks(scan);
    if (scan->at >= scan->end || *scan->at != c)
        return false;
    scan->at++;
    skip_blanks(scan);
    return true;
}

bool nw_scan_string(struct nw_scan *scan, struct nw_scan_span *span_out)
{
    if (scan->at >= scan->end || *scan->at != '"')
        return false;
    const char *start = ++scan->at;

    while (scan->at < scan->end) {
        const unsigned char c = (unsigned char)*scan->at;

        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            scan->at++;
            continue;
        }
        const size_t length = c < 0x80 ? 1 : nw_utf8_length((const unsigned char *)scan->at);

        if (c == '"') {
            *span_out = (struct nw_scan_span){start, (size_t)(scan->at - start)};
            scan->at++;
            return true;
        }
        if (c < 0x20 || c == '\\' || length == 0)
            return false;
        scan->at += length;
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits from scan->at on: those of a number so far, as one integer of at most 19 digits. */
static size_t take_digits(struct nw_scan *scan, uint64_t *mantissa)
{
    const char *start = scan->at;

    for (; is_digit(*scan->at); scan->at++)
        *mantissa = *mantissa * 10 + (uint64_t)(*scan->at - '0');
    return (size_t)(scan->at - start);
}

/* m × 10^exponent to the last bit, in one operation of x87's 64 bits where it has them: m and the
 * power are exact there, and what is rounded to a double's 53 bits is right unless it lies just
 * between two of them. Else by strtod. */
static double real_of(const char *start, uint64_t mantissa, int exponent)
{
    static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                         1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                         1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                         1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    const int most = sizeof powers / sizeof powers[0] - 1;
    uint64_t bits;

    if (LDBL_MANT_DIG != 64 || exponent < -most || exponent > most)
        return strtod(start, NULL);
    const long double value = exponent < 0 ? (long double)mantissa / powers[-exponent]
                                           : (long double)mantissa * powers[exponent];

    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7FF) == 0x400 ? strtod(start, NULL) : (double)value;
}

/* JSON's grammar, not negative, at most 18 digits. */
static bool nw_scan_digits(struct nw_scan *scan, struct nw_scan_digits *digits_out)
{
    const char *start = scan->at;
    uint64_t mantissa = 0;
    int exponent = 0, written = 0;
    const size_t whole = take_digits(scan, &mantissa);
    size_t fraction = 0;

    if (whole == 0 || (whole > 1 && *start == '0'))
        return false;
    digits_out->is_integer = *scan->at != '.' && *scan->at != 'e' && *scan->at != 'E';
    if (*scan->at == '.') {
        scan->at++;
        fraction = take_digits(scan, &mantissa);
        if (fraction == 0)
            return false;
    }
    if (whole + fraction > 18)
        return false;
    if (*scan->at == 'e' || *scan->at == 'E') {
        const bool negative = *++scan->at == '-';

        scan->at += negative || *scan->at == '+';
        if (!is_digit(*scan->at))
            return false;
        for (; is_digit(*scan->at) && written < 1000; scan->at++)
            written = written * 10 + (*scan->at - '0');
        if (written > 290) /* near the ends of a double: jansson has a word about overflow */
            return false;
        exponent = negative ? -written : written;
    }
    digits_out->start = start;
    digits_out->mantissa = mantissa;
    digits_out->exponent = exponent - (int)fraction;
    return true;
}

bool nw_scan_json_number(struct nw_scan *scan, struct nw_scan_number *number_out)
{
    struct nw_scan_digits digits;

    if (!nw_scan_digits(scan, &digits))
        return false;
    number_out->is_integer = digits.is_integer;
    number_out->integer = (int64_t)digits.mantissa;
    number_out->real = digits.is_integer ? (double)number_out->integer
                                         : real_of(digits.start, digits.mantissa, digits.exponent);
    return true;
}

bool nw_scan_word(struct nw_scan *scan, const char *word)
{
    const size_t length = strlen(word);

    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

bool nw_scan_is(const struct nw_scan_span *key, const char *name)
{
    /* the first character decides nearly always; an empty key's is its quote */
    return key->at[0] == name[0] && strncmp(key->at, name, key->length) == 0 &&
           name[key->length] == '\0';
}

#define DEPTH_MAX 8

/* A value that is passed over. */
bool nw_scan_skip(struct nw_scan *scan, int depth)
{
    struct nw_scan_digits digits;
    struct nw_scan_span span;

    skip_blanks(scan);
    if (scan->at >= scan->end || depth > DEPTH_MAX)
        return false;
    const char open = *scan->at;

    if (open == '"')
        return nw_scan_string(scan, &span);
    if (open != '{' && open != '[')
        return nw_scan_word(scan, "true") || nw_scan_word(scan, "false") ||
               nw_scan_word(scan, "null") || nw_scan_digits(scan, &digits);
    const char close = open == '{' ? '}' : ']';

    nw_scan_take(scan, open);
    if (nw_scan_take(scan, close))
        return true;
    do {
        if (open == '{' && !(nw_scan_string(scan, &span) && nw_scan_take(scan, ':')))
            return false;
        if (!nw_scan_skip(scan, depth + 1))
            return false;
    } while (nw_scan_take(scan, ','));
    return nw_scan_take(scan, close);
}
