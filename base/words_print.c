/* printf in the language spoken: the format is looked up, and so is every text that is put into it.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "base/words_form.h"

enum { MAX_ARGUMENTS = 24 };

struct argument {
    char kind; /* 'i' an int, of "*" too; 'l' a wider whole number, 'f', 's' */
    long long whole;
    double real;
    const char *text;
};

struct arguments {
    struct argument items[MAX_ARGUMENTS];
    size_t count;
};

static void take_whole(struct arguments *to, const char *length, size_t letters, va_list *from)
{
    struct argument argument = {.kind = letters > 0 ? 'l' : 'i'};

    if (letters == 2 && strncmp(length, "ll", 2) == 0)
        argument.whole = va_arg(*from, long long);
    else if (letters == 1 && *length == 'l')
        argument.whole = va_arg(*from, long);
    else if (letters == 1 && (*length == 'z' || *length == 't' || *length == 'j'))
        argument.whole = (long long)va_arg(*from, size_t);
    else
        argument.whole = va_arg(*from, int);
    to->items[to->count++] = argument;
}

/* One directive's arguments, in the order of the source's format. */
static bool take(struct arguments *to, const char *format, const struct nw_directive *directive,
                 va_list *from)
{
    const char *end = format + directive->length - 1, *length = end;

    if (directive->kind == '%')
        return true;
    if (directive->position > 0 || to->count + 3 > MAX_ARGUMENTS)
        return false;
    for (const char *at = format; at < end; at++)
        if (*at == '*')
            to->items[to->count++] = (struct argument){.kind = 'i', .whole = va_arg(*from, int)};
    while (strchr("hlLzjt", length[-1]) != NULL)
        length--;
    if (*length == 'L')
        return false;
    if (directive->kind == 'f')
        to->items[to->count++] = (struct argument){.kind = 'f', .real = va_arg(*from, double)};
    else if (directive->kind == 's')
        to->items[to->count++] =
            (struct argument){.kind = 's', .text = nw_spoken(va_arg(*from, const char *))};
    else
        take_whole(to, length, (size_t)(end - length), from);
    return true;
}

static bool take_all(struct arguments *to, const char *format, va_list *from)
{
    to->count = 0;
    while (*format != '\0') {
        const struct nw_directive directive = nw_directive_at(format);

        if (directive.length > 0 && !take(to, format, &directive, from))
            return false;
        format += directive.length > 0 ? directive.length : 1;
    }
    return true;
}

/* ---- writing -------------------------------------------------------------------------------- */

static const struct argument *argument_at(const struct arguments *arguments, size_t index)
{
    static const struct argument none = {.kind = 's', .text = ""};

    return index < arguments->count ? &arguments->items[index] : &none;
}

/* The directive as printf takes it for one argument: "%2$-.*1$s" is "%-.12s". */
static char *plain(const char *format, const struct nw_directive *directive,
                   const struct arguments *arguments, size_t *next, char spec[64])
{
    const char *at = format + 1, *end = format + directive->length;
    char *to = spec;

    if (directive->position > 0)
        at = strchr(at, '$') + 1;
    *to++ = '%';
    while (at < end && to < spec + 48) {
        if (*at != '*') {
            *to++ = *at++;
            continue;
        }
        char *after;
        const long position = isdigit((unsigned char)at[1]) ? strtol(at + 1, &after, 10) : 0;

        at = position > 0 ? after + 1 : at + 1;
        to += sprintf(
            to, "%d",
            (int)argument_at(arguments, position > 0 ? (size_t)position - 1 : (*next)++)->whole);
    }
    *to = '\0';
    return spec;
}

static void put(FILE *to, const char *format, const struct nw_directive *directive,
                const struct arguments *arguments, size_t *next)
{
    char spec[64];

    plain(format, directive, arguments, next, spec);
    if (directive->position > 0)
        *next = (size_t)directive->position - 1;
    const struct argument *argument = argument_at(arguments, (*next)++);
    const char wanted = directive->kind == 's' || directive->kind == 'f' ? directive->kind : 'i';
    const char found = argument->kind == 'l' ? 'i' : argument->kind;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (wanted != found)
        return; /* a faulty catalogue: msgfmt would have said so */
    if (found == 's')
        fprintf(to, spec, argument->text);
    else if (found == 'f')
        fprintf(to, spec, argument->real);
    else if (argument->kind == 'l')
        fprintf(to, spec, argument->whole);
    else
        fprintf(to, spec, (int)argument->whole);
#pragma GCC diagnostic pop
}

static void write_all(FILE *to, const char *format, const struct arguments *arguments)
{
    size_t next = 0;

    while (*format != '\0') {
        const struct nw_directive directive = nw_directive_at(format);

        if (directive.length == 0 || directive.kind == '%')
            fputc(*format, to);
        else
            put(to, format, &directive, arguments, &next);
        format += directive.length > 0 ? directive.length : 1;
    }
}

void nw_vprint(FILE *stream, const char *format, va_list from)
{
    struct arguments arguments;
    va_list copy;

    va_copy(copy, from);
    if (nw_spoken_language()->words != NULL && take_all(&arguments, format, &copy))
        write_all(stream, nw_tr(format), &arguments);
    else
        vfprintf(stream, nw_tr(format), from);
    va_end(copy);
}

int nw_vprint_to(char *text, size_t size, const char *format, va_list from)
{
    char *made = NULL;
    size_t length = 0;

    if (nw_spoken_language()->words == NULL)
        return vsnprintf(text, size, format, from);
    FILE *memory = open_memstream(&made, &length);

    if (memory == NULL)
        return vsnprintf(text, size, format, from);
    nw_vprint(memory, format, from);
    fclose(memory);
    snprintf(text, size, "%s", made);
    if (length >= size && size > 0)
        nw_trim_torn_utf8(text);
    free(made);
    return (int)length;
}

void nw_print(FILE *stream, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    nw_vprint(stream, format, arguments);
    va_end(arguments);
}

int nw_print_to(char *text, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length = nw_vprint_to(text, size, format, arguments);
    va_end(arguments);
    return length;
}
