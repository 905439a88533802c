/* Private to report/. The parts of import's table. */
#ifndef NW_REPORT_IMPORT_PRIVATE_H
#define NW_REPORT_IMPORT_PRIVATE_H

#include <stdbool.h>
#include <stdio.h>

#include "results/results.h"

/* Results that are no collectives. */
bool nw_report_is_other(const struct nw_run *run);
nw_rc nw_report_import_other(FILE *stream, const struct nw_results *results, size_t first,
                             bool *done);
bool nw_report_is_iperf(const struct nw_run *run);
/* The runs from `first` on that are from its file; each is marked done. */
nw_rc nw_report_import_iperf(FILE *stream, const struct nw_results *results, size_t first,
                             bool *done);

#endif
