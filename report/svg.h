/* Private to report/. Charts as SVG: axes, lines with bands and markers, bars, maps of a matrix.
 * Everything is drawn here, so that a page is complete without a script; colours, dashes and fonts
 * are classes of html/chart.css. Series differ in colour, dash and marker.
 *
 *     struct nw_chart chart = {.stream = stream, .x = {.unit = NW_AXIS_BYTES, .log = true, …}};
 *     nw_chart_open(&chart, "id", "title", "what it shows");
 *     nw_chart_series_open(&chart, 0);
 *     nw_chart_line(&chart, points, count);
 *     nw_chart_series_close(&chart);
 *     nw_chart_close(&chart);
 */
#ifndef NW_REPORT_SVG_H
#define NW_REPORT_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define NW_SERIES_STYLES 8 /* then they come again */

typedef enum { NW_AXIS_BYTES, NW_AXIS_GB_PER_S, NW_AXIS_TIME, NW_AXIS_NUMBER } nw_axis_unit;

struct nw_axis {
    nw_axis_unit unit;
    bool log;
    double low, high; /* in the unit's base: bytes, bytes/s, ns; 0 < low < high where log */
    const char *title;
};

struct nw_chart {
    FILE *stream;
    bool alone; /* a file of its own: with its styles */
    double width, height;
    double left, right, top, bottom; /* margins */
    struct nw_axis x, y;
};

struct nw_chart_point {
    double x, y, low, high; /* NAN: no interval */
    const char *tip;        /* what the point is, in words; NULL */
};

/* Fills sizes and margins that are 0. `title` and `about` are what a screen reader says. */
void nw_chart_open(struct nw_chart *chart, const char *id, const char *title, const char *about);
void nw_chart_close(struct nw_chart *chart);
void nw_chart_axes(const struct nw_chart *chart);
void nw_chart_foot(const struct nw_chart *chart); /* the axis below alone */
double nw_chart_x(const struct nw_chart *chart, double value);
double nw_chart_y(const struct nw_chart *chart, double value);

/* What a legend's switch hides. */
void nw_chart_series_open(const struct nw_chart *chart, size_t series);
void nw_chart_series_close(const struct nw_chart *chart);
/* Rising in x. Band where the points have intervals, line, markers. */
void nw_chart_line(const struct nw_chart *chart, const struct nw_chart_point *points, size_t count,
                   size_t series);
void nw_chart_marker(const struct nw_chart *chart, const struct nw_chart_point *point,
                     size_t series);
/* Its interval, upright where `low_x` is NAN, else a cross. */
void nw_chart_whiskers(const struct nw_chart *chart, const struct nw_chart_point *point,
                       double low_x, double high_x);
/* A dotted line across, with its name at the right end. */
void nw_chart_level(const struct nw_chart *chart, double y, const char *name);
/* The same from top to bottom. */
void nw_chart_upright(const struct nw_chart *chart, double x, const char *name);

/* One marker and a piece of line: of a legend. */
void nw_svg_swatch(FILE *stream, size_t series);

/* ---- without axes ------------------------------------------------------------------------------
 */

/* `class` and `fill` are the page's own; NULL: none. `tip` NULL: none. */
void nw_svg_box(FILE *stream, double x, double y, double width, double height, const char *class,
                const char *fill, const char *tip);
/* `anchor`: "start" "middle" "end". */
void nw_svg_words(FILE *stream, double x, double y, const char *class, const char *anchor,
                  const char *text);
/* Vermilion (0, low) over grey to blue (1, high), which no colour-blindness mixes up. */
void nw_svg_heat(char fill[8], double share);

#endif
