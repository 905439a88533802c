/* Public. Which records are wanted: the filters of show and compare, named as bench names what it
 * measures. Nothing is owned; texts are borrowed.
 *
 *     struct nw_select select;              // filled by nw_select_options, or zeroed
 *     if (nw_select_takes(&select, &record)) …
 */
#ifndef NW_RESULTS_SELECT_H
#define NW_RESULTS_SELECT_H

#include "base/option.h"
#include "results/results.h"

struct nw_select {                                                  /* 0 and NULL: any */
    const char *cases, *collectives, *lanes, *dtypes, *ops, *place; /* "coll,pairs" */
    uint64_t min_bytes, max_bytes;
    int rank_count, host_count;
    const char *host; /* name of one of a record's two, or of its run's */
};

/* Rows over struct nw_select; embed them with nw_cli_embed. */
extern const struct nw_option nw_select_options[];
extern const size_t nw_select_option_count;

/* `context` of its run; NULL: unknown. */
bool nw_select_takes(const struct nw_select *select, const struct nw_record *record,
                     const struct nw_context *context);
/* "coll,pairs" has "pairs" */
bool nw_list_has(const char *list, const char *name);

#endif
