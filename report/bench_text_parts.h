/* Private to report/. The parts of bench's table:
 *
 *   bench_text.c         the frame: context, which table a record belongs to, findings, lanes
 *   bench_text_coll.c    cases coll, pairs, scaling
 *   bench_text_device.c  cases of GPUs: copies, peers, matrix products, overlap
 *   bench_text_nic.c     cases of RDMA
 */
#ifndef NW_REPORT_BENCH_TEXT_PARTS_H
#define NW_REPORT_BENCH_TEXT_PARTS_H

#include "report/bench_text.h"
#include "results/results.h"

struct nw_bench_text {
    FILE *stream;
    const struct nw_plan *plan;
    bool in_series;          /* a table has begun */
    struct nw_record series; /* identity of its first record */
    struct nw_record held; /* waits for its other half: out of place, a pair's latency, one host */
    bool holds;
    struct nw_results results; /* this table's records, without samples */
    struct nw_results whole;   /* the collectives of all tables, for the lanes */
    bool simulated;
    int64_t wrong;
    uint64_t checked;
    double busbw_sum;
    uint64_t busbw_count;
};

struct nw_bench_layout { /* how the records of a case are shown */
    const char *case_name;
    void (*header)(const struct nw_bench_text *text);
    void (*record)(struct nw_bench_text *text, const struct nw_record *record);
    void (*footer)(struct nw_bench_text *text);
    bool rows_at_once; /* a finding may stand between them */
    bool whole_case;   /* one table for all of its records, whatever is moved how */
};
extern const struct nw_bench_layout nw_bench_coll_layouts[]; /* end with case_name NULL */
extern const struct nw_bench_layout nw_bench_device_layouts[];
extern const struct nw_bench_layout nw_bench_nic_layouts[];

/* At most `width` characters: 6e-06, 0.0083, 12.34, 1806.7, 10094; NAN: N/A. */
const char *nw_bench_cell(char text[32], double value, int width);
const char *nw_bench_wrong_cell(char text[32], const struct nw_record *record);
/* Half the interval in percent of the median. */
double nw_bench_rel_percent(const struct nw_record *record);
/* ", SIMULATED": behind a table's name; "": measured. */
const char *nw_bench_simulated(const struct nw_bench_text *text);
/* Keeps the record's identity and figures until its other half comes. */
void nw_bench_hold(struct nw_bench_text *text, const struct nw_record *record);

#endif
