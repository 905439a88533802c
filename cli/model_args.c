#include "cli/model_args.h"

#include <stdlib.h>

#include "cli/inputs.h"
#include "cli/report_read.h"
#include "results/quote.h"

static const struct nw_option own_rows[] = {
    {.help = "Input and output:"},
    {.name = "results",
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     .offset = offsetof(struct nw_model_args, results_files),
     .help = "results.jsonl or a log of nccl-tests; may be given several times"},
    {.name = "quote",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, quote_path),
     .help = "quote file: GPUs per node and prices, where not given here"},
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct nw_model_args, json),
     .help = "JSON instead of tables"},
};
static const struct nw_option batch_rows[] = {
    {.name = "batch",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, batch_path),
     .help = "many predictions: one JSON object a line (-: standard input), its keys the options' "
             "names, \"id\" and \"results\"; one JSON object is answered for each"},
};
static const struct nw_option emit_rows[] = {
    {.name = "as",
     .argument = "FORMATS",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, emit_as),
     .help = "which files, comma-separated: deepspeed, accelerate, megatron, torchrun, slurm, "
             "mpijob, pytorchjob; without it all that can express the plan"},
    {.name = "out",
     .argument = "DIR",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, emit_out),
     .help = "folder for the files"},
    {.name = "script",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, emit_script),
     .fallback = "train.py",
     .help = "the training script that is started"},
    {.name = "image",
     .argument = "IMAGE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, emit_image),
     .fallback = "IMAGE",
     .help = "container image of the Kubernetes jobs"},
};
static const struct nw_option decide_rows[] = {
    {.name = "candidate",
     .argument = "NAME=FILE,…",
     .type = NW_OPTION_LIST,
     .offset = offsetof(struct nw_model_args, candidates),
     .help = "one of several machines to choose from: its results (or logs), its quote (.ini), "
             "topologies of its nodes; give it once for each"},
};
static const struct nw_option topo_rows[] = {
    {.name = "topo",
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     .offset = offsetof(struct nw_model_args, topo_files),
     .help = "a node's topology (nodeworth topo --save, or a file that it reads): links and NICs "
             "where nothing was measured; with its measured disk where it was saved by nodeworth "
             "check --disk PATH --save DIR"},
};
static const struct nw_option report_rows[] = {
    {.name = "output",
     .key = 'o',
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, report_output),
     .help = "the page (report.html), whole or not at all; -: standard output, where the letter "
             "goes by itself"},
    {.name = "figures",
     .argument = "DIR",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, report_figures),
     .help = "the charts as files too: SVG, and PNG where gnuplot is installed"},
    {.name = "letter",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct nw_model_args, report_letter),
     .help = "the page for the vendor instead, in Markdown"},
};
#define REPORT_COUNT (sizeof report_rows / sizeof report_rows[0])
static const char *const replay_backends[] = {"mpi", "local", NULL};
static const struct nw_option replay_rows[] = {
    {.help = "Replay:"},
    {.name = "scale",
     .argument = "SHARE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, replay_scale),
     .fallback = "1",
     .help = "computation and messages are this share of the job's, in the prediction too: 1/16"},
    {.name = "steps",
     .argument = "N",
     .type = NW_OPTION_INT,
     .offset = offsetof(struct nw_model_args, replay_steps),
     .min = 1,
     .max = 1000,
     .fallback = "30",
     .help = "at most so many; fewer when the median is known within 2 % (30)"},
    {.name = "budget",
     .argument = "TIME",
     .type = NW_OPTION_DURATION,
     .offset = offsetof(struct nw_model_args, replay_budget_ns),
     .min = 0,
     .max = 1e14,
     .fallback = "20s",
     .help = "of all steps, three at least (20s)"},
    {.name = "trace",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, replay_trace),
     .help = "the timeline, predicted and replayed, for chrome://tracing or Perfetto"},
    {.name = "backend",
     .argument = "BACKEND",
     .type = NW_OPTION_CHOICE,
     .offset = offsetof(struct nw_model_args, replay_backend),
     .choices = replay_backends,
     .fallback = "mpi",
     .help = "mpi: host memory; local: threads in virtual time, which shows the schedule and "
             "measures nothing (mpi)"},
    {.name = "hosts",
     .argument = "N",
     .type = NW_OPTION_INT,
     .offset = offsetof(struct nw_model_args, replay_hosts),
     .min = 1,
     .max = 4096,
     .fallback = "1",
     .help = "with --backend local: so many pretended hosts (1)"},
};
#define REPLAY_COUNT (sizeof replay_rows / sizeof replay_rows[0])
#define TOPO_COUNT   (sizeof topo_rows / sizeof topo_rows[0])
#define DECIDE_COUNT (sizeof decide_rows / sizeof decide_rows[0])
static const struct nw_option search_rows[] = {
    {.name = "max-nodes",
     .argument = "N",
     .type = NW_OPTION_INT,
     .offset = offsetof(struct nw_model_args, search_max_nodes),
     .min = 1,
     .max = 16384,
     .help = "1, 2, 4 ... nodes up to so many; without it those of --nodes"},
    {.name = "top",
     .argument = "N",
     .type = NW_OPTION_INT,
     .offset = offsetof(struct nw_model_args, search_top),
     .min = 1,
     .max = 1000,
     .fallback = "10",
     .help = "so many of the fastest plans are shown"},
    {.name = "emit",
     .argument = "DIR",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, emit_out),
     .help = "folder for the fastest plan as configuration of the tools that run it (nodeworth "
             "emit)"},
    {.name = "script",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, emit_script),
     .fallback = "train.py",
     .help = "with --emit: the training script that is started"},
    {.name = "image",
     .argument = "IMAGE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, emit_image),
     .fallback = "IMAGE",
     .help = "with --emit: container image of the Kubernetes jobs"},
};
#define SEARCH_COUNT (sizeof search_rows / sizeof search_rows[0])
#define EMIT_COUNT   (sizeof emit_rows / sizeof emit_rows[0])
#define BATCH_COUNT  (sizeof batch_rows / sizeof batch_rows[0])
#define OWN_COUNT    (sizeof own_rows / sizeof own_rows[0])

static nw_rc read_for_page(const struct nw_cli *cli, struct nw_model_args *args,
                           struct nw_results *results)
{
    for (size_t i = 0; i < args->results_files.count; i++)
        NW_TRY(nw_report_read(args->results_files.items[i], results, &args->left_out_count));
    for (int i = 0; i < cli->positional_count; i++)
        NW_TRY(nw_report_read(cli->positional[i], results, &args->left_out_count));
    return NW_OK;
}

static nw_rc parse(struct nw_cli *cli, int argc, char **argv, unsigned takes,
                   struct nw_model_args *args, struct nw_results *results)
{
    const bool options_only = (takes & NW_ARGS_OPTIONS_ONLY) != 0;

    NW_TRY(nw_cli_parse(cli, argc, argv, !options_only));
    if (options_only)
        return NW_OK;
    NW_TRY((takes & NW_ARGS_REPORT) != 0
               ? read_for_page(cli, args, results)
               : nw_cli_read_all_measured(&args->results_files, cli, results));
    if (args->quote_path == NULL)
        return NW_OK;
    NW_TRY(nw_quote_read(args->quote_path, &args->quote));
    nw_model_request_take_quote(&args->request, &args->quote);
    nw_model_request_take_quoted_machine(&args->request, &args->quote, results);
    return NW_OK;
}

nw_rc nw_model_args_parse(int argc, char **argv, const char *doc, unsigned takes,
                          struct nw_model_args *args_out, struct nw_results *results_out)
{
    const size_t offset = offsetof(struct nw_model_args, request);
    struct nw_option *rows =
        calloc(OWN_COUNT + BATCH_COUNT + EMIT_COUNT + SEARCH_COUNT + DECIDE_COUNT + TOPO_COUNT +
                   REPORT_COUNT + REPLAY_COUNT + nw_model_option_count + nw_price_option_count,
               sizeof *rows);
    struct nw_results results = {0};
    nw_rc rc;

    if (rows == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the command line");
    size_t count = nw_cli_embed(rows, own_rows, OWN_COUNT, 0, true);

    if ((takes & NW_ARGS_BATCH) != 0)
        count += nw_cli_embed(rows + count, batch_rows, BATCH_COUNT, 0, true);
    if ((takes & NW_ARGS_EMIT) != 0)
        count += nw_cli_embed(rows + count, emit_rows, EMIT_COUNT, 0, true);
    if ((takes & NW_ARGS_DECIDE) != 0)
        count += nw_cli_embed(rows + count, decide_rows, DECIDE_COUNT, 0, true);
    if ((takes & NW_ARGS_TOPO) != 0)
        count += nw_cli_embed(rows + count, topo_rows, TOPO_COUNT, 0, true);
    if ((takes & NW_ARGS_REPORT) != 0)
        count += nw_cli_embed(rows + count, report_rows, REPORT_COUNT, 0, true);
    if ((takes & NW_ARGS_REPLAY) != 0)
        count += nw_cli_embed(rows + count, replay_rows, REPLAY_COUNT, 0, true);
    if ((takes & NW_ARGS_SEARCH) != 0)
        count += nw_cli_embed(rows + count, search_rows, SEARCH_COUNT, 0, true);
    count += nw_cli_embed(rows + count, nw_model_options, nw_model_option_count, offset, true);
    if ((takes & NW_ARGS_PRICES) != 0)
        count += nw_cli_embed(rows + count, nw_price_options, nw_price_option_count, offset, true);
    struct nw_cli cli = {.arguments = "[FILE...]",
                         .doc = doc,
                         .rows = rows,
                         .row_count = count,
                         .target = args_out,
                         .max_arguments = -1};

    *args_out = (struct nw_model_args){0};
    rc = parse(&cli, argc, argv, takes, args_out, &results);
    free(rows);
    if (rc != NW_OK) {
        nw_results_free(&results);
        return rc;
    }
    *results_out = results;
    return NW_OK;
}
