/* Private to results/. What the importers share, so that each of them is a table of titles and the
 * meaning of its tool's columns:
 *
 *   import_words.c    a line without its launcher's prefix, its words, a printed number
 *   import_kit.c      lines of a log, its run, records and findings with their line
 *   import_columns.c  a table's header by its titles, rows by its columns, matrices
 *   import_ranks.c    ranks and hosts as a launcher's command or MPI's own list names them
 *   import_json.c     a whole JSON document in a file
 *
 * Slices and words point into the log's text.
 *
 *     struct nw_imp imp = nw_imp_open(data, length, path, results);
 *     while (nw_imp_next(&imp)) {
 *         if (nw_imp_header(imp.text, titles, &columns)) …
 *         else if (nw_imp_row(&imp, imp.text, &columns, &row)) NW_TRY(add(&imp, &row));
 *     }
 *     return nw_imp_close(&imp, "no table of … follows");
 */
#ifndef NW_RESULTS_IMPORT_KIT_H
#define NW_RESULTS_IMPORT_KIT_H

#include <jansson.h>
#include <stdarg.h>

#include "results/import.h"

struct nw_slice {
    const char *at;
    size_t length;
};

enum { NW_IMP_WORDS = 48 };
struct nw_imp_words {
    struct nw_slice word[NW_IMP_WORDS];
    int count;
};

/* A number as a log prints it: its true value lies within ± half_unit. */
struct nw_printed {
    double value; /* NAN: "N/A", "inf", "nan" or not there */
    double half_unit;
};

/* --- import_words.c --- */
struct nw_slice nw_imp_slice(const char *text);
struct nw_slice nw_imp_trim(struct nw_slice text);
/* Without a launcher's rank or stream prefix, and without blanks at both ends. */
struct nw_slice nw_imp_clean(struct nw_slice line);
/* The same, of text that may begin with "64 | 12.5 |": only prefixes that are no such cell. */
struct nw_slice nw_imp_clean_cells(struct nw_slice line);
/* Words between blanks, commas and bars; at most NW_IMP_WORDS. */
void nw_imp_split(struct nw_slice text, struct nw_imp_words *words);
bool nw_imp_starts(struct nw_slice text, const char *with);
bool nw_imp_is(struct nw_slice text, const char *word);
/* Where `needle` is in `text`; NULL: not there. */
const char *nw_imp_find(struct nw_slice text, const char *needle);
/* What stands behind `label`, trimmed; of length 0: the label is not there. */
struct nw_slice nw_imp_behind(struct nw_slice text, const char *label);
bool nw_imp_u64(struct nw_slice word, uint64_t *value_out);
/* The printed number × 10^scale. False: not a number. */
bool nw_imp_number(struct nw_slice word, int scale, struct nw_printed *number_out);
/* Copies, cut to fit, control characters as blanks. */
void nw_imp_copy(char *field, size_t size, struct nw_slice text);
bool nw_imp_is_elision(struct nw_slice text); /* "...", "[...]", "…" */
bool nw_imp_has(const char *data, size_t length, const char *text);

/* --- import_kit.c --- */
struct nw_imp_tally { /* the first of its kind, and how many */
    size_t line, count;
    char text[120];
};

struct nw_imp { /* a log under way */
    const char *path, *data;
    size_t length, at;
    size_t line;          /* number of the current line */
    struct nw_slice text; /* it, without newline */
    bool whole;           /* it ends with a newline */
    struct nw_results *results;
    struct nw_run *run; /* the open one; NULL */
    struct nw_imp_tally unreadable, elided, failed;
    bool torn; /* the last line may be cut in a number */
};

struct nw_imp nw_imp_open(const char *data, size_t length, const char *path,
                          struct nw_results *results);
bool nw_imp_next(struct nw_imp *imp);
/* Opens a run of `tool`; what the open one has to say of itself is said. */
nw_rc nw_imp_begin(struct nw_imp *imp, const char *tool);
/* Ends the open run: what could not be read, and `no_result` where it has no record. */
nw_rc nw_imp_close(struct nw_imp *imp, const char *no_result);
void nw_imp_count(struct nw_imp_tally *tally, size_t line, struct nw_slice text);
/* A finding of the open run; line 0: of the file. */
nw_rc nw_imp_tell(const struct nw_imp *imp, nw_severity severity, const char *code, size_t line,
                  const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
nw_rc nw_imp_add_finding(struct nw_findings *findings, const char *path, nw_severity severity,
                         const char *code, size_t line, const char *remedy, const char *format,
                         va_list arguments) __attribute__((format(printf, 7, 0)));
/* A record of the open run, of that line, to fill in place (the pointer holds until the next). */
nw_rc nw_imp_record(const struct nw_imp *imp, const char *case_name, const char *collective,
                    const char *lane, size_t line, struct nw_record **record_out);
/* "path:line" */
void nw_imp_source(const char *path, size_t line, char *field, size_t size);
/* From one the other, where the record's bytes are known. */
void nw_imp_set_rate(struct nw_record *record, double bytes_per_s);
void nw_imp_set_time(struct nw_record *record, double ns);
/* MPI benchmarks print the size of one rank's part of an allgather, alltoall, gather or scatter;
 * ours are of all parts. 0: not known. */
uint64_t nw_imp_whole_bytes(const struct nw_record *record, double part_bytes);
/* busbw from algbw, where ranks and collective say how. */
void nw_imp_set_busbw(struct nw_record *record);

/* A GPU of the run's one host, in the order listed; slices of length 0: not said. */
nw_rc nw_imp_gpu(const struct nw_imp *imp, int index, struct nw_slice model, struct nw_slice pci);

/* --- import_columns.c --- */
typedef enum {
    NW_IMP_BYTES,
    NW_IMP_ITERATIONS,
    NW_IMP_TIME, /* of a call: the mean, or the only one */
    NW_IMP_LEAST,
    NW_IMP_MOST,
    NW_IMP_MEDIAN,
    NW_IMP_STDDEV,
    NW_IMP_P99,
    NW_IMP_RATE,
    NW_IMP_PEAK,
    NW_IMP_MESSAGES,
    NW_IMP_OVERALL,
    NW_IMP_CHECK, /* a word, no number */
    NW_IMP_OTHER,
    NW_IMP_VALUES
} nw_imp_value;

struct nw_imp_title {
    const char *title; /* as printed; NULL ends a table */
    nw_imp_value value;
    int scale;     /* the printed number × 10^scale × factor is in ns, bytes, bytes/s */
    double factor; /* a power of two; 0 is 1 */
};

enum { NW_IMP_COLUMNS = 24 };
struct nw_imp_columns {
    int count; /* 0: no header yet */
    struct nw_imp_title at[NW_IMP_COLUMNS];
};

struct nw_imp_row {
    struct nw_printed value[NW_IMP_VALUES];
    struct nw_slice check;
};

/* Is it a header: does it begin with one of the titles, and have `least` of them? Titles that are
 * not in the table are columns of their own, which end with two blanks. */
bool nw_imp_header(struct nw_slice text, const struct nw_imp_title *titles, int least,
                   struct nw_imp_columns *columns_out);
bool nw_imp_column(const struct nw_imp_columns *columns, nw_imp_value value);
/* Is it a row: does it begin with a whole number, and has a word for each column? One that begins
 * so and is none is counted as unreadable. Of a last line without newline the last word is not
 * taken, for it may be cut. */
bool nw_imp_row(struct nw_imp *imp, struct nw_slice text, const struct nw_imp_columns *columns,
                struct nw_imp_row *row_out);

enum { NW_IMP_MATRIX = 40 };
struct nw_imp_matrix { /* "0 1 2" over rows that begin with their number */
    int columns;       /* 0: none begun */
    int row;           /* number of the row that was read */
    int scale;         /* cells × 10^scale; the caller sets it */
    struct nw_printed cell[NW_IMP_MATRIX];
};
/* "D\D 0 1 2 3": begins a matrix. `corner_out`: the word before the numbers, or empty. */
bool nw_imp_matrix_header(const struct nw_imp *imp, struct nw_slice text,
                          struct nw_imp_matrix *matrix_out, struct nw_slice *corner_out);
/* Its next row; cells that are no number (N/A, a dash) are NAN. */
bool nw_imp_matrix_row(struct nw_imp *imp, struct nw_slice text, struct nw_imp_matrix *matrix);

/* --- import_ranks.c --- */
enum { NW_IMP_HOSTS = 64 };
struct nw_imp_ranks {
    int ranks, hosts;       /* 0: not said */
    int listed, host_count; /* of MPI's list */
    char host[NW_IMP_HOSTS][64];
    bool many_hosts; /* more than there is room for */
};
/* "srun -N2 --ntasks-per-node=4 …", "mpirun -np 16 …", "[0] MPI startup(): 3  3244  node1  {1,5}"
 */
void nw_imp_take_ranks(struct nw_slice line, struct nw_imp_ranks *ranks);
int nw_imp_rank_count(const struct nw_imp_ranks *ranks);
int nw_imp_host_count(const struct nw_imp_ranks *ranks);
/* A rate that is the sum of both ways was printed: `sum` bytes/s at most. */
nw_rc nw_imp_tell_both_ways(const struct nw_imp *imp, size_t line, double sum_bytes_per_s);

/* --- import_json.c --- */
/* The document that begins with the file's first line that begins with a brace. */
nw_rc nw_imp_json(const char *data, size_t length, const char *path, const char *tool,
                  json_t **json_out, size_t *line_out);
struct nw_imp_place { /* in the text of a document; begins as {0} */
    size_t at, line;
};
/* Line of the next `"key"`, where `place` moves to; 0: there is none. */
size_t nw_imp_json_line(const struct nw_imp *imp, const char *key, struct nw_imp_place *place);
/* NAN: absent, negative, or not a number (a number in a string counts, as nvbandwidth writes). */
double nw_imp_json_number(const json_t *object, const char *key);
const char *nw_imp_json_text(const json_t *object, const char *key);
bool nw_imp_json_set(const json_t *object, const char *key); /* true, or not 0 */

#endif
