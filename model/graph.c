#include "model/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int32_t nw_graph_add(struct nw_graph *graph, const struct nw_event *event)
{
    if (graph->failed)
        return 0;
    if (graph->count == graph->capacity) {
        const int32_t capacity = graph->capacity > 0 ? 2 * graph->capacity : 512;
        struct nw_event *events = capacity > NW_GRAPH_EVENTS_MAX
                                      ? NULL
                                      : realloc(graph->events, (size_t)capacity * sizeof *events);

        if (events == NULL) {
            graph->failed = true;
            return 0;
        }
        graph->events = events;
        graph->capacity = capacity;
    }
    graph->events[graph->count++] = *event;
    return graph->count;
}

void nw_graph_clear(struct nw_graph *graph)
{
    graph->count = 0;
    graph->failed = false;
}

void nw_graph_free(struct nw_graph *graph)
{
    free(graph->events);
    *graph = (struct nw_graph){0};
}

/* ---- timing -------------------------------------------------------------------------------- */

struct clock {
    double free_ns[NW_STREAM_COUNT];
    int32_t last[NW_STREAM_COUNT]; /* index + 1 of what each stream did last */
};

static bool is_message(const struct nw_event *event)
{
    return event->kind == NW_EVENT_COLLECTIVE || event->kind == NW_EVENT_COPY;
}

static double duration(const struct nw_event *event, const struct nw_timing *timing)
{
    if (!is_message(event))
        return event->ns * timing->compute_scale;
    return timing->curve_end < 0   ? event->low_ns
           : timing->curve_end > 0 ? event->high_ns
                                   : event->ns;
}

/* The computation waited `gap` for `cause`: a message of its own stage stands out; one that comes
 * through the pipeline does for as long as it travels, the rest is the pipeline's bubble, as is all
 * else that another stage is late with. */
static void charge(struct nw_stage_sums *sums, const struct nw_event *cause, double gap,
                   double count, int stage)
{
    const bool arrives = cause != NULL && cause->stream == NW_STREAM_PIPELINE;

    if (cause == NULL || !is_message(cause) || (cause->stage != stage && !arrives)) {
        sums->bubble_ns += gap * count;
        return;
    }
    const double shown = arrives ? fmin(gap, cause->end_ns - cause->start_ns) : gap;

    sums->stream_exposed_ns[cause->stream] += shown * count;
    if (cause->kind == NW_EVENT_COLLECTIVE)
        sums->group_exposed_ns[cause->group] += shown * count;
    sums->bubble_ns += (gap - shown) * count;
}

static bool is_serial(const struct nw_event *event, const struct nw_timing *timing)
{
    return is_message(event) && event->stream != NW_STREAM_PIPELINE &&
           timing->overlap[event->stream] == NW_OVERLAP_SERIAL;
}

nw_stream nw_event_stream(const struct nw_event *event, const struct nw_timing *timing)
{
    return is_serial(event, timing) ? NW_STREAM_COMPUTE : event->stream;
}

double nw_event_ns(const struct nw_event *event, const struct nw_timing *timing)
{
    const double all = duration(event, timing);

    return is_serial(event, timing) ? fmax(all - event->idle_ns * timing->compute_scale, 0) : all;
}

/* What it waited for last, not before `start_ns`; NULL: nothing. */
static const struct nw_event *last_wait(const struct nw_graph *graph, const struct nw_event *event,
                                        double start_ns)
{
    const struct nw_event *cause = NULL;

    for (int i = 0; i < NW_EVENT_WAITS; i++) {
        const struct nw_event *wait =
            event->after[i] > 0 ? &graph->events[event->after[i] - 1] : NULL;

        if (wait != NULL && wait->end_ns > start_ns) {
            start_ns = wait->end_ns;
            cause = wait;
        }
    }
    return cause;
}

/* The event has its times; a message on a stream of its own took `all`. */
static void account(const struct nw_graph *graph, const struct nw_event *event,
                    const struct nw_timing *timing, double all, struct clock *clock,
                    struct nw_stage_sums *sums)
{
    const bool message = is_message(event), serial = is_serial(event, timing);
    const nw_stream stream = serial ? NW_STREAM_COMPUTE : event->stream;
    const double before = clock->free_ns[stream], start = event->start_ns;
    const double ns = event->end_ns - start;

    clock->free_ns[stream] = event->end_ns;
    if (stream == NW_STREAM_COMPUTE && start > before)
        charge(sums, last_wait(graph, event, before), start - before, event->count, event->stage);
    if (message) {
        const bool grouped = event->kind == NW_EVENT_COLLECTIVE;

        sums->stream_ns[event->stream] += all * event->count;
        if (serial) {
            sums->stream_exposed_ns[event->stream] += ns * event->count;
            sums->group_exposed_ns[event->group] += grouped ? ns * event->count : 0;
        }
    } else if (event->kind == NW_EVENT_BUBBLE) {
        sums->bubble_ns += ns * event->count;
    } else if (event->kind == NW_EVENT_UPDATE || event->kind == NW_EVENT_HOST_UPDATE) {
        sums->update_ns += ns * event->count;
    } else {
        sums->compute_ns += ns * event->count;
    }
    if (stream == NW_STREAM_COMPUTE)
        sums->end_ns += (event->end_ns - before) * event->count;
}

static void time_event(struct nw_graph *graph, struct nw_event *event,
                       const struct nw_timing *timing, struct clock *clock,
                       struct nw_stage_sums *sums)
{
    const double before = clock->free_ns[nw_event_stream(event, timing)];
    const struct nw_event *cause = last_wait(graph, event, before);

    event->start_ns = cause != NULL ? cause->end_ns : before;
    event->end_ns = event->start_ns + nw_event_ns(event, timing);
    account(graph, event, timing, duration(event, timing), clock, sums);
}

/* What still runs when the computation is through stands out, stream by stream. */
static void finish(const struct nw_graph *graph, const struct clock *clock,
                   struct nw_stage_sums *sums)
{
    double done = clock->free_ns[NW_STREAM_COMPUTE];

    for (;;) {
        int next = -1;

        for (int s = 0; s < NW_STREAM_COUNT; s++)
            if (clock->free_ns[s] > done && s != NW_STREAM_PIPELINE &&
                (next < 0 || clock->free_ns[s] < clock->free_ns[next]))
                next = s;
        if (next < 0 || clock->last[next] == 0)
            return;
        const struct nw_event *last = &graph->events[clock->last[next] - 1];
        const double tail = clock->free_ns[next] - done;

        charge(sums, last, tail, 1, last->stage);
        sums->end_ns += tail;
        done = clock->free_ns[next];
    }
}

nw_rc nw_graph_time(struct nw_graph *graph, const struct nw_timing *timing,
                    struct nw_stage_sums *sums_out)
{
    if (graph->failed && graph->count == NW_GRAPH_EVENTS_MAX)
        return nw_fail(
            NW_EUSAGE,
            "a step of more than %d events is too long to be timed one by one; accepted: "
            "fewer --layers, --pp or --virtual-stages",
            NW_GRAPH_EVENTS_MAX);
    struct clock *clocks = calloc((size_t)graph->stage_count, sizeof *clocks);

    if (clocks == NULL || graph->failed) {
        free(clocks);
        return nw_fail(NW_ENOMEM, "no memory for the events of a step (%d so far)", graph->count);
    }
    memset(sums_out, 0, (size_t)graph->stage_count * sizeof *sums_out);
    for (int32_t i = 0; i < graph->count; i++) {
        struct nw_event *event = &graph->events[i];
        struct clock *clock = &clocks[event->stage];

        time_event(graph, event, timing, clock, &sums_out[event->stage]);
        clock->last[event->stream] = i + 1;
    }
    for (int s = 0; s < graph->stage_count; s++)
        finish(graph, &clocks[s], &sums_out[s]);
    free(clocks);
    return NW_OK;
}

void nw_graph_account(const struct nw_graph *graph, int stage, const struct nw_timing *timing,
                      struct nw_stage_sums *sums_out)
{
    struct clock clock = {.free_ns = {0}};

    *sums_out = (struct nw_stage_sums){0};
    for (int32_t i = 0; i < graph->count; i++) {
        const struct nw_event *event = &graph->events[i];

        if (event->stage != stage)
            continue;
        account(graph, event, timing, event->end_ns - event->start_ns, &clock, sums_out);
        clock.last[event->stream] = i + 1;
    }
    finish(graph, &clock, sums_out);
}
