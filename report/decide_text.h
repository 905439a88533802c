/* Public. The decision, for people: one sentence with its figures, then the tables (at most 100
 * columns), reasons, break-evens and what would change the answer. Computes nothing. */
#ifndef NW_REPORT_DECIDE_TEXT_H
#define NW_REPORT_DECIDE_TEXT_H

#include <stdio.h>

#include "model/model.h"

struct nw_claim_costs; /* model/claim_cost.h */

nw_rc nw_report_decide(FILE *stream, const struct nw_model *model,
                       const struct nw_decision *decision);
/* The same with what the quote's short claims cost. */
nw_rc nw_report_decide_claims(FILE *stream, const struct nw_model *model,
                              const struct nw_decision *decision,
                              const struct nw_claim_costs *claims);
/* The decision in one sentence with its reason and confidence. Returns `text`. */
const char *nw_report_sentence(char *text, size_t size, const struct nw_model *model,
                               const struct nw_decision *decision);
/* What "pays" means here, one line. */
const char *nw_report_pays_rule(char *text, size_t size, const struct nw_model *model);

#endif
