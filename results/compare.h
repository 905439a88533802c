/* Public. Results of two machines, or of one before and after, held against each other result by
 * result: what can be compared, what cannot and why, how much faster one is, and whether that is
 * more than noise.
 *
 * A row is one thing measured on both sides (same case, collective, size, type, ranks, lane …). Its
 * noise is that of the raw samples (base/rank_test.h); where a side has several runs, these have to
 * agree as well. With hundreds of rows some look different by chance: Holm's correction over all
 * rows keeps the chance of any false verdict below NW_COMPARE_ALPHA.
 *
 * Owns its lists; records, names and contexts are borrowed.
 *
 *     struct nw_comparison comparison;
 *     NW_TRY(nw_compare(&plan, sides, 2, &comparison));
 *     comparison.rows[0].verdict …
 *     nw_comparison_free(&comparison);
 */
#ifndef NW_RESULTS_COMPARE_H
#define NW_RESULTS_COMPARE_H

#include "results/lanes.h"
#include "results/select.h"

#define NW_COMPARE_ALPHA 0.05

struct nw_compare_side {
    const char *name;
    const struct nw_results *results;
};

struct nw_compare_plan {
    struct nw_select select;
    const char *across; /* "gpu,lane": what may differ; NULL: nothing */
    double threshold;   /* a smaller difference does not matter: 0.05 */
};

typedef enum {
    NW_COMPARE_NO_SAMPLES, /* one figure a side: whether it is noise cannot be said */
    NW_COMPARE_SAME,       /* the whole interval is within the threshold */
    NW_COMPARE_UNCLEAR,    /* neither a difference nor its absence can be shown */
    NW_COMPARE_FASTER,     /* the second side, beyond noise and threshold */
    NW_COMPARE_SLOWER,
    NW_COMPARE_VERDICTS
} nw_compare_verdict;

struct nw_compare_row {
    size_t side;                  /* held against side 0 */
    const struct nw_record *like; /* first record of side 0 */
    double a_time_ns, b_time_ns;  /* medians; NAN: rates only */
    double a_rate, b_rate;        /* bus bandwidth, else algbw, else flop/s; NAN: none */
    size_t a_runs, b_runs;        /* records of this row */
    size_t a_samples, b_samples;  /* that the test had; 1 and 1: none */
    struct nw_value speed;        /* of the second side over the first: 1.25 is a quarter faster */
    double p, p_joint;            /* alone; corrected for all rows. NAN: no test */
    bool runs_disagree;           /* with each other as much as the sides do: no verdict from it */
    nw_compare_verdict verdict;
};

struct nw_compare_refusal { /* results without a partner, for one reason */
    size_t side;            /* that is compared with side 0 */
    bool of_first;          /* they are side 0's */
    const struct nw_record *like;
    size_t count;
    uint64_t min_bytes, max_bytes;
    char reason[256];
};

struct nw_comparison {
    struct nw_compare_side *sides; /* a copy of the list */
    size_t side_count;
    double threshold;
    struct nw_compare_row *rows; /* by side, then as things are ordered */
    size_t row_count, tested_count;
    struct nw_compare_refusal *refusals;
    size_t refusal_count;
    size_t verdicts[NW_COMPARE_VERDICTS];
    bool simulated; /* any row */
};

/* NW_EUSAGE: a name in `across` that there is not. */
nw_rc nw_compare(const struct nw_compare_plan *plan, const struct nw_compare_side *sides,
                 size_t side_count, struct nw_comparison *comparison_out);
void nw_comparison_free(struct nw_comparison *comparison);
const char *nw_compare_verdict_name(nw_compare_verdict verdict); /* "faster" */
nw_rc nw_comparison_to_json(const struct nw_comparison *comparison, json_t **json_out);

#endif
