/* Private to kernels/. The rows of nw_dev_backends, and the checks that they share. */
#ifndef NW_KERNELS_BACKENDS_H
#define NW_KERNELS_BACKENDS_H

#include "kernels/dev.h"

extern const struct nw_dev_ops nw_dev_host_ops;
extern const struct nw_dev_ops nw_dev_cuda_ops;

/* NW_EUSAGE says what is wrong with the arguments of a kernel. */
nw_rc nw_check_reduce(const struct nw_reduce_inputs *inputs, nw_dtype dtype);
nw_rc nw_check_pattern(const struct nw_pattern *pattern);
nw_rc nw_check_gemm(const struct nw_gemm *gemm);

#endif
