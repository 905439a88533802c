#include "cli/candidate_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inputs.h"

#define TOPOS_MAX  64
#define HEAD_BYTES 4096

struct files { /* of one candidate */
    char name[64];
    struct nw_results results;
    struct nw_quote quote;
    bool quoted;
    struct nw_topo *topos[TOPOS_MAX];
    size_t topo_count;
};

struct nw_candidate_files {
    struct files items[NW_OPTION_LIST_MAX];
    struct nw_candidate_input inputs[NW_OPTION_LIST_MAX];
    size_t count;
};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);

    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Our own topology begins with its schema and kind; other tools' are XML. */
static bool is_topology(const char *path)
{
    FILE *file = fopen(path, "r");
    char head[HEAD_BYTES + 1];

    if (file == NULL)
        return false; /* whoever reads it says why */
    head[fread(head, 1, HEAD_BYTES, file)] = '\0';
    fclose(file);
    const char *kind = strstr(head, "\"kind\"");

    if (kind == NULL)
        return ends_with(path, ".xml");
    kind += strlen("\"kind\"");
    kind += strspn(kind, " \t\r\n:");
    return head[strspn(head, " \t\r\n")] == '{' && strncmp(kind, "\"topology\"", 10) == 0;
}

static nw_rc read_file(struct files *files, const char *path)
{
    if (ends_with(path, ".ini")) {
        if (files->quoted)
            return nw_fail(NW_EUSAGE, "candidate %s: %s is its second quote; accepted: one",
                           files->name, path);
        NW_TRY(nw_quote_read(path, &files->quote));
        files->quoted = true;
        return NW_OK;
    }
    if (!is_topology(path))
        return nw_cli_read_results(path, &files->results);
    if (files->topo_count == TOPOS_MAX)
        return nw_fail(NW_EUSAGE, "candidate %s: more than %d topologies", files->name, TOPOS_MAX);
    NW_TRY(nw_topo_read_file(path, &files->topos[files->topo_count]));
    files->topo_count++;
    return NW_OK;
}

static nw_rc read_list(struct files *files, const char *list)
{
    char *copy = strdup(list), *rest = NULL;
    size_t count = 0;
    nw_rc rc = NW_OK;

    if (copy == NULL)
        return nw_fail(NW_ENOMEM, "no memory for --candidate");
    for (char *path = strtok_r(copy, ",", &rest); path != NULL && rc == NW_OK;
         path = strtok_r(NULL, ",", &rest)) {
        rc = read_file(files, path);
        count++;
    }
    free(copy);
    if (rc == NW_OK && count == 0)
        rc = nw_fail(NW_EUSAGE,
                     "--candidate %s=: names no file; accepted: results or logs, a "
                     "quote (.ini), topologies, with commas between",
                     files->name);
    return rc;
}

static nw_rc read_one(struct nw_candidate_files *all, const char *text)
{
    struct files *files = &all->items[all->count];
    const char *equals = strchr(text, '=');
    const size_t length = equals != NULL ? (size_t)(equals - text) : 0;

    if (length == 0 || length >= sizeof files->name)
        return nw_fail(NW_EUSAGE,
                       "--candidate %.80s: accepted: NAME=FILE,FILE,… with a name of 1 "
                       "to %zu letters",
                       text, sizeof files->name - 1);
    memcpy(files->name, text, length);
    files->name[length] = '\0';
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i].name, files->name) == 0)
            return nw_fail(NW_EUSAGE, "--candidate %s: the name is given twice", files->name);
    all->count++; /* what was read is freed with it */
    return read_list(files, equals + 1);
}

nw_rc nw_candidate_files_read(const struct nw_option_list *list,
                              struct nw_candidate_files **files_out)
{
    struct nw_candidate_files *all = calloc(1, sizeof *all);
    nw_rc rc = all != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the candidates");

    for (size_t i = 0; i < list->count && rc == NW_OK; i++)
        rc = read_one(all, list->items[i]);
    if (rc != NW_OK) {
        nw_candidate_files_free(all);
        return rc;
    }
    for (size_t i = 0; i < all->count; i++) {
        const struct files *files = &all->items[i];

        all->inputs[i] = (struct nw_candidate_input){
            .name = files->name,
            .results = files->results.run_count > 0 ? &files->results : NULL,
            .quote = files->quoted ? &files->quote : NULL,
            .topos = files->topos,
            .topo_count = files->topo_count};
    }
    *files_out = all;
    return NW_OK;
}

void nw_candidate_files_free(struct nw_candidate_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < files->count; i++) {
        nw_results_free(&files->items[i].results);
        for (size_t t = 0; t < files->items[i].topo_count; t++)
            nw_topo_free(files->items[i].topos[t]);
    }
    free(files);
}

size_t nw_candidate_files_count(const struct nw_candidate_files *files)
{
    return files->count;
}

const struct nw_candidate_input *nw_candidate_files_inputs(const struct nw_candidate_files *files)
{
    return files->inputs;
}

nw_rc nw_topo_files_read(const struct nw_option_list *list, struct nw_topo ***topos_out)
{
    struct nw_topo **topos = calloc(list->count + 1, sizeof *topos);

    if (topos == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the topologies");
    for (size_t i = 0; i < list->count; i++) {
        const nw_rc rc = nw_topo_read_file(list->items[i], &topos[i]);

        if (rc != NW_OK) {
            nw_topo_files_free(topos, i);
            return rc;
        }
    }
    *topos_out = topos;
    return NW_OK;
}

void nw_topo_files_free(struct nw_topo **topos, size_t count)
{
    for (size_t i = 0; topos != NULL && i < count; i++)
        nw_topo_free(topos[i]);
    free(topos);
}
