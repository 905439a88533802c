/* How few nodes hold the job. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/break_even.h"
#include "model/fit.h"

#define MOST_NODES_LOOKED 4096

#define MOST_STAGES 64

/* As the batch is dealt; NAN: it cannot be, or the degrees contradict each other. */
static double memory_of(const struct nw_model *model, const struct nw_layout *layout)
{
    const struct nw_fit_state state = {.job = nw_model_job(model, layout), .layout = *layout};
    const int cut = nw_layout_tp(layout) * nw_layout_pp(layout) * nw_layout_cp(layout);
    struct nw_memory memory;

    if (layout->rank_count % cut != 0 ||
        state.job.global_batch % (uint64_t)(layout->rank_count / cut) != 0)
        return NAN; /* told apart here: it is asked thousands of times */
    if (nw_layout_check(layout, &state.job) != NW_OK ||
        nw_fit_memory(&state, &model->platform, &memory) != NW_OK) {
        nw_clear_error();
        return NAN;
    }
    return memory.total_bytes;
}

/* Tensor parallel inside the nodes, pipeline stages across them; only where the framework cuts so
 * and the degrees were left open. */
static double least_of_mixes(const struct nw_model *model, struct nw_layout layout)
{
    const bool open = model->parallel.tp <= 1 && model->parallel.pp <= 1 &&
                      layout.profile != NULL && strcmp(layout.profile->name, "megatron") == 0;
    double least = memory_of(model, &layout);

    for (int tp = 1; open && tp <= model->platform.fabric.gpus_per_node; tp *= 2)
        for (int pp = 1; pp <= MOST_STAGES && tp * pp <= layout.rank_count; pp *= 2) {
            layout.parallel.tp = tp;
            layout.parallel.pp = pp;
            if (layout.rank_count % (tp * pp) == 0)
                least = fmin(least, memory_of(model, &layout));
        }
    return least;
}

/* The strategy that needs least, as asked. */
static bool least_layout(const struct nw_model *model, int node_count, struct nw_layout *layout_out)
{
    double least = NAN;

    for (size_t s = 0; model->strategies[s] != NULL; s++) {
        const struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[s]);
        const double bytes = memory_of(model, &layout);

        if (isnan(bytes) || (!isnan(least) && bytes >= least))
            continue;
        least = bytes;
        *layout_out = layout;
    }
    return !isnan(least);
}

double nw_least_memory(const struct nw_model *model, int node_count)
{
    double least = NAN;

    for (size_t s = 0; model->strategies[s] != NULL; s++)
        least = fmin(
            least, least_of_mixes(model, nw_model_layout(model, node_count, model->strategies[s])));
    return least;
}

/* Several changes together, where no single one is enough. */
static void take_combination(const struct nw_fit_advice *advice, const struct nw_strategy *strategy,
                             struct nw_decision *decision)
{
    const struct nw_fit_item *last = &advice->combination[advice->combination_count - 1];
    struct nw_fit_way way = {
        .strategy = strategy, .memory_bytes = last->memory_bytes, .time_ratio = last->time_ratio};
    size_t length = 0;

    for (size_t i = 0; i < advice->combination_count; i++) {
        const struct nw_fit_item *item = &advice->combination[i];

        if (item->change->more_gpus || item->change->other_training)
            return;
        length += (size_t)snprintf(way.text + length, sizeof way.text - length, "%s%s",
                                   i > 0 ? " and " : "", item->text);
        if (length >= sizeof way.text)
            return;
    }
    decision->fit_ways[0] = way;
    decision->fit_way_count = 1;
}

nw_rc nw_fill_ways_to_fit(const struct nw_model *model, int node_count,
                          struct nw_decision *decision)
{
    struct nw_layout layout;
    struct nw_fit_advice advice;

    decision->fit_way_nodes = node_count;
    if (!least_layout(model, node_count, &layout))
        return NW_OK;
    const nw_rc rc = nw_fit_advise(model, &layout, &advice);

    if (rc != NW_OK) { /* a batch that cannot be dealt: nothing to advise */
        nw_clear_error();
        return rc == NW_ENOMEM ? rc : NW_OK;
    }
    for (size_t i = 0; i < advice.count && decision->fit_way_count < NW_FIT_WAYS; i++) {
        const struct nw_fit_item *item = &advice.items[i];
        struct nw_fit_way *way = &decision->fit_ways[decision->fit_way_count];

        if (!item->fits || item->change->more_gpus || item->change->other_training)
            continue;
        *way = (struct nw_fit_way){.strategy = layout.strategy,
                                   .memory_bytes = item->memory_bytes,
                                   .time_ratio = item->time_ratio};
        snprintf(way->text, sizeof way->text, "%s", item->text);
        decision->fit_way_count++;
    }
    if (decision->fit_way_count == 0 && advice.combination_fits && advice.combination_count > 0)
        take_combination(&advice, layout.strategy, decision);
    return NW_OK;
}

static bool any_fits(const struct nw_model *model, int node_count)
{
    return model->platform.memory_bytes == 0 ||
           nw_least_memory(model, node_count) <= (double)model->platform.memory_bytes;
}

/* One after the other: most counts cannot be dealt the batch, which is seen at once. */
int nw_fewest_nodes(const struct nw_model *model)
{
    for (int nodes = 1; nodes <= MOST_NODES_LOOKED; nodes++)
        if (any_fits(model, nodes))
            return nodes;
    return 0;
}
