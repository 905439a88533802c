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

#include "bench/record.h"

/* `dtype` as in the records: "bfloat16" "half" "f8e4m3". The interval is that of the slowest GPU's
 * time. False: nothing measured, or a GPU of the run has no good product of this type. Outputs may
 * be NULL. */
bool nw_gemm_rate_of(const struct nw_record *records, size_t count, const char *dtype,
                     double *flop_per_s_out, double *low_out, double *high_out);

#endif
