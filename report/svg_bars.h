/* Private to report/. Bars that lie: one row a name, in each the parts of it one behind the other.
 * Parts of the ninth on are striped. */
#ifndef NW_REPORT_SVG_BARS_H
#define NW_REPORT_SVG_BARS_H

#include "report/svg.h"

struct nw_bars { /* borrows everything */
    FILE *stream;
    bool alone;
    const char *title, *about, *axis; /* of the chart, of the values */
    nw_axis_unit unit;
    const char *const *rows;
    size_t row_count;
    const char *const *parts;
    size_t part_count;
    const double *values;     /* row_count × part_count; NAN and 0: not there */
    const double *low, *high; /* of each row's sum; NULL: none */
    double mark;              /* a line across all rows; NAN: none */
    const char *mark_name;
    const char *(*tell)(char text[32], double value);
};

void nw_bars_draw(const struct nw_bars *bars, const char *id);

#endif
