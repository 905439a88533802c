/* Private to cli/. One line that says how far a run is, where a person looks on: on a terminal,
 * overwritten in place, gone before anything else is printed.
 *
 * Under mpirun a rank's own stdout and stderr say nothing about that (a pseudo terminal and a
 * pipe): what the launcher's are connected to decides.
 *
 *     struct nw_progress_line line = nw_progress_open(true, true);
 *     nw_progress_show(&line, &progress);   // as on_progress brings it
 *     nw_progress_clear(&line);             // before a row of the table
 */
#ifndef NW_CLI_PROGRESS_H
#define NW_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/bench.h"

struct nw_progress_line {
    FILE *stream; /* NULL: nobody looks */
    int columns;  /* of the terminal */
    bool shown;
    uint64_t shown_ns;
};

/* `wanted` false: never. `table_on_stdout`: results go there too, so that the line may. */
struct nw_progress_line nw_progress_open(bool wanted, bool table_on_stdout);
void nw_progress_show(struct nw_progress_line *line, const struct nw_bench_progress *progress);
void nw_progress_clear(struct nw_progress_line *line);

#endif
