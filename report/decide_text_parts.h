/* Private to report/. What the decision's sentence and tables share. */
#ifndef NW_REPORT_DECIDE_TEXT_PARTS_H
#define NW_REPORT_DECIDE_TEXT_PARTS_H

#include "report/model_text_parts.h"

struct nw_say { /* a text that grows; cut at the end of its room */
    char *to;
    size_t size, length;
};
void nw_say(struct nw_say *say, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define DAY_NS 86400e9

/* "22.4 days", from two days on; else "1 h 12 min". */
const char *nw_cell_span(struct nw_cell *cell, double ns);
/* "1,240,000" as 1.24 M; below 10^6 three digits at least: 12.4, 81200. */
const char *nw_cell_money(struct nw_cell *cell, double amount);
/* "1.25 GB/s", "2.16 MB/s" */
const char *nw_cell_rate(struct nw_cell *cell, double bytes_per_s);
/* "> 99 %": the model of errors is too coarse to tell 99.5 from 99.9 %. */
const char *nw_cell_certainty(struct nw_cell *cell, double probability);
/* " CNY", or "" where there is no currency. */
const char *nw_cell_currency(struct nw_cell *cell, const struct nw_terms *terms);
/* Of the verdict on this node count; NAN: there is none to be certain of. */
double nw_verdict_certainty(const struct nw_choice *choice);

/* The dearest of a quote's short claims, one sentence; nothing for none. `name` NULL: the quote. */
struct nw_claim_costs;
void nw_say_weakest(struct nw_say *say, const struct nw_claim_costs *claims, const char *name);

/* Reasons for and against the headline. */
void nw_report_reasons(FILE *stream, const struct nw_model *model,
                       const struct nw_decision *decision);
/* Where the answer turns: wire, price, length, limit. */
nw_rc nw_report_turns(FILE *stream, const struct nw_model *model,
                      const struct nw_decision *decision);

#endif
