/* The OSU micro-benchmarks (OMB 5 to 7, https://mvapich.cse.ohio-state.edu/benchmarks/): a title
 * "# OSU MPI-CUDA Allreduce Latency Test v7.5", a header with units, rows.
 *
 * MB/s are 10^6 bytes/s. A latency between two is half of the way there and back. Sizes of
 * allgather, alltoall, gather and scatter are of one rank's part; ours are of all parts together.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collectives/coll.h"
#include "results/import_kit.h"
#include "results/importers.h"

#define UNEVEN 1.5 /* slowest rank over the mean of all, at sizes whose time is no noise */

static const struct nw_imp_title titles[] = {
    {"Size", NW_IMP_BYTES, 0, 1},
    {"Bandwidth (MB/s)", NW_IMP_RATE, 6, 1},
    {"MB/s", NW_IMP_RATE, 6, 1},
    {"Messages/s", NW_IMP_MESSAGES, 0, 1},
    {"Latency (us)", NW_IMP_TIME, 3, 1},
    {"Avg Latency(us)", NW_IMP_TIME, 3, 1},
    {"Avg Lat(us)", NW_IMP_TIME, 3, 1},
    {"Min Latency(us)", NW_IMP_LEAST, 3, 1},
    {"Max Latency(us)", NW_IMP_MOST, 3, 1},
    {"Min Lat(us)", NW_IMP_LEAST, 3, 1},
    {"Max Lat(us)", NW_IMP_MOST, 3, 1},
    {"P50 Tail Lat(us)", NW_IMP_MEDIAN, 3, 1},
    {"P99 Tail Lat(us)", NW_IMP_P99, 3, 1},
    {"Overall(us)", NW_IMP_OVERALL, 3, 1},
    {"Compute(us)", NW_IMP_OTHER, 0, 1},
    {"Pure Comm.(us)", NW_IMP_TIME, 3, 1},
    {"Overlap(%)", NW_IMP_OTHER, 0, 1},
    {"Iterations", NW_IMP_ITERATIONS, 0, 1},
    {"Validation", NW_IMP_CHECK, 0, 1},
    {NULL, NW_IMP_OTHER, 0, 1},
};

/* In the order looked for: the first whose words the title has. */
static const struct kind {
    const char *words, *case_name, *collective;
    bool both; /* the sum of both ways */
} kinds[] = {
    {"Allreduce Latency", "coll", "all_reduce", false},
    {"Allgather", "coll", "all_gather", false},
    {"All-to-All Personalized Exchange", "coll", "alltoall", false},
    {"Alltoall", "coll", "alltoall", false},
    {"Reduce_scatter", "coll", "reduce_scatter", false},
    {"Broadcast Latency", "coll", "broadcast", false},
    {"Reduce Latency", "coll", "reduce", false},
    {"Gather", "coll", "gather", false},
    {"Scatter", "coll", "scatter", false},
    {"Barrier", "mpi", "barrier", false},
    {"MPI_Put Bi-directional Bandwidth", "mpi", "put_both", true},
    {"MPI_Put Bandwidth", "mpi", "put", false},
    {"MPI_Get Bandwidth", "mpi", "get", false},
    {"MPI_Put Latency", "mpi", "put_latency", false},
    {"MPI_Get latency", "mpi", "get_latency", false},
    {"MPI_Get Latency", "mpi", "get_latency", false},
    {"Bi-Directional Bandwidth", "mpi", "stream_both", true},
    {"Multiple Bandwidth", "mpi", "stream", false},
    {"Bandwidth Test", "mpi", "stream", false},
    {"Bandwidth Benchmark", "mpi", "stream", false},
    {"Latency Test", "mpi", "latency", false},
};

struct reading {
    struct nw_imp imp;
    struct nw_imp_ranks ranks; /* as said so far */
    struct nw_imp_columns columns;
    const struct kind *kind; /* NULL: none known here */
    char unknown[80];
    bool gpu, nonblocking;
    int pairs; /* of "pairs: 4"; 0: not said */
    size_t title_line, wrong_line, uneven_line;
    double best_sum, worst_ratio;
};

static nw_rc tell(struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;
    const bool coll = reading->kind != NULL && strcmp(reading->kind->case_name, "coll") == 0;

    if (reading->unknown[0] != '\0')
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "test-unknown", reading->title_line, NULL,
                           "\"%s\" has no counterpart here and is left out", reading->unknown));
    if (imp->run->record_count == 0)
        return NW_OK;
    if (reading->best_sum > 0)
        NW_TRY(nw_imp_tell_both_ways(imp, reading->title_line, reading->best_sum));
    if (coll && nw_imp_rank_count(&reading->ranks) == 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "ranks-unknown", reading->title_line,
                           "import the log from its command line on",
                           "the log does not say how many ranks there were: no bandwidth follows "
                           "from the times, and sizes of one rank's part stay as they are"));
    if (reading->uneven_line > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "ranks-uneven-time", reading->uneven_line,
                           "nodeworth fleet, or bench, names the slow rank",
                           "the slowest rank took %.1f times as long as the mean that is printed "
                           "first; in a job all wait for it",
                           reading->worst_ratio));
    return reading->wrong_line > 0
               ? nw_imp_tell(imp, NW_FINDING_FAIL, "wrong-data", reading->wrong_line,
                             "do not use these rates: what moved was not the right data",
                             "the validation failed")
               : NW_OK;
}

static nw_rc close_run(struct reading *reading)
{
    if (reading->imp.run == NULL)
        return NW_OK;
    reading->imp.run->context.rank_count = nw_imp_rank_count(&reading->ranks);
    reading->imp.run->context.host_count = nw_imp_host_count(&reading->ranks);
    reading->imp.run->context.complete =
        reading->imp.run->record_count > 0 && reading->imp.failed.count == 0;
    NW_TRY(tell(reading));
    reading->columns.count = 0;
    return nw_imp_close(&reading->imp,
                        "no row follows the title: the test crashed, or the log ends");
}

/* "OSU MPI-CUDA Bandwidth Test v7.5" */
static nw_rc take_title(struct reading *reading, struct nw_slice text)
{
    const char *version = nw_imp_find(text, " v");

    NW_TRY(close_run(reading));
    NW_TRY(nw_imp_begin(&reading->imp, "osu-micro-benchmarks"));
    reading->kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && reading->kind == NULL; i++)
        if (nw_imp_find(text, kinds[i].words) != NULL)
            reading->kind = &kinds[i];
    reading->unknown[0] = '\0';
    if (reading->kind == NULL)
        nw_imp_copy(reading->unknown, sizeof reading->unknown, text);
    if (version != NULL)
        nw_imp_copy(reading->imp.run->context.tool_version, 64,
                    (struct nw_slice){version + 2, text.length - (size_t)(version + 2 - text.at)});
    snprintf(reading->imp.run->context.backend, 16, "%s",
             nw_imp_find(text, "NCCL") != NULL ? "nccl" : "mpi");
    reading->gpu = nw_imp_find(text, "-CUDA") != NULL || nw_imp_find(text, "-ROCM") != NULL ||
                   nw_imp_find(text, "-ROCm") != NULL;
    reading->nonblocking = nw_imp_find(text, "Non-blocking") != NULL;
    reading->title_line = reading->imp.line;
    reading->pairs = 0;
    reading->wrong_line = reading->uneven_line = 0;
    reading->best_sum = reading->worst_ratio = 0;
    return NW_OK;
}

static void set_times(struct reading *reading, const struct nw_imp_row *row,
                      struct nw_record *record)
{
    const double mean = row->value[NW_IMP_TIME].value, most = row->value[NW_IMP_MOST].value;
    const double median = row->value[NW_IMP_MEDIAN].value;

    nw_imp_set_time(record, median > 0 ? median : mean);
    record->time_ns.mean = mean;
    if (isfinite(row->value[NW_IMP_LEAST].value))
        record->time_ns.min = row->value[NW_IMP_LEAST].value;
    if (isfinite(most))
        record->time_ns.max = most;
    record->time_ns.p99 = row->value[NW_IMP_P99].value;
    if (most > UNEVEN * mean && most / mean > reading->worst_ratio) {
        reading->worst_ratio = most / mean;
        reading->uneven_line = reading->imp.line;
    }
}

static nw_rc add_row(struct reading *reading, const struct nw_imp_row *row)
{
    const struct kind *kind = reading->kind;
    const bool coll = strcmp(kind->case_name, "coll") == 0;
    const double rate = row->value[NW_IMP_RATE].value;
    struct nw_record *record;

    if (!(rate > 0) && !(row->value[NW_IMP_TIME].value > 0))
        return NW_OK;
    NW_TRY(nw_imp_record(&reading->imp, kind->case_name, kind->collective,
                         reading->gpu ? "auto" : "host", reading->imp.line, &record));
    record->rank_count = coll || strcmp(kind->collective, "barrier") == 0
                             ? nw_imp_rank_count(&reading->ranks)
                             : 2 * (reading->pairs > 0 ? reading->pairs : 1);
    record->host_count = nw_imp_host_count(&reading->ranks);
    snprintf(record->memory, sizeof record->memory, "%s", reading->gpu ? "gpu" : "host");
    if (reading->nonblocking)
        snprintf(record->features, sizeof record->features, "nonblocking");
    record->stream_count = reading->pairs;
    record->bytes = nw_imp_whole_bytes(record, row->value[NW_IMP_BYTES].value);
    if (rate > 0)
        nw_imp_set_rate(record, kind->both ? rate / 2 : rate);
    else if (coll && record->rank_count == 0) /* what the bytes mean is not known */
        record->time_ns = nw_stats_single(row->value[NW_IMP_TIME].value);
    else
        set_times(reading, row, record);
    if (kind->both)
        reading->best_sum = fmax(reading->best_sum, rate);
    if (row->value[NW_IMP_MESSAGES].value > 0)
        record->messages_per_s = row->value[NW_IMP_MESSAGES].value;
    nw_imp_set_busbw(record);
    if (row->check.length > 0)
        record->wrong_elements = nw_imp_is(row->check, "Pass") ? 0 : 1;
    if (record->wrong_elements > 0 && reading->wrong_line == 0)
        reading->wrong_line = reading->imp.line;
    return NW_OK;
}

static bool is_failure(struct nw_slice text)
{
    return nw_imp_find(text, "Segmentation fault") != NULL ||
           nw_imp_find(text, "MPI_ABORT") != NULL || nw_imp_find(text, "MPI_Abort") != NULL ||
           nw_imp_starts(text, "srun: error:");
}

static nw_rc take_comment(struct reading *reading, struct nw_slice text)
{
    uint64_t pairs;
    struct nw_imp_words words;

    if (nw_imp_find(text, " on HOST (H)") != NULL && nw_imp_find(text, "DEVICE") == NULL)
        reading->gpu = false;
    nw_imp_split(nw_imp_behind(text, "pairs: "), &words);
    if (words.count > 0 && nw_imp_u64(words.word[0], &pairs) && pairs > 0 && pairs < 1000000)
        reading->pairs = (int)pairs;
    nw_imp_header(text, titles, nw_imp_starts(text, "Size") ? 2 : 3, &reading->columns);
    return NW_OK;
}

static nw_rc take_line(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;
    const struct nw_slice text = nw_imp_clean(imp->text);
    struct nw_imp_row row;

    if (imp->whole && nw_imp_starts(text, "# OSU "))
        return take_title(reading, nw_imp_behind(text, "# "));
    if (imp->whole && imp->run != NULL && text.length > 1 && text.at[0] == '#')
        return take_comment(reading, nw_imp_trim((struct nw_slice){text.at + 1, text.length - 1}));
    if (imp->run != NULL && nw_imp_row(imp, text, &reading->columns, &row))
        return reading->kind != NULL ? add_row(reading, &row) : NW_OK;
    if (imp->whole && imp->run != NULL && is_failure(text))
        nw_imp_count(&imp->failed, imp->line, text);
    else if (imp->run != NULL && nw_imp_is_elision(text))
        nw_imp_count(&imp->elided, imp->line, text);
    else if (imp->whole)
        nw_imp_take_ranks(text, &reading->ranks);
    return NW_OK;
}

nw_rc nw_osu_read(const char *data, size_t length, const char *path,
                  const struct nw_import_options *options, struct nw_results *results)
{
    struct reading reading = {.imp = nw_imp_open(data, length, path, results)};

    (void)options;
    while (nw_imp_next(&reading.imp))
        NW_TRY(take_line(&reading));
    return close_run(&reading);
}

int nw_osu_recognise(const char *data, size_t length)
{
    static const char *const marks[] = {"# OSU MPI",  "# OSU NCCL",      "# OSU RCCL",
                                        "# OSU XCCL", "# OSU OpenSHMEM", "# OSU UPC"};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (nw_imp_has(data, length, marks[i]))
            return 95;
    return 0;
}
