/* Public. Curves drawn in a terminal: both axes logarithmic, a letter a curve, Braille between the
 * measured sizes (plain dots where the terminal has no UTF-8).
 *
 *     NW_TRY(nw_show_plot(stdout, &groups, NW_PLOT_RATE, 100));
 */
#ifndef NW_REPORT_SHOW_PLOT_H
#define NW_REPORT_SHOW_PLOT_H

#include <stdio.h>

#include "results/groups.h"

typedef enum { NW_PLOT_RATE, NW_PLOT_TIME } nw_plot_of;

#define NW_PLOT_CURVES_MAX 8

/* `width` of the terminal in columns. The first curves of `groups` that have two sizes are drawn;
 * NW_ENODEV: none has. */
nw_rc nw_show_plot(FILE *stream, const struct nw_groups *groups, nw_plot_of what, int width);

#endif
