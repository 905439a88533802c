/* NVIDIA GPUs through the driver API: memory, streams, time, peers. The kernels' launches are in
 * cuda_kernels.c. */
#include "kernels/dev_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "topo/pci_address.h"

struct nw_mark {
    struct cuda_dev *dev;
    struct CUevent_st *event;
};

#define CHECK(dev, call, ...)                                                                      \
    do {                                                                                           \
        const nw_cu_result check_code_ = (call);                                                   \
        if (check_code_ != NW_CU_SUCCESS)                                                          \
            return nw_cuda_fail((dev)->cu, check_code_, __VA_ARGS__);                              \
    } while (0)

static nw_rc cuda_count(int *count_out)
{
    const struct nw_cuda_api *cu;
    NW_TRY(nw_cuda_api_open(&cu));
    int count = 0;
    const nw_cu_result code = cu->cuDeviceGetCount(&count);
    if (code != NW_CU_SUCCESS)
        return nw_cuda_fail(cu, code, "cannot count the GPUs");
    if (count == 0) {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        return nw_fail(NW_ENODEV, "the NVIDIA driver shows no GPU to this process%s%.64s%s",
                       visible ? " (CUDA_VISIBLE_DEVICES is \"" : "", visible ? visible : "",
                       visible ? "\")" : "");
    }
    *count_out = count;
    return NW_OK;
}

nw_rc nw_cuda_enter(struct cuda_dev *dev)
{
    CHECK(dev, dev->cu->cuCtxSetCurrent(dev->context), "gpu %d: cannot enter its context",
          dev->base.index);
    return NW_OK;
}

static int attribute(const struct cuda_dev *dev, unsigned int which)
{
    int value = 0;
    return dev->cu->cuDeviceGetAttribute(&value, which, dev->device) == NW_CU_SUCCESS ? value : 0;
}

static void read_uuid(struct cuda_dev *dev)
{
    unsigned char u[16];
    if (dev->cu->cuDeviceGetUuid((struct CUuuid_st *)u, dev->device) != NW_CU_SUCCESS)
        return;
    char *text = dev->base.uuid;
    size_t length = (size_t)sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        length += (size_t)sprintf(text + length, "%s%02x",
                                  i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static nw_rc describe(struct cuda_dev *dev)
{
    struct nw_dev *base = &dev->base;
    const struct nw_cuda_api *cu = dev->cu;
    CHECK(dev, cu->cuDeviceGet(&dev->device, base->index), "gpu %d: cannot be opened", base->index);
    CHECK(dev, cu->cuDeviceGetName(base->name, sizeof base->name, dev->device),
          "gpu %d: its name cannot be read", base->index);
    char pci[32];
    if (cu->cuDeviceGetPCIBusId(pci, sizeof pci, dev->device) != NW_CU_SUCCESS ||
        nw_pci_normalise(pci, base->pci) != NW_OK)
        base->pci[0] = '\0';
    read_uuid(dev);
    size_t bytes = 0;
    CHECK(dev, cu->cuDeviceTotalMem(&bytes, dev->device), "gpu %d: its memory cannot be read",
          base->index);
    base->memory_bytes = bytes;
    base->clock_hz = (uint64_t)attribute(dev, NW_CU_ATTRIBUTE_CLOCK_RATE_KHZ) * 1000;
    base->sm_count = attribute(dev, NW_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    base->capability = 10 * attribute(dev, NW_CU_ATTRIBUTE_CAPABILITY_MAJOR) +
                       attribute(dev, NW_CU_ATTRIBUTE_CAPABILITY_MINOR);
    base->l2_bytes = (uint64_t)attribute(dev, NW_CU_ATTRIBUTE_L2_CACHE_BYTES);
    base->memory_bytes_per_s = 2.0 * attribute(dev, NW_CU_ATTRIBUTE_MEMORY_CLOCK_RATE_KHZ) * 1e3 *
                               attribute(dev, NW_CU_ATTRIBUTE_MEMORY_BUS_WIDTH_BITS) / 8;
    snprintf(base->library, sizeof base->library, "CUDA driver API %d.%d",
             cu->driver_version / 1000, cu->driver_version % 1000 / 10);
    snprintf(base->library_path, sizeof base->library_path, "%s", cu->path);
    base->simulated = cu->simulated;
    return NW_OK;
}

static void cuda_close(struct nw_dev *base)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    if (dev->context && nw_cuda_enter(dev) == NW_OK)
        nw_cuda_kernels_unload(dev);
    if (dev->context)
        dev->cu->cuDevicePrimaryCtxRelease(dev->device);
    free(dev);
}

static nw_rc open_context(struct cuda_dev *dev)
{
    NW_TRY(describe(dev));
    CHECK(dev, dev->cu->cuDevicePrimaryCtxRetain(&dev->context, dev->device),
          "gpu %d (%s): cannot make a context; another process may hold it exclusively, or its "
          "memory is full",
          dev->base.index, dev->base.name);
    NW_TRY(nw_cuda_enter(dev));
    return nw_cuda_kernels_load(dev);
}

static nw_rc cuda_open(int index, struct nw_dev **dev_out)
{
    const struct nw_cuda_api *cu;
    NW_TRY(nw_cuda_api_open(&cu));
    struct cuda_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return nw_fail(NW_ENOMEM, "no memory for gpu %d", index);
    dev->cu = cu;
    dev->base.ops = &nw_dev_cuda_ops;
    dev->base.index = index;
    const nw_rc rc = open_context(dev);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();
        cuda_close(&dev->base);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *dev_out = &dev->base;
    return NW_OK;
}

/* Memory */

static nw_rc cuda_alloc(struct nw_dev *base, nw_space space, uint64_t bytes, void **memory_out)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    char size[32];
    NW_TRY(nw_cuda_enter(dev));
    if (space == NW_SPACE_PINNED) {
        void *memory;
        CHECK(dev,
              dev->cu->cuMemHostAlloc(&memory, bytes ? bytes : 1,
                                      NW_CU_MEMHOSTALLOC_PORTABLE | NW_CU_MEMHOSTALLOC_DEVICEMAP),
              "gpu %d: %s of pinned host memory", base->index, nw_format_bytes(size, bytes));
        *memory_out = memory;
        return NW_OK;
    }
    nw_cu_ptr address;
    CHECK(dev, dev->cu->cuMemAlloc(&address, bytes ? bytes : 1), "gpu %d: %s of its memory",
          base->index, nw_format_bytes(size, bytes));
    *memory_out = (void *)(uintptr_t)address;
    return NW_OK;
}

static void cuda_free(struct nw_dev *base, nw_space space, void *memory)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    if (!memory || nw_cuda_enter(dev) != NW_OK)
        return;
    if (space == NW_SPACE_PINNED)
        dev->cu->cuMemFreeHost(memory);
    else
        dev->cu->cuMemFree((nw_cu_ptr)(uintptr_t)memory);
}

static nw_rc cuda_free_bytes(struct nw_dev *base, uint64_t *bytes_out)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    size_t free_bytes, total_bytes;
    NW_TRY(nw_cuda_enter(dev));
    CHECK(dev, dev->cu->cuMemGetInfo(&free_bytes, &total_bytes),
          "gpu %d: its free memory cannot be read", base->index);
    *bytes_out = free_bytes;
    return NW_OK;
}

/* Whole pages of the host, as the driver wants them. */
static nw_rc cuda_share(struct nw_dev *base, const void *memory, uint64_t bytes, int *fd_out,
                        uint64_t *offset_out)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = (uint64_t)(uintptr_t)memory;
    const uint64_t first = at / page * page, end = (at + bytes + page - 1) / page * page;
    int can = 0, fd = -1;

    NW_TRY(nw_cuda_enter(dev));
    if (dev->cu->cuMemGetHandleForAddressRange == NULL)
        return nw_fail(NW_ENOTSUP,
                       "gpu %d: the driver is older than CUDA 11.7, which brought dma-buf",
                       base->index);
    if (dev->cu->cuDeviceGetAttribute(&can, NW_CU_ATTRIBUTE_DMA_BUF_SUPPORTED, dev->device) !=
            NW_CU_SUCCESS ||
        can == 0)
        return nw_fail(NW_ENOTSUP,
                       "gpu %d: no dma-buf (it needs the open kernel modules of the NVIDIA driver)",
                       base->index);
    CHECK(dev,
          dev->cu->cuMemGetHandleForAddressRange(&fd, first, end - first,
                                                 NW_CU_MEM_RANGE_DMA_BUF_FD, 0),
          "gpu %d: its memory cannot be shared as a dma-buf", base->index);
    *fd_out = fd;
    *offset_out = at - first;
    return NW_OK;
}

/* Streams */

static nw_rc open_handles(struct nw_stream *stream)
{
    struct cuda_dev *dev = stream->dev;
    void *gate;
    NW_TRY(cuda_alloc(&dev->base, NW_SPACE_PINNED, sizeof *stream->gate, &gate));
    stream->gate = memset(gate, 0, sizeof *stream->gate);
    CHECK(dev, dev->cu->cuMemHostGetDevicePointer(&stream->gate_address, gate, 0),
          "gpu %d: cannot map the gate", dev->base.index);
    CHECK(dev, dev->cu->cuStreamCreate(&stream->handle, NW_CU_STREAM_NON_BLOCKING),
          "gpu %d: cannot make a stream", dev->base.index);
    return NW_OK;
}

static nw_rc cuda_stream_open(struct nw_dev *base, struct nw_stream **stream_out)
{
    struct nw_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return nw_fail(NW_ENOMEM, "no memory for a stream");
    stream->dev = nw_cuda_dev(base);
    const nw_rc rc = open_handles(stream);
    if (rc != NW_OK) {
        cuda_free(base, NW_SPACE_PINNED, stream->gate);
        free(stream);
        return rc;
    }
    *stream_out = stream;
    return NW_OK;
}

static void cuda_gate_release(struct nw_stream *stream)
{
    __atomic_store_n(&stream->gate->open, stream->held, __ATOMIC_RELEASE);
}

/* Spins for as long as short work takes, then looks every 50 us. */
static nw_cu_result poll_until(struct nw_stream *stream, double timeout_ns)
{
    const uint64_t start = nw_now_ns();
    for (;;) {
        const nw_cu_result code = stream->dev->cu->cuStreamQuery(stream->handle);
        const double waited = (double)(nw_now_ns() - start);
        if (code != NW_CU_NOT_READY || waited > timeout_ns)
            return code;
        if (waited > 200e3)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

static void cuda_stream_close(struct nw_stream *stream)
{
    if (!stream)
        return;
    struct cuda_dev *dev = stream->dev;
    cuda_gate_release(stream);
    if (nw_cuda_enter(dev) == NW_OK) {
        /* Work that does not end within 5 s hangs: leave it the few bytes that it may still read.
         */
        const nw_cu_result code = poll_until(stream, 5e9);
        dev->cu->cuStreamDestroy(stream->handle);
        if (code != NW_CU_NOT_READY)
            cuda_free(&dev->base, NW_SPACE_PINNED, stream->gate);
    }
    free(stream);
}

static nw_rc cuda_wait(struct nw_stream *stream, double timeout_ns)
{
    struct cuda_dev *dev = stream->dev;
    NW_TRY(nw_cuda_enter(dev));
    const nw_cu_result code = poll_until(stream, timeout_ns);
    if (code == NW_CU_NOT_READY)
        return nw_fail(NW_ETIMEOUT, "gpu %d: the stream is not done after %.3g s", dev->base.index,
                       timeout_ns * 1e-9);
    if (code != NW_CU_SUCCESS)
        return nw_cuda_fail(dev->cu, code, "gpu %d: work on a stream failed", dev->base.index);
    if (__atomic_exchange_n(&stream->gate->timed_out, 0, __ATOMIC_ACQ_REL) != 0)
        return nw_fail(NW_ETIMEOUT, "gpu %d: the gate was not opened within %.3g s and gave up",
                       dev->base.index, stream->held_timeout_ns * 1e-9);
    return NW_OK;
}

static nw_rc cuda_native(struct nw_stream *stream, void **handle_out)
{
    NW_TRY(nw_cuda_enter(stream->dev));
    *handle_out = stream->handle;
    return NW_OK;
}

/* Marks */

static nw_rc cuda_mark_open(struct nw_dev *base, struct nw_mark **mark_out)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    NW_TRY(nw_cuda_enter(dev));
    struct nw_mark *mark = calloc(1, sizeof *mark);
    if (!mark)
        return nw_fail(NW_ENOMEM, "no memory for a mark");
    mark->dev = dev;
    const nw_cu_result code = dev->cu->cuEventCreate(&mark->event, NW_CU_EVENT_DEFAULT);
    if (code != NW_CU_SUCCESS) {
        free(mark);
        return nw_cuda_fail(dev->cu, code, "gpu %d: cannot make a mark", base->index);
    }
    *mark_out = mark;
    return NW_OK;
}

static void cuda_mark_close(struct nw_mark *mark)
{
    if (!mark)
        return;
    if (nw_cuda_enter(mark->dev) == NW_OK)
        mark->dev->cu->cuEventDestroy(mark->event);
    free(mark);
}

static nw_rc cuda_mark_set(struct nw_stream *stream, struct nw_mark *mark)
{
    struct cuda_dev *dev = stream->dev;
    NW_TRY(nw_cuda_enter(dev));
    CHECK(dev, dev->cu->cuEventRecord(mark->event, stream->handle), "gpu %d: cannot set a mark",
          dev->base.index);
    return NW_OK;
}

static nw_rc cuda_follow(struct nw_stream *stream, struct nw_mark *mark)
{
    struct cuda_dev *dev = stream->dev;
    NW_TRY(nw_cuda_enter(dev));
    CHECK(dev, dev->cu->cuStreamWaitEvent(stream->handle, mark->event, 0),
          "gpu %d: cannot make a stream wait for a mark", dev->base.index);
    return NW_OK;
}

static nw_rc cuda_mark_elapsed(struct nw_mark *start, struct nw_mark *end, double *ns_out)
{
    struct cuda_dev *dev = start->dev;
    float ms;
    NW_TRY(nw_cuda_enter(dev));
    const nw_cu_result code = dev->cu->cuEventElapsedTime(&ms, start->event, end->event);
    if (code == NW_CU_NOT_READY || code == NW_CU_INVALID_HANDLE)
        return nw_fail(NW_EUSAGE, "gpu %d: a mark was not reached yet", dev->base.index);
    CHECK(dev, code, "gpu %d: cannot read the time between two marks", dev->base.index);
    *ns_out = (double)ms * 1e6;
    return NW_OK;
}

/* Peers */

static nw_rc cuda_peer_can(struct nw_dev *base, struct nw_dev *peer, bool *can_out)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    int can = 0;
    if (peer->ops == base->ops && peer->index != base->index)
        CHECK(dev, dev->cu->cuDeviceCanAccessPeer(&can, dev->device, nw_cuda_dev(peer)->device),
              "gpu %d: cannot ask for access to gpu %d", base->index, peer->index);
    *can_out = can != 0;
    return NW_OK;
}

/* Access that another library of the process has turned on carries its traffic: it stays. Asked by
 * turning it on, as the driver has no call that only asks. */
static nw_rc peer_disable(struct cuda_dev *dev, struct cuda_dev *peer)
{
    const uint64_t bit = (uint64_t)1 << peer->base.index % 64;
    nw_cu_result code = NW_CU_SUCCESS;
    if (!(dev->peers & bit))
        code = dev->cu->cuCtxEnablePeerAccess(peer->context, 0);
    if (code == NW_CU_PEER_ACCESS_ALREADY_ENABLED)
        return nw_fail(NW_ENOTSUP,
                       "gpu %d: access to gpu %d stays on, another library of this process uses it",
                       dev->base.index, peer->base.index);
    if (code != NW_CU_SUCCESS) /* it cannot be on */
        return NW_OK;
    dev->peers &= ~bit;
    code = dev->cu->cuCtxDisablePeerAccess(peer->context);
    if (code != NW_CU_PEER_ACCESS_NOT_ENABLED)
        CHECK(dev, code, "gpu %d: cannot turn access to gpu %d off", dev->base.index,
              peer->base.index);
    return NW_OK;
}

static nw_rc cuda_peer_enable(struct nw_dev *base, struct nw_dev *peer, bool enable)
{
    struct cuda_dev *dev = nw_cuda_dev(base);
    if (peer->ops != base->ops)
        return nw_fail(NW_EUSAGE, "gpu %d: %s is no peer of it", base->index, peer->name);
    NW_TRY(nw_cuda_enter(dev));
    if (!enable)
        return peer_disable(dev, nw_cuda_dev(peer));
    const nw_cu_result code = dev->cu->cuCtxEnablePeerAccess(nw_cuda_dev(peer)->context, 0);
    if (code == NW_CU_PEER_ACCESS_ALREADY_ENABLED)
        return NW_OK;
    CHECK(dev, code, "gpu %d: cannot turn access to gpu %d on", base->index, peer->index);
    dev->peers |= (uint64_t)1 << peer->index % 64;
    return NW_OK;
}

/* Copy engines */

static nw_rc cuda_copy(struct nw_stream *stream, void *to, const void *from, uint64_t bytes)
{
    struct cuda_dev *dev = stream->dev;
    NW_TRY(nw_cuda_enter(dev));
    CHECK(dev,
          dev->cu->cuMemcpyAsync((nw_cu_ptr)(uintptr_t)to, (nw_cu_ptr)(uintptr_t)from, bytes,
                                 stream->handle),
          "gpu %d: cannot queue a copy of %llu bytes", dev->base.index, (unsigned long long)bytes);
    return NW_OK;
}

static nw_rc cuda_copy_peer(struct nw_stream *stream, void *to, struct nw_dev *to_dev,
                            const void *from, struct nw_dev *from_dev, uint64_t bytes)
{
    struct cuda_dev *dev = stream->dev;
    if (to_dev->ops != dev->base.ops || from_dev->ops != dev->base.ops)
        return nw_fail(NW_EUSAGE, "gpu %d: a copy between devices of two kinds", dev->base.index);
    NW_TRY(nw_cuda_enter(dev));
    CHECK(dev,
          dev->cu->cuMemcpyPeerAsync((nw_cu_ptr)(uintptr_t)to, nw_cuda_dev(to_dev)->context,
                                     (nw_cu_ptr)(uintptr_t)from, nw_cuda_dev(from_dev)->context,
                                     bytes, stream->handle),
          "gpu %d to gpu %d: cannot queue a copy of %llu bytes", from_dev->index, to_dev->index,
          (unsigned long long)bytes);
    return NW_OK;
}

static nw_rc cuda_set(struct nw_stream *stream, void *to, unsigned char value, uint64_t bytes)
{
    struct cuda_dev *dev = stream->dev;
    NW_TRY(nw_cuda_enter(dev));
    CHECK(dev, dev->cu->cuMemsetD8Async((nw_cu_ptr)(uintptr_t)to, value, bytes, stream->handle),
          "gpu %d: cannot queue a fill of %llu bytes", dev->base.index, (unsigned long long)bytes);
    return NW_OK;
}

const struct nw_dev_ops nw_dev_cuda_ops = {
    .name = "cuda",
    .title = "NVIDIA GPUs",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .free_bytes = cuda_free_bytes,
    .share = cuda_share,
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .wait = cuda_wait,
    .follow = cuda_follow,
    .native = cuda_native,
    .mark_open = cuda_mark_open,
    .mark_close = cuda_mark_close,
    .mark_set = cuda_mark_set,
    .mark_elapsed = cuda_mark_elapsed,
    .gate_hold = nw_cuda_gate_hold,
    .graph_begin = nw_cuda_graph_begin,
    .graph_end = nw_cuda_graph_end,
    .graph_launch = nw_cuda_graph_launch,
    .graph_close = nw_cuda_graph_close,
    .gate_release = cuda_gate_release,
    .peer_can = cuda_peer_can,
    .peer_enable = cuda_peer_enable,
    .copy = cuda_copy,
    .copy_peer = cuda_copy_peer,
    .set = cuda_set,
    .kernel_copy = nw_cuda_kernel_copy,
    .kernel_read = nw_cuda_kernel_read,
    .kernel_write = nw_cuda_kernel_write,
    .reduce = nw_cuda_reduce,
    .fill = nw_cuda_fill,
    .verify = nw_cuda_verify,
    .gemm = nw_cuda_gemm,
};
