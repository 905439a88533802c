/* Public. Logs of other tools into results. One importer a tool (the rows of nw_importers, with
 * results/importers.h); a tool is recognised by what is in the file, never by the file's name.
 *
 * nccl-tests / rccl-tests text: old ("error") and new ("#wrong") layouts, mpirun and srun line
 * prefixes, NCCL_DEBUG noise, lost '#', several runs in a file, N/A and scientific #wrong, cut and
 * failed runs, a CSV made from the table. What cannot be read, and what is misleading, becomes a
 * finding of the run's context with the line number.
 *
 *     struct nw_results results = {0};
 *     NW_TRY(nw_import_file("all_reduce.log", &results));
 */
#ifndef NW_RESULTS_IMPORT_H
#define NW_RESULTS_IMPORT_H

#include "results/results.h"

struct nw_import_options {
    const char *collective; /* where the log does not name it; NULL: from its columns or unknown */
};

struct nw_importer {
    const char *name, *title;
    const char *looks_for; /* what shows it that a file is its tool's */
    /* How sure the importer is that `data` is its kind of file: 0 no .. 100. */
    int (*recognise)(const char *data, size_t length);
    nw_rc (*read)(const char *data, size_t length, const char *path,
                  const struct nw_import_options *options, struct nw_results *results);
};
extern const struct nw_importer nw_importers[]; /* ends with name NULL */

/* Appends the file's runs; "-" is stdin. A readable log without a single result is NW_OK with runs
 * that say why (findings of severity FAIL); an empty file, a binary file, or a file no importer
 * knows is NW_EUSAGE. On failure `results` is as before. */
nw_rc nw_import_file(const char *path, struct nw_results *results);
nw_rc nw_import_data(const char *data, size_t length, const char *path, struct nw_results *results);
/* The same with options. */
nw_rc nw_import_file_as(const char *path, const struct nw_import_options *options,
                        struct nw_results *results);
nw_rc nw_import_data_as(const char *data, size_t length, const char *path,
                        const struct nw_import_options *options, struct nw_results *results);

#endif
