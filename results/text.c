#include "results/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct nw_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->capacity - text->length >= more)
        return true;
    size_t capacity = text->capacity > 0 ? text->capacity : 1024;

    while (capacity - text->length < more) {
        if (capacity > SIZE_MAX / 2) {
            text->failed = true;
            return false;
        }
        capacity *= 2;
    }
    char *data = realloc(text->data, capacity);

    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void nw_text_raw(struct nw_text *text, const char *data, size_t length)
{
    if (length == 0 || !reserve(text, length))
        return;
    memcpy(text->data + text->length, data, length);
    text->length += length;
}

void nw_text_put(struct nw_text *text, const char *literal)
{
    nw_text_raw(text, literal, strlen(literal));
}

size_t nw_utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t length;
    } rows[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (s[0] < rows[i].first_low || s[0] > rows[i].first_high)
            continue;
        if (s[1] < rows[i].second_low || s[1] > rows[i].second_high)
            return 0;
        for (size_t k = 2; k < rows[i].length; k++)
            if (s[k] < 0x80 || s[k] > 0xBF)
                return 0;
        return rows[i].length;
    }
    return 0;
}

static void put_escaped(struct nw_text *text, unsigned char c)
{
    char escape[8];

    switch (c) {
    case '"':
        nw_text_raw(text, "\\\"", 2);
        break;
    case '\\':
        nw_text_raw(text, "\\\\", 2);
        break;
    case '\n':
        nw_text_raw(text, "\\n", 2);
        break;
    case '\t':
        nw_text_raw(text, "\\t", 2);
        break;
    default:
        snprintf(escape, sizeof escape, "\\u%04x", c);
        nw_text_raw(text, escape, 6);
    }
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* `s` is where the first character stands that needs care. */
static void put_careful(struct nw_text *text, const unsigned char *start, const unsigned char *s)
{
    while (*s != '\0') {
        size_t length = 1;

        if (is_plain(*s)) {
            s++;
            continue;
        }
        if (*s >= 0x80 && (length = nw_utf8_length(s)) > 0) {
            s += length;
            continue;
        }
        nw_text_raw(text, (const char *)start, (size_t)(s - start));
        if (*s >= 0x80)
            nw_text_put(text, "\xEF\xBF\xBD");
        else
            put_escaped(text, *s);
        start = ++s;
    }
    nw_text_raw(text, (const char *)start, (size_t)(s - start));
}

void nw_text_string(struct nw_text *text, const char *value)
{
    const unsigned char *start = (const unsigned char *)value, *s = start;

    while (is_plain(*s))
        s++;
    const size_t length = (size_t)(s - start);

    if (!reserve(text, length + 2))
        return;
    char *to = text->data + text->length;

    *to = '"';
    memcpy(to + 1, value, length);
    text->length += 1 + length;
    if (*s != '\0')
        put_careful(text, s, s);
    nw_text_raw(text, "\"", 1);
}

void nw_text_u64(struct nw_text *text, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    nw_text_raw(text, digits + at, sizeof digits - at);
}

void nw_text_i64(struct nw_text *text, int64_t value)
{
    if (value < 0)
        nw_text_raw(text, "-", 1);
    nw_text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void nw_text_real(struct nw_text *text, double value)
{
    char digits[40];
    int length = 0;

    /* Most published times and rates are whole ns and bytes/s; below 2^53 integers are exact. */
    if (fabs(value) < 9007199254740992.0 && value == floor(value) &&
        !(value == 0 && signbit(value))) {
        nw_text_i64(text, (int64_t)value);
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        length = snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    nw_text_raw(text, digits, (size_t)length);
    /* A reader must not take it for an integer, which could overflow there. */
    if (strpbrk(digits, ".e") == NULL)
        nw_text_raw(text, ".0", 2);
}

void nw_text_key(struct nw_text *text, const char *key)
{
    const size_t length = strlen(key);

    if (!reserve(text, length + 4))
        return;
    char *at = text->data + text->length;

    if (text->length > 0 && at[-1] != '{')
        *at++ = ',';
    *at++ = '"';
    memcpy(at, key, length);
    at += length;
    *at++ = '"';
    *at++ = ':';
    text->length = (size_t)(at - text->data);
}

nw_rc nw_text_check(const struct nw_text *text)
{
    return text->failed ? nw_fail(NW_ENOMEM, "no memory for a line of results") : NW_OK;
}

void nw_text_free(struct nw_text *text)
{
    free(text->data);
    *text = (struct nw_text){0};
}
