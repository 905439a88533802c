#include "cli/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "base/words.h"
#include "cli/cli.h"

#define SHOW_EVERY_NS 100000000ull
#define ANCESTORS_MAX 8
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

struct nw_progress_line nw_progress_open(bool wanted, bool table_on_stdout)
{
    struct nw_progress_line line = {.stream = NULL};
    const char *term = getenv("TERM");
    int launcher;

    if (!wanted || (term != NULL && strcmp(term, "dumb") == 0))
        return line;
    if (nw_cli_launch_rank() < 0) {
        if (isatty(STDERR_FILENO))
            line.stream = stderr;
        return line;
    }
    launcher = find_launcher();
    /* stdout first: the launcher keeps the order within a stream, not between the two. */
    if (launcher > 0 && table_on_stdout && has_terminal(launcher, STDOUT_FILENO))
        line.stream = stdout;
    else if (launcher > 0 && has_terminal(launcher, STDERR_FILENO))
        line.stream = stderr;
    return line;
}

void nw_progress_show(struct nw_progress_line *line, const struct nw_bench_progress *progress)
{
    const uint64_t now_ns = nw_now_ns();
    char left[32];

    if (line->stream == NULL || (line->shown_ns != 0 && now_ns - line->shown_ns < SHOW_EVERY_NS))
        return;
    fprintf(line->stream, CLEAR_LINE "[%3llu/%llu] %s", (unsigned long long)progress->done + 1,
            (unsigned long long)progress->total, nw_spoken(progress->text));
    if (isfinite(progress->left_ns))
        nw_print(line->stream, ", %s left", nw_format_ns(left, progress->left_ns));
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
