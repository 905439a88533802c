#include <criterion/criterion.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/record_rows.h"
#include "results/results.h"

/* --- random records, extremes included --- */

static uint64_t state = 20261130;

static uint64_t random_u64(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Values as machines make them: what the fast reader is for. */
static bool plain;

static double random_real(void)
{
    if (plain)
        return random_u64() % 4 == 0 ? NAN
                                     : (double)random_u64() / (double)(1 + random_u64() % 999999);
    static const double extremes[] = {
        0,    DBL_MIN,  DBL_TRUE_MIN, DBL_MAX, 0.1,    1.0 / 3,        1e17, 9007199254740993.0,
        1e22, 4.9e-324, 12345.678,    1e300,   123e15, 999999999999.0, 1e-7, 2.5};
    const uint64_t pick = random_u64();

    if (pick % 4 == 0)
        return NAN;
    if (pick % 4 == 1)
        return extremes[random_u64() % (sizeof extremes / sizeof extremes[0])];
    if (pick % 4 == 2)
        return (double)(random_u64() % 1000000000000u) / 1000.0;
    union {
        uint64_t bits;
        double value;
    } any = {.bits = random_u64() >> 1}; /* not negative */

    return isfinite(any.value) ? any.value : 1.5;
}

static double random_share(void)
{
    return random_u64() % 3 == 0 ? NAN : (double)(random_u64() % 1001) / 1000.0;
}

static int random_int(int unknown)
{
    static const int extremes[] = {1, 2, INT_MAX, 1000000};

    return random_u64() % 3 == 0 ? unknown : extremes[random_u64() % 4];
}

static const char *random_text(void)
{
    static const char *const texts[] = {
        "",    "node1",        "quote \" and \\ back",   "tab\t", "new\nline",     "节点一",
        "é ü", "\x01\x1f\x7f", "emoji \xF0\x9F\x98\x80", "/a/b",  "</script> & '", "a: {}[],"};

    if (plain)
        return random_u64() % 2 ? "node1" : "节点一";
    return texts[random_u64() % (sizeof texts / sizeof texts[0])];
}

static void set_text(char *field, size_t size, const char *text)
{
    snprintf(field, size, "%s", text);
}

static void add_random_findings(struct nw_findings *list)
{
    for (uint64_t i = random_u64() % 3; i > 0; i--)
        cr_assert_eq(nw_findings_add(list, (nw_severity)(random_u64() % 3), "some-code",
                                     random_text(), random_u64() % 2 ? random_text() : NULL, "%s",
                                     random_text()),
                     NW_OK);
}

static void fill_time(struct nw_record *record)
{
    struct nw_stats *time = &record->time_ns;

    *time = nw_stats_single(NAN);
    if (random_u64() % 5 == 0)
        return;
    *time = (struct nw_stats){1 + random_u64() % 20, random_real(), random_real(), random_real(),
                              random_share(),        random_real(), random_real(), random_real(),
                              random_real(),         random_real(), random_real(), random_real(),
                              random_real(),         random_real()};
    if (!isfinite(time->median))
        time->median = 17.25;
    if (random_u64() % 2 == 0)
        return;
    record->samples_ns = calloc(time->count, sizeof *record->samples_ns);
    for (size_t i = 0; i < time->count; i++) {
        const double value = random_real();

        record->samples_ns[i] = isfinite(value) ? value : 0.3;
    }
}

static void fill_random(struct nw_record *record)
{
    nw_record_init(record);
    set_text(record->case_name, sizeof record->case_name, "coll");
    set_text(record->collective, sizeof record->collective, random_text());
    set_text(record->lane, sizeof record->lane, "host");
    set_text(record->dtype, sizeof record->dtype, "float");
    set_text(record->op, sizeof record->op, "sum");
    set_text(record->host_a, sizeof record->host_a, random_text());
    set_text(record->host_b, sizeof record->host_b, random_text());
    set_text(record->slowest_host, sizeof record->slowest_host, random_text());
    set_text(record->source, sizeof record->source, random_text());
    record->root = random_int(-1);
    record->rank_count = random_int(0);
    record->host_count = random_int(0);
    record->bytes = random_u64() % 3 == 0 ? INT64_MAX : random_u64() >> (1 + random_u64() % 60);
    record->count = random_u64() >> 1;
    if (plain)
        record->bytes = record->count = random_u64() >> 10;
    record->in_place = random_u64() % 2;
    record->peer_a = random_int(-1);
    record->peer_b = random_int(-1);
    record->piece_bytes = random_u64() % 2 ? 0 : 4194304;
    record->calls_per_sample = random_u64() % 3 == 0 ? UINT32_MAX : (uint32_t)(random_u64() % 100);
    record->stop = (nw_stop)(random_u64() % 4);
    record->skew_ns = random_real();
    record->slowest_rank = random_int(-1);
    record->slowest_share = random_share();
    record->algbw_bytes_per_s = random_real();
    record->busbw_bytes_per_s = random_real();
    record->ceiling_bytes_per_s = random_real();
    record->wrong_elements = random_u64() % 2 ? -1 : (int64_t)(random_u64() >> (plain ? 9 : 1));
    record->rc = (nw_rc)(random_u64() % NW_RC_COUNT);
    record->simulated = random_u64() % 2;
    fill_time(record);
    if (!plain)
        add_random_findings(&record->warnings);
}

static void assert_real(const char *name, double a, double b)
{
    cr_assert(isnan(a) ? isnan(b) : a == b, "%s: %.17g became %.17g", name, a, b);
}

static void assert_same_findings(const struct nw_findings *a, const struct nw_findings *b)
{
    cr_assert_eq(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        cr_assert_eq(a->items[i].severity, b->items[i].severity);
        cr_assert_str_eq(a->items[i].code, b->items[i].code);
        cr_assert_str_eq(a->items[i].where, b->items[i].where);
        cr_assert_str_eq(a->items[i].text, b->items[i].text);
        cr_assert_eq(a->items[i].remedy == NULL, b->items[i].remedy == NULL);
        if (a->items[i].remedy != NULL)
            cr_assert_str_eq(a->items[i].remedy, b->items[i].remedy);
    }
}

static void assert_same_time(const struct nw_record *a, const struct nw_record *b)
{
    const struct nw_stats *x = &a->time_ns, *y = &b->time_ns;
    const double left[] = {x->median, x->low, x->high, x->level, x->min,    x->p25, x->p75,
                           x->p95,    x->p99, x->max,  x->mean,  x->stddev, x->mad};
    const double right[] = {y->median, y->low, y->high, y->level, y->min,    y->p25, y->p75,
                            y->p95,    y->p99, y->max,  y->mean,  y->stddev, y->mad};

    cr_assert_eq(x->count, y->count);
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        assert_real("time_ns", left[i], right[i]);
    cr_assert_eq(a->samples_ns == NULL, b->samples_ns == NULL);
    for (size_t i = 0; a->samples_ns != NULL && i < x->count; i++)
        assert_real("samples_ns", a->samples_ns[i], b->samples_ns[i]);
}

static void assert_same(const struct nw_record *a, const struct nw_record *b)
{
    cr_assert(nw_record_same_identity(a, b), "identity of %s", a->collective);
    assert_same_time(a, b);
    cr_assert_eq(a->count, b->count);
    cr_assert_eq(a->calls_per_sample, b->calls_per_sample);
    cr_assert_eq(a->stop, b->stop);
    cr_assert_eq(a->slowest_rank, b->slowest_rank);
    cr_assert_eq(a->wrong_elements, b->wrong_elements);
    cr_assert_eq(a->rc, b->rc);
    cr_assert_eq(a->simulated, b->simulated);
    cr_assert_str_eq(a->host_a, b->host_a);
    cr_assert_str_eq(a->host_b, b->host_b);
    cr_assert_str_eq(a->slowest_host, b->slowest_host);
    cr_assert_str_eq(a->source, b->source);
    assert_real("skew", a->skew_ns, b->skew_ns);
    assert_real("share", a->slowest_share, b->slowest_share);
    assert_real("algbw", a->algbw_bytes_per_s, b->algbw_bytes_per_s);
    assert_real("busbw", a->busbw_bytes_per_s, b->busbw_bytes_per_s);
    assert_real("ceiling", a->ceiling_bytes_per_s, b->ceiling_bytes_per_s);
    assert_same_findings(&a->warnings, &b->warnings);
}

Test(results_jsonl, any_record_survives_a_round_trip_exactly)
{
    for (int i = 0; i < 3000; i++) {
        struct nw_record record, back;
        json_t *json;

        fill_random(&record);
        cr_assert_eq(nw_record_to_json(&record, &json), NW_OK, "%s", nw_last_error()->text);
        cr_assert_eq(nw_record_from_json(json, "test:1", &back), NW_OK, "%s",
                     nw_last_error()->text);
        assert_same(&record, &back);
        json_decref(json);
        nw_record_free(&record);
        nw_record_free(&back);
    }
}

/* The line that a record makes, newline behind it; the caller frees. */
static struct nw_text line_of(const struct nw_record *record)
{
    struct nw_text text = {0};

    nw_record_write(&text, record);
    nw_text_put(&text, "\n");
    cr_assert_eq(nw_text_check(&text), NW_OK);
    return text;
}

static void assert_same_text(const struct nw_text *a, const struct nw_text *b)
{
    cr_assert(a->length == b->length && memcmp(a->data, b->data, a->length) == 0, "%.*s%.*s",
              (int)a->length, a->data, (int)b->length, b->data);
}

/* What the fast reader takes is what jansson takes, also where a character of the line is another.
 */
static bool scans_as_jansson_reads(const struct nw_text *line)
{
    struct nw_record fast, slow;

    if (!nw_record_scan(line->data, line->length - 1, false, &fast))
        return false;
    json_t *json = json_loadb(line->data, line->length - 1, JSON_REJECT_DUPLICATES, NULL);

    cr_assert_not_null(json, "taken though it is no JSON: %.*s", (int)line->length, line->data);
    cr_assert_eq(nw_record_from_json(json, "test:1", &slow), NW_OK, "taken: %s: %.*s",
                 nw_last_error()->text, (int)line->length, line->data);
    struct nw_text a = line_of(&fast), b = line_of(&slow);

    assert_same_text(&a, &b);
    json_decref(json);
    nw_text_free(&a);
    nw_text_free(&b);
    nw_record_free(&fast);
    nw_record_free(&slow);
    return true;
}

Test(results_jsonl, the_fast_reader_takes_what_jansson_takes_to_the_last_bit)
{
    static const char changes[] = "0123456789.eE+-,:\"{}[] \\tnx\x01\xC3";
    size_t taken = 0, taken_changed = 0;

    for (int i = 0; i < 3000; i++) {
        struct nw_record record;

        plain = i % 4 != 0;
        fill_random(&record);
        struct nw_text line = line_of(&record);

        taken += scans_as_jansson_reads(&line);
        for (int k = 0; k < 4; k++) {
            const size_t at = random_u64() % (line.length - 1);
            const char before = line.data[at];

            line.data[at] = changes[random_u64() % (sizeof changes - 1)];
            taken_changed += scans_as_jansson_reads(&line);
            line.data[at] = before;
        }
        nw_text_free(&line);
        nw_record_free(&record);
    }
    cr_assert_gt(taken, 1500, "of 3000 the fast reader took %zu", taken);
    cr_assert_gt(taken_changed, 500, "of 12000 the fast reader took %zu", taken_changed);
}

/* --- files --- */

static char *temporary_path(void)
{
    static char path[64];
    const int fd = mkstemp(strcpy(path, "/tmp/nw_jsonl_XXXXXX"));

    cr_assert_geq(fd, 0);
    close(fd);
    return path;
}

static void fill_context(struct nw_context *context)
{
    nw_context_init(context);
    set_text(context->tool, sizeof context->tool, "nodeworth");
    set_text(context->library, sizeof context->library, "Open MPI \"4.1.4\"");
    context->rank_count = 4;
    context->host_count = 2;
    context->hosts = calloc(2, sizeof *context->hosts);
    set_text(context->hosts[0].name, sizeof context->hosts[0].name, "node1");
    set_text(context->hosts[1].name, sizeof context->hosts[1].name, "node2");
    context->hosts[0].memory_bytes = UINT64_C(2) << 40;
    context->hosts[0].gpu_count = 0;
    context->hosts[1].gpu_count = -1;
    context->environment = json_pack("{s:s}", "NCCL_ALGO", "Ring");
    context->plan = json_pack("{s:f}", "stop", 0.1);
    context->topology = json_pack("[{s:i}]", "x", 1);
    context->printed_average_bytes_per_s = 0.1e9;
    context->complete = true;
}

struct seen {
    size_t runs, records, findings, ends, lines;
    uint64_t bytes;
};

static nw_rc see_context(void *user, struct nw_context *context,
                         const struct nw_results_place *place)
{
    struct seen *seen = user;

    seen->runs += context->rank_count == 4;
    seen->lines = place->line;
    return NW_OK;
}

static nw_rc see_record(void *user, struct nw_record *record, const struct nw_results_place *place)
{
    struct seen *seen = user;

    cr_assert_null(record->samples_ns);
    cr_assert_eq(record->warnings.count, 0);
    cr_assert(isnan(record->time_ns.p99));
    cr_assert_eq(memcmp(place->text, "{\"schema\":1", 11), 0);
    seen->records++;
    seen->bytes += record->bytes;
    seen->lines = place->line;
    return NW_OK;
}

static nw_rc see_finding(void *user, const struct nw_finding *finding,
                         const struct nw_results_place *place)
{
    struct seen *seen = user;

    cr_assert_not_null(finding->code);
    seen->findings++;
    seen->lines = place->line;
    return NW_OK;
}

static nw_rc see_end(void *user)
{
    ((struct seen *)user)->ends++;
    return NW_OK;
}

static void append_raw(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");

    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void write_run(const char *path, bool resume, int records, bool end)
{
    struct nw_results_writer *writer;
    struct nw_context context;

    fill_context(&context);
    cr_assert_eq(nw_results_create(path, resume, &writer), NW_OK, "%s", nw_last_error()->text);
    if (!resume)
        cr_assert_eq(nw_results_write_context(writer, &context), NW_OK);
    for (int i = 0; i < records; i++) {
        struct nw_record record;

        fill_random(&record);
        record.bytes = 100 + (uint64_t)i;
        cr_assert_eq(nw_results_write_record(writer, &record), NW_OK);
        nw_record_free(&record);
    }
    if (end)
        cr_assert_eq(nw_results_write_end(writer), NW_OK);
    cr_assert_eq(nw_results_close(writer), NW_OK);
    nw_context_free(&context);
}

Test(results_jsonl, a_written_run_reads_back_and_a_resumed_one_goes_on)
{
    const char *path = temporary_path();
    struct nw_results results = {0};

    write_run(path, false, 5, false);
    append_raw(path, "{\"schema\":1,\"kind\":\"rec"); /* the writer was killed here */
    cr_assert_eq(nw_results_read(path, &results), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(results.run_count, 1);
    cr_assert_eq(results.runs[0].record_count, 5);
    cr_assert_not(results.runs[0].context.complete);
    cr_assert_eq(results.runs[0].context.findings.count, 1);
    cr_assert_str_eq(results.runs[0].context.findings.items[0].code, "torn-line");
    nw_results_free(&results);

    write_run(path, true, 2, true);
    cr_assert_eq(nw_results_read(path, &results), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(results.runs[0].record_count, 7);
    cr_assert(results.runs[0].context.complete);
    cr_assert_eq(results.runs[0].context.findings.count, 0);
    unlink(path);
    nw_results_free(&results);
}

Test(results_jsonl, saving_all_runs_keeps_context_findings_and_end)
{
    const char *path = temporary_path();
    struct nw_results results = {0}, back = {0};

    for (int r = 0; r < 3; r++) {
        struct nw_run *run = nw_results_add_run(&results);

        cr_assert_not_null(run);
        fill_context(&run->context);
        run->context.complete = r != 1;
        add_random_findings(&run->context.findings);
        for (int i = 0; i < 4; i++)
            fill_random(nw_run_new_record(run));
    }
    cr_assert_eq(nw_results_save(path, &results), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_results_read(path, &back), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(back.run_count, 3);
    for (size_t r = 0; r < 3; r++) {
        const struct nw_context *a = &results.runs[r].context, *b = &back.runs[r].context;

        cr_assert_eq(a->complete, b->complete);
        cr_assert_eq(a->host_count, b->host_count);
        cr_assert_eq(a->rank_count, b->rank_count);
        cr_assert_str_eq(a->library, b->library);
        cr_assert_str_eq(a->hosts[1].name, b->hosts[1].name);
        cr_assert_eq(a->hosts[0].memory_bytes, b->hosts[0].memory_bytes);
        cr_assert_eq(b->hosts[0].gpu_count, 0);
        cr_assert_eq(b->hosts[1].gpu_count, -1);
        assert_real("average", a->printed_average_bytes_per_s, b->printed_average_bytes_per_s);
        cr_assert(json_equal(a->environment, b->environment));
        cr_assert(json_equal(a->plan, b->plan));
        cr_assert(json_equal(a->topology, b->topology));
        assert_same_findings(&a->findings, &b->findings);
        cr_assert_eq(back.runs[r].record_count, 4);
        for (size_t i = 0; i < 4; i++)
            assert_same(&results.runs[r].records[i], &back.runs[r].records[i]);
    }
    unlink(path);
    nw_results_free(&results);
    nw_results_free(&back);
}

#define CONTEXT "{\"schema\":1,\"kind\":\"context\",\"tool\":\"nodeworth\",\"simulated\":false}\n"
#define RECORD                                                                                     \
    "{\"schema\":1,\"kind\":\"record\",\"case\":\"coll\",\"collective\":\"all_reduce\","           \
    "\"lane\":\"host\",\"dtype\":\"float\",\"op\":\"sum\",\"bytes\":8,\"in_place\":false"

Test(results_jsonl, a_bad_line_is_refused_with_line_and_key)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "is empty"},
        {"\n \n", "only blank lines"},
        {"{\"schema\":1,\"kind\":\"con", "the only line is incomplete"},
        {CONTEXT RECORD "}\n", "f:2: \"simulated\" is missing"},
        {CONTEXT RECORD ",\"simulated\":1}\n", "\"simulated\" is an integer"},
        {CONTEXT RECORD ",\"simulated\":false,\"ranks\":0}\n", "f:2: \"ranks\" is 0"},
        {CONTEXT RECORD ",\"simulated\":false,\"ranks\":3000000000}\n", "f:2: \"ranks\""},
        {CONTEXT RECORD ",\"simulated\":false,\"ranks\":2.5}\n", "f:2: \"ranks\""},
        {CONTEXT RECORD ",\"simulated\":false,\"skew_ns\":-1}\n", "f:2: \"skew_ns\" is -1"},
        {CONTEXT RECORD ",\"simulated\":false,\"skew_ns\":NaN}\n", "f:2: not valid JSON"},
        {CONTEXT RECORD ",\"simulated\":false,\"skew_ns\":1e400}\n", "f:2: not valid JSON"},
        {CONTEXT RECORD ",\"simulated\":false,\"slowest_share\":1.5}\n",
         "expected a number from 0 to 1"},
        {CONTEXT RECORD ",\"simulated\":false,\"time_ns\":{\"min\":1}}\n",
         "f:2: time_ns: \"median\" is missing"},
        {CONTEXT RECORD ",\"simulated\":false,\"time_ns\":{\"median\":-4}}\n",
         "time_ns: \"median\" is -4"},
        {CONTEXT RECORD ",\"simulated\":false,\"time_ns\":3}\n", "time_ns: not an object"},
        {CONTEXT RECORD ",\"simulated\":false,\"samples_ns\":[1]}\n", "without \"time_ns\""},
        {CONTEXT RECORD
         ",\"simulated\":false,\"time_ns\":{\"median\":4,\"count\":2},\"samples_ns\":[1]}\n",
         "has 1 values"},
        {CONTEXT RECORD
         ",\"simulated\":false,\"time_ns\":{\"median\":4,\"count\":1},\"samples_ns\":[\"1\"]}\n",
         "\"samples_ns\"[0]"},
        {CONTEXT RECORD ",\"simulated\":false,\"stop\":\"never\"}\n", "accepted: converged"},
        {CONTEXT RECORD ",\"simulated\":false,\"rc\":\"fine\"}\n", "\"rc\" is \"fine\""},
        {CONTEXT RECORD ",\"simulated\":false,\"warnings\":[{\"severity\":\"bad\",\"code\":\"x\","
                        "\"where\":\"\",\"text\":\"\"}]}\n",
         "accepted: info, warning, failure"},
        {CONTEXT RECORD ",\"bytes\":9,\"simulated\":false}\n", "f:2: not valid JSON"},
        {CONTEXT "[]\n", "f:2: not a JSON object"},
        {CONTEXT "{\"schema\":2,\"kind\":\"end\"}\n",
         "f:2: \"schema\" is 2; this program reads schema 1"},
        {CONTEXT "{\"kind\":\"end\"}\n", "f:2: "},
        {CONTEXT "{\"schema\":1,\"kind\":\"sample\"}\n", "accepted: context, record, finding, end"},
        {RECORD ",\"simulated\":false}\n", "before the first \"context\""},
        {"{\"schema\":1,\"kind\":\"context\",\"simulated\":false}\n", "f:1: "},
        {"{\"schema\":1,\"kind\":\"context\",\"tool\":\"x\"}\n", "\"simulated\" is missing"},
        {"{\"schema\":1,\"kind\":\"context\",\"tool\":\"x\",\"simulated\":false,\"hosts\":2,\"host_"
         "list\":[{\"name\":\"a\"}]}\n",
         "\"host_list\" has 1 entries"},
        {"{\"schema\":1,\"kind\":\"context\",\"tool\":\"x\",\"simulated\":false,\"plan\":[]}\n",
         "\"plan\" is not an object"},
        {CONTEXT "torn\n" RECORD, "f:2: not valid JSON"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_results results = {0};

        nw_clear_error();
        cr_expect_eq(nw_results_read_data(rows[i].text, strlen(rows[i].text), "f", &results),
                     NW_EUSAGE, "row %zu was accepted", i);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu: \"%s\"", i,
                           nw_last_error()->text);
        cr_expect_eq(results.run_count, 0, "row %zu left runs behind", i);
        nw_results_free(&results);
    }
}

Test(results_jsonl, unknown_keys_of_this_schema_are_passed_over)
{
    const char *text = CONTEXT RECORD ",\"simulated\":true,\"new_key\":{\"a\":1}}\n"
                                      "{\"schema\":1,\"kind\":\"end\",\"more\":1}\n";
    struct nw_results results = {0};

    cr_assert_eq(nw_results_read_data(text, strlen(text), "f", &results), NW_OK);
    cr_assert(results.runs[0].records[0].simulated);
    cr_assert(results.runs[0].context.complete);
    nw_results_free(&results);
}

Test(results_jsonl, text_that_is_not_utf8_is_written_as_valid_json)
{
    struct nw_record record, back;
    json_t *json;

    fill_random(&record);
    set_text(record.host_a, sizeof record.host_a, "n\xFF\xC0\xAF\xED\xA0\x80x\xE4\xB8");
    cr_assert_eq(nw_record_to_json(&record, &json), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_record_from_json(json, "t", &back), NW_OK);
    cr_assert_eq(back.host_a[0], 'n');
    cr_assert_not_null(strstr(back.host_a, "\xEF\xBF\xBD"));
    json_decref(json);
    nw_record_free(&record);
    nw_record_free(&back);
}

Test(results_jsonl, a_visitor_sees_every_line_of_a_file_of_many_pieces)
{
    const char *path = temporary_path();
    struct nw_results results = {0};
    struct seen seen = {0};
    const struct nw_results_visitor visitor = {.user = &seen,
                                               .brief = true,
                                               .on_context = see_context,
                                               .on_record = see_record,
                                               .on_finding = see_finding,
                                               .on_end = see_end};
    uint64_t bytes = 0;

    for (int r = 0; r < 2; r++) {
        struct nw_run *run = nw_results_add_run(&results);

        fill_context(&run->context);
        add_random_findings(&run->context.findings);
        for (int i = 0; i < 3000; i++) { /* some MiB: longer than what is read at once */
            struct nw_record *record = nw_run_new_record(run);

            fill_random(record);
            record->bytes %= 1000000;
            bytes += record->bytes;
            if (!isfinite(record->time_ns.median))
                continue;
            record->time_ns.p99 = NAN; /* of what jansson reads: brief leaves it out anyway */
        }
    }
    /* A brief reader may be given a whole record where the fast one declines: of plain ones only.
     */
    for (size_t r = 0; r < 2; r++)
        for (size_t i = 0; i < 3000; i++) {
            struct nw_record *record = &results.runs[r].records[i];

            free(record->samples_ns);
            record->samples_ns = NULL;
            nw_findings_free(&record->warnings);
        }
    cr_assert_eq(nw_results_save(path, &results), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_results_each(path, &visitor), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(seen.runs, 2);
    cr_assert_eq(seen.ends, 2);
    cr_assert_eq(seen.records, 6000);
    cr_assert_eq(seen.bytes, bytes);
    cr_assert_eq(seen.findings,
                 results.runs[0].context.findings.count + results.runs[1].context.findings.count);
    unlink(path);
    nw_results_free(&results);
}
