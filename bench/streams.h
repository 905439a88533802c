/* Private to bench/. Streams one way from ranks of some hosts to ranks of others, over the run's
 * own communicator: what bisect and incast are measured by where no NIC does RDMA. Each rank of the
 * one host sends to the rank of its number on the other.
 *
 *     NW_TRY(nw_agree(comm, nw_streams_open(bench, "bisect", bytes, &streams)));
 *     // in a walk of nw_bench_series:
 *     nw_streams_clear(&streams);
 *     nw_streams_add(&streams, from_host, to_host, group);
 *     NW_TRY(nw_streams_unit(&streams, "send", groups, "all at once", rates));
 *     nw_streams_close(&streams);
 */
#ifndef NW_BENCH_STREAMS_H
#define NW_BENCH_STREAMS_H

#include "bench/case.h"

struct nw_streams {
    struct nw_bench *bench;
    const char *case_name;
    uint64_t bytes;                                  /* of a message; a multiple of 8 */
    int *index_in_host, *to_of_rank, *group_of_rank; /* of each rank; -1: nobody, none */
    struct nw_record *records;                       /* a group each */
    const struct nw_record **kept;
    struct nw_message *messages; /* this rank's, of one call */
};

/* Not collective. Closed also when it fails. */
nw_rc nw_streams_open(struct nw_bench *bench, const char *case_name, uint64_t bytes,
                      struct nw_streams *streams_out);
void nw_streams_close(struct nw_streams *streams);

void nw_streams_clear(struct nw_streams *streams);
/* A rank sends to one other, and either sends or receives; of a group a record is made. */
void nw_streams_add(struct nw_streams *streams, int from_host, int to_host, int group);
/* `rates` (of the groups; on rank 0 what was measured, all streams together, NAN: not) may be NULL.
 * Collective. */
nw_rc nw_streams_unit(struct nw_streams *streams, const char *name, int groups, const char *what,
                      double *rates);

#endif
