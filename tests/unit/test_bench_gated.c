/* The gate as one rank of two, with the host's memory as the device: what it lets run, and when. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "bench/gated.h"

enum { BYTES = 64, CALLS = 5 };

static struct fake {
    unsigned char memory[BYTES];
    int barriers;
    int set_at_barrier; /* bytes of `memory` that were set when the barrier was met */
    nw_rc barrier_rc;
    uint64_t barrier_ns; /* of the pretended clock */
    int failing_call;    /* -1: none */
    uint64_t now_ns;
    struct nw_dev *dev;
    struct nw_stream *stream;
} fake;

static uint64_t pretended_clock(void)
{
    return fake.now_ns;
}

static int set_count(void)
{
    int count = 0;

    for (int i = 0; i < BYTES; i++)
        count += fake.memory[i] != 0;
    return count;
}

static nw_rc fake_barrier(struct nw_comm *comm)
{
    (void)comm;
    fake.barriers++;
    fake.set_at_barrier = set_count();
    fake.now_ns += fake.barrier_ns;
    return fake.barrier_rc == NW_OK ? NW_OK : nw_fail(fake.barrier_rc, "rank 1 has left");
}

static nw_rc queue_set(void *user, uint64_t index)
{
    (void)user;
    if ((int)index == fake.failing_call)
        return nw_fail(NW_ELIB, "unhandled system error");
    return fake.dev->ops->set(fake.stream, &fake.memory[index], 1, 1);
}

static const struct nw_comm_ops fake_ops = {.name = "fake", .barrier = fake_barrier};
static struct nw_comm comm = {.ops = &fake_ops, .rank_count = 2};
static struct nw_mark *start, *end;

static void open_device(void)
{
    fake = (struct fake){.failing_call = -1, .barrier_rc = NW_OK};
    cr_assert_eq(nw_dev_open("host", 0, &fake.dev), NW_OK);
    cr_assert_eq(fake.dev->ops->stream_open(fake.dev, &fake.stream), NW_OK);
    cr_assert_eq(fake.dev->ops->mark_open(fake.dev, &start), NW_OK);
    cr_assert_eq(fake.dev->ops->mark_open(fake.dev, &end), NW_OK);
}

static void close_device(void)
{
    fake.dev->ops->stream_close(fake.stream);
    fake.dev->ops->mark_close(start);
    fake.dev->ops->mark_close(end);
    nw_dev_close(fake.dev);
}

static nw_rc timed(struct nw_stream *stream, double *ns_out)
{
    const struct nw_gated gated = {.comm = &comm,
                                   .dev = fake.dev,
                                   .stream = stream,
                                   .start = start,
                                   .end = end,
                                   .queue = queue_set,
                                   .timeout_ns = 20e9};

    return nw_gated_time(&gated, 0, CALLS, ns_out);
}

Test(bench_gated, nothing_runs_before_all_ranks_are_there, .init = open_device,
     .fini = close_device)
{
    double ns = -1;

    cr_assert_eq(timed(fake.stream, &ns), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(fake.barriers, 1);
    cr_expect_eq(fake.set_at_barrier, 0);
    cr_expect_eq(set_count(), CALLS, "done on return");
    cr_expect_geq(ns, 0);
}

Test(bench_gated, a_rank_without_work_meets_the_others_and_no_more, .init = open_device,
     .fini = close_device)
{
    double ns = -1;

    cr_expect_eq(timed(NULL, &ns), NW_OK);
    cr_expect_eq(ns, 0);
    cr_expect_eq(fake.barriers, 1);
    cr_expect_eq(set_count(), 0);
}

Test(bench_gated, after_a_failure_the_gate_is_open_and_the_cause_is_told, .init = open_device,
     .fini = close_device)
{
    static const struct {
        int failing_call, barriers;
        nw_rc barrier_rc, rc;
        const char *text;
    } rows[] = {
        {3, 0, NW_OK, NW_ELIB, "unhandled system error"},
        {-1, 1, NW_EPEER, NW_EPEER, "rank 1 has left"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double ns = -1;

        memset(fake.memory, 0, sizeof fake.memory);
        fake.barriers = 0;
        fake.failing_call = rows[i].failing_call;
        fake.barrier_rc = rows[i].barrier_rc;
        cr_expect_eq(timed(fake.stream, &ns), rows[i].rc, "row %zu", i);
        cr_expect_str_eq(nw_last_error()->text, rows[i].text);
        cr_expect_eq(ns, -1, "set only on success");
        cr_expect_eq(fake.barriers, rows[i].barriers);
        cr_expect_eq(fake.dev->ops->wait(fake.stream, 5e9), NW_OK, "the gate is still closed");
    }
}

Test(bench_gated, a_time_without_the_others_is_none, .init = open_device, .fini = close_device)
{
    double ns = -1;

    nw_clock_ns = pretended_clock;
    fake.now_ns = 1;
    fake.barrier_ns = 21000000000; /* longer than the gate stays closed */
    cr_expect_eq(timed(fake.stream, &ns), NW_ETIMEOUT);
    cr_expect_not_null(strstr(nw_last_error()->text, "only after 21 s, so the gate gave up"), "%s",
                       nw_last_error()->text);
    cr_expect_eq(ns, -1);
    (void)fake.dev->ops->wait(fake.stream, 5e9);
}
