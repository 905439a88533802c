/* Private to cli/. After hosts were lost: the command that measures the rest. */
#ifndef NW_CLI_REST_H
#define NW_CLI_REST_H

#include <stddef.h>

#include "cli/lifeline.h"

/* The launcher's command line without its hosts, then those that are left, and --resume. `words`
 * are `length` bytes each of which ends with NUL, as in /proc/PID/cmdline; `program` likewise the
 * program's own, which end it. False: it is no mpirun's, or does not fit. */
bool nw_cli_rest_command(const char *words, size_t length, const char *program,
                         size_t program_length, const struct nw_cli_lifeline_host *hosts,
                         int host_count, char *text, size_t size);
/* Of rank 0's parent, when the rank is dead: what it did not write down of losses, and messages. */
void nw_cli_tell_rest(const struct nw_lifeline *lifeline, const struct nw_cli_lifeline *line,
                      const char *program, size_t program_length);
/* Of rank 0's parent, last of all, after a host was lost without a word: Open MPI's mpirun waits
 * for that host's daemon as long as its keepalive takes (8 minutes), or for ever
 * (--enable-recovery). Where it is this process's parent it is ended if it is still there after a
 * while. */
void nw_cli_end_launcher(void);

#endif
