/* Private to results/. The importer of pairwise summaries of nccl-tests (its row is in import.c).
 */
#ifndef NW_RESULTS_PAIRWISE_H
#define NW_RESULTS_PAIRWISE_H

#include "results/import.h"

int nw_pairwise_recognise(const char *data, size_t length);
nw_rc nw_pairwise_read(const char *data, size_t length, const char *path,
                       const struct nw_import_options *options, struct nw_results *results);

#endif
