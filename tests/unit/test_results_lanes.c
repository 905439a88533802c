#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "report/lanes_text.h"
#include "results/lanes.h"

/* A curve of all_reduce: start plus bytes at a rate; its interval is 1 % either way. */
struct curve {
    const char *case_name, *lane, *features;
    double start_us, gb_per_s;
    uint64_t from, to;
    bool in_place;
};

static void add(struct nw_run *run, const struct curve *curve)
{
    for (uint64_t bytes = curve->from; bytes <= curve->to; bytes *= 4) {
        struct nw_record *record = nw_run_new_record(run);
        const double ns = curve->start_us * 1e3 + (double)bytes * 1.5 / curve->gb_per_s;

        snprintf(record->case_name, sizeof record->case_name, "%s", curve->case_name);
        snprintf(record->collective, sizeof record->collective, "all_reduce");
        snprintf(record->lane, sizeof record->lane, "%s", curve->lane);
        snprintf(record->features, sizeof record->features, "%s", curve->features);
        snprintf(record->dtype, sizeof record->dtype, "float");
        snprintf(record->op, sizeof record->op, "sum");
        record->rank_count = 4;
        record->host_count = 1;
        record->bytes = bytes;
        record->in_place = curve->in_place;
        record->time_ns = nw_stats_single(ns);
        record->time_ns.low = ns * 0.99;
        record->time_ns.high = ns * 1.01;
        record->algbw_bytes_per_s = (double)bytes / ns * 1e9;
        record->busbw_bytes_per_s = 1.5 * record->algbw_bytes_per_s;
        record->simulated = true;
    }
}

static const struct curve curves[] = {
    {"coll", "auto", "", 0.001, 400, 1024, 1 << 30, false},
    {"coll", "pcie", "", 0.002, 40, 1024, 1 << 30, false},
    {"coll", "tree", "", 0.003, 200, 1024, 1 << 20, false},      /* broke on its way */
    {"coll", "auto", "graph", 0.001, 800, 1024, 1 << 30, false}, /* another thing than auto */
    {"overlap", "auto", "", 0.001, 4, 1024, 1 << 30, false},
    {"coll", "auto", "", 0.001, 300, 1024, 1 << 30, true},
};

static struct nw_run *make(struct nw_results *results, struct nw_lanes *lanes)
{
    struct nw_run *run = nw_results_add_run(results);

    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        add(run, &curves[i]);
    run->context.lanes = json_pack("[{s:s},{s:s,s:s}]", "name", "auto", "name", "nvls", "left_out",
                                   "there are no NVSwitches");
    cr_assert_eq(nw_findings_add(&run->context.findings, NW_FINDING_FAIL, "lane-broken",
                                 "lane tree", NULL, "rank 3 gave no answer"),
                 NW_OK);
    cr_assert_eq(nw_lanes_compare(run, lanes), NW_OK);
    return run;
}

Test(results_lanes, only_records_that_differ_in_their_lane_alone_are_compared)
{
    struct nw_results results = {0};
    struct nw_lanes lanes;

    make(&results, &lanes);
    cr_assert_eq(lanes.count, 1);
    const struct nw_lanes_group *group = &lanes.groups[0];

    cr_assert_eq(group->side_count, 3);
    cr_assert_not(group->like->in_place);
    const struct nw_lane_side *own = nw_lanes_side(group, "auto");
    const struct nw_lane_side *pcie = nw_lanes_side(group, "pcie");

    cr_assert_float_eq(own->busbw_bytes_per_s.value, 400e9, 1e9);
    cr_assert_float_eq(pcie->busbw_bytes_per_s.value, 40e9, 1e8);
    cr_assert_float_eq(own->ratio.value, 10, 0.01);
    cr_assert_float_eq(pcie->ratio.value, 1, 1e-9);
    /* both may be off by 1 %, in opposite directions; a plateau holds sizes that agree in 2 % */
    cr_assert(own->ratio.low > 9.5 && own->ratio.low < 9.81, "%g", own->ratio.low);
    cr_assert(own->ratio.high > 10.19 && own->ratio.high < 10.5, "%g", own->ratio.high);
    cr_assert_eq(group->latency_bytes, 1024);
    cr_assert_float_eq(pcie->latency_ns.value, 2 + 1024 * 1.5 / 40, 1e-6);
    nw_lanes_free(&lanes);
    nw_results_free(&results);
}

Test(results_lanes, a_lane_that_ended_early_is_shown_and_not_compared)
{
    struct nw_results results = {0};
    struct nw_lanes lanes;

    make(&results, &lanes);
    const struct nw_lane_side *tree = nw_lanes_side(&lanes.groups[0], "tree");

    cr_assert(tree->partial);
    cr_assert(isnan(tree->ratio.value));
    cr_assert_eq(tree->to_bytes, 1 << 20);
    cr_assert_eq(lanes.note_count, 2);
    cr_assert_str_eq(lanes.notes[0].lane, "nvls");
    cr_assert_not(lanes.notes[0].broke);
    cr_assert(lanes.notes[1].broke);
    nw_lanes_free(&lanes);
    nw_results_free(&results);
}

Test(results_lanes, the_curve_of_a_run_is_of_one_lane_one_set_of_features_and_the_case)
{
    struct nw_results results = {0};
    struct nw_lanes lanes;
    const struct nw_run *run = make(&results, &lanes);
    struct nw_plateau plateau;

    cr_assert_eq(nw_plateau_of(run, "coll", "all_reduce", 0, 0, 0, &plateau), NW_OK);
    cr_assert_float_eq(plateau.busbw_bytes_per_s, 400e9, 1e9);
    cr_assert_str_eq(nw_run_lane(run), "auto");
    nw_lanes_free(&lanes);
    nw_results_free(&results);
}

Test(results_lanes, the_table_names_what_is_simulated_missing_and_broken_within_100_columns)
{
    static const char *const names[] = {"auto", "nvlink", "pcie", "shm",
                                        "ring", "tree",   "nvls", "rdma"};
    static const char *const wanted[] = {"SIMULATED", "nvlink/pcie, all_reduce: 1.1",
                                         "left out: tcp: there is one host", "broke: rank 3"};
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_lanes lanes;
    char *text = NULL, *rest = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add(run, &(struct curve){"coll", names[i], "", 0.001, 400.0 / (7.0 + (double)i), 1024,
                                 1 << 30, false});
    run->context.lanes = json_pack("[{s:s,s:s}]", "name", "tcp", "left_out", "there is one host");
    nw_findings_add(&run->context.findings, NW_FINDING_FAIL, "lane-broken", "lane x", NULL,
                    "rank 3 gave no answer");
    cr_assert_eq(nw_lanes_compare(run, &lanes), NW_OK);
    cr_assert_eq(nw_report_lanes(stream, &lanes), NW_OK);
    fclose(stream);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert_not_null(strstr(text, wanted[i]), "%s: not in:\n%s", wanted[i], text);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        cr_assert_leq(strlen(line), 104, "%s", line); /* bytes; a dash has three */
    nw_lanes_free(&lanes);
    nw_results_free(&results);
    free(text);
}

/* The report, what was wrapped joined again; the caller frees it. */
static char *said_of(const struct nw_lanes *lanes)
{
    char *text = NULL, *fold;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    cr_assert_eq(nw_report_lanes(stream, lanes), NW_OK);
    fclose(stream);
    while ((fold = strstr(text, "\n    ")) != NULL) {
        *fold = ' ';
        memmove(fold + 1, fold + 5, strlen(fold + 5) + 1);
    }
    return text;
}

Test(results_lanes, the_librarys_choice_is_held_against_what_was_forced_size_by_size)
{
    static const struct curve worse[] = {
        {"coll", "auto", "", 5, 400, 1024, 1 << 30, false},
        {"coll", "ring", "", 20, 600, 1024, 1 << 30, false},  /* better from 16 MiB on */
        {"coll", "tree", "", 1, 200, 1024, 1 << 28, false},   /* better up to 256 KiB */
        {"coll", "pcie", "", 0.1, 900, 1024, 1 << 30, false}, /* no algorithm */
    };
    static const struct curve best[] = {
        {"coll", "auto", "", 5, 400, 1024, 1 << 30, false},
        {"coll", "ring", "", 5, 410, 1024, 1 << 30, false}, /* within 5 % */
    };
    static const struct curve noisy[] = {
        {"coll", "auto", "", 5, 400, 1024, 1 << 30, false}, /* 1.30 [0.866, 1.95] at 1 GiB */
        {"coll", "ring", "", 5, 520, 1024, 1 << 30, false},
    };
    struct nw_results results = {0};
    struct nw_lanes lanes;
    char *text = NULL;

    for (size_t i = 0; i < 4; i++)
        add(i == 0 ? nw_results_add_run(&results) : &results.runs[0], &worse[i]);
    cr_assert_eq(nw_lanes_compare(&results.runs[0], &lanes), NW_OK);
    const struct nw_lane_choice *choice = &lanes.groups[0].choice;

    cr_expect_eq(choice->size_count, 11);
    cr_expect_eq(choice->worse_count, 5 + 4);
    cr_expect_eq(choice->worse_from_bytes, 1024);
    cr_expect_eq(choice->worse_to_bytes, 1 << 30);
    cr_expect_eq(choice->worst_bytes, 1024);
    cr_expect_str_eq(choice->worst_lane, "tree");
    cr_expect_float_eq(choice->worst_ratio.value, 4.966, 0.01, "%g", choice->worst_ratio.value);
    text = said_of(&lanes);
    /* ring is the better one from 16 MiB on: tree is advised for its size and no other */
    cr_expect_not_null(strstr(text, "NCCL's choice, all_reduce: 4.97 [4.87, 5.07] times the time "
                                    "of tree at 1 KiB: try NCCL_ALGO=Tree for that size; slower "
                                    "than what was forced at 9 of 11 sizes, from 1 KiB to 1 GiB\n"),
                       "%s", text);
    free(text);
    nw_lanes_free(&lanes);
    nw_results_free(&results);

    for (size_t i = 0; i < 2; i++)
        add(i == 0 ? nw_results_add_run(&results) : &results.runs[0], &best[i]);
    cr_assert_eq(nw_lanes_compare(&results.runs[0], &lanes), NW_OK);
    cr_expect_eq(lanes.groups[0].choice.size_count, 11);
    cr_expect_eq(lanes.groups[0].choice.worse_count, 0);
    text = said_of(&lanes);
    cr_expect_not_null(strstr(text, "NCCL's choice, all_reduce: within 5 % of the fastest that was "
                                    "forced at each of 11 sizes\n"),
                       "%s", text);
    free(text);
    nw_lanes_free(&lanes);
    nw_results_free(&results);

    for (size_t i = 0; i < 2; i++)
        add(i == 0 ? nw_results_add_run(&results) : &results.runs[0], &noisy[i]);
    for (size_t i = 0; i < results.runs[0].record_count; i++) {
        struct nw_stats *time = &results.runs[0].records[i].time_ns;

        time->low = time->median * 0.8;
        time->high = time->median * 1.2;
    }
    cr_assert_eq(nw_lanes_compare(&results.runs[0], &lanes), NW_OK);
    cr_expect_eq(lanes.groups[0].choice.worse_count, 0);
    cr_expect_eq(lanes.groups[0].choice.worst_bytes, 1 << 30);
    text = said_of(&lanes);
    cr_expect_null(strstr(text, "within 5 %"), "%s", text);
    cr_expect_not_null(strstr(text, "not told apart from the fastest that was forced at any of 11 "
                                    "sizes; up to 1.30 [0.866, 1.95] times the time of ring at 1 "
                                    "GiB\n"),
                       "%s", text);
    free(text);
    nw_lanes_free(&lanes);
    nw_results_free(&results);
}
