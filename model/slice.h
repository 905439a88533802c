/* Public. MIG slices: parts of a GPU that are sold as smaller GPUs, without access to each other.
 *
 *     struct nw_gpu part;
 *     NW_TRY(nw_gpu_slice(gpu, "3g.40gb", &part));    // figures of the part; its memory recalled
 *
 * Plain data; the part borrows nothing but the GPU's texts.
 */
#ifndef NW_MODEL_SLICE_H
#define NW_MODEL_SLICE_H

#include "topo/gpu.h"

/* NW_EUSAGE: the GPU cannot be cut, or not so; names the slices that it has. */
nw_rc nw_gpu_slice(const struct nw_gpu *gpu, const char *slice, struct nw_gpu *part_out);

#endif
