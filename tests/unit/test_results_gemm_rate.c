#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>

#include "results/gemm_rate.h"

static struct nw_record product(int rank, const char *lane, const char *dtype, double tflops)
{
    struct nw_record record;

    nw_record_init(&record);
    snprintf(record.case_name, sizeof record.case_name, "gemm");
    snprintf(record.lane, sizeof record.lane, "%s", lane);
    snprintf(record.dtype, sizeof record.dtype, "%s", dtype);
    record.peer_a = rank;
    record.flop_per_s = tflops * 1e12;
    record.time_ns = nw_stats_single(1e6);
    record.time_ns.low = 0.99e6;
    record.time_ns.high = 1.02e6;
    if (isnan(tflops))
        record.rc = NW_EWRONG;
    return record;
}

Test(results_gemm_rate, the_better_lane_of_the_slowest_gpu_counts)
{
    static const struct {
        const char *name, *dtype;
        double own[3], cublas[3]; /* of rank 0, 1, 2; 0: no record; NAN: wrong data */
        double expected;          /* 0: no rate */
    } cases[] = {
        {"cuBLAS is better everywhere", "bfloat16", {500, 510, 505}, {700, 690, 710}, 690},
        {"each GPU by its better one", "bfloat16", {500, 510, 505}, {700, 0, 710}, 510},
        {"no cuBLAS", "half", {500, 480, 505}, {0, 0, 0}, 480},
        {"fp8 by cuBLAS only", "f8e4m3", {0, 0, 0}, {1300, 1250, 1290}, 1250},
        {"one lane is wrong", "half", {500, NAN, 505}, {700, 690, 710}, 690},
        {"a GPU has no right product", "half", {500, NAN, 505}, {700, NAN, 710}, 0},
        {"nothing measured", "half", {0, 0, 0}, {0, 0, 0}, 0},
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct nw_record records[8];
        double rate = -1, low = -1, high = -1;
        size_t count = 0;
        bool found;

        records[count++] = product(0, "own", "float", 1); /* another type */
        for (int rank = 0; rank < 3; rank++) {
            if (cases[c].own[rank] != 0)
                records[count++] = product(rank, "own", cases[c].dtype, cases[c].own[rank]);
            if (cases[c].cublas[rank] != 0)
                records[count++] = product(rank, "cublas", cases[c].dtype, cases[c].cublas[rank]);
        }
        found = nw_gemm_rate_of(records, count, cases[c].dtype, &rate, &low, &high);
        cr_expect_eq(found, cases[c].expected > 0, "%s", cases[c].name);
        if (!found) {
            cr_expect_eq(rate, -1, "%s: set", cases[c].name);
            continue;
        }
        cr_expect_float_eq(rate, cases[c].expected * 1e12, 1, "%s: %g", cases[c].name, rate);
        cr_expect_float_eq(low / rate, 1 / 1.02, 1e-9, "%s", cases[c].name);
        cr_expect_float_eq(high / rate, 1 / 0.99, 1e-9, "%s", cases[c].name);
        cr_expect(nw_gemm_rate_of(records, count, cases[c].dtype, NULL, NULL, NULL));
    }
}

static struct nw_record shaped(int rank, const char *lane, uint64_t n, uint64_t k, double tflops)
{
    struct nw_record record = product(rank, lane, "bfloat16", tflops);

    record.m = 1024;
    record.n = n;
    record.k = k;
    record.count = record.m * n;
    return record;
}

Test(results_gemm_rate, each_shape_by_the_slowest_gpu_of_all_runs)
{
    struct nw_record first[] = {
        shaped(0, "own", 4096, 512, 300),  shaped(1, "own", 4096, 512, 290),
        shaped(0, "cublas", 4096, 512, 0), shaped(1, "cublas", 4096, 512, 310),
        shaped(0, "own", 512, 4096, 200),  shaped(1, "own", 512, 4096, NAN),
        shaped(0, "own", 2048, 512, 100),  shaped(1, "own", 2048, 512, 101),
    };
    struct nw_record second[] = {shaped(0, "cublas", 4096, 512, 280),
                                 product(0, "own", "bfloat16", 400), /* an old file's: 4 x 4 x 4 */
                                 product(0, "own", "half", 50)};
    const struct nw_run runs[] = {{.records = first, .record_count = 8},
                                  {.records = second, .record_count = 3}};
    const struct nw_run *const both[] = {&runs[0], &runs[1]};
    struct nw_gemm_measured found[8];

    second[1].count = 16;
    cr_assert_eq(nw_gemm_shapes_of(both, 1, "bfloat16", found, 8), 2); /* one is wrong on GPU 1 */
    cr_expect_float_eq(found[0].flop_per_s, 300e12, 1);
    cr_expect_eq(found[0].gpu_count, 2);
    cr_expect_float_eq(found[0].low / found[0].flop_per_s, 1 / 1.02, 1e-9);
    cr_expect_float_eq(found[1].flop_per_s, 100e12, 1);
    cr_assert_eq(nw_gemm_shapes_of(both, 2, "bfloat16", found, 8), 3);
    cr_expect_float_eq(found[0].flop_per_s, 280e12, 1);
    cr_expect(found[2].m == 4 && found[2].n == 4 && found[2].k == 4);
    cr_expect_eq(nw_gemm_shapes_of(both, 2, "bfloat16", found, 1), 1);
    cr_expect_eq(nw_gemm_shapes_of(both, 2, "f8e4m3", found, 8), 0);
}
