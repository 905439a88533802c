#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/importers.h"
#include "results/perftest.h"

#define MIB 1048576.0

static const struct nw_imp_title titles[] = {
    {"#bytes", NW_IMP_BYTES, 0, 1},
    {"#iterations", NW_IMP_ITERATIONS, 0, 1},
    {"BW peak[MB/sec]", NW_IMP_PEAK, 0, MIB},
    {"BW peak[MiB/sec]", NW_IMP_PEAK, 0, MIB},
    {"BW peak[Gb/sec]", NW_IMP_PEAK, 9, 0.125},
    {"BW average[MB/sec]", NW_IMP_RATE, 0, MIB},
    {"BW average[MiB/sec]", NW_IMP_RATE, 0, MIB},
    {"BW average[Gb/sec]", NW_IMP_RATE, 9, 0.125},
    {"MsgRate[Mpps]", NW_IMP_MESSAGES, 6, 1},
    {"t_min[usec]", NW_IMP_LEAST, 3, 1},
    {"t_max[usec]", NW_IMP_MOST, 3, 1},
    {"t_typical[usec]", NW_IMP_MEDIAN, 3, 1},
    {"t_avg[usec]", NW_IMP_TIME, 3, 1},
    {"t_stdev[usec]", NW_IMP_STDDEV, 3, 1},
    {"99% percentile[usec]", NW_IMP_P99, 3, 1},
    {"99.9% percentile[usec]", NW_IMP_OTHER, 0, 1},
    {"tps average", NW_IMP_OTHER, 0, 1},
    {"CPU_Util[%]", NW_IMP_OTHER, 0, 1},
    {NULL, NW_IMP_OTHER, 0, 1},
};

static const struct {
    const char *part, *verb; /* of a title, of a program's name */
} verbs[] = {
    {"RDMA_Write", "write"}, {"RDMA_Read", "read"}, {"Send", "send"},     {"Atomic", "atomic"},
    {"ib_write_", "write"},  {"ib_read_", "read"},  {"ib_send_", "send"}, {"ib_atomic_", "atomic"},
};

static bool name_verb(struct nw_perftest_facts *facts, struct nw_slice text)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (nw_imp_find(text, verbs[i].part) != NULL) {
            snprintf(facts->verb, sizeof facts->verb, "%s", verbs[i].verb);
            return true;
        }
    return false;
}

/* --- the run --- */

/* A title, or a header where the open run has one already. */
static nw_rc begin(struct nw_perftest *test)
{
    NW_TRY(nw_perftest_close(test));
    NW_TRY(nw_imp_begin(&test->imp, "perftest"));
    snprintf(test->imp.run->context.backend, sizeof test->imp.run->context.backend, "verbs");
    test->facts = test->next;
    test->facts.title_line = test->imp.line;
    test->next = (struct nw_perftest_facts){0};
    return NW_OK;
}

/* "RDMA_Write Bidirectional BW Test", "Send Latency Test" */
static bool is_title(struct nw_slice text)
{
    return text.length > 7 && text.length < 80 && nw_imp_find(text, ":") == NULL &&
           memcmp(text.at + text.length - 5, " Test", 5) == 0 &&
           (nw_imp_find(text, " BW ") != NULL || nw_imp_find(text, "Latency ") != NULL);
}

static nw_rc take_title(struct nw_perftest *test, struct nw_slice text)
{
    NW_TRY(begin(test));
    name_verb(&test->facts, text);
    test->facts.titled = true;
    test->facts.both_ways = nw_imp_find(text, "Bidirectional") != NULL;
    test->latency = nw_imp_find(text, "Latency") != NULL;
    return NW_OK;
}

static nw_rc take_header(struct nw_perftest *test, const struct nw_imp_columns *columns)
{
    const bool latency = nw_imp_column(columns, NW_IMP_TIME);

    if (test->imp.run == NULL || test->columns.count > 0)
        NW_TRY(begin(test));
    test->columns = *columns;
    test->latency = latency;
    return NW_OK;
}

/* --- facts --- */

/* "Device         : mlx5_0" with others before or behind it on the line. */
static struct nw_slice value_of(struct nw_slice text, const char *label)
{
    const struct nw_slice rest = nw_imp_behind(text, label);
    struct nw_imp_words words;

    if (rest.length == 0 || rest.at[0] != ':')
        return (struct nw_slice){text.at, 0};
    nw_imp_split((struct nw_slice){rest.at + 1, rest.length - 1}, &words);
    return words.count > 0 ? words.word[0] : (struct nw_slice){text.at, 0};
}

static void take_number(struct nw_slice text, const char *label, int *field)
{
    const struct nw_slice word = value_of(text, label);
    size_t digits = 0;
    uint64_t number;

    while (digits < word.length && isdigit((unsigned char)word.at[digits]))
        digits++;
    if (nw_imp_u64((struct nw_slice){word.at, digits}, &number) && number > 0 && number < 1 << 24)
        *field = (int)number;
}

/* "00:00:00:00:00:00:00:00:00:00:255:255:192:00:02:01": decimal bytes; IPv4 within IPv6. */
static void copy_gid(char field[64], struct nw_slice text)
{
    unsigned byte[16] = {0};
    char copy[80];
    bool mapped = true;

    nw_imp_copy(copy, sizeof copy, text);
    if (sscanf(copy, "%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u:%3u", &byte[0],
               &byte[1], &byte[2], &byte[3], &byte[4], &byte[5], &byte[6], &byte[7], &byte[8],
               &byte[9], &byte[10], &byte[11], &byte[12], &byte[13], &byte[14], &byte[15]) != 16)
        return;
    for (int i = 0; i < 12; i++)
        mapped = mapped && byte[i] == (i < 10 ? 0 : 255);
    if (mapped)
        snprintf(field, 64, "%u.%u.%u.%u", byte[12], byte[13], byte[14], byte[15]);
    else
        snprintf(field, 64, "%x:%x:%x:%x:%x:%x:%x:%x", byte[0] << 8 | byte[1],
                 byte[2] << 8 | byte[3], byte[4] << 8 | byte[5], byte[6] << 8 | byte[7],
                 byte[8] << 8 | byte[9], byte[10] << 8 | byte[11], byte[12] << 8 | byte[13],
                 byte[14] << 8 | byte[15]);
}

static void take_address(struct nw_perftest *test, struct nw_slice text)
{
    struct nw_perftest_facts *facts = &test->facts;
    const bool remote = nw_imp_starts(text, "remote ");
    struct nw_imp_words words;

    nw_imp_split(nw_imp_behind(text, " LID "), &words);
    if (words.count > 0)
        nw_imp_copy(remote ? facts->remote_lid : facts->lid, sizeof facts->lid, words.word[0]);
}

static void take_gid(struct nw_perftest *test, struct nw_slice text)
{
    struct nw_perftest_facts *facts = &test->facts;
    const bool remote = facts->remote_lid[0] != '\0';

    copy_gid(remote ? facts->remote_gid : facts->gid, nw_imp_behind(text, "GID:"));
}

/* "ib_write_bw -d mlx5_0 -b --use_cuda=0": of the next title. Not "Starting … 'ib_read_bw' for …"
 */
static void take_command(struct nw_perftest *test, struct nw_slice text)
{
    struct nw_perftest_facts *facts = &test->next;
    struct nw_imp_words words;
    bool options = false;

    name_verb(facts, text);
    nw_imp_split(text, &words);
    for (int i = 0; i < words.count; i++) {
        options = options || words.word[i].at[0] == '-';
        facts->both_ways = facts->both_ways || nw_imp_is(words.word[i], "-b") ||
                           nw_imp_is(words.word[i], "--bidirectional");
    }
    facts->titled = options && nw_imp_find(text, "Starting ") == NULL;
    facts->gpu = nw_imp_find(text, "--use_cuda") != NULL || nw_imp_find(text, "--use_rocm") != NULL;
}

static void take_fact(struct nw_perftest *test, struct nw_slice text)
{
    struct nw_perftest_facts *facts = &test->facts;
    const struct nw_slice device = value_of(text, "Device");
    int mtu = (int)facts->mtu;

    if (device.length > 0)
        nw_imp_copy(facts->device, sizeof facts->device, device);
    take_number(text, "Number of qps", &facts->qps);
    take_number(text, "TX depth", &facts->depth);
    take_number(text, "Mtu", &mtu);
    facts->mtu = (uint32_t)mtu;
    if (nw_imp_is(value_of(text, "Link type"), "Ethernet"))
        facts->ethernet = true;
    if (nw_imp_is(value_of(text, "Use ROCm memory"), "ON"))
        facts->gpu = true;
}

static bool is_program(struct nw_slice text)
{
    static const char *const names[] = {"ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
                                        "ib_send_bw",  "ib_send_lat",  "ib_atomic_"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (nw_imp_find(text, names[i]) != NULL)
            return true;
    return false;
}

static bool is_failure(struct nw_slice text)
{
    static const char *const parts[] = {"Couldn't connect to", "Unable to init the socket",
                                        "Failed to ",          "Unable to open file desc",
                                        "Couldn't ",           "Unable to create QP"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (nw_imp_find(text, parts[i]) != NULL)
            return true;
    return false;
}

/* A failure behind a result is that of another try. */
static nw_rc take_failure(struct nw_perftest *test, struct nw_slice text)
{
    if (test->imp.run == NULL || test->imp.run->record_count > 0)
        NW_TRY(begin(test));
    nw_imp_count(&test->imp.failed, test->imp.line, text);
    return NW_OK;
}

static nw_rc take_line(struct nw_perftest *test)
{
    struct nw_imp *imp = &test->imp;
    const struct nw_slice text = nw_imp_clean(imp->text);
    struct nw_imp_columns columns;
    struct nw_imp_row row;

    if (imp->whole && nw_imp_header(text, titles, 3, &columns))
        return take_header(test, &columns);
    if (nw_imp_row(imp, text, &test->columns, &row))
        return nw_perftest_add_row(test, &row, imp->line);
    if (!imp->whole)
        return NW_OK;
    if (is_title(text))
        return take_title(test, text);
    if (nw_imp_find(text, "Waiting for client to connect") != NULL)
        test->next.server = true;
    else if (nw_imp_starts(text, "------") && imp->run != NULL)
        imp->run->context.complete = imp->run->record_count > 0; /* the line below the table */
    else if (is_program(text))
        take_command(test, text);
    else if (nw_imp_find(text, "bytes of GPU buffer") != NULL ||
             nw_imp_find(text, "initializing CUDA") != NULL)
        test->next.gpu = true;
    else if (is_failure(text))
        return take_failure(test, text);
    else if (nw_imp_starts(text, "Conflicting CPU frequency"))
        test->facts.frequency_line = imp->line;
    else if (nw_imp_starts(text, "local address:") || nw_imp_starts(text, "remote address:"))
        take_address(test, text);
    else if (nw_imp_starts(text, "GID:"))
        take_gid(test, text);
    else
        take_fact(test, text);
    return NW_OK;
}

/* --- JSON --- */

/* It has no unit; the message rate times the size has one. */
static double unit_of(const json_t *results)
{
    const double rate = nw_imp_json_number(results, "BW_average");
    const double moved =
        nw_imp_json_number(results, "MsgRate") * 1e6 * nw_imp_json_number(results, "MsgSize");

    if (!(rate > 0) || !(moved > 0))
        return NAN;
    if (fabs(rate * 1e9 / 8 / moved - 1) < 0.2)
        return 1e9 / 8;
    return fabs(rate * MIB / moved - 1) < 0.2 ? MIB : NAN;
}

static void row_of_json(const json_t *results, double unit, struct nw_imp_row *row)
{
    static const struct {
        const char *key;
        nw_imp_value value;
        double unit;
    } keys[] = {
        {"MsgSize", NW_IMP_BYTES, 1},       {"n_iterations", NW_IMP_ITERATIONS, 1},
        {"MsgRate", NW_IMP_MESSAGES, 1e6},  {"t_min", NW_IMP_LEAST, 1e3},
        {"t_max", NW_IMP_MOST, 1e3},        {"t_typical", NW_IMP_MEDIAN, 1e3},
        {"t_avg", NW_IMP_TIME, 1e3},        {"t_stdev", NW_IMP_STDDEV, 1e3},
        {"percentile_99", NW_IMP_P99, 1e3},
    };

    for (int i = 0; i < NW_IMP_VALUES; i++)
        row->value[i] = (struct nw_printed){NAN, NAN};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        row->value[keys[i].value].value = nw_imp_json_number(results, keys[i].key) * keys[i].unit;
    row->value[NW_IMP_MESSAGES].half_unit = 0.5; /* six decimals of millions */
    row->value[NW_IMP_RATE].value = nw_imp_json_number(results, "BW_average") * unit;
    row->value[NW_IMP_RATE].half_unit = 0.005 * unit;
}

static void json_facts(struct nw_perftest *test, const json_t *info)
{
    const char *title = nw_imp_json_text(info, "test"), *device = nw_imp_json_text(info, "Device");
    const char *link = nw_imp_json_text(info, "Link_type");
    const char *rocm = nw_imp_json_text(info, "Use_ROCm_memory");
    const double qps = nw_imp_json_number(info, "Number_of_qps");
    const double depth = nw_imp_json_number(info, "TX_depth"),
                 mtu = nw_imp_json_number(info, "Mtu");
    struct nw_perftest_facts *facts = &test->facts;

    if (title != NULL) {
        name_verb(facts, nw_imp_slice(title));
        facts->titled = true;
        facts->both_ways = strstr(title, "Bidirectional") != NULL;
        test->latency = strstr(title, "Latency") != NULL;
    }
    if (device != NULL)
        nw_imp_copy(facts->device, sizeof facts->device, nw_imp_slice(device));
    facts->ethernet = link != NULL && strcmp(link, "Ethernet") == 0;
    facts->gpu =
        (rocm != NULL && strcmp(rocm, "ON") == 0) || nw_imp_json_number(info, "cuda_device") >= 0;
    facts->qps = qps >= 1 && qps < 1e6 ? (int)qps : 0;
    facts->depth = depth >= 1 && depth < 1e6 ? (int)depth : 0;
    facts->mtu = mtu >= 1 && mtu < 1e6 ? (uint32_t)mtu : 0;
}

static nw_rc read_document(struct nw_perftest *test, const json_t *root)
{
    const json_t *results = json_object_get(root, "results");
    const double unit = unit_of(results);
    struct nw_imp_place place = {0};
    struct nw_imp_row row = {.check = {"", 0}};
    const size_t line = nw_imp_json_line(&test->imp, "MsgSize", &place);

    test->imp.line = 1;
    NW_TRY(begin(test));
    json_facts(test, json_object_get(root, "test_info"));
    test->imp.run->context.complete = true;
    if (!test->latency && isnan(unit))
        return nw_imp_tell(&test->imp, NW_FINDING_FAIL, "unit-unknown", line > 0 ? line : 1,
                           "import the text of the test, or run it without --output",
                           "the JSON does not name the unit of its rate (MiB/s or Gb/s), and its "
                           "message rate does not tell");
    row_of_json(results, unit, &row);
    return nw_perftest_add_row(test, &row, line);
}

/* --- the file --- */

nw_rc nw_perftest_read(const char *data, size_t length, const char *path,
                       const struct nw_import_options *options, struct nw_results *results)
{
    struct nw_perftest test = {.imp = nw_imp_open(data, length, path, results)};
    json_t *root = NULL;
    nw_rc rc = NW_OK;
    size_t line;

    (void)options;
    if (nw_imp_has(data, length, "\"test_info\"")) {
        NW_TRY(nw_imp_json(data, length, path, "perftest", &root, &line));
        rc = read_document(&test, root);
        json_decref(root);
    }
    while (root == NULL && rc == NW_OK && nw_imp_next(&test.imp))
        rc = take_line(&test);
    return rc == NW_OK ? nw_perftest_close(&test) : rc;
}

int nw_perftest_recognise(const char *data, size_t length)
{
    if (nw_imp_has(data, length, "BW average[") || nw_imp_has(data, length, "t_typical[usec]"))
        return 95;
    if (nw_imp_has(data, length, "\"test_info\"") && nw_imp_has(data, length, "\"results\""))
        return 90;
    if (nw_imp_has(data, length, " BW Test\n") || nw_imp_has(data, length, " Latency Test\n"))
        return nw_imp_has(data, length, "Number of qps") ? 90 : 0;
    return nw_imp_has(data, length, "Unable to init the socket connection") ? 80 : 0;
}
