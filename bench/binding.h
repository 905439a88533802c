/* Private to bench/. On which CPUs a rank may run, and whether ranks get into each other's way. */
#ifndef NW_BENCH_BINDING_H
#define NW_BENCH_BINDING_H

#include "base/finding.h"
#include "collectives/comm.h"

#define NW_BINDING_CPUS_MAX 1024

struct nw_rank_binding {
    uint64_t cores[NW_BINDING_CPUS_MAX / 64]; /* bit i: the core whose first hardware thread is i */
    char cpus[128];                           /* hardware threads, "0-3,8"; cut when longer */
};

void nw_binding_read(struct nw_rank_binding *binding_out); /* of the calling thread */
/* A finding for each host where ranks must share cores. `bindings`: one a rank. */
nw_rc nw_binding_judge(const struct nw_rank_binding *bindings, const struct nw_comm *comm,
                       struct nw_findings *findings);

#endif
