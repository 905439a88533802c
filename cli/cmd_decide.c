#include "base/json.h"
#include "cli/model_args.h"
#include "report/model_text.h"

static const char doc[] =
    "Is a second node worth its price: speed, cost and break-even of one node against more.\v"
    "A further node pays when a token costs at most --max-extra-cost percent more than on the "
    "fewest nodes, when the job does not fit on fewer, or when fewer miss --deadline. Exit codes: "
    "0 decided, either way; 2 bad input; 3 undecided: nothing between nodes was measured, so only "
    "the break-even is known. Example:\n\n"
    "  nodeworth decide --model gpt2-124m --tflops 10 results.jsonl";

static nw_rc print_json(const struct nw_model *model, const struct nw_decision *decision)
{
    char sentence[1024];
    json_t *root;

    NW_TRY(nw_decision_to_json(model, decision, &root));
    nw_rc rc = nw_json_set_text(root, "sentence",
                                nw_report_sentence(sentence, sizeof sentence, model, decision));

    if (rc == NW_OK)
        rc = nw_json_print(stdout, root);
    json_decref(root);
    return rc;
}

/* *exit_code_out: 3 where the headline is not known. */
static nw_rc decide(const struct nw_model_args *args, const struct nw_results *results,
                    int *exit_code_out)
{
    struct nw_model model;
    struct nw_decision decision;

    NW_TRY(nw_model_open(&args->request, results, &model));
    nw_rc rc = nw_decide(&model, &decision);

    if (rc == NW_OK) {
        rc = args->json ? print_json(&model, &decision)
                        : nw_report_decide(stdout, &model, &decision);
        *exit_code_out = decision.choices[decision.headline].pays == NW_PAYS_UNKNOWN ? 3 : 0;
        nw_decision_free(&decision);
    }
    nw_model_close(&model);
    return rc;
}

int nw_cmd_decide(int argc, char **argv)
{
    struct nw_model_args args;
    struct nw_results results;
    int exit_code = 0;
    nw_rc rc = nw_model_args_parse(argc, argv, doc, NW_ARGS_PRICES, &args, &results);

    if (rc != NW_OK)
        return nw_cli_fail(rc);
    rc = decide(&args, &results, &exit_code);
    nw_results_free(&results);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? exit_code : nw_cli_fail(rc);
}
