/* Public. What was imported, for people: a line per collective of a log, then what must be known
 * about the logs, with line numbers. */
#ifndef NW_REPORT_IMPORT_TEXT_H
#define NW_REPORT_IMPORT_TEXT_H

#include <stdio.h>

#include "results/results.h"

/* Runs of one log with the same collective, ranks and GPUs share a line: such logs are one curve,
 * cut into a run per size. */
nw_rc nw_report_import(FILE *stream, const struct nw_results *results);
/* Findings of all runs, worst first; the same one of several runs of a log once, with their number.
 */
nw_rc nw_report_import_findings(FILE *stream, const struct nw_results *results);

#endif
