/* Public. The page that is sent to a vendor: the offer held against the machines, point by point,
 * with what was found, how it was measured, what is asked for, and what both sides can still
 * measure. Markdown, in English or Chinese. Hosts are named node1, node2 … unless their names are
 * kept; every number is that of the audit.
 *
 *     const struct nw_letter letter = {.audit = &audit, .results = &results, .language = "zh",
 *                                      .version = nw_version};
 *     NW_TRY(nw_report_letter(stdout, &letter));
 */
#ifndef NW_REPORT_LETTER_H
#define NW_REPORT_LETTER_H

#include <stdbool.h>
#include <stdio.h>

#include "results/audit.h"

struct nw_letter { /* borrows everything */
    const struct nw_audit *audit;
    const struct nw_results *results; /* what the audit was made from; NULL: no results */
    struct nw_topo *const *topos;     /* the same of topologies; NULL */
    size_t topo_count;
    const char *version;  /* of this program */
    const char *language; /* "en" or "zh" */
    bool keep_names;      /* of hosts and files */
};

/* NW_EUSAGE for another language, with those that there are. */
nw_rc nw_letter_check_language(const char *language);
nw_rc nw_report_letter(FILE *stream, const struct nw_letter *letter);

#endif
