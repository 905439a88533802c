/* The measuring loop as rank 0 of three, in virtual time: the other two ranks are the fake
 * communicator's. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "bench/measure.h"

enum { RANKS = 3 };

static struct fake {
    uint64_t now_ns;
    double factor[RANKS]; /* a rank's sample times over rank 0's */
    int failing_exchange; /* another rank has left before it; 0: none */
    int failing_call;     /* of this rank; 0: none */
    int exchanges, barriers, calls, fills, checks;
    int wrong_at_check;       /* the how-manieth check finds a wrong element; 0: none */
    int timed, failing_timed; /* asked for the device's time; which of them fails */
    uint64_t next_index;      /* of the calls that are timed so */
    uint64_t device_now_ns;
    uint64_t first_call_ns, call_ns;
} fake;

static uint64_t fake_clock(void)
{
    return fake.now_ns;
}

static nw_rc fake_barrier(struct nw_comm *comm)
{
    (void)comm;
    fake.barriers++;
    fake.now_ns += 2000;
    return NW_OK;
}

/* Packets are doubles: [0] time elapsed, then sample times; the first packet (agree.c) is a code.
 */
static nw_rc fake_exchange(struct nw_comm *comm, const void *mine, uint64_t bytes, void *all)
{
    const size_t count = bytes / sizeof(double);

    (void)comm;
    if (++fake.exchanges == fake.failing_exchange)
        return nw_fail(NW_EPEER, "rank 2 has left");
    for (int rank = 0; rank < RANKS; rank++) {
        char *packet = (char *)all + (size_t)rank * bytes;

        memcpy(packet, mine, bytes);
        for (size_t i = 1; i < count; i++)
            ((double *)(void *)packet)[i] *= fake.factor[rank];
    }
    return NW_OK;
}

static const struct nw_comm_ops fake_ops = {
    .name = "fake", .barrier = fake_barrier, .exchange = fake_exchange};
static int host_of_rank[RANKS] = {0, 0, 1};
static char host_names[2][64] = {"node1", "node2"};
static struct nw_comm comm = {.ops = &fake_ops,
                              .rank_count = RANKS,
                              .host_count = 2,
                              .host_of_rank = host_of_rank,
                              .host_names = host_names};

static nw_rc work_call(const struct nw_work *work, uint64_t index)
{
    (void)work, (void)index;
    if (fake.calls + 1 == fake.failing_call)
        return nw_fail(NW_ELIB, "the card fell off the bus");
    fake.now_ns += fake.calls++ == 0 ? fake.first_call_ns : fake.call_ns + (unsigned)fake.calls % 3;
    return NW_OK;
}

/* By a device's clock, which the host's, 20 ms later, knows nothing of. */
static nw_rc work_time(const struct nw_work *work, uint64_t index, uint32_t calls, double *ns_out)
{
    cr_expect_geq(fake.calls, 1, "a first call behind a gate");
    cr_expect_leq(calls, work->calls_max);
    if (fake.timed++ > 0)
        cr_expect_eq(index, fake.next_index, "calls %lu to %lu are left out or come twice",
                     (unsigned long)fake.next_index, (unsigned long)index);
    fake.next_index = index + calls;
    if (fake.timed == fake.failing_timed)
        return nw_fail(NW_ETIMEOUT, "all_reduce of 4 kB over 3 ranks: the GPU is not done");
    *ns_out = 12e3 * calls + fake.timed % 3;
    fake.now_ns += 20000000;
    fake.device_now_ns += 15000;
    return NW_OK;
}

static uint64_t device_clock(void)
{
    return fake.device_now_ns;
}

static void work_fill(const struct nw_work *work, uint64_t round)
{
    (void)work, (void)round;
    fake.fills++;
    fake.now_ns += 1000000;
}

static uint64_t work_check(const struct nw_work *work, uint64_t round, struct nw_wrong *first_out)
{
    (void)work, (void)round;
    fake.now_ns += 1000000;
    if (++fake.checks != fake.wrong_at_check)
        return 0;
    *first_out = (struct nw_wrong){.index = 5, .expected = 6, .found = 7, .from_rank = -1};
    return 1;
}

static const struct nw_work work = {
    .call = work_call, .fill = work_fill, .check = work_check, .result_stays = true};
static const struct nw_measure usual = {
    .comm = &comm,
    .group_count = 1,
    .rules = {.min_samples = 6, .stop_rel_ci = 0.02, .budget_ns = 200e6},
    .warmup_calls = 1,
    .check_calls = 1,
    .title = "test",
    .margin_ns = 1e9};

static void reset(void)
{
    nw_clock_ns = fake_clock;
    fake =
        (struct fake){.now_ns = 1, .factor = {1, 1, 1}, .first_call_ns = 50000000, .call_ns = 1000};
}

static struct nw_record measured_record(const struct nw_measure *how, const struct nw_work *what)
{
    struct nw_measured measured;
    struct nw_record record;

    nw_record_init(&record);
    record.bytes = 4000;
    cr_assert_eq(nw_measure(how, what, &measured), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_measured_report(&measured, 0, &comm, 1.5, &record), NW_OK);
    nw_measured_free(&measured);
    return record;
}

Test(bench_measure, the_first_slow_call_is_verified_and_never_timed, .init = reset)
{
    static const struct {
        int check, warmup;
        int fills, checks;
        int64_t wrong;
    } rows[] = {
        {1, 1, 1, 2, 0}, {0, 1, 1, 0, -1}, {0, 0, 1, 0, -1}, {3, 1, 3, 4, 0}, {1, 9, 1, 2, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_measure how = usual;
        struct nw_record record;

        reset();
        how.check_calls = rows[i].check;
        how.warmup_calls = rows[i].warmup;
        record = measured_record(&how, &work);
        cr_expect_lt(record.time_ns.max, 1100, "row %zu: a sample of %g ns", i, record.time_ns.max);
        cr_expect_float_eq(record.time_ns.median, 1001, 2);
        cr_expect_float_eq(record.algbw_bytes_per_s, 4e9, 4e7);
        cr_expect_float_eq(record.busbw_bytes_per_s, 6e9, 6e7);
        cr_expect_eq(record.stop, NW_STOP_CONVERGED);
        cr_expect_eq(record.time_ns.count, 6);
        cr_expect_eq(record.wrong_elements, rows[i].wrong);
        cr_expect_eq(fake.fills, rows[i].fills, "row %zu: %d fills", i, fake.fills);
        cr_expect_eq(fake.checks, rows[i].checks, "row %zu: %d checks", i, fake.checks);
        nw_record_free(&record);
    }
}

Test(bench_measure, a_barrier_stands_before_every_sample_and_is_not_timed, .init = reset)
{
    struct nw_record record = measured_record(&usual, &work);

    cr_expect_geq(fake.barriers, (int)record.time_ns.count);
    cr_expect_float_eq(record.time_ns.median, 1001, 2);
    nw_record_free(&record);
}

Test(bench_measure, what_is_overwritten_in_place_is_filled_anew_before_the_last_check,
     .init = reset)
{
    struct nw_work in_place = work;
    struct nw_record record;

    in_place.result_stays = false;
    record = measured_record(&usual, &in_place);
    cr_expect_eq(fake.fills, 2);
    cr_expect_eq(fake.checks, 2);
    nw_record_free(&record);
}

Test(bench_measure, the_slowest_rank_gives_the_time_and_is_named_with_its_host, .init = reset)
{
    struct nw_record record;

    fake.factor[2] = 1.03;
    record = measured_record(&usual, &work);
    cr_expect_eq(record.slowest_rank, 2);
    cr_expect_str_eq(record.slowest_host, "node2");
    cr_expect_float_eq(record.slowest_share, 1, 1e-9);
    cr_expect_float_eq(record.time_ns.median, 1031, 3);
    cr_expect_float_eq(record.skew_ns, 30, 1);
    nw_record_free(&record);
}

Test(bench_measure, a_wrong_element_before_or_after_the_timing_leaves_no_time, .init = reset)
{
    for (int at = 1; at <= 2; at++) {
        struct nw_record record;

        reset();
        fake.wrong_at_check = at;
        record = measured_record(&usual, &work);
        cr_expect_eq(record.rc, NW_EWRONG, "check %d", at);
        cr_expect_eq(record.wrong_elements, RANKS); /* each of the ranks has one */
        cr_expect_eq(record.time_ns.count, 0);
        cr_expect(isnan(record.time_ns.median));
        cr_expect(isnan(record.algbw_bytes_per_s));
        cr_expect_null(record.samples_ns);
        cr_assert_eq(record.warnings.count, 1);
        cr_expect_eq(record.warnings.items[0].severity, NW_FINDING_FAIL);
        cr_expect_not_null(strstr(record.warnings.items[0].text, "element 5"), "%s",
                           record.warnings.items[0].text);
        cr_expect_str_eq(record.warnings.items[0].where, "rank 0 on node1");
        if (at == 1)
            cr_expect_eq(fake.calls, 1, "wrong data was timed");
        nw_record_free(&record);
    }
}

Test(bench_measure, a_failing_call_and_a_lost_peer_end_it_with_the_cause, .init = reset)
{
    static const int calls[] = {1, 2, 3, 1000};

    for (int at = 1; at <= 5; at++) {
        struct nw_measured measured;

        reset();
        fake.failing_exchange = at;
        cr_expect_eq(nw_measure(&usual, &work, &measured), NW_EPEER, "exchange %d", at);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct nw_measured measured;

        reset();
        fake.failing_call = calls[i];
        cr_expect_eq(nw_measure(&usual, &work, &measured), NW_ELIB, "call %d", calls[i]);
        cr_expect_str_eq(nw_last_error()->text, "rank 0 on node1: the card fell off the bus");
    }
}

Test(bench_measure, the_status_has_phase_and_deadline_while_it_runs, .init = reset)
{
    static struct nw_bench_status status;
    struct nw_measure how = usual;
    struct nw_record record;
    char text[NW_BENCH_STATUS_TEXT];
    uint64_t deadline_ns;

    nw_bench_status_read(&status, text, &deadline_ns);
    cr_expect_str_eq(text, "");
    cr_expect_eq(deadline_ns, 0);
    how.status = &status;
    record = measured_record(&how, &work);
    nw_bench_status_read(&status, text, &deadline_ns);
    cr_expect_str_eq(text, "test, last check");
    cr_expect_gt(deadline_ns, 900000000u);
    cr_expect_leq(deadline_ns, fake.now_ns + 1000000000u);
    nw_record_free(&record);
}

static const struct nw_work timed_work = {.call = work_call,
                                          .fill = work_fill,
                                          .check = work_check,
                                          .time = work_time,
                                          .calls_max = 64,
                                          .result_stays = true};

Test(bench_measure, a_work_with_its_own_clock_is_timed_by_it_after_a_call_without, .init = reset)
{
    static const struct {
        int check, warmup;
    } rows[] = {{1, 1}, {0, 0}, {2, 5}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_measure how = usual;
        struct nw_record record;

        reset();
        how.check_calls = rows[i].check;
        how.warmup_calls = rows[i].warmup;
        record = measured_record(&how, &timed_work);
        cr_expect_float_eq(record.time_ns.median, 12e3, 1);
        cr_expect_eq(record.stop, NW_STOP_CONVERGED);
        cr_expect_eq(record.calls_per_sample, 53, "%u calls: 1.25 times 500 us",
                     record.calls_per_sample);
        cr_expect_eq(fake.barriers, 0, "its barrier is its own");
        nw_record_free(&record);
    }
}

Test(bench_measure, no_more_calls_are_asked_for_at_once_than_the_work_takes, .init = reset)
{
    struct nw_work few = timed_work;
    struct nw_record record;

    few.calls_max = 3;
    record = measured_record(&usual, &few);
    cr_expect_eq(record.calls_per_sample, 3);
    nw_record_free(&record);
}

Test(bench_measure, a_failure_behind_the_gate_keeps_its_words, .init = reset)
{
    static const int at[] = {1, 2, 5, 9};

    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        struct nw_measured measured;

        reset();
        fake.failing_timed = at[i];
        cr_expect_eq(nw_measure(&usual, &timed_work, &measured), NW_ETIMEOUT, "time %d", at[i]);
        cr_expect_str_eq(nw_last_error()->text,
                         "rank 0 on node1: all_reduce of 4 kB over 3 ranks: the GPU is not done");
    }
}

Test(bench_measure, the_budget_is_one_of_the_communicators_clock, .init = reset)
{
    struct nw_measure how = usual;
    struct nw_record record;

    comm.now_ns = device_clock;
    how.rules.stop_rel_ci = 0; /* never */
    how.rules.budget_ns = 30 * 15e3;
    record = measured_record(&how, &timed_work);
    comm.now_ns = NULL;
    cr_expect_eq(record.stop, NW_STOP_BUDGET);
    cr_expect(record.time_ns.count > 20 && record.time_ns.count <= 40,
              "%zu samples, as if the host's clock counted", record.time_ns.count);
    nw_record_free(&record);
}
