/* Private to kernels/. The host device's streams: a worker thread each, which runs tasks in order.
 */
#ifndef NW_KERNELS_HOST_STREAM_H
#define NW_KERNELS_HOST_STREAM_H

#include "kernels/dev.h"

/* What a task needs is copied into it; the pointers in it are the caller's. */
struct host_task {
    struct host_task *next;
    void (*run)(struct nw_stream *stream, const struct host_task *task);
    void *to;
    const void *from;
    uint64_t bytes; /* or elements */
    uint64_t value; /* a byte, a word, a ticket, a type */
    uint64_t timeout_ns;
    union {
        struct nw_reduce_inputs inputs;
        struct nw_pattern pattern;
        struct nw_gemm gemm;
    } u;
};

/* Queues a copy of *task. */
nw_rc nw_host_push(struct nw_stream *stream, const struct host_task *task);

nw_rc nw_host_stream_open(struct nw_dev *dev, struct nw_stream **stream_out);
void nw_host_stream_close(struct nw_stream *stream);
nw_rc nw_host_wait(struct nw_stream *stream, double timeout_ns);
nw_rc nw_host_follow(struct nw_stream *stream, struct nw_mark *mark);
nw_rc nw_host_mark_open(struct nw_dev *dev, struct nw_mark **mark_out);
void nw_host_mark_close(struct nw_mark *mark);
nw_rc nw_host_mark_set(struct nw_stream *stream, struct nw_mark *mark);
nw_rc nw_host_mark_elapsed(struct nw_mark *start, struct nw_mark *end, double *ns_out);
nw_rc nw_host_gate_hold(struct nw_stream *stream, double timeout_ns);
void nw_host_gate_release(struct nw_stream *stream);

#endif
