#include "topo/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

nw_rc nw_files_of_map(const json_t *map, const char *what, struct nw_files *files_out)
{
    const size_t count = json_object_size(map);
    struct nw_files files = {.map = map};
    const char *key;
    json_t *value;

    if (count > NW_FILES_MAX_KEYS)
        return nw_fail(NW_EUSAGE, "%s: %zu paths; at most %d are read", what, count,
                       NW_FILES_MAX_KEYS);
    files.keys = calloc(count + 1, sizeof *files.keys);
    if (files.keys == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for %zu paths", what, count);
    json_object_foreach((json_t *)map, key,
                        value) if (strncmp(key, "/sys/", 5) == 0 && json_is_string(value))
        files.keys[files.key_count++] = key;
    qsort(files.keys, files.key_count, sizeof *files.keys, compare_keys);
    *files_out = files;
    return NW_OK;
}

void nw_files_close(struct nw_files *files)
{
    free(files->keys);
    files->keys = NULL;
    files->key_count = 0;
}

/* --- reading --- */

static bool trimmed(char *text, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
    return length > 0;
}

static bool read_path(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length;

    if (fd < 0)
        return false;
    length = read(fd, text, size - 1);
    close(fd);
    return trimmed(text, length > 0 ? (size_t)length : 0);
}

bool nw_files_read(const struct nw_files *files, char *text, size_t size, const char *format, ...)
{
    char path[PATH_MAX];
    const char *content;
    size_t used;
    va_list arguments;
    int needed;

    used = (size_t)snprintf(path, sizeof path, "%s/", files->map != NULL ? "/sys" : files->root);
    text[0] = '\0';
    if (used >= sizeof path)
        return false;
    va_start(arguments, format);
    needed = vsnprintf(path + used, sizeof path - used, format, arguments);
    va_end(arguments);
    if (needed < 0 || (size_t)needed >= sizeof path - used)
        return false;
    if (files->map == NULL)
        return read_path(path, text, size);
    content = json_string_value(json_object_get(files->map, path));
    if (content == NULL)
        return false;
    snprintf(text, size, "%s", content);
    return trimmed(text, strlen(text));
}

double nw_files_number(const struct nw_files *files, const char *folder, const char *file)
{
    char text[64];
    uint64_t value;

    if (!nw_files_read(files, text, sizeof text, "%s/%s", folder, file))
        return NAN;
    if (nw_parse_u64(text, 0, UINT64_MAX, &value) == NW_OK)
        return (double)value;
    nw_clear_error();
    return NAN;
}

/* --- listing --- */

static nw_rc add_name(struct nw_names *names, const char *name, size_t length)
{
    char **items;

    if (names->count % 64 == 0) {
        items = realloc(names->items, (names->count + 64) * sizeof *items);
        if (items == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for the names of a folder");
        names->items = items;
    }
    names->items[names->count] = strndup(name, length);
    if (names->items[names->count] == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the names of a folder");
    names->count++;
    return NW_OK;
}

void nw_names_free(struct nw_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct nw_names){.items = NULL};
}

static nw_rc list_folder(const struct nw_files *files, const char *folder, struct nw_names *names)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    nw_rc rc = NW_OK;
    DIR *stream;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", files->root, folder) >= sizeof path)
        return NW_OK;
    stream = opendir(path);
    while (stream != NULL && rc == NW_OK && (entry = readdir(stream)) != NULL)
        if (entry->d_name[0] != '.')
            rc = add_name(names, entry->d_name, strlen(entry->d_name));
    if (stream != NULL)
        closedir(stream);
    return rc;
}

static size_t first_key(const struct nw_files *files, const char *prefix)
{
    size_t low = 0, high = files->key_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(files->keys[middle], prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static nw_rc list_map(const struct nw_files *files, const char *folder, struct nw_names *names)
{
    char prefix[PATH_MAX];
    const char *last = "";
    size_t length;

    length = (size_t)snprintf(prefix, sizeof prefix, "/sys/%s/", folder);
    if (length >= sizeof prefix)
        return NW_OK;
    for (size_t i = first_key(files, prefix);
         i < files->key_count && strncmp(files->keys[i], prefix, length) == 0; i++) {
        const char *name = files->keys[i] + length;
        const size_t name_length = strcspn(name, "/");

        if (name_length == 0 || name[0] == '.' || name_length > NAME_MAX ||
            (strncmp(last, name, name_length) == 0 && last[name_length] == '\0'))
            continue;
        NW_TRY(add_name(names, name, name_length));
        last = names->items[names->count - 1];
    }
    return NW_OK;
}

/* Shorter names first: mlx5_2 before mlx5_10, and PCI addresses in their order. */
static int compare_names(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    const size_t left = strlen(x), right = strlen(y);

    return left != right ? (left < right ? -1 : 1) : strcmp(x, y);
}

/* "x", "x-1", "x/…" are neighbours in a map: equal names need not be. */
static void drop_equal(struct nw_names *names)
{
    size_t kept = 0;

    for (size_t i = 0; i < names->count; i++)
        if (kept > 0 && strcmp(names->items[kept - 1], names->items[i]) == 0)
            free(names->items[i]);
        else
            names->items[kept++] = names->items[i];
    names->count = kept;
}

nw_rc nw_files_list(const struct nw_files *files, const char *folder, struct nw_names *names_out)
{
    struct nw_names names = {.items = NULL};
    const nw_rc rc =
        files->map != NULL ? list_map(files, folder, &names) : list_folder(files, folder, &names);

    if (rc != NW_OK) {
        nw_names_free(&names);
        return rc;
    }
    if (names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    drop_equal(&names);
    *names_out = names;
    return NW_OK;
}
