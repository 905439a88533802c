/* Public. A machine for people: a summary, the tree of packages, NUMA nodes and devices, the links
 * between GPUs, and what is missing or odd in words. At most 100 columns. */
#ifndef NW_REPORT_TOPO_TEXT_H
#define NW_REPORT_TOPO_TEXT_H

#include <stdio.h>

#include "topo/topo.h"

nw_rc nw_report_topo(FILE *stream, const struct nw_topo *topo);

#endif
