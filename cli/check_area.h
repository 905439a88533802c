/* Private to cli/. The parts of a machine that a check speaks of, and which one a finding belongs
 * to. */
#ifndef NW_CLI_CHECK_AREA_H
#define NW_CLI_CHECK_AREA_H

#include "base/finding.h"

/* X(enumerator, key in JSON, title for people) */
#define NW_CHECK_AREA_MAP(X)                                                                       \
    X(NW_AREA_GPU, "gpu", "GPU")                                                                   \
    X(NW_AREA_NVLINK, "nvlink", "NVLink")                                                          \
    X(NW_AREA_PCIE, "pcie", "PCIe")                                                                \
    X(NW_AREA_NETWORK, "network", "network")                                                       \
    X(NW_AREA_RDMA, "rdma", "RDMA")                                                                \
    X(NW_AREA_CPU, "cpu_memory", "CPU, memory")                                                    \
    X(NW_AREA_STORAGE, "storage", "storage")                                                       \
    X(NW_AREA_SOFTWARE, "software", "software")                                                    \
    X(NW_AREA_SCHEDULER, "scheduler", "scheduler")

typedef enum {
#define X(area, key, title) area,
    NW_CHECK_AREA_MAP(X)
#undef X
        NW_CHECK_AREA_COUNT
} nw_check_area;

const char *nw_check_area_key(nw_check_area area);
const char *nw_check_area_title(nw_check_area area);
/* By the finding's code, then by what it speaks of; NW_CHECK_AREA_COUNT: of no single part. */
nw_check_area nw_check_area_of(const struct nw_finding *finding);

#endif
