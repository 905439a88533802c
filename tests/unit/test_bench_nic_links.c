/* Rounds of NICs measured over a NIC in memory: one rank, both ends of each connection. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/nic_links.h"
#include "bench/nic_settle.h"

#ifdef NW_HAVE_VERBS
#pragma GCC diagnostic ignored "-Wunused-function" /* of the NIC: a GPU's memory */
#include "verbs_double.h"

struct stage { /* what a test runs on rank 0 of 1 */
    void (*body)(struct stage *stage);
    struct nw_plan plan;
    struct nw_bench bench;
    struct nw_bench_events events;
    char heard[4096]; /* findings: codes and texts */
    struct nw_nic item;
    struct nw_nics nics;
    struct nw_nic_pair pairs[1];
    struct nw_nic_round round;
};

static nw_rc hear(void *user, const struct nw_finding *finding)
{
    char *heard = user;

    snprintf(heard + strlen(heard), 4096 - strlen(heard), "%s: %s|", finding->code, finding->text);
    return NW_OK;
}

static nw_rc run_stage(struct nw_comm *comm, void *argument)
{
    struct stage *stage = argument;

    stage->bench.comm = comm;
    stage->body(stage);
    return NW_OK;
}

static void run(struct stage *stage, void (*body)(struct stage *stage))
{
    static const char *const options[] = {"backend", "local", "ranks", "1", "budget", "2ms", NULL};
    char root[] = "/tmp/nodeworth-nics-XXXXXX";

    double_reset();
    memset(stage, 0, sizeof *stage);
    cr_assert_not_null(mkdtemp(root));
    tree_add(root, double_sysfs, sizeof double_sysfs / sizeof *double_sysfs);
    cr_assert_eq(nw_verbs_open_api(&double_api, root, &stage->nics.verbs), NW_OK);
    cr_assert_eq(nw_options_reset(nw_plan_rows, nw_plan_row_count, &stage->plan), NW_OK);
    for (const char *const *at = options; *at != NULL; at += 2)
        cr_assert_eq(nw_option_set(nw_option_find(nw_plan_rows, nw_plan_row_count, at[0]),
                                   &stage->plan, at[1], at[0]),
                     NW_OK);
    cr_assert_eq(nw_plan_resolve(&stage->plan), NW_OK);
    stage->events = (struct nw_bench_events){.user = stage->heard, .on_finding = hear};
    stage->bench.plan = &stage->plan;
    stage->bench.events = &stage->events;
    stage->item =
        (struct nw_nic){.name = "mlx5_9/1", .device = "mlx5_9", .number = 1, .bits_per_s = 400e9};
    stage->nics.items = &stage->item;
    stage->nics.count = 1;
    stage->round = (struct nw_nic_round){.pairs = stage->pairs, .count = 1};
    stage->body = body;
    cr_assert_eq(nw_comm_run_local(1, 1, run_stage, stage), NW_OK, "%s", nw_last_error()->text);
    nw_verbs_close(stage->nics.verbs);
    cr_expect_eq(nic.open_handles, 0, "%d handles are left open", nic.open_handles);
    tree_remove(root);
}

static struct nw_nic_links *open_links(struct stage *stage, int qps, int depth, uint64_t bytes)
{
    const struct nw_nic_ask ask = {.qps = qps, .depth = depth, .bytes = bytes};
    struct nw_nic_links *links;

    cr_assert_eq(nw_nic_links_open(&stage->bench, &stage->nics, &stage->round, &ask, &links), NW_OK,
                 "%s", nw_last_error()->text);
    return links;
}

static nw_rc measure(struct nw_nic_links *links, const struct nw_nic_kind *kind, uint64_t bytes,
                     struct nw_record *record)
{
    const struct nw_nic_task task = {.op = kind->op,
                                     .ping = kind->ping,
                                     .ways = kind->ways,
                                     .bytes = bytes,
                                     .qps = kind->ping ? 1 : 2,
                                     .depth = 512,
                                     .title = kind->name};

    nw_record_init(record);
    record->rank_count = 2;
    record->bytes = bytes;
    return nw_nic_measure(links, &task, record);
}

static const struct nw_nic_kind write_forth = {"write", NW_VERBS_WRITE, NW_NIC_FORTH,
                                               .ping = false};

static void measure_all(struct stage *stage)
{
    static const struct nw_nic_kind kinds[] = {
        {"write", NW_VERBS_WRITE, NW_NIC_FORTH, .ping = false},
        {"read", NW_VERBS_READ, NW_NIC_BACK, .ping = false},
        {"send", NW_VERBS_SEND, NW_NIC_FORTH, .ping = false},
        {"write_both", NW_VERBS_WRITE, NW_NIC_FORTH | NW_NIC_BACK, .ping = false},
        {"write_latency", NW_VERBS_WRITE, NW_NIC_FORTH, .ping = true},
        {"read_latency", NW_VERBS_READ, NW_NIC_FORTH, .ping = true},
    };
    struct nw_nic_links *links = open_links(stage, 2, 512, 4096);

    cr_expect_eq(nw_nic_rc(links, 0), NW_OK);
    cr_expect_str_eq(nw_nic_settled(links, 0)->gid_a, "10.1.0.1 (index 3)");
    cr_expect_eq(nw_nic_settled(links, 0)->mtu_bytes, 4096);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct nw_record record;

        cr_assert_eq(measure(links, &kinds[i], kinds[i].ping ? 8 : 4096, &record), NW_OK, "%s: %s",
                     kinds[i].name, nw_last_error()->text);
        cr_expect_eq(record.rc, NW_OK, "%s", kinds[i].name);
        cr_expect_eq(record.wrong_elements, 0, "%s", kinds[i].name);
        cr_expect_gt(record.time_ns.median, 0);
        cr_expect_eq(record.algbw_bytes_per_s > 0, !kinds[i].ping, "%s", kinds[i].name);
        cr_expect_eq(nw_nic_own_rate(links, 0) > 0, !kinds[i].ping, "%s", kinds[i].name);
        nw_record_free(&record);
    }
    nw_nic_links_close(links);
}

Test(bench_nic_links, every_kind_of_measurement_gives_times_and_right_data)
{
    struct stage stage;

    run(&stage, measure_all);
}

static void measure_damaged(struct stage *stage)
{
    struct nw_nic_links *links = open_links(stage, 2, 64, 4096);
    struct nw_record record;

    nic.damage = true;
    cr_assert_eq(measure(links, &write_forth, 4096, &record), NW_OK);
    cr_expect_eq(record.rc, NW_EWRONG);
    cr_expect_gt(record.wrong_elements, 0);
    cr_expect(isnan(record.time_ns.median));
    nw_record_free(&record);
    nw_nic_links_close(links);
}

Test(bench_nic_links, wrong_data_is_found_and_has_no_time)
{
    struct stage stage;

    run(&stage, measure_damaged);
}

static void measure_failing(struct stage *stage)
{
    struct nw_nic_links *links = open_links(stage, 2, 64, 4096);
    struct nw_record record;
    uint64_t requests;

    nic.fail_at = 100;
    nic.fail_status = IBV_WC_RETRY_EXC_ERR;
    cr_assert_eq(measure(links, &write_forth, 4096, &record), NW_OK, "%s", nw_last_error()->text);
    cr_expect_neq(record.rc, NW_OK);
    cr_expect_eq(record.rc, nw_nic_rc(links, 0));
    cr_expect_not_null(strstr(nw_nic_why(links, 0), "retries"), "%s", nw_nic_why(links, 0));
    nw_record_free(&record);
    requests = nic.requests;
    cr_assert_eq(measure(links, &write_forth, 4096, &record), NW_OK);
    cr_expect_neq(record.rc, NW_OK, "a pair that has failed is measured again");
    cr_expect_eq(nic.requests, requests);
    nw_record_free(&record);
    nw_nic_links_close(links);
}

Test(bench_nic_links, a_pair_that_fails_is_left_out_from_then_on_and_ends_no_run)
{
    struct stage stage;

    run(&stage, measure_failing);
}

static void settle_kept(struct stage *stage)
{
    struct nw_record record;
    struct nw_nic_ask ask = {.gpu = false};

    nw_record_init(&record);
    snprintf(record.case_name, sizeof record.case_name, "nic");
    snprintf(record.lane, sizeof record.lane, "verbs");
    snprintf(record.memory, sizeof record.memory, "host");
    record.peer_a = 0;
    record.qps = 2;
    record.depth = 256;
    record.bytes = 262144;
    stage->events.done = &record;
    stage->events.done_count = 1;
    cr_assert_eq(nw_nic_settle(&stage->bench, "nic", &stage->nics, &stage->round, 1, &ask), NW_OK);
    cr_expect(ask.qps == 2 && ask.depth == 256 && ask.bytes == 262144);
    cr_expect_eq(nic.requests, 0, "it was tried out all the same");
    stage->plan.nic_depth = 64; /* an option goes before what was */
    cr_assert_eq(nw_nic_settle(&stage->bench, "nic", &stage->nics, &stage->round, 1, &ask), NW_OK);
    cr_expect(ask.qps == 2 && ask.depth == 64);
}

Test(bench_nic_links, a_resumed_run_tries_nothing_out)
{
    struct stage stage;

    run(&stage, settle_kept);
    cr_expect_str_eq(stage.heard, "");
}

static void settle_anew(struct stage *stage)
{
    struct nw_nic_ask ask = {.gpu = false};

    stage->plan.timeout_ns = 2e9;
    cr_assert_eq(nw_nic_settle(&stage->bench, "nic", &stage->nics, &stage->round, 1, &ask), NW_OK,
                 "%s", nw_last_error()->text);
    cr_expect_gt(nic.requests, 0);
    cr_expect(ask.qps >= 1 && ask.qps <= 4 && ask.depth >= 128 && ask.bytes >= 65536,
              "%d, %d, %llu", ask.qps, ask.depth, (unsigned long long)ask.bytes);
}

/* The NIC in memory has 15 queue pairs: 16 of each side cannot be had. */
Test(bench_nic_links, a_nic_with_few_queue_pairs_settles_on_fewer_and_that_is_said)
{
    struct stage stage;

    run(&stage, settle_anew);
    cr_expect_not_null(strstr(stage.heard, "nic-settle"), "%s", stage.heard);
}
#endif
