/* Is a GPU what its name says? */
#include "base/units.h"
#include "topo/preflight_run.h"
#include "topo/product.h"

/* A fraction of a GPU (vGPU, time slice with a memory limit) is sold under the whole one's name. */
#define FRACTION_MOST 0.6

static bool is_fraction(const struct nw_topo *topo, int gpu, const struct nw_gpu *named)
{
    const double memory = (double)topo->nodes[gpu].memory_bytes;

    return named != NULL && named->memory_bytes > 0 && memory > 0 &&
           memory <= FRACTION_MOST * (double)named->memory_bytes &&
           !nw_is_yes(topo, gpu, NW_FACT_MIG);
}

static nw_rc tell_fraction(struct nw_preflight_run *run, size_t host, int gpu,
                           const struct nw_gpu *named)
{
    const struct nw_topo_node *node = &nw_run_host(run, host)->nodes[gpu];
    char own[32], sold[32];

    return nw_tell(run, host, gpu, NW_FINDING_WARN, "gpu-fraction",
                   "if a whole GPU was rented: ask the vendor for it",
                   "%s of memory, a %s has %s: a part of a GPU, or another product",
                   nw_format_bytes(own, node->memory_bytes), named->name,
                   nw_format_bytes(sold, named->memory_bytes));
}

static nw_rc judge_product(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    struct nw_gpu_product product;

    nw_gpu_identify(topo, gpu, &product);
    if (is_fraction(topo, gpu, product.named))
        return tell_fraction(run, host, gpu, product.named);
    /* That NVLinks alone are too few is told by the rule for them. */
    if (product.contradiction[0] == '\0' ||
        nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT) == NW_CUT_DOWN_LINKS)
        return NW_OK;
    return nw_tell(run, host, gpu, NW_FINDING_WARN, "product-contradiction",
                   "ask the vendor which board it is: cards and SXM boards of one name differ in "
                   "power, NVLink and memory bandwidth",
                   "%s", product.contradiction);
}

nw_rc nw_preflight_product(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        if (nw_topo_is_nvidia(&topo->nodes[i]) && topo->nodes[i].model[0] != '\0')
            NW_TRY(judge_product(run, host, i));
    return NW_OK;
}
