/* Private to bench/. A collective as a thing to measure: whole or in pieces, at one place in memory
 * or rotating through it. */
#ifndef NW_BENCH_WORK_COLL_H
#define NW_BENCH_WORK_COLL_H

#include "bench/case.h"

struct nw_coll_work {
    struct nw_work work; /* first: nw_measure hands this back */
    const struct nw_bench *bench;
    struct nw_comm *comm;
    struct nw_call call;  /* coll, dtype, op, root, in_place; the rest is set for each piece */
    uint64_t bytes;       /* of all pieces together */
    uint64_t piece_bytes; /* = bytes: whole */
    char *send, *recv;
    uint64_t slot_count; /* places to rotate through; 1: none */
    uint64_t send_stride, recv_stride;
};

/* `call`: coll, dtype, op, root, in_place. `bytes` as reported; piece_bytes 0 or >= bytes: whole.
 * Buffers are the bench's and are set when the bench has them. */
struct nw_coll_work nw_coll_work_of(const struct nw_bench *bench, struct nw_comm *comm,
                                    const struct nw_call *call, uint64_t bytes,
                                    uint64_t piece_bytes);
/* The index-th call alone, all its pieces. */
nw_rc nw_coll_work_queue(const struct nw_coll_work *work, uint64_t index);
/* Buffers that it needs; in place only the larger one. */
void nw_coll_work_buffers(const struct nw_coll_work *work, uint64_t *send_bytes_out,
                          uint64_t *recv_bytes_out);

/* Its first call, placed in the buffers. */
struct nw_call nw_coll_work_call(const struct nw_coll_work *work);

/* One way of calling a collective: what a table, or a curve, is about. */
struct nw_variant {
    const struct nw_coll *coll;
    nw_dtype dtype;
    nw_redop op;
    int root;
};
/* Calls `run` for each variant of the plan that makes a difference (no reduction: one op; not
 * rooted: one root). NW_EUSAGE when the root is no rank of `rank_count`. */
nw_rc nw_for_each_variant(struct nw_bench *bench, int rank_count,
                          nw_rc (*run)(struct nw_bench *bench, const struct nw_variant *variant,
                                       void *user),
                          void *user);
/* Can this backend run it? The first size stands for all. No: a finding has said why. */
bool nw_variant_supported(struct nw_bench *bench, const struct nw_variant *variant, uint64_t bytes);
/* Collective, element type, op and root into the record's identity. */
void nw_variant_identity(const struct nw_variant *variant, struct nw_record *record);
/* The plan's sizes as this variant moves them: rounded, each once, in the plan's order; the caller
 * frees. `left_out_out`: sizes too small to give every rank something. */
nw_rc nw_variant_sizes(const struct nw_bench *bench, const struct nw_variant *variant,
                       int rank_count, uint64_t **sizes_out, size_t *count_out,
                       size_t *left_out_out);

#endif
