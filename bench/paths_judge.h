/* Public. Do measured rates between GPUs fit the PCIe path that joins them? Pure. A rate is NAN
 * where nothing was measured.
 *
 * Two at one switch are never slower than two whose path goes over the CPU, unless ACS sends what
 * passes through the switch up to the CPU and back: 50 instead of 103 GB/s, where pairs across had
 * 95 (voipmonitor/rtx6kpro). Pairs across that stay far below the PCIe link are held up by the
 * CPU's root complex.
 */
#ifndef NW_BENCH_PATHS_JUDGE_H
#define NW_BENCH_PATHS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    NW_NEARNESS_UNKNOWN,
    NW_NEARNESS_SWITCH, /* below a common PCIe switch */
    NW_NEARNESS_APART,  /* over the CPU */
} nw_nearness;

/* Of two PCI devices by their resolved paths in sysfs:
 * "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/…". */
nw_nearness nw_pci_nearness(const char *path_a, const char *path_b);

/* Below this share of what pairs across have, pairs at one switch are redirected. */
#define NW_INVERTED_SHARE 0.9
/* Copies between GPUs over PCIe reach 82 % and more of the link (topo/link.h). */
#define NW_ROOT_LIMITED_SHARE 0.75

struct nw_paths_verdict {
    bool inverted, root_limited;
    double switch_bytes_per_s, apart_bytes_per_s; /* medians; NAN: no such pair */
    double apart_share; /* median share of the ceiling of pairs apart; NAN: unknown */
};

/* `rates`, `ceilings` (NAN: unknown) and `nearness`: [a × count + b]. Only pairs that have no
 * NVLink may have a rate here. `count`: at most NW_PATHS_MAX. */
#define NW_PATHS_MAX 32
struct nw_paths_verdict nw_paths_judge(const double *rates, const double *ceilings,
                                       const nw_nearness *nearness, size_t count);

#endif
