/* Public. The collectives: one row each. Sizes follow nccl-tests: `bytes` is what its "size" column
 * shows.
 *
 * A collective's `bytes` is rounded down to whole elements, and where ranks get a chunk each, to
 * chunks of whole 16-byte units: nw_coll_shape says what a call of that size really moves. A size
 * too small for one unit a rank gives count 0: nothing to measure, the caller leaves it out.
 */
#ifndef NW_COLLECTIVES_COLL_H
#define NW_COLLECTIVES_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"

/* X(id, name, title); titles are for running text */
#define NW_COLL_MAP(X)                                                                             \
    X(NW_ALL_REDUCE, "all_reduce", "all-reduce")                                                   \
    X(NW_ALL_GATHER, "all_gather", "all-gather")                                                   \
    X(NW_REDUCE_SCATTER, "reduce_scatter", "reduce-scatter")                                       \
    X(NW_BROADCAST, "broadcast", "broadcast")                                                      \
    X(NW_REDUCE, "reduce", "reduce")                                                               \
    X(NW_ALLTOALL, "alltoall", "all-to-all")                                                       \
    X(NW_GATHER, "gather", "gather")                                                               \
    X(NW_SCATTER, "scatter", "scatter")                                                            \
    X(NW_SENDRECV, "sendrecv", "ring shift")

typedef enum {
#define X(id, name, title) id,
    NW_COLL_MAP(X)
#undef X
        NW_COLL_COUNT
} nw_coll_id; /* index into nw_colls, and into each backend's table */

enum {                         /* nw_coll.flags */
       NW_COLL_REDUCES = 1,    /* takes a reduction */
       NW_COLL_ROOTED = 2,     /* takes a root */
       NW_COLL_CHUNKED = 4,    /* bytes = rank_count chunks */
       NW_COLL_NO_INPLACE = 8, /* alltoall and sendrecv, as in nccl-tests ("N/A" in its columns) */
};

struct nw_shape {
    uint64_t bytes;                  /* as reported, after rounding */
    uint64_t count;                  /* elements, nccl-tests' "count" column: of one chunk where
                                        chunked; 0: the size is too small, nothing moves */
    uint64_t send_bytes, recv_bytes; /* per rank, buffers that a call needs (the root's, where
                                        roots differ) */
};

struct nw_coll {
    nw_coll_id id;
    const char *name;  /* key: "all_reduce" */
    const char *title; /* "all-reduce" */
    unsigned flags;
    struct nw_shape (*shape)(uint64_t bytes, size_t element_bytes, int rank_count);
    double (*bus_factor)(int rank_count); /* busbw = algbw × factor, algbw = bytes / time; 0 for one
                                             rank where nothing crosses a wire */
};

extern const struct nw_coll nw_colls[];
extern const size_t nw_coll_count;
extern const char *const nw_coll_names[]; /* NULL-terminated */

const struct nw_coll *nw_coll_find(const char *name); /* NULL: no such */
/* NW_EUSAGE with the accepted names. Also takes nccl-tests' binary names: "all_reduce_perf". */
nw_rc nw_coll_parse(const char *name, const struct nw_coll **coll_out);

static inline struct nw_shape nw_coll_shape(const struct nw_coll *coll, uint64_t bytes,
                                            nw_dtype type, int rank_count)
{
    return coll->shape(bytes, nw_dtype_bytes(type), rank_count);
}

#endif
