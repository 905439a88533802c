#include "model/claim_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/break_even.h"
#include "model/json_parts.h"

struct trial { /* the model with one rate as quoted */
    struct nw_model model;
    struct nw_curve_point **points; /* owned: curves inside a node, scaled */
    size_t point_lists;
    double factor;        /* healthy over measured, above 1 */
    struct nw_step *step; /* as measured */
};

/* ---- one rate as quoted -------------------------------------------------------------------- */

/* Only that share of the computation gets faster. */
static void speed_up(struct trial *trial, double part_ns)
{
    const double share = fmin(part_ns / trial->step->compute_ns, 1);

    if (share > 0)
        trial->model.scenario.compute_scale *= 1 - share * (1 - 1 / trial->factor);
}

static nw_rc quote_compute(struct trial *trial)
{
    speed_up(trial, trial->step->product_ns + trial->step->attention_ns);
    return NW_OK;
}

static nw_rc quote_memory(struct trial *trial)
{
    speed_up(trial, trial->step->memory_ns);
    trial->model.platform.hbm_bytes_per_s *= trial->factor;
    return NW_OK;
}

static nw_rc quote_network(struct trial *trial)
{
    trial->model.scenario.inter_scale *= trial->factor;
    return NW_OK;
}

/* What a call takes beyond an empty message, divided. */
static double faster(double ns, double alpha_ns, double factor)
{
    const double start = fmin(alpha_ns, ns);

    return start + (ns - start) / factor;
}

static nw_rc quote_links(struct trial *trial)
{
    struct nw_curves *curves = &trial->model.curves;
    struct nw_fabric *fabric = &trial->model.platform.fabric;
    struct nw_curve *items = malloc((curves->count + 1) * sizeof *items);
    struct nw_curve_point **points = calloc(curves->count + 1, sizeof *points);

    if (items == NULL || points == NULL) {
        free(items);
        free(points);
        return nw_fail(NW_ENOMEM, "no memory for the curves");
    }
    trial->points = points;
    if (curves->count > 0)
        memcpy(items, curves->items, curves->count * sizeof *items);
    curves->items = items; /* the trial's own from here on */
    trial->point_lists = curves->count;
    for (size_t c = 0; c < curves->count; c++) {
        struct nw_curve *curve = &items[c];

        if (curve->host_count > 1)
            continue;
        trial->points[c] = malloc((curve->point_count + 1) * sizeof *curve->points);
        if (trial->points[c] == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the curves");
        for (size_t i = 0; i < curve->point_count; i++) {
            struct nw_curve_point point = curve->points[i];

            point.time_ns = faster(point.time_ns, curve->alpha_ns, trial->factor);
            point.low_ns = faster(point.low_ns, curve->alpha_ns, trial->factor);
            point.high_ns = faster(point.high_ns, curve->alpha_ns, trial->factor);
            point.log_time_ns = log(point.time_ns);
            trial->points[c][i] = point;
        }
        curve->points = trial->points[c];
        curve->beta_ns_per_byte /= trial->factor;
    }
    fabric->intra_busbw_bytes_per_s *= trial->factor;
    fabric->link_bytes_per_s *= trial->factor;
    fabric->switch_bytes_per_s *= trial->factor;
    return NW_OK;
}

static nw_rc quote_pcie(struct trial *trial)
{
    trial->model.platform.host_to_device_bytes_per_s *= trial->factor;
    return trial->model.platform.fabric.link_is_pcie ? quote_links(trial) : NW_OK;
}

static nw_rc quote_read(struct trial *trial)
{
    trial->model.terms.storage.read_bytes_per_s *= trial->factor;
    return NW_OK;
}

static nw_rc quote_write(struct trial *trial)
{
    trial->model.terms.storage.write_bytes_per_s *= trial->factor;
    return NW_OK;
}

static const struct {
    const char *key;
    nw_rc (*as_quoted)(struct trial *trial);
} ways[] = {
    {"compute", quote_compute},  {"memory_rate", quote_memory}, {"nvlink", quote_links},
    {"pcie", quote_pcie},        {"network", quote_network},    {"disk_read", quote_read},
    {"disk_write", quote_write},
};

static void free_trial(struct trial *trial)
{
    if (trial->points == NULL)
        return;
    for (size_t i = 0; i < trial->point_lists; i++)
        free(trial->points[i]);
    free(trial->points);
    free(trial->model.curves.items);
}

/* ---- its cost ------------------------------------------------------------------------------ */

static void fill_money(const struct nw_model *model, int base_nodes, const struct nw_step *step,
                       double *per_billion_out, double *time_ns_out, double *cost_out)
{
    const double rate = nw_useful_tokens_per_s(&model->job, &model->terms, step);

    *per_billion_out = nw_cost_per_billion_tokens(&model->terms, step->node_count, rate);
    *time_ns_out = model->job.tokens / rate * 1e9;
    *cost_out = isfinite(model->job.tokens)
                    ? nw_total_cost(model, step->node_count, base_nodes, rate)
                    : NAN;
}

static nw_rc try_quoted(struct trial *trial, nw_rc (*as_quoted)(struct trial *trial),
                        struct nw_step *step_out)
{
    struct nw_platform platform;
    bool found;

    NW_TRY(as_quoted(trial));
    platform = nw_model_platform(&trial->model);
    NW_TRY(
        nw_fastest(&trial->model, &platform, trial->step->node_count, 0, NULL, &found, step_out));
    if (!found)
        *step_out = *trial->step;
    return NW_OK;
}

static nw_rc cost_of(const struct nw_model *model, int base_nodes, struct nw_step *step,
                     nw_rc (*as_quoted)(struct trial *trial), struct nw_claim_cost *cost)
{
    struct trial trial = {.model = *model, .factor = cost->healthy / cost->measured, .step = step};
    struct nw_step quoted;
    nw_rc rc;

    rc = try_quoted(&trial, as_quoted, &quoted);
    if (rc == NW_OK) {
        cost->step_ns = step->step_ns;
        cost->healthy_step_ns = quoted.step_ns;
        fill_money(model, base_nodes, step, &cost->cost_per_billion_tokens, &cost->time_ns,
                   &cost->cost);
        fill_money(&trial.model, base_nodes, &quoted, &cost->healthy_cost_per_billion_tokens,
                   &cost->healthy_time_ns, &cost->healthy_cost);
        cost->on_path =
            cost->healthy_cost_per_billion_tokens < cost->cost_per_billion_tokens * (1 - 1e-6);
    }
    free_trial(&trial);
    return rc;
}

static double loss(const struct nw_claim_cost *cost)
{
    return cost->on_path ? cost->cost_per_billion_tokens / cost->healthy_cost_per_billion_tokens
                         : 0;
}

static int by_loss(const void *a, const void *b)
{
    const double x = loss(a), y = loss(b);

    return (x < y) - (x > y);
}

static bool is_short_rate(const struct nw_audit_row *row)
{
    return row->verdict == NW_AUDIT_SHORT && !row->arithmetic &&
           (row->unit == NW_AUDIT_BYTES_PER_S || row->unit == NW_AUDIT_FLOP_PER_S) &&
           row->measured > 0 && row->quoted > 0;
}

static nw_rc add_claim(const struct nw_model *model, int base_nodes, struct nw_step *step,
                       const struct nw_audit_row *row, struct nw_claim_costs *costs)
{
    struct nw_claim_cost *cost = &costs->items[costs->count];
    size_t way = 0;

    while (way < sizeof ways / sizeof ways[0] && strcmp(ways[way].key, row->key) != 0)
        way++;
    if (way == sizeof ways / sizeof ways[0] || costs->count == NW_CLAIM_COSTS_MAX)
        return NW_OK;
    *cost = (struct nw_claim_cost){.unit = row->unit,
                                   .quoted = row->quoted * (row->part > 0 ? row->part : 1),
                                   .measured = row->measured,
                                   .simulated = row->simulated};
    snprintf(cost->key, sizeof cost->key, "%s", row->key);
    snprintf(cost->claim, sizeof cost->claim, "%s", row->claim);
    cost->healthy = fmin(cost->quoted, (row->expected_low + row->expected_high) / 2);
    if (!(cost->healthy > cost->measured))
        return NW_OK; /* short of another figure than this one */
    NW_TRY(cost_of(model, base_nodes, step, ways[way].as_quoted, cost));
    costs->count++;
    return NW_OK;
}

nw_rc nw_claim_costs_of(const struct nw_model *model, const struct nw_decision *decision,
                        const struct nw_audit *audit, struct nw_claim_costs *costs_out)
{
    struct nw_claim_costs costs = {.count = 0};
    size_t at = decision->headline;

    if (!decision->choices[at].predicted)
        at = decision->base;
    if (at == decision->count) {
        *costs_out = costs;
        return NW_OK;
    }
    struct nw_step step = decision->choices[at].strong;

    costs.node_count = step.node_count;
    for (size_t i = 0; i < audit->row_count; i++)
        if (is_short_rate(&audit->rows[i]))
            NW_TRY(add_claim(model, decision->choices[decision->base].node_count, &step,
                             &audit->rows[i], &costs));
    qsort(costs.items, costs.count, sizeof costs.items[0], by_loss);
    *costs_out = costs;
    return NW_OK;
}

static nw_rc fill_json(const struct nw_claim_cost *cost, int node_count, json_t *object)
{
    NW_TRY(nw_json_set_text(object, "key", cost->key));
    NW_TRY(nw_json_set_text(object, "claim", cost->claim));
    NW_TRY(nw_json_set_bool(object, "on_path", cost->on_path));
    NW_TRY(nw_json_set_bool(object, "simulated", cost->simulated));
    NW_TRY(nw_json_set_int(object, "nodes", node_count));
    NW_TRY(nw_json_set_real(
        object, cost->unit == NW_AUDIT_FLOP_PER_S ? "quoted_flop_per_s" : "quoted_bytes_per_s",
        cost->quoted));
    NW_TRY(nw_json_set_real(
        object, cost->unit == NW_AUDIT_FLOP_PER_S ? "measured_flop_per_s" : "measured_bytes_per_s",
        cost->measured));
    NW_TRY(nw_json_set_real(
        object, cost->unit == NW_AUDIT_FLOP_PER_S ? "healthy_flop_per_s" : "healthy_bytes_per_s",
        cost->healthy));
    return NW_SET_REALS(
        object, {"step_ns", cost->step_ns}, {"healthy_step_ns", cost->healthy_step_ns},
        {"cost_per_billion_tokens", cost->cost_per_billion_tokens},
        {"healthy_cost_per_billion_tokens", cost->healthy_cost_per_billion_tokens},
        {"time_to_tokens_ns", cost->time_ns}, {"healthy_time_to_tokens_ns", cost->healthy_time_ns},
        {"cost_of_tokens", cost->cost}, {"healthy_cost_of_tokens", cost->healthy_cost});
}

nw_rc nw_claim_costs_to_json(const struct nw_claim_costs *costs, json_t **json_out)
{
    json_t *list = json_array(), *object;
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < costs->count && rc == NW_OK; i++) {
        rc = nw_json_append_object(list, &object);
        if (rc == NW_OK)
            rc = fill_json(&costs->items[i], costs->node_count, object);
    }
    if (rc != NW_OK) {
        json_decref(list);
        return rc;
    }
    *json_out = list;
    return NW_OK;
}
