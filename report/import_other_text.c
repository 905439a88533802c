/* What `import` shows of results that are no collectives: a line for each case, way and group. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/import_private.h"

struct group {
    const struct nw_record *like;
    size_t count;
    uint64_t least, most;
    double least_ns;            /* the longest at the smallest size */
    double low_rate, high_rate; /* at the largest size; bytes/s or flop/s */
    double low_ns, high_ns;     /* at the largest size, where there is no rate */
};

struct groups {
    struct group *items;
    size_t count;
};

static bool is_like(const struct nw_record *a, const struct nw_record *b)
{
    return strcmp(a->case_name, b->case_name) == 0 && strcmp(a->collective, b->collective) == 0 &&
           strcmp(a->lane, b->lane) == 0 && strcmp(a->memory, b->memory) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && a->rank_count == b->rank_count;
}

static double rate_of(const struct nw_record *record)
{
    return isfinite(record->flop_per_s) ? record->flop_per_s : record->algbw_bytes_per_s;
}

static void widen(struct group *group, const struct nw_record *record)
{
    const double rate = rate_of(record), ns = record->time_ns.median;

    group->count++;
    if (record->bytes <= group->least) {
        group->least_ns = record->bytes < group->least ? ns : fmax(group->least_ns, ns);
        group->least = record->bytes;
    }
    if (record->bytes > group->most || group->count == 1) {
        group->most = record->bytes;
        group->low_rate = group->high_rate = rate;
        group->low_ns = group->high_ns = ns;
    } else if (record->bytes == group->most) {
        group->low_rate = fmin(group->low_rate, rate);
        group->high_rate = fmax(group->high_rate, rate);
        group->low_ns = fmin(group->low_ns, ns);
        group->high_ns = fmax(group->high_ns, ns);
    }
}

static nw_rc add_record(struct groups *groups, const struct nw_record *record)
{
    struct group *items;
    size_t at = 0;

    while (at < groups->count && !is_like(groups->items[at].like, record))
        at++;
    if (at == groups->count) {
        items = realloc(groups->items, (at + 1) * sizeof *items);
        if (items == NULL)
            return nw_fail(NW_ENOMEM, "no memory for a table of %zu lines", at + 1);
        groups->items = items;
        items[groups->count++] = (struct group){.like = record,
                                                .least = UINT64_MAX,
                                                .least_ns = NAN,
                                                .low_rate = NAN,
                                                .high_rate = NAN,
                                                .low_ns = NAN,
                                                .high_ns = NAN};
    }
    widen(&groups->items[at], record);
    return NW_OK;
}

/* "26.3 GB/s", "26.1 … 26.3 GB/s" */
static void put_range(char *text, size_t size, double low, double high, double unit,
                      const char *name)
{
    char a[32], b[32];

    nw_format_sig(a, low / unit, 3);
    nw_format_sig(b, high / unit, 3);
    if (strcmp(a, b) == 0)
        nw_print_to(text, size, "%s %s", a, name);
    else
        nw_print_to(text, size, "%s … %s %s", a, b, name);
}

static void add_line(struct nw_table *table, const struct group *group)
{
    const struct nw_record *like = group->like;
    char count[32], ranks[16] = "?", sizes[80] = "–", first[32] = "–", rate[96] = "–", a[32], b[32];

    snprintf(count, sizeof count, "%zu", group->count);
    if (like->rank_count > 0)
        snprintf(ranks, sizeof ranks, "%d", like->rank_count);
    if (group->most > 0 && group->least == group->most)
        nw_print_to(sizes, sizeof sizes, "%s", nw_format_bytes(a, group->least));
    else if (group->most > 0)
        nw_print_to(sizes, sizeof sizes, "%s … %s", nw_format_bytes(a, group->least),
                    nw_format_bytes(b, group->most));
    if (isfinite(group->least_ns))
        nw_format_ns(first, group->least_ns);
    if (isfinite(like->flop_per_s))
        put_range(rate, sizeof rate, group->low_rate, group->high_rate, 1e12, "TFLOP/s");
    else if (isfinite(group->low_rate))
        put_range(rate, sizeof rate, group->low_rate, group->high_rate, 1e9, "GB/s");
    else if (isfinite(group->low_ns))
        put_range(rate, sizeof rate, group->low_ns, group->high_ns, 1e3, "us");
    nw_table_row(table, (const char *[]){like->case_name, like->collective, like->lane, ranks,
                                         count, sizes, first, rate});
}

bool nw_report_is_other(const struct nw_run *run)
{
    static const char *const collectives[] = {"nccl-tests", "rccl-tests", "hccl_test",
                                              "all_reduce_bench"};

    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++)
        if (strcmp(run->context.tool, collectives[i]) == 0)
            return false;
    return run->record_count == 0 || !nw_record_is_collective(&run->records[0]);
}

nw_rc nw_report_import_other(FILE *stream, const struct nw_results *results, size_t first,
                             bool *done)
{
    static const struct nw_column columns[] = {
        {"case", NW_LEFT},         {"what", NW_LEFT},       {"by", NW_LEFT},
        {"ranks", NW_RIGHT},       {"results", NW_RIGHT},   {"sizes", NW_LEFT},
        {"at smallest", NW_RIGHT}, {"at largest", NW_LEFT},
    };
    const char *source = results->runs[first].context.source;
    struct groups groups = {0};
    struct nw_table *table;
    nw_rc rc = nw_table_open(columns, sizeof columns / sizeof columns[0], &table);

    for (size_t i = first; i < results->run_count && rc == NW_OK; i++) {
        const struct nw_run *run = &results->runs[i];

        if (strcmp(run->context.source, source) != 0 || !nw_report_is_other(run))
            continue;
        done[i] = true;
        for (size_t k = 0; k < run->record_count && rc == NW_OK; k++)
            rc = add_record(&groups, &run->records[k]);
    }
    for (size_t i = 0; i < groups.count && rc == NW_OK; i++)
        add_line(table, &groups.items[i]);
    if (rc == NW_OK && groups.count == 0)
        nw_table_row(table, (const char *[]){"–", "–", "–", "–", "–", "no result", "–", "–"});
    free(groups.items);
    if (rc == NW_OK)
        return nw_table_print(table, stream);
    nw_table_free(table);
    return rc;
}
