/* The search: loops over the space, the closed form inside. Whatever does not depend on an inner
 * loop is made outside of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/break_even.h"
#include "model/search_parts.h"

struct search {
    struct nw_search_state state;
    struct nw_cut cut;                  /* the current one */
    struct nw_quick_shape (*shapes)[3]; /* of it, by micro-batch and recomputation; owned */
    struct nw_stage_counts *counts;     /* of the current pipeline, by virtual stages; owned */
    struct nw_prices prices;
    int per_node; /* ranks, that the shapes stand for */
};

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the best so far ------------------------------------------------------------------------- */

static void swap(struct nw_search_candidate *a, struct nw_search_candidate *b)
{
    const struct nw_search_candidate kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_down(struct nw_best *best)
{
    for (int i = 0, child = 1; child < best->count; child = 2 * i + 1) {
        if (child + 1 < best->count && best->items[child + 1].key > best->items[child].key)
            child++;
        if (best->items[i].key >= best->items[child].key)
            return;
        swap(&best->items[i], &best->items[child]);
        i = child;
    }
}

static void sift_up(struct nw_best *best)
{
    for (int i = best->count - 1; i > 0 && best->items[(i - 1) / 2].key < best->items[i].key;
         i = (i - 1) / 2)
        swap(&best->items[i], &best->items[(i - 1) / 2]);
}

static bool would_enter(const struct nw_best *best, double key)
{
    return best->limit > 0 && (best->count < best->limit || key < best->items[0].key);
}

static void enter(struct nw_best *best, const struct nw_search_candidate *candidate, double key)
{
    if (best->count < best->limit) {
        best->items[best->count] = *candidate;
        best->items[best->count++].key = key;
        sift_up(best);
        return;
    }
    best->items[0] = *candidate;
    best->items[0].key = key;
    sift_down(best);
}

/* ---- the loops ------------------------------------------------------------------------------- */

/* What the whole check and the whole memory say. */
static bool does_fit(struct nw_search_state *state, const struct nw_search_candidate *candidate,
                     double m)
{
    const double card = (double)state->platform.memory_bytes;
    struct nw_memory memory;
    uint64_t assumed = 0;

    if (nw_layout_check(&candidate->layout, &state->job) != NW_OK) {
        nw_clear_error();
        return false;
    }
    if (card == 0)
        return true;
    nw_memory_of(&state->job, &candidate->layout, candidate->micro_batch, (uint64_t)m,
                 &state->platform.assumptions, &memory, &assumed);
    const double host =
        memory.host_bytes * candidate->layout.rank_count / candidate->layout.node_count;

    if (memory.total_bytes <= card)
        return state->platform.host_memory_bytes == 0 ||
               host <= (double)state->platform.host_memory_bytes;
    if (!(memory.total_bytes >= state->nearest_bytes)) {
        state->nearest_bytes = memory.total_bytes;
        state->nearest = candidate->layout;
    }
    return false;
}

static void consider(struct nw_search_state *state, const struct nw_placement *placement,
                     const struct nw_quick_shape *shape, uint64_t micro_batch, double m,
                     double price, struct nw_best *own)
{
    struct nw_best *fastest = &state->bests[0], *cheapest = &state->bests[1];
    const double card = (double)state->platform.memory_bytes;
    const double ns = nw_quick_ns(placement, shape, m);
    const bool fast = would_enter(fastest, ns), cheap = would_enter(cheapest, ns * price);
    const bool first = would_enter(own, ns);

    state->seen++;
    /* Until something fits, what comes nearest is looked for. */
    const bool none = fastest->count == 0;

    if ((!fast && !cheap && !first) ||
        (card > 0 && !none && nw_quick_bytes(placement, shape, m) > card))
        return;
    const struct nw_search_candidate candidate = {.quick_ns = ns,
                                                  .layout = placement->layout,
                                                  .micro_batch = micro_batch,
                                                  .recompute = state->job.recompute,
                                                  .offload = state->job.offload};

    if (none && card > 0) {
        const double least = nw_quick_bytes(placement, shape, m);

        if (least > card && least >= state->nearest_bytes)
            return;
    }
    if (!does_fit(state, &candidate, m))
        return;
    if (fast)
        enter(fastest, &candidate, ns);
    if (cheap)
        enter(cheapest, &candidate, ns * price);
    if (first)
        enter(own, &candidate, ns);
}

/* All micro-batches and recomputations of one placement. */
static nw_rc look_at_placement(struct search *search, const struct nw_placement *placement,
                               uint64_t share, double price, struct nw_best *own)
{
    struct nw_search_state *state = &search->state;
    const struct nw_space *space = state->space;

    for (int b = 0; b < space->micro_batch_count; b++) {
        const uint64_t micro_batch = space->micro_batches[b];

        if (share % micro_batch != 0 ||
            (placement->virtual_stages > 1 && share / micro_batch % (uint64_t)placement->pp != 0))
            continue;
        for (int r = 0; r < space->recompute_count; r++) {
            struct nw_quick_shape *shape = &search->shapes[b][r];

            state->job.recompute = space->recomputes[r];
            if (!shape->made)
                NW_TRY(nw_quick_shape_make(&search->cut, &state->job, &search->prices, micro_batch,
                                           shape));
            consider(state, placement, shape, micro_batch, (double)(share / micro_batch), price,
                     own);
        }
    }
    return NW_OK;
}

/* Every offload and virtual stage count of one way. */
static nw_rc look_at_way(struct search *search, const struct nw_layout *layout, struct nw_best *own)
{
    struct nw_search_state *state = &search->state;
    const struct nw_space *space = state->space;
    const uint64_t share = state->job.global_batch / (uint64_t)nw_layout_dp(layout);
    const double price = nw_price_per_hour(&state->model->terms, layout->node_count);
    const int most = nw_layout_pp(layout) > 1 ? space->virtual_count : 1;

    for (int o = 0; o < space->offload_count; o++) {
        const struct nw_stage_counts *before = NULL;
        struct nw_quick_messages messages;
        struct nw_placement placement;

        state->job.offload = space->offloads[o];
        if (nw_layout_check(layout, &state->job) != NW_OK) {
            nw_clear_error();
            continue;
        }
        NW_TRY(nw_placement_make(&search->cut, &state->job, layout, &search->prices, &placement));
        for (int v = 0; v < most; v++) {
            const struct nw_stage_counts *counts = &search->counts[v];

            if (!counts->valid)
                continue;
            if (before == NULL || memcmp(before->units[before->most], counts->units[counts->most],
                                         sizeof counts->units[0]) != 0)
                NW_TRY(nw_quick_messages_make(&search->cut, &state->job, layout, counts,
                                              &search->prices, &messages));
            before = counts;
            nw_placement_take(&search->cut, &state->job, counts, &messages, &placement);
            NW_TRY(look_at_placement(search, &placement, share, price, own));
        }
    }
    return NW_OK;
}

static nw_rc look_at_nodes(struct search *search, struct nw_layout layout, int node_count)
{
    struct nw_search_state *state = &search->state;
    const struct nw_space *space = state->space;
    const struct nw_layout wanted = nw_model_layout(state->model, node_count, NULL);
    const int cut = nw_layout_tp(&layout) * nw_layout_pp(&layout) * nw_layout_cp(&layout);

    layout.node_count = node_count;
    layout.rank_count = layout.base_rank_count = wanted.rank_count;
    if (layout.rank_count / node_count != search->per_node || layout.rank_count % cut != 0 ||
        state->job.global_batch % (uint64_t)nw_layout_dp(&layout) != 0 ||
        nw_layout_reduce_count(&layout) % nw_layout_ep(&layout) != 0)
        return NW_OK;
    for (int w = 0; w < space->way_count; w++) {
        if (space->ways[w].profile != layout.profile)
            continue;
        layout.strategy = space->ways[w].strategy;
        for (int s = 0; s < space->shard_count; s++) {
            layout.parallel.shard_count = space->shards[s];
            if (nw_space_takes_shards(space, &layout))
                NW_TRY(look_at_way(search, &layout, &state->bests[2 + w]));
        }
    }
    return NW_OK;
}

/* Which virtual stages the layers can be dealt to: the check of a pipeline alone says. */
static void count_stages(struct search *search, int pp)
{
    const struct nw_space *space = search->state.space;

    for (int v = 0; v < (pp > 1 ? space->virtual_count : 1); v++) {
        const int virtual_stages = pp > 1 ? space->virtual_stages[v] : 1;
        const struct nw_layout alone = {.node_count = 1,
                                        .rank_count = pp,
                                        .parallel = {.pp = pp, .virtual_stages = virtual_stages}};

        search->counts[v] = nw_stage_counts_of(&search->cut, pp, virtual_stages);
        if (nw_layout_check(&alone, &search->state.job) != NW_OK) {
            search->counts[v].valid = false;
            nw_clear_error();
        }
    }
}

static nw_rc look_at_pipelines(struct search *search, struct nw_layout layout)
{
    const struct nw_space *space = search->state.space;

    for (int p = 0; p < space->pp_count; p++) {
        layout.parallel.pp = space->pp[p];
        layout.parallel.virtual_stages = 1;
        count_stages(search, space->pp[p]);
        for (int n = 0; n < space->node_count_count; n++)
            NW_TRY(look_at_nodes(search, layout, space->node_counts[n]));
    }
    return NW_OK;
}

/* Can the model be cut so at all? */
static bool is_cut(const struct nw_layout *layout, const struct nw_job *job)
{
    const struct nw_layout alone = {
        .node_count = 1,
        .rank_count = nw_layout_tp(layout) * nw_layout_cp(layout) * nw_layout_ep(layout),
        .parallel = {
            .tp = layout->parallel.tp, .cp = layout->parallel.cp, .ep = layout->parallel.ep}};

    if (nw_layout_check(&alone, job) == NW_OK)
        return true;
    nw_clear_error();
    return false;
}

/* One cut of the layers: the same units and shapes for all pipelines, node counts and ways. */
static nw_rc look_at_cut(struct search *search, struct nw_layout layout)
{
    struct nw_search_state *state = &search->state;
    const struct nw_space *space = state->space;

    state->job.offload = space->offloads[0];
    state->job.recompute = space->recomputes[0];
    if (!is_cut(&layout, &state->job))
        return NW_OK;
    for (int n = 0; n < space->node_count_count;
         n++) { /* all have as many GPUs, or one node count */
        const struct nw_layout at = nw_model_layout(state->model, space->node_counts[n], NULL);
        nw_rc rc;

        if (n > 0 && at.rank_count / at.node_count == search->per_node)
            continue;
        search->per_node = at.rank_count / at.node_count;
        layout.node_count = at.node_count;
        layout.rank_count = layout.base_rank_count = at.rank_count;
        layout.parallel.pp = layout.parallel.virtual_stages = 1;
        memset(search->shapes, 0, (size_t)space->micro_batch_count * sizeof *search->shapes);
        NW_TRY(nw_cut_make(&state->job, &state->platform, &layout, &state->model->scenario,
                           &search->cut));
        rc = look_at_pipelines(search, layout);
        nw_cut_free(&search->cut);
        NW_TRY(rc);
    }
    return NW_OK;
}

static nw_rc look_at_profile(struct search *search, const struct nw_profile *profile)
{
    struct nw_search_state *state = &search->state;
    const struct nw_space *space = state->space;
    struct nw_layout layout = nw_model_layout(state->model, space->node_counts[0], NULL);

    layout.profile = profile;
    state->job = nw_model_job(state->model, &layout);
    for (int t = 0; t < space->tp_count; t++) {
        for (int c = 0; c < space->cp_count; c++) {
            for (int e = 0; e < space->ep_count; e++) {
                for (int s = 0; s < space->sequence_count; s++) {
                    layout.parallel.tp = space->tp[t];
                    layout.parallel.cp = space->cp[c];
                    layout.parallel.ep = space->ep[e];
                    layout.parallel.sequence_parallel = space->sequence_parallel[s];
                    if (space->tp[t] == 1 && s > 0)
                        continue;
                    if (space->tp[t] == 1)
                        layout.parallel.sequence_parallel =
                            state->model->parallel.sequence_parallel;
                    NW_TRY(look_at_cut(search, layout));
                }
            }
        }
    }
    return NW_OK;
}

static bool is_first_of_profile(const struct nw_space *space, int way)
{
    for (int w = 0; w < way; w++)
        if (space->ways[w].profile == space->ways[way].profile)
            return false;
    return true;
}

static nw_rc look_at_all(struct search *search, nw_search_progress progress, void *context)
{
    const struct nw_space *space = search->state.space;

    for (int w = 0; w < space->way_count; w++) {
        if (!is_first_of_profile(space, w))
            continue;
        NW_TRY(look_at_profile(search, space->ways[w].profile));
        if (progress != NULL)
            progress(context, (double)(w + 1) / space->way_count, search->state.seen);
    }
    return NW_OK;
}

static nw_rc open_search(const struct nw_model *model, const struct nw_space *space,
                         struct search *search)
{
    struct nw_search_state *state = &search->state;

    state->model = model;
    state->space = space;
    state->platform = nw_model_platform(model);
    state->job = model->job;
    state->nearest_bytes = NAN;
    state->best_count = 2 + space->way_count;
    for (int i = 0; i < state->best_count; i++) {
        struct nw_best *best = &state->bests[i];

        /* With one node count the cheapest is the fastest. */
        if (i < 2)
            best->limit = space->node_count_count > 1 ? NW_SEARCH_KEPT / 2
                          : i == 0                    ? NW_SEARCH_KEPT
                                                      : 0;
        else
            best->limit = NW_SEARCH_EACH;
        best->items = calloc((size_t)best->limit + 1, sizeof *best->items);
        if (best->items == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the best %d plans", best->limit);
    }
    search->shapes = calloc((size_t)space->micro_batch_count + 1, sizeof *search->shapes);
    search->counts = calloc((size_t)space->virtual_count + 1, sizeof *search->counts);
    if (search->shapes == NULL || search->counts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the search");
    return nw_prices_make(&state->platform.fabric, &model->scenario, &search->prices);
}

nw_rc nw_search(const struct nw_model *model, const struct nw_space *space, size_t show,
                nw_search_progress progress, void *context, struct nw_search_result *result_out)
{
    struct search *search = calloc(1, sizeof *search);
    struct nw_search_result result = {0};
    const double start = seconds_of(CLOCK_MONOTONIC);
    const double cpu_start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

    if (search == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the search");
    nw_rc rc = open_search(model, space, search);

    if (rc == NW_OK)
        rc = look_at_all(search, progress, context);
    result.seen = search->state.seen;
    result.quick_s = seconds_of(CLOCK_MONOTONIC) - start;
    result.quick_cpu_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    if (rc == NW_OK)
        rc = nw_search_rank(&search->state, show, &result);
    result.exact_s = seconds_of(CLOCK_MONOTONIC) - start - result.quick_s;
    nw_prices_free(&search->prices);
    for (int i = 0; i < search->state.best_count; i++)
        free(search->state.bests[i].items);
    free(search->shapes);
    free(search->counts);
    free(search);
    if (rc != NW_OK) {
        nw_search_free(&result);
        return rc;
    }
    *result_out = result;
    return NW_OK;
}

void nw_search_free(struct nw_search_result *result)
{
    free(result->items);
    *result = (struct nw_search_result){0};
}
