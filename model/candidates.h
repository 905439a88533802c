/* Public. Several machines that could be rented, each with its own results and quote: which is the
 * better buy for one job, how sure that is, and what each vendor's short claims cost.
 *
 *     struct nw_ranking ranking;
 *     NW_TRY(nw_rank(&request, inputs, count, &ranking));
 *     ranking.items[0] …                 // the best
 *     nw_ranking_free(&ranking);
 */
#ifndef NW_MODEL_CANDIDATES_H
#define NW_MODEL_CANDIDATES_H

#include "model/claim_cost.h"
#include "model/model.h"
#include "model/request.h"

struct nw_candidate_input {
    const char *name;
    const struct nw_results *results; /* NULL: none, then the quote's GPU and NICs stand in */
    const struct nw_quote *quote;     /* NULL: none */
    struct nw_topo *const *topos;     /* of its machines: disks, claims */
    size_t topo_count;
};

struct nw_candidate {
    char name[64], vendor[160];
    char problem[512]; /* "": none; else why there are no figures */
    struct nw_model model;
    struct nw_decision decision;
    bool audited;
    bool unmeasured; /* no results: what the quote says stands in */
    struct nw_claim_costs claims;
    int short_count, not_measured_count; /* claims of the quote */
    size_t chosen; /* choice: the cheapest that is in time; without a price the headline */
    bool in_time;  /* within --deadline and --max-step, or there are none */
    double cost_per_billion_tokens, cost_low, cost_high;
    double time_ns, time_low_ns, time_high_ns; /* of all tokens, NAN; else of 10^9 */
    double cost;                               /* of all tokens; NAN */
};

typedef enum { NW_RANK_COST, NW_RANK_TIME } nw_rank_by;

struct nw_ranking { /* owns its items; those with a problem stand last */
    struct nw_candidate *items;
    size_t count, known; /* with figures */
    nw_rank_by by;
    bool currencies_differ; /* why it is not by cost */
    double
        probability; /* that the first is really better than the second; NAN: there is no second */
};

nw_rc nw_rank(const struct nw_model_request *request, const struct nw_candidate_input *inputs,
              size_t count, struct nw_ranking *ranking_out);
void nw_ranking_free(struct nw_ranking *ranking);
nw_rc nw_ranking_to_json(const struct nw_ranking *ranking, json_t **json_out);

#endif
