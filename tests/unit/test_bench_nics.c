/* Which NICs meet, what a stream settles on, and which are named as slow: all without a NIC. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/nic_links_parts.h"
#include "bench/nic_settle.h"
#include "bench/nics_judge.h"

static size_t make_nics(const int *of_host, int hosts, struct nw_nic *nics)
{
    size_t count = 0;

    for (int host = 0; host < hosts; host++)
        for (int i = 0; i < of_host[host]; i++)
            nics[count++] = (struct nw_nic){.host = host, .owner = host, .number = i};
    return count;
}

Test(bench_nics, each_pair_of_nics_meets_once_and_no_host_is_in_two_pairs_at_a_time)
{
    static const struct {
        int hosts, of_host[9];
        size_t rails, all; /* pairs */
    } rows[] = {
        {2, {8, 8}, 8, 64},      {2, {1, 1}, 1, 1},
        {2, {2, 3}, 2, 6},       {2, {3, 2}, 2, 6},
        {3, {4, 4, 4}, 8, 32},   {1, {8}, 0, 0},
        {4, {1, 0, 2, 2}, 2, 4}, {9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 5, 5},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_nic nics[32];
        const size_t count = make_nics(rows[i].of_host, rows[i].hosts, nics);

        for (int all = 0; all < 2; all++) {
            struct nw_nic_rounds rounds;
            bool met[32][32] = {{false}};
            size_t pairs = 0;

            cr_assert_eq(nw_nic_rounds_of_pairs(nics, count, rows[i].hosts, all, &rounds), NW_OK);
            for (size_t r = 0; r < rounds.count; r++) {
                bool busy[9] = {false};

                cr_expect_gt(rounds.items[r].count, 0, "row %zu: empty round", i);
                for (size_t p = 0; p < rounds.items[r].count; p++) {
                    const struct nw_nic_pair *pair = &rounds.items[r].pairs[p];
                    const int a = nics[pair->a].host, b = nics[pair->b].host;

                    cr_expect(!met[pair->a][pair->b] && a != b && !busy[a] && !busy[b],
                              "row %zu round %zu: %d-%d", i, r, pair->a, pair->b);
                    cr_expect_eq(pair->rail, nics[pair->a].number == nics[pair->b].number);
                    met[pair->a][pair->b] = busy[a] = busy[b] = true;
                    pairs++;
                }
            }
            cr_expect_eq(pairs, all ? rows[i].all : rows[i].rails, "row %zu: %zu pairs", i, pairs);
            nw_nic_rounds_free(&rounds);
        }
    }
}

Test(bench_nics, infiniband_and_roce_do_not_meet)
{
    struct nw_nic nics[] = {{.host = 0, .infiniband = true}, {.host = 0}, {.host = 1}, {.host = 1}};
    struct nw_nic_rounds rounds;

    cr_assert_eq(nw_nic_rounds_of_pairs(nics, 4, 2, true, &rounds), NW_OK);
    for (size_t r = 0; r < rounds.count; r++)
        for (size_t p = 0; p < rounds.items[r].count; p++)
            cr_expect_eq(rounds.items[r].pairs[p].a, 1);
    cr_expect_eq(rounds.count, 2);
    nw_nic_rounds_free(&rounds);
}

Test(bench_nics, headers_are_not_counted_as_room)
{
    const struct nw_nic roce = {.bits_per_s = 400e9},
                        software = {.bits_per_s = 1e9, .software = true};
    const struct nw_nic infiniband = {.bits_per_s = 400e9, .infiniband = true};

    cr_expect_float_eq(nw_nic_ceiling(&roce, 4096), 50e9 * 4096 / 4178, 1);
    cr_expect_float_eq(nw_nic_ceiling(&roce, 1024), 50e9 * 1024 / 1106, 1);
    cr_expect_float_eq(nw_nic_ceiling(&infiniband, 4096), 50e9 * 4096 / 4122, 1);
    cr_expect(isnan(nw_nic_ceiling(&software, 4096)));
    cr_expect(isnan(nw_nic_ceiling(&roce, 0)));
}

/* A NIC whose queue pairs, sizes and depths bring so much each, up to its line. */
struct wire {
    double one_qp, line, large, deep;
    int tries;
};

static nw_rc try_wire(void *user, const struct nw_nic_ask *ask, double *rates)
{
    struct wire *wire = user;
    double rate = wire->one_qp * ask->qps;

    wire->tries++;
    cr_assert_leq(wire->tries, 20, "does not come to an end");
    rate *= ask->bytes > (64u << 10) ? wire->large : 1;
    rate *= ask->depth > 128 ? wire->deep : 1;
    rates[0] = fmin(rate, wire->line);
    rates[1] = NAN; /* does not work */
    return NW_OK;
}

Test(bench_nics, a_stream_gets_what_it_needs_and_no_more)
{
    static const struct {
        struct wire wire;
        struct nw_nic_ask fixed, settled;
    } rows[] = {
        {{50, 50, 1, 1, 0}, {0}, {.qps = 1, .depth = 128, .bytes = 64 << 10}},
        {{20, 50, 1, 1, 0}, {0}, {.qps = 4, .depth = 128, .bytes = 64 << 10}},
        {{1, 50, 1.2, 1, 0}, {0}, {.qps = 16, .depth = 128, .bytes = 256 << 10}},
        {{1, 50, 1, 1.5, 0}, {0}, {.qps = 16, .depth = 256, .bytes = 64 << 10}},
        {{20, 50, 1, 1, 0}, {.qps = 1}, {.qps = 1, .depth = 128, .bytes = 64 << 10}},
        {{20, 50, 2, 2, 0}, {1, 64, 8192, false}, {.qps = 1, .depth = 64, .bytes = 8192}},
        {{NAN, NAN, 1, 1, 0}, {0}, {.qps = 1, .depth = 128, .bytes = 64 << 10}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire wire = rows[i].wire;
        const struct nw_nic_trial trial = {
            .try = try_wire, .user = &wire, .count = 2, .fixed = rows[i].fixed};
        struct nw_nic_ask ask;

        cr_assert_eq(nw_nic_settle_by(&trial, &ask), NW_OK);
        cr_expect(ask.qps == rows[i].settled.qps && ask.depth == rows[i].settled.depth &&
                      ask.bytes == rows[i].settled.bytes,
                  "row %zu: %d queue pairs, depth %d, %llu bytes", i, ask.qps, ask.depth,
                  (unsigned long long)ask.bytes);
    }
}

Test(bench_nics, a_limit_on_memory_lessens_the_most_until_nothing_open_is_left)
{
    const struct nw_nic_ask none = {0}, one_qp = {.qps = 1, .bytes = 8192};
    struct wire wire = {.one_qp = 1, .line = 50, .large = 2, .deep = 1};
    struct nw_nic_trial trial = {.try = try_wire, .user = &wire, .count = 2};
    struct nw_nic_ask most = nw_nic_settle_most(&one_qp), ask;

    cr_expect(!nw_nic_settle_less(&one_qp, &most));
    most = nw_nic_settle_most(&none);
    for (int turn = 0; turn < 4; turn++)
        cr_expect(nw_nic_settle_less(&none, &most), "turn %d", turn);
    cr_expect(most.qps == 1 && most.bytes == 64 << 10 && !nw_nic_settle_less(&none, &most));
    trial.most = (struct nw_nic_ask){.qps = 4, .depth = 128, .bytes = 64 << 10};
    cr_assert_eq(nw_nic_settle_by(&trial, &ask), NW_OK);
    cr_expect(ask.qps == 4 && ask.bytes == 64 << 10 && ask.depth == 128);
}

Test(bench_nics, a_nic_is_named_for_most_of_its_pairs_and_a_pair_for_itself)
{
    /* 0, 1 of one host, 2, 3 of the other; NIC 1 is slow, and so is 0 to 3. */
    struct nw_nic_stream streams[8];
    const double rates[2][2] = {{48, 30}, {20, 20}};
    struct nw_nic_verdict verdict;
    size_t count = 0;

    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            for (int back = 0; back < 2; back++)
                streams[count++] = (struct nw_nic_stream){.from = back ? 2 + b : a,
                                                          .to = back ? a : 2 + b,
                                                          .bytes_per_s = back ? 48 : rates[a][b],
                                                          .ceiling_bytes_per_s = 49};
    for (size_t i = 0; i < count; i++)
        if (streams[i].to == 1)
            streams[i].bytes_per_s = 20;
    cr_assert_eq(nw_nics_judge(streams, count, 4, &verdict), NW_OK);
    cr_expect(verdict.nic_is_slow[1]);
    cr_expect(!verdict.nic_is_slow[0] && !verdict.nic_is_slow[2]);
    cr_expect(!verdict.is_slow[0] && verdict.is_slow[2], "0 to 2 is fast, 0 to 3 is not");
    cr_expect_float_eq(verdict.other_way[2], 30.0 / 48, 1e-9);
    cr_expect(isnan(verdict.gpu_share[0]));
    nw_nic_verdict_free(&verdict);
}

Test(bench_nics, one_pair_alone_accuses_neither_nic_and_no_ceiling_accuses_nobody)
{
    struct nw_nic_stream streams[] = {
        {0, 1, false, 20, 49}, {1, 0, false, 20, 49}, {0, 1, true, 15, 49}};
    struct nw_nic_verdict verdict;

    cr_assert_eq(nw_nics_judge(streams, 3, 2, &verdict), NW_OK);
    cr_expect(verdict.is_slow[0] && !verdict.nic_is_slow[0] && !verdict.nic_is_slow[1]);
    cr_expect_float_eq(verdict.gpu_share[2], 0.75, 1e-9);
    cr_expect(isnan(verdict.other_way[2]));
    nw_nic_verdict_free(&verdict);
    for (size_t i = 0; i < 3; i++)
        streams[i].ceiling_bytes_per_s = NAN;
    cr_assert_eq(nw_nics_judge(streams, 3, 2, &verdict), NW_OK);
    cr_expect(!verdict.is_slow[0] && !verdict.is_slow[2]);
    nw_nic_verdict_free(&verdict);
}

Test(bench_nics, of_two_sides_the_one_that_knows_the_cause_is_heard)
{
    const struct nw_nic_failure well = {.rc = NW_OK}, late = {.rc = NW_ETIMEOUT},
                                left = {.rc = NW_EPEER}, broken = {.rc = NW_ELIB};
    const struct {
        const struct nw_nic_failure *a, *b, *heard;
    } rows[] = {
        {&well, &late, &late}, {&left, &well, &left},     {&late, &left, &left},
        {&left, &late, &left}, {&left, &broken, &broken}, {&broken, &late, &broken},
        {&late, &late, &late},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(nw_nic_cause(rows[i].a, rows[i].b), rows[i].heard, "row %zu", i);
}
