#include "cli/model_args.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "results/import.h"
#include "results/quote.h"

static const struct nw_option own_rows[] = {
    {.help = "Input and output:"},
    {.name = "results",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct nw_model_args, results_help),
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
#define OWN_COUNT (sizeof own_rows / sizeof own_rows[0])

/* Takes "--results FILE" and "--results=FILE" out of argv, which argp would keep the last of only.
 * Returns the new argc; files_out has room for argc entries. */
static int take_results(int argc, char **argv, char **files_out, size_t *count_out)
{
    int kept = 0;
    size_t count = 0;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--results") == 0 && i + 1 < argc)
            files_out[count++] = argv[++i];
        else if (strncmp(argv[i], "--results=", 10) == 0)
            files_out[count++] = argv[i] + 10;
        else
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *count_out = count;
    return kept;
}

static bool is_jsonl(const char *path)
{
    FILE *file = fopen(path, "r");
    int c = EOF;

    if (file == NULL)
        return false; /* the importer words it */
    while ((c = fgetc(file)) != EOF && isspace(c))
        ;
    fclose(file);
    return c == '{';
}

static nw_rc read_file(const char *path, struct nw_results *results)
{
    return is_jsonl(path) ? nw_results_read(path, results) : nw_import_file(path, results);
}

static nw_rc parse(struct nw_cli *cli, int argc, char **argv, struct nw_model_args *args,
                   char **files, struct nw_results *results)
{
    size_t file_count;

    argc = take_results(argc, argv, files, &file_count);
    NW_TRY(nw_cli_parse(cli, argc, argv, true));
    for (size_t i = 0; i < file_count; i++)
        NW_TRY(read_file(files[i], results));
    for (int i = 0; i < cli->positional_count; i++)
        NW_TRY(read_file(cli->positional[i], results));
    if (args->quote_path != NULL) {
        NW_TRY(nw_quote_read(args->quote_path, &args->quote));
        nw_model_request_take_quote(&args->request, &args->quote);
    }
    return NW_OK;
}

nw_rc nw_model_args_parse(int argc, char **argv, const char *doc, bool prices,
                          struct nw_model_args *args_out, struct nw_results *results_out)
{
    const size_t offset = offsetof(struct nw_model_args, request);
    struct nw_option *rows =
        calloc(OWN_COUNT + nw_model_option_count + nw_price_option_count, sizeof *rows);
    char **arguments = calloc((size_t)argc + 1, sizeof *arguments);
    char **files = calloc((size_t)argc + 1, sizeof *files);
    struct nw_results results = {0};
    nw_rc rc = NW_ENOMEM;

    *args_out = (struct nw_model_args){0};
    if (rows == NULL || arguments == NULL || files == NULL) {
        rc = nw_fail(NW_ENOMEM, "out of memory for the command line");
        goto out;
    }
    memcpy(arguments, argv, (size_t)argc * sizeof *arguments);
    size_t count = nw_cli_embed(rows, own_rows, OWN_COUNT, 0, true);

    count += nw_cli_embed(rows + count, nw_model_options, nw_model_option_count, offset, true);
    if (prices)
        count += nw_cli_embed(rows + count, nw_price_options, nw_price_option_count, offset, true);
    struct nw_cli cli = {.arguments = "[FILE...]",
                         .doc = doc,
                         .rows = rows,
                         .row_count = count,
                         .target = args_out,
                         .max_arguments = -1};

    rc = parse(&cli, argc, arguments, args_out, files, &results);
out:
    free(rows);
    free(arguments);
    free(files);
    if (rc != NW_OK) {
        nw_results_free(&results);
        return rc;
    }
    *results_out = results;
    return NW_OK;
}
