#include <math.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/graph.h"

static int32_t put(struct nw_graph *graph, nw_event_kind kind, nw_stream stream, double ns,
                   int32_t after)
{
    return nw_graph_add(graph, &(struct nw_event){.kind = kind,
                                                  .stream = stream,
                                                  .ns = ns,
                                                  .low_ns = ns / 2,
                                                  .high_ns = ns * 2,
                                                  .times = 1,
                                                  .count = 1,
                                                  .after = {after},
                                                  .group = NW_GROUP_DP});
}

static struct nw_stage_sums time_of(struct nw_graph *graph, double end, nw_overlap overlap)
{
    struct nw_timing timing = {.compute_scale = 1, .curve_end = end};
    struct nw_stage_sums sums[4];

    for (int s = 0; s < NW_STREAM_COUNT; s++)
        timing.overlap[s] = overlap;
    cr_assert(eq(int, nw_graph_time(graph, &timing, sums), NW_OK));
    return sums[0];
}

/* Two passes of 10, a message of 15 after the first, and what waits for it. */
Test(graph, a_message_shows_what_the_computation_does_not_cover)
{
    struct nw_graph graph = {.stage_count = 1};
    const int32_t first = put(&graph, NW_EVENT_BACKWARD, NW_STREAM_COMPUTE, 10, 0);

    const int32_t sum = put(&graph, NW_EVENT_COLLECTIVE, NW_STREAM_GRADIENTS, 15, first);
    put(&graph, NW_EVENT_BACKWARD, NW_STREAM_COMPUTE, 10, 0);
    put(&graph, NW_EVENT_UPDATE, NW_STREAM_COMPUTE, 3, sum);
    const struct nw_stage_sums behind = time_of(&graph, 0, NW_OVERLAP_STREAM);
    const struct nw_stage_sums bare = time_of(&graph, 0, NW_OVERLAP_SERIAL);

    cr_expect(eq(dbl, behind.end_ns, 28));
    cr_expect(eq(dbl, behind.compute_ns, 20));
    cr_expect(eq(dbl, behind.update_ns, 3));
    cr_expect(eq(dbl, behind.stream_exposed_ns[NW_STREAM_GRADIENTS], 5));
    cr_expect(eq(dbl, behind.group_exposed_ns[NW_GROUP_DP], 5));
    cr_expect(eq(dbl, behind.stream_ns[NW_STREAM_GRADIENTS], 15));
    cr_expect(eq(dbl, bare.end_ns, 38));
    cr_expect(eq(dbl, bare.stream_exposed_ns[NW_STREAM_GRADIENTS], 15));
    cr_expect(eq(dbl, time_of(&graph, -1, NW_OVERLAP_SERIAL).end_ns, 30.5));
    cr_expect(eq(dbl, time_of(&graph, 1, NW_OVERLAP_SERIAL).end_ns, 53));
    nw_graph_free(&graph);
}

/* What nothing waits for still has to end before the step does. */
Test(graph, the_step_ends_with_its_last_message)
{
    struct nw_graph graph = {.stage_count = 1};
    const int32_t pass = put(&graph, NW_EVENT_FORWARD, NW_STREAM_COMPUTE, 10, 0);

    put(&graph, NW_EVENT_COLLECTIVE, NW_STREAM_WEIGHTS, 7, pass);
    put(&graph, NW_EVENT_COLLECTIVE, NW_STREAM_GRADIENTS, 9, pass);
    const struct nw_stage_sums sums = time_of(&graph, 0, NW_OVERLAP_STREAM);

    cr_expect(eq(dbl, sums.end_ns, 19));
    cr_expect(eq(dbl, sums.stream_exposed_ns[NW_STREAM_WEIGHTS], 7));
    cr_expect(eq(dbl, sums.stream_exposed_ns[NW_STREAM_GRADIENTS], 2));
    nw_graph_free(&graph);
}

Test(graph, a_stage_that_waits_has_a_bubble_and_the_way_between_stages_shows)
{
    struct nw_graph graph = {.stage_count = 2};
    const int32_t pass = put(&graph, NW_EVENT_FORWARD, NW_STREAM_COMPUTE, 10, 0);
    const int32_t sent = put(&graph, NW_EVENT_COLLECTIVE, NW_STREAM_PIPELINE, 2, pass);
    const struct nw_timing timing = {.compute_scale = 1};
    struct nw_stage_sums sums[2];

    nw_graph_add(&graph, &(struct nw_event){.kind = NW_EVENT_FORWARD,
                                            .stream = NW_STREAM_COMPUTE,
                                            .stage = 1,
                                            .ns = 10,
                                            .count = 1,
                                            .after = {sent}});
    cr_assert(eq(int, nw_graph_time(&graph, &timing, sums), NW_OK));
    cr_expect(eq(dbl, sums[0].end_ns, 10)); /* it does not wait for what it sent */
    cr_expect(eq(dbl, sums[1].end_ns, 22));
    cr_expect(eq(dbl, sums[1].bubble_ns, 10));
    cr_expect(eq(dbl, sums[1].stream_exposed_ns[NW_STREAM_PIPELINE], 2));
    nw_graph_free(&graph);
}

/* An event that stands for several: its time once in the order, all of them in the sums. */
Test(graph, what_is_counted_several_times_is_paid_as_often)
{
    struct nw_graph graph = {.stage_count = 1};
    const int32_t pass = put(&graph, NW_EVENT_FORWARD, NW_STREAM_COMPUTE, 10, 0);

    put(&graph, NW_EVENT_COLLECTIVE, NW_STREAM_WEIGHTS, 4, pass);
    graph.events[0].count = graph.events[1].count = 3;
    const struct nw_stage_sums sums = time_of(&graph, 0, NW_OVERLAP_SERIAL);

    cr_expect(eq(dbl, sums.end_ns, 42));
    cr_expect(eq(dbl, sums.compute_ns, 30));
    cr_expect(eq(dbl, sums.stream_ns[NW_STREAM_WEIGHTS], 12));
    nw_graph_clear(&graph);
    cr_expect(eq(int, graph.count, 0));
    nw_graph_free(&graph);
}

/* No more events than there may be: said in the words of what makes so many. */
Test(graph, too_many_events_are_refused_and_named)
{
    struct nw_graph graph = {
        .stage_count = 1, .count = NW_GRAPH_EVENTS_MAX, .capacity = NW_GRAPH_EVENTS_MAX};
    const struct nw_timing timing = {.compute_scale = 1};
    struct nw_stage_sums sums;

    cr_expect(eq(int, nw_graph_add(&graph, &(struct nw_event){.ns = 1}), 0));
    cr_expect(eq(int, nw_graph_time(&graph, &timing, &sums), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--pp"), NULL));
    nw_clear_error();
}
