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
                    cr_expect_eq(pair->rail != NW_RAIL_NONE,
                                 nics[pair->a].number == nics[pair->b].number);
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
        double rates[4];
        const struct nw_nic_trial trial = {
            .try = try_wire, .user = &wire, .count = 2, .fixed = rows[i].fixed, .rates = rates};
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
    double rates[4];
    struct nw_nic_trial trial = {.try = try_wire, .user = &wire, .count = 2, .rates = rates};
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
    static const struct {
        nw_rc a, b;
        int heard;
    } rows[] = {
        {NW_OK, NW_ETIMEOUT, 1},       {NW_EPEER, NW_OK, 0},   {NW_ETIMEOUT, NW_EPEER, 1},
        {NW_EPEER, NW_ETIMEOUT, 0},    {NW_EPEER, NW_ELIB, 1}, {NW_ELIB, NW_ETIMEOUT, 0},
        {NW_ETIMEOUT, NW_ETIMEOUT, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(nw_nic_cause((int)rows[i].a, (int)rows[i].b), rows[i].heard, "row %zu", i);
}

/* ---- rails -------------------------------------------------------------------------------------
 */

static struct nw_nic nic_named(int host, const char *name, const char *pci, bool infiniband)
{
    struct nw_nic nic = {.host = host, .owner = host, .number = 1, .infiniband = infiniband};

    snprintf(nic.name, sizeof nic.name, "%s", name);
    snprintf(nic.pci, sizeof nic.pci, "%s", pci);
    return nic;
}

Test(bench_nics, rails_are_of_one_name_then_of_one_address_then_of_one_place)
{
    /* Host 1 lacks mlx5_1, host 0's mlx5_2 stands where host 1's mlx5_7 does; mlx5_4 is of another
     * kind on host 1. */
    const struct nw_nic nics[] = {
        nic_named(0, "mlx5_0/1", "0000:10:00.0", true),
        nic_named(0, "mlx5_1/1", "0000:20:00.0", true),
        nic_named(0, "mlx5_2/1", "0000:30:00.0", true),
        nic_named(0, "mlx5_3/1", "", true),
        nic_named(0, "mlx5_4/1", "0000:50:00.0", true),
        nic_named(1, "mlx5_3/1", "0000:40:00.0", true),
        nic_named(1, "mlx5_4/1", "0000:50:00.0", false),
        nic_named(1, "mlx5_0/1", "0000:11:00.0", true),
        nic_named(1, "mlx5_7/1", "0000:30:00.0", true),
        nic_named(1, "mlx5_8/1", "", true),
    };
    static const struct nw_nic_pair wanted[] = {
        {0, 7, NW_RAIL_NAME}, {1, 9, NW_RAIL_PLACE}, {2, 8, NW_RAIL_PCI}, {3, 5, NW_RAIL_NAME}};
    struct nw_nic_pair pairs[8];
    const size_t count = nw_nic_rails(nics, sizeof nics / sizeof *nics, 0, 1, pairs);

    cr_assert_eq(count, 4, "%zu", count);
    for (size_t i = 0; i < count; i++)
        cr_expect(pairs[i].a == wanted[i].a && pairs[i].b == wanted[i].b &&
                      pairs[i].rail == wanted[i].rail,
                  "pair %zu: %d-%d by %d", i, pairs[i].a, pairs[i].b, (int)pairs[i].rail);
}

static nw_rc hear_finding(void *user, const struct nw_finding *finding)
{
    char *heard = user;

    snprintf(heard + strlen(heard), 1024 - strlen(heard), "%s %s: %s|", finding->code,
             finding->where, finding->text);
    return NW_OK;
}

Test(bench_nics, rails_of_different_names_are_said_once_and_of_one_name_not_at_all)
{
    char heard[1024] = "", hosts[2][64] = {"one", "two"};
    struct nw_nic items[] = {
        nic_named(0, "mlx5_0/1", "", false), nic_named(0, "a", "x", false),
        nic_named(0, "c", "", false),        nic_named(1, "mlx5_0/1", "", false),
        nic_named(1, "b", "x", false),       nic_named(1, "d", "", false)};
    const struct nw_nics nics = {.items = items, .count = 6};
    const struct nw_bench_events events = {.user = heard, .on_finding = hear_finding};
    struct nw_comm comm = {.rank_count = 2, .host_count = 2, .host_names = hosts};
    struct nw_bench bench = {.comm = &comm, .events = &events};
    struct nw_nic_pair pairs[3];
    const size_t count = nw_nic_rails(items, 6, 0, 1, pairs);

    nw_nic_tell_rails(&bench, &nics, pairs, 1);
    cr_expect_str_eq(heard, "");
    bench.told_rails = false;
    nw_nic_tell_rails(&bench, &nics, pairs, count);
    cr_expect_not_null(strstr(heard, "nic-matched one a and two b: "), "%s", heard);
    cr_expect_not_null(strstr(heard, "|nic-matched one c and two d: "), "%s", heard);
    heard[0] = '\0';
    nw_nic_tell_rails(&bench, &nics, pairs, count);
    cr_expect_str_eq(heard, "");
}

/* ---- what an interrupted run had ---------------------------------------------------------------
 */

static struct nw_record stream_record(const char *case_name, int qps, int depth, uint64_t bytes)
{
    struct nw_record record;

    nw_record_init(&record);
    snprintf(record.case_name, sizeof record.case_name, "%s", case_name);
    snprintf(record.lane, sizeof record.lane, "verbs");
    snprintf(record.memory, sizeof record.memory, "host");
    record.peer_a = 0;
    record.count = 1;
    record.qps = qps;
    record.depth = depth;
    record.bytes = bytes;
    return record;
}

Test(bench_nics, a_resumed_run_takes_what_its_records_were_made_with)
{
    struct nw_record records[8];
    struct nw_nic_ask ask = {0};

    records[0] = stream_record("nic", 1, 1, 8); /* a latency */
    records[1] = stream_record("rail", 2, 128, 65536);
    records[2] = stream_record("nic", 4, 64, 262144); /* a NIC with less depth */
    records[3] = stream_record("nic", 4, 256, 262144);
    records[4] = stream_record("nic", 8, 512, 1 << 20);
    records[4].rc = NW_EPEER;
    records[5] = stream_record("nic", 8, 512, 1 << 20);
    snprintf(records[5].memory, sizeof records[5].memory, "gpu");
    records[6] = stream_record("incast", 3, 128, 65536); /* six send, each its part */
    records[6].peer_a = -1;
    records[6].count = 6;
    records[7] = stream_record("bisect", 1 << 30, 1 << 30, UINT64_MAX); /* no run had that */
    cr_assert(nw_nic_settle_kept(records, 8, "nic", false, &ask));
    cr_expect(ask.qps == 4 && ask.depth == 256 && ask.bytes == 262144 && !ask.gpu);
    cr_assert(nw_nic_settle_kept(records, 8, "nic", true, &ask));
    cr_expect(ask.qps == 8 && ask.depth == 512 && ask.bytes == 1 << 20 && ask.gpu);
    cr_assert(nw_nic_settle_kept(records, 8, "incast", false, &ask));
    cr_expect_eq(ask.qps, 18);
    cr_expect_not(nw_nic_settle_kept(records, 8, "bisect", false, &ask));
    cr_expect_not(nw_nic_settle_kept(records, 1, "nic", false, &ask));
    cr_expect_not(nw_nic_settle_kept(NULL, 0, "nic", false, &ask));
}

/* ---- what the ranks tell each other ------------------------------------------------------------
 */

struct telling { /* each rank's ends say who they are */
    const struct nw_nics *nics;
    const struct nw_nic_round *round;
    size_t heard[64];   /* by rank: entries */
    size_t scratch[64]; /* bytes */
    int exchanges;      /* of rank 0 */
};

static const struct nw_comm_ops *told_ops;
static int exchange_count;
static struct nw_comm_ops counting;

static nw_rc counted_exchange(struct nw_comm *comm, const void *mine, uint64_t bytes, void *all)
{
    exchange_count += comm->rank == 0;
    return told_ops->exchange(comm, mine, bytes, all);
}

static nw_rc take_ops(struct nw_comm *comm, void *argument)
{
    (void)argument;
    told_ops = comm->ops;
    counting = *comm->ops;
    counting.exchange = counted_exchange;
    return NW_OK;
}

static void check_entry(void *user, size_t pair, int side, const void *what)
{
    size_t *heard = user, said[2];

    memcpy(said, what, sizeof said);
    cr_expect(said[0] == pair && said[1] == (size_t)side, "pair %zu side %d says %zu, %zu", pair,
              side, said[0], said[1]);
    ++*heard;
}

static nw_rc tell_all(struct nw_comm *comm, void *argument)
{
    struct telling *telling = argument;
    const struct nw_plan plan = {.timeout_ns = 1e9};
    const struct nw_bench_events events = {.user = NULL};
    struct nw_bench bench = {.plan = &plan, .comm = comm, .events = &events};
    struct nw_nic_links links = {.bench = &bench, .nics = telling->nics, .round = telling->round};
    struct nw_nic_failure failures[64] = {{.rc = NW_OK}};
    size_t mine[64][2];

    comm->ops = &counting;
    NW_TRY(nw_nic_deal(&links));
    for (size_t i = 0; i < links.end_count; i++) {
        mine[i][0] = links.ends[i].pair;
        mine[i][1] = (size_t)links.ends[i].side;
        if (links.ends[i].pair == 1) /* of both sides; the one that only waited says less */
            failures[i] = (struct nw_nic_failure){links.ends[i].side == 0 ? NW_ETIMEOUT : NW_ELIB,
                                                  .text = "a cable"};
    }
    NW_TRY(nw_nic_tell(&links, mine, sizeof *mine, check_entry, &telling->heard[comm->rank]));
    telling->scratch[comm->rank] = links.scratch_bytes;
    NW_TRY(nw_nic_agree(&links, failures));
    for (size_t pair = 0; pair < telling->round->count; pair++)
        cr_expect_eq(nw_nic_rc(&links, pair), pair == 1 ? NW_ELIB : NW_OK, "rank %d, pair %zu",
                     comm->rank, pair);
    if (telling->round->count > 1)
        cr_expect_str_eq(nw_nic_why(&links, 1), comm->rank == 0 ? "a cable" : "");
    nw_nic_undeal(&links);
    return NW_OK;
}

/* Many to one of 33 ranks: one exchange and one more from the rank that has many ends, not as many
 * exchanges as that has. */
Test(bench_nics, ends_are_told_of_where_there_are_some_and_failures_by_who_knows_the_cause)
{
    struct nw_nic items[33];
    struct nw_nic_pair into_one[32], ring[33];
    const struct nw_nics nics = {.items = items, .count = 33};
    const struct nw_nic_round rounds[] = {{into_one, 32}, {ring, 33}, {into_one, 1}};

    for (int i = 0; i < 33; i++) {
        items[i] = (struct nw_nic){.host = i, .owner = i};
        if (i < 32)
            into_one[i] = (struct nw_nic_pair){.a = i, .b = 32};
        ring[i] = (struct nw_nic_pair){.a = i, .b = (i + 1) % 33};
    }
    cr_assert_eq(nw_comm_run_local(1, 1, take_ops, NULL), NW_OK);
    for (size_t k = 0; k < 3; k++) {
        struct telling telling = {.nics = &nics, .round = &rounds[k]};

        exchange_count = 0;
        cr_assert_eq(nw_comm_run_local(33, 33, tell_all, &telling), NW_OK, "%s",
                     nw_last_error()->text);
        for (int rank = 0; rank < 33; rank++) {
            cr_expect_eq(telling.heard[rank], 2 * rounds[k].count, "round %zu rank %d: %zu", k,
                         rank, telling.heard[rank]);
            cr_expect_leq(telling.scratch[rank], 34u * NW_NIC_TOLD_MOST);
        }
        cr_expect_leq(exchange_count, 4, "round %zu: %d exchanges", k, exchange_count);
    }
}
