/* Public. What the driver says of a GPU (NVML), opened at run time with our own declarations of the
 * ~50 calls used: NVIDIA's nvml.h is not needed to build, its library not needed to run.
 *
 * GPUs are found by PCI address, never by index: CUDA_VISIBLE_DEVICES renumbers CUDA's. A value
 * that the driver does not give is -1, NAN or "", never 0. nw_nvml_close accepts NULL.
 *
 *     struct nw_nvml *nvml;
 *     if (nw_nvml_open(&nvml) == NW_ENODEV) ...   // the sentence says what is missing
 *     for (int i = 0; i < nw_nvml_count(nvml); i++)
 *         NW_TRY(nw_nvml_gpu(nvml, i, &gpu));
 *     nw_nvml_close(nvml);
 */
#ifndef NW_TOPO_NVML_API_H
#define NW_TOPO_NVML_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define NW_NVML_MAX_LINKS 36 /* NVML_NVLINK_MAX_LINKS of driver 580's header */

struct nw_nvml;

typedef enum {
    NW_NVLINK_PEER_UNKNOWN,
    NW_NVLINK_PEER_GPU,
    NW_NVLINK_PEER_SWITCH,
    NW_NVLINK_PEER_CPU,
} nw_nvlink_peer;

struct nw_nvml_link {
    int index;   /* NVML's link number: there may be gaps */
    bool active; /* false: the wire is there and down */
    int version; /* NVML's own numbering; -1: unknown */
    nw_nvlink_peer peer;
    char peer_pci[16];  /* "" unknown; behind a switch: the switch's */
    double bytes_per_s; /* one direction, as the driver states it; NAN: unknown */
};

struct nw_nvml_gpu {
    char name[96], uuid[96];
    char pci[16];                            /* "0000:17:00.0" */
    uint64_t memory_bytes;                   /* 0: unknown */
    int pcie_generation, pcie_width;         /* at this moment: idle GPUs lower the generation */
    int pcie_max_generation, pcie_max_width; /* of GPU and slot together; -1: unknown */
    int capability;                          /* 90: 9.0; -1 */
    int mig_enabled;                         /* 1, 0; -1: unknown or none */
    bool links_known; /* false: the driver does not say whether it has NVLink */
    int link_count;
    struct nw_nvml_link links[NW_NVML_MAX_LINKS];
};

/* nw_nvml_sample.throttle: the driver's bits, of nvmlClocksEventReasons. */
#define NW_THROTTLE_MAP(X)                                                                         \
    X(NW_THROTTLE_IDLE, 0x1, "idle")                                                               \
    X(NW_THROTTLE_SETTING, 0x2, "application clock setting")                                       \
    X(NW_THROTTLE_POWER_CAP, 0x4, "power cap")                                                     \
    X(NW_THROTTLE_HARDWARE, 0x8, "hardware slowdown")                                              \
    X(NW_THROTTLE_SYNC_BOOST, 0x10, "sync boost")                                                  \
    X(NW_THROTTLE_HEAT, 0x20, "heat")                                                              \
    X(NW_THROTTLE_HARDWARE_HEAT, 0x40, "heat, by the hardware")                                    \
    X(NW_THROTTLE_POWER_BRAKE, 0x80, "power brake of the server")                                  \
    X(NW_THROTTLE_DISPLAY, 0x100, "display clock setting")

enum {
#define X(name, bit, text) name = bit,
    NW_THROTTLE_MAP(X)
#undef X
    /* what a buyer must know of: neither idleness nor a wish of the user */
    NW_THROTTLE_BAD = NW_THROTTLE_POWER_CAP | NW_THROTTLE_HARDWARE | NW_THROTTLE_HEAT |
                      NW_THROTTLE_HARDWARE_HEAT | NW_THROTTLE_POWER_BRAKE,
};

struct nw_nvml_sample {
    double sm_clock_hz, memory_clock_hz, sm_max_clock_hz, memory_max_clock_hz;
    double power_w, power_limit_w; /* the limit in force */
    double energy_j;               /* since the driver was loaded */
    double temperature_c;
    bool throttle_known;
    uint64_t throttle; /* bits of NW_THROTTLE_MAP; valid when known */
};

/* NW_ENODEV with what is missing: library, driver, or permission. */
nw_rc nw_nvml_open(struct nw_nvml **nvml_out);
void nw_nvml_close(struct nw_nvml *nvml);

int nw_nvml_count(const struct nw_nvml *nvml);
const char *nw_nvml_driver_version(const struct nw_nvml *nvml); /* "580.159.03"; "" */
int nw_nvml_cuda_version(const struct nw_nvml *nvml);           /* 13000; -1 */
bool nw_nvml_simulated(const struct nw_nvml *nvml);             /* a double of the library */

/* The index of the GPU at a PCI address in any usual spelling; NW_ENODEV when there is none. */
nw_rc nw_nvml_find(struct nw_nvml *nvml, const char *pci, int *index_out);
nw_rc nw_nvml_gpu(struct nw_nvml *nvml, int index, struct nw_nvml_gpu *gpu_out);
nw_rc nw_nvml_sample(struct nw_nvml *nvml, int index, struct nw_nvml_sample *sample_out);

/* All other facts of a GPU, as facts of a node (source "nvml"); what the driver or the model does
 * not tell is not set. */
struct nw_topo;
nw_rc nw_nvml_facts(struct nw_nvml *nvml, int index, struct nw_topo *topo, int node);
/* How two GPUs are joined over PCIe as the driver sees it, as a class of topo/topo.h; -1: unknown.
 */
int nw_nvml_path(struct nw_nvml *nvml, int a, int b);
/* 1: one GPU can reach the other's memory, 0: it cannot, -1: unknown. */
int nw_nvml_reaches(struct nw_nvml *nvml, int a, int b);

/* "power cap, heat"; "none" for 0. Always fits 160 bytes. */
const char *nw_throttle_text(char text[160], uint64_t throttle);

#endif
