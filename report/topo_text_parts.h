/* Private to report/. The parts of a machine's text: the tree is in topo_text.c, the links between
 * devices in topo_text_links.c. */
#ifndef NW_REPORT_TOPO_TEXT_PARTS_H
#define NW_REPORT_TOPO_TEXT_PARTS_H

#include <stdio.h>

#include "topo/topo.h"

enum { NW_TOPO_TEXT_WIDTH = 100 };

/* Adds a word to a line, on a new line where it would not fit. `column` is where the line is. */
void nw_topo_text_word(FILE *stream, const char *word, int indent, int *column);
/* NVLink and XGMI between GPUs, and the nearest NIC of each GPU; nothing where there is none. */
nw_rc nw_topo_text_links(FILE *stream, const struct nw_topo *topo);
/* The matrix of paths, their ceilings, and what collectives may reach; nothing without GPUs. */
nw_rc nw_topo_text_paths(FILE *stream, const struct nw_topo *topo);
/* Facts of a source that shows one aspect of a machine; nothing of whole machines. */
nw_rc nw_topo_text_facts(FILE *stream, const struct nw_topo *topo);

#endif
