/* Public. What was measured, for people: one line per collective and group of ranks, never an
 * average over sizes. */
#ifndef NW_REPORT_MEASURED_TEXT_H
#define NW_REPORT_MEASURED_TEXT_H

#include <stdio.h>

#include "results/results.h"

/* Latency at the smallest size, plateau busbw with its interval, and where the curve falls. */
nw_rc nw_report_measured(FILE *stream, const struct nw_run *run);
/* The slowest, the median and the fastest pair, when pairs were measured; prints nothing otherwise.
 */
nw_rc nw_report_pairs(FILE *stream, const struct nw_run *run);
/* Numbered findings with remedies; at most `most` of them, worst first, then how many are left out.
 */
nw_rc nw_report_findings(FILE *stream, const struct nw_findings *findings, size_t most);

#endif
