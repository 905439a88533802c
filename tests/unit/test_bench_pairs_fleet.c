#include <criterion/criterion.h>
#include <math.h>

#include "bench/pairs_fleet.h"

enum { HOSTS = 5, PER_HOST = 8, RANKS = HOSTS * PER_HOST };

struct sample {
    struct nw_pair_rate rates[HOSTS * HOSTS * PER_HOST];
    size_t count;
    int host_of_rank[RANKS];
    struct nw_pairs_fleet judged;
};

/* Ranks of one number meet, as in the plan; 10 GB/s and 1 % of noise. */
static void make(struct sample *sample)
{
    unsigned seed = 5;

    *sample = (struct sample){.count = 0};
    for (int rank = 0; rank < RANKS; rank++)
        sample->host_of_rank[rank] = rank / PER_HOST;
    for (int a = 0; a < RANKS; a++)
        for (int b = a + PER_HOST; b < RANKS; b += PER_HOST) {
            seed = seed * 1103515245u + 12345u;
            sample->rates[sample->count++] =
                (struct nw_pair_rate){.edge.a = a,
                                      .edge.b = b,
                                      .edge.bytes_per_s = 10e9 + 2e5 * (double)(seed >> 16 & 1023)};
        }
}

static void judge(struct sample *sample)
{
    cr_assert_eq(nw_pairs_fleet_judge(sample->rates, sample->count, sample->host_of_rank, RANKS,
                                      HOSTS, &sample->judged),
                 NW_OK);
}

static int suspects(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores, int *last)
{
    int count = 0;

    for (int end = 0; end < fleet->end_count; end++)
        if (nw_fleet_is_suspect(&scores->ends[end])) {
            count++;
            *last = end;
        }
    return count;
}

/* The mean of its host is 94 % of the usual. */
Test(bench_pairs_fleet, one_slow_nic_of_eight_is_a_suspect_rank_on_a_good_host)
{
    struct sample sample;
    struct nw_pairs_again again[8];
    int last = -1, count, left_out;

    make(&sample);
    for (size_t i = 0; i < sample.count; i++)
        if (sample.rates[i].edge.a == 11 || sample.rates[i].edge.b == 11)
            sample.rates[i].edge.bytes_per_s *= 0.5;
    judge(&sample);
    cr_expect_eq(suspects(&sample.judged.hosts, &sample.judged.host_scores, &last), 0);
    cr_expect_eq(suspects(&sample.judged.ranks, &sample.judged.rank_scores, &last), 1);
    cr_expect_eq(last, 11);
    cr_assert_eq(
        nw_pairs_fleet_again(&sample.judged, sample.host_of_rank, 4, again, &count, &left_out),
        NW_OK);
    cr_expect(count == 1 && left_out == 0 && again[0].a == 1 && again[0].b != 1);
    nw_pairs_fleet_free(&sample.judged);
}

Test(bench_pairs_fleet, of_a_slow_host_no_rank_is_named_and_the_slowest_is_measured_again_first)
{
    struct sample sample;
    struct nw_pairs_again again[8];
    int last = -1, count, left_out;

    make(&sample);
    for (size_t i = 0; i < sample.count; i++) {
        const int a = sample.rates[i].edge.a / PER_HOST, b = sample.rates[i].edge.b / PER_HOST;

        if (a == 4 || b == 4)
            sample.rates[i].edge.bytes_per_s *= 0.3;
        else if (a == 0)
            sample.rates[i].edge.bytes_per_s *= 0.6;
    }
    judge(&sample);
    cr_expect_eq(suspects(&sample.judged.hosts, &sample.judged.host_scores, &last), 2);
    cr_expect_eq(suspects(&sample.judged.ranks, &sample.judged.rank_scores, &last), 0);
    cr_assert_eq(
        nw_pairs_fleet_again(&sample.judged, sample.host_of_rank, 1, again, &count, &left_out),
        NW_OK);
    cr_expect(count == 1 && left_out == 1 && again[0].a == 4, "%d, %d, %d", count, left_out,
              again[0].a);
    nw_pairs_fleet_free(&sample.judged);
}

Test(bench_pairs_fleet, a_host_that_does_well_alone_is_no_suspect_by_its_other_pairs)
{
    struct sample sample;
    int last = -1;

    make(&sample);
    for (size_t i = 0; i < sample.count; i++) {
        struct nw_pair_rate *rate = &sample.rates[i];
        const int a = rate->edge.a / PER_HOST, b = rate->edge.b / PER_HOST;

        if (a != 0)
            continue;
        rate->edge.before_bytes_per_s = rate->edge.bytes_per_s * 0.33;
        rate->edge.again = b == 1;
        if (!rate->edge.again)
            rate->edge.bytes_per_s *= 0.33;
    }
    judge(&sample);
    cr_expect_eq(suspects(&sample.judged.hosts, &sample.judged.host_scores, &last), 0);
    cr_expect_eq(suspects(&sample.judged.ranks, &sample.judged.rank_scores, &last), 0);
    cr_expect_eq(sample.judged.host_scores.suspect_count, 0);
    nw_pairs_fleet_free(&sample.judged);
}
