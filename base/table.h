/* Public. Aligned tables over libsmartcols: right widths for Chinese, right-aligned numbers,
 * optional tree column. Titles, cells and paragraphs are translated (base/words.h).
 *
 *     static const struct nw_column columns[] = {{"Claim", NW_LEFT}, {"measured", NW_RIGHT}};
 *     struct nw_table *table;
 *     NW_TRY(nw_table_open(columns, 2, &table));
 *     nw_table_row(table, (const char *[]){"NVLink", "374"});
 *     NW_TRY(nw_table_print(table, stdout));   // frees it
 */
#ifndef NW_BASE_TABLE_H
#define NW_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

typedef enum {
    NW_LEFT,
    NW_NAME, /* left; names that people type, which are in no language */
    NW_RIGHT,
    NW_WRAP /* left, wraps to keep the table within 100 columns */
} nw_align;

struct nw_column {
    const char *title;
    nw_align align;
};

struct nw_table;
nw_rc nw_table_open(const struct nw_column *columns, size_t count, struct nw_table **table_out);
/* One cell a column; NULL cells are empty. Texts are copied. A failure is kept and returned by
 * nw_table_print. */
void nw_table_row(struct nw_table *table, const char *const *cells);
/* The same as a child of row `parent` (0-based, in order of adding; -1: top), first column drawn as
 * a tree. */
void nw_table_tree_row(struct nw_table *table, int parent, const char *const *cells);
nw_rc nw_table_print(struct nw_table *table, FILE *stream); /* frees the table */
void nw_table_free(struct nw_table *table);                 /* accepts NULL */

/* A paragraph within 100 columns: `first` before its first line, `rest` before the others. UTF-8;
 * wide characters count two and may be broken between. */
void nw_print_wrapped(FILE *stream, const char *first, const char *rest, const char *text);

/* Columns that a text takes on a terminal. */
int nw_text_width(const char *text);
/* The text with newlines between words where a line would be wider than `width`; a longer word is
 * broken. Control characters become blanks. Caller frees; NULL: out of memory. */
char *nw_text_wrap(const char *text, int width);

/* May colour be used on this stream? A terminal, and NO_COLOR not set. */
bool nw_colour_wanted(FILE *stream);

#endif
