/* Public. Several results files as one, line for line: nothing of a line is changed, unless names
 * are to be hidden. Simulated results and real ones never go into one file.
 *
 *     NW_TRY(nw_results_merge(paths, 2, NULL, "all.jsonl", &merged));
 */
#ifndef NW_RESULTS_MERGE_H
#define NW_RESULTS_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "results/anonymise.h"

struct nw_merged {
    size_t run_count, record_count;
    size_t again_count; /* runs left out: they stand in an earlier file, line for line */
};

/* `anonymiser` NULL: names stay; else one that has seen no line yet. The file appears whole or not
 * at all. NW_EUSAGE: simulated and real ones; a file that is no results file. */
nw_rc nw_results_merge(const char *const *paths, size_t count, struct nw_anonymiser *anonymiser,
                       const char *out, struct nw_merged *merged_out);

#endif
