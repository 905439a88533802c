#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/command.h"

static nw_rc shell(const char *script, double limit_s, size_t max, struct nw_command_result *result)
{
    const char *arguments[] = {"sh", "-c", script, "sh", "two words", "$HOME;`x`", NULL};
    const struct nw_child_change changes[] = {{"NW_TEST_SET", "set"}, {"HOME", NULL}};

    return nw_command_run(&(struct nw_command){.arguments = arguments,
                                               .limit_s = limit_s,
                                               .output_max = max,
                                               .changes = changes,
                                               .change_count = 2},
                          result);
}

static void expect_no_child(const char *when)
{
    errno = 0;
    cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left %s", when);
}

/* Gone within a second: a killed process is not gone at once. */
static bool is_gone(pid_t pid)
{
    for (int i = 0; i < 100; i++) {
        const char state = nw_child_state(pid);

        if (state == '?' || state == 'Z') /* 'Z': init has not waited for it yet */
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

Test(base_command, what_a_program_prints_and_how_it_ends_is_told)
{
    static const struct {
        const char *script, *output, *errors;
        int exit_code;
    } rows[] = {
        {"echo out; echo err >&2; exit 3", "out\n", "err\n", 3},
        {"printf '%s|' \"$@\"", "two words|$HOME;`x`|", "", 0},
        {"echo $NW_TEST_SET-${HOME-none}", "set-none\n", "", 0},
        {"cat", "", "", 0},                                       /* nothing to read */
        {"ls /proc/self/fd | sort -n | tail -n 1", "3\n", "", 0}, /* ls' own; none of ours */
        {"kill -9 $$", "", "", -1},
        {"trap '' TERM; kill -TERM $$; echo on", "on\n", "", 0},
        {":", "", "", 0},
    };
    struct nw_command_result result;
    char text[96];

    /* Ours, without close-on-exec: must not reach the program. */
    cr_assert_geq(dup2(STDERR_FILENO, 77), 0);
    signal(SIGTERM, SIG_IGN); /* nor may this */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(shell(rows[i].script, 20, 0, &result), NW_OK, "%s: %s", rows[i].script,
                     nw_last_error()->text);
        cr_expect_str_eq(result.output, rows[i].output, "%s", rows[i].script);
        cr_expect_str_eq(result.errors, rows[i].errors, "%s", rows[i].script);
        cr_expect_eq(result.output_length, strlen(rows[i].output));
        cr_expect_eq(result.exit_code, rows[i].exit_code, "%s: %d", rows[i].script,
                     result.exit_code);
        cr_expect_not(result.output_cut || result.errors_cut);
        if (rows[i].exit_code < 0)
            cr_expect_str_eq(nw_child_fate(text, sizeof text, result.status),
                             "killed by signal 9 (Killed)");
        nw_command_free(&result);
        cr_expect_null(result.output);
        expect_no_child(rows[i].script);
    }
}

Test(base_command, large_output_is_cut_and_does_not_block)
{
    struct nw_command_result result;

    cr_assert_eq(shell("head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2", 20, 1000, &result),
                 NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(result.output_length, 1000);
    cr_expect_eq(strspn(result.output, "x"), 1000);
    cr_expect(result.output_cut && !result.errors_cut);
    cr_expect_str_eq(result.errors, "end\n");
    cr_expect_eq(result.exit_code, 0);
    nw_command_free(&result);
}

Test(base_command, missing_and_unfit_programs_are_told_apart)
{
    static const struct {
        const char *program;
        nw_rc rc;
        const char *words;
    } rows[] = {
        {"nw-no-such-program", NW_ENODEV, "nw-no-such-program: there is no such program in PATH"},
        {"/nowhere/program", NW_ENODEV, "/nowhere/program: there is no such program"},
        {"/etc/passwd", NW_EIO, "/etc/passwd: cannot be started: Permission denied"},
        {"/tmp", NW_EIO, "/tmp: cannot be started: Permission denied"},
    };
    struct nw_command_result result;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *arguments[] = {rows[i].program, NULL};

        cr_expect_eq(
            nw_command_run(&(struct nw_command){.arguments = arguments, .limit_s = 5}, &result),
            rows[i].rc);
        cr_expect_str_eq(nw_last_error()->text, rows[i].words);
    }
    expect_no_child("after programs that were not started");
}

Test(base_command, at_the_end_of_its_time_the_whole_group_is_killed)
{
    char path[] = "/tmp/nw-command-XXXXXX", script[160];
    const int fd = mkstemp(path);
    struct nw_command_result result;
    int grandchild = 0;
    FILE *stream;

    cr_assert_geq(fd, 0);
    close(fd);
    snprintf(script, sizeof script, "trap '' TERM INT; sleep 60 & echo $! >%s; wait", path);
    cr_expect_eq(shell(script, 0.5, 0, &result), NW_ETIMEOUT);
    cr_expect_str_eq(nw_last_error()->text, "sh: no end after 0.5 s, killed");
    expect_no_child("after the end of the time");
    stream = fopen(path, "r");
    cr_assert(stream != NULL && fscanf(stream, "%d", &grandchild) == 1);
    fclose(stream);
    cr_expect(is_gone(grandchild), "the program's child %d lives on", grandchild);
    unlink(path);
}

Test(base_command, what_a_program_leaves_in_the_background_ends_with_it)
{
    struct nw_command_result result;
    int left = 0;

    /* It holds the pipes open; the program's end counts, not theirs. */
    cr_assert_eq(shell("sleep 60 & echo $!", 20, 0, &result), NW_OK, "%s", nw_last_error()->text);
    cr_expect_lt(result.seconds, 15);
    cr_assert_eq(sscanf(result.output, "%d", &left), 1);
    cr_expect(is_gone(left), "process %d lives on", left);
    nw_command_free(&result);
}
