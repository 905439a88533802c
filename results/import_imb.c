/* The Intel MPI Benchmarks (https://github.com/intel/mpi-benchmarks, src_c/IMB_output.c): a title
 * "# Benchmarking Allreduce", the number of processes, a header with units, rows.
 *
 * Mbytes/sec are 10^6 bytes/s since 2018, 2^20 before; which one follows from size and time.
 * Sendrecv counts both ways of a process, Exchange four messages. Sizes of allgather, alltoall,
 * gather and scatter are of one process's part; ours are of all parts together.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "collectives/coll.h"
#include "results/import_kit.h"
#include "results/importers.h"

static const struct nw_imp_title titles[] = {
    {"#bytes", NW_IMP_BYTES, 0, 1},      {"#repetitions", NW_IMP_ITERATIONS, 0, 1},
    {"t[usec]", NW_IMP_TIME, 3, 1},      {"t_min[usec]", NW_IMP_LEAST, 3, 1},
    {"t_max[usec]", NW_IMP_MOST, 3, 1},  {"t_avg[usec]", NW_IMP_TIME, 3, 1},
    {"t_pure[usec]", NW_IMP_TIME, 3, 1}, {"t_ovrl[usec]", NW_IMP_OVERALL, 3, 1},
    {"t_CPU[usec]", NW_IMP_OTHER, 0, 1}, {"overlap[%]", NW_IMP_OTHER, 0, 1},
    {"Mbytes/sec", NW_IMP_RATE, 6, 1},   {"Msg/sec", NW_IMP_MESSAGES, 0, 1},
    {"defects", NW_IMP_OTHER, 0, 1},     {NULL, NW_IMP_OTHER, 0, 1},
};

static const struct kind {
    const char *name, *case_name, *collective;
    double messages; /* what Mbytes/sec counts of a size; 0: it has no such column */
} kinds[] = {
    {"PingPong", "mpi", "latency", 1},
    {"PingPongSpecificSource", "mpi", "latency", 1},
    {"PingPongAnySource", "mpi", "latency", 1},
    {"PingPing", "mpi", "pingping", 1},
    {"PingPingSpecificSource", "mpi", "pingping", 1},
    {"PingPingAnySource", "mpi", "pingping", 1},
    {"Sendrecv", "coll", "sendrecv", 2},
    {"Exchange", "mpi", "exchange", 4},
    {"Uniband", "mpi", "stream", 1},
    {"Biband", "mpi", "stream_both", 2},
    {"Allreduce", "coll", "all_reduce", 0},
    {"Reduce", "coll", "reduce", 0},
    {"Reduce_local", "mpi", "reduce_local", 0},
    {"Reduce_scatter", "coll", "reduce_scatter", 0},
    {"Reduce_scatter_block", "coll", "reduce_scatter", 0},
    {"Allgather", "coll", "all_gather", 0},
    {"Allgatherv", "coll", "all_gather", 0},
    {"Gather", "coll", "gather", 0},
    {"Gatherv", "coll", "gather", 0},
    {"Scatter", "coll", "scatter", 0},
    {"Scatterv", "coll", "scatter", 0},
    {"Alltoall", "coll", "alltoall", 0},
    {"Alltoallv", "coll", "alltoall", 0},
    {"Bcast", "coll", "broadcast", 0},
    {"Barrier", "mpi", "barrier", 0},
};

struct reading {
    struct nw_imp imp;
    struct nw_imp_columns columns;
    char version[64];
    const struct kind *kind;
    bool multi;
    int processes, groups; /* of one group; groups 0: not said */
    size_t title_line, binary_line, disagree_line, disagree_count;
    bool ended;
};

static nw_rc tell(const struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;

    if (imp->run->record_count == 0)
        return NW_OK;
    if (reading->groups > 1)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "multi-groups", reading->title_line, NULL,
                           "%d groups of %d processes ran at the same time; the times are over all "
                           "groups, a slow one shows only in t_max",
                           reading->groups, reading->processes));
    if (reading->processes == 0 && strcmp(reading->kind->case_name, "coll") == 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "ranks-unknown", reading->title_line,
                           "import the whole log",
                           "the number of processes is not in the log: no bandwidth follows"));
    if (reading->binary_line > 0)
        NW_TRY(
            nw_imp_tell(imp, NW_FINDING_INFO, "binary-megabytes", reading->binary_line, NULL,
                        "this version counts 2^20 bytes as a Mbyte; the rates here are of bytes"));
    if (reading->disagree_count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "columns-disagree", reading->disagree_line,
                           "do not use these rows",
                           "rows whose size, time and Mbytes/sec contradict each other: %zu",
                           reading->disagree_count));
    return NW_OK;
}

static nw_rc close_run(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;

    if (imp->run == NULL)
        return NW_OK;
    imp->run->context.rank_count = reading->processes;
    imp->run->context.complete = imp->run->record_count > 0;
    NW_TRY(tell(reading));
    reading->columns.count = 0;
    return nw_imp_close(imp, "no row follows the benchmark's title");
}

/* "Benchmarking Multi-PingPong" */
static nw_rc take_title(struct reading *reading, struct nw_slice name)
{
    struct nw_imp_words words;
    char text[64];

    NW_TRY(close_run(reading));
    nw_imp_split(name, &words);
    if (words.count == 0)
        return NW_OK;
    nw_imp_copy(text, sizeof text, words.word[0]);
    reading->multi = strncasecmp(text, "Multi-", 6) == 0;
    reading->kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcasecmp(text + (reading->multi ? 6 : 0), kinds[i].name) == 0)
            reading->kind = &kinds[i];
    reading->processes = reading->groups = 0;
    reading->binary_line = reading->disagree_line = reading->disagree_count = 0;
    reading->title_line = reading->imp.line;
    NW_TRY(nw_imp_begin(&reading->imp, "intel-mpi-benchmarks"));
    snprintf(reading->imp.run->context.backend, 16, "mpi");
    memcpy(reading->imp.run->context.tool_version, reading->version, sizeof reading->version);
    return reading->kind != NULL
               ? NW_OK
               : nw_imp_tell(&reading->imp, NW_FINDING_INFO, "test-unknown", reading->imp.line,
                             NULL, "the benchmark %s has no counterpart here and is left out",
                             text);
}

static void take_processes(struct reading *reading, struct nw_slice text)
{
    struct nw_imp_words words;
    uint64_t number;

    nw_imp_split(nw_imp_behind(text, "#processes = "), &words);
    if (words.count > 0 && nw_imp_u64(words.word[0], &number) && number < 10000000)
        reading->processes = (int)number;
    nw_imp_split(nw_imp_behind(text, "# ( "), &words); /* "60 groups of 2 processes each …" */
    if (words.count > 4 && nw_imp_is(words.word[1], "groups") &&
        nw_imp_u64(words.word[0], &number) && number < 10000000) {
        reading->groups = (int)number;
        if (nw_imp_u64(words.word[3], &number) && number < 10000000)
            reading->processes = (int)number;
    }
}

/* The printed rate, one message of the size each; where it has too few digits from the time. */
static double rate_of(struct reading *reading, const struct nw_imp_row *row)
{
    const struct nw_printed *printed = &row->value[NW_IMP_RATE];
    const double most = row->value[NW_IMP_MOST].value; /* what the tool divides by */
    const double time = most > 0 ? most : row->value[NW_IMP_TIME].value;
    const double half =
        most > 0 ? row->value[NW_IMP_MOST].half_unit : row->value[NW_IMP_TIME].half_unit;
    const double computed = row->value[NW_IMP_BYTES].value / (time * 1e-9);
    const double one = printed->value / reading->kind->messages;
    const double slack = 1.1 * (printed->half_unit / printed->value + half / time) + 1e-3;

    if (!(printed->value > 0) || !(time > 0))
        return NAN;
    if (fabs(one / computed - 1) <= slack)
        return printed->value >= 2000 * printed->half_unit ? one : round(computed);
    if (fabs(one * 1048576e-6 / computed - 1) <= slack) {
        if (reading->binary_line == 0)
            reading->binary_line = reading->imp.line;
        return one * 1048576e-6;
    }
    if (reading->disagree_count++ == 0)
        reading->disagree_line = reading->imp.line;
    return NAN;
}

static nw_rc add_row(struct reading *reading, const struct nw_imp_row *row)
{
    const struct kind *kind = reading->kind;
    const struct nw_coll *coll = nw_coll_find(kind->collective);
    const double bytes = row->value[NW_IMP_BYTES].value, time = row->value[NW_IMP_TIME].value;
    struct nw_record *record;

    if (!(time > 0) || bytes > 1e15)
        return NW_OK;
    NW_TRY(nw_imp_record(&reading->imp, kind->case_name, kind->collective, "host",
                         reading->imp.line, &record));
    record->rank_count = reading->processes;
    snprintf(record->memory, sizeof record->memory, "host");
    if (reading->multi)
        snprintf(record->features, sizeof record->features, "multi");
    record->bytes = nw_imp_whole_bytes(record, bytes);
    if (kind->messages > 0 && nw_imp_column(&reading->columns, NW_IMP_RATE))
        record->algbw_bytes_per_s = rate_of(reading, row);
    else if (record->bytes > 0 && (coll == NULL || reading->processes > 0))
        record->algbw_bytes_per_s = round((double)record->bytes / (time * 1e-9));
    record->time_ns = nw_stats_single(time);
    record->time_ns.mean = time;
    if (row->value[NW_IMP_LEAST].value >= 0)
        record->time_ns.min = row->value[NW_IMP_LEAST].value;
    if (row->value[NW_IMP_MOST].value >= 0)
        record->time_ns.max = row->value[NW_IMP_MOST].value;
    nw_imp_set_busbw(record);
    return NW_OK;
}

static nw_rc take_line(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;
    const struct nw_slice text = nw_imp_clean(imp->text);
    struct nw_imp_row row;

    if (imp->whole && nw_imp_starts(text, "# Benchmarking "))
        return take_title(reading, nw_imp_behind(text, "# Benchmarking "));
    if (imp->run != NULL && nw_imp_row(imp, text, &reading->columns, &row))
        return reading->kind != NULL ? add_row(reading, &row) : NW_OK;
    if (!imp->whole)
        return NW_OK;
    if (nw_imp_find(text, "MPI Benchmarks ") != NULL && text.at[0] == '#') {
        struct nw_slice version = nw_imp_behind(text, "MPI Benchmarks ");
        const char *comma = memchr(version.at, ',', version.length);

        version.length = comma != NULL ? (size_t)(comma - version.at) : version.length;
        nw_imp_copy(reading->version, sizeof reading->version, version);
    } else if (imp->run != NULL) {
        take_processes(reading, text);
        nw_imp_header(text, titles, 3, &reading->columns);
    }
    return NW_OK;
}

nw_rc nw_imb_read(const char *data, size_t length, const char *path,
                  const struct nw_import_options *options, struct nw_results *results)
{
    struct reading reading = {.imp = nw_imp_open(data, length, path, results)};

    (void)options;
    while (nw_imp_next(&reading.imp))
        NW_TRY(take_line(&reading));
    return close_run(&reading);
}

int nw_imb_recognise(const char *data, size_t length)
{
    if (nw_imp_has(data, length, "# Benchmarking "))
        return nw_imp_has(data, length, "#repetitions") ? 95 : 60;
    return 0;
}
