/* Public. Results browsed: runs, what was measured, single results, findings; as tables or
 * Markdown.
 *
 *     struct nw_show_view view = {.stream = stdout};
 *     NW_TRY(nw_show_groups(&view, &groups));
 */
#ifndef NW_REPORT_SHOW_TEXT_H
#define NW_REPORT_SHOW_TEXT_H

#include <stdio.h>

#include "results/groups.h"

struct nw_show_view {
    FILE *stream;
    bool markdown; /* else aligned for a terminal */
};

struct nw_show_run { /* borrowed */
    const struct nw_context *context;
    size_t record_count, shown_count; /* of it; that the filters take */
};

#define NW_SHOW_RUNS_MAX     20
#define NW_SHOW_FINDINGS_MAX 10

nw_rc nw_show_runs(const struct nw_show_view *view, const struct nw_show_run *runs, size_t count);
nw_rc nw_show_groups(const struct nw_show_view *view, const struct nw_groups *groups);
/* `all`: how many there are, of which these are the first. */
nw_rc nw_show_records(const struct nw_show_view *view, const struct nw_record *records,
                      size_t count, size_t all);
/* The first ones of every run. */
nw_rc nw_show_findings(const struct nw_show_view *view, const struct nw_show_run *runs,
                       size_t count);

#endif
