/* A pattern is a pseudo-random sequence of blocks. Every block is a window into one short table, at
 * a place that is hashed from the block's number: filling is copying and checking is comparing, at
 * the speed of memory, and data that is shifted by any distance still shows.
 *
 * All randomness is hashed from the table index. Source rank, target chunk and round come in as an
 * addend modulo the range of values, so that neighbours differ in every element; ranks that are a
 * whole range apart (int8: 127) get another hash.
 */
#include "collectives/oracle.h"

#include <string.h>

#include "kernels/half.h"
#include "kernels/reduce.h"

#define BLOCK         NW_PATTERN_BLOCK
#define TABLE         NW_PATTERN_TABLE
#define ELEMENT_BYTES 8u /* the widest */

/* A hash as a number below `range`. */
static uint64_t below(uint64_t hash, uint64_t range)
{
    return (uint64_t)(((unsigned __int128)hash * range) >> 64);
}

static uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t modulus)
{
    return (uint64_t)((unsigned __int128)a * b % modulus);
}

struct stream {
    nw_dtype dtype;
    size_t element_bytes;
    int rank, rank_count; /* rank: whose contribution */
    uint64_t range;       /* of the part that is hashed */
    uint64_t addend;      /* modulo range */
    uint64_t salt;        /* of the hash */
    uint64_t offset;      /* reductions: rotates who plays which part */
    uint64_t window;      /* reductions: see the function of each */
    uint64_t base;        /* the expected sum without its hashed part */
    int64_t bias;         /* subtracted: brings in negative numbers */
    uint64_t limit;
    int divisor; /* 0: none */
    /* Values of table entries first … first + count - 1. */
    void (*values)(const struct stream *stream, uint64_t first, size_t count, int64_t *values);
};

static uint64_t hash_at(const struct stream *stream, uint64_t index)
{
    return nw_pattern_mix(index ^ stream->salt);
}

static uint64_t hashed(const struct stream *stream, uint64_t hash)
{
    const uint64_t value = below(hash, stream->range) + stream->addend;
    return value >= stream->range ? value - stream->range : value;
}

/* The part that a rank plays at an element: 0 … rank_count - 1, each played by one rank. The low
 * half of the hash; `below` takes from the high end. */
static uint64_t part(const struct stream *stream, uint64_t hash)
{
    const uint64_t count = (uint64_t)stream->rank_count;
    const uint64_t turn = ((hash & 0xffffffffu) * count) >> 32;
    const uint64_t sum = (uint64_t)stream->rank + turn + stream->offset;
    return sum < count ? sum : sum < 2 * count ? sum - count : sum - 2 * count;
}

/* Moved data. */
static void moved(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (int64_t)hashed(stream, hash_at(stream, first + i));
}

/* Sum: the ranks that play parts 0 … window - 1 contribute 1 … window, the others 0; part 0 adds
 * the hashed number. */
static void sum_term(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t hash = hash_at(stream, first + i), p = part(stream, hash);
        const uint64_t term = p < stream->window ? p + 1 : 0;
        values[i] = (int64_t)(term + (p == 0 ? hashed(stream, hash) : 0));
    }
}

static void sum_result(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (int64_t)(stream->base + hashed(stream, hash_at(stream, first + i)));
}

/* Product: part 0 contributes a hashed odd number, parts 1 … k contribute 2, with k hashed from 0
 * to the window. */
static uint64_t twos(const struct stream *stream, uint64_t hash)
{
    return below(nw_pattern_mix(hash), stream->window + 1);
}

static void prod_term(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t hash = hash_at(stream, first + i), p = part(stream, hash);
        const uint64_t factor = p <= twos(stream, hash) ? 2 : 1;
        values[i] = (int64_t)(p == 0 ? 2 * hashed(stream, hash) + 1 : factor);
    }
}

static void prod_result(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t hash = hash_at(stream, first + i);
        values[i] = (int64_t)((2 * hashed(stream, hash) + 1) << twos(stream, hash));
    }
}

/* Minimum: part 0 has the hashed number, part p has p more, at most window more. Maximum: the same
 * from above. */
static void min_term(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t hash = hash_at(stream, first + i), p = part(stream, hash);
        const uint64_t more = p < stream->window ? p : stream->window;
        values[i] = (int64_t)(hashed(stream, hash) + more) - stream->bias;
    }
}

static void min_result(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (int64_t)hashed(stream, hash_at(stream, first + i)) - stream->bias;
}

static void mirror(const struct stream *stream, size_t count, int64_t *values)
{
    const int64_t both_ends = (int64_t)stream->limit - 2 * stream->bias;
    for (size_t i = 0; i < count; i++)
        values[i] = both_ends - values[i];
}

static void max_term(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    min_term(stream, first, count, values);
    mirror(stream, count, values);
}

static void max_result(const struct stream *stream, uint64_t first, size_t count, int64_t *values)
{
    min_result(stream, first, count, values);
    mirror(stream, count, values);
}

/* ---- streams ---- */

static const struct {
    uint64_t prime; /* the largest not above the largest exact integer; moved data is below it */
    int digits;     /* binary digits of a product */
    bool is_signed;
    unsigned char poison; /* every byte of it: no pattern has this value */
} types[NW_DTYPE_COUNT] = {
    [NW_INT8] = {127, 7, true, 0x80},
    [NW_UINT8] = {251, 8, false, 0xff},
    [NW_INT32] = {2147483647, 31, true, 0x80},
    [NW_UINT32] = {4294967291, 32, false, 0xff},
    [NW_INT64] = {9007199254740881, 53, true, 0x80},
    [NW_UINT64] = {9007199254740881, 53, false, 0xff},
    [NW_HALF] = {2039, 11, true, 0xff}, /* all ones is a NaN */
    [NW_FLOAT] = {16777213, 24, true, 0xff},
    [NW_DOUBLE] = {9007199254740881, 53, true, 0xff},
    [NW_BFLOAT16] = {251, 8, true, 0xff},
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Two steps of different, irrational-like lengths around the range, neither of them a whole turn
 * (range >= 2). */
static void place(struct stream *stream, int source_rank, int target_rank, uint64_t round)
{
    const uint64_t range = stream->range;
    const uint64_t source = (uint64_t)source_rank, target = (uint64_t)target_rank;
    const uint64_t target_step = (uint64_t)((double)range * 0.6180339887498949) | 1;
    const uint64_t round_step = (uint64_t)((double)range * 0.2718281828459045) | 1;
    stream->addend = (source % range + multiply_modulo(target_step, target % range, range) +
                      multiply_modulo(round_step, round % range, range)) %
                     range;
    const uint64_t turns = source / range << 32 | target / range;
    stream->salt = turns > 0 ? nw_pattern_mix(turns) : 0;
}

static void shape_sum(struct stream *stream)
{
    /* The largest window whose 1 + 2 + … + window leaves half of the limit to the hashed part. */
    uint64_t window = 1, total = 1;
    while (window < (uint64_t)stream->rank_count && total + window + 1 <= stream->limit / 2)
        total += ++window;
    stream->window = window;
    stream->base = total;
    stream->range = stream->limit - total + 1;
}

static void shape_prod(struct stream *stream)
{
    const uint64_t half = (uint64_t)types[stream->dtype].digits / 2;
    stream->window = smaller((uint64_t)stream->rank_count - 1, half);
    stream->range = 1ull << (types[stream->dtype].digits - (int)half - 1); /* odd numbers */
}

static void shape_extreme(struct stream *stream)
{
    stream->window = smaller((uint64_t)stream->rank_count - 1, stream->limit / 4);
    stream->range = stream->limit - stream->window + 1;
    stream->bias = types[stream->dtype].is_signed ? (int64_t)(stream->limit / 2) : 0;
}

/* The contribution of one rank to a reduction's chunk `target`, or (result) what comes out. */
static struct stream reduction(const struct nw_call *call, int rank, int rank_count, int target,
                               uint64_t round, bool result)
{
    static const struct {
        void (*shape)(struct stream *stream);
        void (*term)(const struct stream *, uint64_t, size_t, int64_t *);
        void (*result)(const struct stream *, uint64_t, size_t, int64_t *);
    } ops[NW_REDOP_COUNT] = {
        [NW_SUM] = {shape_sum, sum_term, sum_result},
        [NW_PROD] = {shape_prod, prod_term, prod_result},
        [NW_MIN] = {shape_extreme, min_term, min_result},
        [NW_MAX] = {shape_extreme, max_term, max_result},
        [NW_AVG] = {shape_sum, sum_term, sum_result},
    };
    struct stream stream = {
        .dtype = call->dtype,
        .element_bytes = nw_dtype_bytes(call->dtype),
        .rank = rank,
        .rank_count = rank_count,
        .limit = nw_dtype_exact(call->dtype) - 1, /* the largest unsigned value is the poison */
        .offset = ((uint64_t)target + round) % (uint64_t)rank_count,
        .divisor = result && call->op == NW_AVG ? rank_count : 0,
        .values = result ? ops[call->op].result : ops[call->op].term,
    };
    ops[call->op].shape(&stream);
    place(&stream, 0, target, round);
    return stream;
}

static struct stream movement(const struct nw_call *call, int source, int target, uint64_t round)
{
    struct stream stream = {
        .dtype = call->dtype,
        .element_bytes = nw_dtype_bytes(call->dtype),
        .range = types[call->dtype].prime,
        .values = moved,
    };
    place(&stream, source, target, round);
    return stream;
}

/* ---- numbers to elements ---- */

#define STORE(T, EXPRESSION)                                                                       \
    for (size_t i = 0; i < count; i++)                                                             \
        ((T *)to)[i] = (EXPRESSION);                                                               \
    break

static void store(nw_dtype dtype, const int64_t *values, size_t count, void *to)
{
    switch (dtype) {
    case NW_INT8:
        STORE(int8_t, (int8_t)values[i]);
    case NW_UINT8:
        STORE(uint8_t, (uint8_t)values[i]);
    case NW_INT32:
        STORE(int32_t, (int32_t)values[i]);
    case NW_UINT32:
        STORE(uint32_t, (uint32_t)values[i]);
    case NW_INT64:
    case NW_UINT64:
        STORE(int64_t, values[i]);
    case NW_HALF:
        STORE(uint16_t, nw_float_to_half((float)values[i]));
    case NW_FLOAT:
        STORE(float, (float)values[i]);
    case NW_DOUBLE:
        STORE(double, (double)values[i]);
    case NW_BFLOAT16:
        STORE(uint16_t, nw_float_to_bfloat16((float)values[i]));
    case NW_DTYPE_COUNT:
        break;
    }
}

static void make(const struct stream *stream, uint64_t first, size_t count, unsigned char *to)
{
    int64_t values[256];
    for (size_t done = 0; done < count;) {
        const size_t left = count - done;
        const size_t n = left < 256 ? left : 256;
        void *place = to + done * stream->element_bytes;
        stream->values(stream, first + done, n, values);
        store(stream->dtype, values, n, place);
        if (stream->divisor > 0)
            nw_divide(stream->dtype, place, n, stream->divisor);
        done += n;
    }
}

/* ---- the walk over a chunk ---- */

struct walk {
    const struct stream *stream;
    bool whole_table; /* made once; a short chunk makes only what it needs */
    unsigned char table[TABLE * ELEMENT_BYTES] __attribute__((aligned(64)));
};

static void walk_start(struct walk *walk, const struct stream *stream, uint64_t count)
{
    walk->stream = stream;
    walk->whole_table = count > TABLE;
    if (walk->whole_table)
        make(stream, 0, TABLE, walk->table);
}

/* The elements of block `block`, `count` of them. */
static const unsigned char *walk_block(struct walk *walk, uint64_t block, size_t count)
{
    const uint64_t start = nw_pattern_start(block);
    if (walk->whole_table)
        return walk->table + start * walk->stream->element_bytes;
    make(walk->stream, start, count, walk->table);
    return walk->table;
}

static void fill(const struct stream *stream, void *to, uint64_t count)
{
    struct walk walk;
    walk_start(&walk, stream, count);
    for (uint64_t block = 0; block * BLOCK < count; block++) {
        const size_t n = (size_t)smaller(BLOCK, count - block * BLOCK);
        memcpy((unsigned char *)to + block * BLOCK * stream->element_bytes,
               walk_block(&walk, block, n), n * stream->element_bytes);
    }
}

static uint64_t compare(const struct stream *stream, const void *data, uint64_t count,
                        struct nw_wrong *first_out)
{
    const size_t size = stream->element_bytes;
    struct walk walk;
    uint64_t wrong = 0;
    walk_start(&walk, stream, count);
    for (uint64_t block = 0; block * BLOCK < count; block++) {
        const size_t n = (size_t)smaller(BLOCK, count - block * BLOCK);
        const unsigned char *found = (const unsigned char *)data + block * BLOCK * size;
        const unsigned char *expected = walk_block(&walk, block, n);
        if (!memcmp(found, expected, n * size))
            continue;
        for (size_t i = 0; i < n; i++) {
            if (!memcmp(found + i * size, expected + i * size, size))
                continue;
            if (wrong++ == 0)
                *first_out =
                    (struct nw_wrong){.index = block * BLOCK + i,
                                      .expected = nw_dtype_value(stream->dtype, expected, i),
                                      .found = nw_dtype_value(stream->dtype, found, i)};
        }
    }
    return wrong;
}

/* ---- who sends and receives what ---- */

enum source { FROM_REDUCTION, FROM_EACH, FROM_ROOT, FROM_PREVIOUS };

static const struct {
    bool send_chunks; /* the send buffer has a chunk for each rank */
    bool only_root_sends, only_root_receives;
    enum source source; /* FROM_EACH: the receive buffer has a chunk of each rank */
} layouts[NW_COLL_COUNT] = {
    [NW_ALL_REDUCE] = {.source = FROM_REDUCTION},
    [NW_ALL_GATHER] = {.source = FROM_EACH},
    [NW_REDUCE_SCATTER] = {.send_chunks = true, .source = FROM_REDUCTION},
    [NW_BROADCAST] = {.only_root_sends = true, .source = FROM_ROOT},
    [NW_REDUCE] = {.only_root_receives = true, .source = FROM_REDUCTION},
    [NW_ALLTOALL] = {.send_chunks = true, .source = FROM_EACH},
    [NW_GATHER] = {.only_root_receives = true, .source = FROM_EACH},
    [NW_SCATTER] = {.send_chunks = true, .only_root_sends = true, .source = FROM_ROOT},
    [NW_SENDRECV] = {.source = FROM_PREVIOUS},
};

uint64_t nw_oracle_poison(const struct nw_call *call, int rank, unsigned char *value_out)
{
    const nw_coll_id id = call->coll->id;
    const bool sends = !layouts[id].only_root_sends || rank == call->root;
    const bool receives = !layouts[id].only_root_receives || rank == call->root;
    /* In place, what this rank sends may lie inside what it receives (then it is filled in
     * afterwards), and where both are the same or the result lies inside the input, there is
     * nothing to spoil. */
    const bool free_to_spoil =
        !call->in_place || call->shape.recv_bytes > call->shape.send_bytes || !sends;
    *value_out = types[call->dtype].poison;
    return receives && free_to_spoil ? call->shape.recv_bytes : 0;
}

int nw_oracle_fill_chunks(const struct nw_call *call, int rank, int rank_count)
{
    const nw_coll_id id = call->coll->id;
    if (layouts[id].only_root_sends && rank != call->root)
        return 0;
    return layouts[id].send_chunks ? rank_count : 1;
}

static struct stream fill_stream(const struct nw_call *call, int rank, int rank_count,
                                 uint64_t round, int target)
{
    return layouts[call->coll->id].source == FROM_REDUCTION
               ? reduction(call, rank, rank_count, target, round, false)
               : movement(call, rank, target, round);
}

int nw_oracle_check_chunks(const struct nw_call *call, int rank, int rank_count)
{
    const nw_coll_id id = call->coll->id;
    if (layouts[id].only_root_receives && rank != call->root)
        return 0;
    return layouts[id].source == FROM_EACH ? rank_count : 1;
}

/* `from_out`: whose contribution the chunk is. */
static struct stream check_stream(const struct nw_call *call, int rank, int rank_count,
                                  uint64_t round, int chunk, int *from_out)
{
    const nw_coll_id id = call->coll->id;
    const enum source source = layouts[id].source;
    const int target = layouts[id].send_chunks ? rank : 0;
    const int only_source = source == FROM_ROOT ? call->root : (rank + rank_count - 1) % rank_count;
    const int from = source == FROM_EACH ? chunk : only_source;
    *from_out = source == FROM_REDUCTION ? -1 : from;
    return source == FROM_REDUCTION ? reduction(call, rank, rank_count, target, round, true)
                                    : movement(call, from, target, round);
}

void nw_oracle_fill_table(const struct nw_call *call, int rank, int rank_count, uint64_t round,
                          int chunk, struct nw_oracle_table *table_out)
{
    const struct stream stream = fill_stream(call, rank, rank_count, round, chunk);
    table_out->from_rank = rank;
    make(&stream, 0, TABLE, table_out->elements);
}

void nw_oracle_check_table(const struct nw_call *call, int rank, int rank_count, uint64_t round,
                           int chunk, struct nw_oracle_table *table_out)
{
    const struct stream stream =
        check_stream(call, rank, rank_count, round, chunk, &table_out->from_rank);
    make(&stream, 0, TABLE, table_out->elements);
}

void nw_oracle_fill(const struct nw_call *call, int rank, int rank_count, uint64_t round)
{
    const uint64_t chunk_bytes = call->shape.count * nw_dtype_bytes(call->dtype);
    const int chunks = nw_oracle_fill_chunks(call, rank, rank_count);
    unsigned char poison;
    const uint64_t poison_bytes = nw_oracle_poison(call, rank, &poison);
    if (poison_bytes > 0)
        memset(call->recv, poison, poison_bytes);
    for (int target = 0; target < chunks; target++) {
        const struct stream stream = fill_stream(call, rank, rank_count, round, target);
        fill(&stream, (char *)call->send + (uint64_t)target * chunk_bytes, call->shape.count);
    }
}

uint64_t nw_oracle_check(const struct nw_call *call, int rank, int rank_count, uint64_t round,
                         struct nw_wrong *first_out)
{
    const uint64_t chunk_bytes = call->shape.count * nw_dtype_bytes(call->dtype);
    const int chunks = nw_oracle_check_chunks(call, rank, rank_count);
    uint64_t wrong = 0;
    for (int chunk = 0; chunk < chunks; chunk++) {
        int from;
        const struct stream stream = check_stream(call, rank, rank_count, round, chunk, &from);
        struct nw_wrong first;
        const uint64_t here =
            compare(&stream, (const char *)call->recv + (uint64_t)chunk * chunk_bytes,
                    call->shape.count, &first);
        if (here > 0 && wrong == 0) {
            first.index += (uint64_t)chunk * call->shape.count;
            first.from_rank = from;
            *first_out = first;
        }
        wrong += here;
    }
    return wrong;
}
