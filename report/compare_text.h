/* Public. A comparison, for people: how many results are faster, slower or the same, where, which
 * were not compared and why. Computes nothing.
 */
#ifndef NW_REPORT_COMPARE_TEXT_H
#define NW_REPORT_COMPARE_TEXT_H

#include <stdio.h>

#include "results/compare.h"

/* `all`: every row, else a line for each thing measured and the rows that differ. */
nw_rc nw_report_comparison(FILE *stream, const struct nw_comparison *comparison, bool all);

#endif
