/* Public. A process of this program's own, for what must not share a fate or an environment with
 * its parent. Started without fork's copy of the memory (posix_spawn), which libraries with
 * registered memory, such as an MPI, need.
 *
 *     char **environment;
 *     NW_TRY(nw_child_environment(changes, change_count, &environment));
 *     rc = nw_child_start(arguments, environment, descriptors, 2, &pid);   // 3 and 4 in the child
 *     nw_child_free_environment(environment);
 *     …
 *     if (nw_child_ended(pid, &status)) nw_child_fate(text, sizeof text, status);
 *
 * In the child, first of all: nw_child_settle(2), then compare getppid() with what the parent says
 * it is: it may have died before.
 */
#ifndef NW_BASE_CHILD_H
#define NW_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define NW_CHILD_FIRST_FD 3

struct nw_child_change {
    const char *name;
    const char *value; /* NULL: without it */
};

/* This process's environment with the changes, in order: the later one counts. */
nw_rc nw_child_environment(const struct nw_child_change *changes, size_t count,
                           char ***environment_out);
void nw_child_free_environment(char **environment); /* accepts NULL */

/* This program once more (/proc/self/exe). `descriptors` become NW_CHILD_FIRST_FD and up; its
 * standard output is ours for messages, since some libraries write there. */
nw_rc nw_child_start(char *const *arguments, char *const *environment, const int *descriptors,
                     size_t descriptor_count, pid_t *pid_out);
/* In the child: die with the parent, keep no descriptor of its but the `descriptor_count` given. */
void nw_child_settle(size_t descriptor_count);

/* True once, when it has ended. Does not wait. */
bool nw_child_ended(pid_t pid, int *status_out);
/* Kill it and wait until it is gone. */
void nw_child_kill(pid_t pid);
/* "killed by signal 9 (Killed)", "ended with exit code 3" */
const char *nw_child_fate(char *text, size_t size, int status);
/* 'R' 'S' 'D' 'T' … as in proc(5); '?': it cannot be read. */
char nw_child_state(pid_t pid);

#endif
