#include <criterion/criterion.h>

#include "model/scaling_cost.h"
#include "model_support.h"

#define RATE(gb) ((gb)*1e9)

/* Curves of two nodes of eight and of one; of both also the case scaling, at 1 GiB. */
static struct nw_record *make(struct nw_results *results, const char *lane, double one, double two)
{
    struct nw_run *run = results->run_count > 0 ? &results->runs[0] : nw_results_add_run(results);
    const size_t first = run->record_count;
    struct nw_record *last;

    snprintf(run->context.backend, sizeof run->context.backend, "nccl");
    add_group(run, 8, 1, 20e3, one);
    add_group(run, 16, 2, 40e3, two);
    for (size_t i = first; i < run->record_count; i++) {
        struct nw_record *record = &run->records[i];

        snprintf(record->lane, sizeof record->lane, "%s", lane);
        snprintf(record->case_name, sizeof record->case_name, "scaling");
        record->algbw_bytes_per_s = (double)record->bytes / record->time_ns.median * 1e9;
        record->busbw_bytes_per_s =
            record->algbw_bytes_per_s *
            nw_coll_find(record->collective)->bus_factor(record->rank_count);
    }
    last = &run->records[run->record_count - 1];
    return last;
}

static void set_ports(struct nw_results *results, int ports, int used, double share, double wire,
                      double nics)
{
    struct nw_run *run = &results->runs[0];

    for (size_t i = 0; i < run->record_count; i++) {
        struct nw_record *record = &run->records[i];

        if (record->host_count < 2)
            continue;
        record->port_count = ports;
        record->used_port_count = used;
        record->port_share = share;
        record->wire_bytes_per_s = wire;
        record->nic_bytes_per_s = nics;
    }
}

static void add_nic(struct nw_results *results, const char *memory, double rate)
{
    struct nw_record *record = nw_run_new_record(&results->runs[0]);

    snprintf(record->case_name, sizeof record->case_name, "nic");
    snprintf(record->collective, sizeof record->collective, "write");
    snprintf(record->memory, sizeof record->memory, "%s", memory);
    record->algbw_bytes_per_s = rate;
}

static void cost_of(const struct nw_results *results, const char *nodes,
                    struct nw_scaling_cost *cost_out)
{
    struct nw_model_request request = request_for("llama-2-7b");
    struct nw_model model;
    struct nw_steps steps;

    request.gpu = "h100-sxm";
    request.nodes = nodes;
    request.strategy = "ddp";
    request.micro_batch = 1;
    cr_assert_eq(nw_model_open(&request, results, &model), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_predict_all(&model, &steps), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(steps.count, 1);
    cr_assert_eq(nw_scaling_cost_of(&model, results, &steps.items[0], cost_out), NW_OK, "%s",
                 nw_last_error()->text);
    if (cost_out->known)
        cr_expect_float_eq(cost_out->step.step_ns, steps.items[0].step_ns, 1);
    nw_steps_free(&steps);
    nw_model_close(&model);
}

static const struct nw_scaling_lever *lever_of(const struct nw_scaling_cost *cost, const char *key)
{
    for (size_t i = 0; i < cost->lever_count; i++)
        if (strcmp(cost->levers[i].key, key) == 0)
            return &cost->levers[i];
    return NULL;
}

Test(model_scaling_cost, a_slow_wire_costs_what_the_step_would_win_at_full_efficiency)
{
    struct nw_results results = {0};
    struct nw_scaling_cost cost;

    make(&results, "auto", RATE(200), RATE(20));
    cost_of(&results, "2", &cost);
    cr_assert(cost.known);
    cr_expect_str_eq(cost.collective, "all_reduce");
    cr_expect_eq(cost.node_count, 2);
    cr_expect_float_eq(cost.efficiency, 0.1, 0.03, "%g", cost.efficiency);
    /* ten times the rate: nine tenths of what stands out, and of what it costs the products */
    cr_expect_gt(cost.step.step_ns - cost.full_step_ns, 0.85 * cost.step.exposed_ns);
    cr_expect_lt(cost.step.step_ns - cost.full_step_ns, 1.3 * cost.step.exposed_ns);
    cr_expect_not_null(lever_of(&cost, "nics"));
    cr_expect_eq(cost.lever_count, 1);
    nw_results_free(&results);
}

Test(model_scaling_cost, a_wire_as_fast_as_the_node_costs_nothing)
{
    struct nw_results results = {0};
    struct nw_scaling_cost cost;

    make(&results, "auto", RATE(200), RATE(210));
    cost_of(&results, "2", &cost);
    cr_assert(cost.known);
    cr_expect_gt(cost.efficiency, 0.99);
    cr_expect_eq(cost.full_step_ns, cost.step.step_ns);
    nw_results_free(&results);
}

Test(model_scaling_cost, each_thing_that_is_wrong_has_its_lever_and_the_largest_stands_first)
{
    struct nw_results results = {0};
    struct nw_scaling_cost cost;

    make(&results, "auto", RATE(200), RATE(20));
    set_ports(&results, 8, 4, 0.5, RATE(20), RATE(400));
    add_nic(&results, "host", RATE(48));
    add_nic(&results, "gpu", RATE(30));
    add_nic(&results, "gpu", RATE(20));
    cost_of(&results, "2", &cost);
    cr_assert(cost.known);
    cr_expect_str_eq(cost.levers[0].key, "line_rate"); /* a fifteenth of what it should be */
    cr_expect_not_null(lever_of(&cost, "ports"));      /* twice as many */
    cr_expect_not_null(lever_of(&cost, "balance"));    /* one of four carries half: twice */
    cr_expect_not_null(lever_of(&cost, "gpudirect"));  /* 1.6 */
    cr_expect_float_eq(lever_of(&cost, "ports")->step_ns, lever_of(&cost, "nics")->step_ns, 1);
    cr_expect_float_eq(lever_of(&cost, "ports")->step_ns, lever_of(&cost, "balance")->step_ns, 1);
    cr_expect_gt(lever_of(&cost, "gpudirect")->step_ns, lever_of(&cost, "nics")->step_ns);
    for (size_t i = 1; i < cost.lever_count; i++)
        cr_expect_leq(cost.levers[i - 1].step_ns, cost.levers[i].step_ns);
    nw_results_free(&results);
}

/* A rank goes by a port of its own: eight of a node's ranks cannot use more than eight. */
Test(model_scaling_cost, ports_that_the_ranks_cannot_use_are_not_promised)
{
    static const struct {
        int ports, used;
        const char *what; /* NULL: no lever */
    } rows[] = {
        {8, 4, "all 8 ports of a node carry the bytes, not 4"},
        {16, 4, "as many as 8 ports of a node carry the bytes, not 4: one for each rank"},
        {16, 8, NULL},
        {16, 12, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_results results = {0};
        struct nw_scaling_cost cost;
        const struct nw_scaling_lever *lever;

        make(&results, "auto", RATE(200), RATE(20));
        set_ports(&results, rows[i].ports, rows[i].used, 1.0 / rows[i].used, RATE(20), RATE(400));
        cost_of(&results, "2", &cost);
        cr_assert(cost.known);
        lever = lever_of(&cost, "ports");
        cr_expect_eq(lever == NULL, rows[i].what == NULL, "%d of %d", rows[i].used, rows[i].ports);
        if (lever != NULL && rows[i].what != NULL) {
            cr_expect_str_eq(lever->what, rows[i].what);
            /* twice as many ports, as twice the NICs */
            cr_expect_float_eq(lever->step_ns, lever_of(&cost, "nics")->step_ns, 1);
        }
        nw_results_free(&results);
    }
}

Test(model_scaling_cost, another_algorithm_is_a_lever_where_it_is_faster)
{
    struct nw_results results = {0};
    struct nw_scaling_cost cost;

    make(&results, "auto", RATE(200), RATE(20));
    make(&results, "ring", RATE(150), RATE(18));
    make(&results, "tree", RATE(190), RATE(35));
    cost_of(&results, "2", &cost);
    cr_assert(cost.known);
    const struct nw_scaling_lever *lever = lever_of(&cost, "algorithm");

    cr_assert_not_null(lever);
    cr_expect_str_eq(lever->what, "NCCL_ALGO=Tree instead of the library's choice");
    cr_expect_lt(lever->step_ns, cost.step.step_ns);
    nw_results_free(&results);

    make(&results, "auto", RATE(200), RATE(35));
    make(&results, "ring", RATE(150), RATE(18));
    cost_of(&results, "2", &cost);
    cr_assert(cost.known);
    cr_expect_null(lever_of(&cost, "algorithm"));
    nw_results_free(&results);
}

Test(model_scaling_cost, one_node_or_no_case_scaling_says_nothing)
{
    struct nw_results results = {0};
    struct nw_scaling_cost cost;
    json_t *json;

    make(&results, "auto", RATE(200), RATE(20));
    cost_of(&results, "1", &cost);
    cr_expect_not(cost.known);
    cr_assert_eq(nw_scaling_cost_to_json(&cost, &json), NW_OK);
    cr_expect(json_is_null(json));
    for (size_t i = 0; i < results.runs[0].record_count; i++) /* all_reduce in all_gather's place */
        if (strcmp(results.runs[0].records[i].collective, "all_reduce") == 0)
            strcpy(results.runs[0].records[i].case_name, "coll");
    cost_of(&results, "2", &cost);
    cr_expect(cost.known);
    cr_expect_str_eq(cost.collective, "all_gather");
    for (size_t i = 0; i < results.runs[0].record_count; i++)
        strcpy(results.runs[0].records[i].case_name, "coll");
    cost_of(&results, "2", &cost);
    cr_expect_not(cost.known);
    nw_results_free(&results);
}
