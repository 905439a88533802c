/* NVLink as the topologies show it: counts and rates that the driver states, matrices of GPUs
 * (nvidia-smi topo -m: NV18), links of other readers. No measurement.
 *
 * A GPU behind NVSwitches shows its whole bundle to every other GPU; joined directly, its pairs
 * share it. So a sum over its pairs above what the product has means switches. */
#include <math.h>
#include <string.h>

#include "results/audit_private.h"
#include "topo/link.h"

/* NVIDIA's most: 18 links a GPU, Hopper and Blackwell. */
#define MOST_LINKS 18

struct nw_gpu_nvlink nw_nvlink_product(const char *model, bool driver, struct nw_gpu_name *name_out)
{
    nw_gpu_name_of(model != NULL ? model : "", driver, name_out);
    return nw_gpu_nvlink_of(name_out);
}

/* The driver states the signalling rate (26.562 GB/s); 25 of it are data, as product pages count.
 */
static double nominal(double bytes_per_s)
{
    static const double rates[] = {14.0625e9, 20e9, 25e9, 50e9};

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        if (bytes_per_s >= 0.97 * rates[i] && bytes_per_s <= 1.075 * rates[i])
            return rates[i];
    return bytes_per_s;
}

struct pairs { /* of one GPU */
    int sum, most, peers;
    double bytes_sum, bytes_most, link_bytes_per_s; /* NAN: unknown */
    bool stated;                                    /* some pair's class is known */
};

static void look_pair(const struct nw_topo *topo, int gpu, int other, double product_link,
                      struct pairs *pairs)
{
    const struct nw_topo_link *link = nw_topo_link_between(topo, NW_LINK_NVLINK, gpu, other);
    const double bytes = link != NULL ? link->bytes_per_s : 0;
    int lanes = 0;

    if (nw_topo_class(topo, gpu, other, &lanes) != NW_CLASS_NV)
        return;
    if (lanes > 0 && bytes > 0)
        pairs->link_bytes_per_s = nominal(bytes / lanes);
    else if (bytes > 0 && isfinite(product_link))
        lanes = (int)(bytes / product_link + 0.5);
    pairs->sum += lanes;
    pairs->most = lanes > pairs->most ? lanes : pairs->most;
    pairs->bytes_sum += bytes;
    pairs->bytes_most = fmax(pairs->bytes_most, bytes);
    pairs->peers++;
}

static struct pairs pairs_of(const struct nw_topo *topo, int gpu, double product_link)
{
    struct pairs pairs = {.link_bytes_per_s = NAN};

    for (size_t other = 0; other < topo->node_count; other++)
        if ((int)other != gpu && topo->nodes[other].kind == NW_NODE_GPU)
            look_pair(topo, gpu, (int)other, product_link, &pairs);
    for (size_t i = 0; i < topo->stated_count && !pairs.stated; i++)
        pairs.stated = (topo->stated[i].a == gpu || topo->stated[i].b == gpu) &&
                       topo->nodes[topo->stated[i].a].kind == NW_NODE_GPU &&
                       topo->nodes[topo->stated[i].b].kind == NW_NODE_GPU;
    return pairs;
}

static int switched_of(const struct nw_topo *topo, int gpu, const struct pairs *pairs,
                       const struct nw_gpu_nvlink *product)
{
    const double fact = nw_topo_number(topo, gpu, NW_FACT_NVLINK_SWITCH);
    const int most = product->links > 0 ? product->links : MOST_LINKS;

    if (isfinite(fact))
        return fact != 0;
    if (product->bridge && pairs->peers > 0)
        return 0;
    if (pairs->peers < 2)
        return -1;
    if (pairs->sum > 0)
        return pairs->sum > most;
    /* 8 % above: the driver's rates are those of the signal. */
    const double full = isfinite(product->bytes_per_s) ? product->bytes_per_s
                                                       : MOST_LINKS * nw_nvlink_bytes_per_s(5);

    return pairs->bytes_sum > 1.08 * full;
}

static void look_gpu(const struct nw_topo *topo, int gpu, const struct nw_gpu_nvlink *product,
                     struct nw_nvlink_view *view)
{
    const double count = nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT);
    const double inactive = nw_topo_number(topo, gpu, NW_FACT_NVLINK_INACTIVE_COUNT);
    const double rate = nw_topo_number(topo, gpu, NW_FACT_NVLINK_RATE);
    const struct pairs pairs = pairs_of(topo, gpu, product->link_bytes_per_s);
    const bool whole = (topo->gaps & (NW_TOPO_PARTIAL | NW_TOPO_NO_NVLINK)) == 0 &&
                       nw_topo_count(topo, NW_NODE_GPU) > 1;

    *view = (struct nw_nvlink_view){.links = -1, .link_bytes_per_s = NAN, .bytes_per_s = NAN};
    if (!isfinite(count) && pairs.peers == 0 && !pairs.stated && !whole)
        return;
    snprintf(view->gpu, sizeof view->gpu, "%s", topo->nodes[gpu].name);
    view->switched = switched_of(topo, gpu, &pairs, product);
    view->peers = pairs.peers;
    view->pair_links = pairs.most;
    view->inactive = inactive > 0 ? (int)inactive : 0;
    if (isfinite(count))
        view->links = (int)count;
    else if (pairs.sum > 0 || pairs.peers == 0)
        view->links = view->switched == 0 ? pairs.sum : pairs.most;
    view->link_bytes_per_s = isfinite(rate)                     ? nominal(rate)
                             : isfinite(pairs.link_bytes_per_s) ? pairs.link_bytes_per_s
                                                                : product->link_bytes_per_s;
    if (view->links == 0)
        view->bytes_per_s = 0;
    else if (view->links > 0 && isfinite(view->link_bytes_per_s))
        view->bytes_per_s = view->links * view->link_bytes_per_s;
    else if (pairs.bytes_most > 0)
        view->bytes_per_s = view->switched == 1 ? pairs.bytes_most : pairs.bytes_sum;
}

static bool is_weaker(const struct nw_nvlink_view *a, const struct nw_nvlink_view *b)
{
    if (isfinite(a->bytes_per_s) || isfinite(b->bytes_per_s))
        return isfinite(a->bytes_per_s) && !(a->bytes_per_s >= b->bytes_per_s);
    return a->links >= 0 && (b->machine == NULL || a->links < b->links);
}

void nw_nvlink_view(const struct nw_audit_state *state, struct nw_nvlink_view *view_out)
{
    struct nw_nvlink_view worst = {.links = -1, .link_bytes_per_s = NAN, .bytes_per_s = NAN};

    for (size_t i = 0; i < state->machine_count; i++) {
        const struct nw_machine *machine = &state->machines[i];
        struct nw_gpu_name name;
        const char *model =
            machine->gpu_model[0] != '\0' ? machine->gpu_model : nw_audit_gpu_model(state);
        /* Nameless GPUs may be the quoted ones; who judges says so. */
        const struct nw_gpu_nvlink product = nw_nvlink_product(
            model != NULL ? model : state->quote->gpu_model, model != NULL, &name);

        for (size_t t = 0; t < machine->topo_count; t++) {
            const struct nw_topo *topo = machine->topos[t];

            for (size_t node = 0; (topo->gaps & NW_TOPO_NO_IO) == 0 && node < topo->node_count;
                 node++) {
                struct nw_nvlink_view view;

                if (topo->nodes[node].kind != NW_NODE_GPU)
                    continue;
                look_gpu(topo, (int)node, &product, &view);
                view.machine = machine;
                if (is_weaker(&view, &worst))
                    worst = view;
            }
        }
    }
    *view_out = worst;
}
