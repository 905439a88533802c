#include "cli/slow.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"

/* Has the process NVIDIA's management library loaded? It is while NVML is asked. */
static bool asks_nvml(pid_t pid)
{
    char path[64], line[512];
    bool found = false;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    maps = fopen(path, "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, "libnvidia-ml.so") != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void say(const char *command, double seconds, int fd, pid_t pid)
{
    const char state = nw_child_state(pid);
    char text[500];
    int length;

    length = snprintf(
        text, sizeof text, "nodeworth %.20s: still reading this machine after %g s%s; %s\n",
        command, seconds, state == 'D' ? " (it waits for a device in the kernel)" : "",
        asks_nvml(pid) ? "the NVIDIA driver (NVML) has likely not answered: does nvidia-smi "
                         "answer, what does dmesg say? \"nodeworth check\" goes on without it"
                       : "\"nodeworth check\" tells what does not answer and goes on without it");
    if (length > 0 && write(fd, text, (size_t)length) < 0)
        return;
}

pid_t nw_slow_watch(const char *command, double seconds, int fd)
{
    const pid_t parent = getpid(), pid = fork();
    const struct timespec time = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fd != STDOUT_FILENO)
        close(STDOUT_FILENO); /* whoever reads our output waits for its last writer */
    if (getppid() == parent && nanosleep(&time, NULL) == 0 && getppid() == parent)
        say(command, seconds, fd, parent);
    _exit(0);
}

void nw_slow_end(pid_t watcher)
{
    if (watcher > 0)
        nw_child_kill(watcher);
}
