/* Public. The screen of nodeworth check: what the hosts are, part by part; findings; what was not
 * checked; the verdict. At most 100 columns. It shows what it is given. */
#ifndef NW_REPORT_CHECK_TEXT_H
#define NW_REPORT_CHECK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/finding.h"
#include "model/finding_cost.h"
#include "results/audit.h"

/* X(enumerator, key in JSON, text for people) */
#define NW_CHECK_STATE_MAP(X)                                                                      \
    X(NW_CHECK_OK, "ok", "ok")                                                                     \
    X(NW_CHECK_WARNING, "warning", "warning")                                                      \
    X(NW_CHECK_FAILURE, "failure", "FAILURE")                                                      \
    X(NW_CHECK_NOT_CHECKED, "not_checked", "not checked")                                          \
    X(NW_CHECK_NOTHING, "nothing_there", "–")

typedef enum {
#define X(state, key, text) state,
    NW_CHECK_STATE_MAP(X)
#undef X
        NW_CHECK_STATE_COUNT
} nw_check_state;

/* X(enumerator, key in JSON) */
#define NW_CHECK_VERDICT_MAP(X)                                                                    \
    X(NW_CHECK_FIT, "fit")                                                                         \
    X(NW_CHECK_UNFIT, "not_fit")                                                                   \
    X(NW_CHECK_UNKNOWN, "unknown")

typedef enum {
#define X(verdict, key) verdict,
    NW_CHECK_VERDICT_MAP(X)
#undef X
        NW_CHECK_VERDICT_COUNT
} nw_check_verdict;

struct nw_check_row { /* one part of the machines */
    const char *key, *title;
    char value[240]; /* of most hosts; "": unknown */
    char hosts[160]; /* "all 2 hosts equal", "node2: 4 × …" */
    nw_check_state state;
};

struct nw_check_screen { /* borrows everything */
    const char *version;
    size_t host_count, read_count; /* of the run; those that were read */
    int rank_count;                /* 0: from files */
    char machines[160];            /* "8 × NVIDIA H100 80GB HBM3" */
    double elapsed_ns;             /* NAN: from files */
    bool simulated;
    const struct nw_check_row *rows;
    size_t row_count;
    const struct nw_findings *findings;    /* without "not-checked" */
    const struct nw_findings *not_checked; /* those; the remedy tells how to learn it */
    const struct nw_finding_costs *costs;  /* NULL: no job was given */
    const struct nw_audit *audit;          /* NULL: no quote was given */
    nw_check_verdict verdict;
    char verdict_text[900];
};

/* `colour`: mark severities with colour. */
nw_rc nw_report_check(FILE *stream, const struct nw_check_screen *screen, bool colour);

const char *nw_check_state_key(nw_check_state state);
const char *nw_check_verdict_key(nw_check_verdict verdict);

#endif
