#include "topo/scan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

nw_rc nw_scan_open(struct nw_scan *text, const char *data, size_t length, const char *what)
{
    *text = (struct nw_scan){.data = data, .length = length, .what = what, .rc = NW_OK};
    text->line = malloc(NW_SCAN_MAX_LINE + 1);
    if (text->line == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for a line", what);
    text->line[0] = '\0';
    return NW_OK;
}

void nw_scan_close(struct nw_scan *text)
{
    free(text->line);
    text->line = NULL;
}

nw_rc nw_scan_fail(const struct nw_scan *text, const char *format, ...)
{
    char sentence[700];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return nw_fail(NW_EUSAGE, "%s:%d: %s", text->what, text->number > 0 ? text->number : 1,
                   sentence);
}

/* --- a raw line to a clean one --- */

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes of "4m" or "1;31m" behind the "[" of a colour; 0: none. Pages lose the escape character and
 * keep the rest. */
static size_t colour_length(const char *from, size_t length)
{
    size_t i = 0;

    while (i < length && i < 12 && (isdigit((unsigned char)from[i]) || from[i] == ';'))
        i++;
    return i > 0 && i < length && from[i] == 'm' ? i + 1 : 0;
}

/* Bytes of the escape sequence at `from` (which is ESC): ECMA-48's CSI and OSC, else two bytes. */
static size_t escape_length(const char *from, size_t length)
{
    size_t i = 2;

    if (length < 2)
        return length;
    if (from[1] == '[') {
        while (i < length && (unsigned char)from[i] >= 0x20 && (unsigned char)from[i] < 0x40)
            i++;
        return at_most(i + 1, length);
    }
    if (from[1] == ']') {
        while (i < length && from[i] != '\a' && from[i] != '\x1b')
            i++;
        if (i + 1 < length && from[i] == '\x1b' && from[i + 1] == '\\')
            i++;
        return at_most(i + 1, length);
    }
    return 2;
}

/* Bytes at `from` that are no text; *blank_out: they stand for a blank. */
static size_t noise_length(const char *from, size_t length, bool *blank_out)
{
    const unsigned char first = (unsigned char)from[0];
    size_t colour;

    *blank_out = false;
    if (first == 0x1b)
        return escape_length(from, length);
    if (first == '[' && (colour = colour_length(from + 1, length - 1)) > 0)
        return colour + 1;
    if (length > 2 && memcmp(from, "^[[", 3) == 0 && /* cat -v */
        (colour = colour_length(from + 3, length - 3)) > 0)
        return colour + 3;
    if (length > 2 &&
        (memcmp(from, "\xef\xbb\xbf", 3) == 0 || memcmp(from, "\xe2\x80\x8b", 3) == 0))
        return 3; /* byte order mark, zero-width space */
    if (length > 2 && memcmp(from, "\xe3\x80\x80", 3) == 0) {
        *blank_out = true; /* ideographic space */
        return 3;
    }
    if (length > 1 && memcmp(from, "\xc2\xa0", 2) == 0) {
        *blank_out = true; /* no-break space, of web pages */
        return 2;
    }
    if ((first < 0x20 && first != '\t') || first == 0x7f) {
        *blank_out = true;
        return 1;
    }
    return 0;
}

static bool clean_line(struct nw_scan *text)
{
    size_t used = 0;

    for (size_t i = text->start; i < text->end;) {
        bool blank;
        const size_t noise = noise_length(text->data + i, text->end - i, &blank);

        if (used == NW_SCAN_MAX_LINE)
            return false;
        if (noise == 0 || blank)
            text->line[used++] = blank ? ' ' : text->data[i];
        i += noise > 0 ? noise : 1;
    }
    text->line[used] = '\0';
    text->used = used;
    return true;
}

bool nw_scan_next(struct nw_scan *text)
{
    size_t end = text->at;

    if (text->at >= text->length || text->rc != NW_OK)
        return false;
    while (end < text->length && text->data[end] != '\n' && text->data[end] != '\r')
        end++;
    text->start = text->at;
    text->end = end;
    text->number++;
    /* One end: LF, CR LF, CR CR LF (written twice through Windows' text mode), CR. */
    text->at = at_most(end + 1, text->length);
    if (end < text->length && text->data[end] == '\r') {
        size_t after = end;

        while (after < text->length && after < end + 3 && text->data[after] == '\r')
            after++;
        if (after < text->length && text->data[after] == '\n')
            text->at = after + 1;
    }
    if (!clean_line(text)) {
        text->rc = nw_scan_fail(text, "a line of more than %d characters; no tool prints that",
                                NW_SCAN_MAX_LINE);
        return false;
    }
    return true;
}

/* --- one line --- */

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t';
}

char *nw_scan_trim(char *line)
{
    size_t length;

    while (is_blank(*line))
        line++;
    length = strlen(line);
    while (length > 0 && is_blank(line[length - 1]))
        line[--length] = '\0';
    return line;
}

int nw_scan_indent(const char *line)
{
    int indent = 0;

    for (; is_blank(*line); line++)
        indent = *line == '\t' ? (indent / 8 + 1) * 8 : indent + 1;
    return indent;
}

bool nw_scan_pair(char *line, struct nw_scan_pair *pair_out)
{
    char *colon = line + strspn(line, " \t");

    if (*colon == ':')
        return false;
    while ((colon = strchr(colon, ':')) != NULL && colon[1] != '\0' && !is_blank(colon[1]))
        colon++;
    if (colon == NULL)
        return false;
    pair_out->indent = nw_scan_indent(line);
    *colon = '\0';
    pair_out->key = nw_scan_trim(line);
    pair_out->value = nw_scan_trim(colon + 1);
    return true;
}

size_t nw_scan_words(char *line, char **words_out, size_t max)
{
    size_t count = 0;

    for (;;) {
        while (is_blank(*line))
            line++;
        if (*line == '\0')
            return count;
        if (count < max)
            words_out[count] = line;
        count++;
        line += strcspn(line, " \t");
        if (*line == '\0')
            return count;
        *line++ = '\0';
    }
}

bool nw_scan_starts(const char *line, const char *prefix)
{
    return strncmp(line, prefix, strlen(prefix)) == 0;
}

bool nw_scan_same(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

bool nw_scan_blank(const char *line)
{
    return line[strspn(line, " \t")] == '\0';
}

bool nw_scan_elision(const char *line)
{
    static const char *const words[] = {"snip", "cut", "omitted", "truncated", "skipped"};
    char inside[24];
    size_t used = 0;
    int dots = 0;

    for (; *line != '\0'; line++) {
        if (nw_scan_starts(line, "\xe2\x80\xa6")) { /* … */
            dots += 3;
            line += 2;
        } else if (*line == '.') {
            dots++;
        } else if (isalpha((unsigned char)*line) && used + 1 < sizeof inside) {
            inside[used++] = *line;
        } else if (strchr(" \t[](){}<>-*", *line) == NULL) {
            return false;
        }
    }
    inside[used] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (nw_scan_same(inside, words[i]))
            return true;
    return used == 0 && dots >= 3;
}

/* --- values --- */

bool nw_scan_unknown(const char *value)
{
    static const char *const words[] = {
        "",
        "-",
        "--",
        "n/a",
        "na",
        "none",
        "null",
        "not available",
        "not supported",
        "unknown",
        "unknown error",
        "gpu is lost",
        "err!",
        "error",
        "gpu requires reset",
        "insufficient permissions",
        "requested functionality has been deprecated",
        "not found",
        "function not found",
        "reset required",
        "timeout",
        "uninitialized",
    };
    char inside[64];
    size_t length = strlen(value);

    if (length >= 2 && ((value[0] == '[' && value[length - 1] == ']') ||
                        (value[0] == '<' && value[length - 1] == '>'))) {
        value++;
        length -= 2;
    }
    if (length >= sizeof inside)
        return false;
    memcpy(inside, value, length);
    inside[length] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (nw_scan_same(nw_scan_trim(inside), words[i]))
            return true;
    return false;
}

/* Splits "350.00 W" into the number and what follows it. */
static bool split_number(const char *value, double *number_out, const char **unit_out)
{
    char number[40];
    size_t length;

    value += strspn(value, " \t");
    length = strspn(value, "0123456789.+-");
    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, value, length);
    number[length] = '\0';
    if (nw_parse_double(number, -1e300, 1e300, number_out) != NW_OK) {
        nw_clear_error();
        return false;
    }
    *unit_out = value + length + strspn(value + length, " \t");
    return true;
}

bool nw_scan_number(const char *value, const char *unit, double *number_out)
{
    const size_t unit_length = unit != NULL ? strlen(unit) : 0;
    const char *rest;
    double number;

    if (!split_number(value, &number, &rest))
        return false;
    if (unit != NULL && strncasecmp(rest, unit, unit_length) != 0)
        return false;
    if (!nw_scan_blank(rest + unit_length))
        return false;
    *number_out = number;
    return true;
}

bool nw_scan_bytes(const char *value, double *bytes_out)
{
    static const char units[] = "BKMGT";
    const char *rest, *unit;
    double number;

    if (!split_number(value, &number, &rest) || number < 0 || *rest == '\0')
        return false;
    unit = strchr(units, toupper((unsigned char)*rest));
    if (unit == NULL)
        return false;
    rest++;
    if (unit > units && *rest == 'i')
        rest++;
    if (unit > units && (*rest == 'B' || *rest == 'b'))
        rest++;
    if (!nw_scan_blank(rest))
        return false;
    *bytes_out = number * (double)(UINT64_C(1) << (10 * (unit - units)));
    return true;
}

bool nw_scan_yes_no(const char *value, bool *yes_out)
{
    static const char *const words[][2] = {
        {"no", "yes"},          {"disabled", "enabled"}, {"off", "on"}, {"not active", "active"},
        {"inactive", "active"}, {"none", "yes"},         {"0", "1"},    {"false", "true"},
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int yes = 0; yes < 2; yes++)
            if (nw_scan_same(value, words[i][yes])) {
                *yes_out = yes != 0;
                return true;
            }
    return false;
}

int nw_scan_list(const char *value, int *first_out)
{
    int count = 0, first = -1;

    do {
        char *end;
        long low, high;

        value += strspn(value, " \t");
        if (!isdigit((unsigned char)*value))
            return -1;
        low = high = strtol(value, &end, 10); /* too large: LONG_MAX, refused below */
        if (*end == '-' && isdigit((unsigned char)end[1]))
            high = strtol(end + 1, &end, 10);
        if (low > high || high >= 1 << 20 || count > 1 << 20)
            return -1;
        if (first < 0)
            first = (int)low;
        count += (int)(high - low + 1);
        value = end + strspn(end, " \t");
    } while (*value == ',' && *++value != '\0');
    if (*value != '\0')
        return -1;
    if (first_out != NULL)
        *first_out = first;
    return count;
}

/* --- recognising a format --- */

bool nw_scan_has(const char *data, size_t length, size_t within, const char *word)
{
    if (within > 0 && within < length)
        length = within;
    return memmem(data, length, word, strlen(word)) != NULL;
}

int nw_scan_find_line(const char *data, size_t length, const char *prefix)
{
    struct nw_scan text;
    int found = 0;

    if (nw_scan_open(&text, data, length, "") != NW_OK)
        return 0;
    while (found == 0 && nw_scan_next(&text))
        if (nw_scan_starts(text.line + strspn(text.line, " \t"), prefix))
            found = text.number;
    nw_scan_close(&text);
    if (text.rc != NW_OK)
        nw_clear_error();
    return found;
}
