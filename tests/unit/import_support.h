/* What the tests of importers share: real files, from tests/logs or ../shared, and what was found
 * in them. */
#ifndef NW_TESTS_IMPORT_SUPPORT_H
#define NW_TESTS_IMPORT_SUPPORT_H

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/import.h"

/* Where a file of the field is: copied here, or in ../shared; NULL: on neither side. */
static inline const char *find_field_file(const char *file)
{
    static char path[600];
    const char *base = strrchr(file, '/');

    snprintf(path, sizeof path, NW_SOURCE_DIR "/tests/logs/%s", base != NULL ? base + 1 : file);
    if (access(path, R_OK) == 0)
        return path;
    snprintf(path, sizeof path, NW_SOURCE_DIR "/../shared/data/field/%s", file);
    return access(path, R_OK) == 0 ? path : NULL;
}

static inline int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The different texts, sorted, with blanks between. */
static inline void join_sorted(const char **texts, size_t count, char *joined, size_t size)
{
    joined[0] = '\0';
    qsort(texts, count, sizeof *texts, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(texts[i], texts[i - 1]) == 0)
            continue;
        const size_t length = strlen(joined);

        snprintf(joined + length, size - length, "%s%s", length > 0 ? " " : "", texts[i]);
    }
}

static inline void codes_of(const struct nw_results *results, char *codes, size_t size)
{
    const char *texts[400];
    size_t count = 0;

    for (size_t i = 0; i < results->run_count; i++) {
        const struct nw_findings *findings = &results->runs[i].context.findings;

        for (size_t k = 0; k < findings->count && count < 400; k++)
            texts[count++] = findings->items[k].code;
    }
    join_sorted(texts, count, codes, size);
}

#endif
