/* Ranks as threads of one process, over shared memory: the double for tests and ThreadSanitizer's
 * target. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/common.h"
#include "collectives/local_group.h"

struct local_comm {
    struct nw_comm base;
    struct group *group;
};

static const struct nw_comm_ops local_ops;

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes > 0)
        memcpy(to, from, bytes);
}

static nw_rc local_call(struct nw_comm *base, const struct nw_call *call)
{
    if (!nw_call_is_valid(base, call))
        return nw_last_error()->rc;
    return nw_local_run(((struct local_comm *)base)->group, base->rank, call);
}

/* ---- the small services ---- */

static nw_rc local_barrier(struct nw_comm *base)
{
    return nw_group_meet(((struct local_comm *)base)->group);
}

static nw_rc local_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    struct group *group = ((struct local_comm *)base)->group;
    group->data[base->rank] = mine;
    NW_TRY(nw_group_meet(group));
    for (int rank = 0; rank < base->rank_count; rank++)
        copy((char *)all + (uint64_t)rank * bytes, group->data[rank], bytes);
    return nw_group_meet(group);
}

static nw_rc local_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    struct group *group = ((struct local_comm *)base)->group;
    if (root < 0 || root >= base->rank_count)
        return nw_fail(NW_EUSAGE, "root %d is no rank; accepted: 0 to %d", root,
                       base->rank_count - 1);
    group->data[base->rank] = data;
    NW_TRY(nw_group_meet(group));
    copy(data, group->data[root], bytes);
    return nw_group_meet(group);
}

static bool offers(const struct mailbox *box, int to)
{
    return box->posted && !box->taken && box->peer == to;
}

/* With the lock held. */
static void post(struct mailbox *box, int peer, const void *send, uint64_t bytes)
{
    box->peer = peer;
    box->send = send;
    box->bytes = bytes;
    box->taken = false;
    box->posted = true;
}

static nw_rc give(struct group *group, int rank, const struct nw_message *message)
{
    struct mailbox *mine = &group->mailboxes[rank];
    const struct mailbox *theirs = &group->mailboxes[message->peer];
    pthread_mutex_t *lock = &group->world->lock;
    nw_rc rc = NW_OK;

    pthread_mutex_lock(lock);
    post(mine, message->peer, message->data, message->bytes);
    pthread_cond_broadcast(&group->condition);
    while (!mine->taken && !theirs->gone)
        pthread_cond_wait(&group->condition, lock);
    if (!mine->taken)
        rc = nw_group_peer_is_gone(group->world);
    mine->posted = false;
    pthread_mutex_unlock(lock);
    return rc;
}

/* Copied with the lock held: who goes meanwhile would take the data with it. */
static nw_rc take(struct group *group, int rank, const struct nw_message *message)
{
    struct mailbox *theirs = &group->mailboxes[message->peer];
    pthread_mutex_t *lock = &group->world->lock;
    nw_rc rc = NW_OK;

    pthread_mutex_lock(lock);
    while (!offers(theirs, rank) && !theirs->gone)
        pthread_cond_wait(&group->condition, lock);
    if (!offers(theirs, rank)) {
        rc = nw_group_peer_is_gone(group->world);
    } else if (theirs->bytes != message->bytes) {
        rc = nw_fail(NW_EUSAGE, "rank %d sends %llu bytes, rank %d awaits %llu", message->peer,
                     (unsigned long long)theirs->bytes, rank, (unsigned long long)message->bytes);
    } else {
        copy(message->data, theirs->send, message->bytes);
        theirs->taken = true;
        pthread_cond_broadcast(&group->condition);
    }
    pthread_mutex_unlock(lock);
    return rc;
}

static nw_rc local_pass(struct nw_comm *base, bool out, const struct nw_message *messages,
                        size_t count)
{
    struct group *group = ((struct local_comm *)base)->group;

    for (size_t i = 0; i < count; i++)
        NW_TRY((out ? give : take)(group, base->rank, &messages[i]));
    return NW_OK;
}

static nw_rc local_swap(struct nw_comm *base, int peer, const void *send, void *recv,
                        uint64_t bytes)
{
    struct group *group = ((struct local_comm *)base)->group;
    struct mailbox *mine = &group->mailboxes[base->rank];
    pthread_mutex_t *lock = &group->world->lock;
    if (peer < 0 || peer >= base->rank_count)
        return nw_fail(NW_EUSAGE, "peer %d is no rank; accepted: 0 to %d", peer,
                       base->rank_count - 1);
    if (peer == base->rank) {
        copy(recv, send, bytes);
        return NW_OK;
    }
    struct mailbox *theirs = &group->mailboxes[peer];
    nw_rc rc = NW_OK;

    pthread_mutex_lock(lock);
    post(mine, peer, send, bytes);
    pthread_cond_broadcast(&group->condition);
    while (!offers(theirs, base->rank) && !theirs->gone)
        pthread_cond_wait(&group->condition, lock);
    if (!offers(theirs, base->rank)) {
        mine->posted = false;
        rc = nw_group_peer_is_gone(group->world);
        pthread_mutex_unlock(lock);
        return rc;
    }
    const void *from = theirs->send;
    const uint64_t their_bytes = theirs->bytes;
    pthread_mutex_unlock(lock);

    if (their_bytes == bytes)
        copy(recv, from, bytes);
    else
        rc = nw_fail(NW_EUSAGE, "rank %d swaps %llu bytes, rank %d swaps %llu", base->rank,
                     (unsigned long long)bytes, peer, (unsigned long long)their_bytes);

    pthread_mutex_lock(lock);
    theirs->taken = true;
    pthread_cond_broadcast(&group->condition);
    while (!mine->taken)
        pthread_cond_wait(&group->condition, lock);
    mine->posted = false;
    pthread_mutex_unlock(lock);
    return rc;
}

static struct local_comm *local_new(struct group *group, int rank)
{
    struct local_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    *comm = (struct local_comm){
        .base = {.ops = &local_ops, .rank = rank, .rank_count = group->rank_count}, .group = group};
    snprintf(comm->base.library, sizeof comm->base.library, "threads of one process");
    return comm;
}

/* The lowest rank of each colour makes the group and leaves it where its fellows find it. */
static nw_rc split_group(struct local_comm *parent, const int *colours, struct group **group_out,
                         int *rank_out)
{
    const int rank = parent->base.rank, rank_count = parent->base.rank_count;
    struct group *group = NULL;
    int leader = -1, own = 0, count = 0;
    for (int i = 0; i < rank_count; i++) {
        if (colours[i] != colours[rank])
            continue;
        if (leader < 0)
            leader = i;
        own += i < rank;
        count++;
    }
    if (leader == rank && colours[rank] >= 0) {
        group = nw_group_new(parent->group->world, count);
        for (int i = 0, next = 0; group && i < rank_count; i++) {
            if (colours[i] == colours[rank])
                group->world_ranks[next++] = parent->group->world_ranks[i];
        }
        if (group)
            nw_group_enlist(group);
    }
    parent->group->data[rank] = group;
    NW_TRY(nw_group_meet(parent->group));
    *group_out = (struct group *)parent->group->data[leader];
    *rank_out = own;
    return nw_group_meet(parent->group);
}

static nw_rc local_split(struct nw_comm *base, int colour, struct nw_comm **comm_out)
{
    struct local_comm *parent = (struct local_comm *)base;
    struct group *group = NULL;
    int rank = 0;
    int *colours = calloc((size_t)base->rank_count, sizeof *colours);
    char(*names)[NW_HOST_NAME_SIZE] = calloc((size_t)base->rank_count, sizeof *names);
    struct local_comm *comm = NULL;
    nw_rc rc = NW_OK;
    if (!colours || !names) {
        rc = nw_fail(NW_ENOMEM, "cannot split %d ranks", base->rank_count);
        goto out;
    }
    NW_TRY_GOTO(local_exchange(base, &colour, sizeof colour, colours), out);
    NW_TRY_GOTO(split_group(parent, colours, &group, &rank), out);
    if (colour < 0) {
        *comm_out = NULL;
        goto out;
    }
    comm = group ? local_new(group, rank) : NULL;
    if (!comm) {
        rc = nw_fail(NW_ENOMEM, "cannot split %d ranks", base->rank_count);
        goto out;
    }
    for (int i = 0, next = 0; i < base->rank_count; i++) {
        if (colours[i] == colour)
            memcpy(names[next++], base->host_names[base->host_of_rank[i]], sizeof *names);
    }
    NW_TRY_GOTO(nw_comm_set_hosts(&comm->base, (const char(*)[NW_HOST_NAME_SIZE])names), out);
    *comm_out = &comm->base;
    comm = NULL;
out:
    free(comm);
    free(colours);
    free(names);
    return rc;
}

static void local_close(struct nw_comm *base)
{
    struct local_comm *comm = (struct local_comm *)base;
    nw_group_leave(comm->group);
    nw_comm_drop_hosts(base);
    free(comm);
}

static const struct nw_comm_ops local_ops = {
    .name = "local",
    .title = "threads of one process, a double for tests",
    .simulated = true,
    .call = local_call,
    .swap = local_swap,
    .pass = local_pass,
    .barrier = local_barrier,
    .exchange = local_exchange,
    .share = local_share,
    .split = local_split,
    .close = local_close,
    .supports = nw_call_is_valid,
};

/* ---- the threads ---- */

struct seat {
    pthread_t thread;
    struct nw_comm *comm;
    nw_rc (*body)(struct nw_comm *comm, void *argument);
    void *argument;
    nw_rc rc;
    struct nw_err error;
};

static void *run_seat(void *data)
{
    struct seat *seat = data;
    struct group *group = ((struct local_comm *)seat->comm)->group;
    struct world *world = group->world;
    const int rank = seat->comm->rank;
    seat->rc = seat->body(seat->comm, seat->argument);
    if (seat->rc != NW_OK)
        seat->error = *nw_last_error();
    pthread_mutex_lock(&world->lock);
    if (seat->rc != NW_OK && world->failed_rank < 0) {
        world->failed_rank = rank;
        snprintf(world->failure, sizeof world->failure, "%.*s", (int)sizeof world->failure - 1,
                 seat->error.text);
    }
    nw_group_mark_gone(world, rank);
    pthread_mutex_unlock(&world->lock);
    return NULL;
}

static nw_rc seats_fill(struct seat *seats, struct group *group, int host_count,
                        nw_rc (*body)(struct nw_comm *comm, void *argument), void *argument)
{
    const int rank_count = group->rank_count;
    char(*names)[NW_HOST_NAME_SIZE] = calloc((size_t)rank_count, sizeof *names);
    nw_rc rc = NW_OK;
    if (!names)
        return nw_fail(NW_ENOMEM, "cannot seat %d local ranks", rank_count);
    for (int rank = 0; rank < rank_count; rank++)
        snprintf(names[rank], sizeof names[rank], "local%lld",
                 (long long)rank * host_count / rank_count);
    for (int rank = 0; rank < rank_count && rc == NW_OK; rank++) {
        struct local_comm *comm = local_new(group, rank);
        if (!comm) {
            rc = nw_fail(NW_ENOMEM, "cannot seat %d local ranks", rank_count);
            break;
        }
        group->world_ranks[rank] = rank;
        seats[rank] = (struct seat){.comm = &comm->base, .body = body, .argument = argument};
        rc = nw_comm_set_hosts(&comm->base, (const char(*)[NW_HOST_NAME_SIZE])names);
    }
    free(names);
    return rc;
}

static void seats_run(struct seat *seats, struct world *world, int rank_count)
{
    int started = 0;
    while (started < rank_count &&
           pthread_create(&seats[started].thread, NULL, run_seat, &seats[started]) == 0)
        started++;
    if (started < rank_count)
        (void)nw_fail(NW_ENOMEM, "cannot start thread %d of %d", started + 1, rank_count);
    for (int rank = started; rank < rank_count; rank++) {
        seats[rank].rc = NW_ENOMEM;
        seats[rank].error = *nw_last_error();
        pthread_mutex_lock(&world->lock);
        nw_group_mark_gone(world, rank);
        pthread_mutex_unlock(&world->lock);
    }
    for (int rank = 0; rank < started; rank++)
        pthread_join(seats[rank].thread, NULL);
}

/* The lowest rank that failed by itself; else the lowest that lost a peer. */
static nw_rc seats_result(const struct seat *seats, int rank_count)
{
    const struct seat *worst = NULL;
    for (int rank = 0; rank < rank_count; rank++) {
        const struct seat *seat = &seats[rank];
        if (seat->rc != NW_OK && (!worst || (worst->rc == NW_EPEER && seat->rc != NW_EPEER)))
            worst = seat;
    }
    if (!worst)
        return NW_OK;
    return nw_fail_at(worst->rc, worst->error.lib, worst->error.lib_code, worst->error.where, "%s",
                      worst->error.text);
}

nw_rc nw_comm_run_local(int rank_count, int host_count,
                        nw_rc (*body)(struct nw_comm *comm, void *argument), void *argument)
{
    struct world world = {.lock = PTHREAD_MUTEX_INITIALIZER, .failed_rank = -1};
    nw_rc rc;
    if (rank_count < 1 || rank_count > NW_LOCAL_MAX_RANKS)
        return nw_fail(NW_EUSAGE, "%d local ranks; accepted: 1 to %d", rank_count,
                       NW_LOCAL_MAX_RANKS);
    if (host_count < 1 || host_count > rank_count)
        return nw_fail(NW_EUSAGE, "%d pretended hosts for %d ranks; accepted: 1 to %d", host_count,
                       rank_count, rank_count);
    struct seat *seats = calloc((size_t)rank_count, sizeof *seats);
    struct group *group = nw_group_new(&world, rank_count);
    if (!seats || !group) {
        nw_group_free(group);
        free(seats);
        return nw_fail(NW_ENOMEM, "cannot seat %d local ranks", rank_count);
    }
    nw_group_enlist(group);
    rc = seats_fill(seats, group, host_count, body, argument);
    if (rc == NW_OK) {
        seats_run(seats, &world, rank_count);
        rc = seats_result(seats, rank_count);
    }
    int seated = 0;
    while (seated < rank_count && seats[seated].comm)
        nw_comm_close(seats[seated++].comm);
    for (; seated < rank_count; seated++)
        nw_group_leave(group);
    free(seats);
    pthread_mutex_destroy(&world.lock);
    return rc;
}
