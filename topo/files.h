/* Private to topo/. Small files by path, wherever they are: the real /sys, a copy of it below
 * another folder, or a JSON object "path" : "content" that a health check wrote. The readers of
 * RDMA devices go through this, so that all three say the same.
 *
 *     struct nw_files files = {.root = "/sys"};
 *     if (nw_files_read(&files, text, sizeof text, "class/infiniband/%s/fw_ver", name)) …
 *     NW_TRY(nw_files_list(&files, "class/infiniband", &names));
 *     …
 *     nw_names_free(&names);
 *     nw_files_close(&files);
 */
#ifndef NW_TOPO_FILES_H
#define NW_TOPO_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
    NW_FILES_MAX_KEYS = 200000, /* a node's whole PCI tree has some 60000 files */
};

struct nw_files {
    const char *root;  /* folder that stands for /sys; NULL: of_map */
    const json_t *map; /* borrowed */
    const char **keys; /* of the map, sorted; owned */
    size_t key_count;
};

struct nw_names {
    char **items; /* shorter ones first: mlx5_2 before mlx5_10; owned */
    size_t count;
};

/* `map`: keys that begin with "/sys/"; others are never found. NW_EUSAGE beyond NW_FILES_MAX_KEYS.
 */
nw_rc nw_files_of_map(const json_t *map, const char *what, struct nw_files *files_out);
void nw_files_close(struct nw_files *files);
/* The content without blanks at its end, cut to `size`; false: not there, or empty. Paths are below
 * /sys, without a slash at the front. */
bool nw_files_read(const struct nw_files *files, char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A whole number in FOLDER/FILE; NAN: not there, or none. */
double nw_files_number(const struct nw_files *files, const char *folder, const char *file);
/* What is in a folder; none when it is not there. */
nw_rc nw_files_list(const struct nw_files *files, const char *folder, struct nw_names *names_out);
void nw_names_free(struct nw_names *names);

#endif
