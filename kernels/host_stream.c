#include "kernels/host_stream.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct nw_mark {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t set_count, reached_count; /* how often it was queued, and passed */
    uint64_t at_ns;                    /* of the last passing */
};

struct nw_stream {
    struct nw_dev *dev;
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t queued, drained;
    struct host_task *first, **end; /* under lock, as the rest down to `closing` */
    bool busy, closing;
    struct nw_gate_state gate;
    uint32_t held; /* the last ticket given out */
    double held_timeout_ns;
};

static struct host_task *take(struct nw_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->busy = false;
    if (!stream->first)
        pthread_cond_broadcast(&stream->drained);
    while (!stream->first && !stream->closing)
        pthread_cond_wait(&stream->queued, &stream->lock);
    struct host_task *task = stream->first;
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
    for (struct host_task *task; (task = take(stream)) != NULL; free(task))
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

nw_rc nw_host_stream_open(struct nw_dev *dev, struct nw_stream **stream_out)
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

void nw_host_gate_release(struct nw_stream *stream)
{
    __atomic_store_n(&stream->gate.open, stream->held, __ATOMIC_RELEASE);
}

void nw_host_stream_close(struct nw_stream *stream)
{
    if (!stream)
        return;
    nw_host_gate_release(stream);
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

nw_rc nw_host_push(struct nw_stream *stream, const struct host_task *proto)
{
    struct host_task *task = malloc(sizeof *task);
    if (!task)
        return nw_fail(NW_ENOMEM, "no memory for a task of a stream");
    *task = *proto;
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

nw_rc nw_host_wait(struct nw_stream *stream, double timeout_ns)
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

nw_rc nw_host_mark_open(struct nw_dev *dev, struct nw_mark **mark_out)
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

void nw_host_mark_close(struct nw_mark *mark)
{
    if (!mark)
        return;
    pthread_cond_destroy(&mark->changed);
    pthread_mutex_destroy(&mark->lock);
    free(mark);
}

static void run_mark(struct nw_stream *stream, const struct host_task *task)
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

nw_rc nw_host_mark_set(struct nw_stream *stream, struct nw_mark *mark)
{
    NW_TRY(nw_host_push(stream, &(struct host_task){.run = run_mark, .to = mark}));
    pthread_mutex_lock(&mark->lock);
    mark->set_count++;
    pthread_mutex_unlock(&mark->lock);
    return NW_OK;
}

nw_rc nw_host_mark_elapsed(struct nw_mark *start, struct nw_mark *end, double *ns_out)
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

static void run_follow(struct nw_stream *stream, const struct host_task *task)
{
    (void)stream;
    struct nw_mark *mark = task->to;
    pthread_mutex_lock(&mark->lock);
    while (mark->reached_count < task->value)
        pthread_cond_wait(&mark->changed, &mark->lock);
    pthread_mutex_unlock(&mark->lock);
}

nw_rc nw_host_follow(struct nw_stream *stream, struct nw_mark *mark)
{
    pthread_mutex_lock(&mark->lock);
    const uint64_t count = mark->set_count;
    pthread_mutex_unlock(&mark->lock);
    return nw_host_push(stream, &(struct host_task){.run = run_follow, .to = mark, .value = count});
}

/* Gates */

static void run_gate(struct nw_stream *stream, const struct host_task *task)
{
    nw_gate_host(&stream->gate, (uint32_t)task->value, task->timeout_ns);
}

nw_rc nw_host_gate_hold(struct nw_stream *stream, double timeout_ns)
{
    stream->held_timeout_ns = timeout_ns;
    stream->held++;
    return nw_host_push(stream, &(struct host_task){.run = run_gate,
                                                    .value = stream->held,
                                                    .timeout_ns = (uint64_t)timeout_ns});
}
