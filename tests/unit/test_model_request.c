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
