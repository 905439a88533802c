/* Public. The GPU catalogue: datasheet figures, compiled in from topo/gpus.csv.
 *
 *     const struct nw_gpu *gpu;
 *     NW_TRY(nw_gpu_find("NVIDIA H100 80GB HBM3", &gpu));    // also "h100-sxm", "a100-80"
 */
#ifndef NW_TOPO_GPU_H
#define NW_TOPO_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nw_gpu { /* 0: does not have it, or unknown */
    const char *name;
    uint64_t memory_bytes;
    double hbm_bytes_per_s;
    double bf16_flops, fp16_flops, fp8_flops; /* dense, per second */
    double fp32_flops, tf32_flops;            /* fp32: without matrix units */
    double matmul_flops, matmul_fp8_flops; /* largest product reached, bf16 (fp16 without bf16) */
    int sm_count;                          /* compute units on AMD */
    double nvlink_both_ways_bytes_per_s;   /* as datasheets print it: both directions summed */
    double nvlink_one_way_bytes_per_s;     /* half of it */
    int pcie_generation, pcie_lanes;
    double pcie_one_way_bytes_per_s; /* after line encoding, before packet headers */
    double tdp_w;
    const char *form; /* "sxm" "pcie" "nvl" "superchip" "oam"; "": unknown */
    const char *arch; /* "volta" … "hopper" "blackwell" "blackwell-dc" "cdna3"; "": unknown */
    int nvlink_count; /* links (XGMI on AMD) at most; 0: none, or unknown */
    double nvlink_lane_bytes_per_s;  /* of one link, one way */
    double power_from_w, power_to_w; /* default power limits that boards of it have */
    uint32_t pci_device;
    const char *source; /* V: read at the address; R: recalled, check before relying; M: mixed */
};

extern const struct nw_gpu nw_gpus[];
extern const size_t nw_gpu_count;

/* By the words of the name, in any case and punctuation; vendor and memory technology are ignored
 * ("NVIDIA", "HBM3"), and the row wins that has every word and fewest others (the first of equals:
 * SXM before PCIe). NW_EUSAGE names near ones. */
nw_rc nw_gpu_find(const char *name, const struct nw_gpu **gpu_out);

#endif
