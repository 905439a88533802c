/* The host as a device: its memory, its CPUs, a worker thread a stream. It runs the twins, and it
 * is the double of a GPU for everything above: work is as asynchronous and as ordered as there. */
#include "kernels/backends.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

struct nw_mark {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t set_count, reached_count; /* how often it was queued, and passed */
    uint64_t at_ns;                    /* of the last passing */
};

struct task {
    struct task *next;
    void (*run)(struct nw_stream *stream, const struct task *task);
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

struct nw_stream {
    struct nw_dev *dev;
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t queued, drained;
    struct task *first, **end; /* under lock, as the rest down to `closing` */
    bool busy, closing;
    struct nw_gate_state gate;
    uint32_t held; /* the last ticket given out */
    double held_timeout_ns;
};

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

/* Streams */

static struct task *take(struct nw_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->busy = false;
    if (!stream->first)
        pthread_cond_broadcast(&stream->drained);
    while (!stream->first && !stream->closing)
        pthread_cond_wait(&stream->queued, &stream->lock);
    struct task *task = stream->first;
    if (task) {
        stream->first = task->next;
        if (!stream->first)
            stream->end = &stream->first;
        stream->busy = true;
    }
    pthread_mutex_unlock(&stream->lock);
    return task;
}

static void *work(void *argument)
{
    struct nw_stream *stream = argument;
    for (struct task *task; (task = take(stream)) != NULL; free(task))
        task->run(stream, task);
    return NULL;
}

static void monotonic_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

static nw_rc host_stream_open(struct nw_dev *dev, struct nw_stream **stream_out)
{
    struct nw_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return nw_fail(NW_ENOMEM, "no memory for a stream");
    stream->dev = dev;
    stream->end = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->queued, NULL);
    monotonic_cond_init(&stream->drained);
    /* Signals are the main thread's. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&stream->worker, NULL, work, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        free(stream);
        return nw_fail(NW_ENOMEM, "host: cannot start a stream's thread: %s", strerror(code));
    }
    *stream_out = stream;
    return NW_OK;
}

static void host_gate_release(struct nw_stream *stream)
{
    __atomic_store_n(&stream->gate.open, stream->held, __ATOMIC_RELEASE);
}

static void host_stream_close(struct nw_stream *stream)
{
    if (!stream)
        return;
    host_gate_release(stream);
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_signal(&stream->queued);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->worker, NULL);
    pthread_cond_destroy(&stream->queued);
    pthread_cond_destroy(&stream->drained);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static nw_rc push(struct nw_stream *stream, struct task proto)
{
    struct task *task = malloc(sizeof *task);
    if (!task)
        return nw_fail(NW_ENOMEM, "no memory for a task of a stream");
    *task = proto;
    task->next = NULL;
    pthread_mutex_lock(&stream->lock);
    *stream->end = task;
    stream->end = &task->next;
    pthread_cond_signal(&stream->queued);
    pthread_mutex_unlock(&stream->lock);
    return NW_OK;
}

static struct timespec deadline_in(double ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    const double limit = ns < 1e17 ? ns : 1e17; /* 3 years */
    const uint64_t whole = (uint64_t)limit + (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(whole / 1000000000u);
    at.tv_nsec = (long)(whole % 1000000000u);
    return at;
}

static nw_rc host_wait(struct nw_stream *stream, double timeout_ns)
{
    const struct timespec deadline = deadline_in(timeout_ns);
    int code = 0;
    pthread_mutex_lock(&stream->lock);
    while ((stream->first || stream->busy) && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&stream->drained, &stream->lock, &deadline);
    const bool done = !stream->first && !stream->busy;
    pthread_mutex_unlock(&stream->lock);
    if (!done)
        return nw_fail(NW_ETIMEOUT, "host: the stream is not done after %.3g s", timeout_ns * 1e-9);
    if (__atomic_exchange_n(&stream->gate.timed_out, 0, __ATOMIC_ACQ_REL) != 0)
        return nw_fail(NW_ETIMEOUT, "host: the gate was not opened within %.3g s and gave up",
                       stream->held_timeout_ns * 1e-9);
    return NW_OK;
}

/* Marks */

static nw_rc host_mark_open(struct nw_dev *dev, struct nw_mark **mark_out)
{
    (void)dev;
    struct nw_mark *mark = calloc(1, sizeof *mark);
    if (!mark)
        return nw_fail(NW_ENOMEM, "no memory for a mark");
    pthread_mutex_init(&mark->lock, NULL);
    pthread_cond_init(&mark->changed, NULL);
    *mark_out = mark;
    return NW_OK;
}

static void host_mark_close(struct nw_mark *mark)
{
    if (!mark)
        return;
    pthread_cond_destroy(&mark->changed);
    pthread_mutex_destroy(&mark->lock);
    free(mark);
}

static void run_mark(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    struct nw_mark *mark = task->to;
    const uint64_t now = nw_now_ns();
    pthread_mutex_lock(&mark->lock);
    mark->reached_count++;
    mark->at_ns = now;
    pthread_cond_broadcast(&mark->changed);
    pthread_mutex_unlock(&mark->lock);
}

static nw_rc host_mark_set(struct nw_stream *stream, struct nw_mark *mark)
{
    NW_TRY(push(stream, (struct task){.run = run_mark, .to = mark}));
    pthread_mutex_lock(&mark->lock);
    mark->set_count++;
    pthread_mutex_unlock(&mark->lock);
    return NW_OK;
}

static nw_rc host_mark_elapsed(struct nw_mark *start, struct nw_mark *end, double *ns_out)
{
    uint64_t at[2] = {0};
    struct nw_mark *marks[] = {start, end};
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&marks[i]->lock);
        const bool reached =
            marks[i]->set_count > 0 && marks[i]->reached_count == marks[i]->set_count;
        at[i] = marks[i]->at_ns;
        pthread_mutex_unlock(&marks[i]->lock);
        if (!reached)
            return nw_fail(NW_EUSAGE, "host: the %s mark was not reached yet", i ? "end" : "start");
    }
    *ns_out = (double)at[1] - (double)at[0];
    return NW_OK;
}

static void run_follow(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    struct nw_mark *mark = task->to;
    pthread_mutex_lock(&mark->lock);
    while (mark->reached_count < task->value)
        pthread_cond_wait(&mark->changed, &mark->lock);
    pthread_mutex_unlock(&mark->lock);
}

static nw_rc host_follow(struct nw_stream *stream, struct nw_mark *mark)
{
    pthread_mutex_lock(&mark->lock);
    const uint64_t count = mark->set_count;
    pthread_mutex_unlock(&mark->lock);
    return push(stream, (struct task){.run = run_follow, .to = mark, .value = count});
}

/* Gates */

static void run_gate(struct nw_stream *stream, const struct task *task)
{
    nw_gate_host(&stream->gate, (uint32_t)task->value, task->timeout_ns);
}

static nw_rc host_gate_hold(struct nw_stream *stream, double timeout_ns)
{
    stream->held_timeout_ns = timeout_ns;
    stream->held++;
    return push(
        stream,
        (struct task){.run = run_gate, .value = stream->held, .timeout_ns = (uint64_t)timeout_ns});
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

static void run_copy(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    nw_copy_host(task->to, task->from, task->bytes);
}

static nw_rc host_copy(struct nw_stream *stream, void *to, const void *from, uint64_t bytes)
{
    return push(stream, (struct task){.run = run_copy, .to = to, .from = from, .bytes = bytes});
}

static nw_rc host_copy_peer(struct nw_stream *stream, void *to, struct nw_dev *to_dev,
                            const void *from, struct nw_dev *from_dev, uint64_t bytes)
{
    (void)to_dev;
    (void)from_dev;
    return host_copy(stream, to, from, bytes);
}

static void run_set(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    memset(task->to, (int)task->value, task->bytes);
}

static nw_rc host_set(struct nw_stream *stream, void *to, unsigned char value, uint64_t bytes)
{
    return push(stream, (struct task){.run = run_set, .to = to, .value = value, .bytes = bytes});
}

static void run_read(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    nw_read_host(task->from, task->bytes, task->to);
}

static nw_rc host_kernel_read(struct nw_stream *stream, const void *from, uint64_t bytes,
                              uint32_t *fold)
{
    return push(stream, (struct task){.run = run_read, .to = fold, .from = from, .bytes = bytes});
}

static void run_write(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    nw_write_host(task->to, task->bytes, (uint32_t)task->value);
}

static nw_rc host_kernel_write(struct nw_stream *stream, void *to, uint64_t bytes, uint32_t value)
{
    return push(stream, (struct task){.run = run_write, .to = to, .value = value, .bytes = bytes});
}

static void run_reduce(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    nw_reduce_host(task->to, &task->u.inputs, task->bytes, (nw_dtype)task->value);
}

static nw_rc host_reduce(struct nw_stream *stream, void *to, const struct nw_reduce_inputs *inputs,
                         uint64_t count, nw_dtype dtype)
{
    NW_TRY(nw_check_reduce(inputs, dtype));
    return push(
        stream,
        (struct task){
            .run = run_reduce, .to = to, .bytes = count, .value = dtype, .u.inputs = *inputs});
}

static void run_fill(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    nw_fill_host(task->to, task->bytes, &task->u.pattern);
}

static nw_rc host_fill(struct nw_stream *stream, void *to, uint64_t count,
                       const struct nw_pattern *pattern)
{
    NW_TRY(nw_check_pattern(pattern));
    return push(stream,
                (struct task){.run = run_fill, .to = to, .bytes = count, .u.pattern = *pattern});
}

static void run_verify(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    nw_verify_host(task->from, task->bytes, &task->u.pattern, task->to);
}

static nw_rc host_verify(struct nw_stream *stream, const void *buffer, uint64_t count,
                         const struct nw_pattern *pattern, struct nw_verdict *verdict)
{
    NW_TRY(nw_check_pattern(pattern));
    return push(stream, (struct task){.run = run_verify,
                                      .to = verdict,
                                      .from = buffer,
                                      .bytes = count,
                                      .u.pattern = *pattern});
}

static void run_gemm(struct nw_stream *stream, const struct task *task)
{
    (void)stream;
    nw_gemm_host(&task->u.gemm);
}

static nw_rc host_gemm(struct nw_stream *stream, const struct nw_gemm *gemm)
{
    NW_TRY(nw_check_gemm(gemm));
    return push(stream, (struct task){.run = run_gemm, .u.gemm = *gemm});
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
    .stream_open = host_stream_open,
    .stream_close = host_stream_close,
    .wait = host_wait,
    .follow = host_follow,
    .mark_open = host_mark_open,
    .mark_close = host_mark_close,
    .mark_set = host_mark_set,
    .mark_elapsed = host_mark_elapsed,
    .gate_hold = host_gate_hold,
    .gate_release = host_gate_release,
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
