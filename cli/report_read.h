/* Private to cli/. Results for a page, which has no room for millions of records: a large file is
 * read line by line, and of what comes again and again a few are kept, of pairs the slowest. */
#ifndef NW_CLI_REPORT_READ_H
#define NW_CLI_REPORT_READ_H

#include "results/results.h"

/* Appends the runs of a results.jsonl or of a log. Adds to *left_out the records not kept.
 * NW_EUSAGE: it holds no measurement. */
nw_rc nw_report_read(const char *path, struct nw_results *results, size_t *left_out);

#endif
