/* Private to topo/. Small files of /proc and /sys. Every one is optional: what cannot be read is
 * unknown. */
#ifndef NW_TOPO_SYSTEM_TEXT_H
#define NW_TOPO_SYSTEM_TEXT_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

/* The first `size - 1` bytes, blanks at the end cut off. False, "": nothing there, or empty. */
bool nw_system_text(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Is the file, folder or link there, as far as this user may see? */
bool nw_system_exists(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The value after "key:" or "key=" at the beginning of a line. False: no such line. */
bool nw_system_field(const char *text, const char *key, char *value, size_t size);
/* Is the word in the text, between blanks? */
bool nw_system_has_word(const char *text, const char *word);

/* The names in a folder but "." and "..", in no order. */
struct nw_system_folder {
    DIR *stream; /* NULL: cannot be read */
};
void nw_system_open_folder(struct nw_system_folder *folder, const char *path);
bool nw_system_next(struct nw_system_folder *folder, char *name, size_t size);
void nw_system_close_folder(struct nw_system_folder *folder);

#endif
