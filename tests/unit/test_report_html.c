#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/html_series.h"
#include "report/html_text.h"
#include "report/svg.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define BAD         "\xEF\xBF\xBD"

static char *escaped(void (*put)(FILE *, const char *), const char *text)
{
    char *out = NULL;
    size_t length;
    FILE *stream = open_memstream(&out, &length);

    put(stream, text);
    fclose(stream);
    return out;
}

Test(report_html, text_of_anybody_is_inert)
{
    static const struct {
        const char *text, *inert;
    } rows[] = {
        {"plain 4 MiB · 374 GB/s", "plain 4 MiB · 374 GB/s"},
        {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
        {"a & b \"c\" 'd'", "a &amp; b &quot;c&quot; &#39;d&#39;"},
        {"one\ntwo\tthree\r\n", "one two three  "},
        {"\x01\x1B[31m\x7F", BAD BAD "[31m" BAD},
        {"node\xE2\x80\xAE"
         "1",
         "node" BAD "1"},                           /* right-to-left override */
        {"\xE2\x81\xA6x\xE2\x81\xA9", BAD "x" BAD}, /* isolates */
        {"\xE2\x80\xA8\xE2\x80\xA9", "  "},         /* line, paragraph separator */
        {"\xEF\xBB\xBFx", BAD "x"},                 /* byte order mark */
        {"\xC0\xBCscript", BAD BAD "script"},       /* "<" in two bytes, which is none */
        {"\xFF\xE4\xB8", BAD BAD BAD},              /* no UTF-8; cut */
        {"显存 显卡", "显存 显卡"},
        {"\xED\xA0\x80", BAD BAD BAD}, /* half of a pair of UTF-16 */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = escaped(nw_html_text, rows[i].text);
        char *attribute = escaped(nw_html_attribute, rows[i].text);

        cr_expect_str_eq(text, rows[i].inert, "%zu: %s", i, text);
        cr_expect_eq(attribute[0], '"');
        cr_expect_eq(strchr(attribute + 1, '"'), attribute + strlen(attribute) - 1, "%s",
                     attribute);
        free(text);
        free(attribute);
    }
}

Test(report_html, ten_megabytes_become_a_line)
{
    const size_t size = 10 << 20;
    char *long_text = malloc(size + 1), *text;

    for (size_t i = 0; i < size; i++)
        long_text[i] = "<\"\xE6\x98\xBE"[i % 5];
    long_text[size] = '\0';
    text = escaped(nw_html_text, long_text);
    cr_expect_lt(strlen(text), 8 * NW_HTML_TEXT_MAX);
    cr_expect_str_eq(text + strlen(text) - 3, "…");
    free(text);
    free(long_text);
}

/* ---- a whole page ------------------------------------------------------------------------------
 */

#define HOSTILE "</script><script>x()</script>\\\"'><img src=x onerror=x()>\\n\\u202e\\u2028&#x3c;"

static const char results_text[] =
    "{\"schema\":1,\"kind\":\"context\",\"tool\":\"" HOSTILE "\",\"tool_version\":\"" HOSTILE
    "\",\"backend\":\"mpi\",\"library\":\"" HOSTILE "\",\"gpu_model\":\"" HOSTILE
    "\",\"ranks\":2,\"hosts\":1,\"simulated\":false,\"host_list\":[{\"name\":\"" HOSTILE
    "\",\"ranks\":2,\"cpu\":\"" HOSTILE "\"}],\"environment\":{\"NCCL_" HOSTILE "\":\"" HOSTILE
    "\"}}\n"
    "{\"schema\":1,\"kind\":\"record\",\"case\":\"coll\",\"collective\":\"<b>\",\"lane\":\"<i>\","
    "\"dtype\":\"float\",\"op\":\"sum\",\"ranks\":2,\"hosts\":1,\"bytes\":1024,\"in_place\":false,"
    "\"busbw_bytes_per_s\":1e9,\"algbw_bytes_per_s\":1e9,\"time_ns\":{\"median\":1000,\"low\":900,"
    "\"high\":1100,\"count\":9},\"simulated\":false}\n"
    "{\"schema\":1,\"kind\":\"record\",\"case\":\"pairs\",\"collective\":\"sendrecv\",\"lane\":"
    "\"auto\",\"dtype\":\"float\",\"op\":\"none\",\"ranks\":2,\"hosts\":1,\"bytes\":1024,"
    "\"peer_a\":0,\"peer_b\":1,\"host_a\":\"" HOSTILE "\",\"host_b\":\"" HOSTILE
    "\",\"in_place\":false,\"busbw_bytes_per_s\":1e9,\"time_ns\":{\"median\":1000,\"count\":9},"
    "\"simulated\":false}\n"
    "{\"schema\":1,\"kind\":\"finding\",\"severity\":\"failure\",\"code\":\"x\",\"where\":"
    "\"" HOSTILE "\",\"text\":\"" HOSTILE "\",\"remedy\":\"" HOSTILE "\"}\n"
    "{\"schema\":1,\"kind\":\"end\"}\n";

static const char quote_text[] =
    "[quote]\nvendor = </script><img src=x onerror=x()>\nnote = \"><svg onload=x()>\n[gpu]\n"
    "model = <script>x()</script>\ncount = 8\n[price]\ncurrency = <b>\nper_node_hour = 3\n";

static char *page_of(const char *language)
{
    struct nw_results results = {0};
    struct nw_quote quote;
    struct nw_audit audit;
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_assert_eq(nw_results_read_data(results_text, strlen(results_text), "t", &results), NW_OK,
                 "%s", nw_last_error()->text);
    cr_assert_eq(nw_quote_parse(quote_text, strlen(quote_text), "v.ini", &quote), NW_OK, "%s",
                 nw_last_error()->text);
    cr_assert_eq(
        nw_audit_make(&(struct nw_audit_input){.quote = &quote, .results = &results}, &audit),
        NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_report_html(stream, &(struct nw_page){.version = "0<1",
                                                          .language = language,
                                                          .results = &results,
                                                          .audit = &audit,
                                                          .job_problem = "<script>x()"}),
                 NW_OK, "%s", nw_last_error()->text);
    fclose(stream);
    nw_audit_free(&audit);
    nw_results_free(&results);
    return text;
}

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;

    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        count++;
    return count;
}

/* Every tag and attribute of the page is one of those that its own code writes. */
Test(report_html, hostile_results_leave_no_markup)
{
    static const char *const languages[] = {"en", "zh"};

    for (size_t i = 0; i < COUNT(languages); i++) {
        char *page = page_of(languages[i]);

        cr_expect_eq(occurrences(page, "<script"), 1);
        cr_expect_eq(occurrences(page, "</script"), 1);
        cr_expect_eq(occurrences(page, "<style"), 1);
        cr_expect_eq(occurrences(page, "<img"), 0);
        cr_expect_eq(occurrences(page, "<svg onload"), 0);
        cr_expect_eq(occurrences(page, "<i>") + occurrences(page, "<b>x"), 0);
        cr_expect_eq(occurrences(page, "\xE2\x80\xAE") + occurrences(page, "\xE2\x80\xA8"), 0);
        cr_expect_gt(occurrences(page, "&lt;img src=x onerror=x()&gt;"), 10);
        cr_expect_gt(occurrences(page, "&lt;b&gt;"), 0);
        cr_expect_eq(occurrences(page, "<main "), 2);
        cr_expect_eq(occurrences(page, "default-src 'none'"), 1);
        cr_expect_eq(occurrences(page, "http://") + occurrences(page, "https://"), 0);
        cr_expect_eq(occurrences(page, "style=\""), 0);
        cr_expect_lt(strlen(page), 200000);
        free(page);
    }
}

Test(report_html, the_language_of_the_process_stays)
{
    const struct nw_language *before = nw_spoken_language();

    free(page_of("zh"));
    cr_expect_eq(nw_spoken_language(), before);
}

/* ---- series ------------------------------------------------------------------------------------
 */

static void add(struct nw_run *run, const char *lane, uint64_t bytes, bool in_place, double rate)
{
    struct nw_record *record = nw_run_new_record(run);

    snprintf(record->case_name, sizeof record->case_name, "coll");
    snprintf(record->collective, sizeof record->collective, "all_reduce");
    snprintf(record->lane, sizeof record->lane, "%s", lane);
    record->rank_count = 8;
    record->host_count = 1;
    record->bytes = bytes;
    record->in_place = in_place;
    record->busbw_bytes_per_s = rate;
    record->time_ns = nw_stats_single(1000);
    record->rc = NW_OK;
}

Test(report_html, a_size_is_the_middle_of_its_records_out_of_place)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_series_list list;

    add(run, "pcie", 64, false, 5e9);
    add(run, "nvlink", 64, true, 99e9);
    add(run, "nvlink", 64, false, 30e9);
    add(run, "nvlink", 64, false, 10e9);
    add(run, "nvlink", 64, false, 20e9);
    add(run, "nvlink", 32, true, 7e9);
    add(run, "nvlink", 16, false, NAN); /* nothing to draw */
    cr_assert_eq(nw_series_of(&results, &list), NW_OK);
    cr_assert_eq(list.count, 2);
    cr_expect_eq(list.chart_count, 1);
    cr_expect_str_eq(list.items[0].records[0]->lane, "nvlink");
    cr_assert_eq(list.items[0].count, 2);
    cr_expect_eq(list.items[0].records[0]->bytes, 32);
    cr_expect_eq(list.items[0].records[1]->busbw_bytes_per_s, 20e9);
    cr_expect_eq(list.items[1].count, 1);
    nw_series_free(&list);
    nw_results_free(&results);
}

/* ---- places on the axes ------------------------------------------------------------------------
 */

Test(report_html, values_stand_where_the_axes_say)
{
    const struct nw_chart chart = {.width = 120,
                                   .height = 110,
                                   .left = 10,
                                   .right = 10,
                                   .top = 5,
                                   .bottom = 5,
                                   .x = {.log = true, .low = 1, .high = 10000},
                                   .y = {.low = 0, .high = 50}};

    cr_expect_float_eq(nw_chart_x(&chart, 1), 10, 1e-9);
    cr_expect_float_eq(nw_chart_x(&chart, 100), 60, 1e-9);
    cr_expect_float_eq(nw_chart_x(&chart, 10000), 110, 1e-9);
    cr_expect_float_eq(nw_chart_y(&chart, 0), 105, 1e-9);
    cr_expect_float_eq(nw_chart_y(&chart, 25), 55, 1e-9);
    cr_expect_float_eq(nw_chart_y(&chart, 50), 5, 1e-9);
    cr_expect_lt(nw_chart_x(&chart, 1e30), 113); /* never far outside */
}
