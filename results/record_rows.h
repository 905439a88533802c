/* Private to results/. The keys of a record's line as rows, shared by all that spells or reads one.
 */
#ifndef NW_RESULTS_RECORD_ROWS_H
#define NW_RESULTS_RECORD_ROWS_H

#include "results/fields.h"
#include "results/results.h"

/* Over struct nw_record, in the order of the line: identity, "time_ns", the rest. */
extern const struct nw_line_field nw_record_identity_rows[];
extern const size_t nw_record_identity_row_count;
extern const struct nw_line_field nw_record_result_rows[];
extern const size_t nw_record_result_row_count;
/* Over struct nw_stats. */
extern const struct nw_line_field nw_record_time_rows[];
extern const size_t nw_record_time_row_count;
/* Over struct nw_gpu_state. */
extern const struct nw_line_field nw_record_state_rows[];
extern const size_t nw_record_state_row_count;

struct nw_record_state { /* one key of "gpu_state" */
    const char *key;
    size_t offset; /* in struct nw_record */
};
enum { NW_RECORD_STATE_COUNT = 3 };
extern const struct nw_record_state nw_record_states[NW_RECORD_STATE_COUNT];

const char *nw_stop_name(nw_stop stop); /* "converged"; NULL: unknown */
/* False: there is none such. */
bool nw_stop_named(const char *name, nw_stop *stop_out);
bool nw_rc_named(const char *name, nw_rc *rc_out);

/* A line as this program writes it, many times faster than with jansson: no escapes, no nesting
 * beyond "time_ns", "samples_ns" and an empty "warnings", no value out of bounds. False: anything
 * else, also what is wrong; jansson then reads it or words the error. What is taken is the same to
 * the last bit. `brief`: see struct nw_results_visitor. On success the caller frees the record. */
bool nw_record_scan(const char *line, size_t length, bool brief, struct nw_record *record_out);

#endif
