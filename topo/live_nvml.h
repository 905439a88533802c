/* Private to topo/. What the driver says of this machine's GPUs, into a topology that was read from
 * the system: GPUs are found by PCI address, those that the system does not show (containers) are
 * added. Without a driver nothing happens. How long the driver took for each GPU is a fact. */
#ifndef NW_TOPO_LIVE_NVML_H
#define NW_TOPO_LIVE_NVML_H

#include "topo/topo.h"

nw_rc nw_nvml_live(struct nw_topo *topo);

#endif
