/* Public. One device — a GPU, or the host's memory as its double — behind a table of operations.
 *
 * A device belongs to whoever opened it and outlives its streams, marks and memory; every _close
 * and free accepts NULL. Memory and marks stay until the work that uses them is done. Work on a
 * stream is done in order and later than the call: arguments are checked at the call, failures of
 * the work itself come out of wait(). A device may be used by one thread at a time, different
 * devices by different ones.
 *
 *     struct nw_dev *dev;
 *     NW_TRY(nw_dev_open_best(0, &dev));             // a GPU, else the host
 *     NW_TRY(dev->ops->gate_hold(stream, 1e9));      // the work below starts at gate_release
 *     NW_TRY(dev->ops->mark_set(stream, start));
 *     NW_TRY(dev->ops->copy(stream, to, from, bytes));
 *     NW_TRY(dev->ops->mark_set(stream, end));
 *     dev->ops->gate_release(stream);
 *     NW_TRY(dev->ops->wait(stream, 10e9));
 *     NW_TRY(dev->ops->mark_elapsed(start, end, &ns));
 */
#ifndef NW_KERNELS_DEV_H
#define NW_KERNELS_DEV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"

struct nw_dev;
struct nw_stream; /* work in order */
struct nw_mark;   /* a point in a stream, with its time */
struct nw_graph;  /* work that was captured from a stream */

typedef enum {
    NW_SPACE_DEVICE, /* the device's own memory; the host backend's is ordinary memory */
    NW_SPACE_PINNED, /* host memory that the device reads and writes over the bus */
} nw_space;

struct nw_dev_ops {
    const char *name;  /* key: "cuda" "host" */
    const char *title; /* for people */

    nw_rc (*count)(int *count_out); /* NW_ENODEV with the reason, or at least 1 */
    nw_rc (*open)(int index, struct nw_dev **dev_out);
    void (*close)(struct nw_dev *dev);

    nw_rc (*alloc)(struct nw_dev *dev, nw_space space, uint64_t bytes, void **memory_out);
    void (*free)(struct nw_dev *dev, nw_space space, void *memory);
    nw_rc (*free_bytes)(struct nw_dev *dev, uint64_t *bytes_out); /* of the device's memory */
    /* A part of the device's memory as a dma-buf, which other devices' drivers can map: a file that
     * the caller closes, and where in it `memory` begins. NULL: the backend has none. NW_ENOTSUP:
     * the driver or the GPU has none. */
    nw_rc (*share)(struct nw_dev *dev, const void *memory, uint64_t bytes, int *fd_out,
                   uint64_t *offset_out);

    nw_rc (*stream_open)(struct nw_dev *dev, struct nw_stream **stream_out);
    void (*stream_close)(struct nw_stream *stream); /* waits for its work; opens its gates */
    /* Until the stream's work is done. NW_ETIMEOUT: it is not, and goes on; or a gate gave up. */
    nw_rc (*wait)(struct nw_stream *stream, double timeout_ns);
    nw_rc (*follow)(struct nw_stream *stream, struct nw_mark *mark); /* later work waits for it */
    /* For other libraries that queue work on the stream: makes its device the calling thread's
     * current one and gives the vendor's own handle (CUstream). NULL: the backend has none. */
    nw_rc (*native)(struct nw_stream *stream, void **handle_out);

    nw_rc (*mark_open)(struct nw_dev *dev, struct nw_mark **mark_out);
    void (*mark_close)(struct nw_mark *mark);
    nw_rc (*mark_set)(struct nw_stream *stream, struct nw_mark *mark);
    /* Both reached, else NW_EUSAGE. */
    nw_rc (*mark_elapsed)(struct nw_mark *start, struct nw_mark *end, double *ns_out);

    /* The stream stands still until release, or until `timeout_ns` have passed, which wait() then
     * reports. One gate a stream at a time. */
    nw_rc (*gate_hold)(struct nw_stream *stream, double timeout_ns);
    void (*gate_release)(struct nw_stream *stream);

    /* What is queued between begin and end is not done but kept, to be queued again as one, by
     * launch, any number of times. No wait, gate or mark in between. NULL: the backend has none;
     * NW_ENOTSUP of begin: the driver has none. An end that fails has ended it all the same. */
    nw_rc (*graph_begin)(struct nw_stream *stream);
    nw_rc (*graph_end)(struct nw_stream *stream, struct nw_graph **graph_out);
    nw_rc (*graph_launch)(struct nw_stream *stream, struct nw_graph *graph);
    void (*graph_close)(struct nw_graph *graph); /* its launches are done */

    /* Access of `dev`'s kernels and copies to the memory of `peer`. Turning off what another
     * library has turned on: NW_ENOTSUP, it stays. */
    nw_rc (*peer_can)(struct nw_dev *dev, struct nw_dev *peer, bool *can_out);
    nw_rc (*peer_enable)(struct nw_dev *dev, struct nw_dev *peer, bool enable);

    /* By the copy engines. Pointers of any space; between devices: copy_peer. */
    nw_rc (*copy)(struct nw_stream *stream, void *to, const void *from, uint64_t bytes);
    nw_rc (*copy_peer)(struct nw_stream *stream, void *to, struct nw_dev *to_dev, const void *from,
                       struct nw_dev *from_dev, uint64_t bytes);
    nw_rc (*set)(struct nw_stream *stream, void *to, unsigned char value, uint64_t bytes);

    /* By the multiprocessors: kernels/kernels.h says what each does. */
    nw_rc (*kernel_copy)(struct nw_stream *stream, void *to, const void *from, uint64_t bytes);
    nw_rc (*kernel_read)(struct nw_stream *stream, const void *from, uint64_t bytes,
                         uint32_t *fold);
    nw_rc (*kernel_write)(struct nw_stream *stream, void *to, uint64_t bytes, uint32_t value);
    /* NW_FLOAT, NW_HALF, NW_BFLOAT16, NW_INT32 */
    nw_rc (*reduce)(struct nw_stream *stream, void *to, const struct nw_reduce_inputs *inputs,
                    uint64_t count, nw_dtype dtype);
    nw_rc (*fill)(struct nw_stream *stream, void *to, uint64_t count,
                  const struct nw_pattern *pattern);
    nw_rc (*verify)(struct nw_stream *stream, const void *buffer, uint64_t count,
                    const struct nw_pattern *pattern, struct nw_verdict *verdict);
    nw_rc (*gemm)(struct nw_stream *stream, const struct nw_gemm *gemm);
};

struct nw_dev {
    const struct nw_dev_ops *ops;
    int index;
    char name[64];         /* "NVIDIA H200"; of the host: the CPU's model */
    char uuid[48];         /* "GPU-…"; "" for the host */
    char pci[16];          /* "0000:17:00.0"; "" for the host */
    uint64_t memory_bytes; /* 0: unknown */
    uint64_t clock_hz;     /* the highest of the multiprocessors; 0: unknown */
    int sm_count;          /* multiprocessors; of the host: CPUs that this process may use */
    int capability;        /* 90: compute capability 9.0; 0: no GPU */
    uint64_t l2_bytes;     /* 0: unknown */
    /* By the driver's memory clock and bus width: 2 transfers a clock; 0: unknown, as from CUDA 13
     * on some drivers. A ceiling, never a result. */
    double memory_bytes_per_s;
    char library[64];       /* "CUDA driver API 13.0" */
    char library_path[256]; /* the file that was loaded; "" for the host */
    bool simulated;         /* a double of the vendor's library: no measurement of a machine */
};

struct nw_dev_backend {
    const char *name, *title;
    const struct nw_dev_ops *ops; /* NULL: not built in */
    const char *absent;           /* then: why */
};
/* In order of preference; ends with name NULL. */
extern const struct nw_dev_backend nw_dev_backends[];

/* NW_EUSAGE: no such backend. NW_ENODEV: not built in, no driver, no GPU, each with its sentence.
 */
nw_rc nw_dev_open(const char *backend, int index, struct nw_dev **dev_out);
/* The first backend that has a device of that index; the host always has number 0. */
nw_rc nw_dev_open_best(int index, struct nw_dev **dev_out);
void nw_dev_close(struct nw_dev *dev);
/* How many devices; 0 with the reason in why_out (may be NULL). */
int nw_dev_count(const char *backend, char *why_out, size_t why_size);

#endif
