/* nodeworth report: results as one HTML page, as the letter to the vendor, as figures. */
#include <string.h>

#include "base/io.h"
#include "base/words.h"
#include "cli/candidate_args.h"
#include "cli/judgement.h"
#include "cli/model_args.h"
#include "report/figures.h"
#include "report/letter.h"

static const char doc[] =
    "Results, or logs of other tools, as one HTML page that needs no network: the verdict on the "
    "quote, findings, the decision, charts, the machines, how it was measured. In English and "
    "Chinese.\v"
    "Without a job (--model) the page has no decision, without a quote no verdict. Exit codes: 0 "
    "written, 2 bad input. Examples:\n\n"
    "  nodeworth report results.jsonl --quote vendor.ini --model llama-3-8b -o report.html\n"
    "  nodeworth report nccl-tests.log --lang zh --figures figures\n"
    "  nodeworth report results.jsonl --quote vendor.ini --letter --lang zh -o letter.md";

static nw_rc print_letter(FILE *stream, const struct nw_judgement *judgement)
{
    return nw_report_letter(stream, &(struct nw_letter){.audit = &judgement->audit,
                                                        .results = &judgement->results,
                                                        .topos = judgement->further_topos,
                                                        .topo_count = judgement->further_count,
                                                        .version = nw_version,
                                                        .language = nw_spoken_language()->key});
}

static nw_rc print(FILE *stream, const struct nw_model_args *args,
                   const struct nw_judgement *judgement)
{
    const struct nw_page page = nw_judgement_page(judgement, nw_spoken_language()->key);

    return args->report_letter ? print_letter(stream, judgement) : nw_report_html(stream, &page);
}

static const char *output_of(const struct nw_model_args *args)
{
    if (args->report_output != NULL)
        return args->report_output;
    return args->report_letter ? "-" : "report.html";
}

static nw_rc write_page(const struct nw_model_args *args, const struct nw_judgement *judgement)
{
    const char *path = output_of(args);
    struct nw_atomic_file *file;

    if (strcmp(path, "-") == 0) {
        NW_TRY(print(stdout, args, judgement));
        return nw_cli_finish_stdout();
    }
    NW_TRY(nw_atomic_open(path, &file));
    const nw_rc rc = print(nw_atomic_stream(file), args, judgement);

    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return nw_fail(rc, "%s: %s", path, nw_last_error()->text);
    }
    NW_TRY(nw_atomic_commit(file));
    printf("%s\n", path);
    return NW_OK;
}

static nw_rc write_figures(const struct nw_model_args *args, const struct nw_judgement *judgement)
{
    const struct nw_page page = nw_judgement_page(judgement, nw_spoken_language()->key);
    struct nw_figures_written written;

    NW_TRY(nw_report_figures(args->report_figures, &page, &written));
    printf("%s: %zu SVG, %zu PNG%s%s\n", args->report_figures, written.svg_count, written.png_count,
           written.note[0] != '\0' ? "; " : "", written.note);
    return NW_OK;
}

static nw_rc check(const struct nw_model_args *args, const struct nw_results *results)
{
    if (args->json)
        return nw_fail(NW_EUSAGE, "--json: a report is a page; show, audit and decide print JSON");
    if (args->report_letter && args->quote_path == NULL)
        return nw_fail(NW_EUSAGE, "--letter: a letter holds machines against a quote; give --quote "
                                  "FILE");
    if (results->run_count == 0 && args->topo_files.count == 0)
        return nw_fail(NW_EUSAGE, "a report of what? give results.jsonl, a log of another tool, or "
                                  "--topo FILE");
    return NW_OK;
}

static nw_rc report(struct nw_model_args *args, struct nw_judgement *judgement,
                    struct nw_topo **topos)
{
    struct nw_model_request request = args->request;
    const bool job = request.model != NULL || request.parameters > 0 || request.layers > 0;

    request.topos = topos;
    request.topo_count = args->topo_files.count;
    judgement->further_topos = topos;
    judgement->further_count = args->topo_files.count;
    NW_TRY(nw_judgement_make(judgement, args->quote_path != NULL ? &args->quote : NULL,
                             job ? &request : NULL));
    NW_TRY(write_page(args, judgement));
    return args->report_figures != NULL ? write_figures(args, judgement) : NW_OK;
}

int nw_cmd_report(int argc, char **argv)
{
    struct nw_judgement judgement = {.left_out_count = 0};
    struct nw_model_args args;
    struct nw_topo **topos = NULL;
    nw_rc rc = nw_model_args_parse(argc, argv, doc, NW_ARGS_PRICES | NW_ARGS_TOPO | NW_ARGS_REPORT,
                                   &args, &judgement.results);

    if (rc != NW_OK)
        return nw_cli_fail(rc);
    judgement.left_out_count = args.left_out_count;
    rc = check(&args, &judgement.results);
    if (rc == NW_OK)
        rc = nw_topo_files_read(&args.topo_files, &topos);
    if (rc == NW_OK) {
        rc = report(&args, &judgement, topos);
        nw_judgement_free(&judgement);
        nw_topo_files_free(topos, args.topo_files.count);
        topos = NULL;
    }
    nw_judgement_free(&judgement);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
