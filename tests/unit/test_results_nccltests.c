/* Layouts and accidents of nccl-tests logs, made up one by one. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/nccltests.h"

#define OPTIONS                                                                                    \
    "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 "       \
    "iters: 20 agg iters: 1 validation: 1 graph: 0\n"
#define RANKS                                                                                      \
    "# Using devices\n"                                                                            \
    "#  Rank  0 Group  0 Pid     16 on node1 device  0 [0x19] NVIDIA H100 80GB HBM3\n"             \
    "#  Rank  1 Group  0 Pid     17 on node2 device  0 [0x3a] NVIDIA H100 80GB HBM3\n#\n"
#define HEADER                                                                                     \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "    \
    "time   algbw   busbw #wrong\n"                                                                \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "    \
    "(us)  (GB/s)  (GB/s)\n"
#define ROW1                                                                                       \
    "     1048576        262144     float     sum      -1    100.0   10.49   10.49      0    "     \
    "104.9   10.00   10.00      0\n"
#define ROW2                                                                                       \
    "     2097152        524288     float     sum      -1    200.0   10.49   10.49      0    "     \
    "209.7   10.00   10.00      0\n"
#define FOOTER "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 10.245\n#\n"
#define TITLE  "# Collective test starting: all_reduce_perf\n"
#define WHOLE  TITLE OPTIONS RANKS HEADER ROW1 ROW2 FOOTER

static void read_text(const char *text, const struct nw_import_options *options,
                      struct nw_results *results)
{
    *results = (struct nw_results){0};
    cr_assert_eq(nw_import_data_as(text, strlen(text), "log", options, results), NW_OK, "%s in\n%s",
                 nw_last_error()->text, text);
}

static const struct nw_finding *finding(const struct nw_results *results, const char *code)
{
    for (size_t i = 0; i < results->run_count; i++)
        for (size_t k = 0; k < results->runs[i].context.findings.count; k++)
            if (strcmp(results->runs[i].context.findings.items[k].code, code) == 0)
                return &results->runs[i].context.findings.items[k];
    return NULL;
}

static void expect_finding(const struct nw_results *results, const char *code, const char *where,
                           const char *says)
{
    const struct nw_finding *found = finding(results, code);

    cr_assert_not_null(found, "no finding %s", code);
    cr_expect_str_eq(found->where, where, "%s is at %s", code, found->where);
    cr_expect_not_null(strstr(found->text, says), "%s: %s", code, found->text);
}

/* The whole text with `prefix` before, and `ending` behind, every line. */
static char *dress(const char *text, const char *prefix, const char *ending)
{
    char *dressed = NULL;
    size_t length;
    FILE *stream = open_memstream(&dressed, &length);

    while (*text != '\0') {
        const char *end = strchr(text, '\n');

        fprintf(stream, "%s%.*s%s\n", prefix, (int)(end - text), text, ending);
        text = end + 1;
    }
    fclose(stream);
    return dressed;
}

static void expect_whole(const struct nw_results *results, const char *how)
{
    cr_assert_eq(results->run_count, 1, "%s: %zu runs", how, results->run_count);
    const struct nw_run *run = &results->runs[0];

    cr_assert_eq(run->record_count, 4, "%s: %zu records", how, run->record_count);
    cr_expect_eq(run->context.rank_count, 2, "%s: %d ranks", how, run->context.rank_count);
    cr_expect_eq(run->context.host_count, 2, "%s: %d hosts", how, run->context.host_count);
    cr_expect_str_eq(run->context.gpu_model, "NVIDIA H100 80GB HBM3", "%s: GPU \"%s\"", how,
                     run->context.gpu_model);
    cr_expect(run->context.complete, "%s: not complete", how);
    cr_expect_float_eq(run->context.printed_average_bytes_per_s, 10.245e9, 1, "%s", how);
    cr_expect_str_eq(run->records[3].collective, "all_reduce");
    cr_expect_eq(run->records[3].time_ns.median, 209700, "%s: %.17g", how,
                 run->records[3].time_ns.median);
    cr_expect(run->records[3].in_place);
    cr_expect_eq(run->records[2].busbw_bytes_per_s, 10490000000.0, "%s: %.17g", how,
                 run->records[2].busbw_bytes_per_s);
    cr_expect_eq(run->records[2].wrong_elements, 0);
}

Test(results_nccltests, launcher_prefixes_and_line_ends_do_not_matter)
{
    static const char *const prefixes[] = {
        "",
        "[1,0]<stdout>:",
        "[1,0]<stdout>: ",
        "Fri Jul 19 05:00:00 2024[1,0]<stdout>:",
        "[job-7@1,12]<stdout>: ",
        "0: ",
        "  0: ",
        "511: ",
        "[0] ",
        "[pod/nccl-launcher-x2b/nccl] ",
        "worker-0  | ",
        "2026-07-19T05:00:00.123Z ",
        "node1 nccl ",
        "\t",
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        for (int ending = 0; ending < 2; ending++) {
            char *text = dress(WHOLE, prefixes[i], ending ? " \r" : "");
            struct nw_results results;

            read_text(text, NULL, &results);
            expect_whole(&results, prefixes[i]);
            nw_results_free(&results);
            free(text);
        }
}

Test(results_nccltests, other_output_between_the_lines_does_not_matter)
{
    static const char *const noise[] = {
        "node1:12:34 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/CUMEM\n",
        "libfabric:1:core:core:fi_param_get_():279<info> variable perf_cntr=<not set>\n",
        "8 ranks 2 float\n",
        "   1048576   \n",
        "[1776961424.585035] [node2:3315 :0] parser.c:2033 UCX  WARN  unused\n",
        "$ # size matters\n",
        "\x01\x02\xFF\xFE binary\n",
        "\n",
        "+ '[' '!' -d x ']'\n",
    };

    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++) {
        struct nw_results results;
        char text[8000];

        snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s%s%s%s%s%s%s", noise[i], TITLE, noise[i],
                 OPTIONS, noise[i], RANKS, noise[i], HEADER, noise[i], ROW1, noise[i], ROW2,
                 noise[i], FOOTER);
        read_text(text, NULL, &results);
        expect_whole(&results, noise[i]);
        nw_results_free(&results);
    }
}

Test(results_nccltests, a_row_that_other_output_broke_is_named_by_its_line)
{
    static const char *const broken[] = {
        "     1048576        262144     float     sum      -1node1:1:2 [0] NCCL INFO x\n",
        "     1048576        262144     float     sum      -1    100.0   10.4node1 WARN  0  1 2 "
        "3\n",
        "     1048576        262144     float     sum      -1    100.0   10.49   10.49\n",
        "     1048576        262144     float     sum      -1    100.0   10.49   10.49      0    "
        "1\n",
    };

    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct nw_results results;
        char text[4000];

        snprintf(text, sizeof text, "%s%s%s%s", TITLE HEADER, broken[i], ROW2, FOOTER);
        read_text(text, NULL, &results);
        cr_expect_eq(results.runs[0].record_count, 2, "row %zu", i);
        expect_finding(&results, "unreadable-row", "log:4", "left out: 1");
        nw_results_free(&results);
    }
}

Test(results_nccltests, columns_that_newer_and_older_versions_add_are_passed_over)
{
    static const struct {
        const char *text;
        size_t records;
        double in_place_ns;
    } rows[] = {
        /* -I, since 2.19.5 */
        {"# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
         "busbw #wrong i_min i_max i_p99 i_cv%\n"
         "1048576 262144 float sum -1 100.0 10.49 10.49 0 99.0 101.0 101.0 1.2 104.9 10.00 10.00 0 "
         "99.0 101.0 101.0 1.2\n",
         2, 104900},
        /* -S */
        {"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong "
         "timestamp\n"
         "1048576 262144 float sum -1 100.0 10.49 10.49 0 104.9 10.00 10.00 0 2026-01-01 "
         "12:00:00\n",
         2, 104900},
        /* side work of the early tests */
        {"# size count type redop root time algbw busbw copybw #wrong time algbw busbw copybw "
         "#wrong\n"
         "1048576 262144 float sum -1 100.0 10.49 10.49 1.00 0 104.9 10.00 10.00 1.00 0\n",
         2, 104900},
        /* no header at all, with and without root; one place */
        {"1048576 262144 float sum -1 100.0 10.49 10.49 0 104.9 10.00 10.00 0\n"
         "2097152 524288 float sum -1 200.0 10.49 10.49 0 209.7 10.00 10.00 0\n",
         4, 104900},
        {"1048576 262144 float sum 100.0 10.49 10.49 0e+00 104.9 10.00 10.00 0e+00\n"
         "2097152 524288 float sum 200.0 10.49 10.49 0e+00 209.7 10.00 10.00 0e+00\n",
         4, 104900},
        {"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
         "1048576 262144 float sum -1 100.0 10.49 10.49 0\n",
         1, NAN},
        /* values that are none */
        {"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
         "1048576 262144 float sum -1 100.0 inf nan N/A 104.9 -nan inf N/A\n",
         2, 104900},
        {"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
         "1048576 262144 float sum -1 N/A N/A N/A N/A 104.9 10.00 10.00 0\n",
         1, 104900},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results;
        double in_place = NAN;

        read_text(rows[i].text, NULL, &results);
        cr_expect_eq(results.runs[0].record_count, rows[i].records, "row %zu: %zu records", i,
                     results.runs[0].record_count);
        for (size_t k = 0; k < results.runs[0].record_count; k++)
            if (results.runs[0].records[k].in_place && isnan(in_place))
                in_place = results.runs[0].records[k].time_ns.median;
        cr_expect(isnan(rows[i].in_place_ns) ? isnan(in_place) : in_place == rows[i].in_place_ns,
                  "row %zu: %.17g", i, in_place);
        cr_expect_null(finding(&results, "unreadable-row"), "row %zu", i);
        nw_results_free(&results);
    }
}

#define NEW_TABLE "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
#define OLD_TABLE "# size count type redop time algbw busbw error time algbw busbw error\n"

Test(results_nccltests, wrong_values_are_a_failure_and_rounding_is_not)
{
    static const struct {
        const char *text;
        int64_t wrong[2]; /* out of place, in place */
        const char *code; /* NULL: no finding about data */
    } rows[] = {
        {NEW_TABLE "1048576 262144 float sum -1 100.0 10.49 10.49 0 104.9 10.00 10.00 0\n",
         {0, 0},
         NULL},
        {NEW_TABLE "1048576 262144 float sum -1 100.0 10.49 10.49 1e+06 104.9 10.00 10.00 7\n",
         {1000000, 7},
         "wrong-data"},
        {NEW_TABLE "1048576 262144 float sum -1 100.0 10.49 10.49 0 104.9 10.00 10.00 N/A\n",
         {0, -1},
         NULL},
        {OLD_TABLE "1048576 262144 float sum 100.0 10.49 10.49 5e-07 104.9 10.00 10.00 0e+00\n",
         {0, 0},
         "rounding"},
        {OLD_TABLE "1048576 262144 float sum 100.0 10.49 10.49 1e-01 104.9 10.00 10.00 0e+00\n"
                   "# Out of bounds values : 1 FAILED\n",
         {1, 0},
         "wrong-data"},
        {OLD_TABLE "1048576 262144 half sum 100.0 10.49 10.49 1e-03 104.9 10.00 10.00 0e+00\n",
         {0, 0},
         "rounding"},
        {OLD_TABLE "1048576 262144 int32 sum 100.0 10.49 10.49 1e-03 104.9 10.00 10.00 0e+00\n",
         {1, 0},
         "wrong-data"},
        /* the footer counts what no row shows */
        {NEW_TABLE "1048576 262144 float sum -1 100.0 10.49 10.49 N/A 104.9 10.00 10.00 N/A\n"
                   "# Out of bounds values : 3 FAILED\n",
         {-1, -1},
         "wrong-data"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results;

        read_text(rows[i].text, NULL, &results);
        for (int place = 0; place < 2; place++)
            cr_expect_eq(results.runs[0].records[place].wrong_elements, rows[i].wrong[place],
                         "row %zu place %d: %lld", i, place,
                         (long long)results.runs[0].records[place].wrong_elements);
        if (rows[i].code != NULL)
            cr_expect_not_null(finding(&results, rows[i].code), "row %zu: no %s", i, rows[i].code);
        else
            cr_expect_null(finding(&results, "wrong-data"), "row %zu", i);
        nw_results_free(&results);
    }
}

Test(results_nccltests, the_collective_follows_from_the_columns_or_stays_unknown)
{
    static const struct {
        const char *text, *collective;
    } rows[] = {
        {NEW_TABLE "67108864 16777216 float sum -1 1000.0 67.11 117.44 0 1000.0 67.11 117.44 0\n",
         "all_reduce"},
        {NEW_TABLE "67108864 16777216 float none 0 1000.0 67.11 67.11 0 1000.0 67.11 67.11 0\n",
         "broadcast"},
        {NEW_TABLE "67108864 16777216 float sum 0 1000.0 67.11 67.11 0 1000.0 67.11 67.11 0\n",
         "reduce"},
        {NEW_TABLE "67108864 2097152 float none -1 1000.0 67.11 58.72 0 1000.0 67.11 58.72 0\n",
         "all_gather"},
        {NEW_TABLE "67108864 2097152 float none -1 1000.0 67.11 58.72 0 1000.0 67.11 58.72 N/A\n",
         "alltoall"},
        {NEW_TABLE "67108864 2097152 float none -1 1000.0 67.11 58.72 N/A 1000.0 67.11 58.72 N/A\n",
         "unknown"},
        {NEW_TABLE "67108864 2097152 float sum -1 1000.0 67.11 58.72 0 1000.0 67.11 58.72 0\n",
         "reduce_scatter"},
        {NEW_TABLE "67108864 2097152 float none 0 1000.0 67.11 58.72 0 1000.0 67.11 58.72 0\n",
         "unknown"},
        {NEW_TABLE "67108864 16777216 float sum -1 1000.0 67.11 67.11 0 1000.0 67.11 67.11 N/A\n",
         "sendrecv"},
        {"$ mpirun -np 8 ./build/gather_perf -b 8\n" NEW_TABLE
         "67108864 2097152 float none 0 1000.0 67.11 58.72 0 1000.0 67.11 58.72 0\n",
         "gather"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results;
        const struct nw_import_options options = {.collective = "gather"};

        read_text(rows[i].text, NULL, &results);
        cr_expect_str_eq(results.runs[0].records[0].collective, rows[i].collective,
                         "row %zu: \"%s\"", i, results.runs[0].records[0].collective);
        cr_expect_eq(finding(&results, "collective-unknown") != NULL,
                     strcmp(rows[i].collective, "unknown") == 0, "row %zu", i);
        nw_results_free(&results);
        if (strcmp(rows[i].collective, "unknown") != 0)
            continue;
        read_text(rows[i].text, &options, &results);
        cr_expect_str_eq(results.runs[0].records[0].collective, "gather");
        nw_results_free(&results);
    }
}

Test(results_nccltests, a_log_that_names_its_collective_is_right_against_the_option)
{
    const struct nw_import_options options = {.collective = "all_gather"};
    struct nw_results results;

    read_text(WHOLE, &options, &results);
    expect_whole(&results, "conflict");
    expect_finding(&results, "collective-conflict", "log:1", "all_reduce, not all_gather");
    nw_results_free(&results);
}

Test(results_nccltests, nccls_own_lines_give_version_network_ranks_and_lane)
{
    static const struct {
        const char *lines, *library, *network, *lane, *variable;
        int ranks, hosts;
        bool sockets;
    } rows[] = {
        {"NCCL version 2.20.3+cuda12.2\n", "NCCL 2.20.3+cuda12.2", "", "auto", NULL, 0, 0, false},
        {"n:1:1 [0] NCCL INFO NCCL version 2.23.4+cuda11.7\n", "NCCL 2.23.4+cuda11.7", "", "auto",
         NULL, 0, 0, false},
        {"n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB eth0\n", "", "IB",
         "auto", NULL, 0, 0, false},
        {"n:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
         "n:1:1 [0] NCCL INFO Using network Socket\n",
         "", "Socket", "auto", NULL, 0, 0, true},
        {"n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\n"
         "n:1:1 [0] NCCL INFO Using network AWS Libfabric\n",
         "", "AWS Libfabric", "auto", NULL, 0, 0, false},
        {"n:1:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 24 cudaDev 0 - Init START\n"
         "n:1:1 [0] NCCL INFO comm 0x5 rank 2 nRanks 24 nNodes 3 localRanks 8 localRank 2\n",
         "", "", "auto", NULL, 24, 3, false},
        {"n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n", "", "", "ring", "Ring", 0, 0,
         false},
        {"+ export NCCL_ALGO=Tree\n", "", "", "tree", "Tree", 0, 0, false},
        {"+ export 'NCCL_ALGO=NVLS'\n", "", "", "nvls", "NVLS", 0, 0, false},
        {"$ mpirun -x NCCL_DEBUG=INFO -x NCCL_ALGO=Ring,Tree ./x\n", "", "", "auto", "Ring,Tree", 0,
         0, false},
    };
    static const char table[] =
        NEW_TABLE "1048576 262144 float sum -1 100.0 10.49 10.49 N/A 100.0 10.49 10.49 N/A\n";

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results;
        char text[2000];

        snprintf(text, sizeof text, "%s%s%s", OPTIONS, rows[i].lines, table);
        read_text(text, NULL, &results);
        const struct nw_context *context = &results.runs[0].context;

        cr_expect_str_eq(context->library, rows[i].library, "row %zu: \"%s\"", i, context->library);
        cr_expect_str_eq(context->network, rows[i].network, "row %zu: \"%s\"", i, context->network);
        cr_expect_str_eq(results.runs[0].records[0].lane, rows[i].lane, "row %zu", i);
        cr_expect_eq(context->rank_count, rows[i].ranks, "row %zu: %d", i, context->rank_count);
        cr_expect_eq(context->host_count, rows[i].hosts, "row %zu", i);
        cr_expect_eq(finding(&results, "sockets") != NULL, rows[i].sockets, "row %zu", i);
        const json_t *variable = json_object_get(context->environment, "NCCL_ALGO");

        cr_expect_eq(variable == NULL, rows[i].variable == NULL, "row %zu", i);
        if (variable != NULL && rows[i].variable != NULL)
            cr_expect_str_eq(json_string_value(variable), rows[i].variable);
        nw_results_free(&results);
    }
}

Test(results_nccltests, incomplete_lists_and_runs_are_said)
{
    struct nw_results results;

    read_text(TITLE OPTIONS
              "# Using devices\n"
              "#  Rank  0 Group  0 Pid 1 on a device  0 [0x19] GPU X\n"
              "...\n"
              "#  Rank 15 Group  0 Pid 1 on b device  7 [0x19] GPU Y\n#\n" HEADER ROW1,
              NULL, &results);
    cr_expect_eq(results.runs[0].context.rank_count, 16);
    cr_expect_eq(results.runs[0].context.host_count, 0);
    expect_finding(&results, "ranks-elided", "log:4", "at least 2");
    expect_finding(&results, "mixed-gpus", "log:4", "different GPUs");
    expect_finding(&results, "run-incomplete", "log:10", "Avg bus bandwidth");
    expect_finding(&results, "rows-missing", "log:10", "1 of 2 sizes from 1 MiB to 2 MiB");
    nw_results_free(&results);

    read_text(TITLE OPTIONS
              "# Using devices\n"
              "#  Rank  0 Group  0 Pid 1 on a device  0 [0x19] GPU X\n"
              "#  Rank  1 Group  0 Pid 1 on a device  1 [0x19] GPU X\n"
              "#  Rank  2 Group  1 Pid 1 on b device  0 [0x19] GPU X\n"
              "#  Rank  3 Group  1 Pid 1 on b device  1 [0x19] GPU X\n#\n" HEADER ROW1 ROW2 FOOTER,
              NULL, &results);
    cr_expect_eq(results.runs[0].context.rank_count, 2);
    expect_finding(&results, "split-groups", "log:4", "2 groups of about 2 ranks");
    nw_results_free(&results);

    read_text(TITLE OPTIONS RANKS HEADER
              "node1:7:9 [1] transport.cc:41 NCCL WARN No transport found for rank 1\n"
              "node1: Test NCCL failure all_reduce.cu:44 'remote process exited'\n"
              " .. node1 pid 7: Test failure common.cu:377\n",
              NULL, &results);
    cr_expect_eq(results.runs[0].record_count, 0);
    expect_finding(&results, "run-failed", "log:10", "remote process exited");
    expect_finding(&results, "nccl-warning", "log:9", "No transport found");
    expect_finding(&results, "no-result", "log:1", "no row follows");
    nw_results_free(&results);
}

Test(results_nccltests, hosts_keep_their_own_gpus)
{
    struct nw_results results;

    read_text(TITLE OPTIONS
              "# Using devices\n"
              "#  Rank  0 Group  0 Pid 1 on a device  0 [0x19] GPU X\n"
              "#  Rank  1 Group  0 Pid 1 on a device  1 [0x19] GPU X\n"
              "#  Rank  2 Group  0 Pid 1 on b device  0 [0x19] GPU Y\n"
              "#  Rank  3 Group  0 Pid 1 on c device  0 [0x19] GPU X\n"
              "#  Rank  4 Group  0 Pid 1 on c device  1 [0x19] GPU Y\n#\n" HEADER ROW1,
              NULL, &results);
    const struct nw_context *context = &results.runs[0].context;

    cr_assert_eq(context->host_count, 3);
    cr_expect_str_eq(context->gpu_model, "");
    cr_expect_str_eq(context->hosts[0].name, "a");
    cr_expect_eq(context->hosts[0].gpu_count, 2);
    cr_expect_str_eq(context->hosts[0].gpu_model, "GPU X");
    cr_expect_str_eq(context->hosts[1].gpu_model, "GPU Y");
    cr_expect_str_eq(context->hosts[2].gpu_model, "");
    nw_results_free(&results);
}

Test(results_nccltests, every_title_option_line_or_table_begins_a_run)
{
    static const struct {
        const char *text;
        size_t runs, records;
    } rows[] = {
        {WHOLE WHOLE, 2, 8},
        {OPTIONS RANKS HEADER ROW1 OPTIONS RANKS HEADER ROW1, 2, 4},
        {HEADER ROW1 HEADER ROW2, 2, 4},
        {HEADER ROW1 FOOTER ROW2 FOOTER, 2, 4},
        {OPTIONS OPTIONS OPTIONS, 3, 0},
        {OPTIONS "# Using devices\n" OPTIONS "# Using devices\n", 2, 0},
        {RANKS HEADER ROW1 RANKS HEADER ROW1, 2, 4},
        {"# nccl-tests version 2.17.6 nccl-headers=1\n" WHOLE
         "# nccl-tests version 2.17.6 nccl-headers=1\n# nccl-tests version 2.17.6 x\n" WHOLE,
         3, 8},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results;

        read_text(rows[i].text, NULL, &results);
        cr_expect_eq(results.run_count, rows[i].runs, "row %zu: %zu runs", i, results.run_count);
        cr_expect_eq(nw_results_record_count(&results), rows[i].records, "row %zu: %zu records", i,
                     nw_results_record_count(&results));
        nw_results_free(&results);
    }
}

Test(results_nccltests, a_printed_number_keeps_its_value_and_its_rounding)
{
    static const struct {
        const char *text;
        int scale;
        double value, half_unit;
        bool is_number;
    } rows[] = {
        {"12.87", 3, 12870, 5, true},
        {"193.50", 9, 193.5e9, 5e6, true},
        {"0.01", 9, 1e7, 5e6, true},
        {"81958", 3, 81958000, 500, true},
        {"1.0e+07", 3, 1e10, 5e8, true},
        {"5e-07", 0, 5e-7, 5e-8, true},
        {"0", 0, 0, 0.5, true},
        {"26627199.60", 9, 26627199.60e9, 5e6, true},
        {"123456789012345678901", 0, 123456789012345678901.0, 0.5, true},
        {"N/A", 0, NAN, NAN, true},
        {"inf", 0, NAN, NAN, true},
        {"", 0, 0, 0, false},
        {".", 0, 0, 0, false},
        {"1.2.3", 0, 0, 0, false},
        {"0x10", 0, 0, 0, false},
        {"-5", 0, 0, 0, false},
        {"1e400", 0, 0, 0, false},
        {"12us", 0, 0, 0, false},
        {"infinity", 0, 0, 0, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct nw_slice word = {rows[i].text, strlen(rows[i].text)};
        struct nw_printed number = {-1, -1};

        cr_expect_eq(nw_imp_number(word, rows[i].scale, &number), rows[i].is_number, "\"%s\"",
                     rows[i].text);
        if (!rows[i].is_number)
            continue;
        cr_expect(isnan(rows[i].value) ? isnan(number.value) : number.value == rows[i].value,
                  "\"%s\": %.17g", rows[i].text, number.value);
        cr_expect(isnan(rows[i].half_unit) ||
                      fabs(number.half_unit - rows[i].half_unit) <= 1e-9 * rows[i].half_unit,
                  "\"%s\": ± %.17g", rows[i].text, number.half_unit);
    }
}

Test(results_nccltests, small_decimals_are_read_like_strtod)
{
    char text[32];

    for (int i = 0; i < 200000; i++) {
        struct nw_printed number;

        snprintf(text, sizeof text, "%d.%02d", i / 7, i % 100);
        cr_assert(nw_imp_number((struct nw_slice){text, strlen(text)}, 0, &number));
        cr_assert_eq(number.value, strtod(text, NULL), "%s", text);
    }
}

Test(results_nccltests, what_is_no_log_is_refused_with_the_reason)
{
    static const struct {
        const char *data;
        size_t length;
        const char *says;
    } rows[] = {
        {"", 0, "is empty"},
        {"hello\nworld\n", 12, "looked in its 3 lines"},
        {"\x7f"
         "ELF\0\0\0\0",
         8, "is a binary file"},
        {"\x1f\x8b\x08xxxx", 7, "compressed (gzip)"},
        {"\xff\xfe#\0 \0", 6, "UTF-16"},
        {"{\"schema\":1,\"kind\":\"context\"}\n", 30, "is a results file already"},
        {"the columns algbw and busbw\n", 28, "looked in its 2 lines"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results = {0};

        cr_expect_eq(nw_import_data(rows[i].data, rows[i].length, "log", &results), NW_EUSAGE,
                     "row %zu", i);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu: %s", i,
                           nw_last_error()->text);
        nw_results_free(&results);
    }
    struct nw_results results = {0};

    cr_expect_neq(nw_import_file("/nonexistent/x.log", &results), NW_OK);
    cr_expect_neq(nw_import_file("/tmp", &results), NW_OK);
    cr_expect_eq(results.run_count, 0);
}
