#include <criterion/criterion.h>

#include "tests/unit/model_support.h"

#define GPU "NVIDIA H100 80GB HBM3"

static struct nw_record *add(struct nw_run *run, const char *case_name, const char *collective,
                             int rank, uint64_t bytes, double ns)
{
    struct nw_record *record = nw_run_new_record(run);

    snprintf(record->case_name, sizeof record->case_name, "%s", case_name);
    snprintf(record->collective, sizeof record->collective, "%s", collective);
    snprintf(record->lane, sizeof record->lane, "sm");
    record->peer_a = rank;
    record->rank_count = 2;
    record->host_count = 1;
    record->bytes = bytes;
    record->time_ns = nw_stats_single(ns);
    record->time_ns.low = 0.99 * ns;
    record->time_ns.high = 1.01 * ns;
    record->wrong_elements = 0;
    record->algbw_bytes_per_s = (double)bytes / ns * 1e9;
    return record;
}

static void add_product(struct nw_run *run, int rank, uint64_t m, uint64_t n, uint64_t k,
                        double tflops)
{
    struct nw_record *record =
        add(run, "gemm", "gemm", rank, 1, 2.0 * (double)(m * n * k) / tflops * 1e-3);

    snprintf(record->dtype, sizeof record->dtype, "bfloat16");
    record->m = m;
    record->n = n;
    record->k = k;
    record->count = m * n;
    record->flop_per_s = tflops * 1e12;
}

static void add_overlap(struct nw_run *run, const char *collective, double hidden_share)
{
    struct nw_record *record = add(run, "overlap", collective, -1, 25u << 20, 1e6);

    record->hidden_share = hidden_share;
}

/* Two GPUs; the second is slower at everything. */
static struct nw_results measured_node(void)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);

    snprintf(run->context.gpu_model, sizeof run->context.gpu_model, "%s", GPU);
    for (int rank = 0; rank < 2; rank++) {
        const double slow = rank == 0 ? 1 : 1.05;

        add(run, "d2d", "copy", rank, 256u << 20, (256u << 20) / 1.4e12 * 1e9 * slow);
        add(run, "d2d", "read", rank, 256u << 20, (256u << 20) / 3.1e12 * 1e9 * slow);
        add(run, "h2d", "copy", rank, 64u << 20, (64u << 20) / 50e9 * 1e9 * slow);
        add(run, "h2d", "copy", rank, 4096, 5e3)->rank_count = 1;
        add(run, "h2d", "copy", rank, 64u << 20, (64u << 20) / 55e9 * 1e9)->rank_count = 1;
        add(run, "d2h", "copy", rank, 64u << 20, (64u << 20) / 40e9 * 1e9 * slow);
        add_product(run, rank, 8192, 8192, 8192, 700 / slow);
        add_product(run, rank, 8192, 11008, 4096, 600 / slow);
        add_product(run, rank, 8192, 4096, 11008, 500 / slow);
    }
    add_overlap(run, "all_reduce", 0.9);
    add_overlap(run, "all_gather", 0.7);
    add_group(run, 2, 1, 2e4, 300e9);
    return results;
}

static struct nw_model opened(const struct nw_model_request *request,
                              const struct nw_results *results)
{
    struct nw_model model;

    cr_assert_eq(nw_model_open(request, results, &model), NW_OK, "%s", nw_last_error()->text);
    return model;
}

static struct nw_model_request plain(void)
{
    struct nw_model_request request = request_for("llama-2-7b");

    request.strategy = "fsdp";
    request.nodes = "1";
    return request;
}

Test(model_measured, the_slowest_gpu_takes_the_place_of_the_data_sheet)
{
    struct nw_results results = measured_node();
    struct nw_model_request request = plain();
    struct nw_model model = opened(&request, &results);
    const struct nw_platform *platform = &model.platform;
    const double *value = platform->assumptions.value;

    cr_expect_float_eq(platform->measured.memory.value, 2 * 1.4e12 / 1.05, 1e6);
    cr_expect_eq(platform->measured.memory.gpu_count, 2);
    cr_expect_float_eq(platform->hbm_bytes_per_s * value[NW_CONSTANT_HBM_SHARE], 2 * 1.4e12 / 1.05,
                       1e6);
    cr_expect_float_eq(platform->measured.to_device.value, 50e9 / 1.05, 1e3); /* both at once */
    cr_expect_float_eq(platform->host_to_device_bytes_per_s, 40e9 / 1.05, 1e3);
    cr_expect_float_eq(value[NW_CONSTANT_OVERLAP_LOSS], 0.2, 1e-9);
    cr_expect_float_eq(platform->measured.overlap_loss.low, 0.1, 1e-9);
    cr_expect_float_eq(platform->measured.overlap_loss.high, 0.3, 1e-9);
    cr_expect_eq(platform->measured.product_count, 3);
    cr_expect_float_eq(platform->rate.base_flops_per_s, 700e12 / 1.05, 1e6);
    /* at a measured shape the measurement; never above the fastest */
    cr_expect_float_eq(nw_gemm_efficiency(platform, 1, 8192, 4096, 11008) * 989.4, 500 / 1.05, 2);
    cr_expect(nw_gemm_efficiency(platform, 1, 32768, 32768, 32768) * 989.4 <= 700 / 1.05 + 1);
    cr_expect(platform->rate.rel_error > 0.25 && platform->rate.rel_error < 0.26);
    nw_model_close(&model);
    nw_results_free(&results);
}

Test(model_measured, another_gpu_or_what_the_user_says_goes_before_it)
{
    struct nw_results results = measured_node();
    struct nw_model_request request = plain();
    struct nw_model model;

    request.gpu = "a100-80";
    model = opened(&request, &results);
    cr_expect(!model.platform.measured.memory.known && !model.platform.measured.to_host.known);
    cr_expect(!model.platform.measured.overlap_loss.known);
    cr_expect_eq(model.platform.measured.product_count, 0);
    cr_expect_eq(model.platform.rate.source, NW_RATE_CATALOGUE);
    cr_expect_eq(model.platform.assumptions.measured, 0);
    nw_model_close(&model);

    request = plain();
    request.hbm_gb_per_s = 3000;
    request.host_gb_per_s = 20;
    request.gemm_tflops = 400;
    request.assume.items[request.assume.count++] = "OVERLAP_LOSS=0.45";
    model = opened(&request, &results);
    cr_expect_float_eq(model.platform.hbm_bytes_per_s, 3e12, 1);
    cr_expect_float_eq(model.platform.assumptions.value[NW_CONSTANT_HBM_SHARE],
                       nw_constants[NW_CONSTANT_HBM_SHARE].value, 1e-9);
    cr_expect_float_eq(model.platform.host_to_device_bytes_per_s, 20e9, 1);
    cr_expect_float_eq(model.platform.assumptions.value[NW_CONSTANT_OVERLAP_LOSS], 0.45, 1e-9);
    cr_expect_eq(model.platform.measured.product_count, 0);
    cr_expect_float_eq(model.platform.rate.base_flops_per_s, 400e12, 1);
    cr_expect_eq(model.platform.assumptions.measured, 0);
    nw_model_close(&model);
    nw_results_free(&results);
}

/* Half the memory rate, half the product rate: a longer step; and the constants are not called
 * assumed any more. */
Test(model_measured, slower_measurements_make_a_longer_step)
{
    double step_ns[2];

    for (int slow = 0; slow < 2; slow++) {
        struct nw_results results = measured_node();
        struct nw_run *run = &results.runs[0];
        struct nw_model_request request = plain();
        struct nw_steps steps;

        for (size_t i = 0; slow && i < run->record_count; i++) {
            if (strcmp(run->records[i].case_name, "d2d") == 0)
                run->records[i].algbw_bytes_per_s /= 2;
            if (strcmp(run->records[i].case_name, "gemm") == 0)
                run->records[i].flop_per_s /= 2;
        }
        struct nw_model model = opened(&request, &results);

        cr_assert_eq(nw_predict_all(&model, &steps), NW_OK, "%s", nw_last_error()->text);
        step_ns[slow] = steps.items[0].step_ns;
        cr_expect_eq(steps.items[0].assumed & (NW_ASSUMES(HBM_SHARE) | NW_ASSUMES(OVERLAP_LOSS) |
                                               NW_ASSUMES(GEMM_SHARE)),
                     0);
        nw_steps_free(&steps);
        nw_model_close(&model);
        nw_results_free(&results);
    }
    cr_expect(step_ns[1] > 1.7 * step_ns[0] && step_ns[1] < 2.1 * step_ns[0], "%g %g", step_ns[0],
              step_ns[1]);
}

/* Wrong data, short copies and other cases say nothing. */
Test(model_measured, what_is_not_good_is_not_taken)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_measured measured;

    add(run, "d2d", "copy", 0, 1u << 20, 1e3);
    add(run, "d2d", "copy", 0, 256u << 20, 2e5)->wrong_elements = 3;
    add(run, "h2d", "copy_both", 0, 64u << 20, 1e6);
    add(run, "d2h", "copy", -1, 64u << 20, 1e6);
    add(run, "d2h", "copy", 0, 64u << 20, NAN);
    add_overlap(run, "all_reduce", NAN);
    nw_measured_of(&results, "bfloat16", &measured);
    cr_expect(!measured.memory.known && !measured.to_device.known && !measured.to_host.known);
    cr_expect(!measured.overlap_loss.known);
    cr_expect_eq(measured.product_count, 0);
    nw_results_free(&results);
    nw_measured_of(NULL, NULL, &measured);
    cr_expect(!measured.memory.known);
}

Test(model_measured, links_and_nics_of_a_topology_stand_in)
{
    struct nw_model_request request = plain();
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_read_file(NW_SOURCE_DIR "/tests/field/cases/healthy-hgx-h100.json", &topo),
                 NW_OK, "%s", nw_last_error()->text);
    request.topos = &topo;
    request.topo_count = 1;
    struct nw_model model = opened(&request, NULL);

    cr_expect_str_eq(model.platform.gpu->name, "H100 SXM5 80GB");
    cr_expect_eq(model.platform.fabric.gpus_per_node, 8);
    cr_expect_float_eq(model.platform.fabric.wire_bytes_per_s, 400e9, 1);
    cr_expect_eq(model.platform.fabric.nic_count, 8);
    /* the file does not say that NVLinks are missing, only not that they are there */
    cr_expect(!model.platform.fabric.link_is_pcie);
    cr_expect(model.platform.measured.nics_by_topology);
    nw_model_close(&model);

    request.nic_gbit_per_s = 800;
    model = opened(&request, NULL);
    cr_expect_float_eq(model.platform.fabric.wire_bytes_per_s, 100e9, 1);
    cr_expect(!model.platform.measured.nics_by_topology);
    nw_model_close(&model);
    nw_topo_free(topo);
}
