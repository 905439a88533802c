/* Public. A result (record) and the circumstances it was made under (context). The schema is
 * docs/schema.md.
 *
 * A record owns its samples and warnings; a context owns its lists. nw_record_free /
 * nw_context_free leave them empty. Unmeasured is NAN or -1, never 0.
 */
#ifndef NW_BENCH_RECORD_H
#define NW_BENCH_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/finding.h"
#include "base/stats.h"
#include "topo/topo.h"

#define NW_SCHEMA_VERSION 1

/* What the driver says of a GPU at one moment (NVML). Unknown is NAN, of throttle -1. */
struct nw_gpu_state {
    double sm_clock_hz, sm_max_clock_hz;
    double power_w, power_limit_w;
    double temperature_c;
    int64_t throttle; /* bits of NW_THROTTLE_MAP (topo/nvml_api.h) */
};

typedef enum {                    /* why sampling stopped */
               NW_STOP_UNKNOWN,   /* imported */
               NW_STOP_CONVERGED, /* the interval is within the wanted half width */
               NW_STOP_BUDGET,    /* the time budget of the size was spent */
               NW_STOP_FIXED,     /* -n was given */
} nw_stop;

struct nw_record {
    /* identity: equal = comparable */
    char case_name[24];         /* "coll" "pairs" "scaling" "h2d" "d2h" "d2d" "p2p" "gemm" "overlap"
                                   "nic" */
    char collective[24];        /* "all_reduce"; pairs: "sendrecv"; h2d, d2h, d2d, p2p: "copy"
                                   "copy_both" "read" "write" "latency"; gemm: "gemm" */
    char lane[16];              /* "host" "local" "auto" "ring" …; imported: "auto"; of a device's
                                   copies: "ce" "sm" "staged"; of gemm: "own" "cublas" */
    char features[64];          /* what the library was told to use besides: "graph,registered";
                                   "": nothing */
    char dtype[16], op[16];     /* op "none" where there is no reduction */
    int root;                   /* -1: not rooted */
    int rank_count, host_count; /* host_count 0: unknown (imported excerpts); pairs: 2 ranks, on 1
                                   or 2 hosts */
    uint64_t bytes, count;
    bool in_place;
    int peer_a, peer_b; /* pairs, p2p: ranks (p2p: a writes to b); h2d, d2h, d2d, gemm: peer_a is
                           the rank whose GPU it is; else -1 */
    char host_a[64], host_b[64];
    char nic_a[72], nic_b[72]; /* nic: "mlx5_0/1"; a gives the data, b takes them; else "" */
    char memory[8];            /* nic: "host" "gpu"; else "" */
    uint64_t m, n, k;          /* gemm: of the product; else 0 */
    int stream_count;          /* tcp: connections side by side; 0: unknown, or of another case */
    uint64_t piece_bytes; /* > 0: the size was moved in pieces of this many bytes (the remedy for a
                             falling curve) */

    /* time of one call, of the slowest rank, ns */
    struct nw_stats time_ns;
    double *samples_ns; /* time_ns.count entries, or NULL (imported) */
    uint32_t calls_per_sample;
    nw_stop stop;
    double skew_ns;       /* median over samples of slowest minus fastest rank; NAN unknown */
    int slowest_rank;     /* most often slowest; -1 unknown */
    double slowest_share; /* of the samples, 0..1 */
    char slowest_host[64];

    double algbw_bytes_per_s, busbw_bytes_per_s; /* from the median; NAN with one rank or unknown */
    double ceiling_bytes_per_s;                  /* of the path, one way; NAN unknown */
    double expected_ns; /* the library's own estimate of a call (ncclGroupSimulateEnd); NAN: none */
    /* gemm and overlap; else NAN */
    double flop_per_s;       /* of the matrix product, from the median; overlap: beside the
                                collective */
    double alone_ns;         /* overlap: a call without company */
    double alone_flop_per_s; /* overlap: the matrix product without company */
    double hidden_share; /* overlap: of the shorter of the two, how much of it disappeared, 0..1 */
    /* scaling: of the busiest host, by its ports' counters (bench/ports.h); unknown: NAN, 0 */
    double wire_bytes_per_s; /* in the direction that moved more, all ports together */
    double nic_bytes_per_s;  /* line rate of the ports that could carry it, together */
    double port_share;       /* of the busiest port, 0..1 */
    int port_count, used_port_count;
    struct nw_gpu_state before, during, after; /* gemm: of the GPU of peer_a; during: what was worst
                                                  of all samples taken */
    /* nic; unknown is 0, NAN or "" */
    int qps, depth;
    uint32_t mtu_bytes; /* of RDMA, in force between the two */
    double messages_per_s;
    char gid_a[64], gid_b[64]; /* "192.0.2.1 (index 1)" */
    char registered[32];       /* how the memory was given to the NIC: "gpu (dma-buf)" */
    int64_t wrong_elements;    /* -1: not checked */
    nw_rc rc;                  /* NW_OK, or why there is no time */
    struct nw_findings warnings;
    bool simulated;
    char source[256]; /* imported: "file:line"; "": measured here */
};

struct nw_host { /* one host of the run */
    char name[64];
    int rank_count;
    char cpu[128];
    int core_count, pu_count;
    uint64_t memory_bytes;
    int gpu_count; /* -1: unknown */
    char gpu_model[128];
    char kernel[128];
};

struct nw_context {
    int schema;
    char tool[32];         /* "nodeworth", "nccl-tests", "rccl-tests" */
    char tool_version[64]; /* git describe, -dirty */
    char started[32];      /* ISO 8601 UTC; "": unknown */
    char backend[16];      /* "mpi" "local" "nccl" */
    char library[128];     /* "Open MPI v4.1.4 …", "NCCL 2.18.5" */
    char gpu_model[128];   /* imported logs; "": none or unknown */
    char network[64]; /* what NCCL says it used between hosts: "IB" "Socket" "AWS Libfabric"; "":
                         unknown */
    char source[256]; /* imported: the file; "": measured here */
    int rank_count, host_count; /* 0: unknown */
    struct nw_host *hosts;      /* host_count entries, or NULL */
    json_t *environment;        /* object: allow-listed variables; NULL */
    json_t *plan;               /* object: the options in force; NULL */
    json_t *topology;           /* array: topology of each host (nw_topo_to_json); NULL */
    json_t *binding; /* array: each rank's CPUs as the kernel lists them, "0-3,8"; NULL */
    json_t *lanes; /* array: {"name", "title", "environment", "left_out"}: the ways that were asked
                      for, what each forces, and why one was not run; NULL */
    json_t *gpus;  /* array, a rank each: {"model", "uuid", "pci", "driver", "library"}; NULL */
    struct nw_findings findings;
    double printed_average_bytes_per_s; /* nccl-tests' footer, kept, never used; NAN */
    bool complete;                      /* the run reached its end */
    bool simulated;
};

void nw_record_init(struct nw_record *record); /* everything unknown */
void nw_record_free(struct nw_record *record);
nw_rc nw_record_copy(struct nw_record *to, const struct nw_record *from);
/* Same case, collective, lane, features, dtype, op, root, ranks, hosts, bytes, place, peers, piece,
 * streams.
 */
bool nw_gpu_state_is_known(const struct nw_gpu_state *state); /* anything of it */
bool nw_record_same_identity(const struct nw_record *a, const struct nw_record *b);
void nw_context_init(struct nw_context *context);
void nw_context_free(struct nw_context *context);

#endif
