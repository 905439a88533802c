#include "model/batch_files.h"

#include <stdlib.h>
#include <string.h>

static void free_set(struct nw_batch_set *set)
{
    free(set->key);
    free(set->view.runs);
    nw_curves_free(&set->curves);
}

void nw_batch_files_forget(struct nw_batch_files *files)
{
    for (size_t i = 0; i < files->set_count; i++)
        free_set(&files->sets[i]);
    for (size_t i = 0; i < files->item_count; i++) {
        free(files->items[i].path);
        nw_results_free(&files->items[i].results);
    }
    files->set_count = files->item_count = 0;
}

static nw_rc find_file(struct nw_batch_files *files, const char *path,
                       struct nw_batch_file **file_out)
{
    for (size_t i = 0; i < files->item_count; i++) {
        if (strcmp(files->items[i].path, path) == 0) {
            *file_out = &files->items[i];
            return NW_OK;
        }
    }
    if (files->item_count == NW_BATCH_FILES_MAX)
        return nw_fail(NW_EUSAGE, "results: more than %d files in one line", NW_BATCH_FILES_MAX);
    if (files->reader == NULL)
        return nw_fail(NW_EUSAGE, "results: no file can be read here; leave the key out");
    struct nw_batch_file file = {.path = strdup(path)};
    nw_rc rc = file.path != NULL ? files->reader(path, &file.results)
                                 : nw_fail(NW_ENOMEM, "no memory for %.80s", path);

    if (rc != NW_OK) {
        free(file.path);
        nw_results_free(&file.results);
        return rc;
    }
    files->items[files->item_count] = file;
    *file_out = &files->items[files->item_count++];
    return NW_OK;
}

static nw_rc add_runs(struct nw_batch_set *set, const struct nw_batch_file *file)
{
    const size_t count = set->view.run_count + file->results.run_count;
    struct nw_run *runs = realloc(set->view.runs, (count > 0 ? count : 1) * sizeof *runs);

    if (runs == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the runs of %.80s", file->path);
    set->view.runs = runs;
    if (file->results.run_count > 0)
        memcpy(runs + set->view.run_count, file->results.runs,
               file->results.run_count * sizeof *runs);
    set->view.run_count = count;
    return nw_curves_add_with(&set->curves, &file->results, set->gpus_per_node, set->import_error);
}

static const char *path_at(const json_t *list, size_t index)
{
    return json_string_value(json_is_array(list) ? json_array_get(list, index) : list);
}

static nw_rc fill_set(struct nw_batch_files *files, const json_t *list, struct nw_batch_set *set)
{
    const size_t count = json_is_array(list) ? json_array_size(list) : 1;

    for (size_t i = 0; i < count; i++) {
        struct nw_batch_file *file = NULL;

        NW_TRY(find_file(files, path_at(list, i), &file));
        NW_TRY(add_runs(set, file));
    }
    return NW_OK;
}

static nw_rc check_paths(const json_t *list)
{
    const size_t count = json_is_array(list) ? json_array_size(list) : 1;

    if (count == 0 || count > NW_BATCH_FILES_MAX)
        return nw_fail(NW_EUSAGE, "results: %zu files; accepted: a path, or a list of 1 to %d",
                       count, NW_BATCH_FILES_MAX);
    for (size_t i = 0; i < count; i++)
        if (path_at(list, i) == NULL || path_at(list, i)[0] == '\0')
            return nw_fail(NW_EUSAGE, "results: not a path; accepted: a path, or a list of paths");
    return NW_OK;
}

nw_rc nw_batch_files_find(struct nw_batch_files *files, const json_t *list, int gpus_per_node,
                          double import_error, const struct nw_batch_set **set_out)
{
    NW_TRY(check_paths(list));
    struct nw_batch_set set = {.key = json_dumps(list, JSON_COMPACT | JSON_ENCODE_ANY),
                               .gpus_per_node = gpus_per_node,
                               .import_error = import_error};

    if (set.key == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the names of results");
    for (size_t i = 0; i < files->set_count; i++) {
        if (files->sets[i].gpus_per_node == gpus_per_node &&
            files->sets[i].import_error == import_error &&
            strcmp(files->sets[i].key, set.key) == 0) {
            free(set.key);
            *set_out = &files->sets[i];
            return NW_OK;
        }
    }
    const size_t more = json_is_array(list) ? json_array_size(list) : 1;

    if (files->set_count == NW_BATCH_SETS_MAX || files->item_count + more > NW_BATCH_FILES_MAX)
        nw_batch_files_forget(files);
    const nw_rc rc = fill_set(files, list, &set);

    if (rc != NW_OK) {
        free_set(&set);
        return rc;
    }
    files->sets[files->set_count] = set;
    *set_out = &files->sets[files->set_count++];
    return NW_OK;
}
