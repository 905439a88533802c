#include "model/finding_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/ceiling.h"

struct rates { /* bus bandwidths, bytes/s; NAN: no such path */
    double intra, inter;
};

struct view {
    const struct nw_finding_cost_input *input;
    struct nw_model_request request; /* completed from the machines */
    char nodes[16];
    struct nw_topo *const *hosts;
    double nvlink, pcie, network; /* best of all hosts, as read, one way; NAN: unknown */
    bool rdma;
    struct nw_finding_costs costs;
};

/* Beginnings of codes. */
static const struct {
    const char *begin;
    enum { BY_NVLINK, BY_PCIE, BY_NETWORK } way;
} ways[] = {
    {"nvlink", BY_NVLINK}, {"pcie", BY_PCIE},    {"acs", BY_PCIE},
    {"iommu", BY_PCIE},    {"nic", BY_NETWORK},  {"port", BY_NETWORK},
    {"roce", BY_NETWORK},  {"rdma", BY_NETWORK}, {"gpudirect", BY_NETWORK},
};

/* Of these nw_ceiling_network knows already: what was read is what is left. */
static const char *const in_the_reading[] = {"nic-port-down", "nic-down", "nic-slow",
                                             "port-narrow"};

static int way_of(const struct nw_finding *finding)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strncmp(finding->code, ways[i].begin, strlen(ways[i].begin)) == 0)
            return (int)ways[i].way;
    return -1;
}

/* Of "node1 mlx5_0, mlx5_1, node2 mlx5_0": the most devices of one host (lost_bytes_per_s is of
 * one). */
static int most_devices(const char *where)
{
    int most = 1, here = 0;

    for (const char *at = where; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ",");
        const char *blank = memchr(at, ' ', length);

        here = blank != NULL ? 1 : here + 1; /* "node2 mlx5_0" begins a host */
        most = here > most ? here : most;
        at += length;
        at += strspn(at, ", ");
    }
    return most;
}

static double middle(struct nw_efficiency efficiency)
{
    return (efficiency.low + efficiency.high) / 2;
}

/* ---- what was read -----------------------------------------------------------------------------
 */

static void survey_gpus(struct view *view, const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++) {
        if (topo->nodes[i].kind != NW_NODE_GPU)
            continue;
        view->nvlink = fmax(view->nvlink, nw_ceiling_nvlink(topo, (int)i, NULL, NULL));
        view->pcie = fmax(view->pcie, nw_ceiling_pcie(topo, (int)i));
    }
}

static bool is_in_the_reading(const struct nw_finding *finding)
{
    for (size_t i = 0; i < sizeof in_the_reading / sizeof *in_the_reading; i++)
        if (strcmp(finding->code, in_the_reading[i]) == 0)
            return true;
    return false;
}

/* A host's network with what its findings say is missing of it. */
static double healthy_network(const struct nw_topo *topo, const struct nw_findings *findings)
{
    struct nw_ceiling_network network;
    double rate;

    nw_ceiling_network(topo, &network);
    rate = network.bytes_per_s;
    for (size_t i = 0; i < findings->count; i++) {
        const struct nw_finding *finding = &findings->items[i];

        if (is_in_the_reading(finding) && finding->lost_bytes_per_s > 0 &&
            strstr(finding->where, topo->host) != NULL)
            rate += finding->lost_bytes_per_s * most_devices(finding->where);
    }
    return rate;
}

static bool has_rdma(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC && topo->nodes[i].port_up != 0 &&
            (strcmp(topo->nodes[i].fabric, "infiniband") == 0 ||
             strcmp(topo->nodes[i].fabric, "roce") == 0))
            return true;
    return false;
}

static void survey(struct view *view, const struct nw_findings *findings)
{
    view->nvlink = view->pcie = view->network = NAN;
    for (size_t host = 0; host < view->input->host_count; host++) {
        const struct nw_topo *topo = view->hosts[host];

        if (topo == NULL)
            continue;
        survey_gpus(view, topo);
        view->network = fmax(view->network, healthy_network(topo, findings));
        view->rdma |= has_rdma(topo);
    }
}

/* What the job was not told of the machines. */
static void complete(struct view *view)
{
    for (size_t host = 0; host < view->input->host_count; host++) {
        const struct nw_topo *topo = view->hosts[host];
        const struct nw_topo_node *gpu = topo != NULL ? nw_topo_nth(topo, NW_NODE_GPU, 0) : NULL;
        const struct nw_gpu *known;

        if (gpu == NULL)
            continue;
        if (view->request.gpus_per_node == 0)
            view->request.gpus_per_node = nw_topo_count(topo, NW_NODE_GPU);
        if (view->request.gpu == NULL && nw_gpu_find(gpu->model, &known) == NW_OK)
            view->request.gpu = known->name;
    }
    nw_clear_error();
    if (view->request.nodes == NULL && view->request.ranks == 0) {
        const bool wire = view->network > 0 || view->input->request->inter_gb_per_s > 0;

        snprintf(view->nodes, sizeof view->nodes, "%zu", wire ? view->input->host_count : 1);
        view->request.nodes = view->nodes;
    }
}

/* ---- rates -------------------------------------------------------------------------------------
 */

static double intra_of(double link_bytes_per_s, bool nvlink)
{
    return link_bytes_per_s *
           middle(nvlink ? nw_nvlink_collective_efficiency() : nw_pcie_collective_efficiency());
}

static double inter_of(const struct view *view, double network_bytes_per_s)
{
    return network_bytes_per_s *
           middle(view->rdma ? nw_rdma_collective_efficiency() : nw_tcp_efficiency());
}

static struct rates healthy(const struct view *view)
{
    const struct nw_model_request *request = &view->input->request[0];
    struct rates rates = {.intra = intra_of(view->nvlink, true),
                          .inter = inter_of(view, view->network)};

    if (isnan(rates.intra))
        rates.intra = intra_of(view->pcie, false);
    if (request->intra_gb_per_s > 0)
        rates.intra = request->intra_gb_per_s * 1e9;
    if (request->inter_gb_per_s > 0)
        rates.inter = request->inter_gb_per_s * 1e9;
    return rates;
}

static double less(double whole, double lost, double full)
{
    return fmax(whole * (1 - lost / full), whole * 0.001); /* a path that is all gone: 0.1 % */
}

/* The rates with this finding and without it; false: it is on no path of the step. */
static bool both(const struct view *view, const struct nw_finding *finding, struct rates *good,
                 struct rates *bad)
{
    const bool over_pcie = isnan(view->nvlink);
    const int gpus = view->request.gpus_per_node;
    double lost = finding->lost_bytes_per_s;

    *good = *bad = healthy(view);
    switch (way_of(finding)) {
    case BY_NVLINK:
        if (over_pcie) { /* there is none, where there should be */
            good->intra = intra_of(view->pcie + lost, true);
            return isfinite(good->intra);
        }
        bad->intra = less(good->intra, lost, view->nvlink);
        return isfinite(bad->intra);
    case BY_PCIE:
        if (over_pcie) {
            bad->intra = less(good->intra, lost, view->pcie);
            return isfinite(bad->intra);
        }
        /* The GPU's share of the node's network goes over its own PCIe link. */
        bad->inter = fmin(good->inter, inter_of(view, (view->pcie - lost) * gpus));
        return view->costs.node_count > 1 && isfinite(bad->inter) && bad->inter < good->inter;
    case BY_NETWORK:
        lost *= most_devices(finding->where);
        bad->inter = less(good->inter, lost, view->network);
        return view->costs.node_count > 1 && isfinite(bad->inter);
    default:
        return false;
    }
}

/* ---- steps -------------------------------------------------------------------------------------
 */

static nw_rc open_model(const struct view *view, const struct rates *rates, struct nw_model *model)
{
    struct nw_model_request request = view->request;

    if (rates->intra > 0)
        request.intra_gb_per_s = rates->intra / 1e9;
    if (rates->inter > 0)
        request.inter_gb_per_s = rates->inter / 1e9;
    return nw_model_open(&request, NULL, model);
}

static nw_rc choose_step(struct view *view)
{
    const struct rates rates = healthy(view);
    const struct nw_step *best = NULL;
    struct nw_steps steps = {.count = 0};
    struct nw_model model;
    nw_rc rc;

    NW_TRY(open_model(view, &rates, &model));
    rc = nw_predict_all(&model, &steps);
    if (rc == NW_OK)
        best = nw_steps_fastest(&steps);
    if (best != NULL) {
        view->costs.known = true;
        view->costs.strategy = best->strategy;
        view->costs.node_count = best->node_count;
        view->costs.step_ns = best->step_ns;
    }
    nw_steps_free(&steps);
    nw_model_close(&model);
    return rc;
}

static nw_rc step_at(const struct view *view, const struct rates *rates, double *ns_out)
{
    struct nw_model model;
    struct nw_platform platform;
    struct nw_layout layout;
    struct nw_job job;
    struct nw_step step;
    nw_rc rc;

    NW_TRY(open_model(view, rates, &model));
    platform = nw_model_platform(&model);
    layout = nw_model_layout(&model, view->costs.node_count, view->costs.strategy);
    job = nw_model_job(&model, &layout);
    rc = nw_predict(&job, &platform, &layout, &model.scenario, &step);
    nw_model_close(&model);
    if (rc == NW_OK)
        *ns_out = step.step_ns;
    return rc;
}

static nw_rc cost_one(const struct view *view, struct nw_finding *finding)
{
    struct rates good, bad;
    double good_ns, bad_ns;

    if (!(finding->lost_bytes_per_s > 0) || !both(view, finding, &good, &bad))
        return NW_OK;
    NW_TRY(step_at(view, &good, &good_ns));
    NW_TRY(step_at(view, &bad, &bad_ns));
    finding->step_ns = bad_ns - good_ns;
    return NW_OK;
}

static void describe_rate(char *text, size_t size, const char *what, double ceiling, const char *of,
                          double busbw)
{
    char a[32], b[32];
    const size_t used = strlen(text);

    if (isfinite(busbw))
        snprintf(text + used, size - used, "; %s %s GB/s%s%s%s", what, nw_format_gb_per_s(a, busbw),
                 isfinite(ceiling) ? " of " : "",
                 isfinite(ceiling) ? nw_format_gb_per_s(b, ceiling) : "", of);
}

static void describe(struct view *view)
{
    struct nw_finding_costs *costs = &view->costs;
    const struct rates rates = healthy(view);
    const bool intra_given = view->input->request->intra_gb_per_s > 0,
               inter_given = view->input->request->inter_gb_per_s > 0;
    char ns[32];

    costs->gpus_per_node = view->request.gpus_per_node;
    costs->intra_bytes_per_s = rates.intra;
    costs->inter_bytes_per_s = costs->node_count > 1 ? rates.inter : NAN;
    costs->intra_is_nvlink = isfinite(view->nvlink);
    if (!costs->known) {
        snprintf(costs->text, sizeof costs->text,
                 "of %s no step can be predicted for these hosts: %.700s", view->request.model,
                 nw_last_error()->rc != NW_OK ? nw_last_error()->text
                                              : "no strategy fits into the GPUs' memory");
        return;
    }
    snprintf(costs->text, sizeof costs->text,
             "%s with %s on %d node%s × %d GPUs takes %s where all is healthy (a prediction, not "
             "measured). Assumed bus bandwidth: what was read times what healthy machines reach",
             view->request.model, costs->strategy->name, costs->node_count,
             costs->node_count == 1 ? "" : "s", costs->gpus_per_node,
             nw_format_ns(ns, costs->step_ns));
    describe_rate(costs->text, sizeof costs->text, "inside a node",
                  intra_given              ? NAN
                  : costs->intra_is_nvlink ? view->nvlink
                                           : view->pcie,
                  intra_given              ? " (given)"
                  : costs->intra_is_nvlink ? " over NVLink"
                                           : " over PCIe",
                  costs->intra_bytes_per_s);
    describe_rate(costs->text, sizeof costs->text, "between nodes",
                  inter_given ? NAN : view->network,
                  inter_given  ? " (given)"
                  : view->rdma ? " by RDMA"
                               : " by TCP",
                  costs->inter_bytes_per_s);
    snprintf(
        costs->text + strlen(costs->text), sizeof costs->text - strlen(costs->text),
        "%s. A finding's cost is the same prediction with its loss taken off that path; findings "
        "are not added up",
        costs->node_count == 1 && view->input->host_count > 1
            ? "; what the network between the nodes carries is not known (--inter-node GB/s)"
            : "");
}

nw_rc nw_finding_costs(const struct nw_finding_cost_input *input, struct nw_findings *findings,
                       struct nw_finding_costs *costs_out)
{
    struct view view = {.input = input,
                        .request = *input->request,
                        .hosts = input->hosts,
                        .costs = {.step_ns = NAN}};
    nw_rc rc;

    survey(&view, findings);
    complete(&view);
    nw_clear_error();
    rc = choose_step(&view);
    if (rc == NW_ENOMEM)
        return rc;
    describe(&view);
    for (size_t i = 0; view.costs.known && i < findings->count; i++)
        if (cost_one(&view, &findings->items[i]) == NW_ENOMEM)
            return NW_ENOMEM;
    nw_clear_error();
    *costs_out = view.costs;
    return NW_OK;
}
