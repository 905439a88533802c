/* What would make a job fit: every change predicted, ordered by its time. */
#include "model/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

nw_rc nw_fit_memory(const struct nw_fit_state *state, const struct nw_platform *platform,
                    struct nw_memory *memory_out)
{
    struct nw_deal deal;
    nw_assumed assumed = 0;

    NW_TRY(nw_layout_deal(&state->layout, &state->job, &deal));
    nw_memory_of(&state->job, &state->layout, deal.micro_batch, deal.micro_batch_count,
                 &platform->assumptions, memory_out, &assumed);
    return NW_OK;
}

/* ---- one change ---------------------------------------------------------------------------- */

struct search { /* what every change is held against */
    const struct nw_platform *platform;
    const struct nw_scenario *scenario;
    double card_bytes;
};

static double seconds_per_token(const struct search *search, const struct nw_fit_state *state)
{
    struct nw_step step;

    if (nw_predict(&state->job, search->platform, &state->layout, search->scenario, &step) !=
        NW_OK) {
        nw_clear_error();
        return NAN;
    }
    return step.tokens_per_s > 0 ? 1 / step.tokens_per_s : NAN;
}

/* What is offloaded by all GPUs of a node, where its memory is known. */
static bool host_holds(const struct nw_platform *platform, const struct nw_layout *layout,
                       const struct nw_memory *memory)
{
    const double ranks = ceil((double)layout->rank_count / layout->node_count);

    return platform->host_memory_bytes == 0 ||
           memory->host_bytes * ranks <= (double)platform->host_memory_bytes;
}

/* The change as often as it takes to fit; false: it changes nothing or cannot be dealt. */
static bool try_change(const struct search *search, const struct nw_fit_change *change,
                       const struct nw_fit_state *from, struct nw_fit_item *item)
{
    struct nw_fit_state next = *from;
    bool any = false;

    *item = (struct nw_fit_item){.change = change};
    while (change->apply(&next, search->platform)) {
        struct nw_memory memory;

        if (nw_fit_memory(&next, search->platform, &memory) != NW_OK) {
            nw_clear_error();
            break;
        }
        any = true;
        item->state = next;
        item->memory_bytes = memory.total_bytes;
        item->fits = memory.total_bytes <= search->card_bytes &&
                     host_holds(search->platform, &next.layout, &memory);
        if (item->fits || !change->repeats)
            break;
    }
    return any;
}

static void weigh(const struct search *search, double base_seconds, int base_ranks,
                  struct nw_fit_item *item)
{
    const double seconds = seconds_per_token(search, &item->state);

    item->step_ratio = seconds / base_seconds;
    item->time_ratio = item->step_ratio * item->state.layout.rank_count / base_ranks;
    if (item->change->text != NULL)
        snprintf(item->text, sizeof item->text, "%s (%s)", item->change->text,
                 item->change->option);
    else
        item->change->word(&item->state, item->text, sizeof item->text);
}

/* Unknown times last. */
static int by_usefulness(const void *left, const void *right)
{
    const struct nw_fit_item *a = left, *b = right;

    if (a->fits != b->fits)
        return a->fits ? -1 : 1;
    if (!a->fits)
        return (a->memory_bytes > b->memory_bytes) - (a->memory_bytes < b->memory_bytes);
    if (a->change->other_training != b->change->other_training)
        return a->change->other_training ? 1 : -1;
    if (isnan(a->time_ratio) != isnan(b->time_ratio))
        return isnan(a->time_ratio) ? 1 : -1;
    return (a->time_ratio > b->time_ratio) - (a->time_ratio < b->time_ratio);
}

/* ---- several changes ----------------------------------------------------------------------- */

struct combination { /* changes in the order that they are applied, each once */
    const struct nw_fit_change *changes[NW_FIT_MAX];
    size_t count;
};

static bool once(const struct search *search, const struct nw_fit_change *change,
                 const struct nw_fit_state *from, struct nw_fit_item *item)
{
    const struct nw_fit_change single = {.apply = change->apply};
    const bool any = try_change(search, &single, from, item);

    item->change = change;
    return any;
}

/* The change with the least time lost per byte saved. */
static bool cheapest(const struct search *search, const struct nw_fit_state *state, double bytes,
                     double seconds, bool numerics, struct nw_fit_item *best)
{
    double best_price = INFINITY;

    for (size_t i = 0; i < nw_fit_change_count; i++) {
        const struct nw_fit_change *change = &nw_fit_changes[i];
        struct nw_fit_item item;

        /* Another training is no way of running this one. */
        if (change->other_training || change->more_gpus || (change->other_numerics && !numerics) ||
            !once(search, change, state, &item) || item.memory_bytes >= bytes)
            continue;
        const double after = seconds_per_token(search, &item.state);
        const double lost = isnan(after) ? 1 : fmax(after / seconds - 1, 0);
        const double price = (lost + 1e-3) / (bytes - item.memory_bytes);

        if (price < best_price) {
            *best = item;
            best_price = price;
        }
    }
    return best_price < INFINITY;
}

/* All but one of them; false: it does not fit, or one has nothing to change. */
static bool fits_without(const struct search *search, const struct nw_fit_state *base,
                         const struct combination *all, size_t left_out)
{
    struct nw_fit_item item = {.state = *base};

    for (size_t i = 0; i < all->count; i++)
        if (i != left_out && !once(search, all->changes[i], &item.state, &item))
            return false;
    return item.fits;
}

/* What later changes made superfluous; changes of the numerics first, then from the last on, which
 * cost most. */
static void prune(const struct search *search, const struct nw_fit_state *base,
                  struct combination *all)
{
    for (int numerics = 1; numerics >= 0; numerics--)
        for (size_t i = all->count; i-- > 0;) {
            if ((int)all->changes[i]->other_numerics != numerics ||
                !fits_without(search, base, all, i))
                continue;
            memmove(&all->changes[i], &all->changes[i + 1],
                    (all->count - i - 1) * sizeof all->changes[0]);
            all->count--;
        }
}

/* Changes one by one until it fits, those of the numerics only when no other is left. */
static void combine(const struct search *search, const struct nw_fit_state *base, double base_bytes,
                    double base_seconds, struct nw_fit_advice *advice)
{
    struct combination all = {.count = 0};
    struct nw_fit_item last = {.state = *base, .memory_bytes = base_bytes};
    double seconds = base_seconds;

    while (all.count < NW_FIT_MAX && !last.fits) {
        struct nw_fit_item next;

        if (!cheapest(search, &last.state, last.memory_bytes, seconds, false, &next) &&
            !cheapest(search, &last.state, last.memory_bytes, seconds, true, &next))
            break;
        const double after = seconds_per_token(search, &next.state);

        seconds = isnan(after) ? seconds : after;
        all.changes[all.count++] = next.change;
        last = next;
    }
    advice->combination_fits = last.fits;
    if (last.fits)
        prune(search, base, &all);
    last = (struct nw_fit_item){.state = *base, .memory_bytes = base_bytes};
    for (size_t i = 0; i < all.count; i++) {
        struct nw_fit_item *item = &advice->combination[i];

        if (!once(search, all.changes[i], &last.state, item))
            break;
        weigh(search, base_seconds, base->layout.rank_count, item);
        last = *item;
        advice->combination_count++;
    }
}

nw_rc nw_fit_advise(const struct nw_model *model, const struct nw_layout *layout,
                    struct nw_fit_advice *advice_out)
{
    const struct nw_platform platform = nw_model_platform(model);
    const struct nw_fit_state base = {.job = nw_model_job(model, layout), .layout = *layout};
    const struct search search = {.platform = &platform,
                                  .scenario = &model->scenario,
                                  .card_bytes = (double)platform.memory_bytes};
    struct nw_memory memory;

    NW_TRY(nw_fit_memory(&base, &platform, &memory));
    memset(advice_out, 0, sizeof *advice_out);
    advice_out->fits = platform.memory_bytes == 0 || memory.total_bytes <= search.card_bytes;
    if (advice_out->fits)
        return NW_OK;
    const double seconds = seconds_per_token(&search, &base);
    bool any_fits = false;

    for (size_t i = 0; i < nw_fit_change_count && advice_out->count < NW_FIT_MAX; i++) {
        struct nw_fit_item *item = &advice_out->items[advice_out->count];

        if (!try_change(&search, &nw_fit_changes[i], &base, item) ||
            item->memory_bytes >= memory.total_bytes)
            continue;
        weigh(&search, seconds, layout->rank_count, item);
        any_fits =
            any_fits || (item->fits && !item->change->other_training && !item->change->more_gpus);
        advice_out->count++;
    }
    qsort(advice_out->items, advice_out->count, sizeof advice_out->items[0], by_usefulness);
    if (!any_fits)
        combine(&search, &base, memory.total_bytes, seconds, advice_out);
    return NW_OK;
}
