/* Private to report/. The records that make curves, sorted into series: one collective by one lane
 * over one group of ranks. Of several records of one size the middle one by its rate stands in, out
 * of place where there is one. Borrows the results. */
#ifndef NW_REPORT_HTML_SERIES_H
#define NW_REPORT_HTML_SERIES_H

#include "results/results.h"

struct nw_series {
    size_t run;                       /* of results.runs */
    const struct nw_record **records; /* rising in bytes, one of each size */
    size_t count;
    size_t chart; /* series of one number share a chart */
};
struct nw_series_list { /* owns its lists */
    struct nw_series *items;
    size_t count, chart_count;
    const struct nw_record **records;
};

nw_rc nw_series_of(const struct nw_results *results, struct nw_series_list *list_out);
void nw_series_free(struct nw_series_list *list);

#endif
