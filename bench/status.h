/* Public. Where a rank is right now, for somebody outside its process: the supervising parent reads
 * it when the rank died or hangs.
 *
 * The struct lies in memory that both share and begins as zeroes. One writer (the rank), any number
 * of readers; the text is guarded by a sequence lock of relaxed atomic words, so a reader never
 * sees half a text and the writer never waits.
 *
 *     nw_bench_status_write(status, nw_now_ns() + 20e9, "all_reduce 1 MiB, timing");
 */
#ifndef NW_BENCH_STATUS_H
#define NW_BENCH_STATUS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/lifeline.h"

#define NW_BENCH_STATUS_WORDS 24
#define NW_BENCH_STATUS_TEXT  (NW_BENCH_STATUS_WORDS * 8)

struct nw_bench_status {
    _Atomic uint64_t
        deadline_ns; /* of nw_now_ns(): a rank still in this phase then hangs; 0: none */
    _Atomic uint64_t done, total; /* measurements finished and planned */
    _Atomic uint64_t records;     /* handed out (rank 0) */
    _Atomic uint32_t sequence;    /* odd: the text is being written */
    _Atomic uint64_t words[NW_BENCH_STATUS_WORDS];
    struct nw_lifeline lifeline;
};

/* `status` NULL: nothing is done. A longer text is cut. */
void nw_bench_status_write(struct nw_bench_status *status, uint64_t deadline_ns, const char *text);
void nw_bench_status_deadline(struct nw_bench_status *status, uint64_t deadline_ns);
/* The text as it was last written; "" before that, and when the writer died in mid-write. */
void nw_bench_status_read(const struct nw_bench_status *status, char text[NW_BENCH_STATUS_TEXT],
                          uint64_t *deadline_ns_out);

#endif
