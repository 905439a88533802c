#include "model/scaling_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "collectives/lane.h"
#include "model/fabric.h"
#include "model/json_parts.h"
#include "topo/link.h"

#define SMALLEST_CHANGE 0.005
#define SMALLEST_FACTOR 1.05 /* less is within what two measurements differ by */

struct question {
    const struct nw_model *model;
    const struct nw_results *results;
    struct nw_job job;
    struct nw_layout layout;
    struct nw_platform platform;
    const struct nw_record *several; /* case scaling over several nodes */
    const struct nw_record *one;     /* the same over one */
    bool gpu;                        /* measured by NCCL */
    struct nw_scaling_cost cost;
};

/* ---- what was measured ------------------------------------------------------------------------
 */

static double distance(const struct nw_record *record, double bytes)
{
    return fabs(log((double)record->bytes / bytes));
}

static bool is_scaling(const struct nw_record *record, const char *collective)
{
    return strcmp(record->case_name, "scaling") == 0 && record->rc == NW_OK &&
           strcmp(record->collective, collective) == 0 && record->busbw_bytes_per_s > 0;
}

/* As many nodes as the step has, else the most; then the closest size; of the lane that the model
 * takes. */
static bool is_better(const struct question *question, const struct nw_record *record,
                      const struct nw_record *best)
{
    const int nodes = question->layout.node_count;
    const double bytes = question->cost.step.traffic.message_bytes;

    if (best == NULL)
        return true;
    if (record->host_count != best->host_count)
        return record->host_count == nodes ||
               (best->host_count != nodes && record->host_count > best->host_count);
    return distance(record, bytes) < distance(best, bytes);
}

static const struct nw_record *find_several(const struct question *question,
                                            const struct nw_run *run, const char *collective)
{
    const char *lane = nw_curves_lane(&question->model->curves);
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (is_scaling(record, collective) && record->host_count > 1 &&
            (lane == NULL || strcmp(record->lane, lane) == 0) && is_better(question, record, best))
            best = record;
    }
    return best;
}

static const struct nw_record *find_one(const struct nw_run *run, const struct nw_record *several)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (is_scaling(record, several->collective) && record->host_count == 1 &&
            strcmp(record->lane, several->lane) == 0 &&
            strcmp(record->features, several->features) == 0 &&
            strcmp(record->dtype, several->dtype) == 0 && strcmp(record->op, several->op) == 0 &&
            record->root == several->root && record->in_place == several->in_place &&
            (best == NULL ||
             distance(record, (double)several->bytes) < distance(best, (double)several->bytes)))
            best = record;
    }
    return best;
}

static bool find_records_of(struct question *question, const char *collective)
{
    for (size_t i = 0; question->results != NULL && i < question->results->run_count; i++) {
        const struct nw_run *run = &question->results->runs[i];

        question->several = find_several(question, run, collective);
        question->one = question->several != NULL ? find_one(run, question->several) : NULL;
        question->gpu = strcmp(run->context.backend, "nccl") == 0;
        if (question->one != NULL)
            return true;
    }
    return false;
}

/* Of the collective that carries most bytes, else of one that is measured nearly everywhere. False:
 * there is nothing to say. */
static bool find_records(struct question *question)
{
    const char *const names[] = {question->cost.step.traffic.collective, "all_reduce",
                                 "all_gather"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (find_records_of(question, names[i])) {
            question->cost.collective = names[i];
            return true;
        }
    return false;
}

/* ---- one thing changed ------------------------------------------------------------------------
 */

/* NAN: cannot be predicted. */
static double step_with(const struct question *question, const struct nw_platform *platform,
                        double inter_scale, unsigned *how_out)
{
    struct nw_scenario scenario = question->model->scenario;
    struct nw_step step;

    scenario.inter_scale *= inter_scale;
    if (nw_predict(&question->job, platform, &question->layout, &scenario, &step) != NW_OK) {
        nw_clear_error();
        return NAN;
    }
    if (how_out != NULL)
        *how_out = step.how;
    return step.step_ns;
}

static void add_lever(struct question *question, const char *key, double step_ns, const char *what)
{
    struct nw_scaling_cost *cost = &question->cost;
    struct nw_scaling_lever lever = {
        .key = key, .step_ns = step_ns, .change = step_ns / cost->step.step_ns - 1};

    if (!(lever.change < -SMALLEST_CHANGE) || cost->lever_count == NW_SCALING_LEVERS_MAX)
        return;
    snprintf(lever.what, sizeof lever.what, "%s", what);
    cost->levers[cost->lever_count++] = lever;
}

static void add_faster(struct question *question, const char *key, double factor, const char *what)
{
    if (factor > SMALLEST_FACTOR)
        add_lever(question, key, step_with(question, &question->platform, factor, NULL), what);
}

static void try_ports(struct question *question)
{
    const struct nw_record *record = question->several;
    const int ranks = record->rank_count / record->host_count; /* each goes by a port of its own */
    const bool all = record->port_count <= ranks;
    const int ports = all ? record->port_count : ranks;
    char what[160];

    if (record->used_port_count > 0) {
        snprintf(what, sizeof what, "%s %d ports of a node carry the bytes, not %d%s",
                 all ? "all" : "as many as", ports, record->used_port_count,
                 all ? "" : ": one for each rank");
        add_faster(question, "ports", (double)ports / (double)record->used_port_count, what);
    }
    if (record->used_port_count > 1) {
        snprintf(what, sizeof what,
                 "each of the %d ports carries its part (one has %.0f %%): a NIC beside each GPU",
                 record->used_port_count, 100 * record->port_share);
        add_faster(question, "balance", record->port_share * record->used_port_count, what);
    }
}

static void try_line_rate(struct question *question)
{
    const struct nw_record *record = question->several;
    const struct nw_efficiency healthy =
        question->gpu ? nw_rdma_collective_efficiency() : nw_tcp_efficiency();
    const double share = record->wire_bytes_per_s / record->nic_bytes_per_s;
    char what[160];

    snprintf(what, sizeof what,
             "the NICs at the %.0f %% of their line rate that healthy ones reach, not at %.0f %%",
             100 * healthy.low, 100 * share);
    add_faster(question, "line_rate", healthy.low / share, what);
}

/* The best rate of one NIC, from or to that memory; NAN: not measured. */
static double nic_rate(const struct nw_results *results, const char *memory)
{
    double best = NAN;

    for (size_t i = 0; i < results->run_count; i++)
        for (size_t j = 0; j < results->runs[i].record_count; j++) {
            const struct nw_record *record = &results->runs[i].records[j];

            if (strcmp(record->case_name, "nic") == 0 && strcmp(record->memory, memory) == 0 &&
                record->rc == NW_OK && record->algbw_bytes_per_s > 0)
                best = fmax(best, record->algbw_bytes_per_s); /* fmax takes what is a number */
        }
    return best;
}

static void try_gpudirect(struct question *question)
{
    const double host = nic_rate(question->results, "host"),
                 gpu = nic_rate(question->results, "gpu");
    char what[160];

    snprintf(what, sizeof what,
             "a NIC moves GPU memory as fast as host memory (GPUDirect RDMA), not at %.0f %%",
             100 * gpu / host);
    add_faster(question, "gpudirect", host / gpu, what);
}

/* Lanes that are another algorithm of the same library over the same wires. */
static void try_algorithms(struct question *question)
{
    static const char *const lanes[] = {"ring", "tree", "nvls"};
    const struct nw_lane *best = NULL;
    double best_ns = INFINITY;
    char what[160];

    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        struct nw_platform platform = question->platform;
        unsigned how = 0;
        double step_ns;

        if (!nw_curves_have_lane(&question->model->curves, lanes[i]))
            continue;
        platform.fabric.lane = lanes[i];
        step_ns = step_with(question, &platform, 1, &how);
        /* Not by another collective or number of nodes than the library's own choice was. */
        if (!(step_ns < best_ns) || (how & ~question->cost.step.how) != 0)
            continue;
        best_ns = step_ns;
        best = nw_lane_find(lanes[i]);
    }
    if (best == NULL)
        return;
    snprintf(what, sizeof what, "%s=%s instead of the library's choice", best->settings[0].name,
             best->settings[0].value);
    add_lever(question, "algorithm", best_ns, what);
}

static int by_change(const void *left, const void *right)
{
    const struct nw_scaling_lever *a = left, *b = right;

    return (a->change > b->change) - (a->change < b->change);
}

nw_rc nw_scaling_cost_of(const struct nw_model *model, const struct nw_results *results,
                         const struct nw_step *like, struct nw_scaling_cost *cost_out)
{
    struct question question = {.model = model,
                                .results = results,
                                .layout = nw_model_layout(model, like->node_count, like->strategy),
                                .platform = nw_model_platform(model)};
    struct nw_scaling_cost *cost = &question.cost;

    *cost_out = (struct nw_scaling_cost){.known = false};
    if (like->node_count < 2 || like->rank_count < 2)
        return NW_OK;
    question.job = nw_model_job(model, &question.layout);
    NW_TRY(nw_predict(&question.job, &question.platform, &question.layout, &model->scenario,
                      &cost->step));
    if (cost->step.traffic.collective == NULL || !(cost->step.traffic.message_bytes > 0) ||
        nw_group_hosts(cost->step.traffic.group) < 2 || !find_records(&question))
        return NW_OK;
    cost->known = true;
    cost->bytes = question.several->bytes;
    cost->node_count = question.several->host_count;
    cost->efficiency = question.several->busbw_bytes_per_s / question.one->busbw_bytes_per_s;
    cost->full_step_ns = cost->step.step_ns;
    if (cost->efficiency < 1)
        cost->full_step_ns = fmin(cost->step.step_ns, step_with(&question, &question.platform,
                                                                1 / cost->efficiency, NULL));
    try_ports(&question);
    try_line_rate(&question);
    try_gpudirect(&question);
    try_algorithms(&question);
    add_faster(&question, "nics", 2, "twice the NICs");
    qsort(cost->levers, cost->lever_count, sizeof *cost->levers, by_change);
    *cost_out = *cost;
    return NW_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

static nw_rc fill_levers(const struct nw_scaling_cost *cost, json_t *object)
{
    json_t *list = json_array();

    NW_TRY(nw_json_set_new(object, "levers", list));
    for (size_t i = 0; i < cost->lever_count; i++) {
        const struct nw_scaling_lever *lever = &cost->levers[i];
        json_t *item = NULL;

        NW_TRY(nw_json_append_object(list, &item));
        NW_TRY(nw_json_set_text(item, "key", lever->key));
        NW_TRY(nw_json_set_text(item, "what", lever->what));
        NW_TRY(NW_SET_REALS(item, {"step_ns", lever->step_ns}, {"change", lever->change}));
    }
    return NW_OK;
}

static nw_rc fill(const struct nw_scaling_cost *cost, json_t *object)
{
    NW_TRY(nw_json_set_text(object, "strategy", cost->step.strategy->name));
    NW_TRY(nw_json_set_int(object, "nodes", cost->step.node_count));
    NW_TRY(nw_json_set_text(object, "collective", cost->collective));
    NW_TRY(nw_json_set_int(object, "bytes", (int64_t)cost->bytes));
    NW_TRY(nw_json_set_int(object, "measured_nodes", cost->node_count));
    NW_TRY(NW_SET_REALS(object, {"efficiency", cost->efficiency}, {"step_ns", cost->step.step_ns},
                        {"full_step_ns", cost->full_step_ns}));
    return fill_levers(cost, object);
}

nw_rc nw_scaling_cost_to_json(const struct nw_scaling_cost *cost, json_t **json_out)
{
    json_t *object;
    nw_rc rc;

    if (!cost->known) {
        *json_out = json_null();
        return NW_OK;
    }
    object = json_object();
    if (object == NULL)
        return nw_fail(NW_ENOMEM, "no memory for what scaling costs");
    rc = fill(cost, object);
    if (rc != NW_OK) {
        json_decref(object);
        return rc;
    }
    *json_out = object;
    return NW_OK;
}
