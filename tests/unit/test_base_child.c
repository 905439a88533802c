#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"

static const char *value_in(char **environment, const char *name, int *times_out)
{
    const size_t length = strlen(name);
    const char *value = NULL;

    *times_out = 0;
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) != 0 || (*environment)[length] != '=')
            continue;
        value = *environment + length + 1;
        (*times_out)++;
    }
    return value;
}

Test(child, environment_is_ours_with_the_changes)
{
    static const struct nw_child_change changes[] = {
        {"NW_TEST_KEPT_NOT", NULL}, {"NW_TEST_CHANGED", "first"},  {"NW_TEST_CHANGED", "new"},
        {"NW_TEST_ADDED", "a=b"},   {"NW_TEST_NEVER_THERE", NULL},
    };
    static const struct {
        const char *name, *value;
    } expected[] = {
        {"NW_TEST_KEPT", "kept"},     {"NW_TEST_KEPT_NOT", NULL}, {"NW_TEST_CHANGED", "new"},
        {"NW_TEST_CHANGED2", "else"}, {"NW_TEST_ADDED", "a=b"},   {"NW_TEST_NEVER_THERE", NULL},
    };
    char **environment;
    int times;

    setenv("NW_TEST_KEPT", "kept", 1);
    setenv("NW_TEST_KEPT_NOT", "x", 1);
    setenv("NW_TEST_CHANGED", "old", 1);
    setenv("NW_TEST_CHANGED2", "else", 1);
    cr_assert_eq(nw_child_environment(changes, sizeof changes / sizeof *changes, &environment),
                 NW_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *value = value_in(environment, expected[i].name, &times);

        cr_expect_eq(times, expected[i].value != NULL, "%s", expected[i].name);
        if (value != NULL && expected[i].value != NULL)
            cr_expect_str_eq(value, expected[i].value);
    }
    nw_child_free_environment(environment);
}

Test(child, fate_is_told_in_words)
{
    char text[96];
    int status;

    for (int way = 0; way < 2; way++) {
        const pid_t pid = fork();

        if (pid == 0) {
            if (way == 0)
                _exit(3);
            raise(SIGKILL);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_expect_str_eq(nw_child_fate(text, sizeof text, status),
                         way == 0 ? "ended with exit code 3" : "killed by signal 9 (Killed)");
    }
}

Test(child, stopped_process_is_seen_and_killed)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0)
        for (;;)
            pause();
    cr_expect_not(nw_child_ended(pid, &status));
    kill(pid, SIGSTOP);
    cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
    cr_expect_eq(nw_child_state(pid), 'T');
    nw_child_kill(pid);
    cr_expect_eq(nw_child_state(pid), '?');
}

/* The program started again is this test: with --help it ends at once, and writes to stderr what it
 * would to stdout. */
Test(child, program_is_started_again_with_its_descriptors)
{
    char program[] = "test", help[] = "--help", *arguments[] = {program, help, NULL};
    char *environment[] = {NULL},
         text[64] = ""; /* Criterion's own would make it one of its tests */
    int ends[2], status, saved = dup(STDERR_FILENO);
    pid_t pid;

    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    dup2(ends[1], STDERR_FILENO);
    const nw_rc rc = nw_child_start(arguments, environment, ends, 2, &pid);

    dup2(saved, STDERR_FILENO);
    close(ends[1]);
    cr_assert_eq(rc, NW_OK, "%s", nw_last_error()->text);
    cr_expect_gt(read(ends[0], text, sizeof text - 1), 0);
    cr_expect_not_null(strstr(text, "usage"), "\"%s\"", text);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
}
