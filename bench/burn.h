/* Private to bench/. A GPU under a load of matrix products, in samples back to back, and what the
 * driver says of it meanwhile. Not collective: every rank loads its GPU on its own, so that a slow
 * one does not give the others a rest.
 *
 *     struct nw_burn burn = {.budget_ns = 2e9, …};
 *     NW_TRY(nw_burn_run(&product, lane, &burn));     // burn.samples_ns[0 … count - 1]
 */
#ifndef NW_BENCH_BURN_H
#define NW_BENCH_BURN_H

#include "bench/product.h"

#define NW_BURN_SAMPLES 512

struct nw_burn {
    /* set by the caller */
    double budget_ns; /* of the load */
    double margin_ns; /* beyond what is expected: a GPU that takes longer hangs */
    struct nw_bench_status *status;
    bool real_time; /* false: a double's time does not pass while the host waits */
    /* the result */
    double samples_ns[NW_BURN_SAMPLES]; /* of one call */
    size_t count;
    uint32_t calls; /* a sample */
    struct nw_gpu_state during;
};

nw_rc nw_burn_run(struct nw_product *product, nw_product_lane lane, struct nw_burn *burn);

#endif
