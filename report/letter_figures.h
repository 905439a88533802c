/* Private to report/. The figures of an audit's row for people, as letter and page have them. */
#ifndef NW_REPORT_LETTER_FIGURES_H
#define NW_REPORT_LETTER_FIGURES_H

#include <stdbool.h>

#include "base/words.h"
#include "results/audit.h"

bool nw_figure_is_rate(const struct nw_audit_row *row);
/* "374 GB/s [372, 376]", "≥ …" where only a bound is known, "–"; `text`: the row's measured_text,
 * perhaps with names replaced. */
const char *nw_figure_found(const struct nw_language *language, const struct nw_audit_row *row,
                            const char *text, char *out, size_t size);
const char *nw_figure_ceiling(const struct nw_audit_row *row, char out[80]);  /* "–": unknown */
const char *nw_figure_expected(const struct nw_audit_row *row, char out[80]); /* "": unknown */

#endif
