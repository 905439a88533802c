/* Public. Time of the computation, operator by operator: a roofline of matrix products (rate by
 * shape), attention, memory-bound work and kernel launches.
 *
 *     struct nw_compute compute;
 *     nw_compute_of(&job, &layout, micro_batch, &platform, &compute);
 *     compute.layer[0].forward_ns …
 */
#ifndef NW_MODEL_COMPUTE_H
#define NW_MODEL_COMPUTE_H

#include "model/layout.h"

struct nw_platform;

/* Start and drain of a kernel on the GPU: 0.5 to 1 us lie between two kernels (NVIDIA, Getting
 * Started with CUDA Graphs, 2019, recalled); the upper end. 0, 1.5 and 2 us do the published steps
 * no better. */
#define NW_KERNEL_GAP_NS 1e3

struct nw_unit_time { /* one micro-batch through one unit of the net, on one GPU, ns */
    double forward_ns, backward_ns; /* backward without what is recomputed */
    double recompute_ns;            /* forward done again in the backward pass */
    /* parts of forward + backward + recompute, for the breakdown */
    double product_ns, attention_ns, memory_ns, launch_ns;
    double idle_ns;     /* of launch_ns: the GPU waits for the CPU */
    double flops;       /* executed, of all three */
    double model_flops; /* forward and backward, nothing done twice */
};

struct nw_compute {
    struct nw_unit_time layer[NW_LAYER_KINDS]; /* NW_LAYER_PLAIN, NW_LAYER_EXPERTS */
    double layer_count[NW_LAYER_KINDS];        /* of the whole net */
    struct nw_unit_time embedding, head;
};

/* Scaled by the platform's time factor (anchor) and, unless the rate is that of a whole step, by
 * the profile's. */
void nw_compute_of(const struct nw_job *job, const struct nw_layout *layout, uint64_t micro_batch,
                   const struct nw_platform *platform, struct nw_compute *compute_out);

/* The update of one rank's share, with what moves to the CPU and back where it is offloaded. NAN:
 * the rate that it hangs on is unknown. */
struct nw_update {
    double gpu_ns, cpu_ns;
    double down_ns, up_ns; /* over PCIe: gradients to the host, weights back */
};
struct nw_update nw_update_of(const struct nw_job *job, const struct nw_layout *layout,
                              const struct nw_platform *platform);

/* Share of the peak that a matrix product m × k × n (batch of them) reaches on this platform:
 * measured by shape where it was, else the law of model/gemm.c. */
double nw_gemm_efficiency(const struct nw_platform *platform, double batch, double m, double n,
                          double k);

#endif
