#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct nw_atomic_file {
    FILE *stream;
    char *path;      /* as given, for messages */
    char *target;    /* links followed */
    char *temporary; /* NULL: written directly (a device or a pipe) */
};

struct nw_line_file {
    int fd;
    char *path;
    char *buffer; /* one line with its newline: a line is one write */
    size_t capacity;
    bool regular;
};

static nw_rc fail_io(const char *path, const char *what, int error)
{
    return nw_fail(NW_EIO, "%s: cannot %s: %s", path, what, strerror(error));
}

/* fsync where there is something to sync: pipes and terminals answer EINVAL, some network file
 * systems ENOTSUP. */
static bool synced(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

static void free_atomic(struct nw_atomic_file *file)
{
    free(file->path);
    free(file->target);
    free(file->temporary);
    free(file);
}

/* Opens a new file "<target>.<pid>.<n>.tmp"; the mode follows the umask, as with any new file. */
static int open_temporary(const char *target, char **name_out)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        char *name;

        if (asprintf(&name, "%s.%ld.%d.tmp", target, (long)getpid(), attempt) < 0) {
            errno = ENOMEM;
            return -1;
        }
        const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

        if (fd >= 0) {
            *name_out = name;
            return fd;
        }
        free(name);
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

nw_rc nw_atomic_open(const char *path, struct nw_atomic_file **file_out)
{
    struct stat status;
    const bool there = stat(path, &status) == 0;
    struct nw_atomic_file *file = calloc(1, sizeof *file);
    int fd;

    if (file != NULL) {
        file->path = strdup(path);
        file->target = there ? realpath(path, NULL) : strdup(path);
    }
    if (file == NULL || file->path == NULL || file->target == NULL) {
        if (file != NULL)
            free_atomic(file);
        return nw_fail(NW_ENOMEM, "%s: no memory for writing", path);
    }
    if (path[0] == '\0' || (there && S_ISDIR(status.st_mode))) {
        free_atomic(file);
        return nw_fail(NW_EIO, "\"%s\" is not a file name; give the name of a file to write", path);
    }
    if (there && !S_ISREG(status.st_mode))
        fd = open(path, O_WRONLY | O_CLOEXEC);
    else
        fd = open_temporary(file->target, &file->temporary);
    if (fd >= 0 && there && file->temporary != NULL && fchmod(fd, status.st_mode & 07777) != 0)
        errno = 0; /* the old mode could not be kept: the file is still ours to write */
    file->stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file->stream == NULL) {
        const int error = errno;

        if (fd >= 0)
            close(fd);
        if (file->temporary != NULL)
            unlink(file->temporary);
        free_atomic(file);
        return fail_io(path, "open for writing", error);
    }
    *file_out = file;
    return NW_OK;
}

FILE *nw_atomic_stream(struct nw_atomic_file *file)
{
    return file->stream;
}

/* A rename is on disk when its directory is. Best effort: some file systems refuse to open or sync
 * a directory. */
static void sync_directory_of(const char *path)
{
    char *copy = strdup(path);
    const int fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(copy);
}

nw_rc nw_atomic_commit(struct nw_atomic_file *file)
{
    int error = 0;

    errno = 0;
    if (fflush(file->stream) != 0 || ferror(file->stream) || !synced(fileno(file->stream)))
        error = errno != 0 ? errno : EIO;
    if (fclose(file->stream) != 0 && error == 0)
        error = errno;
    if (error == 0 && file->temporary != NULL && rename(file->temporary, file->target) != 0)
        error = errno;
    if (error == 0 && file->temporary != NULL)
        sync_directory_of(file->target);
    const nw_rc rc = error != 0 ? fail_io(file->path, "write", error) : NW_OK;

    if (error != 0 && file->temporary != NULL)
        unlink(file->temporary);
    free_atomic(file);
    return rc;
}

void nw_atomic_abandon(struct nw_atomic_file *file)
{
    if (file == NULL)
        return;
    fclose(file->stream);
    if (file->temporary != NULL)
        unlink(file->temporary);
    free_atomic(file);
}

/* Cuts what stands behind the last newline. */
static int cut_torn_line(int fd)
{
    char block[4096];
    off_t end = lseek(fd, 0, SEEK_END);

    if (end < 0)
        return -1;
    while (end > 0) {
        const size_t length = end < (off_t)sizeof block ? (size_t)end : sizeof block;
        const ssize_t got = pread(fd, block, length, end - (off_t)length);

        if (got != (ssize_t)length) {
            if (got >= 0)
                errno = EIO;
            return -1;
        }
        const char *newline = memrchr(block, '\n', length);

        if (newline != NULL) {
            end -= (off_t)length - (newline - block) - 1;
            break;
        }
        end -= (off_t)length;
    }
    return ftruncate(fd, end);
}

static nw_rc prepare_lines(struct nw_line_file *file, int truncate)
{
    struct stat status;

    if (fstat(file->fd, &status) != 0)
        return fail_io(file->path, "open for writing", errno);
    if (S_ISDIR(status.st_mode))
        return fail_io(file->path, "open for writing", EISDIR);
    file->regular = S_ISREG(status.st_mode);
    if (!file->regular)
        return NW_OK;
    /* Two runs into one file would mix their lines. File systems without locks are taken as they
     * are. */
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return nw_fail(NW_EIO,
                       "%s: another run is writing this file; wait for it, or give another output",
                       file->path);
    if ((truncate ? ftruncate(file->fd, 0) : cut_torn_line(file->fd)) != 0)
        return fail_io(file->path, "open for writing", errno);
    return NW_OK;
}

nw_rc nw_lines_open(const char *path, int truncate, struct nw_line_file **file_out)
{
    struct nw_line_file *file = calloc(1, sizeof *file);

    if (file == NULL || (file->path = strdup(path)) == NULL) {
        free(file);
        return nw_fail(NW_ENOMEM, "%s: no memory for writing", path);
    }
    file->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file->fd < 0 && (errno == EACCES || errno == EINVAL || errno == ESPIPE))
        file->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC); /* a pipe, or a write-only device */
    const nw_rc rc =
        file->fd < 0 ? fail_io(path, "open for writing", errno) : prepare_lines(file, truncate);

    if (rc != NW_OK) {
        if (file->fd >= 0)
            close(file->fd);
        free(file->path);
        free(file);
        return rc;
    }
    *file_out = file;
    return NW_OK;
}

/* 0, or the errno. */
static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(fd, data, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        data += written;
        length -= (size_t)written;
    }
    return 0;
}

nw_rc nw_lines_append(struct nw_line_file *file, const char *text, size_t length)
{
    if (memchr(text, '\n', length) != NULL)
        return nw_fail(NW_EUSAGE, "%s: a line with a newline inside was not written", file->path);
    if (length + 1 > file->capacity) {
        char *buffer = realloc(file->buffer, length + 1);

        if (buffer == NULL)
            return nw_fail(NW_ENOMEM, "%s: no memory for a line of %zu bytes", file->path, length);
        file->buffer = buffer;
        file->capacity = length + 1;
    }
    memcpy(file->buffer, text, length);
    file->buffer[length] = '\n';

    const off_t before = file->regular ? lseek(file->fd, 0, SEEK_END) : -1;
    int error = write_all(file->fd, file->buffer, length + 1);

    if (error == 0 && !synced(file->fd))
        error = errno;
    if (error == 0)
        return NW_OK;
    /* A full disk takes a part of the line: whole lines only. */
    if (before >= 0 && ftruncate(file->fd, before) != 0)
        return nw_fail(NW_EIO, "%s: cannot write: %s; the last line is torn", file->path,
                       strerror(error));
    return fail_io(file->path, "write", error);
}

nw_rc nw_lines_close(struct nw_line_file *file)
{
    nw_rc rc = NW_OK;

    if (file == NULL)
        return NW_OK;
    if (close(file->fd) != 0)
        rc = fail_io(file->path, "close", errno);
    free(file->path);
    free(file->buffer);
    free(file);
    return rc;
}

static nw_rc read_all(int fd, const char *path, uint64_t max_bytes, char **data_out,
                      size_t *length_out)
{
    size_t length = 0, capacity = 64 * 1024;
    char *data = malloc(capacity);
    ssize_t got = -1;

    while (data != NULL && (got = read(fd, data + length, capacity - length - 1)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || (length += (size_t)got) > max_bytes)
            break;
        if (length + 1 < capacity)
            continue;
        char *larger = realloc(data, 2 * capacity);

        if (larger == NULL) {
            free(data);
            data = NULL;
        } else {
            data = larger;
            capacity *= 2;
        }
    }
    if (data != NULL && got == 0) {
        data[length] = '\0';
        *data_out = data;
        *length_out = length;
        return NW_OK;
    }
    const int error = errno;
    const bool no_memory = data == NULL;

    free(data);
    if (no_memory)
        return nw_fail(NW_ENOMEM, "%s: no memory for its contents", path);
    if (got > 0)
        return nw_fail(NW_EUSAGE, "%s: larger than %llu bytes, the most that is read here", path,
                       (unsigned long long)max_bytes);
    return fail_io(path, "read", error);
}

nw_rc nw_file_read(const char *path, uint64_t max_bytes, char **data_out, size_t *length_out)
{
    struct stat status;

    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "stdin", max_bytes, data_out, length_out);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return fail_io(path, "open for reading", errno);
    nw_rc rc;

    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))
        rc = nw_fail(NW_EUSAGE, "%s: is a directory; give a file", path);
    else
        rc = read_all(fd, path, max_bytes, data_out, length_out);
    close(fd);
    return rc;
}

nw_rc nw_make_directory(const char *path)
{
    struct stat status;
    char *copy = strdup(path);
    int error = 0;

    if (copy == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for its name", path);
    for (char *at = copy + (copy[0] == '/'); error == 0; at++) {
        const char end = *at;

        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        if (copy[0] == '\0')
            error = ENOENT;
        else if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            error = stat(copy, &status) == 0 && S_ISDIR(status.st_mode) ? 0 : errno;
        *at = end;
        if (end == '\0')
            break;
    }
    free(copy);
    if (error == 0 && (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)))
        error = ENOTDIR;
    return error != 0 ? fail_io(path, "make this directory", error) : NW_OK;
}
