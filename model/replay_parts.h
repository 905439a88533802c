/* Private to model/. What one rank does in a replayed step.
 *
 * replay.c        the events to all ranks, the steps
 * replay_result.c what they came to
 * replay_plan.c   a rank's operations from the events; the communicators that they need
 * replay_lanes.c  one step: a thread a lane
 * replay_work.c   computation of a wanted length
 */
#ifndef NW_MODEL_REPLAY_PARTS_H
#define NW_MODEL_REPLAY_PARTS_H

#include <pthread.h>
#include <stdbool.h>

#include "model/replay.h"

/* A stream of the graph is a lane; what arrives from either neighbour stage has one too, so that a
 * sender never waits for more than the wire. */
enum {
    NW_LANE_FROM_BEFORE = NW_STREAM_COUNT, /* activations */
    NW_LANE_FROM_NEXT,                     /* their gradients */
    NW_LANE_COUNT,
};

typedef enum { NW_OP_COMPUTE, NW_OP_COLLECTIVE, NW_OP_SEND, NW_OP_RECEIVE, NW_OP_WAIT } nw_op_kind;

struct nw_op {
    nw_op_kind kind;
    int lane;
    int32_t event;                 /* of the graph */
    int32_t next;                  /* of the same lane; -1 */
    int32_t waits[NW_EVENT_WAITS]; /* ops; -1 ends */
    double ns;                     /* as predicted, on its lane */
    uint32_t times;
    struct nw_comm *comm; /* of the message, borrowed */
    struct nw_call call;  /* without buffers */
};

struct nw_replay_comms { /* owned; NULL: this rank has no part in it, or nobody needs it */
    struct nw_comm *groups[NW_STREAM_COUNT][NW_GROUP_COUNT];
    struct nw_comm *send[2], *receive[2]; /* [0] forward, [1] backward */
};

struct nw_lane_buffers {
    void *send, *recv;
    uint64_t send_bytes, recv_bytes;
};

struct nw_replay {
    struct nw_comm *comm;    /* borrowed */
    struct nw_layout layout; /* strategy and profile are pointers of this process */
    struct nw_timing timing;
    struct nw_graph graph; /* owned; on every rank */
    struct nw_step predicted;
    int stage;
    struct nw_op *ops; /* owned */
    int32_t op_count;
    int32_t first[NW_LANE_COUNT]; /* op; -1: an empty lane */
    struct nw_replay_comms comms;
    struct nw_lane_buffers buffers[NW_LANE_COUNT];
    double unit_ns; /* of nw_replay_units; 0: virtual */
    /* one step */
    bool is_virtual;
    bool verifies;
    uint64_t round;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool *done;                /* [op] */
    double *start_ns, *end_ns; /* [op], from the step's begin */
    uint64_t began_ns;
    double compute_cpu_ns; /* of a core, in the step's computation */
    nw_rc rc;              /* the first failure of a lane */
    struct nw_err error;
    uint64_t wrong_elements, checked_calls;
};

struct nw_replay_steps {
    const struct nw_replay_how *how;
    int count;
    double *step_ns, *skew_ns;       /* [step], the same on all ranks */
    struct nw_replay_time *op_times; /* [step][op] */
    double *ends;                    /* [rank], of the last step */
    double computed_ns, cpu_ns;      /* of all steps: on the clock, on the core */
    uint64_t began_ns;
};

/* replay.c: a rank's end of a step as the simulation counts it; who was last; is the median known?
 */
double nw_replay_end_ns(const struct nw_replay *replay, const double *end_ns);
int nw_replay_slowest(const struct nw_comm *comm, const double *ends);
bool nw_replay_is_enough(const struct nw_replay_steps *steps);

/* replay_result.c: collective */
nw_rc nw_replay_fill(struct nw_replay *replay, struct nw_replay_steps *steps,
                     struct nw_replay_result *result);

/* replay_plan.c */
nw_rc nw_replay_plan(struct nw_replay *replay);        /* ops, without communicators */
nw_rc nw_replay_connect(struct nw_replay *replay);     /* collective */
nw_rc nw_replay_get_buffers(struct nw_replay *replay); /* after connect */
void nw_replay_drop_plan(struct nw_replay *replay);

/* replay_lanes.c: this rank's part of one step; start_ns and end_ns are filled. */
nw_rc nw_replay_step(struct nw_replay *replay);

/* replay_work.c */
void nw_replay_units(uint64_t count); /* of work; each takes a few microseconds */
double nw_replay_unit_ns(void);       /* what one takes now, on this core */

#endif
