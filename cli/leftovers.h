/* Private to cli/. What a worker that was killed leaves behind on its host. */
#ifndef NW_CLI_LEFTOVERS_H
#define NW_CLI_LEFTOVERS_H

#include <time.h>

/* Removes NCCL's shared memory files (/dev/shm/nccl-*) that are this user's, came into being since
 * `began`, and that no process has mapped or open. Other jobs' are in use, and stay. */
void nw_clear_leftovers(time_t began);

#endif
