/* Private to report/. What the sections of the page share: words, tables, where ids come from.
 * Every string of the page goes through tr, every one of anybody else through
 * report/html_text.h (directly, or in a cell). */
#ifndef NW_REPORT_HTML_PARTS_H
#define NW_REPORT_HTML_PARTS_H

#include "report/html.h"
#include "report/html_series.h"
#include "report/html_text.h"
#include "base/table.h"
#include "base/words.h"
#include "report/svg.h"

#define NW_DASH "–"

struct nw_html {
    FILE *stream;
    const struct nw_page *page;
    const struct nw_language *language;
    const struct nw_series_list *series;
    int chart_count;
    bool simulated; /* some of it */
    bool alone;     /* charts become files of their own */
};

static inline const char *tr(const struct nw_html *html, const char *text)
    __attribute__((format_arg(2)));
static inline const char *tr(const struct nw_html *html, const char *text)
{
    return nw_words(html->language, text);
}

/* `name` with the language before it: the page stands in the document once in each. */
const char *nw_html_id(const struct nw_html *html, const char *name, char id[64]);
/* <section> with its heading, translated already; nw_html_end closes it. */
void nw_html_begin(const struct nw_html *html, const char *name, const char *title);
void nw_html_end(const struct nw_html *html);
void nw_html_heading(const struct nw_html *html, const char *title); /* <h3> */
/* <p>: a text of the page's own, translated already, or figures; printf form. `class` NULL: none.
 */
void nw_html_say(const struct nw_html *html, const char *class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A sentence made elsewhere: translated by its form, else marked as English. */
void nw_html_foreign(const struct nw_html *html, const char *sentence);

struct nw_html_column {
    const char *title; /* English: it is translated here */
    nw_align align;
};
/* A table in a box that scrolls by itself. `caption` is translated already. */
void nw_html_table(const struct nw_html *html, const char *caption,
                   const struct nw_html_column *columns, size_t count);
/* One cell a column, the first a row's heading; NULL and "": "–". */
void nw_html_row(const struct nw_html *html, const struct nw_html_column *columns, size_t count,
                 const char *const *cells);
void nw_html_table_end(const struct nw_html *html);
/* <details> around a table or a list. */
void nw_html_fold(const struct nw_html *html, const char *title);
void nw_html_fold_end(const struct nw_html *html);
/* " (simulated)" where it is, else "". */
const char *nw_html_mark(const struct nw_html *html, bool simulated);

/* ---- charts: the SVG alone --------------------------------------------------------------------
 */

#define NW_CHART_LINES 8 /* more would be a tangle; all are in the table behind the chart */

/* Series that share a chart. */
struct nw_chart_group {
    const struct nw_series *series;
    size_t count;
};
struct nw_chart_group nw_chart_group_of(const struct nw_series_list *list, size_t chart);
/* "all_reduce, 16 ranks on 2 hosts". */
const char *nw_curves_title(const struct nw_html *html, const struct nw_chart_group *group,
                            char *text, size_t size);
/* "nvlink", with what tells it from the others. */
const char *nw_series_name(const struct nw_html *html, const struct nw_chart_group *group,
                           const struct nw_series *series, char *text, size_t size);
/* Ends of the interval of a record's bus bandwidth; NAN: none. */
void nw_record_interval(const struct nw_record *record, double *low_out, double *high_out);
nw_rc nw_draw_curves(struct nw_html *html, const struct nw_chart_group *group, const char *id);
void nw_draw_wire_step(struct nw_html *html, const char *id);
void nw_draw_wire_cost(struct nw_html *html, const char *id);
nw_rc nw_draw_lanes(struct nw_html *html, const struct nw_lanes *lanes, const char *id);
void nw_draw_breakdown(struct nw_html *html, const char *id);
void nw_draw_memory(struct nw_html *html, const char *id);
void nw_draw_topology(struct nw_html *html, const struct nw_topo *topo, const char *id);

/* <figure> with its caption, and the id for the chart in it; the legend's lines; its end. */
void nw_html_figure(struct nw_html *html, const char *caption, char id[64]);
void nw_html_legend(const struct nw_html *html, const char *const *names, size_t count);
void nw_html_figure_end(const struct nw_html *html);

/* The sections, in the order of the page. Each writes nothing where there is nothing. */
void nw_html_verdict(struct nw_html *html);
nw_rc nw_html_findings(struct nw_html *html);
nw_rc nw_html_decision(struct nw_html *html);
nw_rc nw_html_measured(struct nw_html *html);
nw_rc nw_html_lanes(struct nw_html *html);
nw_rc nw_html_maps(struct nw_html *html);
void nw_html_machine(struct nw_html *html);
void nw_html_step(struct nw_html *html);
void nw_html_records(struct nw_html *html);
void nw_html_how(struct nw_html *html);

#endif
