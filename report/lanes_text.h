/* Public. The lanes of a run side by side, and which are missing and why. It shows what it is given
 * and computes nothing; prints nothing where there is one lane and none is missing. */
#ifndef NW_REPORT_LANES_TEXT_H
#define NW_REPORT_LANES_TEXT_H

#include <stdio.h>

#include "results/lanes.h"

nw_rc nw_report_lanes(FILE *stream, const struct nw_lanes *lanes);

#endif
