#include "cli/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/lifeline.h"
#include "cli/rest.h"

enum { EXIT_BROKEN = 4 };

/* A rank that waits for a stuck one is itself past its deadline. The stuck one's parent (its child
 * is stopped or in disk sleep) speaks at once, rank 0 a little later, the others only if nobody
 * ended the run by then. */
#define GRACE_RANK0_NS  2000000000ull
#define GRACE_OTHERS_NS 10000000000ull
#define POLL_NS         200000000l
#define POLL_BUSY_NS    20000000l
/* Open MPI kills a second after it has asked to stop (odls_base_sigkill_timeout). */
#define KILL_AFTER_NS 500000000ull
#define TELL_NS       300000000ull /* for the news of a host that was lost */

struct watch {
    const struct nw_supervision *supervision;
    void *shared;
    pid_t child;
    struct nw_lifeline *lifeline; /* in `shared`; NULL: none */
    struct nw_cli_lifeline *line; /* NULL: none */
    char *command;                /* the program's arguments, with NUL after each */
    size_t command_bytes;
    int rank;        /* 0 when not under a launcher */
    int stop_signal; /* asked to end by this signal; 0: no */
    uint64_t stop_ns;
};

static void watched_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGUSR1); /* the rank has asked for something */
}

static void speak(const struct watch *watch, const char *what)
{
    char host[64] = "?", where[256] = "";

    gethostname(host, sizeof host - 1);
    if (watch->supervision->describe != NULL)
        watch->supervision->describe(watch->shared, where, sizeof where);
    nw_message("%s rank %d: %s%s%s", host, watch->rank, what, where[0] != '\0' ? " in " : "",
               where);
}

/* Who was lost before the launcher ended the run, and how the others are measured. The rank itself
 * may have stood in MPI, which asks the launcher about its message, and not have written that down.
 */
static void tell_rest(const struct watch *watch)
{
    const struct timespec poll = {.tv_nsec = POLL_BUSY_NS};
    const uint64_t until_ns = nw_now_ns() + TELL_NS;

    if (watch->line == NULL || atomic_load(&watch->lifeline->guarded) == 0)
        return;
    while (atomic_load(&watch->lifeline->lost_count) == 0 && nw_now_ns() < until_ns) {
        nanosleep(&poll, NULL);
        nw_cli_lifeline_turn(watch->line);
    }
    if (atomic_load(&watch->lifeline->lost_count) > 0)
        nw_cli_tell_rest(watch->lifeline, watch->line, watch->command, watch->command_bytes);
}

static int ended(const struct watch *watch, int status)
{
    char text[128];

    if (watch->stop_signal != 0) {
        snprintf(text, sizeof text,
                 "stopped by signal %d (%s; the launcher sends it when another rank died)",
                 watch->stop_signal, strsignal(watch->stop_signal));
        if (watch->rank == 0) {
            speak(watch, text);
            tell_rest(watch);
        }
        return EXIT_BROKEN;
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    speak(watch, nw_child_fate(text, sizeof text, status));
    return EXIT_BROKEN;
}

/* The rank has ended with a failure: others go on without it, and the launcher must not end them
 * for it. */
static void stay(struct watch *watch, const char *fate)
{
    const struct timespec poll = {.tv_nsec = POLL_NS};
    char text[320], where[256] = "";
    sigset_t signals;

    if (watch->line == NULL || watch->stop_signal != 0)
        return;
    nw_cli_lifeline_turn(watch->line);
    if (fate != NULL) {
        watch->supervision->describe(watch->shared, where, sizeof where);
        snprintf(text, sizeof text, "%s in %s", fate, where);
        if (!nw_cli_lifeline_died(watch->line, text))
            return;
    } else if (atomic_load(&watch->lifeline->survived) == 0)
        return;
    watched_signals(&signals);
    while (nw_cli_lifeline_holds(watch->line)) {
        const int signal_number = sigtimedwait(&signals, NULL, &poll);

        if (signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP)
            break;
        nw_cli_lifeline_turn(watch->line);
    }
}

static int leave(struct watch *watch, int status)
{
    const int exit_code = ended(watch, status);
    char text[128];

    if (exit_code != 0)
        stay(watch, WIFEXITED(status) ? NULL : nw_child_fate(text, sizeof text, status));
    if (watch->line != NULL && nw_cli_lifeline_has_silent(watch->line) && watch->stop_signal == 0 &&
        atomic_load(&watch->lifeline->survived) != 0)
        nw_cli_end_launcher();
    nw_cli_lifeline_close(watch->line);
    return exit_code;
}

/* Past the phase's deadline? Then say so and kill the rank; true when it was done. */
static bool gave_up(struct watch *watch)
{
    uint64_t deadline = watch->supervision->deadline_ns(watch->shared), now = nw_now_ns();
    char state, text[128];

    if (deadline == 0 || now < deadline)
        return false;
    state = nw_child_state(watch->child);
    if (state != 'T' && state != 't' && state != 'D' &&
        now < deadline + (watch->rank == 0 ? GRACE_RANK0_NS : GRACE_OTHERS_NS))
        return false;
    snprintf(text, sizeof text, "no answer%s; given up",
             state == 'T' || state == 't' ? " (the process is stopped)"
             : state == 'D'               ? " (the process waits for a device)"
                                          : "");
    speak(watch, text);
    kill(watch->child, SIGKILL);
    waitpid(watch->child, NULL, 0);
    stay(watch, text);
    nw_cli_lifeline_close(watch->line);
    return true;
}

static void turn(const struct watch *watch)
{
    if (watch->line != NULL && atomic_load(&watch->lifeline->state) != NW_LIFELINE_NONE)
        nw_cli_lifeline_turn(watch->line);
}

static bool is_busy(const struct watch *watch)
{
    return watch->stop_signal != 0 || (watch->line != NULL && nw_cli_lifeline_is_busy(watch->line));
}

static void pass_stop(const struct watch *watch)
{
    kill(watch->child, nw_now_ns() - watch->stop_ns > KILL_AFTER_NS ? SIGKILL : SIGTERM);
}

static int wait_for_child(struct watch *watch)
{
    sigset_t signals;

    watched_signals(&signals);
    for (;;) {
        const struct timespec poll = {.tv_nsec = is_busy(watch) ? POLL_BUSY_NS : POLL_NS};
        int status, signal_number = sigtimedwait(&signals, NULL, &poll);

        if (waitpid(watch->child, &status, WNOHANG) == watch->child)
            return leave(watch, status);
        turn(watch);
        if ((signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP) &&
            watch->stop_signal == 0) {
            watch->stop_signal = signal_number;
            watch->stop_ns = nw_now_ns();
        }
        if (watch->stop_signal != 0)
            pass_stop(watch);
        else if (watch->supervision->deadline_ns != NULL && gave_up(watch))
            return EXIT_BROKEN;
    }
}

/* `ps` shows the rank as "nodeworth bench …" and its parent under this name. */
static void rename_process(int argc, char **argv)
{
    char *start = program_invocation_name, *last = argc > 1 ? argv[argc - 1] : NULL;

    prctl(PR_SET_NAME, "nw-supervise");
    if (last == NULL || last < start || last - start > 1 << 20)
        return;
    memset(start, 0, (size_t)(last - start) + strlen(last));
    strncpy(start, "nw-supervise", (size_t)(last - start));
}

/* The words are overwritten by rename_process. */
static void keep_command(struct watch *watch, int argc, char **argv)
{
    size_t length = 0;

    for (int i = 1; i < argc; i++)
        length += strlen(argv[i]) + 1;
    watch->command = malloc(length + 1);
    for (int i = 1; i < argc && watch->command != NULL; i++) {
        strcpy(watch->command + watch->command_bytes, argv[i]);
        watch->command_bytes += strlen(argv[i]) + 1;
    }
}

static nw_rc watch_others(struct watch *watch)
{
    if (watch->supervision->lifeline == NULL || nw_cli_launch_size() < 2)
        return NW_OK;
    watch->lifeline = watch->supervision->lifeline(watch->shared);
    watch->lifeline->parent = getpid();
    return nw_cli_lifeline_open(watch->lifeline, &watch->line);
}

int nw_supervise(const struct nw_supervision *supervision, int argc, char **argv)
{
    struct watch watch = {.supervision = supervision, .rank = nw_cli_launch_rank()};
    sigset_t signals, before;
    pid_t parent = getpid();

    if (watch.rank < 0)
        watch.rank = 0;
    watch.shared = mmap(NULL, supervision->shared_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (watch.shared == MAP_FAILED)
        return nw_cli_fail(nw_fail(NW_ENOMEM, "no memory for the supervision of the rank"));
    if (watch_others(&watch) != NW_OK)
        return nw_cli_fail(nw_last_error()->rc);
    watched_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    fflush(NULL);
    watch.child = fork();
    if (watch.child < 0)
        return nw_cli_fail(
            nw_fail(NW_ENOMEM, "cannot start the rank's process: %s", strerror(errno)));
    if (watch.child == 0) {
        int exit_code;

        sigprocmask(SIG_SETMASK, &before, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (watch.line != NULL)
            setpgid(0,
                    0); /* a launcher signals whole groups; when the rank stops is for its parent */
        if (getppid() != parent)
            _exit(EXIT_BROKEN); /* the parent died before the line above */
        exit_code = supervision->work(supervision->argument, watch.shared);
        if (nw_cli_finish_stdout() != NW_OK && exit_code != nw_rc_exit_code(NW_EIO))
            exit_code = nw_cli_fail(NW_EIO);
        exit(exit_code);
    }
    keep_command(&watch, argc, argv);
    rename_process(argc, argv);
    const int exit_code = wait_for_child(&watch);

    free(watch.command);
    return exit_code;
}
