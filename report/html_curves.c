/* Bus bandwidth against size: lines with their intervals, and ceilings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"

struct nw_chart_group nw_chart_group_of(const struct nw_series_list *list, size_t chart)
{
    struct nw_chart_group group = {.count = 0};

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].chart == chart) {
            if (group.count++ == 0)
                group.series = &list->items[i];
        }
    return group;
}

const char *nw_curves_title(const struct nw_html *html, const struct nw_chart_group *group,
                            char *text, size_t size)
{
    const struct nw_record *like = group->series[0].records[0];

    if (strcmp(like->case_name, "scaling") == 0)
        snprintf(text, size, tr(html, "%s over growing groups: bus bandwidth by size"),
                 like->collective);
    else if (like->host_count > 0)
        snprintf(text, size, tr(html, "%s (case %s), ranks: %d, hosts: %d: bus bandwidth by size"),
                 like->collective, like->case_name, like->rank_count, like->host_count);
    else
        snprintf(text, size, tr(html, "%s (case %s), ranks: %d: bus bandwidth by size"),
                 like->collective, like->case_name, like->rank_count);
    return text;
}

const char *nw_series_name(const struct nw_html *html, const struct nw_chart_group *group,
                           const struct nw_series *series, char *text, size_t size)
{
    const struct nw_record *record = series->records[0];
    bool types = false, runs = false, ops = false;

    for (size_t i = 0; i < group->count; i++) {
        const struct nw_record *other = group->series[i].records[0];

        types = types || strcmp(other->dtype, record->dtype) != 0;
        ops = ops || strcmp(other->op, record->op) != 0;
        runs = runs || group->series[i].run != series->run;
    }
    int used = snprintf(text, size, "%s%s%s", record->lane, record->features[0] != '\0' ? "+" : "",
                        record->features);

    if (strcmp(record->case_name, "scaling") == 0)
        used += snprintf(text + used, size - (size_t)used, tr(html, ", ranks: %d, hosts: %d"),
                         record->rank_count, record->host_count);
    if (types || ops)
        used += snprintf(text + used, size - (size_t)used, ", %s %s", record->dtype, record->op);
    if (runs) {
        const char *source = html->page->results->runs[series->run].context.source;
        const char *slash = strrchr(source, '/');

        snprintf(text + used, size - (size_t)used, tr(html, ", run %zu %.40s"), series->run + 1,
                 slash != NULL ? slash + 1 : source);
    }
    return text;
}

void nw_record_interval(const struct nw_record *record, double *low_out, double *high_out)
{
    const struct nw_stats *time = &record->time_ns;
    const bool known = time->low > 0 && time->high > 0 && time->median > 0;

    *low_out = known ? record->busbw_bytes_per_s * time->median / time->high : NAN;
    *high_out = known ? record->busbw_bytes_per_s * time->median / time->low : NAN;
}

/* "nvlink, 64 MiB: 374 GB/s [372, 376], 325 us" */
static void tell(const struct nw_html *html, const char *name, const struct nw_record *record,
                 const struct nw_chart_point *point, char text[320])
{
    char size[32], rate[32], low[32], high[32], time[32], interval[80] = "";

    if (isfinite(point->low))
        snprintf(interval, sizeof interval, " [%s, %s]", nw_format_gb_per_s(low, point->low),
                 nw_format_gb_per_s(high, point->high));
    snprintf(text, 320, "%.120s, %s: %s GB/s%s, %s%s", name, nw_format_bytes(size, record->bytes),
             nw_format_gb_per_s(rate, record->busbw_bytes_per_s), interval,
             nw_format_ns(time, record->time_ns.median), nw_html_mark(html, record->simulated));
}

static void take(struct nw_axis *axis, double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    axis->low = axis->low > 0 ? fmin(axis->low, value) : value;
    axis->high = fmax(axis->high, value);
}

static size_t shown_of(const struct nw_chart_group *group)
{
    return group->count < NW_CHART_LINES ? group->count : NW_CHART_LINES;
}

static void fit_axes(const struct nw_chart_group *group, struct nw_chart *chart)
{
    for (size_t s = 0; s < shown_of(group); s++)
        for (size_t i = 0; i < group->series[s].count; i++) {
            const struct nw_record *record = group->series[s].records[i];

            take(&chart->x, (double)record->bytes);
            take(&chart->y, record->busbw_bytes_per_s);
            take(&chart->y, record->ceiling_bytes_per_s);
        }
    chart->x.low /= 1.3;
    chart->x.high *= 1.3;
    chart->y.low /= 1.3;
    chart->y.high *= 1.4;
}

/* Each ceiling once, at most a few: those of the lanes differ by their links. */
static void draw_ceilings(const struct nw_html *html, const struct nw_chart *chart,
                          const struct nw_chart_group *group)
{
    enum { CEILINGS_MAX = 3 };
    double seen[CEILINGS_MAX];
    size_t count = 0;

    for (size_t s = 0; s < shown_of(group) && count < CEILINGS_MAX; s++) {
        const struct nw_series *series = &group->series[s];
        const double ceiling = series->records[series->count - 1]->ceiling_bytes_per_s;
        char text[96], rate[32];
        bool known = !(isfinite(ceiling) && ceiling > 0);

        for (size_t i = 0; i < count; i++)
            known = known || fabs(seen[i] / ceiling - 1) < 0.02;
        if (known)
            continue;
        seen[count++] = ceiling;
        snprintf(text, sizeof text, tr(html, "ceiling %s GB/s"), nw_format_gb_per_s(rate, ceiling));
        nw_chart_level(chart, ceiling, text);
    }
}

static nw_rc draw_series(const struct nw_html *html, const struct nw_chart *chart,
                         const struct nw_chart_group *group, size_t index)
{
    const struct nw_series *series = &group->series[index];
    struct nw_chart_point *points = calloc(series->count, sizeof *points);
    char(*tips)[320] = calloc(series->count, sizeof *tips);
    char name[200];

    if (points == NULL || tips == NULL) {
        free(points);
        free(tips);
        return nw_fail(NW_ENOMEM, "no memory for a curve of %zu points", series->count);
    }
    nw_series_name(html, group, series, name, sizeof name);
    for (size_t i = 0; i < series->count; i++) {
        const struct nw_record *record = series->records[i];

        points[i] = (struct nw_chart_point){
            .x = (double)record->bytes, .y = record->busbw_bytes_per_s, .tip = tips[i]};
        nw_record_interval(record, &points[i].low, &points[i].high);
        tell(html, name, record, &points[i], tips[i]);
    }
    nw_chart_series_open(chart, index);
    nw_chart_line(chart, points, series->count, index);
    nw_chart_series_close(chart);
    free(points);
    free(tips);
    return NW_OK;
}

nw_rc nw_draw_curves(struct nw_html *html, const struct nw_chart_group *group, const char *id)
{
    struct nw_chart chart = {
        .stream = html->stream,
        .alone = html->alone,
        .x = {.unit = NW_AXIS_BYTES, .log = true, .title = tr(html, "size")},
        .y = {.unit = NW_AXIS_GB_PER_S, .log = true, .title = tr(html, "bus bandwidth, GB/s")},
    };
    char title[256];

    fit_axes(group, &chart);
    nw_chart_open(&chart, id, nw_curves_title(html, group, title, sizeof title),
                  tr(html, "Lines with bands of 95 % intervals on logarithmic axes; the "
                           "figures stand in the table below."));
    nw_chart_axes(&chart);
    draw_ceilings(html, &chart, group);
    for (size_t i = 0; i < shown_of(group); i++)
        NW_TRY(draw_series(html, &chart, group, i));
    nw_chart_close(&chart);
    return NW_OK;
}
