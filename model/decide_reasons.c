/* Why a node count pays or not, as a list of values. */
#include <math.h>

#include "model/break_even.h"

/* A share of the step that waits for the wire, and a share of time lost to failures, below which
 * they are no reason. */
#define WAIT_WORTH_NAMING     0.10
#define FAILURES_WORTH_NAMING 0.005

static const struct {
    const char *key;
    bool against;
} reasons[NW_REASON_COUNT] = {
#define X(reason, name, is_against, unit) [reason] = {.key = name, .against = is_against},
    NW_REASON_MAP(X)
#undef X
};

const char *nw_reason_key(nw_reason_kind kind)
{
    return reasons[kind].key;
}

bool nw_reason_is_against(nw_reason_kind kind)
{
    return reasons[kind].against;
}

static void add(struct nw_choice *choice, bool holds, nw_reason_kind kind, double value,
                double limit)
{
    if (holds && choice->reason_count < NW_REASON_COUNT)
        choice->reasons[choice->reason_count++] =
            (struct nw_reason){.kind = kind, .value = value, .limit = limit};
}

/* What fewer nodes lack. */
static void add_lacks(const struct nw_model *model, const struct nw_choice *base,
                      struct nw_choice *choice)
{
    const struct nw_terms *terms = &model->terms;
    const struct nw_upkeep *upkeep = &base->upkeep;

    add(choice, base->time_ns > terms->deadline_ns && choice->time_ns <= terms->deadline_ns,
        NW_REASON_DEADLINE, base->time_ns, terms->deadline_ns);
    add(choice,
        base->strong.step_ns > terms->max_step_ns && choice->strong.step_ns <= terms->max_step_ns,
        NW_REASON_STEP, base->strong.step_ns, terms->max_step_ns);
    add(choice, upkeep->saturated && !terms->storage.shared, NW_REASON_LOADING,
        upkeep->loading_needed_bytes_per_s, upkeep->loading_bytes_per_s);
}

static void add_for(const struct nw_model *model, const struct nw_choice *base,
                    struct nw_choice *choice)
{
    const double limit = 1 + model->terms.max_extra_cost;

    add_lacks(model, base, choice);
    add(choice, choice->cost_ratio < 1 - 1e-9, NW_REASON_CHEAPER, choice->cost_ratio, 1);
    add(choice, choice->speedup > 1 + 1e-9, NW_REASON_FASTER, choice->speedup,
        choice->price_per_hour / base->price_per_hour / limit);
}

static void add_against(const struct nw_model *model, const struct nw_choice *base,
                        struct nw_choice *choice)
{
    const struct nw_terms *terms = &model->terms;
    const struct nw_step *step = &choice->strong;
    const double limit = 1 + terms->max_extra_cost;
    const double waits = (step->exposed_ns + step->overlap_loss_ns) / step->step_ns;
    const double price_ratio = choice->price_per_hour / base->price_per_hour;
    const bool short_run =
        choice->token_even == NW_BREAK_EVEN_AT && model->job.tokens < choice->token_even_count;

    add(choice, choice->cost_ratio > 1 + 1e-9, NW_REASON_COST, choice->cost_ratio, limit);
    add(choice, waits >= WAIT_WORTH_NAMING, NW_REASON_WIRE, waits, 1 - 1 / limit);
    add(choice,
        price_ratio / choice->speedup > limit && choice->weak_predicted &&
            price_ratio / choice->weak_speedup <= limit,
        NW_REASON_LARGER_BATCH, (double)choice->weak.global_batch, (double)step->global_batch);
    add(choice, short_run, NW_REASON_ONE_OFF, choice->token_even_count, model->job.tokens);
    add(choice, base->upkeep.useful - choice->upkeep.useful > FAILURES_WORTH_NAMING,
        NW_REASON_FAILURES, choice->upkeep.useful, base->upkeep.useful);
    add(choice, choice->upkeep.saturated && terms->storage.shared, NW_REASON_SHARED_STORAGE,
        choice->upkeep.loading_needed_bytes_per_s, choice->upkeep.loading_bytes_per_s);
    add(choice, choice->time_ns > terms->deadline_ns, NW_REASON_LATE_TOO, choice->time_ns,
        terms->deadline_ns);
    add(choice, step->step_ns > terms->max_step_ns, NW_REASON_SLOW_TOO, step->step_ns,
        terms->max_step_ns);
}

/* The global batch is dealt to so many copies of the model; NAN: that is not what is wrong. */
static double batch_multiple(const struct nw_model *model, int node_count)
{
    const struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[0]);
    const int copies = nw_layout_dp(&layout);

    return copies > 0 && model->job.global_batch % (uint64_t)copies != 0 ? copies : NAN;
}

/* `smaller`: the next smaller node count, NULL: none. */
void nw_fill_reasons(const struct nw_model *model, const struct nw_choice *base,
                     const struct nw_choice *smaller, struct nw_choice *choice)
{
    const double card = (double)model->platform.memory_bytes;

    choice->reason_count = 0;
    add(choice, choice->pays == NW_PAYS_MEMORY && smaller != NULL, NW_REASON_MEMORY,
        smaller != NULL ? smaller->least_bytes : NAN, card);
    add(choice, choice->pays == NW_PAYS_UNFIT, NW_REASON_UNFIT, choice->least_bytes, card);
    add(choice, choice->pays == NW_PAYS_BATCH, NW_REASON_BATCH, (double)model->job.global_batch,
        batch_multiple(model, choice->node_count));
    add(choice,
        choice->pays == NW_PAYS_UNKNOWN || (choice->pays == NW_PAYS_MEMORY && !choice->predicted),
        NW_REASON_UNMEASURED, NAN, NAN);
    if (base == NULL || choice == base || !choice->predicted)
        return;
    add_for(model, base, choice);
    add_against(model, base, choice);
}
