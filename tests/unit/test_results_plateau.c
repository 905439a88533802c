#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/results.h"

static struct nw_record *add(struct nw_run *run, uint64_t bytes, bool in_place, double busbw)
{
    struct nw_record *record = nw_run_new_record(run);

    strcpy(record->case_name, "coll");
    strcpy(record->collective, "all_reduce");
    strcpy(record->lane, "host");
    strcpy(record->dtype, "float");
    strcpy(record->op, "sum");
    record->rank_count = 2;
    record->host_count = 1;
    record->bytes = bytes;
    record->in_place = in_place;
    record->time_ns = nw_stats_single(1000);
    record->busbw_bytes_per_s = busbw;
    record->algbw_bytes_per_s = busbw / 2;
    return record;
}

static void near(double value, double expected)
{
    cr_expect_float_eq(value, expected, 1e-9 * expected, "%.17g instead of %.17g", value, expected);
}

Test(results_plateau, is_the_median_of_the_largest_sizes_that_agree)
{
    struct nw_run run = {0};
    struct nw_plateau plateau;

    nw_context_init(&run.context);
    add(&run, 64, false, 101e9); /* agrees in value, but a smaller size in between does not */
    add(&run, 8, false, 1e9);
    add(&run, 128, false, 50e9);
    add(&run, 1024, false, 101e9);
    add(&run, 256, false, 100e9);
    add(&run, 512, false, 102e9);
    cr_assert_eq(nw_plateau_of(&run, "coll", "all_reduce", 0, 0, -1, &plateau), NW_OK);
    near(plateau.busbw_bytes_per_s, 101e9);
    near(plateau.algbw_bytes_per_s, 50.5e9);
    near(plateau.low, 100e9);
    near(plateau.high, 102e9);
    cr_expect_eq(plateau.from_bytes, 256);
    cr_expect_eq(plateau.to_bytes, 1024);
    cr_expect_not(plateau.falls);
    cr_expect_eq(plateau.peak_bytes, 512);
    cr_expect_eq(plateau.rank_count, 2);
    nw_run_free(&run);
}

Test(results_plateau, a_fallen_curve_is_said_with_its_peak)
{
    struct nw_run run = {0};
    struct nw_plateau plateau;

    nw_context_init(&run.context);
    add(&run, 64, false, 9.3e9);
    add(&run, 128, false, 5e9);
    add(&run, 256, false, 0.9e9);
    cr_assert_eq(nw_plateau_of(&run, "coll", "all_reduce", 2, 1, 0, &plateau), NW_OK);
    near(plateau.busbw_bytes_per_s, 0.9e9);
    cr_expect_eq(plateau.from_bytes, 256);
    cr_expect(plateau.falls);
    near(plateau.peak_bytes_per_s, 9.3e9);
    cr_expect_eq(plateau.peak_bytes, 64);
    nw_run_free(&run);
}

Test(results_plateau, takes_only_comparable_records_with_right_data)
{
    struct nw_run run = {0};
    struct nw_plateau plateau;

    nw_context_init(&run.context);
    add(&run, 1024, false, 10e9);
    add(&run, 1024, true, 12e9);
    add(&run, 4096, false, 99e9)->wrong_elements = 4;
    add(&run, 4096, false, 98e9)->piece_bytes = 64;
    add(&run, 4096, false, NAN);
    add(&run, 4096, false, 97e9)->rc = NW_ETIMEOUT;
    strcpy(add(&run, 4096, false, 96e9)->lane, "ring");
    strcpy(add(&run, 4096, false, 95e9)->collective, "all_gather");
    add(&run, 4096, false, 94e9)->rank_count = 1;
    cr_assert_eq(nw_plateau_of(&run, "coll", "all_reduce", 0, 0, 0, &plateau), NW_OK);
    near(plateau.busbw_bytes_per_s, 10e9);
    cr_assert_eq(nw_plateau_of(&run, "coll", "all_reduce", 0, 0, 1, &plateau), NW_OK);
    near(plateau.busbw_bytes_per_s, 12e9);
    cr_assert_eq(nw_plateau_of(&run, "coll", "all_reduce", 0, 0, -1, &plateau), NW_OK);
    near(plateau.busbw_bytes_per_s, 11e9);
    cr_assert_eq(nw_plateau_of(&run, "coll", "all_reduce", 1, 0, 0, &plateau), NW_OK);
    near(plateau.busbw_bytes_per_s, 94e9);
    cr_assert_eq(nw_plateau_of(&run, "pairs", "all_reduce", 0, 0, 0, &plateau), NW_ENODEV);
    cr_assert_eq(nw_plateau_of(&run, "coll", "reduce", 0, 0, 0, &plateau), NW_ENODEV);
    nw_run_free(&run);
}

Test(results_plateau, the_interval_of_the_samples_widens_it)
{
    struct nw_run run = {0};
    struct nw_plateau plateau;

    nw_context_init(&run.context);
    struct nw_record *record = add(&run, 1024, false, 10e9);

    record->time_ns.low = 800;
    record->time_ns.high = 1250;
    cr_assert_eq(nw_plateau_of(&run, "coll", "all_reduce", 0, 0, -1, &plateau), NW_OK);
    near(plateau.low, 8e9);
    near(plateau.high, 12.5e9);
    nw_run_free(&run);
}
