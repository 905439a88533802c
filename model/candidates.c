#include "model/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/break_even.h"
#include "model/json_parts.h"
#include "model/options_price.h"

/* ---- one candidate ------------------------------------------------------------------------- */

static nw_rc open_candidate(const struct nw_model_request *common,
                            const struct nw_candidate_input *input, struct nw_candidate *candidate)
{
    struct nw_model_request request = *common;

    if (input->quote != NULL) {
        nw_model_request_take_quote(&request, input->quote);
        nw_model_request_take_quoted_machine(&request, input->quote, input->results);
    }
    request.topos = input->topos;
    request.topo_count = input->topo_count;
    NW_TRY(nw_model_open(&request, input->results, &candidate->model));
    for (size_t i = 0; i < input->topo_count; i++)
        nw_storage_of_topo(input->topos[i], &candidate->model.terms.storage);
    return nw_decide(&candidate->model, &candidate->decision);
}

static nw_rc audit_candidate(const struct nw_candidate_input *input, struct nw_candidate *candidate)
{
    const struct nw_audit_input what = {.quote = input->quote,
                                        .results = input->results,
                                        .topos = input->topos,
                                        .topo_count = input->topo_count};
    struct nw_audit audit;

    NW_TRY(nw_audit_make(&what, &audit));
    candidate->audited = true;
    candidate->short_count = (int)nw_audit_count(&audit, NW_AUDIT_SHORT);
    candidate->not_measured_count = (int)nw_audit_count(&audit, NW_AUDIT_NOT_MEASURED);
    const nw_rc rc =
        nw_claim_costs_of(&candidate->model, &candidate->decision, &audit, &candidate->claims);

    nw_audit_free(&audit);
    return rc;
}

static bool is_in_time(const struct nw_terms *terms, const struct nw_choice *choice)
{
    return !(choice->time_ns > terms->deadline_ns) &&
           !(choice->strong.step_ns > terms->max_step_ns);
}

/* All of it is rented anew: for the minimum at least, set up once. */
static double rented_cost(const struct nw_model *model, const struct nw_choice *choice)
{
    const struct nw_terms *terms = &model->terms;
    const double hours = fmax(choice->time_ns, terms->minimum_rental_ns) / NW_HOUR_NS;

    return hours * choice->price_per_hour + terms->setup_cost * choice->node_count;
}

static double per_billion(const struct nw_model *model, const struct nw_choice *choice)
{
    return isfinite(model->job.tokens) ? rented_cost(model, choice) / model->job.tokens * 1e9
                                       : choice->cost_per_billion_tokens;
}

/* The cheapest that is in time; none is: the fastest. Without a price the headline. */
static void choose(struct nw_candidate *candidate)
{
    const struct nw_decision *decision = &candidate->decision;
    const struct nw_model *model = &candidate->model;
    const bool priced = isfinite(model->terms.price_per_node_hour);
    size_t best = decision->base;

    if (!priced && decision->choices[decision->headline].predicted)
        best = decision->headline;
    for (size_t i = 0; i < decision->count; i++) {
        const struct nw_choice *choice = &decision->choices[i], *so_far = &decision->choices[best];
        const bool timely = is_in_time(&model->terms, choice);

        if (!choice->predicted)
            continue;
        if (is_in_time(&model->terms, so_far)) {
            if (priced && timely && per_billion(model, choice) < per_billion(model, so_far))
                best = i;
        } else if (timely || choice->useful_tokens_per_s > so_far->useful_tokens_per_s) {
            best = i;
        }
    }
    candidate->chosen = best;
}

static void fill_figures(struct nw_candidate *candidate)
{
    const struct nw_choice *choice = &candidate->decision.choices[candidate->chosen];
    const struct nw_model *model = &candidate->model;
    const struct nw_step *step = &choice->strong;
    const bool all = isfinite(model->job.tokens);

    candidate->in_time = is_in_time(&model->terms, choice);
    candidate->time_ns = all ? choice->time_ns : 1e9 / choice->useful_tokens_per_s * 1e9;
    candidate->time_low_ns = candidate->time_ns * step->low_ns / step->step_ns;
    candidate->time_high_ns = candidate->time_ns * step->high_ns / step->step_ns;
    candidate->cost = all ? rented_cost(model, choice) : NAN;
    candidate->cost_per_billion_tokens = per_billion(model, choice);
    candidate->cost_low = candidate->cost_per_billion_tokens * step->low_ns / step->step_ns;
    candidate->cost_high = candidate->cost_per_billion_tokens * step->high_ns / step->step_ns;
}

static const char *why_unknown(const struct nw_decision *decision)
{
    return decision->choices[0].pays == NW_PAYS_UNFIT
               ? "the job does not fit on any of these node counts"
               : "no node count could be predicted: nothing between nodes was measured";
}

static nw_rc take(const struct nw_model_request *request, const struct nw_candidate_input *input,
                  struct nw_candidate *candidate)
{
    nw_rc rc;

    *candidate = (struct nw_candidate){.cost_per_billion_tokens = NAN, .time_ns = NAN};
    candidate->unmeasured = input->results == NULL;
    snprintf(candidate->name, sizeof candidate->name, "%s", input->name);
    if (input->quote != NULL)
        snprintf(candidate->vendor, sizeof candidate->vendor, "%s", input->quote->vendor);
    rc = open_candidate(request, input, candidate);
    if (rc != NW_OK)
        return rc == NW_ENOMEM
                   ? rc
                   : nw_fail(rc, "candidate %s: %s", input->name, nw_last_error()->text);
    if (input->quote != NULL)
        NW_TRY(audit_candidate(input, candidate));
    if (candidate->decision.base == candidate->decision.count) {
        snprintf(candidate->problem, sizeof candidate->problem, "%s",
                 why_unknown(&candidate->decision));
        return NW_OK;
    }
    choose(candidate);
    fill_figures(candidate);
    return NW_OK;
}

/* ---- against each other -------------------------------------------------------------------- */

static double metric(const struct nw_candidate *candidate, nw_rank_by by)
{
    return by == NW_RANK_COST ? candidate->cost_per_billion_tokens : candidate->time_ns;
}

static bool is_before(const struct nw_candidate *a, const struct nw_candidate *b, nw_rank_by by)
{
    if ((a->problem[0] != '\0') != (b->problem[0] != '\0'))
        return a->problem[0] == '\0';
    if (a->problem[0] != '\0')
        return false;
    if (a->in_time != b->in_time)
        return a->in_time;
    return metric(a, by) < metric(b, by);
}

/* Insertion: few, and equal ones stay in the order given. */
static void sort(struct nw_ranking *ranking)
{
    for (size_t i = 1; i < ranking->count; i++)
        for (size_t j = i;
             j > 0 && is_before(&ranking->items[j], &ranking->items[j - 1], ranking->by); j--) {
            const struct nw_candidate swap = ranking->items[j];

            ranking->items[j] = ranking->items[j - 1];
            ranking->items[j - 1] = swap;
        }
}

static void choose_measure(struct nw_ranking *ranking)
{
    const struct nw_candidate *first = NULL;

    ranking->by = NW_RANK_COST;
    for (size_t i = 0; i < ranking->count; i++) {
        const struct nw_candidate *candidate = &ranking->items[i];
        const struct nw_terms *terms = &candidate->model.terms;

        if (candidate->problem[0] != '\0')
            continue;
        ranking->known++;
        if (!isfinite(terms->price_per_node_hour))
            ranking->by = NW_RANK_TIME;
        if (first == NULL)
            first = candidate;
        else if (strcmp(terms->currency, first->model.terms.currency) != 0)
            ranking->currencies_differ = true;
    }
    if (ranking->currencies_differ)
        ranking->by = NW_RANK_TIME;
}

/* Logarithm of the chosen step at one end of an error. */
static nw_rc log_step(const struct nw_candidate *candidate, enum nw_error_source source, int end,
                      double *log_out)
{
    const struct nw_platform platform = nw_model_platform(&candidate->model);
    const int nodes = candidate->decision.choices[candidate->chosen].node_count;
    struct nw_scenario ends[2];
    struct nw_step step;
    bool found;

    nw_scenario_ends(&platform, &candidate->model.scenario, source, ends);
    NW_TRY(nw_fastest(&candidate->model, &platform, nodes, 0, &ends[end], &found, &step));
    *log_out = found ? log(step.step_ns) : NAN;
    return NW_OK;
}

/* Does this error move both alike? The software's, and the computation's on the same GPU known by
 * the same kind of figure; a network that is known by its line rate only. */
static bool is_common(const struct nw_candidate *a, const struct nw_candidate *b,
                      enum nw_error_source source)
{
    const struct nw_platform *p = &a->model.platform, *q = &b->model.platform;
    const unsigned by_rate = NW_COST_GIVEN | NW_COST_DATASHEET;
    const unsigned how_a = a->decision.choices[a->chosen].strong.how,
                   how_b = b->decision.choices[b->chosen].strong.how;

    switch (source) {
    case NW_ERROR_COMPUTE:
        return p->gpu == q->gpu && p->rate.source == q->rate.source;
    case NW_ERROR_CURVE:
        return (how_a & by_rate) != 0 && (how_b & by_rate) != 0;
    default:
        return true;
    }
}

static nw_rc judge_first(struct nw_ranking *ranking)
{
    const struct nw_candidate *a = &ranking->items[0], *b = &ranking->items[1];
    double half = 0;

    ranking->probability = NAN;
    if (ranking->known < 2)
        return NW_OK;
    for (enum nw_error_source source = 0; source < NW_ERROR_COUNT; source++) {
        double ends[2][2]; /* candidate, end */

        for (int end = 0; end < 2; end++) {
            NW_TRY(log_step(a, source, end, &ends[0][end]));
            NW_TRY(log_step(b, source, end, &ends[1][end]));
        }
        const double move_a = (ends[0][1] - ends[0][0]) / 2, move_b = (ends[1][1] - ends[1][0]) / 2;

        half = hypot(half, is_common(a, b, source) ? move_a - move_b : hypot(move_a, move_b));
    }
    ranking->probability =
        nw_probability_below(log(metric(b, ranking->by) / metric(a, ranking->by)), half);
    return NW_OK;
}

nw_rc nw_rank(const struct nw_model_request *request, const struct nw_candidate_input *inputs,
              size_t count, struct nw_ranking *ranking_out)
{
    struct nw_ranking ranking = {.items = calloc(count, sizeof *ranking.items)};
    nw_rc rc = NW_OK;

    if (ranking.items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu candidates", count);
    for (size_t i = 0; i < count && rc == NW_OK; i++) {
        rc = take(request, &inputs[i], &ranking.items[i]);
        ranking.count = i + 1;
    }
    if (rc == NW_OK) {
        choose_measure(&ranking);
        sort(&ranking);
        rc = judge_first(&ranking);
    }
    if (rc != NW_OK) {
        nw_ranking_free(&ranking);
        return rc;
    }
    *ranking_out = ranking;
    return NW_OK;
}

void nw_ranking_free(struct nw_ranking *ranking)
{
    for (size_t i = 0; i < ranking->count; i++) {
        nw_decision_free(&ranking->items[i].decision);
        nw_model_close(&ranking->items[i].model);
    }
    free(ranking->items);
    *ranking = (struct nw_ranking){0};
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static nw_rc fill_candidate(const struct nw_candidate *candidate, json_t *object)
{
    json_t *part;

    NW_TRY(nw_json_set_text(object, "name", candidate->name));
    NW_TRY(nw_json_set_text(object, "vendor",
                            candidate->vendor[0] != '\0' ? candidate->vendor : NULL));
    if (candidate->audited) {
        NW_TRY(nw_json_set_int(object, "claims_short", candidate->short_count));
        NW_TRY(nw_json_set_int(object, "claims_not_measured", candidate->not_measured_count));
        NW_TRY(nw_claim_costs_to_json(&candidate->claims, &part));
        NW_TRY(nw_json_set_new(object, "claim_costs", part));
    }
    NW_TRY(nw_json_set_bool(object, "measured", !candidate->unmeasured));
    if (candidate->problem[0] != '\0')
        NW_TRY(nw_json_set_text(object, "problem", candidate->problem));
    else
        NW_TRY(nw_json_set_int(object, "nodes",
                               candidate->decision.choices[candidate->chosen].node_count));
    if (candidate->problem[0] == '\0') {
        const bool all = isfinite(candidate->model.job.tokens);

        NW_TRY(nw_json_set_bool(object, "in_time", candidate->in_time));
        NW_TRY(NW_SET_REALS(
            object, {"cost_per_billion_tokens", candidate->cost_per_billion_tokens},
            {"cost_per_billion_tokens_low", candidate->cost_low},
            {"cost_per_billion_tokens_high", candidate->cost_high},
            {"cost_of_tokens", candidate->cost},
            {all ? "time_to_tokens_ns" : "time_of_billion_tokens_ns", candidate->time_ns},
            {all ? "time_to_tokens_low_ns" : "time_of_billion_tokens_low_ns",
             candidate->time_low_ns},
            {all ? "time_to_tokens_high_ns" : "time_of_billion_tokens_high_ns",
             candidate->time_high_ns}));
    }
    NW_TRY(nw_decision_to_json(&candidate->model, &candidate->decision, &part));
    return nw_json_set_new(object, "decision", part);
}

static nw_rc fill_ranking(const struct nw_ranking *ranking, json_t *root)
{
    json_t *list, *object;

    NW_TRY(nw_json_set_int(root, "schema", NW_MODEL_SCHEMA_VERSION));
    NW_TRY(nw_json_set_text(root, "kind", "ranking"));
    NW_TRY(nw_json_set_text(root, "by", ranking->by == NW_RANK_COST ? "cost" : "time"));
    NW_TRY(nw_json_set_bool(root, "currencies_differ", ranking->currencies_differ));
    NW_TRY(nw_json_set_real(root, "probability_first_is_better", ranking->probability));
    NW_TRY(nw_json_add_list(root, "candidates", &list));
    for (size_t i = 0; i < ranking->count; i++) {
        NW_TRY(nw_json_append_object(list, &object));
        NW_TRY(fill_candidate(&ranking->items[i], object));
    }
    return NW_OK;
}

nw_rc nw_ranking_to_json(const struct nw_ranking *ranking, json_t **json_out)
{
    json_t *root = json_object();
    const nw_rc rc = fill_ranking(ranking, root);

    if (rc != NW_OK) {
        json_decref(root);
        return rc;
    }
    *json_out = root;
    return NW_OK;
}
