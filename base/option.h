/* Public. One row per option: command line, plan file, environment, --help and the plan echoed in
 * results all come from it.
 *
 * A table of rows describes the fields of one plain struct. Texts set into a `const char *` field
 * are borrowed.
 *
 *     static const struct nw_option rows[] = {
 *         {.name = "minbytes", .key = 'b', .argument = "SIZE", .type = NW_OPTION_BYTES, .min = 1,
 * .max = 1e15, .offset = offsetof(struct nw_plan, min_bytes), .fallback = "8", .help = "smallest
 * size"}, …
 *     };
 *     NW_TRY(nw_options_reset(rows, row_count, &plan));                 // every fallback
 *     NW_TRY(nw_option_set(row, &plan, "64K", "option -b"));            // checked; the error names
 * source and bounds
 */
#ifndef NW_BASE_OPTION_H
#define NW_BASE_OPTION_H

#include <argp.h>
#include <stddef.h>

#include "base/err.h"

typedef enum {
    NW_OPTION_FLAG,     /* bool; no argument: set to true */
    NW_OPTION_BOOL,     /* bool; argument yes/no */
    NW_OPTION_INT,      /* int */
    NW_OPTION_U64,      /* uint64_t */
    NW_OPTION_BYTES,    /* uint64_t, binary suffixes */
    NW_OPTION_REAL,     /* double */
    NW_OPTION_DURATION, /* double, ns; "1.5s" */
    NW_OPTION_COUNT,    /* double; decimal suffixes "300B" */
    NW_OPTION_TEXT,     /* const char *, borrowed */
    NW_OPTION_CHOICE,   /* const char *, one of `choices`, set to the table's own string */
    NW_OPTION_LIST,     /* struct nw_option_list; each use adds one borrowed text */
} nw_option_type;

#define NW_OPTION_LIST_MAX 64
struct nw_option_list {
    const char *items[NW_OPTION_LIST_MAX];
    size_t count;
};

/* As fallback of a double where 0 is a value of its own: NAN, until it is given. */
#define NW_OPTION_NOT_GIVEN "nan"

struct nw_option {
    const char *name;     /* long option and key; NULL with a help text: a group heading */
    int key;              /* short option letter, or 0 */
    const char *argument; /* "SIZE" in --help; NULL for flags */
    nw_option_type type;
    size_t offset;
    double min,
        max; /* for numbers, in the field's unit; both 0: not bounded below type's own range */
    const char *fallback;       /* as text; NULL: field left zero / NULL / false */
    const char *const *choices; /* NULL-terminated, for CHOICE */
    const char *known; /* TEXT, LIST: the kind of `nodeworth list` that names what is taken, for
                          completion: "gpus"; "cases,…": several; "constants=": NAME=VALUE; NULL */
    const char *unit;  /* "bytes", "s"; for docs and JSON */
    const char *help;
};

nw_rc nw_options_reset(const struct nw_option *rows, size_t count, void *target);
nw_rc nw_option_set(const struct nw_option *row, void *target, const char *text,
                    const char *source);
const struct nw_option *nw_option_find(const struct nw_option *rows, size_t count,
                                       const char *name);
/* The field's value as text that nw_option_set would take; returns `text`. */
const char *nw_option_text(const struct nw_option *row, const void *target, char *text,
                           size_t size);

/* argp over a table: fills `argp_rows_out` (count + 1 entries, caller's array). The key of row i is
 * its letter, or NW_OPTION_KEY_BASE + i. nw_option_parse handles such a key (ARGP_ERR_UNKNOWN if it
 * is not ours); on bad input the sentence is in nw_last_error() and EINVAL is returned. */
#define NW_OPTION_KEY_BASE 0x1000
void nw_option_argp_rows(const struct nw_option *rows, size_t count,
                         struct argp_option *argp_rows_out);
error_t nw_option_parse(const struct nw_option *rows, size_t count, void *target, int key,
                        char *argument);

#endif
