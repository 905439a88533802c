/* p2pBandwidthLatencyTest of NVIDIA's CUDA samples (Samples/5_Domain_Specific, its .cu). A matrix
 * becomes a record per pair.
 *
 * The row's GPU writes to (or, titled "P2P Reads", reads from) the column's. Bidirectional matrices
 * have the sum of both ways. The diagonal is a GPU's own memory, with the read and the write
 * counted both. "P2P=Enabled" says what was asked for, not what is used: pairs without access go
 * through host memory all the same.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/import_kit.h"
#include "results/importers.h"

/* numElems = 10000000 ints, where --numElems is not given; a latency copies one int4. */
#define DEFAULT_BYTES UINT64_C(40000000)
#define LATENCY_BYTES 16
/* Enabled within 10 % of disabled is the same way; direct ones are half as fast again or more. */
#define SAME_WAY 0.10
/* A GPU whose pairs are this far below the others' in the middle. */
#define SLOW_GPU 0.93

enum what { NOTHING, ACCESS, ONE_WAY, BOTH_WAYS, LATENCY };

struct matrix {
    enum what what;
    bool enabled, reads;
    size_t line;                               /* of the title */
    int count;                                 /* columns */
    int rows;                                  /* highest row that was read + 1 */
    double cell[NW_IMP_MATRIX][NW_IMP_MATRIX]; /* bytes/s, ns */
    size_t row_line[NW_IMP_MATRIX];
};

struct reading {
    struct nw_imp imp;
    struct nw_imp_matrix under_way;
    struct matrix now, disabled;                      /* the latest without P2P, of the same kind */
    signed char access[NW_IMP_MATRIX][NW_IMP_MATRIX]; /* 1 can, -1 cannot, 0 not said */
    bool titled;                                      /* a title was seen */
    bool headless;                                    /* rows stand before the first one */
    size_t headless_line;
    bool ended;
    bool kernels, size_said;
    uint64_t bytes;
    size_t cut_line;
    struct nw_imp_tally denied;
};

static void clear(struct matrix *matrix)
{
    *matrix = (struct matrix){.what = NOTHING};
    for (int i = 0; i < NW_IMP_MATRIX; i++)
        for (int k = 0; k < NW_IMP_MATRIX; k++)
            matrix->cell[i][k] = NAN;
}

static bool has_pair(const struct matrix *matrix, int row, int column)
{
    return row != column && matrix->cell[row][column] > 0;
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Of the pairs of a GPU, of all (-1), or of the diagonal (-2); NAN: there are none. */
static double median_of(const struct matrix *matrix, int gpu)
{
    double values[NW_IMP_MATRIX * NW_IMP_MATRIX];
    size_t count = 0;

    for (int i = 0; i < matrix->rows; i++)
        for (int k = 0; k < matrix->count; k++)
            if (gpu == -2 ? i == k && matrix->cell[i][k] > 0
                          : has_pair(matrix, i, k) && (gpu == -1 || i == gpu || k == gpu))
                values[count++] = matrix->cell[i][k];
    qsort(values, count, sizeof *values, by_value);
    return count > 0 ? values[count / 2] : NAN;
}

/* --- what is misleading in a matrix --- */

/* P2P was asked for and makes no difference. */
static bool is_same_way(const struct matrix *enabled, const struct matrix *disabled)
{
    double ratios[NW_IMP_MATRIX * NW_IMP_MATRIX];
    size_t count = 0;

    if (!enabled->enabled || disabled->what != enabled->what || disabled->count != enabled->count)
        return false;
    for (int i = 0; i < enabled->rows; i++)
        for (int k = 0; k < enabled->count; k++)
            if (has_pair(enabled, i, k) && has_pair(disabled, i, k))
                ratios[count++] = enabled->cell[i][k] / disabled->cell[i][k];
    qsort(ratios, count, sizeof *ratios, by_value);
    return count >= 2 && fabs(ratios[count / 2] - 1) < SAME_WAY;
}

static nw_rc tell_slow_gpu(const struct reading *reading)
{
    const struct matrix *matrix = &reading->now;
    const double all = median_of(matrix, -1);
    char slow[32], usual[32];

    for (int gpu = 0; matrix->what != LATENCY && matrix->count > 2 && gpu < matrix->count; gpu++) {
        const double own = median_of(matrix, gpu);

        if (!(own < SLOW_GPU * all))
            continue;
        NW_TRY(nw_imp_tell(&reading->imp, NW_FINDING_WARN, "p2p-slow", matrix->line,
                           "compare its slot, its link (nvidia-smi -q, under load) and its NUMA "
                           "node with the others'",
                           "GPU %d is slower with all others than they are with each other: %s "
                           "GB/s against %s as printed",
                           gpu, nw_format_sig(slow, own / 1e9, 4),
                           nw_format_sig(usual, all / 1e9, 4)));
    }
    return NW_OK;
}

static nw_rc tell_warm_up(const struct reading *reading)
{
    const struct matrix *matrix = &reading->now;
    const double usual = median_of(matrix, -2), first = matrix->cell[0][0];
    char printed[32], others[32];

    if (matrix->enabled || matrix->what != ONE_WAY || matrix->count < 2 || !(first < 0.7 * usual))
        return NW_OK;
    return nw_imp_tell(&reading->imp, NW_FINDING_INFO, "warm-up", matrix->row_line[0], NULL,
                       "the first cell, %s GB/s of GPU 0's own memory, is the start-up of the "
                       "first copy (the others have %s); it is not used",
                       nw_format_sig(printed, first / 1e9, 4),
                       nw_format_sig(others, usual / 1e9, 4));
}

/* --- records --- */

static const char *lane_of(const struct reading *reading, int row, int column, bool same_way)
{
    if (!reading->now.enabled || same_way || reading->access[row][column] < 0)
        return "staged";
    return reading->kernels ? "sm" : "ce";
}

static nw_rc add_pair(const struct reading *reading, int row, int column, bool same_way)
{
    const struct matrix *matrix = &reading->now;
    const char *collective = matrix->what == LATENCY     ? "latency"
                             : matrix->what == BOTH_WAYS ? "copy_both"
                             : matrix->reads             ? "read"
                                                         : "write";
    const double printed = matrix->cell[row][column];
    struct nw_record *record;

    NW_TRY(nw_imp_record(&reading->imp, "p2p", collective, lane_of(reading, row, column, same_way),
                         matrix->row_line[row], &record));
    record->rank_count = 2;
    record->host_count = 1;
    record->peer_a = row;
    record->peer_b = column;
    if (matrix->what == LATENCY) {
        record->bytes = LATENCY_BYTES;
        record->time_ns = nw_stats_single(printed); /* a rate of 16 bytes says nothing */
        return NW_OK;
    }
    record->bytes = reading->bytes;
    nw_imp_set_rate(record, matrix->what == BOTH_WAYS ? printed / 2 : printed);
    return NW_OK;
}

static nw_rc add_own_memory(const struct reading *reading, int gpu)
{
    const struct matrix *matrix = &reading->now;
    struct nw_record *record;

    if (!matrix->enabled || matrix->what != ONE_WAY || matrix->reads ||
        !(matrix->cell[gpu][gpu] > 0))
        return NW_OK;
    NW_TRY(nw_imp_record(&reading->imp, "d2d", "copy", "ce", matrix->row_line[gpu], &record));
    record->rank_count = 1;
    record->host_count = 1;
    record->peer_a = gpu;
    record->bytes = reading->bytes;
    nw_imp_set_rate(record, matrix->cell[gpu][gpu] / 2);
    return NW_OK;
}

static nw_rc tell_same_way(const struct reading *reading)
{
    char with[32], without[32];

    return nw_imp_tell(&reading->imp, NW_FINDING_WARN, "p2p-off", reading->now.line,
                       "nvidia-smi topo -p2p r says why (the driver, ACS or the IOMMU, the "
                       "chipset); nodeworth topo names ACS",
                       "\"P2P=Enabled\" is as fast as disabled (%s GB/s, %s): the copies go "
                       "through host memory, whatever the title says",
                       nw_format_sig(with, median_of(&reading->now, -1) / 1e9, 3),
                       nw_format_sig(without, median_of(&reading->disabled, -1) / 1e9, 3));
}

static nw_rc close_matrix(struct reading *reading)
{
    struct matrix *matrix = &reading->now;
    const bool bandwidth = matrix->what == ONE_WAY || matrix->what == BOTH_WAYS;
    const bool same_way = bandwidth && is_same_way(matrix, &reading->disabled);

    reading->under_way.columns = 0;
    if (matrix->what >= ONE_WAY) {
        if (same_way)
            NW_TRY(tell_same_way(reading));
        for (int i = 0; i < matrix->rows; i++) {
            NW_TRY(add_own_memory(reading, i));
            for (int k = 0; k < matrix->count; k++)
                if (has_pair(matrix, i, k))
                    NW_TRY(add_pair(reading, i, k, same_way));
        }
        NW_TRY(tell_warm_up(reading));
        if (matrix->enabled)
            NW_TRY(tell_slow_gpu(reading));
        if (matrix->rows < matrix->count && reading->cut_line == 0)
            reading->cut_line = matrix->line;
    }
    if (bandwidth && !matrix->enabled)
        reading->disabled = *matrix;
    clear(matrix);
    return NW_OK;
}

/* --- lines --- */

static bool is_title(struct nw_slice text)
{
    return nw_imp_find(text, "Matrix") != NULL &&
           (nw_imp_find(text, "P2P=") != NULL || nw_imp_starts(text, "P2P Connectivity"));
}

static nw_rc take_title(struct reading *reading, struct nw_slice text)
{
    struct matrix *now = &reading->now;
    const bool both = nw_imp_find(text, "Bidirectional") != NULL;

    /* Rows before the first title: the program's order says what they were. */
    if (reading->headless && both && nw_imp_find(text, "Enabled") != NULL) {
        reading->disabled = *now;
        reading->disabled.what = BOTH_WAYS;
    }
    if (reading->headless)
        clear(now);
    reading->headless = false;
    reading->titled = true;
    NW_TRY(close_matrix(reading));
    now->what = nw_imp_starts(text, "P2P Conn")               ? ACCESS
                : nw_imp_find(text, "Latency") != NULL        ? LATENCY
                : both                                        ? BOTH_WAYS
                : nw_imp_find(text, "Unidirectional") != NULL ? ONE_WAY
                                                              : NOTHING;
    now->enabled = nw_imp_find(text, "P2P=Enabled") != NULL;
    now->reads = nw_imp_find(text, "P2P Reads") != NULL;
    now->line = reading->imp.line;
    return NW_OK;
}

static void take_row(struct reading *reading)
{
    const struct nw_imp_matrix *row = &reading->under_way;
    struct matrix *now = &reading->now;

    if (row->row >= NW_IMP_MATRIX)
        return;
    for (int i = 0; i < row->columns; i++) {
        if (now->what == ACCESS)
            reading->access[row->row][i] = row->cell[i].value > 0 ? 1 : -1;
        else
            now->cell[row->row][i] = row->cell[i].value;
    }
    now->count = row->columns;
    now->rows = row->row + 1 > now->rows ? row->row + 1 : now->rows;
    now->row_line[row->row] = reading->imp.line;
}

/* "Device: 5, NVIDIA GeForce RTX 3090, pciBusID: d, pciDeviceID: 0, pciDomainID:0", in hex. */
static nw_rc take_device(const struct reading *reading, struct nw_slice text)
{
    const char *comma = memchr(text.at, ',', text.length), *bus = nw_imp_find(text, ", pciBusID: ");
    char address[48];
    uint64_t index;

    if (comma == NULL || bus == NULL || bus < comma ||
        !nw_imp_u64((struct nw_slice){text.at, (size_t)(comma - text.at)}, &index) || index > 1000)
        return NW_OK;
    snprintf(address, sizeof address, "%04lx:%02lx:%02lx.0",
             strtoul(nw_imp_behind(text, "pciDomainID:").at, NULL, 16) & 0xffff,
             strtoul(nw_imp_behind(text, "pciBusID: ").at, NULL, 16) & 0xff,
             strtoul(nw_imp_behind(text, "pciDeviceID: ").at, NULL, 16) & 0xff);
    return nw_imp_gpu(&reading->imp, (int)index,
                      (struct nw_slice){comma + 1, (size_t)(bus - comma - 1)},
                      nw_imp_slice(address));
}

/* "Device=0 CANNOT Access Peer Device=2" */
static void take_access(struct reading *reading, struct nw_slice text)
{
    const bool can = nw_imp_find(text, " CAN ") != NULL;
    const struct nw_slice from = nw_imp_behind(text, "Device="),
                          to = nw_imp_behind(text, "Peer Device=");
    struct nw_imp_words words;
    uint64_t a, b;

    nw_imp_split(from, &words);
    if (words.count == 0 || !nw_imp_u64(words.word[0], &a) || !nw_imp_u64(to, &b) ||
        a >= NW_IMP_MATRIX || b >= NW_IMP_MATRIX)
        return;
    reading->access[a][b] = can ? 1 : -1;
    if (!can)
        nw_imp_count(&reading->denied, reading->imp.line, text);
}

static void take_command(struct reading *reading, struct nw_slice text)
{
    struct nw_imp_words words;
    uint64_t count;

    reading->kernels = reading->kernels || nw_imp_find(text, "sm_copy") != NULL;
    nw_imp_split(nw_imp_behind(text, "numElems="), &words);
    if (words.count > 0 && nw_imp_u64(words.word[0], &count) && count > 0 && count < 1 << 30) {
        reading->bytes = 4 * count;
        reading->size_said = true;
    }
}

/* A row before any title and header: the log begins within a matrix. */
static bool begins_headless(const struct reading *reading, struct nw_slice text, int *columns_out)
{
    struct nw_imp_words words;
    uint64_t first;

    if (reading->titled || reading->under_way.columns > 0)
        return false;
    nw_imp_split(text, &words);
    if (words.count < 3 || words.count > NW_IMP_MATRIX || !nw_imp_u64(words.word[0], &first) ||
        first + 2 > (uint64_t)words.count)
        return false;
    for (int i = 1; i < words.count; i++)
        if (memchr(words.word[i].at, '.', words.word[i].length) == NULL)
            return false;
    *columns_out = words.count - 1;
    return true;
}

static void take_matrix_line(struct reading *reading, struct nw_slice text)
{
    struct nw_imp *imp = &reading->imp;
    struct nw_imp_matrix matrix;
    struct nw_slice corner;
    int columns;

    if (nw_imp_matrix_header(imp, text, &matrix, &corner)) {
        /* The second part of a latency matrix is the processor's time to queue the copy. */
        reading->under_way = matrix;
        reading->under_way.scale = reading->now.what == LATENCY ? 3 : 9; /* µs to ns, GB/s to B/s */
        if (nw_imp_is(corner, "CPU"))
            reading->under_way.columns = 0;
        reading->now.line = reading->now.line > 0 ? reading->now.line : imp->line;
        return;
    }
    if (begins_headless(reading, text, &columns)) {
        reading->under_way = (struct nw_imp_matrix){.columns = columns, .scale = 9};
        reading->headless = true;
        reading->headless_line = imp->line;
    }
    if (nw_imp_matrix_row(imp, text, &reading->under_way))
        take_row(reading);
}

static nw_rc take_line(struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;
    const struct nw_slice text = nw_imp_clean(imp->text);

    if (imp->whole && is_title(text))
        return take_title(reading, text);
    if (imp->whole && nw_imp_starts(text, "Device: "))
        return take_device(reading, nw_imp_behind(text, "Device: "));
    if (imp->whole && nw_imp_starts(text, "Device="))
        take_access(reading, text);
    else if (imp->whole && nw_imp_find(text, "p2pBandwidthLatencyTest") != NULL)
        take_command(reading, text);
    else if (imp->whole && nw_imp_find(text, "Cuda failure") != NULL)
        nw_imp_count(&reading->imp.failed, imp->line, text);
    else if (nw_imp_starts(text, "NOTE: The CUDA Samples are not meant"))
        reading->ended = true;
    else
        take_matrix_line(reading, text);
    return NW_OK;
}

/* --- the file --- */

/* A matrix without a title is one way, or the sum of both: only the file's name may tell. */
static nw_rc judge_untitled(struct reading *reading)
{
    struct matrix *now = &reading->now;
    const bool both = strcasestr(reading->imp.path, "bidir") != NULL;

    if (reading->titled || reading->headless || now->rows == 0 || now->what != NOTHING)
        return NW_OK;
    if (!both && strcasestr(reading->imp.path, "unidir") == NULL)
        return nw_imp_tell(&reading->imp, NW_FINDING_FAIL, "direction-unknown", now->line,
                           "import the whole log, with the title above the matrix",
                           "the matrix has no title: whether it is one way or the sum of both is "
                           "not known, so it is not taken");
    now->what = both ? BOTH_WAYS : ONE_WAY;
    now->enabled = true;
    return nw_imp_tell(&reading->imp, NW_FINDING_WARN, "direction-derived", now->line,
                       "import the whole log, with the title above the matrix",
                       both ? "the matrix has no title; that it is the sum of both ways, with P2P, "
                              "follows from the file's name"
                            : "the matrix has no title; that it is one way, with P2P, follows from "
                              "the file's name");
}

static nw_rc tell(const struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;
    const bool any = imp->run->record_count > 0;

    if (reading->denied.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "p2p-off", reading->denied.line,
                           "nvidia-smi topo -p2p r says why; copies of these pairs go through host "
                           "memory",
                           "pairs of GPUs, each way, without access to each other's memory: %zu",
                           reading->denied.count));
    if (reading->headless_line > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "run-incomplete", reading->headless_line,
                           "import the whole log",
                           "the log begins within a matrix; its rows are not taken"));
    if (reading->cut_line > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "run-incomplete", reading->cut_line,
                           "import the whole log", "a matrix has fewer rows than columns"));
    else if (any && !reading->ended)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "run-incomplete", imp->line,
                           "import the whole log",
                           "the log does not reach the end of the test; matrices may be missing"));
    if (any && !reading->size_said)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "size-assumed", 0, NULL,
                           "the log does not say how much a copy moves; the program's own 40 MB is "
                           "taken (the rates do not depend on it)"));
    return NW_OK;
}

nw_rc nw_p2p_read(const char *data, size_t length, const char *path,
                  const struct nw_import_options *options, struct nw_results *results)
{
    struct reading *reading = calloc(1, sizeof *reading);
    nw_rc rc;

    (void)options;
    if (reading == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for its matrices", path);
    reading->imp = nw_imp_open(data, length, path, results);
    reading->bytes = DEFAULT_BYTES;
    clear(&reading->now);
    clear(&reading->disabled);
    rc = nw_imp_begin(&reading->imp, "p2pBandwidthLatencyTest");
    while (rc == NW_OK && nw_imp_next(&reading->imp))
        rc = take_line(reading);
    if (rc == NW_OK)
        rc = judge_untitled(reading);
    if (rc == NW_OK)
        rc = close_matrix(reading);
    if (rc == NW_OK) {
        reading->imp.run->context.complete = reading->ended;
        rc = tell(reading);
    }
    if (rc == NW_OK)
        rc = nw_imp_close(&reading->imp, "no matrix of bandwidths or latencies is in the log");
    free(reading);
    return rc;
}

int nw_p2p_recognise(const char *data, size_t length)
{
    if (nw_imp_has(data, length, "P2P (Peer-to-Peer) GPU Bandwidth Latency Test") ||
        nw_imp_has(data, length, "directional P2P=") ||
        nw_imp_has(data, length, "P2P=Enabled Lat") || nw_imp_has(data, length, "P2P=Disabled Lat"))
        return 95;
    return nw_imp_has(data, length, "D\\D ") ? 80 : 0;
}
