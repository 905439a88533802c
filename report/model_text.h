/* Public. Predictions and the decision, for people: tables of at most 100 columns, every mark and
 * every assumed constant explained below them. Computes nothing. */
#ifndef NW_REPORT_MODEL_TEXT_H
#define NW_REPORT_MODEL_TEXT_H

#include <stdio.h>

#include "model/model.h"
#include "report/decide_text.h" /* the decision's */

/* What is asked: two lines. */
void nw_report_training(FILE *stream, const struct nw_job *job);
/* The same, and on what. */
nw_rc nw_report_job(FILE *stream, const struct nw_model *model);
/* Memory part by part and time part by part, strategy by strategy; with the job's lines, the notes
 * and what was assumed. */
nw_rc nw_report_predict(FILE *stream, const struct nw_model *model, const struct nw_steps *steps);
/* "4.02 s [3.6, 4.4]": the ends in the middle's unit. Returns `text`. */
const char *nw_report_step_time(char *text, size_t size, const struct nw_step *step);
/* How the figures were come by (NW_COST_…), and the constants used; prints nothing for none. */
/* `in_use`: the values of the constants that were assumed. */
nw_rc nw_report_notes(FILE *stream, unsigned how, nw_assumed assumed,
                      const struct nw_assumptions *in_use);

#endif
