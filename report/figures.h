/* Public. The charts of a report as files: each an SVG that stands alone, and, where gnuplot is
 * installed, the curves as PNG. No shell takes part; what gnuplot reads is written here and holds
 * numbers and names that cannot be commands. */
#ifndef NW_REPORT_FIGURES_H
#define NW_REPORT_FIGURES_H

#include "report/html.h"

struct nw_figures_written {
    size_t svg_count, png_count;
    char note[160]; /* why there is no PNG; "": there are, or there was no curve */
};

/* Makes the folder. */
nw_rc nw_report_figures(const char *directory, const struct nw_page *page,
                        struct nw_figures_written *written_out);

#endif
