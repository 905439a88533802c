/* Public. Records on disk: results.jsonl. The first line of a run is its context (kind "context"),
 * then records (kind "record"), findings (kind "finding") and, when the run reached its end, one
 * line of kind "end". Several runs may follow each other in one file. Keys carry units;
 * docs/schema.md has them all.
 *
 * Writing: one line, one fsync; a killed run leaves whole lines. Reading: strict, errors name file,
 * line and key; keys it does not know are passed over, another schema version is refused.
 *
 *     struct nw_results results = {0};
 *     NW_TRY(nw_results_read("results.jsonl", &results));
 *     nw_plateau_of(&results.runs[0], "coll", "all_reduce", 0, 0, -1, &plateau);
 *     nw_results_free(&results);
 */
#ifndef NW_RESULTS_RESULTS_H
#define NW_RESULTS_RESULTS_H

#include "bench/record.h"

struct nw_run {
    struct nw_context context;
    struct nw_record *records;
    size_t record_count, record_capacity; /* room for */
};

struct nw_results { /* owns everything */
    struct nw_run *runs;
    size_t run_count, run_capacity;
};

/* Reads one file and appends its runs. A torn last line (no newline: the writer was killed) is left
 * out with a finding in the last run's context; anything else that is not valid is NW_EUSAGE. */
nw_rc nw_results_read(const char *path, struct nw_results *results);
/* The same from memory; `path` words the errors. On failure `results` is as before. */
nw_rc nw_results_read_data(const char *data, size_t length, const char *path,
                           struct nw_results *results);
void nw_results_free(struct nw_results *results);

/* The same line by line, without keeping anything: a million records take seconds and a few MiB. */
struct nw_results_place { /* of a line; valid during the call */
    const char *path;
    size_t line;
    uint64_t offset; /* in the file */
    const char *text;
    size_t length; /* without newline */
};

/* The first failure of a function ends the reading and is handed on. What a function leaves in a
 * context or record is freed behind it: it may take their contents over (and init them anew). NULL
 * where it says so: passed over. */
struct nw_results_visitor {
    void *user;
    /* Records without samples, warnings, GPU states and, of time_ns, all but count, median, low,
     * high and level: twice as fast. */
    bool brief;
    nw_rc (*on_context)(void *user, struct nw_context *context,
                        const struct nw_results_place *place);
    nw_rc (*on_record)(void *user, struct nw_record *record, const struct nw_results_place *place);
    nw_rc (*on_finding)(void *user, const struct nw_finding *finding,
                        const struct nw_results_place *place); /* or NULL */
    nw_rc (*on_end)(void *user); /* or NULL; a record behind it opens the run again */
};
/* "-" is standard input. Errors as nw_results_read's. */
nw_rc nw_results_each(const char *path, const struct nw_results_visitor *visitor);
nw_rc nw_results_each_data(const char *data, size_t length, const char *path,
                           const struct nw_results_visitor *visitor);

/* Appends an empty run and returns it (context and records initialised); NULL: out of memory. The
 * pointer holds until the next run is added. */
struct nw_run *nw_results_add_run(struct nw_results *results);
void nw_run_free(struct nw_run *run); /* leaves it empty */
/* Frees the runs from number `count` on; with none left nothing is owned any more. */
void nw_results_cut(struct nw_results *results, size_t count);
size_t nw_results_record_count(const struct nw_results *results);
/* Takes the record's contents over (the caller's is left initialised). */
nw_rc nw_run_add_record(struct nw_run *run, struct nw_record *record);
/* Appends an initialised record to fill in place; NULL: out of memory. The pointer holds until the
 * next one. */
struct nw_record *nw_run_new_record(struct nw_run *run);
/* Room for `more` records, so that adding them moves nothing. */
nw_rc nw_run_reserve(struct nw_run *run, size_t more);

struct nw_results_writer;
/* `resume`: go on behind what is there; else the file is started anew. */
nw_rc nw_results_create(const char *path, bool resume, struct nw_results_writer **writer_out);
/* The context, and its findings each on a line of its own. */
nw_rc nw_results_write_context(struct nw_results_writer *writer, const struct nw_context *context);
nw_rc nw_results_write_record(struct nw_results_writer *writer, const struct nw_record *record);
nw_rc nw_results_write_finding(struct nw_results_writer *writer, const struct nw_finding *finding);
nw_rc nw_results_write_end(struct nw_results_writer *writer);
nw_rc nw_results_close(struct nw_results_writer *writer); /* accepts NULL */
/* All runs of `results` as one new file, whole or not at all. */
nw_rc nw_results_save(const char *path, const struct nw_results *results);

nw_rc nw_record_to_json(const struct nw_record *record, json_t **json_out);
nw_rc nw_record_from_json(const json_t *json, const char *what, struct nw_record *record_out);
nw_rc nw_context_to_json(const struct nw_context *context, json_t **json_out);
/* {"context": …, "findings": […], "records": […], "complete": …}, for --json. */
nw_rc nw_run_to_json(const struct nw_run *run, json_t **json_out);
nw_rc nw_context_from_json(const json_t *json, const char *what, struct nw_context *context_out);

/* A case of collectives over all ranks of a group: its records make curves. Not so pairs, copies
 * and products of single GPUs, and collectives that compete with a product. */
bool nw_record_is_collective(const struct nw_record *record);
/* The lane that speaks for a run where none is asked for: auto, else the first of those asked for
 * that has records, else that of the first record; NULL: there is no collective. */
const char *nw_run_lane(const struct nw_run *run);

/* Bandwidth of a curve: never an average over sizes. */
struct nw_plateau {
    double busbw_bytes_per_s; /* median of the largest sizes that agree within 2 % */
    double low, high;         /* the widest of those sizes and of their intervals */
    double algbw_bytes_per_s;
    uint64_t from_bytes, to_bytes;
    bool falls; /* the largest size is more than 10 % below the best: see peak */
    double peak_bytes_per_s;
    uint64_t peak_bytes;
    int rank_count, host_count;
};
/* Over the records of `run` with this collective, rank and host count (0: any, the largest rank
 * count that is there), place -1 either (the mean of both where a size has both) / 0 out / 1 in.
 * Lane, features, dtype, op and root are those of one such record: of the lane auto where there is
 * one, without features where there is one, else of the first. Records with wrong data, without a
 * bus bandwidth, or moved in pieces are left out. NW_ENODEV: none is left. */
nw_rc nw_plateau_of(const struct nw_run *run, const char *case_name, const char *collective,
                    int rank_count, int host_count, int place, struct nw_plateau *plateau_out);
/* The same over several runs, as over one that has all their records. */
nw_rc nw_plateau_of_runs(const struct nw_run *const *runs, size_t run_count, const char *case_name,
                         const char *collective, int rank_count, int host_count, int place,
                         struct nw_plateau *plateau_out);
/* Over the records of `run` that differ from `like` in bytes, times and place only. */
nw_rc nw_plateau_like(const struct nw_run *run, const struct nw_record *like, int place,
                      struct nw_plateau *plateau_out);

#endif
