/* Private to results/. The parts of the nccl-tests importer, in the order a log passes them:
 *
 *   import_nccltests.c  walks the lines, cuts the log into runs
 *   nccltests_line.c    what a line that is no row of the table may be
 *   nccltests_table.c   the table's header and rows
 *   nccltests_facts.c   what the lines around the table say: ranks, options, NCCL's own messages
 *   nccltests_infer.c   collective and rank count where the log does not name them
 *   nccltests_record.c  a finished run into a context and records
 *   nccltests_judge.c   what is missing, wrong or misleading in it: findings
 *
 * Slices and words point into the log's text.
 */
#ifndef NW_RESULTS_NCCLTESTS_H
#define NW_RESULTS_NCCLTESTS_H

#include "collectives/coll.h"
#include "results/import_kit.h"

struct nw_nt_block {
    bool present;
    struct nw_printed time_ns, algbw, busbw; /* bytes/s */
    struct nw_printed check; /* wrong elements, or (old layout) the largest relative error */
};

struct nw_nt_row {
    size_t line;
    uint64_t bytes, count;
    char dtype[16], op[16];      /* op "": the column is empty or not there */
    int root;                    /* -1: none */
    struct nw_nt_block place[2]; /* out of place, in place */
};

struct nw_nt_layout {
    bool known;          /* a header was seen */
    bool relative_error; /* column "error" (up to nccl-tests 2.11): no count of elements */
    bool cpu_time;
    bool has_op, has_root, has_timestamp;
    int width;                     /* columns of one block */
    int time, algbw, busbw, check; /* positions in a block; check -1: none */
};

struct nw_nt_host {
    char name[64];
    char gpu_model[128]; /* "": not named, or different ones */
    uint64_t hash;
    int rank_count;
};

/* Open-addressed set of host names, in order of appearance. */
struct nw_nt_hosts {
    struct nw_nt_host *items;
    int count, capacity;
    int *slots; /* index + 1; 0: free */
    size_t slot_count;
};

/* What a log says outside its tables; collected for the run that is open, or for the next one. */
struct nw_nt_facts {
    char collective[32]; /* "all_reduce"; "": not named */
    size_t collective_line;
    char nccl_version[64];
    char network[64];   /* "IB", "Socket", "AWS Libfabric" */
    char algorithm[64]; /* NCCL_ALGO */
    json_t *environment;
    int rank_count, host_count; /* of NCCL's "nranks", "nNodes"; 0: not said */
};

/* A failure or an unreadable line: the first one and how many. */
struct nw_nt_mishap {
    size_t line, count;
    char text[200];
};

struct nw_nt_run {
    struct nw_nt_facts facts;
    char tool[32], tool_version[64];
    bool options_seen;
    uint64_t min_bytes, max_bytes, step; /* step 0: unknown */
    bool step_is_factor;
    int warmup, iterations, validation; /* -1: not said */

    struct nw_nt_hosts hosts;
    size_t rank_lines, first_rank_line;
    int highest_rank;     /* -1: no list */
    int group_count;      /* NCCL_TESTS_SPLIT; 1: none */
    int first_group_size; /* ranks of group 0 */
    bool ranks_closed;    /* something follows the list, so it is not cut */
    char gpu_model[128];
    bool gpus_differ;

    struct nw_nt_layout layout;
    struct nw_nt_row *rows; /* reused from run to run */
    size_t row_count, row_capacity;
    size_t first_line;
    struct nw_nt_mishap failure, unreadable, elided, exit_status, warning;
    int64_t out_of_bounds; /* -1: the line is not there */
    size_t out_of_bounds_line;
    bool ended, torn;
    struct nw_printed average; /* bytes/s */
    size_t average_line;
};

/* --- import_nccltests.c: the importer's row in nw_importers --- */
int nw_nt_recognise(const char *data, size_t length);
nw_rc nw_nt_read(const char *data, size_t length, const char *path,
                 const struct nw_import_options *options, struct nw_results *results);

/* --- nccltests_line.c --- */
/* What a line outside the table may be. */
enum {
    NW_NT_MARK_NCCL = 1,    /* "CCL": NCCL's or RCCL's own line, or their variables */
    NW_NT_MARK_PROGRAM = 2, /* "_perf" */
    NW_NT_MARK_FAILURE = 4, /* "Test NCCL failure", "Test CUDA failure" */
    NW_NT_MARK_WARNING = 8, /* "NCCL WARN" */
};
unsigned nw_nt_marks(struct nw_slice text, bool want_program);

/* --- nccltests_table.c --- */
bool nw_nt_header(struct nw_slice text, struct nw_nt_layout *layout_out);
/* Bytes of one element; 0: no type of nccl-tests. */
size_t nw_nt_dtype_bytes(struct nw_slice word);
/* Is it a row from word `at` on (size, count, type)? */
bool nw_nt_is_row(const struct nw_imp_words *words, int at);
/* `cut`: the words may end in the middle of a row. False: `why_out` says what is wrong. */
bool nw_nt_read_row(const struct nw_imp_words *words, int at, const struct nw_nt_layout *layout,
                    bool cut, struct nw_nt_row *row_out, const char **why_out);

/* --- nccltests_facts.c --- */
void nw_nt_run_init(struct nw_nt_run *run); /* keeps the rows' memory */
void nw_nt_run_free(struct nw_nt_run *run);
void nw_nt_facts_free(struct nw_nt_facts *facts);
/* "Rank  0 Group  0 Pid  47450 on  gpu59 device  0 [0000:16:00] NVIDIA H100 80GB HBM3" */
struct nw_nt_rank {
    int rank, group;
    struct nw_slice host, gpu;
};
bool nw_nt_parse_rank(struct nw_slice text, struct nw_nt_rank *rank_out);
nw_rc nw_nt_add_rank(struct nw_nt_run *run, const struct nw_nt_rank *rank, size_t line);
void nw_nt_options_line(struct nw_nt_run *run, struct nw_slice text);
/* "…/all_reduce_perf": the collective of a command line or title. False: none. */
bool nw_nt_collective_name(struct nw_slice text, char *name, size_t size);
/* A line that has "NCCL" in it. */
nw_rc nw_nt_nccl_line(struct nw_nt_facts *facts, struct nw_slice text);
void nw_nt_mishap(struct nw_nt_mishap *mishap, size_t line, struct nw_slice text);

/* --- nccltests_infer.c --- */
/* What the reader of a log was told. */
struct nw_nt_request {
    const char *path;
    const char *collective; /* --collective; NULL */
    const char *sibling;    /* the one collective of the file's other runs; NULL */
};

struct nw_nt_reading {
    char collective[24];         /* "unknown" */
    const struct nw_coll *coll;  /* its row; NULL */
    int rank_count, host_count;  /* 0: unknown */
    const char *collective_from; /* how it was found; NULL: named, or unknown */
    const char *ranks_from;
    int ranks_low, ranks_high; /* what the columns allow, where that is not one number; 0 */
    size_t disagree_line;      /* first row whose columns contradict each other; 0: none */
    size_t disagree_count;
};
void nw_nt_infer(const struct nw_nt_run *run, const struct nw_nt_request *request,
                 struct nw_nt_reading *reading_out);

/* A finished run on its way into records and findings. */
struct nw_nt_judge {
    const struct nw_nt_run *run;
    const char *path;
    struct nw_run *out;
    struct nw_nt_reading reading;
    char lane[16];
    bool no_answer_in_place;       /* alltoall, sendrecv: nothing to compare with */
    size_t wrong_rows, wrong_line; /* rows with wrong data */
    double wrong_elements;
    size_t unordered_rows, unordered_line; /* in place, where there is no right answer */
    size_t rounding_rows;
    double rounding_most;
};

/* --- nccltests_record.c --- */
nw_rc nw_nt_set_context(const struct nw_nt_judge *judge);
nw_rc nw_nt_add_records(struct nw_nt_judge *judge);

/* --- nccltests_judge.c --- */
nw_rc nw_nt_judge_run(const struct nw_nt_run *run, const struct nw_nt_request *request,
                      struct nw_run *out);

#endif
