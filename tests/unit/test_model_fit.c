/* What would make a job fit, and in reverse what still fits. */
#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/fit.h"

/* On nodes of eight A100 with 80 GB and 200 Gb/s NICs. */
static struct nw_model model_of(const char *name, uint64_t sequence, uint64_t micro_batch)
{
    struct nw_model_request request = request_for(name);
    struct nw_model model;

    request.gpu = "A100 SXM4 80GB";
    request.gpus_per_node = 8;
    request.sequence = sequence;
    request.micro_batch = micro_batch;
    request.global_batch = 512;
    request.inter_gb_per_s = 20;
    request.host_gb_per_s = 25;
    cr_assert(eq(int, nw_model_open(&request, NULL, &model), NW_OK), "%s", nw_last_error()->text);
    return model;
}

static struct nw_layout layout_of(const struct nw_model *model, int nodes, const char *strategy,
                                  const char *framework)
{
    struct nw_layout layout = nw_model_layout(model, nodes, nw_strategy_named(strategy));

    layout.profile = nw_profile_named(framework);
    return layout;
}

static const struct nw_fit_item *item_named(const struct nw_fit_advice *advice, const char *name)
{
    for (size_t i = 0; i < advice->count; i++)
        if (strcmp(advice->items[i].change->name, name) == 0)
            return &advice->items[i];
    return NULL;
}

static double bytes_of(const struct nw_model *model, const struct nw_layout *layout)
{
    const struct nw_platform platform = nw_model_platform(model);
    const struct nw_fit_state state = {.job = nw_model_job(model, layout), .layout = *layout};
    struct nw_memory memory;

    cr_assert(eq(int, nw_fit_memory(&state, &platform, &memory), NW_OK));
    return memory.total_bytes;
}

/* What the text says to type leads to that layout. */
static void expect_typed(const struct nw_fit_item *item)
{
    const char *typed = strstr(item->text, "(--ranks ");
    struct nw_model_request request = request_for("llama-2-7b");
    struct nw_model model;
    int ranks, nodes;
    char count[16];

    cr_assert(ne(ptr, (void *)typed, NULL), "%s", item->text);
    cr_assert(eq(int, sscanf(typed, "(--ranks %d --nodes %d)", &ranks, &nodes), 2));
    snprintf(count, sizeof count, "%d", nodes);
    request.gpu = "A100 SXM4 80GB";
    request.ranks = ranks;
    request.nodes = count;
    request.inter_gb_per_s = 20;
    cr_assert(eq(int, nw_model_open(&request, NULL, &model), NW_OK), "%s", nw_last_error()->text);
    const struct nw_layout layout =
        nw_model_layout(&model, model.node_counts[0], model.strategies[0]);

    cr_expect(eq(int, layout.rank_count, item->state.layout.rank_count));
    cr_expect(eq(int, layout.node_count, item->state.layout.node_count));
    nw_model_close(&model);
}

static void near(double value, double expected, const char *what)
{
    cr_expect(lt(dbl, fabs(value - expected), 1e-9 * fabs(expected)), "%s: %.12g instead of %.12g",
              what, value, expected);
}

Test(fit, nothing_is_advised_where_it_fits)
{
    struct nw_model model = model_of("llama-2-7b", 4096, 1);
    const struct nw_layout layout = layout_of(&model, 1, "fsdp", "torchtitan");
    struct nw_fit_advice advice;

    cr_assert(eq(int, nw_fit_advise(&model, &layout, &advice), NW_OK));
    cr_expect(advice.fits);
    cr_expect(zero(sz, advice.count));
    cr_expect(zero(sz, advice.combination_count));
    nw_model_close(&model);
}

/* 7B with replicated states needs 16 bytes each, 108 GB, before anything else: sharding fits at
 * next to no cost, recomputation does not help. */
Test(fit, states_too_large_are_cut_not_recomputed)
{
    struct nw_model model = model_of("llama-2-7b", 2048, 1);
    const struct nw_layout layout = layout_of(&model, 1, "ddp", "deepspeed");
    struct nw_fit_advice advice;

    cr_assert(eq(int, nw_fit_advise(&model, &layout, &advice), NW_OK));
    cr_assert(not(advice.fits));
    const struct nw_fit_item *sharded = item_named(&advice, "shard-more");

    cr_assert(ne(ptr, (void *)sharded, NULL));
    cr_expect(sharded->fits);
    cr_expect(eq(str, (char *)sharded->state.layout.strategy->name, "zero1"));
    cr_expect(lt(dbl, sharded->time_ratio, 1.15));
    const struct nw_fit_item *again = item_named(&advice, "recompute-full");

    cr_expect(again == NULL || !again->fits);
    cr_expect(zero(sz, advice.combination_count));
    nw_model_close(&model);
}

/* Those that fit first, cheapest first; another training last. Each item's figures are what the
 * model says of its state. */
Test(fit, changes_come_in_the_order_of_their_time)
{
    static const struct {
        const char *model, *strategy, *framework;
        uint64_t sequence, micro_batch;
        int nodes;
    } cases[] = {{"llama-2-7b", "fsdp", "torchtitan", 4096, 8, 1},
                 {"llama-2-13b", "zero2", "deepspeed", 4096, 4, 1},
                 {"llama-2-70b", "fsdp", "hf", 4096, 1, 2},
                 {"gpt3-13b", "distopt", "megatron", 2048, 4, 2}};

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct nw_model model = model_of(cases[c].model, cases[c].sequence, cases[c].micro_batch);
        const struct nw_platform platform = nw_model_platform(&model);
        const struct nw_layout layout =
            layout_of(&model, cases[c].nodes, cases[c].strategy, cases[c].framework);
        const double as_it_is = bytes_of(&model, &layout);
        struct nw_fit_advice advice;
        bool any = false;

        cr_assert(eq(int, nw_fit_advise(&model, &layout, &advice), NW_OK));
        cr_assert(not(advice.fits), "%s", cases[c].model);
        cr_assert(gt(sz, advice.count, 3));
        for (size_t i = 0; i < advice.count; i++) {
            const struct nw_fit_item *item = &advice.items[i];
            struct nw_memory memory;
            struct nw_step step;

            cr_expect(lt(dbl, item->memory_bytes, as_it_is), "%s", item->text);
            cr_assert(eq(int, nw_fit_memory(&item->state, &platform, &memory), NW_OK));
            near(memory.total_bytes, item->memory_bytes, item->text);
            cr_expect(eq(int, item->fits, memory.total_bytes <= (double)platform.memory_bytes));
            cr_assert(eq(int,
                         nw_predict(&item->state.job, &platform, &item->state.layout,
                                    &model.scenario, &step),
                         NW_OK),
                      "%s: %s", item->text, nw_last_error()->text);
            near(step.memory.total_bytes, item->memory_bytes, item->text);
            if (item->change->more_gpus)
                expect_typed(item);
            any = any || (item->fits && !item->change->other_training && !item->change->more_gpus);
            if (i == 0)
                continue;
            const struct nw_fit_item *before = &advice.items[i - 1];

            cr_expect(ge(int, before->fits, item->fits), "%s", item->text);
            if (item->fits && before->change->other_training == item->change->other_training)
                cr_expect(le(dbl, before->time_ratio, item->time_ratio), "%s", item->text);
            if (item->fits)
                cr_expect(le(int, before->change->other_training, item->change->other_training));
        }
        cr_expect(any || advice.combination_count > 0, "%s", cases[c].model);
        nw_model_close(&model);
    }
}

/* 70B on one node of eight: 16 × 70 / 8 = 140 GB each even when all is cut. */
Test(fit, several_changes_where_none_is_enough)
{
    struct nw_model model = model_of("llama-2-70b", 4096, 2);
    const struct nw_layout layout = layout_of(&model, 1, "fsdp", "hf");
    struct nw_fit_advice advice;
    double before;

    cr_assert(eq(int, nw_fit_advise(&model, &layout, &advice), NW_OK));
    cr_assert(gt(sz, advice.combination_count, 1));
    cr_expect(advice.combination_fits);
    before = bytes_of(&model, &layout);
    for (size_t i = 0; i < advice.combination_count; i++) {
        const struct nw_fit_item *item = &advice.combination[i];

        cr_expect(lt(dbl, item->memory_bytes, before));
        cr_expect(not(item->change->other_training));
        before = item->memory_bytes;
    }
    cr_expect(le(dbl, before, (double)model.platform.memory_bytes));
    /* The node's memory has to hold what the CPU takes. */
    model.platform.host_memory_bytes = 64ull << 30;
    cr_assert(eq(int, nw_fit_advise(&model, &layout, &advice), NW_OK));
    const struct nw_fit_item *offload = item_named(&advice, "offload-params");

    cr_expect(offload == NULL || !offload->fits);
    nw_model_close(&model);
}

Test(fit, a_card_of_unknown_size_is_no_reason)
{
    struct nw_model model = model_of("llama-2-7b", 4096, 8);
    const struct nw_layout layout = layout_of(&model, 1, "ddp", "pytorch");
    struct nw_fit_advice advice;

    model.platform.memory_bytes = 0;
    cr_assert(eq(int, nw_fit_advise(&model, &layout, &advice), NW_OK));
    cr_expect(advice.fits);
    cr_expect(zero(sz, advice.count));
    nw_model_close(&model);
}
