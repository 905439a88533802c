/* What `import` shows of iperf3's results: a line each. */
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "report/import_private.h"

static const char *name_of(const char *host)
{
    return host[0] != '\0' ? host : "–";
}

static void add_line(struct nw_table *table, const struct nw_record *record)
{
    char streams[16] = "?", moved[32], time[32], rate[32], bits[32];

    if (record->stream_count > 0)
        snprintf(streams, sizeof streams, "%d", record->stream_count);
    nw_table_row(table,
                 (const char *[]){record->lane, name_of(record->host_a), name_of(record->host_b),
                                  streams, nw_format_bytes(moved, record->bytes),
                                  nw_format_ns(time, record->time_ns.median),
                                  nw_format_gb_per_s(rate, record->algbw_bytes_per_s),
                                  nw_format_sig(bits, record->algbw_bytes_per_s * 8e-9, 4)});
}

nw_rc nw_report_import_iperf(FILE *stream, const struct nw_results *results, size_t first,
                             bool *done)
{
    static const struct nw_column columns[] = {
        {"over", NW_LEFT},   {"from", NW_LEFT}, {"to", NW_LEFT},    {"streams", NW_RIGHT},
        {"moved", NW_RIGHT}, {"in", NW_RIGHT},  {"GB/s", NW_RIGHT}, {"Gb/s", NW_RIGHT},
    };
    const char *source = results->runs[first].context.source;
    size_t count = 0;
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = first; i < results->run_count; i++) {
        const struct nw_run *run = &results->runs[i];

        if (strcmp(run->context.source, source) != 0 || !nw_report_is_iperf(run))
            continue;
        done[i] = true;
        count += run->record_count;
        for (size_t k = 0; k < run->record_count; k++)
            add_line(table, &run->records[k]);
    }
    if (count == 0)
        nw_table_row(table, (const char *[]){"–", "–", "–", "–", "no result", "–", "–", "–"});
    return nw_table_print(table, stream);
}

bool nw_report_is_iperf(const struct nw_run *run)
{
    return strcmp(run->context.tool, "iperf3") == 0;
}
