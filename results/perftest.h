/* Private to results/. The parts of perftest's importer (https://github.com/linux-rdma/perftest,
 * src/perftest_parameters.[ch]):
 *
 *   import_perftest.c  lines of the text, and the JSON of --out_json
 *   perftest_run.c     what a table means: records, and what is misleading
 *
 * "MB/sec" of older versions and "MiB/sec" are the same 2^20 bytes/s; "Gb/sec" is 10^9 bits/s.
 * Latencies of writes and sends are half of the way there and back, those of reads the whole.
 */
#ifndef NW_RESULTS_PERFTEST_H
#define NW_RESULTS_PERFTEST_H

#include "results/import_kit.h"

struct nw_perftest_facts {
    char verb[8]; /* "write" "read" "send" "atomic"; "": not said */
    char device[72], gid[64], remote_gid[64], lid[16], remote_lid[16];
    bool titled;    /* a title or a command line says one way or both */
    bool both_ways; /* -b */
    bool server, gpu;
    bool ethernet;
    int qps, depth; /* 0: not said */
    uint32_t mtu;
    size_t title_line, frequency_line;
};

struct nw_perftest {
    struct nw_imp imp;
    struct nw_perftest_facts facts, next; /* of the run that is open; said before the next */
    struct nw_imp_columns columns;
    bool latency;
    size_t rows, small_rows, few_line; /* small ones of few iterations */
    size_t disagree_count, disagree_line;
    double best_bits; /* largest rate as printed, of both ways */
};

nw_rc nw_perftest_add_row(struct nw_perftest *test, const struct nw_imp_row *row, size_t line);
nw_rc nw_perftest_close(struct nw_perftest *test);

#endif
