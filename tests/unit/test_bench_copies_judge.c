#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "bench/copies_judge.h"

enum { GPUS = 8 };

Test(bench_copies_judge, a_gpu_is_compared_with_its_model_only)
{
    static const struct {
        const char *models[GPUS];
        double rates[GPUS];
        size_t count;
        int slow; /* -1: none */
        double usual;
    } rows[] = {
        /* 5 % below is slow at its own memory, 2 % is not */
        {{"H100", "H100", "H100", "H100"}, {100, 100, 95, 100}, 4, 2, 100},
        {{"H100", "H100", "H100", "H100"}, {100, 100, 98, 100}, 4, -1, 0},
        /* all of them scatter: no outlier */
        {{"H100", "H100", "H100", "H100"}, {100, 92, 95, 104}, 4, -1, 0},
        /* another model is not slow but another */
        {{"H100", "A100", "H100", "H100"}, {100, 60, 100, 100}, 4, -1, 0},
        /* of two nobody knows which one is right */
        {{"H100", "H100"}, {100, 60}, 2, -1, 0},
        /* what was not measured does not count, and is not slow */
        {{"H100", "H100", "H100", "H100"}, {100, NAN, 101, 60}, 4, 3, 100},
    };

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        struct nw_gpu_rate rates[GPUS];
        double usual[GPUS];

        for (size_t i = 0; i < rows[row].count; i++)
            rates[i] = (struct nw_gpu_rate){rows[row].models[i], rows[row].rates[i]};
        cr_assert_eq(nw_gpus_judge(rates, rows[row].count, NW_SLOW_GPU_MEMORY_REL, usual), NW_OK);
        for (size_t i = 0; i < rows[row].count; i++) {
            cr_assert_eq(!isnan(usual[i]), (int)i == rows[row].slow, "row %zu, GPU %zu", row, i);
            if ((int)i == rows[row].slow)
                cr_assert_float_eq(usual[i], rows[row].usual, 1e-9, "row %zu", row);
        }
    }
}

static void all_alike(double rates[], size_t count)
{
    for (size_t i = 0; i < count * count; i++)
        rates[i] = i / count == i % count ? NAN : 390;
}

Test(bench_copies_judge, a_gpu_with_a_dead_link_is_named_instead_of_its_pairs)
{
    static const size_t counts[] = {3, 4, 8}; /* of 4 GPUs one has half of all pairs */

    for (size_t row = 0; row < sizeof counts / sizeof *counts; row++) {
        const size_t count = counts[row];
        double rates[GPUS * GPUS];
        struct nw_slow_peers slow;

        all_alike(rates, count);
        for (size_t i = 0; i < count; i++)
            if (i != 1)
                rates[1 * count + i] = rates[i * count + 1] = 346;
        cr_assert_eq(nw_peers_judge(rates, count, NW_SLOW_PEER_SWITCHED_REL, &slow), NW_OK);
        cr_assert_eq(slow.gpu_count, 1, "%zu GPUs: %zu", count, slow.gpu_count);
        cr_assert_eq(slow.gpus[0].a, 1);
        cr_assert_float_eq(slow.gpus[0].bytes_per_s, 346, 1e-9);
        cr_assert_float_eq(slow.gpus[0].usual_bytes_per_s, 390, 1e-9);
        cr_assert_eq(slow.pair_count, 0, "%zu GPUs: %zu pairs", count, slow.pair_count);
        cr_assert_eq(slow.asymmetric_count, 0);
    }
}

Test(bench_copies_judge, a_bad_pair_and_a_bad_way_are_named)
{
    double rates[4 * 4];
    struct nw_slow_peers slow;

    all_alike(rates, 4);
    rates[0 * 4 + 2] = rates[2 * 4 + 0] = 200; /* both ways */
    rates[3 * 4 + 1] = 300;                    /* one way */
    cr_assert_eq(nw_peers_judge(rates, 4, NW_SLOW_PEER_REL, &slow), NW_OK);
    cr_assert_eq(slow.gpu_count, 0);
    cr_assert_eq(slow.pair_count, 2);
    cr_assert_eq(slow.pairs[0].a + slow.pairs[0].b, 2);
    cr_assert_eq(slow.asymmetric_count, 1);
    cr_assert_eq(slow.asymmetric[0].a, 3);
    cr_assert_eq(slow.asymmetric[0].b, 1);
    cr_assert_float_eq(slow.asymmetric[0].usual_bytes_per_s, 390, 1e-9);
}

Test(bench_copies_judge, nothing_measured_is_nothing_slow)
{
    double rates[2 * 2] = {NAN, NAN, NAN, NAN};
    struct nw_slow_peers slow;

    cr_assert_eq(nw_peers_judge(rates, 2, NW_SLOW_PEER_REL, &slow), NW_OK);
    cr_assert_eq(slow.gpu_count + slow.pair_count + slow.asymmetric_count, 0);
}

Test(bench_copies_judge, ranks_are_listed_in_ranges)
{
    static const struct {
        bool in[GPUS];
        const char *text;
    } rows[] = {
        {{0}, ""},
        {{1}, "0"},
        {{1, 1, 1, 1, 1, 1, 1, 1}, "0-7"},
        {{0, 1, 1, 0, 1, 0, 0, 1}, "1-2,4,7"},
    };
    char text[64], small[8];

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        cr_assert_str_eq(nw_index_list(text, sizeof text, rows[row].in, GPUS), rows[row].text);
    cr_assert_str_eq(nw_index_list(small, sizeof small, rows[3].in, GPUS), "1-2…");
}
