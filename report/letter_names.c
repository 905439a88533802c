#include "report/letter_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* The host whose name stands at `at`; -1: none. The longest wins. */
static int host_at(const struct nw_audit *audit, const char *text, const char *at,
                   size_t *length_out)
{
    int best = -1;
    size_t longest = 0;

    if (at > text && is_of_name(at[-1]))
        return -1;
    for (size_t i = 0; i < audit->host_count; i++) {
        const size_t length = strlen(audit->hosts[i]);

        if (length > longest && strncmp(audit->hosts[i], at, length) == 0 &&
            !is_of_name(at[length])) {
            longest = length;
            best = (int)i;
        }
    }
    if (best < 0)
        return -1;
    /* "gpu-a1.example.com": the domain is no one's business either. */
    while (at[longest] == '.' && is_of_name(at[longest + 1])) {
        longest++;
        while (is_of_name(at[longest]))
            longest++;
    }
    *length_out = longest;
    return best;
}

const char *nw_names_hide(const struct nw_names *names, const char *text, char *out, size_t size)
{
    size_t used = 0;

    for (const char *at = text; *at != '\0' && used + 1 < size;) {
        size_t length;
        const int host = names->keep ? -1 : host_at(names->audit, text, at, &length);

        if (host < 0) {
            out[used++] = *at++;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "node%d", host + 1);
        if (used >= size)
            used = size - 1;
        at += length;
    }
    out[used] = '\0';
    return out;
}

const char *nw_names_file(const struct nw_names *names, const char *path, char *out, size_t size)
{
    const char *slash = names->keep ? NULL : strrchr(path, '/');

    return nw_names_hide(names, slash != NULL ? slash + 1 : path, out, size);
}
