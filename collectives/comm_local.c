/* Ranks as threads of one process, over shared memory: the double for tests and ThreadSanitizer's
 * target. Every rank publishes its call, all meet, each moves or reduces its own share straight
 * from the others' buffers, all meet again.
 *
 * One lock guards a world; each group (the world's own, and those of split) has its own condition.
 * A rank whose body has returned is gone from every group that it was in: calls that need it return
 * NW_EPEER. A rank inside a call cannot go, so nobody loses a buffer that another still reads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/comm.h"
#include "collectives/hosts.h"
#include "kernels/reduce.h"

struct mailbox { /* of one rank, for swap */
    bool posted, taken;
    bool gone; /* the rank's body has returned */
    int peer;
    const void *send;
    uint64_t bytes;
};

struct group {
    struct world *world;
    struct group *next; /* in the world's list */
    int rank_count, open_count, arrived_count;
    int gone_count;
    uint64_t generation; /* of the barrier */
    pthread_cond_t condition;
    const struct nw_call **calls; /* by rank: what each published before a barrier */
    const void **data;
    struct mailbox *mailboxes;
    int *world_ranks;
};

struct world {
    pthread_mutex_t lock;
    struct group *groups;
    int failed_rank; /* the first that failed by itself; -1 none */
    char failure[256];
};

struct local_comm {
    struct nw_comm base;
    struct group *group;
};

static const struct nw_comm_ops local_ops;

/* ---- groups ---- */

static void group_free(struct group *group)
{
    if (!group)
        return;
    pthread_cond_destroy(&group->condition);
    free(group->calls);
    free(group->data);
    free(group->mailboxes);
    free(group->world_ranks);
    free(group);
}

static struct group *group_new(struct world *world, int rank_count)
{
    const size_t count = (size_t)rank_count;
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->world = world;
    group->rank_count = group->open_count = rank_count;
    pthread_cond_init(&group->condition, NULL);
    group->calls = calloc(count, sizeof *group->calls);
    group->data = calloc(count, sizeof *group->data);
    group->mailboxes = calloc(count, sizeof *group->mailboxes);
    group->world_ranks = calloc(count, sizeof *group->world_ranks);
    if (!group->calls || !group->data || !group->mailboxes || !group->world_ranks) {
        group_free(group);
        return NULL;
    }
    return group;
}

static void group_enlist(struct group *group)
{
    struct world *world = group->world;
    pthread_mutex_lock(&world->lock);
    group->next = world->groups;
    world->groups = group;
    pthread_mutex_unlock(&world->lock);
}

/* The last member takes the group off the world's list. */
static void group_leave(struct group *group)
{
    struct world *world = group->world;
    pthread_mutex_lock(&world->lock);
    const bool last = --group->open_count == 0;
    if (last) {
        struct group **link = &world->groups;
        while (*link != group)
            link = &(*link)->next;
        *link = group->next;
    }
    pthread_mutex_unlock(&world->lock);
    if (last)
        group_free(group);
}

/* With the world's lock held: `world_rank` takes part in nothing any more. */
static void mark_gone(struct world *world, int world_rank)
{
    for (struct group *group = world->groups; group; group = group->next) {
        for (int i = 0; i < group->rank_count; i++) {
            if (group->world_ranks[i] != world_rank)
                continue;
            group->mailboxes[i].gone = true;
            group->gone_count++;
            pthread_cond_broadcast(&group->condition);
        }
    }
}

static nw_rc peer_is_gone(const struct world *world)
{
    if (world->failed_rank >= 0)
        return nw_fail(NW_EPEER, "rank %d failed: %s", world->failed_rank, world->failure);
    return nw_fail(NW_EPEER, "another rank has left before this call was over");
}

static nw_rc meet(struct group *group)
{
    nw_rc rc = NW_OK;
    pthread_mutex_lock(&group->world->lock);
    const uint64_t generation = group->generation;
    if (group->gone_count > 0) {
        rc = peer_is_gone(group->world);
    } else if (++group->arrived_count == group->rank_count) {
        group->arrived_count = 0;
        group->generation++;
        pthread_cond_broadcast(&group->condition);
    } else {
        while (group->generation == generation && group->gone_count == 0)
            pthread_cond_wait(&group->condition, &group->world->lock);
        if (group->generation == generation)
            rc = peer_is_gone(group->world);
    }
    pthread_mutex_unlock(&group->world->lock);
    return rc;
}

/* ---- collectives: each rank's share of the work, between two meetings ---- */

struct share {
    const struct nw_call *mine;
    const struct nw_call *const *all;
    int rank, rank_count;
    uint64_t chunk_bytes; /* of shape.count elements */
    size_t element_bytes;
};

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes > 0)
        memcpy(to, from, bytes);
}

/* Reduce `count` elements at `offset` bytes of every rank's send buffer into `to`. Starts with rank
 * `first`, whose buffer `to` may be. In blocks, so that the partial sums stay in the cache. */
static void reduce_range(const struct share *share, void *to, uint64_t offset, uint64_t count,
                         int first)
{
    const struct nw_call *mine = share->mine;
    const uint64_t block = 32768 / share->element_bytes;
    for (uint64_t done = 0; done < count; done += block) {
        const uint64_t left = count - done, part = left < block ? left : block;
        const uint64_t at = offset + done * share->element_bytes;
        char *target = (char *)to + done * share->element_bytes;
        copy(target, (const char *)share->all[first]->send + at, part * share->element_bytes);
        for (int i = 1; i < share->rank_count; i++) {
            const struct nw_call *other = share->all[(first + i) % share->rank_count];
            nw_reduce_into(mine->dtype, mine->op, target, (const char *)other->send + at, part);
        }
        if (mine->op == NW_AVG)
            nw_divide(mine->dtype, target, part, share->rank_count);
    }
}

/* Elements [first, end) that `rank` reduces. */
static void slice(const struct share *share, int rank, uint64_t *first_out, uint64_t *end_out)
{
    const uint64_t count = share->mine->shape.count, ranks = (uint64_t)share->rank_count;
    const uint64_t each = count / ranks, rest = count % ranks, r = (uint64_t)rank;
    *first_out = r * each + (r < rest ? r : rest);
    *end_out = *first_out + each + (r < rest);
}

static void reduce_slice(const struct share *share)
{
    uint64_t first, end;
    slice(share, share->rank, &first, &end);
    const uint64_t offset = first * share->element_bytes;
    reduce_range(share, (char *)share->mine->recv + offset, offset, end - first, share->rank);
}

static void collect_slices(const struct share *share)
{
    for (int i = 1; i < share->rank_count; i++) {
        const int rank = (share->rank + i) % share->rank_count;
        uint64_t first, end;
        slice(share, rank, &first, &end);
        const uint64_t offset = first * share->element_bytes;
        copy((char *)share->mine->recv + offset, (const char *)share->all[rank]->recv + offset,
             (end - first) * share->element_bytes);
    }
}

static void reduce_to_root(const struct share *share)
{
    const struct nw_call *root = share->all[share->mine->root];
    uint64_t first, end;
    slice(share, share->rank, &first, &end);
    const uint64_t offset = first * share->element_bytes;
    reduce_range(share, (char *)root->recv + offset, offset, end - first, share->mine->root);
}

static void reduce_chunk(const struct share *share)
{
    reduce_range(share, share->mine->recv, (uint64_t)share->rank * share->chunk_bytes,
                 share->mine->shape.count, share->rank);
}

static void gather_all(const struct share *share)
{
    for (int i = 0; i < share->rank_count; i++) {
        const int rank = (share->rank + i) % share->rank_count;
        copy((char *)share->mine->recv + (uint64_t)rank * share->chunk_bytes,
             share->all[rank]->send, share->chunk_bytes);
    }
}

static void gather_from_all(const struct share *share)
{
    for (int i = 0; i < share->rank_count; i++) {
        const int rank = (share->rank + i) % share->rank_count;
        copy((char *)share->mine->recv + (uint64_t)rank * share->chunk_bytes,
             (const char *)share->all[rank]->send + (uint64_t)share->rank * share->chunk_bytes,
             share->chunk_bytes);
    }
}

static void copy_from_root(const struct share *share)
{
    copy(share->mine->recv, share->all[share->mine->root]->send, share->chunk_bytes);
}

static void copy_to_root(const struct share *share)
{
    copy((char *)share->all[share->mine->root]->recv + (uint64_t)share->rank * share->chunk_bytes,
         share->mine->send, share->chunk_bytes);
}

static void chunk_from_root(const struct share *share)
{
    copy(share->mine->recv,
         (const char *)share->all[share->mine->root]->send +
             (uint64_t)share->rank * share->chunk_bytes,
         share->chunk_bytes);
}

static void copy_from_previous(const struct share *share)
{
    const int previous = (share->rank + share->rank_count - 1) % share->rank_count;
    copy(share->mine->recv, share->all[previous]->send, share->chunk_bytes);
}

static const struct {
    void (*work)(const struct share *share);
    void (*then)(const struct share *share); /* after a further meeting; NULL: none */
} steps[NW_COLL_COUNT] = {
    [NW_ALL_REDUCE] = {reduce_slice, collect_slices},
    [NW_ALL_GATHER] = {gather_all, NULL},
    [NW_REDUCE_SCATTER] = {reduce_chunk, NULL},
    [NW_BROADCAST] = {copy_from_root, NULL},
    [NW_REDUCE] = {reduce_to_root, NULL},
    [NW_ALLTOALL] = {gather_from_all, NULL},
    [NW_GATHER] = {copy_to_root, NULL},
    [NW_SCATTER] = {chunk_from_root, NULL},
    [NW_SENDRECV] = {copy_from_previous, NULL},
};

/* All ranks come to the same answer, since all compare the same calls. */
static nw_rc same_calls(const struct nw_call *const *calls, int rank_count)
{
    const struct nw_call *a = calls[0];
    for (int rank = 1; rank < rank_count; rank++) {
        const struct nw_call *b = calls[rank];
        const bool same = a->coll == b->coll && a->dtype == b->dtype && a->op == b->op &&
                          a->shape.bytes == b->shape.bytes && a->in_place == b->in_place &&
                          (a->root == b->root || !(a->coll->flags & NW_COLL_ROOTED));
        if (!same)
            return nw_fail(NW_EUSAGE,
                           "ranks differ in what they call: rank 0 %s of %llu bytes, rank %d %s of "
                           "%llu bytes",
                           a->coll->name, (unsigned long long)a->shape.bytes, rank, b->coll->name,
                           (unsigned long long)b->shape.bytes);
    }
    return NW_OK;
}

static bool local_supports(const struct nw_comm *base, const struct nw_call *call)
{
    if (call->in_place && call->coll->flags & NW_COLL_NO_INPLACE) {
        (void)nw_fail(NW_ENOTSUP, "%s has no in-place form", call->coll->name);
        return false;
    }
    if (call->coll->flags & NW_COLL_ROOTED && (call->root < 0 || call->root >= base->rank_count)) {
        (void)nw_fail(NW_EUSAGE, "%s: root %d is no rank; accepted: 0 to %d", call->coll->name,
                      call->root, base->rank_count - 1);
        return false;
    }
    return true;
}

static nw_rc local_call(struct nw_comm *base, const struct nw_call *call)
{
    struct group *group = ((struct local_comm *)base)->group;
    if (!local_supports(base, call))
        return nw_last_error()->rc;
    group->calls[base->rank] = call;
    NW_TRY(meet(group));
    nw_rc rc = same_calls(group->calls, base->rank_count);
    if (rc != NW_OK) {
        NW_TRY(meet(group)); /* the others still compare */
        return rc;
    }
    const struct share share = {.mine = call,
                                .all = group->calls,
                                .rank = base->rank,
                                .rank_count = base->rank_count,
                                .chunk_bytes = call->shape.count * nw_dtype_bytes(call->dtype),
                                .element_bytes = nw_dtype_bytes(call->dtype)};
    steps[call->coll->id].work(&share);
    if (steps[call->coll->id].then) {
        NW_TRY(meet(group));
        steps[call->coll->id].then(&share);
    }
    return meet(group);
}

/* ---- the small services ---- */

static nw_rc local_barrier(struct nw_comm *base)
{
    return meet(((struct local_comm *)base)->group);
}

static nw_rc local_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    struct group *group = ((struct local_comm *)base)->group;
    group->data[base->rank] = mine;
    NW_TRY(meet(group));
    for (int rank = 0; rank < base->rank_count; rank++)
        copy((char *)all + (uint64_t)rank * bytes, group->data[rank], bytes);
    return meet(group);
}

static nw_rc local_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    struct group *group = ((struct local_comm *)base)->group;
    if (root < 0 || root >= base->rank_count)
        return nw_fail(NW_EUSAGE, "root %d is no rank; accepted: 0 to %d", root,
                       base->rank_count - 1);
    group->data[base->rank] = data;
    NW_TRY(meet(group));
    copy(data, group->data[root], bytes);
    return meet(group);
}

static bool offers(const struct mailbox *box, int to)
{
    return box->posted && !box->taken && box->peer == to;
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
    mine->peer = peer;
    mine->send = send;
    mine->bytes = bytes;
    mine->taken = false;
    mine->posted = true;
    pthread_cond_broadcast(&group->condition);
    while (!offers(theirs, base->rank) && !theirs->gone)
        pthread_cond_wait(&group->condition, lock);
    if (!offers(theirs, base->rank)) {
        mine->posted = false;
        rc = peer_is_gone(group->world);
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
        group = group_new(parent->group->world, count);
        for (int i = 0, next = 0; group && i < rank_count; i++) {
            if (colours[i] == colours[rank])
                group->world_ranks[next++] = parent->group->world_ranks[i];
        }
        if (group)
            group_enlist(group);
    }
    parent->group->data[rank] = group;
    NW_TRY(meet(parent->group));
    *group_out = (struct group *)parent->group->data[leader];
    *rank_out = own;
    return meet(parent->group);
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
    group_leave(comm->group);
    nw_comm_drop_hosts(base);
    free(comm);
}

static const struct nw_comm_ops local_ops = {
    .name = "local",
    .title = "threads of one process, a double for tests",
    .simulated = true,
    .call = local_call,
    .swap = local_swap,
    .barrier = local_barrier,
    .exchange = local_exchange,
    .share = local_share,
    .split = local_split,
    .close = local_close,
    .supports = local_supports,
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
    mark_gone(world, rank);
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
        mark_gone(world, rank);
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
    struct group *group = group_new(&world, rank_count);
    if (!seats || !group) {
        group_free(group);
        free(seats);
        return nw_fail(NW_ENOMEM, "cannot seat %d local ranks", rank_count);
    }
    group_enlist(group);
    rc = seats_fill(seats, group, host_count, body, argument);
    if (rc == NW_OK) {
        seats_run(seats, &world, rank_count);
        rc = seats_result(seats, rank_count);
    }
    int seated = 0;
    while (seated < rank_count && seats[seated].comm)
        nw_comm_close(seats[seated++].comm);
    for (; seated < rank_count; seated++)
        group_leave(group);
    free(seats);
    pthread_mutex_destroy(&world.lock);
    return rc;
}
