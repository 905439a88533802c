/* nvbandwidth's text and JSON (https://github.com/NVIDIA/nvbandwidth, output.cpp, json_output.cpp,
 * testcases_*.cpp of v0.8). A matrix becomes a record per cell.
 *
 * The arrows in its titles ("GPU(row) <- GPU(column)") are not the way of the data: a write test
 * copies from the row's GPU to the column's, a read test the other way; in both the row's GPU does
 * it. A bidirectional test of host memory gives the one way that it measures; one of two GPUs gives
 * three matrices, of which "Total" is the sum of the other two.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/import_kit.h"
#include "results/importers.h"

/* common.h, defaultBufferSize */
#define DEFAULT_BYTES (UINT64_C(512) << 20)

enum who { ONE_GPU, ALL_GPUS, PAIR };

static const struct kind {
    const char *name; /* without "_ce" and "_sm" */
    const char *case_name, *collective;
    enum who who;
    bool latency; /* ns of one access */
} kinds[] = {
    {"host_to_device_memcpy", "h2d", "copy", ONE_GPU, false},
    {"device_to_host_memcpy", "d2h", "copy", ONE_GPU, false},
    {"host_to_device_bidirectional_memcpy", "h2d", "copy_both", ONE_GPU, false},
    {"device_to_host_bidirectional_memcpy", "d2h", "copy_both", ONE_GPU, false},
    {"host_to_all_memcpy", "h2d", "copy", ALL_GPUS, false},
    {"all_to_host_memcpy", "d2h", "copy", ALL_GPUS, false},
    {"host_to_all_bidirectional_memcpy", "h2d", "copy_both", ALL_GPUS, false},
    {"all_to_host_bidirectional_memcpy", "d2h", "copy_both", ALL_GPUS, false},
    {"device_to_device_memcpy_read", "p2p", "read", PAIR, false},
    {"device_to_device_memcpy_write", "p2p", "write", PAIR, false},
    {"device_to_device_bidirectional_memcpy_read", "p2p", "read_both", PAIR, false},
    {"device_to_device_bidirectional_memcpy_write", "p2p", "copy_both", PAIR, false},
    {"all_to_one_write", "fan_in", "write", ALL_GPUS, false},
    {"all_to_one_read", "fan_in", "read", ALL_GPUS, false},
    {"one_to_all_write", "fan_out", "write", ALL_GPUS, false},
    {"one_to_all_read", "fan_out", "read", ALL_GPUS, false},
    {"host_device_latency", "h2d", "load", ONE_GPU, true},
    {"device_to_device_latency", "p2p", "load", PAIR, true},
    {"device_local_copy", "d2d", "copy", ONE_GPU, false},
};

struct reading {
    struct nw_imp imp;
    const struct kind *kind; /* of the test under way; NULL: none, or one that is not known */
    char lane[4];
    bool wanted;    /* the matrix under way is one to take */
    bool ambiguous; /* one way or the sum: the title does not say */
    bool open;      /* the test has no sum yet */
    struct nw_imp_matrix matrix;
    double sum; /* of the cells */
    size_t matrix_line;
    uint64_t bytes;
    bool bytes_said;
    size_t waived;
    struct nw_imp_tally unknown, disagreeing, undirected;
    int most_columns;
};

/* GB/s to bytes/s; ns stay. */
static int scale_of(const struct kind *kind)
{
    return kind != NULL && kind->latency ? 0 : 9;
}

static const struct kind *kind_of(struct nw_slice name, char lane[4])
{
    snprintf(lane, 4, "ce");
    if (name.length > 3 && (memcmp(name.at + name.length - 3, "_ce", 3) == 0 ||
                            memcmp(name.at + name.length - 3, "_sm", 3) == 0)) {
        memcpy(lane, name.at + name.length - 2, 2);
        name.length -= 3;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (nw_imp_is(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

/* "memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)" */
static void take_title(struct reading *reading, struct nw_slice title)
{
    const struct kind *kind = reading->kind;
    const bool second = nw_imp_find(title, "Read2 ") != NULL ||
                        nw_imp_find(title, "Write2 ") != NULL ||
                        nw_imp_find(title, "Total ") != NULL;
    const bool first =
        nw_imp_find(title, "Read1 ") != NULL || nw_imp_find(title, "Write1 ") != NULL;

    reading->matrix = (struct nw_imp_matrix){0};
    reading->sum = 0;
    reading->matrix_line = reading->imp.line;
    /* Without these words: copy engines reported the measured stream, kernels the sum of both. */
    reading->ambiguous = kind != NULL && kind->who == PAIR &&
                         strstr(kind->collective, "_both") != NULL && !first &&
                         strcmp(reading->lane, "sm") == 0;
    reading->wanted = kind != NULL && !second && !reading->ambiguous;
}

static nw_rc add_cell(struct reading *reading, int row, int column, double value, size_t line)
{
    const struct kind *kind = reading->kind;
    struct nw_record *record;

    if (!(value > 0) || (kind->who == PAIR && row == column)) /* 0.00: not measured */
        return NW_OK;
    NW_TRY(nw_imp_record(&reading->imp, kind->case_name, kind->collective, reading->lane, line,
                         &record));
    record->host_count = 1;
    record->rank_count = kind->who == PAIR ? 2 : kind->who == ONE_GPU ? 1 : reading->matrix.columns;
    record->peer_a = kind->who == PAIR ? row : column;
    if (kind->who == PAIR)
        record->peer_b = column;
    if (kind->latency) {
        nw_imp_set_time(record, value);
        return NW_OK;
    }
    record->bytes = reading->bytes;
    nw_imp_set_rate(record, value);
    return NW_OK;
}

static nw_rc take_row(struct reading *reading)
{
    const struct nw_imp_matrix *matrix = &reading->matrix;

    for (int i = 0; i < matrix->columns; i++) {
        if (isfinite(matrix->cell[i].value))
            reading->sum += matrix->cell[i].value;
        if (reading->wanted)
            NW_TRY(add_cell(reading, matrix->row, i, matrix->cell[i].value, reading->imp.line));
    }
    if (matrix->columns > reading->most_columns)
        reading->most_columns = matrix->columns;
    return NW_OK;
}

static void take_sum(struct reading *reading, struct nw_slice text)
{
    struct nw_imp_words words;
    struct nw_printed sum;

    nw_imp_split(text, &words);
    if (words.count < 3 || !nw_imp_number(words.word[2], scale_of(reading->kind), &sum))
        return;
    /* Cells have two decimals, as the sum has. */
    const double slack =
        1.2 * sum.half_unit * (1 + reading->matrix.columns * (reading->matrix.row + 1.0));

    if (reading->matrix.columns > 0 && fabs(sum.value - reading->sum) > slack + 1e-6 * sum.value)
        nw_imp_count(&reading->disagreeing, reading->imp.line, words.word[1]);
    reading->open = false;
    reading->matrix.columns = 0;
}

/* --- text --- */

/* "Device 0: NVIDIA GH200 480GB (00000009:01:00)", and JSON's "0: Tesla T4 (…): (node1)" */
static nw_rc take_device(struct reading *reading, struct nw_slice text)
{
    const char *colon = memchr(text.at, ':', text.length);
    const char *open = text.length > 0 ? memmem(text.at, text.length, " (", 2) : NULL;
    struct nw_slice model, pci;
    uint64_t index;

    if (colon == NULL || open == NULL || open < colon ||
        !nw_imp_u64((struct nw_slice){text.at, (size_t)(colon - text.at)}, &index) || index > 1000)
        return NW_OK;
    model = (struct nw_slice){colon + 1, (size_t)(open - colon - 1)};
    pci = (struct nw_slice){open + 2, text.length - (size_t)(open + 2 - text.at)};
    const char *end = memchr(pci.at, ')', pci.length);

    pci.length = end != NULL ? (size_t)(end - pci.at) : 0;
    return nw_imp_gpu(&reading->imp, (int)index, model, pci);
}

static void take_command(struct reading *reading, struct nw_slice text)
{
    static const char *const names[] = {" -b ", " --bufferSize ", " --bufferSize="};
    struct nw_imp_words words;
    uint64_t mib;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        nw_imp_split(nw_imp_behind(text, names[i]), &words);
        if (words.count > 0 && nw_imp_u64(words.word[0], &mib) && mib > 0 && mib < 1 << 20) {
            reading->bytes = mib << 20;
            reading->bytes_said = true;
        }
    }
}

static nw_rc take_version(struct reading *reading, struct nw_slice version)
{
    struct nw_context *context = &reading->imp.run->context;

    if (version.length > 0 && version.at[0] == 'v')
        version = (struct nw_slice){version.at + 1, version.length - 1};
    nw_imp_copy(context->tool_version, sizeof context->tool_version, version);
    return NW_OK;
}

static void begin_test(struct reading *reading, struct nw_slice name)
{
    if (name.length > 0 && name.at[name.length - 1] == '.')
        name.length--;
    reading->kind = kind_of(name, reading->lane);
    reading->open = true;
    reading->wanted = false;
    reading->matrix.columns = 0;
    if (reading->kind == NULL)
        nw_imp_count(&reading->unknown, reading->imp.line, name);
}

static void begin_matrix(struct reading *reading, const struct nw_imp_matrix *matrix)
{
    reading->matrix = *matrix;
    reading->matrix.scale = scale_of(reading->kind);
    if (reading->ambiguous)
        nw_imp_count(&reading->undirected, reading->imp.line, reading->imp.text);
}

static nw_rc take_line(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;
    const struct nw_slice text = nw_imp_clean(imp->text);
    struct nw_slice corner;
    struct nw_imp_matrix matrix;

    if (imp->whole && nw_imp_starts(text, "nvbandwidth Version:"))
        return take_version(reading, nw_imp_behind(text, ":"));
    if (imp->whole && nw_imp_starts(text, "Device "))
        return take_device(reading, nw_imp_behind(text, "Device "));
    if (imp->whole && nw_imp_starts(text, "Running "))
        begin_test(reading, nw_imp_behind(text, "Running "));
    else if (nw_imp_starts(text, "memcpy ") || nw_imp_starts(text, "memory latency "))
        take_title(reading, imp->whole ? text : (struct nw_slice){text.at, 0});
    else if (nw_imp_starts(text, "SUM ") || nw_imp_starts(text, "&&&& PERF "))
        take_sum(reading, imp->whole ? nw_imp_behind(text, text.at[0] == '&' ? "&&&& " : "")
                                     : (struct nw_slice){text.at, 0});
    else if (nw_imp_starts(text, "Waived"))
        reading->waived++;
    else if (nw_imp_starts(text, "Error") || nw_imp_starts(text, "[CU"))
        nw_imp_count(&imp->failed, imp->line, text);
    else if (nw_imp_find(text, "nvbandwidth ") != NULL)
        take_command(reading, text);
    else if (reading->open && reading->matrix.columns == 0 &&
             nw_imp_matrix_header(imp, text, &matrix, &corner))
        begin_matrix(reading, &matrix);
    else if (reading->open && nw_imp_matrix_row(imp, text, &reading->matrix))
        return take_row(reading);
    return NW_OK;
}

static nw_rc read_text(struct reading *reading)
{
    while (nw_imp_next(&reading->imp))
        NW_TRY(take_line(reading));
    reading->imp.run->context.complete = !reading->open;
    return NW_OK;
}

/* --- JSON --- */

static nw_rc take_json_matrix(struct reading *reading, const json_t *rows, size_t line)
{
    const size_t count = json_array_size(rows);
    const size_t columns = json_array_size(json_array_get(rows, 0));
    size_t taken = count;

    if (columns > NW_IMP_MATRIX || count > 3 * NW_IMP_MATRIX)
        return NW_OK;
    reading->matrix.columns = (int)columns;
    /* The three matrices of a test stand under each other, and only the last one's title is kept.
     */
    if (reading->kind->who == PAIR && count == 3 * columns) {
        taken = columns;
    } else if (reading->ambiguous && count > 0) {
        nw_imp_count(&reading->undirected, line, nw_imp_slice(""));
        return NW_OK;
    }
    if (reading->most_columns < (int)columns)
        reading->most_columns = (int)columns;
    for (size_t i = 0; i < taken; i++)
        for (size_t k = 0; k < columns; k++) {
            const json_t *cell = json_array_get(json_array_get(rows, i), k);
            const char *text = json_string_value(cell);
            const int scale = scale_of(reading->kind);
            struct nw_printed number = {
                json_is_number(cell) ? json_number_value(cell) * pow(10, scale) : NAN, NAN};

            if (text != NULL && !nw_imp_number(nw_imp_slice(text), scale, &number))
                number.value = NAN;
            NW_TRY(add_cell(reading, (int)i, (int)k, number.value, line));
        }
    return NW_OK;
}

static nw_rc take_testcase(struct reading *reading, const json_t *test, struct nw_imp_place *place)
{
    const char *name = nw_imp_json_text(test, "name"), *status = nw_imp_json_text(test, "status");
    const char *title = nw_imp_json_text(test, "bandwidth_description");

    if (name == NULL)
        return NW_OK;
    const size_t line = nw_imp_json_line(&reading->imp, name, place);

    reading->imp.line = line;
    begin_test(reading, nw_imp_slice(name));
    take_title(reading, nw_imp_slice(title != NULL ? title : ""));
    if (status != NULL && strcmp(status, "Waived") == 0)
        reading->waived++;
    else if (status != NULL && strcmp(status, "Passed") != 0)
        nw_imp_count(&reading->imp.failed, line, nw_imp_slice(status));
    return reading->kind != NULL
               ? take_json_matrix(reading, json_object_get(test, "bandwidth_matrix"), line)
               : NW_OK;
}

static nw_rc read_document(struct reading *reading, const json_t *root)
{
    const json_t *top = json_object_get(root, "nvbandwidth"), *item;
    const char *version = nw_imp_json_text(top, "version"), *error = nw_imp_json_text(top, "error");
    struct nw_imp_place place = {0};
    size_t index;

    NW_TRY(take_version(reading, nw_imp_slice(version != NULL ? version : "")));
    json_array_foreach(json_object_get(top, "GPU Device list"), index, item)
    {
        const char *text = json_string_value(item);

        NW_TRY(take_device(reading, nw_imp_slice(text != NULL ? text : "")));
    }
    if (error != NULL)
        nw_imp_count(&reading->imp.failed, 1, nw_imp_slice(error));
    json_array_foreach(json_object_get(top, "testcases"), index, item)
        NW_TRY(take_testcase(reading, item, &place));
    reading->imp.run->context.complete = error == NULL;
    return NW_OK;
}

static nw_rc read_json(struct reading *reading)
{
    json_t *root;
    size_t line;

    NW_TRY(nw_imp_json(reading->imp.data, reading->imp.length, reading->imp.path, "nvbandwidth",
                       &root, &line));
    const nw_rc rc = read_document(reading, root);

    json_decref(root);
    return rc;
}

/* --- what is missing or misleading --- */

static nw_rc tell(const struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;
    const struct nw_context *context = &imp->run->context;

    if (imp->run->record_count > 0 && !reading->bytes_said)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "size-assumed", 0, NULL,
                           "the log does not say how much a copy moves; nvbandwidth's default of "
                           "512 MiB is taken (the rates do not depend on it)"));
    if (!context->complete && imp->run->record_count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "run-incomplete", reading->matrix_line,
                           "import the whole log",
                           "the last matrix has no sum behind it: its rows, and further tests, may "
                           "be missing"));
    if (reading->disagreeing.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "columns-disagree", reading->disagreeing.line,
                           "do not use these matrices: a log that nvbandwidth wrote does not "
                           "contradict itself",
                           "matrices that do not add up to the sum printed below them: %zu, the "
                           "first of %s",
                           reading->disagreeing.count, reading->disagreeing.text));
    if (context->rank_count > 0 && reading->most_columns > context->rank_count)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "columns-disagree", reading->matrix_line,
                           "find out which GPUs these are before you use the rates",
                           "a matrix has %d columns, but the GPUs listed are %d",
                           reading->most_columns, context->rank_count));
    if (reading->undirected.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "direction-unknown", reading->undirected.line,
                           "run it with nvbandwidth 0.5 or later, which names both directions",
                           "matrices of bidirectional copies by kernels are left out: they do not "
                           "say whether they have one direction or the sum of both"));
    if (reading->unknown.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "test-unknown", reading->unknown.line, NULL,
                           "tests that are not known here are left out: %zu, the first is %s",
                           reading->unknown.count, reading->unknown.text));
    if (reading->waived > 0)
        NW_TRY(
            nw_imp_tell(imp, NW_FINDING_INFO, "tests-waived", 0,
                        "nodeworth topo says which GPUs reach each other's memory",
                        "tests that nvbandwidth waived, because this machine cannot do them: %zu",
                        reading->waived));
    return NW_OK;
}

nw_rc nw_nvbandwidth_read(const char *data, size_t length, const char *path,
                          const struct nw_import_options *options, struct nw_results *results)
{
    struct reading reading = {.imp = nw_imp_open(data, length, path, results),
                              .bytes = DEFAULT_BYTES};

    (void)options;
    NW_TRY(nw_imp_begin(&reading.imp, "nvbandwidth"));
    NW_TRY(nw_imp_has(data, length, "\"testcases\"") ? read_json(&reading) : read_text(&reading));
    NW_TRY(tell(&reading));
    return nw_imp_close(&reading.imp, "no test has a matrix of results here; a list of tests (-l) "
                                      "is no measurement");
}

int nw_nvbandwidth_recognise(const char *data, size_t length)
{
    if (nw_imp_has(data, length, "\"nvbandwidth\"") && nw_imp_has(data, length, "\"testcases\""))
        return 95;
    if (nw_imp_has(data, length, "nvbandwidth Version:"))
        return 95;
    if (nw_imp_has(data, length, "memcpy CE ") || nw_imp_has(data, length, "memcpy SM "))
        return nw_imp_has(data, length, "PU(column)") ? 85 : 0;
    return 0;
}
