/* Private to report/. Host and file names that a letter does not give away: the n-th host of the
 * audit becomes "nodeN", with its domain; files lose their folders. Equal names get equal ones. */
#ifndef NW_REPORT_LETTER_NAMES_H
#define NW_REPORT_LETTER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "results/audit.h"

struct nw_names {
    const struct nw_audit *audit;
    bool keep;
};

/* `text` with the names replaced, into `out`. */
const char *nw_names_hide(const struct nw_names *names, const char *text, char *out, size_t size);
/* The same of a file: its last part. */
const char *nw_names_file(const struct nw_names *names, const char *path, char *out, size_t size);

#endif
