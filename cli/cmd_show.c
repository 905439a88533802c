/* nodeworth show: browse results, draw their curves, hand them to other programs. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/show_browse.h"
#include "report/show_json.h"
#include "report/show_plot.h"
#include "report/show_text.h"

static const char *const format_names[] = {"table",       "markdown", "csv", "jsonl",
                                           "openmetrics", "json",     NULL};
static const char *const axis_names[] = {"rate", "time", NULL};

struct options {
    struct nw_select select;
    const char *format, *out, *sort, *axis;
    bool records, reverse, plot, json;
    int limit, run;
};

#define FIELD(name) .offset = offsetof(struct options, name)

static const struct nw_option own_rows[] = {
    {.name = "run",
     .argument = "N",
     .type = NW_OPTION_INT,
     .min = 1,
     .max = 1e9,
     FIELD(run),
     .help = "of this run only, as the table of runs counts them"},
    {.help = "How they are shown:"},
    {.name = "records",
     .key = 'r',
     .type = NW_OPTION_FLAG,
     FIELD(records),
     .help = "every result, not only what was measured"},
    {.name = "sort",
     .argument = "KEY",
     .type = NW_OPTION_CHOICE,
     .choices = nw_order_names,
     .fallback = "file",
     FIELD(sort),
     .help = "results by bytes or time (smallest first), busbw, algbw, skew or wrong (largest "
             "first); file: as they stand there (file)"},
    {.name = "reverse", .type = NW_OPTION_FLAG, FIELD(reverse), .help = "the other way round"},
    {.name = "limit",
     .argument = "N",
     .type = NW_OPTION_INT,
     .max = 1e9,
     .fallback = "100",
     FIELD(limit),
     .help = "at most so many results in a table or JSON; 0: all (100)"},
    {.name = "plot", .key = 'p', .type = NW_OPTION_FLAG, FIELD(plot), .help = "draw the curves"},
    {.name = "axis",
     .argument = "WHAT",
     .type = NW_OPTION_CHOICE,
     .choices = axis_names,
     .fallback = "rate",
     FIELD(axis),
     .help = "of --plot: rate or time against size (rate)"},
    {.name = "format",
     .argument = "FORM",
     .type = NW_OPTION_CHOICE,
     .choices = format_names,
     .fallback = "table",
     FIELD(format),
     .help = "table, markdown or json; csv, jsonl or openmetrics (a file for node_exporter's "
             "textfile collector): every result (table)"},
    {.name = "out",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     FIELD(out),
     .help = "write to FILE, whole or not at all"},
    {.name = "json", .type = NW_OPTION_FLAG, FIELD(json), .help = "the same as --format json"},
};

static bool is_format(const struct options *options, const char *name)
{
    return strcmp(options->format, name) == 0;
}

/* ---- sinks: every selected record at once -----------------------------------------------------
 */

struct output {
    FILE *stream;
    struct nw_text text;
    struct nw_metrics *metrics;
    int run; /* of the last record; 0: none yet */
};

#define PIECE_BYTES ((size_t)1 << 20)

static nw_rc put_text(struct output *output, size_t least)
{
    NW_TRY(nw_text_check(&output->text));
    if (output->text.length < least)
        return NW_OK;
    if (fwrite(output->text.data, 1, output->text.length, output->stream) != output->text.length)
        return nw_fail(NW_EIO, "cannot write the results");
    output->text.length = 0;
    return NW_OK;
}

static nw_rc csv_record(void *user, int run, const struct nw_context *context,
                        const struct nw_record *record)
{
    struct output *output = user;

    nw_csv_record(&output->text, run, context, record);
    return put_text(output, PIECE_BYTES);
}

static void put_finding(struct output *output, const struct nw_finding *finding)
{
    nw_finding_line_write(&output->text, finding);
    nw_text_put(&output->text, "\n");
}

static nw_rc jsonl_record(void *user, int run, const struct nw_context *context,
                          const struct nw_record *record)
{
    struct output *output = user;

    if (output->run != run) {
        output->run = run;
        nw_context_write(&output->text, context);
        nw_text_put(&output->text, "\n");
        for (size_t i = 0; i < context->findings.count; i++)
            put_finding(output, &context->findings.items[i]);
    }
    nw_record_write(&output->text, record);
    nw_text_put(&output->text, "\n");
    return put_text(output, PIECE_BYTES);
}

static nw_rc jsonl_finding(void *user, const struct nw_finding *finding)
{
    put_finding(user, finding);
    return NW_OK;
}

static nw_rc jsonl_end(void *user, const struct nw_context *context)
{
    struct output *output = user;

    if (context->complete)
        nw_end_line_write(&output->text);
    if (context->complete)
        nw_text_put(&output->text, "\n");
    return put_text(output, PIECE_BYTES);
}

static nw_rc metrics_record(void *user, int run, const struct nw_context *context,
                            const struct nw_record *record)
{
    struct output *output = user;

    (void)run, (void)context;
    nw_metrics_at_run(output->metrics, run);
    return nw_metrics_record(output->metrics, record);
}

/* ---- what is shown -----------------------------------------------------------------------------
 */

static void take_options(struct nw_browse *browse, const struct options *options)
{
    const bool table =
        is_format(options, "table") || is_format(options, "markdown") || is_format(options, "json");

    browse->select = options->select;
    browse->only_run = options->run;
    browse->group = table;
    browse->keep = table && options->records;
    browse->whole = !table || (browse->keep && is_format(options, "json"));
    browse->whole_contexts = is_format(options, "json");
    browse->reverse = options->reverse;
    browse->limit = options->limit > 0 ? (size_t)options->limit : SIZE_MAX;
    for (int i = 0; nw_order_names[i] != NULL; i++)
        if (strcmp(options->sort, nw_order_names[i]) == 0)
            browse->order = (nw_order)i;
}

static nw_rc take_sink(struct nw_browse *browse, const struct options *options,
                       struct output *output)
{
    browse->user = output;
    if (is_format(options, "csv")) {
        nw_csv_header(&output->text);
        browse->sink = csv_record;
    } else if (is_format(options, "jsonl")) {
        browse->sink = jsonl_record;
        browse->sink_finding = jsonl_finding;
        browse->sink_end = jsonl_end;
    } else if (is_format(options, "openmetrics")) {
        NW_TRY(nw_metrics_open(&output->metrics));
        browse->sink = metrics_record;
    }
    if (browse->sink != NULL && browse->order != NW_ORDER_NONE)
        return nw_fail(NW_EUSAGE,
                       "--format %s writes results as they come; --sort is for table, markdown and "
                       "json",
                       options->format);
    if (browse->sink != NULL && options->plot)
        return nw_fail(NW_EUSAGE, "--plot draws; with it --format is table");
    return NW_OK;
}

static nw_rc show_metrics(const struct nw_browse *browse, struct output *output)
{
    for (size_t i = 0; i < browse->contexts.run_count; i++) {
        const struct nw_context *context = browse->runs[i].context;

        if (browse->runs[i].shown_count == 0)
            continue;
        NW_TRY(nw_metrics_run(output->metrics, (int)i + 1, context));
        for (size_t k = 0; k < context->findings.count; k++)
            NW_TRY(nw_metrics_finding(output->metrics, &context->findings.items[k]));
    }
    return nw_metrics_write(output->metrics, output->stream);
}

/* The kept records one after the other, borrowed from `browse`; the caller frees the list. */
static nw_rc list_kept(const struct nw_browse *browse, struct nw_record **records_out)
{
    struct nw_record *records = calloc(browse->kept_count + 1, sizeof *records);

    if (records == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu results", browse->kept_count);
    for (size_t i = 0; i < browse->kept_count; i++)
        records[i] = browse->kept[i]->record;
    *records_out = records;
    return NW_OK;
}

static nw_rc show_json(const struct nw_browse *browse, const struct options *options,
                       const struct nw_record *records, FILE *stream)
{
    json_t *json;

    NW_TRY(nw_show_to_json(browse->runs, browse->contexts.run_count, &browse->groups,
                           options->records ? records : NULL, browse->kept_count, &json));
    const nw_rc rc = nw_json_print(stream, json);

    json_decref(json);
    return rc;
}

static int width_of(FILE *stream)
{
    struct winsize size;

    if (isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 100;
}

static nw_rc show_tables(const struct nw_browse *browse, const struct options *options,
                         const struct nw_record *records, FILE *stream)
{
    const struct nw_show_view view = {.stream = stream, .markdown = is_format(options, "markdown")};

    if (options->plot)
        return nw_show_plot(stream, &browse->groups,
                            strcmp(options->axis, "time") == 0 ? NW_PLOT_TIME : NW_PLOT_RATE,
                            width_of(stream));
    NW_TRY(nw_show_runs(&view, browse->runs, browse->contexts.run_count));
    fputc('\n', stream);
    if (options->records)
        NW_TRY(nw_show_records(&view, records, browse->kept_count, browse->selected));
    else
        NW_TRY(nw_show_groups(&view, &browse->groups));
    return nw_show_findings(&view, browse->runs, browse->contexts.run_count);
}

static nw_rc show(const struct nw_browse *browse, const struct options *options,
                  struct output *output)
{
    struct nw_record *records = NULL;
    nw_rc rc;

    if (output->metrics != NULL)
        return show_metrics(browse, output);
    if (browse->sink != NULL)
        return put_text(output, 1);
    NW_TRY(list_kept(browse, &records));
    rc = is_format(options, "json") ? show_json(browse, options, records, output->stream)
                                    : show_tables(browse, options, records, output->stream);
    free(records);
    return rc;
}

/* ---- the command -------------------------------------------------------------------------------
 */

/* NW_ENODEV: nothing is selected. */
static nw_rc browse_all(struct nw_browse *browse, const struct options *options,
                        const struct nw_cli *cli, struct output *output)
{
    for (int i = 0; i < cli->positional_count; i++)
        NW_TRY(nw_browse_file(browse, cli->positional[i]));
    NW_TRY(nw_browse_finish(browse));
    NW_TRY(show(browse, options, output));
    return browse->selected > 0 ? NW_OK
                                : nw_fail(NW_ENODEV, "no result is selected; without a filter show "
                                                     "says what there is");
}

static nw_rc browse_to(const struct options *options, const struct nw_cli *cli,
                       struct nw_atomic_file *file)
{
    struct output output = {.stream = file != NULL ? nw_atomic_stream(file) : stdout};
    struct nw_browse browse = {.limit = 0};
    nw_rc rc;

    take_options(&browse, options);
    rc = take_sink(&browse, options, &output);
    if (rc == NW_OK)
        rc = browse_all(&browse, options, cli, &output);
    nw_browse_free(&browse);
    nw_text_free(&output.text);
    nw_metrics_free(output.metrics);
    return rc;
}

static nw_rc run_show(const struct options *options, const struct nw_cli *cli)
{
    struct nw_atomic_file *file = NULL;
    nw_rc rc;

    if (options->out != NULL)
        NW_TRY(nw_atomic_open(options->out, &file));
    rc = browse_to(options, cli, file);
    if (file == NULL)
        return rc;
    if (rc == NW_OK)
        return nw_atomic_commit(file);
    nw_atomic_abandon(file);
    return rc;
}

int nw_cmd_show(int argc, char **argv)
{
    struct nw_option rows[32];
    struct options options;
    struct nw_cli cli = {
        .arguments = "FILE…",
        .doc = "Shows what results files hold (or logs that import reads; \"-\" is standard "
               "input): runs, "
               "what was measured, every result, curves; and writes them for other programs.\v"
               "Exit status: 0 shown; 2 a file cannot be read; 3 nothing is selected. Examples:\n\n"
               "  nodeworth show results.jsonl --collectives all_reduce --plot\n"
               "  nodeworth show results.jsonl --records --sort busbw --limit 10\n"
               "  nodeworth show results.jsonl --format openmetrics --out nodeworth.prom",
        .rows = rows,
        .target = &options,
        .min_arguments = 1,
        .max_arguments = -1,
    };

    cli.row_count = nw_cli_embed(rows, nw_select_options, nw_select_option_count,
                                 offsetof(struct options, select), true);
    cli.row_count +=
        nw_cli_embed(rows + cli.row_count, own_rows, sizeof own_rows / sizeof own_rows[0], 0, true);
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK && options.json)
        options.format = "json";
    if (rc == NW_OK)
        rc = run_show(&options, &cli);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
