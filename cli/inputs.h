/* Private to cli/. Results that a command reads: own files, or logs of other tools. */
#ifndef NW_CLI_INPUTS_H
#define NW_CLI_INPUTS_H

#include "base/option.h"
#include "cli/cli.h"
#include "results/results.h"

/* Appends the runs of a results.jsonl, or of a log that an importer knows ("-": a log on standard
 * input). Our own results begin with a JSON object; everything else is a log. */
nw_rc nw_cli_read_results(const char *path, struct nw_results *results);
/* The same; a file that holds no measurement at all is NW_EUSAGE: nothing follows from it. */
nw_rc nw_cli_read_measured(const char *path, struct nw_results *results);
/* All of an option's files, then all positional ones. */
nw_rc nw_cli_read_all_results(const struct nw_option_list *list, const struct nw_cli *cli,
                              struct nw_results *results);
nw_rc nw_cli_read_all_measured(const struct nw_option_list *list, const struct nw_cli *cli,
                               struct nw_results *results);

#endif
