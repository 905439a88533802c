#include <criterion/criterion.h>

#include "model_support.h"

#define RATE(gb) ((gb)*1e9)

static void add_lane(struct nw_run *run, const char *lane, const char *features,
                     const char *case_name, double busbw_bytes_per_s)
{
    const size_t first = run->record_count;

    add_group(run, 8, 1, 10e3, busbw_bytes_per_s);
    for (size_t i = first; i < run->record_count; i++) {
        struct nw_record *record = &run->records[i];

        snprintf(record->lane, sizeof record->lane, "%s", lane);
        snprintf(record->features, sizeof record->features, "%s", features);
        snprintf(record->case_name, sizeof record->case_name, "%s", case_name);
        record->simulated = true;
    }
}

/* A run as a GPU node gives it: lanes, features, and cases that make no curve. */
static struct nw_run *make(struct nw_results *results)
{
    struct nw_run *run = nw_results_add_run(results);

    add_lane(run, "ce", "", "h2d", RATE(1));
    add_lane(run, "pcie", "", "coll", RATE(40));
    add_lane(run, "auto", "graph", "coll", RATE(300));
    add_lane(run, "auto", "", "overlap", RATE(2));
    add_lane(run, "auto", "", "coll", RATE(450));
    add_lane(run, "nvlink", "", "coll", RATE(400));
    return run;
}

static void add_product(struct nw_run *run, const char *lane, int rank, const char *dtype,
                        double tflops)
{
    struct nw_record *record = nw_run_new_record(run);

    snprintf(record->case_name, sizeof record->case_name, "gemm");
    snprintf(record->collective, sizeof record->collective, "gemm");
    snprintf(record->lane, sizeof record->lane, "%s", lane);
    snprintf(record->dtype, sizeof record->dtype, "%s", dtype);
    record->rank_count = 8;
    record->host_count = 1;
    record->bytes = 1u << 20;
    record->peer_a = rank;
    record->time_ns = nw_stats_single(1e6);
    record->count = 8192u * 8192u;
    record->flop_per_s = tflops * 1e12;
}

static void open_model(const struct nw_results *results, const char *gpu, struct nw_model *model)
{
    struct nw_model_request request = request_for("llama-2-7b");

    request.gpu = gpu;
    request.nodes = "1";
    cr_assert_eq(nw_model_open(&request, results, model), NW_OK, "%s", nw_last_error()->text);
}

Test(model_lanes, a_curve_is_of_one_lane_one_set_of_features_and_a_case_of_collectives)
{
    struct nw_results results = {0};
    struct nw_curves curves = {0};

    make(&results);
    cr_assert_eq(nw_curves_add(&curves, &results, 8), NW_OK);
    cr_assert_eq(curves.count, 4 * 3);
    cr_assert_str_eq(nw_curves_lane(&curves), "auto");
    cr_assert_not(nw_curves_have_lane(&curves, "ce"));
    const struct nw_curve *curve = &curves.items[0];

    while (strcmp(curve->collective, "all_reduce") != 0 || strcmp(curve->lane, "auto") != 0 ||
           curve->features[0] != '\0')
        cr_assert_lt(++curve, &curves.items[curves.count]);
    cr_assert_float_eq(curve->points[curve->point_count - 1].time_ns,
                       10e3 + 1.75 * (double)(1u << 30) / RATE(450) * 1e9, 1);
    nw_curves_free(&curves);
    nw_results_free(&results);
}

Test(model_lanes, the_step_over_each_lane_is_that_of_its_own_curves)
{
    struct nw_results results = {0};
    struct nw_lane_effects effects;
    struct nw_model model;
    struct nw_steps steps, alone;

    make(&results);
    open_model(&results, "h100-sxm", &model);
    cr_assert_eq(nw_predict_all(&model, &steps), NW_OK);
    cr_assert_eq(nw_predict_lanes(&model, &steps.items[0], &effects), NW_OK);
    cr_assert_eq(effects.count, 1);
    const struct nw_lane_effect *effect = &effects.items[0];

    cr_assert_str_eq(effect->fast, "nvlink");
    cr_assert_str_eq(effect->slow, "pcie");
    cr_assert(effect->saved > 0 && effect->saved < 1);
    cr_assert(effect->saved_low < effect->saved && effect->saved < effect->saved_high);
    cr_assert((effect->over_fast.how & NW_COST_SIMULATED) != 0);
    /* as a model that is told the lane */
    model.platform.fabric.lane = "pcie";
    cr_assert_eq(nw_predict_all(&model, &alone), NW_OK);
    cr_assert_float_eq(alone.items[0].step_ns, effect->over_slow.step_ns, 1);
    nw_steps_free(&alone);
    nw_steps_free(&steps);
    nw_model_close(&model);
    nw_results_free(&results);
}

Test(model_lanes, without_both_lanes_measured_there_is_no_effect)
{
    struct nw_results results = {0};
    struct nw_lane_effects effects;
    struct nw_model model;
    struct nw_steps steps;

    add_lane(nw_results_add_run(&results), "nvlink", "", "coll", RATE(400));
    open_model(&results, "h100-sxm", &model);
    cr_assert_eq(nw_predict_all(&model, &steps), NW_OK);
    cr_assert_eq(nw_predict_lanes(&model, &steps.items[0], &effects), NW_OK);
    cr_assert_eq(effects.count, 0);
    nw_steps_free(&steps);
    nw_model_close(&model);
    nw_results_free(&results);
}

Test(model_lanes, the_measured_products_of_the_slowest_gpu_are_the_compute_rate)
{
    static const struct {
        const char *model, *asked;
        bool measured;
    } rows[] = {
        {"SIMULATED NVIDIA H100 80GB HBM3 (no hardware)", NULL, true},
        {"NVIDIA H100 80GB HBM3", "h100-sxm", true}, /* the same GPU, by another name */
        {"NVIDIA H100 80GB HBM3", "a100-80", false}, /* another than the measured one */
        {"An unknown GPU", NULL, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results = {0};
        struct nw_run *run = make(&results);
        struct nw_model model;

        snprintf(run->context.gpu_model, sizeof run->context.gpu_model, "%s", rows[i].model);
        add_product(run, "own", 0, "bfloat16", 500);
        add_product(run, "cublas", 0, "bfloat16", 740);
        add_product(run, "cublas", 1, "bfloat16", 700);
        add_product(run, "cublas", 1, "half", 650);
        open_model(&results, rows[i].asked, &model);
        cr_assert_eq(model.platform.rate.measured, rows[i].measured, "%zu", i);
        if (rows[i].measured)
            cr_assert_float_eq(model.platform.rate.base_flops_per_s, 700e12, 1);
        else
            cr_assert_eq(model.platform.rate.source, NW_RATE_CATALOGUE);
        nw_model_close(&model);
        nw_results_free(&results);
    }
}
