#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/gemm_judge.h"
#include "bench/gpu_watch.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct nw_gpu_state good = {1980e6, 1980e6, 650, 700, 58, 0};

static struct nw_gemm_rate rate_of(int rank, int lane, const char *dtype, const char *model,
                                   double tflops)
{
    struct nw_gemm_rate rate = {.rank = rank,
                                .lane = lane,
                                .model = model,
                                .flop_per_s = tflops * 1e12,
                                .drift = 0,
                                .during = good};

    snprintf(rate.dtype, sizeof rate.dtype, "%s", dtype);
    return rate;
}

Test(bench_gemm_judge, a_gpu_below_its_like_is_found_once)
{
    struct nw_gemm_fault faults[16];
    const struct nw_gemm_rate rates[] = {
        rate_of(0, 0, "half", "H100", 600),     rate_of(1, 0, "half", "H100", 605),
        rate_of(2, 0, "half", "H100", 584), /* 2.7 % below the median */
        rate_of(3, 0, "half", "H100", 570), /* 5 % */
        rate_of(4, 0, "half", "A100", 250), /* alone of its kind */
        rate_of(0, 0, "bfloat16", "H100", 640), rate_of(1, 0, "bfloat16", "H100", 640),
        rate_of(2, 0, "bfloat16", "H100", 640), rate_of(3, 0, "bfloat16", "H100", 560),
        rate_of(0, 1, "bfloat16", "H100", 700), rate_of(1, 1, "bfloat16", "H100", 400),
        rate_of(3, 1, "bfloat16", "H100", 700),
    };
    const size_t count = nw_gemm_slow(rates, COUNT(rates), faults);

    cr_assert_eq(count, 2, "%zu", count);
    cr_expect_eq(faults[0].rank, 1);
    cr_expect_eq(faults[0].rate, &rates[10]);
    cr_expect_float_eq(faults[0].usual, 700e12, 1);
    cr_expect_eq(faults[1].rank, 3, "the type in which it is worst");
    cr_expect_eq(faults[1].rate, &rates[8]);
    cr_expect_float_eq(nw_gemm_median(rates, COUNT(rates), 1, "bfloat16"), 700e12, 1);
    cr_expect_float_eq(nw_gemm_median(rates, 4, 0, "half"), 592e12, 1);
    cr_expect(isnan(nw_gemm_median(rates, COUNT(rates), 1, "half")));
}

Test(bench_gemm_judge, reasons_to_throttle_are_told_apart)
{
    static const struct {
        int64_t bits;
        double clock_hz;
        bool throttled, capped;
    } cases[] = {
        {0, 1980e6, false, false},  {-1, NAN, false, false},     {0x1, 345e6, false, false},
        {0x4, 1500e6, false, true}, {0x20, 1200e6, true, false}, {0x44, 1200e6, true, false},
        {0x80, NAN, true, false},   {0x2, 1200e6, false, false}, /* a clock that the user wants */
    };
    struct nw_gemm_fault fault;

    for (size_t c = 0; c < COUNT(cases); c++) {
        struct nw_gemm_rate rate = rate_of(3, 0, "half", "H100", 600);

        rate.during.throttle = cases[c].bits;
        rate.during.sm_clock_hz = cases[c].clock_hz;
        cr_expect_eq(nw_gemm_throttled(&rate, 1, &fault), cases[c].throttled, "%zu", c);
        cr_expect_eq(nw_gemm_power_capped(&rate, 1, &fault), cases[c].capped, "%zu", c);
    }
}

Test(bench_gemm_judge, a_rate_that_falls_with_time_is_found)
{
    double samples[40];
    struct nw_gemm_rate rate = rate_of(0, 0, "half", "H100", 600);
    struct nw_gemm_fault fault;

    for (size_t i = 0; i < COUNT(samples); i++)
        samples[i] = i < 20 ? 100 : 105;
    cr_expect_float_eq(nw_gemm_drift(samples, COUNT(samples)), 0.05, 1e-12);
    cr_expect(isnan(nw_gemm_drift(samples, 7)));
    samples[1] = 1000; /* one slow sample is no drift */
    cr_expect_float_eq(nw_gemm_drift(samples, COUNT(samples)), 0.05, 1e-12);
    for (int i = 0; i < 3; i++) {
        static const double drifts[] = {NAN, 0.029, 0.031};

        rate.drift = drifts[i];
        cr_expect_eq(nw_gemm_drifting(&rate, 1, &fault), i == 2, "%g", drifts[i]);
    }
}

Test(bench_gemm_judge, the_hidden_share_is_between_none_and_all)
{
    static const struct {
        double one, other, together, share;
    } cases[] = {{100, 300, 300, 1},    {100, 300, 400, 0}, {100, 300, 350, 0.5},
                 {300, 100, 325, 0.75}, {100, 300, 500, 0}, {100, 300, 250, 1}};

    for (size_t c = 0; c < COUNT(cases); c++)
        cr_expect_float_eq(nw_hidden_share(cases[c].one, cases[c].other, cases[c].together),
                           cases[c].share, 1e-12, "%zu", c);
}

Test(bench_gemm_judge, the_worst_of_all_looks_is_kept)
{
    struct nw_gpu_state worst = nw_gpu_look(NULL, -1);
    const struct nw_gpu_state looks[] = {
        {1980e6, 1980e6, 600, 700, 58, 0},
        {NAN, NAN, NAN, NAN, NAN, -1},
        {1500e6, 1980e6, 690, 700, 71, 0x4},
        {1700e6, 1980e6, 650, 700, 83, 0x20},
    };
    char text[NW_GPU_STATE_TEXT];

    cr_expect_not(nw_gpu_state_is_known(&worst));
    cr_expect_str_eq(nw_gpu_state_text(&worst, text), "");
    for (size_t i = 0; i < COUNT(looks); i++)
        nw_gpu_state_worsen(&worst, &looks[i]);
    cr_expect_eq(worst.sm_clock_hz, 1500e6);
    cr_expect_eq(worst.power_w, 690);
    cr_expect_eq(worst.temperature_c, 83);
    cr_expect_eq(worst.throttle, 0x24);
    cr_expect_str_eq(nw_gpu_state_text(&worst, text),
                     "power cap, heat, SM clock 1500 of 1980 MHz, 83 C, 690 of 700 W");
}
