/* Private to bench/. What the GPUs' rates and states under load say of them. Pure: no GPU, no
 * output. */
#ifndef NW_BENCH_GEMM_JUDGE_H
#define NW_BENCH_GEMM_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/record.h"

/* Equal GPUs differ by 1 to 2 % under load (each chip has a voltage curve of its own). */
#define NW_GEMM_SLOW_REL 0.03
/* From the first quarter of a load's samples to the last. */
#define NW_GEMM_DRIFT_REL 0.03
/* Of cuBLAS' rate: what our own product should reach at least. */
#define NW_GEMM_OWN_SHARE 0.7

struct nw_gemm_rate { /* of one GPU, lane and element type */
    int rank, lane;
    char dtype[16];
    const char *model;        /* only GPUs of one model are compared */
    double flop_per_s, drift; /* drift: NAN: too few samples; 0.05: 5 % slower at the end */
    struct nw_gpu_state during;
};

struct nw_gemm_fault {
    int rank;
    const struct nw_gemm_rate *rate; /* the one that shows it best */
    double usual;                    /* slow: the median of like GPUs */
};

/* Relative growth of a call's time from the first quarter of a series to the last, by medians; NAN
 * below eight samples. */
double nw_gemm_drift(const double *samples_ns, size_t count);
/* GPUs more than NW_GEMM_SLOW_REL below the median of like ones in the same lane and type, each
 * once, in rank order. `faults_out`: room for a GPU a rate. */
size_t nw_gemm_slow(const struct nw_gemm_rate *rates, size_t count,
                    struct nw_gemm_fault *faults_out);
/* GPUs that become slower by more than NW_GEMM_DRIFT_REL, each once. */
size_t nw_gemm_drifting(const struct nw_gemm_rate *rates, size_t count,
                        struct nw_gemm_fault *faults_out);
/* GPUs that something bad slowed down (NW_THROTTLE_BAD), each once, by its lowest clock. A power
 * cap alone is left out: that a load of products reaches it is what the cap is for. */
size_t nw_gemm_throttled(const struct nw_gemm_rate *rates, size_t count,
                         struct nw_gemm_fault *faults_out);
/* GPUs that hold their power cap, and nothing worse. */
size_t nw_gemm_power_capped(const struct nw_gemm_rate *rates, size_t count,
                            struct nw_gemm_fault *faults_out);
/* Median of `lane` for a type over all GPUs; NAN: none. */
double nw_gemm_median(const struct nw_gemm_rate *rates, size_t count, int lane, const char *dtype);

/* Of the shorter of two works, how much of it disappears when both run together: 0 (one after the
 * other, or worse) to 1 (in the shadow of the longer one). */
double nw_hidden_share(double one_ns, double other_ns, double together_ns);

#endif
