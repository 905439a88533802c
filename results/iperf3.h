/* Private to results/. The importer of iperf3's JSON (iperf3 -J, --json-stream):
 *
 *   import_iperf3.c  documents in a file: one or several, an array, a stream of events
 *   iperf3_run.c     one result into a run with its records and findings
 *   import_iperf3_text.c  the text, made into such a result
 *
 * Keys: https://github.com/esnet/iperf, src/iperf_api.c and src/iperf_tcp.c of 3.0 to 3.19.
 */
#ifndef NW_RESULTS_IPERF3_H
#define NW_RESULTS_IPERF3_H

#include "results/import.h"

/* The importer's row in nw_importers. */
int nw_iperf3_recognise(const char *data, size_t length);
nw_rc nw_iperf3_read(const char *data, size_t length, const char *path,
                     const struct nw_import_options *options, struct nw_results *results);

/* Appends the run of one result; `where` is "file:line" of its beginning. */
nw_rc nw_iperf3_add_run(const json_t *result, const char *path, const char *where,
                        struct nw_results *results);

bool nw_iperf3_is_text(const char *data, size_t length);
nw_rc nw_iperf3_read_text(const char *data, size_t length, const char *path,
                          struct nw_results *results);

#endif
