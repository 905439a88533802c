#include "topo/system_text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool nw_system_text(char *text, size_t size, const char *format, ...)
{
    char path[PATH_MAX];
    va_list arguments;
    size_t length = 0;
    ssize_t more = 1;
    int fd, needed;

    va_start(arguments, format);
    needed = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    text[0] = '\0';
    if (needed < 0 || (size_t)needed >= sizeof path)
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    while (more > 0 && length < size - 1) {
        more = read(fd, text + length, size - 1 - length);
        length += more > 0 ? (size_t)more : 0;
    }
    close(fd);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
    return text[0] != '\0';
}

bool nw_system_exists(const char *format, ...)
{
    char path[PATH_MAX];
    va_list arguments;
    int needed;

    va_start(arguments, format);
    needed = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return needed > 0 && (size_t)needed < sizeof path &&
           faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool nw_system_field(const char *text, const char *key, char *value, size_t size)
{
    const size_t length = strlen(key);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        const char *at;

        line += *line == '\n';
        if (strncmp(line, key, length) != 0)
            continue;
        at = line + length;
        at += strspn(at, " \t");
        if (*at != ':' && *at != '=')
            continue;
        at++;
        at += strspn(at, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
        return true;
    }
    return false;
}

bool nw_system_has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || strchr(" \t\n", at[-1]) != NULL) &&
            (at[length] == '\0' || strchr(" \t\n", at[length]) != NULL))
            return true;
    return false;
}

void nw_system_open_folder(struct nw_system_folder *folder, const char *path)
{
    folder->stream = opendir(path);
}

bool nw_system_next(struct nw_system_folder *folder, char *name, size_t size)
{
    const struct dirent *entry;

    while (folder->stream != NULL && (entry = readdir(folder->stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (snprintf(name, size, "%s", entry->d_name) < (int)size)
            return true;
    }
    return false;
}

void nw_system_close_folder(struct nw_system_folder *folder)
{
    if (folder->stream != NULL)
        closedir(folder->stream);
}
