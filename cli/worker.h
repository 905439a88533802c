/* Private to cli/. A rank's process and the worker that it starts for a lane: what they have in
 * common. The worker measures in one lane (nw_bench_run over NCCL); events go to the rank as JSON.
 */
#ifndef NW_CLI_WORKER_H
#define NW_CLI_WORKER_H

#include <jansson.h>

#include "bench/bench.h"

enum { /* descriptors of the worker */
       NW_WORKER_SOCKET = 3,
       NW_WORKER_SHARED,
       NW_WORKER_FD_COUNT = 2,
};

/* Memory of both. */
struct nw_worker_shared {
    struct nw_bench_status status; /* the worker's */
    char device[96];               /* "gpu 3, 0000:1b:00.0"; written once, before `known` */
    _Atomic int known;
};

enum nw_worker_event { /* of the relay */
                       NW_WORKER_CONTEXT = 1,
                       NW_WORKER_RECORD,
                       NW_WORKER_KEPT, /* a record of the run before */
                       NW_WORKER_FINDING,
                       NW_WORKER_PROGRESS,
};

/* The greeting's text: lane, plan, what is done already, the parent's process id. `done`: this
 * rank's; the caller frees the text. */
nw_rc nw_worker_order_write(const struct nw_plan *plan, const char *lane,
                            const struct nw_record *done, size_t done_count, char **text_out);

/* `nodeworth worker`: started by lanes.c, not by people. */
int nw_cmd_worker(int argc, char **argv);

#endif
