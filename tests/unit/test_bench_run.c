/* Whole runs over the local backend (threads), and over one that lies. */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

struct kept { /* what rank 0 was given */
    struct nw_record *records;
    size_t count, kept_count, findings, contexts;
    char codes[16][32];
    size_t fail_at; /* on_record fails at this record; 0: never */
    char host_list[256];
    int binding_count;
};

struct run {
    struct nw_plan plan;
    struct kept kept;
    const struct nw_record *done;
    size_t done_count;
    bool lies, dies, other_plan; /* rank 1 of the communicator */
    nw_rc rcs[16];
};

static nw_rc on_context(void *user, const struct nw_context *context)
{
    struct kept *kept = user;

    kept->contexts++;
    cr_assert_eq(kept->count, 0, "a record came before the context");
    for (int host = 0; host < context->host_count; host++)
        snprintf(kept->host_list + strlen(kept->host_list),
                 sizeof kept->host_list - strlen(kept->host_list), "%s:%d ",
                 context->hosts[host].name, context->hosts[host].rank_count);
    kept->binding_count = (int)json_array_size(context->binding);
    cr_expect(context->simulated);
    cr_expect_not_null(context->plan);
    return NW_OK;
}

static nw_rc on_record(void *user, const struct nw_record *record, bool is_kept)
{
    struct kept *kept = user;
    struct nw_record *records = realloc(kept->records, (kept->count + 1) * sizeof *records);

    cr_assert_not_null(records);
    kept->records = records;
    cr_assert_eq(nw_record_copy(&records[kept->count], record), NW_OK);
    kept->count++;
    kept->kept_count += is_kept;
    if (kept->count == kept->fail_at)
        return nw_fail(NW_EIO, "the disk is full");
    return NW_OK;
}

static nw_rc on_finding(void *user, const struct nw_finding *finding)
{
    struct kept *kept = user;

    if (kept->findings < 16)
        snprintf(kept->codes[kept->findings++], 32, "%s", finding->code);
    return NW_OK;
}

static bool has_finding(const struct kept *kept, const char *code)
{
    for (size_t i = 0; i < kept->findings; i++)
        if (strcmp(kept->codes[i], code) == 0)
            return true;
    return false;
}

/* ---- a communicator that lies: rank 1 changes an element, or stops answering -------------------
 */

static const struct nw_comm_ops *honest;
static struct nw_comm_ops lying;

static nw_rc lying_call(struct nw_comm *comm, const struct nw_call *call)
{
    const nw_rc rc = honest->call(comm, call);

    if (rc == NW_OK && comm->rank == 1 && call->shape.bytes == 1024)
        ((unsigned char *)call->recv)[17] ^= 0x40;
    return rc;
}

static nw_rc lying_pass(struct nw_comm *comm, bool out, const struct nw_message *messages,
                        size_t count)
{
    const nw_rc rc = honest->pass(comm, out, messages, count);

    if (rc == NW_OK && comm->rank == 1 && !out)
        ((unsigned char *)messages[0].data)[17] ^= 0x40;
    return rc;
}

static nw_rc dying_call(struct nw_comm *comm, const struct nw_call *call)
{
    if (comm->rank == 1 && call->shape.bytes == 1024)
        return nw_fail(NW_ELIB, "the card fell off the bus");
    return honest->call(comm, call);
}

static nw_rc body(struct nw_comm *comm, void *argument)
{
    struct run *run = argument;
    struct nw_plan plan = run->plan;
    struct nw_bench_events events = {.version = "test"};
    nw_rc rc;

    if (comm->rank == 0) {
        events = (struct nw_bench_events){.user = &run->kept,
                                          .on_context = on_context,
                                          .on_record = on_record,
                                          .on_finding = on_finding,
                                          .done = run->done,
                                          .done_count = run->done_count,
                                          .version = "test"};
    }
    if (run->lies || run->dies)
        comm->ops = &lying;
    if (run->other_plan && comm->rank == 1)
        plan.seed++;
    rc = nw_bench_run(&plan, comm, &events);
    run->rcs[comm->rank] = rc;
    return rc;
}

static nw_rc take_ops(struct nw_comm *comm, void *argument)
{
    (void)argument;
    if (comm->rank == 0)
        honest = comm->ops;
    return NW_OK;
}

static void prepare(struct run *run, const char *const *options)
{
    memset(run, 0, sizeof *run);
    cr_assert_eq(nw_options_reset(nw_plan_rows, nw_plan_row_count, &run->plan), NW_OK);
    for (; *options != NULL; options += 2)
        cr_assert_eq(nw_option_set(nw_option_find(nw_plan_rows, nw_plan_row_count, options[0]),
                                   &run->plan, options[1], options[0]),
                     NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_plan_resolve(&run->plan), NW_OK, "%s", nw_last_error()->text);
}

static nw_rc start(struct run *run)
{
    cr_assert_eq(nw_comm_run_local(1, 1, take_ops, NULL), NW_OK);
    lying = *honest;
    if (run->lies) {
        lying.call = lying_call;
        lying.pass = lying_pass;
    }
    if (run->dies)
        lying.call = dying_call;
    return nw_comm_run_local(run->plan.ranks, run->plan.hosts, body, run);
}

static void finish(struct run *run)
{
    for (size_t i = 0; i < run->kept.count; i++)
        nw_record_free(&run->kept.records[i]);
    free(run->kept.records);
}

static const char *const small[] = {"backend",  "local", "ranks",    "4",   "hosts",      "2",
                                    "minbytes", "8",     "maxbytes", "1M",  "stepfactor", "32",
                                    "budget",   "2ms",   "cases",    "all", NULL};

Test(bench_run, every_case_gives_its_records_with_their_identity)
{
    struct run run;
    size_t coll = 0, pairs = 0, one = 0, two = 0;

    prepare(&run, small);
    cr_assert_eq(start(&run), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(run.kept.contexts, 1);
    cr_expect_str_eq(run.kept.host_list, "local0:2 local1:2 ");
    cr_expect_eq(run.kept.binding_count, 4);
    for (size_t i = 0; i < run.kept.count; i++) {
        const struct nw_record *record = &run.kept.records[i];

        cr_expect_eq(record->rc, NW_OK);
        cr_expect_eq(record->wrong_elements, 0);
        cr_expect(record->simulated);
        cr_expect_gt(record->time_ns.count, 5);
        cr_expect_gt(record->busbw_bytes_per_s, 0);
        cr_expect_neq(record->slowest_host[0], '\0');
        for (size_t j = 0; j < i; j++)
            cr_expect_not(nw_record_same_identity(record, &run.kept.records[j]),
                          "records %zu and %zu are the same", i, j);
        coll += strcmp(record->case_name, "coll") == 0 && record->piece_bytes == 0;
        pairs += strcmp(record->case_name, "pairs") == 0;
        one += strcmp(record->case_name, "scaling") == 0 && record->host_count == 1;
        two += strcmp(record->case_name, "scaling") == 0 && record->host_count == 2;
    }
    cr_expect_eq(coll, 8, "%zu", coll);    /* 8 B, 256 B, 8 KiB, 256 KiB, at two places */
    cr_expect_eq(pairs, 12, "%zu", pairs); /* 6 pairs, two sizes */
    cr_expect_eq(one, 4);
    cr_expect_eq(two, 4);
    cr_expect(has_finding(&run.kept, "scaling-efficiency"));
    finish(&run);
}

/* "1x2 2x4 4x8": hosts and ranks of the records of case scaling, in their order. */
static void list_scaling(const struct run *run, char text[256])
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < run->kept.count; i++) {
        const struct nw_record *record = &run->kept.records[i];

        cr_expect_eq(record->wrong_elements, 0);
        cr_expect_gt(record->busbw_bytes_per_s, 0);
        cr_expect_eq(record->host_a[0] != '\0', record->rank_count < run->plan.ranks);
        if (strcmp(record->case_name, "scaling") == 0)
            length += (size_t)snprintf(text + length, 256 - length, "%dx%d ", record->host_count,
                                       record->rank_count);
    }
}

Test(bench_run, scaling_goes_through_1_2_4_hosts_to_all_of_them)
{
    static const struct {
        const char *ranks, *hosts, *levels;
    } rows[] = {
        {"6", "3", "1x2 2x4 3x6 "},
        {"12", "6", "1x2 2x4 4x8 6x12 "},
        {"8", "8", "2x2 4x4 8x8 "}, /* one rank a host: two hosts are the fewest */
        {"3", "3", "2x2 3x3 "},
        {"2", "2", ""},
        {"5", "2", ""}, /* not as many on each */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const options[] = {"backend",     "local",    "ranks", rows[i].ranks, "hosts",
                                       rows[i].hosts, "minbytes", "1K",    "maxbytes",    "1K",
                                       "budget",      "2ms",      "cases", "scaling",     "place",
                                       "out",         NULL};
        struct run run;
        char text[256];

        prepare(&run, options);
        cr_expect_eq(start(&run), rows[i].levels[0] != '\0' ? NW_OK : NW_ENOTSUP, "%s on %s: %s",
                     rows[i].ranks, rows[i].hosts, nw_last_error()->text);
        list_scaling(&run, text);
        cr_expect_str_eq(text, rows[i].levels, "%s on %s: %s", rows[i].ranks, rows[i].hosts, text);
        cr_expect_eq(has_finding(&run.kept, "no-scaling"), rows[i].levels[0] == '\0');
        finish(&run);
    }
}

/* What the records of bisect and incast say; `wrong` of them have wrong data. */
static void check_streams(const struct run *run, int hosts, size_t wrong)
{
    size_t halves = 0, alone = 0, into = 0, found = 0;

    for (size_t i = 0; i < run->kept.count; i++) {
        const struct nw_record *record = &run->kept.records[i];
        const bool all =
            strcmp(record->case_name, "incast") == 0 && strcmp(record->collective, "send") == 0;

        halves += strcmp(record->case_name, "bisect") == 0 && record->collective[4] == '\0';
        alone += strcmp(record->collective, "send_alone") == 0;
        into += all;
        found += record->rc == NW_EWRONG;
        cr_expect_str_eq(record->lane, "local");
        cr_expect_str_eq(record->nic_b, "");
        cr_expect_eq(record->count, all ? 2u * (unsigned)(hosts - 1) : 2u, "of %d hosts: %llu",
                     hosts, (unsigned long long)record->count);
        cr_expect_eq(record->host_count, all ? hosts : 2);
        cr_expect_eq(record->peer_a < 0, all && hosts > 2);
        cr_expect_eq(record->algbw_bytes_per_s > 0, record->rc == NW_OK);
    }
    cr_expect_eq(found, wrong, "of %d hosts: %zu wrong", hosts, found);
    cr_expect_eq(halves, (size_t)hosts / 2);
    cr_expect_eq(into, (size_t)hosts);
    cr_expect_eq(alone, hosts == 2 ? 0 : (size_t)hosts + (hosts > 3), "of %d hosts: %zu", hosts,
                 alone);
}

Test(bench_run, without_rdma_halves_and_many_to_one_go_over_the_communicator)
{
    static const char *const hosts[] = {"2", "3", "4", "5"};

    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char ranks[8];
        const int count = (int)i + 2;
        const char *const options[] = {"backend", "local",         "ranks",  ranks,       "hosts",
                                       hosts[i],  "pair-bytes",    "1000",   "budget",    "2ms",
                                       "cases",   "bisect,incast", "ib-dev", "none-such", NULL};
        struct run run, again;

        snprintf(ranks, sizeof ranks, "%d", 2 * count);
        prepare(&run, options);
        cr_assert_eq(start(&run), NW_OK, "%s", nw_last_error()->text);
        check_streams(&run, count, 0);
        cr_expect(has_finding(&run.kept, "no-rdma"));
        cr_expect_eq(has_finding(&run.kept, "bisect-sum"), count > 3);
        prepare(&again, options);
        again.done = run.kept.records;
        again.done_count = run.kept.count;
        cr_assert_eq(start(&again), NW_OK);
        cr_expect_eq(again.kept.kept_count, run.kept.count);
        finish(&again);
        finish(&run);
    }
}

/* Rank 1 receives only as the second of the first host. */
Test(bench_run, a_wrong_byte_of_a_stream_is_found)
{
    static const char *const options[] = {"backend", "local",     "ranks",      "4",
                                          "hosts",   "2",         "pair-bytes", "1000",
                                          "budget",  "2ms",       "cases",      "bisect,incast",
                                          "ib-dev",  "none-such", NULL};
    struct run run;

    prepare(&run, options);
    run.lies = true;
    cr_expect_eq(start(&run), NW_EWRONG);
    check_streams(&run, 2, 1);
    finish(&run);
}

Test(bench_run, a_resumed_run_keeps_what_there_is_and_measures_the_rest)
{
    struct run first, second;

    prepare(&first, small);
    cr_assert_eq(start(&first), NW_OK);
    prepare(&second, small);
    second.done = first.kept.records;
    second.done_count = 5;
    cr_assert_eq(start(&second), NW_OK);
    cr_expect_eq(second.kept.kept_count, 5);
    for (size_t i = 0; i < 5; i++)
        cr_expect_eq(second.kept.records[i].time_ns.median, first.kept.records[i].time_ns.median);
    finish(&second);
    finish(&first);
}

Test(bench_run, wrong_data_is_a_record_without_a_time_and_the_run_goes_on)
{
    static const char *const options[] = {"backend", "local",    "ranks", "3",     "minbytes",
                                          "512",     "maxbytes", "2K",    "place", "out",
                                          "budget",  "2ms",      NULL};
    struct run run;

    prepare(&run, options);
    run.lies = true;
    cr_expect_eq(start(&run), NW_EWRONG);
    cr_assert_eq(run.kept.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct nw_record *record = &run.kept.records[i];
        const bool wrong = record->bytes == 1024;

        cr_expect_eq(record->rc, wrong ? NW_EWRONG : NW_OK);
        cr_expect_eq(record->wrong_elements, wrong ? 1 : 0);
        cr_expect_eq(isnan(record->time_ns.median), wrong);
        if (wrong)
            cr_expect_str_eq(record->warnings.items[0].where, "rank 1 on local0");
    }
    for (int rank = 0; rank < 3; rank++)
        cr_expect_eq(run.rcs[rank], NW_EWRONG, "rank %d ended with %s", rank,
                     nw_rc_name(run.rcs[rank]));
    finish(&run);
}

Test(bench_run, a_rank_that_fails_ends_the_run_on_all_and_keeps_what_was_measured)
{
    static const char *const options[] = {"backend", "local",    "ranks", "3",     "minbytes",
                                          "512",     "maxbytes", "2K",    "place", "out",
                                          "budget",  "2ms",      NULL};
    struct run run;

    prepare(&run, options);
    run.dies = true;
    cr_expect_neq(start(&run), NW_OK);
    cr_expect_not_null(strstr(nw_last_error()->text, "the card fell off the bus"), "%s",
                       nw_last_error()->text);
    cr_expect_eq(run.kept.count, 1);
    finish(&run);
}

Test(bench_run, a_full_disk_on_rank_0_ends_every_rank_with_its_sentence)
{
    struct run run;

    prepare(&run, small);
    run.kept.fail_at = 3;
    cr_expect_eq(start(&run), NW_EIO);
    cr_expect_str_eq(nw_last_error()->text, "the disk is full");
    cr_expect_eq(run.kept.count, 3);
    for (int rank = 0; rank < 4; rank++)
        cr_expect_eq(run.rcs[rank], NW_EIO);
    finish(&run);
}

Test(bench_run, what_cannot_be_is_refused_on_all_ranks)
{
    static const struct {
        const char *options[16];
        bool other_plan;
        nw_rc rc;
        const char *said;
    } rows[] = {
        {{"backend", "local", "ranks", "2", "maxbytes", "100T", NULL},
         false,
         NW_EUSAGE,
         "--maxbytes"},
        {{"backend", "local", "ranks", "2", "root", "2", "collectives", "broadcast", NULL},
         false,
         NW_EUSAGE,
         "--root"},
        {{"backend", "local", "ranks", "2", NULL}, true, NW_EUSAGE, "other options"},
        {{"backend", "local", "ranks", "4", "collectives", "alltoall", "maxbytes", "8", NULL},
         false,
         NW_ENOTSUP,
         "nothing of the plan"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run run;

        prepare(&run, rows[i].options);
        run.other_plan = rows[i].other_plan;
        cr_expect_eq(start(&run), rows[i].rc, "row %zu: %s", i, nw_last_error()->text);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].said), "row %zu: %s", i,
                           nw_last_error()->text);
        for (int rank = 0; rank < run.plan.ranks; rank++)
            cr_expect_eq(run.rcs[rank], rows[i].rc, "row %zu, rank %d: %s", i, rank,
                         nw_rc_name(run.rcs[rank]));
        finish(&run);
    }
}

Test(bench_run, pieces_all_roots_types_and_cold_memory_are_verified_too)
{
    static const char *const rows[][20] = {
        {"backend", "local", "ranks", "3", "collectives", "all", "piece", "5000", "minbytes", "64K",
         "maxbytes", "64K", "budget", "1ms", "min-samples", "2", NULL},
        {"backend", "local", "ranks", "3", "collectives", "broadcast,gather", "root", "-1",
         "minbytes", "4K", "maxbytes", "4K", "budget", "1ms", "min-samples", "2", NULL},
        {"backend", "local", "ranks", "2", "datatype", "all", "op", "all", "minbytes", "1K",
         "maxbytes", "1K", "budget", "1ms", "min-samples", "2", NULL},
        {"backend", "local", "ranks", "2", "collectives", "all", "cold", "yes", "minbytes", "32K",
         "maxbytes", "32K", "budget", "1ms", "min-samples", "2", NULL},
    };
    static const size_t counts[] = {16, 12, 2 * NW_DTYPE_COUNT * NW_REDOP_COUNT, 16};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run run;

        prepare(&run, rows[i]);
        cr_expect_eq(start(&run), NW_OK, "row %zu: %s", i, nw_last_error()->text);
        cr_expect_eq(run.kept.count, counts[i], "row %zu: %zu records", i, run.kept.count);
        for (size_t j = 0; j < run.kept.count; j++)
            cr_expect_eq(run.kept.records[j].wrong_elements, 0);
        finish(&run);
    }
}
