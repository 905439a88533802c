/* Public. A topology in other tools' formats.
 *
 *     NW_TRY(nw_topo_write_nccl_xml(topo, stdout));    // NCCL_TOPO_FILE=…
 *     NW_TRY(nw_topo_write_dot(topo, stdout));         // dot -Tsvg
 */
#ifndef NW_TOPO_WRITE_H
#define NW_TOPO_WRITE_H

#include <stdio.h>

#include "topo/topo.h"

/* NCCL's topology file, which NCCL takes as NCCL_TOPO_FILE and nw_topo_read_file reads back to the
 * same graph (host bridges and RAM have no place in it). NW_ENOTSUP where a GPU has no PCI address.
 */
nw_rc nw_topo_write_nccl_xml(const struct nw_topo *topo, FILE *stream);
/* Graphviz: packages and NUMA nodes are clusters, PCIe and NVLink are edges. */
nw_rc nw_topo_write_dot(const struct nw_topo *topo, FILE *stream);

#endif
