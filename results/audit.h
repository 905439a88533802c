/* Public. The quote against the machine: one row per claim. Physical ceilings and expected ranges
 * come from the hardware that was detected, or that the logs name, and from link arithmetic
 * (topo/link.h); no provider is known here by name.
 *
 * The audit owns its rows and findings; nw_audit_free leaves it empty.
 *
 *     struct nw_audit audit;
 *     const struct nw_audit_input input = {.quote = &quote, .results = &results};
 *     NW_TRY(nw_audit_make(&input, &audit));
 *     exit_code = nw_audit_exit_code(&audit);
 */
#ifndef NW_RESULTS_AUDIT_H
#define NW_RESULTS_AUDIT_H

#include "results/quote.h"
#include "results/results.h"

/* X(enumerator, key in JSON, text for people) */
#define NW_AUDIT_VERDICT_MAP(X)                                                                    \
    X(NW_AUDIT_MET, "met", "met")                                                                  \
    X(NW_AUDIT_SHORT, "short", "SHORT")                                                            \
    X(NW_AUDIT_NOT_MEASURED, "not_measured", "not measured")

typedef enum {
#define X(verdict, key, text) verdict,
    NW_AUDIT_VERDICT_MAP(X)
#undef X
        NW_AUDIT_VERDICT_COUNT
} nw_audit_verdict;

typedef enum { /* of a row's numbers */
               NW_AUDIT_TEXT,
               NW_AUDIT_COUNT,
               NW_AUDIT_BYTES,
               NW_AUDIT_BYTES_PER_S,
               NW_AUDIT_FLOP_PER_S,
               NW_AUDIT_PER_S,
               NW_AUDIT_W,
               NW_AUDIT_NS,
               NW_AUDIT_PRICE,
} nw_audit_unit;

/* What one time of a collective means on the wire, by the algorithm that may have run. */
struct nw_audit_reading {
    const char *algorithm; /* "ring" "tree" "nvls" "recursive doubling" "direct" */
    double bytes_per_s;
    double expected_low, expected_high;
    bool possible; /* not above what the link can carry */
};
#define NW_AUDIT_MAX_READINGS 3

struct nw_audit_row {
    const char *area;  /* "GPUs": rows of one stand together */
    const char *key;   /* "nvlink" */
    const char *claim; /* "NVLink, per GPU, one way" */
    nw_audit_unit unit;
    char quoted_text[96];
    double quoted; /* NAN: a text */
    double part; /* share of the node that took part; `measured` is held against that of `quoted` */
    double ceiling; /* NAN: unknown */
    double expected_low, expected_high;
    char measured_text[128]; /* "": not measured */
    double measured, measured_low, measured_high;
    struct nw_audit_reading readings[NW_AUDIT_MAX_READINGS];
    size_t reading_count;
    nw_audit_verdict verdict;
    char reason[400];          /* what decided; not measured: why */
    char how[300];             /* not measured: how to measure it; "": the reason says it */
    struct nw_findings causes; /* likely causes of SHORT: text and remedy */
    char source[256];          /* file, host or run that spoke */
    int quote_line;
    int machine_count; /* machines that meet the claim; 0: a rate, or unknown */
    bool simulated;
    bool arithmetic; /* the quote held against itself: nothing of the machine */
};

/* What the quote costs, in its currency. */
struct nw_audit_cost {
    const char *key;   /* "node_month" */
    const char *title; /* "one node for a month" */
    char how[120];     /* what it is made of */
    double value;
    bool simulated; /* of a rate that no hardware reached */
};
#define NW_AUDIT_MAX_COSTS 8

struct nw_audit {
    struct nw_quote quote;
    struct nw_audit_row *rows;
    size_t row_count;
    struct nw_findings findings; /* about the evidence: wrong results, unsteady runs */
    struct nw_audit_cost costs[NW_AUDIT_MAX_COSTS];
    size_t cost_count;
    char (*hosts)[64]; /* names in the evidence, in the order seen */
    size_t host_count;
    bool simulated; /* some row was made from simulated records */
};

struct nw_audit_input {
    const struct nw_quote *quote;
    const struct nw_results *results; /* NULL: none */
    struct nw_topo *const *topos;     /* further machines; NULL */
    size_t topo_count;
};

nw_rc nw_audit_make(const struct nw_audit_input *input, struct nw_audit *audit_out);
void nw_audit_free(struct nw_audit *audit);
size_t nw_audit_count(const struct nw_audit *audit, nw_audit_verdict verdict);
/* 1: some claim is short. 3: nothing was measured. 0: else. */
int nw_audit_exit_code(const struct nw_audit *audit);
nw_rc nw_audit_to_json(const struct nw_audit *audit, json_t **json_out);
const char *nw_audit_verdict_key(nw_audit_verdict verdict);
const char *nw_audit_verdict_text(nw_audit_verdict verdict);

#endif
