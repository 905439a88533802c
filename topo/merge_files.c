/* Files and folders of one machine, read and merged. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topo/merge.h"

enum { MAX_FILES = 256 };

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* NW_OK and no topology where the file is in no known format: a folder may hold other things. */
static nw_rc read_entry(const char *path, struct nw_topo **topo_out, struct nw_findings *skipped)
{
    struct stat status;

    *topo_out = NULL;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return NW_OK;
    const nw_rc rc = nw_topo_read_file(path, topo_out);

    if (rc != NW_EUSAGE)
        return rc;
    const char *text = nw_last_error()->text, *accepted = strstr(text, ". Accepted:");

    NW_TRY(nw_findings_add(skipped, NW_FINDING_WARN, "file-not-read", path,
                           "\"nodeworth list formats\" names what is read", "%.*s",
                           (int)(accepted != NULL ? accepted - text : (long)strlen(text)), text));
    nw_clear_error();
    return NW_OK;
}

static nw_rc take(struct nw_topo **into, struct nw_topo *from)
{
    nw_rc rc = NW_OK;

    if (*into == NULL) {
        *into = from;
        return NW_OK;
    }
    if (nw_merge_is_fabric(*into) && !nw_merge_is_fabric(from)) { /* the machine counts */
        struct nw_topo *fabric = *into;

        *into = from;
        from = fabric;
    }
    rc = nw_topo_merge(*into, from);
    nw_topo_free(from);
    return rc;
}

static nw_rc read_entries(const char *path, struct dirent **entries, int count,
                          struct nw_topo **topo, struct nw_findings *skipped)
{
    for (int i = 0; i < count; i++) {
        struct nw_topo *one;
        char file[4096];

        if (snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name) >= (int)sizeof file)
            return nw_fail(NW_EUSAGE, "%s/%s: the path is too long", path, entries[i]->d_name);
        NW_TRY(read_entry(file, &one, skipped));
        if (one != NULL)
            NW_TRY(take(topo, one));
    }
    if (*topo == NULL)
        return nw_fail(NW_EUSAGE, "%s: a folder in which none of %d files can be read%s%s", path,
                       count, skipped->count > 0 ? "; the first: " : "",
                       skipped->count > 0 ? skipped->items[0].text : "");
    return nw_findings_copy(&(*topo)->findings, skipped);
}

static nw_rc read_folder(const char *path, struct nw_topo **topo_out)
{
    struct dirent **entries;
    struct nw_findings skipped = {0};
    struct nw_topo *topo = NULL;
    const int count = scandir(path, &entries, is_shown, alphasort);
    nw_rc rc;

    if (count < 0)
        return nw_fail(NW_EIO, "%s: cannot be listed: %s", path, strerror(errno));
    rc = count <= MAX_FILES
             ? read_entries(path, entries, count, &topo, &skipped)
             : nw_fail(NW_EUSAGE, "%s: %d files; a folder of one machine has %d at most", path,
                       count, (int)MAX_FILES);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    nw_findings_free(&skipped);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    *topo_out = topo;
    return NW_OK;
}

nw_rc nw_topo_read_path(const char *path, struct nw_topo **topo_out)
{
    struct stat status;

    if (strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return read_folder(path, topo_out);
    return nw_topo_read_file(path, topo_out);
}

nw_rc nw_topo_read_paths(const char *const *paths, size_t count, struct nw_topo **topo_out)
{
    struct nw_topo *topo = NULL;
    nw_rc rc = count > 0 ? NW_OK : nw_fail(NW_EUSAGE, "no file to read");

    for (size_t i = 0; i < count && rc == NW_OK; i++) {
        struct nw_topo *one;

        rc = nw_topo_read_path(paths[i], &one);
        if (rc == NW_OK)
            rc = take(&topo, one);
    }
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    *topo_out = topo;
    return NW_OK;
}
