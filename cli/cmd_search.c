#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/words.h"
#include "cli/emit_files.h"
#include "cli/model_args.h"
#include "model/search.h"
#include "report/search_text.h"

static const char doc[] =
    "The fastest and the cheapest way to train a model on so many GPUs: strategy, tensor, "
    "pipeline, context and expert parallelism, micro-batch, recomputation, offload.\v"
    "What an option fixes (--tp, --micro-batch, --recompute, --strategy, --framework …) stays as "
    "given, everything else is varied. Offload of states and weights is varied where the rate of "
    "the host link is known (--gpu, measured, or --host-gbps). Example:\n\n"
    "  nodeworth search --model gpt3-175b --gpu a100-80 --nic-gbps 1600 --max-nodes 512 "
    "--global-batch 1536";

struct seen {
    double start_s;
    bool terminal, printed;
};

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show(void *context, double share, uint64_t seen)
{
    struct seen *at = context;
    const double elapsed = seconds_now() - at->start_s;

    if (!at->terminal || elapsed < 1)
        return;
    at->printed = true;
    nw_print(stderr, "\r%3.0f %%, %.1f million plans, %.0f s left   ", 100 * share,
             (double)seen / 1e6, share > 0 ? elapsed * (1 - share) / share : 0);
}

static nw_rc add_found(json_t *list, const struct nw_found *found)
{
    json_t *one;

    NW_TRY(nw_found_to_json(found, &one));
    return json_array_append_new(list, one) == 0 ? NW_OK : nw_fail(NW_ENOMEM, "JSON: no memory");
}

static nw_rc fill_json(json_t *root, const struct nw_search_result *result, size_t most)
{
    json_t *fastest = json_array(), *strategies = json_array(), *cheapest;

    NW_TRY(nw_json_set_int(root, "schema", NW_MODEL_SCHEMA_VERSION));
    NW_TRY(nw_json_set_text(root, "kind", "search"));
    NW_TRY(nw_json_set_u64(root, "plans_seen", result->seen));
    NW_TRY(nw_json_set_u64(root, "plans_predicted", result->count));
    NW_TRY(nw_json_set_real(root, "closed_form_s", result->quick_s));
    NW_TRY(nw_json_set_real(root, "closed_form_cpu_s", result->quick_cpu_s));
    NW_TRY(nw_json_set_real(root, "simulation_s", result->exact_s));
    NW_TRY(nw_json_set_new(root, "fastest", fastest));
    NW_TRY(nw_json_set_new(root, "fastest_of_each_strategy", strategies));
    for (size_t i = 0; i < result->count; i++) {
        if (i < most)
            NW_TRY(add_found(fastest, &result->items[i]));
        if (result->items[i].leads_strategy)
            NW_TRY(add_found(strategies, &result->items[i]));
    }
    NW_TRY(nw_found_to_json(&result->items[result->cheapest], &cheapest));
    return nw_json_set_new(root, "cheapest", cheapest);
}

static nw_rc print_json(const struct nw_search_result *result, size_t most)
{
    json_t *root = json_object();
    nw_rc rc = root != NULL ? fill_json(root, result, most) : nw_fail(NW_ENOMEM, "JSON: no memory");

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

static bool is_named(const char *argument, const char *name)
{
    const size_t length = strcspn(argument, "=");

    return strncmp(argument, "--", 2) == 0 && strlen(name) == length - 2 &&
           strncmp(argument + 2, name, length - 2) == 0;
}

/* How many words of the command line `predict` does not take: the search's own options, prices. */
static int words_left_out(const char *argument)
{
    static const char *const own[] = {"max-nodes", "top", "emit", "script", "image"};
    const int both = strchr(argument, '=') == NULL ? 2 : 1;

    if (is_named(argument, "json"))
        return 1;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (is_named(argument, own[i]))
            return both;
    for (size_t i = 0; i < nw_price_option_count; i++)
        if (nw_price_options[i].name != NULL && is_named(argument, nw_price_options[i].name))
            return nw_price_options[i].type == NW_OPTION_FLAG ? 1 : both;
    return 0;
}

static void print_command(FILE *stream, int argc, char **argv, const struct nw_found *found)
{
    char options[NW_FOUND_OPTIONS_MAX];

    nw_found_options(found, options);
    nw_print(stream, "\nThe fastest in full:\n\n  nodeworth predict");
    for (int i = 1; i < argc; i++) {
        const int left_out = words_left_out(argv[i]);

        if (left_out > 0) {
            i += left_out - 1;
            continue;
        }
        fputc(' ', stream);
        nw_emit_quote(stream, argv[i]);
    }
    fprintf(stream, " %s\n", options);
}

static nw_rc emit_fastest(const struct nw_model_args *args, const struct nw_model *model,
                          const struct nw_search_result *result)
{
    const struct nw_found *fastest = &result->items[0];
    const struct nw_emit_wishes wishes = {
        .out = args->emit_out, .script = args->emit_script, .image = args->emit_image};
    struct nw_emission emission;

    NW_TRY(nw_emission_make(model, &fastest->job, &fastest->step, &emission));
    if (!args->json)
        printf("\n");
    return nw_emit_files(&wishes, &emission);
}

static nw_rc show_result(const struct nw_model_args *args, const struct nw_model *model,
                         const struct nw_search_result *result, int argc, char **argv)
{
    if (args->json)
        NW_TRY(print_json(result, (size_t)args->search_top));
    else
        NW_TRY(nw_report_search(stdout, model, result, (size_t)args->search_top));
    if (!args->json)
        print_command(stdout, argc, argv, &result->items[0]);
    return args->emit_out != NULL ? emit_fastest(args, model, result) : NW_OK;
}

static nw_rc search(const struct nw_model_args *args, const struct nw_results *results, int argc,
                    char **argv)
{
    const struct nw_emit_wishes files = {.script = args->emit_script, .image = args->emit_image};
    struct nw_space_wishes wishes = wishes_of(args);
    struct seen seen = {.start_s = seconds_now(), .terminal = isatty(STDERR_FILENO) == 1};
    struct nw_search_result result;
    struct nw_model model;
    struct nw_space space;

    NW_TRY(nw_emit_files_check(&files));
    NW_TRY(nw_model_open(&args->request, results, &model));
    nw_rc rc = nw_space_make(&model, &wishes, &space);

    if (rc == NW_OK)
        rc = nw_search(&model, &space, (size_t)args->search_top, show, &seen, &result);
    if (seen.printed)
        fprintf(stderr, "\r%60s\r", "");
    if (rc == NW_OK) {
        rc = show_result(args, &model, &result, argc, argv);
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
    rc = search(&args, &results, argc, argv);
    nw_results_free(&results);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
