#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

static char directory[64];

static void enter(void)
{
    snprintf(directory, sizeof directory, "/tmp/nw-test-io-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
}

static void leave(void)
{
    char command[128];

    if (chdir("/") == 0 && strncmp(directory, "/tmp/nw-test-io-", 16) == 0) {
        snprintf(command, sizeof command, "rm -rf %s", directory);
        if (system(command) != 0)
            fprintf(stderr, "%s was left behind\n", directory);
    }
}

TestSuite(base_io, .init = enter, .fini = leave);

static void put(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, length, file), length);
    fclose(file);
}

static void expect_content(const char *path, const char *text, size_t length)
{
    char *data = NULL;
    size_t got = 0;

    cr_assert_eq(nw_file_read(path, 1 << 26, &data, &got), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(got, length, "%s has %zu bytes, not %zu", path, got, length);
    cr_expect(got == length && memcmp(data, text, length) == 0, "%s: other content", path);
    cr_expect_eq(data[got], '\0');
    free(data);
}

static int entry_count(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

Test(base_io, a_whole_file_appears_at_once_or_not_at_all)
{
    struct nw_atomic_file *file;
    struct stat status;

    put("report", "old", 3);
    cr_assert_eq(chmod("report", 0640), 0);
    cr_assert_eq(nw_atomic_open("report", &file), NW_OK);
    fputs("new text", nw_atomic_stream(file));
    fflush(nw_atomic_stream(file));
    expect_content("report", "old", 3);
    cr_assert_eq(nw_atomic_commit(file), NW_OK);
    expect_content("report", "new text", 8);
    cr_assert_eq(stat("report", &status), 0);
    cr_expect_eq(status.st_mode & 0777, 0640, "the mode is kept");

    cr_assert_eq(nw_atomic_open("report", &file), NW_OK);
    fputs("never", nw_atomic_stream(file));
    nw_atomic_abandon(file);
    nw_atomic_abandon(NULL);
    expect_content("report", "new text", 8);
    cr_expect_eq(entry_count("."), 1, "no temporary is left");
}

Test(base_io, a_link_stays_a_link)
{
    struct nw_atomic_file *file;
    struct stat status;

    put("target", "old", 3);
    cr_assert_eq(symlink("target", "link"), 0);
    cr_assert_eq(nw_atomic_open("link", &file), NW_OK);
    fputs("new", nw_atomic_stream(file));
    cr_assert_eq(nw_atomic_commit(file), NW_OK);
    expect_content("target", "new", 3);
    cr_assert_eq(lstat("link", &status), 0);
    cr_expect(S_ISLNK(status.st_mode));
}

Test(base_io, what_cannot_be_written_is_said_with_its_name)
{
    static const char *const paths[] = {"no/such/dir/file", ".", "", "/dev/full/x",
                                        "/proc/nw-cannot-be-made"};
    struct nw_atomic_file *file;
    struct nw_line_file *lines;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        cr_expect_eq(nw_atomic_open(paths[i], &file), NW_EIO, "\"%s\"", paths[i]);
        cr_expect(strstr(nw_last_error()->text, paths[i]) != NULL, "%s", nw_last_error()->text);
        cr_expect_eq(nw_lines_open(paths[i], 1, &lines), NW_EIO, "\"%s\"", paths[i]);
    }
}

Test(base_io, a_full_disk_is_an_error_and_leaves_nothing)
{
    struct nw_atomic_file *file;
    struct nw_line_file *lines;

    cr_assert_eq(nw_atomic_open("/dev/full", &file), NW_OK);
    fputs("text", nw_atomic_stream(file));
    cr_expect_eq(nw_atomic_commit(file), NW_EIO);
    cr_expect(strstr(nw_last_error()->text, "/dev/full") != NULL);
    cr_expect(strstr(nw_last_error()->text, "No space left") != NULL, "%s", nw_last_error()->text);

    cr_assert_eq(nw_lines_open("/dev/full", 1, &lines), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(nw_lines_append(lines, "{}", 2), NW_EIO);
    cr_expect_eq(nw_lines_close(lines), NW_OK);

    /* A real file system of 64 KiB, where one may mount it. */
    cr_assert_eq(mkdir("tiny", 0700), 0);
    if (mount("tmpfs", "tiny", "tmpfs", 0, "size=64k") != 0) {
        cr_log_warn("no small tmpfs here (%s): only /dev/full was tried", strerror(errno));
        return;
    }
    char line[5000];
    size_t written = 0;

    memset(line, 'x', sizeof line);
    cr_expect_eq(nw_lines_open("tiny/lines", 1, &lines), NW_OK);
    while (nw_lines_append(lines, line, sizeof line) == NW_OK && written < 100)
        written++;
    cr_expect(written > 5 && written < 20, "%zu lines fit", written);
    cr_expect_eq(nw_last_error()->rc, NW_EIO);
    nw_lines_close(lines);
    struct stat status;

    cr_expect_eq(stat("tiny/lines", &status), 0);
    cr_expect_eq((size_t)status.st_size, written * (sizeof line + 1), "whole lines only");
    cr_expect_eq(nw_atomic_open("tiny/whole", &file), NW_OK);
    for (int i = 0; i < 20; i++)
        fwrite(line, 1, sizeof line, nw_atomic_stream(file));
    cr_expect_eq(nw_atomic_commit(file), NW_EIO);
    cr_expect_eq(entry_count("tiny"), 1, "nothing half-written");
    umount("tiny");
}

Test(base_io, lines_go_on_behind_what_is_there_and_a_torn_one_is_cut)
{
    static const struct {
        const char *before, *after;
    } rows[] = {
        {"", "new\n"},     {"a\nb\n", "a\nb\nnew\n"}, {"a\nb", "a\nnew\n"},
        {"torn", "new\n"}, {"\n", "\nnew\n"},
    };
    struct nw_line_file *lines;
    char *large = malloc(10001);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put("lines", rows[i].before, strlen(rows[i].before));
        cr_assert_eq(nw_lines_open("lines", 0, &lines), NW_OK);
        cr_assert_eq(nw_lines_append(lines, "new", 3), NW_OK);
        cr_assert_eq(nw_lines_close(lines), NW_OK);
        expect_content("lines", rows[i].after, strlen(rows[i].after));
    }
    /* The torn part is longer than one block of the search. */
    memset(large, 'x', 10000);
    large[1] = '\n';
    put("lines", large, 10000);
    cr_assert_eq(nw_lines_open("lines", 0, &lines), NW_OK);
    cr_assert_eq(nw_lines_close(lines), NW_OK);
    expect_content("lines", "x\n", 2);
    free(large);

    cr_assert_eq(nw_lines_open("lines", 1, &lines), NW_OK);
    expect_content("lines", "", 0);
    cr_expect_eq(nw_lines_append(lines, "a\nb", 3), NW_EUSAGE, "a newline would make two lines");
    struct nw_line_file *second;

    cr_expect_eq(nw_lines_open("lines", 0, &second), NW_EIO, "two writers at once");
    cr_assert_eq(nw_lines_close(lines), NW_OK);
    cr_assert_eq(nw_lines_close(NULL), NW_OK);
}

Test(base_io, a_kill_in_mid_write_leaves_whole_lines)
{
    enum { LENGTH = 300000 }; /* many pages: a kill can fall within a line */
    char *line = malloc(LENGTH);
    struct nw_line_file *lines;

    memset(line, 'y', LENGTH);
    for (int round = 0; round < 8; round++) {
        const pid_t child = fork();

        cr_assert_geq(child, 0);
        if (child == 0) {
            if (nw_lines_open("killed", 0, &lines) != NW_OK)
                _exit(1);
            while (nw_lines_append(lines, line, LENGTH) == NW_OK)
                ;
            _exit(2);
        }
        usleep(20000 + 3000 * (unsigned)round);
        kill(child, SIGKILL);
        int status;

        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status), "the writer ended by itself: %d", status);
    }
    struct stat status;

    cr_assert_eq(nw_lines_open("killed", 0, &lines), NW_OK);
    cr_assert_eq(nw_lines_close(lines), NW_OK);
    cr_assert_eq(stat("killed", &status), 0);
    cr_expect_gt(status.st_size, 0);
    cr_expect_eq(status.st_size % (LENGTH + 1), 0, "a part of a line is left");
    free(line);
}

Test(base_io, files_are_read_whole_or_refused)
{
    char *data = NULL;
    size_t length = 5;

    put("nul", "a\0b", 3);
    expect_content("nul", "a\0b", 3);
    put("empty", "", 0);
    expect_content("empty", "", 0);
    char *large = calloc(1, 200000);

    put("large", large, 200000);
    expect_content("large", large, 200000);
    free(large);
    cr_expect_eq(nw_file_read("nul", 3, &data, &length), NW_OK);
    free(data);
    data = NULL;
    cr_expect_eq(nw_file_read("nul", 2, &data, &length), NW_EUSAGE);
    cr_expect_eq(nw_file_read("/dev/zero", 100000, &data, &length), NW_EUSAGE, "never ends");
    cr_expect_eq(nw_file_read(".", 100, &data, &length), NW_EUSAGE);
    cr_expect_eq(nw_file_read("absent", 100, &data, &length), NW_EIO);
    cr_expect(strstr(nw_last_error()->text, "absent") != NULL);
    cr_expect_null(data);
}

Test(base_io, directories_are_made_with_their_parents)
{
    char absolute[128];
    struct stat status;

    cr_expect_eq(nw_make_directory("a/b//c/"), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(stat("a/b/c", &status), 0);
    cr_expect_eq(nw_make_directory("a/b/c"), NW_OK, "again");
    snprintf(absolute, sizeof absolute, "%s/d/e", directory);
    cr_expect_eq(nw_make_directory(absolute), NW_OK);
    cr_expect_eq(stat("d/e", &status), 0);
    put("file", "x", 1);
    cr_expect_eq(nw_make_directory("file"), NW_EIO);
    cr_expect_eq(nw_make_directory("file/below"), NW_EIO);
    cr_expect_eq(nw_make_directory(""), NW_EIO);
    cr_expect_eq(nw_make_directory("/"), NW_OK);
}
