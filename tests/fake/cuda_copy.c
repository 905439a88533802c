/* Copies by the copy engines, fills, and how long transfers last. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake/fault.h"
#include "tests/fake/share.h"

static double path_us(const struct fk_path *path, double bytes)
{
    return path->alpha_us + bytes / path->bytes_per_s * 1e6;
}

/* The part of a GPU's NVLinks that is up; 1 without NVLink. */
static double links_up(const struct fk_gpu *gpu)
{
    int up = 0;
    for (int i = 0; i < gpu->links; i++)
        up += gpu->link_up[i];
    return gpu->links ? (double)up / gpu->links : 1;
}

/* Between two GPUs; without NVLinks, or with none left, by `staged` as without peer access. */
static struct fk_path between(const struct fk_gpu *a, const struct fk_gpu *b, bool direct)
{
    const double up = links_up(a) < links_up(b) ? links_up(a) : links_up(b);
    const struct fk_gpu *slower = a->staged.bytes_per_s < b->staged.bytes_per_s ? a : b;
    struct fk_path path = direct && up > 0 ? a->p2p : slower->staged;
    if (direct && up > 0)
        path.bytes_per_s *= up;
    return path;
}

static const struct fk_gpu *gpu_at(int ordinal)
{
    return fk_gpu_of(fk_context_at(ordinal));
}

static struct fk_path copy_path(const struct CUctx_st *context, const struct fk_place *to,
                                const struct fk_place *from)
{
    const struct fk_gpu *gpu = fk_gpu_of(context);
    if (to->space == FK_DEVICE && from->space == FK_DEVICE) {
        if (to->ordinal == from->ordinal)
            return gpu_at(to->ordinal)->d2d;
        const unsigned enabled = fk_context_at(to->ordinal)->peers >> from->ordinal |
                                 fk_context_at(from->ordinal)->peers >> to->ordinal;
        return between(gpu_at(from->ordinal), gpu_at(to->ordinal), enabled & 1);
    }
    if (to->space == FK_PAGEABLE || from->space == FK_PAGEABLE)
        return gpu->pageable;
    return to->space == FK_DEVICE ? gpu->h2d : gpu->d2h;
}

struct copy_op {
    void *to;
    const void *from;
    void *staged; /* a copy of a small pageable source, made at the call */
    size_t bytes;
    struct fk_path path;
    int uplink; /* FK_TO_DEVICE, FK_FROM_DEVICE; -1: not over the bus */
};

static void fail(struct CUstream_st *stream)
{
    fk_stream_context(stream)->error = CU_ILLEGAL_ADDRESS;
}

/* Smaller ones are of a library's or program's own bookkeeping. */
#define FAULT_BYTES 4096

/* FAKE_FAULT of `copy`; returns how much longer it lasts. */
static double copy_faults(unsigned char *to, size_t bytes)
{
    static atomic_long copies;
    if (bytes < FAULT_BYTES)
        return 1;
    const struct fk_faults faults =
        fk_faults_of("copy", fk_process_rank(), atomic_fetch_add(&copies, 1) + 1, 0);
    while (fk_fault_has(&faults, FK_FAULT_HANG))
        pause();
    if (fk_fault_has(&faults, FK_FAULT_CORRUPT)) {
        const size_t at = (size_t)(faults.corrupt_at * (double)bytes);
        to[at < bytes ? at : bytes - 1] ^= 1;
    }
    return faults.slow_factor;
}

static void run_copy(struct fk_op *op, struct CUstream_st *stream)
{
    struct copy_op *o = (struct copy_op *)(void *)op->data;
    void *const to = fk_view(o->to, o->bytes, "a copy");
    const void *const from = o->staged ? o->staged : fk_look(o->from, o->bytes, "a copy");
    double longer = 1;
    if (o->bytes > 0 && to && from) {
        memmove(to, from, o->bytes);
        longer = copy_faults(to, o->bytes);
    } else if (o->bytes > 0) {
        fail(stream);
    }
    free(o->staged);
    if (o->uplink >= 0)
        o->path.bytes_per_s = fk_share_rate(stream, o->uplink, o->path.bytes_per_s);
    fk_span(stream, op, o->bytes ? longer * path_us(&o->path, (double)o->bytes) : 0);
}

/* "Asynchronous with respect to the host" (CUDA driver API, synchronisation behaviour of copies):
 * from pageable memory up to 64 KiB is staged at the call, more is waited for; to pageable memory
 * always. */
#define STAGED_BYTES 65536

FK_EXPORT fk_result cuMemcpyAsync(fk_ptr to, fk_ptr from, size_t bytes, struct CUstream_st *stream)
{
    struct copy_op o = {
        .to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes};
    const struct fk_place t = fk_where(o.to), f = fk_where(o.from);
    struct CUctx_st *context = fk_context();
    if (!context)
        return CU_INVALID_CONTEXT;
    if (bytes > t.bytes || bytes > f.bytes)
        return CU_INVALID_VALUE;
    o.path = copy_path(context, &t, &f);
    o.uplink = t.space == f.space     ? -1
               : t.space == FK_DEVICE ? FK_TO_DEVICE
               : f.space == FK_DEVICE ? FK_FROM_DEVICE
                                      : -1;
    bool wait = t.space == FK_PAGEABLE;
    if (f.space == FK_PAGEABLE && t.space != FK_PAGEABLE) {
        wait = bytes > STAGED_BYTES;
        if (!wait && bytes > 0) {
            o.staged = malloc(bytes);
            if (!o.staged)
                return CU_OUT_OF_MEMORY;
            memcpy(o.staged, o.from, bytes);
        }
    }
    if (o.uplink >= 0 && bytes > 0)
        fk_share_queue(fk_stream(stream), o.uplink);
    const fk_result code = fk_push(stream, run_copy, NULL, &o, sizeof o);
    return code == CU_OK && wait && bytes > 0 ? fk_wait(fk_stream(stream)) : code;
}

FK_EXPORT fk_result cuMemcpyPeerAsync(fk_ptr to, struct CUctx_st *to_context, fk_ptr from,
                                      struct CUctx_st *from_context, size_t bytes,
                                      struct CUstream_st *stream)
{
    const struct fk_place t = fk_where((const void *)(uintptr_t)to),
                          f = fk_where((const void *)(uintptr_t)from);
    if (!to_context || !from_context)
        return CU_INVALID_CONTEXT;
    if (t.space != FK_DEVICE || f.space != FK_DEVICE || t.ordinal != to_context->ordinal ||
        f.ordinal != from_context->ordinal)
        return CU_INVALID_VALUE;
    return cuMemcpyAsync(to, from, bytes, stream);
}

struct set_op {
    void *to;
    size_t bytes;
    double us;
    unsigned char value;
};

static void run_set(struct fk_op *op, struct CUstream_st *stream)
{
    const struct set_op *o = (const struct set_op *)(void *)op->data;
    void *to = fk_view(o->to, o->bytes, "a fill");
    if (to)
        memset(to, o->value, o->bytes);
    else
        fail(stream);
    fk_span(stream, op, o->us);
}

FK_EXPORT fk_result cuMemsetD8Async(fk_ptr to, unsigned char value, size_t bytes,
                                    struct CUstream_st *stream)
{
    struct set_op o = {.to = (void *)(uintptr_t)to, .bytes = bytes, .value = value};
    const struct fk_place place = fk_where(o.to);
    struct fk_traffic traffic = {.context = fk_context()};
    if (!traffic.context)
        return CU_INVALID_CONTEXT;
    if (bytes > place.bytes || place.space == FK_PAGEABLE)
        return CU_INVALID_VALUE;
    fk_traffic_add(&traffic, o.to, (double)bytes);
    o.us = fk_traffic_us(&traffic);
    return fk_push(stream, run_set, NULL, &o, sizeof o);
}

void fk_traffic_add(struct fk_traffic *traffic, const void *address, double bytes)
{
    const struct fk_place place = fk_where(address);
    const struct fk_gpu *gpu = fk_gpu_of(traffic->context);
    if (place.space == FK_DEVICE && place.ordinal == traffic->context->ordinal) {
        traffic->local_bytes += bytes;
        return;
    }
    const struct fk_path path =
        place.space == FK_DEVICE ? between(gpu, gpu_at(place.ordinal), true) : gpu->h2d;
    traffic->remote_us += bytes / path.bytes_per_s * 1e6;
}

/* A kernel's floor: its own memory at 2 transfers a clock, or the wires, whichever lasts longer. */
double fk_traffic_us(const struct fk_traffic *traffic)
{
    const struct fk_gpu *gpu = fk_gpu_of(traffic->context);
    const double rate = 2e6 * gpu->memory_clock_mhz * gpu->memory_bus_bits / 8;
    const double local_us = traffic->local_bytes / (rate * gpu->memory_efficiency) * 1e6;
    return gpu->kernel_us + (local_us > traffic->remote_us ? local_us : traffic->remote_us);
}
