/* Public. The compute rate that a step is predicted from, out of a run's records of the case gemm:
 * of each GPU the better of our own product and cuBLAS', of all GPUs the slowest, since a step
 * waits for it.
 *
 *     if (nw_gemm_rate_of(records, count, "bfloat16", &flop_per_s, &low, &high))
 *         … else the GPU's data sheet …
 */
#ifndef NW_RESULTS_GEMM_RATE_H
#define NW_RESULTS_GEMM_RATE_H

#include <stdbool.h>
#include <stddef.h>

#include "results/results.h"

/* `dtype` as in the records: "bfloat16" "half" "f8e4m3". The interval is that of the slowest GPU's
 * time. False: nothing measured, or a GPU of the run has no good product of this type. Outputs may
 * be NULL. */
bool nw_gemm_rate_of(const struct nw_record *records, size_t count, const char *dtype,
                     double *flop_per_s_out, double *low_out, double *high_out);

/* Products of one shape, of the slowest GPU. */
struct nw_gemm_measured {
    uint64_t m, n, k;
    double flop_per_s, low, high;
    int gpu_count;
    bool simulated;
    double sm_clock_hz, power_w; /* of that GPU under the load; NAN: unknown */
};

/* Shape by shape over all `runs`, in the order of the records: as above for each shape of a run; a
 * shape of several runs by the slowest. A shape that a GPU has no good product of is left out.
 * Returns how many, at most `room`. */
size_t nw_gemm_shapes_of(const struct nw_run *const *runs, size_t run_count, const char *dtype,
                         struct nw_gemm_measured *measured_out, size_t room);

#endif
