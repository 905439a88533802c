#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static nw_rc open_with(const struct nw_model_request *request)
{
    struct nw_model model;
    const nw_rc rc = nw_model_open(request, NULL, &model);

    if (rc == NW_OK)
        nw_model_close(&model);
    return rc;
}

static void refuses(const struct nw_model_request *request, const char *says)
{
    cr_expect(eq(int, open_with(request), NW_EUSAGE), "%s", says);
    cr_expect(ne(ptr, strstr(nw_last_error()->text, says), NULL), "\"%s\" is not in: %s", says,
              nw_last_error()->text);
}

Test(request, contradictions_and_gaps_are_refused_with_what_to_do)
{
    struct nw_model_request request = request_for(NULL);

    refuses(&request, "--model");
    request.model = "gpt2-124m";
    refuses(&request, "--tflops");
    request.tflops = 10;
    cr_expect(eq(int, open_with(&request), NW_OK));
    request.sequence = 2048;
    refuses(&request, "1024 learned positions");
    request.sequence = 0;
    request.nodes = "1,two";
    refuses(&request, "\"two\" is no node count");
    request.nodes = ",";
    refuses(&request, "names nothing");
    request.nodes = "0";
    refuses(&request, "accepted: 1 to");
    request.nodes = NULL;
    request.strategy = "ddp,magic";
    refuses(&request, "accepted: ddp, zero1, zero2, zero3, fsdp");
    request.strategy = NULL;
    request.ranks = 12;
    refuses(&request, "nodes of 8 GPUs");
    request.ranks = 0;
    request.extra_per_node_hour = 1;
    refuses(&request, "--price-per-node-hour");
    request.extra_per_node_hour = 0;
    request.lane = "rdma";
    refuses(&request, "no such lane");
    request.lane = NULL;
    request.gpu = "nonsense";
    refuses(&request, "not in the catalogue");
    request.gpu = "v100-sxm-32";
    request.tflops = 0;
    refuses(&request, "no bf16 rate");
    request.precision = "fp16";
    cr_expect(eq(int, open_with(&request), NW_OK));
}

Test(request, job_defaults_follow_the_model)
{
    static const struct {
        const char *model;
        uint64_t sequence, micro_batch;
    } cases[] = {{"gpt2-124m", 1024, 8},
                 {"bert-large", 512, 16},
                 {"llama-2-7b", 4096, 2},
                 {"qwen2.5-7b", 4096, 2}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_model_request request = request_for(cases[i].model);
        struct nw_model model;

        request.tflops = 1;
        cr_assert(eq(int, nw_model_open(&request, NULL, &model), NW_OK));
        cr_expect(eq(u64, model.job.sequence, cases[i].sequence), "%s", cases[i].model);
        cr_expect(eq(u64, model.job.micro_batch, cases[i].micro_batch), "%s", cases[i].model);
        cr_expect(eq(u64, model.job.global_batch, 512));
        cr_expect(eq(dbl, model.job.gradient_bytes, 2));
        nw_model_close(&model);
    }
}

Test(request, rates_come_from_the_best_source_given)
{
    struct nw_model_request request = request_for("llama-2-7b");
    struct nw_results results = {0};
    struct nw_model model;

    snprintf(nw_results_add_run(&results)->context.gpu_model, 128, "NVIDIA A100-SXM4-80GB");
    cr_assert(eq(int, nw_model_open(&request, &results, &model), NW_OK));
    cr_expect(eq(int, (int)model.platform.rate.source, (int)NW_RATE_CATALOGUE));
    /* three quarters of what its products sustain */
    cr_expect(gt(dbl, model.platform.rate.flops_per_s, 0.5 * 312e12));
    cr_expect(lt(dbl, model.platform.rate.flops_per_s, 0.75 * 312e12));
    cr_expect(eq(u64, model.platform.memory_bytes, 80ull << 30));
    nw_model_close(&model);
    request.gemm_tflops = 200;
    cr_assert(eq(int, nw_model_open(&request, &results, &model), NW_OK));
    cr_expect(eq(dbl, model.platform.rate.flops_per_s, 150e12));
    nw_model_close(&model);
    request.tflops = 150;
    request.gpu_memory_bytes = 40ull << 30;
    cr_assert(eq(int, nw_model_open(&request, &results, &model), NW_OK));
    cr_expect(eq(int, (int)model.platform.rate.source, (int)NW_RATE_STATED));
    cr_expect(eq(dbl, model.platform.rate.flops_per_s, 150e12));
    cr_expect(eq(u64, model.platform.memory_bytes, 40ull << 30));
    nw_model_close(&model);
    nw_results_free(&results);
}

/* Interval: never narrower than the rate's own error on a job without communication. */
Test(request, assumed_rates_have_wide_intervals)
{
    struct nw_model_request request = request_for("llama-2-7b");
    struct nw_model model;
    struct nw_steps steps;

    request.gpu = "h100";
    request.ranks = 1;
    request.strategy = "ddp";
    request.overlap = "full";
    cr_assert(eq(int, nw_model_open(&request, NULL, &model), NW_OK));
    cr_assert(eq(int, nw_predict_all(&model, &steps), NW_OK));
    cr_assert(eq(sz, steps.count, 1));
    cr_expect(gt(dbl, steps.items[0].high_ns / steps.items[0].step_ns, 1.2));
    cr_expect(lt(dbl, steps.items[0].low_ns / steps.items[0].step_ns, 0.8));
    cr_expect(steps.items[0].mfu > 0.2 && steps.items[0].mfu < 0.75);
    nw_steps_free(&steps);
    nw_model_close(&model);
}

static struct nw_model opened(const struct nw_model_request *request)
{
    struct nw_model model;

    cr_assert(eq(int, nw_model_open(request, NULL, &model), NW_OK), "%s", nw_last_error()->text);
    return model;
}

static const char *default_of(const struct nw_model *model, const char *option)
{
    for (size_t i = 0; i < model->defaults.count; i++)
        if (strcmp(model->defaults.items[i].option, option) == 0)
            return model->defaults.items[i].value;
    return "";
}

Test(request, a_model_can_be_given_by_its_numbers_or_as_a_changed_preset)
{
    struct nw_model_request request = request_for(NULL);
    struct nw_model model;

    request.tflops = 1;
    request.layers = 12;
    refuses(&request, "--hidden");
    request.hidden = 768;
    request.heads = 12;
    request.vocab = 50257;
    model = opened(&request);
    cr_expect(eq(u64, model.job.net.head_size, 64));
    cr_expect(eq(u64, model.job.net.kv_heads, 12));
    cr_expect(eq(u64, model.job.net.ffn, 3072));
    cr_expect(eq(str, (char *)default_of(&model, "ffn"), "3072"));
    nw_model_close(&model);
    request.heads = 10;
    refuses(&request, "hidden size 768");
    request.heads = 12;
    request.experts_per_token = 2;
    refuses(&request, "--experts");
    request = request_for("llama-2-7b");
    request.tflops = 1;
    request.layers = 2;
    request.tied = "yes";
    model = opened(&request);
    cr_expect(eq(u64, model.job.net.layers, 2));
    cr_expect(model.job.net.tied);
    cr_expect(eq(u64, model.job.net.ffn, 11008));
    nw_model_close(&model);
    request = request_for(NULL);
    request.tflops = 1;
    request.parameters = 25e6;
    refuses(&request, "--flops-per-sample");
    request.flops_per_sample = 8e9;
    model = opened(&request);
    cr_expect(eq(u64, nw_transformer_parameter_count(&model.job.net), 25000000));
    nw_model_close(&model);
}

Test(request, the_framework_follows_from_the_strategy_and_its_types_from_the_framework)
{
    static const struct {
        const char *strategy, *framework, *is;
        double gradient_bytes;
    } cases[] = {{"ddp", NULL, "pytorch", 2},        {"zero2", NULL, "deepspeed", 2},
                 {"distopt", NULL, "megatron", 4},   {"ddp", "megatron", "megatron", 4},
                 {"zero1", "pytorch", "pytorch", 2}, {NULL, NULL, "pytorch", 2},
                 {NULL, "deepspeed", "deepspeed", 2}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_model_request request = request_for("gpt2-124m");

        request.tflops = 1;
        request.strategy = cases[i].strategy;
        request.framework = cases[i].framework;
        struct nw_model model = opened(&request);
        const struct nw_layout layout = nw_model_layout(&model, 1, model.strategies[0]);
        const struct nw_job job = nw_model_job(&model, &layout);

        cr_expect(eq(str, (char *)layout.profile->name, (char *)cases[i].is));
        cr_expect(job.gradient_bytes == cases[i].gradient_bytes ||
                      job.gradient_bytes == layout.profile->gradient_bytes,
                  "case %zu: %g", i, job.gradient_bytes);
        cr_expect(eq(str, (char *)default_of(&model, "framework"),
                     (char *)(cases[i].framework == NULL ? cases[i].is : "")));
        nw_model_close(&model);
    }
    struct nw_model_request request = request_for("gpt2-124m");

    request.tflops = 1;
    request.strategy = "distopt,ddp";
    request.gradients = "bf16";
    struct nw_model model = opened(&request);

    for (size_t s = 0; s < 2; s++) {
        const struct nw_layout layout = nw_model_layout(&model, 1, model.strategies[s]);

        cr_expect(eq(str, (char *)layout.profile->name, s == 0 ? "megatron" : "pytorch"));
        cr_expect(eq(dbl, nw_model_job(&model, &layout).gradient_bytes, 2));
    }
    nw_model_close(&model);
}

Test(request, accumulation_makes_the_global_batch_of_the_data_parallel_ranks)
{
    struct nw_model_request request = request_for("llama-2-7b");

    request.tflops = 1;
    request.ranks = 16;
    request.nodes = "4";
    request.tp = 2;
    request.micro_batch = 3;
    request.grad_accum = 5;
    struct nw_model model = opened(&request);

    cr_expect(eq(u64, model.job.global_batch, 3 * 5 * 8));
    cr_expect(eq(int, model.platform.fabric.gpus_per_node, 4));
    nw_model_close(&model);
    request.nodes = "3";
    refuses(&request, "divides the ranks");
    request.nodes = NULL;
    request.global_batch = 8;
    refuses(&request, "one of them");
    request.global_batch = 0;
    request.lora_targets = "q,x";
    refuses(&request, "--lora-rank");
    request.lora_rank = 8;
    refuses(&request, "\"x\" is no matrix");
}

/* Strategies that were not asked for are left out where the job rules them out. */
Test(request, strategies_that_do_not_go_are_left_out_unless_they_were_named)
{
    struct nw_model_request request = request_for("llama-2-7b");

    request.tflops = 1;
    request.nodes = "1";
    request.offload_params = "cpu";
    request.host_gb_per_s = 25;
    struct nw_model model = opened(&request);

    for (size_t i = 0; model.strategies[i] != NULL; i++)
        cr_expect(model.strategies[i]->weights_sharded, "%s", model.strategies[i]->name);
    nw_model_close(&model);
    request.strategy = "fsdp,ddp";
    refuses(&request, "--offload-params with --strategy ddp");
}

/* A lower end below no time at all would let the events of a step run backwards. */
Test(request, errors_above_the_whole_leave_no_negative_time)
{
    struct nw_model_request request = request_for("llama-2-7b");
    struct nw_model model;
    struct nw_steps steps;

    request.gpu = "a100-80";
    request.ranks = 8;
    request.strategy = "ddp,zero1,fsdp";
    request.assume.items[0] = "RATE_ERROR_ASSUMED=5";
    request.assume.count = 1;
    cr_assert(eq(int, nw_model_open(&request, NULL, &model), NW_OK), "%s", nw_last_error()->text);
    cr_assert(eq(int, nw_predict_all(&model, &steps), NW_OK), "%s", nw_last_error()->text);
    for (size_t i = 0; i < steps.count; i++) {
        cr_expect(ge(dbl, steps.items[i].low_ns, 0));
        cr_expect(lt(dbl, steps.items[i].low_ns, 0.2 * steps.items[i].step_ns));
        cr_expect(gt(dbl, steps.items[i].high_ns, 5 * steps.items[i].step_ns));
    }
    nw_steps_free(&steps);
    nw_model_close(&model);
    request.assume.items[0] = "GEMM_SHARE=97";
    cr_expect(eq(int, nw_model_open(&request, NULL, &model), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "GEMM_SHARE: \"97\" is out of range"), NULL),
              "%s", nw_last_error()->text);
}

static struct nw_steps predicted(const struct nw_model *model)
{
    struct nw_steps steps;

    cr_assert(eq(int, nw_predict_all(model, &steps), NW_OK), "%s", nw_last_error()->text);
    return steps;
}

/* One GPU can hold the only copy, two cannot; ddp goes on both. */
Test(request, a_node_count_keeps_the_strategies_that_go_there)
{
    static const char *const orders[] = {"none,ddp", "ddp,none"};

    for (size_t i = 0; i < 2; i++) {
        struct nw_model_request request = request_for("gpt2-124m");

        request.gpu = "a100-80";
        request.nic_gbit_per_s = 100;
        request.gpus_per_node = 1;
        request.nodes = "1,2";
        request.strategy = orders[i];
        struct nw_model model = opened(&request);
        struct nw_steps steps = predicted(&model);

        cr_assert(eq(sz, steps.count, 3), "%s", orders[i]);
        cr_expect(eq(str, (char *)steps.items[2].strategy->name, "ddp"));
        cr_expect(eq(int, steps.items[2].node_count, 2));
        cr_expect(eq(sz, steps.undealt + steps.unpredicted, 0));
        nw_steps_free(&steps);
        nw_model_close(&model);
    }
}

/* Left out, and told, is only a count on which nothing goes: 64 sequences cannot be dealt to 24. */
Test(request, a_node_count_without_any_strategy_is_left_out_and_told)
{
    struct nw_model_request request = request_for("llama-2-7b");

    request.gpu = "a100-80";
    request.nic_gbit_per_s = 1600;
    request.nodes = "1,3";
    request.micro_batch = 1;
    request.global_batch = 64;
    request.strategy = "fsdp,zero1";
    struct nw_model model = opened(&request);
    struct nw_steps steps = predicted(&model);

    cr_expect(eq(sz, steps.count, 2));
    cr_expect(eq(sz, steps.undealt, 1));
    nw_steps_free(&steps);
    nw_model_close(&model);
    request.global_batch = 48;
    request.nodes = "3,4"; /* the first is none of one node */
    model = opened(&request);
    steps = predicted(&model);
    cr_expect(eq(sz, steps.count, 2));
    cr_expect(eq(int, steps.items[0].node_count, 3));
    nw_steps_free(&steps);
    nw_model_close(&model);
    request.nodes = "1,4"; /* sixteen ranks that share one copy */
    request.shard = 16;
    request.global_batch = 64;
    model = opened(&request);
    steps = predicted(&model);
    cr_expect(eq(sz, steps.count, 2));
    cr_expect(eq(int, steps.items[0].node_count, 4));
    cr_expect(eq(sz, steps.undealt, 1));
    nw_steps_free(&steps);
    nw_model_close(&model);
    request.nodes = "5,7"; /* neither: the cause */
    request.shard = 0;
    model = opened(&request);
    cr_expect(eq(int, nw_predict_all(&model, &steps), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "cannot be dealt"), NULL), "%s",
              nw_last_error()->text);
    nw_model_close(&model);
}

/* Two cards are joined by their bridge, however it is said that a node has two. */
Test(request, a_node_of_two_is_the_same_however_it_is_said)
{
    struct nw_model_request request = request_for("gpt2-124m");

    request.gpu = "a100-80-pcie";
    request.ranks = 2;
    request.strategy = "ddp";
    request.gpus_per_node = 2;
    struct nw_model model = opened(&request);
    struct nw_steps steps = predicted(&model);
    const double step_ns = steps.items[0].step_ns;

    cr_expect(not(model.platform.fabric.link_is_pcie));
    nw_steps_free(&steps);
    nw_model_close(&model);
    request.gpus_per_node = 0;
    request.nodes = "1";
    model = opened(&request);
    steps = predicted(&model);
    cr_expect(eq(int, model.platform.fabric.gpus_per_node, 2));
    cr_expect(not(model.platform.fabric.link_is_pcie));
    cr_expect(eq(dbl, steps.items[0].step_ns, step_ns));
    nw_steps_free(&steps);
    nw_model_close(&model);
}

/* Of eight GPUs on one node, times without an interval. */
static struct nw_results imported(void)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    const struct wire wire = {"all_reduce", 8, 1, 5e3, 100e9};

    for (uint64_t bytes = 1024; bytes <= 1u << 30; bytes *= 4)
        add_point(run, &wire, bytes, wire_ns(&wire, (double)bytes), 0, false);
    return results;
}

/* An assumed error that is told as in use is used. */
Test(request, assumed_errors_reach_the_interval)
{
    static const struct {
        const char *small, *large;
        double tflops, gemm_tflops;
    } cases[] = {{"RATE_ERROR_STATED=0.01", "RATE_ERROR_STATED=0.5", 100, 0},
                 {"RATE_ERROR_ASSUMED=0.01", "RATE_ERROR_ASSUMED=0.5", 0, 200},
                 {"IMPORT_ERROR=0.01", "IMPORT_ERROR=0.9", 100, 0},
                 {"LEAST_ERROR=0.01", "LEAST_ERROR=0.9", 0, 200}};
    static const nw_assumed used[] = {NW_ASSUMES(RATE_ERROR_STATED), NW_ASSUMES(RATE_ERROR_ASSUMED),
                                      NW_ASSUMES(IMPORT_ERROR), NW_ASSUMES(LEAST_ERROR)};
    struct nw_results results = imported();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double width[2];

        for (int large = 0; large < 2; large++) {
            struct nw_model_request request = request_for("llama-2-7b");
            struct nw_model model;

            request.gpu = "a100-80";
            request.tflops = cases[i].tflops;
            request.gemm_tflops = cases[i].gemm_tflops;
            request.ranks = 8;
            request.strategy = "ddp";
            request.micro_batch = 1;
            request.global_batch = 8;
            request.overlap = "none";
            request.assume.items[0] = large ? cases[i].large : cases[i].small;
            request.assume.count = 1;
            cr_assert(eq(int, nw_model_open(&request, &results, &model), NW_OK), "%s",
                      nw_last_error()->text);
            struct nw_steps steps = predicted(&model);

            cr_expect(ne(u64, !large || (steps.items[0].assumed & used[i]) != 0, 0), "%s",
                      cases[i].large);
            width[large] =
                (steps.items[0].high_ns - steps.items[0].low_ns) / steps.items[0].step_ns;
            nw_steps_free(&steps);
            nw_model_close(&model);
        }
        cr_expect(gt(dbl, width[1], 1.05 * width[0]), "%s: %g and %g", cases[i].large, width[0],
                  width[1]);
    }
    nw_results_free(&results);
}
