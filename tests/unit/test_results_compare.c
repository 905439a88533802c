#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/baseline.h"
#include "results/compare.h"
#include "results/sink.h"

static uint64_t state;

static double uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static void set(char *field, size_t size, const char *text)
{
    snprintf(field, size, "%s", text);
}

static struct nw_record *add_record(struct nw_run *run, uint64_t bytes)
{
    struct nw_record *record = nw_run_new_record(run);

    set(record->case_name, sizeof record->case_name, "coll");
    set(record->collective, sizeof record->collective, "all_reduce");
    set(record->lane, sizeof record->lane, "auto");
    set(record->dtype, sizeof record->dtype, "float");
    set(record->op, sizeof record->op, "sum");
    record->rank_count = 8;
    record->host_count = 1;
    record->bytes = bytes;
    return record;
}

static struct nw_run *add_run(struct nw_results *results, const char *host)
{
    struct nw_run *run = nw_results_add_run(results);
    struct nw_context *context = &run->context;

    set(context->backend, sizeof context->backend, "nccl");
    set(context->gpu_model, sizeof context->gpu_model, "GPU");
    context->host_count = 1;
    context->hosts = calloc(1, sizeof *context->hosts);
    set(context->hosts[0].name, sizeof context->hosts[0].name, host);
    return run;
}

static void set_samples(struct nw_record *record, size_t count, double time_ns, double noise)
{
    record->samples_ns = calloc(count, sizeof *record->samples_ns);
    for (size_t i = 0; i < count; i++)
        record->samples_ns[i] = time_ns * exp(noise * normal());
    cr_assert_eq(nw_stats_of(record->samples_ns, count, &record->time_ns), NW_OK);
}

/* One run: `rows` sizes, each with samples around 1 ms; `factor` on the size with that number. */
static void fill(struct nw_results *results, const char *host, int rows, size_t samples,
                 double noise, int slow_row, double factor)
{
    struct nw_run *run = add_run(results, host);

    for (int i = 0; i < rows; i++)
        set_samples(add_record(run, 1024 + (uint64_t)i), samples,
                    1e6 * (i == slow_row ? factor : 1), noise);
}

static struct nw_comparison compare(const struct nw_results *a, const struct nw_results *b,
                                    double threshold, const char *across)
{
    const struct nw_compare_plan plan = {.threshold = threshold, .across = across};
    const struct nw_compare_side sides[] = {{"a", a}, {"b", b}};
    struct nw_comparison comparison;

    cr_assert_eq(nw_compare(&plan, sides, 2, &comparison), NW_OK, "%s", nw_last_error()->text);
    return comparison;
}

Test(results_compare, like_with_like_alarms_in_at_most_five_of_a_hundred_comparisons)
{
    int alarms = 0;

    state = 3;
    for (int i = 0; i < 100; i++) {
        struct nw_results a = {0}, b = {0};

        fill(&a, "node1", 40, 20, 0.02, -1, 1);
        fill(&b, "node1", 40, 20, 0.02, -1, 1);
        struct nw_comparison comparison = compare(&a, &b, 0, NULL);

        cr_assert_eq(comparison.tested_count, 40);
        alarms +=
            comparison.verdicts[NW_COMPARE_FASTER] + comparison.verdicts[NW_COMPARE_SLOWER] > 0;
        nw_comparison_free(&comparison);
        nw_results_free(&a);
        nw_results_free(&b);
    }
    cr_assert(alarms <= 5, "%d of 100", alarms);
}

Test(results_compare, one_slow_size_among_forty_is_found_and_only_that)
{
    state = 4;
    for (int i = 0; i < 20; i++) {
        struct nw_results a = {0}, b = {0};

        fill(&a, "node1", 40, 50, 0.02, -1, 1);
        fill(&b, "node1", 40, 50, 0.02, 17, 1.10);
        struct nw_comparison comparison = compare(&a, &b, 0.05, NULL);

        cr_assert_eq(comparison.verdicts[NW_COMPARE_SLOWER], 1);
        cr_assert_eq(comparison.rows[17].verdict, NW_COMPARE_SLOWER);
        cr_assert(comparison.rows[17].speed.low < 1 / 1.1 + 0.02 &&
                  comparison.rows[17].speed.high > 1 / 1.1 - 0.02);
        cr_assert_eq(comparison.verdicts[NW_COMPARE_SAME], 39);
        nw_comparison_free(&comparison);
        nw_results_free(&a);
        nw_results_free(&b);
    }
}

Test(results_compare, runs_that_differ_among_themselves_give_no_verdict)
{
    struct nw_results a = {0}, b = {0};

    state = 5;
    fill(&a, "node1", 1, 40, 0.01, 0, 1.0);
    fill(&a, "node1", 1, 40, 0.01, 0, 1.2);
    fill(&b, "node1", 1, 40, 0.01, 0, 1.1);
    fill(&b, "node1", 1, 40, 0.01, 0, 1.3);
    struct nw_comparison comparison = compare(&a, &b, 0.05, NULL);

    cr_assert_eq(comparison.row_count, 1);
    cr_assert(comparison.rows[0].runs_disagree);
    cr_assert_eq(comparison.rows[0].verdict, NW_COMPARE_UNCLEAR);
    nw_comparison_free(&comparison);
    nw_results_free(&a);
    nw_results_free(&b);
}

/* Logs have one figure a size: several of them are the samples. */
Test(results_compare, several_logs_without_samples_are_the_series)
{
    static const int order[] = {2, 0, 4, 1, 5, 3}; /* no drift */
    struct nw_results a = {0}, b = {0};

    for (int i = 0; i < 6; i++) {
        add_record(add_run(&a, "node1"), 1024)->time_ns =
            nw_stats_single(1e6 * (1 + 0.01 * order[i]));
        add_record(add_run(&b, "node1"), 1024)->time_ns =
            nw_stats_single(1.2e6 * (1 + 0.01 * order[i]));
    }
    struct nw_comparison comparison = compare(&a, &b, 0.05, NULL);

    cr_assert_eq(comparison.rows[0].a_samples, 6);
    cr_assert_eq(comparison.rows[0].verdict, NW_COMPARE_SLOWER);
    cr_assert_float_eq(comparison.rows[0].p, 2.0 / 924, 1e-12); /* of C(12, 6) ways */
    nw_comparison_free(&comparison);
    nw_results_free(&a);
    nw_results_free(&b);
}

Test(results_compare, what_differs_is_refused_with_its_name)
{
    static const struct {
        const char *reason, *across;
    } rows[] = {
        {"ranks: 8, 4", NULL},
        {"type: float, half", NULL},
        {"backend: nccl, mpi", "backend"},
        {"GPU: GPU, other", "gpu"},
        {"simulated: no, yes", NULL},
        {"lane: auto, ring", "lane"},
        {"hosts: 1, 2", "hosts"},
        {"in place: no, yes", "place"},
        {"the other side has no result of this case, collective and size", NULL},
    };

    state = 6;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results a = {0}, b = {0};

        fill(&a, "node1", 1, 20, 0.01, -1, 1);
        fill(&b, "node1", 1, 20, 0.01, -1, 1);
        struct nw_record *record = &b.runs[0].records[0];
        struct nw_context *context = &b.runs[0].context;

        record->rank_count = i == 0 ? 4 : 8;
        set(record->dtype, sizeof record->dtype, i == 1 ? "half" : "float");
        set(context->backend, sizeof context->backend, i == 2 ? "mpi" : "nccl");
        set(context->gpu_model, sizeof context->gpu_model, i == 3 ? "other" : "GPU");
        record->simulated = i == 4;
        set(record->lane, sizeof record->lane, i == 5 ? "ring" : "auto");
        record->host_count = i == 6 ? 2 : 1;
        record->in_place = i == 7;
        record->bytes = i == 8 ? 4096 : 1024;
        struct nw_comparison comparison = compare(&a, &b, 0.05, NULL);

        cr_expect_eq(comparison.row_count, 0, "row %zu was compared", i);
        cr_expect_eq(comparison.refusal_count, 2, "row %zu", i);
        cr_expect_str_eq(comparison.refusals[0].reason, rows[i].reason, "row %zu: %s", i,
                         comparison.refusals[0].reason);
        nw_comparison_free(&comparison);
        if (rows[i].across != NULL) {
            comparison = compare(&a, &b, 0.05, rows[i].across);
            cr_expect_eq(comparison.row_count, 1, "row %zu was not compared across %s", i,
                         rows[i].across);
            nw_comparison_free(&comparison);
        }
        nw_results_free(&a);
        nw_results_free(&b);
    }
}

/* ---- baselines ---------------------------------------------------------------------------------
 */

static struct nw_baseline baseline_of(int nodes, int rows, double noise)
{
    const struct nw_select select = {.cases = NULL};
    struct nw_results results = {0};
    struct nw_baseline baseline;

    for (int i = 0; i < nodes; i++) {
        char name[32];

        snprintf(name, sizeof name, "node%d", i);
        fill(&results, name, rows, 1, noise, -1, 1);
    }
    cr_assert_eq(nw_baseline_make(&results, &select, &baseline), NW_OK, "%s",
                 nw_last_error()->text);
    nw_results_free(&results);
    return baseline;
}

static size_t slower_than(const struct nw_baseline *baseline, int rows, double noise, int slow_row,
                          double factor, double threshold)
{
    const struct nw_baseline_plan plan = {.threshold = threshold};
    struct nw_baseline_report report;
    struct nw_results node = {0};

    fill(&node, "another", rows, 1, noise, slow_row, factor);
    cr_assert_eq(nw_baseline_hold(baseline, &node, &plan, &report), NW_OK);
    cr_assert_eq(report.compared_count, (size_t)rows);
    const size_t slower = report.slower_count;

    nw_baseline_report_free(&report);
    nw_results_free(&node);
    return slower;
}

Test(results_compare, one_more_node_of_the_kind_alarms_in_at_most_five_of_a_hundred)
{
    int alarms = 0;

    state = 7;
    for (int i = 0; i < 200; i++) {
        struct nw_baseline baseline = baseline_of(8, 40, 0.02);

        alarms += slower_than(&baseline, 40, 0.02, -1, 1, 0) > 0;
        nw_baseline_free(&baseline);
    }
    cr_assert(alarms <= 10, "%d of 200", alarms);
}

Test(results_compare, a_node_that_falls_out_is_found_and_a_bad_one_in_the_set_does_not_hide_it)
{
    state = 8;
    for (int bad = 0; bad < 2; bad++) {
        const struct nw_select select = {.cases = NULL};
        struct nw_results results = {0};
        struct nw_baseline baseline;

        for (int i = 0; i < 10; i++) {
            char name[32];

            snprintf(name, sizeof name, "node%d", i);
            fill(&results, name, 5, 1, 0.01, i == 0 && bad ? 2 : -1, 1.6);
        }
        cr_assert_eq(nw_baseline_make(&results, &select, &baseline), NW_OK);
        cr_assert_eq(baseline.row_count, 5);
        cr_assert_eq(baseline.rows[2].node_count, bad ? 9 : 10);
        cr_assert_eq(baseline.findings.count, bad ? 1 : 0);
        cr_assert_float_eq(baseline.rows[2].time_ns, 1e6, 2e4);
        cr_assert_eq(slower_than(&baseline, 5, 0.01, 2, 1.15, 0.05), 1);
        cr_assert_eq(slower_than(&baseline, 5, 0.01, -1, 1, 0.05), 0);
        nw_baseline_free(&baseline);
        nw_results_free(&results);
    }
}

Test(results_compare, a_baseline_survives_a_round_trip_exactly)
{
    char path[] = "/tmp/nw_base_XXXXXX";
    struct nw_baseline back;

    state = 9;
    struct nw_baseline baseline = baseline_of(5, 12, 0.03);

    close(mkstemp(path));
    cr_assert_eq(nw_baseline_save(&baseline, path), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_baseline_read(path, &back), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(back.row_count, 12);
    cr_assert_eq(back.node_count, 5);
    cr_assert_str_eq(back.nodes[4], "node4");
    cr_assert_str_eq(back.context.gpu_model, "GPU");
    for (size_t i = 0; i < 12; i++) {
        cr_assert(nw_record_same_identity(&baseline.rows[i].like, &back.rows[i].like));
        cr_assert_eq(baseline.rows[i].time_ns, back.rows[i].time_ns);
        cr_assert_eq(baseline.rows[i].spread, back.rows[i].spread);
        cr_assert_eq(baseline.rows[i].mean_ns, back.rows[i].mean_ns);
        cr_assert_eq(baseline.rows[i].deviation, back.rows[i].deviation);
        cr_assert_eq(baseline.rows[i].node_count, back.rows[i].node_count);
    }
    unlink(path);
    nw_baseline_free(&baseline);
    nw_baseline_free(&back);
}

/* ---- CSV ----------------------------------------------------------------------------------------
 */

Test(results_compare, csv_cells_are_quoted_and_formulas_guarded)
{
    static const struct {
        const char *text, *cell;
    } rows[] = {
        {"", ""},
        {"plain", "plain"},
        {"a,b", "\"a,b\""},
        {"a\"b", "\"a\"\"b\""},
        {"two\nlines", "\"two\nlines\""},
        {"=1+1", "\"'=1+1\""},
        {"+1+2", "\"'+1+2\""},
        {"-2+3", "\"'-2+3\""},
        {"@SUM(A1)", "\"'@SUM(A1)\""},
        {"\tx", "\"'\tx\""},
        {"\rx", "\"'\rx\""},
        {"-5", "-5"},
        {"+1e-3", "+1e-3"},
        {"-", "\"'-\""},
        {"=\"a\"", "\"'=\"\"a\"\"\""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_text text = {0};

        nw_csv_cell(&text, rows[i].text);
        nw_text_raw(&text, "", 1);
        cr_expect_str_eq(text.data, rows[i].cell);
        nw_text_free(&text);
    }
}
