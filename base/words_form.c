#include "base/words_form.h"

#include <ctype.h>
#include <string.h>

static int number_at(const char **at)
{
    int value = 0;

    while (isdigit((unsigned char)**at)) {
        value = value < 100000 ? value * 10 + (**at - '0') : value;
        (*at)++;
    }
    return value;
}

static char kind_of(char conversion)
{
    if (conversion != '\0' && strchr("diuo", conversion) != NULL)
        return 'd';
    if (conversion == 'x' || conversion == 'X')
        return 'x';
    if (conversion != '\0' && strchr("fFeEgGaA", conversion) != NULL)
        return 'f';
    return conversion == 's' || conversion == 'c' || conversion == '%' ? conversion : '\0';
}

struct nw_directive nw_directive_at(const char *format)
{
    struct nw_directive found = {.precision = -1};
    const char *at = format + 1, *digits;

    if (format[0] != '%')
        return found;
    digits = at;
    found.position = number_at(&at);
    if (*at != '$') {
        found.position = 0;
        at = digits;
    } else {
        at++;
    }
    at += strspn(at, "-+#0'");
    if (*at == '*')
        at++;
    found.width = number_at(&at);
    if (*at == '.') {
        at++;
        if (*at == '*')
            at++;
        else
            found.precision = number_at(&at);
    }
    at += strspn(at, "hlLzjt");
    found.kind = kind_of(*at);
    found.length = found.kind != '\0' ? (size_t)(at + 1 - format) : 0;
    return found;
}

size_t nw_form_literal(const char *format)
{
    size_t literal = 0;

    while (*format != '\0') {
        const struct nw_directive directive = nw_directive_at(format);

        literal += directive.length == 0 || directive.kind == '%';
        format += directive.length > 0 ? directive.length : 1;
    }
    return literal;
}

/* ---- fitting -------------------------------------------------------------------------------- */

struct fit {
    const char *end; /* of the text */
    struct nw_part *parts;
    size_t count;
    int *tries;
};

static bool fits(struct fit *fit, const char *format, const char *text);

/* What printf makes of a number, "nan" and blanks of a width among it. */
static size_t number_length(const char *text, const char *end, const struct nw_directive *directive)
{
    const char *const allowed = directive->kind == 'd'   ? "0123456789"
                                : directive->kind == 'x' ? "0123456789abcdefABCDEF"
                                                         : "0123456789.eEinfa+-";
    const char *at = text;

    while (at < end && *at == ' ' && at - text < directive->width)
        at++;
    const char *digits = at;

    if (at < end && (*at == '-' || *at == '+'))
        at++;
    while (at < end && strchr(allowed, *at) != NULL && *at != '\0')
        at++;
    return at > digits ? (size_t)(at - text) : 0;
}

static bool with_part(struct fit *fit, const char *format, const struct nw_directive *directive,
                      const char *text, size_t length)
{
    if (--*fit->tries <= 0)
        return false;
    fit->parts[fit->count++] = (struct nw_part){text, length, directive->kind == 's'};
    if (fits(fit, format + directive->length, text + length))
        return true;
    fit->count--;
    return false;
}

/* The longest number that leaves a fit: "12" of "%d%d" is 1 and 2. */
static bool fits_number(struct fit *fit, const char *format, const struct nw_directive *directive,
                        const char *text)
{
    for (size_t length = number_length(text, fit->end, directive); length > 0; length--)
        if (with_part(fit, format, directive, text, length))
            return true;
    return false;
}

/* The directives of a run such as "%s%s%s": how many, and what follows them. */
static size_t run_of_texts(const char *format, const char **next_out)
{
    size_t count = 0;

    for (;;) {
        const struct nw_directive directive = nw_directive_at(format);

        *next_out = format;
        if (directive.length == 0 || directive.kind != 's')
            return count;
        format += directive.length;
        count++;
    }
}

/* The first of a run takes all, the others nothing: they are for something that may be said. */
static bool with_run(struct fit *fit, size_t run, const char *next, const char *text, size_t length)
{
    const size_t before = fit->count;

    if (--*fit->tries <= 0 || fit->count + run > NW_FORM_PARTS)
        return false;
    fit->parts[fit->count++] = (struct nw_part){text, length, true};
    for (size_t i = 1; i < run; i++)
        fit->parts[fit->count++] = (struct nw_part){text + length, 0, true};
    if (fits(fit, next, text + length))
        return true;
    fit->count = before;
    return false;
}

/* A text ends where the next words stand first; before a number, it takes as much as can be. */
static bool fits_text(struct fit *fit, const char *format, const struct nw_directive *directive,
                      const char *text)
{
    const char *next;
    const size_t run = run_of_texts(format, &next), all = (size_t)(fit->end - text);
    size_t most = all;

    if (run == 1 && directive->precision >= 0 && (size_t)directive->precision < most)
        most = (size_t)directive->precision;
    if (*next == '\0')
        return most == all && with_run(fit, run, next, text, all);
    if (next[0] == '%' && next[1] != '%') {
        for (size_t length = most + 1; length-- > 0;)
            if (with_run(fit, run, next, text, length))
                return true;
        return false;
    }
    for (size_t length = 0; length <= most; length++) {
        const char *found = memchr(text + length, *next, all - length);

        if (found == NULL || (size_t)(found - text) > most)
            return false;
        length = (size_t)(found - text);
        if (with_run(fit, run, next, text, length))
            return true;
    }
    return false;
}

static bool fits(struct fit *fit, const char *format, const char *text)
{
    while (*format != '\0') {
        const struct nw_directive directive = nw_directive_at(format);

        if (directive.length == 0 || directive.kind == '%') {
            if (text == fit->end || *text != *format)
                return false;
            text++;
            format += directive.length > 0 ? directive.length : 1;
            continue;
        }
        if (fit->count == NW_FORM_PARTS)
            return false;
        if (directive.kind == 's')
            return fits_text(fit, format, &directive, text);
        if (directive.kind == 'c')
            return text < fit->end && with_part(fit, format, &directive, text, 1);
        return fits_number(fit, format, &directive, text);
    }
    return text == fit->end;
}

bool nw_form_fits(const char *format, const char *text, size_t length,
                  struct nw_part parts[NW_FORM_PARTS], size_t *count_out, int *tries)
{
    enum { EACH = 2000 }; /* so that one form does not take them all */
    const int before = *tries;
    int mine = before < EACH ? before : EACH;
    struct fit fit = {.end = text + length, .parts = parts, .tries = &mine};
    const bool found = --mine > 0 && fits(&fit, format, text);

    *tries = before - ((before < EACH ? before : EACH) - mine);
    *count_out = fit.count;
    return found;
}
