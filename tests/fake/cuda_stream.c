/* Streams: a thread each, that does what is queued in order. Beside the work itself, which is real,
 * every operation has a modelled duration, and the stream is at a time; both have nothing to do
 * with how long the work took here. Events keep the time at which they were reached. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake/share.h"

#define MAX_MOVABLE 8

struct CUevent_st {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t queued, reached; /* records, counted */
    int64_t ps;               /* of the last one reached */
    unsigned flags;
    int users; /* the program, and queued operations */
};

struct CUstream_st {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fk_op *first, **last;
    bool busy, closed;
    struct CUctx_st *context;
    struct CUgraph_st *capture;
    struct fk_share share;
    struct CUstream_st *next; /* in the list of all */
    /* The worker's; others read ps when nothing is queued. */
    int64_t ps;
    bool after_gate; /* nothing with a duration since a gate opened: marks may move */
    struct {
        struct CUevent_st *event;
        uint64_t generation;
    } movable[MAX_MOVABLE];
    int movable_count;
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st *all_streams;

/* Where an operation begins: where the stream is, and not before it was queued. */
static void begin(struct CUstream_st *stream, const struct fk_op *op)
{
    if (fk_clock_is_real())
        stream->ps = stream->ps > fk_host_ps() ? stream->ps : fk_host_ps();
    else if (op->queued_ps > stream->ps)
        stream->ps = op->queued_ps;
}

/* Events */

static void event_release(struct CUevent_st *event)
{
    pthread_mutex_lock(&event->lock);
    const bool last = --event->users == 0;
    pthread_mutex_unlock(&event->lock);
    if (last)
        free(event);
}

FK_EXPORT fk_result cuEventCreate(struct CUevent_st **event_out, unsigned flags)
{
    if (!fk_context())
        return CU_INVALID_CONTEXT;
    struct CUevent_st *event = calloc(1, sizeof *event);
    if (!event)
        return CU_OUT_OF_MEMORY;
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    event->flags = flags;
    event->users = 1;
    *event_out = event;
    return CU_OK;
}

FK_EXPORT fk_result cuEventDestroy_v2(struct CUevent_st *event)
{
    if (!event)
        return CU_INVALID_HANDLE;
    event_release(event);
    return CU_OK;
}

struct event_op {
    struct CUevent_st *event;
    uint64_t generation; /* that is set, or waited for */
};

static void run_record(struct fk_op *op, struct CUstream_st *stream)
{
    const struct event_op *o = (const struct event_op *)(void *)op->data;
    begin(stream, op);
    fk_mark(stream, o->event, o->generation);
    event_release(o->event);
}

static void queued_record(struct fk_op *op)
{
    struct event_op *o = (struct event_op *)(void *)op->data;
    pthread_mutex_lock(&o->event->lock);
    o->generation = ++o->event->queued;
    o->event->users++;
    pthread_mutex_unlock(&o->event->lock);
}

void fk_mark(struct CUstream_st *stream, struct CUevent_st *event, uint64_t generation)
{
    pthread_mutex_lock(&event->lock);
    if (generation > event->reached) {
        event->reached = generation;
        event->ps = stream->ps;
        if (stream->after_gate && stream->movable_count < MAX_MOVABLE) {
            stream->movable[stream->movable_count].event = event;
            stream->movable[stream->movable_count++].generation = generation;
            event->users++;
        }
    }
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

FK_EXPORT fk_result cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
    if (!event)
        return CU_INVALID_HANDLE;
    const struct event_op o = {.event = event};
    return fk_push(stream, run_record, queued_record, &o, sizeof o);
}

static void run_follow(struct fk_op *op, struct CUstream_st *stream)
{
    const struct event_op *o = (const struct event_op *)(void *)op->data;
    pthread_mutex_lock(&o->event->lock);
    while (o->event->reached < o->generation)
        pthread_cond_wait(&o->event->changed, &o->event->lock);
    if (o->event->ps > stream->ps)
        stream->ps = o->event->ps;
    pthread_mutex_unlock(&o->event->lock);
    event_release(o->event);
}

static void queued_follow(struct fk_op *op)
{
    struct event_op *o = (struct event_op *)(void *)op->data;
    pthread_mutex_lock(&o->event->lock);
    o->generation = o->event->queued;
    o->event->users++;
    pthread_mutex_unlock(&o->event->lock);
}

FK_EXPORT fk_result cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event,
                                      unsigned flags)
{
    (void)flags;
    if (!event)
        return CU_INVALID_HANDLE;
    const struct event_op o = {.event = event};
    return fk_push(stream, run_follow, queued_follow, &o, sizeof o);
}

FK_EXPORT fk_result cuEventQuery(struct CUevent_st *event)
{
    if (!event)
        return CU_INVALID_HANDLE;
    pthread_mutex_lock(&event->lock);
    const bool reached = event->reached == event->queued;
    if (reached && event->queued > 0)
        fk_host_reach(event->ps);
    pthread_mutex_unlock(&event->lock);
    return reached ? CU_OK : CU_NOT_READY;
}

FK_EXPORT fk_result cuEventSynchronize(struct CUevent_st *event)
{
    if (!event)
        return CU_INVALID_HANDLE;
    pthread_mutex_lock(&event->lock);
    while (event->reached < event->queued)
        pthread_cond_wait(&event->changed, &event->lock);
    if (event->queued > 0)
        fk_host_reach(event->ps);
    pthread_mutex_unlock(&event->lock);
    return CU_OK;
}

FK_EXPORT fk_result cuEventElapsedTime(float *ms, struct CUevent_st *start, struct CUevent_st *end)
{
    struct CUevent_st *const events[] = {start, end};
    int64_t ps[2];
    for (int i = 0; i < 2; i++) {
        if (!events[i] || events[i]->flags & 2) /* CU_EVENT_DISABLE_TIMING */
            return CU_INVALID_HANDLE;
        pthread_mutex_lock(&events[i]->lock);
        const bool recorded = events[i]->queued > 0,
                   reached = events[i]->reached == events[i]->queued;
        ps[i] = events[i]->ps;
        pthread_mutex_unlock(&events[i]->lock);
        if (!recorded || !reached)
            return recorded ? CU_NOT_READY : CU_INVALID_HANDLE;
    }
    *ms = (float)((double)(ps[1] - ps[0]) * 1e-9);
    return CU_OK;
}

/* Work */

static void *stream_main(void *argument)
{
    struct CUstream_st *stream = argument;
    fk_set_context(stream->context);
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (!stream->first && !stream->closed)
            pthread_cond_wait(&stream->changed, &stream->lock);
        struct fk_op *op = stream->first;
        if (!op)
            break;
        stream->first = op->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->busy = true;
        pthread_mutex_unlock(&stream->lock);
        op->run(op, stream);
        free(op);
        fk_progress();
        pthread_mutex_lock(&stream->lock);
        stream->busy = false;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);

    fk_share_end(stream);
    pthread_mutex_lock(&all_lock);
    struct CUstream_st **at = &all_streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&all_lock);
    free(stream);
    return NULL;
}

static fk_result stream_create(struct CUctx_st *context, struct CUstream_st **stream_out)
{
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    pthread_attr_t attributes;
    pthread_t worker;
    if (!stream)
        return CU_OUT_OF_MEMORY;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    stream->last = &stream->first;
    stream->context = context;
    stream->ps = fk_host_ps();
    pthread_mutex_lock(&all_lock);
    stream->next = all_streams;
    all_streams = stream;
    pthread_mutex_unlock(&all_lock);
    /* Detached: a stream that hangs does not keep the process from ending. */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const int failed = pthread_create(&worker, &attributes, stream_main, stream);
    pthread_attr_destroy(&attributes);
    if (failed)
        fk_die("no thread for a stream");
    *stream_out = stream;
    return CU_OK;
}

FK_EXPORT fk_result cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
    (void)flags;
    return fk_context() ? stream_create(fk_context(), stream) : CU_INVALID_CONTEXT;
}

FK_EXPORT fk_result cuStreamCreateWithPriority(struct CUstream_st **stream, unsigned flags,
                                               int priority)
{
    (void)priority;
    return cuStreamCreate(stream, flags);
}

struct CUstream_st *fk_stream(struct CUstream_st *stream)
{
    struct CUctx_st *context = fk_context();
    if (stream || !context)
        return stream;
    if (!context->null_stream)
        stream_create(context, &context->null_stream);
    return context->null_stream;
}

struct fk_share *fk_stream_share(struct CUstream_st *stream)
{
    return &stream->share;
}

struct CUctx_st *fk_stream_context(const struct CUstream_st *stream)
{
    return stream->context;
}

FK_EXPORT fk_result cuStreamDestroy_v2(struct CUstream_st *stream)
{
    if (!stream)
        return CU_INVALID_HANDLE;
    pthread_mutex_lock(&stream->lock);
    stream->closed = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return CU_OK;
}

fk_result fk_push_op(struct CUstream_st *stream, const struct fk_op *op)
{
    struct fk_op *copy = malloc(sizeof *copy + op->bytes);
    if (!copy)
        return CU_OUT_OF_MEMORY;
    memcpy(copy, op, sizeof *copy + op->bytes);
    copy->next = NULL;
    if (copy->queued)
        copy->queued(copy);
    pthread_mutex_lock(&stream->lock);
    *stream->last = copy;
    stream->last = &copy->next;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return CU_OK;
}

fk_result fk_push(struct CUstream_st *stream, void (*run)(struct fk_op *, struct CUstream_st *),
                  void (*queued)(struct fk_op *), const void *data, size_t bytes)
{
    stream = fk_stream(stream);
    if (!stream)
        return CU_INVALID_CONTEXT;
    if (stream->context->error)
        return stream->context->error;
    struct fk_op *op = malloc(sizeof *op + bytes);
    if (!op)
        return CU_OUT_OF_MEMORY;
    *op = (struct fk_op){.run = run, .queued = queued, .bytes = bytes};
    memcpy(op->data, data, bytes);
    op->queued_ps = fk_host_spend(fk_machine()->launch_us);
    struct CUgraph_st *graph = fk_capturing(stream);
    const fk_result code = graph ? fk_capture(graph, op) : fk_push_op(stream, op);
    free(op);
    return code;
}

static bool is_empty(const struct CUstream_st *stream)
{
    return !stream->first && !stream->busy;
}

FK_EXPORT fk_result cuStreamQuery(struct CUstream_st *stream)
{
    stream = fk_stream(stream);
    if (!stream)
        return CU_INVALID_CONTEXT;
    pthread_mutex_lock(&stream->lock);
    const bool empty = is_empty(stream);
    const int64_t ps = stream->ps;
    pthread_mutex_unlock(&stream->lock);
    if (stream->context->error)
        return stream->context->error;
    if (!empty)
        return CU_NOT_READY;
    fk_share_end(stream);
    fk_host_reach(ps);
    return CU_OK;
}

fk_result fk_wait(struct CUstream_st *stream)
{
    pthread_mutex_lock(&stream->lock);
    while (!is_empty(stream))
        pthread_cond_wait(&stream->changed, &stream->lock);
    const int64_t ps = stream->ps;
    pthread_mutex_unlock(&stream->lock);
    fk_share_end(stream);
    fk_host_reach(ps);
    return stream->context->error;
}

FK_EXPORT fk_result cuStreamSynchronize(struct CUstream_st *stream)
{
    stream = fk_stream(stream);
    return stream ? fk_wait(stream) : CU_INVALID_CONTEXT;
}

/* A stream leaves the list only when it is empty and closed, so looking again until none has work
 * ends when all are done. */
void fk_wait_context(const struct CUctx_st *context)
{
    for (;;) {
        bool busy = false;
        pthread_mutex_lock(&all_lock);
        for (struct CUstream_st *s = all_streams; s; s = s->next) {
            if (s->context != context)
                continue;
            pthread_mutex_lock(&s->lock);
            busy |= !is_empty(s);
            const int64_t ps = s->ps;
            pthread_mutex_unlock(&s->lock);
            fk_host_reach(ps);
        }
        pthread_mutex_unlock(&all_lock);
        if (!busy)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

int fk_gpu_is_busy(int gpu)
{
    const int64_t now = fk_host_ps();
    bool busy = false;
    pthread_mutex_lock(&all_lock);
    for (struct CUstream_st *s = all_streams; s; s = s->next) {
        pthread_mutex_lock(&s->lock);
        busy |= s->context->gpu == gpu && (!is_empty(s) || s->ps > now);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&all_lock);
    return busy;
}

/* Times, by the worker */

int64_t fk_stream_ps(const struct CUstream_st *stream)
{
    return stream->ps;
}

static void forget_movable(struct CUstream_st *stream)
{
    for (int i = 0; i < stream->movable_count; i++)
        event_release(stream->movable[i].event);
    stream->movable_count = 0;
    stream->after_gate = false;
}

void fk_span(struct CUstream_st *stream, const struct fk_op *op, double us)
{
    if (fk_clock_is_real())
        forget_movable(stream);
    begin(stream, op);
    forget_movable(stream);
    stream->ps = fk_until(stream->ps + (int64_t)(us * FK_PS_PER_US + 0.5));
}

void fk_span_gate(struct CUstream_st *stream, const struct fk_op *op, bool gave_up,
                  double timeout_us)
{
    forget_movable(stream);
    begin(stream, op);
    const int64_t opened =
        gave_up ? stream->ps + (int64_t)(timeout_us * FK_PS_PER_US) : fk_gate_ps();
    if (fk_clock_is_real())
        stream->ps = fk_host_ps();
    else if (opened > stream->ps)
        stream->ps = opened;
    stream->after_gate = !gave_up;
    fk_share_count(stream);
}

int64_t fk_arrive(struct CUstream_st *stream, const struct fk_op *op, bool *movable_out)
{
    begin(stream, op);
    *movable_out = stream->after_gate && !fk_clock_is_real();
    return stream->ps;
}

void fk_depart(struct CUstream_st *stream, int64_t base_ps, int64_t end_ps)
{
    for (int i = 0; i < stream->movable_count; i++) {
        struct CUevent_st *event = stream->movable[i].event;
        pthread_mutex_lock(&event->lock);
        if (event->reached == stream->movable[i].generation)
            event->ps += base_ps - stream->ps;
        pthread_mutex_unlock(&event->lock);
    }
    forget_movable(stream);
    stream->ps = fk_until(end_ps);
}

/* Capture */

struct CUgraph_st *fk_capturing(struct CUstream_st *stream)
{
    return stream->capture;
}

void fk_set_capturing(struct CUstream_st *stream, struct CUgraph_st *graph)
{
    stream->capture = graph;
}
