/* A file that nobody can leave behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/disk_parts.h"

extern char **environ;

/* Opens with O_DIRECT, or without where the file system refuses it. */
static int open_either(const char *path, int flags, const struct nw_disk_calls *calls, bool *direct)
{
    int fd = -1;

    *direct = !calls->no_direct;
    if (*direct)
        fd = open(path, flags | O_DIRECT, 0600);
    if (fd < 0 && (!*direct || errno == EINVAL || errno == EOPNOTSUPP)) {
        if (*direct && (flags & O_CREAT) != 0)
            (void)unlink(path); /* some file systems create it and then refuse */
        *direct = false;
        fd = open(path, flags, 0600);
    }
    return fd;
}

/* A shell that waits for our end, and then removes the file. In a group of its own: an interrupt
 * from the terminal must not end it first. */
static nw_rc start_guard(struct nw_disk_file *file)
{
    static const char script[] = "read -r nothing; rm -f -- \"$1\"";
    const char *arguments[] = {"sh", "-c", script, "sh", file->name, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int ends[2], code;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return nw_fail(NW_EIO, "cannot make a pipe: %s", strerror(errno));
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    code = posix_spawnp(&file->guard, arguments[0], &actions, &attributes, (char *const *)arguments,
                        environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (code != 0) {
        close(ends[1]);
        return nw_fail(NW_EIO, "cannot start sh, which would remove the file: %s", strerror(code));
    }
    file->guard_fd = ends[1];
    return NW_OK;
}

static nw_rc create_named(const char *folder, const struct nw_disk_calls *calls,
                          struct nw_disk_file *file)
{
    int attempt = 0;

    do {
        free(file->name);
        if (asprintf(&file->name, "%s/.nodeworth-%ld-%llx.tmp", folder, (long)getpid(),
                     (unsigned long long)nw_now_ns() + (unsigned)attempt) < 0) {
            file->name = NULL;
            return nw_fail(NW_ENOMEM, "%s: no memory for a file name", folder);
        }
        file->fd = open_either(file->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                               calls, &file->direct);
    } while (file->fd < 0 && errno == EEXIST && ++attempt < 16);
    if (file->fd < 0)
        return nw_fail(NW_EUSAGE, "%s: cannot create a file: %s", folder, strerror(errno));
    if ((calls->unlink != NULL ? calls->unlink : unlink)(file->name) == 0) {
        free(file->name);
        file->name = NULL;
        return NW_OK;
    }
    return start_guard(file);
}

nw_rc nw_disk_create(const char *folder, const struct nw_disk_calls *calls,
                     struct nw_disk_file *file_out)
{
    struct nw_disk_file file = {.fd = -1, .guard_fd = -1};
    nw_rc rc = NW_OK;

    if (!calls->no_unnamed)
        file.fd = open_either(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, calls, &file.direct);
    if (file.fd < 0) /* NFS and FUSE know no unnamed files */
        rc = create_named(folder, calls, &file);
    if (rc != NW_OK) {
        nw_disk_remove(&file, calls);
        return rc;
    }
    *file_out = file;
    return NW_OK;
}

void nw_disk_remove(struct nw_disk_file *file, const struct nw_disk_calls *calls)
{
    (void)calls;
    if (file->fd >= 0)
        close(file->fd);
    if (file->name != NULL)
        (void)unlink(file->name);
    if (file->guard_fd >= 0) {
        close(file->guard_fd);
        while (waitpid(file->guard, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    free(file->name);
    *file = (struct nw_disk_file){.fd = -1, .guard_fd = -1};
}
