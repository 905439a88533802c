/* Public. The events of one optimizer step: what a representative rank of each pipeline stage
 * computes, sends and copies, on which stream, after what. Built by model/step_build.c, timed here.
 *
 *     struct nw_graph graph = {.stage_count = 1};
 *     int32_t f = nw_graph_add(&graph, &(struct nw_event){.kind = NW_EVENT_FORWARD, …});
 *     nw_graph_add(&graph, &(struct nw_event){…, .after = {f + 1}});
 *     NW_TRY(nw_graph_time(&graph, &timing, sums));        // sums[stage_count]
 *     nw_graph_free(&graph);
 *
 * Events of a stage stand in the order in which the stage issues them, and every event after those
 * that it waits for: one pass gives all times. The graph owns its events.
 */
#ifndef NW_MODEL_GRAPH_H
#define NW_MODEL_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/layout.h"
#include "model/profile.h"

typedef enum { /* each does one thing after the other */
               NW_STREAM_COMPUTE,
               NW_STREAM_GRADIENTS, /* reductions */
               NW_STREAM_WEIGHTS,   /* gathers; of FSDP reductions too: one communicator */
               NW_STREAM_TENSOR,    /* within a layer: TP and EP */
               NW_STREAM_CONTEXT,   /* keys and values around the ring of CP, behind attention */
               NW_STREAM_PIPELINE,  /* to the next stage */
               NW_STREAM_COPIES,    /* to and from the host */
               NW_STREAM_COUNT,
} nw_stream;

typedef enum {
    NW_EVENT_FORWARD,
    NW_EVENT_BACKWARD, /* with what is recomputed */
    NW_EVENT_UPDATE,
    NW_EVENT_HOST_UPDATE, /* on the CPU: the GPU waits */
    NW_EVENT_BUBBLE,      /* closed form: waits for other stages */
    NW_EVENT_COLLECTIVE,
    NW_EVENT_COPY,
} nw_event_kind;

#define NW_EVENT_WAITS      4
#define NW_GRAPH_EVENTS_MAX (1 << 22) /* of a step: hundreds of MB */

struct nw_event {
    nw_event_kind kind;
    nw_stream stream;
    int stage;
    int first_unit, unit_count; /* layers of the stage that it is of; embeddings 0 */
    double ns;                  /* of all `times`; low and high: of communication */
    double low_ns, high_ns;
    double times;                  /* so many equal calls in a row */
    double count;                  /* so often in the step: micro-batches alike */
    int32_t after[NW_EVENT_WAITS]; /* index + 1 of what it waits for; 0: nothing */
    /* COLLECTIVE, COPY */
    const char *collective;
    double bytes; /* of one call, as nccl-tests counts */
    nw_group_kind group;
    int to_stage;   /* PIPELINE: who receives it */
    bool backward;  /* PIPELINE: to the stage before */
    double idle_ns; /* of `ns`: fits where the GPU waits for the CPU's launches anyway */
    double start_ns, end_ns;
};

struct nw_graph {
    struct nw_event *events;
    int32_t count, capacity;
    int stage_count;
    bool failed; /* no room for an event */
};

/* Index + 1 of the new event, as `after` takes it; 0: no room, nw_graph_time says so. */
int32_t nw_graph_add(struct nw_graph *graph, const struct nw_event *event);
void nw_graph_clear(struct nw_graph *graph); /* keeps its memory */
void nw_graph_free(struct nw_graph *graph);

/* One timing of the same events. */
struct nw_timing {
    double compute_scale;                /* × computation; 1 */
    double curve_end;                    /* -1 low, 0 likely, 1 high end of communication */
    nw_overlap overlap[NW_STREAM_COUNT]; /* SERIAL: on the computation's stream */
};

struct nw_stage_sums {
    double end_ns;
    double compute_ns, update_ns; /* update: GPU and CPU */
    double bubble_ns;             /* waits for other stages */
    double stream_ns[NW_STREAM_COUNT], stream_exposed_ns[NW_STREAM_COUNT];
    double group_exposed_ns[NW_GROUP_COUNT];
};

nw_rc nw_graph_time(struct nw_graph *graph, const struct nw_timing *timing,
                    struct nw_stage_sums *sums_out);
/* The stream that an event is on, and how long it takes there. */
nw_stream nw_event_stream(const struct nw_event *event, const struct nw_timing *timing);
double nw_event_ns(const struct nw_event *event, const struct nw_timing *timing);
/* The sums of one stage from the times that its events have. */
void nw_graph_account(const struct nw_graph *graph, int stage, const struct nw_timing *timing,
                      struct nw_stage_sums *sums_out);

#endif
