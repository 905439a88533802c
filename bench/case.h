/* Private to bench/. What the cases share: buffers, skipping what an earlier run has, handing out
 * records, progress.
 *
 * A case is one function that walks through its units (measurements). It is called twice: first dry
 * (nw_bench_begin counts the unit, notes the buffers it needs and says "do not go"), then in
 * earnest. So the loops stand in one place.
 */
#ifndef NW_BENCH_CASE_H
#define NW_BENCH_CASE_H

#include "bench/bench.h"
#include "bench/gated.h"
#include "bench/measure.h"

struct nw_bench {
    const struct nw_plan *plan;
    struct nw_comm *comm;
    const struct nw_bench_events *events;
    uint64_t *sizes; /* ascending */
    size_t size_count;
    bool dry;
    char *send, *recv;               /* of the current series; NULL in a dry run */
    uint64_t send_bytes, recv_bytes; /* of the buffers; in a dry run what the largest unit needs */
    struct nw_mark *start, *end;     /* on the communicator's stream; NULL: it has none */
    uint64_t round;                  /* next test pattern */
    struct nw_findings notes;        /* made before the context is handed out */
    nw_rc rc;                        /* rank 0: a callback failed; `text` says how */
    char text[1024];
    bool failed;                   /* something was given up, which did not end the run: nic */
    bool told_no_rdma, told_rails; /* once a run */
    bool wrong;                    /* some data was wrong (complete on rank 0 only) */
    size_t record_count;           /* handed out, kept ones included (rank 0) */
    uint64_t done, total;
    double done_weight, total_weight;
    uint64_t began_ns;
};

struct nw_case {
    const char *name, *title;
    nw_rc (*run)(struct nw_bench *bench);
    bool of_plan;   /* of the collectives that the plan names, and no others */
    bool of_device; /* what GPUs, NICs and sockets do without a communicator: the same in all lanes
                     */
    bool needs_gpu; /* left out where the run measures host memory */
    bool no_graphs; /* its calls are not captured (nw_comm.graphs) */
};
extern const struct nw_case nw_cases[];
extern const size_t nw_case_count;

nw_rc nw_case_coll(struct nw_bench *bench);
nw_rc nw_case_pairs(struct nw_bench *bench);
nw_rc nw_case_scaling(struct nw_bench *bench);
nw_rc nw_case_tcp(struct nw_bench *bench);
nw_rc nw_case_h2d(struct nw_bench *bench);
nw_rc nw_case_d2h(struct nw_bench *bench);
nw_rc nw_case_d2d(struct nw_bench *bench);
nw_rc nw_case_p2p(struct nw_bench *bench);
nw_rc nw_case_gemm(struct nw_bench *bench);
nw_rc nw_case_overlap(struct nw_bench *bench);
nw_rc nw_case_nic(struct nw_bench *bench);
nw_rc nw_case_loopback(struct nw_bench *bench);
nw_rc nw_case_rail(struct nw_bench *bench);
nw_rc nw_case_bisect(struct nw_bench *bench);
nw_rc nw_case_incast(struct nw_bench *bench);

/* Units that follow each other over the same buffers: sized dry, allocated, measured. Freed before
 * the next series, since a library's own buffers come on top of ours. */
nw_rc nw_bench_series(struct nw_bench *bench, nw_rc (*walk)(void *user), void *user);

struct nw_unit {
    const struct nw_record *identities; /* of the records that it gives */
    size_t identity_count;
    uint64_t send_bytes, recv_bytes; /* buffers of a rank */
    const char *title;
};

/* Collective. Shall the unit be measured? Not in a dry run, and not when rank 0 has all its records
 * from an earlier run: then these were handed out as kept, and on rank 0 `kept_out` (identity_count
 * entries, may be NULL) points to them. */
nw_rc nw_bench_begin(struct nw_bench *bench, const struct nw_unit *unit, bool *go_out,
                     const struct nw_record **kept_out);
void nw_bench_end(struct nw_bench *bench, const struct nw_unit *unit);

/* Hand out (rank 0; elsewhere only the flags are kept). A failure shows at the next begin. */
void nw_bench_record(struct nw_bench *bench, const struct nw_record *record);
void nw_bench_finding(struct nw_bench *bench, nw_severity severity, const char *code,
                      const char *where, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* A record of this run with everything but the case's own identity. */
void nw_bench_identity(const struct nw_bench *bench, const char *case_name,
                       struct nw_record *record_out);
/* How long anything may take that has no size: -T, else what is always enough. */
double nw_bench_margin_ns(const struct nw_bench *bench);
/* How to measure a unit of `bytes` a call; takes the test patterns it uses. */
struct nw_measure nw_bench_how(struct nw_bench *bench, uint64_t bytes, const char *title);
/* For work on the communicator's stream, where bench->start is not NULL: `calls` calls of `bytes`
 * timed by the device (bench/gated.h). `queue`, `finish` and `user` are left to the caller; so is
 * taking the stream away where this rank idles. */
struct nw_gated nw_bench_gate(const struct nw_bench *bench, uint64_t bytes, uint32_t calls);

/* Collective. Leaves sizes out that do not fit on the smallest GPU of all ranks, with a note;
 * `count` counts the plan's buffers anew. NW_EUSAGE: nothing fits, or not into the host's memory.
 */
nw_rc nw_bench_fit(struct nw_bench *bench, nw_rc (*count)(struct nw_bench *bench));
/* Allow-listed, none of the launcher's own, nothing that looks like a secret. */
bool nw_env_is_recorded(const char *variable_name);
/* RAM that this process may still take, in bytes; 0: unknown. */
uint64_t nw_env_available_bytes(void);

#endif
