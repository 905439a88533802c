/* Public. The table of `bench`, row by row as results come: nccl-tests' layout, so that what parses
 * that reads this, with interval, skew and slowest rank in columns to the right of it.
 *
 * Lines that nccl-tests does not have begin with '#', or with the case's name.
 *
 *     NW_TRY(nw_bench_text_open(stdout, &plan, &text));
 *     nw_bench_text_context(text, context); nw_bench_text_record(text, record); …
 *     NW_TRY(nw_bench_text_close(text));   // the last footer; frees
 */
#ifndef NW_REPORT_BENCH_TEXT_H
#define NW_REPORT_BENCH_TEXT_H

#include <stdio.h>

#include "bench/plan.h"
#include "bench/record.h"

struct nw_bench_text;

/* `plan` and `stream` are borrowed until close. */
nw_rc nw_bench_text_open(FILE *stream, const struct nw_plan *plan, struct nw_bench_text **text_out);
void nw_bench_text_context(struct nw_bench_text *text, const struct nw_context *context);
void nw_bench_text_record(struct nw_bench_text *text, const struct nw_record *record);
void nw_bench_text_finding(struct nw_bench_text *text, const struct nw_finding *finding);
/* NW_EIO when the stream has failed; accepts NULL. */
nw_rc nw_bench_text_close(struct nw_bench_text *text);

#endif
