/* Private to cli/. A measuring rank under supervision: the parent reads the bench's status. */
#ifndef NW_CLI_WATCH_H
#define NW_CLI_WATCH_H

#include "bench/status.h"

/* `work(argument, status)` is the rank and returns the exit code; 4 when it did not end by itself.
 */
int nw_cli_watch(int (*work)(void *argument, void *status), void *argument, int argc, char **argv);

#endif
