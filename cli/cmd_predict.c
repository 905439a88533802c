#include "base/json.h"
#include "cli/candidate_args.h"
#include "cli/model_args.h"
#include "cli/predict_batch.h"
#include "report/model_text.h"

static const char doc[] =
    "Memory and time of one training step, strategy by strategy: what it is made of, what would "
    "make it faster, and what would make it fit.\v"
    "Communication comes from results, and with them what matrix products, a GPU's memory and its "
    "host link reach. Without them the links and NICs of --topo, or the datasheet's link rate of "
    "--gpu and the line rate of --nic-gbps stand in, or --intra-node and --inter-node say how fast "
    "the wires are. A step that you measured (--measured-step with --on, or --measured-log) sets "
    "what your software costs: more GPUs are then told as a ratio to it. Exit codes: 0; 2 bad "
    "input; 3 the communication that the job needs was not measured. Examples:\n\n"
    "  nodeworth predict --model llama-2-7b --gpu h100-sxm results.jsonl\n"
    "  nodeworth predict --model llama-3-8b --gpu h100-sxm --strategy fsdp --nodes 1,2,4 "
    "--nic-gbps 3200 --measured-step 12.9s --on 8\n"
    "  nodeworth predict --batch jobs.jsonl";

static nw_rc print_json(const struct nw_model *model, const struct nw_steps *steps)
{
    json_t *root;

    NW_TRY(nw_steps_to_json(model, steps, &root));
    const nw_rc rc = nw_json_print(stdout, root);

    json_decref(root);
    return rc;
}

static nw_rc predict(const struct nw_model_args *args, const struct nw_results *results)
{
    struct nw_model model;
    struct nw_steps steps;

    NW_TRY(nw_model_open(&args->request, results, &model));
    nw_rc rc = nw_predict_all(&model, &steps);

    if (rc == NW_OK) {
        rc = args->json ? print_json(&model, &steps) : nw_report_predict(stdout, &model, &steps);
        nw_steps_free(&steps);
    }
    nw_model_close(&model);
    return rc;
}

static nw_rc predict_on(struct nw_model_args *args, const struct nw_results *results)
{
    struct nw_topo **topos;

    NW_TRY(nw_topo_files_read(&args->topo_files, &topos));
    args->request.topos = topos;
    args->request.topo_count = args->topo_files.count;
    const nw_rc rc =
        args->batch_path != NULL ? nw_cli_predict_batch(args, results) : predict(args, results);

    nw_topo_files_free(topos, args->topo_files.count);
    return rc;
}

int nw_cmd_predict(int argc, char **argv)
{
    struct nw_model_args args;
    struct nw_results results;
    nw_rc rc = nw_model_args_parse(argc, argv, doc, NW_ARGS_BATCH | NW_ARGS_TOPO, &args, &results);

    if (rc != NW_OK)
        return nw_cli_fail(rc);
    rc = predict_on(&args, &results);
    nw_results_free(&results);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
