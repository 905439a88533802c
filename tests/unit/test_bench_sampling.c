#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "bench/sampling.h"

/* A machine whose call takes what `call_ns` says; virtual time. */
struct machine {
    double (*call_ns)(int rank, size_t call, unsigned *random);
    int rank_count;
    double barrier_ns;
    double wait_ns; /* of rank 0, once a sample: for a rank that has no CPU yet */
    unsigned random;
    size_t calls_made;
    double now_ns;
};

static double noise(unsigned *random) /* -1 .. 1 */
{
    *random = *random * 1664525u + 1013904223u;
    return (double)(*random >> 8) / (1u << 23) - 1;
}

static size_t run(const struct nw_sampling_rules *rules, struct machine *machine,
                  const int *group_of_rank, int group_count, struct nw_sampling **sampling_out)
{
    static double times[16 * NW_BATCH_MAX];
    size_t batch, batches = 0;

    cr_assert_eq(
        nw_sampling_open(rules, group_of_rank, machine->rank_count, group_count, sampling_out),
        NW_OK);
    while ((batch = nw_sampling_next(*sampling_out)) > 0) {
        const uint32_t calls = nw_sampling_calls(*sampling_out);

        cr_assert_leq(batch, NW_BATCH_MAX);
        cr_assert_lt(++batches, 10000u, "does not come to an end");
        for (size_t i = 0; i < batch; i++) {
            double slowest = 0;

            for (int rank = 0; rank < machine->rank_count; rank++) {
                double time = 0, fastest = INFINITY;

                for (uint32_t call = 0; call < calls; call++) {
                    const double wait = rank == 0 && call == 0 ? machine->wait_ns : 0;
                    const double call_ns =
                        wait + machine->call_ns(rank, machine->calls_made + call, &machine->random);

                    time += call_ns;
                    fastest = fmin(fastest, call_ns);
                }
                if (nw_sampling_calibrates(*sampling_out))
                    time = fastest * calls;
                times[(size_t)rank * NW_BATCH_MAX + i] = time;
                slowest = fmax(slowest, time);
            }
            machine->calls_made += calls;
            machine->now_ns += slowest + machine->barrier_ns;
        }
        cr_assert_eq(nw_sampling_add(*sampling_out, batch, times, NW_BATCH_MAX, machine->now_ns),
                     NW_OK);
    }
    return batches;
}

static const struct nw_sampling_rules usual = {
    .min_samples = 6, .stop_rel_ci = 0.02, .budget_ns = 200e6};
static const int together[16] = {0};

static double steady_1us(int rank, size_t call, unsigned *random)
{
    (void)rank, (void)call;
    return 1000 * (1 + 0.001 * noise(random));
}

static double steady_5ms(int rank, size_t call, unsigned *random)
{
    (void)rank, (void)call;
    return 5e6 * (1 + 0.001 * noise(random));
}

static double rank_2_is_3_percent_slower(int rank, size_t call, unsigned *random)
{
    (void)call;
    return (rank == 2 ? 103e3 : 100e3) * (1 + 0.002 * noise(random));
}

static double heavy_tails(int rank, size_t call,
                          unsigned *random) /* a tenth to a hundred times the middle */
{
    (void)rank, (void)call;
    return 1e6 * pow(10, noise(random)) * (noise(random) > 0.9 ? 10 : 1);
}

static double slow_moment_first(int rank, size_t call, unsigned *random)
{
    (void)rank;
    return call == 0 ? 4e6 : 1000 * (1 + 0.001 * noise(random));
}

static double no_time_at_all(int rank, size_t call, unsigned *random)
{
    (void)rank, (void)call, (void)random;
    return 0;
}

Test(bench_sampling, stops_by_the_rule_that_fits_the_series)
{
    static const struct {
        const char *name;
        double (*call_ns)(int rank, size_t call, unsigned *random);
        uint64_t fixed;
        nw_stop stop;
        size_t samples_min, samples_max;
        double median_min, median_max;
        uint32_t calls_min, calls_max;
        uint32_t most; /* calls a sample that the work takes; 0: any number */
    } rows[] = {
        {"steady, short", steady_1us, 0, NW_STOP_CONVERGED, 6, 6, 998, 1002, 200, 1300, 0},
        {"steady, long", steady_5ms, 0, NW_STOP_CONVERGED, 6, 6, 4.99e6, 5.02e6, 1, 1, 0},
        {"heavy tails", heavy_tails, 0, NW_STOP_BUDGET, 7, 512, 1e4, 1e9, 1, 100, 0},
        {"misled calibration", slow_moment_first, 0, NW_STOP_CONVERGED, 6, 6, 998, 1002, 200, 1300,
         0},
        {"at most 64", steady_1us, 0, NW_STOP_CONVERGED, 6, 6, 998, 1003, 64, 64, 64},
        {"at most one", steady_1us, 0, NW_STOP_CONVERGED, 6, 64, 998, 1003, 1, 1, 1},
        {"long, at most 64", steady_5ms, 0, NW_STOP_CONVERGED, 6, 6, 4.99e6, 5.02e6, 1, 1, 64},
        {"1000 wanted, at most 64", steady_1us, 1000, NW_STOP_FIXED, 20, 20, 998, 1003, 50, 50, 64},
        {"20 calls wanted", steady_1us, 20, NW_STOP_FIXED, 10, 10, 998, 1003, 2, 2, 0},
        {"100000 calls wanted", steady_1us, 100000, NW_STOP_FIXED, 80, 500, 998, 1003, 200, 1250,
         0},
        {"7 calls wanted", steady_5ms, 7, NW_STOP_FIXED, 7, 7, 4.99e6, 5.02e6, 1, 1, 0},
        {"3 calls wanted", steady_5ms, 3, NW_STOP_FIXED, 3, 3, 4.99e6, 5.02e6, 1, 1, 0},
        {"a clock that stands", no_time_at_all, 0, NW_STOP_BUDGET, 6, 512, 0, 0, NW_CALLS_MAX,
         NW_CALLS_MAX, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_sampling_rules rules = usual;
        struct machine machine = {
            .call_ns = rows[i].call_ns, .rank_count = 4, .barrier_ns = 3000, .random = 7};
        struct nw_sampling *sampling;
        struct nw_record record;

        rules.fixed_calls = rows[i].fixed;
        rules.calls_max = rows[i].most;
        if (rows[i].call_ns == no_time_at_all) /* would make a million calls a sample */
            machine.rank_count = 1, rules.budget_ns = 30e3;
        run(&rules, &machine, together, 1, &sampling);
        nw_record_init(&record);
        cr_assert_eq(nw_sampling_report(sampling, 0, &record), NW_OK);
        cr_expect_eq(record.stop, rows[i].stop, "%s: stop %d", rows[i].name, record.stop);
        cr_expect(record.time_ns.count >= rows[i].samples_min &&
                      record.time_ns.count <= rows[i].samples_max,
                  "%s: %zu samples", rows[i].name, record.time_ns.count);
        cr_expect(record.time_ns.median >= rows[i].median_min &&
                      record.time_ns.median <= rows[i].median_max,
                  "%s: median %g", rows[i].name, record.time_ns.median);
        cr_expect(record.calls_per_sample >= rows[i].calls_min &&
                      record.calls_per_sample <= rows[i].calls_max,
                  "%s: %u calls a sample", rows[i].name, record.calls_per_sample);
        if (rows[i].fixed > 0)
            cr_expect_eq(record.time_ns.count * record.calls_per_sample, rows[i].fixed, "%s",
                         rows[i].name);
        nw_record_free(&record);
        nw_sampling_close(sampling);
    }
}

Test(bench_sampling, a_wait_that_each_sample_has_is_shared_by_many_calls)
{
    struct machine machine = {
        .call_ns = steady_1us, .rank_count = 4, .wait_ns = 20e6, .random = 11};
    struct nw_sampling *sampling;
    struct nw_record record;

    run(&usual, &machine, together, 1, &sampling);
    nw_record_init(&record);
    cr_assert_eq(nw_sampling_report(sampling, 0, &record), NW_OK);
    cr_expect_gt(record.calls_per_sample, 400, "%u calls a sample", record.calls_per_sample);
    cr_expect_lt(record.time_ns.median, 51e3, "20 ms passed for one call: %g",
                 record.time_ns.median);
    nw_record_free(&record);
    nw_sampling_close(sampling);
}

static double root_of_many(int rank, size_t call, unsigned *random)
{
    (void)call;
    return (rank == 0 ? 50e3 : 100) * (1 + 0.05 * noise(random));
}

Test(bench_sampling, ranks_that_finish_at_once_do_not_stretch_the_sample_beyond_the_budget)
{
    struct machine machine = {.call_ns = root_of_many, .rank_count = 4, .random = 13};
    struct nw_sampling *sampling;

    run(&usual, &machine, together, 1, &sampling);
    cr_expect_lt(machine.now_ns, 5 * usual.budget_ns, "%g s", machine.now_ns / 1e9);
    nw_sampling_close(sampling);
}

Test(bench_sampling, the_budget_holds_but_for_the_least_samples)
{
    struct machine machine = {.call_ns = heavy_tails, .rank_count = 2, .random = 1};
    struct nw_sampling *sampling;

    run(&usual, &machine, together, 1, &sampling);
    cr_expect_gt(machine.now_ns, 0.9 * usual.budget_ns);
    cr_expect_lt(machine.now_ns, 2 * usual.budget_ns, "%g s", machine.now_ns / 1e9);
    nw_sampling_close(sampling);
}

Test(bench_sampling, a_rank_3_percent_slower_is_named)
{
    struct machine machine = {.call_ns = rank_2_is_3_percent_slower, .rank_count = 4, .random = 3};
    struct nw_sampling *sampling;
    struct nw_record record;

    run(&usual, &machine, together, 1, &sampling);
    nw_record_init(&record);
    cr_assert_eq(nw_sampling_report(sampling, 0, &record), NW_OK);
    cr_expect_eq(record.slowest_rank, 2);
    cr_expect_float_eq(record.slowest_share, 1, 1e-9);
    cr_expect_float_eq(record.time_ns.median, 103e3, 500, "slowest rank's time: %g",
                       record.time_ns.median);
    cr_expect_float_eq(record.skew_ns, 3e3, 300, "skew %g", record.skew_ns);
    nw_record_free(&record);
    nw_sampling_close(sampling);
}

static double pairs_of_two_speeds(int rank, size_t call, unsigned *random)
{
    (void)call;
    if (rank == 4)
        return 9e9; /* idles: whatever its clock says */
    return (rank == 0 || rank == 3 ? 1e6 : 2e6) * (1 + 0.001 * noise(random)) + rank;
}

Test(bench_sampling, groups_are_timed_each_by_its_own_ranks)
{
    static const int group_of_rank[5] = {0, 1, 1, 0, -1};
    struct machine machine = {.call_ns = pairs_of_two_speeds, .rank_count = 5, .random = 9};
    struct nw_sampling_rules rules = usual;
    struct nw_sampling *sampling;

    rules.budget_ns = 1e12; /* the idle rank's nonsense must not count as spent */
    run(&rules, &machine, group_of_rank, 2, &sampling);
    for (int group = 0; group < 2; group++) {
        struct nw_record record;

        nw_record_init(&record);
        cr_assert_eq(nw_sampling_report(sampling, group, &record), NW_OK);
        cr_expect_eq(record.stop, NW_STOP_CONVERGED);
        cr_expect_float_eq(record.time_ns.median, group == 0 ? 1e6 : 2e6, 5e3);
        cr_expect_eq(group_of_rank[record.slowest_rank], group);
        nw_record_free(&record);
    }
    nw_sampling_close(sampling);
}

static double warming_up(int rank, size_t call, unsigned *random)
{
    (void)rank;
    return (call < 40 ? 2e6 : 1e6) * (1 + 0.05 * noise(random));
}

Test(bench_sampling, a_series_that_drifts_and_a_wide_interval_are_said)
{
    struct machine machine = {.call_ns = warming_up, .rank_count = 2, .random = 5};
    struct nw_sampling_rules rules = usual;
    struct nw_sampling *sampling;
    struct nw_record record;
    bool drift = false, wide = false;

    rules.stop_rel_ci = 1e-6;
    rules.budget_ns = 120e6;
    run(&rules, &machine, together, 1, &sampling);
    nw_record_init(&record);
    cr_assert_eq(nw_sampling_report(sampling, 0, &record), NW_OK);
    for (size_t i = 0; i < record.warnings.count; i++) {
        drift |= strcmp(record.warnings.items[i].code, "drift") == 0;
        wide |= strcmp(record.warnings.items[i].code, "interval-wide") == 0;
    }
    cr_expect(drift);
    cr_expect(wide);
    nw_record_free(&record);
    nw_sampling_close(sampling);
}
