/* Private to cli/. What predict, decide, search and emit share: options, results files, prices. */
#ifndef NW_CLI_MODEL_ARGS_H
#define NW_CLI_MODEL_ARGS_H

#include "cli/cli.h"
#include "model/request.h"
#include "results/results.h"

enum {
    NW_ARGS_PRICES = 1,         /* the price options */
    NW_ARGS_BATCH = 2,          /* --batch */
    NW_ARGS_SEARCH = 8,         /* --max-nodes, --top */
    NW_ARGS_EMIT = 4,           /* --as, --out, --script, --image */
    NW_ARGS_DECIDE = 16,        /* --candidate */
    NW_ARGS_TOPO = 32,          /* --topo; the command reads the files */
    NW_ARGS_REPORT = 64,        /* --output, --figures, --letter */
    NW_ARGS_REPLAY = 128,       /* --scale, --steps, --budget, --trace, --backend, --hosts */
    NW_ARGS_OPTIONS_ONLY = 256, /* no file is read, no --help said: another rank does both */
};

struct nw_model_args {
    struct nw_model_request request;
    struct nw_option_list results_files;
    const char *quote_path;
    const char *batch_path;
    int search_max_nodes, search_top;
    const char *emit_as, *emit_out, *emit_script, *emit_image;
    struct nw_option_list candidates; /* "A=results.jsonl,quote.ini" */
    struct nw_option_list topo_files;
    const char *report_output, *report_figures;
    bool report_letter;
    size_t left_out_count; /* REPORT: records read and not kept */
    const char *replay_scale, *replay_trace, *replay_backend;
    int replay_steps, replay_hosts;
    double replay_budget_ns;
    bool json;
    struct nw_quote quote; /* where quote_path was given */
};

/* Parses, reads every results file (results.jsonl, or a log that an importer knows) and the quote.
 * `takes`: NW_ARGS_…, what there is beside. On success the caller frees `results_out`. */
nw_rc nw_model_args_parse(int argc, char **argv, const char *doc, unsigned takes,
                          struct nw_model_args *args_out, struct nw_results *results_out);

#endif
