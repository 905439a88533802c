/* The search: loops over the space, the closed form inside, the best predicted anew. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/search_parts.h"

#define KEEP 500 /* by time, and as many by cost: the best thousand */

struct candidate {
    double key, quick_ns;
    struct nw_layout layout;
    uint64_t micro_batch;
    nw_recompute recompute;
    struct nw_offload offload;
};

struct heap { /* the worst on top */
    struct candidate items[KEEP];
    int count;
};

struct search {
    const struct nw_model *model;
    const struct nw_space *space;
    struct nw_platform platform;
    struct nw_job job;                  /* recompute and offload of the current one */
    struct nw_build cut;                /* units of the current cut; owned */
    struct nw_quick_shape (*shapes)[3]; /* of it, by micro-batch and recomputation */
    struct heap fastest, cheapest;
    double nearest_bytes; /* least memory of what did not fit */
    struct nw_layout nearest;
    uint64_t seen, too_big;
    size_t show; /* that are completed */
};

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the best so far ------------------------------------------------------------------------- */

static void sift_down(struct heap *heap)
{
    for (int i = 0, child = 1; child < heap->count; child = 2 * i + 1) {
        if (child + 1 < heap->count && heap->items[child + 1].key > heap->items[child].key)
            child++;
        if (heap->items[i].key >= heap->items[child].key)
            return;
        const struct candidate swapped = heap->items[i];

        heap->items[i] = heap->items[child];
        heap->items[child] = swapped;
        i = child;
    }
}

static void sift_up(struct heap *heap)
{
    for (int i = heap->count - 1; i > 0 && heap->items[(i - 1) / 2].key < heap->items[i].key;) {
        const struct candidate swapped = heap->items[i];

        heap->items[i] = heap->items[(i - 1) / 2];
        heap->items[(i - 1) / 2] = swapped;
        i = (i - 1) / 2;
    }
}

static bool would_enter(const struct heap *heap, double key)
{
    return heap->count < KEEP || key < heap->items[0].key;
}

static void enter(struct heap *heap, const struct candidate *candidate, double key)
{
    if (heap->count < KEEP) {
        heap->items[heap->count] = *candidate;
        heap->items[heap->count++].key = key;
        sift_up(heap);
        return;
    }
    heap->items[0] = *candidate;
    heap->items[0].key = key;
    sift_down(heap);
}

/* ---- the loops ------------------------------------------------------------------------------- */

/* 1 when no price was given: nodes cost the same. */
static double price_of(const struct nw_model *model, int node_count)
{
    const struct nw_terms *terms = &model->terms;

    return isfinite(terms->price_per_node_hour) && terms->price_per_node_hour > 0
               ? terms->price_per_node_hour * node_count +
                     terms->extra_per_further_node_hour * (node_count - 1) + terms->extra_per_hour +
                     (node_count > 1 ? terms->extra_when_several_per_hour : 0)
               : node_count;
}

static bool does_fit(struct search *search, const struct candidate *candidate, double share)
{
    const double card = (double)search->platform.memory_bytes;
    struct nw_memory memory;
    uint64_t assumed = 0;

    if (card == 0)
        return true;
    nw_memory_of(&search->job, &candidate->layout, candidate->micro_batch,
                 (uint64_t)(share / (double)candidate->micro_batch), &search->platform.assumptions,
                 &memory, &assumed);
    if (memory.total_bytes <= card)
        return true;
    if (!(memory.total_bytes >= search->nearest_bytes)) {
        search->nearest_bytes = memory.total_bytes;
        search->nearest = candidate->layout;
    }
    return false;
}

static void consider(struct search *search, const struct nw_placement *placement,
                     const struct nw_quick_shape *shape, uint64_t micro_batch, double share,
                     const double in_flight[NW_ENDS], double price)
{
    const double card = (double)search->platform.memory_bytes;
    const double m = share / (double)micro_batch;
    const double ns = nw_quick_ns(placement, shape, m);
    const bool fast = would_enter(&search->fastest, ns);
    const bool cheap = would_enter(&search->cheapest, ns * price);

    search->seen++;
    if (!fast && !cheap)
        return;
    if (card > 0 && nw_quick_bytes(placement, shape, in_flight, m) > card) {
        search->too_big++;
        return;
    }
    const struct candidate candidate = {.quick_ns = ns,
                                        .layout = placement->layout,
                                        .micro_batch = micro_batch,
                                        .recompute = search->job.recompute,
                                        .offload = search->job.offload};

    if (!does_fit(search, &candidate, share)) {
        search->too_big++;
        return;
    }
    if (fast)
        enter(&search->fastest, &candidate, ns);
    if (cheap)
        enter(&search->cheapest, &candidate, ns * price);
}

static nw_rc shape_at(struct search *search, const struct nw_layout *layout, int batch, int again,
                      const struct nw_quick_shape **shape_out)
{
    struct nw_quick_shape *shape = &search->shapes[batch][again];
    struct nw_layout cut = *layout;

    cut.parallel.pp = cut.parallel.virtual_stages = 1;
    if (!shape->made)
        NW_TRY(nw_quick_shape_make(search->model, &search->platform, &search->job, &cut,
                                   search->space->micro_batches[batch], shape));
    *shape_out = shape;
    return NW_OK;
}

/* All micro-batches and recomputations of one placement. */
static nw_rc look_at_placement(struct search *search, const struct nw_placement *placement)
{
    const struct nw_space *space = search->space;
    const uint64_t dp = (uint64_t)nw_layout_dp(&placement->layout);
    const uint64_t share = search->job.global_batch / dp;
    const double price = price_of(search->model, placement->layout.node_count);

    for (int b = 0; b < space->micro_batch_count; b++) {
        const uint64_t micro_batch = space->micro_batches[b];
        double in_flight[NW_ENDS];

        if (share % micro_batch != 0 ||
            (placement->virtual_stages > 1 && share / micro_batch % (uint64_t)placement->pp != 0))
            continue;
        nw_in_flight(&search->job, placement, (double)(share / micro_batch), in_flight);
        for (int r = 0; r < space->recompute_count; r++) {
            const struct nw_quick_shape *shape;

            search->job.recompute = space->recomputes[r];
            NW_TRY(shape_at(search, &placement->layout, b, r, &shape));
            consider(search, placement, shape, micro_batch, (double)share, in_flight, price);
        }
    }
    return NW_OK;
}

/* Every way and offload of one layout. A layout that contradicts itself is left out. */
static nw_rc look_at_layout(struct search *search, struct nw_layout layout,
                            const struct nw_profile *profile)
{
    const struct nw_space *space = search->space;

    if (layout.rank_count % (layout.parallel.tp * layout.parallel.pp * layout.parallel.cp) != 0 ||
        search->job.global_batch % (uint64_t)nw_layout_dp(&layout) != 0)
        return NW_OK;
    for (int w = 0; w < space->way_count; w++) {
        if (space->ways[w].profile != profile)
            continue;
        layout.strategy = space->ways[w].strategy;
        layout.profile = profile;
        for (int o = 0; o < space->offload_count; o++) {
            struct nw_placement placement;

            search->job.offload = space->offloads[o];
            if (nw_layout_check(&layout, &search->job) != NW_OK) {
                nw_clear_error();
                continue;
            }
            NW_TRY(nw_placement_make(&search->cut, &search->job, &layout, &placement));
            NW_TRY(look_at_placement(search, &placement));
        }
    }
    return NW_OK;
}

static nw_rc look_at_pipelines(struct search *search, struct nw_layout layout,
                               const struct nw_profile *profile)
{
    const struct nw_space *space = search->space;

    for (int p = 0; p < space->pp_count; p++) {
        for (int v = 0; v < (space->pp[p] > 1 ? space->virtual_count : 1); v++) {
            layout.parallel.pp = space->pp[p];
            layout.parallel.virtual_stages = space->pp[p] > 1 ? space->virtual_stages[v] : 1;
            NW_TRY(look_at_layout(search, layout, profile));
        }
    }
    return NW_OK;
}

/* One cut of the layers: the same units and shapes for all pipelines and ways. */
static nw_rc look_at_cut(struct search *search, struct nw_layout layout,
                         const struct nw_profile *profile)
{
    if (layout.rank_count % (layout.parallel.tp * layout.parallel.cp) != 0)
        return NW_OK;
    layout.parallel.pp = layout.parallel.virtual_stages = 1;
    memset(search->shapes, 0, (size_t)search->space->micro_batch_count * sizeof *search->shapes);
    search->job.offload = search->space->offloads[0];
    search->job.recompute = search->space->recomputes[0];
    NW_TRY(nw_build_init(&search->job, &search->platform, &layout, 1, 1, &search->model->scenario,
                         &search->cut));
    const nw_rc rc = look_at_pipelines(search, layout, profile);

    nw_build_free(&search->cut);
    return rc;
}

static nw_rc look_at_nodes(struct search *search, int node_count, const struct nw_profile *profile)
{
    const struct nw_space *space = search->space;
    struct nw_layout layout = nw_model_layout(search->model, node_count, NULL);

    layout.profile = profile;
    search->job = nw_model_job(search->model, &layout);
    for (int t = 0; t < space->tp_count; t++) {
        for (int c = 0; c < space->cp_count; c++) {
            for (int e = 0; e < space->ep_count; e++) {
                for (int s = 0; s < space->sequence_count; s++) {
                    layout.parallel.tp = space->tp[t];
                    layout.parallel.cp = space->cp[c];
                    layout.parallel.ep = space->ep[e];
                    layout.parallel.sequence_parallel = space->sequence_parallel[s];
                    if (space->tp[t] == 1 && space->sequence_parallel[s])
                        continue;
                    NW_TRY(look_at_cut(search, layout, profile));
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
    const struct nw_space *space = search->space;

    for (int w = 0; w < space->way_count; w++) {
        if (!is_first_of_profile(space, w))
            continue;
        for (int n = 0; n < space->node_count_count; n++) {
            NW_TRY(look_at_nodes(search, space->node_counts[n], space->ways[w].profile));
            if (progress != NULL)
                progress(context,
                         ((double)w + (double)(n + 1) / space->node_count_count) / space->way_count,
                         search->seen);
        }
    }
    return NW_OK;
}

/* ---- the best, predicted anew ---------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const double x = ((const struct nw_found *)a)->step.step_ns;
    const double y = ((const struct nw_found *)b)->step.step_ns;

    return (x > y) - (x < y);
}

static bool is_same(const struct candidate *a, const struct candidate *b)
{
    return a->quick_ns == b->quick_ns && a->micro_batch == b->micro_batch &&
           a->recompute == b->recompute &&
           memcmp(&a->offload, &b->offload, sizeof a->offload) == 0 &&
           memcmp(&a->layout, &b->layout, sizeof a->layout) == 0;
}

static bool is_known(const struct search *search, const struct candidate *candidate)
{
    for (int i = 0; i < search->fastest.count; i++)
        if (is_same(&search->fastest.items[i], candidate))
            return true;
    return false;
}

/* A candidate that the simulation refuses or finds too large is left out. */
static void predict(const struct search *search, const struct candidate *candidate,
                    struct nw_search_result *result)
{
    struct nw_found *found = &result->items[result->count];

    *found = (struct nw_found){.job = nw_model_job(search->model, &candidate->layout),
                               .quick_ns = candidate->quick_ns};
    found->job.micro_batch = candidate->micro_batch;
    found->job.recompute = candidate->recompute;
    found->job.offload = candidate->offload;
    if (nw_predict_scenario(&found->job, &search->platform, &candidate->layout,
                            &search->model->scenario, &found->step) != NW_OK) {
        nw_clear_error();
        return;
    }
    result->count++;
}

/* Interval, memory and cost of those that are shown. */
static nw_rc complete(const struct search *search, struct nw_found *found)
{
    NW_TRY(nw_predict(&found->job, &search->platform, &found->step.layout, &search->model->scenario,
                      &found->step));
    found->cost_per_billion_tokens =
        price_of(search->model, found->step.node_count) / (found->step.tokens_per_s * 3600) * 1e9;
    return NW_OK;
}

static double cost_of(const struct search *search, const struct nw_found *found)
{
    return price_of(search->model, found->step.node_count) * found->step.step_ns;
}

static nw_rc rank(const struct search *search, struct nw_search_result *result)
{
    const int most = search->fastest.count + search->cheapest.count;

    result->items = calloc((size_t)most + 1, sizeof *result->items);
    if (result->items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d plans", most);
    for (int i = 0; i < search->fastest.count; i++)
        predict(search, &search->fastest.items[i], result);
    for (int i = 0; i < search->cheapest.count; i++)
        if (!is_known(search, &search->cheapest.items[i]))
            predict(search, &search->cheapest.items[i], result);
    if (result->count == 0 && isfinite(search->nearest_bytes))
        return nw_fail(
            NW_EUSAGE,
            "no plan of %llu fits; the nearest needs %.1f GiB of %.1f: %s on %d GPUs, tp "
            "%d, pp %d; accepted: more --nodes, a larger card, another --framework, or "
            "offload",
            (unsigned long long)search->seen, search->nearest_bytes / (1024.0 * 1024 * 1024),
            (double)search->platform.memory_bytes / (1024.0 * 1024 * 1024),
            search->nearest.strategy->name, search->nearest.rank_count, search->nearest.parallel.tp,
            search->nearest.parallel.pp);
    if (result->count == 0)
        return nw_fail(NW_EUSAGE,
                       "no plan fits these GPUs and this batch (%llu looked at); accepted: a "
                       "--global-batch that can be dealt to them, more --nodes, a larger card",
                       (unsigned long long)search->seen);
    qsort(result->items, result->count, sizeof *result->items, by_time);
    for (size_t i = 1; i < result->count; i++)
        if (cost_of(search, &result->items[i]) <
            cost_of(search, &result->items[result->cheapest]) * (1 - 1e-9))
            result->cheapest = i;
    for (size_t i = 0; i < result->count && i < search->show; i++)
        NW_TRY(complete(search, &result->items[i]));
    return complete(search, &result->items[result->cheapest]);
}

nw_rc nw_search(const struct nw_model *model, const struct nw_space *space, size_t show,
                nw_search_progress progress, void *context, struct nw_search_result *result_out)
{
    struct search *search = calloc(1, sizeof *search);
    struct nw_search_result result = {0};
    nw_rc rc;

    if (search == NULL || (search->shapes = calloc((size_t)space->micro_batch_count + 1,
                                                   sizeof *search->shapes)) == NULL) {
        free(search);
        return nw_fail(NW_ENOMEM, "no memory for the search");
    }
    const double start = seconds_now();

    search->model = model;
    search->space = space;
    search->platform = nw_model_platform(model);
    search->job = model->job;
    search->nearest_bytes = NAN;
    search->show = show;
    rc = look_at_all(search, progress, context);
    result.seen = search->seen;
    result.too_big = search->too_big;
    result.quick_s = seconds_now() - start;
    if (rc == NW_OK)
        rc = rank(search, &result);
    result.exact_s = seconds_now() - start - result.quick_s;
    free(search->shapes);
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
