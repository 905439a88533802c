/* Private to cli/. --help and complaints of the command line in other languages than English: argp
 * breaks lines at blanks and counts bytes, and what it says itself comes from the C library. */
#ifndef NW_CLI_HELP_H
#define NW_CLI_HELP_H

#include "cli/cli.h"

/* Where `lang` stands among the options that every command has. */
extern const struct argp_option nw_help_lang_row;

/* What argp prints for --help, in the language spoken. `title` is "nodeworth bench". */
void nw_help_print(FILE *stream, const char *title, const struct nw_cli *cli);

/* For --usage: argp's own, which has words at its beginning only. */
void nw_help_print_usage(FILE *stream, const char *title, const struct argp *argp);

/* argp_parse in another language: what argp and getopt say on stderr is translated; they would end
 * the program, so this does. */
error_t nw_help_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
