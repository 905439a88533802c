#include "base/child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool is_named(const char *variable, const char *name)
{
    const size_t length = strlen(name);

    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

/* Leaves the list whole. */
static void remove_named(char **environment, const char *name)
{
    char **to = environment;

    for (char **from = environment; *from != NULL; from++) {
        if (is_named(*from, name))
            free(*from);
        else
            *to++ = *from;
    }
    *to = NULL;
}

static bool append(char **environment, char *variable)
{
    while (*environment != NULL)
        environment++;
    environment[0] = variable;
    environment[1] = NULL;
    return variable != NULL;
}

nw_rc nw_child_environment(const struct nw_child_change *changes, size_t count,
                           char ***environment_out)
{
    size_t have = 0;
    char **environment;
    bool whole = true;

    while (environ != NULL && environ[have] != NULL)
        have++;
    environment = calloc(have + count + 1, sizeof *environment);
    for (size_t i = 0; environment != NULL && whole && i < have; i++)
        whole = append(environment, strdup(environ[i]));
    for (size_t i = 0; environment != NULL && whole && i < count; i++) {
        char *variable;

        remove_named(environment, changes[i].name);
        if (changes[i].value == NULL)
            continue;
        if (asprintf(&variable, "%s=%s", changes[i].name, changes[i].value) < 0)
            variable = NULL;
        whole = append(environment, variable);
    }
    if (environment == NULL || !whole) {
        nw_child_free_environment(environment);
        return nw_fail(NW_ENOMEM, "no memory for the environment of a process");
    }
    *environment_out = environment;
    return NW_OK;
}

void nw_child_free_environment(char **environment)
{
    for (char **variable = environment; variable != NULL && *variable != NULL; variable++)
        free(*variable);
    free(environment);
}

/* First out of the way of each other's numbers, then to their places. */
static int add_descriptors(posix_spawn_file_actions_t *actions, const int *descriptors,
                           size_t count)
{
    const int away = NW_CHILD_FIRST_FD + 64;
    int code = posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);

    for (size_t i = 0; code == 0 && i < count; i++)
        code = posix_spawn_file_actions_adddup2(actions, descriptors[i], away + (int)i);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = posix_spawn_file_actions_adddup2(actions, away + (int)i, NW_CHILD_FIRST_FD + (int)i);
    return code;
}

nw_rc nw_child_start(char *const *arguments, char *const *environment, const int *descriptors,
                     size_t descriptor_count, pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int code = posix_spawn_file_actions_init(&actions);

    if (code != 0)
        return nw_fail(NW_ENOMEM, "cannot start a process: %s", strerror(code));
    code = add_descriptors(&actions, descriptors, descriptor_count);
    if (code == 0)
        code = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0)
        return nw_fail(NW_ENOMEM, "cannot start a process of this program: %s", strerror(code));
    *pid_out = pid;
    return NW_OK;
}

void nw_child_settle(size_t descriptor_count)
{
    const unsigned first = NW_CHILD_FIRST_FD + (unsigned)descriptor_count;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
#endif
    for (long fd = first, end = sysconf(_SC_OPEN_MAX); fd < end && fd < 65536; fd++)
        close((int)fd);
}

bool nw_child_ended(pid_t pid, int *status_out)
{
    return waitpid(pid, status_out, WNOHANG) == pid;
}

void nw_child_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

const char *nw_child_fate(char *text, size_t size, int status)
{
    if (WIFEXITED(status))
        snprintf(text, size, "ended with exit code %d", WEXITSTATUS(status));
    else
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    return text;
}

char nw_child_state(pid_t pid)
{
    char path[64], line[512];
    const char *after_name;
    FILE *file;
    char state = '?';

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return '?';
    if (fgets(line, sizeof line, file) != NULL && (after_name = strrchr(line, ')')) != NULL &&
        after_name[1] == ' ')
        state = after_name[2];
    fclose(file);
    return state;
}
