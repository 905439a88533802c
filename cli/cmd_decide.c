#include "base/json.h"
#include "base/words.h"
#include "cli/candidate_args.h"
#include "cli/model_args.h"
#include "report/candidates_text.h"
#include "report/model_text.h"

static const char doc[] =
    "Is a second node worth its price: speed, cost and break-even of one node against more; or "
    "which of several machines is the better buy (--candidate).\v"
    "A further node pays when the same tokens cost at most --max-extra-cost percent more than on "
    "the fewest nodes, when the job does not fit on fewer, or when fewer miss --deadline or exceed "
    "--max-step. Exit codes: 0 decided, either way; 2 bad input; 3 undecided: nothing between "
    "nodes was measured, so only the break-even is known. Examples:\n\n"
    "  nodeworth decide --model gpt2-124m --tflops 10 results.jsonl\n"
    "  nodeworth decide --model llama-3-8b --candidate A=a.jsonl,a.ini --candidate B=b.jsonl,b.ini";

struct job { /* one decision */
    struct nw_model model;
    struct nw_decision decision;
    struct nw_claim_costs claims; /* of the quote, where there is one */
};

static nw_rc print_root(json_t *root, nw_rc rc)
{
    if (rc == NW_OK)
        rc = nw_json_print(stdout, root);
    json_decref(root);
    return rc;
}

static nw_rc print_json(const struct nw_model_args *args, const struct job *job)
{
    char sentence[1536];
    json_t *root, *claims;

    NW_TRY(nw_decision_to_json(&job->model, &job->decision, &root));
    const struct nw_language *spoken = nw_speak(NULL);

    nw_report_sentence(sentence, sizeof sentence, &job->model, &job->decision);
    nw_speak(spoken);
    nw_rc rc = nw_json_set_text(root, "sentence", sentence);

    if (rc == NW_OK && args->quote_path != NULL) {
        rc = nw_claim_costs_to_json(&job->claims, &claims);
        if (rc == NW_OK)
            rc = nw_json_set_new(root, "claim_costs", claims);
    }
    return print_root(root, rc);
}

static nw_rc cost_claims(const struct nw_model_args *args, const struct nw_results *results,
                         struct nw_topo *const *topos, struct job *job)
{
    const struct nw_audit_input input = {.quote = &args->quote,
                                         .results = results,
                                         .topos = topos,
                                         .topo_count = args->topo_files.count};
    struct nw_audit audit;

    NW_TRY(nw_audit_make(&input, &audit));
    const nw_rc rc = nw_claim_costs_of(&job->model, &job->decision, &audit, &job->claims);

    nw_audit_free(&audit);
    return rc;
}

static nw_rc show(const struct nw_model_args *args, const struct job *job)
{
    if (args->json)
        return print_json(args, job);
    return nw_report_decide_claims(stdout, &job->model, &job->decision, &job->claims);
}

/* *exit_code_out: 3 where the headline is not known. */
static nw_rc decide_on(const struct nw_model_args *args, const struct nw_results *results,
                       struct nw_topo *const *topos, int *exit_code_out)
{
    struct job job = {.claims = {.count = 0}};
    struct nw_model_request request = args->request;
    nw_rc rc;

    request.topos = topos;
    request.topo_count = args->topo_files.count;
    NW_TRY(nw_model_open(&request, results, &job.model));
    for (size_t i = 0; i < args->topo_files.count; i++)
        nw_storage_of_topo(topos[i], &job.model.terms.storage);
    rc = nw_decide(&job.model, &job.decision);
    if (rc == NW_OK && args->quote_path != NULL)
        rc = cost_claims(args, results, topos, &job);
    if (rc == NW_OK) {
        rc = show(args, &job);
        *exit_code_out =
            job.decision.choices[job.decision.headline].pays == NW_PAYS_UNKNOWN ? 3 : 0;
    }
    nw_decision_free(&job.decision);
    nw_model_close(&job.model);
    return rc;
}

static nw_rc decide(const struct nw_model_args *args, const struct nw_results *results,
                    int *exit_code_out)
{
    struct nw_topo **topos;
    nw_rc rc;

    NW_TRY(nw_topo_files_read(&args->topo_files, &topos));
    rc = decide_on(args, results, topos, exit_code_out);
    nw_topo_files_free(topos, args->topo_files.count);
    return rc;
}

static nw_rc show_ranking(const struct nw_model_args *args, const struct nw_ranking *ranking)
{
    char sentence[2048];
    json_t *root;

    if (!args->json)
        return nw_report_ranking(stdout, ranking);
    NW_TRY(nw_ranking_to_json(ranking, &root));
    const struct nw_language *spoken = nw_speak(NULL);

    nw_report_ranking_sentence(sentence, sizeof sentence, ranking);
    nw_speak(spoken);
    return print_root(root, nw_json_set_text(root, "sentence", sentence));
}

/* *exit_code_out: 3 where no candidate could be predicted. */
static nw_rc rank(const struct nw_model_args *args, const struct nw_results *results,
                  int *exit_code_out)
{
    struct nw_candidate_files *files;
    struct nw_ranking ranking;
    nw_rc rc;

    if (results->run_count > 0 || args->quote_path != NULL || args->topo_files.count > 0)
        return nw_fail(NW_EUSAGE, "with --candidate, results, quotes and topologies belong to one: "
                                  "--candidate NAME=results.jsonl,quote.ini,topology.json");
    if (args->request.measured_step_ns > 0 || args->request.measured_tokens_per_s > 0 ||
        args->request.measured_log != NULL)
        return nw_fail(NW_EUSAGE, "a measured step is one machine's, not every candidate's; "
                                  "predict with it, and give the factor that it finds here as "
                                  "--time-factor");
    if (args->candidates.count < 2)
        return nw_fail(NW_EUSAGE, "one --candidate has nothing to be held against; accepted: two "
                                  "or more, or its files without --candidate");
    NW_TRY(nw_candidate_files_read(&args->candidates, &files));
    rc = nw_rank(&args->request, nw_candidate_files_inputs(files), nw_candidate_files_count(files),
                 &ranking);
    if (rc == NW_OK) {
        rc = show_ranking(args, &ranking);
        *exit_code_out = ranking.known == 0 ? 3 : 0;
        nw_ranking_free(&ranking);
    }
    nw_candidate_files_free(files);
    return rc;
}

int nw_cmd_decide(int argc, char **argv)
{
    struct nw_model_args args;
    struct nw_results results;
    int exit_code = 0;
    nw_rc rc = nw_model_args_parse(argc, argv, doc, NW_ARGS_PRICES | NW_ARGS_DECIDE | NW_ARGS_TOPO,
                                   &args, &results);

    if (rc != NW_OK)
        return nw_cli_fail(rc);
    rc = args.candidates.count > 0 ? rank(&args, &results, &exit_code)
                                   : decide(&args, &results, &exit_code);
    nw_results_free(&results);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? exit_code : nw_cli_fail(rc);
}
