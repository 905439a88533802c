/* Parameters of one GPU, their gradients and the optimizer's states. */
#include <math.h>

#include "model/memory_parts.h"
#include "model/model.h"

bool nw_memory_trains_all(const struct nw_memory_task *task)
{
    return task->job->lora.rank == 0;
}

/* fp32 weights serve as their own master copy. */
static bool weights_are_master(const struct nw_memory_task *task)
{
    return task->policy->fp32_weights && nw_job_master_bytes(task->job) > 0;
}

double nw_memory_weight_bytes(const struct nw_memory_task *task)
{
    return weights_are_master(task) ? 4 : task->job->precision->element_bytes;
}

/* Layers of each kind are dealt evenly; the ends go to the outer stages. In flight: 1F1B keeps
 * min(p - k, m) micro-batches on stage k; interleaved with v chunks a rank runs
 * 2(p - k - 1) + (v - 1)p chunks ahead and one more (Narayanan et al. 2021, section 2.2;
 * Korthikanti et al. 2022, section 4.2.3: 1 + (p - 1)/(pv) of all layers on the first stage). */
struct nw_stage_share nw_memory_stage(const struct nw_memory_task *task, int index)
{
    const double p = task->pp, v = nw_layout_virtual_stages(task->layout);
    const double m = task->micro_batch_count;
    struct nw_stage_share stage = {
        .index = index, .first = index == 0, .last = index == task->pp - 1};
    const double all = task->all_layers, mine = ceil(all / p);

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++)
        stage.layers[kind] = all > 0 ? task->layer_count[kind] * mine / all : 0;
    if (v > 1)
        stage.in_flight = fmin((2 * (p - index - 1) + (v - 1) * p + 1) / v, m);
    else
        stage.in_flight = fmin(p - index, m);
    stage.in_flight = nw_larger(stage.in_flight, 1);
    return stage;
}

/* Norms and routers are copies on every tensor-parallel rank, all matrices are cut. */
struct nw_stage_parameters nw_memory_parameters(const struct nw_memory_task *task,
                                                const struct nw_stage_share *stage)
{
    const struct nw_transformer *net = &task->job->net;
    struct nw_stage_parameters own = {0};

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        const struct nw_layer_parts *parts = &task->parts[kind];
        const double matrices = (double)(parts->attention + parts->mlp) / task->tp;
        const double rest = (double)(parts->total - parts->attention - parts->mlp - parts->experts);
        const double experts = (double)parts->experts / task->tp / task->ep;

        if (stage->layers[kind] <= 0)
            continue;
        own.quantised += stage->layers[kind] * matrices;
        own.layers += stage->layers[kind] * (matrices + rest);
        own.experts += stage->layers[kind] * experts;
        own.adapters += stage->layers[kind] * (double)task->adapters[kind].dense / task->tp;
        own.expert_adapters +=
            stage->layers[kind] * (double)task->adapters[kind].experts / task->tp / task->ep;
        if (matrices + rest + experts > own.layer_unit) {
            own.layer_unit = matrices + rest + experts;
            own.unit_quantised = matrices + experts;
        }
    }
    if (stage->first)
        own.ends += task->embedding / task->tp;
    if (stage->last) {
        own.ends += task->head / task->tp;
        if (!stage->first)
            own.ends += (double)nw_transformer_shared_embedding(net) / task->tp;
    }
    return own;
}

/* Rajbhandari et al. 2020 (ZeRO), figure 1: (2 + 2 + K)Ψ, K = 12 for mixed-precision Adam; what a
 * strategy cuts is divided by the ranks that share one copy. Experts are copied on fewer ranks: ep
 * of the data-parallel ranks hold different ones. */
static double cut(const struct nw_memory_task *task, bool sharded, double dense, double experts)
{
    const double ranks = nw_layout_state_count(task->layout);

    return sharded ? dense / ranks + experts / nw_larger(ranks / task->ep, 1) : dense + experts;
}

bool nw_memory_weights_cut(const struct nw_memory_task *task)
{
    const struct nw_strategy *strategy = task->layout->strategy;

    return strategy != NULL &&
           (strategy->weights_sharded || strategy->gathers == NW_GATHERS_UNITS_ONCE);
}

bool nw_memory_keeps_gathered(const struct nw_memory_task *task)
{
    return task->layout->strategy->gathers == NW_GATHERS_UNITS_ONCE ||
           (task->pp > 1 && task->policy->pipeline_keeps);
}

double nw_memory_gradient_bytes(const struct nw_memory_task *task)
{
    const double e = task->job->precision->element_bytes, kept = nw_job_gradient_bytes(task->job);

    if (weights_are_master(task)) /* autograd: the type of the weights */
        return nw_larger(kept, 4);
    return kept + (task->policy->gradient_beside && kept > e ? e : 0);
}

/* Gradients are summed over micro-batches before they are cut (no_sync). */
static bool gradients_cut(const struct nw_memory_task *task)
{
    const struct nw_strategy *strategy = task->layout->strategy;

    if (strategy == NULL || !strategy->gradients_sharded)
        return false;
    if (task->micro_batch_count <= 1)
        return true;
    if (task->pp > 1) /* model/step_gradients.c: reduced after the last micro-batch */
        return false;
    return !strategy->reduces_units || !task->profile->reduces_last ||
           task->layout->parallel.reduce_each;
}

static void offload(const struct nw_memory_task *task, double updated, struct nw_states *states)
{
    const struct nw_offload *to = &task->job->offload;

    if (to->optimizer != NW_OFFLOAD_NONE) {
        /* ZeRO-Offload: states, master copy and fp32 gradients are the CPU's; gradients leave the
         * GPU as they are reduced (Ren et al. 2021, section 4). */
        if (to->optimizer == NW_OFFLOAD_CPU)
            states->host += states->optimizer + 4 * updated;
        states->optimizer = states->update = 0;
        if (gradients_cut(task))
            states->gradients = 0;
    }
    if (to->parameters != NW_OFFLOAD_NONE) {
        if (to->parameters == NW_OFFLOAD_CPU)
            states->host += states->weights;
        states->weights = 0;
    }
}

struct nw_states nw_memory_states(const struct nw_memory_task *task,
                                  const struct nw_stage_parameters *own)
{
    const struct nw_job *job = task->job;
    const struct nw_strategy *strategy = task->layout->strategy;
    const bool all = nw_memory_trains_all(task), weights_cut = nw_memory_weights_cut(task);
    const double e = job->precision->element_bytes, weight = nw_memory_weight_bytes(task);
    const double quantised = nw_job_base_bytes(job);
    const double dense = all ? own->layers + own->ends : own->adapters;
    const double experts = all ? own->experts : own->expert_adapters;
    const double master = weights_are_master(task) ? 0 : nw_job_master_bytes(job);
    const double updated =
        cut(task, strategy != NULL && strategy->optimizer_sharded, dense, experts);
    struct nw_states states = {
        .weights = cut(task, weights_cut, dense * weight, experts * weight),
        .gradients =
            cut(task, gradients_cut(task), dense, experts) * nw_memory_gradient_bytes(task),
        .optimizer = updated * (master + nw_job_state_bytes(job)),
        .update = updated * task->policy->update_bytes,
    };

    if (!all)
        states.weights +=
            cut(task, weights_cut,
                (own->layers - own->quantised + own->ends) * e + own->quantised * quantised,
                own->experts * quantised);
    offload(task, updated, &states);
    return states;
}
