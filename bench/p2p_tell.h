/* Private to bench/. What the matrix of pairs says: ceilings and findings. */
#ifndef NW_BENCH_P2P_TELL_H
#define NW_BENCH_P2P_TELL_H

#include "bench/p2p_survey.h"

struct nw_p2p_result {
    struct nw_bench *bench;
    struct nw_devices devices;
    double *direct, *staged; /* [a × rank_count + b]: a writes to b, copy engine; NAN; rank 0 */
};

/* What the wires between two ranks' GPUs carry one way: the NVLinks that both have up, else PCIe,
 * as does `staged`. `pcie`: of a's GPU under load. NAN: unknown. */
double nw_p2p_ceiling(const struct nw_p2p_result *result, int a, int b, bool staged,
                      const struct nw_pcie_link *pcie);
/* Rank 0. */
nw_rc nw_p2p_tell(const struct nw_p2p_result *result, const struct nw_survey *survey);

#endif
