/* Public. Paths between GPUs and NICs for people and programs: the matrix in nvidia-smi's form, the
 * ceilings beside what healthy machines reach (topo/ceiling.h). The text is part of
 * nw_report_topo; here is what goes into the JSON. */
#ifndef NW_REPORT_TOPO_PATHS_H
#define NW_REPORT_TOPO_PATHS_H

#include <jansson.h>

#include "topo/topo.h"

enum { NW_PATH_GPUS_MAX = 400, NW_PATH_NICS_MAX = 1200 }; /* a domain of 144 GPUs is sold */

struct nw_path_devices {
    int *nodes; /* GPUs, then NICs that carry RDMA (or may), the first of each; the caller frees */
    int count, gpu_count;
};
nw_rc nw_report_path_devices(const struct nw_topo *topo, struct nw_path_devices *devices_out);
/* "NV18", "PIX", "XGMI", "PHB?" (one NUMA node, host bridges not told), "?", "X". */
const char *nw_report_path_cell(const struct nw_topo *topo, int a, int b, char text[16]);
/* Adds the keys "matrix" and "ceilings". */
nw_rc nw_report_paths_json(const struct nw_topo *topo, json_t *root);

#endif
