#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "model/request.h"
#include "model/wire_curve.h"

static void decide(const char *model_name, double inter, struct nw_model *model,
                   struct nw_decision *decision)
{
    struct nw_model_request request = {.model = NULL};

    cr_assert_eq(nw_options_reset(nw_model_options, nw_model_option_count, &request), NW_OK);
    cr_assert_eq(nw_options_reset(nw_price_options, nw_price_option_count, &request), NW_OK);
    request.model = model_name;
    request.gpu = "h100-sxm";
    request.gpus_per_node = 8;
    request.intra_gb_per_s = 360;
    request.inter_gb_per_s = inter;
    request.nodes = "1,2";
    request.price_per_node_hour = 20;
    cr_assert_eq(nw_model_open(&request, NULL, model), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_decide(model, decision), NW_OK, "%s", nw_last_error()->text);
}

/* The curve goes through the decision's own step and through its break-even. */
Test(model_wire_curve, it_agrees_with_the_decision)
{
    struct nw_model model;
    struct nw_decision decision;
    struct nw_wire_curve curve;
    double before = INFINITY, cost_even = NAN;

    decide("llama-2-7b", 40, &model, &decision);
    cr_assert_eq(nw_wire_curve_of(&model, &decision, 400e9, &curve), NW_OK, "%s",
                 nw_last_error()->text);
    const struct nw_choice *choice = &decision.choices[decision.headline];

    cr_assert_gt(curve.count, 10); /* less than all: links inside the nodes end the rise */
    cr_expect_eq(curve.nodes, 2);
    cr_expect_eq(curve.step_ns, choice->strong.step_ns);
    cr_expect_float_eq(curve.measured_bytes_per_s, choice->measured_busbw_bytes_per_s,
                       1e-6 * choice->measured_busbw_bytes_per_s);
    cr_expect_lt(curve.measured_low, curve.measured_bytes_per_s);
    cr_expect_gt(curve.measured_high, curve.measured_bytes_per_s);
    cr_expect_eq(curve.quoted_bytes_per_s, 400e9);
    cr_expect_lt(curve.points[0].busbw_bytes_per_s, curve.measured_bytes_per_s);
    cr_expect_gt(curve.points[curve.count - 1].busbw_bytes_per_s, curve.measured_bytes_per_s);
    for (size_t i = 0; i < curve.count; i++) { /* a faster wire is never slower or dearer */
        cr_expect_leq(curve.points[i].step_ns, before * (1 + 1e-9));
        before = curve.points[i].step_ns;
        if (isnan(cost_even) && curve.points[i].busbw_bytes_per_s >= curve.break_even_bytes_per_s)
            cost_even = curve.points[i].cost_per_billion_tokens;
    }
    cr_assert_eq(choice->break_even, NW_BREAK_EVEN_AT);
    cr_expect_leq(cost_even, curve.limit_cost_per_billion_tokens * (1 + 1e-6));
    nw_decision_free(&decision);
    nw_model_close(&model);
}

Test(model_wire_curve, one_node_has_none)
{
    struct nw_model model;
    struct nw_decision decision;
    struct nw_wire_curve curve;

    decide("llama-2-7b", 40, &model, &decision);
    decision.headline = 0;
    cr_assert_eq(nw_wire_curve_of(&model, &decision, NAN, &curve), NW_OK);
    cr_expect_eq(curve.count, 0);
    nw_decision_free(&decision);
    nw_model_close(&model);
}
