/* Public. Nodes held against a baseline, and a baseline that was made, for people.
 */
#ifndef NW_REPORT_BASELINE_TEXT_H
#define NW_REPORT_BASELINE_TEXT_H

#include <stdio.h>

#include "results/baseline.h"

/* `all`: every row, else those that are slower. */
nw_rc nw_report_baseline(FILE *stream, const struct nw_baseline_report *report, bool all);
nw_rc nw_report_baseline_made(FILE *stream, const struct nw_baseline *baseline, const char *path);

#endif
