#include <string.h>

#include "results/nccltests.h"

static bool continues(const char *at, const char *end, const char *with)
{
    const size_t length = strlen(with);

    return (size_t)(end - at) >= length && memcmp(at, with, length) == 0;
}

unsigned nw_nt_marks(struct nw_slice text, bool want_program)
{
    const char *end = text.at + text.length;
    unsigned marks = 0;

    for (const char *at = text.at; at < end && (at = memchr(at, 'C', (size_t)(end - at))) != NULL;
         at++) {
        if (!continues(at, end, "CCL"))
            continue;
        marks |= NW_NT_MARK_NCCL;
        if (continues(at, end, "CCL INFO ")) /* its own line, whatever else is in it */
            return marks;
        if (continues(at, end, "CCL WARN "))
            marks |= NW_NT_MARK_WARNING;
    }
    for (const char *at = text.at; at < end && (at = memchr(at, 'T', (size_t)(end - at))) != NULL;
         at++)
        if (continues(at, end, "Test NCCL failure") || continues(at, end, "Test CUDA failure"))
            marks |= NW_NT_MARK_FAILURE;
    if (want_program && nw_imp_find(text, "_perf") != NULL)
        marks |= NW_NT_MARK_PROGRAM;
    return marks;
}
