/* Private to results/. The importers' entries in the table of import.c, a pair of functions each
 * (results/import.h says what they do). A file import_<tool>.c has one of them.
 */
#ifndef NW_RESULTS_IMPORTERS_H
#define NW_RESULTS_IMPORTERS_H

#include "results/import.h"

#define NW_IMPORTER(name)                                                                          \
    int nw_##name##_recognise(const char *data, size_t length);                                    \
    nw_rc nw_##name##_read(const char *data, size_t length, const char *path,                      \
                           const struct nw_import_options *options, struct nw_results *results)

NW_IMPORTER(nvbandwidth);
NW_IMPORTER(p2p);
NW_IMPORTER(perftest);
NW_IMPORTER(osu);
NW_IMPORTER(imb);
NW_IMPORTER(hccl);
NW_IMPORTER(all_reduce_bench);
NW_IMPORTER(gpu_burn);
NW_IMPORTER(fio);
NW_IMPORTER(nccltests_json);

#undef NW_IMPORTER

#endif
