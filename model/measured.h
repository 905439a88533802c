/* Public. What the results of a machine say of it: memory, host link, overlap, products by shape,
 * the topology. Each measured figure takes the place of a data sheet's or of an assumed constant.
 * Of several GPUs the slowest counts, since a step waits for it.
 *
 *     struct nw_measured measured;
 *     nw_measured_of(results, "bfloat16", &measured);
 *     if (measured.memory.known) … bytes per second of memory traffic …
 */
#ifndef NW_MODEL_MEASURED_H
#define NW_MODEL_MEASURED_H

#include "results/results.h"
#include "topo/gpu.h"

struct nw_figure {
    bool known; /* false: nothing measured, all else is 0 */
    bool simulated;
    int gpu_count;           /* of which it is the slowest; of overlap: that took part */
    double value, low, high; /* the interval of its time; overlap: from the best to the worst */
};

/* Matrix products as measured: one point a shape. Filled in by nw_gemm_prepare: the last line. */
struct nw_gemm_point {
    double batch, m, n, k;
    double flops_per_s, low, high;
    double log_rows, log_n, log_k, log_ratio; /* rows: m × batch; ratio: measured over the law's */
};
#define NW_GEMM_POINTS_MAX 64

struct nw_measured {
    struct nw_figure memory;             /* bytes/s read and written of a GPU's memory, copying */
    struct nw_figure to_device, to_host; /* bytes/s, pinned, all GPUs of a host at once */
    struct nw_figure overlap_loss;       /* of what is hidden, how much still shows */
    double sm_clock_hz, power_w; /* of the slowest GPU under the largest product; NAN: unknown */
    struct nw_gemm_point products[NW_GEMM_POINTS_MAX];
    size_t product_count;
    bool products_simulated;
    /* link and NICs of a machine that was read, for what was not measured */
    bool links_by_topology, nics_by_topology;
    bool topology_simulated; /* some of it is a double's */
    int topology_gpu_count;  /* 0: none was read */
    char topology_host[64];
};

/* Is any figure that stands in for a data sheet's a double's? */
bool nw_measured_is_simulated(const struct nw_measured *measured);
/* The GPU that the results were measured on, as their context names it; NULL: none. */
const char *nw_measured_gpu(const struct nw_results *results);
/* Out of all runs on that GPU. `dtype` of the products, as records name it; NULL: none. */
void nw_measured_of(const struct nw_results *results, const char *dtype,
                    struct nw_measured *measured_out);

#endif
