/* Private to model/. Files of results that lines of a batch name: each is read once, each list of
 * them made into curves once, as long as there is room.
 *
 *     struct nw_batch_files files = {.reader = reader};
 *     NW_TRY(nw_batch_files_find(&files, paths, gpus_per_node, import_error, &set));
 *     … set->view, set->curves …                         // until the next call
 *     nw_batch_files_forget(&files);
 */
#ifndef NW_MODEL_BATCH_FILES_H
#define NW_MODEL_BATCH_FILES_H

#include "base/json.h"
#include "model/batch.h"
#include "model/curve.h"

#define NW_BATCH_FILES_MAX 256
#define NW_BATCH_SETS_MAX  256

struct nw_batch_file {
    char *path;
    struct nw_results results;
};

struct nw_batch_set { /* the files of one list */
    char *key;
    struct nw_results view; /* runs borrowed from the files, the list owned */
    struct nw_curves curves;
    int gpus_per_node;
    double import_error;
};

struct nw_batch_files {
    nw_batch_reader *reader; /* NULL: no file may be read */
    struct nw_batch_file items[NW_BATCH_FILES_MAX];
    size_t item_count;
    struct nw_batch_set sets[NW_BATCH_SETS_MAX];
    size_t set_count;
};

/* `list`: a path, or a list of paths. All is forgotten before a line for which there is no room. */
nw_rc nw_batch_files_find(struct nw_batch_files *files, const json_t *list, int gpus_per_node,
                          double import_error, const struct nw_batch_set **set_out);
void nw_batch_files_forget(struct nw_batch_files *files);

#endif
