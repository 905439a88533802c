/* A replay for machines: the summary, and the timeline in Chrome's trace format. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "model/json_parts.h"
#include "model/replay.h"

static const char *const stream_names[NW_STREAM_COUNT] = {
    [NW_STREAM_COMPUTE] = "compute",    [NW_STREAM_GRADIENTS] = "gradients",
    [NW_STREAM_WEIGHTS] = "weights",    [NW_STREAM_TENSOR] = "tensor",
    [NW_STREAM_CONTEXT] = "context",    [NW_STREAM_PIPELINE] = "pipeline",
    [NW_STREAM_COPIES] = "host copies",
};

const char *nw_stream_name(nw_stream stream)
{
    return stream_names[stream];
}

/* ---- the timeline -------------------------------------------------------------------------- */

static const char *event_name(const struct nw_event *event, char text[64])
{
    static const char *const names[] = {
        [NW_EVENT_FORWARD] = "forward",         [NW_EVENT_BACKWARD] = "backward",
        [NW_EVENT_UPDATE] = "optimizer update", [NW_EVENT_HOST_UPDATE] = "optimizer update on CPU",
        [NW_EVENT_BUBBLE] = "bubble",           [NW_EVENT_COPY] = "copy",
    };

    if (event->kind == NW_EVENT_COLLECTIVE)
        return event->stream == NW_STREAM_PIPELINE ? event->backward ? "send back" : "send on"
                                                   : event->collective;
    if (event->unit_count > 1)
        snprintf(text, 64, "%s %d-%d", names[event->kind], event->first_unit,
                 event->first_unit + event->unit_count - 1);
    else if (event->unit_count == 1)
        snprintf(text, 64, "%s %d", names[event->kind], event->first_unit);
    else
        snprintf(text, 64, "%s", names[event->kind]);
    return text;
}

struct trace {
    FILE *stream;
    bool first;
};

static void put_begin(struct trace *trace)
{
    fputs(trace->first ? "\n" : ",\n", trace->stream);
    trace->first = false;
}

/* All names are our own: nothing to escape. */
static void put_name(struct trace *trace, int process, int thread, const char *kind,
                     const char *name)
{
    put_begin(trace);
    fprintf(trace->stream,
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}",
            process, thread, kind, name);
}

static void put_process(struct trace *trace, int process, const char *name)
{
    put_name(trace, process, 0, "process_name", name);
    for (int stream = 0; stream < NW_STREAM_COUNT; stream++)
        put_name(trace, process, stream, "thread_name", stream_names[stream]);
}

static void put_event(struct trace *trace, int process, int thread, const struct nw_event *event,
                      double start_ns, double end_ns)
{
    char text[64];

    if (!(end_ns > start_ns))
        return;
    put_begin(trace);
    fprintf(trace->stream,
            "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f", process,
            thread, event_name(event, text), start_ns / 1e3, (end_ns - start_ns) / 1e3);
    if (event->kind == NW_EVENT_COLLECTIVE)
        fprintf(trace->stream, ",\"args\":{\"bytes\":%.0f,\"calls\":%.0f}", event->bytes,
                event->times);
    fputc('}', trace->stream);
}

nw_rc nw_replay_write_trace(FILE *stream, const struct nw_replay_result *result)
{
    const struct nw_graph *graph = &result->graph;
    struct trace trace = {.stream = stream, .first = true};
    const int stages = graph->stage_count;
    char name[64];

    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", stream);
    for (int stage = 0; stage < stages; stage++) {
        snprintf(name, sizeof name, stages > 1 ? "predicted, stage %d" : "predicted", stage);
        put_process(&trace, stage, name);
    }
    for (int rank = 0; result->times != NULL && rank < result->rank_count; rank++) {
        snprintf(name, sizeof name, "replayed, rank %d", rank);
        put_process(&trace, stages + rank, name);
    }
    for (int32_t i = 0; i < graph->count; i++) {
        const struct nw_event *event = &graph->events[i];
        const int thread = (int)nw_event_stream(event, &result->timing);

        put_event(&trace, event->stage, thread, event, event->start_ns, event->end_ns);
        for (int rank = 0; result->times != NULL && rank < result->rank_count; rank++) {
            const struct nw_replay_time *at =
                &result->times[(size_t)rank * (size_t)graph->count + (size_t)i];

            put_event(&trace, stages + rank, thread, event, at->start_ns, at->end_ns);
        }
    }
    fputs("\n]}\n", stream);
    return ferror(stream) ? nw_fail(NW_EIO, "the timeline cannot be written") : NW_OK;
}

/* ---- the summary --------------------------------------------------------------------------- */

static nw_rc set_sums(json_t *object, const struct nw_stage_sums *sums)
{
    json_t *exposed;

    NW_TRY(NW_SET_REALS(object, {"compute_ns", sums->compute_ns}, {"update_ns", sums->update_ns},
                        {"bubble_ns", sums->bubble_ns}));
    NW_TRY(nw_json_add_object(object, "exposed_ns", &exposed));
    for (int stream = 1; stream < NW_STREAM_COUNT; stream++)
        if (sums->stream_ns[stream] > 0 || sums->stream_exposed_ns[stream] > 0)
            NW_TRY(nw_json_set_real(
                exposed, stream == NW_STREAM_COPIES ? "host_copies" : stream_names[stream],
                sums->stream_exposed_ns[stream]));
    return NW_OK;
}

static nw_rc fill(json_t *root, const struct nw_replay_result *result)
{
    const struct nw_step *step = &result->predicted;
    json_t *predicted, *replayed;

    NW_TRY(nw_json_set_int(root, "schema", NW_MODEL_SCHEMA_VERSION));
    NW_TRY(nw_json_set_text(root, "kind", "replay"));
    NW_TRY(nw_json_set_bool(root, "simulated", !(result->unit_ns > 0)));
    NW_TRY(
        nw_json_set_text(root, "strategy", step->strategy != NULL ? step->strategy->name : NULL));
    NW_TRY(nw_json_set_int(root, "nodes", step->node_count));
    NW_TRY(nw_json_set_int(root, "ranks", step->rank_count));
    NW_TRY(nw_json_set_u64(root, "micro_batch", step->micro_batch));
    NW_TRY(nw_json_set_u64(root, "micro_batches", step->micro_batch_count));
    NW_TRY(nw_json_add_object(root, "predicted", &predicted));
    NW_TRY(nw_json_set_real(predicted, "step_ns", step->step_ns));
    NW_TRY(nw_json_set_real(predicted, "overlap_loss_ns", step->overlap_loss_ns));
    NW_TRY(set_sums(predicted, &result->predicted_sums));
    NW_TRY(nw_json_add_object(root, "replayed", &replayed));
    NW_TRY(NW_SET_REALS(
        replayed, {"step_ns", result->step_ns.median}, {"step_low_ns", result->step_ns.low},
        {"step_high_ns", result->step_ns.high}, {"step_min_ns", result->step_ns.min},
        {"step_max_ns", result->step_ns.max}, {"skew_ns", result->skew_ns}));
    NW_TRY(nw_json_set_real(replayed, "cpu_share", result->cpu_share));
    NW_TRY(nw_json_set_int(replayed, "steps", result->step_count));
    NW_TRY(nw_json_set_bool(replayed, "interval_narrow_enough", result->enough));
    NW_TRY(nw_json_set_int(replayed, "slowest_rank", result->slowest_rank));
    NW_TRY(set_sums(replayed, &result->sums));
    NW_TRY(nw_json_set_real(root, "error", result->step_ns.median / step->step_ns - 1));
    NW_TRY(nw_json_set_u64(root, "buffer_bytes", result->buffer_bytes));
    if (result->wrong_elements >= 0) {
        NW_TRY(nw_json_set_int(root, "wrong_elements", result->wrong_elements));
        NW_TRY(nw_json_set_u64(root, "checked_calls", result->checked_calls));
    }
    return NW_OK;
}

nw_rc nw_replay_to_json(const struct nw_replay_result *result, json_t **json_out)
{
    json_t *root = json_object();
    const nw_rc rc = root != NULL ? fill(root, result) : nw_fail(NW_ENOMEM, "JSON: no memory");

    if (rc != NW_OK) {
        json_decref(root);
        return rc;
    }
    *json_out = root;
    return NW_OK;
}
