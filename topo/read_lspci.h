/* Private to topo/. One device as lspci prints it, and the list of all. */
#ifndef NW_TOPO_READ_LSPCI_H
#define NW_TOPO_READ_LSPCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/topo.h"

struct nw_lspci_link {
    int generation, lanes; /* 0: unknown, or no link */
};

struct nw_lspci_device {
    uint32_t domain, bus, device, function;
    uint32_t class_id, vendor, id; /* 0: not printed and not to be had from the names */
    char name[160];                /* "GH100 [H100 SXM5 80GB]", without the vendor; "" unknown */
    char vendor_name[64];
    char driver[32];
    int secondary, subordinate; /* buses below a bridge; -1: no bridge, or not printed */
    struct nw_lspci_link can, now;
    int acs;         /* ACS control register; -1: none printed */
    int numa;        /* -1: not printed */
    int iommu_group; /* -1: not printed */
    bool root_bus;   /* its bus hangs below a host bridge: root port, host bridge, integrated */
};

struct nw_lspci {
    struct nw_lspci_device *devices; /* sorted by address once read; owned */
    size_t count, capacity;
    int denied; /* devices whose capabilities lspci was not allowed to read */
    bool cut;   /* somebody left lines out */
};

/* The tree and the facts of what was read. */
nw_rc nw_lspci_build(struct nw_lspci *lspci, const char *what, struct nw_topo **topo_out);

bool nw_is_lspci(const char *data, size_t length);
nw_rc nw_read_lspci(const char *data, size_t length, const char *what, struct nw_topo **topo_out);

#endif
