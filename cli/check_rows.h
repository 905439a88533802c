/* Private to cli/. The table of a check: each part of the machines in a few words, whether all
 * hosts have the same, and how it stands by the findings. */
#ifndef NW_CLI_CHECK_ROWS_H
#define NW_CLI_CHECK_ROWS_H

#include "cli/check_area.h"
#include "cli/check_gather.h"
#include "report/check_text.h"

/* `rows_out`: NW_CHECK_AREA_COUNT of them. */
nw_rc nw_check_rows(const struct nw_check_gathered *gathered, const struct nw_findings *findings,
                    struct nw_check_row *rows_out);
/* "8 × NVIDIA H100 80GB HBM3": the GPUs of most hosts; "no GPU seen", "GPUs unknown". */
nw_rc nw_check_machines(const struct nw_check_gathered *gathered, char *text, size_t size);

#endif
