/* A machine that takes long to read: said once, by a process that looks on. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/slow.h"

static int start(double seconds, pid_t *watcher_out)
{
    int ends[2];

    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    *watcher_out = nw_slow_watch("topo", seconds, ends[1]);
    cr_assert_gt(*watcher_out, 0);
    close(ends[1]);
    return ends[0];
}

Test(cli_slow, what_takes_long_is_said_once, .timeout = 30)
{
    char text[600] = "";
    pid_t watcher;
    const int fd = start(0.05, &watcher);
    ssize_t length = read(fd, text, sizeof text - 1);

    cr_assert_gt(length, 0);
    text[length] = '\0';
    cr_expect_not_null(strstr(text, "nodeworth topo: still reading this machine after 0.05 s"),
                       "%s", text);
    cr_expect_not_null(strstr(text, "nodeworth check"), "%s", text);
    cr_expect_null(strstr(text, "NVIDIA"), "%s", text); /* nothing of it is loaded here */
    cr_expect_eq(read(fd, text, sizeof text), 0);       /* no second one */
    nw_slow_end(watcher);
    cr_expect_eq(waitpid(watcher, NULL, WNOHANG), -1); /* none is left */
    close(fd);
}

Test(cli_slow, what_ends_in_time_says_nothing, .timeout = 30)
{
    char text[16];
    pid_t watcher;
    const int fd = start(60, &watcher);

    nw_slow_end(watcher);
    cr_expect_eq(read(fd, text, sizeof text), 0);
    cr_expect_eq(waitpid(watcher, NULL, WNOHANG), -1);
    nw_slow_end(-1);
    close(fd);
}
