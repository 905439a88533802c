/* Public. The collectives: one row each. Sizes follow nccl-tests: `bytes` is what its "size" column
 * shows.
 *
 * A collective's `bytes` is rounded down to whole elements (and whole chunks where ranks get a
 * chunk each): nw_coll_shape says what a call of that size really moves.
 */
#ifndef NW_COLLECTIVES_COLL_H
#define NW_COLLECTIVES_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"

enum {                      /* nw_coll.flags */
       NW_COLL_REDUCES = 1, /* takes a reduction */
       NW_COLL_ROOTED = 2,  /* takes a root */
       NW_COLL_CHUNKED = 4, /* bytes = rank_count chunks */
       NW_COLL_NO_INPLACE = 8,
};

struct nw_shape {
    uint64_t bytes; /* as reported, after rounding */
    uint64_t count; /* elements, nccl-tests' "count" column */
    uint64_t send_bytes,
        recv_bytes; /* per rank, buffers that a call needs (the root's, where roots differ) */
};

struct nw_coll {
    const char *name;  /* key: "all_reduce" */
    const char *title; /* "all-reduce" */
    unsigned flags;
    struct nw_shape (*shape)(uint64_t bytes, size_t element_bytes, int rank_count);
    double (*bus_factor)(
        int rank_count); /* busbw = algbw × factor; nccl-tests doc/PERFORMANCE.md */
};

extern const struct nw_coll nw_colls[];
extern const size_t nw_coll_count;
extern const char *const nw_coll_names[]; /* NULL-terminated */

const struct nw_coll *nw_coll_find(const char *name); /* NULL: no such */
/* NW_EUSAGE with the accepted names. Also takes nccl-tests' binary names: "all_reduce_perf". */
nw_rc nw_coll_parse(const char *name, const struct nw_coll **coll_out);

#endif
