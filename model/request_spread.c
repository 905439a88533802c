/* How a request spreads the job: strategies, framework, degrees of parallelism, overlap. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/request_parts.h"

#define MAX_LIST_TEXT 256

nw_rc nw_request_each_word(const char *text, const char *option,
                           nw_rc (*take)(void *target, const char *word, const char *option),
                           void *target)
{
    char copy[MAX_LIST_TEXT], *rest = NULL;
    size_t count = 0;

    if (strlen(text) >= sizeof copy)
        return nw_fail(NW_EUSAGE, "%s: the list is longer than %d characters", option,
                       MAX_LIST_TEXT - 1);
    strcpy(copy, text);
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        NW_TRY(take(target, word, option));
        count++;
    }
    if (count == 0)
        return nw_fail(NW_EUSAGE, "%s: \"%.40s\" names nothing", option, text);
    return NW_OK;
}

/* ---- strategies and their frameworks ------------------------------------------------------- */

/* Where a strategy comes from, when it is named and the framework is not. All others: PyTorch. */
static const struct {
    const char *strategy, *framework;
} natural[] = {
    {"zero1", "deepspeed"},  {"zero2", "deepspeed"},  {"zero3", "deepspeed"},
    {"zeropp", "deepspeed"}, {"distopt", "megatron"},
};

/* What a framework offers, for a request that names no strategy. */
static const struct {
    const char *framework, *strategies;
} offers[] = {
    {"deepspeed", "ddp,zero1,zero2,zero3"},
    {"hf", "ddp,zero2,zero3,fsdp"}, /* accelerate over PyTorch and DeepSpeed */
    {"colossalai", "ddp,zero1,zero2,zero3"},
    {"megatron", "ddp,distopt"},
    {"megatron-lm", "ddp,distopt"},
    {"nemo", "ddp,distopt"},
    {"megatron-deepspeed", "ddp,zero1"},
    {"internevo", "ddp,zero1"},
    {"llm.c", "ddp,zero1"},
    {"apex", "ddp"},
    {"mxnet", "ddp"},
    {"paddle", "ddp,zero1,zero2,zero3"},
    {"jax", "ddp,fsdp"},
    {NULL, "ddp,zero1,fsdp-keep,fsdp"}, /* PyTorch; zero1: ZeroRedundancyOptimizer */
};

const struct nw_profile *nw_natural_profile(const struct nw_strategy *strategy)
{
    for (size_t i = 0; strategy != NULL && i < sizeof natural / sizeof natural[0]; i++)
        if (strcmp(natural[i].strategy, strategy->name) == 0)
            return nw_profile_named(natural[i].framework);
    return &nw_profiles[0];
}

static nw_rc take_strategy(void *target, const char *word, const char *option)
{
    struct nw_model *model = target;
    char accepted[256];
    size_t at = 0;

    while (model->strategies[at] != NULL && strcmp(model->strategies[at]->name, word) != 0)
        at++;
    if (model->strategies[at] != NULL)
        return NW_OK;                                /* named twice */
    model->strategies[at] = nw_strategy_named(word); /* each once: there is room for all */
    if (model->strategies[at] != NULL)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s: unknown strategy \"%.40s\"; accepted: %s", option, word,
                   nw_join_names(accepted, sizeof accepted, nw_strategy_names));
}

/* Strategies that the table does not have are passed over. */
static nw_rc take_offer(void *target, const char *word, const char *option)
{
    for (size_t i = 0; nw_strategy_names[i] != NULL; i++)
        if (strcmp(nw_strategy_names[i], word) == 0)
            return take_strategy(target, word, option);
    return NW_OK;
}

static nw_rc choose_offers(const struct nw_profile *profile, struct nw_model *model)
{
    const size_t count = sizeof offers / sizeof offers[0];
    size_t row = 0;

    while (row + 1 < count && strcmp(offers[row].framework, profile->name) != 0)
        row++;
    return nw_request_each_word(offers[row].strategies, "--strategy", take_offer, model);
}

static nw_rc choose_framework(const struct nw_model_request *request, struct nw_model *model)
{
    if (request->framework != NULL) {
        model->profile = nw_profile_named(request->framework);
        return request->strategy == NULL ? choose_offers(model->profile, model) : NW_OK;
    }
    if (request->strategy == NULL) {
        model->profile = &nw_profiles[0];
        NW_TRY(choose_offers(model->profile, model));
    } else {
        model->profile = nw_natural_profile(model->strategies[0]);
        for (size_t i = 1; model->strategies[i] != NULL && model->profile != NULL; i++)
            if (nw_natural_profile(model->strategies[i]) != model->profile)
                model->profile = NULL; /* each its own */
    }
    if (model->profile != NULL)
        nw_default_note(&model->defaults, "framework", "documented defaults", "%s",
                        model->profile->name);
    for (size_t i = 0; model->profile == NULL && model->strategies[i] != NULL; i++)
        nw_default_note(&model->defaults, "framework", "documented defaults", "%s for %s",
                        nw_natural_profile(model->strategies[i])->name, model->strategies[i]->name);
    return NW_OK;
}

static nw_rc choose_parallel(const struct nw_model_request *request, struct nw_model *model)
{
    const bool cut =
        request->sequence_parallel != NULL && strcmp(request->sequence_parallel, "yes") == 0;

    if (cut && request->tp <= 1)
        return nw_fail(NW_EUSAGE, "--sequence-parallel yes needs --tp 2 or more: it cuts the norms "
                                  "over the tensor-parallel ranks");
    if (request->virtual_stages > 1 && request->pp <= 1)
        return nw_fail(NW_EUSAGE, "--virtual-stages %d needs --pp 2 or more",
                       request->virtual_stages);
    if (request->ep > 1 && model->job.net.experts == 0)
        return nw_fail(NW_EUSAGE, "--ep %d needs a model with experts; %s has none", request->ep,
                       model->job.net.name);
    model->parallel =
        (struct nw_parallel){.tp = request->tp,
                             .pp = request->pp,
                             .cp = request->cp,
                             .ep = request->ep,
                             .virtual_stages = request->virtual_stages,
                             .shard_count = request->shard,
                             .reduce_each = request->sync_each_batch != NULL &&
                                            strcmp(request->sync_each_batch, "yes") == 0,
                             .sequence_parallel = cut};
    if (request->tp > 1 && request->sequence_parallel == NULL)
        nw_default_note(&model->defaults, "sequence-parallel", "norms on every rank", "no");
    return NW_OK;
}

static struct nw_scenario scenario_of(const struct nw_model_request *request)
{
    struct nw_scenario scenario = nw_scenario_likely;

    if (request->overlap != NULL && strcmp(request->overlap, "full") == 0)
        scenario.overlap_loss = 0;
    else if (request->overlap != NULL && strcmp(request->overlap, "none") == 0)
        scenario.overlap_loss = 1;
    return scenario;
}

nw_rc nw_request_spread(const struct nw_model_request *request, struct nw_model *model)
{
    if (request->strategy != NULL)
        NW_TRY(nw_request_each_word(request->strategy, "--strategy", take_strategy, model));
    NW_TRY(choose_framework(request, model));
    NW_TRY(choose_parallel(request, model));
    model->scenario = scenario_of(request);
    return NW_OK;
}

/* ---- what can be laid out ------------------------------------------------------------------ */

/* On any of the node counts; else the first cause. */
static nw_rc check_strategy(const struct nw_model *model, const struct nw_strategy *strategy)
{
    nw_rc rc = NW_OK;

    for (size_t n = 0; n < model->node_count_count; n++) {
        const struct nw_layout layout = nw_model_layout(model, model->node_counts[n], strategy);
        const struct nw_job job = nw_model_job(model, &layout);

        rc = nw_layout_check(&layout, &job);
        if (rc == NW_OK)
            return NW_OK;
    }
    return rc;
}

static void note_strategies(struct nw_model *model)
{
    char list[64] = "";
    size_t length = 0;

    for (size_t i = 0; model->strategies[i] != NULL; i++) {
        const int added = snprintf(list + length, sizeof list - length, "%s%s", i > 0 ? "," : "",
                                   model->strategies[i]->name);

        if (added < 0 || (size_t)added >= sizeof list - length)
            break;
        length += (size_t)added;
    }
    nw_default_note(&model->defaults, "strategy", "those of the framework", "%s", list);
}

nw_rc nw_request_check_layouts(const struct nw_model_request *request, struct nw_model *model)
{
    size_t kept = 0;
    nw_rc rc = NW_OK;

    for (size_t i = 0; model->strategies[i] != NULL; i++) {
        rc = check_strategy(model, model->strategies[i]);
        if (rc == NW_OK)
            model->strategies[kept++] = model->strategies[i];
        else if (request->strategy != NULL)
            return rc; /* it was asked for */
    }
    if (kept == 0)
        return rc;
    model->strategies[kept] = NULL;
    nw_clear_error();
    if (request->strategy == NULL)
        note_strategies(model);
    return NW_OK;
}

/* ---- what a layout makes of the job -------------------------------------------------------- */

struct nw_job nw_model_job(const struct nw_model *model, const struct nw_layout *layout)
{
    const struct nw_profile *profile = nw_layout_profile(layout);
    struct nw_job job = model->job;

    /* A framework keeps fp32 gradients beside 16-bit weights; fp32 weights have them anyway. */
    if (!model->gradients_given && profile->gradient_bytes > 0)
        job.gradient_bytes = profile->gradient_bytes;
    if (!model->reduce_given && profile->reduce_bytes > 0)
        job.reduce_bytes = profile->reduce_bytes;
    return job;
}

uint64_t nw_grad_accum_batch(uint64_t grad_accum, const struct nw_job *job,
                             const struct nw_layout *layout)
{
    return grad_accum * job->micro_batch * (uint64_t)nw_layout_dp(layout);
}

nw_rc nw_request_accumulate(struct nw_model *model)
{
    if (model->grad_accum == 0)
        return NW_OK;
    const struct nw_layout layout =
        nw_model_layout(model, model->node_counts[0], model->strategies[0]);
    const double batch = (double)model->grad_accum * (double)model->job.micro_batch *
                         (double)nw_layout_dp(&layout); /* in integers only where it is small */

    if (batch > 1e9)
        return nw_fail(NW_EUSAGE,
                       "--grad-accum %llu makes a global batch of %.3g sequences; accepted: up to "
                       "1e9",
                       (unsigned long long)model->grad_accum, batch);
    model->job.global_batch = nw_grad_accum_batch(model->grad_accum, &model->job, &layout);
    if (model->node_count_count > 1)
        nw_default_note(&model->defaults, "global-batch",
                        "--grad-accum on the fewest nodes; the same on more", "%llu",
                        (unsigned long long)model->job.global_batch);
    return NW_OK;
}
