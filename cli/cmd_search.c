#include <math.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/model_args.h"
#include "model/search.h"
#include "report/search_text.h"

static const char doc[] =
    "The fastest and the cheapest way to train a model on so many GPUs: strategy, tensor, "
    "pipeline, context and expert parallelism, micro-batch, recomputation, offload.\v"
    "What an option fixes (--tp, --micro-batch, --recompute, --strategy, --framework …) stays as "
    "given, everything else is varied. Offload is varied where --host-gbps says what the PCIe link "
    "does. Example:\n\n"
    "  nodeworth search --model gpt3-175b --gpu a100-80 --nic-gbps 1600 --max-nodes 512 "
    "--global-batch 1536";

struct seen {
    double start_s;
    bool terminal;
};

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show(void *context, double share, uint64_t seen)
{
    const struct seen *at = context;
    const double elapsed = seconds_now() - at->start_s;

    if (!at->terminal || elapsed < 1)
        return;
    fprintf(stderr, "\r%3.0f %%, %.1f million plans, %.0f s left   ", 100 * share,
            (double)seen / 1e6, share > 0 ? elapsed * (1 - share) / share : 0);
}

static nw_rc print_json(const struct nw_search_result *result, size_t most)
{
    json_t *root = json_object(), *list = json_array(), *one;
    nw_rc rc = nw_json_set_int(root, "schema", NW_MODEL_SCHEMA_VERSION);

    if (rc == NW_OK)
        rc = nw_json_set_text(root, "kind", "search");
    if (rc == NW_OK)
        rc = nw_json_set_u64(root, "plans_seen", result->seen);
    if (rc == NW_OK)
        rc = nw_json_set_u64(root, "plans_predicted", result->count);
    if (rc == NW_OK)
        rc = nw_json_set_new(root, "fastest", list);
    for (size_t i = 0; rc == NW_OK && i < result->count && i < most; i++) {
        rc = nw_found_to_json(&result->items[i], &one);
        if (rc == NW_OK && json_array_append_new(list, one) != 0)
            rc = nw_fail(NW_ENOMEM, "JSON: no memory");
    }
    if (rc == NW_OK)
        rc = nw_found_to_json(&result->items[result->cheapest], &one);
    if (rc == NW_OK)
        rc = nw_json_set_new(root, "cheapest", one);
    if (rc == NW_OK)
        rc = nw_json_print(stdout, root);
    json_decref(root);
    return rc;
}

static struct nw_space_wishes wishes_of(const struct nw_model_args *args)
{
    const struct nw_model_request *request = &args->request;

    return (struct nw_space_wishes){
        .largest_node_count = args->search_max_nodes,
        .keep_micro_batch = request->micro_batch > 0,
        .keep_recompute = request->recompute != NULL,
        .keep_offload = request->offload_optimizer != NULL || request->offload_params != NULL,
        .keep_framework = request->framework != NULL || request->strategy != NULL,
    };
}

static nw_rc search(const struct nw_model_args *args, const struct nw_results *results)
{
    struct nw_space_wishes wishes = wishes_of(args);
    struct seen seen = {.start_s = seconds_now(), .terminal = isatty(STDERR_FILENO) == 1};
    struct nw_search_result result;
    struct nw_model model;
    struct nw_space space;

    NW_TRY(nw_model_open(&args->request, results, &model));
    nw_rc rc = nw_space_make(&model, &wishes, &space);

    if (rc == NW_OK)
        rc = nw_search(&model, &space, (size_t)args->search_top, show, &seen, &result);
    if (seen.terminal)
        fprintf(stderr, "\r%60s\r", "");
    if (rc == NW_OK) {
        rc = args->json ? print_json(&result, (size_t)args->search_top)
                        : nw_report_search(stdout, &model, &result, (size_t)args->search_top);
        nw_search_free(&result);
    }
    nw_model_close(&model);
    return rc;
}

int nw_cmd_search(int argc, char **argv)
{
    struct nw_model_args args;
    struct nw_results results;
    nw_rc rc =
        nw_model_args_parse(argc, argv, doc, NW_ARGS_SEARCH | NW_ARGS_PRICES, &args, &results);

    if (rc != NW_OK)
        return nw_cli_fail(rc);
    rc = search(&args, &results);
    nw_results_free(&results);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
