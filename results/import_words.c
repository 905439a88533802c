#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/import_kit.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

struct nw_slice nw_imp_slice(const char *text)
{
    return (struct nw_slice){text, strlen(text)};
}

bool nw_imp_has(const char *data, size_t length, const char *text)
{
    return length > 0 && memmem(data, length, text, strlen(text)) != NULL;
}

struct nw_slice nw_imp_trim(struct nw_slice text)
{
    while (text.length > 0 && is_blank(text.at[0]))
        text.at++, text.length--;
    while (text.length > 0 && is_blank(text.at[text.length - 1]))
        text.length--;
    return text;
}

bool nw_imp_starts(struct nw_slice text, const char *with)
{
    const size_t length = strlen(with);

    return text.length >= length && memcmp(text.at, with, length) == 0;
}

bool nw_imp_is(struct nw_slice text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

const char *nw_imp_find(struct nw_slice text, const char *needle)
{
    return text.length > 0 ? memmem(text.at, text.length, needle, strlen(needle)) : NULL;
}

static struct nw_slice behind(struct nw_slice text, const char *at)
{
    return (struct nw_slice){at, text.length - (size_t)(at - text.at)};
}

struct nw_slice nw_imp_behind(struct nw_slice text, const char *label)
{
    const char *at = nw_imp_find(text, label);

    return at != NULL ? nw_imp_trim(behind(text, at + strlen(label)))
                      : (struct nw_slice){text.at, 0};
}

/* Open MPI --tag-output and PRRTE: "[1,0]<stdout>:", with a time stamp or a job name before it. */
static bool strip_tag(struct nw_slice *text)
{
    enum { REACH = 120 };
    const struct nw_slice head = {text->at, text->length < REACH ? text->length : REACH};
    const char *tag = memchr(head.at, '<', head.length);

    if (tag == NULL)
        return false;
    struct nw_slice rest = behind(*text, tag);

    if (!nw_imp_starts(rest, "<stdout>:") && !nw_imp_starts(rest, "<stderr>:"))
        return false;
    *text = behind(*text, tag + strlen("<stdout>:"));
    return true;
}

/* srun -l: "  0: "; Intel MPI and MPICH -l: "[0] "; kubectl --prefix: "[pod/name/container] ". */
static bool strip_rank(struct nw_slice *text)
{
    size_t i = 0;

    while (i < text->length && is_digit(text->at[i]))
        i++;
    if (i > 0 && i < text->length && text->at[i] == ':') {
        *text = behind(*text, text->at + i + 1);
        return true;
    }
    if (text->length == 0 || text->at[0] != '[')
        return false;
    const char *end = memchr(text->at, ']', text->length);
    const bool pod = nw_imp_starts(*text, "[pod/");

    for (i = 1; i < text->length && is_digit(text->at[i]); i++)
        ;
    if (end == NULL || !(pod || (i > 1 && text->at + i == end)))
        return false;
    *text = behind(*text, end + 1);
    return true;
}

/* docker compose: "worker-1  | ". */
static bool strip_label(struct nw_slice *text)
{
    if (strip_rank(text))
        return true;
    const char *bar =
        text->length > 0 ? memchr(text->at, '|', text->length < 64 ? text->length : 64) : NULL;

    if (bar != NULL && bar > text->at && is_blank(bar[-1])) {
        *text = behind(*text, bar + 1);
        return true;
    }
    return false;
}

struct nw_slice nw_imp_clean(struct nw_slice line)
{
    struct nw_slice text = nw_imp_trim(line);

    if (text.length == 0 || text.at[0] == '#')
        return text;
    if (strip_tag(&text) || strip_label(&text))
        text = nw_imp_trim(text);
    return text;
}

struct nw_slice nw_imp_clean_cells(struct nw_slice line)
{
    struct nw_slice text = nw_imp_trim(line);

    if (text.length > 0 && (strip_tag(&text) || strip_rank(&text)))
        text = nw_imp_trim(text);
    return text;
}

/* What ends a word. */
static const bool separates[256] = {[' '] = true,  ['\t'] = true, ['\r'] = true, ['\v'] = true,
                                    ['\f'] = true, [','] = true,  ['|'] = true};

void nw_imp_split(struct nw_slice text, struct nw_imp_words *words)
{
    const char *at = text.at, *end = text.at + text.length;

    words->count = 0;
    while (words->count < NW_IMP_WORDS) {
        while (at < end && separates[(unsigned char)*at])
            at++;
        if (at == end)
            return;
        const char *start = at;

        while (at < end && !separates[(unsigned char)*at])
            at++;
        words->word[words->count++] = (struct nw_slice){start, (size_t)(at - start)};
    }
}

bool nw_imp_u64(struct nw_slice word, uint64_t *value_out)
{
    uint64_t value = 0;

    if (word.length == 0 || word.length > 18)
        return false;
    for (size_t i = 0; i < word.length; i++) {
        if (!is_digit(word.at[i]))
            return false;
        value = value * 10 + (uint64_t)(word.at[i] - '0');
    }
    *value_out = value;
    return true;
}

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double scaled(double value, int exponent)
{
    return exponent >= 0 ? value * powers_of_ten[exponent] : value / powers_of_ten[-exponent];
}

/* "1.0e+07", "5e-07", long digits: strtod on a bounded copy. */
static bool slow_number(struct nw_slice word, int scale, struct nw_printed *number)
{
    char text[48], *end;
    int decimals = 0, exponent = 0;

    if (word.length == 0 || word.length >= sizeof text ||
        !(is_digit(word.at[0]) || word.at[0] == '.'))
        return false;
    memcpy(text, word.at, word.length);
    text[word.length] = '\0';
    if (strspn(text, "0123456789.eE+-") != word.length)
        return false;
    const double value = strtod(text, &end);

    if (*end != '\0' || !isfinite(value))
        return false;
    const char *e = strpbrk(text, "eE");
    const char *point = strchr(text, '.');

    if (e != NULL)
        exponent = (int)strtol(e + 1, NULL, 10);
    if (point != NULL)
        decimals = (int)strspn(point + 1, "0123456789");
    *number =
        (struct nw_printed){value * pow(10, scale), 0.5 * pow(10, exponent - decimals + scale)};
    return isfinite(number->value);
}

static bool is_no_value(struct nw_slice word)
{
    static const char *const words[] = {"N/A", "n/a", "nan", "-nan", "inf", "-inf"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (nw_imp_is(word, words[i]))
            return true;
    return false;
}

/* Below 2^53 and with a power of ten up to 10^22 one division or multiplication is correctly
 * rounded (Clinger, How to read floating point numbers accurately, 1990). */
bool nw_imp_number(struct nw_slice word, int scale, struct nw_printed *number_out)
{
    uint64_t digits = 0;
    int decimals = 0;
    bool point = false;
    size_t i = 0;

    for (; i < word.length && i < 17; i++) {
        const char c = word.at[i];

        if (is_digit(c)) {
            digits = digits * 10 + (uint64_t)(c - '0');
            decimals += point;
        } else if (c == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    if (i < word.length || i == (size_t)point || digits >= UINT64_C(1) << 53) {
        if (!is_no_value(word))
            return slow_number(word, scale, number_out);
        *number_out = (struct nw_printed){NAN, NAN};
        return true;
    }
    number_out->value = scaled((double)digits, scale - decimals);
    number_out->half_unit = scaled(0.5, scale - decimals);
    return true;
}

void nw_imp_copy(char *field, size_t size, struct nw_slice text)
{
    const size_t length = text.length < size - 1 ? text.length : size - 1;

    memcpy(field, text.at, length);
    field[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)field[i] < 0x20 || field[i] == 0x7F)
            field[i] = ' ';
}

bool nw_imp_is_elision(struct nw_slice text)
{
    if (text.length > 0 && (text.at[0] == '[' || text.at[0] == '#'))
        text = nw_imp_trim(behind(text, text.at + 1));
    if (text.length > 0 && text.at[text.length - 1] == ']')
        text.length--;
    if (nw_imp_is(text, "\xE2\x80\xA6"))
        return true;
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] != '.' && !is_blank(text.at[i]))
            return false;
    return text.length >= 3;
}
