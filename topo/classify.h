/* Private to topo/. What a PCI or OS device is, from its class, vendor, OS devices and facts. */
#ifndef NW_TOPO_CLASSIFY_H
#define NW_TOPO_CLASSIFY_H

#include "topo/read.h"

/* PCI classes: PCI Code and ID Assignment Specification, 1.1. */
enum {
    NW_PCI_CLASS_VGA = 0x0300,
    NW_PCI_CLASS_3D = 0x0302,
    NW_PCI_CLASS_DISPLAY = 0x0380,     /* AMD MI200 */
    NW_PCI_CLASS_ACCELERATOR = 0x1200, /* AMD MI300 */
    NW_PCI_CLASS_ETHERNET = 0x0200,
    NW_PCI_CLASS_INFINIBAND = 0x0207,
    NW_PCI_CLASS_INFINIBAND_OLD = 0x0c06, /* ConnectX-2 and -3 */
    NW_PCI_CLASS_WIRELESS = 0x0280,
    NW_PCI_CLASS_BRIDGE_OTHER = 0x0680, /* NVSwitch */
    NW_PCI_CLASS_COPROCESSOR = 0x0b40,
    NW_PCI_VENDOR_NVIDIA = 0x10de,
    NW_PCI_VENDOR_AMD = 0x1002,
    NW_PCI_VENDOR_AMAZON = 0x1d0f,
    NW_PCI_VENDOR_CRAY = 0x17db,
    NW_PCI_VENDOR_MELLANOX = 0x15b3,
};

struct nw_device {
    nw_node_kind kind; /* GPU, NIC, DISK, PCI */
    int object;        /* the PCI device, or the OS device itself where it has none */
    int *osdevs;       /* raw indexes of its OS devices; owned */
    size_t osdev_count;
};

/* Devices worth a node, sorted: GPUs, NICs, disks, others, each by PCI address. */
nw_rc nw_find_devices(const struct nw_raw *raw, struct nw_device **devices_out, size_t *count_out);
void nw_devices_free(struct nw_device *devices, size_t count);
/* Name, model, memory, fabric, port state, OS names; not the PCI fields. */
void nw_describe_device(const struct nw_raw *raw, const struct nw_device *device,
                        struct nw_topo_node *node);
/* "NVIDIA GH100 [H200 SXM 141GB]", "1e0f:0014" when the names are not given, "" for none. */
void nw_describe_pci(const struct nw_raw *raw, int object, char *text, size_t size);

/* OS index of the NUMA node an object is near; -1: unknown, or several. */
int nw_raw_numa(const struct nw_raw *raw, int object);
/* What a NUMA node's memory is: "" RAM, "GPU memory", "persistent memory". */
const char *nw_raw_memory_kind(const struct nw_raw *raw, int object);
/* Copy with runs of blanks made one and none at the ends. */
void nw_squeeze(const char *from, char *to, size_t size);

#endif
