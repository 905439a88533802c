#include "collectives/coll.h"

#include <string.h>

#include "base/units.h"

/* Shapes: nccl-tests src/<collective>.cu, …GetCollByteCount (read at a0b82b2, 2026-07). */

static struct nw_shape whole(uint64_t bytes, size_t element_bytes, int rank_count)
{
    (void)rank_count;
    const uint64_t count = bytes / element_bytes;
    return (struct nw_shape){.bytes = count * element_bytes,
                             .count = count,
                             .send_bytes = count * element_bytes,
                             .recv_bytes = count * element_bytes};
}

/* Elements of one rank's chunk: a whole number of 16-byte units, so that every chunk starts
 * aligned. */
static uint64_t chunk_count(uint64_t bytes, size_t element_bytes, int rank_count)
{
    const uint64_t unit = 16 / element_bytes;
    return bytes / element_bytes / (uint64_t)rank_count / unit * unit;
}

static struct nw_shape chunked(uint64_t bytes, size_t element_bytes, int rank_count, bool send_all,
                               bool recv_all)
{
    const uint64_t count = chunk_count(bytes, element_bytes, rank_count);
    const uint64_t chunk = count * element_bytes, all = chunk * (uint64_t)rank_count;
    return (struct nw_shape){.bytes = all,
                             .count = count,
                             .send_bytes = send_all ? all : chunk,
                             .recv_bytes = recv_all ? all : chunk};
}

static struct nw_shape chunk_to_all(uint64_t bytes, size_t element_bytes, int rank_count)
{
    return chunked(bytes, element_bytes, rank_count, false, true);
}

static struct nw_shape all_to_chunk(uint64_t bytes, size_t element_bytes, int rank_count)
{
    return chunked(bytes, element_bytes, rank_count, true, false);
}

static struct nw_shape all_to_all(uint64_t bytes, size_t element_bytes, int rank_count)
{
    return chunked(bytes, element_bytes, rank_count, true, true);
}

/* Bus factors: bytes that the busiest link carries in one direction, over `bytes`, for an algorithm
 * that moves no byte twice; n ranks with one link each (nccl-tests doc/PERFORMANCE.md).
 *
 * all_reduce: each of the S bytes of the result needs n-1 additions, so n-1 arrivals, and n-1
 * arrivals of the result at the other ranks: 2(n-1)S over n links. */
static double factor_reduce_and_spread(int rank_count)
{
    return 2.0 * (rank_count - 1) / rank_count;
}

/* all_gather, alltoall: a rank receives the n-1 chunks of S/n that it has not. reduce_scatter: for
 * each of its S/n results n-1 terms arrive. gather, scatter: the root's link carries n-1 chunks. */
static double factor_all_but_own(int rank_count)
{
    return (double)(rank_count - 1) / rank_count;
}

/* broadcast: every other rank receives S. reduce: a rank must send S. sendrecv: S goes each way. */
static double factor_whole(int rank_count)
{
    (void)rank_count;
    return 1;
}

const struct nw_coll nw_colls[] = {
    [NW_ALL_REDUCE] = {.id = NW_ALL_REDUCE,
                       .name = "all_reduce",
                       .title = "all-reduce",
                       .flags = NW_COLL_REDUCES,
                       .shape = whole,
                       .bus_factor = factor_reduce_and_spread},
    [NW_ALL_GATHER] = {.id = NW_ALL_GATHER,
                       .name = "all_gather",
                       .title = "all-gather",
                       .flags = NW_COLL_CHUNKED,
                       .shape = chunk_to_all,
                       .bus_factor = factor_all_but_own},
    [NW_REDUCE_SCATTER] = {.id = NW_REDUCE_SCATTER,
                           .name = "reduce_scatter",
                           .title = "reduce-scatter",
                           .flags = NW_COLL_REDUCES | NW_COLL_CHUNKED,
                           .shape = all_to_chunk,
                           .bus_factor = factor_all_but_own},
    [NW_BROADCAST] = {.id = NW_BROADCAST,
                      .name = "broadcast",
                      .title = "broadcast",
                      .flags = NW_COLL_ROOTED,
                      .shape = whole,
                      .bus_factor = factor_whole},
    [NW_REDUCE] = {.id = NW_REDUCE,
                   .name = "reduce",
                   .title = "reduce",
                   .flags = NW_COLL_REDUCES | NW_COLL_ROOTED,
                   .shape = whole,
                   .bus_factor = factor_whole},
    [NW_ALLTOALL] = {.id = NW_ALLTOALL,
                     .name = "alltoall",
                     .title = "all-to-all",
                     .flags = NW_COLL_CHUNKED | NW_COLL_NO_INPLACE,
                     .shape = all_to_all,
                     .bus_factor = factor_all_but_own},
    [NW_GATHER] = {.id = NW_GATHER,
                   .name = "gather",
                   .title = "gather",
                   .flags = NW_COLL_ROOTED | NW_COLL_CHUNKED,
                   .shape = chunk_to_all,
                   .bus_factor = factor_all_but_own},
    [NW_SCATTER] = {.id = NW_SCATTER,
                    .name = "scatter",
                    .title = "scatter",
                    .flags = NW_COLL_ROOTED | NW_COLL_CHUNKED,
                    .shape = all_to_chunk,
                    .bus_factor = factor_all_but_own},
    [NW_SENDRECV] = {.id = NW_SENDRECV,
                     .name = "sendrecv",
                     .title = "ring shift",
                     .flags = NW_COLL_NO_INPLACE,
                     .shape = whole,
                     .bus_factor = factor_whole},
};

const size_t nw_coll_count = NW_COLL_COUNT;

const char *const nw_coll_names[] = {
#define X(id, name, title) [id] = name,
    NW_COLL_MAP(X)
#undef X
        [NW_COLL_COUNT] = NULL,
};

const struct nw_coll *nw_coll_find(const char *name)
{
    for (size_t i = 0; i < nw_coll_count; i++) {
        if (!strcmp(nw_colls[i].name, name))
            return &nw_colls[i];
    }
    return NULL;
}

nw_rc nw_coll_parse(const char *name, const struct nw_coll **coll_out)
{
    static const char suffix[] = "_perf";
    char key[32], accepted[256];
    size_t length = strlen(name);
    if (length > strlen(suffix) && !strcmp(name + length - strlen(suffix), suffix))
        length -= strlen(suffix);
    if (length < sizeof key) {
        memcpy(key, name, length);
        key[length] = '\0';
        const struct nw_coll *coll = nw_coll_find(key);
        if (coll) {
            *coll_out = coll;
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "\"%.64s\" is no collective; accepted: %s", name,
                   nw_join_names(accepted, sizeof accepted, nw_coll_names));
}
