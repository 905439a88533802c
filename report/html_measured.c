/* What was measured: bandwidth and latency of each curve, and the curves. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"

#define CHARTS_MAX 16
#define ROWS_MAX   200 /* of one table behind a chart */

static const struct nw_html_column plateau_columns[] = {
    {"Collective", NW_LEFT},           {"Way", NW_LEFT},
    {"Ranks, hosts", NW_RIGHT},        {"Time of the smallest", NW_RIGHT},
    {"Bus bandwidth, GB/s", NW_RIGHT}, {"of the sizes", NW_LEFT},
    {"Ceiling, GB/s", NW_RIGHT},       {"Note", NW_LEFT},
};
enum { PLATEAU_COLUMNS = sizeof plateau_columns / sizeof *plateau_columns };

static void put_plateau(const struct nw_html *html, const struct nw_series *series)
{
    const struct nw_record *first = series->records[0];
    const struct nw_record *last = series->records[series->count - 1];
    const struct nw_run *run = &html->page->results->runs[series->run];
    char way[96], ranks[48], time[80], size[32], ns[32], rate[112] = "", sizes[80] = "";
    char ceiling[32] = "", value[32], low[32], high[32], note[160] = "";
    struct nw_plateau plateau;

    snprintf(way, sizeof way, "%s%s%s", first->lane, first->features[0] != '\0' ? "+" : "",
             first->features);
    snprintf(ranks, sizeof ranks, first->host_count > 0 ? "%d, %d" : "%d", first->rank_count,
             first->host_count);
    snprintf(time, sizeof time, "%s (%s)", nw_format_ns(ns, first->time_ns.median),
             nw_format_bytes(size, first->bytes));
    if (nw_plateau_like(run, first, -1, &plateau) == NW_OK) {
        snprintf(rate, sizeof rate, "%s [%s, %s]",
                 nw_format_gb_per_s(value, plateau.busbw_bytes_per_s),
                 nw_format_gb_per_s(low, plateau.low), nw_format_gb_per_s(high, plateau.high));
        snprintf(sizes, sizeof sizes, "%s – %s", nw_format_bytes(low, plateau.from_bytes),
                 nw_format_bytes(high, plateau.to_bytes));
        if (plateau.falls)
            snprintf(note, sizeof note, tr(html, "falls: %s GB/s at %s are its best"),
                     nw_format_gb_per_s(low, plateau.peak_bytes_per_s),
                     nw_format_bytes(high, plateau.peak_bytes));
    } else {
        nw_clear_error();
    }
    if (isfinite(last->ceiling_bytes_per_s) && last->ceiling_bytes_per_s > 0)
        nw_format_gb_per_s(ceiling, last->ceiling_bytes_per_s);
    snprintf(note + strlen(note), sizeof note - strlen(note), "%s",
             nw_html_mark(html, first->simulated));
    nw_html_row(html, plateau_columns, PLATEAU_COLUMNS,
                (const char *[]){first->collective, way, ranks, time, rate, sizes, ceiling, note});
}

static void put_plateaus(const struct nw_html *html)
{
    nw_html_table(html, tr(html, "Bandwidth and latency"), plateau_columns, PLATEAU_COLUMNS);
    for (size_t i = 0; i < html->series->count && i < ROWS_MAX; i++)
        put_plateau(html, &html->series->items[i]);
    nw_html_table_end(html);
    nw_html_say(html, "note", "%s",
                tr(html, "A time is that of the slowest rank. The bus bandwidth is the "
                         "median of the largest sizes that agree within 2 %, never an "
                         "average over sizes; in brackets the widest of them."));
}

static void put_figures(const struct nw_html *html, const struct nw_chart_group *group)
{
    static const struct nw_html_column columns[] = {
        {"Way", NW_LEFT},
        {"Size", NW_RIGHT},
        {"Bus bandwidth, GB/s", NW_RIGHT},
        {"95 % interval", NW_RIGHT},
        {"Median time", NW_RIGHT},
        {"Samples", NW_RIGHT},
    };
    char name[200], size[32], rate[32], interval[80], low_text[32], high_text[32], time[32];
    char samples[32];
    size_t rows = 0;

    nw_html_fold(html, tr(html, "The figures of this chart"));
    nw_html_table(html, tr(html, "The figures of this chart"), columns,
                  sizeof columns / sizeof *columns);
    for (size_t s = 0; s < group->count; s++) {
        nw_series_name(html, group, &group->series[s], name, sizeof name);
        for (size_t i = 0; i < group->series[s].count && rows < ROWS_MAX; i++, rows++) {
            const struct nw_record *record = group->series[s].records[i];
            double low, high;

            nw_record_interval(record, &low, &high);
            interval[0] = '\0';
            if (isfinite(low))
                snprintf(interval, sizeof interval, "[%s, %s]", nw_format_gb_per_s(low_text, low),
                         nw_format_gb_per_s(high_text, high));
            snprintf(samples, sizeof samples, "%zu", record->time_ns.count);
            nw_html_row(html, columns, sizeof columns / sizeof *columns,
                        (const char *[]){name, nw_format_bytes(size, record->bytes),
                                         nw_format_gb_per_s(rate, record->busbw_bytes_per_s),
                                         interval, nw_format_ns(time, record->time_ns.median),
                                         samples});
        }
    }
    nw_html_table_end(html);
    nw_html_fold_end(html);
}

static nw_rc put_chart(struct nw_html *html, size_t chart)
{
    const struct nw_chart_group group = nw_chart_group_of(html->series, chart);
    const size_t shown = group.count < NW_CHART_LINES ? group.count : NW_CHART_LINES;
    char id[64], title[256], names[NW_CHART_LINES][200];
    const char *lines[NW_CHART_LINES];

    nw_html_figure(html, nw_curves_title(html, &group, title, sizeof title), id);
    NW_TRY(nw_draw_curves(html, &group, id));
    for (size_t i = 0; i < shown; i++)
        lines[i] = nw_series_name(html, &group, &group.series[i], names[i], sizeof names[i]);
    nw_html_legend(html, lines, shown);
    if (group.count > shown)
        nw_html_say(html, "note", tr(html, "and %zu further lines, in the table"),
                    group.count - shown);
    put_figures(html, &group);
    nw_html_figure_end(html);
    return NW_OK;
}

nw_rc nw_html_measured(struct nw_html *html)
{
    nw_html_begin(html, "measured", tr(html, "What was measured"));
    if (html->series->count == 0)
        nw_html_say(html, NULL, "%s", tr(html, "No collective was measured over several sizes."));
    else
        put_plateaus(html);
    for (size_t i = 0; i < html->series->chart_count && i < CHARTS_MAX; i++)
        NW_TRY(put_chart(html, i));
    if (html->series->chart_count > CHARTS_MAX)
        nw_html_say(html, "note",
                    tr(html, "and %zu further charts' figures, in the "
                             "results file"),
                    html->series->chart_count - CHARTS_MAX);
    nw_html_end(html);
    return NW_OK;
}
