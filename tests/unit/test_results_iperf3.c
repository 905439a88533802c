/* iperf3's JSON of the field and its right reading (as noted when it was collected, see
 * tests/logs/SOURCES.tsv), and what its other versions and options write. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/import.h"

#define START(more)                                                                                \
    "{\"start\":{\"version\":\"iperf 3.16\",\"system_info\":\"Linux a 6.1\","                      \
    "\"connecting_to\":{\"host\":\"b\"},\"test_start\":{\"protocol\":\"TCP\",\"num_streams\":"     \
    "2" more "}}"
#define SUM(bytes, bits) "{\"bytes\":" #bytes ",\"seconds\":2,\"bits_per_second\":" #bits "}"
#define INTERVAL(bits)   "{\"sum\":{\"bytes\":1000,\"seconds\":1,\"bits_per_second\":" #bits "}}"

static const struct row {
    const char *name, *text;
    size_t runs, records;
    double bits_per_s; /* of the first record */
    const char *from, *to;
    int streams;
    const char *codes; /* of all runs, in order */
} rows[] = {
    {"both ways",
     START(",\"bidir\":1") ",\"end\":{\"sum_sent\":" SUM(2010, 8040) ",\"sum_received\":" SUM(
         2000, 8000) ",\"sum_received_bidir_reverse\":" SUM(1000, 4000) "}}",
     1, 2, 8000, "a", "b", 2, ""},
    {"reverse", START(",\"reverse\":1") ",\"end\":{\"sum_received\":" SUM(2000, 8000) "}}", 1, 1,
     8000, "b", "a", 2, ""},
    {"two behind each other, text between",
     "warning: x\n" START("") ",\"end\":{\"sum_received\":" SUM(2000, 8000) "}}\ndone\n" START(
         "") ",\"end\":{\"sum_received\":" SUM(1, 4) "}}",
     2, 2, 8000, "a", "b", 2, ""},
    {"lines of a log that begin with brackets",
     "[SUM] 0.00-1.00 sec\n[2026-11-30] client starts\n" START(
         "") ",\"end\":{\"sum_received\":" SUM(2000, 8000) "}}\n[done]\n",
     1, 1, 8000, "a", "b", 2, ""},
    {"UDP before 3.8: one sum, of what was sent",
     "{\"start\":{\"version\":\"iperf "
     "3.6\",\"test_start\":{\"protocol\":\"UDP\",\"num_streams\":1}},"
     "\"end\":{\"sum\":{\"bytes\":2000,\"seconds\":2,\"bits_per_second\":8000,\"lost_percent\":25}}"
     "}",
     1, 1, 6000, "", "", 1, "udp-paced"},
    {"a stream of events",
     "{\"event\":\"start\",\"data\":{\"version\":\"iperf "
     "3.17\",\"test_start\":{\"num_streams\":1}}}\n"
     "{\"event\":\"interval\",\"data\":" INTERVAL(
         8000) "}\n"
               "{\"event\":\"end\",\"data\":{\"sum_received\":" SUM(2000, 8000) "}}\n",
     1, 1, 8000, "", "", 1, ""},
    {"a stream that was cut",
     "{\"event\":\"start\",\"data\":{\"version\":\"iperf "
     "3.17\",\"test_start\":{\"num_streams\":1}}}\n"
     "{\"event\":\"interval\",\"data\":" INTERVAL(
         8000) "}\n"
               "{\"event\":\"interval\",\"data\":" INTERVAL(8000) "}\n{\"event\":\"inter",
     1, 1, 8000, "", "", 1, "run-incomplete torn-line"},
    {"interrupted",
     START("") ",\"intervals\":[" INTERVAL(8000) "," INTERVAL(
         8000) "],\"end\":{},\"error\":"
               "\"interrupt - the client has terminated\"}",
     1, 1, 8000, "a", "b", 2, "run-failed"},
    {"nothing arrived", START("") ",\"end\":{\"sum_received\":" SUM(0, 0) "}}", 1, 0, NAN, NULL,
     NULL, 0, "no-result"},
    {"null for what is not known",
     START("") ",\"end\":{\"sum_received\":null,\"sum_sent\":" SUM(2000, 8000) "}}", 1, 1, 8000,
     "a", "b", 2, "sender-side"},
    {"a full core, lost packets, slow seconds",
     START("") ",\"intervals\":[" INTERVAL(1) "," INTERVAL(9) "," INTERVAL(9) "," INTERVAL(
         2) "," INTERVAL(9) "],\"end\":{\"sum_sent\":{\"bytes\":2000000,\"retransmits\":7},"
                            "\"sum_received\":" SUM(
                                2000, 8000) ",\"cpu_utilization_percent\":{\"host_total\":40,"
                                            "\"remote_total\":195}}}",
     1, 1, 8000, "a", "b", 2, "retransmits core-busy rate-unsteady"},
    {"two streams, two threads",
     START("") ",\"end\":{\"sum_received\":" SUM(
         2000, 8000) ",\"cpu_utilization_percent\":{\"host_total\":110}}}",
     1, 1, 8000, "a", "b", 2, ""},
};

static void join_codes(const struct nw_results *results, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < results->run_count; i++)
        for (size_t k = 0; k < results->runs[i].context.findings.count; k++)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", text[0] != '\0' ? " " : "",
                     results->runs[i].context.findings.items[k].code);
}

static void hold(const struct row *row, const struct nw_results *results)
{
    const struct nw_record *record = results->runs[0].records;
    char codes[512];

    join_codes(results, codes, sizeof codes);
    cr_expect_str_eq(codes, row->codes, "%s: findings \"%s\"", row->name, codes);
    cr_expect_eq(results->run_count, row->runs, "%s: %zu runs", row->name, results->run_count);
    cr_expect_eq(nw_results_record_count(results), row->records, "%s: records", row->name);
    if (record == NULL || row->records == 0)
        return;
    cr_expect_eq(record->algbw_bytes_per_s, row->bits_per_s / 8, "%s: %.17g bytes/s", row->name,
                 record->algbw_bytes_per_s);
    cr_expect_str_eq(record->host_a, row->from, "%s", row->name);
    cr_expect_str_eq(record->host_b, row->to, "%s", row->name);
    cr_expect_eq(record->stream_count, row->streams, "%s: %d streams", row->name,
                 record->stream_count);
    cr_expect_str_eq(record->case_name, "tcp");
}

Test(results_iperf3, reads_what_versions_and_options_write)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results = {0};

        cr_assert_eq(nw_import_data(rows[i].text, strlen(rows[i].text), "x", &results), NW_OK,
                     "%s: %s", rows[i].name, nw_last_error()->text);
        hold(&rows[i], &results);
        nw_results_free(&results);
    }
}

Test(results_iperf3, reads_every_result_of_the_field)
{
    static const struct row field[] = {
        {"iperf3-3.0.11-1g.json", NULL, 1, 1, 934268000.0, "node1", "192.0.2.2", 1, ""},
        {"iperf3-3.6-json-array.json", NULL, 2, 2, 1093068.7326430322, "", "192.0.2.1", 1,
         "sender-side rate-unsteady udp-paced"},
        {"iperf3-error-refused.json", NULL, 1, 0, NAN, NULL, NULL, 0, "run-failed"},
    };
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
        struct nw_results results = {0};
        char path[600];

        snprintf(path, sizeof path, NW_SOURCE_DIR "/tests/logs/%s", field[i].name);
        cr_assert_eq(nw_import_file(path, &results), NW_OK, "%s", nw_last_error()->text);
        hold(&field[i], &results);
        nw_results_free(&results);
    }
}

Test(results_iperf3, refuses_what_is_cut_or_too_much_with_line_and_reason)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {START(""), "x:1: is not whole JSON of iperf3"},
        {"noise\n" START("") ",\"end\":{\"bytes\":1e999}}", "x:2: is not whole JSON"},
        {"[  5] 0.00-1.00 sec 112 MBytes 941 Mbits/sec\n", "x:1: is iperf's text"},
        {"[  5] 0.00-1.00 sec 112 MBytes 941 Mbits/sec\n", "iperf3 -J"},
        {"noise\n[" START("") "}\n", "x:2: is not whole JSON"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct nw_results results = {0};

        cr_expect_eq(nw_import_data(bad[i].text, strlen(bad[i].text), "x", &results), NW_EUSAGE);
        cr_expect_not_null(strstr(nw_last_error()->text, bad[i].says), "\"%s\" has not \"%s\"",
                           nw_last_error()->text, bad[i].says);
        cr_expect_eq(results.run_count, 0);
    }
}
