#include "base/units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_NAME = 63 };

static size_t min3(size_t a, size_t b, size_t c)
{
    const size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Damerau-Levenshtein distance with adjacent swaps (optimal string alignment), letter case ignored.
 * Both at most LONGEST_NAME long. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST_NAME + 1];

    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above2 = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const int here = tolower((unsigned char)a[i - 1]);
            const int there = tolower((unsigned char)b[j - 1]);

            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (here != there));
            if (i > 1 && j > 1 && here == tolower((unsigned char)b[j - 2]) &&
                tolower((unsigned char)a[i - 2]) == there && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *nw_nearest_name(const char *word, const char *const *names)
{
    const size_t length = word != NULL ? strlen(word) : 0;
    const char *nearest = NULL;
    size_t best = LONGEST_NAME + 1;

    if (length == 0 || length > LONGEST_NAME)
        return NULL;
    for (; *names != NULL; names++) {
        const size_t name_length = strlen(*names);

        if (name_length > LONGEST_NAME)
            continue;
        size_t distance = edit_distance(word, length, *names, name_length);

        if (length >= 3 && name_length > length && strncasecmp(word, *names, length) == 0)
            distance = 1; /* the beginning of a name is near to it, however long the rest */
        if (distance < best) {
            best = distance;
            nearest = *names;
        }
    }
    /* A third of the letters may be wrong: "nvlnk" yes, "cat" for "ring" no. */
    return best <= (length < 4 ? 1 : (length + 1) / 3) ? nearest : NULL;
}

const char *nw_join_names(char *text, size_t size, const char *const *names)
{
    static const char ellipsis[] = "\xE2\x80\xA6";
    size_t used = 0;

    if (size == 0)
        return text;
    text[0] = '\0';
    for (size_t i = 0; names[i] != NULL; i++) {
        const size_t needed = strlen(names[i]) + (i > 0 ? 2 : 0);
        const size_t reserve = names[i + 1] != NULL ? sizeof ellipsis + 2 : 1;

        if (used + needed + reserve > size) {
            snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", ellipsis);
            if (used + strlen(ellipsis) + (i > 0 ? 2 : 0) + 1 > size)
                text[used] = '\0';
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return text;
}
