#include "base/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_OUTPUT_MAX = 1 << 20,
    CHUNK_BYTES = 16 << 10,
    TICK_MS = 20, /* how often we look whether it has ended while a grandchild holds its pipes */
};

struct stream {
    int fd; /* -1: closed */
    char *data;
    size_t length, max;
    bool cut;
};

/* Not nw_now_ns: a test's clock does not run while a real process does. */
static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void close_stream(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

static void keep(struct stream *stream, const char *data, size_t length)
{
    const size_t room = stream->max - stream->length;
    const size_t kept = length < room ? length : room;

    memcpy(stream->data + stream->length, data, kept);
    stream->length += kept;
    stream->cut |= kept < length;
}

/* What is there, without waiting. */
static void drain(struct stream *stream)
{
    char chunk[CHUNK_BYTES];

    for (int chunks = 0; stream->fd >= 0 && chunks < 64; chunks++) {
        const ssize_t length = read(stream->fd, chunk, sizeof chunk);

        if (length > 0)
            keep(stream, chunk, (size_t)length);
        else if (length == 0 || (errno != EAGAIN && errno != EINTR))
            close_stream(stream);
        else if (errno == EAGAIN)
            return;
    }
}

static nw_rc open_stream(struct stream *stream, size_t max, int *theirs_out)
{
    int ends[2];

    *stream = (struct stream){.fd = -1, .max = max};
    stream->data = malloc(max + 1);
    if (stream->data == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu bytes of a program's output", max);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return nw_fail(NW_EIO, "cannot make a pipe for a program's output: %s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    stream->fd = ends[0];
    /* Where our own standard streams are closed, a pipe gets their numbers. */
    *theirs_out = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(ends[1]);
    if (*theirs_out < 0)
        return nw_fail(NW_EIO, "cannot make a pipe for a program's output: %s", strerror(errno));
    return NW_OK;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    int code;

    sigemptyset(&none);
    sigfillset(&all);
    code = posix_spawnattr_setpgroup(attributes, 0);
    if (code == 0)
        code = posix_spawnattr_setsigmask(attributes, &none);
    if (code == 0)
        code = posix_spawnattr_setsigdefault(attributes, &all);
    if (code == 0)
        code = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                        POSIX_SPAWN_SETSIGDEF);
    return code;
}

static int set_actions(posix_spawn_file_actions_t *actions, int out, int err)
{
    int code = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (code == 0)
        code = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(actions, err, STDERR_FILENO);
#if __GLIBC_PREREQ(2, 34)
    if (code == 0)
        code = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
#endif
    return code;
}

static int spawn(const struct nw_command *command, char *const *environment, int out, int err,
                 pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);

    if (code != 0)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code == 0) {
        code = set_attributes(&attributes);
        if (code == 0)
            code = set_actions(&actions, out, err);
        if (code == 0)
            code = posix_spawnp(pid_out, command->arguments[0], &actions, &attributes,
                                (char *const *)command->arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static nw_rc start(const struct nw_command *command, int out, int err, pid_t *pid_out)
{
    const char *program = command->arguments[0];
    char **environment;
    int code;

    NW_TRY(nw_child_environment(command->changes, command->change_count, &environment));
    code = spawn(command, environment, out, err, pid_out);
    nw_child_free_environment(environment);
    if (code == ENOENT || code == ENOTDIR)
        return nw_fail(NW_ENODEV, "%s: there is no such program%s", program,
                       strchr(program, '/') == NULL ? " in PATH" : "");
    if (code != 0)
        return nw_fail(NW_EIO, "%s: cannot be started: %s", program, strerror(code));
    return NW_OK;
}

/* Ended, but not yet waited for: its number stays taken, so the group can still be killed safely.
 */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return errno != EINTR;
    return info.si_pid == pid;
}

/* Until it has ended; false: the time was over first. */
static bool follow(pid_t pid, double end_s, struct stream *out, struct stream *err)
{
    while (!has_ended(pid)) {
        struct pollfd polled[2] = {{.fd = out->fd, .events = POLLIN},
                                   {.fd = err->fd, .events = POLLIN}};
        const double left_s = end_s - now_s();

        if (left_s <= 0)
            return false;
        poll(polled, 2, left_s * 1e3 < TICK_MS ? (int)(left_s * 1e3) + 1 : TICK_MS);
        drain(out);
        drain(err);
    }
    return true;
}

static int finish(pid_t pid)
{
    int status = 0;

    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void hand_over(struct stream *stream, char **text_out, size_t *length_out, bool *cut_out)
{
    stream->data[stream->length] = '\0';
    *text_out = stream->data;
    *length_out = stream->length;
    *cut_out = stream->cut;
    stream->data = NULL;
}

static nw_rc run(const struct nw_command *command, struct stream *out, struct stream *err,
                 int theirs[2], struct nw_command_result *result)
{
    const size_t max = command->output_max > 0 ? command->output_max : DEFAULT_OUTPUT_MAX;
    const double start_s = now_s();
    bool in_time;
    pid_t pid;

    NW_TRY(open_stream(out, max, &theirs[0]));
    NW_TRY(open_stream(err, max, &theirs[1]));
    NW_TRY(start(command, theirs[0], theirs[1], &pid));
    for (int i = 0; i < 2; i++) {
        close(theirs[i]);
        theirs[i] = -1;
    }
    in_time = follow(pid, start_s + command->limit_s, out, err);
    if (in_time) {
        drain(out);
        drain(err);
    }
    result->status = finish(pid);
    if (!in_time)
        return nw_fail(NW_ETIMEOUT, "%s: no end after %.3g s, killed", command->arguments[0],
                       command->limit_s);
    result->exit_code = WIFEXITED(result->status) ? WEXITSTATUS(result->status) : -1;
    result->seconds = now_s() - start_s;
    return NW_OK;
}

nw_rc nw_command_run(const struct nw_command *command, struct nw_command_result *result_out)
{
    struct stream out = {.fd = -1}, err = {.fd = -1};
    struct nw_command_result result = {0};
    int theirs[2] = {-1, -1};
    const nw_rc rc = run(command, &out, &err, theirs, &result);

    for (int i = 0; i < 2; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    close_stream(&out);
    close_stream(&err);
    if (rc == NW_OK) {
        hand_over(&out, &result.output, &result.output_length, &result.output_cut);
        hand_over(&err, &result.errors, &result.errors_length, &result.errors_cut);
        *result_out = result;
    }
    free(out.data);
    free(err.data);
    return rc;
}

void nw_command_free(struct nw_command_result *result)
{
    free(result->output);
    free(result->errors);
    *result = (struct nw_command_result){0};
}
