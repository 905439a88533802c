/* Private to cli/. Says that reading this machine takes unusually long: a driver that hangs may
 * hang whoever asks it so that not even a signal reaches him, so a process of its own looks on.
 *
 *     const pid_t slow = nw_slow_watch("topo", 10, STDERR_FILENO);
 *     rc = nw_topo_read_live(&topo);
 *     nw_slow_end(slow);
 */
#ifndef NW_CLI_SLOW_H
#define NW_CLI_SLOW_H

#include <sys/types.h>

/* One message to `fd` after `seconds`; with what it is that does not answer, where that shows. To
 * be called before there are threads. -1: nobody looks on. */
pid_t nw_slow_watch(const char *command, double seconds, int fd);
void nw_slow_end(pid_t watcher); /* accepts -1 */

#endif
