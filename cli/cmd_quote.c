#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/units.h"
#include "base/words.h"
#include "cli/cli.h"
#include "results/quote.h"

struct quote_options {
    bool force, json;
};

static const struct nw_option rows[] = {
    {.name = "force",
     .key = 'f',
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct quote_options, force),
     .help = "init: overwrite FILE"},
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct quote_options, json),
     .help = "check: print the quote as JSON, in base units"},
};

static nw_rc init(const char *path, bool force)
{
    struct nw_atomic_file *file;

    if (path == NULL || strcmp(path, "-") == 0) {
        NW_TRY(nw_quote_template(stdout));
        return nw_cli_finish_stdout();
    }
    if (!force && access(path, F_OK) == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: is there already; give another name, or --force to overwrite", path);
    NW_TRY(nw_atomic_open(path, &file));
    if (nw_quote_template(nw_atomic_stream(file)) != NW_OK) {
        nw_atomic_abandon(file);
        return nw_fail(NW_EIO, "%s: cannot write: %s", path, strerror(errno));
    }
    NW_TRY(nw_atomic_commit(file));
    nw_print(stdout, "%s: fill in what the vendor promises, then: nodeworth audit --quote %s\n",
             path, path);
    return nw_cli_finish_stdout();
}

static nw_rc check(const char *path, bool json)
{
    struct nw_quote quote;
    json_t *root;
    size_t count = 0;

    NW_TRY(nw_quote_read(path, &quote));
    if (json) {
        NW_TRY(nw_quote_to_json(&quote, &root));
        const nw_rc rc = nw_json_print(stdout, root);

        json_decref(root);
        NW_TRY(rc);
        return nw_cli_finish_stdout();
    }
    for (size_t i = 0; i < nw_quote_row_count; i++)
        count += quote.lines[i] > 0;
    nw_print(stdout, "%s: good; %zu of %zu keys are set\n", path, count, nw_quote_row_count);
    return nw_cli_finish_stdout();
}

static nw_rc act(const struct nw_cli *cli, const struct quote_options *options)
{
    static const char *const verbs[] = {"init", "check", NULL};
    const char *verb = cli->positional[0];
    const char *path = cli->positional_count > 1 ? cli->positional[1] : NULL;
    const char *nearest = nw_nearest_name(verb, verbs);

    if (strcmp(verb, "init") == 0)
        return init(path, options->force);
    if (strcmp(verb, "check") == 0 && path != NULL)
        return check(path, options->json);
    if (strcmp(verb, "check") == 0)
        return nw_fail(NW_EUSAGE, "check: which FILE? expected: quote check FILE");
    if (nearest != NULL)
        return nw_fail(NW_EUSAGE,
                       "unknown action \"%.40s\"; did you mean \"%s\"? Accepted: init, check", verb,
                       nearest);
    return nw_fail(NW_EUSAGE, "unknown action \"%.40s\"; accepted: init, check", verb);
}

int nw_cmd_quote(int argc, char **argv)
{
    struct quote_options options;
    struct nw_cli cli = {
        .arguments = "init [FILE] | check FILE",
        .doc = "Write a commented template of a vendor's quote, or check a quote.\v"
               "Without FILE init writes to standard output. Exit codes: 0, 2 the quote is "
               "refused, with "
               "file, line and what is accepted.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .target = &options,
        .min_arguments = 1,
        .max_arguments = 2,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK)
        rc = act(&cli, &options);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
