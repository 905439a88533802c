/* Is there a directory to measure, before anything starts? */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/check_read.h"
#include "cli/cli.h"

/* Do all ranks run on this host? Also without mpirun. */
static bool is_one_host(void)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), *all = getenv("OMPI_COMM_WORLD_SIZE");

    return nw_cli_launch_rank() < 0 || (local != NULL && all != NULL && strcmp(local, all) == 0);
}

enum { NOT_A_DIRECTORY = 255, DISK_LOOK_MS = 2000, DISK_LOOK_STEP_MS = 5 };

/* In a process of its own: a server that does not answer hangs whoever asks. 0: there is such a
 * directory, or no answer in time, of which the reader of the host tells. */
static int look_for_directory(const char *path)
{
    const pid_t pid = fork();
    struct stat status;
    int ended = 0;

    if (pid == 0)
        _exit(stat(path, &status) != 0 ? errno : !S_ISDIR(status.st_mode) ? NOT_A_DIRECTORY : 0);
    for (int ms = 0; pid > 0 && ms < DISK_LOOK_MS; ms += DISK_LOOK_STEP_MS) {
        if (waitpid(pid, &ended, WNOHANG) == pid)
            return WIFEXITED(ended) ? WEXITSTATUS(ended) : 0;
        usleep(DISK_LOOK_STEP_MS * 1000);
    }
    if (pid > 0)
        kill(pid, SIGKILL);
    return 0;
}

nw_rc nw_check_disk(const char *path)
{
    const int reason = path != NULL && is_one_host() ? look_for_directory(path) : 0;

    if (reason == 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "option --disk: %s: %s; give a directory of the storage to measure, in which "
                   "this user may write",
                   path, reason == NOT_A_DIRECTORY ? "not a directory" : strerror(reason));
}
