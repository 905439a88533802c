#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/search.h"
#include "tests/unit/model_support.h"

struct brute { /* every plan of a space, one by one */
    uint64_t seen, fitting;
    double best_ns, least_cost;
    struct nw_layout best;
};

static void try_plan(const struct nw_model *model, const struct nw_platform *platform,
                     const struct nw_job *job, const struct nw_layout *layout, struct brute *brute)
{
    const uint64_t share = job->global_batch / (uint64_t)nw_layout_dp(layout);
    struct nw_memory memory;
    struct nw_step step;
    uint64_t assumed = 0;

    if (share % job->micro_batch != 0)
        return;
    if (nw_layout_virtual_stages(layout) > 1 &&
        share / job->micro_batch % (uint64_t)nw_layout_pp(layout) != 0)
        return;
    brute->seen++;
    nw_memory_of(job, layout, job->micro_batch, share / job->micro_batch, &platform->assumptions,
                 &memory, &assumed);
    if (memory.total_bytes > (double)platform->memory_bytes)
        return;
    cr_assert_eq(nw_predict_scenario(job, platform, layout, &model->scenario, &step), NW_OK, "%s",
                 nw_last_error()->text);
    brute->fitting++;
    if (!(step.step_ns >= brute->best_ns)) {
        brute->best_ns = step.step_ns;
        brute->best = *layout;
    }
    brute->least_cost = fmin(brute->least_cost, step.step_ns * layout->node_count);
}

/* The innermost lists: shards, micro-batches, recomputation, offload. */
static void try_layout(const struct nw_model *model, const struct nw_platform *platform,
                       const struct nw_space *space, struct nw_layout layout, struct brute *brute)
{
    struct nw_job job = nw_model_job(model, &layout);

    for (int s = 0; s < space->shard_count; s++) {
        layout.parallel.shard_count = space->shards[s];
        if (!nw_space_takes_shards(space, &layout))
            continue;
        for (int o = 0; o < space->offload_count; o++) {
            job.offload = space->offloads[o];
            if (nw_layout_check(&layout, &job) != NW_OK ||
                job.global_batch % (uint64_t)nw_layout_dp(&layout) != 0) {
                nw_clear_error();
                continue;
            }
            for (int b = 0; b < space->micro_batch_count; b++) {
                for (int r = 0; r < space->recompute_count; r++) {
                    job.micro_batch = space->micro_batches[b];
                    job.recompute = space->recomputes[r];
                    try_plan(model, platform, &job, &layout, brute);
                }
            }
        }
    }
}

/* Mixed radix over the outer lists. */
static struct brute try_all(const struct nw_model *model, const struct nw_space *space)
{
    const int radix[] = {space->node_count_count, space->way_count,    space->tp_count,
                         space->cp_count,         space->ep_count,     space->sequence_count,
                         space->pp_count,         space->virtual_count};
    enum { DIGITS = sizeof radix / sizeof radix[0] };
    const struct nw_platform platform = nw_model_platform(model);
    struct brute brute = {.best_ns = NAN, .least_cost = INFINITY};
    int at[DIGITS] = {0}, d = 0;

    while (d < DIGITS) {
        struct nw_layout layout = nw_model_layout(model, space->node_counts[at[0]], NULL);
        struct nw_parallel *parallel = &layout.parallel;

        layout.strategy = space->ways[at[1]].strategy;
        layout.profile = space->ways[at[1]].profile;
        parallel->tp = space->tp[at[2]];
        parallel->cp = space->cp[at[3]];
        parallel->ep = space->ep[at[4]];
        parallel->pp = space->pp[at[6]];
        parallel->virtual_stages = parallel->pp > 1 ? space->virtual_stages[at[7]] : 1;
        parallel->sequence_parallel =
            parallel->tp > 1 ? space->sequence_parallel[at[5]] : model->parallel.sequence_parallel;
        if ((parallel->tp > 1 || at[5] == 0) && (parallel->pp > 1 || at[7] == 0) &&
            layout.rank_count % (parallel->tp * parallel->cp * parallel->pp) == 0)
            try_layout(model, &platform, space, layout, &brute);
        for (d = 0; d < DIGITS && ++at[d] == radix[d]; d++)
            at[d] = 0;
    }
    return brute;
}

static struct nw_model_request random_request(uint64_t *state, char nodes[8], int size)
{
    static const char *const gpus[] = {"h100-sxm", "a100-80", "rtx-4090", "v100-32", "a100-40"};
    static const char *const models[] = {"gpt2-124m",    "gpt2-1.5b", "bert-large", "llama-3-8b",
                                         "mixtral-8x7b", "vit-l-16",  "resnet-50",  "llama-2-13b"};
    struct nw_model_request request = request_for(models[next_random(state) % 8]);

    request.gpu = gpus[next_random(state) % 5];
    request.precision = strcmp(request.gpu, "v100-32") == 0 ? "fp16" : request.precision;
    request.nic_gbit_per_s = random_between(state, 10, 3200);
    request.gpus_per_node = 1 << next_random(state) % (size > 0 ? 4 : 3);
    snprintf(nodes, 8, "%d", 1 << next_random(state) % (size > 0 ? 4 : 2));
    request.nodes = nodes;
    request.global_batch = 16u << next_random(state) % 4;
    request.framework = next_random(state) % 2 ? NULL : "megatron";
    request.recompute = size > 0 || next_random(state) % 2 ? NULL : "full";
    request.micro_batch = size > 0 || next_random(state) % 3 ? 0 : 2;
    if (size == 0 && next_random(state) % 2)
        request.virtual_stages = 1;
    if (next_random(state) % 4 == 0)
        request.optimizer = "sgd";
    return request;
}

static struct nw_space space_of(const struct nw_model *model,
                                const struct nw_model_request *request, int largest)
{
    const struct nw_space_wishes wishes = {.largest_node_count = largest,
                                           .keep_micro_batch = request->micro_batch > 0,
                                           .keep_recompute = request->recompute != NULL,
                                           .keep_framework = request->framework != NULL};
    struct nw_space space;

    cr_assert_eq(nw_space_make(model, &wishes, &space), NW_OK, "%s", nw_last_error()->text);
    return space;
}

/* Everything that fits is in the thousand: then the search is exact. */
Test(search, a_small_space_has_the_results_of_brute_force, .timeout = 120)
{
    uint64_t state = 7;
    int compared = 0, empty = 0;

    for (int i = 0; i < 100; i++) {
        char nodes[8];
        struct nw_model_request request = random_request(&state, nodes, 0);
        struct nw_search_result result;
        struct nw_model model;

        if (nw_model_open(&request, NULL, &model) != NW_OK) { /* fp16 of what has none, and so on */
            nw_clear_error();
            continue;
        }
        const struct nw_space space = space_of(&model, &request, i % 3 == 0 ? 2 : 0);
        const nw_rc rc = nw_search(&model, &space, 1, NULL, NULL, &result);

        if (rc == NW_OK && result.count > 450) { /* may have been cut */
            nw_search_free(&result);
            nw_model_close(&model);
            continue;
        }
        const struct brute brute = try_all(&model, &space);

        if (rc != NW_OK) {
            cr_expect_eq(rc, NW_EUSAGE);
            cr_expect_eq(brute.fitting, 0, "%s on %s: %s", request.model, request.gpu,
                         nw_last_error()->text);
            nw_clear_error();
            empty++;
        } else {
            const struct nw_found *cheapest = &result.items[result.cheapest];

            cr_expect_eq(result.seen, brute.seen);
            cr_expect_eq(result.count, brute.fitting, "%s on %s x %d: %zu against %llu",
                         request.model, request.gpu, request.gpus_per_node, result.count,
                         (unsigned long long)brute.fitting);
            cr_expect_float_eq(result.items[0].step.step_ns / brute.best_ns, 1, 1e-9);
            cr_expect_float_eq(
                cheapest->step.step_ns * cheapest->step.node_count / brute.least_cost, 1, 1e-9);
            nw_search_free(&result);
            compared++;
        }
        nw_model_close(&model);
    }
    cr_expect_gt(compared, 60);
    cr_expect_gt(empty, 5);
}

/* The thousand that the closed form keeps hold the best, within 2 %. */
Test(search, a_larger_space_loses_nothing_that_matters, .timeout = 120)
{
    uint64_t state = 11;
    int compared = 0;

    for (int i = 0; i < 40 && compared < 5; i++) {
        char nodes[8];
        struct nw_model_request request = random_request(&state, nodes, 1);
        struct nw_search_result result;
        struct nw_model model;

        if (nw_model_open(&request, NULL, &model) != NW_OK) {
            nw_clear_error();
            continue;
        }
        const struct nw_space space = space_of(&model, &request, 0);
        const nw_rc rc = nw_search(&model, &space, 1, NULL, NULL, &result);

        if (rc == NW_OK && result.count >= 1000 && result.seen < 20000) {
            const struct brute brute = try_all(&model, &space);

            cr_expect_eq(result.seen, brute.seen);
            cr_expect_leq(result.items[0].step.step_ns, 1.02 * brute.best_ns,
                          "%s on %s: %g against %g", request.model, request.gpu,
                          result.items[0].step.step_ns, brute.best_ns);
            compared++;
        }
        if (rc == NW_OK)
            nw_search_free(&result);
        nw_clear_error();
        nw_model_close(&model);
    }
    cr_expect_gt(compared, 2);
}

/* What the closed form says of a plan, over what the simulation says. */
Test(search, the_closed_form_is_close_to_the_simulation)
{
    static const struct {
        const char *model, *gpu, *nodes;
        double nic, batch;
    } rows[] = {
        {"gpt3-175b", "a100-80", "128", 1600, 1536},    {"llama-3-8b", "h100-sxm", "4", 100, 256},
        {"mixtral-8x7b", "h100-sxm", "8", 3200, 512},   {"gpt2-1.5b", "a100-40", "2", 200, 512},
        {"deepseek-v3", "h100-sxm", "128", 3200, 4096},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_model_request request = request_for(rows[i].model);
        struct nw_search_result result;
        struct nw_model model;
        size_t close = 0;

        request.gpu = rows[i].gpu;
        request.nodes = rows[i].nodes;
        request.nic_gbit_per_s = rows[i].nic;
        request.global_batch = (uint64_t)rows[i].batch;
        cr_assert_eq(nw_model_open(&request, NULL, &model), NW_OK, "%s", nw_last_error()->text);
        const struct nw_space space = space_of(&model, &request, 0);

        cr_assert_eq(nw_search(&model, &space, 1, NULL, NULL, &result), NW_OK, "%s",
                     nw_last_error()->text);
        for (size_t k = 0; k < result.count; k++)
            close += fabs(result.items[k].quick_ns / result.items[k].step.step_ns - 1) < 0.15;
        cr_expect_gt((double)close / (double)result.count, 0.9, "%s: %zu of %zu", rows[i].model,
                     close, result.count);
        nw_search_free(&result);
        nw_model_close(&model);
    }
}

Test(search, the_first_of_each_kind_and_strategy_leads)
{
    struct nw_model_request request = request_for("llama-3-8b");
    struct nw_search_result result;
    struct nw_model model;
    size_t firsts = 0, alike = 0, strategies = 0;

    request.gpu = "h100-sxm";
    request.nodes = "2";
    request.nic_gbit_per_s = 3200;
    request.global_batch = 128;
    cr_assert_eq(nw_model_open(&request, NULL, &model), NW_OK);
    const struct nw_space space = space_of(&model, &request, 0);

    cr_assert_eq(nw_search(&model, &space, 5, NULL, NULL, &result), NW_OK);
    for (size_t i = 0; i < result.count; i++) {
        const struct nw_found *found = &result.items[i];
        struct nw_step step;

        cr_expect(i == 0 || found[-1].step.step_ns <= found->step.step_ns);
        firsts += found->is_first;
        alike += found->alike;
        strategies += found->leads_strategy;
        if (i % 50 != 0)
            continue;
        cr_assert_eq(
            nw_predict(&found->job, &model.platform, &found->step.layout, &model.scenario, &step),
            NW_OK);
        cr_expect_float_eq(step.step_ns, found->step.step_ns, 1e-6 * step.step_ns);
        cr_expect_eq(step.fits, 1);
    }
    cr_expect_eq(firsts + alike, result.count);
    cr_expect_gt(strategies, 4);
    nw_search_free(&result);
    nw_model_close(&model);
}
