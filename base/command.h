/* Public. A foreign program, run to its end within a time limit; what it prints is captured.
 *
 * No shell: the arguments reach the program as they are. It runs in a process group of its own,
 * with nothing on its standard input and none of our descriptors; at the end of the time the whole
 * group is killed, and so is what it leaves behind when it ends. A program that can last should
 * bound itself as well (fio's runtime, an alarm), for the case that we are killed ourselves.
 *
 *     const char *arguments[] = {"fio", "--version", NULL};
 *     struct nw_command_result result;
 *     NW_TRY(nw_command_run(&(struct nw_command){.arguments = arguments, .limit_s = 2}, &result));
 *     if (result.exit_code == 0) … result.output …
 *     nw_command_free(&result);
 */
#ifndef NW_BASE_COMMAND_H
#define NW_BASE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/child.h"
#include "base/err.h"

struct nw_command {
    const char *const *arguments; /* NULL-terminated; the first is the program, sought in PATH */
    double limit_s;               /* more than 0 */
    size_t output_max;            /* bytes kept of stdout, and of stderr; 0: 1 MiB */
    const struct nw_child_change *changes; /* of the environment */
    size_t change_count;
};

struct nw_command_result {
    int status;            /* as of waitpid; nw_child_fate words it */
    int exit_code;         /* -1: killed by a signal */
    char *output, *errors; /* NUL-terminated behind their lengths */
    size_t output_length, errors_length;
    bool output_cut, errors_cut; /* it printed more than was kept */
    double seconds;
};

/* NW_OK: it ran and ended, with whatever exit code. NW_ENODEV: there is no such program; NW_EIO: it
 * cannot be started; NW_ETIMEOUT: it was killed at the end of its time. */
nw_rc nw_command_run(const struct nw_command *command, struct nw_command_result *result_out);
void nw_command_free(struct nw_command_result *result); /* leaves it empty */

#endif
