#include "base/table.h"

#include <errno.h>
#include <langinfo.h>
#include <libsmartcols.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_WIDTH = 100 };

struct nw_table {
    struct libscols_table *columns;
    struct libscols_line **lines; /* in order of adding */
    size_t line_count, capacity, column_count;
    nw_rc rc;
};

nw_rc nw_table_open(const struct nw_column *columns, size_t count, struct nw_table **table_out)
{
    struct nw_table *table = calloc(1, sizeof *table);

    if (table == NULL || (table->columns = scols_new_table()) == NULL) {
        free(table);
        return nw_fail(NW_ENOMEM, "no memory for a table");
    }
    table->column_count = count;
    scols_table_set_termforce(table->columns, SCOLS_TERMFORCE_ALWAYS);
    scols_table_set_termwidth(table->columns, TABLE_WIDTH);
    scols_table_enable_minout(table->columns, 1); /* no blanks at line ends */
    for (size_t i = 0; i < count; i++) {
        const int flags = columns[i].align == NW_RIGHT  ? SCOLS_FL_RIGHT
                          : columns[i].align == NW_WRAP ? SCOLS_FL_WRAP
                                                        : 0;

        if (scols_table_new_column(table->columns, columns[i].title, 0, flags) == NULL) {
            nw_table_free(table);
            return nw_fail(NW_ENOMEM, "no memory for a table of %zu columns", count);
        }
    }
    *table_out = table;
    return NW_OK;
}

static nw_rc add_row(struct nw_table *table, struct libscols_line *parent, const char *const *cells)
{
    if (table->line_count == table->capacity) {
        const size_t capacity = table->capacity > 0 ? 2 * table->capacity : 16;
        struct libscols_line **lines = realloc(table->lines, capacity * sizeof(*lines));

        if (lines == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu table rows", capacity);
        table->lines = lines;
        table->capacity = capacity;
    }
    struct libscols_line *line = scols_table_new_line(table->columns, parent);

    if (line == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a table row");
    table->lines[table->line_count++] = line;
    for (size_t i = 0; i < table->column_count; i++)
        if (cells[i] != NULL && scols_line_set_data(line, i, cells[i]) != 0)
            return nw_fail(NW_ENOMEM, "no memory for a table cell");
    return NW_OK;
}

void nw_table_row(struct nw_table *table, const char *const *cells)
{
    if (table->rc == NW_OK)
        table->rc = add_row(table, NULL, cells);
}

void nw_table_tree_row(struct nw_table *table, int parent, const char *const *cells)
{
    struct libscols_column *first = scols_table_get_column(table->columns, 0);

    if (table->rc != NW_OK)
        return;
    if (parent >= 0 && (size_t)parent >= table->line_count) {
        table->rc = nw_fail(NW_EUSAGE, "table row %d is no parent: there are %zu rows", parent,
                            table->line_count);
        return;
    }
    scols_column_set_flags(first, scols_column_get_flags(first) | SCOLS_FL_TREE);
    table->rc = add_row(table, parent >= 0 ? table->lines[parent] : NULL, cells);
}

/* libsmartcols measures and escapes by the locale's character set: in the C locale "–" would come
 * out as \xe2\x80\x93. Our texts are UTF-8 whatever the locale says. */
static nw_rc print_in_utf8(struct nw_table *table, FILE *stream)
{
    const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const locale_t ours = utf8 ? (locale_t)0 : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    const locale_t before = ours != (locale_t)0 ? uselocale(ours) : (locale_t)0;

    errno = 0;
    scols_table_set_stream(table->columns, stream);
    const bool failed = scols_print_table(table->columns) != 0 || ferror(stream);
    const int error = errno;

    if (ours != (locale_t)0) {
        uselocale(before);
        freelocale(ours);
    }
    if (failed)
        return nw_fail(NW_EIO, "a table could not be written: %s",
                       error != 0 ? strerror(error) : "the output failed");
    return NW_OK;
}

nw_rc nw_table_print(struct nw_table *table, FILE *stream)
{
    const nw_rc rc = table->rc != NW_OK ? table->rc : print_in_utf8(table, stream);

    nw_table_free(table);
    return rc;
}

void nw_table_free(struct nw_table *table)
{
    if (table == NULL)
        return;
    scols_unref_table(table->columns);
    free(table->lines);
    free(table);
}

bool nw_colour_wanted(FILE *stream)
{
    const char *no_colour = getenv("NO_COLOR"); /* no-color.org: set and not empty */
    const char *terminal = getenv("TERM");

    if (no_colour != NULL && no_colour[0] != '\0')
        return false;
    if (terminal == NULL || strcmp(terminal, "dumb") == 0)
        return false;
    return isatty(fileno(stream)) == 1;
}
