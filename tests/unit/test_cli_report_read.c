#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/report_read.h"

#define RECORD                                                                                     \
    "{\"schema\":1,\"kind\":\"record\",\"case\":\"%s\",\"collective\":\"%s\",\"lane\":\"auto\","   \
    "\"dtype\":\"float\",\"op\":\"none\",\"ranks\":2,\"hosts\":2,\"bytes\":%d,\"in_place\":false," \
    "\"peer_a\":%d,\"peer_b\":%d,\"host_a\":\"a\",\"host_b\":\"b\",\"busbw_bytes_per_s\":%d,"      \
    "\"time_ns\":{\"median\":1000,\"low\":990,\"high\":1010,\"count\":9},\"simulated\":false,"     \
    "\"wrong_elements\":%d,\"source\":\"%0400d\"}\n"

/* What comes again and again, the slowest of many pairs, what went wrong: in a file that is read
 * line by line, the page's records are a few and none of these is missing. */
Test(cli_report_read, a_large_file_leaves_what_is_shown)
{
    enum { ALIKE = 30000, PAIRS = 40000, WRONG = 1234 };
    char path[] = "/tmp/nw-report-read-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    struct nw_results results = {0};
    size_t left_out = 0, alike = 0, wrong = 0, slow = 0;

    fputs("{\"schema\":1,\"kind\":\"context\",\"tool\":\"t\",\"tool_version\":\"0\",\"backend\":"
          "\"mpi\",\"ranks\":2,\"hosts\":2,\"simulated\":false}\n",
          file);
    for (int i = 0; i < ALIKE; i++)
        fprintf(file, RECORD, "coll", "all_reduce", 1024, 0, 1, 1000000 + i % 100, 0, 0);
    for (int i = 0; i < PAIRS; i++)
        fprintf(file, RECORD, "pairs", "sendrecv", 1024, i / 200, 200 + i % 200,
                i == PAIRS - 7 ? 5 : 2000000, i == WRONG ? 3 : 0, 0);
    fputs("{\"schema\":1,\"kind\":\"end\"}\n", file);
    cr_assert_eq(fclose(file), 0);
    const nw_rc rc = nw_report_read(path, &results, &left_out);

    unlink(path);
    cr_assert_eq(rc, NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(results.run_count, 1);
    cr_expect(results.runs[0].context.complete);
    for (size_t i = 0; i < results.runs[0].record_count; i++) {
        const struct nw_record *record = &results.runs[0].records[i];

        alike += strcmp(record->case_name, "coll") == 0;
        wrong += record->wrong_elements == 3;
        slow += record->busbw_bytes_per_s == 5;
    }
    cr_expect_eq(alike, 9);
    cr_expect_eq(wrong, 1);
    cr_expect_eq(slow, 1);
    cr_expect_lt(results.runs[0].record_count, 36000);
    cr_expect_eq(results.runs[0].record_count + left_out, ALIKE + PAIRS);
    nw_results_free(&results);
}
