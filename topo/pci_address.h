/* Public. PCI addresses as tools write them: "0000:17:00.0", "00000000:17:00.0" (NVIDIA),
 * "17:00.0" (lspci), "0000:17:00" (the driver's log), "10000:e0:1d.0" (behind Intel VMD).
 *
 *     struct nw_pci_address address;
 *     const char *behind = nw_pci_scan(line, &address);      // NULL: no address begins here
 *     if (behind != NULL && address.domain <= 0xffff)
 *         nw_pci_text(&address, node->pci);                  // "0000:17:00.0"
 */
#ifndef NW_TOPO_PCI_ADDRESS_H
#define NW_TOPO_PCI_ADDRESS_H

#include <stdbool.h>

#include "base/err.h"

struct nw_pci_address {
    unsigned domain, bus, device, function; /* function 0 where it is not written */
    int domain_digits;                      /* as written; 0: no domain, which means 0 */
    bool has_function;
};

/* The address that begins at `text`; what stands behind it, or NULL. A bus is at most ff, a device
 * 1f, a function 7; a domain has up to 32 bits. */
const char *nw_pci_scan(const char *text, struct nw_pci_address *address_out);
/* Canonical, as everybody here compares it; the domain must have 16 bits at most. Returns `text`.
 */
const char *nw_pci_text(const struct nw_pci_address *address, char text[16]);
/* A whole text with its function as "0000:17:00.0"; NW_EUSAGE otherwise. */
nw_rc nw_pci_normalise(const char *text, char pci_out[16]);

#endif
