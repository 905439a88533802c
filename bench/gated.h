/* Public. Device work timed by the device: parked behind a closed gate with a mark on either side,
 * let go when every rank has its own in the queue. The time between the marks has no launch in it
 * and the ranks' work starts together.
 *
 *     const struct nw_gated gated = {.comm = comm, .dev = dev, .stream = stream, …};
 *     NW_TRY(nw_gated_time(&gated, index, calls, &ns));      // collective over comm
 */
#ifndef NW_BENCH_GATED_H
#define NW_BENCH_GATED_H

#include "collectives/comm.h"

/* A driver queues about a thousand launches; one more would wait for the gate, on the host. */
#define NW_GATED_CALLS_MAX 256

struct nw_gated {
    struct nw_comm *comm; /* of the barrier before the gates open */
    struct nw_dev *dev;
    struct nw_stream *stream;    /* NULL: this rank has nothing to do but the barrier */
    struct nw_mark *start, *end; /* the caller's, of `dev` */
    /* Queue, behind the gate and before the first mark, what makes all ranks' streams start
     * together: hosts
     * leave a barrier apart from each other. NULL: nothing is
     * shared. */
    nw_rc (*meet)(void *user);
    /* Queue the index-th call on `stream` (and on streams that follow `start` and that `stream`
     * follows). */
    nw_rc (*queue)(void *user, uint64_t index);
    void *user;
    /* Until the work is done; NULL: ops->wait of the stream. */
    nw_rc (*finish)(void *user, double timeout_ns);
    double timeout_ns;
    bool graph; /* the calls of `stream` as one graph: one launch, whatever their number */
};

/* Of all `calls` calls together; 0 where there is nothing to do. */
nw_rc nw_gated_time(const struct nw_gated *gated, uint64_t index, uint32_t calls, double *ns_out);

#endif
