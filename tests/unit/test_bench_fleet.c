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

Test(bench_fleet, a_slow_minority_of_hosts_is_named)
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

static const char *const names[] = {"h0", "h1", "h2",  "h3",  "h4",  "h5",  "h6",  "h7",
                                    "h8", "h9", "h10", "h11", "h12", "h13", "h14", "h15"};

/* "pair-slow h2, h3; " and so on; `last`: the last one's words. */
static void tell(struct sample *sample, size_t most, char list[512], char last[512])
{
    static const char *const classes[] = {"class 0", "class 1"};
    const struct nw_fleet_names all = {"host", "hosts", names, classes};
    struct nw_findings findings = {0};
    size_t length = 0;

    cr_assert_eq(nw_fleet_findings(&sample->fleet, &sample->scores, &all, most, &findings), NW_OK);
    list[0] = last[0] = '\0';
    for (size_t i = 0; i < findings.count; i++) {
        length += (size_t)snprintf(list + length, 512 - length, "%s %s; ", findings.items[i].code,
                                   findings.items[i].where);
        snprintf(last, 512, "%s", findings.items[i].text);
    }
    nw_findings_free(&findings);
}

Test(bench_fleet, of_a_pair_whose_end_has_no_other_partner_the_pair_is_named_and_no_host)
{
    static const struct {
        double bytes_per_s;
        const char *text;
    } rows[] = {{3e9, "pair:0-12 "}, {NAN, "no-result:0-12 "}, {10e9, ""}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sample *sample = make(12, 0.01, 3);
        char text[512];

        for (int times = 0; times < 3; times++)
            sample->edges[sample->fleet.edge_count++] = (struct nw_fleet_edge){
                .a = 0, .b = 12, .bytes_per_s = rows[i].bytes_per_s, .high_bytes_per_s = NAN};
        sample->fleet.end_count = 13;
        score(sample, text);
        cr_expect_str_eq(text, rows[i].text, "%g: %s", rows[i].bytes_per_s, text);
        drop(sample);
    }
}

Test(bench_fleet, of_disjoint_pairs_the_slow_one_is_named_and_no_host)
{
    struct sample *sample = make(16, 0.01, 3);
    char text[512];
    size_t count = 0;

    for (size_t i = 0; i < sample->fleet.edge_count; i++)
        if (sample->edges[i].a % 2 == 0 && sample->edges[i].b == sample->edges[i].a + 1)
            sample->edges[count++] = sample->edges[i];
    sample->fleet.edge_count = count;
    edge(sample, 4, 5)->bytes_per_s = 3e9;
    score(sample, text);
    cr_expect_str_eq(text, "pair:4-5 ");
    drop(sample);
}

Test(bench_fleet, many_slow_pairs_that_are_no_cluster_are_said_and_none_is_named)
{
    struct sample *sample = make(12, 0.01, 3);
    char text[512], list[512], last[512];
    unsigned seed = 1;

    for (size_t i = 0; i < sample->fleet.edge_count; i++)
        if (i % 5 < 2)
            sample->edges[i].bytes_per_s = 1e9 + 8e9 * rand_r(&seed) / RAND_MAX;
    score(sample, text);
    cr_expect_str_eq(text, "");
    cr_expect(sample->scores.classes[0].divided && !sample->scores.classes[0].two_clusters);
    tell(sample, 8, list, last);
    cr_expect_str_eq(list, "pairs-divided class 0; ");
    cr_expect_str_eq(last, "25 of 66 pairs are slow, too many to name single ones");
    drop(sample);
}

Test(bench_fleet, a_slow_majority_of_hosts_is_said_and_none_is_named)
{
    struct sample *sample = make(8, 0.01, 3);
    char text[512], list[512], last[512];

    for (size_t i = 0; i < sample->fleet.edge_count; i++)
        if (sample->edges[i].a < 5)
            sample->edges[i].bytes_per_s *= 0.3;
    score(sample, text);
    cr_expect_str_eq(text, "");
    cr_expect(sample->scores.classes[0].ends_divided);
    tell(sample, 8, list, last);
    cr_expect_str_eq(list, "two-clusters class 0; ");
    cr_expect(strstr(last, "of hosts: 3 reach ") != NULL && strstr(last, ", 5 only ") != NULL, "%s",
              last);
    drop(sample);
}

Test(bench_fleet, more_slow_pairs_than_fit_are_counted)
{
    struct sample *sample = make(16, 0.01, 3);
    char text[512], list[512], last[512];

    for (int a = 0; a < 16; a += 2)
        edge(sample, a, a + 1)->bytes_per_s = 1e9 * (1 + a / 4.0);
    score(sample, text);
    tell(sample, 2, list, last);
    cr_expect_str_eq(list, "pair-slow h0, h1; pair-slow h2, h3; pairs-more hosts; ");
    cr_expect_str_eq(last, "6 more pairs are slow or gave no result");
    drop(sample);
}

Test(bench_fleet, a_host_slow_in_one_class_is_told_by_that_class)
{
    struct sample *sample = make(16, 0.01, 3);
    const size_t count = sample->fleet.edge_count;
    char text[512];

    slow_host(sample, 5, 0.7);
    for (size_t i = 0; i < count; i++) { /* lower still, but it has better moments */
        struct nw_fleet_edge *other = &sample->edges[count + i];

        *other = sample->edges[i];
        other->class = 1;
        if (other->a == 5 || other->b == 5) {
            other->bytes_per_s *= 0.6 / 0.7;
            other->high_bytes_per_s = 11e9;
        }
    }
    sample->fleet.edge_count = 2 * count;
    sample->fleet.class_count = 2;
    score(sample, text);
    cr_expect_str_eq(text, "slow:5 ");
    cr_expect_eq(sample->scores.ends[5].class, 0);
    cr_expect_float_eq(sample->scores.ends[5].share, 0.7, 0.03);
    drop(sample);
}

Test(bench_fleet, of_two_readings_of_a_pair_the_slower_one_is_told)
{
    struct sample *sample = make(8, 0.01, 3);
    char text[512], list[512], last[512];

    edge(sample, 2, 3)->bytes_per_s = 3e9;
    sample->edges[sample->fleet.edge_count++] =
        (struct nw_fleet_edge){.a = 2, .b = 3, .bytes_per_s = 5e9, .high_bytes_per_s = NAN};
    score(sample, text);
    tell(sample, 2, list, last);
    cr_expect_str_eq(list, "pair-slow h2, h3; ");
    cr_expect(strstr(last, ": 3.00 GB/s, where") != NULL, "%s", last);
    drop(sample);
}

enum { HOSTS = 6, PER_HOST = 4 };

/* Six hosts of four ranks: host 1, the path between hosts 3 and 4, and rank 0 are slow. */
Test(bench_fleet, hosts_and_their_pairs_explain_those_of_their_ranks_and_one_slow_rank_stays)
{
    struct sample *sample = make(HOSTS * PER_HOST, 0.01, 3);
    int hosts[HOSTS * PER_HOST];
    struct sample *groups = calloc(1, sizeof *groups);
    struct nw_fleet_edge *edges;
    char text[512];
    size_t count = 0;

    cr_assert_not_null(groups);
    for (int i = 0; i < HOSTS * PER_HOST; i++)
        hosts[i] = i / PER_HOST;
    for (size_t i = 0; i < sample->fleet.edge_count; i++) {
        struct nw_fleet_edge *pair = &sample->edges[i];
        const int a = hosts[pair->a], b = hosts[pair->b];

        if (a == b)
            continue;
        if (a == 1 || b == 1)
            pair->bytes_per_s *= 0.3;
        if (a == 3 && b == 4)
            pair->bytes_per_s *= 0.4;
        if (pair->a == 0)
            pair->bytes_per_s *= 0.5;
        sample->edges[count++] = *pair;
    }
    sample->fleet.edge_count = count;
    score(sample, text);
    cr_expect(strncmp(text, "slow:0 slow:4 slow:5 slow:6 slow:7 pair:", 40) == 0, "%s", text);
    cr_assert_eq(nw_fleet_merge(&sample->fleet, hosts, &edges, &groups->fleet.edge_count), NW_OK);
    groups->fleet.edges = edges;
    groups->fleet.end_count = HOSTS;
    groups->fleet.class_count = 1;
    score(groups, text);
    cr_expect_str_eq(text, "slow:1 pair:3-4 ");
    nw_fleet_excuse(&groups->scores, hosts, &sample->fleet, &sample->scores);
    for (int i = 0; i < HOSTS * PER_HOST; i++)
        cr_expect_eq(nw_fleet_is_suspect(&sample->scores.ends[i]), i == 0, "rank %d is %s", i,
                     nw_fleet_state_name(sample->scores.ends[i].state));
    for (size_t i = 0; i < sample->scores.suspect_count; i++)
        cr_expect(sample->scores.suspects[i].explained, "%d-%d", sample->scores.suspects[i].a,
                  sample->scores.suspects[i].b);
    free(edges);
    drop(groups);
    drop(sample);
}

/* Over TCP both ways at once may take twice as long on a good wire, time and again. */
Test(bench_fleet, a_host_that_is_slow_only_both_ways_at_once_is_no_suspect)
{
    struct sample *sample = make(4, 0.01, 3);
    const struct nw_fleet_edge slow = {.bytes_per_s = 5e9, .high_bytes_per_s = 5.1e9};
    const struct nw_fleet_edge one_way = {.bytes_per_s = 9.9e9, .high_bytes_per_s = 10e9};
    char text[512];

    slow_host(sample, 3, 0.5);
    score(sample, text);
    cr_expect_str_eq(text, "slow:3 ");
    nw_fleet_scores_free(&sample->scores);
    nw_fleet_again(edge(sample, 0, 3), &slow, false);
    score(sample, text);
    cr_expect_str_eq(text, "slow:3 ", "confirmed alone");
    nw_fleet_scores_free(&sample->scores);
    nw_fleet_again(edge(sample, 0, 3), &one_way, true);
    cr_expect_float_eq(edge(sample, 0, 3)->bytes_per_s, 5e9, 0.1e9, "a rate of another thing");
    cr_assert_eq(nw_fleet_drop_cleared(&sample->fleet, sample->edges, &sample->fleet.edge_count),
                 NW_OK);
    score(sample, text);
    cr_expect_str_eq(text, "");
    nw_fleet_scores_free(&sample->scores);
    free(sample);
}

/* A host just below what the class says is named, one just above is not; where that limit is low,
 * the findings say so. */
Test(bench_fleet, the_limit_of_what_would_be_named_is_told_and_holds)
{
    static const struct {
        double noise, unsteady;
        bool told;
    } rows[] = {{0.002, 1.0, false}, {0.02, 1.1, false}, {0.05, 1.4, false}, {0.05, 2.2, true}};

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int below = 0; below < 2; below++) {
            struct sample *sample = make(6, rows[r].noise, 7);
            const char *const six[] = {"a", "b", "c", "d", "e", "f"}, *const classes[] = {"all"};
            const struct nw_fleet_names all = {"host", "hosts", six, classes};
            struct nw_findings findings = {0};
            char text[512];
            double limit;

            for (size_t i = 0; i < sample->fleet.edge_count; i++)
                sample->edges[i].high_bytes_per_s = rows[r].unsteady * sample->edges[i].bytes_per_s;
            score(sample, text);
            cr_expect_str_eq(text, "");
            limit = sample->scores.classes[0].detect_share;
            cr_assert(limit > 0.3 && limit <= NW_FLEET_SLOW_SHARE, "%g", limit);
            cr_assert_eq(nw_fleet_findings(&sample->fleet, &sample->scores, &all, 8, &findings),
                         NW_OK);
            cr_expect_eq(findings.count > 0, rows[r].told);
            nw_findings_free(&findings);
            nw_fleet_scores_free(&sample->scores);
            for (size_t i = 0; i < sample->fleet.edge_count; i++)
                if (sample->edges[i].a == 2 || sample->edges[i].b == 2) {
                    sample->edges[i].bytes_per_s *= limit * (below ? 0.9 : 1.1);
                    sample->edges[i].high_bytes_per_s *= limit * (below ? 0.9 : 1.1);
                }
            score(sample, text);
            cr_expect_str_eq(text, below ? "slow:2 " : "", "row %zu, limit %g", r, limit);
            nw_fleet_scores_free(&sample->scores);
            free(sample);
        }
}
