/* Public. What to measure, and how long: the options of `bench`, checked and resolved.
 *
 * Texts are borrowed from whoever set the options. Letters and meanings are nccl-tests' where it
 * has them; the rest of the rows say what they are in --help.
 *
 *     struct nw_plan plan;
 *     NW_TRY(nw_options_reset(nw_plan_rows, nw_plan_row_count, &plan));
 *     ... the command line ...
 *     NW_TRY(nw_plan_resolve(&plan));
 */
#ifndef NW_BENCH_PLAN_H
#define NW_BENCH_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "collectives/comm.h"
#include "collectives/lane.h"

#define NW_PLAN_LIST_MAX 32

enum { /* nw_plan.places */
       NW_PLACE_OUT = 1,
       NW_PLACE_IN = 2,
};

struct nw_gemm_shape { /* m × k by k × n */
    int m, n, k;
};

struct nw_plan {
    /* the options */
    uint64_t min_bytes, max_bytes;
    int step_factor;     /* 0: not given */
    uint64_t step_bytes; /* 0: not given */
    uint64_t iters;      /* 0: adaptive */
    int warmup_iters;
    int check; /* verified calls before the timing; 0: no check at all */
    const char *dtype_text, *op_text;
    int root; /* -1: every rank in turn */
    const char *cases_text, *collectives_text, *place_text;
    double budget_ns; /* sampling time of one measurement */
    double stop_rel_ci;
    int min_samples;
    double timeout_ns; /* 0: from the size */
    uint64_t seed;
    bool shuffle, cold;
    uint64_t piece_bytes; /* 0: whole */
    uint64_t pair_bytes;
    int tcp_streams; /* most connections between two hosts */
    double burn_ns;  /* load of one matrix product */
    uint64_t overlap_bytes;
    const char *nic_devices; /* --ib-dev; NULL: all */
    int nic_port, nic_gid;   /* 0: all; -1: by rule */
    int nic_mtu, nic_tclass; /* 0: the smaller of both ports' */
    int nic_qps, nic_depth;  /* 0: by convergence */
    uint64_t nic_bytes;      /* 0: by convergence */
    const char *nic_pairs;   /* "all" "rail" */
    bool nic_cm;
    int gemm_size;                /* n of an n × n × n product; 0: by the GPUs' memory */
    const char *gemm_shapes_text; /* NULL: none but the square one */
    const char *backend;
    const char *lanes_text; /* NULL: not given */
    const char *nccl_text;  /* NULL: not given */
    int ranks, hosts;       /* backend local; 0: not given */
    /* where results go (the caller's business) */
    const char *json_file, *out_dir;
    bool resume, json;
    const char *progress;

    /* resolved by nw_plan_resolve */
    unsigned cases; /* bit i: nw_cases[i] of bench/case.h */
    unsigned places;
    const struct nw_coll *colls[NW_PLAN_LIST_MAX];
    nw_dtype dtypes[NW_PLAN_LIST_MAX];
    nw_redop ops[NW_PLAN_LIST_MAX];
    struct nw_nccl_wish nccl;
    const struct nw_lane *lanes[NW_PLAN_LIST_MAX]; /* of backends nccl and auto; in their order */
    struct nw_gemm_shape shapes[NW_PLAN_LIST_MAX]; /* beside the square one */
    size_t coll_count, dtype_count, op_count, lane_count, shape_count;
};

extern const struct nw_option nw_plan_rows[];
extern const size_t nw_plan_row_count;

/* NW_EUSAGE with the option and what is accepted. */
nw_rc nw_plan_resolve(struct nw_plan *plan);
/* The sizes asked for, ascending; the caller frees. */
nw_rc nw_plan_sizes(const struct nw_plan *plan, uint64_t **sizes_out, size_t *count_out);
/* The order in which to measure them: as they are, or shuffled by the seed. */
void nw_plan_order(const struct nw_plan *plan, uint64_t *sizes, size_t count);
/* The options in force, one key each. */
nw_rc nw_plan_to_json(const struct nw_plan *plan, json_t **json_out);
/* Equal plans measure the same things; where results go is left out. */
uint64_t nw_plan_hash(const struct nw_plan *plan);

#endif
