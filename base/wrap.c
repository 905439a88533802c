#include "base/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

enum { PAGE_WIDTH = 100 };

/* East Asian blocks from U+2E80 on are two columns wide but for half-width forms; what only marks
 * the character before it has none (Unicode TR 11, simplified). */
static int width_of(uint32_t code)
{
    if ((code >= 0x300 && code < 0x370) || (code >= 0x200B && code <= 0x200F) ||
        (code >= 0xFE00 && code <= 0xFE0F) || code == 0xFEFF)
        return 0;
    return code >= 0x2E80 && !(code >= 0xFF61 && code <= 0xFFDC) ? 2 : 1;
}

/* Bytes of the character at `text` (never past the end), its columns into *width_out. */
static size_t next_character(const char *text, int *width_out)
{
    const unsigned char *at = (const unsigned char *)text;
    const size_t expected = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : at[0] >= 0xC0 ? 2 : 1;
    uint32_t code = expected == 1 ? at[0] : at[0] & (0x7Fu >> expected);
    size_t length = 1;

    while (length < expected && (at[length] & 0xC0) == 0x80)
        code = code << 6 | (at[length++] & 0x3F);
    *width_out = width_of(code);
    return length;
}

int nw_text_width(const char *text)
{
    int columns = 0, width;

    while (*text != '\0') {
        text += next_character(text, &width);
        columns += width;
    }
    return columns;
}

static bool begins_with(const char *text, const char *const *marks)
{
    for (; *marks != NULL; marks++)
        if (strncmp(text, *marks, strlen(*marks)) == 0)
            return true;
    return false;
}

/* No line begins with a closing mark, none ends with an opening one. */
static const char *const closing[] = {"，", "。", "；", "：", "、", "）",
                                      "”",  "》", "？", "！", NULL};
static const char *const opening[] = {"（", "“", "《", NULL};

/* The piece that must not be broken: a word of narrow characters, or one wide character with its
 * marks. */
static size_t next_piece(const char *text, int *columns_out)
{
    size_t length = 0;
    int columns = 0, width;
    bool opened = false;

    while (text[length] != '\0' && text[length] != ' ') {
        const size_t step = next_character(text + length, &width);
        const bool opens = begins_with(text + length, opening);

        if (width == 2 && length > 0 && !opened && !begins_with(text + length, closing))
            break;
        length += step;
        columns += width;
        if (width == 2 && !opens && !begins_with(text + length, closing))
            break;
        opened = opens;
    }
    *columns_out = columns;
    return length;
}

void nw_print_wrapped(FILE *stream, const char *first, const char *rest, const char *text)
{
    int column, columns;
    bool empty = true; /* nothing but the prefix is on the line */

    first = nw_spoken(first);
    text = nw_spoken(text);
    column = nw_text_width(first);
    fputs(first, stream);
    while (*text != '\0') {
        size_t blanks = strspn(text, " ");
        const size_t length = next_piece(text + blanks, &columns);

        if (length == 0)
            break;
        text += blanks;
        if (empty)
            blanks = 0;
        if (!empty && column + (int)blanks + columns > PAGE_WIDTH) {
            fprintf(stream, "\n%s", rest);
            column = nw_text_width(rest);
            blanks = 0;
        }
        fprintf(stream, "%*s%.*s", (int)blanks, "", (int)length, text);
        column += (int)blanks + columns;
        text += length;
        empty = false;
    }
    fputc('\n', stream);
}

char *nw_text_wrap(const char *text, int width)
{
    /* At most one newline goes before every byte. */
    char *wrapped = malloc(2 * strlen(text) + 1), *to = wrapped;
    int column = 0, piece, step_width;

    while (wrapped != NULL && *text != '\0') {
        const size_t blanks = strspn(text, " ");
        const size_t length = next_piece(text + blanks, &piece);

        if (column > 0 && column + (int)blanks + piece > width) {
            *to++ = '\n';
            column = 0;
        } else {
            to = mempcpy(to, text, blanks);
            column += (int)blanks;
        }
        text += blanks;
        for (const char *end = text + length; text < end;) {
            const size_t step = next_character(text, &step_width);

            if (column > 0 && column + step_width > width) {
                *to++ = '\n';
                column = 0;
            }
            to = mempcpy(to, text, step);
            if ((unsigned char)to[-1] < 0x20)
                to[-1] = ' ';
            column += step_width;
            text += step;
        }
    }
    if (wrapped != NULL)
        *to = '\0';
    return wrapped;
}
