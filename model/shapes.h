/* Public. The matrix products of a job, for the suite to measure: what a layer and the head of it
 * multiply, forward and backward, the largest part of the time first.
 *
 *     struct nw_product_shape shapes[NW_PRODUCT_SHAPES_MAX];
 *     const size_t count = nw_product_shapes_of(&job, &layout, job.micro_batch, shapes);
 */
#ifndef NW_MODEL_SHAPES_H
#define NW_MODEL_SHAPES_H

#include "model/layout.h"

#define NW_PRODUCT_SHAPES_MAX 12

struct nw_product_shape { /* m × k by k × n */
    uint64_t m, n, k;
    double flops; /* of one micro-batch, all layers */
};

/* m rounded up to 128, n and k to 8, as the suite measures them; equal ones once. Products of
 * activations with each other and of experts, several at a time, are left out. */
size_t nw_product_shapes_of(const struct nw_job *job, const struct nw_layout *layout,
                            uint64_t micro_batch,
                            struct nw_product_shape shapes_out[NW_PRODUCT_SHAPES_MAX]);
/* "8192x4096x4096,…", as bench --gemm-shapes takes them. */
const char *nw_product_shapes_text(const struct nw_product_shape *shapes, size_t count, char *to,
                                   size_t size);

#endif
