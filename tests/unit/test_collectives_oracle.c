/* The verifier's own test: right results pass, and every kind of error is found. The collectives
 * are carried out here, naively, on the buffers of all ranks. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "collectives/oracle.h"
#include "kernels/reduce.h"

/* In loops: Criterion reports every assertion to its parent, also those that hold. */
#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            cr_assert_fail(__VA_ARGS__);                                                           \
    } while (0)

struct trial {
    struct nw_call call;
    int rank_count;
    uint64_t round;
    unsigned char *send, *recv; /* all ranks' buffers, one after the other */
};

static struct trial trial_start(nw_coll_id id, nw_dtype dtype, nw_redop op, int rank_count,
                                uint64_t count)
{
    const struct nw_coll *coll = &nw_colls[id];
    struct trial trial = {
        .call = {.coll = coll, .dtype = dtype, .op = op}, .rank_count = rank_count, .round = 7};
    const uint64_t chunks = coll->flags & NW_COLL_CHUNKED ? (uint64_t)rank_count : 1;
    if (coll->flags & NW_COLL_ROOTED)
        trial.call.root = rank_count / 2;
    trial.call.shape =
        nw_coll_shape(coll, count * nw_dtype_bytes(dtype) * chunks, dtype, rank_count);
    trial.send = calloc((size_t)rank_count, trial.call.shape.send_bytes);
    trial.recv = calloc((size_t)rank_count, trial.call.shape.recv_bytes);
    cr_assert(trial.send && trial.recv && trial.call.shape.count > 0);
    return trial;
}

static void trial_free(struct trial *trial)
{
    free(trial->send);
    free(trial->recv);
}

static struct nw_call call_of(const struct trial *trial, int rank)
{
    struct nw_call call = trial->call;
    nw_call_place(&call, rank, trial->send + (uint64_t)rank * call.shape.send_bytes,
                  trial->recv + (uint64_t)rank * call.shape.recv_bytes);
    return call;
}

static void fill(const struct trial *trial)
{
    for (int rank = 0; rank < trial->rank_count; rank++) {
        const struct nw_call call = call_of(trial, rank);
        nw_oracle_fill(&call, rank, trial->rank_count, trial->round);
    }
}

static uint64_t check(const struct trial *trial, int rank, struct nw_wrong *first_out)
{
    const struct nw_call call = call_of(trial, rank);
    return nw_oracle_check(&call, rank, trial->rank_count, trial->round, first_out);
}

/* Who stands in for whom: takes[r] is the rank whose data is used for r's; -1: none. */
static void reduce(const struct trial *trial, int rank, uint64_t offset, const int *takes)
{
    const struct nw_shape *shape = &trial->call.shape;
    unsigned char *to = trial->recv + (uint64_t)rank * shape->recv_bytes;
    bool first = true;
    for (int r = 0; r < trial->rank_count; r++) {
        if (takes[r] < 0)
            continue;
        const unsigned char *from = trial->send + (uint64_t)takes[r] * shape->send_bytes + offset;
        if (first)
            memcpy(to, from, shape->count * nw_dtype_bytes(trial->call.dtype));
        else
            nw_reduce_into(trial->call.dtype, trial->call.op, to, from, shape->count);
        first = false;
    }
    if (trial->call.op == NW_AVG)
        nw_divide(trial->call.dtype, to, shape->count, trial->rank_count);
}

/* The result of one rank. */
static void deliver(const struct trial *trial, int rank, const int *takes)
{
    const struct nw_call call = call_of(trial, rank);
    const uint64_t chunk = call.shape.count * nw_dtype_bytes(call.dtype);
    const uint64_t n = (uint64_t)trial->rank_count, own = (uint64_t)rank;
    const unsigned char *root = trial->send + (uint64_t)call.root * call.shape.send_bytes;
    unsigned char *to = call.recv;
    switch (call.coll->id) {
    case NW_ALL_REDUCE:
    case NW_REDUCE:
        reduce(trial, rank, 0, takes);
        break;
    case NW_REDUCE_SCATTER:
        reduce(trial, rank, own * chunk, takes);
        break;
    case NW_ALL_GATHER:
    case NW_GATHER:
        for (uint64_t r = 0; r < n; r++)
            memcpy(to + r * chunk, trial->send + (uint64_t)takes[r] * chunk, chunk);
        break;
    case NW_ALLTOALL:
        for (uint64_t r = 0; r < n; r++)
            memcpy(to + r * chunk, trial->send + ((uint64_t)takes[r] * n + own) * chunk, chunk);
        break;
    case NW_BROADCAST:
        memcpy(to, root, chunk);
        break;
    case NW_SCATTER:
        memcpy(to, root + own * chunk, chunk);
        break;
    case NW_SENDRECV:
        memcpy(to, trial->send + (own + n - 1) % n * chunk, chunk);
        break;
    case NW_COLL_COUNT:
        break;
    }
}

static bool receives(const struct trial *trial, int rank)
{
    const nw_coll_id id = trial->call.coll->id;
    return (id != NW_REDUCE && id != NW_GATHER) || rank == trial->call.root;
}

#define RANKS_MAX 1100
static void identity(int takes[RANKS_MAX])
{
    for (int r = 0; r < RANKS_MAX; r++)
        takes[r] = r;
}

static void say(const struct trial *trial, int rank, const char *what)
{
    cr_log_error("%s: %s %s %s, rank %d of %d", what, trial->call.coll->name,
                 nw_dtype_name(trial->call.dtype), nw_redop_name(trial->call.op), rank,
                 trial->rank_count);
}

#define FOUND(trial, rank, condition, what)                                                        \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            say((trial), (rank), (what));                                                          \
            cr_assert_fail("%s", #condition);                                                      \
        }                                                                                          \
    } while (0)

/* Any difference of one bit, anywhere, is exactly one wrong element at the right place. */
static void flip_bits(const struct trial *trial, int rank)
{
    const struct nw_call call = call_of(trial, rank);
    const uint64_t size = nw_dtype_bytes(call.dtype), count = call.shape.recv_bytes / size;
    const uint64_t at[] = {0, count / 2, count - 1};
    unsigned char *bytes = call.recv;
    for (size_t i = 0; i < 3; i++) {
        for (uint64_t bit = 0; bit < 8 * size; bit++) {
            struct nw_wrong first = {.index = UINT64_MAX};
            bytes[at[i] * size + bit / 8] ^= (unsigned char)(1 << bit % 8);
            const uint64_t wrong = check(trial, rank, &first);
            FOUND(trial, rank, wrong == 1 && first.index == at[i], "a flipped bit");
            bytes[at[i] * size + bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

static void shift(const struct trial *trial, int rank)
{
    const struct nw_call call = call_of(trial, rank);
    const uint64_t size = nw_dtype_bytes(call.dtype), all = call.shape.recv_bytes;
    const uint64_t by[] = {1, 3, 16, 2048, 4096, call.shape.count};
    struct nw_wrong first;
    unsigned char *copy = malloc(all);
    cr_assert_not_null(copy);
    memcpy(copy, call.recv, all);
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        const uint64_t offset = by[i] * size;
        if (offset >= all)
            continue;
        memcpy(call.recv, copy + offset, all - offset); /* rotated */
        memcpy((unsigned char *)call.recv + all - offset, copy, offset);
        FOUND(trial, rank, check(trial, rank, &first) > 0, "shifted data");
    }
    memcpy(call.recv, copy, all);
    free(copy);
}

/* A rank that is left out, or whose data stands where another's should. */
static void take_wrong_ranks(const struct trial *trial, int rank)
{
    const bool reduces = trial->call.coll->flags & NW_COLL_REDUCES;
    const bool from_each = reduces || trial->call.coll->id == NW_ALL_GATHER ||
                           trial->call.coll->id == NW_GATHER || trial->call.coll->id == NW_ALLTOALL;
    int takes[RANKS_MAX];
    struct nw_wrong first;
    for (int r = 0; from_each && trial->rank_count > 1 && r < trial->rank_count; r++) {
        const int other = (r + 1) % trial->rank_count;
        identity(takes);
        takes[r] = other; /* `other` twice, r never */
        deliver(trial, rank, takes);
        FOUND(trial, rank, check(trial, rank, &first) > 0, "one rank in another's place");
        if (!reduces) {
            FOUND(trial, rank, first.from_rank == r, "whose it is");
            takes[other] = r; /* the two exchanged */
            deliver(trial, rank, takes);
            FOUND(trial, rank, check(trial, rank, &first) == 2 * trial->call.shape.count,
                  "two chunks exchanged");
            continue;
        }
        takes[r] = -1;
        deliver(trial, rank, takes);
        FOUND(trial, rank, check(trial, rank, &first) > 0, "a rank missing");
        FOUND(trial, rank, first.from_rank == -1, "whose it is");
    }
    identity(takes);
    deliver(trial, rank, takes);
}

static void take_twice(const struct trial *trial, int rank)
{
    const bool counts = trial->call.op != NW_MIN && trial->call.op != NW_MAX;
    const struct nw_call call = call_of(trial, rank);
    const uint64_t chunk = call.shape.count * nw_dtype_bytes(call.dtype);
    const uint64_t offset = call.coll->id == NW_REDUCE_SCATTER ? (uint64_t)rank * chunk : 0;
    struct nw_wrong first;
    int takes[RANKS_MAX];
    if (!(call.coll->flags & NW_COLL_REDUCES) || !counts || call.op == NW_AVG)
        return; /* twice the minimum is the minimum; the average's sum is the sum's */
    for (int r = 0; r < trial->rank_count; r++) {
        nw_reduce_into(call.dtype, call.op, call.recv,
                       trial->send + (uint64_t)r * call.shape.send_bytes + offset,
                       call.shape.count);
        FOUND(trial, rank, check(trial, rank, &first) > 0, "a rank taken twice");
        identity(takes);
        deliver(trial, rank, takes);
    }
}

static void one_variant(nw_coll_id id, nw_dtype dtype, nw_redop op, int rank_count, uint64_t count)
{
    struct trial trial = trial_start(id, dtype, op, rank_count, count);
    struct nw_wrong first;
    int takes[RANKS_MAX];
    identity(takes);
    fill(&trial);
    for (int rank = 0; rank < rank_count; rank++) {
        const uint64_t elements = trial.call.shape.recv_bytes / nw_dtype_bytes(dtype);
        if (!receives(&trial, rank)) {
            FOUND(&trial, rank, check(&trial, rank, &first) == 0, "no result, nothing wrong");
            continue;
        }
        FOUND(&trial, rank, check(&trial, rank, &first) == elements, "nothing written");
        deliver(&trial, rank, takes);
        FOUND(&trial, rank, check(&trial, rank, &first) == 0, "the right result");
        trial.round++;
        /* Integer averages keep few digits of the sum. */
        const uint64_t stale = check(&trial, rank, &first);
        FOUND(&trial, rank, op == NW_AVG ? stale > 0 : stale == elements, "last round's result");
        trial.round--;
        flip_bits(&trial, rank);
        shift(&trial, rank);
        take_wrong_ranks(&trial, rank);
        take_twice(&trial, rank);
        FOUND(&trial, rank, check(&trial, rank, &first) == 0, "the right result again");
    }
    trial_free(&trial);
}

static void all_variants(int rank_count, uint64_t count)
{
    for (int id = 0; id < NW_COLL_COUNT; id++) {
        const int ops = nw_colls[id].flags & NW_COLL_REDUCES ? NW_REDOP_COUNT : 1;
        for (int dtype = 0; dtype < NW_DTYPE_COUNT; dtype++) {
            for (int op = 0; op < ops; op++)
                one_variant((nw_coll_id)id, (nw_dtype)dtype, (nw_redop)op, rank_count, count);
        }
    }
}

Test(collectives_oracle, every_kind_of_error_is_found_with_two_ranks)
{
    all_variants(2, 1000);
}

Test(collectives_oracle, every_kind_of_error_is_found_with_five_ranks)
{
    all_variants(5, 700);
}

Test(collectives_oracle, every_kind_of_error_is_found_in_many_blocks)
{
    all_variants(3, 10007);
}

Test(collectives_oracle, sums_stay_exact_over_a_thousand_ranks_in_any_order)
{
    for (int dtype = 0; dtype < NW_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < NW_REDOP_COUNT; op++) {
            struct trial trial =
                trial_start(NW_ALL_REDUCE, (nw_dtype)dtype, (nw_redop)op, RANKS_MAX, 512);
            struct nw_wrong first = {0};
            int takes[RANKS_MAX];
            for (int r = 0; r < RANKS_MAX; r++)
                takes[r] = r * 7 % RANKS_MAX; /* 7 and 1100 have no common factor */
            fill(&trial);
            deliver(&trial, 3, takes);
            const uint64_t wrong = check(&trial, 3, &first);
            REQUIRE(wrong == 0, "%s %s: %llu wrong, at %llu expected %g found %g",
                    nw_dtype_name((nw_dtype)dtype), nw_redop_name((nw_redop)op),
                    (unsigned long long)wrong, (unsigned long long)first.index, first.expected,
                    first.found);
            trial_free(&trial);
        }
    }
}

/* More ranks than an int8 has values. */
Test(collectives_oracle, chunks_of_far_away_ranks_differ)
{
    struct trial trial = trial_start(NW_ALL_GATHER, NW_INT8, NW_SUM, 400, 64);
    struct nw_wrong first;
    int takes[RANKS_MAX];
    identity(takes);
    fill(&trial);
    for (int far = 126; far <= 254; far++) {
        takes[3] = 3 + far;
        deliver(&trial, 0, takes);
        REQUIRE(check(&trial, 0, &first) > 32 && first.from_rank == 3, "%d apart", far);
    }
    trial_free(&trial);
}

/* In place: what the rank itself brought must not pass for a result. */
Test(collectives_oracle, an_in_place_call_that_does_nothing_is_found)
{
    for (int id = 0; id < NW_COLL_COUNT; id++) {
        if (nw_colls[id].flags & NW_COLL_NO_INPLACE)
            continue;
        for (int dtype = 0; dtype < NW_DTYPE_COUNT; dtype++) {
            struct trial trial = trial_start((nw_coll_id)id, (nw_dtype)dtype, NW_SUM, 4, 256);
            struct nw_wrong first;
            uint64_t wrong = 0;
            trial.call.in_place = true;
            fill(&trial);
            for (int rank = 0; rank < 4; rank++)
                wrong += check(&trial, rank, &first);
            REQUIRE(wrong >= 256, "%s %s: %llu", nw_colls[id].name, nw_dtype_names[dtype],
                    (unsigned long long)wrong);
            trial_free(&trial);
        }
    }
}
