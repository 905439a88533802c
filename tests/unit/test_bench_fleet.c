#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fleet_tell.h"

enum { ENDS_MAX = 64, EDGES_MAX = ENDS_MAX * ENDS_MAX };

struct sample {
    struct nw_fleet fleet;
    struct nw_fleet_edge edges[EDGES_MAX];
    struct nw_fleet_scores scores;
};

/* All pairs of `ends` hosts at 10 GB/s, `noise` of it uniform. */
static struct sample *make(int ends, double noise, unsigned seed)
{
    struct sample *sample = calloc(1, sizeof *sample);
    size_t count = 0;

    cr_assert_not_null(sample);
    for (int a = 0; a < ends; a++)
        for (int b = a + 1; b < ends; b++)
            sample->edges[count++] = (struct nw_fleet_edge){
                .a = a,
                .b = b,
                .bytes_per_s = 10e9 * (1 + noise * (2.0 * rand_r(&seed) / RAND_MAX - 1)),
                .high_bytes_per_s = NAN};
    sample->fleet = (struct nw_fleet){
        .end_count = ends, .class_count = 1, .edges = sample->edges, .edge_count = count};
    return sample;
}

static struct nw_fleet_edge *edge(struct sample *sample, int a, int b)
{
    for (size_t i = 0; i < sample->fleet.edge_count; i++)
        if (sample->edges[i].a == a && sample->edges[i].b == b)
            return &sample->edges[i];
    cr_assert_fail("no pair %d, %d", a, b);
    return NULL;
}

static void slow_host(struct sample *sample, int host, double factor)
{
    for (size_t i = 0; i < sample->fleet.edge_count; i++)
        if (sample->edges[i].a == host || sample->edges[i].b == host)
            sample->edges[i].bytes_per_s *= factor;
}

/* "slow:0 pair:2-3 failed:1-2 ", in order. */
static void score(struct sample *sample, char text[512])
{
    size_t length = 0;

    cr_assert_eq(nw_fleet_score(&sample->fleet, &sample->scores), NW_OK);
    text[0] = '\0';
    for (int i = 0; i < sample->fleet.end_count; i++)
        if (nw_fleet_is_suspect(&sample->scores.ends[i]))
            length += (size_t)snprintf(text + length, 512 - length, "%s:%d ",
                                       nw_fleet_state_name(sample->scores.ends[i].state), i);
    for (size_t i = 0; i < sample->scores.suspect_count; i++) {
        const struct nw_fleet_suspect *pair = &sample->scores.suspects[i];

        if (!pair->explained)
            length +=
                (size_t)snprintf(text + length, 512 - length, "%s:%d-%d ",
                                 pair->failed_count > 0 ? "no-result" : "pair", pair->a, pair->b);
    }
}

static void drop(struct sample *sample)
{
    nw_fleet_scores_free(&sample->scores);
    free(sample);
}

/* Four hosts, one with its wire at a third of the others', one pair with a slow path: most pairs
 * are slow, and yet exactly these two are named. */
Test(bench_fleet, a_slow_host_and_a_slow_pair_are_named_and_nothing_else)
{
    static const int sizes[] = {4, 5, 8, 16, 64};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned seed = 1; seed < 20; seed++) {
            struct sample *sample = make(sizes[i], 0.02, seed);
            char text[512];

            slow_host(sample, 1, 0.33);
            edge(sample, 2, 3)->bytes_per_s *= 0.5;
            score(sample, text);
            cr_expect_str_eq(text, "slow:1 pair:2-3 ", "%d hosts, seed %u: %s", sizes[i], seed,
                             text);
            drop(sample);
        }
}

/* Three hosts that read 0.8 to 1.2 at random may look like one slow host: of four and fewer only
 * less noise is survived without retest. */
Test(bench_fleet, a_healthy_fleet_has_no_suspect_however_noisy)
{
    for (unsigned seed = 1; seed < 600; seed++) {
        const int ends = 3 + (int)(seed % 30);
        struct sample *sample = make(ends, 0.01 * (seed % (ends < 5 ? 11 : 20)), seed);
        char text[512];

        score(sample, text);
        cr_expect_str_eq(text, "", "seed %u: %s", seed, text);
        drop(sample);
    }
}

Test(bench_fleet, a_host_that_misses_one_nic_of_eight_is_named_where_the_others_agree)
{
    struct sample *sample = make(16, 0.005, 3);
    char text[512];

    slow_host(sample, 5, 0.875);
    score(sample, text);
    cr_expect_str_eq(text, "slow:5 ");
    drop(sample);
}

Test(bench_fleet, an_interval_that_reaches_the_usual_clears_a_pair)
{
    struct sample *sample = make(6, 0.01, 3);
    char text[512];

    edge(sample, 0, 1)->bytes_per_s = 5e9;
    edge(sample, 0, 1)->high_bytes_per_s = 11e9;
    score(sample, text);
    cr_expect_str_eq(text, "");
    nw_fleet_scores_free(&sample->scores);
    edge(sample, 0, 1)->high_bytes_per_s = 5.5e9;
    score(sample, text);
    cr_expect_str_eq(text, "pair:0-1 ");
    drop(sample);
}

Test(bench_fleet, failed_pairs_are_suspects_and_a_host_without_any_result_is_one)
{
    struct sample *sample = make(6, 0.01, 3);
    char text[512];

    edge(sample, 0, 1)->bytes_per_s = NAN;
    score(sample, text);
    cr_expect_str_eq(text, "no-result:0-1 ");
    nw_fleet_scores_free(&sample->scores);
    slow_host(sample, 4, NAN);
    score(sample, text);
    cr_expect_str_eq(text, "failed:4 no-result:0-1 ");
    drop(sample);
}

Test(bench_fleet, a_host_most_of_whose_pairs_are_bad_is_flaky)
{
    struct sample *sample = make(12, 0.01, 3);
    char text[512];

    for (int b = 5; b < 12; b++)
        edge(sample, 2, b)->bytes_per_s = b % 2 ? 4e9 : NAN;
    score(sample, text);
    cr_expect_str_eq(text, "flaky:2 ");
    drop(sample);
}

Test(bench_fleet, two_clusters_of_like_size_are_said_and_no_pair_is_named)
{
    static const char *const ends[] = {"h0", "h1", "h2", "h3", "h4",  "h5",
                                       "h6", "h7", "h8", "h9", "h10", "h11"};
    static const char *const classes[] = {"alltoall"};
    const struct nw_fleet_names names = {"host", "hosts", ends, classes};
    struct sample *sample = make(12, 0.02, 3);
    struct nw_findings findings = {0};
    char text[512];

    for (size_t i = 0; i < sample->fleet.edge_count; i++)
        if ((sample->edges[i].a + sample->edges[i].b) % 2)
            sample->edges[i].bytes_per_s *= 0.6;
    score(sample, text);
    cr_expect_str_eq(text, "");
    cr_expect(sample->scores.classes[0].divided);
    cr_expect_eq(sample->scores.classes[0].clusters.low_count, 36);
    cr_assert_eq(nw_fleet_findings(&sample->fleet, &sample->scores, &names, 8, &findings), NW_OK);
    cr_assert_eq(findings.count, 1);
    cr_expect_str_eq(findings.items[0].code, "two-clusters");
    nw_findings_free(&findings);
    drop(sample);
}

Test(bench_fleet, half_of_the_hosts_slow_is_said_and_the_slower_half_named)
{
    struct sample *sample = make(8, 0.01, 3);
    char text[512];

    for (size_t i = 0; i < sample->fleet.edge_count; i++)
        if (sample->edges[i].a < 3) /* any pair with a slow one is slow */
            sample->edges[i].bytes_per_s = 3e9;
    score(sample, text);
    cr_expect_str_eq(text, "slow:0 slow:1 slow:2 ");
    drop(sample);
}

Test(bench_fleet, two_hosts_have_nothing_to_be_compared_with)
{
    struct sample *sample = make(2, 0, 1);
    char text[512];

    score(sample, text);
    cr_expect_str_eq(text, "");
    cr_expect_eq(sample->scores.ends[0].state, NW_FLEET_UNKNOWN);
    cr_expect_eq(nw_fleet_known_good(&sample->fleet, &sample->scores, -1), -1);
    drop(sample);
}

Test(bench_fleet, the_known_good_host_is_no_suspect_and_leaving_out_leaves_no_bad_pair)
{
    struct sample *sample = make(8, 0.01, 3);
    bool out[ENDS_MAX];
    char text[512];
    size_t count;

    slow_host(sample, 0, 0.3);
    edge(sample, 2, 3)->bytes_per_s = NAN;
    edge(sample, 2, 5)->bytes_per_s = 3e9;
    edge(sample, 6, 7)->bytes_per_s = 3e9;
    score(sample, text);
    cr_expect_str_eq(text, "slow:0 no-result:2-3 pair:6-7 pair:2-5 ");
    const int good = nw_fleet_known_good(&sample->fleet, &sample->scores, 4);

    cr_expect(good == 1, "known good is %d", good);
    cr_assert_eq(nw_fleet_leave_out(&sample->fleet, &sample->scores, out, &count), NW_OK);
    cr_expect_eq(count, 3);
    cr_expect(out[0] && out[2] && (out[6] != out[7]));
    drop(sample);
}

Test(bench_fleet, pairs_of_hosts_are_the_means_of_their_ranks_pairs)
{
    static const struct nw_fleet_edge ranks[] = {
        {.a = 0, .b = 1, .bytes_per_s = 99e9, .high_bytes_per_s = NAN}, /* one host */
        {.a = 0, .b = 2, .bytes_per_s = 4e9, .high_bytes_per_s = 5e9},
        {.a = 3, .b = 1, .bytes_per_s = 2e9, .high_bytes_per_s = NAN},
        {.a = 1, .b = 4, .bytes_per_s = NAN, .high_bytes_per_s = NAN},
    };
    static const int hosts[] = {0, 0, 1, 1, 2};
    const struct nw_fleet fleet = {
        .end_count = 5, .class_count = 1, .edges = ranks, .edge_count = 4};
    struct nw_fleet_edge *edges;
    size_t count;

    cr_assert_eq(nw_fleet_merge(&fleet, hosts, &edges, &count), NW_OK);
    cr_assert_eq(count, 2);
    cr_expect(edges[0].a == 0 && edges[0].b == 1);
    cr_expect_float_eq(edges[0].bytes_per_s, 3e9, 1);
    cr_expect_float_eq(edges[0].high_bytes_per_s, 3.5e9, 1);
    cr_expect(edges[1].a == 0 && edges[1].b == 2 && isnan(edges[1].bytes_per_s));
    free(edges);
}
