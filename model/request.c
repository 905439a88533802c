#include "model/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/platform.h"

/* A job's own defaults: the model's sequence length up to this, and micro-batches of so many
 * tokens. */
#define DEFAULT_SEQUENCE   4096u
#define MICRO_BATCH_TOKENS 8192u
#define MONTH_HOURS        730.0 /* 365 × 24 / 12 */
#define MAX_NODES          16384
#define MAX_LIST_TEXT      256
#define GPUS_PER_NODE      8

static nw_rc check_sequence(const struct nw_transformer *net, uint64_t sequence)
{
    if (net->positions > 0 && sequence > net->positions)
        return nw_fail(NW_EUSAGE,
                       "--seq %llu is longer than the %llu learned positions of %s; accepted: up "
                       "to that",
                       (unsigned long long)sequence, (unsigned long long)net->positions, net->name);
    return NW_OK;
}

static nw_rc make_job(const struct nw_model_request *request, struct nw_job *job)
{
    if (request->model == NULL)
        return nw_fail(NW_EUSAGE, "no model: give --model NAME (nodeworth list models) or a "
                                  "Hugging Face config.json");
    NW_TRY(nw_transformer_find(request->model, &job->net));
    for (const struct nw_precision *row = nw_precisions; row->name != NULL; row++)
        if (strcmp(row->name, request->precision) == 0)
            job->precision = row;
    for (const struct nw_optimizer *row = nw_optimizers; row->name != NULL; row++)
        if (strcmp(row->name, request->optimizer) == 0)
            job->optimizer = row;
    const uint64_t longest = job->net.max_positions > 0 ? job->net.max_positions : DEFAULT_SEQUENCE;

    job->sequence = request->sequence > 0        ? request->sequence
                    : longest < DEFAULT_SEQUENCE ? longest
                                                 : DEFAULT_SEQUENCE;
    NW_TRY(check_sequence(&job->net, job->sequence));
    job->micro_batch = request->micro_batch;
    if (job->micro_batch == 0)
        job->micro_batch =
            job->sequence < MICRO_BATCH_TOKENS ? MICRO_BATCH_TOKENS / job->sequence : 1;
    job->global_batch = request->global_batch;
    job->gradient_bytes =
        strcmp(request->gradients, "fp32") == 0 ? 4 : job->precision->element_bytes;
    job->master_bytes = NAN;
    job->recompute =
        strcmp(request->recompute, "full") == 0 ? NW_RECOMPUTE_FULL : NW_RECOMPUTE_NONE;
    job->flash = strcmp(request->attention, "flash") == 0;
    job->tokens = request->tokens > 0 ? request->tokens : NAN;
    return NW_OK;
}

/* ---- lists --------------------------------------------------------------------------------- */

static nw_rc each_word(const char *text, const char *option,
                       nw_rc (*take)(struct nw_model *model, const char *word, const char *option),
                       struct nw_model *model)
{
    char copy[MAX_LIST_TEXT], *rest = NULL;

    if (strlen(text) >= sizeof copy)
        return nw_fail(NW_EUSAGE, "%s: the list is longer than %d characters", option,
                       MAX_LIST_TEXT - 1);
    strcpy(copy, text);
    size_t count = 0;

    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        NW_TRY(take(model, word, option));
        count++;
    }
    if (count == 0)
        return nw_fail(NW_EUSAGE, "%s: \"%s\" names nothing", option, text);
    return NW_OK;
}

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

static nw_rc take_node_count(struct nw_model *model, const char *word, const char *option)
{
    uint64_t count;

    if (nw_parse_u64(word, 1, MAX_NODES, &count) != NW_OK)
        return nw_fail(NW_EUSAGE, "%s: \"%.40s\" is no node count; accepted: 1 to %d", option, word,
                       MAX_NODES);
    return add_node_count(model, (int)count);
}

static nw_rc take_strategy(struct nw_model *model, const char *word, const char *option)
{
    char accepted[128];
    size_t at = 0;

    while (model->strategies[at] != NULL && strcmp(model->strategies[at]->name, word) != 0)
        at++;
    if (model->strategies[at] != NULL)
        return NW_OK; /* named twice */
    for (size_t i = 0; i < nw_strategy_count; i++) {
        if (strcmp(nw_strategies[i].name, word) == 0) {
            model->strategies[at] = &nw_strategies[i];
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "%s: unknown strategy \"%.40s\"; accepted: %s", option, word,
                   nw_join_names(accepted, sizeof accepted, nw_strategy_names));
}

/* ---- what the curves say ------------------------------------------------------------------- */

/* GPUs of a node as measured: of the largest group over hosts, else of the largest group. */
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
    return over_hosts > 0 ? over_hosts : inside > 0 ? inside : GPUS_PER_NODE;
}

static nw_rc choose_nodes(const struct nw_model_request *request, struct nw_model *model)
{
    const int per_node = model->platform.fabric.gpus_per_node;

    if (request->ranks > 0) {
        if (request->ranks > per_node && request->ranks % per_node != 0)
            return nw_fail(NW_EUSAGE,
                           "--ranks %d cannot be dealt evenly to nodes of %d GPUs; accepted: a "
                           "multiple, or give --gpus-per-node",
                           request->ranks, per_node);
        model->rank_count = request->ranks;
        return add_node_count(model, (request->ranks + per_node - 1) / per_node);
    }
    if (request->nodes != NULL)
        return each_word(request->nodes, "--nodes", take_node_count, model);
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

/* ---- terms --------------------------------------------------------------------------------- */

static nw_rc make_terms(const struct nw_model_request *request, const struct nw_job *job,
                        struct nw_terms *terms)
{
    if (request->extra_per_node_hour > 0 && !(request->price_per_node_hour > 0))
        return nw_fail(NW_EUSAGE, "--extra-per-node-hour needs --price-per-node-hour");
    if (request->deadline_ns > 0 && !isfinite(job->tokens))
        return nw_fail(NW_EUSAGE, "--deadline needs --tokens, the length of the training");
    *terms = (struct nw_terms){
        .price_per_node_hour =
            request->price_per_node_hour > 0 ? request->price_per_node_hour : NAN,
        .extra_per_further_node_hour = request->extra_per_node_hour,
        .extra_per_hour = request->extra_per_hour,
        .extra_when_several_per_hour = request->extra_when_several_per_hour,
        .currency = request->currency != NULL ? request->currency : "",
        .max_extra_cost = request->max_extra_cost_percent / 100,
        .deadline_ns = request->deadline_ns > 0 ? request->deadline_ns : NAN,
    };
    return NW_OK;
}

static double known_or_zero(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

void nw_model_request_take_quote(struct nw_model_request *request, const struct nw_quote *quote)
{
    double price = known_or_zero(quote->price_per_node_hour);

    if (request->gpus_per_node == 0)
        request->gpus_per_node = quote->gpu_count;
    if (request->price_per_node_hour > 0)
        return;
    if (!(price > 0))
        price = known_or_zero(quote->price_per_node_month) / MONTH_HOURS;
    if (!(price > 0))
        price = known_or_zero(quote->price_per_gpu_hour) * quote->gpu_count;
    if (!(price > 0))
        return;
    request->price_per_node_hour = price;
    request->currency = quote->currency;
    request->extra_per_hour = known_or_zero(quote->storage_extra_per_month) / MONTH_HOURS;
    request->extra_when_several_per_hour = (known_or_zero(quote->network_extra_per_month) +
                                            known_or_zero(quote->ops_extra_per_month)) /
                                           MONTH_HOURS;
}

static struct nw_scenario scenario_of(const struct nw_model_request *request)
{
    struct nw_scenario scenario = nw_scenario_likely;

    if (strcmp(request->overlap, "full") == 0)
        scenario.overlap_loss = 0;
    else if (strcmp(request->overlap, "none") == 0)
        scenario.overlap_loss = 1;
    return scenario;
}

static nw_rc fill(const struct nw_model_request *request, const struct nw_results *results,
                  struct nw_model *model)
{
    NW_TRY(make_job(request, &model->job));
    NW_TRY(make_terms(request, &model->job, &model->terms));
    NW_TRY(nw_platform_choose(request, results, model->job.precision, &model->platform));
    if (results != NULL)
        NW_TRY(nw_curves_add(&model->curves, results, request->gpus_per_node));
    if (request->lane != NULL)
        NW_TRY(check_lane(model, request->lane));
    struct nw_fabric *fabric = &model->platform.fabric;

    fabric->lane = request->lane;
    fabric->gpus_per_node = request->gpus_per_node > 0 ? request->gpus_per_node
                                                       : measured_gpus_per_node(&model->curves);
    NW_TRY(choose_nodes(request, model));
    if (request->strategy != NULL)
        NW_TRY(each_word(request->strategy, "--strategy", take_strategy, model));
    else
        for (size_t i = 0; i < nw_strategy_count; i++)
            model->strategies[i] = &nw_strategies[i];
    model->scenario = scenario_of(request);
    model->profile = &nw_profiles[0];
    return NW_OK;
}

nw_rc nw_model_open(const struct nw_model_request *request, const struct nw_results *results,
                    struct nw_model *model_out)
{
    struct nw_model model = {0};
    const nw_rc rc = fill(request, results, &model);

    if (rc != NW_OK) {
        nw_model_close(&model);
        return rc;
    }
    *model_out = model;
    return NW_OK;
}

void nw_model_close(struct nw_model *model)
{
    nw_curves_free(&model->curves);
    free(model->node_counts);
    *model = (struct nw_model){0};
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
                              .profile = model->profile};
}

struct nw_platform nw_model_platform(const struct nw_model *model)
{
    struct nw_platform platform = model->platform;

    platform.fabric.curves = &model->curves;
    return platform;
}

/* All strategies on one node count; a node count that cannot be predicted is left out and counted
 * as long as there are others. */
static nw_rc predict_nodes(const struct nw_model *model, const struct nw_platform *platform,
                           int node_count, struct nw_steps *steps)
{
    const bool others = model->node_count_count > 1 && node_count > 1;

    for (size_t s = 0; model->strategies[s] != NULL; s++) {
        const struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[s]);
        const nw_rc rc = nw_predict(&model->job, platform, &layout, &model->scenario,
                                    &steps->items[steps->count]);

        if (others && (rc == NW_ENODEV || rc == NW_EUSAGE)) {
            *(rc == NW_ENODEV ? &steps->unpredicted : &steps->undealt) += 1;
            return NW_OK;
        }
        NW_TRY(rc);
        steps->count++;
    }
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
    *steps_out = steps;
    return NW_OK;
}

void nw_steps_free(struct nw_steps *steps)
{
    free(steps->items);
    *steps = (struct nw_steps){0};
}
