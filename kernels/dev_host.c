/* The host as a device: its memory, its CPUs, a worker thread a stream. It runs the twins, and it
 * is the double of a GPU for everything above: work is as asynchronous and as ordered as there. */
#include "kernels/backends.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/host_stream.h"

static nw_rc host_count(int *count_out)
{
    *count_out = 1;
    return NW_OK;
}

static void read_cpu_name(char *name, size_t size)
{
    snprintf(name, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon && colon[1] == ' ') {
            snprintf(name, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    fclose(file);
}

static nw_rc host_open(int index, struct nw_dev **dev_out)
{
    struct nw_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return nw_fail(NW_ENOMEM, "no memory for the host device");
    dev->ops = &nw_dev_host_ops;
    dev->index = index;
    read_cpu_name(dev->name, sizeof dev->name);
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0)
        dev->memory_bytes = (uint64_t)pages * (uint64_t)page_bytes;
    cpu_set_t cpus;
    dev->sm_count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    snprintf(dev->library, sizeof dev->library, "host memory");
    *dev_out = dev;
    return NW_OK;
}

static void host_close(struct nw_dev *dev)
{
    free(dev);
}

static nw_rc host_alloc(struct nw_dev *dev, nw_space space, uint64_t bytes, void **memory_out)
{
    (void)space;
    void *memory = NULL;
    /* Linux promises more than it has; what cannot fit at all is refused here. */
    if ((dev->memory_bytes && bytes > dev->memory_bytes) ||
        posix_memalign(&memory, 4096, bytes ? bytes : 1) != 0)
        return nw_fail(NW_ENOMEM, "host: no memory for a buffer of %llu bytes",
                       (unsigned long long)bytes);
    *memory_out = memory;
    return NW_OK;
}

static void host_free(struct nw_dev *dev, nw_space space, void *memory)
{
    (void)dev;
    (void)space;
    free(memory);
}

static nw_rc host_free_bytes(struct nw_dev *dev, uint64_t *bytes_out)
{
    (void)dev;
    const long pages = sysconf(_SC_AVPHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages < 0 || page_bytes < 0)
        return nw_fail(NW_EIO, "host: the free memory cannot be read");
    *bytes_out = (uint64_t)pages * (uint64_t)page_bytes;
    return NW_OK;
}

/* Peers: the host has one memory. */

static nw_rc host_peer_can(struct nw_dev *dev, struct nw_dev *peer, bool *can_out)
{
    *can_out = dev->ops == peer->ops;
    return NW_OK;
}

static nw_rc host_peer_enable(struct nw_dev *dev, struct nw_dev *peer, bool enable)
{
    (void)dev;
    (void)peer;
    (void)enable;
    return NW_OK;
}

/* Copies and kernels */

static void run_copy(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    nw_copy_host(task->to, task->from, task->bytes);
}

static nw_rc host_copy(struct nw_stream *stream, void *to, const void *from, uint64_t bytes)
{
    return nw_host_push(
        stream, &(struct host_task){.run = run_copy, .to = to, .from = from, .bytes = bytes});
}

static nw_rc host_copy_peer(struct nw_stream *stream, void *to, struct nw_dev *to_dev,
                            const void *from, struct nw_dev *from_dev, uint64_t bytes)
{
    (void)to_dev;
    (void)from_dev;
    return host_copy(stream, to, from, bytes);
}

static void run_set(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    memset(task->to, (int)task->value, task->bytes);
}

static nw_rc host_set(struct nw_stream *stream, void *to, unsigned char value, uint64_t bytes)
{
    return nw_host_push(
        stream, &(struct host_task){.run = run_set, .to = to, .value = value, .bytes = bytes});
}

static void run_read(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    nw_read_host(task->from, task->bytes, task->to);
}

static nw_rc host_kernel_read(struct nw_stream *stream, const void *from, uint64_t bytes,
                              uint32_t *fold)
{
    return nw_host_push(
        stream, &(struct host_task){.run = run_read, .to = fold, .from = from, .bytes = bytes});
}

static void run_write(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    nw_write_host(task->to, task->bytes, (uint32_t)task->value);
}

static nw_rc host_kernel_write(struct nw_stream *stream, void *to, uint64_t bytes, uint32_t value)
{
    return nw_host_push(
        stream, &(struct host_task){.run = run_write, .to = to, .value = value, .bytes = bytes});
}

static void run_reduce(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    nw_reduce_host(task->to, &task->u.inputs, task->bytes, (nw_dtype)task->value);
}

static nw_rc host_reduce(struct nw_stream *stream, void *to, const struct nw_reduce_inputs *inputs,
                         uint64_t count, nw_dtype dtype)
{
    NW_TRY(nw_check_reduce(inputs, dtype));
    return nw_host_push(
        stream,
        &(struct host_task){
            .run = run_reduce, .to = to, .bytes = count, .value = dtype, .u.inputs = *inputs});
}

static void run_fill(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    nw_fill_host(task->to, task->bytes, &task->u.pattern);
}

static nw_rc host_fill(struct nw_stream *stream, void *to, uint64_t count,
                       const struct nw_pattern *pattern)
{
    NW_TRY(nw_check_pattern(pattern));
    return nw_host_push(
        stream,
        &(struct host_task){.run = run_fill, .to = to, .bytes = count, .u.pattern = *pattern});
}

static void run_verify(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    nw_verify_host(task->from, task->bytes, &task->u.pattern, task->to);
}

static nw_rc host_verify(struct nw_stream *stream, const void *buffer, uint64_t count,
                         const struct nw_pattern *pattern, struct nw_verdict *verdict)
{
    NW_TRY(nw_check_pattern(pattern));
    return nw_host_push(stream, &(struct host_task){.run = run_verify,
                                                    .to = verdict,
                                                    .from = buffer,
                                                    .bytes = count,
                                                    .u.pattern = *pattern});
}

static void run_gemm(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    nw_gemm_host(&task->u.gemm);
}

static nw_rc host_gemm(struct nw_stream *stream, const struct nw_gemm *gemm)
{
    NW_TRY(nw_check_gemm(gemm));
    return nw_host_push(stream, &(struct host_task){.run = run_gemm, .u.gemm = *gemm});
}

const struct nw_dev_ops nw_dev_host_ops = {
    .name = "host",
    .title = "host memory",
    .count = host_count,
    .open = host_open,
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .free_bytes = host_free_bytes,
    .stream_open = nw_host_stream_open,
    .stream_close = nw_host_stream_close,
    .wait = nw_host_wait,
    .follow = nw_host_follow,
    .mark_open = nw_host_mark_open,
    .mark_close = nw_host_mark_close,
    .mark_set = nw_host_mark_set,
    .mark_elapsed = nw_host_mark_elapsed,
    .gate_hold = nw_host_gate_hold,
    .gate_release = nw_host_gate_release,
    .peer_can = host_peer_can,
    .peer_enable = host_peer_enable,
    .copy = host_copy,
    .copy_peer = host_copy_peer,
    .set = host_set,
    .kernel_copy = host_copy,
    .kernel_read = host_kernel_read,
    .kernel_write = host_kernel_write,
    .reduce = host_reduce,
    .fill = host_fill,
    .verify = host_verify,
    .gemm = host_gemm,
};
