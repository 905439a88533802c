/* Private to topo/. What /sys/bus/pci tells of the devices in a topology. */
#ifndef NW_TOPO_LIVE_PCI_H
#define NW_TOPO_LIVE_PCI_H

#include <stddef.h>
#include <stdint.h>

#include "topo/read.h"

/* Links of every PCI node now and at best, the slowest link above it, driver, IOMMU, ACS. What
 * cannot be read stays unknown; ACS that only root may read is part of "not-checked". */
nw_rc nw_live_pci(const struct nw_sysfs *sysfs, struct nw_topo *topo);

typedef enum {
    NW_ACS_FOUND,
    NW_ACS_NONE,    /* the list of capabilities was read to its end: there is none */
    NW_ACS_UNKNOWN, /* cut off (for root only beyond 64 bytes), or no proper list */
} nw_acs;
/* The ACS control register in a device's configuration space (little-endian, as sysfs gives it).
 * PCI Express Base Specification 7.6.3 (extended capability header), 7.7.11 (ACS). */
nw_acs nw_pci_find_acs(const uint8_t *config, size_t length, unsigned *control_out);

#endif
