/* Events: computation, messages with their cost, copies; and what is sent in all. */
#include "model/memory_parts.h"
#include "model/step_build.h"

#include <math.h>
#include <string.h>

#include "collectives/coll.h"

void nw_stage_waits(struct nw_stage *stage, int32_t event)
{
    if (event == 0)
        return;
    if (stage->wait_count == NW_EVENT_WAITS) /* of the same stream the later one is enough */
        stage->waits[NW_EVENT_WAITS - 1] = event;
    else
        stage->waits[stage->wait_count++] = event;
}

int32_t nw_put_compute(struct nw_build *build, int stage, nw_event_kind kind, int unit,
                       int unit_count, double ns, double count)
{
    struct nw_stage *at = &build->stages[stage];
    struct nw_event event = {.kind = kind,
                             .stream = NW_STREAM_COMPUTE,
                             .stage = stage,
                             .first_unit = unit,
                             .unit_count = unit_count,
                             .ns = ns * build->scale,
                             .times = 1,
                             .count = count};

    memcpy(event.after, at->waits, (size_t)at->wait_count * sizeof event.after[0]);
    at->wait_count = 0;
    at->computed = nw_graph_add(&build->graph, &event);
    return at->computed;
}

static const struct nw_cost *cost_of(struct nw_build *build, const struct nw_message *message,
                                     struct nw_group group)
{
    static const struct nw_cost nothing = {0};
    struct nw_priced *memo = build->memo;
    int i;

    for (i = 0; i < build->memo_count; i++)
        if (memo[i].bytes == message->bytes && memo[i].group == message->group &&
            memo[i].host_count == group.host_count &&
            strcmp(memo[i].collective, message->collective) == 0)
            return &memo[i].cost;
    if (i == NW_BUILD_MEMO_COUNT)
        i--;
    memo[i] = (struct nw_priced){.collective = message->collective,
                                 .bytes = message->bytes,
                                 .group = message->group,
                                 .host_count = group.host_count};
    build->rc = nw_fabric_cost(&build->platform->fabric, message->collective, message->bytes, group,
                               build->scenario, &memo[i].cost);
    build->memo_count = i + 1;
    if (build->rc != NW_OK)
        return &nothing;
    build->how |= memo[i].cost.how;
    return &memo[i].cost;
}

/* Sent by one GPU in a ring: busbw's factor × bytes (nccl-tests, doc/PERFORMANCE.md). */
static void count_traffic(struct nw_build *build, const struct nw_message *message, double calls,
                          struct nw_group group)
{
    const double factor = nw_coll_find(message->collective)->bus_factor(group.rank_count);
    struct nw_traffic *traffic = &build->traffic;

    traffic->bytes_sent += factor * message->bytes * calls;
    traffic->calls += calls;
    if (message->bytes > traffic->message_bytes) {
        traffic->message_bytes = message->bytes;
        traffic->collective = message->collective;
        traffic->group = group;
    }
}

int32_t nw_put_message(struct nw_build *build, int stage, const struct nw_message *whole,
                       double count, int32_t after)
{
    struct nw_message scaled = *whole;
    const struct nw_message *message = &scaled;
    struct nw_group group = nw_layout_group(&build->layout, message->group);

    scaled.bytes *= build->scale;
    if (message->host_count > 0) {
        group.host_count = message->host_count;
        group.sharing = message->sharing;
    }
    if (build->rc != NW_OK || message->collective == NULL || group.rank_count < 2 ||
        !(message->bytes > 0) || !(message->times > 0))
        return 0;
    const struct nw_cost *cost = cost_of(build, message, group);

    if (stage == 0)
        count_traffic(build, message, message->times * count, group);
    return nw_graph_add(&build->graph, &(struct nw_event){
                                           .kind = NW_EVENT_COLLECTIVE,
                                           .stream = message->stream,
                                           .stage = stage,
                                           .ns = cost->time_ns * message->times,
                                           .low_ns = cost->low_ns * message->times,
                                           .high_ns = cost->high_ns * message->times,
                                           .times = message->times,
                                           .count = count,
                                           .after = {after},
                                           .collective = message->collective,
                                           .bytes = message->bytes,
                                           .group = message->group,
                                       });
}

/* Of a measured host link the slower way, which copies are counted at. */
static const struct nw_figure *host_link(const struct nw_platform *platform)
{
    const struct nw_figure *in = &platform->measured.to_device, *out = &platform->measured.to_host;

    return !out->known || (in->known && in->value < out->value) ? in : out;
}

int32_t nw_put_copy(struct nw_build *build, int stage, double ns, double count, int32_t after)
{
    const struct nw_figure *link = host_link(build->platform);

    ns *= build->scale;
    if (build->rc != NW_OK || !(ns > 0))
        return 0;
    return nw_graph_add(
        &build->graph,
        &(struct nw_event){.kind = NW_EVENT_COPY,
                           .stream = NW_STREAM_COPIES,
                           .stage = stage,
                           .ns = ns,
                           .low_ns = link->known ? ns * link->value / link->high : ns,
                           .high_ns = link->known ? ns * link->value / link->low : ns,
                           .times = 1,
                           .count = count,
                           .after = {after},
                           .group = NW_GROUP_WORLD});
}

/* Kept activations go to the CPU behind the forward pass and come back before their backward pass;
 * the copies follow each other on a stream of their own. */
void nw_put_activations(struct nw_build *build, int stage, nw_unit_kind kind, int n, bool backward,
                        double count)
{
    const bool layer = kind == NW_UNIT_PLAIN || kind == NW_UNIT_EXPERTS;
    const bool nvme = build->job->offload.activations == NW_OFFLOAD_NVME;
    const double rate =
        nvme ? build->platform->nvme_bytes_per_s : build->platform->host_to_device_bytes_per_s;

    if (build->job->offload.activations == NW_OFFLOAD_NONE || !layer || !(rate > 0))
        return;
    const struct nw_memory_task task =
        nw_memory_task_of(build->job, &build->layout, (uint64_t)build->micro_batch,
                          (uint64_t)build->micro_batch_count);
    const double bytes =
        nw_memory_layer(&task, kind == NW_UNIT_PLAIN ? NW_LAYER_PLAIN : NW_LAYER_EXPERTS).stored;
    struct nw_stage *at = &build->stages[stage];
    const int32_t copy =
        nw_put_copy(build, stage, n * bytes / rate * 1e9, count, backward ? 0 : at->computed);

    if (backward)
        nw_stage_waits(at, copy);
}

/* Attention first, where a ring of keys and values hides behind it, then the rest; what else is
 * sent within the layer follows the computation, or runs beside it where the framework can; where
 * the CPU is behind with its launches, it takes the time that the GPU waits for them. */
void nw_put_units(struct nw_build *build, int stage, nw_unit_kind kind, int unit, int n,
                  bool backward, double count)
{
    struct nw_stage *at = &build->stages[stage];
    const struct nw_unit *of = &build->units[kind];
    const struct nw_message *messages = backward ? of->backward : of->forward;
    const nw_event_kind what = backward ? NW_EVENT_BACKWARD : NW_EVENT_FORWARD;
    const int32_t before = at->computed;
    double ns = (backward ? of->backward_ns : of->forward_ns) * n;
    double idle = of->idle_share * ns;
    int32_t sent[NW_MESSAGES_MAX] = {0};

    if (backward)
        nw_put_activations(build, stage, kind, n, true, count);
    for (int i = 0; i < NW_MESSAGES_MAX; i++) {
        struct nw_message message = messages[i];

        if (message.collective == NULL || message.stream != NW_STREAM_CONTEXT)
            continue;
        const double attention = (backward ? of->attention_backward_ns : of->attention_forward_ns);

        message.times *= n;
        sent[i] = nw_put_message(build, stage, &message, count, before);
        nw_put_compute(build, stage, what, unit, n, attention * n, count);
        nw_stage_waits(at, sent[i]);
        ns -= attention * n;
    }
    nw_put_compute(build, stage, what, unit, n, ns, count);
    if (!backward)
        nw_put_activations(build, stage, kind, n, false, count);
    for (int i = 0; i < NW_MESSAGES_MAX; i++) {
        struct nw_message message = messages[i];

        if (message.collective == NULL || message.stream == NW_STREAM_CONTEXT)
            continue;
        message.times *= n;
        sent[i] = nw_put_message(build, stage, &message, count, before);
        if (sent[i] == 0)
            continue;
        struct nw_event *event = &build->graph.events[sent[i] - 1];

        event->idle_ns = fmin(idle, event->ns);
        idle -= event->idle_ns;
        nw_stage_waits(at, sent[i]);
    }
}
