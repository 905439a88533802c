/* nodeworth import: logs of other tools into results.jsonl. */
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/words.h"
#include "cli/cli.h"
#include "collectives/coll.h"
#include "report/import_text.h"
#include "results/import.h"

struct options {
    bool json, strict;
    const char *out, *collective;
};

static const struct nw_option rows[] = {
    {.name = "out",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, out),
     .help = "write the results to FILE (results.jsonl), whole or not at all"},
    {.name = "collective",
     .argument = "NAME",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, collective),
     .known = "collectives",
     .help = "the collective of logs that do not name it"},
    {.name = "strict",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, strict),
     .help = "refuse logs that are not whole: unreadable, missing or cut rows, runs without end"},
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print JSON instead of the table"},
};

static nw_rc print_json(const struct nw_results *results)
{
    json_t *runs = json_array();
    json_t *root = json_pack("{s:i, s:o}", "schema", NW_SCHEMA_VERSION, "runs", runs);
    nw_rc rc = root != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the JSON of the results");

    for (size_t i = 0; i < results->run_count && rc == NW_OK; i++) {
        json_t *run;

        rc = nw_run_to_json(&results->runs[i], &run);
        if (rc == NW_OK && json_array_append_new(runs, run) != 0)
            rc = nw_fail(NW_ENOMEM, "no memory for the JSON of run %zu", i);
    }
    if (rc == NW_OK)
        rc = nw_json_print(stdout, root);
    json_decref(root);
    return rc;
}

/* What --strict refuses. */
static nw_rc demand_whole(const struct nw_results *results)
{
    static const char *const codes[] = {"unreadable-row", "torn-line",    "run-incomplete",
                                        "rows-elided",    "rows-missing", "ranks-cut",
                                        "no-result",      "run-failed"};

    for (size_t i = 0; i < results->run_count; i++) {
        const struct nw_findings *findings = &results->runs[i].context.findings;

        for (size_t k = 0; k < findings->count; k++)
            for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
                if (strcmp(findings->items[k].code, codes[c]) == 0)
                    return nw_fail(NW_EUSAGE, "%s: %s (--strict)", findings->items[k].where,
                                   findings->items[k].text);
    }
    return NW_OK;
}

static bool has_finding(const struct nw_results *results, const char *code)
{
    for (size_t i = 0; i < results->run_count; i++)
        for (size_t k = 0; k < results->runs[i].context.findings.count; k++)
            if (strcmp(results->runs[i].context.findings.items[k].code, code) == 0)
                return true;
    return false;
}

/* Reads one log behind the others; *empty_out: it has no result at all. */
static nw_rc read_log(const char *path, const struct nw_import_options *options,
                      struct nw_results *results, bool *empty_out)
{
    const size_t before = nw_results_record_count(results);

    NW_TRY(nw_import_file_as(path, options, results));
    *empty_out = *empty_out || nw_results_record_count(results) == before;
    return NW_OK;
}

static nw_rc import_logs(const struct options *options, char **paths, int count,
                         struct nw_results *results, bool *empty_out)
{
    struct nw_import_options how = {0};
    const struct nw_coll *coll;

    if (options->collective != NULL) {
        NW_TRY(nw_coll_parse(options->collective, &coll));
        how.collective = coll->name;
    }
    for (int i = 0; i < count; i++)
        NW_TRY(read_log(paths[i], &how, results, empty_out));
    if (options->strict)
        NW_TRY(demand_whole(results));
    if (options->out != NULL)
        NW_TRY(nw_results_save(options->out, results));
    if (options->json)
        NW_TRY(print_json(results));
    else {
        NW_TRY(nw_report_import(stdout, results));
        fprintf(stdout, "\n");
        NW_TRY(nw_report_import_findings(stdout, results));
        if (options->out != NULL)
            nw_print(stdout, "%zu results of %zu runs are in %s\n",
                     nw_results_record_count(results), results->run_count, options->out);
    }
    return nw_cli_finish_stdout();
}

int nw_cmd_import(int argc, char **argv)
{
    struct options options = {0};
    struct nw_results results = {0};
    bool empty = false;
    struct nw_cli cli = {
        .arguments = "LOG…",
        .doc =
            "Reads logs of other tools (\"-\" is standard input): nccl-tests and rccl-tests (text, "
            "JSON), hccl_test, all_reduce_bench, nvbandwidth, p2pBandwidthLatencyTest, perftest, "
            "OSU, IMB, iperf3, fio and gpu-burn, with launcher prefixes and several runs in a "
            "file. A tool is recognised by what is in the file. Says with line numbers what "
            "cannot be read and what is misleading.\v"
            "Exit status: 0 read; 1 a run moved wrong data; 2 a file cannot be read or is no "
            "such log; 3 a log has no result at all.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .target = &options,
        .min_arguments = 1,
        .max_arguments = -1,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK)
        rc = import_logs(&options, cli.positional, cli.positional_count, &results, &empty);
    const bool wrong = has_finding(&results, "wrong-data");

    nw_results_free(&results);
    if (rc != NW_OK)
        return nw_cli_fail(rc);
    return wrong ? nw_rc_exit_code(NW_EWRONG) : empty ? nw_rc_exit_code(NW_ENODEV) : 0;
}
