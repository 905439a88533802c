/* A small /proc and /sys in a temporary directory. */
#ifndef NW_TESTS_SYSTEM_TREE_H
#define NW_TESTS_SYSTEM_TREE_H

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

struct tree_file {
    const char *path, *text; /* "@target": a symbolic link */
};

static inline void tree_parent(const char *path)
{
    char folder[512];

    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    cr_assert_eq(nw_make_directory(folder), NW_OK, "%s", nw_last_error()->text);
}

static inline void tree_write(const char *root, const char *name, const void *data, size_t length)
{
    char path[512];
    FILE *stream;

    snprintf(path, sizeof path, "%s/%s", root, name);
    tree_parent(path);
    stream = fopen(path, "w");
    cr_assert_not_null(stream, "%s", path);
    cr_assert_eq(fwrite(data, 1, length, stream), length);
    fclose(stream);
}

static inline void tree_add(const char *root, const struct tree_file *files, size_t count)
{
    char path[512];

    for (size_t i = 0; i < count; i++) {
        if (files[i].text[0] != '@') {
            tree_write(root, files[i].path, files[i].text, strlen(files[i].text));
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", root, files[i].path);
        tree_parent(path);
        cr_assert_eq(symlink(files[i].text + 1, path), 0, "%s", path);
    }
}

static inline int tree_remove_one(const char *path, const struct stat *status, int flag,
                                  struct FTW *where)
{
    (void)status, (void)flag, (void)where;
    return remove(path);
}

static inline void tree_remove(const char *root)
{
    cr_expect_eq(nftw(root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
