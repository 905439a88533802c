/* Private to report/. A table, aligned for a terminal or in Markdown (GitHub's tables).
 *
 *     struct nw_grid *grid;
 *     NW_TRY(nw_grid_open(columns, count, markdown, &grid));
 *     nw_grid_row(grid, cells);
 *     NW_TRY(nw_grid_print(grid, stream));     // frees it
 */
#ifndef NW_REPORT_SHOW_GRID_H
#define NW_REPORT_SHOW_GRID_H

#include "base/table.h"

struct nw_grid; /* borrows the columns */
nw_rc nw_grid_open(const struct nw_column *columns, size_t count, bool markdown,
                   struct nw_grid **grid_out);
/* As nw_table_row: a failure is kept until the printing. */
void nw_grid_row(struct nw_grid *grid, const char *const *cells);
nw_rc nw_grid_print(struct nw_grid *grid, FILE *stream);

#endif
