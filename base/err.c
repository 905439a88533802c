#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/words.h"

static _Thread_local struct nw_err nw_err_last;
static const char *nw_err_prefix = "nodeworth";

static const struct {
    const char *name, *text;
    int exit_code;
} nw_rc_rows[] = {
#define X(code, text, exit_code) [code] = {#code, text, exit_code},
    NW_RC_MAP(X)
#undef X
};

void nw_trim_torn_utf8(char *text)
{
    size_t length = strlen(text);
    size_t lead = length;

    while (lead > 0 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0 || (unsigned char)text[lead - 1] < 0xC0)
        return;
    const unsigned char first = (unsigned char)text[lead - 1];
    const size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;

    if (length - (lead - 1) < wanted)
        text[lead - 1] = '\0';
}

nw_rc nw_fail_at(nw_rc rc, const char *lib, int lib_code, const char *where, const char *format,
                 ...)
{
    /* The arguments may point into the last error's text: the new sentence is made beside it. */
    char text[sizeof nw_err_last.text];
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        snprintf(text, sizeof text, "%s", nw_rc_text(rc));
    if (length >= (int)sizeof text)
        nw_trim_torn_utf8(text);
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = ' ';

    nw_err_last.rc = rc;
    nw_err_last.lib = lib;
    nw_err_last.lib_code = lib_code;
    nw_err_last.where = where;
    memcpy(nw_err_last.text, text, sizeof text);
    return rc;
}

const struct nw_err *nw_last_error(void)
{
    return &nw_err_last;
}

void nw_clear_error(void)
{
    memset(&nw_err_last, 0, sizeof nw_err_last);
}

static size_t row_of(nw_rc rc)
{
    return (size_t)rc < NW_RC_COUNT ? (size_t)rc : NW_ELIB;
}

const char *nw_rc_name(nw_rc rc)
{
    return nw_rc_rows[row_of(rc)].name;
}

const char *nw_rc_text(nw_rc rc)
{
    return nw_rc_rows[row_of(rc)].text;
}

int nw_rc_exit_code(nw_rc rc)
{
    return nw_rc_rows[row_of(rc)].exit_code;
}

void nw_message_prefix(const char *prefix)
{
    nw_err_prefix = prefix;
}

void nw_message(const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    if (nw_vprint_to(text, sizeof text, format, arguments) >= (int)sizeof text)
        nw_trim_torn_utf8(text);
    va_end(arguments);
    /* One call: lines of several ranks on one terminal stay whole. */
    fprintf(stderr, "%s: %s\n", nw_err_prefix, nw_spoken(text));
}
