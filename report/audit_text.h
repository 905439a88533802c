/* Public. An audit for people: the table of claims, then what is short with its likely causes, what
 * was not measured and how to measure it, and how rates were read. At most 100 columns. */
#ifndef NW_REPORT_AUDIT_TEXT_H
#define NW_REPORT_AUDIT_TEXT_H

#include <stdio.h>

#include "results/audit.h"

/* The table only. */
nw_rc nw_report_audit_table(FILE *stream, const struct nw_audit *audit);
/* All of it. */
nw_rc nw_report_audit(FILE *stream, const struct nw_audit *audit);

#endif
