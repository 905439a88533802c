#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct nw_job llama(void)
{
    return preset_job("llama-3-8b", 4096, 1, 128);
}

/* Ranks are dealt tp-cp-dp-pp; groups that meet on a node share its NICs. */
Test(layout, groups_lie_on_the_nodes_as_ranks_are_dealt)
{
    static const struct {
        int nodes, ranks, tp, cp, pp, shard;
        nw_group_kind kind;
        struct nw_group group;
    } cases[] = {
        {4, 32, 8, 1, 1, 0, NW_GROUP_TP, {8, 1, 1, 0}},
        {4, 32, 8, 1, 1, 0, NW_GROUP_DP, {4, 4, 8, 0}},
        {4, 32, 2, 1, 1, 0, NW_GROUP_DP, {16, 4, 2, 0}},
        {4, 32, 2, 1, 4, 0, NW_GROUP_DP, {4, 1, 2, 0}},
        {4, 32, 2, 1, 4, 0, NW_GROUP_PP, {2, 2, 8, 0}},
        {2, 16, 2, 1, 4, 0, NW_GROUP_PP, {2, 2, 4, 0}},
        {4, 32, 1, 1, 1, 8, NW_GROUP_SHARD, {8, 1, 1, 0}},
        {4, 32, 1, 1, 1, 8, NW_GROUP_REPLICA, {4, 4, 8, 0}},
        {4, 32, 4, 4, 1, 0, NW_GROUP_CP, {4, 2, 4, 0}},
        {1, 8, 2, 1, 2, 0, NW_GROUP_PP, {2, 1, 4, 0}},
        {4, 32, 1, 1, 1, 0, NW_GROUP_WORLD, {32, 4, 1, 0}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct nw_layout layout = {.node_count = cases[i].nodes,
                                         .rank_count = cases[i].ranks,
                                         .parallel = {.tp = cases[i].tp,
                                                      .cp = cases[i].cp,
                                                      .pp = cases[i].pp,
                                                      .shard_count = cases[i].shard}};
        const struct nw_group group = nw_layout_group(&layout, cases[i].kind);

        cr_expect(eq(int, group.rank_count, cases[i].group.rank_count), "%zu", i);
        cr_expect(eq(int, group.host_count, cases[i].group.host_count), "%zu", i);
        cr_expect(eq(int, group.sharing, cases[i].group.sharing), "%zu", i);
    }
}

Test(layout, a_hybrid_shards_within_the_node_where_nothing_else_is_asked_for)
{
    struct nw_layout layout = {
        .node_count = 4, .rank_count = 32, .strategy = nw_strategy_named("hsdp")};

    cr_expect(eq(int, nw_layout_shard_count(&layout), 8));
    layout.parallel.tp = 2;
    cr_expect(eq(int, nw_layout_shard_count(&layout), 4));
    layout.parallel.shard_count = 16;
    cr_expect(eq(int, nw_layout_shard_count(&layout), 16));
    layout.strategy = nw_strategy_named("fsdp");
    layout.parallel = (struct nw_parallel){0};
    cr_expect(eq(int, nw_layout_shard_count(&layout), 32));
}

/* llama-3-8b: 32 layers, 32 heads, 8 key-value heads, MLP 14336. */
Test(layout, contradictions_name_the_option_and_what_is_accepted)
{
    static const struct {
        struct nw_layout layout;
        const char *strategy, *profile, *says[2];
    } cases[] = {
        {{.parallel = {.tp = 3}}, "ddp", NULL, {"--tp 3", "divides the GPUs"}},
        {{.parallel = {.tp = 16, .pp = 4}}, "ddp", NULL, {"needs 64 GPUs", "there are 32"}},
        {{.rank_count = 36, .parallel = {.tp = 12}}, "ddp", NULL, {"--tp 12", "divisor of 32"}},
        {{.rank_count = 256, .parallel = {.pp = 64}},
         "ddp",
         NULL,
         {"--pp 64", "32 pieces at most"}},
        {{.parallel = {.pp = 4, .virtual_stages = 3}},
         "ddp",
         NULL,
         {"--virtual-stages 3", "evenly"}},
        {{.parallel = {.virtual_stages = 2}}, "ddp", NULL, {"--virtual-stages 2", "--pp 2"}},
        {{.rank_count = 96, .parallel = {.cp = 3}}, "ddp", NULL, {"--cp 3", "multiple of 6"}},
        {{.parallel = {.ep = 2}}, "ddp", NULL, {"--ep 2", "accepted: 1"}},
        {{.parallel = {.shard_count = 5}}, "fsdp", NULL, {"--shard 5", "divisor of 32"}},
        {{.parallel = {.shard_count = 8}}, "ddp", NULL, {"--shard 8", "ddp cuts nothing"}},
        {{.parallel = {.shard_count = 8}}, "ddp", NULL, {"fsdp-keep, hsdp", "zeropp, distopt"}},
        {{.parallel = {.tp = 2}}, "none", NULL, {"--strategy none", "16 copies"}},
        /* the ranks of a cut sequence hold the same weights */
        {{.parallel = {.tp = 16, .cp = 2}}, "none", NULL, {"--strategy none", "2 copies"}},
        {{.parallel = {.pp = 2}}, "zero3", "deepspeed", {"zero3 with --pp 2", "zero1"}},
    };
    const struct nw_job job = llama();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_layout layout = cases[i].layout;

        layout.rank_count = layout.rank_count > 0 ? layout.rank_count : 32;
        layout.node_count = layout.rank_count / 4;
        layout.strategy = nw_strategy_named(cases[i].strategy);
        for (size_t p = 0; cases[i].profile != NULL && p < nw_profile_count; p++)
            if (strcmp(nw_profiles[p].name, cases[i].profile) == 0)
                layout.profile = &nw_profiles[p];
        cr_assert(eq(int, nw_layout_check(&layout, &job), NW_EUSAGE), "case %zu", i);
        for (int w = 0; w < 2; w++)
            cr_expect(ne(ptr, strstr(nw_last_error()->text, cases[i].says[w]), NULL),
                      "case %zu: \"%s\" not in \"%s\"", i, cases[i].says[w], nw_last_error()->text);
        nw_clear_error();
    }
}

Test(layout, a_deal_that_does_not_go_up_names_what_would)
{
    struct nw_job job = llama();
    struct nw_layout layout = {.node_count = 2, .rank_count = 16};
    struct nw_deal deal;

    job.global_batch = 24;
    cr_expect(eq(int, nw_layout_deal(&layout, &job, &deal), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--global-batch 24"), NULL));
    nw_clear_error();
    layout.parallel = (struct nw_parallel){.pp = 4, .virtual_stages = 2};
    job.micro_batch = 1;
    cr_expect(eq(int, nw_layout_deal(&layout, &job, &deal), NW_EUSAGE)); /* 6 micro-batches */
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "multiple of 16"), NULL));
    nw_clear_error();
    job.global_batch = 32;
    cr_expect(eq(int, nw_layout_deal(&layout, &job, &deal), NW_OK));
    layout = (struct nw_layout){.node_count = 3, .rank_count = 16};
    cr_expect(eq(int, nw_layout_check(&layout, &job), NW_EUSAGE));
    nw_clear_error();
}

Test(layout, offload_needs_a_strategy_that_cuts_what_is_moved)
{
    struct nw_job job = llama();
    struct nw_layout layout = {
        .node_count = 1, .rank_count = 8, .strategy = nw_strategy_named("ddp")};

    job.offload.optimizer = NW_OFFLOAD_CPU;
    cr_expect(eq(int, nw_layout_check(&layout, &job), NW_EUSAGE));
    layout.strategy = nw_strategy_named("zero2");
    cr_expect(eq(int, nw_layout_check(&layout, &job), NW_OK));
    job.offload.parameters = NW_OFFLOAD_CPU;
    cr_expect(eq(int, nw_layout_check(&layout, &job), NW_EUSAGE));
    layout.strategy = nw_strategy_named("zero3");
    cr_expect(eq(int, nw_layout_check(&layout, &job), NW_OK));
    nw_clear_error();
}

Test(layout, a_job_that_contradicts_itself_is_refused)
{
    struct nw_job job = llama();

    cr_expect(eq(int, nw_job_check(&job), NW_OK));
    job.lora.rank = 8;
    cr_expect(eq(int, nw_job_check(&job), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--lora-targets"), NULL));
    job.lora.targets = NW_LORA_Q;
    cr_expect(eq(int, nw_job_check(&job), NW_OK));
    job.lora = (struct nw_lora){.base_bytes = 0.5};
    cr_expect(eq(int, nw_job_check(&job), NW_EUSAGE));
    job = llama();
    job.net.vocab = 0;
    cr_expect(eq(int, nw_job_check(&job), NW_EUSAGE));
    job = llama();
    job.net.positions = 2048;
    cr_expect(eq(int, nw_job_check(&job), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "1 to 2048"), NULL));
    nw_clear_error();
}
