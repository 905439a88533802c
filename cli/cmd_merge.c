/* nodeworth merge: several results files as one; names hidden where asked. */
#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "results/merge.h"

struct options {
    const char *out, *seed;
    bool anonymise;
};

static const struct nw_option rows[] = {
    {.name = "out",
     .key = 'o',
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, out),
     .help = "write the results to FILE, whole or not at all"},
    {.name = "anonymise",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, anonymise),
     .help = "hide names of hosts, UUIDs, serial numbers, addresses and paths; equal ones stay "
             "equal in all files given"},
    {.name = "seed",
     .argument = "TEXT",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, seed),
     .help = "with --anonymise: the same pseudonyms in every call with this secret (a new one in "
             "each call)"},
};

static nw_rc check(const struct options *options, const struct nw_cli *cli)
{
    if (options->out == NULL)
        return nw_fail(NW_EUSAGE, "where the results go is missing; expected: --out FILE");
    if (options->seed != NULL && !options->anonymise)
        return nw_fail(NW_EUSAGE, "--seed goes with --anonymise");
    for (int i = 0; i < cli->positional_count; i++)
        if (strcmp(cli->positional[i], "-") == 0)
            return nw_fail(NW_EUSAGE, "the files are read twice, and standard input cannot be; "
                                      "expected: FILE…");
    return NW_OK;
}

static nw_rc merge(const struct options *options, const struct nw_cli *cli)
{
    struct nw_anonymiser *anonymiser = NULL;
    struct nw_merged merged;

    NW_TRY(check(options, cli));
    if (options->anonymise)
        NW_TRY(nw_anonymiser_open(options->seed, &anonymiser));
    const nw_rc rc =
        nw_results_merge((const char *const *)cli->positional, (size_t)cli->positional_count,
                         anonymiser, options->out, &merged);

    nw_anonymiser_free(anonymiser);
    NW_TRY(rc);
    printf("%zu runs with %zu results are in %s\n", merged.run_count, merged.record_count,
           options->out);
    if (merged.again_count > 0)
        printf("%zu runs were left out: they stand in an earlier file already\n",
               merged.again_count);
    return NW_OK;
}

int nw_cmd_merge(int argc, char **argv)
{
    struct options options = {.out = NULL};
    struct nw_cli cli = {
        .arguments = "FILE…",
        .doc = "Puts the runs of several results files into one, line for line. Simulated and real "
               "results never go into one file. With --anonymise the file can be shown to "
               "strangers.\v"
               "Exit status: 0 written; 2 bad input.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .target = &options,
        .min_arguments = 1,
        .max_arguments = -1,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK)
        rc = merge(&options, &cli);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
