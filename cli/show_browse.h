/* Private to cli/. Results files read once for `show`: what is selected goes to a sink at once, or
 * is kept as groups and as the first records by some order.
 */
#ifndef NW_CLI_SHOW_BROWSE_H
#define NW_CLI_SHOW_BROWSE_H

#include "report/show_text.h"
#include "results/select.h"
#include "results/sink.h"

/* Records that are kept to be sorted or put into a table; more are no table. */
#define NW_BROWSE_KEPT_MAX 100000

typedef enum {
    NW_ORDER_NONE, /* as they stand in the files */
    NW_ORDER_BYTES,
    NW_ORDER_TIME,
    NW_ORDER_BUSBW, /* the highest first, as all that follow */
    NW_ORDER_ALGBW,
    NW_ORDER_SKEW,
    NW_ORDER_WRONG,
} nw_order;
extern const char *const nw_order_names[]; /* NULL-terminated; [NW_ORDER_NONE] "file" */

struct nw_browse_kept {
    double key;
    size_t sequence;
    int run;
    struct nw_record record;
};

struct nw_browse {
    /* in */
    struct nw_select select;
    int only_run;            /* 0: all */
    bool whole_contexts;     /* topologies and all; else only of the present run */
    bool group, keep, whole; /* make groups; keep records; of those all that they hold */
    nw_order order;
    bool reverse;
    size_t limit; /* of what is kept */
    /* Where selected records go at once; NULL: nowhere. `run`: number of the run, from 1. */
    nw_rc (*sink)(void *user, int run, const struct nw_context *context,
                  const struct nw_record *record);
    nw_rc (*sink_finding)(void *user, const struct nw_finding *finding);
    nw_rc (*sink_end)(void *user, const struct nw_context *context); /* of the sink's last run */
    void *user;
    /* out; owned */
    struct nw_results contexts; /* runs without records */
    struct nw_show_run *runs;
    size_t run_capacity;
    struct nw_groups groups;
    struct nw_browse_kept **kept;
    size_t kept_count, kept_capacity;
    size_t selected; /* records */
    bool sink_has_run;
};

/* A results file, or a log that an importer knows. */
nw_rc nw_browse_file(struct nw_browse *browse, const char *path);
/* Behind the last file: figures of the groups, order of what is kept. */
nw_rc nw_browse_finish(struct nw_browse *browse);
void nw_browse_free(struct nw_browse *browse);

#endif
