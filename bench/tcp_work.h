/* Private to bench/. Data over a TCP link as work that nw_measure times: every word is known, so
 * that whoever receives can compare. */
#ifndef NW_BENCH_TCP_WORK_H
#define NW_BENCH_TCP_WORK_H

#include "bench/measure.h"
#include "collectives/tcp.h"

struct nw_tcp_work {
    struct nw_work work;      /* first */
    struct nw_tcp_link *link; /* NULL: this rank is idle */
    bool sends, both;         /* both: message about message, the other way each time */
    int from_rank;
    uint64_t *data;
    uint64_t word_count;
};

/* `data` has `bytes`, a multiple of 8; link, sends and from_rank are set when it is connected.
 * `both`: for the time of a message. */
struct nw_tcp_work nw_tcp_work_of(uint64_t *data, uint64_t bytes, bool both);

#endif
