#include <criterion/criterion.h>

#include "bench/pairs_judge.h"

enum { RANKS = 8 };

/* All pairs of 2 hosts x 4 ranks: 100 within, 10 between hosts, a little uneven. */
static size_t all_pairs(struct nw_pair_rate rates[RANKS * RANKS])
{
    size_t count = 0;

    for (int a = 0; a < RANKS; a++)
        for (int b = a + 1; b < RANKS; b++) {
            const bool same = a / 4 == b / 4;

            rates[count] = (struct nw_pair_rate){
                .edge.a = a,
                .edge.b = b,
                .same_host = same,
                .edge.bytes_per_s = (same ? 100 : 10) * (1 + 0.01 * (double)(count % 5))};
            count++;
        }
    return count;
}

static struct nw_pair_rate *find(struct nw_pair_rate *rates, size_t count, int a, int b)
{
    for (size_t i = 0; i < count; i++)
        if (rates[i].edge.a == a && rates[i].edge.b == b)
            return &rates[i];
    cr_assert_fail("no pair %d, %d", a, b);
    return NULL;
}

Test(bench_pairs_judge, pairs_are_compared_with_their_like_only)
{
    struct nw_pair_rate rates[RANKS * RANKS];
    const size_t count = all_pairs(rates);
    struct nw_slow_pairs slow;

    cr_assert_eq(nw_pairs_judge(rates, count, RANKS, &slow), NW_OK);
    cr_expect_eq(slow.rank_count, 0);
    cr_expect_eq(slow.pair_count, 0, "a pair between hosts is held against one within");
    nw_slow_pairs_free(&slow);
}

Test(bench_pairs_judge, a_slow_pair_is_named_and_a_slow_rank_instead_of_its_pairs)
{
    struct nw_pair_rate rates[RANKS * RANKS];
    const size_t count = all_pairs(rates);
    struct nw_slow_pairs slow;

    find(rates, count, 1, 6)->edge.bytes_per_s = 4;
    find(rates, count, 0, 2)->edge.bytes_per_s = 60;
    for (size_t i = 0; i < count; i++)
        if (rates[i].edge.a == 3 || rates[i].edge.b == 3)
            rates[i].edge.bytes_per_s /= 2;
    cr_assert_eq(nw_pairs_judge(rates, count, RANKS, &slow), NW_OK);
    cr_assert_eq(slow.rank_count, 1);
    cr_expect_eq(slow.ranks[0], 3);
    cr_assert_eq(slow.pair_count, 2);
    cr_expect_eq(slow.pairs[0].rate.edge.b, 6, "the slowest comes first");
    cr_expect_float_eq(slow.pairs[0].median_bytes_per_s, 10, 0.5);
    cr_expect_eq(slow.pairs[1].rate.edge.b, 2);
    nw_slow_pairs_free(&slow);
}

Test(bench_pairs_judge, many_slow_pairs_leave_the_slowest_eight)
{
    struct nw_pair_rate rates[40];
    struct nw_slow_pairs slow;

    for (int i = 0; i < 40; i++) /* 12 of 40 slow, each of another two ranks */
        rates[i] = (struct nw_pair_rate){
            .edge.a = 2 * i, .edge.b = 2 * i + 1, .edge.bytes_per_s = i % 10 < 3 ? 10 + i : 100};
    cr_assert_eq(nw_pairs_judge(rates, 40, 80, &slow), NW_OK);
    cr_assert_eq(slow.pair_count, NW_SLOW_PAIRS_MAX);
    for (size_t i = 1; i < slow.pair_count; i++)
        cr_expect_leq(slow.pairs[i - 1].rate.edge.bytes_per_s, slow.pairs[i].rate.edge.bytes_per_s);
    cr_expect_eq(slow.pairs[0].rate.edge.bytes_per_s, 10);
    nw_slow_pairs_free(&slow);
}

/* A ring of four equal machines, each link measured both ways at once: three of 213 Gb/s, one of
 * 118.66. */
Test(bench_pairs_judge, one_degraded_link_of_a_ring_of_four_is_named)
{
    static const struct nw_pair_rate rates[] = {
        {.edge.a = 0, .edge.b = 1, .edge.bytes_per_s = 213.05e9 / 8},
        {.edge.a = 1, .edge.b = 2, .edge.bytes_per_s = 213.05e9 / 8},
        {.edge.a = 2, .edge.b = 3, .edge.bytes_per_s = 118.66e9 / 8},
        {.edge.a = 0, .edge.b = 3, .edge.bytes_per_s = 212.9e9 / 8},
    };
    struct nw_slow_pairs slow;

    cr_assert_eq(nw_pairs_judge(rates, sizeof rates / sizeof *rates, 4, &slow), NW_OK);
    cr_expect_eq(slow.rank_count, 0);
    cr_assert_eq(slow.pair_count, 1);
    cr_expect_eq(slow.pairs[0].rate.edge.a, 2);
    cr_expect_eq(slow.pairs[0].rate.edge.b, 3);
    nw_slow_pairs_free(&slow);
}
