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

enum { EXIT_BROKEN = 4 };

/* A rank that waits for a stuck one is itself past its deadline. The stuck one's parent (its child
 * is stopped or in disk sleep) speaks at once, rank 0 a little later, the others only if nobody
 * ended the run by then. */
#define GRACE_RANK0_NS  2000000000ull
#define GRACE_OTHERS_NS 10000000000ull
#define POLL_NS         200000000l
#define KILL_AFTER_NS   700000000ull

struct watch {
    const struct nw_supervision *supervision;
    void *shared;
    pid_t child;
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

static int ended(const struct watch *watch, int status)
{
    char text[128];

    if (watch->stop_signal != 0) {
        snprintf(text, sizeof text,
                 "stopped by signal %d (%s; the launcher sends it when another rank died)",
                 watch->stop_signal, strsignal(watch->stop_signal));
        if (watch->rank == 0)
            speak(watch, text);
        return EXIT_BROKEN;
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    speak(watch, nw_child_fate(text, sizeof text, status));
    return EXIT_BROKEN;
}

/* Past the phase's deadline? Then say so and kill the rank; true when it was done. */
static bool gave_up(const struct watch *watch)
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
    return true;
}

static int wait_for_child(struct watch *watch)
{
    const struct timespec poll = {.tv_nsec = POLL_NS};
    sigset_t signals;

    watched_signals(&signals);
    for (;;) {
        int status, signal_number = sigtimedwait(&signals, NULL, &poll);

        if (waitpid(watch->child, &status, WNOHANG) == watch->child)
            return ended(watch, status);
        if (signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP) {
            if (watch->stop_signal == 0) {
                watch->stop_signal = signal_number;
                watch->stop_ns = nw_now_ns();
            }
            kill(watch->child, SIGTERM);
        } else if (watch->stop_signal != 0 && nw_now_ns() - watch->stop_ns > KILL_AFTER_NS) {
            kill(watch->child, SIGKILL);
        } else if (watch->stop_signal == 0 && watch->supervision->deadline_ns != NULL &&
                   gave_up(watch)) {
            return EXIT_BROKEN;
        }
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
        if (getppid() != parent)
            _exit(EXIT_BROKEN); /* the parent died before the line above */
        exit_code = supervision->work(supervision->argument, watch.shared);
        if (nw_cli_finish_stdout() != NW_OK && exit_code != nw_rc_exit_code(NW_EIO))
            exit_code = nw_cli_fail(NW_EIO);
        exit(exit_code);
    }
    rename_process(argc, argv);
    return wait_for_child(&watch);
}
