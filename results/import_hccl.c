/* hccl_test of Huawei's Ascend toolkit (all_reduce_test and its like; gitcode.com/cann/oam-tools,
 * src/hccl_test): a table of data_size, aveg_time, alg_bandwidth, check_result.
 *
 * Its bandwidth is algorithm bandwidth, size / time in 10^9 bytes/s; no bus factor is in it. Sizes
 * are of all parts together, as ours.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "collectives/coll.h"
#include "results/import_kit.h"
#include "results/importers.h"

static const struct nw_imp_title titles[] = {
    {"data_size(Bytes):", NW_IMP_BYTES, 0, 1},
    {"aveg_time(us):", NW_IMP_TIME, 3, 1},
    {"avg_time(us):", NW_IMP_TIME, 3, 1},
    {"alg_bandwidth(GB/s):", NW_IMP_RATE, 9, 1},
    {"check_result:", NW_IMP_CHECK, 0, 1},
    {"data_size(Bytes)", NW_IMP_BYTES, 0, 1},
    {"aveg_time(us)", NW_IMP_TIME, 3, 1},
    {"avg_time(us)", NW_IMP_TIME, 3, 1},
    {"alg_bandwidth(GB/s)", NW_IMP_RATE, 9, 1},
    {"check_result", NW_IMP_CHECK, 0, 1},
    {NULL, NW_IMP_OTHER, 0, 1},
};

struct command { /* what stands before a table */
    char collective[24], dtype[16], op[16];
    int ranks, per_host;
};

struct reading {
    struct nw_imp imp;
    const char *asked; /* --collective */
    struct command next, now;
    struct nw_imp_columns columns;
    size_t first_row, wrong_line, wrong_count, disagree_line, disagree_count;
};

/* --- the command line --- */

static void take_program(struct nw_slice text, struct command *command)
{
    static const char suffix[] = "_test ";
    const char *end = nw_imp_find(text, suffix), *start = end;
    char name[24];

    while (start != NULL && start > text.at &&
           (islower((unsigned char)start[-1]) || start[-1] == '_'))
        start--;
    if (end == NULL || end == start || end - start >= (ptrdiff_t)sizeof name)
        return;
    nw_imp_copy(name, sizeof name, (struct nw_slice){start, (size_t)(end - start)});
    if (nw_coll_find(name) != NULL || strncmp(name, "alltoall", 8) == 0 ||
        strncmp(name, "all_gather", 10) == 0)
        memcpy(command->collective, name, sizeof name);
}

static void take_type(const char *given, struct command *command)
{
    static const struct {
        const char *given, *name;
    } types[] = {{"fp32", "float"}, {"fp16", "half"}, {"bfp16", "bfloat16"}, {"bf16", "bfloat16"}};

    snprintf(command->dtype, sizeof command->dtype, "%s", given);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(given, types[i].given) == 0)
            snprintf(command->dtype, sizeof command->dtype, "%s", types[i].name);
}

static void take_command(struct reading *reading, struct nw_slice text)
{
    struct command *command = &reading->next;
    struct nw_imp_ranks ranks = {0};
    struct nw_imp_words words;
    char value[16];
    uint64_t number;

    *command = (struct command){.dtype = "float", .op = "sum"}; /* its defaults */
    take_program(text, command);
    nw_imp_take_ranks(text, &ranks);
    command->ranks = nw_imp_rank_count(&ranks);
    nw_imp_split(text, &words);
    for (int i = 0; i + 1 < words.count; i++) {
        nw_imp_copy(value, sizeof value, words.word[i + 1]);
        if (nw_imp_is(words.word[i], "-d"))
            take_type(value, command);
        else if (nw_imp_is(words.word[i], "-o"))
            memcpy(command->op, value, sizeof value);
        else if (nw_imp_is(words.word[i], "-p") && nw_imp_u64(words.word[i + 1], &number) &&
                 number > 0 && number < 1024)
            command->per_host = (int)number;
    }
}

/* --- the table --- */

static nw_rc tell(const struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;
    const struct command *now = &reading->now;
    const struct nw_coll *coll = nw_coll_find(now->collective);

    if (imp->run->record_count == 0)
        return NW_OK;
    if (strcmp(now->collective, "unknown") == 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "collective-unknown", reading->first_row,
                           "say which: --collective all_reduce",
                           "the log does not name its collective (no command line)"));
    if (coll != NULL && now->ranks > 1)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "algorithm-bandwidth", reading->first_row, NULL,
                           "alg_bandwidth is size / time; the bus bandwidth that nccl-tests prints "
                           "is %.4g times that with %d ranks, and is what is compared here",
                           coll->bus_factor(now->ranks), now->ranks));
    if (now->ranks == 0)
        NW_TRY(
            nw_imp_tell(imp, NW_FINDING_WARN, "ranks-unknown", reading->first_row,
                        "import the log from its command line on (mpirun -n …)",
                        "the log does not say how many ranks there were: alg_bandwidth is no bus "
                        "bandwidth, and must not be compared with one"));
    if (reading->wrong_count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_FAIL, "wrong-data", reading->wrong_line,
                           "test the cards one by one, then the links; do not use these rates",
                           "wrong data in %zu of %zu results", reading->wrong_count,
                           imp->run->record_count));
    return reading->disagree_count > 0
               ? nw_imp_tell(imp, NW_FINDING_WARN, "columns-disagree", reading->disagree_line,
                             "do not use these rows",
                             "rows whose size, time and bandwidth contradict each other: %zu",
                             reading->disagree_count)
               : NW_OK;
}

static nw_rc close_run(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;
    const struct command *now = &reading->now;

    if (imp->run == NULL)
        return NW_OK;
    imp->run->context.rank_count = now->ranks;
    if (now->ranks > 0 && now->per_host > 0)
        imp->run->context.host_count = (now->ranks + now->per_host - 1) / now->per_host;
    imp->run->context.complete = imp->run->record_count > 0;
    NW_TRY(tell(reading));
    reading->columns.count = 0;
    return nw_imp_close(imp, "no row follows the table's header");
}

static nw_rc take_header(struct reading *reading, const struct nw_imp_columns *columns)
{
    NW_TRY(close_run(reading));
    NW_TRY(nw_imp_begin(&reading->imp, "hccl_test"));
    snprintf(reading->imp.run->context.backend, 16, "hccl");
    reading->now = reading->next;
    reading->next = (struct command){.dtype = "unknown"};
    if (reading->now.dtype[0] == '\0')
        snprintf(reading->now.dtype, sizeof reading->now.dtype, "unknown");
    if (reading->now.collective[0] == '\0')
        snprintf(reading->now.collective, sizeof reading->now.collective, "%s",
                 reading->asked != NULL ? reading->asked : "unknown");
    reading->columns = *columns;
    reading->first_row = reading->imp.line + 1;
    reading->wrong_line = reading->wrong_count = 0;
    reading->disagree_line = reading->disagree_count = 0;
    return NW_OK;
}

static void set_rate(struct reading *reading, const struct nw_imp_row *row,
                     struct nw_record *record)
{
    const struct nw_printed *printed = &row->value[NW_IMP_RATE], *time = &row->value[NW_IMP_TIME];
    const double computed = (double)record->bytes / (time->value * 1e-9);
    /* Sizes are rounded up to whole elements of each rank. */
    const double slack = printed->half_unit + computed * (time->half_unit / time->value + 0.01);

    if (printed->value > 0 && fabs(printed->value - computed) > slack &&
        reading->disagree_count++ == 0)
        reading->disagree_line = reading->imp.line;
    record->algbw_bytes_per_s =
        printed->value >= 2000 * printed->half_unit ? printed->value : round(computed);
    nw_imp_set_busbw(record);
}

static nw_rc add_row(struct reading *reading, const struct nw_imp_row *row)
{
    const struct command *now = &reading->now;
    const struct nw_coll *coll = nw_coll_find(now->collective);
    const double bytes = row->value[NW_IMP_BYTES].value, time = row->value[NW_IMP_TIME].value;
    struct nw_record *record;

    if (!(time > 0) || !(bytes >= 1 && bytes < 9e18))
        return NW_OK;
    NW_TRY(
        nw_imp_record(&reading->imp, "coll", now->collective, "auto", reading->imp.line, &record));
    memcpy(record->dtype, now->dtype, sizeof record->dtype);
    if (coll != NULL && (coll->flags & NW_COLL_REDUCES) != 0)
        memcpy(record->op, now->op, sizeof record->op);
    record->rank_count = now->ranks;
    if (now->ranks > 0 && now->per_host > 0)
        record->host_count = (now->ranks + now->per_host - 1) / now->per_host;
    record->bytes = (uint64_t)bytes;
    record->time_ns = nw_stats_single(time);
    set_rate(reading, row, record);
    if (nw_imp_is(row->check, "success"))
        record->wrong_elements = 0;
    if (!nw_imp_is(row->check, "failed"))
        return NW_OK;
    record->wrong_elements = 1; /* at least */
    if (reading->wrong_count++ == 0)
        reading->wrong_line = reading->imp.line;
    return NW_OK;
}

static nw_rc take_line(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;
    const struct nw_slice text = nw_imp_clean_cells(imp->text);
    struct nw_imp_columns columns;
    struct nw_imp_row row;

    if (imp->whole && nw_imp_header(text, titles, 3, &columns))
        return take_header(reading, &columns);
    if (imp->run != NULL && nw_imp_row(imp, text, &reading->columns, &row))
        return add_row(reading, &row);
    if (imp->whole && nw_imp_find(text, "_test ") != NULL)
        take_command(reading, text);
    else if (imp->whole && imp->run != NULL &&
             (nw_imp_find(text, "HcclGetRootInfo") != NULL ||
              nw_imp_find(text, "retcode:") != NULL))
        nw_imp_count(&imp->failed, imp->line, text);
    return NW_OK;
}

nw_rc nw_hccl_read(const char *data, size_t length, const char *path,
                   const struct nw_import_options *options, struct nw_results *results)
{
    struct reading reading = {.imp = nw_imp_open(data, length, path, results),
                              .asked = options != NULL ? options->collective : NULL};

    while (nw_imp_next(&reading.imp))
        NW_TRY(take_line(&reading));
    return close_run(&reading);
}

int nw_hccl_recognise(const char *data, size_t length)
{
    return nw_imp_has(data, length, "data_size(Bytes)") &&
                   nw_imp_has(data, length, "alg_bandwidth(GB/s)")
               ? 95
               : 0;
}
