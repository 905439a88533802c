#include <criterion/criterion.h>

#include "model/gemm.h"
#include "model_support.h"

static struct nw_platform platform_of(const char *gpu, nw_units_kind units)
{
    struct nw_platform platform = {.units = units, .rate = {.source = NW_RATE_CATALOGUE}};

    cr_assert_eq(nw_gpu_find(gpu, &platform.gpu), NW_OK, "%s", gpu);
    nw_assumptions_reset(&platform.assumptions);
    platform.hbm_bytes_per_s = platform.gpu->hbm_bytes_per_s;
    platform.peak_flops =
        units == NW_UNITS_FP16 ? platform.gpu->fp16_flops : platform.gpu->bf16_flops;
    platform.step_time_factor = 1;
    return platform;
}

/* Single shapes that were measured, share of the datasheet's peak: shared conditions with the law's
 * fit, so the bounds say how well it holds, not how it was found. */
Test(model_gemm, measured_shapes)
{
    static const struct {
        const char *gpu;
        double m, k, n, measured, within;
    } rows[] = {
        {"A100 PCIe 80GB", 4096, 5120, 1536, 0.788, 0.21},
        {"A100 PCIe 80GB", 4096, 14336, 4096, 0.738, 0.12},
        {"A100 PCIe 80GB", 4096, 8192, 64128, 0.746, 0.12},
        {"A100 PCIe 80GB", 4096, 7168, 8192, 0.736, 0.12},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct nw_platform platform = platform_of(rows[i].gpu, NW_UNITS_BF16);
        const double law = nw_gemm_efficiency(&platform, 1, rows[i].m, rows[i].n, rows[i].k);

        cr_expect(fabs(law / rows[i].measured - 1) < rows[i].within,
                  "%s %g × %g × %g: %.3f, not %.3f", rows[i].gpu, rows[i].m, rows[i].k, rows[i].n,
                  law, rows[i].measured);
    }
}

/* Any product on any GPU: never beyond what the largest sustain, never beyond memory's feeding. */
Test(model_gemm, no_product_is_faster_than_the_units_or_the_memory)
{
    uint64_t state = 11;

    for (int i = 0; i < 2000; i++) {
        const struct nw_gpu *gpu = &nw_gpus[next_random(&state) % nw_gpu_count];
        const struct nw_platform platform = platform_of(gpu->name, NW_UNITS_FP16);
        const struct nw_product product = {.batch = 1 + (double)(next_random(&state) % 8),
                                           .m = floor(random_between(&state, 1, 1e5)),
                                           .n = floor(random_between(&state, 1, 1e5)),
                                           .k = floor(random_between(&state, 1, 1e5)),
                                           .in_bytes = 2,
                                           .out_bytes = 2};
        const double ns = nw_product_ns(&platform, NW_UNITS_FP16, &product);
        const double rate = nw_product_flops(&product) / ns * 1e9;
        const double bytes =
            2 * product.batch * ((product.m + product.n) * product.k + product.m * product.n);

        cr_assert(ns > 0 && isfinite(ns));
        cr_expect(rate <= nw_sustained_flops(&platform, NW_UNITS_FP16) * (1 + 1e-9), "%s",
                  gpu->name);
        cr_expect(bytes / ns * 1e9 <= platform.hbm_bytes_per_s, "%s", gpu->name);
    }
}

/* More of the batch costs more, and twice of it at most twice (whole waves once). */
Test(model_gemm, whole_tiles_and_waves)
{
    const struct nw_platform platform = platform_of("A100 SXM4 80GB", NW_UNITS_BF16);
    const struct nw_product one_tile = {.batch = 1, .m = 128, .n = 256, .k = 4096};
    const struct nw_product full_wave = {.batch = 108, .m = 128, .n = 256, .k = 4096};
    const struct nw_product broken = {.batch = 109, .m = 128, .n = 256, .k = 4096};

    cr_expect_float_eq(nw_shape_share(&platform, &full_wave), 4096.0 / (4096 + 128), 1e-9);
    cr_expect(nw_shape_share(&platform, &one_tile) < 0.05);
    cr_expect(nw_shape_share(&platform, &broken) < 0.80 * nw_shape_share(&platform, &full_wave));
}

/* A measured shape is taken as measured; what was measured slower than the law says makes its
 * neighbours slower. */
Test(model_gemm, measured_points_come_before_the_law)
{
    struct nw_platform platform = platform_of("A100 SXM4 80GB", NW_UNITS_BF16);
    const double law = nw_gemm_efficiency(&platform, 1, 4096, 4096, 4096);
    const struct nw_gemm_point points[] = {
        {.batch = 1, .m = 4096, .n = 4096, .k = 4096, .flops_per_s = 100e12},
        {.batch = 1, .m = 16384, .n = 16384, .k = 16384, .flops_per_s = 250e12},
    };

    memcpy(platform.measured.products, points, sizeof points);
    platform.measured.product_count = 2;
    nw_gemm_prepare(&platform);
    cr_expect_float_eq(nw_gemm_efficiency(&platform, 1, 4096, 4096, 4096), 100 / 312.0, 1e-3);
    cr_expect_float_eq(nw_gemm_efficiency(&platform, 1, 16384, 16384, 16384), 250 / 312.0, 1e-3);
    cr_expect(nw_gemm_efficiency(&platform, 1, 4096, 4096, 5120) < law * 0.6);
}

/* Each unit's own bytes: rows of 4064 lie on whole lines in fp32, not in 16 bit; a product bound by
 * memory takes half as long in fp8. */
Test(model_gemm, elements_are_as_wide_as_the_units_read_them)
{
    struct nw_platform fp32 = platform_of("A100 SXM4 80GB", NW_UNITS_FP32);
    const struct nw_platform bf16 = platform_of("H100 SXM5 80GB", NW_UNITS_BF16);
    const struct nw_platform fp8 = platform_of("H100 SXM5 80GB", NW_UNITS_FP8);
    const struct nw_product product = {
        .batch = 1, .m = 4096, .n = 4064, .k = 4064, .in_bytes = 4, .out_bytes = 4};

    fp32.measured.products[0] =
        (struct nw_gemm_point){.batch = 1, .m = 4096, .n = 4064, .k = 4064, .flops_per_s = 9e12};
    fp32.measured.product_count = 1;
    nw_gemm_prepare(&fp32);
    cr_expect_float_eq(nw_product_flops(&product) / nw_product_ns(&fp32, NW_UNITS_FP32, &product) *
                           1e9 / 9e12,
                       1, 1e-6);
    cr_expect_float_eq(nw_gemm_efficiency(&fp8, 1, 1, 16384, 16384) * fp8.peak_flops /
                           (nw_gemm_efficiency(&bf16, 1, 1, 16384, 16384) * bf16.peak_flops),
                       2, 1e-3);
}

/* Units: fp32 without matrix units is the slowest, fp8 the fastest; V100 has no bf16. */
Test(model_gemm, rates_of_the_units)
{
    const struct nw_platform h100 = platform_of("H100 SXM5 80GB", NW_UNITS_BF16);
    const struct nw_platform v100 = platform_of("V100 SXM2 32GB", NW_UNITS_FP16);

    cr_expect(nw_sustained_flops(&h100, NW_UNITS_FP32) < nw_sustained_flops(&h100, NW_UNITS_TF32));
    cr_expect(nw_sustained_flops(&h100, NW_UNITS_TF32) < nw_sustained_flops(&h100, NW_UNITS_BF16));
    /* 700 W of the 841 W that it would draw at its peak */
    cr_expect_float_eq(nw_sustained_flops(&h100, NW_UNITS_BF16) / (0.97 * 0.888 * 794.5e12), 1,
                       1e-3);
    cr_expect_float_eq(nw_sustained_flops(&h100, NW_UNITS_FP8) / (0.97 * 0.888 * 1402.6e12), 1,
                       1e-3);
    cr_expect(isnan(nw_sustained_flops(&v100, NW_UNITS_BF16)));
    cr_expect(nw_sustained_flops(&v100, NW_UNITS_TF32) < 15.7e12);
}
