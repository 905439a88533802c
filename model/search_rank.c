/* The best of the closed form, predicted anew by the event simulation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/break_even.h"
#include "model/search_parts.h"

static int by_time(const void *a, const void *b)
{
    const double x = ((const struct nw_found *)a)->step.step_ns;
    const double y = ((const struct nw_found *)b)->step.step_ns;

    return (x > y) - (x < y);
}

static bool is_same(const struct nw_search_candidate *a, const struct nw_search_candidate *b)
{
    return a->quick_ns == b->quick_ns && a->micro_batch == b->micro_batch &&
           a->recompute == b->recompute &&
           memcmp(&a->offload, &b->offload, sizeof a->offload) == 0 &&
           memcmp(&a->layout, &b->layout, sizeof a->layout) == 0;
}

/* In an earlier list. */
static bool is_known(const struct nw_search_state *state, int list,
                     const struct nw_search_candidate *candidate)
{
    for (int i = 0; i < list; i++)
        for (int k = 0; k < state->bests[i].count; k++)
            if (is_same(&state->bests[i].items[k], candidate))
                return true;
    return false;
}

/* A candidate that the simulation refuses is left out. */
static void predict(const struct nw_search_state *state,
                    const struct nw_search_candidate *candidate, struct nw_graph *events,
                    struct nw_search_result *result)
{
    struct nw_found *found = &result->items[result->count];

    *found = (struct nw_found){.job = nw_model_job(state->model, &candidate->layout),
                               .quick_ns = candidate->quick_ns};
    found->job.micro_batch = candidate->micro_batch;
    found->job.recompute = candidate->recompute;
    found->job.offload = candidate->offload;
    if (nw_predict_time(&found->job, &state->platform, &candidate->layout, &state->model->scenario,
                        events, &found->step) != NW_OK) {
        nw_clear_error();
        return;
    }
    result->count++;
}

/* Interval, memory and cost of those that are shown. */
static nw_rc complete(const struct nw_search_state *state, struct nw_found *found)
{
    if (found->cost_per_billion_tokens > 0)
        return NW_OK;
    NW_TRY(nw_predict(&found->job, &state->platform, &found->step.layout, &state->model->scenario,
                      &found->step));
    found->cost_per_billion_tokens = nw_cost_per_billion_tokens(
        &state->model->terms, found->step.node_count, found->step.tokens_per_s);
    return NW_OK;
}

static double cost_of(const struct nw_search_state *state, const struct nw_found *found)
{
    return nw_price_per_hour(&state->model->terms, found->step.node_count) * found->step.step_ns;
}

static nw_rc refuse(const struct nw_search_state *state)
{
    if (state->seen > 0 && isfinite(state->nearest_bytes))
        return nw_fail(
            NW_EUSAGE,
            "no plan of %llu fits; the nearest needs %.1f GiB of %.1f: %s on %d GPUs, tp "
            "%d, pp %d; accepted: more --nodes, a larger card, another --framework, or "
            "offload",
            (unsigned long long)state->seen, state->nearest_bytes / (1024.0 * 1024 * 1024),
            (double)state->platform.memory_bytes / (1024.0 * 1024 * 1024),
            state->nearest.strategy->name, state->nearest.rank_count, state->nearest.parallel.tp,
            state->nearest.parallel.pp);
    return nw_fail(NW_EUSAGE,
                   "no plan fits these GPUs and this batch (%llu looked at); accepted: a "
                   "--global-batch that can be dealt to them, more --nodes, a larger card",
                   (unsigned long long)state->seen);
}

/* ---- kinds of plans -------------------------------------------------------------------------- */

/* Plans of a kind differ in what matters little: recomputation, micro-batch, virtual stages,
 * sequence parallelism, shards. The first of each kind, fastest first, stands for it. */
static bool is_alike(const struct nw_found *a, const struct nw_found *b)
{
    const struct nw_layout *x = &a->step.layout, *y = &b->step.layout;

    return x->strategy == y->strategy && x->profile == y->profile &&
           x->node_count == y->node_count && x->rank_count == y->rank_count &&
           nw_layout_tp(x) == nw_layout_tp(y) && nw_layout_pp(x) == nw_layout_pp(y) &&
           nw_layout_cp(x) == nw_layout_cp(y) && nw_layout_ep(x) == nw_layout_ep(y) &&
           (a->job.offload.optimizer != NW_OFFLOAD_NONE) ==
               (b->job.offload.optimizer != NW_OFFLOAD_NONE);
}

static void mark_kinds(struct nw_search_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        bool first = true;

        for (size_t k = 0; k < i && first; k++)
            if (result->items[k].is_first && is_alike(&result->items[k], &result->items[i])) {
                result->items[k].alike++;
                first = false;
            }
        result->items[i].is_first = first;
        first = true;
        for (size_t k = 0; k < i && first; k++)
            first = result->items[k].step.strategy != result->items[i].step.strategy ||
                    result->items[k].step.layout.profile != result->items[i].step.layout.profile;
        result->items[i].leads_strategy = first;
    }
}

nw_rc nw_search_rank(const struct nw_search_state *state, size_t show,
                     struct nw_search_result *result)
{
    struct nw_graph events = {0};
    size_t most = 0;

    for (int i = 0; i < state->best_count; i++)
        most += (size_t)state->bests[i].count;
    result->items = calloc(most + 1, sizeof *result->items);
    if (result->items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu plans", most);
    for (int i = 0; i < state->best_count; i++)
        for (int k = 0; k < state->bests[i].count; k++)
            if (!is_known(state, i, &state->bests[i].items[k]))
                predict(state, &state->bests[i].items[k], &events, result);
    nw_graph_free(&events);
    if (result->count == 0)
        return refuse(state);
    qsort(result->items, result->count, sizeof *result->items, by_time);
    mark_kinds(result);
    for (size_t i = 1; i < result->count; i++)
        if (cost_of(state, &result->items[i]) <
            cost_of(state, &result->items[result->cheapest]) * (1 - 1e-9))
            result->cheapest = i;
    for (size_t i = 0, shown = 0; i < result->count; i++) {
        const struct nw_found *found = &result->items[i];

        if (i < show || found->leads_strategy || (found->is_first && shown < show))
            NW_TRY(complete(state, &result->items[i]));
        shown += found->is_first;
    }
    return complete(state, &result->items[result->cheapest]);
}
