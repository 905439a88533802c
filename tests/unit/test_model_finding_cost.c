#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

#include "model/finding_cost.h"
#include "topo/ceiling.h"
#include "topo/preflight.h"

#define MACHINE NW_SOURCE_DIR "/tests/machines/hgx-8gpu-hwloc2.xml"

static struct nw_model_request request_of(const char *model)
{
    struct nw_model_request request = {.model = NULL};

    cr_assert_eq(nw_options_reset(nw_model_options, nw_model_option_count, &request), NW_OK);
    request.model = model;
    request.strategy = "fsdp";
    request.global_batch = 512;
    return request;
}

static struct nw_topo *node(const char *name)
{
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_read_file(MACHINE, &topo), NW_OK);
    strcpy(topo->host, name);
    return topo;
}

/* Sets the state of the NICs from the first-th on. */
static void set_nics(struct nw_topo *topo, int first, int up, double bits_per_s)
{
    for (int i = first; i < nw_topo_count(topo, NW_NODE_NIC); i++) {
        struct nw_topo_node *nic =
            (struct nw_topo_node *)(uintptr_t)nw_topo_nth(topo, NW_NODE_NIC, i);

        nic->port_up = up;
        nic->rate_bits_per_s = up ? bits_per_s : 0;
    }
}

static double step_at(const struct nw_model_request *request, double intra, double inter)
{
    struct nw_model_request given = *request;
    struct nw_model model;
    struct nw_steps steps;
    double ns = NAN;

    given.gpu = "H100 SXM";
    given.gpus_per_node = 8;
    given.nodes = "2";
    given.intra_gb_per_s = intra / 1e9;
    given.inter_gb_per_s = inter / 1e9;
    cr_assert_eq(nw_model_open(&given, NULL, &model), NW_OK);
    cr_assert_eq(nw_predict_all(&model, &steps), NW_OK);
    cr_assert_eq(steps.count, 1);
    ns = steps.items[0].step_ns;
    nw_steps_free(&steps);
    nw_model_close(&model);
    return ns;
}

Test(finding_cost, half_the_nics_cost_the_difference_of_two_predictions)
{
    struct nw_topo *hosts[] = {node("node1"), node("node2")};
    const struct nw_model_request request = request_of("llama-2-7b");
    const struct nw_finding_cost_input input = {
        .request = &request, .hosts = hosts, .host_count = 2};
    struct nw_findings findings = {0};
    struct nw_finding_costs costs;
    const struct nw_finding *down = NULL;
    const double network = 8 * 50e9; /* 8 × 400 Gb/s */

    set_nics(hosts[0], 0, 1, 400e9);
    set_nics(hosts[1], 0, 1, 400e9);
    set_nics(hosts[1], 5, 0, 0); /* a minority is down, so that it is told */
    cr_assert_eq(nw_preflight_judge(&(struct nw_preflight_input){.hosts = hosts, .host_count = 2},
                                    &findings),
                 NW_OK);
    cr_assert_eq(nw_finding_costs(&input, &findings, &costs), NW_OK);
    cr_assert(costs.known, "%s", costs.text);
    for (size_t i = 0; i < findings.count; i++)
        if (strcmp(findings.items[i].code, "nic-port-down") == 0)
            down = &findings.items[i];
    cr_assert_not_null(down);
    cr_expect_eq(down->lost_bytes_per_s, 50e9);

    const double share = costs.inter_bytes_per_s / network;
    const double good = step_at(&request, costs.intra_bytes_per_s, network * share),
                 bad = step_at(&request, costs.intra_bytes_per_s, 5 * 50e9 * share);

    cr_expect(share > 0.5 && share < 1, "%g", share);
    cr_expect_float_eq(costs.step_ns, good, good * 1e-9);
    cr_expect(down->step_ns > 0);
    cr_expect_float_eq(down->step_ns, bad - good, (bad - good) * 1e-6);
    nw_findings_free(&findings);
    nw_topo_free(hosts[0]);
    nw_topo_free(hosts[1]);
}

Test(finding_cost, what_is_on_no_path_of_the_step_costs_nothing_that_can_be_said)
{
    struct nw_topo *hosts[] = {node("node1")};
    const struct nw_model_request request = request_of("llama-2-7b");
    const struct nw_finding_cost_input input = {
        .request = &request, .hosts = hosts, .host_count = 1};
    struct nw_findings findings = {0};
    struct nw_finding_costs costs;
    static const struct {
        const char *code;
        double lost;
        bool costs;
    } rows[] = {
        {"nvlink-down", 25e9, true},  {"nvlink-down", NAN, false},    {"storage-slow", 1e9, false},
        {"pcie-narrow", 31e9, false}, {"nic-port-down", 50e9, false}, /* one node */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(nw_findings_add(&findings, NW_FINDING_WARN, rows[i].code, "node1 x", NULL,
                                     "row %zu", i),
                     NW_OK);
        cr_assert_eq(nw_findings_effect(&findings, rows[i].lost, "less"), NW_OK);
    }
    cr_assert_eq(nw_finding_costs(&input, &findings, &costs), NW_OK);
    cr_assert(costs.known, "%s", costs.text);
    cr_expect(costs.intra_is_nvlink);
    for (size_t i = 0; i < findings.count; i++)
        cr_expect(isnan(findings.items[i].step_ns) != rows[i].costs, "row %zu: %g", i,
                  findings.items[i].step_ns);
    cr_expect(findings.items[0].step_ns > 0);
    nw_findings_free(&findings);
    nw_topo_free(hosts[0]);
}

Test(finding_cost, a_machine_without_a_known_gpu_has_no_step)
{
    struct nw_topo *hosts[] = {node("node1")};
    const struct nw_model_request request = request_of("llama-2-7b");
    struct nw_findings findings = {0};
    struct nw_finding_costs costs;

    for (size_t i = 0; i < hosts[0]->node_count; i++)
        if (hosts[0]->nodes[i].kind == NW_NODE_GPU)
            strcpy(hosts[0]->nodes[i].model, "Unheard of 9000");
    cr_assert_eq(
        nw_finding_costs(
            &(struct nw_finding_cost_input){.request = &request, .hosts = hosts, .host_count = 1},
            &findings, &costs),
        NW_OK);
    cr_expect_not(costs.known);
    cr_expect(isnan(costs.step_ns));
    cr_expect_not_null(strstr(costs.text, "no step can be predicted"), "%s", costs.text);
    nw_topo_free(hosts[0]);
}
