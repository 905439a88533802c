#include "report/show_grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/words.h"

struct nw_grid {
    struct nw_table *table;          /* NULL: Markdown */
    const struct nw_column *columns; /* the caller's */
    size_t column_count;
    char *text; /* Markdown's lines so far */
    size_t length;
    FILE *lines; /* into text */
};

/* What Markdown or HTML would take for markup stands for itself. */
static void put_cell(FILE *stream, const char *text)
{
    fputc(' ', stream);
    for (; text != NULL && *text != '\0'; text++) {
        if (strchr("\n\r\t", *text) != NULL)
            fputc(' ', stream);
        else if (*text == '<')
            fputs("&lt;", stream);
        else if (*text == '&')
            fputs("&amp;", stream);
        else if (strchr("|\\`*_[]", *text) != NULL)
            fprintf(stream, "\\%c", *text);
        else
            fputc(*text, stream);
    }
    fputs(" |", stream);
}

static void put_row(const struct nw_grid *grid, const char *const *cells)
{
    fputc('|', grid->lines);
    for (size_t i = 0; i < grid->column_count; i++)
        put_cell(grid->lines, grid->columns[i].align == NW_NAME || cells[i] == NULL
                                  ? cells[i]
                                  : nw_spoken(cells[i]));
    fputc('\n', grid->lines);
}

static void put_head(const struct nw_grid *grid, const struct nw_column *columns)
{
    fputc('|', grid->lines);
    for (size_t i = 0; i < grid->column_count; i++)
        put_cell(grid->lines, nw_tr(columns[i].title));
    fputs("\n|", grid->lines);
    for (size_t i = 0; i < grid->column_count; i++)
        fputs(columns[i].align == NW_RIGHT ? " ---: |" : " --- |", grid->lines);
    fputc('\n', grid->lines);
}

nw_rc nw_grid_open(const struct nw_column *columns, size_t count, bool markdown,
                   struct nw_grid **grid_out)
{
    struct nw_grid *grid = calloc(1, sizeof *grid);

    if (grid == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a table");
    grid->columns = columns;
    grid->column_count = count;
    if (!markdown) {
        const nw_rc rc = nw_table_open(columns, count, &grid->table);

        if (rc != NW_OK) {
            free(grid);
            return rc;
        }
    } else {
        grid->lines = open_memstream(&grid->text, &grid->length);
        if (grid->lines == NULL) {
            free(grid);
            return nw_fail(NW_ENOMEM, "no memory for a table");
        }
        put_head(grid, columns);
    }
    *grid_out = grid;
    return NW_OK;
}

void nw_grid_row(struct nw_grid *grid, const char *const *cells)
{
    if (grid->table != NULL)
        nw_table_row(grid->table, cells);
    else
        put_row(grid, cells);
}

nw_rc nw_grid_print(struct nw_grid *grid, FILE *stream)
{
    nw_rc rc = NW_OK;

    if (grid->table != NULL)
        rc = nw_table_print(grid->table, stream);
    else if (fclose(grid->lines) != 0)
        rc = nw_fail(NW_ENOMEM, "no memory for a table");
    else
        fwrite(grid->text, 1, grid->length, stream);
    free(grid->text);
    free(grid);
    return rc;
}
