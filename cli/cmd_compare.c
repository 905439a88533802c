/* nodeworth compare: candidates, before and after, a node against a baseline. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/candidate_args.h"
#include "cli/cli.h"
#include "cli/inputs.h"
#include "model/candidates.h"
#include "model/request.h"
#include "report/baseline_text.h"
#include "report/candidates_text.h"
#include "report/compare_text.h"
#include "results/baseline.h"
#include "results/compare.h"

struct options {
    struct nw_select select;
    struct nw_model_request request;
    const char *across, *baseline;
    struct nw_option_list before, after;
    double threshold_percent;
    bool regress, all, json;
};

#define FIELD(name) .offset = offsetof(struct options, name)

static const struct nw_option own_rows[] = {
    {.help = "How it is judged:"},
    {.name = "threshold",
     .argument = "PERCENT",
     .type = NW_OPTION_REAL,
     .max = 1000,
     .fallback = "5",
     FIELD(threshold_percent),
     .help = "a smaller difference does not matter (5)"},
    {.name = "across",
     .argument = "LIST",
     .type = NW_OPTION_TEXT,
     FIELD(across),
     .help = "compare although this differs: gpu, backend, lane, features, hosts, op, root, place, "
             "peers, nics"},
    {.name = "regress",
     .type = NW_OPTION_FLAG,
     FIELD(regress),
     .help = "the first is before, the others are after: slower is exit status 1"},
    {.name = "before",
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     FIELD(before),
     .help = "results before a change, repeatable; with --after"},
    {.name = "after",
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     FIELD(after),
     .help = "results after it, repeatable"},
    {.name = "baseline",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     FIELD(baseline),
     .help = "hold the results against this baseline (nodeworth baseline)"},
    {.name = "all", .type = NW_OPTION_FLAG, FIELD(all), .help = "show every row"},
    {.name = "json", .type = NW_OPTION_FLAG, FIELD(json), .help = "print JSON instead of tables"},
    {.help = "What it means for a job (with --model):"},
};

static nw_rc print_and_free(json_t *json)
{
    const nw_rc rc = nw_json_print(stdout, json);

    json_decref(json);
    return rc;
}

/* ---- two or more against each other ------------------------------------------------------------
 */

static bool has_job(const struct options *options)
{
    return options->request.model != NULL || options->request.layers > 0 ||
           options->request.parameters > 0;
}

/* The same job on each: what its steps take and cost there. */
static nw_rc rank(const struct options *options, const struct nw_candidate_files *files,
                  struct nw_ranking *ranking_out)
{
    return nw_rank(&options->request, nw_candidate_files_inputs(files),
                   nw_candidate_files_count(files), ranking_out);
}

static nw_rc show_json(const struct nw_comparison *comparison, const struct nw_ranking *ranking)
{
    json_t *json, *job;

    NW_TRY(nw_comparison_to_json(comparison, &json));
    nw_rc rc = NW_OK;

    if (ranking != NULL) {
        rc = nw_ranking_to_json(ranking, &job);
        if (rc == NW_OK)
            rc = nw_json_set_new(json, "job", job);
    }
    if (rc == NW_OK)
        return print_and_free(json);
    json_decref(json);
    return rc;
}

static nw_rc show(const struct options *options, const struct nw_comparison *comparison,
                  const struct nw_candidate_files *files)
{
    struct nw_ranking ranking;
    nw_rc rc = NW_OK;

    if (!has_job(options))
        return options->json ? show_json(comparison, NULL)
                             : nw_report_comparison(stdout, comparison, options->all);
    NW_TRY(rank(options, files, &ranking));
    if (options->json) {
        rc = show_json(comparison, &ranking);
    } else {
        rc = nw_report_comparison(stdout, comparison, options->all);
        fputc('\n', stdout);
        if (rc == NW_OK)
            rc = nw_report_ranking(stdout, &ranking);
    }
    nw_ranking_free(&ranking);
    return rc;
}

static nw_rc list_sides(const struct nw_candidate_files *files, struct nw_compare_side *sides)
{
    const struct nw_candidate_input *inputs = nw_candidate_files_inputs(files);

    for (size_t i = 0; i < nw_candidate_files_count(files); i++) {
        if (inputs[i].results == NULL || nw_results_record_count(inputs[i].results) == 0)
            return nw_fail(NW_EUSAGE, "%s: holds no measurement to compare", inputs[i].name);
        sides[i] = (struct nw_compare_side){inputs[i].name, inputs[i].results};
    }
    return NW_OK;
}

static int exit_code_of(const struct options *options, const struct nw_comparison *comparison)
{
    if (comparison->row_count == 0)
        return 3;
    if (!options->regress)
        return 0;
    if (comparison->verdicts[NW_COMPARE_SLOWER] > 0)
        return 1;
    return comparison->tested_count > 0 ? 0 : 3;
}

static nw_rc compare(const struct options *options, const struct nw_option_list *list,
                     int *exit_code_out)
{
    const struct nw_compare_plan plan = {.select = options->select,
                                         .across = options->across,
                                         .threshold = options->threshold_percent / 100};
    struct nw_compare_side sides[NW_OPTION_LIST_MAX];
    struct nw_comparison comparison = {.row_count = 0};
    struct nw_candidate_files *files;

    NW_TRY(nw_candidate_files_read(list, &files));
    nw_rc rc = list_sides(files, sides);

    if (rc == NW_OK)
        rc = nw_compare(&plan, sides, nw_candidate_files_count(files), &comparison);
    if (rc == NW_OK) {
        rc = show(options, &comparison, files);
        *exit_code_out = exit_code_of(options, &comparison);
        nw_comparison_free(&comparison);
    }
    nw_candidate_files_free(files);
    return rc;
}

/* ---- a node against a baseline -----------------------------------------------------------------
 */

static nw_rc hold(const struct options *options, const struct nw_cli *cli, int *exit_code_out)
{
    const struct nw_baseline_plan plan = {.select = options->select,
                                          .threshold = options->threshold_percent / 100};
    static const struct nw_option_list none = {0};
    struct nw_baseline baseline;
    struct nw_results results = {0};
    struct nw_baseline_report report = {.row_count = 0};

    NW_TRY(nw_baseline_read(options->baseline, &baseline));
    nw_rc rc = nw_cli_read_all_measured(&none, cli, &results);

    if (rc == NW_OK)
        rc = nw_baseline_hold(&baseline, &results, &plan, &report);
    if (rc == NW_OK) {
        json_t *json;

        if (!options->json)
            rc = nw_report_baseline(stdout, &report, options->all);
        else if ((rc = nw_baseline_report_to_json(&report, &json)) == NW_OK)
            rc = print_and_free(json);
        *exit_code_out = report.compared_count == 0 ? 3 : report.slower_count > 0;
    }
    nw_baseline_report_free(&report);
    nw_results_free(&results);
    nw_baseline_free(&baseline);
    return rc;
}

/* ---- the command -------------------------------------------------------------------------------
 */

/* "runs/a.jsonl" as "a.jsonl=runs/a.jsonl"; the whole path where two names would be the same. */
static nw_rc add_side(struct nw_option_list *list, const char *argument, char **text_out)
{
    const char *slash = strrchr(argument, '/');
    const char *name = slash != NULL ? slash + 1 : argument;

    if (list->count == NW_OPTION_LIST_MAX)
        return nw_fail(NW_EUSAGE, "more than %d to compare", NW_OPTION_LIST_MAX);
    if (strchr(argument, '=') != NULL)
        *text_out = strdup(argument);
    else {
        for (size_t i = 0; i < list->count; i++)
            if (strncmp(list->items[i], name, strlen(name)) == 0 &&
                list->items[i][strlen(name)] == '=')
                name = argument;
        if (asprintf(text_out, "%s=%s", name, argument) < 0)
            *text_out = NULL;
    }
    if (*text_out == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the names of files");
    list->items[list->count++] = *text_out;
    return NW_OK;
}

/* "before=a.jsonl,b.jsonl" */
static nw_rc join_side(struct nw_option_list *list, const char *name,
                       const struct nw_option_list *files, char **text_out)
{
    size_t size = strlen(name) + 2;

    for (size_t i = 0; i < files->count; i++)
        size += strlen(files->items[i]) + 1;
    char *text = malloc(size);

    if (text == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the names of files");
    strcpy(text, name);
    for (size_t i = 0; i < files->count; i++) {
        strcat(text, i == 0 ? "=" : ",");
        strcat(text, files->items[i]);
    }
    *text_out = text;
    list->items[list->count++] = text;
    return NW_OK;
}

static nw_rc list_arguments(struct options *options, const struct nw_cli *cli,
                            struct nw_option_list *list, char **texts)
{
    const bool sides = options->before.count > 0 || options->after.count > 0;

    if (sides &&
        (options->before.count == 0 || options->after.count == 0 || cli->positional_count > 0))
        return nw_fail(NW_EUSAGE, "--before and --after go together, and take all files; expected: "
                                  "--before FILE --after FILE");
    if (sides) {
        options->regress = true;
        NW_TRY(join_side(list, "before", &options->before, &texts[0]));
        return join_side(list, "after", &options->after, &texts[1]);
    }
    if (cli->positional_count < 2)
        return nw_fail(NW_EUSAGE, "one has nothing to be compared with; expected: A B, or "
                                  "--baseline FILE A");
    for (int i = 0; i < cli->positional_count; i++)
        NW_TRY(add_side(list, cli->positional[i], &texts[list->count]));
    return NW_OK;
}

static nw_rc run(struct options *options, const struct nw_cli *cli, int *exit_code_out)
{
    struct nw_option_list list = {.count = 0};
    char *texts[NW_OPTION_LIST_MAX] = {NULL};
    nw_rc rc;

    if (options->baseline != NULL && cli->positional_count == 0)
        return nw_fail(NW_EUSAGE, "--baseline needs results to hold against it; expected: FILE…");
    if (options->baseline != NULL)
        return hold(options, cli, exit_code_out);
    rc = list_arguments(options, cli, &list, texts);
    if (rc == NW_OK)
        rc = compare(options, &list, exit_code_out);
    for (size_t i = 0; i < NW_OPTION_LIST_MAX; i++)
        free(texts[i]);
    return rc;
}

/* The model's rows, without those that say here which results are meant. */
static struct nw_option *make_rows(size_t *count_out)
{
    static const char *const left_out[] = {"ranks", "lane"};
    struct nw_option *rows = calloc(nw_select_option_count + sizeof own_rows / sizeof own_rows[0] +
                                        nw_model_option_count + nw_price_option_count,
                                    sizeof *rows);
    size_t count;

    if (rows == NULL)
        return NULL;
    count = nw_cli_embed(rows, nw_select_options, nw_select_option_count,
                         offsetof(struct options, select), true);
    count += nw_cli_embed(rows + count, own_rows, sizeof own_rows / sizeof own_rows[0], 0, true);
    for (size_t i = 0; i < nw_model_option_count; i++) {
        bool out = false;

        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            out = out || (nw_model_options[i].name != NULL &&
                          strcmp(nw_model_options[i].name, left_out[k]) == 0);
        if (!out)
            count += nw_cli_embed(rows + count, &nw_model_options[i], 1,
                                  offsetof(struct options, request), false);
    }
    count += nw_cli_embed(rows + count, nw_price_options, nw_price_option_count,
                          offsetof(struct options, request), false);
    *count_out = count;
    return rows;
}

int nw_cmd_compare(int argc, char **argv)
{
    struct options options = {.json = false};
    size_t row_count = 0;
    struct nw_option *rows = make_rows(&row_count);
    int exit_code = 0;
    struct nw_cli cli = {
        .arguments = "A B…",
        .doc = "Holds results against each other, size by size: which machine is faster, by how "
               "much, and whether that is more than noise. A and B are results files or logs that "
               "import reads, or NAME=FILE,FILE… (a quote among them gives the prices). With "
               "--model also what it means for a job's step and cost.\v"
               "What differs in ranks, type, size, GPU, backend … is not compared, and named. Exit "
               "status: 0 compared, no regression; 1 a regression (--regress, --before), or a node "
               "below its baseline; 2 bad input; 3 nothing could be compared, or no noise is known "
               "to judge a regression by. Examples:\n\n"
               "  nodeworth compare a.jsonl b.jsonl\n"
               "  nodeworth compare --before old.jsonl --after new.jsonl --threshold 3\n"
               "  nodeworth compare A=a.jsonl,a.ini B=b.jsonl,b.ini --model llama-3-8b\n"
               "  nodeworth compare --baseline base.json node7.jsonl",
        .rows = rows,
        .row_count = row_count,
        .target = &options,
        .max_arguments = -1,
    };
    nw_rc rc = rows != NULL ? nw_cli_parse(&cli, argc, argv, true)
                            : nw_fail(NW_ENOMEM, "out of memory for the command line");

    free(rows);
    if (rc == NW_OK)
        rc = run(&options, &cli, &exit_code);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? exit_code : nw_cli_fail(rc);
}
