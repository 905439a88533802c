#include "base/table.h"

#include <errno.h>
#include <langinfo.h>
#include <libsmartcols.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/words.h"

enum { TABLE_WIDTH = 100 };

struct nw_table {
    struct libscols_table *columns;
    struct libscols_line **lines; /* in order of adding */
    size_t line_count, capacity, column_count;
    bool *names; /* columns whose cells stay as they are */
    nw_rc rc;
};

nw_rc nw_table_open(const struct nw_column *columns, size_t count, struct nw_table **table_out)
{
    struct nw_table *table = calloc(1, sizeof *table);

    if (table == NULL || (table->columns = scols_new_table()) == NULL ||
        (table->names = calloc(count + 1, sizeof *table->names)) == NULL) {
        nw_table_free(table);
        return nw_fail(NW_ENOMEM, "no memory for a table");
    }
    table->column_count = count;
    scols_table_set_termforce(table->columns, SCOLS_TERMFORCE_ALWAYS);
    scols_table_set_termwidth(table->columns, TABLE_WIDTH);
    for (size_t i = 0; i < count; i++) {
        const int flags = columns[i].align == NW_RIGHT  ? SCOLS_FL_RIGHT
                          : columns[i].align == NW_WRAP ? SCOLS_FL_WRAP
                                                        : 0;

        table->names[i] = columns[i].align == NW_NAME;
        if (scols_table_new_column(table->columns, nw_spoken(columns[i].title), 0, flags) == NULL) {
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
        if (cells[i] != NULL &&
            scols_line_set_data(line, i, table->names[i] ? cells[i] : nw_spoken(cells[i])) != 0)
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

static const char *cell_text(struct libscols_line *line, size_t column)
{
    struct libscols_cell *cell = scols_line_get_cell(line, column);
    const char *text = cell != NULL ? scols_cell_get_data(cell) : NULL;

    return text != NULL ? text : "";
}

static bool is_wrapped(const struct nw_table *table, size_t column)
{
    return scols_column_is_wrap(scols_table_get_column(table->columns, column));
}

/* Columns that the title and the widest cell need; a tree draws two more a level. */
static int width_of(const struct nw_table *table, size_t column)
{
    struct libscols_column *scols = scols_table_get_column(table->columns, column);
    const char *title = scols_cell_get_data(scols_column_get_header(scols));
    int widest = title != NULL ? nw_text_width(title) : 0;

    for (size_t i = 0; i < table->line_count; i++) {
        int width = nw_text_width(cell_text(table->lines[i], column));

        for (struct libscols_line *up = scols_line_get_parent(table->lines[i]);
             up != NULL && column == 0; up = scols_line_get_parent(up))
            width += 2;
        if (width > widest)
            widest = width;
    }
    return widest;
}

static nw_rc wrap_column(struct nw_table *table, size_t index, int width)
{
    struct libscols_column *column = scols_table_get_column(table->columns, index);

    scols_column_set_wrapfunc(column, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL);
    scols_column_set_safechars(column, "\n");
    for (size_t i = 0; i < table->line_count; i++) {
        char *text = nw_text_wrap(cell_text(table->lines[i], index), width);

        if (text == NULL || scols_line_refer_data(table->lines[i], index, text) != 0) {
            free(text);
            return nw_fail(NW_ENOMEM, "no memory for a table cell");
        }
    }
    return NW_OK;
}

/* libsmartcols would cut words where the column ends: the texts of the columns that wrap are broken
 * between words here, within what the others leave. */
static nw_rc wrap_columns(struct nw_table *table)
{
    int left = TABLE_WIDTH - (int)table->column_count + 1, wrapped = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        wrapped += is_wrapped(table, i);
        left -= is_wrapped(table, i) ? 0 : width_of(table, i);
    }
    /* One that needs less than its part leaves the rest to the others. */
    for (size_t i = 0; i < table->column_count && wrapped > 1; i++) {
        const int width = is_wrapped(table, i) ? width_of(table, i) : 0;

        if (width == 0 || width > left / wrapped)
            continue;
        scols_column_set_flags(scols_table_get_column(table->columns, i), 0);
        left -= width;
        wrapped--;
    }
    for (size_t i = 0; i < table->column_count && wrapped > 0; i++)
        if (is_wrapped(table, i))
            NW_TRY(wrap_column(table, i, left / wrapped > 8 ? left / wrapped : 8));
    return NW_OK;
}

/* libsmartcols measures and escapes by the locale's character set: in the C locale "–" would come
 * out as \xe2\x80\x93. Our texts are UTF-8 whatever the locale says. */
static nw_rc print_in_utf8(struct nw_table *table, char **text_out)
{
    const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const locale_t ours = utf8 ? (locale_t)0 : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    const locale_t before = ours != (locale_t)0 ? uselocale(ours) : (locale_t)0;
    const bool failed = scols_print_table_to_string(table->columns, text_out) != 0;

    if (ours != (locale_t)0) {
        uselocale(before);
        freelocale(ours);
    }
    return failed ? nw_fail(NW_ENOMEM, "no memory to print a table") : NW_OK;
}

/* Without the blanks that libsmartcols leaves behind short cells. */
static nw_rc write_lines(const char *text, FILE *stream)
{
    errno = 0;
    while (*text != '\0') {
        const size_t line = strcspn(text, "\n");
        size_t length = line;

        while (length > 0 && text[length - 1] == ' ')
            length--;
        fprintf(stream, "%.*s\n", (int)length, text);
        text += line + (text[line] == '\n');
    }
    if (ferror(stream))
        return nw_fail(NW_EIO, "a table could not be written: %s",
                       errno != 0 ? strerror(errno) : "the output failed");
    return NW_OK;
}

static nw_rc print(struct nw_table *table, FILE *stream)
{
    char *text = NULL;

    NW_TRY(table->rc);
    NW_TRY(wrap_columns(table));
    NW_TRY(print_in_utf8(table, &text));
    const nw_rc rc = write_lines(text != NULL ? text : "", stream);

    free(text);
    return rc;
}

nw_rc nw_table_print(struct nw_table *table, FILE *stream)
{
    const nw_rc rc = print(table, stream);

    nw_table_free(table);
    return rc;
}

void nw_table_free(struct nw_table *table)
{
    if (table == NULL)
        return;
    scols_unref_table(table->columns);
    free(table->lines);
    free(table->names);
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
