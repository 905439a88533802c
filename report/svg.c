#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/html_text.h"

#include "chart_css.inc"

enum { TICKS_MAX = 9 };

/* ---- scales ------------------------------------------------------------------------------------
 */

static double place(const struct nw_axis *axis, double value)
{
    if (axis->log)
        return log(fmax(value, axis->low / 4) / axis->low) / log(axis->high / axis->low);
    return (value - axis->low) / (axis->high - axis->low);
}

static double within(double share)
{
    return fmin(fmax(share, -0.02), 1.02);
}

double nw_chart_x(const struct nw_chart *chart, double value)
{
    return chart->left +
           within(place(&chart->x, value)) * (chart->width - chart->left - chart->right);
}

double nw_chart_y(const struct nw_chart *chart, double value)
{
    return chart->height - chart->bottom -
           within(place(&chart->y, value)) * (chart->height - chart->top - chart->bottom);
}

/* "64 KiB", "0.5", "20 ms": short enough for a tick. */
static void name_tick(const struct nw_axis *axis, double value, char text[32])
{
    switch (axis->unit) {
    case NW_AXIS_BYTES:
        nw_format_bytes(text, (unsigned long long)llround(value));
        break;
    case NW_AXIS_TIME:
        if (value < 1e3)
            snprintf(text, 32, "%.3g ns", value);
        else if (value < 1e6)
            snprintf(text, 32, "%.3g us", value / 1e3);
        else if (value < 1e9)
            snprintf(text, 32, "%.3g ms", value / 1e6);
        else
            snprintf(text, 32, "%.3g s", value / 1e9);
        break;
    case NW_AXIS_GB_PER_S:
        snprintf(text, 32, value >= 1e12 ? "%.0f" : "%.3g", value / 1e9);
        break;
    case NW_AXIS_NUMBER:
        snprintf(text, 32, value >= 1000 ? "%.0f" : "%.3g", value);
        break;
    }
}

static size_t linear_ticks(const struct nw_axis *axis, double ticks[TICKS_MAX])
{
    static const double steps[] = {1, 2, 5, 10};
    const double rough = (axis->high - axis->low) / 5;
    const double unit = /* of bytes the largest binary one below the step */
        axis->unit == NW_AXIS_BYTES ? pow(1024, floor(log2(rough) / 10)) : 1;
    const double power = unit * pow(10, floor(log10(rough / unit)));
    double step = 10 * power;
    size_t count = 0;

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] * power >= rough) {
            step = steps[i] * power;
            break;
        }
    for (double value = ceil(axis->low / step - 1e-9) * step;
         value <= axis->high * (1 + 1e-9) && count < TICKS_MAX; value += step)
        ticks[count++] = value + 0.0; /* never -0 */
    return count;
}

/* Powers of 2 for bytes, of 10 for all else; where there are few of 10, also 2 and 5 times them. */
static size_t log_ticks(const struct nw_axis *axis, double ticks[TICKS_MAX])
{
    const double base = axis->unit == NW_AXIS_BYTES ? 2 : 10;
    const double first = ceil(log(axis->low) / log(base) - 1e-9);
    const double last = floor(log(axis->high) / log(base) + 1e-9);
    const double stride = fmax(1, ceil((last - first + 1) / (TICKS_MAX - 1)));
    static const double few[] = {1, 2, 5};
    const size_t parts = base == 10 && last - first < 2 ? 3 : 1;
    size_t count = 0;

    for (double power = first - (parts > 1); power <= last; power += parts > 1 ? 1 : stride)
        for (size_t i = 0; i < parts && count < TICKS_MAX; i++) {
            const double value = pow(base, power) * few[i];

            if (value >= axis->low * (1 - 1e-9) && value <= axis->high * (1 + 1e-9))
                ticks[count++] = value;
        }
    return count;
}

static size_t ticks_of(const struct nw_axis *axis, double ticks[TICKS_MAX])
{
    const size_t count = axis->log ? log_ticks(axis, ticks) : 0;

    return count > 2 ? count : linear_ticks(axis, ticks); /* few powers in a short range */
}

/* ---- the chart ---------------------------------------------------------------------------------
 */

static double or_else(double value, double fallback)
{
    return value > 0 ? value : fallback;
}

void nw_chart_open(struct nw_chart *chart, const char *id, const char *title, const char *about)
{
    FILE *stream = chart->stream;

    chart->width = or_else(chart->width, 960);
    chart->height = or_else(chart->height, 400);
    chart->left = or_else(chart->left, 64);
    chart->right = or_else(chart->right, 20);
    chart->top = or_else(chart->top, 18);
    chart->bottom = or_else(chart->bottom, 48);
    fprintf(stream,
            "<svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\"%s",
            chart->width, chart->height, chart->width, chart->height,
            chart->alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "");
    fprintf(stream, " role=\"img\" aria-labelledby=\"%s-t %s-d\">", id, id);
    fprintf(stream, "<title id=\"%s-t\">", id);
    nw_html_text(stream, title);
    fprintf(stream, "</title><desc id=\"%s-d\">", id);
    nw_html_text(stream, about);
    fputs("</desc>\n", stream);
    if (chart->alone)
        fprintf(stream, "<style>%s</style><rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                nw_chart_css);
}

void nw_chart_close(struct nw_chart *chart)
{
    fputs("</svg>\n", chart->stream);
}

void nw_chart_foot(const struct nw_chart *chart)
{
    const double x0 = chart->left, x1 = chart->width - chart->right;
    const double y0 = chart->height - chart->bottom;
    double ticks[TICKS_MAX];
    const size_t count = ticks_of(&chart->x, ticks);
    char text[32];

    for (size_t i = 0; i < count; i++) {
        const double x = nw_chart_x(chart, ticks[i]);

        fprintf(chart->stream, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, y0, chart->top);
        name_tick(&chart->x, ticks[i], text);
        nw_svg_words(chart->stream, x, y0 + 16, NULL, "middle", text);
    }
    fprintf(chart->stream, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", x0, y0, x1);
    nw_svg_words(chart->stream, (x0 + x1) / 2, chart->height - 10, "name", "middle",
                 chart->x.title);
}

void nw_chart_axes(const struct nw_chart *chart)
{
    const double x0 = chart->left, x1 = chart->width - chart->right;
    const double y0 = chart->height - chart->bottom, y1 = chart->top;
    double ticks[TICKS_MAX];
    const size_t count = ticks_of(&chart->y, ticks);
    char text[32];

    for (size_t i = 0; i < count; i++) {
        const double y = nw_chart_y(chart, ticks[i]);

        fprintf(chart->stream, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", x0, y, x1);
        name_tick(&chart->y, ticks[i], text);
        nw_svg_words(chart->stream, x0 - 6, y + 4, NULL, "end", text);
    }
    nw_chart_foot(chart);
    fprintf(chart->stream, "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>", x0, y1, y0);
    nw_svg_words(chart->stream, 4, y1 - 6, "name", "start", chart->y.title);
    fputc('\n', chart->stream);
}

/* ---- series ------------------------------------------------------------------------------------
 */

void nw_chart_series_open(const struct nw_chart *chart, size_t series)
{
    fprintf(chart->stream, "<g class=\"s s%zu\" data-series=\"%zu\">", series % NW_SERIES_STYLES,
            series);
}

void nw_chart_series_close(const struct nw_chart *chart)
{
    fputs("</g>\n", chart->stream);
}

static void band(const struct nw_chart *chart, const struct nw_chart_point *points, size_t count)
{
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        known += isfinite(points[i].low) && isfinite(points[i].high);
    if (known < 2)
        return;
    fputs("<path class=\"band\" d=\"", chart->stream);
    const char *lead = "M";

    for (size_t i = 0; i < count; i++)
        if (isfinite(points[i].low) && isfinite(points[i].high)) {
            fprintf(chart->stream, "%s%.1f %.1f", lead, nw_chart_x(chart, points[i].x),
                    nw_chart_y(chart, points[i].high));
            lead = "L";
        }
    for (size_t i = count; i > 0; i--)
        if (isfinite(points[i - 1].low) && isfinite(points[i - 1].high))
            fprintf(chart->stream, "L%.1f %.1f", nw_chart_x(chart, points[i - 1].x),
                    nw_chart_y(chart, points[i - 1].low));
    fputs("Z\"/>", chart->stream);
}

/* Around the origin, 4 units to each side. */
static const char *const shapes[NW_SERIES_STYLES] = {
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",             /* circle */
    "M-3.4-3.4h6.8v6.8h-6.8z",                                      /* square */
    "M0-4.4L4 3H-4z",                                               /* triangle */
    "M0-4.6L4.2 0L0 4.6L-4.2 0z",                                   /* diamond */
    "M0 4.4L4-3H-4z",                                               /* triangle, upside down */
    "M-1.4-4.2h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z",  /* cross */
    "M-4.4-2h8.8v4h-8.8z",                                          /* bar */
    "M0-4.6L1.5-1.4L4.6 0L1.5 1.4L0 4.6L-1.5 1.4L-4.6 0L-1.5-1.4z", /* star */
};

void nw_chart_marker(const struct nw_chart *chart, const struct nw_chart_point *point,
                     size_t series)
{
    FILE *stream = chart->stream;
    const double x = nw_chart_x(chart, point->x), y = nw_chart_y(chart, point->y);

    fprintf(stream, "<path class=\"m\" transform=\"translate(%.1f %.1f)\" d=\"%s\"", x, y,
            shapes[series % NW_SERIES_STYLES]);
    if (point->tip == NULL) {
        fputs("/>", stream);
        return;
    }
    fputs("><title>", stream);
    nw_html_text(stream, point->tip);
    fputs("</title></path>", stream);
}

void nw_chart_line(const struct nw_chart *chart, const struct nw_chart_point *points, size_t count,
                   size_t series)
{
    band(chart, points, count);
    fputs("<path class=\"l\" d=\"", chart->stream);
    for (size_t i = 0; i < count; i++)
        fprintf(chart->stream, "%s%.1f %.1f", i == 0 ? "M" : "L", nw_chart_x(chart, points[i].x),
                nw_chart_y(chart, points[i].y));
    fputs("\"/>", chart->stream);
    for (size_t i = 0; i < count; i++)
        if (points[i].tip != NULL)
            nw_chart_marker(chart, &points[i], series);
}

void nw_chart_whiskers(const struct nw_chart *chart, const struct nw_chart_point *point,
                       double low_x, double high_x)
{
    const double x = nw_chart_x(chart, point->x), y = nw_chart_y(chart, point->y);

    fputs("<path class=\"l\" d=\"", chart->stream);
    if (isfinite(point->low) && isfinite(point->high))
        fprintf(chart->stream, "M%.1f %.1fV%.1f", x, nw_chart_y(chart, point->low),
                nw_chart_y(chart, point->high));
    if (isfinite(low_x) && isfinite(high_x))
        fprintf(chart->stream, "M%.1f %.1fH%.1f", nw_chart_x(chart, low_x), y,
                nw_chart_x(chart, high_x));
    fputs("\"/>", chart->stream);
}

void nw_chart_level(const struct nw_chart *chart, double y, const char *name)
{
    const double at = nw_chart_y(chart, y), x1 = chart->width - chart->right;

    fprintf(chart->stream, "<path class=\"level\" d=\"M%.1f %.1fH%.1f\"/>", chart->left, at, x1);
    nw_svg_words(chart->stream, x1 - 4, at - 5, "mark", "end", name);
}

void nw_chart_upright(const struct nw_chart *chart, double x, const char *name)
{
    const double at = nw_chart_x(chart, x);
    const bool right = at > (chart->left + chart->width - chart->right) / 2;

    fprintf(chart->stream, "<path class=\"level\" d=\"M%.1f %.1fV%.1f\"/>", at, chart->top,
            chart->height - chart->bottom);
    nw_svg_words(chart->stream, right ? at - 5 : at + 5, chart->top + 10, "mark",
                 right ? "end" : "start", name);
}

void nw_svg_swatch(FILE *stream, size_t series)
{
    const size_t style = series % NW_SERIES_STYLES;

    fprintf(stream,
            "<svg class=\"swatch\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><g class=\"s s%zu\">"
            "<path class=\"l\" d=\"M1 6H29\"/><path class=\"m\" transform=\"translate(15 6)\" "
            "d=\"%s\"/></g></svg>",
            style, shapes[style]);
}

/* ---- without axes ------------------------------------------------------------------------------
 */

void nw_svg_box(FILE *stream, double x, double y, double width, double height, const char *class,
                const char *fill, const char *tip)
{
    fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x, y,
            fmax(width, 0), fmax(height, 0));
    if (class != NULL)
        fprintf(stream, " class=\"%s\"", class);
    if (fill != NULL)
        fprintf(stream, " fill=\"%s\"", fill);
    if (tip == NULL) {
        fputs("/>", stream);
        return;
    }
    fputs("><title>", stream);
    nw_html_text(stream, tip);
    fputs("</title></rect>", stream);
}

void nw_svg_words(FILE *stream, double x, double y, const char *class, const char *anchor,
                  const char *text)
{
    fprintf(stream, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", x, y, anchor);
    if (class != NULL)
        fprintf(stream, " class=\"%s\"", class);
    fputc('>', stream);
    nw_html_text(stream, text);
    fputs("</text>", stream);
}

void nw_svg_heat(char fill[8], double share)
{
    static const int stops[3][3] = {{0xd5, 0x5e, 0x00}, {0xe6, 0xe6, 0xe0}, {0x2a, 0x7f, 0xba}};
    const double at = fmin(fmax(share, 0), 1) * 2;
    const int from = at >= 1 ? 1 : 0;
    const double part = at - from;
    int rgb[3];

    for (int i = 0; i < 3; i++)
        rgb[i] = (int)lround(stops[from][i] + part * (stops[from + 1][i] - stops[from][i]));
    snprintf(fill, 8, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
}
