/* Is a further node worth its price? The fastest strategy that fits on each node count, what a
 * token costs there, and where the answer turns. */
#include "model/decide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/break_even.h"

/* ---- the fastest strategy that fits -------------------------------------------------------- */

static bool holds(const struct nw_job *job, const struct nw_platform *platform,
                  const struct nw_layout *layout, const struct nw_step *step)
{
    struct nw_memory memory;
    nw_assumed assumed = 0;

    if (platform->memory_bytes == 0)
        return true;
    nw_memory_of(job, layout, step->micro_batch, step->micro_batch_count, &platform->assumptions,
                 &memory, &assumed);
    return memory.total_bytes <= (double)platform->memory_bytes;
}

static nw_rc predict(const struct nw_model *model, const struct nw_platform *platform,
                     const struct nw_layout *layout, const struct nw_scenario *scenario,
                     bool *holds_out, struct nw_step *step_out)
{
    const struct nw_job job = nw_model_job(model, layout);

    NW_TRY(nw_layout_check(layout, &job));
    if (scenario == NULL) {
        NW_TRY(nw_predict(&job, platform, layout, &model->scenario, step_out));
        *holds_out = step_out->fits != 0;
        return NW_OK;
    }
    NW_TRY(nw_predict_scenario(&job, platform, layout, scenario, step_out));
    *holds_out = holds(&job, platform, layout, step_out);
    return NW_OK;
}

nw_rc nw_fastest(const struct nw_model *model, const struct nw_platform *platform, int node_count,
                 int weak_base_ranks, const struct nw_scenario *scenario, bool *found_out,
                 struct nw_step *step_out)
{
    bool found = false, any = false;
    nw_rc failed = NW_OK;

    for (size_t s = 0; model->strategies[s] != NULL; s++) {
        struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[s]);
        struct nw_step step;
        bool fits;

        if (weak_base_ranks > 0) {
            layout.scaling = NW_SCALING_WEAK;
            layout.base_rank_count = weak_base_ranks;
        }
        const nw_rc rc = predict(model, platform, &layout, scenario, &fits, &step);

        if (rc == NW_EUSAGE) { /* this strategy alone may not go with the rest */
            failed = rc;
            continue;
        }
        NW_TRY(rc);
        any = true;
        /* Equal up to rounding: the simpler one, which stands first in the table. */
        if (fits && (!found || step.step_ns < step_out->step_ns * (1 - 1e-9))) {
            found = true;
            *step_out = step;
        }
    }
    *found_out = found;
    return any ? NW_OK : failed;
}

/* ---- one node count ------------------------------------------------------------------------ */

static void fill_cost(const struct nw_model *model, struct nw_choice *choice)
{
    const double deadline_s = model->terms.deadline_ns / 1e9;

    nw_upkeep_of(&model->job, &model->terms, &choice->strong, &choice->upkeep);
    choice->useful_tokens_per_s =
        nw_useful_tokens_per_s(&model->job, &model->terms, &choice->strong);
    choice->price_per_hour = nw_price_per_hour(&model->terms, choice->node_count);
    choice->cost_per_billion_tokens =
        nw_cost_per_billion_tokens(&model->terms, choice->node_count, choice->useful_tokens_per_s);
    choice->time_ns = model->job.tokens / choice->useful_tokens_per_s * 1e9;
    choice->deadline_tokens = choice->useful_tokens_per_s * deadline_s;
    choice->deadline_cost = choice->price_per_hour * deadline_s / 3600;
}

static struct nw_choice nothing_known(int node_count)
{
    return (struct nw_choice){.node_count = node_count,
                              .time_ns = NAN,
                              .cost = NAN,
                              .deadline_tokens = NAN,
                              .deadline_cost = NAN,
                              .cost_ratio = NAN,
                              .cost_ratio_low = NAN,
                              .cost_ratio_high = NAN,
                              .time_ratio = NAN,
                              .time_ratio_low = NAN,
                              .time_ratio_high = NAN,
                              .anchor_speedup = NAN,
                              .anchor_speedup_low = NAN,
                              .anchor_speedup_high = NAN,
                              .probability = NAN,
                              .in_time_probability = NAN,
                              .break_even_busbw_bytes_per_s = NAN,
                              .measured_busbw_bytes_per_s = NAN,
                              .price_even_per_further_node_hour = NAN,
                              .price_per_further_node_hour = NAN,
                              .token_even_count = NAN,
                              .least_bytes = NAN};
}

/* Strong scaling of one node count: pays is UNFIT, UNKNOWN or BATCH where there are no figures. */
static nw_rc look_at(const struct nw_model *model, const struct nw_platform *platform,
                     struct nw_choice *choice)
{
    const bool alone = model->node_count_count == 1;
    bool found;

    choice->rank_count =
        nw_model_layout(model, choice->node_count, model->strategies[0]).rank_count;
    choice->least_bytes = nw_least_memory(model, choice->node_count);
    const nw_rc rc =
        nw_fastest(model, platform, choice->node_count, 0, NULL, &found, &choice->strong);

    if (rc == NW_ENODEV && choice->node_count > 1) {
        const bool fits =
            platform->memory_bytes == 0 || choice->least_bytes <= (double)platform->memory_bytes;

        choice->pays = fits ? NW_PAYS_UNKNOWN : NW_PAYS_UNFIT;
        nw_clear_error();
        return NW_OK;
    }
    if (rc == NW_EUSAGE && choice->node_count > 1 && !alone) {
        choice->pays = NW_PAYS_BATCH;
        snprintf(choice->problem, sizeof choice->problem, "%.230s", nw_last_error()->text);
        nw_clear_error();
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
    NW_TRY(nw_fastest(model, platform, choice->node_count, base->rank_count, NULL,
                      &choice->weak_predicted, &choice->weak));
    if (!choice->weak_predicted)
        return NW_OK;
    choice->weak_speedup = nw_useful_tokens_per_s(&model->job, &model->terms, &choice->weak) /
                           base->useful_tokens_per_s;
    choice->weak_efficiency = choice->weak_speedup * base->rank_count / (double)choice->rank_count;
    return NW_OK;
}

/* ---- against the base ---------------------------------------------------------------------- */

static nw_pays verdict(const struct nw_terms *terms, const struct nw_choice *base,
                       const struct nw_choice *choice)
{
    const bool base_is_late = base->time_ns > terms->deadline_ns;
    const bool base_is_slow = base->strong.step_ns > terms->max_step_ns;

    if (choice->cost_ratio <= 1 + terms->max_extra_cost)
        return NW_PAYS_YES;
    if (base_is_late && choice->time_ns <= terms->deadline_ns)
        return NW_PAYS_DEADLINE;
    if (base_is_slow && choice->strong.step_ns <= terms->max_step_ns)
        return NW_PAYS_STEP;
    return NW_PAYS_NO;
}

static void fill_in_time(const struct nw_terms *terms, struct nw_choice *choice)
{
    const struct nw_step *step = &choice->strong;

    if (isfinite(terms->deadline_ns) && isfinite(choice->time_ns) && step->low_ns > 0)
        choice->in_time_probability = nw_probability_below(
            log(terms->deadline_ns / choice->time_ns), log(step->high_ns / step->low_ns) / 2);
}

/* Where the base is what was measured, only the ratio of the two is uncertain; else the prediction
 * that stands on it. */
static void fill_anchored(const struct nw_model *model, const struct nw_choice *base,
                          struct nw_choice *choice)
{
    const struct nw_anchor *anchor = &model->anchor;
    const struct nw_step *step = &choice->strong;

    if (!anchor->given || !choice->predicted)
        return;
    const bool same = base->rank_count == anchor->rank_count;
    const double low =
        same ? choice->time_ratio_low / choice->time_ratio : step->low_ns / step->step_ns;
    const double high =
        same ? choice->time_ratio_high / choice->time_ratio : step->high_ns / step->step_ns;

    choice->anchor_speedup =
        step->tokens_per_s /
        ((double)anchor->global_batch * (double)model->job.sequence / anchor->step_ns * 1e9);
    choice->anchor_speedup_low = choice->anchor_speedup / high;
    choice->anchor_speedup_high = choice->anchor_speedup / low;
}

static nw_rc hold_against(const struct nw_model *model, const struct nw_platform *platform,
                          const struct nw_choice *base, struct nw_choice *choice)
{
    const struct nw_comparison comparison = {
        .model = model, .platform = platform, .base = base, .choice = choice};

    choice->speedup = choice->useful_tokens_per_s / base->useful_tokens_per_s;
    choice->time_ratio = 1 / choice->speedup;
    choice->efficiency = choice->speedup * base->rank_count / (double)choice->rank_count;
    choice->cost_ratio =
        nw_total_cost(model, choice->node_count, base->node_count, choice->useful_tokens_per_s) /
        nw_total_cost(model, base->node_count, base->node_count, base->useful_tokens_per_s);
    NW_TRY(nw_fill_intervals(&comparison, 1 + model->terms.max_extra_cost, choice));
    nw_fill_price_even(model, base, choice);
    choice->pays = verdict(&model->terms, base, choice);
    return NW_OK;
}

static void be_base(const struct nw_model *model, bool smaller_unfit, struct nw_choice *choice)
{
    choice->speedup = choice->efficiency = choice->weak_speedup = choice->weak_efficiency = 1;
    choice->weak = choice->strong;
    choice->weak_predicted = true;
    choice->cost_ratio = choice->cost_ratio_low = choice->cost_ratio_high = 1;
    choice->time_ratio = choice->time_ratio_low = choice->time_ratio_high = 1;
    if (isfinite(model->job.tokens))
        choice->cost = nw_total_cost(model, choice->node_count, choice->node_count,
                                     choice->useful_tokens_per_s);
    if (smaller_unfit)
        choice->pays = NW_PAYS_MEMORY;
}

static nw_rc judge(const struct nw_model *model, const struct nw_platform *platform,
                   const struct nw_choice *base, bool smaller_unfit, struct nw_choice *choice)
{
    if (choice == base) {
        be_base(model, smaller_unfit, choice);
        fill_anchored(model, base, choice);
        fill_in_time(&model->terms, choice);
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
        fill_anchored(model, base, choice);
        fill_in_time(&model->terms, choice);
        if (isfinite(model->job.tokens))
            choice->cost = nw_total_cost(model, choice->node_count, base->node_count,
                                         choice->useful_tokens_per_s);
    }
    if (base->node_count > 1)
        return NW_OK; /* the wire between nodes moves both sides: no single break-even */
    const struct nw_comparison comparison = {
        .model = model, .platform = platform, .base = base, .choice = choice};

    return nw_break_even_of(&comparison, choice);
}

/* The first node count with figures; count: none. */
static size_t base_of(const struct nw_decision *decision)
{
    size_t base = 0;

    while (base < decision->count && !decision->choices[base].predicted)
        base++;
    return base;
}

/* The second node count; where the job does not fit on the first ones, the first it fits on. */
static size_t headline_of(const struct nw_decision *decision)
{
    const size_t second = decision->count > 1 ? 1 : 0;
    const size_t first_fit = decision->base < decision->count ? decision->base : 0;

    return first_fit > second ? first_fit : second;
}

static nw_rc decide(const struct nw_model *model, struct nw_decision *decision)
{
    const struct nw_platform platform = nw_model_platform(model);

    for (size_t i = 0; i < decision->count; i++) {
        decision->choices[i] = nothing_known(model->node_counts[i]);
        NW_TRY(look_at(model, &platform, &decision->choices[i]));
    }
    decision->base = base_of(decision);
    const struct nw_choice *base =
        decision->base < decision->count ? &decision->choices[decision->base] : NULL;

    for (size_t i = 0; i < decision->count; i++) {
        struct nw_choice *choice = &decision->choices[i];

        NW_TRY(judge(model, &platform, base, decision->choices[0].pays == NW_PAYS_UNFIT, choice));
        nw_fill_reasons(model, base, i > 0 ? choice - 1 : NULL, choice);
        decision->how |= choice->strong.how | choice->weak.how;
        decision->assumed |= choice->strong.assumed | choice->weak.assumed;
    }
    decision->fitting_node_count = model->rank_count > 0 ? 0 : nw_fewest_nodes(model);
    decision->headline = headline_of(decision);
    nw_fill_rentals(model, decision);
    const struct nw_choice *headline = &decision->choices[decision->headline];

    if (headline->pays == NW_PAYS_UNFIT)
        return nw_fill_ways_to_fit(model, headline->node_count, decision);
    if (headline->pays == NW_PAYS_MEMORY && decision->headline > 0)
        return nw_fill_ways_to_fit(model, headline[-1].node_count, decision);
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

const char *nw_rental_name(nw_rental rental)
{
    static const char *const names[NW_RENTAL_COUNT] = {
        [NW_RENTAL_HOUR] = "hour", [NW_RENTAL_MONTH] = "month", [NW_RENTAL_SPOT] = "spot"};

    return names[rental];
}
