#include "results/quote.h"

#include <ctype.h>
#include <ini.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/io.h"
#include "base/units.h"
#include "topo/link.h"

/* State of one parse: the text that inih reads from, and where it is. */
struct parse {
    const char *at, *end, *what;
    int line;
    nw_rc rc; /* the first failure; nothing is read after it */
    struct nw_quote quote;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Names of the sections, or of the keys of one, each once; NULL-terminated. */
static void list_names(const char *section, const char *names[NW_QUOTE_MAX_KEYS + 1])
{
    size_t count = 0;

    for (size_t i = 0; i < nw_quote_row_count; i++) {
        const struct nw_quote_row *row = &nw_quote_rows[i];

        if (section != NULL && strcmp(row->section, section) == 0)
            names[count++] = row->key;
        else if (section == NULL && (count == 0 || strcmp(names[count - 1], row->section) != 0))
            names[count++] = row->section;
    }
    names[count] = NULL;
}

static nw_rc unknown_name(const struct parse *parse, const char *kind, const char *name,
                          const char *section)
{
    const char *names[NW_QUOTE_MAX_KEYS + 1];
    char accepted[512];

    list_names(section, names);
    const char *nearest = nw_nearest_name(name, names);

    nw_join_names(accepted, sizeof accepted, names);
    return nw_fail(NW_EUSAGE, "%s:%d: unknown %s \"%.60s\"%s%s%s%s%s%s Accepted: %s", parse->what,
                   parse->line, kind, name, section != NULL ? " in [" : "",
                   section != NULL ? section : "", section != NULL ? "]" : "",
                   nearest != NULL ? "; did you mean \"" : ".", nearest != NULL ? nearest : "",
                   nearest != NULL ? "\"?" : "", accepted);
}

static nw_rc check_section(const struct parse *parse, const char *name, size_t length)
{
    char section[32];

    for (size_t i = 0; i < nw_quote_row_count; i++)
        if (strlen(nw_quote_rows[i].section) == length &&
            memcmp(nw_quote_rows[i].section, name, length) == 0)
            return NW_OK;
    snprintf(section, sizeof section, "%.*s", (int)(length < 31 ? length : 31), name);
    return unknown_name(parse, "section", section, NULL);
}

/* What inih would let pass or cut in silence is refused here. `line` has no newline. */
static nw_rc check_line(const struct parse *parse, const char *line, size_t length, size_t most)
{
    const char *where = parse->what;

    if (length > most)
        return nw_fail(NW_EUSAGE, "%s:%d: the line has %zu bytes; at most %zu are accepted", where,
                       parse->line, length, most);
    if (length == 0 || line[0] == '#' || line[0] == ';')
        return NW_OK;
    if (line[0] != '[') {
        if (memchr(line, '=', length) == NULL)
            return nw_fail(NW_EUSAGE,
                           "%s:%d: \"%.*s\" is neither \"[section]\" nor \"key = value\"", where,
                           parse->line, (int)(length < 60 ? length : 60), line);
        return NW_OK;
    }
    const char *close = memchr(line, ']', length);
    const char *rest = close != NULL ? close + 1 : line;

    while (rest < line + length && is_blank(*rest))
        rest++;
    if (close == NULL || (rest < line + length && *rest != ';' && *rest != '#'))
        return nw_fail(NW_EUSAGE, "%s:%d: a section line is expected to be \"[name]\" and no more",
                       where, parse->line);
    return check_section(parse, line + 1, (size_t)(close - line - 1));
}

/* inih's reader: one line a call, like fgets. Blanks before a line are dropped: inih would take an
 * indented key for the rest of the value above it. */
static char *next_line(char *buffer, int size, void *stream)
{
    struct parse *parse = stream;

    if (parse->rc != NW_OK || parse->at == parse->end)
        return NULL;
    const char *newline = memchr(parse->at, '\n', (size_t)(parse->end - parse->at));
    const char *start = parse->at, *stop = newline != NULL ? newline : parse->end;

    parse->line++;
    parse->at = newline != NULL ? newline + 1 : parse->end;
    if (parse->line == 1 && stop - start >= 3 && memcmp(start, "\xEF\xBB\xBF", 3) == 0)
        start += 3; /* byte order mark */
    while (start < stop && is_blank(*start))
        start++;
    while (start < stop && is_blank(stop[-1]))
        stop--;
    /* inih needs room for the newline and the end of the text. */
    parse->rc = check_line(parse, start, (size_t)(stop - start), (size_t)size - 2);
    if (parse->rc != NW_OK)
        return NULL;
    memcpy(buffer, start, (size_t)(stop - start));
    memcpy(buffer + (stop - start), "\n", 2);
    return buffer;
}

static nw_rc set_choice(void *field, const struct nw_quote_row *row, const char *text)
{
    char accepted[256];

    for (size_t i = 0; row->choices[i] != NULL; i++) {
        if (strcasecmp(row->choices[i], text) == 0) {
            *(const char **)field = row->choices[i];
            return NW_OK;
        }
    }
    nw_join_names(accepted, sizeof accepted, row->choices);
    return nw_fail(NW_EUSAGE, "\"%.60s\" is not known; accepted: %s", text, accepted);
}

/* "550.54.15", "12.4", "2". */
static nw_rc check_version(const char *text)
{
    const size_t length = strlen(text);

    if (length > 0 && isdigit((unsigned char)text[0]) && isdigit((unsigned char)text[length - 1]) &&
        strspn(text, "0123456789.") == length && strstr(text, "..") == NULL)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "\"%.60s\" is no version; accepted: numbers with dots between them, as 550.54",
                   text);
}

static nw_rc set_field(struct nw_quote *quote, const struct nw_quote_row *row, const char *text)
{
    void *field = (char *)quote + row->offset;
    uint64_t count;
    double number;

    switch (row->type) {
    case NW_QUOTE_VERSION:
        NW_TRY(check_version(text)); /* fallthrough */
    case NW_QUOTE_TEXT:
        if (strlen(text) >= row->size)
            return nw_fail(NW_EUSAGE, "the text has %zu bytes; at most %zu are accepted",
                           strlen(text), row->size - 1);
        strcpy(field, text);
        return NW_OK;
    case NW_QUOTE_CHOICE:
        return set_choice(field, row, text);
    case NW_QUOTE_YES_NO:
        return nw_parse_bool(text, field);
    case NW_QUOTE_COUNT:
        NW_TRY(nw_parse_u64(text, (uint64_t)row->min, (uint64_t)row->max, &count));
        *(int *)field = (int)count;
        return NW_OK;
    default:
        NW_TRY(nw_parse_double(text, row->min, row->max, &number));
        *(double *)field = number * row->scale;
        return NW_OK;
    }
}

/* "900 # both ways": inih knows ';' as the start of a comment behind a value, people write '#' too.
 * Free texts keep theirs. */
static void cut_comment(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '#' && (c == text || is_blank(c[-1]))) {
            *c = '\0';
            break;
        }
    }
    size_t length = strlen(text);

    while (length > 0 && is_blank(text[length - 1]))
        text[--length] = '\0';
}

static nw_rc set_row(struct parse *parse, size_t index, const char *value)
{
    const struct nw_quote_row *row = &nw_quote_rows[index];
    int *line = &parse->quote.lines[index];
    char text[512];

    if (*line != 0)
        return nw_fail(NW_EUSAGE, "%s:%d: \"%s\" in [%s] is given a second time; first in line %d",
                       parse->what, parse->line, row->key, row->section, *line);
    *line = parse->line;
    snprintf(text, sizeof text, "%s", value);
    if (row->type != NW_QUOTE_TEXT)
        cut_comment(text);
    const nw_rc rc = text[0] != '\0' ? set_field(&parse->quote, row, text)
                                     : nw_fail(NW_EUSAGE, "nothing stands behind the \"=\"");

    if (rc == NW_OK)
        return NW_OK;
    return nw_fail(rc, "%s:%d: %s in [%s]: %s%s%s%s", parse->what, parse->line, row->key,
                   row->section, nw_last_error()->text, row->unit[0] != '\0' ? " (" : "", row->unit,
                   row->unit[0] != '\0' ? ")" : "");
}

/* inih's handler; 0 makes it go on to the next line, where the reader stops. */
static int take_value(void *user, const char *section, const char *name, const char *value)
{
    struct parse *parse = user;

    if (parse->rc != NW_OK)
        return 0;
    if (section[0] == '\0') {
        const char *names[NW_QUOTE_MAX_KEYS + 1];
        char accepted[256];

        list_names(NULL, names);
        nw_join_names(accepted, sizeof accepted, names);
        parse->rc = nw_fail(NW_EUSAGE,
                            "%s:%d: \"%.60s\" stands outside a section; sections, each as "
                            "\"[name]\" on a line: %s",
                            parse->what, parse->line, name, accepted);
        return 0;
    }
    for (size_t i = 0; i < nw_quote_row_count; i++) {
        if (strcmp(nw_quote_rows[i].section, section) == 0 &&
            strcmp(nw_quote_rows[i].key, name) == 0) {
            parse->rc = set_row(parse, i, value);
            return parse->rc == NW_OK;
        }
    }
    parse->rc = unknown_name(parse, "key", name, section);
    return 0;
}

/* Length of a valid UTF-8 character at `text`, 0: none. */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    const unsigned char first = text[0];
    const size_t length = first < 0x80                    ? 1
                          : first >= 0xC2 && first < 0xE0 ? 2
                          : first >= 0xE0 && first < 0xF0 ? 3
                          : first >= 0xF0 && first < 0xF5 ? 4
                                                          : 0;

    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    if ((first == 0xE0 && text[1] < 0xA0) || (first == 0xED && text[1] >= 0xA0) ||
        (first == 0xF0 && text[1] < 0x90) || (first == 0xF4 && text[1] >= 0x90))
        return 0;
    return length;
}

static nw_rc check_text(const char *data, size_t length, const char *what)
{
    int line = 1;

    if (length == 0)
        return nw_fail(NW_EUSAGE, "%s: is empty; `nodeworth quote init` writes a template", what);
    if (length > NW_QUOTE_MAX_BYTES)
        return nw_fail(NW_EUSAGE, "%s: has %zu bytes; a quote has at most %d", what, length,
                       NW_QUOTE_MAX_BYTES);
    for (size_t i = 0; i < length;) {
        const unsigned char c = (unsigned char)data[i];
        const size_t step = utf8_length((const unsigned char *)data + i, length - i);

        if (c == '\r' && i + 1 < length && data[i + 1] != '\n')
            return nw_fail(NW_EUSAGE,
                           "%s:%d: a carriage return stands within the line; lines end "
                           "with LF or CR LF",
                           what, line);
        if ((c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7F)
            return nw_fail(NW_EUSAGE, "%s:%d: byte 0x%02X: this is no text file", what, line, c);
        if (step == 0)
            return nw_fail(NW_EUSAGE,
                           "%s:%d: byte 0x%02X is not UTF-8; save the file as UTF-8 text", what,
                           line, c);
        line += c == '\n';
        i += step;
    }
    return NW_OK;
}

/* Keys that say something only together. */
static nw_rc check_pairs(const struct nw_quote *quote, const char *what)
{
    static const struct {
        const char *section, *key, *needs, *why;
    } rows[] = {
        {"gpu", "nvlink_GBps", "nvlink_is",
         "say how it is counted: one-way, or bidirectional (both directions added)"},
        {"gpu", "nvlink_is", "nvlink_GBps", "say how much"},
        {"gpu", "pcie_width", "pcie_gen", "lanes alone say nothing of the rate"},
        {"price", "per_gpu_hour", "currency", "say which currency"},
        {"price", "per_node_hour", "currency", "say which currency"},
        {"price", "per_gpu_month", "currency", "say which currency"},
        {"price", "per_node_month", "currency", "say which currency"},
        {"price", "spot_per_gpu_hour", "currency", "say which currency"},
        {"price", "spot_per_node_hour", "currency", "say which currency"},
        {"price", "setup", "currency", "say which currency"},
        {"disk", "mount", "file_system", "say which file system is mounted there"},
        {"price", "network_extra", "currency", "say which currency"},
        {"price", "storage_extra", "currency", "say which currency"},
        {"price", "ops_extra", "currency", "say which currency"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int line = nw_quote_line(quote, rows[i].section, rows[i].key);

        if (line > 0 && nw_quote_line(quote, rows[i].section, rows[i].needs) == 0)
            return nw_fail(NW_EUSAGE, "%s:%d: \"%s\" in [%s] needs \"%s\" beside it: %s", what,
                           line, rows[i].key, rows[i].section, rows[i].needs, rows[i].why);
    }
    const int line = nw_quote_line(quote, "gpu", "pcie_width");

    if (line > 0 && !isfinite(nw_pcie_bytes_per_s(quote->pcie_generation, quote->pcie_lanes)))
        return nw_fail(NW_EUSAGE,
                       "%s:%d: pcie_width in [gpu]: there is no PCIe x%d; accepted: 1, 2, "
                       "4, 8, 12, 16",
                       what, line, quote->pcie_lanes);
    for (size_t i = 0; i < nw_quote_row_count; i++)
        if (quote->lines[i] != 0)
            return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "%s: no key is set, only comments and sections; remove the \"#\" "
                   "before what the vendor promises",
                   what);
}

static void set_unknown(struct nw_quote *quote, const char *what)
{
    memset(quote, 0, sizeof *quote);
    snprintf(quote->path, sizeof quote->path, "%s", what);
    quote->nvlink_one_way_bytes_per_s = NAN;
    for (size_t i = 0; i < nw_quote_row_count; i++) {
        void *field = (char *)quote + nw_quote_rows[i].offset;

        if (nw_quote_rows[i].type == NW_QUOTE_NUMBER)
            *(double *)field = NAN;
        if (nw_quote_rows[i].type == NW_QUOTE_YES_NO)
            *(int *)field = -1;
    }
}

nw_rc nw_quote_parse(const char *data, size_t length, const char *what, struct nw_quote *quote_out)
{
    struct parse parse = {.at = data, .end = data + length, .what = what};

    NW_TRY(check_text(data, length, what));
    set_unknown(&parse.quote, what);
    const int bad_line = ini_parse_stream(next_line, &parse, take_value, &parse);

    NW_TRY(parse.rc);
    if (bad_line != 0)
        return nw_fail(NW_EUSAGE, "%s:%d: is neither \"[section]\" nor \"key = value\"", what,
                       bad_line > 0 ? bad_line : parse.line);
    struct nw_quote *quote = &parse.quote;

    NW_TRY(check_pairs(quote, what));
    if (quote->nvlink_is != NULL)
        quote->nvlink_one_way_bytes_per_s = strcmp(quote->nvlink_is, "bidirectional") == 0
                                                ? quote->nvlink_quoted_bytes_per_s / 2
                                                : quote->nvlink_quoted_bytes_per_s;
    *quote_out = *quote;
    return NW_OK;
}

nw_rc nw_quote_read(const char *path, struct nw_quote *quote_out)
{
    char *data;
    size_t length;

    NW_TRY(nw_file_read(path, NW_QUOTE_MAX_BYTES, &data, &length));
    const nw_rc rc =
        nw_quote_parse(data, length, strcmp(path, "-") == 0 ? "stdin" : path, quote_out);

    free(data);
    return rc;
}
