/* For tests/gpu/test_nccl.c: every collective as a row: the call, and what each element of the
 * result must be; the buffers that it is done in. Shares no code with collectives/. */
#ifndef NW_TESTS_GPU_NCCL_COLLECTIVES_H
#define NW_TESTS_GPU_NCCL_COLLECTIVES_H

#include "tests/gpu/nccl_rank.h"

/* Small whole numbers: sums are exact in every type, bfloat16 up to 28 ranks. */
static int value(int rank, uint64_t i)
{
    return (int)((i * 7 + (uint64_t)rank * 5) % 13) - 4;
}

static const struct {
    const char *name;
    int type, bytes;
} types[] = {
    {"int32", NW_NCCL_INT32, 4}, {"float", NW_NCCL_FLOAT32, 4}, {"bfloat16", NW_NCCL_BFLOAT16, 2}};

static void encode(void *to, uint64_t i, int type, int number)
{
    const float as_float = (float)number;
    uint32_t bits;
    memcpy(&bits, &as_float, sizeof bits);
    if (type == NW_NCCL_INT32)
        ((int32_t *)to)[i] = number;
    else if (type == NW_NCCL_FLOAT32)
        ((float *)to)[i] = as_float;
    else
        ((uint16_t *)to)[i] = (uint16_t)(bits >> 16); /* exact: 8 significant bits are enough */
}

/* A collective in chunks of `count` elements: how many a rank sends and gets, and what each element
 * must be. */
struct collective {
    const char *name;
    bool sends_all, gets_all; /* a chunk of each rank */
    bool root_only;           /* only rank 0 gets something */
    int (*call)(struct rank *r, const void *send, void *recv, size_t count, int type);
    int (*expect)(const struct rank *r, uint64_t i, size_t count);
};

#define ARGUMENTS struct rank *r, const void *send, void *recv, size_t count, int type
#define TAIL      r->comm, r->handle
static int do_all_reduce(ARGUMENTS)
{
    return r->nccl->all_reduce(send, recv, count, type, NW_NCCL_SUM, TAIL);
}
static int do_reduce(ARGUMENTS)
{
    return r->nccl->reduce(send, recv, count, type, NW_NCCL_SUM, 0, TAIL);
}
static int do_broadcast(ARGUMENTS)
{
    return r->nccl->broadcast(send, recv, count, type, 0, TAIL);
}
static int do_all_gather(ARGUMENTS)
{
    return r->nccl->all_gather(send, recv, count, type, TAIL);
}
static int do_reduce_scatter(ARGUMENTS)
{
    return r->nccl->reduce_scatter(send, recv, count, type, NW_NCCL_SUM, TAIL);
}
static int do_alltoall(ARGUMENTS)
{
    return r->nccl->alltoall ? r->nccl->alltoall(send, recv, count, type, TAIL) : -1;
}
static int do_gather(ARGUMENTS)
{
    return r->nccl->gather ? r->nccl->gather(send, recv, count, type, 0, TAIL) : -1;
}
static int do_scatter(ARGUMENTS)
{
    return r->nccl->scatter ? r->nccl->scatter(send, recv, count, type, 0, TAIL) : -1;
}
/* To the next rank, from the one before; with one rank to itself. */
static int do_sendrecv(ARGUMENTS)
{
    const int next = (r->rank + 1) % r->size, before = (r->rank + r->size - 1) % r->size;
    int code = r->nccl->group_start();
    if (code == NW_NCCL_SUCCESS)
        code = r->nccl->send(send, count, type, next, TAIL);
    if (code == NW_NCCL_SUCCESS || code == NW_NCCL_IN_PROGRESS)
        code = r->nccl->recv(recv, count, type, before, TAIL);
    const int end = r->nccl->group_end();
    return code == NW_NCCL_SUCCESS || code == NW_NCCL_IN_PROGRESS ? end : code;
}

static int sum_at(const struct rank *r, uint64_t i)
{
    int sum = 0;
    for (int k = 0; k < r->size; k++)
        sum += value(k, i);
    return sum;
}
static int expect_sum(const struct rank *r, uint64_t i, size_t count)
{
    (void)count;
    return sum_at(r, i);
}
static int expect_roots(const struct rank *r, uint64_t i, size_t count)
{
    (void)r, (void)count;
    return value(0, i);
}
static int expect_each(const struct rank *r, uint64_t i, size_t count)
{
    (void)r;
    return value((int)(i / count), i % count);
}
static int expect_my_sum(const struct rank *r, uint64_t i, size_t count)
{
    return sum_at(r, (uint64_t)r->rank * count + i);
}
static int expect_my_part(const struct rank *r, uint64_t i, size_t count)
{
    return value((int)(i / count), (uint64_t)r->rank * count + i % count);
}
static int expect_my_part_of_root(const struct rank *r, uint64_t i, size_t count)
{
    return value(0, (uint64_t)r->rank * count + i);
}
static inline int expect_mine(const struct rank *r, uint64_t i, size_t count)
{
    (void)count;
    return value(r->rank, i);
}
static int expect_before(const struct rank *r, uint64_t i, size_t count)
{
    (void)count;
    return value((r->rank + r->size - 1) % r->size, i);
}

static const struct collective collectives[] = {
    {"all_reduce", false, false, false, do_all_reduce, expect_sum},
    {"reduce", false, false, true, do_reduce, expect_sum},
    {"broadcast", false, false, false, do_broadcast, expect_roots},
    {"all_gather", false, true, false, do_all_gather, expect_each},
    {"reduce_scatter", true, false, false, do_reduce_scatter, expect_my_sum},
    {"alltoall", true, true, false, do_alltoall, expect_my_part},
    {"gather", false, true, true, do_gather, expect_each},
    {"scatter", true, false, false, do_scatter, expect_my_part_of_root},
    {"sendrecv", false, false, false, do_sendrecv, expect_before},
};

struct buffers {
    void *send, *recv; /* the device's */
    unsigned char *host;
    uint64_t bytes;
};

static nw_rc buffers_open(struct rank *r, uint64_t bytes, struct buffers *b)
{
    b->bytes = bytes;
    b->host = malloc(bytes);
    if (!b->host)
        return nw_fail(NW_ENOMEM, "no memory for %llu bytes", (unsigned long long)bytes);
    NW_TRY(r->dev->ops->alloc(r->dev, NW_SPACE_DEVICE, bytes, &b->send));
    return r->dev->ops->alloc(r->dev, NW_SPACE_DEVICE, bytes, &b->recv);
}

static void buffers_close(struct rank *r, struct buffers *b)
{
    r->dev->ops->free(r->dev, NW_SPACE_DEVICE, b->send);
    r->dev->ops->free(r->dev, NW_SPACE_DEVICE, b->recv);
    free(b->host);
}

static nw_rc fill(struct rank *r, struct buffers *b, uint64_t elements, int type, int bytes)
{
    for (uint64_t i = 0; i < elements; i++)
        encode(b->host, i, type, value(r->rank, i));
    NW_TRY(r->dev->ops->copy(r->stream, b->send, b->host, elements * (uint64_t)bytes));
    NW_TRY(r->dev->ops->set(r->stream, b->recv, 0xa5, b->bytes));
    return r->dev->ops->wait(r->stream, LIMIT_S * 1e9);
}

/* What is not as it must be of `elements` at `at`; -1: a call failed. */
static long wrong(struct rank *r, struct buffers *b, const void *at, const struct collective *c,
                  uint64_t elements, size_t count, int type, int bytes)
{
    long wrong_count = 0;
    if (r->dev->ops->copy(r->stream, b->host, at, elements * (uint64_t)bytes) != NW_OK ||
        r->dev->ops->wait(r->stream, LIMIT_S * 1e9) != NW_OK)
        return -1;
    for (uint64_t i = 0; i < elements; i++) {
        unsigned char expected[8];
        encode(expected, 0, type, c->expect(r, i, count));
        wrong_count += memcmp(b->host + i * (uint64_t)bytes, expected, (size_t)bytes) != 0;
    }
    return wrong_count;
}

#endif
