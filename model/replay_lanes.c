/* One step of one rank: a thread a lane, each does its ops one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collectives/oracle.h"
#include "model/replay_parts.h"

struct lane {
    struct nw_replay *replay;
    int number;
    pthread_t thread;
    bool started;
    double free_ns; /* virtual: when it has done its last */
};

static void give_up(struct nw_replay *replay, nw_rc rc)
{
    pthread_mutex_lock(&replay->lock);
    if (replay->rc == NW_OK) {
        replay->rc = rc;
        replay->error = *nw_last_error();
    }
    pthread_cond_broadcast(&replay->changed);
    pthread_mutex_unlock(&replay->lock);
}

/* Until all that the op waits for is done; false: a lane has failed. `ready_ns_out`: when the last
 * of them was. */
static bool wait_for(struct nw_replay *replay, const struct nw_op *op, double *ready_ns_out)
{
    double ready = 0;
    bool good;

    pthread_mutex_lock(&replay->lock);
    for (int i = 0; i < NW_EVENT_WAITS && op->waits[i] >= 0; i++) {
        while (!replay->done[op->waits[i]] && replay->rc == NW_OK)
            pthread_cond_wait(&replay->changed, &replay->lock);
        ready = fmax(ready, replay->end_ns[op->waits[i]]);
    }
    good = replay->rc == NW_OK;
    pthread_mutex_unlock(&replay->lock);
    *ready_ns_out = ready;
    return good;
}

static void mark_done(struct nw_replay *replay, int32_t op, double start_ns, double end_ns)
{
    pthread_mutex_lock(&replay->lock);
    replay->start_ns[op] = start_ns;
    replay->end_ns[op] = end_ns;
    replay->done[op] = true;
    pthread_cond_broadcast(&replay->changed);
    pthread_mutex_unlock(&replay->lock);
}

/* ---- real ---------------------------------------------------------------------------------- */

static void wait_ns(double ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)fmod(ns, 1e9)};

    while (nanosleep(&left, &left) != 0)
        continue;
}

static nw_rc make_message(struct nw_replay *replay, const struct nw_op *op)
{
    const struct nw_lane_buffers *buffers = &replay->buffers[op->lane];
    struct nw_call call = op->call;
    struct nw_wrong first;

    nw_call_place(&call, op->comm->rank, buffers->send, buffers->recv);
    for (uint32_t i = 0; i < op->times; i++) {
        if (replay->verifies)
            nw_comm_fill(op->comm, &call, replay->round + i);
        NW_TRY(op->comm->ops->call(op->comm, &call));
        if (!replay->verifies)
            continue;
        const uint64_t wrong = nw_comm_check(op->comm, &call, replay->round + i, &first);

        pthread_mutex_lock(&replay->lock);
        replay->wrong_elements += wrong;
        replay->checked_calls++;
        pthread_mutex_unlock(&replay->lock);
    }
    return NW_OK;
}

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* On the computation's lane alone. */
static void compute(struct nw_replay *replay, double ns)
{
    const double before = cpu_ns();

    nw_replay_units((uint64_t)llround(ns / replay->unit_ns));
    replay->compute_cpu_ns += cpu_ns() - before;
}

static nw_rc do_op(struct nw_replay *replay, const struct nw_op *op)
{
    switch (op->kind) {
    case NW_OP_COMPUTE:
        if (!replay->verifies)
            compute(replay, op->ns);
        return NW_OK;
    case NW_OP_WAIT:
        if (!replay->verifies)
            wait_ns(op->ns);
        return NW_OK;
    case NW_OP_COLLECTIVE:
    case NW_OP_SEND:
    case NW_OP_RECEIVE:
        break;
    }
    return make_message(replay, op);
}

static nw_rc run_real(struct lane *lane, int32_t index)
{
    struct nw_replay *replay = lane->replay;
    const double start = (double)(nw_now_ns() - replay->began_ns);

    NW_TRY(do_op(replay, &replay->ops[index]));
    mark_done(replay, index, start, (double)(nw_now_ns() - replay->began_ns));
    return NW_OK;
}

/* ---- virtual ------------------------------------------------------------------------------- */

/* A message begins when the last rank that it needs is there; a receiver is there from the start.
 */
static nw_rc meet(const struct nw_op *op, double *start_ns)
{
    const double mine = op->kind == NW_OP_RECEIVE ? 0 : *start_ns;
    double *all = malloc((size_t)op->comm->rank_count * sizeof *all);
    nw_rc rc;

    if (all == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the clocks of %d ranks", op->comm->rank_count);
    rc = op->comm->ops->exchange(op->comm, &mine, sizeof mine, all);
    *start_ns = 0;
    for (int i = 0; i < op->comm->rank_count && rc == NW_OK; i++)
        *start_ns = fmax(*start_ns, all[i]);
    free(all);
    return rc;
}

static nw_rc run_virtual(struct lane *lane, int32_t index, double ready_ns)
{
    struct nw_replay *replay = lane->replay;
    const struct nw_op *op = &replay->ops[index];
    double start = fmax(lane->free_ns, ready_ns);

    if (op->comm != NULL)
        NW_TRY(meet(op, &start));
    if (op->kind != NW_OP_RECEIVE) /* each message of a neighbour has its own time there */
        lane->free_ns = start + op->ns;
    mark_done(replay, index, start, start + op->ns);
    return NW_OK;
}

/* ---- the lanes ----------------------------------------------------------------------------- */

static void *run_lane(void *data)
{
    struct lane *lane = data;
    struct nw_replay *replay = lane->replay;
    double ready;

    for (int32_t op = replay->first[lane->number]; op >= 0; op = replay->ops[op].next) {
        if (!wait_for(replay, &replay->ops[op], &ready))
            return NULL;
        const nw_rc rc = replay->is_virtual ? run_virtual(lane, op, ready) : run_real(lane, op);

        if (rc != NW_OK) {
            give_up(replay, rc);
            return NULL;
        }
    }
    return NULL;
}

nw_rc nw_replay_step(struct nw_replay *replay)
{
    struct lane lanes[NW_LANE_COUNT];

    memset(replay->done, 0, (size_t)replay->op_count * sizeof *replay->done);
    replay->rc = NW_OK;
    replay->compute_cpu_ns = 0;
    replay->began_ns = nw_now_ns();
    for (int i = 0; i < NW_LANE_COUNT; i++) {
        lanes[i] = (struct lane){.replay = replay, .number = i};
        if (i == NW_STREAM_COMPUTE || replay->first[i] < 0)
            continue;
        lanes[i].started = pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) == 0;
        if (!lanes[i].started)
            give_up(replay, nw_fail(NW_ENOMEM, "cannot start a thread of a replayed step"));
    }
    run_lane(&lanes[NW_STREAM_COMPUTE]);
    for (int i = 0; i < NW_LANE_COUNT; i++)
        if (lanes[i].started)
            pthread_join(lanes[i].thread, NULL);
    if (replay->rc == NW_OK)
        return NW_OK;
    return nw_fail_at(replay->error.rc, replay->error.lib, replay->error.lib_code,
                      replay->error.where, "%s", replay->error.text);
}
