/* Private to bench/. Which NICs and pairs of NICs fall short of their ports' rate. Pure.
 *
 * 92 to 98 % of the line rate is what healthy RDMA gives at an MTU of 4096 (docs/measuring.md); a
 * ceiling is less headers, so less than 94 % of that is short. */
#ifndef NW_BENCH_NICS_JUDGE_H
#define NW_BENCH_NICS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define NW_NIC_SHARE 0.94
/* Of the other way between the same two, and of GPU memory against host memory. */
#define NW_NIC_LIKE 0.9

struct nw_nic_stream { /* one way */
    int from, to;      /* NICs */
    bool gpu;
    double bytes_per_s, ceiling_bytes_per_s; /* the latter NAN: unknown */
};

struct nw_nic_verdict {
    bool *is_slow;     /* of each stream: short of its ceiling */
    bool *nic_is_slow; /* of each NIC: most of its streams are, and there are two others' or more */
    double *other_way; /* of each stream: of the other way's rate; NAN: not measured */
    double *gpu_share; /* of each stream of GPU memory: of host memory's; else NAN */
};
nw_rc nw_nics_judge(const struct nw_nic_stream *streams, size_t count, int nic_count,
                    struct nw_nic_verdict *verdict_out);
void nw_nic_verdict_free(struct nw_nic_verdict *verdict);

#endif
