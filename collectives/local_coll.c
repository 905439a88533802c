/* The local backend's collectives: every rank publishes its call, all meet, each moves or reduces
 * its own share straight from the others' buffers, all meet again. */
#include <string.h>

#include "collectives/local_group.h"
#include "kernels/reduce.h"

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

nw_rc nw_local_run(struct group *group, int rank, const struct nw_call *call)
{
    group->calls[rank] = call;
    NW_TRY(nw_group_meet(group));
    nw_rc rc = same_calls(group->calls, group->rank_count);
    if (rc != NW_OK) {
        NW_TRY(nw_group_meet(group)); /* the others still compare */
        return rc;
    }
    const struct share share = {.mine = call,
                                .all = group->calls,
                                .rank = rank,
                                .rank_count = group->rank_count,
                                .chunk_bytes = call->shape.count * nw_dtype_bytes(call->dtype),
                                .element_bytes = nw_dtype_bytes(call->dtype)};
    steps[call->coll->id].work(&share);
    if (steps[call->coll->id].then) {
        NW_TRY(nw_group_meet(group));
        steps[call->coll->id].then(&share);
    }
    return nw_group_meet(group);
}
