/* Public. Which GPUs, and which pairs of GPUs, are slower than their like? Pure. A rate is NAN
 * where nothing was measured. */
#ifndef NW_BENCH_COPIES_JUDGE_H
#define NW_BENCH_COPIES_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Scaled MADs below the median that make a GPU an outlier among its like. */
#define NW_SLOW_GPU_MADS 3
/* Of the median: GPUs of one model differ by less at their own memory, and by more over a bus whose
 * other end may be the far socket. */
#define NW_SLOW_GPU_MEMORY_REL 0.03
#define NW_SLOW_GPU_BUS_REL    0.10

struct nw_gpu_rate {
    const char *model; /* only GPUs of one model are alike */
    double bytes_per_s;
};

/* usual_out[i]: the median of its like where GPU i is `rel` below it and an outlier, else NAN. At
 * least three must be alike. */
nw_rc nw_gpus_judge(const struct nw_gpu_rate *rates, size_t count, double rel, double *usual_out);

/* Behind switches all pairs are alike; elsewhere the path is another for each. */
#define NW_SLOW_PEER_SWITCHED_REL 0.05
#define NW_SLOW_PEER_REL          0.25
/* One way against the other between the same two. */
#define NW_ASYMMETRIC_REL 0.10
#define NW_SLOW_PEERS_MAX 8

struct nw_peer_rate {
    int a, b; /* GPUs; a writes to b */
    double bytes_per_s, usual_bytes_per_s;
};

struct nw_slow_peers {
    /* GPUs whose best pair is slower than that of the others: bytes_per_s of the best, b is -1 */
    struct nw_peer_rate gpus[NW_SLOW_PEERS_MAX];
    size_t gpu_count;
    /* slowest first; of GPUs not named above; usual: the median of all */
    struct nw_peer_rate pairs[NW_SLOW_PEERS_MAX];
    size_t pair_count;
    /* usual: the other way */
    struct nw_peer_rate asymmetric[NW_SLOW_PEERS_MAX];
    size_t asymmetric_count;
};

/* `rates[a * count + b]`; the diagonal is NAN. */
nw_rc nw_peers_judge(const double *rates, size_t count, double rel, struct nw_slow_peers *slow_out);

/* "0-3,5": the indexes that are in. Cut with "…" when too long. */
const char *nw_index_list(char *text, size_t size, const bool *in, size_t count);

#endif
