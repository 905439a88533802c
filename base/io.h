/* Public. Files that are never half-written.
 *
 * A whole file goes through a temporary name in the same directory and appears by rename after
 * fsync. A stream of lines is appended with one write and one fsync a line: a killed run leaves
 * whole lines only.
 *
 *     struct nw_atomic_file *file;
 *     NW_TRY(nw_atomic_open("report.txt", &file));
 *     fprintf(nw_atomic_stream(file), …);
 *     NW_TRY(nw_atomic_commit(file));        // or nw_atomic_abandon(file)
 */
#ifndef NW_BASE_IO_H
#define NW_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct nw_atomic_file;
nw_rc nw_atomic_open(const char *path, struct nw_atomic_file **file_out);
FILE *nw_atomic_stream(struct nw_atomic_file *file);
nw_rc nw_atomic_commit(struct nw_atomic_file *file); /* frees `file`, whether it worked or not */
void nw_atomic_abandon(struct nw_atomic_file *file); /* accepts NULL */

/* Append-only lines. `truncate`: start an empty file; else go on behind what is there (a torn last
 * line, left by a kill in mid-write, is cut off first). */
struct nw_line_file;
nw_rc nw_lines_open(const char *path, int truncate, struct nw_line_file **file_out);
nw_rc nw_lines_append(struct nw_line_file *file, const char *text,
                      size_t length);            /* adds the newline, fsyncs */
nw_rc nw_lines_close(struct nw_line_file *file); /* accepts NULL; frees */

/* The whole file, NUL-terminated behind its `length` bytes (it may hold NULs); caller frees. "-" is
 * stdin. NW_EIO: cannot be read; NW_EUSAGE: larger than `max_bytes`, or a directory. */
nw_rc nw_file_read(const char *path, uint64_t max_bytes, char **data_out, size_t *length_out);
nw_rc nw_make_directory(const char *path); /* with parents; fine when it is there */

#endif
