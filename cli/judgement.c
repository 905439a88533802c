#include "cli/judgement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "topo/preflight.h"

void nw_judgement_free(struct nw_judgement *judgement)
{
    nw_decision_free(&judgement->decision);
    nw_steps_free(&judgement->steps);
    if (judgement->modelled)
        nw_model_close(&judgement->model);
    if (judgement->audited)
        nw_audit_free(&judgement->audit);
    if (judgement->compared)
        nw_fleet_report_free(&judgement->fleet);
    nw_findings_free(&judgement->preflight);
    for (size_t i = 0; judgement->lanes != NULL && i < judgement->results.run_count; i++)
        nw_lanes_free(&judgement->lanes[i]);
    free(judgement->lanes);
    for (size_t i = 0; i < judgement->topo_count; i++)
        nw_topo_free(judgement->topos[i]);
    free(judgement->topos);
    nw_results_free(&judgement->results);
    *judgement = (struct nw_judgement){.left_out_count = 0};
}

/* ---- the hosts ---------------------------------------------------------------------------------
 */

static bool has_host(const struct nw_judgement *judgement, const char *host)
{
    for (size_t i = 0; host[0] != '\0' && i < judgement->topo_count; i++)
        if (strcmp(judgement->topos[i]->host, host) == 0)
            return true;
    return false;
}

static nw_rc take_topologies(struct nw_judgement *judgement, const struct nw_context *context)
{
    const size_t count = json_array_size(context->topology);
    struct nw_topo **topos =
        realloc(judgement->topos, (judgement->topo_count + count + 1) * sizeof *topos);

    if (topos == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu topologies", count);
    judgement->topos = topos;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(context->topology, i);
        struct nw_topo *topo;

        if (json_is_null(item))
            continue;
        NW_TRY(nw_topo_from_json(item, "results.jsonl", &topo));
        if (has_host(judgement, topo->host))
            nw_topo_free(topo);
        else
            topos[judgement->topo_count++] = topo;
    }
    return NW_OK;
}

/* Warnings and failures of the hosts. What stayed unread is `check`'s to tell. */
static nw_rc judge_hosts(struct nw_judgement *judgement)
{
    struct nw_findings all = {0};
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < judgement->results.run_count && rc == NW_OK; i++)
        rc = take_topologies(judgement, &judgement->results.runs[i].context);
    const struct nw_preflight_input input = {
        .hosts = judgement->topos, .host_count = judgement->topo_count, .no_gaps = true};

    if (rc == NW_OK && input.host_count > 0)
        rc = nw_preflight_judge(&input, &all);
    for (size_t i = 0; i < all.count && rc == NW_OK; i++)
        if (all.items[i].severity != NW_FINDING_INFO)
            rc = nw_findings_copy_one(&judgement->preflight, &all.items[i]);
    judgement->preflighted = rc == NW_OK && input.host_count > 0;
    nw_findings_free(&all);
    return rc;
}

/* ---- the job -----------------------------------------------------------------------------------
 */

/* Of the fastest strategy on the fewest nodes that can be predicted. */
static nw_rc judge_lanes(struct nw_judgement *judgement)
{
    const struct nw_decision *decision = &judgement->decision;

    for (size_t i = 0; i < decision->count; i++)
        if (decision->choices[i].predicted)
            return nw_predict_lanes(&judgement->model, &decision->choices[i].strong,
                                    &judgement->lane_effects);
    return NW_OK;
}

/* Of the fastest strategy on the most nodes that can be predicted. */
static nw_rc judge_scaling(struct nw_judgement *judgement)
{
    const struct nw_decision *decision = &judgement->decision;

    for (size_t i = decision->count; i > 0; i--)
        if (decision->choices[i - 1].predicted)
            return nw_scaling_cost_of(&judgement->model, &judgement->results,
                                      &decision->choices[i - 1].strong, &judgement->scaling_cost);
    return NW_OK;
}

static nw_rc judge_job(struct nw_judgement *judgement, const struct nw_quote *quote,
                       const struct nw_model_request *request)
{
    const double quoted = quote != NULL && quote->nic_count > 0
                              ? quote->nic_count * quote->nic_bytes_per_s
                              : NAN; /* or the rate is NAN */
    nw_rc rc = nw_model_open(request, &judgement->results, &judgement->model);

    judgement->modelled = rc == NW_OK;
    if (rc == NW_OK)
        rc = nw_predict_all(&judgement->model, &judgement->steps);
    if (rc == NW_OK)
        rc = nw_decide(&judgement->model, &judgement->decision);
    if (rc == NW_OK)
        rc = judge_lanes(judgement);
    if (rc == NW_OK)
        rc = judge_scaling(judgement);
    if (rc == NW_OK)
        rc = nw_wire_curve_of(&judgement->model, &judgement->decision, quoted, &judgement->wire);
    if (rc != NW_OK && rc != NW_ENOMEM) {
        snprintf(judgement->job_problem, sizeof judgement->job_problem, "%s",
                 nw_last_error()->text);
        return NW_OK;
    }
    return rc;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static nw_rc compare_lanes(struct nw_judgement *judgement)
{
    const size_t count = judgement->results.run_count;

    judgement->lanes = calloc(count + 1, sizeof *judgement->lanes);
    if (judgement->lanes == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the lanes of %zu runs", count);
    for (size_t i = 0; i < count; i++)
        NW_TRY(nw_lanes_compare(&judgement->results.runs[i], &judgement->lanes[i]));
    return NW_OK;
}

/* No pairs, not all of them, or more ends than can be held against each other: then there is no
 * such section. */
static nw_rc compare_hosts(struct nw_judgement *judgement)
{
    if (judgement->left_out_count > 0)
        return NW_OK;
    const nw_rc rc = nw_fleet_of_results(&judgement->results, &judgement->fleet);

    judgement->compared = rc == NW_OK;
    if (rc == NW_ENODEV || rc == NW_EUSAGE) {
        nw_clear_error();
        return NW_OK;
    }
    return rc;
}

nw_rc nw_judgement_make(struct nw_judgement *judgement, const struct nw_quote *quote,
                        const struct nw_model_request *request)
{
    NW_TRY(compare_lanes(judgement));
    NW_TRY(judge_hosts(judgement));
    NW_TRY(compare_hosts(judgement));
    if (quote != NULL) {
        const struct nw_audit_input input = {.quote = quote,
                                             .results = &judgement->results,
                                             .topos = judgement->further_topos,
                                             .topo_count = judgement->further_count};

        NW_TRY(nw_audit_make(&input, &judgement->audit));
        judgement->audited = true;
    }
    return request != NULL ? judge_job(judgement, quote, request) : NW_OK;
}

bool nw_judgement_predicted(const struct nw_judgement *judgement)
{
    return judgement->modelled && judgement->job_problem[0] == '\0';
}

struct nw_page nw_judgement_page(const struct nw_judgement *judgement, const char *language)
{
    const bool predicted = nw_judgement_predicted(judgement);

    return (struct nw_page){
        .version = nw_version,
        .language = language,
        .results = &judgement->results,
        .left_out_count = judgement->left_out_count,
        .lanes = judgement->lanes,
        .preflight = judgement->preflighted ? &judgement->preflight : NULL,
        .audit = judgement->audited ? &judgement->audit : NULL,
        .fleet = judgement->compared ? &judgement->fleet : NULL,
        .topos = judgement->topos,
        .topo_count = judgement->topo_count,
        .further_topos = judgement->further_topos,
        .further_count = judgement->further_count,
        .model = predicted ? &judgement->model : NULL,
        .steps = predicted ? &judgement->steps : NULL,
        .decision = predicted ? &judgement->decision : NULL,
        .wire = predicted ? &judgement->wire : NULL,
        .lane_effects = predicted ? &judgement->lane_effects : NULL,
        .scaling_cost = predicted ? &judgement->scaling_cost : NULL,
        .job_problem = judgement->job_problem[0] != '\0' ? judgement->job_problem : NULL,
        .note = judgement->note[0] != '\0' ? judgement->note : NULL,
    };
}
