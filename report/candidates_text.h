/* Public. Candidates against each other, for people: the sentence, the ranking, what each quote's
 * short claims cost. Computes nothing. */
#ifndef NW_REPORT_CANDIDATES_TEXT_H
#define NW_REPORT_CANDIDATES_TEXT_H

#include <stdio.h>

#include "model/candidates.h"

nw_rc nw_report_ranking(FILE *stream, const struct nw_ranking *ranking);
/* Returns `text`. */
const char *nw_report_ranking_sentence(char *text, size_t size, const struct nw_ranking *ranking);
/* What the claims that were measured short cost; prints nothing for none. `name`: of the candidate,
 * or NULL. */
nw_rc nw_report_claim_costs(FILE *stream, const struct nw_model *model,
                            const struct nw_claim_costs *costs, const char *name);

#endif
