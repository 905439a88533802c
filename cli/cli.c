#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/describe.h"
#include "base/words.h"
#include "cli/help.h"
#include "collectives/launch.h"

size_t nw_cli_embed(struct nw_option *to, const struct nw_option *rows, size_t count, size_t offset,
                    bool letters)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = rows[i];
        to[i].offset += offset;
        if (!letters)
            to[i].key = 0;
    }
    return count;
}

int nw_cli_launch_rank(void)
{
    return nw_launch_rank();
}

int nw_cli_launch_size(void)
{
    return nw_launch_count();
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct nw_cli *cli = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (cli->max_arguments >= 0 && cli->positional_count >= cli->max_arguments) {
            nw_fail(NW_EUSAGE, "too many arguments: \"%s\"%s%s; see --help", argument,
                    cli->arguments != NULL ? "; expected: " : " (none is taken)",
                    cli->arguments != NULL ? cli->arguments : "");
            return EINVAL;
        }
        cli->positional_count++;
        return 0;
    case ARGP_KEY_END:
        if (cli->positional_count >= cli->min_arguments)
            return 0;
        nw_fail(NW_EUSAGE, "missing argument; expected: %s; see --help",
                cli->arguments != NULL ? cli->arguments : "");
        return EINVAL;
    default:
        return nw_option_parse(cli->rows, cli->row_count, cli->target, key, argument);
    }
}

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "nodeworth %s\n", nw_version);
}

static bool asks_for(int argc, char **argv, const char *word, const char *letter)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0 || strcmp(argv[i], letter) == 0)
            return true;
    return false;
}

static bool asks_for_help(int argc, char **argv)
{
    return asks_for(argc, argv, "--help", "-?") || asks_for(argc, argv, "--usage", "--usage") ||
           asks_for(argc, argv, "--version", "-V");
}

static error_t parse(const struct argp *argp, struct nw_cli *cli, int argc, char **argv,
                     bool speaks)
{
    if (!speaks)
        return argp_parse(argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT, NULL, cli);
    if (nw_spoken_language()->words == NULL)
        return argp_parse(argp, argc, argv, 0, NULL, cli);
    if (asks_for(argc, argv, "--help", "-?")) {
        nw_help_print(stdout, argv[0], cli);
        exit(0);
    }
    if (asks_for(argc, argv, "--usage", "--usage")) {
        nw_help_print_usage(stdout, argv[0], argp);
        exit(0);
    }
    return asks_for_help(argc, argv) ? argp_parse(argp, argc, argv, 0, NULL, cli)
                                     : nw_help_parse(argp, argc, argv, cli);
}

nw_rc nw_cli_parse(struct nw_cli *cli, int argc, char **argv, bool speaks)
{
    struct argp_option *rows = calloc(cli->row_count + 2, sizeof *rows);
    struct argp argp = {
        .options = rows, .parser = parse_option, .args_doc = cli->arguments, .doc = cli->doc};
    error_t error = 0;

    if (!speaks && asks_for_help(argc, argv))
        exit(0); /* rank 0 prints it */
    if (argc == 2 && strcmp(argv[1], NW_CLI_DESCRIBE) == 0) {
        free(rows);
        exit(nw_cli_describe(cli) == NW_OK ? 0 : nw_cli_fail(NW_EIO));
    }
    if (rows == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the command line");
    argp_program_version_hook = print_version;
    argp_err_exit_status = 2;
    nw_clear_error();
    nw_option_argp_rows(cli->rows, cli->row_count, rows);
    rows[cli->row_count] = nw_help_lang_row; /* main has taken it out of the command line */
    if (nw_options_reset(cli->rows, cli->row_count, cli->target) != NW_OK)
        error = EINVAL;
    if (error == 0)
        error = parse(&argp, cli, argc, argv, speaks);
    free(rows);
    cli->positional = argv + argc - cli->positional_count; /* argp has put them last, in order */
    if (error == 0)
        return NW_OK;
    if (nw_last_error()->rc != NW_OK)
        return nw_last_error()->rc;
    return nw_fail(NW_EUSAGE, "command line not understood: %s", strerror(error));
}

int nw_cli_fail(nw_rc rc)
{
    nw_message("%s", nw_last_error()->text[0] != '\0' ? nw_last_error()->text : nw_rc_text(rc));
    return nw_rc_exit_code(rc);
}

nw_rc nw_cli_finish_stdout(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        return nw_fail(NW_EIO, "standard output: cannot write the results%s%s",
                       errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
    return NW_OK;
}
