/* Private to model/. Time of matrix products: the law of model/gemm.c, measured points before it.
 *
 *     const struct nw_product product = {.batch = 1, .m = tokens, .n = out, .k = in,
 *                                        .in_bytes = 2, .out_bytes = 2};
 *     nw_product_ns(platform, NW_UNITS_BF16, &product);
 */
#ifndef NW_MODEL_GEMM_H
#define NW_MODEL_GEMM_H

#include "model/model.h"

struct nw_product { /* m × k by k × n, `batch` of them at a time */
    double batch, m, n, k;
    double in_bytes, out_bytes; /* per element read; per element of the result: written, and read
                                   where it is added to */
    bool outer; /* sums over the rows of both factors (a weight's gradient): k lies apart in memory
                 */
};

static inline double nw_product_flops(const struct nw_product *product)
{
    return 2 * product->batch * product->m * product->n * product->k;
}

/* What the largest products reach on these matrix units, FLOP/s: measured, else the catalogue's;
 * NAN: unknown. */
double nw_sustained_flops(const struct nw_platform *platform, nw_units_kind units);
/* The same for kernels that reach `instruction_share` of the units' rate: the power limit binds
 * those less. */
double nw_instruction_flops(const struct nw_platform *platform, nw_units_kind units,
                            double instruction_share);
/* Share of it that a product reaches by its shape alone: whole tiles on all SMs, depth. 0 … 1. */
double nw_shape_share(const struct nw_platform *platform, const struct nw_product *product);
/* Once the platform's rate is known and whenever its measured products change. */
void nw_gemm_prepare(struct nw_platform *platform);
/* NAN where the rate is unknown. */
double nw_product_ns(const struct nw_platform *platform, nw_units_kind units,
                     const struct nw_product *product);
/* Bytes over the memory bandwidth that work without products reaches; 0 where it is unknown. */
double nw_traffic_ns(const struct nw_platform *platform, double bytes);

#endif
