#include "cli/progress.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "cli/cli.h"

#define SHOW_EVERY_NS 100000000ull
#define ANCESTORS_MAX 8
#define USUAL_COLUMNS 80
#define CLEAR_LINE    "\r\033[K"

/* The parent of a process, and its name; -1: cannot be read. /proc/PID/stat is "PID (name) S PPID
 * …", where the name may hold anything. */
static int parent_of(int pid, char name[32])
{
    char path[64], line[512], *open, *close;
    int parent = -1;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return -1;
    if (fgets(line, sizeof line, file) != NULL && (open = strchr(line, '(')) != NULL &&
        (close = strrchr(line, ')')) != NULL && sscanf(close + 1, " %*c %d", &parent) == 1) {
        *close = '\0';
        snprintf(name, 32, "%s", open + 1);
    }
    fclose(file);
    return parent;
}

static bool is_launcher(const char *name)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "prterun",
                                        "prun",   "srun",    NULL};

    for (const char *const *known = names; *known != NULL; known++)
        if (strcmp(name, *known) == 0)
            return true;
    return false;
}

/* The launcher, where it is above us (rank 0 on its host); -1: it is not. */
static int find_launcher(void)
{
    int pid = getpid();

    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        char name[32] = "";
        const int parent = parent_of(pid, name);

        if (is_launcher(name))
            return pid;
        pid = parent;
    }
    return -1;
}

static bool has_terminal(int pid, int fd)
{
    char path[64], target[64];
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
}

/* 0: unknown. */
static int columns_of(int pid, int fd)
{
    struct winsize size = {.ws_col = 0};
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    const int terminal = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (terminal < 0)
        return 0;
    if (ioctl(terminal, TIOCGWINSZ, &size) != 0)
        size.ws_col = 0;
    close(terminal);
    return size.ws_col;
}

static void take_stream(struct nw_progress_line *line, FILE *stream, int pid, int fd)
{
    const int columns = columns_of(pid, fd);

    line->stream = stream;
    line->columns = columns > 0 ? columns : USUAL_COLUMNS;
}

struct nw_progress_line nw_progress_open(bool wanted, bool table_on_stdout)
{
    struct nw_progress_line line = {.stream = NULL};
    const char *term = getenv("TERM");
    int launcher;

    if (!wanted || (term != NULL && strcmp(term, "dumb") == 0))
        return line;
    if (nw_cli_launch_rank() < 0) {
        if (isatty(STDERR_FILENO))
            take_stream(&line, stderr, getpid(), STDERR_FILENO);
        return line;
    }
    launcher = find_launcher();
    /* stdout first: the launcher keeps the order within a stream, not between the two. */
    if (launcher > 0 && table_on_stdout && has_terminal(launcher, STDOUT_FILENO))
        take_stream(&line, stdout, launcher, STDOUT_FILENO);
    else if (launcher > 0 && has_terminal(launcher, STDERR_FILENO))
        take_stream(&line, stderr, launcher, STDERR_FILENO);
    return line;
}

/* A line that wraps could not be taken back: cut before the last column. */
static void cut(char *text, int columns)
{
    size_t length = strlen(text);

    while (length > 0 && nw_text_width(text) >= columns) {
        while (length > 0 && ((unsigned char)text[--length] & 0xC0) == 0x80)
            continue; /* within a character */
        text[length] = '\0';
    }
}

void nw_progress_show(struct nw_progress_line *line, const struct nw_bench_progress *progress)
{
    const uint64_t now_ns = nw_now_ns();
    char left[32], text[400], rest[64] = "";

    if (line->stream == NULL || (line->shown_ns != 0 && now_ns - line->shown_ns < SHOW_EVERY_NS))
        return;
    if (isfinite(progress->left_ns)) /* an estimate: whole seconds */
        nw_print_to(rest, sizeof rest, ", %s left",
                    nw_format_ns(left, 1e9 * fmax(1, round(progress->left_ns / 1e9))));
    snprintf(text, sizeof text, "[%3llu/%llu] %s%s", (unsigned long long)progress->done + 1,
             (unsigned long long)progress->total, nw_spoken(progress->text), rest);
    cut(text, line->columns);
    fprintf(line->stream, CLEAR_LINE "%s", text);
    fflush(line->stream);
    line->shown = true;
    line->shown_ns = now_ns;
}

void nw_progress_clear(struct nw_progress_line *line)
{
    if (!line->shown)
        return;
    fprintf(line->stream, CLEAR_LINE);
    fflush(line->stream);
    line->shown = false;
}
