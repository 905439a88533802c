/* NVLinks: are those up that the product has, and as many as the siblings'? Boards with NVSwitches:
 * is the fabric set up? */
#include "base/units.h"
#include "topo/classify.h"
#include "topo/preflight_run.h"
#include "topo/product.h"

/* The driver answers in milliseconds; setting a GPU up takes some seconds without persistence. One
 * with a bridge half plugged in took 112 s for 8 GPUs (NVIDIA/nccl#340). */
#define ANSWER_SLOW_S 5
#define ERRORS_MANY   1000

/* What a product name says of NVLink. */
struct product {
    const struct nw_gpu *gpu; /* NULL: not in the catalogue */
    int links;                /* at most; 0: unknown, or none */
    bool sxm;                 /* soldered to a board with NVLink: no bridge to forget */
};

static struct product product_of(const struct nw_topo *topo, int gpu)
{
    const char *model = topo->nodes[gpu].model;
    struct nw_gpu_product known;
    struct product product;

    nw_gpu_identify(topo, gpu, &known);
    product.gpu = known.named != NULL ? known.named : known.fit_count == 1 ? known.gpu : NULL;
    if (product.gpu == NULL)
        return (struct product){.gpu = NULL, .sxm = strstr(model, "SXM") != NULL};
    product.links = product.gpu->nvlink_count;
    product.sxm = strcmp(product.gpu->form, "sxm") == 0 ||
                  strcmp(product.gpu->form, "superchip") == 0; /* GH200, GB200, GB300 */
    return product;
}

/* Of one link, as the product has it, else as the driver states it, which is the rate of its signal
 * (26.6 of 25 GB/s); NAN: unknown. */
static double rate_of(const struct nw_topo *topo, int gpu, const struct product *product)
{
    const double rate = nw_topo_number(topo, gpu, NW_FACT_NVLINK_RATE);

    if (product->gpu != NULL && product->links > 0)
        return fmin(product->gpu->nvlink_lane_bytes_per_s, rate); /* of x and NAN: x */
    return rate > 0 ? rate : NAN;
}

/* What to do about links that are down. A bridge joins two cards by at most 12 links (A100 and H100
 * PCIe); what has more is soldered to a board, whatever its name. */
enum { BRIDGE_LINKS_MAX = 12 };

static bool may_be_bridged(const struct product *product, double links)
{
    return !product->sxm && links <= BRIDGE_LINKS_MAX;
}

/* The most active links among GPUs of the same model; how many of those know. */
static double most_links(const struct nw_topo *topo, int gpu, int *known_out)
{
    double most = 0;

    *known_out = 0;
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        const double active = nw_topo_number(topo, i, NW_FACT_NVLINK_COUNT);

        if (isnan(active) || !nw_is_alike(&topo->nodes[i], &topo->nodes[gpu]))
            continue;
        ++*known_out;
        most = fmax(most, active);
    }
    return most;
}

static nw_rc tell_missing(struct nw_preflight_run *run, size_t host, int gpu, double active,
                          double should, const char *whose, const struct product *product)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const char *down = nw_topo_text(topo, gpu, NW_FACT_NVLINK_INACTIVE);
    const double answer = nw_topo_number(topo, gpu, NW_FACT_QUERY_TIME);
    const double rate = rate_of(topo, gpu, product);
    const bool bridged = may_be_bridged(product, should);
    char text[32], most[32], slow[64] = "";

    if (answer >= ANSWER_SLOW_S)
        snprintf(slow, sizeof slow, ", and the driver took %.0f s to answer", answer);
    NW_TRY(nw_tell(
        run, host, gpu, NW_FINDING_FAIL,
        slow[0] != '\0' && bridged ? "nvlink-bridge-seat" : "nvlink-down",
        !bridged ? "reset the GPU; if the links stay down the board is faulty: ask the vendor"
                 : "switch off and reseat the NVLink bridge: it must sit fully in both cards "
                   "(water blocks and back plates can keep it out)",
        "%.0f of %.0f NVLinks %s up%s%s%s%s (%s)", active, should, active == 1 ? "is" : "are",
        down != NULL ? ", down: " : "", down != NULL ? down : "", slow,
        active > 0 && bridged ? ": bridge half in contact" : "", whose));
    if (isnan(rate))
        return nw_tell_effect(run, NAN, "%.0f %% of its NVLink bandwidth is missing",
                              100 * (should - active) / should);
    return nw_tell_effect(run, (should - active) * rate, "NVLink %s of %s GB/s one way",
                          nw_format_gb_per_s(text, active * rate),
                          nw_format_gb_per_s(most, should * rate));
}

/* All links are down, or none is known to exist. */
static nw_rc judge_none(struct nw_preflight_run *run, size_t host, int gpu,
                        const struct product *product)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double full = product->gpu->nvlink_one_way_bytes_per_s;
    char nvlink[32], pcie[32];

    if (nw_topo_count(topo, NW_NODE_GPU) < 2)
        return NW_OK;
    if (product->sxm)
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "nvlink-none",
                       "start the fabric manager where the board has NVSwitches, reset the GPUs; "
                       "else ask the vendor",
                       "no NVLink is up on %s, whose board has %d", product->gpu->name,
                       product->links));
    else
        /* Cards of 200 GB/s and more are sold for training; the others often have no bridge. */
        NW_TRY(nw_tell(
            run, host, gpu, full >= 200e9 ? NW_FINDING_WARN : NW_FINDING_INFO, "nvlink-no-bridge",
            "if NVLink was quoted: bridges between pairs of cards, or an SXM machine",
            "%s without NVLink: GPUs reach each other over PCIe only", topo->nodes[gpu].model));
    return nw_tell_effect(run, full - product->gpu->pcie_one_way_bytes_per_s,
                          "between two GPUs at most %s GB/s over PCIe, where NVLink has %s one way",
                          nw_format_gb_per_s(pcie, product->gpu->pcie_one_way_bytes_per_s),
                          nw_format_gb_per_s(nvlink, full));
}

static nw_rc judge_count(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double active = nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT);
    const double inactive = nw_topo_number(topo, gpu, NW_FACT_NVLINK_INACTIVE_COUNT);
    const struct product product = product_of(topo, gpu);
    int known;
    const double most = most_links(topo, gpu, &known);

    if (isnan(active))
        return NW_OK;
    if (active < most)
        return tell_missing(run, host, gpu, active, most, "its siblings have more", &product);
    if (active == 0)
        return product.links > 0 ? judge_none(run, host, gpu, &product) : NW_OK;
    /* All alike. Boards differ in how many links they connect: only where one GPU is known, or all
     * are said to be down in part, does the product decide. */
    if (active < product.links && inactive > 0)
        return tell_missing(run, host, gpu, active, product.links, "the product has more",
                            &product);
    if (active == NW_CUT_DOWN_LINKS && product.links > NW_CUT_DOWN_LINKS) {
        char is[32], full[32];

        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "nvlink-cut-down",
                       "ask the vendor which product this is: A800 and H800 have 8 links",
                       "%s with %.0f NVLinks: the product has %d", product.gpu->name, active,
                       product.links));
        return nw_tell_effect(run, (product.links - active) * 25e9, "NVLink %s of %s GB/s one way",
                              nw_format_gb_per_s(is, active * 25e9),
                              nw_format_gb_per_s(full, product.links * 25e9));
    }
    return NW_OK;
}

/* A product that was cut down by intent, or a matrix that shows one. */
static nw_rc judge_cut_down(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const char *model = topo->nodes[gpu].model;
    const bool named = strstr(model, "A800") != NULL || strstr(model, "H800") != NULL;
    double links = nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT);
    const int peer = nw_next(topo, NW_NODE_GPU, gpu) >= 0 ? nw_next(topo, NW_NODE_GPU, gpu)
                                                          : nw_next(topo, NW_NODE_GPU, -1);
    int stated = 0;

    if (isnan(links) && peer != gpu && nw_topo_class(topo, gpu, peer, &stated) == NW_CLASS_NV)
        links = stated;
    if (links != NW_CUT_DOWN_LINKS || (model[0] != '\0' && !named))
        return NW_OK;
    NW_TRY(nw_tell(run, host, gpu, NW_FINDING_INFO, "nvlink-cut-down", NULL,
                   "8 NVLinks to each peer%s%s: the cut-down NVLink of A800 and H800",
                   named ? ", " : "", model));
    return nw_tell_effect(run, NAN,
                          "200 GB/s one way, 400 both ways summed: a quote of 600 (A100) or 900 "
                          "(H100) is not this machine");
}

static nw_rc judge_health(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double answer = nw_topo_number(topo, gpu, NW_FACT_QUERY_TIME);
    const double errors = nw_topo_number(topo, gpu, NW_FACT_NVLINK_ERRORS);
    const double inactive = nw_topo_number(topo, gpu, NW_FACT_NVLINK_INACTIVE_COUNT);

    if (answer >= ANSWER_SLOW_S && !(inactive > 0))
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "driver-slow",
                       "switch persistence mode on; read the kernel's log for Xid and PCIe errors",
                       "the driver took %.0f s to answer, milliseconds are usual", answer));
    if (errors > 0)
        NW_TRY(nw_tell(run, host, gpu, errors >= ERRORS_MANY ? NW_FINDING_WARN : NW_FINDING_INFO,
                       "nvlink-errors",
                       "nvidia-smi nvlink -e before and after a run: a number that rises is a bad "
                       "link",
                       "%.0f NVLink errors were counted (replays, recoveries, CRC)", errors));
    return NW_OK;
}

/* Without counts, what hwloc's matrix or nvidia-smi's tells: the bandwidth, or the links, of each
 * GPU with all others. */
static double sum_of_links(const struct nw_topo *topo, int gpu)
{
    double sum = 0;

    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == NW_LINK_NVLINK &&
            (topo->links[i].a == gpu || topo->links[i].b == gpu))
            sum += topo->links[i].bytes_per_s;
    for (int peer = -1; sum == 0 && (peer = nw_next(topo, NW_NODE_GPU, peer)) >= 0;) {
        int links = 0;

        if (peer == gpu)
            continue;
        if (nw_topo_class(topo, gpu, peer, &links) == NW_CLASS_NV)
            sum += links * 25e9;
    }
    return sum;
}

static nw_rc judge_sums(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    double best = 0;
    char own[32], most[32];

    if (nw_count_known(topo, NW_NODE_GPU, NW_FACT_NVLINK_COUNT) > 0 ||
        (topo->gaps & NW_TOPO_PARTIAL) != 0)
        return NW_OK;
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        best = fmax(best, sum_of_links(topo, i));
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        const double sum = sum_of_links(topo, i);

        if (sum >= 0.99 * best || !nw_topo_is_nvidia(&topo->nodes[i]))
            continue;
        NW_TRY(nw_tell(run, host, i, NW_FINDING_WARN, "nvlink-uneven",
                       "\"nvidia-smi nvlink -s\" shows inactive links",
                       "fewer NVLinks than its neighbours have"));
        NW_TRY(nw_tell_effect(run, best - sum, "%s GB/s one way to its peers together, others %s",
                              nw_format_gb_per_s(own, sum), nw_format_gb_per_s(most, best)));
    }
    return NW_OK;
}

nw_rc nw_preflight_nvlinks(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        NW_TRY(judge_count(run, host, i));
        NW_TRY(judge_cut_down(run, host, i));
        NW_TRY(judge_health(run, host, i));
    }
    return judge_sums(run, host);
}

/* --- fabric ------------------------------------------------------------------------------------
 */

static bool has_switches(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (nw_is_yes(topo, (int)i, NW_FACT_NVLINK_SWITCH) ||
            (topo->nodes[i].pci_vendor == NW_PCI_VENDOR_NVIDIA &&
             topo->nodes[i].pci_class == NW_PCI_CLASS_BRIDGE_OTHER))
            return true;
    return false;
}

static nw_rc judge_registration(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const char *state = nw_topo_text(topo, gpu, NW_FACT_FABRIC_STATE);
    const char *status = nw_topo_text(topo, gpu, NW_FACT_FABRIC_STATUS);

    if (state == NULL || strcasecmp(state, "completed") == 0) {
        if (state == NULL || status == NULL || strcasecmp(status, "success") == 0)
            return NW_OK;
        return nw_tell(run, host, gpu, NW_FINDING_FAIL, "nvlink-fabric",
                       "restart the fabric manager and read its log (/var/log/fabricmanager.log)",
                       "its NVLink fabric is not set up: %s", status);
    }
    return nw_tell(run, host, gpu, NW_FINDING_FAIL, "nvlink-fabric",
                   "restart the fabric manager and read its log (/var/log/fabricmanager.log)",
                   "its NVLink fabric is not set up: registration is \"%s\"", state);
}

nw_rc nw_preflight_fabric(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const char *manager = nw_topo_text(topo, 0, NW_FACT_FABRIC_MANAGER);
    double links = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        const double active = nw_topo_number(topo, i, NW_FACT_NVLINK_COUNT);

        links = isnan(active) ? links : fmax(links, active);
        NW_TRY(judge_registration(run, host, i));
    }
    if (nw_is_grace(topo) && run->input->host_count > 1 &&
        nw_text_is(topo, 0, NW_FACT_IMEX, "stopped")) {
        NW_TRY(nw_tell(run, host, 0, NW_FINDING_WARN, "imex-stopped",
                       "systemctl enable --now nvidia-imex on every host of the NVLink domain",
                       "IMEX is stopped: NVLink between hosts cannot be used"));
        /* 2 nodes of 4 GB200: 811 over NVLink, 85 over InfiniBand (lixueduan.com). */
        NW_TRY(nw_tell_effect(run, NAN, "all-reduce over the NICs instead: 85 of 811 GB/s"));
    }
    /* In a virtual machine the host's fabric manager does it; a domain of several Grace hosts is
     * set up from its switches. */
    if (manager == NULL || strcmp(manager, "running") == 0 || !has_switches(topo) ||
        nw_is_virtual(topo) || nw_is_grace(topo))
        return NW_OK;
    NW_TRY(nw_tell(run, host, 0, links > 0 ? NW_FINDING_WARN : NW_FINDING_FAIL,
                   "fabric-manager-off",
                   "systemctl enable --now nvidia-fabricmanager, of exactly the driver's version",
                   "the fabric manager is %s on a machine with NVSwitches", manager));
    return nw_tell_effect(run, NAN,
                          "without it CUDA does not start on these GPUs, or they reach each other "
                          "over PCIe only");
}
