#include "report/html_text.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

/* Length of the UTF-8 character at `at` and its number; 0: it is none. */
static size_t decode(const unsigned char *at, uint32_t *point_out)
{
    const size_t length = at[0] < 0x80             ? 1
                          : (at[0] & 0xE0) == 0xC0 ? 2
                          : (at[0] & 0xF0) == 0xE0 ? 3
                          : (at[0] & 0xF8) == 0xF0 ? 4
                                                   : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t point = length <= 1 ? at[0] : at[0] & (0x7Fu >> length);

    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3F);
    }
    if (length == 0 || point < least[length] || point > 0x10FFFF ||
        (point >= 0xD800 && point < 0xE000))
        return 0;
    *point_out = point;
    return length;
}

/* Characters that nobody sees and that change how others are shown: controls, marks and isolates of
 * direction, invisible operators, tags. */
static int is_hidden(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x00, 0x08},     {0x0B, 0x1F},      {0x7F, 0x9F},     {0xAD, 0xAD},
                  {0x61C, 0x61C},   {0x180E, 0x180E},  {0x200B, 0x200F}, {0x202A, 0x202E},
                  {0x2060, 0x206F}, {0xFE00, 0xFE0F},  {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB},
                  {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF}};

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return 1;
    return 0;
}

static const char *escape_of(uint32_t point)
{
    switch (point) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
    case '\r':
    case 0x2028: /* line and paragraph separator */
    case 0x2029:
        return " ";
    default:
        return is_hidden(point) ? REPLACEMENT : NULL;
    }
}

void nw_html_text(FILE *stream, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at != '\0') {
        uint32_t point = 0;
        size_t length = decode(at, &point);
        const char *escaped = length == 0 ? REPLACEMENT : escape_of(point);

        if ((size_t)((const char *)at - text) >= NW_HTML_TEXT_MAX) {
            fputs("…", stream);
            return;
        }
        length = length == 0 ? 1 : length;
        if (escaped != NULL)
            fputs(escaped, stream);
        else
            fwrite(at, 1, length, stream);
        at += length;
    }
}

void nw_html_attribute(FILE *stream, const char *text)
{
    fputc('"', stream);
    nw_html_text(stream, text);
    fputc('"', stream);
}
