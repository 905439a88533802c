#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/fleet.h"
#include "results/import.h"

#define LOGS NW_SOURCE_DIR "/tests/logs/"

static struct nw_fleet_report compare(const char *const *paths, size_t count)
{
    struct nw_results results = {0};
    struct nw_fleet_report report;

    for (size_t i = 0; i < count; i++)
        cr_assert_eq(nw_import_file(paths[i], &results), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_fleet_of_results(&results, &report), NW_OK, "%s", nw_last_error()->text);
    nw_results_free(&results);
    return report;
}

/* The failure list of the same measurements: "  - (node001, node003)". */
static size_t read_failures(char pairs[64][64], int *tests_out)
{
    FILE *file = fopen(LOGS "pairwise-failures.txt", "r");
    char line[256], a[32], b[32];
    size_t count = 0;

    cr_assert_not_null(file);
    *tests_out = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, " - (%31[^,], %31[^)])", a, b) == 2 && count < 64)
            snprintf(pairs[count++], 64, "%s %s", a, b);
        *tests_out += strstr(line, ".log: ") != NULL;
    }
    fclose(file);
    return count;
}

Test(results_fleet, the_810_rows_of_a_flaky_cluster_give_the_pairs_of_its_failure_list)
{
    static const char *const paths[] = {LOGS "pairwise-summary.csv"};
    struct nw_fleet_report report = compare(paths, 1);
    const struct nw_fleet_level *hosts = &report.levels[NW_FLEET_HOSTS];
    char pairs[64][64];
    int failed_tests, tests = 0;
    const size_t listed = read_failures(pairs, &failed_tests);
    size_t found = 0;

    cr_expect_eq(hosts->fleet.edge_count, 810);
    cr_expect_eq(hosts->fleet.end_count, 17);
    cr_expect_eq(hosts->fleet.class_count, 6);
    cr_expect_eq(listed, 18);
    cr_expect_eq(failed_tests, 34);
    for (size_t i = 0; i < hosts->scores.suspect_count; i++) {
        const struct nw_fleet_suspect *pair = &hosts->scores.suspects[i];
        char name[64];
        bool is_listed = false;

        if (pair->failed_count == 0)
            continue;
        found++;
        tests += (int)pair->failed_count;
        snprintf(name, sizeof name, "%s %s", hosts->ends[pair->a], hosts->ends[pair->b]);
        for (size_t k = 0; k < listed; k++)
            is_listed |= strcmp(pairs[k], name) == 0;
        cr_expect(is_listed, "%s is not in the list", name);
    }
    cr_expect_eq(found, listed, "%zu pairs without result", found);
    cr_expect_eq(tests, failed_tests, "%d tests without result", tests);
    nw_fleet_report_free(&report);
}

/* What the list does not say: one node has most of the bad pairs, the slow pairs of few GPUs are
 * single paths, those of eight GPUs are one half of all. */
Test(results_fleet, the_flaky_node_and_the_divided_class_of_the_810_rows_are_named)
{
    static const char *const paths[] = {LOGS "pairwise-summary.csv"};
    struct nw_fleet_report report = compare(paths, 1);
    const struct nw_fleet_level *hosts = &report.levels[NW_FLEET_HOSTS];
    static const size_t slow[] = {8, 17, 67, 8, 27, 0}; /* as a histogram shows */

    for (int i = 0; i < hosts->fleet.end_count; i++) {
        const bool flaky = strcmp(hosts->ends[i], "node003") == 0;

        cr_expect_eq(hosts->scores.ends[i].state, flaky ? NW_FLEET_FLAKY : NW_FLEET_GOOD,
                     "%s is %s", hosts->ends[i], nw_fleet_state_name(hosts->scores.ends[i].state));
    }
    for (int i = 0; i < 6; i++) {
        const struct nw_fleet_class *row = &hosts->scores.classes[i];

        cr_expect_eq(row->slow_count, slow[i], "%s: %zu slow", hosts->classes[i], row->slow_count);
        cr_expect_eq(row->divided, i == 2, "%s", hosts->classes[i]);
        if (i == 2)
            cr_expect(row->two_clusters && row->clusters.high_count == 64 &&
                      row->clusters.low_count == 67);
    }
    cr_expect_eq(report.suspect_count, 1);
    nw_fleet_report_free(&report);
}

Test(results_fleet, logs_of_two_nodes_are_compared_by_their_largest_size)
{
    /* Three nodes in pairs; the slow pair is the real log, the others have the rate of the healthy
     * ones of that cluster. */
    static const char *const nodes[][2] = {{"node001", "node002"},
                                           {"node002", "node004"},
                                           {"node001", "node005"},
                                           {"node002", "node005"},
                                           {"node004", "node005"}};
    struct nw_results results = {0};
    struct nw_fleet_report report;
    size_t bad = 0;

    cr_assert_eq(nw_import_file(LOGS "pair-G1-001-004-slow.log", &results), NW_OK);
    for (size_t i = 0; i < 5; i++) {
        char log[1024];
        const int length = snprintf(
            log, sizeof log,
            "# nccl-tests version 2.17.6\n# Collective test starting: sendrecv_perf\n"
            "# nThread 1 nGpus 1 minBytes 17179869184 maxBytes 17179869184 step: 2(factor) warmup "
            "iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
            "#  Rank  0 Group  0 Pid 1 on %s device  0 [0000:52:00] NVIDIA H100 80GB HBM3\n"
            "#  Rank  1 Group  0 Pid 2 on %s device  0 [0000:9d:00] NVIDIA H100 80GB HBM3\n#\n"
            "#       size         count      type   redop    root     time   algbw   busbw  "
            "#wrong\n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
            " 17179869184    2147483648    double     sum      -1   1272584   13.50   13.50       "
            "0\n# Out of bounds values : 0 OK\n",
            nodes[i][0], nodes[i][1]);

        cr_assert_eq(nw_import_data(log, (size_t)length, "made.log", &results), NW_OK, "%s",
                     nw_last_error()->text);
    }
    cr_assert_eq(nw_fleet_of_results(&results, &report), NW_OK, "%s", nw_last_error()->text);
    const struct nw_fleet_level *hosts = &report.levels[NW_FLEET_HOSTS];

    for (size_t i = 0; i < hosts->scores.suspect_count; i++) {
        const struct nw_fleet_suspect *pair = &hosts->scores.suspects[i];

        bad++;
        cr_expect_str_eq(hosts->ends[pair->a], "node001");
        cr_expect_str_eq(hosts->ends[pair->b], "node004");
        cr_expect_float_eq(pair->share, 0.97 / 13.5, 0.01);
    }
    cr_expect_eq(bad, 1);
    nw_fleet_report_free(&report);
    nw_results_free(&results);
}

static void add_pair(struct nw_run *run, const char *name, int a, int b, double rate)
{
    struct nw_record *record = nw_run_new_record(run);

    cr_assert_not_null(record);
    snprintf(record->case_name, sizeof record->case_name, "%s", name);
    snprintf(record->collective, sizeof record->collective, "sendrecv");
    snprintf(record->lane, sizeof record->lane, "host");
    record->rank_count = record->host_count = 2;
    record->bytes = 4 << 20;
    record->peer_a = a;
    record->peer_b = b;
    snprintf(record->host_a, sizeof record->host_a, "node%d", a);
    snprintf(record->host_b, sizeof record->host_b, "node%d", b);
    record->busbw_bytes_per_s = record->algbw_bytes_per_s = rate;
    record->time_ns = nw_stats_single((double)record->bytes / rate * 1e9);
}

Test(results_fleet, a_retest_clears_what_was_slow_only_in_company)
{
    struct nw_results results = {0};
    struct nw_fleet_report report;
    struct nw_run *run = nw_results_add_run(&results);

    for (int a = 0; a < 5; a++)
        for (int b = a + 1; b < 5; b++)
            add_pair(run, "pairs", a, b, (a == 0 && b == 1) || (a == 2 && b == 3) ? 4e9 : 10e9);
    add_pair(run, "retest", 0, 1, 9.9e9);
    add_pair(run, "retest", 2, 3, 4.1e9);
    cr_assert_eq(nw_fleet_of_results(&results, &report), NW_OK);
    const struct nw_fleet_scores *scores = &report.levels[NW_FLEET_HOSTS].scores;

    cr_expect_eq(report.retest_count, 2);
    cr_assert_eq(scores->suspect_count, 1);
    cr_expect(scores->suspects[0].a == 2 && scores->suspects[0].b == 3);
    cr_expect_eq(report.levels[NW_FLEET_RANKS].fleet.edge_count, 0, "one rank a host: said twice");
    nw_fleet_report_free(&report);
    nw_results_free(&results);
}

/* Its pairs in company stay slow in the file: they are not held against it. */
Test(results_fleet, a_host_that_is_as_fast_as_others_alone_is_no_suspect_and_none_of_its_pairs)
{
    for (int hosts = 4; hosts <= 10; hosts++)
        for (int cleared = 0; cleared < 2; cleared++) {
            struct nw_results results = {0};
            struct nw_fleet_report report;
            struct nw_run *run = nw_results_add_run(&results);

            for (int a = 0; a < hosts; a++)
                for (int b = a + 1; b < hosts; b++)
                    add_pair(run, "pairs", a, b, a == 0 ? 3.3e9 : 10e9);
            add_pair(run, "retest", 0, 1, cleared ? 9.9e9 : 3.4e9);
            cr_assert_eq(nw_fleet_of_results(&results, &report), NW_OK);
            cr_expect_eq(report.suspect_count, !cleared, "%d hosts", hosts);
            cr_expect_eq(report.leave_out_count, !cleared, "%d hosts", hosts);
            nw_fleet_report_free(&report);
            nw_results_free(&results);
        }
}

/* One pair by three lanes, sizes or types: nothing of it is like the other. */
Test(results_fleet, lanes_sizes_and_types_of_two_hosts_are_not_compared_with_each_other)
{
    static const struct {
        const char *lane, *dtype;
        uint64_t bytes;
        double rate;
    } rows[][3] = {
        {{"rdma", "float", 1 << 20, 40e9},
         {"tcp", "float", 1 << 20, 3e9},
         {"nccl", "float", 1 << 20, 41e9}},
        {{"nccl", "float", 1 << 20, 40e9},
         {"nccl", "float", 1 << 10, 3e9},
         {"nccl", "float", 1 << 24, 41e9}},
        {{"nccl", "float", 1 << 20, 40e9},
         {"nccl", "int8", 1 << 20, 3e9},
         {"nccl", "half", 1 << 20, 41e9}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_results results = {0};
        struct nw_fleet_report report;
        struct nw_run *run = nw_results_add_run(&results);

        for (int k = 0; k < 3; k++) {
            add_pair(run, "pairwise", 1, 2, rows[i][k].rate);
            struct nw_record *record = &run->records[run->record_count - 1];

            snprintf(record->lane, sizeof record->lane, "%s", rows[i][k].lane);
            snprintf(record->dtype, sizeof record->dtype, "%s", rows[i][k].dtype);
            record->bytes = rows[i][k].bytes;
        }
        cr_assert_eq(nw_fleet_of_results(&results, &report), NW_OK);
        cr_expect_eq(report.levels[NW_FLEET_HOSTS].fleet.class_count, 3);
        cr_expect_eq(report.levels[NW_FLEET_HOSTS].scores.suspect_count, 0);
        nw_fleet_report_free(&report);
        nw_results_free(&results);
    }
}

Test(results_fleet, results_without_pairs_are_refused)
{
    struct nw_results results = {0};
    struct nw_fleet_report report;

    cr_assert_eq(nw_import_file(LOGS "oci-h100-2node-above-nic.log", &results), NW_OK);
    nw_results_cut(&results, 0);
    cr_expect_eq(nw_fleet_of_results(&results, &report), NW_ENODEV);
    nw_results_free(&results);
}

Test(results_fleet, only_the_ending_perf_is_no_part_of_a_tests_name)
{
    static const char *const rows[][2] = {
        {"alltoall_perf", "alltoall"}, {"my_perf_test", "my_perf_test"}, {"_perf", "_perf"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_results results = {0};
        char csv[256];
        const int length =
            snprintf(csv, sizeof csv, "test,G,nodes,avg_bus_bw_GBs\n%s,1,\"a,b\",3\n", rows[i][0]);

        cr_assert_eq(nw_import_data(csv, (size_t)length, "x.csv", &results), NW_OK);
        cr_assert_eq(nw_results_record_count(&results), 1);
        cr_expect_str_eq(results.runs[0].records[0].collective, rows[i][1]);
        nw_results_free(&results);
    }
}

Test(results_fleet, an_average_of_0_is_a_test_without_result)
{
    static const char csv[] = "test,G,nodes,avg_bus_bw_GBs\nx_perf,1,\"a,b\",0.00\n";
    struct nw_results results = {0};

    cr_assert_eq(nw_import_data(csv, sizeof csv - 1, "x.csv", &results), NW_OK);
    cr_assert_eq(nw_results_record_count(&results), 1);
    cr_expect_eq(results.runs[0].records[0].rc, NW_EPEER);
    nw_results_free(&results);
}

Test(results_fleet, host_lists_as_slurm_writes_them_are_two_hosts_or_no_row)
{
    static const struct {
        const char *nodes;
        bool two;
    } rows[] = {
        {"node[001-002]", true},      {"\"node[001,003]\"", true}, {"\"a,b\"", true},
        {"node[009-010]", true},      {"node[001-003]", false},    {"node001", false},
        {"\"a,a\"", false},           {"node[1-", false},          {"node[2-1]", false},
        {"node[001-002]x", false},    {"node[a-b]", false},        {"", false},
        {"node[1-999999999]", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_results results = {0};
        char csv[256];
        const int length = snprintf(csv, sizeof csv, "test,G,nodes,avg_bus_bw_GBs\nx_perf,1,%s,3\n",
                                    rows[i].nodes);

        cr_assert_eq(nw_import_data(csv, (size_t)length, "x.csv", &results), NW_OK);
        cr_expect_eq(nw_results_record_count(&results), rows[i].two ? 1 : 0, "%s", rows[i].nodes);
        nw_results_free(&results);
    }
}

/* The names of two logs of one pair record what they show: slow with one GPU a host, well with
 * eight. */
Test(results_fleet, rows_of_a_pair_agree_with_what_its_logs_are_named)
{
    static const char *const paths[] = {LOGS "pairwise-summary.csv"};
    struct nw_fleet_report report = compare(paths, 1);
    const struct nw_fleet_level *hosts = &report.levels[NW_FLEET_HOSTS];
    int found = 0;

    for (size_t i = 0; i < hosts->fleet.edge_count; i++) {
        const struct nw_fleet_edge *edge = &hosts->edges[i];
        const char *class = hosts->classes[edge->class];

        if (strcmp(hosts->ends[edge->a], "node001") != 0 ||
            strcmp(hosts->ends[edge->b], "node004") != 0 || strstr(class, "4 GPUs") != NULL)
            continue;
        found++;
        cr_expect_eq(hosts->scores.pairs[i].state,
                     strstr(class, "1 GPU a host") != NULL ? NW_FLEET_SLOW : NW_FLEET_GOOD, "%s",
                     class);
    }
    cr_expect_eq(found, 4);
    nw_fleet_report_free(&report);
}

static bool has_finding(const struct nw_fleet_report *report, const char *code, const char *where)
{
    for (size_t i = 0; i < report->findings.count; i++)
        if (strcmp(report->findings.items[i].code, code) == 0 &&
            strcmp(report->findings.items[i].where, where) == 0)
            return true;
    return false;
}

/* Its pairs were well as long as it lived. */
Test(results_fleet, a_host_that_was_lost_in_mid_run_is_to_be_left_out)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_fleet_report report;

    cr_assert_not_null(run);
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++)
            if (b != 2 || a == 1)
                add_pair(run, "pairs", a, b, 1e9);
    cr_assert_eq(nw_findings_add(&run->context.findings, NW_FINDING_FAIL, NW_FLEET_HOST_FAILED,
                                 "node2", NULL, "killed"),
                 NW_OK);
    cr_assert_eq(nw_fleet_of_results(&results, &report), NW_OK);
    cr_expect_eq(report.suspect_count, 1);
    cr_expect_eq(report.findings.count, 1, "told once, in its own words");
    cr_expect(has_finding(&report, "host-failed", "node2"));
    for (int i = 0; i < 4; i++) {
        const struct nw_fleet_level *hosts = &report.levels[NW_FLEET_HOSTS];

        cr_expect_eq(hosts->scores.ends[i].state,
                     strcmp(hosts->ends[i], "node2") == 0 ? NW_FLEET_FAILED : NW_FLEET_GOOD);
    }
    nw_fleet_report_free(&report);
    nw_results_free(&results);
}

/* Both ways between NICs of two hosts: 48 GB/s on the rail, 30 off it; NICs of `slow` hosts and
 * names reach half. */
static void add_nics(struct nw_run *run, int slow_host, int slow_nic)
{
    enum { HOSTS = 4, NICS = 4 };
    unsigned seed = 11;

    for (int a = 0; a < HOSTS; a++)
        for (int b = 0; b < HOSTS; b++)
            for (int i = 0; i < NICS * NICS; i++) {
                const int nic_a = i / NICS, nic_b = i % NICS;
                const bool slow = (a == slow_host && (slow_nic < 0 || nic_a == slow_nic)) ||
                                  (b == slow_host && (slow_nic < 0 || nic_b == slow_nic));
                const double rate = (nic_a == nic_b ? 48e9 : 30e9) * (slow ? 0.5 : 1) *
                                    (1 + 0.01 * rand_r(&seed) / RAND_MAX);
                struct nw_record *record;

                if (a == b)
                    continue;
                add_pair(run, "nic", a, b, rate);
                record = &run->records[run->record_count - 1];
                snprintf(record->collective, sizeof record->collective, "write");
                snprintf(record->memory, sizeof record->memory, "host");
                snprintf(record->nic_a, sizeof record->nic_a, "mlx5_%d", nic_a);
                snprintf(record->nic_b, sizeof record->nic_b, "mlx5_%d", nic_b);
                if (i == 0) { /* a small message is no stream */
                    add_pair(run, "nic", a, b, 1e6);
                    record = &run->records[run->record_count - 1];
                    *record = run->records[run->record_count - 2];
                    record->bytes = 8;
                    record->algbw_bytes_per_s = 1e6 * (1 + a);
                }
            }
}

Test(results_fleet, a_slow_nic_is_named_and_a_host_whose_nics_are_all_slow_instead_of_them)
{
    static const struct {
        int host, nic;
        const char *code, *where; /* NULL: nothing */
    } rows[] = {{-1, 0, NULL, NULL},
                {2, 3, "nic-slow", "node2 mlx5_3"},
                {1, 0, "nic-slow", "node1 mlx5_0"},
                {2, -1, "host-slow", "node2"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_results results = {0};
        struct nw_run *run = nw_results_add_run(&results);
        struct nw_fleet_report report;

        cr_assert_not_null(run);
        add_nics(run, rows[i].host, rows[i].nic);
        cr_assert_eq(nw_fleet_of_results(&results, &report), NW_OK, "%s", nw_last_error()->text);
        cr_expect_eq(report.levels[NW_FLEET_NICS].fleet.end_count, 16);
        cr_expect_eq(report.findings.count, rows[i].code != NULL, "row %zu: %zu", i,
                     report.findings.count);
        if (rows[i].code != NULL)
            cr_expect(has_finding(&report, rows[i].code, rows[i].where), "row %zu: %s %s", i,
                      report.findings.items[0].code, report.findings.items[0].where);
        nw_fleet_report_free(&report);
        nw_results_free(&results);
    }
}
