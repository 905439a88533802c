#include "cli/leftovers.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/dev/shm"
#define PREFIX "nccl-" /* NCCL 2.12 to 2.30, misc/shmutils.cc */

/* A job that has made its file and not mapped it yet must not lose it. */
#define YOUNGEST_S 1

static bool is_mapped(pid_t process, const char *path)
{
    char name[64], line[512];
    bool found = false;
    FILE *maps;

    snprintf(name, sizeof name, "/proc/%d/maps", (int)process);
    maps = fopen(name, "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, path) != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

static bool is_open(pid_t process, const char *path)
{
    char name[64], target[512];
    const struct dirent *entry;
    bool found = false;
    DIR *folder;

    snprintf(name, sizeof name, "/proc/%d/fd", (int)process);
    folder = opendir(name);
    while (folder != NULL && !found && (entry = readdir(folder)) != NULL) {
        const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);

        if (length <= 0)
            continue;
        target[length] = '\0';
        found = strcmp(target, path) == 0;
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

static bool is_used(const char *path)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    bool used = folder == NULL; /* cannot be told: as good as */

    while (folder != NULL && !used && (entry = readdir(folder)) != NULL) {
        int process;

        if (sscanf(entry->d_name, "%d", &process) == 1)
            used = is_mapped(process, path) || is_open(process, path);
    }
    if (folder != NULL)
        closedir(folder);
    return used;
}

void nw_clear_leftovers(time_t began)
{
    DIR *folder = opendir(FOLDER);
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[sizeof FOLDER + sizeof entry->d_name + 1];
        struct stat about;

        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        snprintf(path, sizeof path, FOLDER "/%s", entry->d_name);
        if (lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == getuid() &&
            about.st_ctime >= began && time(NULL) - about.st_ctime >= YOUNGEST_S && !is_used(path))
            unlink(path);
    }
    if (folder != NULL)
        closedir(folder);
}
