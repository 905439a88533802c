/* Is a further node worth its price? The fastest strategy that fits on each node count, what a
 * token costs there, and the wire speed at which it starts to pay. */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

#include "model/break_even.h"

#define HOUR_NS           3.6e12
#define MOST_NODES_LOOKED 4096

double nw_price_per_hour(const struct nw_terms *terms, int node_count)
{
    if (!isfinite(terms->price_per_node_hour))
        return node_count;
    return terms->price_per_node_hour * node_count +
           terms->extra_per_further_node_hour * (node_count - 1) + terms->extra_per_hour +
           (node_count > 1 ? terms->extra_when_several_per_hour : 0);
}

/* The fastest strategy that fits; NW_OK with *found_out false: none fits. */
static nw_rc choose(const struct nw_model *model, const struct nw_platform *platform,
                    struct nw_layout layout, bool *found_out, struct nw_step *step_out)
{
    *found_out = false;
    for (size_t s = 0; model->strategies[s] != NULL; s++) {
        struct nw_step step;

        layout.strategy = model->strategies[s];
        NW_TRY(nw_predict(&model->job, platform, &layout, &model->scenario, &step));
        /* Equal up to rounding: the simpler one, which stands first in the table. */
        if (step.fits != 0 && (!*found_out || step.step_ns < step_out->step_ns * (1 - 1e-9))) {
            *found_out = true;
            *step_out = step;
        }
    }
    return NW_OK;
}

/* Does any strategy fit on that many nodes? True when the card's memory is unknown. */
static bool any_fits(const struct nw_model *model, int node_count)
{
    for (size_t s = 0; model->strategies[s] != NULL; s++) {
        const struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[s]);
        struct nw_memory memory;
        nw_assumed assumed = 0;

        nw_memory_of(&model->job, &layout, model->job.micro_batch, 1, NULL, &memory, &assumed);
        if (model->platform.memory_bytes == 0 ||
            memory.total_bytes <= (double)model->platform.memory_bytes)
            return true;
    }
    return false;
}

static int fewest_nodes(const struct nw_model *model)
{
    for (int nodes = 1; nodes <= MOST_NODES_LOOKED; nodes++)
        if (any_fits(model, nodes))
            return nodes;
    return 0;
}

/* ---- one node count ------------------------------------------------------------------------ */

static void fill_cost(const struct nw_model *model, struct nw_choice *choice)
{
    const double tokens_per_hour = choice->strong.tokens_per_s * 3600;

    choice->price_per_hour = nw_price_per_hour(&model->terms, choice->node_count);
    choice->cost_per_billion_tokens = choice->price_per_hour / tokens_per_hour * 1e9;
    choice->time_ns = model->job.tokens / tokens_per_hour * HOUR_NS;
    choice->cost = model->job.tokens / tokens_per_hour * choice->price_per_hour;
}

/* Strong scaling of one node count: pays is UNFIT, UNKNOWN or BATCH where there are no figures. */
static nw_rc look_at(const struct nw_model *model, const struct nw_platform *platform,
                     struct nw_choice *choice)
{
    const struct nw_layout layout = nw_model_layout(model, choice->node_count, NULL);
    bool found;

    choice->rank_count = layout.rank_count;
    choice->probability = choice->cost_ratio = choice->cost_ratio_low = choice->cost_ratio_high =
        choice->time_ns = choice->cost = choice->measured_busbw_bytes_per_s =
            choice->break_even_busbw_bytes_per_s = NAN;
    const nw_rc rc = choose(model, platform, layout, &found, &choice->strong);

    if (rc == NW_ENODEV && choice->node_count > 1) {
        choice->pays = any_fits(model, choice->node_count) ? NW_PAYS_UNKNOWN : NW_PAYS_UNFIT;
        return NW_OK;
    }
    if (rc == NW_EUSAGE && choice->node_count > 1) {
        choice->pays = NW_PAYS_BATCH;
        return NW_OK;
    }
    NW_TRY(rc);
    choice->pays = found ? NW_PAYS_BASE : NW_PAYS_UNFIT;
    choice->predicted = found;
    if (found)
        fill_cost(model, choice);
    return NW_OK;
}

static nw_rc look_at_weak(const struct nw_model *model, const struct nw_platform *platform,
                          const struct nw_choice *base, struct nw_choice *choice)
{
    struct nw_layout layout = nw_model_layout(model, choice->node_count, NULL);

    layout.scaling = NW_SCALING_WEAK;
    layout.base_rank_count = base->rank_count;
    NW_TRY(choose(model, platform, layout, &choice->weak_predicted, &choice->weak));
    if (!choice->weak_predicted)
        return NW_OK;
    choice->weak_speedup = choice->weak.tokens_per_s / base->strong.tokens_per_s;
    choice->weak_efficiency = choice->weak_speedup * base->rank_count / (double)choice->rank_count;
    return NW_OK;
}

/* ---- against the base ---------------------------------------------------------------------- */

static bool is_late(const struct nw_terms *terms, const struct nw_choice *choice)
{
    return isfinite(terms->deadline_ns) && choice->time_ns > terms->deadline_ns;
}

static nw_rc hold_against(const struct nw_model *model, const struct nw_platform *platform,
                          const struct nw_choice *base, struct nw_choice *choice)
{
    const struct nw_comparison comparison = {
        .model = model, .platform = platform, .base = base, .choice = choice};
    const double limit = 1 + model->terms.max_extra_cost;

    choice->speedup = choice->strong.tokens_per_s / base->strong.tokens_per_s;
    choice->efficiency = choice->speedup * base->rank_count / (double)choice->rank_count;
    choice->cost_ratio = choice->cost_per_billion_tokens / base->cost_per_billion_tokens;
    NW_TRY(nw_cost_ratio_interval(&comparison, limit, choice));
    choice->pays = choice->cost_ratio <= limit ? NW_PAYS_YES
                   : is_late(&model->terms, base) && !is_late(&model->terms, choice)
                       ? NW_PAYS_DEADLINE
                       : NW_PAYS_NO;
    return NW_OK;
}

static nw_rc judge(const struct nw_model *model, const struct nw_platform *platform,
                   const struct nw_choice *base, bool smaller_unfit, struct nw_choice *choice)
{
    if (choice == base) {
        choice->speedup = choice->efficiency = choice->weak_speedup = choice->weak_efficiency = 1;
        choice->weak = choice->strong;
        choice->weak_predicted = true;
        choice->cost_ratio = choice->cost_ratio_low = choice->cost_ratio_high = 1;
        if (smaller_unfit)
            choice->pays = NW_PAYS_MEMORY;
        return NW_OK;
    }
    if (choice->pays == NW_PAYS_UNKNOWN && base == NULL) {
        choice->pays = NW_PAYS_MEMORY; /* the first that holds the job, however slow */
        return NW_OK;
    }
    if (base == NULL || choice->pays == NW_PAYS_UNFIT || choice->pays == NW_PAYS_BATCH)
        return NW_OK;
    if (choice->predicted) {
        NW_TRY(hold_against(model, platform, base, choice));
        NW_TRY(look_at_weak(model, platform, base, choice));
    }
    if (base->node_count > 1)
        return NW_OK; /* the wire between nodes moves both sides: no single break-even */
    const struct nw_comparison comparison = {
        .model = model, .platform = platform, .base = base, .choice = choice};

    return nw_break_even_of(&comparison, choice);
}

/* The first node count with figures; NULL: none. */
static const struct nw_choice *base_of(const struct nw_decision *decision)
{
    for (size_t i = 0; i < decision->count; i++)
        if (decision->choices[i].predicted)
            return &decision->choices[i];
    return NULL;
}

/* The second node count; where the job does not fit on the first ones, the first it fits on. */
static size_t headline_of(const struct nw_decision *decision, const struct nw_choice *base)
{
    const size_t second = decision->count > 1 ? 1 : 0;
    const size_t first_fit = base != NULL ? (size_t)(base - decision->choices) : 0;

    return first_fit > second ? first_fit : second;
}

static nw_rc decide(const struct nw_model *model, struct nw_decision *decision)
{
    const struct nw_platform platform = nw_model_platform(model);

    for (size_t i = 0; i < decision->count; i++) {
        decision->choices[i].node_count = model->node_counts[i];
        NW_TRY(look_at(model, &platform, &decision->choices[i]));
    }
    const struct nw_choice *base = base_of(decision);

    for (size_t i = 0; i < decision->count; i++) {
        struct nw_choice *choice = &decision->choices[i];

        NW_TRY(judge(model, &platform, base, decision->choices[0].pays == NW_PAYS_UNFIT, choice));
        decision->how |= choice->strong.how | choice->weak.how;
        decision->assumed |= choice->strong.assumed | choice->weak.assumed;
    }
    decision->fitting_node_count = model->rank_count > 0 ? 0 : fewest_nodes(model);
    decision->headline = headline_of(decision, base);
    return NW_OK;
}

nw_rc nw_decide(const struct nw_model *model, struct nw_decision *decision_out)
{
    struct nw_decision decision = {.choices =
                                       calloc(model->node_count_count, sizeof *decision.choices),
                                   .count = model->node_count_count};

    if (decision.choices == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the decision");
    const nw_rc rc = decide(model, &decision);

    if (rc != NW_OK) {
        nw_decision_free(&decision);
        return rc;
    }
    *decision_out = decision;
    return NW_OK;
}

void nw_decision_free(struct nw_decision *decision)
{
    free(decision->choices);
    *decision = (struct nw_decision){0};
}
