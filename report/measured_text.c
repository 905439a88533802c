#include "report/measured_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

struct group { /* one line of the table */
    const struct nw_record *like;
};

static bool same_group(const struct group *group, const struct nw_record *record)
{
    const struct nw_record *like = group->like;

    return strcmp(like->case_name, record->case_name) == 0 &&
           strcmp(like->collective, record->collective) == 0 &&
           strcmp(like->lane, record->lane) == 0 && strcmp(like->features, record->features) == 0 &&
           like->rank_count == record->rank_count && like->host_count == record->host_count;
}

static bool has_time(const struct nw_record *record)
{
    return record->rc == NW_OK && record->time_ns.count > 0 && record->piece_bytes == 0;
}

/* The smallest size with a time, out of place where both were measured; NULL: none. */
static const struct nw_record *smallest(const struct nw_run *run, const struct group *group)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (!same_group(group, record) || !has_time(record))
            continue;
        if (best == NULL || record->bytes < best->bytes ||
            (record->bytes == best->bytes && best->in_place && !record->in_place))
            best = record;
    }
    return best;
}

static void add_group(struct nw_table *table, const struct nw_run *run, const struct group *group)
{
    const struct nw_record *like = group->like, *first = smallest(run, group);
    struct nw_plateau plateau;
    char ranks[48], latency[80], rate[96], sizes[80], note[96] = "";
    char a[32], b[32], c[32];

    if (first == NULL)
        return;
    nw_print_to(ranks, sizeof ranks, "%d on %d host%s", like->rank_count, like->host_count,
                like->host_count == 1 ? "" : "s");
    if (like->features[0] != '\0')
        nw_print_to(ranks + strlen(ranks), sizeof ranks - strlen(ranks), ", %.24s", like->features);
    nw_print_to(latency, sizeof latency, "%s at %s", nw_format_ns(a, first->time_ns.median),
                nw_format_bytes(b, first->bytes));
    snprintf(rate, sizeof rate, "–");
    snprintf(sizes, sizeof sizes, "–");
    if (nw_plateau_like(run, like, -1, &plateau) == NW_OK && isfinite(plateau.busbw_bytes_per_s)) {
        if (isfinite(plateau.low) && isfinite(plateau.high))
            nw_print_to(rate, sizeof rate, "%s [%s, %s]",
                        nw_format_gb_per_s(a, plateau.busbw_bytes_per_s),
                        nw_format_gb_per_s(b, plateau.low), nw_format_gb_per_s(c, plateau.high));
        else
            nw_format_gb_per_s(rate, plateau.busbw_bytes_per_s);
        if (plateau.from_bytes == plateau.to_bytes)
            nw_format_bytes(sizes, plateau.to_bytes);
        else
            nw_print_to(sizes, sizeof sizes, "%s … %s", nw_format_bytes(a, plateau.from_bytes),
                        nw_format_bytes(b, plateau.to_bytes));
        if (plateau.falls)
            nw_print_to(note, sizeof note, "falls: %s at %s",
                        nw_format_gb_per_s(a, plateau.peak_bytes_per_s),
                        nw_format_bytes(b, plateau.peak_bytes));
    }
    nw_table_row(table, (const char *[]){like->collective, ranks, latency, rate, sizes, note});
}

nw_rc nw_report_measured(FILE *stream, const struct nw_run *run)
{
    static const struct nw_column columns[] = {
        {"Collective", NW_LEFT},         {"ranks", NW_LEFT},      {"latency", NW_RIGHT},
        {"busbw GB/s [95 %]", NW_RIGHT}, {"over sizes", NW_LEFT}, {"", NW_LEFT}};
    struct group *groups = calloc(run->record_count + 1, sizeof *groups);
    struct nw_table *table;
    const char *lane = nw_run_lane(run);
    size_t group_count = 0;
    nw_rc rc;

    if (groups == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the table of %zu records", run->record_count);
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        size_t known = 0;

        if (!has_time(record) || !nw_record_is_collective(record) ||
            strcmp(record->lane, lane) != 0)
            continue;
        while (known < group_count && !same_group(&groups[known], record))
            known++;
        if (known == group_count)
            groups[group_count++] = (struct group){record};
    }
    rc = nw_table_open(columns, sizeof columns / sizeof *columns, &table);
    if (rc == NW_OK) {
        for (size_t i = 0; i < group_count; i++)
            add_group(table, run, &groups[i]);
        rc = nw_table_print(table, stream);
    }
    free(groups);
    return rc;
}

static int by_rate(const void *left, const void *right)
{
    const struct nw_record *a = *(const struct nw_record *const *)left;
    const struct nw_record *b = *(const struct nw_record *const *)right;

    return (a->busbw_bytes_per_s > b->busbw_bytes_per_s) -
           (a->busbw_bytes_per_s < b->busbw_bytes_per_s);
}

static void print_pair(FILE *stream, const char *title, const struct nw_record *record)
{
    char rate[32];

    nw_print(stream, "  %-8s ranks %d (%s) and %d (%s): %s GB/s each way\n", title, record->peer_a,
             record->host_a, record->peer_b, record->host_b,
             nw_format_gb_per_s(rate, record->busbw_bytes_per_s));
}

static bool is_pair(const struct nw_record *record)
{
    return strcmp(record->case_name, "pairs") == 0 && record->peer_a >= 0;
}

nw_rc nw_report_pairs(FILE *stream, const struct nw_run *run)
{
    const struct nw_record **pairs = calloc(run->record_count + 1, sizeof *pairs);
    uint64_t largest = 0;
    size_t count = 0;

    if (pairs == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the pairs");
    for (size_t i = 0; i < run->record_count; i++)
        if (is_pair(&run->records[i]) && run->records[i].bytes > largest)
            largest = run->records[i].bytes;
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (is_pair(record) && record->bytes == largest && has_time(record) &&
            isfinite(record->busbw_bytes_per_s))
            pairs[count++] = record;
    }
    if (count > 0) {
        char size[32];

        qsort(pairs, count, sizeof *pairs, by_rate);
        nw_print(stream, "Pairs of ranks (%zu, at %s, both ways at once)\n", count,
                 nw_format_bytes(size, largest));
        print_pair(stream, count > 1 ? nw_tr("slowest") : nw_tr("only"), pairs[0]);
        if (count > 2)
            print_pair(stream, "median", pairs[count / 2]);
        if (count > 1)
            print_pair(stream, "fastest", pairs[count - 1]);
    }
    free(pairs);
    return NW_OK;
}

nw_rc nw_report_findings(FILE *stream, const struct nw_findings *findings, size_t most)
{
    size_t printed = 0;
    char first[256];

    for (int severity = NW_FINDING_FAIL; severity >= NW_FINDING_INFO; severity--)
        for (size_t i = 0; i < findings->count; i++) {
            const struct nw_finding *finding = &findings->items[i];

            if ((int)finding->severity != severity)
                continue;
            if (printed++ >= most)
                continue;
            nw_print_to(first, sizeof first, "%2zu  %s%s%s", printed,
                        finding->severity == NW_FINDING_FAIL ? "FAIL " : "",
                        finding->where != NULL ? finding->where : "",
                        finding->where != NULL && finding->where[0] != '\0' ? ": " : "");
            nw_print_wrapped(stream, first, "    ", finding->text);
            if (finding->remedy != NULL)
                nw_print_wrapped(stream, "    Do: ", "    ", finding->remedy);
        }
    if (printed > most)
        nw_print(stream, "    (%zu more in report.txt)\n", printed - most);
    return NW_OK;
}
