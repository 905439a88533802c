#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "report/model_text.h"

static void near(double value, double expected, double tolerance, const char *what)
{
    cr_expect(lt(dbl, fabs(value - expected), tolerance * fabs(expected) + 1e-12),
              "%s: %.12g instead of %.12g", what, value, expected);
}

/* One GPU per node, as two small machines on a wire. */
static struct nw_results two_nodes(double inter_bytes_per_s)
{
    struct nw_results results = {0};

    add_group(nw_results_add_run(&results), 2, 2, 100e3, inter_bytes_per_s);
    return results;
}

static struct nw_model open_model(const struct nw_model_request *request,
                                  const struct nw_results *results)
{
    struct nw_model model;

    cr_assert(eq(int, nw_model_open(request, results, &model), NW_OK), "%s", nw_last_error()->text);
    return model;
}

static struct nw_decision decide(const struct nw_model *model)
{
    struct nw_decision decision;

    cr_assert(eq(int, nw_decide(model, &decision), NW_OK), "%s", nw_last_error()->text);
    return decision;
}

static void expect_sentence(const struct nw_model *model, const struct nw_decision *decision,
                            const char *part)
{
    char text[1024];

    nw_report_sentence(text, sizeof text, model, decision);
    cr_expect(ne(ptr, strstr(text, part), NULL), "\"%s\" is not in: %s", part, text);
}

/* 200 Mb/s and 1 Gb/s, less what TCP takes: the same job is turned down on one and taken on the
 * other, and both name the same break-even, which lies between. */
Test(decide, flips_between_a_slow_and_a_fast_wire)
{
    struct nw_model_request request = request_for("gpt2-124m");
    const double rates[2] = {0.0225e9, 0.112e9};
    double even[2];

    request.tflops = 10;
    for (int i = 0; i < 2; i++) {
        struct nw_results results = two_nodes(rates[i]);
        struct nw_model model = open_model(&request, &results);
        struct nw_decision decision = decide(&model);

        cr_assert(eq(sz, decision.count, 2));
        cr_assert(eq(sz, decision.headline, 1));
        const struct nw_choice *second = &decision.choices[1];

        cr_expect(eq(int, (int)second->pays, (int)(i == 0 ? NW_PAYS_NO : NW_PAYS_YES)));
        cr_expect(eq(int, (int)second->break_even, (int)NW_BREAK_EVEN_AT));
        near(second->measured_busbw_bytes_per_s, rates[i], 0.01, "measured");
        expect_sentence(&model, &decision, i == 0 ? "does not pay" : "A second node pays");
        even[i] = second->break_even_busbw_bytes_per_s;
        cr_expect(i == 0 ? second->probability < 0.05 : second->probability > 0.95);
        nw_decision_free(&decision);
        nw_model_close(&model);
        nw_results_free(&results);
    }
    cr_expect(gt(dbl, even[0], 0.025e9));
    cr_expect(lt(dbl, even[0], 0.125e9));
    near(even[0], even[1], 0.02, "the same break-even from both sides");
}

/* On a wire of exactly the break-even rate the costs stand in exactly the ratio of the limit. */
Test(decide, at_the_break_even_the_costs_agree)
{
    static const char *const models[] = {"gpt2-124m", "bert-large", "llama-2-7b"};
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3", "fsdp"};

    for (size_t m = 0; m < 3; m++)
        for (size_t s = 0; s < 5; s++) {
            struct nw_model_request request = request_for(models[m]);

            request.tflops = 5;
            request.strategy = strategies[s];
            request.gpus_per_node = 1;
            request.inter_gb_per_s = 0.05;
            request.price_per_node_hour = 3;
            request.extra_per_node_hour = 0.1;
            struct nw_model model = open_model(&request, NULL);
            struct nw_decision decision = decide(&model);
            const struct nw_choice *second = &decision.choices[1];

            cr_assert(eq(int, (int)second->break_even, (int)NW_BREAK_EVEN_AT));
            /* The given rate is without its latency, what is shown is with it: one measurement
             * tells it. */
            const double factor = nw_coll_find(second->break_even_collective)->bus_factor(2);
            const double bytes = second->break_even_message_bytes;
            const double latency_ns =
                factor * bytes * (1e9 / second->measured_busbw_bytes_per_s - 1e9 / 0.05e9);
            const double time_ns = factor * bytes / second->break_even_busbw_bytes_per_s * 1e9;

            request.inter_gb_per_s = factor * bytes / (time_ns - latency_ns);
            nw_decision_free(&decision);
            nw_model_close(&model);
            model = open_model(&request, NULL);
            decision = decide(&model);
            near(decision.choices[1].cost_ratio, 1.25, 1e-5, strategies[s]);
            near(decision.choices[1].probability, 0.5, 0.01, "even odds");
            nw_decision_free(&decision);
            nw_model_close(&model);
        }
}

Test(decide, with_nothing_between_nodes_gives_the_break_even)
{
    struct nw_model_request request = request_for("gpt2-124m");
    struct nw_results results = {0};

    add_group(nw_results_add_run(&results), 4, 1, 10e3, 5e9);
    request.tflops = 1;
    struct nw_model model = open_model(&request, &results);
    struct nw_decision decision = decide(&model);

    cr_expect(eq(int, model.platform.fabric.gpus_per_node, 4));
    cr_expect(eq(int, (int)decision.choices[1].pays, (int)NW_PAYS_UNKNOWN));
    cr_expect(not(decision.choices[1].predicted));
    cr_expect(decision.choices[1].break_even_busbw_bytes_per_s > 1e6);
    cr_expect(isnan(decision.choices[1].measured_busbw_bytes_per_s));
    expect_sentence(&model, &decision, "A second node would pay from ");
    expect_sentence(&model, &decision, "nothing between nodes was measured");
    nw_decision_free(&decision);
    nw_model_close(&model);
    nw_results_free(&results);
}

Test(decide, says_when_no_wire_or_any_wire_would_do)
{
    struct nw_model_request request = request_for("gpt2-124m");

    request.tflops = 1;
    request.gpus_per_node = 1;
    request.inter_gb_per_s = 1;
    request.price_per_node_hour = 1;
    request.extra_per_node_hour = 5; /* a second node costs six times the first */
    struct nw_model model = open_model(&request, NULL);
    struct nw_decision decision = decide(&model);

    cr_expect(eq(int, (int)decision.choices[1].pays, (int)NW_PAYS_NO));
    cr_expect(eq(int, (int)decision.choices[1].break_even, (int)NW_BREAK_EVEN_NEVER));
    expect_sentence(&model, &decision, "Even an infinitely fast wire");
    nw_decision_free(&decision);
    nw_model_close(&model);

    request.extra_per_node_hour = 0;
    request.max_extra_cost_percent = 1e15;
    model = open_model(&request, NULL);
    decision = decide(&model);
    cr_expect(eq(int, (int)decision.choices[1].pays, (int)NW_PAYS_YES));
    cr_expect(eq(int, (int)decision.choices[1].break_even, (int)NW_BREAK_EVEN_ALWAYS));
    nw_decision_free(&decision);
    nw_model_close(&model);
}

Test(decide, memory_forces_more_nodes)
{
    struct nw_model_request request = request_for("llama-2-70b");

    request.gpu = "h100-sxm";
    request.recompute = "full";
    request.inter_gb_per_s = 200;
    request.nodes = "1,2,4,8";
    struct nw_model model = open_model(&request, NULL);
    struct nw_decision decision = decide(&model);

    cr_expect(eq(int, (int)decision.choices[0].pays, (int)NW_PAYS_UNFIT));
    cr_expect(eq(int, (int)decision.choices[1].pays, (int)NW_PAYS_UNFIT));
    cr_expect(eq(int, (int)decision.choices[2].pays, (int)NW_PAYS_MEMORY));
    cr_expect(eq(int, (int)decision.choices[3].pays, (int)NW_PAYS_YES));
    cr_expect(eq(sz, decision.headline, 2));
    /* 16 × 69e9 bytes of states alone are 12.8 cards of 80 GiB; 512 sequences cannot be dealt to 3
     * nodes of 8. */
    cr_expect(eq(int, decision.fitting_node_count, 4));
    expect_sentence(&model, &decision, "4 nodes are needed: llama-2-70b does not fit on 2");
    nw_decision_free(&decision);
    nw_model_close(&model);

    request.nodes = "1,2";
    request.inter_gb_per_s = 0;
    model = open_model(&request, NULL);
    decision = decide(&model);
    expect_sentence(&model, &decision, "does not fit on 2 nodes, whatever the strategy; 4 nodes");
    nw_decision_free(&decision);
    nw_model_close(&model);
}

Test(decide, a_deadline_forces_more_nodes)
{
    struct nw_model_request request = request_for("gpt2-124m");

    request.tflops = 100;
    request.gpus_per_node = 1;
    request.inter_gb_per_s = 0.2;
    request.tokens = 1e10;
    struct nw_model model = open_model(&request, NULL);
    struct nw_decision decision = decide(&model);
    const double one = decision.choices[0].time_ns, two = decision.choices[1].time_ns;

    cr_expect(eq(int, (int)decision.choices[1].pays, (int)NW_PAYS_NO));
    cr_expect(lt(dbl, two, one));
    near(one / 3.6e12 * decision.choices[0].useful_tokens_per_s * 3600, 1e10, 1e-9, "all tokens");
    nw_decision_free(&decision);
    nw_model_close(&model);
    request.deadline_ns = (one + two) / 2;
    model = open_model(&request, NULL);
    decision = decide(&model);
    cr_expect(eq(int, (int)decision.choices[1].pays, (int)NW_PAYS_DEADLINE));
    expect_sentence(&model, &decision, "meets the deadline");
    nw_decision_free(&decision);
    nw_model_close(&model);
}

Test(decide, prices_and_extras_enter_the_cost)
{
    struct nw_model_request request = request_for("gpt2-124m");
    struct nw_quote quote = {.gpu_count = 1,
                             .price_per_node_hour = NAN,
                             .price_per_node_month = 7305,
                             .price_per_gpu_hour = NAN,
                             .network_extra_per_month = 730.5,
                             .storage_extra_per_month = 1461,
                             .ops_extra_per_month = NAN,
                             .currency = "CNY"};

    request.tflops = 10;
    request.inter_gb_per_s = 1;
    nw_model_request_take_quote(&request, &quote);
    struct nw_model model = open_model(&request, NULL);
    struct nw_decision decision = decide(&model);

    cr_expect(eq(int, model.platform.fabric.gpus_per_node, 1));
    near(decision.choices[0].price_per_hour, 10 + 2, 1e-12, "node and storage");
    near(decision.choices[1].price_per_hour, 20 + 2 + 1, 1e-12, "nodes, storage, network");
    near(decision.choices[0].cost_per_billion_tokens,
         12 / (decision.choices[0].useful_tokens_per_s * 3600) * 1e9, 1e-12, "per token");
    nw_decision_free(&decision);
    nw_model_close(&model);
}

Test(decide, json_has_units_in_its_keys_and_no_unknowns)
{
    struct nw_model_request request = request_for("llama-2-7b");

    request.gpu = "a100-80";
    struct nw_model model = open_model(&request, NULL);
    struct nw_decision decision = decide(&model);
    json_t *json;

    cr_assert(eq(int, nw_decision_to_json(&model, &decision, &json), NW_OK));
    cr_expect(eq(int, (int)json_integer_value(json_object_get(json, "schema")), 1));
    const json_t *one = json_array_get(json_object_get(json, "choices"), 0);
    const json_t *memory = json_object_get(json_object_get(one, "strong"), "memory");

    cr_expect(json_number_value(json_object_get(memory, "weights_bytes")) > 1e9);
    cr_expect(json_number_value(json_object_get(memory, "buffers_bytes")) > 0);
    cr_expect(eq(ptr, json_object_get(one, "cost_of_tokens"), NULL));
    cr_expect(gt(sz, json_array_size(json_object_get(json, "assumed")), 3));
    json_decref(json);
    nw_decision_free(&decision);
    nw_model_close(&model);
}
