/* Windows programs and PowerShell's ">" write UTF-16; everything here reads UTF-8. */
#include <stdlib.h>

#include "topo/read.h"

/* One code point from at most two units; a half of a pair becomes U+FFFD (RFC 2781). */
static uint32_t take(const unsigned char *data, size_t length, bool big, size_t *at)
{
    const uint32_t first =
        big ? (uint32_t)data[*at] << 8 | data[*at + 1] : (uint32_t)data[*at + 1] << 8 | data[*at];
    uint32_t second;

    *at += 2;
    if (first < 0xd800 || first > 0xdfff)
        return first;
    if (first > 0xdbff || *at + 1 >= length)
        return 0xfffd;
    second =
        big ? (uint32_t)data[*at] << 8 | data[*at + 1] : (uint32_t)data[*at + 1] << 8 | data[*at];
    if (second < 0xdc00 || second > 0xdfff)
        return 0xfffd;
    *at += 2;
    return 0x10000 + ((first & 0x3ff) << 10 | (second & 0x3ff));
}

static size_t put(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

bool nw_utf16_is(const char *data, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)data;

    return length >= 2 &&
           ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff));
}

nw_rc nw_utf16_to_utf8(const char *data, size_t length, char **text_out, size_t *length_out)
{
    const unsigned char *bytes = (const unsigned char *)data;
    const bool big = bytes[0] == 0xfe;
    char *text = malloc(length / 2 * 3 + 1); /* two bytes become three at most */
    size_t used = 0;

    if (text == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for a text of %zu bytes", length);
    for (size_t at = 2; at + 1 < length;)
        used += put(text + used, take(bytes, length, big, &at));
    text[used] = '\0';
    *text_out = text;
    *length_out = used;
    return NW_OK;
}
