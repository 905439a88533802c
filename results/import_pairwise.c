/* A summary of nccl-tests over pairs of nodes: a CSV with a line a pair and test,
 *
 *     file,test,N,G,nodes,minBytes,maxBytes,avg_bus_bw_GBs,peak_busbw_GBs
 *     nccl_N2_G1_node001_node004.log,alltoall_perf,2,1,"node[001,004]",33554432,…,5.764350,9.300000
 *
 * with empty cells where the test gave no result. Its averages over sizes compare pairs with each
 * other; they are no rates of a wire. So the records are of a case of their own ("pairwise"), which
 * nothing but the comparison of hosts (results/fleet.h) takes.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_list.h"
#include "base/units.h"
#include "collectives/coll.h"
#include "results/pairwise.h"

enum { CELLS = 16, CELL = 256, HOSTS = 3 /* one more than a pair */ };

enum column { FILE_, TEST, NODES_, GPUS, NAMES, MAX_BYTES, AVERAGE, COLUMNS };
static const struct {
    const char *name;
    bool needed;
} columns[COLUMNS] = {
    [FILE_] = {"file", false},
    [TEST] = {"test", true},
    [NODES_] = {"N", false},
    [GPUS] = {"G", false},
    [NAMES] = {"nodes", true},
    [MAX_BYTES] = {"maxBytes", false},
    [AVERAGE] = {"avg_bus_bw_GBs", true},
};

struct row {
    char cells[CELLS][CELL];
    int count;
};

struct reader {
    const char *path;
    struct nw_run *run;
    int at[COLUMNS]; /* -1: not there */
    int host_capacity;
    struct nw_name_list names; /* of hosts */
    size_t failed_count, first_failed_line;
    size_t unread_count, first_unread_line;
};

/* RFC 4180's cells: quotes around commas, doubled quotes. Too many or too long: false. */
static bool split(const char *line, size_t length, struct row *row)
{
    bool quoted = false;
    size_t used = 0;

    row->count = 1;
    for (size_t i = 0; i < length; i++) {
        const char c = line[i];

        if (c == '"' && quoted && i + 1 < length && line[i + 1] == '"') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
            continue;
        } else if (c == ',' && !quoted) {
            row->cells[row->count - 1][used] = '\0';
            used = 0;
            if (++row->count > CELLS)
                return false;
            continue;
        } else if (c == '\r' || c == '\0') {
            continue;
        }
        if (used + 1 >= CELL)
            return false;
        row->cells[row->count - 1][used++] = c;
    }
    row->cells[row->count - 1][used] = '\0';
    return !quoted;
}

static const char *cell(const struct reader *reader, const struct row *row, enum column column)
{
    const int at = reader->at[column];

    return at >= 0 && at < row->count ? row->cells[at] : "";
}

/* ---- "node[001-002,017],login" -----------------------------------------------------------------
 */

static int add_name(char names[HOSTS][64], int count, const char *prefix, size_t prefix_length,
                    const char *number, size_t number_length)
{
    if (count < HOSTS)
        snprintf(names[count], 64, "%.*s%.*s", (int)(prefix_length < 60 ? prefix_length : 60),
                 prefix, (int)(number_length < 60 ? number_length : 60), number);
    return count + 1;
}

/* "001-004": of the same width. */
static int add_range(char names[HOSTS][64], int count, const char *prefix, size_t prefix_length,
                     const char *range, size_t length)
{
    const char *dash = memchr(range, '-', length);
    const size_t width = dash != NULL ? (size_t)(dash - range) : length;
    char digits[32];
    unsigned long first, last;

    if (dash == NULL)
        return add_name(names, count, prefix, prefix_length, range, length);
    if (width == 0 || width > 9 || length - width - 1 == 0 || length - width - 1 > 9 ||
        strspn(range, "0123456789") < width || strspn(dash + 1, "0123456789") < length - width - 1)
        return HOSTS + 1;
    first = strtoul(range, NULL, 10); /* up to nine digits, checked above */
    last = strtoul(dash + 1, NULL, 10);
    for (unsigned long k = first; k <= last && count <= HOSTS; k++) {
        snprintf(digits, sizeof digits, "%0*lu", (int)width, k);
        count = add_name(names, count, prefix, prefix_length, digits, strlen(digits));
    }
    return count;
}

/* The hosts of a list as Slurm writes it; how many there are (more than HOSTS: too many, or not
 * such a list). */
static int expand(const char *text, char names[HOSTS][64])
{
    int count = 0;

    while (*text != '\0' && count <= HOSTS) {
        const size_t prefix = strcspn(text, ",[");

        if (text[prefix] != '[') {
            if (prefix > 0)
                count = add_name(names, count, text, prefix, "", 0);
            text += prefix + (text[prefix] == ',');
            continue;
        }
        const char *at = text + prefix + 1, *end = strchr(at, ']');

        if (end == NULL || (end[1] != '\0' && end[1] != ','))
            return HOSTS + 1;
        while (at < end && count <= HOSTS) {
            size_t length = strcspn(at, ",]");

            count = add_range(names, count, text, prefix, at, length);
            at += length + (at[length] == ',');
        }
        text = end + 1 + (end[1] == ',');
    }
    return count;
}

/* ---- hosts -------------------------------------------------------------------------------------
 */

static nw_rc host_index(struct reader *reader, const char *name, int *index_out)
{
    struct nw_context *context = &reader->run->context;

    NW_TRY(nw_name_list_index(&reader->names, name, INT_MAX, index_out));
    if (*index_out < context->host_count)
        return NW_OK;
    if (context->host_count == reader->host_capacity) {
        const int capacity = 2 * reader->host_capacity + 64;
        struct nw_host *hosts = realloc(context->hosts, (size_t)capacity * sizeof *hosts);

        if (hosts == NULL)
            return nw_fail(NW_ENOMEM, "%s: no memory for %d hosts", reader->path, capacity);
        context->hosts = hosts;
        reader->host_capacity = capacity;
    }
    struct nw_host *host = &context->hosts[context->host_count++];

    *host = (struct nw_host){.gpu_count = -1};
    snprintf(host->name, sizeof host->name, "%s", name);
    return NW_OK;
}

/* ---- a row -------------------------------------------------------------------------------------
 */

static void name_collective(const char *test, char *name, size_t size)
{
    const struct nw_coll *coll;

    const size_t length = strlen(test), suffix = sizeof "_perf" - 1;
    const bool is_perf = length > suffix && strcmp(test + length - suffix, "_perf") == 0;

    snprintf(name, size, "%.*s", (int)(length - (is_perf ? suffix : 0)), test);
    if (nw_coll_parse(name, &coll) == NW_OK)
        snprintf(name, size, "%s", coll->name);
    else
        nw_clear_error(); /* another tool's test keeps its name */
}

static bool number(const char *text, uint64_t most, uint64_t *value_out)
{
    if (nw_parse_u64(text, 1, most, value_out) == NW_OK)
        return true;
    nw_clear_error();
    return false;
}

/* The row's record; false: it cannot be read. */
static bool fill(const struct reader *reader, const struct row *row, struct nw_record *record,
                 bool *failed_out)
{
    const char *average = cell(reader, row, AVERAGE), *test = cell(reader, row, TEST);
    uint64_t nodes = 2, gpus = 1, bytes = 0;
    double rate = 0;

    if (test[0] == '\0' || strlen(test) >= 64 ||
        (reader->at[NODES_] >= 0 && !number(cell(reader, row, NODES_), 2, &nodes)) || nodes != 2 ||
        (reader->at[GPUS] >= 0 && !number(cell(reader, row, GPUS), 1024, &gpus)) ||
        (reader->at[MAX_BYTES] >= 0 && !number(cell(reader, row, MAX_BYTES), INT64_MAX, &bytes)))
        return false;
    *failed_out = average[0] == '\0';
    if (!*failed_out && nw_parse_double(average, 0, 1e6, &rate) != NW_OK) {
        nw_clear_error();
        return false;
    }
    *failed_out |= !(rate > 0); /* nothing was moved */
    nw_record_init(record);
    snprintf(record->case_name, sizeof record->case_name, "pairwise");
    name_collective(test, record->collective, sizeof record->collective);
    snprintf(record->lane, sizeof record->lane, "auto");
    snprintf(record->dtype, sizeof record->dtype, "unknown");
    record->rank_count = (int)(nodes * gpus);
    record->host_count = 2;
    record->bytes = bytes;
    if (*failed_out)
        record->rc = NW_EPEER;
    else
        record->busbw_bytes_per_s = rate * 1e9;
    return true;
}

static nw_rc read_row(struct reader *reader, const char *line, size_t length, size_t number_of_line)
{
    struct row row;
    struct nw_record record;
    char names[HOSTS][64];
    bool failed;

    if (!split(line, length, &row) || expand(cell(reader, &row, NAMES), names) != 2 ||
        strcmp(names[0], names[1]) == 0 || !fill(reader, &row, &record, &failed)) {
        reader->first_unread_line =
            reader->unread_count++ == 0 ? number_of_line : reader->first_unread_line;
        return NW_OK;
    }
    NW_TRY(host_index(reader, names[0], &record.peer_a));
    NW_TRY(host_index(reader, names[1], &record.peer_b));
    snprintf(record.host_a, sizeof record.host_a, "%s", names[0]);
    snprintf(record.host_b, sizeof record.host_b, "%s", names[1]);
    snprintf(record.source, sizeof record.source, "%.200s:%zu", reader->path, number_of_line);
    if (failed)
        reader->first_failed_line =
            reader->failed_count++ == 0 ? number_of_line : reader->first_failed_line;
    return nw_run_add_record(reader->run, &record);
}

/* ---- the file ----------------------------------------------------------------------------------
 */

static bool read_header(const char *line, size_t length, int at[COLUMNS])
{
    struct row row;
    bool whole = split(line, length, &row);

    for (int column = 0; column < COLUMNS; column++) {
        at[column] = -1;
        for (int i = 0; whole && i < row.count; i++)
            if (strcmp(row.cells[i], columns[column].name) == 0)
                at[column] = i;
        whole = whole && (at[column] >= 0 || !columns[column].needed);
    }
    return whole;
}

static size_t line_length(const char *data, size_t length)
{
    const char *end = memchr(data, '\n', length);

    return end != NULL ? (size_t)(end - data) : length;
}

int nw_pairwise_recognise(const char *data, size_t length)
{
    int at[COLUMNS];

    return read_header(data, line_length(data, length), at) ? 100 : 0;
}

static nw_rc add_findings(struct reader *reader)
{
    struct nw_run *run = reader->run;
    struct nw_findings *findings = &run->context.findings;
    char where[300];

    snprintf(where, sizeof where, "%.200s:1", reader->path);
    NW_TRY(nw_findings_add(findings, NW_FINDING_INFO, "averages-only", where,
                           "nodeworth fleet compares the hosts; for rates import the logs",
                           "averages over sizes, without times: they compare pairs with each other "
                           "and are used for nothing else"));
    if (reader->unread_count > 0) {
        snprintf(where, sizeof where, "%.200s:%zu", reader->path, reader->first_unread_line);
        NW_TRY(nw_findings_add(findings, NW_FINDING_WARN, "unreadable-row", where, NULL,
                               "%zu lines are no results of two hosts", reader->unread_count));
    }
    if (reader->failed_count > 0) {
        snprintf(where, sizeof where, "%.200s:%zu", reader->path, reader->first_failed_line);
        NW_TRY(nw_findings_add(findings, NW_FINDING_WARN, "pairs-without-result", where,
                               "nodeworth fleet names the hosts",
                               "%zu of %zu tests gave no bandwidth", reader->failed_count,
                               run->record_count));
    }
    return run->record_count > 0
               ? NW_OK
               : nw_findings_add(findings, NW_FINDING_FAIL, "no-result", reader->path, NULL,
                                 "no line has a result of two hosts");
}

static nw_rc read_rows(struct reader *reader, const char *data, size_t length)
{
    size_t line = 1;

    for (size_t at = 0; at < length; line++) {
        const size_t here = line_length(data + at, length - at);
        const bool blank = here == 0 || (here == 1 && data[at] == '\r');

        if (line > 1 && !blank)
            NW_TRY(read_row(reader, data + at, here, line));
        at += here + 1;
    }
    return add_findings(reader);
}

nw_rc nw_pairwise_read(const char *data, size_t length, const char *path,
                       const struct nw_import_options *options, struct nw_results *results)
{
    struct reader reader = {.path = path, .run = nw_results_add_run(results)};
    nw_rc rc;

    (void)options;
    if (reader.run == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for its results", path);
    if (!read_header(data, line_length(data, length), reader.at))
        return nw_fail(NW_EUSAGE, "%s:1: is no header of a pairwise summary", path);
    snprintf(reader.run->context.tool, sizeof reader.run->context.tool, "nccl-tests");
    snprintf(reader.run->context.source, sizeof reader.run->context.source, "%s", path);
    rc = read_rows(&reader, data, length);
    reader.run->context.complete = true;
    nw_name_list_free(&reader.names);
    return rc;
}
