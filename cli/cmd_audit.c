/* nodeworth audit: a quote against results, logs and topologies. */
#include <stddef.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "cli/inputs.h"
#include "report/audit_text.h"
#include "report/letter.h"

struct audit_options {
    const char *quote, *output, *letter;
    struct nw_option_list results, topos;
    bool json, keep_names;
};

static const struct nw_option rows[] = {
    {.name = "quote",
     .key = 'q',
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct audit_options, quote),
     .help = "what the vendor promises (nodeworth quote init writes a template)"},
    {.name = "results",
     .key = 'r',
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     .offset = offsetof(struct audit_options, results),
     .help = "results.jsonl, or a log of nccl-tests; may be given several times"},
    {.name = "topo",
     .key = 't',
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     .offset = offsetof(struct audit_options, topos),
     .help =
         "a node's topology: topo --save, or a file of another tool (nodeworth list formats); may "
         "be given several times"},
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct audit_options, json),
     .help = "print JSON instead of the table"},
    {.name = "letter",
     .argument = "LANG",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct audit_options, letter),
     .help = "write the page for the vendor instead, in Markdown: en or zh"},
    {.name = "keep-names",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct audit_options, keep_names),
     .help = "in the letter, leave host and file names as they are (else node1, node2 …)"},
    {.name = "output",
     .key = 'o',
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct audit_options, output),
     .help = "write to FILE, whole or not at all"},
};

struct inputs {
    struct nw_quote quote;
    struct nw_results results;
    struct nw_topo *topos[NW_OPTION_LIST_MAX];
    size_t topo_count;
};

static nw_rc read_inputs(const struct audit_options *options, const struct nw_cli *cli,
                         struct inputs *inputs)
{
    if (options->quote == NULL)
        return nw_fail(NW_EUSAGE, "which quote? give --quote FILE; nodeworth quote init writes a "
                                  "template");
    if (options->letter != NULL)
        NW_TRY(nw_letter_check_language(options->letter));
    if (options->letter != NULL && options->json)
        return nw_fail(NW_EUSAGE, "--letter and --json: a letter is Markdown; give one of them");
    NW_TRY(nw_quote_read(options->quote, &inputs->quote));
    if (options->results.count + options->topos.count + (size_t)cli->positional_count == 0)
        return nw_fail(NW_EUSAGE, "nothing to hold against the quote; give --results FILE "
                                  "(results.jsonl or a log of nccl-tests) or --topo FILE");
    NW_TRY(nw_cli_read_all_results(&options->results, cli, &inputs->results));
    for (size_t i = 0; i < options->topos.count; i++) {
        NW_TRY(nw_topo_read_file(options->topos.items[i], &inputs->topos[i]));
        inputs->topo_count = i + 1;
    }
    return NW_OK;
}

static nw_rc print(FILE *stream, const struct audit_options *options, const struct inputs *inputs,
                   const struct nw_audit *audit)
{
    json_t *root;

    if (options->letter != NULL)
        return nw_report_letter(stream, &(struct nw_letter){.audit = audit,
                                                            .results = &inputs->results,
                                                            .topos = inputs->topos,
                                                            .topo_count = inputs->topo_count,
                                                            .version = nw_version,
                                                            .language = options->letter,
                                                            .keep_names = options->keep_names});
    if (!options->json)
        return nw_report_audit(stream, audit);
    NW_TRY(nw_audit_to_json(audit, &root));
    const nw_rc rc = nw_json_print(stream, root);

    json_decref(root);
    return rc;
}

static nw_rc deliver(const struct audit_options *options, const struct inputs *inputs,
                     const struct nw_audit *audit)
{
    struct nw_atomic_file *file;

    if (options->output == NULL) {
        NW_TRY(print(stdout, options, inputs, audit));
        return nw_cli_finish_stdout();
    }
    NW_TRY(nw_atomic_open(options->output, &file));
    const nw_rc rc = print(nw_atomic_stream(file), options, inputs, audit);

    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return nw_fail(rc, "%s: %s", options->output, nw_last_error()->text);
    }
    return nw_atomic_commit(file);
}

static void free_inputs(struct inputs *inputs)
{
    nw_results_free(&inputs->results);
    for (size_t i = 0; i < inputs->topo_count; i++)
        nw_topo_free(inputs->topos[i]);
}

int nw_cmd_audit(int argc, char **argv)
{
    struct audit_options options;
    struct inputs inputs = {.topo_count = 0};
    struct nw_audit audit = {.row_count = 0};
    int exit_code = 0;
    struct nw_cli cli = {
        .arguments = "[RESULTS...]",
        .doc = "Hold a vendor's quote against what was measured: claim by claim, with the physical "
               "ceiling, what is normal, and likely causes of what is short; or as a letter to the "
               "vendor.\v"
               "Exit codes: 0 nothing is short, 1 a claim is short or results were wrong, 2 bad "
               "input, "
               "3 nothing was measured.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .target = &options,
        .max_arguments = -1,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK)
        rc = read_inputs(&options, &cli, &inputs);
    if (rc == NW_OK)
        rc = nw_audit_make(&(struct nw_audit_input){.quote = &inputs.quote,
                                                    .results = &inputs.results,
                                                    .topos = inputs.topos,
                                                    .topo_count = inputs.topo_count},
                           &audit);
    if (rc == NW_OK)
        rc = deliver(&options, &inputs, &audit);
    if (rc == NW_OK)
        exit_code = nw_audit_exit_code(&audit);
    nw_audit_free(&audit);
    free_inputs(&inputs);
    return rc == NW_OK ? exit_code : nw_cli_fail(rc);
}
