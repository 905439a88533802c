#include "report/svg_bars.h"

#include <math.h>
#include <string.h>

#include "base/table.h"

enum { ROW = 30, BAR = 18, TOP = 24, LEFT_MOST = 240 };

static double sum_of(const struct nw_bars *bars, size_t row)
{
    double sum = 0;

    for (size_t i = 0; i < bars->part_count; i++) {
        const double value = bars->values[row * bars->part_count + i];

        sum += isfinite(value) && value > 0 ? value : 0;
    }
    return sum;
}

static double most_of(const struct nw_bars *bars)
{
    double most = isfinite(bars->mark) ? bars->mark : 0;

    for (size_t i = 0; i < bars->row_count; i++) {
        most = fmax(most, sum_of(bars, i));
        if (bars->high != NULL && isfinite(bars->high[i]))
            most = fmax(most, bars->high[i]);
    }
    return most > 0 ? most : 1;
}

/* A letter of the chart's font is about 6.6 units wide. */
static double widest_name(const struct nw_bars *bars)
{
    int columns = 8;

    for (size_t i = 0; i < bars->row_count; i++) {
        const int width = nw_text_width(bars->rows[i]);

        columns = width > columns ? width : columns;
    }
    return fmin(7 * columns + 14, LEFT_MOST);
}

static void draw_row(const struct nw_bars *bars, const struct nw_chart *chart, size_t row,
                     const char *id)
{
    const double y = TOP + (double)row * ROW + (ROW - BAR) / 2.0;
    double sum = 0;

    nw_svg_words(chart->stream, chart->left - 8, y + BAR - 4, NULL, "end", bars->rows[row]);
    for (size_t i = 0; i < bars->part_count; i++) {
        const double value = bars->values[row * bars->part_count + i];
        char tip[320], text[32], stripes[96];

        if (!isfinite(value) || value <= 0)
            continue;
        const double x0 = nw_chart_x(chart, sum), x1 = nw_chart_x(chart, sum + value);

        snprintf(tip, sizeof tip, "%.120s, %.120s: %s", bars->rows[row], bars->parts[i],
                 bars->tell(text, value));
        nw_chart_series_open(chart, i);
        nw_svg_box(chart->stream, x0, y, x1 - x0, BAR, "f", NULL, tip);
        if (i >= NW_SERIES_STYLES) {
            snprintf(stripes, sizeof stripes, "url(#%s-stripes)", id);
            nw_svg_box(chart->stream, x0, y, x1 - x0, BAR, "stripes", stripes, NULL);
        }
        nw_chart_series_close(chart);
        sum += value;
    }
    if (bars->low != NULL && isfinite(bars->low[row]) && isfinite(bars->high[row]))
        fprintf(chart->stream,
                "<path class=\"whisker\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"/>",
                nw_chart_x(chart, bars->low[row]), y + BAR / 2.0,
                nw_chart_x(chart, bars->high[row]), nw_chart_x(chart, bars->low[row]),
                y + BAR / 2.0 - 4, nw_chart_x(chart, bars->high[row]), y + BAR / 2.0 - 4);
}

void nw_bars_draw(const struct nw_bars *bars, const char *id)
{
    struct nw_chart chart = {
        .stream = bars->stream,
        .alone = bars->alone,
        .height = TOP + (double)bars->row_count * ROW + 48,
        .left = widest_name(bars),
        .top = TOP,
        .x = {.unit = bars->unit, .high = most_of(bars) * 1.04, .title = bars->axis},
        .y = {.unit = NW_AXIS_NUMBER, .high = 1, .title = ""},
    };

    nw_chart_open(&chart, id, bars->title, bars->about);
    fprintf(
        bars->stream,
        "<defs><pattern id=\"%s-stripes\" width=\"6\" height=\"6\" "
        "patternUnits=\"userSpaceOnUse\"><path class=\"stripe\" d=\"M0 6L6 0\"/></pattern></defs>",
        id);
    nw_chart_foot(&chart);
    for (size_t i = 0; i < bars->row_count; i++)
        draw_row(bars, &chart, i, id);
    if (isfinite(bars->mark))
        nw_chart_upright(&chart, bars->mark, bars->mark_name);
    nw_chart_close(&chart);
}
