/* Public. Results in the forms that other programs read. docs/schema.md describes both.
 *
 * CSV: RFC 4180, a record a row, the schema's keys as columns; a text that a spreadsheet could take
 * for a formula begins with an apostrophe. OpenMetrics: a text file for node_exporter's textfile
 * collector, one sample a series.
 *
 *     nw_csv_header(&text);
 *     nw_csv_record(&text, run_number, &context, &record);
 *
 *     struct nw_metrics *metrics;
 *     NW_TRY(nw_metrics_open(&metrics));
 *     NW_TRY(nw_metrics_run(metrics, 1, &context));         // then its records
 *     NW_TRY(nw_metrics_record(metrics, &record));
 *     NW_TRY(nw_metrics_write(metrics, stream));
 *     nw_metrics_free(metrics);
 */
#ifndef NW_RESULTS_SINK_H
#define NW_RESULTS_SINK_H

#include <stdio.h>

#include "results/results.h"
#include "results/text.h"

/* JSON Lines: one line each, without newline. */
void nw_record_write(struct nw_text *text, const struct nw_record *record);
void nw_context_write(struct nw_text *text, const struct nw_context *context); /* no findings */
void nw_finding_line_write(struct nw_text *text, const struct nw_finding *finding);
void nw_end_line_write(struct nw_text *text);

void nw_csv_header(struct nw_text *text);
void nw_csv_record(struct nw_text *text, int run, const struct nw_context *context,
                   const struct nw_record *record);
/* One cell, quoted and guarded. */
void nw_csv_cell(struct nw_text *text, const char *value);

/* More samples than this are no file for a scraper. */
#define NW_METRICS_RECORDS_MAX 50000

struct nw_metrics; /* keeps what it needs */
nw_rc nw_metrics_open(struct nw_metrics **metrics_out);
nw_rc nw_metrics_run(struct nw_metrics *metrics, int run, const struct nw_context *context);
nw_rc nw_metrics_finding(struct nw_metrics *metrics, const struct nw_finding *finding);
/* The records and findings that follow are of this run; nw_metrics_run says so too, before or
 * behind its records. */
void nw_metrics_at_run(struct nw_metrics *metrics, int run);
/* NW_EUSAGE: more than NW_METRICS_RECORDS_MAX. Of records with the same labels the last one counts.
 */
nw_rc nw_metrics_record(struct nw_metrics *metrics, const struct nw_record *record);
nw_rc nw_metrics_write(struct nw_metrics *metrics, FILE *stream);
void nw_metrics_free(struct nw_metrics *metrics); /* accepts NULL */

#endif
