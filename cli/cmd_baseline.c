/* nodeworth baseline: what the nodes of a set usually reach, as a file for compare. */
#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "report/baseline_text.h"
#include "results/baseline.h"

struct options {
    struct nw_select select;
    const char *out;
};

static const struct nw_option own_rows[] = {
    {.help = "Where it goes:"},
    {.name = "out",
     .key = 'o',
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, out),
     .help = "write the baseline to FILE, whole or not at all"},
};

static nw_rc make(const struct options *options, const struct nw_cli *cli)
{
    static const struct nw_option_list none = {0};
    struct nw_results results = {0};
    struct nw_baseline baseline = {.row_count = 0};

    if (options->out == NULL)
        return nw_fail(NW_EUSAGE, "where the baseline goes is missing; expected: --out FILE");
    nw_rc rc = nw_cli_read_all_measured(&none, cli, &results);

    if (rc == NW_OK)
        rc = nw_baseline_make(&results, &options->select, &baseline);
    if (rc == NW_OK) {
        snprintf(baseline.context.tool_version, sizeof baseline.context.tool_version, "%s",
                 nw_version);
        rc = nw_baseline_save(&baseline, options->out);
    }
    if (rc == NW_OK)
        rc = nw_report_baseline_made(stdout, &baseline, options->out);
    nw_baseline_free(&baseline);
    nw_results_free(&results);
    return rc;
}

int nw_cmd_baseline(int argc, char **argv)
{
    struct nw_option rows[24];
    struct options options;
    struct nw_cli cli = {
        .arguments = "FILE…",
        .doc = "Makes a baseline of the results of several nodes of one kind, each measured alone: "
               "median and spread of every row. compare --baseline then says which node falls out. "
               "A node that is far from the others does not count.\v"
               "Exit status: 0 made; 2 bad input; 3 nothing was measured on three nodes. Examples:"
               "\n\n"
               "  nodeworth baseline node*.jsonl --out base.json\n"
               "  nodeworth compare --baseline base.json node7.jsonl",
        .rows = rows,
        .target = &options,
        .min_arguments = 1,
        .max_arguments = -1,
    };

    /* "baseline make FILES" is the same */
    if (argc > 1 && strcmp(argv[1], "make") == 0) {
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    cli.row_count = nw_cli_embed(rows, nw_select_options, nw_select_option_count,
                                 offsetof(struct options, select), false);
    cli.row_count +=
        nw_cli_embed(rows + cli.row_count, own_rows, sizeof own_rows / sizeof own_rows[0], 0, true);
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK)
        rc = make(&options, &cli);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
