/* Private to cli/. What a command takes, as JSON: made of its option rows, read by what generates
 * completions and man pages (cli/generate.h), so that neither can drift from the parser.
 *
 * `nodeworth --describe`: {"version", "date", "common": {"options": what every command takes},
 * "commands": [{"name", "summary"}]}.
 * `nodeworth COMMAND --describe`: {"arguments", "about", "options": [{"heading"} | {"name",
 * "letter", "argument", "choices", "known", "several", "help"}]}; what is absent is not there.
 */
#ifndef NW_CLI_DESCRIBE_H
#define NW_CLI_DESCRIBE_H

#include "cli/cli.h"
#include "cli/generate.h" /* NW_CLI_DESCRIBE */

nw_rc nw_cli_describe(const struct nw_cli *cli);
nw_rc nw_cli_describe_all(const struct nw_command *commands);

#endif
