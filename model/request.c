#include "model/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/platform.h"
#include "model/request_parts.h"

#define MAX_NODES     16384
#define GPUS_PER_NODE 8

/* ---- nodes and ranks ----- */

static nw_rc add_node_count(struct nw_model *model, int node_count)
{
    size_t at = 0;

    while (at < model->node_count_count && model->node_counts[at] < node_count)
        at++;
    if (at < model->node_count_count && model->node_counts[at] == node_count)
        return NW_OK;
    int *counts =
        realloc(model->node_counts, (model->node_count_count + 1) * sizeof *model->node_counts);

    if (counts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the node counts");
    memmove(&counts[at + 1], &counts[at], (model->node_count_count - at) * sizeof *counts);
    counts[at] = node_count;
    model->node_counts = counts;
    model->node_count_count++;
    return NW_OK;
}

static nw_rc take_node_count(void *target, const char *word, const char *option)
{
    uint64_t count;

    if (nw_parse_u64(word, 1, MAX_NODES, &count) != NW_OK)
        return nw_fail(NW_EUSAGE, "%s: \"%.40s\" is no node count; accepted: 1 to %d", option, word,
                       MAX_NODES);
    return add_node_count(target, (int)count);
}

/* ---- what the curves say ------------------------------------------------------------------- */

/* GPUs of a node as measured: of the largest group over hosts, else of the largest group; 0:
 * nothing was. */
static int measured_gpus_per_node(const struct nw_curves *curves)
{
    int over_hosts = 0, inside = 0;

    for (size_t i = 0; i < curves->count; i++) {
        const struct nw_curve *curve = &curves->items[i];
        const int per_node = curve->rank_count / curve->host_count;

        if (curve->host_count > 1 && per_node > over_hosts)
            over_hosts = per_node;
        if (curve->host_count == 1 && per_node > inside)
            inside = per_node;
    }
    return over_hosts > 0 ? over_hosts : inside;
}

/* As asked for, in words or as so many ranks on so many nodes, else as measured; 0: neither says.
 */
static int known_gpus_per_node(const struct nw_model_request *request,
                               const struct nw_curves *curves)
{
    uint64_t nodes;

    if (request->gpus_per_node > 0)
        return request->gpus_per_node;
    if (request->ranks > 0 && request->nodes != NULL) {
        if (nw_parse_u64(request->nodes, 1, MAX_NODES, &nodes) == NW_OK &&
            (uint64_t)request->ranks % nodes == 0)
            return request->ranks / (int)nodes;
        nw_clear_error(); /* a list: choose_ranks says what is accepted */
    }
    return measured_gpus_per_node(curves);
}

/* Exactly so many GPUs, on the nodes asked for or on as few as hold them. */
static nw_rc choose_ranks(const struct nw_model_request *request, struct nw_model *model)
{
    const int per_node = model->platform.fabric.gpus_per_node;

    model->rank_count = request->ranks;
    if (request->nodes != NULL) {
        NW_TRY(nw_request_each_word(request->nodes, "--nodes", take_node_count, model));
        if (model->node_count_count > 1 || request->ranks % model->node_counts[0] != 0)
            return nw_fail(NW_EUSAGE,
                           "--ranks %d with --nodes %.40s; accepted: one node count that divides "
                           "the ranks",
                           request->ranks, request->nodes);
        if (request->gpus_per_node == 0)
            model->platform.fabric.gpus_per_node = request->ranks / model->node_counts[0];
        else if (request->ranks / model->node_counts[0] > per_node)
            return nw_fail(NW_EUSAGE, "--ranks %d on %d nodes are more than --gpus-per-node %d",
                           request->ranks, model->node_counts[0], per_node);
        return NW_OK;
    }
    if (request->ranks > per_node && request->ranks % per_node != 0)
        return nw_fail(NW_EUSAGE,
                       "--ranks %d cannot be dealt evenly to nodes of %d GPUs; accepted: a "
                       "multiple, or give --gpus-per-node",
                       request->ranks, per_node);
    return add_node_count(model, (request->ranks + per_node - 1) / per_node);
}

static nw_rc choose_nodes(const struct nw_model_request *request, struct nw_model *model)
{
    if (request->ranks > 0)
        return choose_ranks(request, model);
    if (request->nodes != NULL)
        return nw_request_each_word(request->nodes, "--nodes", take_node_count, model);
    NW_TRY(add_node_count(model, 1));
    NW_TRY(add_node_count(model, 2));
    for (size_t i = 0; i < model->curves.count; i++)
        NW_TRY(add_node_count(model, model->curves.items[i].host_count));
    return NW_OK;
}

static nw_rc check_lane(const struct nw_model *model, const char *lane)
{
    const char *names[17] = {NULL};
    char accepted[256];
    size_t count = 0;

    for (size_t i = 0; i < model->curves.count; i++) {
        const char *name = model->curves.items[i].lane;
        size_t n = 0;

        if (strcmp(name, lane) == 0)
            return NW_OK;
        while (n < count && strcmp(names[n], name) != 0)
            n++;
        if (n == count && count < 16)
            names[count++] = name;
    }
    return nw_fail(NW_EUSAGE, "--lane %.40s: the results have no such lane; accepted: %s", lane,
                   count > 0 ? nw_join_names(accepted, sizeof accepted, names)
                             : "none, no results were given");
}

/* Weights and activations that come from the host in every micro-batch: of an unknown rate nothing
 * can be said. (An optimizer's time on the host is told apart and left out.) */
static nw_rc check_offload(const struct nw_job *job, const struct nw_platform *platform)
{
    const struct {
        const char *option;
        nw_offload_to to;
    } wishes[] = {{"--offload-params", job->offload.parameters},
                  {"--offload-activations", job->offload.activations}};

    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        if (wishes[i].to != NW_OFFLOAD_NONE && !(platform->host_to_device_bytes_per_s > 0))
            return nw_fail(NW_ENODEV,
                           "%s: the rate between host and GPU is not known; give --host-gbps, or "
                           "--gpu for its datasheet's",
                           wishes[i].option);
        if (wishes[i].to == NW_OFFLOAD_NVME && !(platform->nvme_bytes_per_s > 0))
            return nw_fail(NW_ENODEV,
                           "%s nvme: the rate of the NVMe disks is not known; give --nvme-gbps, "
                           "GB/s that each GPU reads",
                           wishes[i].option);
    }
    return NW_OK;
}

static nw_rc take_curves(const struct nw_model_request *request, const struct nw_results *results,
                         const struct nw_curves *curves, struct nw_model *model)
{
    struct nw_assumptions assumptions;

    model->curves_borrowed = curves != NULL;
    if (curves != NULL) {
        model->curves = *curves;
        return NW_OK;
    }
    NW_TRY(nw_platform_assume(request, &assumptions));
    return results == NULL ? NW_OK
                           : nw_curves_add_with(&model->curves, results, request->gpus_per_node,
                                                assumptions.value[NW_CONSTANT_IMPORT_ERROR]);
}

static nw_rc fill(const struct nw_model_request *request, const struct nw_results *results,
                  const struct nw_curves *curves, struct nw_model *model)
{
    struct nw_fabric *fabric = &model->platform.fabric;

    NW_TRY(nw_request_job(request, model));
    NW_TRY(nw_request_spread(request, model));
    NW_TRY(take_curves(request, results, curves, model));
    fabric->gpus_per_node = known_gpus_per_node(request, &model->curves);
    NW_TRY(nw_platform_choose(request, results, model->job.precision, &model->platform));
    NW_TRY(nw_terms_make(request, results, &model->terms));
    if (request->lane != NULL)
        NW_TRY(check_lane(model, request->lane));
    fabric->lane = request->lane;
    if (fabric->gpus_per_node == 0)
        fabric->gpus_per_node = model->platform.measured.topology_gpu_count > 0
                                    ? model->platform.measured.topology_gpu_count
                                    : GPUS_PER_NODE;
    NW_TRY(choose_nodes(request, model));
    NW_TRY(nw_request_check_layouts(request, model));
    NW_TRY(nw_request_accumulate(model));
    NW_TRY(nw_job_check(&model->job));
    NW_TRY(check_offload(&model->job, &model->platform));
    return nw_anchor_take(request, model);
}

nw_rc nw_model_open_on(const struct nw_model_request *request, const struct nw_results *results,
                       const struct nw_curves *curves, struct nw_model *model_out)
{
    struct nw_model model = {.curves_borrowed = false};
    const nw_rc rc = fill(request, results, curves, &model);

    if (rc != NW_OK) {
        nw_model_close(&model);
        return rc;
    }
    *model_out = model;
    return NW_OK;
}

nw_rc nw_model_open(const struct nw_model_request *request, const struct nw_results *results,
                    struct nw_model *model_out)
{
    return nw_model_open_on(request, results, NULL, model_out);
}

void nw_model_close(struct nw_model *model)
{
    if (!model->curves_borrowed)
        nw_curves_free(&model->curves);
    free(model->node_counts);
    *model = (struct nw_model){.curves_borrowed = false};
}

/* ---- every strategy × node count ----------------------------------------------------------- */

struct nw_layout nw_model_layout(const struct nw_model *model, int node_count,
                                 const struct nw_strategy *strategy)
{
    const int ranks = model->rank_count > 0 ? model->rank_count
                                            : node_count * model->platform.fabric.gpus_per_node;

    return (struct nw_layout){.node_count = node_count,
                              .rank_count = ranks,
                              .scaling = NW_SCALING_STRONG,
                              .base_rank_count = ranks,
                              .parallel = model->parallel,
                              .strategy = strategy,
                              .profile = model->profile != NULL ? model->profile
                                                                : nw_natural_profile(strategy)};
}

struct nw_platform nw_model_platform(const struct nw_model *model)
{
    struct nw_platform platform = model->platform;

    platform.fabric.curves = &model->curves;
    platform.fabric.assumptions = &model->platform.assumptions;
    return platform;
}

/* All strategies on one node count. As long as there are other counts, a strategy that cannot be
 * predicted on this one is passed over, and the count is left out where that leaves none. */
static nw_rc predict_nodes(const struct nw_model *model, const struct nw_platform *platform,
                           int node_count, struct nw_steps *steps)
{
    const bool others = model->node_count_count > 1;
    const size_t before = steps->count;
    bool unknown = false;

    for (size_t s = 0; model->strategies[s] != NULL; s++) {
        const struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[s]);
        const struct nw_job job = nw_model_job(model, &layout);
        nw_rc rc = nw_layout_check(&layout, &job);

        if (rc == NW_OK)
            rc = nw_predict(&job, platform, &layout, &model->scenario, &steps->items[steps->count]);
        if (others && (rc == NW_ENODEV || rc == NW_EUSAGE)) {
            unknown = unknown || rc == NW_ENODEV;
            continue;
        }
        NW_TRY(rc);
        steps->count++;
    }
    if (steps->count == before)
        *(unknown ? &steps->unpredicted : &steps->undealt) += 1;
    return NW_OK;
}

nw_rc nw_predict_all(const struct nw_model *model, struct nw_steps *steps_out)
{
    const struct nw_platform platform = nw_model_platform(model);
    struct nw_steps steps = {
        .items = calloc(model->node_count_count * nw_strategy_count, sizeof *steps.items)};
    nw_rc rc = NW_OK;

    if (steps.items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the predictions");
    for (size_t n = 0; n < model->node_count_count && rc == NW_OK; n++)
        rc = predict_nodes(model, &platform, model->node_counts[n], &steps);
    if (rc == NW_OK && steps.count == 0) /* each was left out: the last error says why */
        rc = nw_last_error()->rc;
    if (rc != NW_OK) {
        nw_steps_free(&steps);
        return rc;
    }
    nw_clear_error(); /* of what was left out */
    *steps_out = steps;
    return NW_OK;
}

const struct nw_step *nw_steps_fastest(const struct nw_steps *steps)
{
    const struct nw_step *best = NULL;

    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];

        if (step->fits != 0 && (best == NULL || step->step_ns < best->step_ns))
            best = step;
    }
    return best;
}

void nw_steps_free(struct nw_steps *steps)
{
    free(steps->items);
    *steps = (struct nw_steps){0};
}
