/* Private to topo/. NCCL's topology file, element by element: read_nccl_xml.c walks the document,
 * read_nccl_xml_build.c makes nodes of it, read_nccl_xml_nets.c NICs, read_nccl_xml_links.c
 * links. */
#ifndef NW_TOPO_READ_NCCL_XML_H
#define NW_TOPO_READ_NCCL_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/read.h"

enum {
    /* NCCL itself stops at 256 nodes a host (and 128 hosts fused); a dump of a machine with 61
     * virtual interfaces on each of 4 NUMA nodes has 270. */
    NW_NCCL_MAX_ELEMENTS = 16000, /* as many nodes as a saved topology may have */
    NW_NCCL_MAX_GPUS = 360,       /* their pairs: as many links; the largest domain sold has 144 */
    NW_NCCL_MAX_DEPTH = 64,
};

typedef enum {
    NW_NCCL_SYSTEM,
    NW_NCCL_CPU,
    NW_NCCL_PCI,
    NW_NCCL_GPU,
    NW_NCCL_NVLINK,
    NW_NCCL_XGMI,
    NW_NCCL_C2C,
    NW_NCCL_NIC,
    NW_NCCL_NET,
    NW_NCCL_OTHER,
} nw_nccl_kind;

struct nw_nccl_element {
    nw_nccl_kind kind;
    int parent, line; /* parent: its element; -1: the root */
    int node;         /* set by the builder: node index; -1: none */
    char name[64];    /* net: name; pci: busid; nvlink, xgmi: target */
    char text[64];    /* cpu: vendor; gpu: gcn; net: guid */
    uint64_t host_hash;
    uint32_t pci_class, pci_vendor, pci_device; /* nvlink: pci_class is the target's; 0: unknown */
    int generation, lanes;                      /* pci; 0: unknown */
    int number;      /* cpu: numaid; gpu, net: dev; nvlink, xgmi, c2c: count; -1: not said */
    int capability;  /* gpu: sm; cpu: familyid; -1 */
    int model_id;    /* cpu: modelid; -1 */
    int gdr;         /* gpu, net; -1 */
    int port;        /* net; -1 */
    double megarate; /* net: speed in Mb/s; c2c: bw in MB/s; NAN */
};

struct nw_nccl_file {
    const char *what;
    struct nw_nccl_element *elements;
    size_t count, capacity;
    bool hosts;        /* several hosts of one NVLink domain are in it */
    char platform[32]; /* instance type that a comment names: "g5.48xlarge"; "": none */
};

#define NW_NCCL_SOURCE "NCCL topology file"

/* "FILE:LINE: " then the words. */
nw_rc nw_nccl_fail(const struct nw_nccl_file *file, const struct nw_nccl_element *element,
                   const char *format, ...) __attribute__((format(printf, 3, 4)));
nw_rc nw_nccl_build(struct nw_nccl_file *file, struct nw_topo *topo);
/* After the nodes are there: NVLink, XGMI, C2C. */
nw_rc nw_nccl_build_links(const struct nw_nccl_file *file, struct nw_topo *topo);
/* Nets become NICs: the one of a PCI device takes its node, further ones stand beside it. */
nw_rc nw_nccl_build_nets(struct nw_nccl_file *file, struct nw_topo *topo);
/* Name of a GPU or NIC by PCI vendor and device; "": not in the table. */
const char *nw_nccl_device_name(uint32_t vendor, uint32_t device);
/* The element above of a kind; -1: none. */
int nw_nccl_above(const struct nw_nccl_file *file, int element, nw_nccl_kind kind);

#endif
