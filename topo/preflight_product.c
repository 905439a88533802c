/* Does what a GPU says of itself fit the product that its name says? Name, memory and power limit
 * together tell SXM boards, cards, fractions and cards that were changed. */
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/preflight_run.h"

/* The driver shows less than what is sold: ECC and firmware keep up to 7 % (L40S: 46068 MiB). */
#define MEMORY_REL 0.12
#define POWER_REL  0.15

/* Fractions of a GPU are sold under the whole one's name. */
static nw_rc judge_memory(struct nw_preflight_run *run, size_t host, int gpu,
                          const struct nw_gpu *product)
{
    const struct nw_topo_node *node = &nw_run_host(run, host)->nodes[gpu];
    const double ratio = (double)node->memory_bytes / (double)product->memory_bytes;
    char own[32], sold[32];

    if (node->memory_bytes == 0 || product->memory_bytes == 0 || fabs(ratio - 1) <= MEMORY_REL ||
        nw_is_yes(nw_run_host(run, host), gpu, NW_FACT_MIG))
        return NW_OK;
    return nw_tell(run, host, gpu, NW_FINDING_WARN,
                   ratio < 0.6 ? "gpu-fraction" : "gpu-memory-product",
                   ratio < 1 ? "if a whole GPU was rented: ask the vendor for it"
                             : "ask the vendor for the board's origin and warranty",
                   ratio < 1 ? "%s of memory, a %s has %s: a part of a GPU, or another product"
                             : "%s of memory, a %s has %s: another product, or a card that was "
                               "changed",
                   nw_format_bytes(own, node->memory_bytes), product->name,
                   nw_format_bytes(sold, product->memory_bytes));
}

/* Makers of consumer cards, and of machines with Grace, set their own limits. */
static nw_rc judge_power(struct nw_preflight_run *run, size_t host, int gpu,
                         const struct nw_gpu *product)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double usual = nw_topo_number(topo, gpu, NW_FACT_POWER_DEFAULT);

    if (nw_is_consumer(&topo->nodes[gpu]) || nw_is_grace(topo) || !(product->tdp_w > 0) ||
        !(usual < (1 - POWER_REL) * product->tdp_w))
        return NW_OK;
    return nw_tell(run, host, gpu, NW_FINDING_WARN, "product-contradiction",
                   "ask the vendor which board it is: cards and SXM boards of one name differ in "
                   "power, NVLink and memory bandwidth",
                   "the name says %s, which has a power limit of %.0f W; this one's is %.0f W",
                   product->name, product->tdp_w, usual);
}

nw_rc nw_preflight_product(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        const struct nw_gpu *product;

        if (!nw_topo_is_nvidia(&topo->nodes[i]) || topo->nodes[i].model[0] == '\0')
            continue;
        if (nw_gpu_find(topo->nodes[i].model, &product) != NW_OK) {
            nw_clear_error();
            continue;
        }
        NW_TRY(judge_memory(run, host, i, product));
        NW_TRY(judge_power(run, host, i, product));
    }
    return NW_OK;
}
