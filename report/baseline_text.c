#include "report/baseline_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

enum { ROWS_SHOWN = 30, FINDINGS_SHOWN = 10 };

static nw_rc put_nodes(FILE *stream, const struct nw_baseline_report *report)
{
    static const struct nw_column columns[] = {{"node", NW_WRAP},
                                               {"compared", NW_RIGHT},
                                               {"slower", NW_RIGHT},
                                               {"lowest speed", NW_RIGHT},
                                               {"verdict", NW_LEFT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t node = 0; node < report->node_count; node++) {
        size_t compared = 0;
        double lowest = INFINITY;
        char counts[2][32], speed[32] = "–";

        for (size_t i = 0; i < report->row_count; i++)
            if (report->rows[i].node == node) {
                compared++;
                lowest = fmin(lowest, report->rows[i].speed);
            }
        snprintf(counts[0], sizeof counts[0], "%zu", compared);
        snprintf(counts[1], sizeof counts[1], "%zu", report->slower_of_node[node]);
        if (compared > 0)
            snprintf(speed, sizeof speed, "%.3f", lowest);
        nw_table_row(table, (const char *[]){report->nodes[node], counts[0], counts[1], speed,
                                             compared == 0                      ? "not compared"
                                             : report->slower_of_node[node] > 0 ? "falls out"
                                                                                : "as the others"});
    }
    return nw_table_print(table, stream);
}

static void put_row(struct nw_table *table, const struct nw_baseline_report *report,
                    const struct nw_held_row *row)
{
    const struct nw_record *like = &row->of->like;
    char what[80], size[64], time[32], usual[32], speed[32], p[32], bytes[32];

    snprintf(what, sizeof what, "%s %s", like->case_name, like->collective);
    nw_format_bytes(bytes, like->bytes);
    if (like->peer_a >= 0)
        snprintf(size, sizeof size, "%s, rank %d", bytes, like->peer_a);
    else
        snprintf(size, sizeof size, "%s%s", bytes, like->in_place ? ", in place" : "");
    snprintf(speed, sizeof speed, "%.3f", row->speed);
    snprintf(p, sizeof p, row->p_joint < 0.001 ? "%.0e" : "%.3f", row->p_joint);
    nw_table_row(table, (const char *[]){report->nodes[row->node], what, like->lane, size,
                                         nw_format_ns(time, row->time_ns),
                                         nw_format_ns(usual, row->of->time_ns), speed, p,
                                         row->slower ? "slower" : ""});
}

static nw_rc put_rows(FILE *stream, const struct nw_baseline_report *report, bool all)
{
    static const struct nw_column columns[] = {
        {"node", NW_WRAP},   {"what", NW_WRAP},  {"lane", NW_LEFT},
        {"size", NW_WRAP},   {"time", NW_RIGHT}, {"usual", NW_RIGHT},
        {"speed", NW_RIGHT}, {"p", NW_RIGHT},    {"verdict", NW_LEFT}};
    struct nw_table *table;
    size_t shown = 0, left = 0;

    if (report->row_count == 0 || (!all && report->slower_count == 0))
        return NW_OK;
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < report->row_count; i++) {
        if (!all && !report->rows[i].slower)
            continue;
        if (!all && shown == ROWS_SHOWN) {
            left++;
            continue;
        }
        put_row(table, report, &report->rows[i]);
        shown++;
    }
    fputc('\n', stream);
    NW_TRY(nw_table_print(table, stream));
    if (left > 0)
        nw_print(stream, "%zu more are slower; --all shows them.\n", left);
    return NW_OK;
}

nw_rc nw_report_baseline(FILE *stream, const struct nw_baseline_report *report, bool all)
{
    char text[768];

    snprintf(text, sizeof text,
             "%zu results held against a baseline of %d nodes%s: %zu slower. Slower: by more than "
             "%.3g %%, and the chance that any one of them is false is at most 5 %% (prediction "
             "interval of one more node, Holm over %zu tests).",
             report->compared_count, report->baseline_node_count,
             report->simulated ? " (SIMULATED, no measurement)" : "", report->slower_count,
             100 * report->threshold, report->compared_count);
    nw_print_wrapped(stream, "", "", text);
    fputc('\n', stream);
    NW_TRY(put_nodes(stream, report));
    NW_TRY(put_rows(stream, report, all));
    if (report->missing_count > 0)
        nw_print(stream, "\n%zu rows of the baseline were not measured here.\n",
                 report->missing_count);
    if (report->unknown_count > 0) {
        snprintf(text, sizeof text,
                 "%zu results are not in the baseline; of the first one differs (baseline, here) "
                 "%s.",
                 report->unknown_count, report->unknown_reason);
        fputc('\n', stream);
        nw_print_wrapped(stream, "", "", text);
    }
    return NW_OK;
}

nw_rc nw_report_baseline_made(FILE *stream, const struct nw_baseline *baseline, const char *path)
{
    char text[512];

    snprintf(text, sizeof text,
             "%zu rows of %zu nodes%s are in %.300s; %zu were measured on fewer than %d nodes and "
             "are left out.",
             baseline->row_count, baseline->node_count,
             baseline->context.simulated ? " (SIMULATED, no measurement)" : "", path,
             baseline->few_count, NW_BASELINE_LEAST);
    nw_print_wrapped(stream, "", "", text);
    for (size_t i = 0; i < baseline->findings.count && i < FINDINGS_SHOWN; i++)
        nw_print_wrapped(stream, "- ", "  ", baseline->findings.items[i].text);
    if (baseline->findings.count > FINDINGS_SHOWN)
        nw_print(stream, "The first %d of %zu outliers.\n", FINDINGS_SHOWN,
                 baseline->findings.count);
    return NW_OK;
}
